//! What lately happened on L1, for people who act there by hand: up to the newest block, which may not stay.

use std::collections::BTreeMap;

use alloy_primitives::Address;
use alloy_sol_types::{SolCall, SolEvent};
use blindfold_protocol::{BatchHeader, validity::Deposit};

use crate::{
    L1Client, L1Error, PostedRun, RunReference, SequencerEvent,
    contracts::{BlindedInbox, FeeVault, ForcedQueue, HintRegistry, from_contract},
    data::unfit,
    faults::{SEQUENCER_TOPICS, sequencer_event},
    ledger::deposit,
    logs::FinalLog,
    postings::{check_run, headers_from},
};

/// A posting of hints, without the hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecentPosting {
    /// Its id.
    pub id: u64,
    /// First batch of its run.
    pub first: u64,
    /// Last batch of its run.
    pub last: u64,
    /// Whose bond answers for it.
    pub publisher: Address,
    /// The block it was posted in.
    pub posted_at: u64,
    /// What became of it.
    pub state: PostingState,
}

/// What became of a posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostingState {
    /// It can be challenged, and become final.
    Open,
    /// It is its run's hints for good.
    Final,
    /// It was wrong.
    Struck,
    /// Another one of its publisher's was wrong: no bond answers for it, and it can be dropped.
    Dead,
    /// It was dead and is cleared away.
    Dropped,
    /// Its run has others for good, and no bond need answer for it.
    Released,
}

/// What happened to hints in a range of blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecentHints {
    /// Postings of the range, by id.
    pub postings: Vec<RecentPosting>,
    /// Runs declared void in the range: first and last batch.
    pub void: Vec<(u64, u64)>,
    /// By last batch of a run, the block of the newest strike that made hints of it dead.
    pub struck: BTreeMap<u64, u64>,
}

impl RecentHints {
    /// Whether the run that ends at `last` is settled, or has hints that may settle it, as far as the range shows.
    pub fn covers(&self, last: u64) -> bool {
        let stands =
            |state| matches!(state, PostingState::Open | PostingState::Final | PostingState::Released);
        let posted = |posting: &RecentPosting| posting.last == last && stands(posting.state);
        self.postings.iter().any(posted) || self.void.iter().any(|(_, end)| *end == last)
    }

    /// The block from which on a run without hints can be declared void, by the hint deadline in blocks: a strike that
    /// made hints of it dead gave the time for new ones.
    pub fn void_from(&self, run: &RunReference, deadline: u64) -> u64 {
        let struck = self.struck.get(&run.last).copied().unwrap_or_default();
        run.posted_at.max(struck).saturating_add(deadline)
    }

    /// The postings of the run that ends at `last` which have to be dropped before it can be declared void.
    pub fn dead(&self, last: u64) -> impl Iterator<Item = &RecentPosting> {
        let dead =
            move |posting: &&RecentPosting| posting.last == last && posting.state == PostingState::Dead;
        self.postings.iter().filter(dead)
    }

    /// Strikes a posting out in this block, and makes all that are open of its publisher's dead.
    fn strike(&mut self, id: u64, publisher: Address, block: u64) {
        for posting in self.postings.iter_mut().filter(|posting| posting.publisher == publisher) {
            if posting.id == id {
                posting.state = PostingState::Struck;
            } else if posting.state == PostingState::Open {
                posting.state = PostingState::Dead;
                self.struck.insert(posting.last, block);
            }
        }
    }
}

impl L1Client {
    /// The runs posted in blocks `after + 1 ..= through`, in order, without headers and data.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn recent_runs(&self, after: u64, through: u64) -> Result<Vec<RunReference>, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let topics = [BlindedInbox::Posted::SIGNATURE_HASH];
        let logs = self.newest_logs(inbox, &topics, after, through).await?;
        let events = logs.iter().filter_map(|log| log.event::<BlindedInbox::Posted>().transpose());
        let run = |event: BlindedInbox::Posted| RunReference {
            first: event.firstNumber,
            last: event.lastNumber,
            posted_at: event.postedAt,
            header_root: event.headerRoot,
        };
        events.map(|event| event.map(run)).collect()
    }

    /// The headers of a run, from the block that posted it; `None` when there is no such run there.
    ///
    /// # Errors
    /// [`L1Error::Malformed`] when event and transaction do not fit each other; the errors of a call.
    pub async fn headers_of(&self, run: &RunReference) -> Result<Option<PostedRun>, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let topics = [BlindedInbox::Posted::SIGNATURE_HASH, BlindedInbox::L1Header::SIGNATURE_HASH];
        let logs = self.newest_logs(inbox, &topics, run.posted_at.saturating_sub(1), run.posted_at).await?;
        for log in &logs {
            let Some(event) = log.event::<BlindedInbox::Posted>()? else { continue };
            if event.lastNumber != run.last {
                continue;
            }
            let headers = match made_by_l1(&logs, run.last)? {
                Some(header) => vec![header],
                None => {
                    let (_, input) = self.input_to(inbox, log.transaction).await?;
                    let call = BlindedInbox::postCall::abi_decode(&input).map_err(|error| unfit(&error))?;
                    // One transaction may have posted several runs.
                    let length = run.last.saturating_sub(run.first).saturating_add(1);
                    let headers = headers_from(&call, run.first).map(|(_, headers)| headers);
                    let length = usize::try_from(length).unwrap_or(usize::MAX);
                    headers.into_iter().flatten().take(length).collect()
                }
            };
            let found = check_run(log, &event, &headers)?;
            return Ok(PostedRun::new(headers, found.posted_at).filter(|_| found == *run));
        }
        Ok(None)
    }

    /// The run of the last posted header, after the newest block; `None` before the first.
    ///
    /// # Errors
    /// As [`L1Client::headers_of`].
    pub async fn head_run(&self) -> Result<Option<PostedRun>, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let at = BlindedInbox::headPostedAtCall {};
        let posted_at = self.inner.rpc.view("headPostedAt", inbox, &at, "latest").await?;
        if posted_at == 0 {
            return Ok(None);
        }
        let runs = self.recent_runs(posted_at.saturating_sub(1), posted_at).await?;
        match runs.last() {
            Some(run) => self.headers_of(run).await,
            None => Ok(None),
        }
    }

    /// The last posted header, after the newest block; `None` before the first.
    ///
    /// # Errors
    /// As [`L1Client::headers_of`].
    pub async fn head_header(&self) -> Result<Option<BatchHeader>, L1Error> {
        Ok(self.head_run().await?.and_then(|run| run.headers.last().copied()))
    }

    /// The run that holds `number`, looked for from block `from` on; `None` while it is not posted.
    ///
    /// # Errors
    /// As [`L1Client::headers_of`].
    pub async fn run_of(&self, number: u64, from: u64) -> Result<Option<PostedRun>, L1Error> {
        let through = self.newest_block().await?;
        let runs = self.recent_runs(from.saturating_sub(1), through).await?;
        match runs.iter().find(|run| (run.first..=run.last).contains(&number)) {
            Some(run) => self.headers_of(run).await,
            None => Ok(None),
        }
    }

    /// Deposits for an account in blocks `after + 1 ..= through`, in L1 order.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn recent_deposits(
        &self,
        payer: Address,
        after: u64,
        through: u64,
    ) -> Result<Vec<Deposit>, L1Error> {
        let vault = self.inner.config.contracts.fee_vault;
        let logs = self.newest_logs(vault, &[FeeVault::Deposited::SIGNATURE_HASH], after, through).await?;
        let deposits: Result<Vec<_>, _> = logs.iter().filter_map(|log| deposit(log).transpose()).collect();
        Ok(deposits?.into_iter().filter(|deposit| deposit.payer == payer).collect())
    }

    /// What happened to hints in blocks `after + 1 ..= through`, without the hints themselves. What happened to
    /// postings of earlier blocks is left out.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn recent_hints(&self, after: u64, through: u64) -> Result<RecentHints, L1Error> {
        let topics = [
            HintRegistry::HintsPosted::SIGNATURE_HASH,
            HintRegistry::HintsStruck::SIGNATURE_HASH,
            HintRegistry::HintsFinalized::SIGNATURE_HASH,
            HintRegistry::HintsReleased::SIGNATURE_HASH,
            HintRegistry::HintsDropped::SIGNATURE_HASH,
            HintRegistry::Voided::SIGNATURE_HASH,
        ];
        let registry = self.inner.config.contracts.hint_registry;
        let mut found = RecentHints::default();
        for log in self.newest_logs(registry, &topics, after, through).await? {
            note(&mut found, &log)?;
        }
        Ok(found)
    }

    /// What was reported about the sequencer in blocks `after + 1 ..= through`, in L1 order.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn recent_faults(&self, after: u64, through: u64) -> Result<Vec<SequencerEvent>, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let logs = self.newest_logs(inbox, &SEQUENCER_TOPICS, after, through).await?;
        logs.iter().filter_map(|log| sequencer_event(log).transpose()).collect()
    }

    /// The place in the forced queue of the item that this transaction put there.
    ///
    /// # Errors
    /// [`L1Error::Malformed`] when its block does not show it; the errors of a call.
    pub async fn forced_index(&self, sent: &crate::Sent) -> Result<u64, L1Error> {
        let queue = self.inner.config.contracts.forced_queue;
        let topics = [ForcedQueue::Forced::SIGNATURE_HASH];
        let logs = self.newest_logs(queue, &topics, sent.block.saturating_sub(1), sent.block).await?;
        for log in logs.iter().filter(|log| log.transaction == sent.transaction) {
            if let Some(event) = log.event::<ForcedQueue::Forced>()? {
                return Ok(event.index);
            }
        }
        Err(unfit(&format!("transaction {} forced nothing in block {}", sent.transaction, sent.block)))
    }
}

/// The header of this number that L1 made, among the logs of its block.
fn made_by_l1(logs: &[FinalLog], number: u64) -> Result<Option<BatchHeader>, L1Error> {
    for log in logs {
        if let Some(event) = log.event::<BlindedInbox::L1Header>()?.filter(|event| event.number == number) {
            return Ok(Some(from_contract(&event.header)));
        }
    }
    Ok(None)
}

fn note(found: &mut RecentHints, log: &FinalLog) -> Result<(), L1Error> {
    let (id, state) = if let Some(event) = log.event::<HintRegistry::HintsPosted>()? {
        found.postings.push(RecentPosting {
            id: event.id,
            first: event.first,
            last: event.runLast,
            publisher: event.publisher,
            posted_at: log.block,
            state: PostingState::Open,
        });
        return Ok(());
    } else if let Some(event) = log.event::<HintRegistry::HintsStruck>()? {
        found.strike(event.id, event.publisher, log.block);
        return Ok(());
    } else if let Some(event) = log.event::<HintRegistry::HintsFinalized>()? {
        (event.id, PostingState::Final)
    } else if let Some(event) = log.event::<HintRegistry::HintsReleased>()? {
        (event.id, PostingState::Released)
    } else if let Some(event) = log.event::<HintRegistry::HintsDropped>()? {
        (event.id, PostingState::Dropped)
    } else {
        if let Some(event) = log.event::<HintRegistry::Voided>()? {
            found.void.push((event.first, event.last));
        }
        return Ok(());
    };
    for posting in found.postings.iter_mut().filter(|posting| posting.id == id) {
        posting.state = state;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use blindfold_protocol::B256;

    use super::*;

    #[test]
    fn a_strike_makes_the_publishers_open_postings_dead() {
        let posting = |id, last, publisher, state| {
            let publisher = Address::repeat_byte(publisher);
            RecentPosting { id, first: last, last, publisher, posted_at: 5, state }
        };
        let postings = vec![
            posting(1, 4, 1, PostingState::Final),
            posting(2, 5, 1, PostingState::Open),
            posting(3, 6, 1, PostingState::Open),
            posting(4, 5, 2, PostingState::Open),
        ];
        let mut found = RecentHints { postings, ..RecentHints::default() };
        found.strike(3, Address::repeat_byte(1), 9);
        let states: Vec<PostingState> = found.postings.iter().map(|posting| posting.state).collect();
        use PostingState::{Dead, Final, Open, Struck};
        assert_eq!(states, [Final, Dead, Struck, Open]);
        assert_eq!([4, 5, 6].map(|last| found.covers(last)), [true, true, false]);
        assert_eq!(found.dead(5).map(|posting| posting.id).collect::<Vec<_>>(), [2]);
        let run = |last| RunReference { first: last, last, posted_at: 5, header_root: B256::ZERO };
        assert_eq!([5, 6].map(|last| found.void_from(&run(last), 100)), [109, 105]);
    }
}
