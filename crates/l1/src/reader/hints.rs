//! Postings of hints with their data, the runs that they settle, and the bonds that answer for them.

use alloy_primitives::{Address, U256};
use alloy_sol_types::SolEvent;
use blindfold_protocol::{B256, validity::Settled};

use crate::{
    contracts::HintRegistry,
    error::L1Error,
    events::{
        HINT_TOPICS, HintEvent, PostedLog, hint_event,
        logs::{FinalLog, malformed_log},
        posted_log,
    },
    posting::hint_posting::HintPosting,
    reader::{
        client::L1Client,
        data::{DataError, unfit},
    },
};

/// Hints that somebody posted for a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostedHints {
    /// Id that the registry gave the posting.
    pub id: u64,
    /// First batch of the run.
    pub first: u64,
    /// Last batch of the run.
    pub last: u64,
    /// Who posted them, and whose bond answers for them.
    pub publisher: Address,
    /// The final L1 block of the posting.
    pub l1_block: u64,
    /// Hash of the transaction that posted them.
    pub transaction: B256,
    /// The hints, checked to have the root that L1 computed, or why they cannot be had out of their blobs. Whether they
    /// are right is another matter.
    pub hints: Result<HintPosting, DataError>,
}

/// A publisher's bond in `HintRegistry`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublisherBond {
    /// All of it, in wei.
    pub total: u128,
    /// What of it must stay while postings are open, in wei.
    pub locked: u128,
    /// Its open postings. One bond answers for all.
    pub open: u32,
}

impl L1Client {
    /// What happened to hints in blocks `after + 1 ..= through`, in L1 order. `through` need not be final; where it is not,
    /// an answer may change with the next block.
    ///
    /// # Errors
    /// [`L1Error::Malformed`] for logs that were not asked for; the errors of a call.
    pub async fn hint_events(&self, after: u64, through: u64) -> Result<Vec<HintEvent>, L1Error> {
        let registry = self.inner.config.contracts.hint_registry;
        let logs = self.logs_through(registry, &HINT_TOPICS, after, through).await?;
        logs.iter().map(hint_event).collect()
    }

    /// The same of final blocks, each with its log, where its first topic is one of `topics`.
    pub(crate) async fn final_hint_events(
        &self,
        topics: &[B256],
        after: u64,
        through: u64,
    ) -> Result<Vec<(FinalLog, HintEvent)>, L1Error> {
        let registry = self.inner.config.contracts.hint_registry;
        let logs = self.final_logs(registry, topics, after, through).await?;
        let event = |log: FinalLog| hint_event(&log).map(|event| (log, event));
        logs.into_iter().map(event).collect()
    }

    /// The hints posted in blocks `after + 1 ..= through`, in L1 order, with their data. `through` is final.
    ///
    /// # Errors
    /// [`L1Error::NotFinal`]; [`L1Error::Malformed`] when an event and its transaction do not fit each other; the
    /// errors of a call.
    pub async fn posted_hints(&self, after: u64, through: u64) -> Result<Vec<PostedHints>, L1Error> {
        let topics = [HintRegistry::HintsPosted::SIGNATURE_HASH];
        let registry = self.inner.config.contracts.hint_registry;
        let mut found = Vec::new();
        for log in self.final_logs(registry, &topics, after, through).await? {
            if let Some(posted) = posted_log(&log)? {
                found.push(self.with_hints(posted).await?);
            }
        }
        Ok(found)
    }

    /// The runs that were settled in blocks `after + 1 ..= through`, in L1 order: final hints with the items they call
    /// malformed, and void runs. `through` is final.
    ///
    /// # Errors
    /// As [`L1Client::posted_hints`].
    pub async fn settled_runs(&self, after: u64, through: u64) -> Result<Vec<Settled>, L1Error> {
        let settled = self.settled(after, through).await?;
        Ok(settled.into_iter().map(|(_, settled)| settled).collect())
    }

    /// Of the settled runs those that were declared void: first and last batch. Only these events are read.
    ///
    /// # Errors
    /// As [`L1Client::posted_hints`].
    pub async fn void_runs(&self, after: u64, through: u64) -> Result<Vec<(u64, u64)>, L1Error> {
        let registry = self.inner.config.contracts.hint_registry;
        let topics = [HintRegistry::Voided::SIGNATURE_HASH];
        let logs = self.final_logs(registry, &topics, after, through).await?;
        let events = logs.iter().filter_map(|log| log.event::<HintRegistry::Voided>().transpose());
        events.map(|event| event.map(|event| (event.first, event.last))).collect()
    }

    /// The hints of a posting that is open, invalidated or final, after the newest final block; `None` for one that is
    /// not there.
    ///
    /// # Errors
    /// As [`L1Client::posted_hints`].
    pub async fn hint_posting(&self, id: u64) -> Result<Option<PostedHints>, L1Error> {
        match self.posting_log(id).await? {
            Some(posted) => Ok(Some(self.with_hints(posted).await?)),
            None => Ok(None),
        }
    }

    /// A publisher's bond after the newest block.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn publisher_bond(&self, publisher: Address) -> Result<PublisherBond, L1Error> {
        let registry = self.inner.config.contracts.hint_registry;
        let call = HintRegistry::publishersCall { publisher };
        let given = self.inner.rpc.view("publishers", registry, &call).await?;
        let call = HintRegistry::bondOfCall { publisher };
        let bond = self.inner.rpc.view("bondOf", registry, &call).await?;
        Ok(PublisherBond { total: bond.total, locked: bond.locked, open: given.open })
    }

    /// What waits in `HintRegistry` for an account to be claimed, in wei.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn hint_reward(&self, account: Address) -> Result<U256, L1Error> {
        let registry = self.inner.config.contracts.hint_registry;
        self.inner.rpc.view("rewards", registry, &HintRegistry::rewardsCall { account }).await
    }

    /// The least bond of a publisher with open postings, and what a challenge stakes, in wei.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn hint_stakes(&self) -> Result<(u128, u128), L1Error> {
        let registry = self.inner.config.contracts.hint_registry;
        let rpc = &self.inner.rpc;
        let bond = rpc.view("publisherBond", registry, &HintRegistry::publisherBondCall {}).await?;
        let stake = rpc.view("challengeStake", registry, &HintRegistry::challengeStakeCall {}).await?;
        Ok((bond, stake))
    }

    /// Settled runs with their place on L1.
    pub(crate) async fn settled(
        &self,
        after: u64,
        through: u64,
    ) -> Result<Vec<((u64, u64), Settled)>, L1Error> {
        let topics = [HintRegistry::HintsFinalized::SIGNATURE_HASH, HintRegistry::Voided::SIGNATURE_HASH];
        let mut settled = Vec::new();
        for (log, event) in self.final_hint_events(&topics, after, through).await? {
            let l1_block = log.block;
            let run = match event {
                HintEvent::Finalized { id, first, last } => {
                    let missing = || malformed_log(&format!("final hint posting {id} is missing"));
                    let posted = self.posting_log(id).await?.ok_or_else(missing)?;
                    let call = self.hint_call(&posted).await?.ok_or_else(missing)?;
                    let malformed = call.malformed();
                    Settled { first, last, malformed, void: false, l1_block }
                }
                HintEvent::Voided { first, last } => {
                    Settled { first, last, malformed: Vec::new(), void: true, l1_block }
                }
                _ => continue,
            };
            settled.push((log.position(), run));
        }
        Ok(settled)
    }

    /// The event of a posting that is open, invalidated or final, after the newest final block.
    pub(crate) async fn posting_log(&self, id: u64) -> Result<Option<PostedLog>, L1Error> {
        let registry = self.inner.config.contracts.hint_registry;
        let call = HintRegistry::postingsCall { id };
        let Some(posting) = self.final_view("postings", registry, &call).await? else { return Ok(None) };
        let block = u64::from(posting.postedAt);
        if posting.publisher.is_zero() {
            return Ok(None);
        }
        let topics = [HintRegistry::HintsPosted::SIGNATURE_HASH];
        for log in self.final_logs(registry, &topics, block.saturating_sub(1), block).await? {
            if let Some(posted) = posted_log(&log)?.filter(|posted| posted.id == id) {
                return Ok(Some(posted));
            }
        }
        Err(malformed_log(&format!("hint posting {id} is missing in block {block}")))
    }

    /// A posting with its hints.
    pub(crate) async fn with_hints(&self, posted: PostedLog) -> Result<PostedHints, L1Error> {
        let PostedLog { id, first, last, publisher, l1_block, transaction, .. } = posted;
        let gone = || unfit(&format!("transaction {transaction} is missing"));
        let call = self.hint_call(&posted).await?.ok_or_else(gone)?;
        let found = self.hints_of_call(call, l1_block).await?;
        let gone = || unfit(&format!("block {l1_block} or the next one is missing"));
        let hints = found.ok_or_else(gone)?.map(|data| data.hints);
        Ok(PostedHints { id, first, last, publisher, l1_block, transaction, hints })
    }
}
