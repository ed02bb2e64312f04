//! Keccak-256 of many messages: where the processor has AVX-512, eight of one length at a time.
//!
//! What an executor hashes comes in such numbers: identifiers, ciphertexts and polynomials of one batch have one length
//! each, and so do the nodes of a tree. Elsewhere they are hashed one after the other; the hashes are the same.

#[cfg(target_arch = "x86_64")]
mod avx512;

use alloy_primitives::{B256, keccak256};
use rayon::prelude::*;

/// Messages hashed together, at most.
const LANES: usize = 8;

/// keccak256 of each message, in order. Costs a permutation for every 136 bytes of each message; with AVX-512 for every
/// 136 bytes of each eight of one length, wherever they stand.
pub(crate) fn keccak256_each(messages: &[impl AsRef<[u8]>]) -> Vec<B256> {
    let messages: Vec<&[u8]> = messages.iter().map(AsRef::as_ref).collect();
    let mut order: Vec<usize> = (0..messages.len()).collect();
    order.sort_by_key(|place| messages[*place].len());
    let mut hashes = vec![B256::ZERO; messages.len()];
    for same in order.chunk_by(|one, other| messages[*one].len() == messages[*other].len()) {
        for group in same.chunks(LANES) {
            // A message stands in for those that are missing.
            let lanes = std::array::from_fn(|lane| messages[group[lane % group.len()]]);
            let together = if group.len() > 1 { eight(&lanes) } else { None };
            for (lane, place) in group.iter().enumerate() {
                hashes[*place] = together.map_or_else(|| keccak256(messages[*place]), |hashes| hashes[lane]);
            }
        }
    }
    hashes
}

/// Hands every item the hash of its message, on all threads.
pub(crate) fn hash_on_all_threads<T: Sync>(
    items: &[T],
    message: impl Fn(&T) -> Vec<u8> + Sync,
    put: impl Fn(&T, B256) + Sync,
) {
    items.par_chunks(LANES).for_each(|group| {
        let messages: Vec<Vec<u8>> = group.iter().map(&message).collect();
        group.iter().zip(keccak256_each(&messages)).for_each(|(item, hash)| put(item, hash));
    });
}

/// keccak256 of each message, in order, on all threads.
pub(crate) fn keccak256_on_all_threads(messages: &[impl AsRef<[u8]> + Sync]) -> Vec<B256> {
    messages.par_chunks(LANES).flat_map_iter(keccak256_each).collect()
}

/// The hashes of eight messages of one length, if this processor hashes them together.
#[cfg(target_arch = "x86_64")]
fn eight(messages: &[&[u8]; LANES]) -> Option<[B256; LANES]> {
    avx512::available().then(|| avx512::keccak256(messages))
}

#[cfg(not(target_arch = "x86_64"))]
fn eight(_messages: &[&[u8]; LANES]) -> Option<[B256; LANES]> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_hash_like_one() {
        #[cfg(target_arch = "x86_64")]
        println!("AVX-512: {}", avx512::available());
        // Around the rate, and as long as what is hashed in numbers.
        for length in [0, 1, 7, 8, 65, 135, 136, 137, 271, 272, 273, 13_824, 14_332] {
            for count in [0, 1, 7, 8, 9, 16, 17] {
                let messages: Vec<Vec<u8>> = (0..count)
                    .map(|message| (0..length).map(|i| (i * 31 + message * 7 + i / 256) as u8).collect())
                    .collect();
                let expected: Vec<B256> = messages.iter().map(keccak256).collect();
                assert_eq!(keccak256_each(&messages), expected, "{count} of {length} bytes");
            }
        }
        // Several lengths, mixed.
        let messages: Vec<Vec<u8>> = (0..40).map(|i| vec![i; usize::from(i) * 7 % 3 * 100]).collect();
        let expected: Vec<B256> = messages.iter().map(keccak256).collect();
        assert_eq!(keccak256_each(&messages), expected);
        assert_eq!(keccak256_on_all_threads(&messages), expected);
    }
}
