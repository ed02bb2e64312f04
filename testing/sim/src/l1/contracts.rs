//! What stands in the contracts, and what they take: `BlindedInbox` and `ForcedQueue` by their rules, as far as roles meet
//! them, and of `OutputRegistry` which blocks are claimed.

use std::{collections::BTreeMap, ops::RangeInclusive, sync::Arc};

use blindfold_chain::FallbackHeader;
use blindfold_l1::{
    L1Error, Output, PostedLog, PostedRun, RunReference, challenge_evidence, commitment,
    equivocation_evidence,
};
use blindfold_protocol::{
    Address, B256, BatchHeader, Canonical, Certificate, Deployment, EnvelopeError, Epochs, ForcedEntry,
    ForcedTransaction, L1Timing, LedgerEvent, SealedBatch, SignedHeader, certificate, keccak256,
    limits::MAX_FORCED_ITEMS,
    merkle,
    validity::{Verdict, item_leaf},
};

use super::{
    Mined, Transaction,
    hints::{Judge, Registry},
};
use crate::Role;

/// A header's time is at most so far ahead of L1's.
const MAX_TIME_LEAD_SECONDS: u64 = 3_600;

/// Gas that a forced transaction may have.
const FORCED_GAS: RangeInclusive<u64> = 21_000..=10_000_000;
/// The longest forced transaction.
const MAX_FORCED_BYTES: usize = 32_768;

/// The account of a role.
pub(super) fn account(role: Role) -> Address {
    Address::from_word(keccak256(role.to_string()))
}

/// What never changes.
pub(super) struct Rules {
    pub deployment: Deployment,
    pub epochs: Epochs,
    pub sequencer: Address,
    pub timing: L1Timing,
    pub judge: Judge,
}

/// What stands on L1 after a block.
#[derive(Clone)]
pub(super) struct State {
    pub newest: u64,
    /// When the newest block was made, in seconds.
    pub time: u64,
    pub finalized: u64,
    pub ledger: Vec<LedgerEvent>,
    pub posted: Vec<Arc<Posted>>,
    /// Batches whose data came when their headers were posted already, each with the block of that.
    pub reposted: Vec<(u64, Arc<Vec<SealedBatch>>)>,
    /// Headers that L1 made itself.
    pub made: Vec<FallbackHeader>,
    /// The block of the last certified posting.
    pub certified_at: u64,
    /// Each with the block of its claim.
    pub outputs: Vec<(u64, Output)>,
    pub forced: Vec<ForcedEntry>,
    /// The first block of each branch that took the place of another one.
    pub forks: Vec<u64>,
    /// What stands in the newest block, and who sent it.
    pub transactions: Vec<(Role, Transaction)>,
    pub hints: Registry,
    /// Numbers of which two headers were shown, each with the block of that.
    pub equivocated: BTreeMap<u64, u64>,
    /// The evidence of that, each with its block.
    pub shown: Vec<(u64, B256)>,
}

/// Headers as they were posted in one call, and their batches where they came along.
pub(super) struct Posted {
    pub run: PostedRun,
    pub batches: Option<Vec<SealedBatch>>,
    /// That of the last header; `None` for one that L1 made.
    pub certificate: Option<Certificate>,
    pub transaction: B256,
}

/// What a transaction did.
pub(super) enum Done {
    /// Headers were posted.
    Posted(Arc<Posted>),
    /// L1 made a header.
    Made(BatchHeader),
    /// Blocks were claimed.
    Claimed(Vec<Output>),
    /// Whose hints were slashed.
    Slashed(Address),
    /// Hints are final.
    Final(PostedLog),
    /// Whose challenge failed.
    Failed,
    /// Nobody posted hints of these batches in time: first and last.
    Void(u64, u64),
    /// The sequencer signed two headers.
    Equivocated(u64),
    /// Anything else, in words.
    Other(String),
}

pub(super) fn refused<T>(why: &str) -> Result<T, L1Error> {
    Err(L1Error::refused(why.to_owned()))
}

impl State {
    /// Nothing but the contracts stands in this block; the inbox was deployed in an earlier one.
    pub fn new(newest: u64, time: u64, deployed_at: u64) -> Self {
        Self {
            newest,
            time,
            finalized: 0,
            ledger: Vec::new(),
            posted: Vec::new(),
            reposted: Vec::new(),
            made: Vec::new(),
            certified_at: deployed_at,
            outputs: Vec::new(),
            forced: Vec::new(),
            forks: Vec::new(),
            transactions: Vec::new(),
            hints: Registry::default(),
            equivocated: BTreeMap::new(),
            shown: Vec::new(),
        }
    }

    /// The newest posted header, certified or made by L1.
    pub fn head(&self) -> Option<&BatchHeader> {
        self.posted.last().and_then(|posted| posted.run.headers.last())
    }

    /// Its number and its hash.
    pub fn head_id(&self, deployment: &Deployment) -> (u64, B256) {
        self.head().map_or_else(|| (0, deployment.genesis_hash()), |header| (header.number, header.hash()))
    }

    /// The headers that L1 made in final blocks, oldest first.
    pub fn final_made(&self) -> impl Iterator<Item = &FallbackHeader> {
        self.made.iter().filter(|made| made.l1_block <= self.finalized)
    }

    pub fn posting_of(&self, number: u64) -> Option<&Posted> {
        self.posted.iter().map(|posted| &**posted).find(|posted| posted.run.header(number).is_some())
    }

    /// The batch of a posted header where it stands in blocks up to this one.
    pub fn data_of(&self, header: &BatchHeader, through: u64) -> Option<&SealedBatch> {
        let along = self.posted.iter().filter(|posted| posted.run.run.posted_at <= through);
        let along = along.filter_map(|posted| posted.batches.as_ref()).flatten();
        let again = self.reposted.iter().filter(|(block, _)| *block <= through);
        let again = again.flat_map(|(_, batches)| batches.iter());
        along.chain(again).find(|batch| batch.header == *header)
    }

    /// Executes this account's transaction in the newest block. One that is refused leaves nothing behind.
    pub fn execute(
        &mut self,
        rules: &Rules,
        account: Address,
        transaction: &Transaction,
    ) -> Result<(Done, Mined), L1Error> {
        let before = self.clone();
        let outcome = self.try_to(rules, account, transaction);
        if outcome.is_err() {
            *self = before;
        }
        outcome
    }

    fn try_to(
        &mut self,
        rules: &Rules,
        account: Address,
        transaction: &Transaction,
    ) -> Result<(Done, Mined), L1Error> {
        let block = self.newest;
        let (done, transaction) = match transaction {
            Transaction::Post { headers, batches, certificate } => {
                (self.post(rules, headers, batches.as_deref(), certificate)?, certificate.header_hash)
            }
            Transaction::PostData(batches) => {
                let (head, _) = self.head_id(&rules.deployment);
                let Some(first) = batches.first().map(|batch| batch.header) else {
                    return refused("no data");
                };
                if first.number > head {
                    return refused("not posted");
                }
                self.reposted.push((self.newest, Arc::clone(batches)));
                (
                    Done::Other(format!(
                        "posted the data of {} batches from {}",
                        batches.len(),
                        first.number
                    )),
                    first.hash(),
                )
            }
            Transaction::MakeHeader(parent) => (self.make_header(rules, parent)?, parent.parent_hash),
            Transaction::Force { gas_limit, raw } => {
                if !FORCED_GAS.contains(gas_limit) || raw.is_empty() || raw.len() > MAX_FORCED_BYTES {
                    return refused("no transaction to be forced");
                }
                let index = self.forced.len() as u64;
                let entry = ForcedEntry::transaction(index, *gas_limit, raw.clone(), self.newest);
                let hash = entry.item_hash();
                self.forced.push(entry);
                (Done::Other(format!("forced {index}")), hash)
            }
            Transaction::Propose(outputs) => (self.propose(outputs)?, self.fresh()),
            Transaction::Bond(0) => return refused("nothing is deposited"),
            Transaction::Bond(amount) => {
                self.hints.deposit_bond(account, *amount);
                (Done::Other(format!("bonds {amount}")), self.fresh())
            }
            Transaction::PostHints { run, hints } => {
                self.require_run(run)?;
                let id = self.hints.post(account, *run, hints, block)?;
                (Done::Other(format!("posted hints {id} of {}..={}", run.first, run.last)), self.fresh())
            }
            Transaction::FinalizeHints(id) => {
                (Done::Final(self.hints.finalize(*id, &rules.timing, block)?), self.fresh())
            }
            Transaction::ReleaseHints(id) => {
                self.hints.release(*id, &rules.timing, block)?;
                (Done::Other(format!("released hints {id}")), self.fresh())
            }
            Transaction::Void(run) => {
                self.require_run(run)?;
                self.hints.void(run, &rules.timing, block)?;
                (Done::Void(run.first, run.last), self.fresh())
            }
            Transaction::Commit(commitment) => {
                self.hints.commit(*commitment, block);
                (Done::Other("committed to evidence".to_owned()), *commitment)
            }
            Transaction::Challenge { evidence, salt } => {
                let shown =
                    challenge_evidence(evidence.posting.id, evidence.batch.header.number, evidence.index);
                self.hints.reveal(commitment(account, shown, *salt), block)?;
                let slashed = self.hints.challenge(&rules.judge, account, evidence, block)?;
                (if slashed { Done::Slashed(evidence.posting.publisher) } else { Done::Failed }, shown)
            }
            Transaction::ShowHeaders { pair, salt } => {
                let [one, two] = pair.as_ref();
                let shown = equivocation_evidence(one, two);
                self.require_fault(rules, pair, shown)?;
                self.hints.reveal(commitment(account, shown, *salt), block)?;
                let number = one.header.number;
                let later = one.header.l1_origin_number.max(two.header.l1_origin_number);
                let head_origin = self.head().map_or(0, |head| head.l1_origin_number);
                if (head_origin..block).contains(&later) {
                    self.equivocated.entry(number).or_insert(block);
                }
                self.shown.push((block, shown));
                (Done::Equivocated(number), shown)
            }
            Transaction::ClaimReward => {
                self.hints.claim_reward(account)?;
                (Done::Other("claimed a reward".to_owned()), self.fresh())
            }
        };
        Ok((done, Mined { transaction: keccak256(transaction), block: self.newest }))
    }

    fn require_run(&self, run: &RunReference) -> Result<(), L1Error> {
        match self.posted.iter().any(|posted| posted.run.run == *run) {
            true => Ok(()),
            false => refused("no such run"),
        }
    }

    /// A hash that no other transaction has.
    fn fresh(&self) -> B256 {
        merkle::leaf(&[self.newest.to_be_bytes(), (self.transactions.len() as u64).to_be_bytes()].concat())
    }

    /// Whether L1 takes two headers of one number for a fault: `SequencerFaults.slashEquivocation`.
    fn require_fault(
        &self,
        rules: &Rules,
        [one, two]: &[SignedHeader; 2],
        shown: B256,
    ) -> Result<(), L1Error> {
        let number = one.header.number;
        let signer = |header: &SignedHeader| header.signer(&rules.deployment).ok();
        if number != two.header.number || one.header.hash() == two.header.hash() {
            return refused("not two headers of one number");
        }
        if signer(one) != Some(rules.sequencer) || signer(two) != Some(rules.sequencer) {
            return refused("not signed by the sequencer");
        }
        if self.shown.iter().any(|(_, other)| *other == shown) {
            return refused("shown already");
        }
        let [one, two] = [one, two].map(|header| header.header.l1_origin_number);
        let (origin, later) = (one.min(two), one.max(two));
        let made = self.made.iter().find(|made| made.l1_block > origin);
        if made.is_some_and(|made| made.l1_block <= later && made.header.number < number) {
            return refused("excused by L1's header");
        }
        let until = origin + u64::from(rules.timing.posting_deadline);
        let first_posted = self.posted.first().map(|posted| posted.run.run.posted_at);
        if later > until && first_posted.is_none_or(|first| first > until) {
            return refused("excused: nothing was posted");
        }
        Ok(())
    }

    /// `BlindedInbox.post`.
    fn post(
        &mut self,
        rules: &Rules,
        headers: &[BatchHeader],
        batches: Option<&Vec<SealedBatch>>,
        certificate: &Certificate,
    ) -> Result<Done, L1Error> {
        let (head, hash) = self.head_id(&rules.deployment);
        let signed = headers.last().map(|last| (last.number, last.hash()));
        if signed != Some((certificate.number, certificate.header_hash)) {
            return refused("the certificate is of another header");
        }
        let passed = Self::passed_over(headers, head, hash)?;
        let fresh = headers[passed..].to_vec();
        if passed > 0
            && let Some(batches) = batches
        {
            self.reposted.push((self.newest, Arc::new(batches.clone())));
        }
        let (Some(first), Some(last)) = (fresh.first(), fresh.last()) else {
            return Ok(Done::Other("passed over a run".to_owned()));
        };
        if first.parent_hash != hash {
            return refused("not the next header");
        }
        self.require_chain(rules, &fresh)?;
        self.require_fresh_origin(rules, first.l1_origin_number)?;
        if last.l1_origin_number >= self.newest {
            return refused("the origin is ahead");
        }
        if last.timestamp_ms > (self.time + MAX_TIME_LEAD_SECONDS) * 1_000 {
            return refused("the time is ahead");
        }
        let Some(epoch) = rules.epochs.at(certificate.number) else { return refused("no epoch") };
        if certificate::verify(certificate, epoch, &rules.deployment).is_err() {
            return refused("the certificate does not verify");
        }
        let batches = batches
            .map(|batches| batches.iter().filter(|batch| batch.header.number > head).cloned().collect());
        let Some(run) = PostedRun::new(fresh, self.newest) else { return refused("no header") };
        let transaction = keccak256(certificate.header_hash);
        let posted = Arc::new(Posted { run, batches, certificate: Some(*certificate), transaction });
        self.posted.push(Arc::clone(&posted));
        self.certified_at = self.newest;
        Ok(Done::Posted(posted))
    }

    /// How many headers in front are posted already, by the first one's number. They are not looked at, but for the last one
    /// where all are.
    fn passed_over(headers: &[BatchHeader], head: u64, hash: B256) -> Result<usize, L1Error> {
        let (Some(first), Some(last)) = (headers.first(), headers.last()) else {
            return refused("no header");
        };
        if first.number == 0 || first.number > head {
            return Ok(0);
        }
        let (posted, given) = (head - first.number + 1, headers.len() as u64);
        if posted < given {
            return Ok(posted as usize);
        }
        let is_other = last.number == head && last.hash() != hash;
        if is_other || last.number != first.number + given - 1 {
            return refused("not the posted header");
        }
        Ok(headers.len())
    }

    fn require_chain(&self, rules: &Rules, headers: &[BatchHeader]) -> Result<(), L1Error> {
        let mut previous = self.head().copied();
        for header in headers {
            let (number, hash) = previous
                .map_or_else(|| (0, rules.deployment.genesis_hash()), |head| (head.number, head.hash()));
            if header.number != number + 1 || header.parent_hash != hash {
                return refused("the headers are no chain");
            }
            let (time, origin, cursor) = previous
                .map_or((0, 0, 0), |head| (head.timestamp_ms, head.l1_origin_number, head.forced_cursor));
            if header.timestamp_ms <= time || header.l1_origin_number < origin {
                return refused("the headers go back");
            }
            let age_seconds = (header.timestamp_ms / 1_000).saturating_sub(header.l1_origin_time);
            if age_seconds > u64::from(rules.timing.max_origin_age_seconds) {
                return refused("the origin is held back");
            }
            let epoch = rules.epochs.at(header.number).map(|epoch| epoch.epoch);
            if epoch != Some(header.epoch) || header.rules != rules.epochs.rules_at(header.number) {
                return refused("of another epoch or other rules");
            }
            self.require_forced(rules, header, cursor)?;
            previous = Some(*header);
        }
        Ok(())
    }

    fn require_forced(&self, rules: &Rules, header: &BatchHeader, from: u64) -> Result<(), L1Error> {
        let (cursor, length) = (header.forced_cursor, self.forced.len() as u64);
        if cursor < from || cursor > length || cursor - from > MAX_FORCED_ITEMS as u64 {
            return refused("no such place in the forced queue");
        }
        let full = cursor - from == MAX_FORCED_ITEMS as u64;
        let next = usize::try_from(cursor).ok().and_then(|next| self.forced.get(next));
        let due = |entry: &ForcedEntry| entry.due_at(rules.timing.forced_delay) <= header.l1_origin_number;
        if !full && next.is_some_and(due) { refused("a forced item is ignored") } else { Ok(()) }
    }

    fn head_posted_at(&self) -> u64 {
        self.posted.last().map_or(0, |posted| posted.run.run.posted_at)
    }

    fn require_fresh_origin(&self, rules: &Rules, origin: u64) -> Result<(), L1Error> {
        let too_old = origin + u64::from(rules.timing.posting_deadline) < self.newest;
        let unaware = self.head_posted_at() > self.certified_at && origin < self.head_posted_at();
        if too_old || unaware { refused("the origin is too old") } else { Ok(()) }
    }

    /// The oldest run that L1 declares void in the next block, if it is asked to.
    pub fn void_is_due(&self, rules: &Rules) -> Option<RunReference> {
        let runs = self.posted.iter().map(|posted| posted.run.run);
        let due = |run: &RunReference| {
            let mut hints = self.hints.clone();
            run.posted_at + u64::from(rules.timing.hint_deadline) <= self.newest
                && hints.void(run, &rules.timing, self.newest + 1).is_ok()
        };
        runs.into_iter().find(due)
    }

    /// Whether L1 makes a header in the next block, if it is asked to: the deadline is over, and no pause is.
    pub fn header_is_due(&self, rules: &Rules) -> bool {
        self.require_header_due(rules, self.newest + 1).is_ok()
    }

    fn require_header_due(&self, rules: &Rules, block: u64) -> Result<(), L1Error> {
        let number = self.head().map_or(0, |head| head.number) + 1;
        if self.is_undecided(rules, number, block) {
            return Ok(());
        }
        let [deadline, window, delay] =
            [rules.timing.posting_deadline, rules.timing.answer_window, rules.timing.forced_delay]
                .map(u64::from);
        let cursor = self.head().map_or(0, |head| head.forced_cursor);
        let next = usize::try_from(cursor).ok().and_then(|next| self.forced.get(next));
        let due = next.map_or(u64::MAX, |entry| entry.enqueued_at + delay);
        let since = self.certified_at.min(due);
        let from = since + deadline + 1;
        if block < from {
            return refused("no header is due");
        }
        if self.certified_at < from && !((block - from) / window).is_multiple_of(2) {
            return refused("a committee that is back posts undisturbed");
        }
        if since != self.certified_at && block <= self.certified_at + delay {
            return refused("a committee posts");
        }
        Ok(())
    }

    /// Whether two headers of this number were shown, so long ago that the committee had the time to certify one.
    fn is_undecided(&self, rules: &Rules, number: u64, block: u64) -> bool {
        let until = |shown: &u64| (*shown).max(self.head_posted_at()) + u64::from(rules.timing.answer_window);
        self.equivocated.get(&number).is_some_and(|shown| block > until(shown))
    }

    /// `BlindedInbox.postL1Header`, but for epochs that end.
    fn make_header(&mut self, rules: &Rules, parent: &BatchHeader) -> Result<Done, L1Error> {
        if self.head() != Some(parent) {
            return refused("another head");
        }
        self.require_header_due(rules, self.newest)?;
        if self.time <= parent.timestamp_ms / 1_000 {
            return refused("the second is not over");
        }
        let delay = rules.timing.forced_delay;
        let entries = self.forced.iter().filter(|entry| entry.index >= parent.forced_cursor);
        let entries = entries.take_while(|entry| entry.due_at(delay) <= self.newest).take(MAX_FORCED_ITEMS);
        let entries: Vec<&ForcedEntry> = entries.collect();
        let late = self.newest > self.head_posted_at() + u64::from(rules.timing.posting_deadline);
        let undecided = self.is_undecided(rules, parent.number + 1, self.newest);
        if entries.is_empty() && parent.envelope_count == 0 && !late && !undecided {
            return refused("nothing to include");
        }
        let gas_limit =
            |entry: &ForcedEntry| ForcedTransaction::decode(&entry.item).ok().map(|forced| forced.gas_limit);
        let leaf = |entry: &&ForcedEntry| {
            let verdict = match gas_limit(entry) {
                Some(_) => Verdict::ForcedTransaction,
                None => Verdict::Skipped(EnvelopeError::Void),
            };
            item_leaf(&B256::ZERO, &entry.item_hash(), verdict.code())
        };
        let leaves: Vec<B256> = entries.iter().map(leaf).collect();
        let header = BatchHeader {
            number: parent.number + 1,
            parent_hash: parent.hash(),
            timestamp_ms: self.time * 1_000,
            data_hash: B256::ZERO,
            envelope_root: merkle::root(&leaves),
            envelope_count: entries.len() as u32,
            envelope_bytes: entries.iter().map(|entry| entry.item.len() as u32).sum(),
            gas: entries.iter().filter_map(|entry| gas_limit(entry)).sum(),
            forced_cursor: parent.forced_cursor + entries.len() as u64,
            ..*parent
        };
        let items = entries.iter().map(|entry| entry.item.clone()).collect();
        let made = FallbackHeader { header, items, l1_block: self.newest };
        let Some(run) = PostedRun::new(vec![header], self.newest) else { return refused("no header") };
        let (batches, transaction) = (Some(vec![made.batch()]), header.hash());
        self.posted.push(Arc::new(Posted { run, batches, certificate: None, transaction }));
        self.made.push(made);
        Ok(Done::Made(header))
    }

    fn propose(&mut self, outputs: &[Output]) -> Result<Done, L1Error> {
        if outputs.is_empty() {
            return refused("an empty proposal");
        }
        let claimed = self.outputs.last().map_or(0, |(_, output)| output.l2_block);
        for (output, expected) in outputs.iter().zip(claimed + 1..) {
            let Some(head) = self.head() else { return refused("nothing is posted") };
            let early = head.timestamp_ms < (output.timestamp + 10) * 1_000;
            if output.l2_block != expected || output.batch == 0 || output.batch > head.number || early {
                return refused("no output to be claimed");
            }
        }
        self.outputs.extend(outputs.iter().map(|output| (self.newest, *output)));
        Ok(Done::Claimed(outputs.to_vec()))
    }
}
