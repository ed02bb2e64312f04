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
//! What has to act before a block is final, as a challenge of posted hints, reads the newest blocks and keeps nothing:
//! [`L1Client::hint_events`] and its neighbours. [`RegistryState`] is the fold of these events, for every role.
//!
//! The endpoint is trusted for what L1 says: answers are bounded, typed and checked against each other, but not
//! proved. Run your own. A beacon node is not trusted: blobs are checked against their versioned hashes.

mod accusations;
mod anvil;
mod beacon;
mod blobs;
mod challenge;
mod client;
mod committee;
mod config;
pub mod contracts;
mod data;
mod data_standing;
mod deploy;
mod deploy_plan;
mod epochs;
mod error;
mod events;
mod evidence;
mod facts;
mod faults;
mod fees;
mod hint_blobs;
mod hint_calls;
mod hint_posting;
mod hint_roots;
mod hint_tree;
mod hints;
mod journal;
mod journal_file;
mod journal_reads;
mod ledger;
mod log_reads;
mod logs;
mod outputs;
mod parts;
mod postings;
mod queue;
mod reader;
mod recent;
mod registry;
mod run;
mod run_data;
mod sender;
mod stakes;
mod standing;
mod state_at;
mod submitter;
#[cfg(test)]
mod test_server;
mod transport;
mod writer;
mod writer_disputes;
mod writer_funds;
mod writer_hints;

pub use accusations::{OpenAccusation, open_accusations};
pub use anvil::{AnvilConfig, AnvilError, ManagedAnvil, dev_key};
pub use blindfold_engine::L1Origin;
pub use blobs::{
    BlobError, MAX_BLOB_DATA_BYTES, MAX_BLOBS, decode_blobs, encode_blobs, sidecar, versioned_hash,
};
pub use challenge::{Challenge, ChallengeError, HintEvidence, first_wrong_entry};
pub use client::L1Client;
pub use committee::{AnnouncedEnd, EpochRecord, NewEpoch, NewMember};
pub use config::{DeployedWith, L1Config, L1Contracts};
pub use data::{DataError, FoundData, PostedData};
pub use data_standing::{DataStanding, Supplier, UNREAD_PATIENCE_BLOCKS};
pub use deploy::{
    Addresses, CommitteeSettings, DEFAULT_CHALLENGE_STAKE_WEI, DEFAULT_CLAIM_DELAY,
    DEFAULT_FORCED_FEE_PER_BYTE_WEI, DEFAULT_FORCED_GAS_PRICE_WEI, DEFAULT_PUBLISHER_BOND_WEI, DeployConfig,
};
pub use deploy_plan::{BrokenOff, DeployFunds, DeployPlan, deploy};
pub use error::{L1Error, Recovery, RunError};
pub use events::{HintEvent, L1HeaderLog, PostedLog};
pub use evidence::{
    AccountProof, DisputeContract, EnvelopeTree, GivenPromise, ItemLeaf, OmissionAnswer, challenge_evidence,
    commitment, equivocation_evidence, omission_evidence,
};
pub use facts::{FallbackHeader, L1News, MAX_FORCED_ENTRIES, PendingFallbackHeader, VoidRun};
pub use faults::{Output, SequencerEvent};
pub use hint_blobs::{HintBlobs, HintData, HintIndex};
pub use hint_posting::{HintPosting, MAX_RUN_HINT_BYTES, PostedBatch, PostedEntry, PostedError};
pub use hint_roots::HintRoots;
pub use hint_tree::{Chunk, HintTree};
pub use hints::{PostedHints, PublisherBond};
pub use postings::{Bond, PostedHead, Posting};
pub use queue::L1Deposit;
pub use reader::{L1Blocks, L1Reader, OutputStanding};
pub use registry::{PostingState, RegisteredHints, RegistryState};
pub use run::{PostedRun, RunReference};
pub use run_data::{BatchData, CodedBatch, DataPart, RunData, split_run_data};
pub use sender::Sent;
pub use stakes::{Acknowledged, MemberStake};
pub use standing::{Accusation, AccusationState, L1HeaderDue, Portal, QueuedItem, Standing, VaultAccount};
pub use submitter::L1Submitter;
pub use writer::{DataPlace, L1Writer, MAX_TRANSACTION_BYTES, MAX_TRANSACTION_HEADERS};
pub use writer_disputes::ACCUSATION_STAKE_WEI;
pub use writer_funds::L2Call;
