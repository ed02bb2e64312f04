//! What `HintRegistry` holds: postings, what became of them, and the runs that are settled.

use std::collections::BTreeMap;

use alloy_primitives::{Address, U256};
use alloy_sol_types::SolEvent;
use blindfold_protocol::{B256, validity::Settled};

use crate::{
    DataFault, HintPosting, L1Client, L1Error,
    contracts::HintRegistry,
    data::unfit,
    logs::{FinalLog, malformed_log},
};

/// Hints that somebody posted for a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostedHints {
    /// Id of the posting.
    pub id: u64,
    /// First batch of the run.
    pub first: u64,
    /// Last batch of the run.
    pub last: u64,
    /// Who posted them, and whose bond answers for them.
    pub publisher: Address,
    /// The final L1 block.
    pub l1_block: u64,
    /// Hash of the transaction.
    pub transaction: B256,
    /// The hints, checked to have the root that L1 computed, or why they cannot be had out of their blobs. Whether they
    /// are right is another matter.
    pub hints: Result<HintPosting, DataFault>,
}

/// What happened to hints on L1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HintEvent {
    /// Somebody posted hints.
    Posted(PostedHints),
    /// A posting was wrong and is struck out. All that were open of its publisher's are dead: never final.
    Struck {
        /// The posting.
        id: u64,
        /// Last batch of its run.
        last: u64,
        /// Who showed it.
        challenger: Address,
        /// Whose it was.
        publisher: Address,
        /// The batch with the wrong entry.
        number: u64,
        /// The entry.
        index: u32,
        /// Why: the contract's `REASON_…`.
        reason: u8,
    },
    /// A challenge showed nothing wrong.
    ChallengeFailed {
        /// The posting.
        id: u64,
        /// Who lost the stake.
        challenger: Address,
    },
    /// These are a run's hints for good.
    Finalized {
        /// The posting.
        id: u64,
        /// First batch of the run.
        first: u64,
        /// Last batch of the run.
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
    /// What happened to hints in blocks `after + 1 ..= through`, in L1 order. `through` is final.
    ///
    /// # Errors
    /// [`L1Error::NotFinal`]; [`L1Error::Malformed`] when an event and its transaction do not fit each other; the
    /// errors of a call.
    pub async fn hint_events(&self, after: u64, through: u64) -> Result<Vec<HintEvent>, L1Error> {
        let topics = [
            HintRegistry::HintsPosted::SIGNATURE_HASH,
            HintRegistry::HintsStruck::SIGNATURE_HASH,
            HintRegistry::ChallengeFailed::SIGNATURE_HASH,
            HintRegistry::HintsFinalized::SIGNATURE_HASH,
            HintRegistry::Voided::SIGNATURE_HASH,
        ];
        let registry = self.inner.config.contracts.hint_registry;
        let mut events = Vec::new();
        for log in self.final_logs(registry, &topics, after, through).await? {
            if let Some(event) = log.event::<HintRegistry::HintsPosted>()? {
                events.push(HintEvent::Posted(self.posted_hints(&log, &event).await?));
            } else {
                events.extend(plain_event(&log)?);
            }
        }
        Ok(events)
    }

    /// The runs that were settled in blocks `after + 1 ..= through`, in L1 order: final hints with the items they call
    /// malformed, and void runs. `through` is final.
    ///
    /// # Errors
    /// As [`L1Client::hint_events`].
    pub async fn settled_runs(&self, after: u64, through: u64) -> Result<Vec<Settled>, L1Error> {
        let settled = self.settled(after, through).await?;
        Ok(settled.into_iter().map(|(_, settled)| settled).collect())
    }

    /// Of the settled runs those that were declared void: first and last batch. Only these events are read.
    ///
    /// # Errors
    /// As [`L1Client::hint_events`].
    pub async fn void_runs(&self, after: u64, through: u64) -> Result<Vec<(u64, u64)>, L1Error> {
        let registry = self.inner.config.contracts.hint_registry;
        let topics = [HintRegistry::Voided::SIGNATURE_HASH];
        let logs = self.final_logs(registry, &topics, after, through).await?;
        let events = logs.iter().filter_map(|log| log.event::<HintRegistry::Voided>().transpose());
        events.map(|event| event.map(|event| (event.first, event.last))).collect()
    }

    /// The hints of a posting that is open, dead or final, after the newest final block; `None` for one that is not there.
    ///
    /// # Errors
    /// As [`L1Client::hint_events`].
    pub async fn hint_posting(&self, id: u64) -> Result<Option<PostedHints>, L1Error> {
        match self.posting_log(id).await? {
            Some((log, event)) => Ok(Some(self.posted_hints(&log, &event).await?)),
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
        let given = self.inner.rpc.view("publishers", registry, &call, "latest").await?;
        let call = HintRegistry::bondOfCall { publisher };
        let bond = self.inner.rpc.view("bondOf", registry, &call, "latest").await?;
        Ok(PublisherBond { total: bond.total, locked: bond.locked, open: given.open })
    }

    /// What waits in `HintRegistry` for an account to be claimed, in wei.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn hint_reward(&self, account: Address) -> Result<U256, L1Error> {
        let registry = self.inner.config.contracts.hint_registry;
        self.inner.rpc.view("rewards", registry, &HintRegistry::rewardsCall { account }, "latest").await
    }

    /// The least bond of a publisher with open postings, and what a challenge stakes, in wei.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn hint_stakes(&self) -> Result<(u128, u128), L1Error> {
        let registry = self.inner.config.contracts.hint_registry;
        let rpc = &self.inner.rpc;
        let bond = rpc.view("publisherBond", registry, &HintRegistry::publisherBondCall {}, "latest").await?;
        let stake =
            rpc.view("challengeStake", registry, &HintRegistry::challengeStakeCall {}, "latest").await?;
        Ok((bond, stake))
    }

    /// Settled runs with their place on L1.
    pub(crate) async fn settled(
        &self,
        after: u64,
        through: u64,
    ) -> Result<Vec<((u64, u64), Settled)>, L1Error> {
        let topics = [HintRegistry::HintsFinalized::SIGNATURE_HASH, HintRegistry::Voided::SIGNATURE_HASH];
        let registry = self.inner.config.contracts.hint_registry;
        let mut settled = Vec::new();
        for log in self.final_logs(registry, &topics, after, through).await? {
            let l1_block = log.block;
            let run = match plain_event(&log)? {
                Some(HintEvent::Finalized { id, first, last }) => {
                    let missing = || malformed_log(&format!("final hint posting {id} is missing"));
                    let (posted, event) = self.posting_log(id).await?.ok_or_else(missing)?;
                    let (run, root) = ((event.first, event.runLast), event.root);
                    let call = self.hint_call(posted.transaction, run, root).await?.ok_or_else(missing)?;
                    let malformed = call.malformed();
                    Settled { first, last, malformed, void: false, l1_block }
                }
                Some(HintEvent::Voided { first, last }) => {
                    Settled { first, last, malformed: Vec::new(), void: true, l1_block }
                }
                _ => continue,
            };
            settled.push((log.position(), run));
        }
        Ok(settled)
    }

    /// The event of a posting that is open, dead or final, after the newest final block.
    async fn posting_log(&self, id: u64) -> Result<Option<(FinalLog, HintRegistry::HintsPosted)>, L1Error> {
        let registry = self.inner.config.contracts.hint_registry;
        let call = HintRegistry::postingsCall { id };
        let Some(posting) = self.final_view("postings", registry, &call).await? else { return Ok(None) };
        let block = u64::from(posting.postedAt);
        if posting.publisher.is_zero() {
            return Ok(None);
        }
        let topics = [HintRegistry::HintsPosted::SIGNATURE_HASH];
        for log in self.final_logs(registry, &topics, block.saturating_sub(1), block).await? {
            if let Some(event) = log.event::<HintRegistry::HintsPosted>()?.filter(|event| event.id == id) {
                return Ok(Some((log, event)));
            }
        }
        Err(malformed_log(&format!("hint posting {id} is missing in block {block}")))
    }

    async fn posted_hints(
        &self,
        log: &FinalLog,
        event: &HintRegistry::HintsPosted,
    ) -> Result<PostedHints, L1Error> {
        let run = (event.first, event.runLast);
        let gone = || unfit(&format!("transaction {} is missing", log.transaction));
        let call = self.hint_call(log.transaction, run, event.root).await?.ok_or_else(gone)?;
        let found = self.hints_of_call(call, log.block).await?;
        let gone = || unfit(&format!("block {} or the next one is missing", log.block));
        let hints = found.ok_or_else(gone)?.map(|data| data.hints);
        Ok(PostedHints {
            id: event.id,
            first: event.first,
            last: event.runLast,
            publisher: event.publisher,
            l1_block: log.block,
            transaction: log.transaction,
            hints,
        })
    }
}

/// Any event but a posting.
fn plain_event(log: &FinalLog) -> Result<Option<HintEvent>, L1Error> {
    if let Some(event) = log.event::<HintRegistry::HintsStruck>()? {
        let (id, last, challenger) = (event.id, event.runLast, event.challenger);
        let HintRegistry::HintsStruck { publisher, number, index, reason, .. } = event;
        return Ok(Some(HintEvent::Struck { id, last, challenger, publisher, number, index, reason }));
    }
    if let Some(event) = log.event::<HintRegistry::ChallengeFailed>()? {
        return Ok(Some(HintEvent::ChallengeFailed { id: event.id, challenger: event.challenger }));
    }
    if let Some(event) = log.event::<HintRegistry::HintsFinalized>()? {
        let (id, first, last) = (event.id, event.first, event.runLast);
        return Ok(Some(HintEvent::Finalized { id, first, last }));
    }
    let event = log.event::<HintRegistry::Voided>()?;
    Ok(event.map(|event| HintEvent::Voided { first: event.first, last: event.last }))
}

/// The postings among events that are still to be judged: neither struck out nor final within these events, nor dead by
/// a strike of their publisher.
pub fn open_postings(events: &[HintEvent]) -> Vec<&PostedHints> {
    let mut open = BTreeMap::<u64, &PostedHints>::new();
    for event in events {
        match event {
            HintEvent::Posted(posting) => {
                open.insert(posting.id, posting);
            }
            HintEvent::Struck { publisher, .. } => open.retain(|_, posting| posting.publisher != *publisher),
            HintEvent::Finalized { id, .. } => {
                open.remove(id);
            }
            HintEvent::ChallengeFailed { .. } | HintEvent::Voided { .. } => {}
        }
    }
    open.into_values().collect()
}
