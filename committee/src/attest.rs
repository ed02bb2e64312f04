//! Reading data of posted batches for the sequencer, before it pays for posting them (OD-6, OD-8).
//!
//! Whoever posts data counts what it made itself as there, and nobody else posts the same again. So data that its own software
//! reads and others' does not would leave a posting without data for good, and nobody would hear of it who can mend it. A
//! member reads them with its own software and its own view of L1: it decodes them, takes the keys from the hints that they
//! name, opens what it holds certified with these and compares. That the keys are right it does not find out by encrypting
//! again, which would cost it more than all else that it does: whoever posted a wrong one loses a bond, and then the data is
//! posted as it is. Bytes are never compared: two versions of a library compress the same content to different ones.
//!
//! What it signs is a statement about bytes, true whoever looks, so nothing is kept of it on disk, and data with another hash
//! may be attested for the same batches (OD-7).

use std::{num::NonZeroUsize, sync::Arc};

use alloy_primitives::{Bytes, keccak256};
use blindfold_chain::{CodedBatch, DataError, L1Error, TrackerError, coded};
use blindfold_protocol::{
    AttestedData, DataAttestation, certificate,
    data::KIND_OPENED,
    limits::MAX_ATTESTED_DATA_BYTES,
    opened::{MAX_BATCHES, MAX_ITEM_BYTES},
};
use blindfold_rpc::RpcError;
use blindfold_store::StoreError;
use lru::LruCache;
use parking_lot::Mutex;

use crate::{member::Context, pace::Pace};

/// Rest for each unit of reading: the sequencer alone asks, and its data come one piece for each of its transactions.
const REST: u32 = 3;
/// Attestations that are remembered: a caller that lost the answer gets it again for nothing.
const KEPT: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);

/// Why data are not attested. Stable names by [`AttestationRefusal::as_str`].
#[derive(Debug, thiserror::Error)]
pub enum AttestationRefusal {
    /// Only the sequencer posts what members read first.
    #[error("only the sequencer in office, by its hello, may have data read")]
    NotTheSequencer,
    /// More bytes than are read.
    #[error("{bytes} bytes of data, at most {MAX_ATTESTED_DATA_BYTES} are read")]
    TooLarge {
        /// Bytes that were sent.
        bytes: usize,
    },
    /// No run of numbers that data may be of.
    #[error("{first} to {last} are no numbers of batches that data may be of")]
    BadRange {
        /// The first number.
        first: u64,
        /// The last number.
        last: u64,
    },
    /// The numbers are of two committees, or more.
    #[error("batches {first} to {last} are not all of one epoch")]
    WrongEpoch {
        /// The first number.
        first: u64,
        /// The last number.
        last: u64,
    },
    /// The batches are of another committee, or its key is another one.
    #[error("this member's key is not in the committee of number {number}")]
    NotAMember {
        /// The first number.
        number: u64,
    },
    /// There is nothing to compare with yet.
    #[error("number {number} is not certified here")]
    NotCertified {
        /// The first number that is missing.
        number: u64,
    },
    /// The data do not give the batches back, or cannot be read.
    #[error("{0}")]
    Unreadable(DataError),
    /// Reading takes its part of the time already.
    #[error("as much is read as may be; come back")]
    Busy,
    /// L1 cannot be asked.
    #[error("L1: {0}")]
    L1(L1Error),
    /// The epoch is not known, or the process is stopping.
    #[error("cannot judge now: {0}")]
    Unavailable(TrackerError),
    /// The disk failed, or holds damaged records.
    #[error("storage: {0}")]
    Store(#[from] StoreError),
}

impl AttestationRefusal {
    /// A stable name, in snake case.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NotTheSequencer => "not_the_sequencer",
            Self::TooLarge { .. } => "too_large",
            Self::BadRange { .. } => "bad_range",
            Self::WrongEpoch { .. } => "wrong_epoch",
            Self::NotAMember { .. } => "not_a_member",
            Self::NotCertified { .. } => "not_certified",
            Self::Unreadable(DataError::Decode(_)) => "data_undecodable",
            Self::Unreadable(DataError::Mismatch | DataError::Absent) => "data_mismatch",
            Self::Unreadable(DataError::Unsigned) => "data_unsigned",
            // What this member's L1 does not show may be final for others already.
            Self::Unreadable(DataError::Hints(_)) => "no_such_hints",
            Self::Unreadable(_) => "hints_unreadable",
            Self::Busy => "busy",
            Self::L1(_) => "l1_unavailable",
            Self::Unavailable(refusal) => refusal.as_str(),
            Self::Store(_) => "storage",
        }
    }
}

impl From<AttestationRefusal> for RpcError {
    fn from(refusal: AttestationRefusal) -> Self {
        let reason = refusal.as_str();
        match &refusal {
            AttestationRefusal::NotTheSequencer
            | AttestationRefusal::TooLarge { .. }
            | AttestationRefusal::BadRange { .. }
            | AttestationRefusal::WrongEpoch { .. }
            | AttestationRefusal::NotAMember { .. }
            | AttestationRefusal::Unavailable(TrackerError::NoEpoch { .. })
            | AttestationRefusal::Unreadable(
                DataError::Decode(_) | DataError::Mismatch | DataError::Absent | DataError::Unsigned,
            ) => Self::refused(reason, refusal),
            AttestationRefusal::NotCertified { .. }
            | AttestationRefusal::Unreadable(_)
            | AttestationRefusal::L1(_)
            | AttestationRefusal::Unavailable(_) => Self::unavailable(reason, refusal),
            AttestationRefusal::Busy => Self::busy(reason, refusal),
            AttestationRefusal::Store(_) => Self::internal(refusal),
        }
    }
}

/// Reads one piece of data at a time, and no more than a part of the time.
pub(crate) struct Attester {
    context: Arc<Context>,
    /// Reading is dear, and whoever asks chooses what is read.
    pace: Pace,
    given: Mutex<LruCache<AttestedData, DataAttestation>>,
}

impl Attester {
    pub(crate) fn new(context: Arc<Context>) -> Arc<Self> {
        Arc::new(Self { context, pace: Pace::resting(REST), given: Mutex::new(LruCache::new(KEPT)) })
    }

    /// This member's word that a `RunData` of kind 2 gives the batches `first ..= last` back. Reading goes on to its end
    /// although whoever asked hangs up: it is paid for, and the next call gets what came of it.
    pub(crate) async fn attest(
        self: &Arc<Self>,
        (first, last): (u64, u64),
        data: Bytes,
    ) -> Result<DataAttestation, AttestationRefusal> {
        let attester = Arc::clone(self);
        let work = async move { attester.read((first, last), &data).await };
        let ended = self.context.spawner.to_the_end("attestations", work).await;
        ended.unwrap_or(Err(AttestationRefusal::Unavailable(TrackerError::Stopped)))
    }

    async fn read(
        &self,
        (first, last): (u64, u64),
        data: &Bytes,
    ) -> Result<DataAttestation, AttestationRefusal> {
        if data.len() > MAX_ATTESTED_DATA_BYTES {
            return Err(AttestationRefusal::TooLarge { bytes: data.len() });
        }
        if first == 0 || last < first || last - first >= MAX_BATCHES as u64 {
            return Err(AttestationRefusal::BadRange { first, last });
        }
        let certified = self.context.tracker.certified().number;
        if last > certified {
            return Err(AttestationRefusal::NotCertified { number: first.max(certified.saturating_add(1)) });
        }
        let epoch = self.context.tracker.epoch(first).await.map_err(AttestationRefusal::Unavailable)?;
        if !self.context.is_member_of(&epoch) {
            return Err(AttestationRefusal::NotAMember { number: first });
        }
        let attested = AttestedData {
            epoch: epoch.epoch,
            first_number: first,
            last_number: last,
            kind: KIND_OPENED,
            data_hash: keccak256(data),
        };
        if let Some(given) = self.given.lock().get(&attested) {
            return Ok(*given);
        }
        let _turn = self.pace.turn().ok_or(AttestationRefusal::Busy)?;
        let batches = self.batches((first, last), epoch.epoch).await?;
        let read = self.context.l1.would_give(data, batches).await.map_err(AttestationRefusal::L1)?;
        read.map_err(AttestationRefusal::Unreadable)?;
        let deployment = &self.context.tracker.config().deployment;
        let attestation = certificate::sign_attestation(
            &self.context.key.bls_key,
            deployment,
            attested,
            self.context.member(),
        );
        self.given.lock().put(attested, attestation);
        Ok(attestation)
    }

    /// The batches of these numbers, all certified here and of this epoch, no more than data may restore to.
    async fn batches(
        &self,
        (first, last): (u64, u64),
        epoch: u64,
    ) -> Result<Vec<CodedBatch>, AttestationRefusal> {
        let (mut batches, mut bytes) = (Vec::new(), 0u64);
        for number in first..=last {
            let record = self.context.tracker.store().batch(number).await?;
            let record = record.ok_or(AttestationRefusal::NotCertified { number })?;
            let header = &record.sealed.header;
            if header.epoch != epoch {
                return Err(AttestationRefusal::WrongEpoch { first, last });
            }
            bytes = bytes.saturating_add(header.envelope_bytes.into());
            if bytes > MAX_ITEM_BYTES {
                return Err(AttestationRefusal::BadRange { first, last });
            }
            batches.push(coded(record)?);
        }
        Ok(batches)
    }
}
