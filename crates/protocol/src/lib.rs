//! Wire types, encodings, hashes, signatures, the validity and skip rules, and limits of Blindfold.
//!
//! Pure functions: no I/O, no clock, no async. Randomness comes from the caller. `docs/protocol.md` is the
//! specification, and `contracts/` hashes the same structs.

pub mod block;
pub mod bundle;
pub mod codec;
pub mod config;
pub mod eip712;
pub mod header;
pub mod limits;
pub mod merkle;
pub mod messages;
pub mod release;
pub mod signature;
pub mod tags;

pub use alloy_primitives::{Address, B256, Bytes, U256};
pub use block::{Second, Seconds};
pub use bundle::{Bundle, BundleFault, BundleItem};
pub use codec::{Canonical, DecodeError, hex_canonical};
pub use config::{ChainConfig, ConfigFault};
pub use eip712::Deployment;
pub use header::{BatchHeader, SealedBatch, SignedHeader};
pub use messages::{Acknowledgement, Certificate, CertifiedBatch, Promise, acknowledgement_digest};
pub use release::{BatchHints, HintEntry, Release, ReleaseShare, SingletonShare};
pub use signature::{Signature65, SignatureError, SigningKey};
