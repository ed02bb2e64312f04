//! Reading and writing the L1 contracts: `BlindedInbox`, `CommitteeRegistry`, `ForcedQueue`, `FeeVault`,
//! `HintRegistry`, `HintVerifier`, `DepositPortal`, `OutputRegistry`.
//!
//! - [`L1Reader`] is what roles know of L1, and [`L1Submitter`] what they do there; tests and simulations script both.
//! - [`L1Client`] reads. Whatever validity depends on (origins, deposits, forced items, epochs, postings) is read from
//!   **final** blocks only, so an answer never changes and is kept.
//! - [`L1Writer`] sends transactions: postings, deposits, hints, evidence, epochs.
//! - [`deploy`] brings up a new deployment from the creation code in `contracts/abi`.
//! - [`RunData`] is how envelopes travel in calldata and in blobs; [`Posting`] is what a reader gets back.
//! - [`HintPosting`], [`HintTree`] and [`Challenge`] are hints on L1 and what is shown against wrong ones.
//! - [`ManagedAnvil`] runs a development L1 as a child process, for the devnet and for tests.
//!
//! ```text
//! posting/    what goes to L1, as bytes: runs and their data, hints, challenges, evidence
//! events/     what L1 tells: logs, facts, what happened to hints and to batches
//! reader/     L1Reader, and the client behind it
//! submitter/  L1Submitter, and the writer behind it: fees, signatures, replacements
//! ```
//!
//! Beside these folders stand the endpoint (`transport`), the places that data of runs may be in (`layer`) and the archives that
//! one of them is (`archive`), the contracts, settings, errors, deployment and anvil.
//!
//! What has to act before a block is final, as a challenge of posted hints, reads the newest blocks and keeps nothing:
//! [`L1Client::hint_events`] and its neighbours. [`RegistryState`] is the fold of these events, for every role.
//!
//! The endpoint is trusted for what L1 says: answers are bounded, typed and checked against each other, but not
//! proved. Run your own. A beacon node is not trusted: blobs are checked against their versioned hashes.

mod anvil;
mod archive;
mod config;
pub mod contracts;
mod deploy;
mod deploy_plan;
mod error;
mod events;
mod layer;
mod posting;
mod reader;
mod submitter;
#[cfg(test)]
mod test_header;
#[cfg(test)]
mod test_server;
mod transport;

pub use anvil::{AnvilConfig, AnvilError, ManagedAnvil, dev_key};
pub use archive::{Archive, ArchiveRoom, ArchiveToken, ROOM_PATH, TokenError};
pub use blindfold_engine::L1Origin;
pub use config::{DEFAULT_MAX_TRANSACTION_FEE_WEI, DeployedWith, L1Config, L1Contracts};
pub use deploy::{
    Addresses, CommitteeSettings, DEFAULT_CHALLENGE_STAKE_WEI, DEFAULT_CLAIM_DELAY,
    DEFAULT_FORCED_FEE_PER_BYTE_WEI, DEFAULT_FORCED_GAS_PRICE_WEI, DEFAULT_PUBLISHER_BOND_WEI, DeployConfig,
};
pub use deploy_plan::{BrokenOff, DeployFunds, DeployPlan, deploy};
pub use error::{L1Error, Recovery, RunError};
pub use events::facts::{FallbackHeader, L1News, MAX_FORCED_ENTRIES, PendingFallbackHeader, VoidRun};
pub use events::registry::{PostingState, RegisteredHints, RegistryState};
pub use events::{HintEvent, L1HeaderLog, PostedLog};
pub use posting::archived::{ArchivedData, MAX_ARCHIVED_BYTES};
pub use posting::blobs::{
    BlobError, MAX_BLOB_DATA_BYTES, MAX_BLOBS, decode_blobs, encode_blobs, sidecar, versioned_hash,
};
pub use posting::challenge::{Challenge, ChallengeError, HintEvidence, first_wrong_entry};
pub use posting::evidence::{
    AccountProof, DisputeContract, EnvelopeTree, GivenPromise, ItemLeaf, OmissionAnswer, challenge_evidence,
    commitment, equivocation_evidence, omission_evidence,
};
pub use posting::hint_blobs::{HintBlobs, HintData, HintIndex};
pub use posting::hint_posting::{HintPosting, MAX_RUN_HINT_BYTES, PostedBatch, PostedEntry, PostedError};
pub use posting::hint_roots::HintRoots;
pub use posting::hint_tree::{Chunk, HintTree};
pub use posting::opened_data::{HintsReference, KeyedBatch, OpenedData, OpenedPiece};
pub use posting::place::{DataPlace, MAX_TRANSACTION_BYTES};
pub use posting::run::{PostedRun, RunReference};
pub use posting::run_data::{BatchData, CodedBatch, DataPart, RunData, split_run_data};
pub use reader::accusations::{OpenAccusation, open_accusations};
pub use reader::client::L1Client;
pub use reader::committee::{AnnouncedEnd, EpochRecord, NewEpoch, NewMember};
pub use reader::data::{DataError, FoundData, PostedData};
pub use reader::data_standing::{DataStanding, Supplier, UNREAD_PATIENCE_BLOCKS};
pub use reader::faults::{Output, SequencerEvent};
pub use reader::hints::{PostedHints, PublisherBond};
pub use reader::postings::{Bond, PostedHead, Posting};
pub use reader::queue::L1Deposit;
pub use reader::standing::{
    Accusation, AccusationState, L1HeaderDue, Portal, QueuedItem, Standing, VaultAccount,
};
pub use reader::{L1Blocks, L1Reader, OutputStanding};
pub use submitter::L1Submitter;
pub use submitter::costs::{DataCosts, DataEstimate, PlaceCosts};
pub use submitter::pending::Sent;
pub use submitter::stakes::{Acknowledged, MemberStake};
pub use submitter::writer::{DataPolicy, L1Writer, MAX_TRANSACTION_HEADERS};
pub use submitter::writer_disputes::ACCUSATION_STAKE_WEI;
pub use submitter::writer_funds::L2Call;
