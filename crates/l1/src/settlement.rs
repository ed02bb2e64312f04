//! What becomes of posted runs on L1, without their data: how far the chain stands there for good.

use alloy_primitives::{Address, B256};
use alloy_sol_types::SolEvent;

use crate::{
    L1Client, L1Error, PostedData, RunReference,
    contracts::{BlindedInbox, HintRegistry},
    logs::{FinalLog, malformed_log},
};

/// What a final L1 block says about a run of batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettlementLog {
    /// A run was posted, certified or made by L1.
    Posted {
        /// The run.
        run: RunReference,
        /// Hash of its last header.
        head_hash: B256,
    },
    /// Hints were posted for the run that ends at `last`.
    Hints {
        /// The posting.
        id: u64,
        /// Last batch of the run.
        last: u64,
        /// Whose bond answers for them.
        publisher: Address,
        /// The posting root.
        root: B256,
    },
    /// Nothing that is open of this publisher's stands any more.
    Struck {
        /// Whose bond was taken.
        publisher: Address,
    },
    /// The run that ends at `last` has hints for good.
    Final {
        /// Last batch of the run.
        last: u64,
    },
    /// Nothing of the run that ends at `last` executes.
    Void {
        /// Last batch of the run.
        last: u64,
    },
}

impl L1Client {
    /// What happened to runs in blocks `after + 1 ..= through`, in L1 order. `through` is final. Two queries for logs
    /// per thousand blocks.
    ///
    /// # Errors
    /// [`L1Error::NotFinal`]; the errors of a call.
    pub async fn settlement_logs(&self, after: u64, through: u64) -> Result<Vec<SettlementLog>, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let registry = self.inner.config.contracts.hint_registry;
        let topics = [
            HintRegistry::HintsPosted::SIGNATURE_HASH,
            HintRegistry::HintsStruck::SIGNATURE_HASH,
            HintRegistry::HintsFinalized::SIGNATURE_HASH,
            HintRegistry::Voided::SIGNATURE_HASH,
        ];
        let posted = [BlindedInbox::Posted::SIGNATURE_HASH];
        let mut logs = self.final_logs(inbox, &posted, after, through).await?;
        logs.extend(self.final_logs(registry, &topics, after, through).await?);
        logs.sort_by_key(FinalLog::position);
        logs.iter().map(settlement_log).collect()
    }

    /// For each header of a posted run, and of what was posted in the same call, its batch as L1 holds it: beside the
    /// header, or posted again up to block `through`, which is final. With the sequencer's signatures. Where one is
    /// missing: why, above all when it may be in what cannot be read just now.
    ///
    /// # Errors
    /// As [`L1Client::postings`]; [`L1Error::Malformed`] where the run was not posted in its block.
    pub async fn posted_data(&self, run: &RunReference, through: u64) -> Result<PostedData, L1Error> {
        let before = run.posted_at.saturating_sub(1);
        let postings = self.postings(before, run.posted_at).await?;
        let posting = postings.into_iter().find(|posting| posting.runs.contains(run));
        let posting = posting.ok_or_else(|| malformed_log(&format!("run {run:?} is not in its block")))?;
        let lacking = posting.lacking();
        let mut data = posting.data;
        let again = self.reposted_data(&lacking, before, through).await?;
        for found in again.batches {
            let place = posting.headers.iter().position(|header| *header == found.header);
            if let Some(place) = place.and_then(|place| data.batches.get_mut(place)) {
                *place = Some(found);
            }
        }
        let whole = data.batches.iter().all(Option::is_some);
        let passing = data.fault.take_if(|fault| fault.may_pass(through));
        data.fault = passing.or(again.unread).or(data.fault).filter(|_| !whole);
        Ok(data)
    }
}

fn settlement_log(log: &FinalLog) -> Result<SettlementLog, L1Error> {
    if let Some(event) = log.event::<BlindedInbox::Posted>()? {
        let run = RunReference {
            first: event.firstNumber,
            last: event.lastNumber,
            posted_at: event.postedAt,
            header_root: event.headerRoot,
        };
        return Ok(SettlementLog::Posted { run, head_hash: event.headHash });
    }
    if let Some(event) = log.event::<HintRegistry::HintsPosted>()? {
        let (id, last, publisher, root) = (event.id, event.runLast, event.publisher, event.root);
        return Ok(SettlementLog::Hints { id, last, publisher, root });
    }
    if let Some(event) = log.event::<HintRegistry::HintsStruck>()? {
        return Ok(SettlementLog::Struck { publisher: event.publisher });
    }
    if let Some(event) = log.event::<HintRegistry::HintsFinalized>()? {
        return Ok(SettlementLog::Final { last: event.runLast });
    }
    match log.event::<HintRegistry::Voided>()? {
        Some(event) => Ok(SettlementLog::Void { last: event.last }),
        None => Err(malformed_log(&"a log that was not asked for")),
    }
}
