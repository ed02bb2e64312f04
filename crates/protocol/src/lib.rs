//! Wire types, encodings, hashes, signatures, the validity and skip rules, and limits of Blindfold.
//!
//! Pure functions: no I/O, no clock, no async. Randomness comes from the caller. `docs/protocol.md` is the
//! specification, and `contracts/` hashes the same structs.

pub mod block;
pub mod bundle;
pub mod certificate;
pub mod codec;
pub mod config;
pub mod data;
pub mod eip712;
pub mod envelope;
pub mod envelope_builder;
pub mod epoch;
pub mod expiry;
pub mod fault;
pub mod forced;
pub mod header;
pub mod hello;
pub mod ledger;
pub mod limits;
pub mod merkle;
pub mod messages;
pub mod opened;
mod recovery;
pub mod release;
pub mod signature;
pub mod skip;
pub mod tags;
pub mod validity;

pub use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
pub use blindfold_bte as bte;
pub use block::{Second, Seconds};
pub use bundle::{Bundle, BundleError, BundleItem};
pub use certificate::CertificateError;
pub use codec::{Canonical, DecodeError, hex_canonical};
pub use config::{ChainConfig, ChainConfigError, L1Timing, MIN_SOUND_POSTING_DEADLINE};
pub use eip712::Deployment;
pub use envelope::{Envelope, EnvelopeHeader};
pub use epoch::{Epoch, EpochError, Epochs, FIRST_RULES, RulesChange, SequencerChange};
pub use expiry::Expiry;
pub use fault::EnvelopeError;
pub use forced::{ForcedEntry, ForcedTransaction};
pub use header::{BatchHeader, HeaderId, SealedBatch, SignedHeader};
pub use hello::{Hello, HelloError, Party, PartyKey};
pub use ledger::{
    Account, AccountChange, FeeLedger, Held, HeldChange, LedgerBefore, LedgerBuilder, LedgerDelta,
    LedgerDeltaError, LedgerEntry, LedgerProof, LedgerTree, LiveNonce, NonceChange,
};
pub use messages::{
    Acknowledgement, AttestedData, Certificate, CertifiedBatch, DataAttestation, Promise,
    acknowledgement_digest,
};
pub use release::{BatchHints, HintEntry, Release, ReleaseShare, SingletonShare};
pub use signature::{Signature65, SignatureError, SigningKey};
pub use skip::{Candidate, StaticSkip};
pub use validity::{
    AppliedBatch, BaseFees, ChainState, CheckedEnvelope, CheckedItem, Deposit, Head, HeaderError, InputError,
    L1Facts, LedgerEvent, OriginFacts, RejectedItem, SealError, Settled, StaticEnvelope, Verdict, Withdrawal,
    check_items, check_items_parallel, check_static, sub_batches,
};
