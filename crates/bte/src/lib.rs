//! Batched threshold encryption with verifiable hints, over BLS12-381.
//!
//! Users encrypt to a committee of n members, any t of which release one 48-byte value per batch of ciphertexts. A
//! hint publisher that knows it opens the batch and publishes a 16-byte **hint** for each ciphertext; anyone verifies a hint by
//! encrypting again. Sources: Simple BTE (ePrint 2026/760) and helper-aided decryption ("Phone a Friend").
//!
//! | step | who | here |
//! |---|---|---|
//! | set-up (development only) | dealer | [`dealer::deal`] |
//! | check the parameters | everyone | [`Parameters::decode`], [`Parameters::check`] |
//! | encrypt | user | [`EncryptionKey::encrypt`] |
//! | verify the proof of knowledge | sequencer, members, nodes | [`verify_proofs`] |
//! | cross-terms, before the release | hint publisher | [`Backend::predecrypt`] |
//! | release | members | [`MemberKey::release_share`], [`Parameters::combine`] |
//! | open | hint publisher | [`Backend::finalize`]; without pre-decryption [`Backend::decrypt`] |
//! | name faulty members | hint publisher | [`Parameters::invalid_shares`] |
//! | check the release of a batch that is open | hint publisher | [`Backend::wrong_releases`] |
//! | verify hints | nodes | [`Backend::open_hints`], [`EncryptionKey::open_hint`] |
//! | prove a ciphertext malformed | members, nodes | [`MemberKey::singleton_share`], [`Parameters::verify_singletons`] |
//!
//! Not guaranteed: t members together can read anything at any time, without trace; nothing is post-quantum; the proof
//! of knowledge is Fiat–Shamir (no straight-line extraction). Unaudited.
//!
//! Heavy work can be left to a device, behind the same [`Backend`]: [`accelerator`].
//!
//! Pure functions: no input or output, no clock, no randomness but what the caller passes in. Builds for browsers
//! (`wasm32-unknown-unknown`), without threads there.
//!
//! ```
//! use blindfold_bte::{CiphertextPoint, Opening, auto, dealer};
//! # use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut rng = ChaCha20Rng::seed_from_u64(1);
//! let (parameters, keys) = dealer::deal(4, 3, 2, &mut rng)?;
//! let (ad, backend) = ([7; 32], auto(1));
//! let (ciphertext, proof, _) = parameters.encryption_key().encrypt(&ad, b"hello", b"", &mut rng)?;
//!
//! let point: CiphertextPoint = blindfold_bte::verify_proof(&ad, &ciphertext, &proof)?;
//! let predecrypted = backend.predecrypt(&parameters, &[point])?;
//! let shares = [(1, keys[0].release_share(&[point])?), (3, keys[2].release_share(&[point])?)];
//! let release = parameters.combine(&shares)?;
//! let opened = backend.finalize(&parameters, &predecrypted, &release, &[(&ad, &ciphertext)])?;
//!
//! let Opening::WellFormed { key: hint, message } = &opened[0] else { panic!("malformed") };
//! assert_eq!(message, b"hello");
//! assert_eq!(parameters.encryption_key().open_hint(&ad, &ciphertext, hint)?, b"hello");
//! # Ok(())
//! # }
//! ```

pub mod accelerator;
mod backend;
mod batch;
pub mod bls;
mod bulk;
mod ciphertext;
mod comb;
mod convolution;
mod cpu;
mod curve;
pub mod dealer;
mod decided;
mod derived;
mod digits;
#[cfg(test)]
mod emulated;
mod encrypt;
mod hash;
mod hint;
mod ifma;
mod key;
mod lagrange;
mod member;
mod opened;
mod opening;
mod par;
mod parameters;
mod platform;
mod portable;
mod proof;
mod reencrypt;
#[cfg(feature = "reference")]
mod reference;
mod release;
mod singleton;
mod stated;
mod tags;
mod weights;

pub use backend::{BACKEND_NAMES, Backend, UnknownBackend, auto, by_name, lanes};
pub use batch::{BatchError, PreDecrypted};
pub use ciphertext::{Ciphertext, CiphertextPoint, Proof, SessionKey};
pub use curve::{GtError, PointError};
pub use decided::{Check, Decided};
pub use encrypt::{EncryptError, MAX_MESSAGE_BYTES};
pub use hint::{HintError, HintItem};
pub use key::{DEFAULT_WINDOW_BITS, EncryptionKey, KeyError, MAX_WINDOW_BITS, MIN_WINDOW_BITS};
pub use lagrange::CombineError;
pub use member::{MemberKey, MemberKeyError};
pub use opened::{KnownBatch, KnownItem};
pub use opening::Opening;
pub use par::on_this_thread;
pub use parameters::{
    CheckError, DEFAULT_LINES_MAX_BYTES, Element, MAX_BATCH, MAX_MEMBERS, Parameters, ParametersError,
    TableError,
};
pub use portable::Portable;
pub use proof::{ProofError, ProofItem, verify_proof, verify_proofs};
pub use reencrypt::{CHALLENGE_BYTES, ProofForm, ReencryptItem};
#[cfg(feature = "reference")]
pub use reference::ReferenceBackend;
pub use release::{Release, ShareError};
pub use singleton::{SingletonError, SingletonItem};
pub use stated::{BLINDING_BYTES, Blinding, STATED_MIN};

/// Bytes of a session key, which is also a hint.
pub const SESSION_KEY_BYTES: usize = 16;
/// Bytes of a compressed G1 point: ciphertext header, share, release.
pub const G1_BYTES: usize = 48;
/// Bytes of a compressed G2 point.
pub const G2_BYTES: usize = 96;
/// Bytes of an element of the pairing's target group: the encryption key.
pub const GT_BYTES: usize = 576;
/// Length of a scalar's encoding, in bytes.
pub const SCALAR_BYTES: usize = 32;
/// Bytes of a proof of knowledge.
pub const PROOF_BYTES: usize = 80;
