//! What several tests need.
#![allow(dead_code)] // each test file uses its own part

use blindfold_bte::{
    Ciphertext, CiphertextPoint, EncryptionKey, MemberKey, Parameters, Proof, SessionKey, dealer,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

pub fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

pub fn deal(max_batch: u32, members: u16, threshold: u16, seed: u64) -> (Parameters, Vec<MemberKey>) {
    dealer::deal(max_batch, members, threshold, &mut rng(seed)).expect("a valid shape")
}

/// An honest ciphertext with everything about it.
#[derive(Clone)]
pub struct Made {
    pub ad: [u8; 32],
    pub message: Vec<u8>,
    pub ciphertext: Ciphertext,
    pub proof: Proof,
    pub key: SessionKey,
}

impl Made {
    pub fn new(ek: &EncryptionKey, number: usize, rng: &mut ChaCha20Rng) -> Self {
        let ad = [number as u8; 32];
        let message = vec![number as u8 ^ 0x55; 7 * number];
        let (ciphertext, proof, key) = ek.encrypt(&ad, &message, b"wallet", rng).expect("a short message");
        Self { ad, message, ciphertext, proof, key }
    }

    pub fn point(&self) -> CiphertextPoint {
        self.ciphertext.header().expect("honest")
    }
}

pub fn batch(parameters: &Parameters, size: usize, seed: u64) -> Vec<Made> {
    let (ek, mut rng) = (parameters.encryption_key(), rng(seed));
    (0..size).map(|number| Made::new(&ek, number, &mut rng)).collect()
}

pub fn points(batch: &[Made]) -> Vec<CiphertextPoint> {
    batch.iter().map(Made::point).collect()
}

pub fn inputs(batch: &[Made]) -> Vec<(&[u8; 32], &Ciphertext)> {
    batch.iter().map(|made| (&made.ad, &made.ciphertext)).collect()
}

pub fn shares(keys: &[MemberKey], points: &[CiphertextPoint]) -> Vec<(u16, [u8; 48])> {
    keys.iter().map(|key| (key.index(), key.release_share(points).expect("within limits"))).collect()
}

/// A point of the curve outside the subgroup: a subgroup point plus one of order 3.
pub fn off_subgroup() -> [u8; 48] {
    let text =
        "a55293eaa86b7af493578b73ab2d7edd49e0f1a7821e7ed11a4dc83dd6eed67a7d680e8fe49794874f1cfa9fc48212e5";
    hex::decode(text).ok().and_then(|bytes| bytes.try_into().ok()).expect("48 bytes")
}

pub const IDENTITY_G1: [u8; 48] = {
    let mut bytes = [0; 48];
    bytes[0] = 0xc0;
    bytes
};
