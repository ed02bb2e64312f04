//! Scripted stand-ins for what lies outside the sequencer alone: the members' answers, the inbox.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use blindfold_chain::{L1Error, L1Origin, L1Reader, L1Submitter};
use blindfold_kit::{MEMBERS, chain_config, committee, l1_block, sequencer_key};
use blindfold_l1::{
    CodedBatch, DataStanding, GivenPromise, HintEvent, HintsReference, KeyedBatch, OmissionAnswer,
    OpenAccusation, OpenedPiece, Output, OutputStanding, PostedHead, PostedLog, PostedRun, Sent,
};
use blindfold_protocol::{
    Address, AttestedData, B256, BatchHeader, Bytes, Canonical, Certificate, DataAttestation, certificate,
    data::KIND_OPENED, keccak256, merkle,
};
use blindfold_sequencer::{AttestError, Committee, HeldBatch, MemberError};
use parking_lot::Mutex;

/// The committee's members as a script: what each holds, and who is silent.
#[derive(Default)]
pub struct ScriptedCommittee {
    pub held: Mutex<BTreeMap<u16, BTreeMap<u64, HeldBatch>>>,
    pub silent: Mutex<BTreeSet<u16>>,
    /// Members that claim to hold this number.
    pub boasts: Mutex<BTreeMap<u16, u64>>,
    /// Members that show this one, with another number, where they have none.
    pub forges: Mutex<BTreeMap<u16, HeldBatch>>,
    /// Members that do otherwise than read data and attest them.
    pub readers: Mutex<BTreeMap<u16, Reads>>,
    /// Which numbers and data no member reads, silent about them alone.
    pub unread: Mutex<Option<Unread>>,
    /// Who was asked to read which numbers.
    pub asked: Mutex<Vec<(u16, (u64, u64))>>,
}

/// Whether data of these numbers are left unread.
pub type Unread = fn((u64, u64), &[u8]) -> bool;

/// What a member does that is asked to read data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// It does not answer.
    Silent,
    /// It signs something else.
    Lies,
    /// It shows another member's signature.
    Copies,
    /// It cannot read them.
    Refutes,
    /// It has the next epoch's key.
    Left,
}

#[async_trait]
impl Committee for ScriptedCommittee {
    fn members(&self) -> Vec<u16> {
        (1..=MEMBERS).collect()
    }

    async fn highest(&self, member: u16) -> Result<u64, MemberError> {
        if self.silent.lock().contains(&member) {
            return Err(MemberError("scripted silence".to_owned()));
        }
        let held = self.held.lock().get(&member).and_then(|held| held.keys().next_back().copied());
        Ok(self.boasts.lock().get(&member).copied().or(held).unwrap_or_default())
    }

    async fn sealed(&self, member: u16, number: u64) -> Result<Option<HeldBatch>, MemberError> {
        let held = self.held.lock().get(&member).and_then(|held| held.get(&number).cloned());
        Ok(held.or_else(|| {
            let mut forged = self.forges.lock().get(&member)?.clone();
            forged.sealed.header.number = number;
            Some(forged)
        }))
    }

    async fn attest(
        &self,
        member: u16,
        (first_number, last_number): (u64, u64),
        data: &Bytes,
    ) -> Result<DataAttestation, AttestError> {
        self.asked.lock().push((member, (first_number, last_number)));
        let unread = *self.unread.lock();
        if unread.is_some_and(|unread| unread((first_number, last_number), data)) {
            return Err(AttestError::Silent(MemberError("scripted silence".to_owned())));
        }
        let reads = self.readers.lock().get(&member).copied();
        let mut data_hash = keccak256(data);
        let mut signer = member;
        match reads {
            Some(Reads::Silent) => {
                return Err(AttestError::Silent(MemberError("scripted silence".to_owned())));
            }
            Some(Reads::Refutes) => return Err(AttestError::Refuted("data_mismatch".to_owned())),
            Some(Reads::Left) => return Err(AttestError::Never("not_a_member".to_owned())),
            Some(Reads::Lies) => data_hash.0[0] ^= 1,
            Some(Reads::Copies) => signer = member % MEMBERS + 1,
            None => {}
        }
        let attested = AttestedData { epoch: 1, first_number, last_number, kind: KIND_OPENED, data_hash };
        let key = &committee().bls[usize::from(signer) - 1];
        let mut given = certificate::sign_attestation(key, &chain_config().deployment, attested, member);
        given.data.data_hash = keccak256(data);
        Ok(given)
    }
}

/// Numbers of batches, the hints that their data names, and how many keys it uses.
pub type Opened = ((u64, u64), HintsReference, usize);

/// The inbox as a script.
pub struct ScriptedInbox {
    head: Mutex<PostedHead>,
    pub runs: Mutex<Vec<(u64, u64)>>,
    pub faults: Mutex<Vec<L1Error>>,
    /// Whether it takes no run.
    pub away: AtomicBool,
    /// The next run's headers go out, its data does not follow.
    pub lose_data: AtomicBool,
    /// Why it takes headers and no data.
    pub data_fault: Mutex<Option<L1Error>>,
    /// How often data was refused for that.
    pub data_refusals: AtomicU64,
    pub data: Mutex<Vec<(u64, u64)>>,
    /// Hints that were posted.
    pub hint_postings: Mutex<Vec<PostedLog>>,
    /// Postings that were slashed, each with its block.
    pub slashed: Mutex<Vec<(u64, u64)>>,
    /// Data that was posted opened.
    pub opened: Mutex<Vec<Opened>>,
    pub opened_faults: Mutex<Vec<L1Error>>,
    /// Whether readers do not get the batches back from it.
    pub opened_counts_for_nothing: AtomicBool,
    /// The next run arrives whole, and whoever posted it does not hear of it.
    pub lose_answer: AtomicBool,
    /// The newest block.
    pub newest: AtomicU64,
    /// Blocks after this one are not final.
    pub finality: Mutex<u64>,
    /// The block that data is in.
    data_blocks: Mutex<BTreeMap<(u64, u64), u64>>,
    /// Postings up to this number are final.
    pub final_number: Mutex<u64>,
    /// Nobody can say which data is there.
    pub unreadable: AtomicBool,
    /// A server that lags behind gives so many answers after the first run, and this is its head.
    pub lagging: Mutex<Option<(u64, PostedHead)>>,
    /// The next run arrives after L1 got this head, and passes over all of it.
    pub passes_over: Mutex<Option<PostedHead>>,
    /// What was posted, as accusations are answered from it.
    pub headers: Mutex<Vec<PostedRun>>,
    /// Open accusations: by envelope and hash of the item the number up to which it was promised.
    pub accusations: Mutex<BTreeMap<(B256, B256), u64>>,
    /// Every answer that was sent: envelope and batch.
    pub answers: Mutex<Vec<(B256, u64)>>,
    pub answer_faults: Mutex<Vec<L1Error>>,
    /// Counts the looks for accusations.
    pub looks: tokio::sync::watch::Sender<u64>,
    /// Claims of L2 blocks, and the lengths of the calls.
    pub outputs: Mutex<Vec<Output>>,
    pub proposals: Mutex<Vec<usize>>,
    pub output_faults: Mutex<Vec<L1Error>>,
    /// Counts the looks for what can be claimed.
    pub output_looks: tokio::sync::watch::Sender<u64>,
    /// Whether the announced end of the epoch was taken back a moment ago.
    pub taken_back: AtomicBool,
    /// Numbers of the headers that L1 was made to make, each the last of its epoch.
    pub ended: tokio::sync::watch::Sender<Vec<u64>>,
    pub posted: tokio::sync::watch::Sender<u64>,
    pub attempts: tokio::sync::watch::Sender<u64>,
}

impl ScriptedInbox {
    pub fn new(genesis: B256) -> Arc<Self> {
        Arc::new(Self {
            head: Mutex::new(PostedHead { number: 0, hash: genesis, ..PostedHead::default() }),
            runs: Mutex::default(),
            faults: Mutex::default(),
            away: AtomicBool::new(false),
            lose_data: AtomicBool::new(false),
            data_fault: Mutex::default(),
            data_refusals: AtomicU64::new(0),
            lose_answer: AtomicBool::new(false),
            newest: AtomicU64::new(0),
            finality: Mutex::new(u64::MAX),
            data_blocks: Mutex::default(),
            data: Mutex::default(),
            hint_postings: Mutex::default(),
            slashed: Mutex::default(),
            opened: Mutex::default(),
            opened_faults: Mutex::default(),
            opened_counts_for_nothing: AtomicBool::new(false),
            final_number: Mutex::new(u64::MAX),
            unreadable: AtomicBool::new(false),
            lagging: Mutex::default(),
            passes_over: Mutex::default(),
            headers: Mutex::default(),
            accusations: Mutex::default(),
            answers: Mutex::default(),
            answer_faults: Mutex::default(),
            looks: tokio::sync::watch::Sender::new(0),
            outputs: Mutex::default(),
            proposals: Mutex::default(),
            output_faults: Mutex::default(),
            output_looks: tokio::sync::watch::Sender::new(0),
            taken_back: AtomicBool::new(false),
            ended: tokio::sync::watch::Sender::new(Vec::new()),
            posted: tokio::sync::watch::Sender::new(0),
            attempts: tokio::sync::watch::Sender::new(0),
        })
    }

    pub fn set_head(&self, number: u64, hash: B256) {
        *self.head.lock() = PostedHead { number, hash, ..PostedHead::default() };
        self.posted.send_replace(number);
    }

    pub fn head(&self) -> PostedHead {
        PostedHead { block: self.newest.load(Ordering::SeqCst), ..*self.head.lock() }
    }

    /// A new block.
    fn next_block(&self) -> u64 {
        self.newest.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Takes headers as the contract does; their numbers. None where L1 got another head meanwhile.
    fn put_headers(
        &self,
        headers: &[BatchHeader],
        certificate: &Certificate,
    ) -> Result<Option<(u64, u64)>, L1Error> {
        if self.away.load(Ordering::SeqCst) {
            return Err(L1Error::no_answer("scripted outage"));
        }
        let mut head = self.head.lock();
        if let Some(other) = self.passes_over.lock().take() {
            *head = other;
            return Ok(None);
        }
        for header in headers {
            // What the contract checks: what is posted already is passed over.
            if self.runs.lock().iter().any(|(first, last)| {
                (*first..=*last).contains(&header.number) && header.number <= head.number
            }) {
                continue;
            }
            if header.number != head.number + 1 || header.parent_hash != head.hash {
                return Err(L1Error::refused("not the next header"));
            }
            *head = PostedHead { number: header.number, hash: header.hash(), ..PostedHead::default() };
        }
        if (certificate.number, certificate.header_hash) != (head.number, head.hash) {
            return Err(L1Error::refused("certificate of another header"));
        }
        let first = headers[0].number;
        self.headers.lock().extend(PostedRun::new(headers.to_vec(), 7));
        self.runs.lock().push((first, head.number));
        self.posted.send_replace(head.number);
        Ok(Some((first, head.number)))
    }

    /// Refuses data, where that is scripted.
    fn check_data(&self) -> Result<(), L1Error> {
        let Some(fault) = self.data_fault.lock().clone() else { return Ok(()) };
        self.data_refusals.fetch_add(1, Ordering::SeqCst);
        Err(fault)
    }

    fn put_data(&self, span: (u64, u64)) -> u64 {
        let block = self.next_block();
        self.data.lock().push(span);
        self.data_blocks.lock().insert(span, block);
        block
    }

    /// Hints for a run with this root are in the next block; the id of their posting.
    pub fn post_hints(&self, (first, last): (u64, u64), root: B256) -> u64 {
        let l1_block = self.next_block();
        let mut postings = self.hint_postings.lock();
        let id = postings.len() as u64 + 1;
        let (publisher, transaction) = (Address::repeat_byte(7), B256::repeat_byte(9));
        postings.push(PostedLog { id, first, last, publisher, l1_block, transaction, root });
        id
    }

    /// A posting of hints turns out wrong in the next block.
    pub fn slash(&self, id: u64) {
        self.slashed.lock().push((id, self.next_block()));
    }

    fn is_final(&self, block: u64) -> bool {
        block <= *self.finality.lock()
    }
}

#[async_trait]
impl L1Reader for ScriptedInbox {
    async fn posted_head(&self) -> Result<PostedHead, L1Error> {
        self.attempts.send_modify(|count| *count += 1);
        let mut lagging = self.lagging.lock();
        if let Some((answers, before)) = lagging.take().filter(|(answers, _)| *answers > 0) {
            let there = self.runs.lock().len() as u64;
            // The server that lags answers once there is something that it has not seen.
            *lagging = Some((answers - u64::from(there > 0), before));
            return Ok(before);
        }
        Ok(self.head())
    }

    async fn finalized(&self) -> Result<L1Origin, L1Error> {
        // L1 goes on with every question.
        Ok(l1_block(self.next_block().min(*self.finality.lock())))
    }

    async fn open_accusations(&self, _since: u64) -> Result<Vec<OpenAccusation>, L1Error> {
        self.looks.send_modify(|count| *count += 1);
        let open = self.accusations.lock().clone();
        let accusation = |((envelope_id, item_hash), seal_by)| OpenAccusation {
            promise: GivenPromise { sequencer: sequencer_key().address(), envelope_id, item_hash, seal_by },
            answer_until: 99,
        };
        Ok(open.into_iter().map(accusation).collect())
    }

    async fn hint_events(&self, after: u64, through: u64) -> Result<Vec<HintEvent>, L1Error> {
        let within = |l1_block: u64| (after + 1..=through).contains(&l1_block);
        let postings = self.hint_postings.lock().clone();
        let posted = postings.iter().filter(|posted| within(posted.l1_block)).copied();
        let slashed = |(id, l1_block): (u64, u64)| HintEvent::Slashed {
            id,
            last: postings[id as usize - 1].last,
            challenger: Address::repeat_byte(8),
            publisher: Address::repeat_byte(7),
            number: postings[id as usize - 1].first,
            index: 0,
            reason: 1,
            l1_block,
        };
        let slashings = self.slashed.lock().clone().into_iter().filter(|(_, block)| within(*block));
        Ok(posted.map(HintEvent::Posted).chain(slashings.map(slashed)).collect())
    }

    async fn run_of(&self, number: u64, _since: u64) -> Result<Option<PostedRun>, L1Error> {
        Ok(self.headers.lock().iter().find(|run| run.header(number).is_some()).cloned())
    }

    async fn output_standing(&self) -> Result<OutputStanding, L1Error> {
        self.output_looks.send_modify(|count| *count += 1);
        let head = self.headers.lock().last().and_then(|run| run.headers.last().copied());
        Ok(OutputStanding {
            last_block: self.outputs.lock().last().map_or(0, |output| output.l2_block),
            head: head.map_or(0, |header| header.number),
            head_timestamp_ms: head.map_or(0, |header| header.timestamp_ms),
        })
    }
}

fn sent(transaction: B256, block: u64) -> Sent {
    Sent { transaction, block, gas_used: 0 }
}

#[async_trait]
impl L1Submitter for ScriptedInbox {
    fn account(&self) -> Address {
        sequencer_key().address()
    }

    fn reader(&self) -> &dyn L1Reader {
        self
    }

    async fn post(&self, batches: &[CodedBatch], certificate: &Certificate) -> Result<Sent, L1Error> {
        if self.away.load(Ordering::SeqCst) {
            return Err(L1Error::no_answer("scripted outage"));
        }
        if let Some(fault) = self.faults.lock().pop() {
            return Err(fault);
        }
        let headers: Vec<BatchHeader> = batches.iter().map(|batch| batch.sealed.header).collect();
        let Some(span) = self.put_headers(&headers, certificate)? else {
            return Ok(sent(merkle::leaf(b"passed over"), self.next_block()));
        };
        if self.lose_data.swap(false, Ordering::SeqCst) {
            return Err(L1Error::no_answer("the data did not follow"));
        }
        self.check_data()?;
        let block = self.put_data(span);
        if self.lose_answer.swap(false, Ordering::SeqCst) {
            return Err(L1Error::no_answer("nobody answers"));
        }
        Ok(sent(merkle::leaf(&certificate.encode()), block))
    }

    async fn post_headers(
        &self,
        headers: &[BatchHeader],
        certificate: &Certificate,
    ) -> Result<Sent, L1Error> {
        self.put_headers(headers, certificate)?;
        Ok(sent(merkle::leaf(&certificate.encode()), self.next_block()))
    }

    async fn opened_data(
        &self,
        _chain_id: u64,
        batches: &[KeyedBatch],
        hints: HintsReference,
    ) -> Result<Vec<OpenedPiece>, L1Error> {
        let data = format!("opened by {hints:?}").into_bytes().into();
        Ok(vec![OpenedPiece { batches: batches.to_vec(), hints, data }])
    }

    async fn post_opened_data(&self, piece: &OpenedPiece) -> Result<Sent, L1Error> {
        let OpenedPiece { batches, hints, .. } = piece;
        let (span, hints) = (piece.numbers().unwrap(), *hints);
        if let Some(fault) = self.opened_faults.lock().pop() {
            return Err(fault);
        }
        let keys = batches.iter().map(|batch| batch.keys.iter().flatten().count()).sum();
        self.opened.lock().push((span, hints, keys));
        let block = match self.opened_counts_for_nothing.load(Ordering::SeqCst) {
            true => self.next_block(),
            false => self.put_data(span),
        };
        Ok(sent(merkle::leaf(b"opened data"), block))
    }

    async fn post_data(&self, batches: &[CodedBatch]) -> Result<Sent, L1Error> {
        self.check_data()?;
        let (first, last) =
            (batches[0].sealed.header.number, batches[batches.len() - 1].sealed.header.number);
        let block = self.put_data((first, last));
        Ok(sent(merkle::leaf(b"data"), block))
    }

    async fn lacks_new_data(&self, headers: &[BatchHeader]) -> Result<bool, L1Error> {
        let span = (headers[0].number, headers[headers.len() - 1].number);
        Ok(!self.data.lock().contains(&span))
    }

    async fn end_at_head(&self, head: &BatchHeader) -> Result<Option<Sent>, L1Error> {
        let number = head.number + 1;
        let mut posted = self.head.lock();
        if self.taken_back.load(Ordering::SeqCst) {
            return Ok(None);
        }
        if posted.hash != head.hash() {
            // As the contract refuses it; and the attempt is paid for.
            self.ended.send_modify(|ended| ended.push(number));
            return Err(L1Error::refused("not after L1's head"));
        }
        *posted = PostedHead { number, hash: merkle::leaf(b"made by L1"), ..PostedHead::default() };
        self.ended.send_modify(|ended| ended.push(number));
        Ok(Some(sent(merkle::leaf(b"the end"), self.next_block())))
    }

    async fn data_standing(&self, above: u64, after: u64) -> Result<DataStanding, L1Error> {
        if self.unreadable.load(Ordering::SeqCst) {
            return Err(L1Error::no_answer("scripted"));
        }
        let through = self.head().number.min(*self.final_number.lock()).max(above);
        let (runs, data, blocks) = (self.runs.lock(), self.data.lock(), self.data_blocks.lock());
        let mut standing = DataStanding { through, block: after, ..DataStanding::default() };
        for run in runs.iter().filter(|run| run.1 <= through && run.1 > above) {
            match blocks.get(run).filter(|_| data.contains(run)) {
                None => standing.lacking.push(*run),
                Some(block) if !self.is_final(*block) => {
                    standing.awaited = standing.awaited.max(Some(*block))
                }
                Some(_) => {}
            }
        }
        Ok(standing)
    }

    async fn answer_omission(&self, answer: &OmissionAnswer) -> Result<Sent, L1Error> {
        self.answers.lock().push((answer.envelope_id(), answer.number()));
        if let Some(fault) = self.answer_faults.lock().pop() {
            return Err(fault);
        }
        let mut open = self.accusations.lock();
        // What the contract checks beside the proofs, which `OmissionAnswer` has checked.
        let Some(seal_by) = open.get(&(answer.envelope_id(), answer.item_hash())) else {
            return Err(L1Error::refused("no open accusation"));
        };
        if answer.number() > *seal_by {
            return Err(L1Error::refused("sealed too late"));
        }
        open.remove(&(answer.envelope_id(), answer.item_hash()));
        Ok(sent(merkle::leaf(b"answer"), self.newest.load(Ordering::SeqCst)))
    }

    async fn propose_outputs(&self, proposed: &[Output]) -> Result<Sent, L1Error> {
        if let Some(fault) = self.output_faults.lock().pop() {
            return Err(fault);
        }
        let standing = self.output_standing().await?;
        for (output, expected) in proposed.iter().zip(standing.last_block + 1..) {
            // What the contract checks.
            let early = standing.head_timestamp_ms < (output.timestamp + 10) * 1_000;
            if output.l2_block != expected || output.batch == 0 || output.batch > standing.head || early {
                return Err(L1Error::refused(format!("{output:?}")));
            }
        }
        self.outputs.lock().extend(proposed);
        self.proposals.lock().push(proposed.len());
        Ok(sent(merkle::leaf(b"outputs"), self.newest.load(Ordering::SeqCst)))
    }
}
