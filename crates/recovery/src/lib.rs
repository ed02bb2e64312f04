//! The keys behind many secp256k1 signatures.
//!
//! Every envelope has a payer's signature, and every role recovers its key, a batch at a time. Where the processor has
//! AVX-512 IFMA, eight are recovered in the lanes of its vectors; everywhere else, and for a few alone, libsecp256k1 does
//! it. What the lanes do not decide, because an addition met one of its exceptions or no point has that x, libsecp256k1
//! decides: the answers are the library's, always.
//!
//! Signatures, digests and keys are public, so nothing here is constant-time.

#[cfg(target_arch = "x86_64")]
mod lanes;

use secp256k1::{
    Message, SECP256K1,
    ecdsa::{RecoverableSignature, RecoveryId},
};

/// Fewer than so many are recovered one by one: the lanes take as long for one as for eight.
pub const FEWEST_IN_LANES: usize = 3;

/// x ‖ y of a key, big-endian.
pub type Key = [u8; 64];

/// A signature whose key is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signed {
    /// What was signed.
    pub digest: [u8; 32],
    /// r ‖ s, big-endian; s may be in either half.
    pub rs: [u8; 64],
    /// Which of the two points with that r is meant. r itself stands for x, never r plus the group order.
    pub odd: bool,
}

/// r or s is zero or not below the group order: there is no such signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("r or s is zero or not below the group order")]
pub struct OutOfRange;

/// The key of one signature; `None` if no key fits. About 40 µs.
///
/// # Errors
/// [`OutOfRange`].
pub fn key(signed: &Signed) -> Result<Option<Key>, OutOfRange> {
    if signed.rs.as_chunks::<32>().0.iter().any(|half| half.iter().all(|byte| *byte == 0)) {
        return Err(OutOfRange);
    }
    let id = if signed.odd { RecoveryId::One } else { RecoveryId::Zero };
    let signature = RecoverableSignature::from_compact(&signed.rs, id).map_err(|_| OutOfRange)?;
    let found = SECP256K1.recover_ecdsa(Message::from_digest(signed.digest), &signature);
    Ok(found.ok().map(|key| {
        let mut point = [0; 64];
        // Behind the byte that says that it is not compressed.
        point.copy_from_slice(&key.serialize_uncompressed()[1..]);
        point
    }))
}

/// [`key`] of each.
pub fn keys(signed: &[Signed]) -> Vec<Result<Option<Key>, OutOfRange>> {
    let decided = if signed.len() < FEWEST_IN_LANES { None } else { in_lanes(signed) };
    let decided = decided.unwrap_or_else(|| vec![None; signed.len()]);
    signed
        .iter()
        .zip(decided)
        .map(|(signed, found)| found.map_or_else(|| key(signed), |key| Ok(Some(key))))
        .collect()
}

/// What the lanes find: a key for each signature, or nothing where the library has to decide. `None` where the processor
/// lacks the instructions.
#[cfg(target_arch = "x86_64")]
pub fn in_lanes(signed: &[Signed]) -> Option<Vec<Option<Key>>> {
    lanes::Lanes::here().map(|lanes| lanes.keys(signed))
}

/// Nothing: the instructions are those of another architecture.
#[cfg(not(target_arch = "x86_64"))]
pub fn in_lanes(_signed: &[Signed]) -> Option<Vec<Option<Key>>> {
    None
}
