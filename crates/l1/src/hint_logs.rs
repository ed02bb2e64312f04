//! What is not final yet, for whoever has to act before it is: postings of hints that can still be challenged,
//! commitments, rewards. An answer may change with the next block, so nothing here is kept.

use alloy_primitives::{Address, B256, U256};
use alloy_rpc_types_eth::Log;
use alloy_sol_types::SolEvent;

use crate::{
    DataFault, HintData, L1Client, L1Error, RunReference,
    contracts::{BlindedInbox, HintRegistry},
    logs::malformed_log,
};

/// An event of `HintRegistry`, without the data of a posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintLog {
    /// Hints were posted.
    Posted(PostedLog),
    /// A posting was struck out, and with it all that were open of its publisher's.
    Struck {
        /// The posting.
        id: u64,
        /// Last batch of its run.
        last: u64,
        /// Whose it was.
        publisher: Address,
    },
    /// These are a run's hints for good.
    Finalized {
        /// The posting.
        id: u64,
        /// Last batch of its run.
        last: u64,
    },
    /// A posting was closed because its run has other hints for good.
    Released {
        /// The posting.
        id: u64,
        /// Last batch of its run.
        last: u64,
    },
    /// A run has no hints and will never have any.
    Voided {
        /// First batch of the run.
        first: u64,
        /// Last batch of the run.
        last: u64,
    },
}

/// Hints that somebody posted, as the event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostedLog {
    /// Id of the posting.
    pub id: u64,
    /// First batch of the run.
    pub first: u64,
    /// Last batch of the run.
    pub last: u64,
    /// Whose bond answers for them.
    pub publisher: Address,
    /// The L1 block.
    pub l1_block: u64,
    /// Hash of the transaction.
    pub transaction: B256,
    /// The posting root.
    pub root: B256,
}

impl L1Client {
    /// The runs posted in blocks `after + 1 ..= through` and the hashes of their last headers, in order, without their
    /// data. `through` need not be final.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn posted_runs(&self, after: u64, through: u64) -> Result<Vec<(RunReference, B256)>, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let topics = [BlindedInbox::Posted::SIGNATURE_HASH];
        let is_final = through <= self.finalized().await?.number;
        let logs = match is_final {
            true => self.final_logs(inbox, &topics, after, through).await?,
            false => self.newest_logs(inbox, &topics, after, through).await?,
        };
        let events = logs.iter().filter_map(|log| log.event::<BlindedInbox::Posted>().transpose());
        let run = |event: BlindedInbox::Posted| {
            let (first, last, posted_at) = (event.firstNumber, event.lastNumber, event.postedAt);
            (RunReference { first, last, posted_at, header_root: event.headerRoot }, event.headHash)
        };
        events.map(|event| event.map(run)).collect()
    }

    /// What happened to hints in blocks `after + 1 ..= through`, in L1 order. `through` need not be final.
    ///
    /// # Errors
    /// [`L1Error::Malformed`] for logs that were not asked for; the errors of a call.
    pub async fn hint_logs(&self, after: u64, through: u64) -> Result<Vec<HintLog>, L1Error> {
        let registry = self.inner.config.contracts.hint_registry;
        let topics = [
            HintRegistry::HintsPosted::SIGNATURE_HASH,
            HintRegistry::HintsStruck::SIGNATURE_HASH,
            HintRegistry::HintsFinalized::SIGNATURE_HASH,
            HintRegistry::HintsReleased::SIGNATURE_HASH,
            HintRegistry::Voided::SIGNATURE_HASH,
        ];
        let logs = self.newest_logs(registry, &topics, after, through).await?;
        logs.iter().map(|found| hint_log(&found.log, found.block, found.transaction)).collect()
    }

    /// The run and the hints of a posting, checked to have its root; `None` when L1 has no such transaction (any more),
    /// or its block is the newest and the hints are in blobs, which are found through the next one. The inner error
    /// says why hints in blobs cannot be had.
    ///
    /// # Errors
    /// [`L1Error::Malformed`] when event and transaction do not fit each other; the errors of a call, of the beacon
    /// node's too.
    pub async fn hint_data(
        &self,
        posted: &PostedLog,
    ) -> Result<Option<Result<HintData, DataFault>>, L1Error> {
        let PostedLog { transaction, first, last, root, l1_block, .. } = *posted;
        match self.hint_call(transaction, (first, last), root).await? {
            Some(call) => self.hints_of_call(call, l1_block).await,
            None => Ok(None),
        }
    }

    /// The L1 block of a commitment to `HintRegistry`, or to the inbox; `None` for none, or when it is used up.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn committed_at(&self, to_hints: bool, commitment: B256) -> Result<Option<u64>, L1Error> {
        let block: U256 = if to_hints {
            let registry = self.inner.config.contracts.hint_registry;
            let call = HintRegistry::committedAtCall { commitment };
            self.inner.rpc.view("committedAt", registry, &call, "latest").await?
        } else {
            let inbox = self.inner.config.deployment.inbox;
            let call = BlindedInbox::committedAtCall { commitment };
            self.inner.rpc.view("committedAt", inbox, &call, "latest").await?
        };
        Ok((!block.is_zero()).then(|| block.saturating_to()))
    }

    /// Whether these two headers ([`equivocation_evidence`](crate::equivocation_evidence)) were shown with this signer's
    /// signature, after this block, or after the newest for `None`.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn shown_together(
        &self,
        signer: Address,
        evidence: B256,
        block: Option<u64>,
    ) -> Result<bool, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let call = BlindedInbox::shownTogetherCall { signer, evidence };
        let at = block.map_or_else(|| "latest".to_owned(), |block| format!("{block:#x}"));
        self.inner.rpc.view("shownTogether", inbox, &call, &at).await
    }
}

fn hint_log(log: &Log, block: u64, transaction: B256) -> Result<HintLog, L1Error> {
    let bad = |error: alloy_sol_types::Error| malformed_log(&error);
    let topic = log.inner.topics().first().copied().unwrap_or_default();
    Ok(match topic {
        HintRegistry::HintsPosted::SIGNATURE_HASH => {
            let event = HintRegistry::HintsPosted::decode_log(&log.inner).map_err(bad)?;
            HintLog::Posted(PostedLog {
                id: event.id,
                first: event.first,
                last: event.runLast,
                publisher: event.publisher,
                l1_block: block,
                transaction,
                root: event.root,
            })
        }
        HintRegistry::HintsStruck::SIGNATURE_HASH => {
            let event = HintRegistry::HintsStruck::decode_log(&log.inner).map_err(bad)?;
            HintLog::Struck { id: event.id, last: event.runLast, publisher: event.publisher }
        }
        HintRegistry::HintsFinalized::SIGNATURE_HASH => {
            let event = HintRegistry::HintsFinalized::decode_log(&log.inner).map_err(bad)?;
            HintLog::Finalized { id: event.id, last: event.runLast }
        }
        HintRegistry::HintsReleased::SIGNATURE_HASH => {
            let event = HintRegistry::HintsReleased::decode_log(&log.inner).map_err(bad)?;
            HintLog::Released { id: event.id, last: event.runLast }
        }
        HintRegistry::Voided::SIGNATURE_HASH => {
            let event = HintRegistry::Voided::decode_log(&log.inner).map_err(bad)?;
            HintLog::Voided { first: event.first, last: event.last }
        }
        _ => return Err(malformed_log(&"a log that was not asked for")),
    })
}
