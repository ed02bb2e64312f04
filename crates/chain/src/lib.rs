//! Following the chain of headers and executing it: what sequencer, members and full nodes share.
//!
//! - [`L1Reader`]: what L1 says, as a seam.
//! - [`ParameterSet`]: the committees' public parameters, matched with what L1 registered.
//! - [`Tracker`]: the one writer over the validity rule's state and its disk: checks and applies headers, seals new
//!   ones, takes certificates, gives way to the certified header when the sequencer signed two.
//! - [`Decryption`]: opening batches with what the members give.
//! - [`verify_hints`]: what the batch says, proved and not believed; [`HintIntake`] stores what stands.
//! - [`Executor`]: one L2 block per second from certified and hinted batches, through an execution client.
//! - [`Verifier`]: signatures and proofs of envelopes that come in, in groups.
//! - [`RunFetcher`]: fetching certified batches from members, of whom some may be slow.
//! - [`Settlement`]: which batches are safe and which are final on L1, for the execution client to know.
//! - [`SubstitutePoster`]: posting to L1 what the sequencer keeps from it.
//! - [`Fork`]: where a disk and L1 part, and the way back.
//! - [`ReadApi`]: the reads of `blind_*` over the store, and [`announce`] for the topics.

mod ancestors;
pub mod announce;
mod closing;
mod decrypt;
mod executor;
mod fetch;
mod hints;
mod intake;
mod l1;
mod l1_rounds;
pub mod limits;
mod next_look;
mod office;
mod opener;
mod overdue;
mod parameters;
mod read;
mod rebuild;
mod records;
mod remote_signer;
mod round_error;
mod run;
mod settlement;
mod signer;
mod tracker;
mod verifier;

pub use ancestors::{HeaderSource, TakenRun};
pub use closing::Closing;
pub use decrypt::{
    AcceptedItem, BatchView, Begun, CheckedPart, DecryptError, Decryption, DecryptionWatch, HeldShares,
    MemberLimits, MemberWatch, Part, PartFault, Pool, ShareMembers, Step, ViewError, assemble, told_verdicts,
};
pub use executor::{
    BlockDetails, DepositCursor, EnvelopeOutcome, ExecutedEnvelope, ExecutionError, ExecutionState, Executor,
    ExecutorDeps, ExecutorStatus, HaltLimits, InnerTransaction, NewBlock, OpenedBatches, WarmError, warm_up,
};
pub use fetch::{FetchedRuns, GivenRun, RunFetcher};
pub use hints::{HintsError, ItemOutcome, check_release_shape, verify_hints};
pub use intake::{HintIntake, HintsAccepted, HintsIntakeError};
pub use l1::{
    AnnouncedEnd, CodedBatch, DataError, FallbackHeader, L1Deposit, L1Error, L1News, L1Origin, L1Reader,
    L1Submitter, MAX_FORCED_ENTRIES, PendingFallbackHeader, VoidRun, made_by_l1, origin_facts,
};
pub use l1_rounds::{L1Round, L1Rounds};
pub use next_look::NextLook;
pub use office::Office;
pub use opener::{OpenBatchError, Opener, unopened_outcomes};
pub use overdue::{Look, SubstitutePoster, Turn};
pub use parameters::{EpochParameters, ParameterSet, ParametersMismatch};
pub use read::{ReadApi, ReadContext, RoleView, encryption_keys, passthrough};
pub use rebuild::{Fork, OtherHeader, RebuildError, WayBack};
pub use records::{accepted, makes_block, own_hints, verdicts};
pub use remote_signer::RemoteSigner;
pub use round_error::L1RoundError;
pub use run::{CertifiedHeaders, CertifiedRun, RunLimits, coded, keyed, next_headers, next_run};
pub use settlement::{Settled, Settlement, TakesMarks};
pub use signer::{HeaderSigner, KeySigner, SignerError};
pub use tracker::{
    AccountProofError, Applied, CHECK_CHUNK_ITEMS, CLOCK_SKEW_MS, CertificateOutcome, HeaderId, NextStep,
    OpenError, ProvedAccount, Sealed, SealingError, Tracker, TrackerError, accepted_items,
    certificate_fault_name, check_items,
};
pub use verifier::{Verifier, VerifierError, VerifierLimits};
