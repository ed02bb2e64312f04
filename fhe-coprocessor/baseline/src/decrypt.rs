//! From v·H to v: baby steps and giant steps.

use std::collections::HashMap;

use curve25519_dalek::{RistrettoPoint, Scalar, traits::Identity};

use crate::elgamal::{Ciphertext, Generators, SecretKey};

/// Bits of v that the table finds at once.
const BABY_BITS: u32 = 16;
/// Giant steps compressed together.
const CHUNK: u64 = 256;
/// One above the largest value that is found.
pub const LIMIT: u64 = 1 << (2 * BABY_BITS);

/// A value that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the value is 2^32 or more, or the key is another's: decryption finds smaller values only")]
pub struct OutOfReach;

/// The multiples of H below 2^16, by their encodings: about 4 MB.
pub struct Table {
    value: RistrettoPoint,
    baby: HashMap<[u8; 32], u32>,
}

impl Table {
    /// 2^16 additions and encodings.
    #[must_use]
    pub fn new(generators: &Generators) -> Self {
        let mut at = RistrettoPoint::identity();
        let points: Vec<RistrettoPoint> = (0..1u32 << BABY_BITS)
            .map(|_| {
                let point = at;
                at += generators.value;
                point
            })
            .collect();
        // Twice the points: doubles are encoded together, with one inversion.
        let doubles = RistrettoPoint::double_and_compress_batch(&points);
        let baby = (0..).zip(doubles).map(|(j, double)| (double.to_bytes(), j)).collect();
        Self { value: generators.value, baby }
    }

    /// The value, in time that depends on it: up to 2^16 additions and encodings.
    ///
    /// # Errors
    /// [`OutOfReach`].
    pub fn decrypt(&self, secret: &SecretKey, ciphertext: &Ciphertext) -> Result<u64, OutOfReach> {
        let giant = self.value * Scalar::from(1u64 << BABY_BITS);
        let mut at = secret.open(ciphertext);
        let steps = 1u64 << BABY_BITS;
        for first in (0..steps).step_by(CHUNK as usize) {
            let points: Vec<RistrettoPoint> = (0..CHUNK)
                .map(|_| {
                    let point = at;
                    at -= giant;
                    point
                })
                .collect();
            let doubles = RistrettoPoint::double_and_compress_batch(&points);
            for (step, double) in (first..).zip(doubles) {
                if let Some(baby) = self.baby.get(double.as_bytes()) {
                    return Ok((step << BABY_BITS) + u64::from(*baby));
                }
            }
        }
        Err(OutOfReach)
    }
}
