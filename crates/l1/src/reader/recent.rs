//! What lately happened on L1, for people who act there by hand: up to the newest block, which may not stay.

use alloy_primitives::Address;
use alloy_sol_types::{SolCall, SolEvent};
use blindfold_protocol::{BatchHeader, validity::Deposit};

use crate::{
    contracts::{BlindedInbox, FeeVault, ForcedQueue, from_contract},
    error::L1Error,
    events::{logs::FinalLog, registry::RegistryState},
    posting::run::{PostedRun, RunReference},
    reader::{
        client::L1Client,
        data::unfit,
        faults::{SEQUENCER_TOPICS, SequencerEvent, sequencer_event},
        ledger::deposit,
        postings::{check_run, headers_from},
    },
};

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
        let posted_at = self.inner.rpc.view("headPostedAt", inbox, &at).await?;
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

    /// What became of the hints posted in blocks `after + 1 ..= through`, without the hints themselves. What happened to
    /// postings of earlier blocks is left out.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn recent_hints(&self, after: u64, through: u64) -> Result<RegistryState, L1Error> {
        Ok(self.hint_events(after, through).await?.iter().collect())
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
    pub async fn forced_index(&self, sent: &crate::submitter::pending::Sent) -> Result<u64, L1Error> {
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
