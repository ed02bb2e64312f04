//! Posted runs, as contracts are told of them.

use alloy_primitives::keccak256;
use blindfold_protocol::{B256, BatchHeader, merkle};

/// A posted run of headers, as L1 commits to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunReference {
    /// Number of the first header.
    pub first: u64,
    /// Number of the last header.
    pub last: u64,
    /// The L1 block it was posted in.
    pub posted_at: u64,
    /// Merkle root over the header hashes.
    pub header_root: B256,
}

impl RunReference {
    /// What the inbox stores under the last number: keccak256(abi.encode(run)) (L-8).
    pub fn commitment(&self) -> B256 {
        let mut encoded = [0; 128];
        encoded[24..32].copy_from_slice(&self.first.to_be_bytes());
        encoded[56..64].copy_from_slice(&self.last.to_be_bytes());
        encoded[88..96].copy_from_slice(&self.posted_at.to_be_bytes());
        encoded[96..].copy_from_slice(self.header_root.as_slice());
        keccak256(encoded)
    }
}

/// A posted run with its headers, from which proofs are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostedRun {
    /// What L1 commits to: numbers, block and Merkle root.
    pub run: RunReference,
    /// The headers `run.first ..= run.last`.
    pub headers: Vec<BatchHeader>,
}

impl PostedRun {
    /// The run of these consecutive headers; `None` without any. One hash for each header, and as many for the root.
    pub fn new(headers: Vec<BatchHeader>, posted_at: u64) -> Option<Self> {
        let (first, last) = (headers.first()?.number, headers.last()?.number);
        let header_root = merkle::root(&leaves(&headers));
        Some(Self { run: RunReference { first, last, posted_at, header_root }, headers })
    }

    /// The header of this number.
    pub fn header(&self, number: u64) -> Option<&BatchHeader> {
        self.headers.get(self.place(number)?)
    }

    /// The siblings of the header of this number, for `verifyHeader` of the inbox.
    pub fn header_proof(&self, number: u64) -> Option<Vec<B256>> {
        merkle::proof(&leaves(&self.headers), self.place(number)?)
    }

    fn place(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.run.first)?).ok().filter(|place| *place < self.headers.len())
    }
}

fn leaves(headers: &[BatchHeader]) -> Vec<B256> {
    headers.iter().map(|header| merkle::leaf(header.hash().as_slice())).collect()
}

#[cfg(test)]
mod tests {
    use alloy_sol_types::SolValue;

    use super::*;

    /// L-8, as Solidity encodes it; a change of anything is another run.
    #[test]
    fn a_commitment_is_of_numbers_block_and_root() {
        let run = RunReference { first: 3, last: 7, posted_at: u64::MAX, header_root: B256::repeat_byte(9) };
        let encoded = (run.first, run.last, run.posted_at, run.header_root).abi_encode();
        assert_eq!(run.commitment(), keccak256(encoded));
        for other in [
            RunReference { first: 4, ..run },
            RunReference { last: 8, ..run },
            RunReference { posted_at: 0, ..run },
            RunReference { header_root: B256::ZERO, ..run },
            RunReference { first: 7, last: 3, ..run },
        ] {
            assert_ne!(other.commitment(), run.commitment());
        }
    }
}
