//! Random weights of batched checks: 128 bits each, so a false batch passes with probability 2^−128.

use std::convert::Infallible;

use rand_core::{CryptoRng, TryCryptoRng, TryRng};

use crate::curve::Scalar;
use crate::curve::weighted::DigitWeight;
use crate::hash::sha256;

pub(crate) const WEIGHT_BYTES: usize = 16;

/// A weight, little-endian.
pub(crate) type Weight = [u8; WEIGHT_BYTES];

pub(crate) fn random_weights(count: usize, rng: &mut (impl CryptoRng + ?Sized)) -> Vec<Weight> {
    let mut weights = vec![[0; WEIGHT_BYTES]; count];
    rng.fill_bytes(weights.as_flattened_mut());
    weights
}

/// Weights of 128 bits in four digits.
pub(crate) fn random_digit_weights(count: usize, rng: &mut (impl CryptoRng + ?Sized)) -> Vec<DigitWeight> {
    random_weights(count, rng)
        .iter()
        .map(|weight| {
            let (digits, _) = weight.as_chunks::<4>();
            std::array::from_fn(|i| u32::from_le_bytes(digits[i]))
        })
        .collect()
}

pub(crate) fn as_scalar(weight: &Weight) -> Scalar {
    let mut bytes = *weight;
    bytes.reverse();
    Scalar::reduce(&bytes)
}

/// Randomness expanded from 32 bytes of the caller's source (SHA-256 in counter mode), so that batch work can move to
/// other threads while the source stays.
pub(crate) struct Expanded {
    seed: [u8; 32],
    counter: u64,
}

impl Expanded {
    pub(crate) fn new(source: &mut (impl CryptoRng + ?Sized)) -> Self {
        let mut seed = [0; 32];
        source.fill_bytes(&mut seed);
        Self { seed, counter: 0 }
    }
}

impl TryRng for Expanded {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        for chunk in out.chunks_mut(32) {
            let block = sha256(&[&self.seed, &self.counter.to_be_bytes()]);
            chunk.copy_from_slice(&block[..chunk.len()]);
            self.counter += 1;
        }
        Ok(())
    }
}

impl TryCryptoRng for Expanded {}

/// Which of the items 0..count fail, found by halving: `holds` checks a whole group at once and never fails one without
/// a failing item. A group that holds costs one check, each failing item about log₂(count) more: where one half of a
/// failing group holds, the other must fail and is not checked as a whole.
pub(crate) fn failing(count: usize, mut holds: impl FnMut(&[usize]) -> bool) -> Vec<usize> {
    let all: Vec<usize> = (0..count).collect();
    let mut failing = Vec::new();
    if !all.is_empty() && !holds(&all) {
        search(&all, &mut holds, &mut failing);
    }
    failing
}

/// Adds the failing items of a group that has some.
fn search(group: &[usize], holds: &mut impl FnMut(&[usize]) -> bool, failing: &mut Vec<usize>) {
    if let [single] = group {
        return failing.push(*single);
    }
    let (left, right) = group.split_at(group.len() / 2);
    let left_holds = holds(left);
    if !left_holds {
        search(left, holds, failing);
    }
    if left_holds || !holds(right) {
        search(right, holds, failing);
    }
}

#[cfg(test)]
mod tests {
    use super::failing;

    #[test]
    fn halving_finds_exactly_the_failing_items() {
        for count in 0..12 {
            for bad in 0..1u32 << count {
                let want: Vec<usize> = (0..count).filter(|i| bad >> i & 1 == 1).collect();
                let mut checks = 0;
                let found = failing(count, |group| {
                    checks += 1;
                    group.iter().all(|i| bad >> i & 1 == 0)
                });
                assert_eq!(found, want);
                if want.len() == 1 {
                    assert!(checks <= 1 + 2 * count.next_power_of_two().ilog2(), "{count}");
                }
            }
        }
    }
}
