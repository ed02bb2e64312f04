//! Randomness that survives a generator which repeats itself.

use std::convert::Infallible;
use std::fmt;

use rand_core::{CryptoRng, TryCryptoRng, TryRng};
use zeroize::Zeroizing;

use super::{SEED_BYTES, Xof};
use crate::tags;

/// A stream that follows from a secret, from what it is used for, and from 32 fresh bytes: SHAKE256 under the tag
/// `BLINDFOLD-V1-RLWE-HEDGE`. To others it is uniform if the fresh bytes are, or if the secret is unknown to them; and two
/// uses never share it, even if the generator gives the same bytes twice (a restored snapshot, a forked process, a broken
/// device), unless they are the same use. Bellare and others, "Hedged Public-Key Encryption" (Asiacrypt 2009), and as in
/// hedged signatures (RFC 6979, section 3.6).
pub struct HedgedRng(Xof);

impl HedgedRng {
    /// Draws 32 bytes. `message` says what the stream is for: everything that may differ between two uses.
    pub fn new(secret: &[u8], message: &[&[u8]], fresh: &mut (impl CryptoRng + ?Sized)) -> Self {
        let mut drawn = Zeroizing::new([0; SEED_BYTES]);
        fresh.fill_bytes(&mut *drawn);
        let parts: Vec<&[u8]> = [secret, &*drawn].into_iter().chain(message.iter().copied()).collect();
        Self(Xof::new(tags::HEDGE, &parts))
    }
}

impl fmt::Debug for HedgedRng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HedgedRng").finish_non_exhaustive()
    }
}

impl TryRng for HedgedRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.0.fill(&mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill(bytes);
        Ok(())
    }
}

impl TryCryptoRng for HedgedRng {}
