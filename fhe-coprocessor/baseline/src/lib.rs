//! Confidential balances by twisted ElGamal and range proofs: what the coprocessor's encrypted balances cost *without* FHE.
//!
//! A baseline for `blindfold bench coprocessor`, reachable by the binary's feature `bench` only. It has the interface of
//! the FHE path (accounts with an available and a pending balance, nonces, an auditor, batches whose proofs are verified
//! together), and nothing of it can multiply two hidden numbers.
//!
//! # Construction
//! Twisted ElGamal of Chen, Ma, Tang and Au (PGC, ePrint 2019/319) over Ristretto, with generators G (blinding)
//! and H (value): a key is pk = t·G, and an amount v for several recipients
//!
//! X_i = r·pk_i for each of them, Y = r·G + v·H, the same Y for all.
//!
//! t⁻¹·X_i = r·G, so a recipient finds v·H; ciphertexts add up. A sender with the available balance (X, Y), of value b,
//! spends v (hidden) and p (public; the fee of a transfer, or what is withdrawn) so: with X' = X − X_sender and
//! Y' = Y − Y_amount − p·H, and a fresh commitment Y* = r*·G + b*·H, the proof shows knowledge of (t, r*, b*, r, v) with
//!
//! | equation | says |
//! |---|---|
//! | pk = t·G | the sender's key |
//! | Y* = r*·G + b*·H | what the range proof is about |
//! | X' = t·(Y' − Y*) + r*·pk | b* is the value of (X', Y'): with X' = t·r'·G and Y' = r'·G + b'·H it says t·(b' − b*)·H = 0 |
//! | Y_amount = r·G + v·H, X_i = r·pk_i | all recipients get the same v |
//!
//! as one sigma protocol ([`sigma`]), and an aggregated Bulletproof+ shows v and b* to be in [0, 2^64). Everything public is
//! absorbed by the challenge ([`spend`]).
//!
//! # Limits
//! - Decryption is a discrete logarithm: by table up to [`decrypt::LIMIT`], 2^32. A balance above that is spent and proved
//!   like any other, but its owner must know it from elsewhere. Two ciphertexts of 32-bit chunks would lift this at twice
//!   the size; the benchmark stays below the limit, which favours the baseline.
//! - No quantum resistance, where RLWE hides amounts from quantum computers as well.
//! - Deposits and withdrawals touch a public ledger without signatures, and there is no tree of accounts: the benchmark
//!   needs neither, which again favours the baseline.
//!
//! Pure functions: no input or output, no clock. Unaudited.

pub mod decrypt;
pub mod elgamal;
pub mod ledger;
pub mod registration;
pub mod sigma;
pub mod spend;
#[cfg(test)]
mod tests;

mod encoding;

/// Domain tags of all transcripts.
mod tags {
    /// Registrations.
    pub(crate) const REGISTRATION: &[u8] = b"BLINDFOLD-V1-BASELINE-REGISTRATION";
    /// Transfers and withdrawals.
    pub(crate) const SPEND: &[u8] = b"BLINDFOLD-V1-BASELINE-SPEND";
    /// Digests of a state.
    pub(crate) const STATE: &[u8] = b"BLINDFOLD-V1-BASELINE-STATE";
    /// Rollovers.
    pub(crate) const ROLLOVER: &[u8] = b"BLINDFOLD-V1-BASELINE-ROLLOVER";
}

/// The owner of an account.
pub type Address = [u8; 20];
