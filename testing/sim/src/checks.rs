//! What must hold, whatever goes wrong: looked at as messages pass, and on the disks now and then. Of who lies nothing is
//! asked but that it harms nobody else.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use alloy_primitives::B256;
use blindfold_protocol::{Acknowledgement, Certificate, EnvelopeError, ReleaseShare};
use blindfold_rpc::{
    Encoded, FeedEvent, Topic,
    types::{EnvelopeState, Receipt},
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::{Role, Trace};

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// A number has one certified header.
    OneCertificate,
    /// The sequencer announces one header for a number, a member acknowledges one.
    OneSignature,
    /// A certificate is of a header that enough members acknowledged.
    CertificateOfAcknowledged,
    /// A member gives its share of a batch only against a certificate of it or of a descendant.
    NothingDecryptedBefore,
    /// What is posted and claimed on L1 is what is certified and executed.
    L1IsRight,
    /// Everybody's blocks are the same.
    SameBlocks,
    /// An envelope that was answered is executed, skipped for a named reason, expired, or void with its run on L1.
    AnsweredEnvelopesEnd,
    /// A promised envelope is sealed in time.
    PromisesAreKept,
    /// A new envelope is executed everywhere within half a minute once nothing is wrong any more.
    Progress,
    /// What is certified is posted on L1 within a minute once nothing is wrong any more.
    IsPosted,
    /// What L1 forces in is executed everywhere within a minute once nothing is wrong any more.
    ForcedIsExecuted,
    /// A fee ledger holds what was deposited, no more and no less.
    FeesAreConserved,
    /// What a proxy took stands in a block in the end: sent again by its user where others may have read it.
    HeldTransactionsEnd,
    /// The coprocessor executed what users sent, in committed order, and in the end all of it but for what is void.
    ConfidentialItems,
    /// A version of the confidential state has one root, that of what was executed up to it, unless it begins anew.
    ConfidentialRoots,
    /// Nobody honest is slashed on L1, and no wrong hints are final there.
    L1Judges,
    /// Queues stay within their limits.
    QueuesAreBounded,
    /// Nobody panics.
    NoPanic,
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Which.
    pub rule: Rule,
    /// When, in milliseconds from the beginning.
    pub at_ms: u64,
    /// How.
    pub detail: String,
}

/// How many of what there was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Headers announced.
    pub headers: usize,
    /// Certificates announced.
    pub certificates: usize,
    /// Headers posted.
    pub posted: usize,
    /// Headers that L1 made, in final blocks.
    pub made: usize,
    /// Postings of hints, and sequencers, that L1 punished.
    pub slashed: usize,
    /// Postings of hints that are final on L1.
    pub final_hints: usize,
    /// Blocks claimed on L1.
    pub claimed: usize,
    /// Shares given.
    pub shares: usize,
    /// L2 blocks.
    pub blocks: usize,
    /// Envelopes that the sequencer took.
    pub answered: usize,
    /// Of these executed.
    pub executed: usize,
    /// Of these skipped, with a reason.
    pub skipped: usize,
    /// Of these void: nobody posted hints of their batch in time.
    pub void: usize,
    /// Of these expired.
    pub expired: usize,
    /// Envelopes that the sequencer refused.
    pub refused: usize,
    /// Transactions that the proxy took.
    pub held: usize,
    /// Of these in a block.
    pub included: usize,
    /// Times that one was given up and sent again.
    pub given_up: usize,
    /// Confidential items that the coprocessor executed.
    pub confidential: usize,
    /// Times that the coprocessor was given an empty disk.
    pub emptied: usize,
    /// Roles that gave up and were started again.
    pub failures: usize,
}

/// The rules of a run. Clones are the same.
#[derive(Clone)]
pub struct Checks(Arc<Shared>);

struct Shared {
    trace: Trace,
    threshold: u16,
    dishonest: BTreeSet<Role>,
    state: Mutex<State>,
    broken: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    violations: Vec<Violation>,
    counts: Counts,
    headers: BTreeMap<u64, Vec<B256>>,
    /// Who acknowledged which header.
    acknowledged: BTreeMap<(u64, B256), BTreeSet<u16>>,
    by_member: BTreeMap<(u16, u64), Vec<B256>>,
    certified: BTreeMap<u64, Vec<B256>>,
    blocks: BTreeMap<u64, Vec<(B256, Role)>>,
    /// Headers that L1 made, in final blocks: what was above one is void, and signed anew.
    made: BTreeMap<u64, B256>,
    /// Runs that L1 declared void, in blocks that are final or were: first and last batch.
    void: BTreeSet<(u64, u64)>,
    /// How often the sequencer's disk was lost.
    losses: usize,
    /// Answered envelopes that have not ended, and by when they were promised.
    waiting: BTreeMap<B256, Option<u64>>,
}

impl State {
    /// How many headers of a number may have been signed: one, and one more for each below it that L1 made.
    fn chains(&self, number: u64) -> usize {
        1 + self.made.range(..number).count()
    }

    /// How many blocks there may have been of a number: one, one more for each header that L1 made, and one more for each
    /// run that was executed and then void.
    fn histories(&self) -> usize {
        1 + self.made.len() + self.void.len()
    }
}

/// Adds to what was seen; gives the first of it where that is one too many.
fn add<T: Copy + PartialEq>(seen: &mut Vec<T>, new: T, most: usize) -> Option<T> {
    if !seen.contains(&new) {
        seen.push(new);
    }
    seen.first().copied().filter(|_| seen.len() > most)
}

/// The parameters of a method as its trait names them.
fn params<T: DeserializeOwned>(json: &str) -> Option<T> {
    serde_json::from_str(json).ok()
}

#[derive(Deserialize)]
struct Answered<T> {
    result: Option<T>,
}

impl Checks {
    /// Nothing was seen yet; certificates are of `threshold` members.
    pub fn new(threshold: u16, dishonest: BTreeSet<Role>, trace: Trace) -> Self {
        let broken = watch::Sender::new(0);
        Self(Arc::new(Shared { trace, threshold, dishonest, state: Mutex::default(), broken }))
    }

    fn is_honest(&self, role: Role) -> bool {
        !self.0.dishonest.contains(&role)
    }

    /// How many headers L1 made, in final blocks.
    pub fn made(&self) -> usize {
        self.0.state.lock().made.len()
    }

    /// A number for which a sequencer that signed two headers has divided `members` so that neither can be certified:
    /// members that it showed one of them pass it on. Then the committee waits for L1.
    pub fn divided(&self, members: u16) -> Option<u64> {
        if self.is_honest(Role::Sequencer) {
            return None;
        }
        let state = self.0.state.lock();
        let mut votes: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for ((number, _), voters) in &state.acknowledged {
            let honest = voters.iter().filter(|member| self.is_honest(Role::Member(**member)));
            votes.entry(*number).or_default().push(honest.count());
        }
        let honest = (1..=members).filter(|member| self.is_honest(Role::Member(*member))).count();
        let too_few = |votes: &Vec<usize>| {
            let open = honest.saturating_sub(votes.iter().sum());
            let most = votes.iter().max().map_or(0, |most| most + open);
            votes.len() > 1 && most < usize::from(self.0.threshold)
        };
        votes
            .iter()
            .find(|(number, votes)| !state.certified.contains_key(number) && too_few(votes))
            .map(|(n, _)| *n)
    }

    /// A rule is broken.
    pub fn broken(&self, rule: Rule, detail: String) {
        self.0.trace.event(Role::World, format_args!("VIOLATION {rule:?}: {detail}"));
        let at_ms = self.0.trace.elapsed_ms();
        self.0.state.lock().violations.push(Violation { rule, at_ms, detail });
        self.0.broken.send_modify(|count| *count += 1);
    }

    /// Waits for the first rule that is broken.
    pub async fn first_broken(&self) {
        let mut broken = self.0.broken.subscribe();
        // The sender lives in `self`.
        let _ = broken.wait_for(|count| *count > 0).await;
    }

    /// What was broken.
    pub fn violations(&self) -> Vec<Violation> {
        self.0.state.lock().violations.clone()
    }

    /// How many of what there was.
    pub fn counts(&self) -> Counts {
        let state = self.0.state.lock();
        Counts {
            headers: state.headers.len(),
            certificates: state.certified.len(),
            blocks: state.blocks.len(),
            ..state.counts
        }
    }

    /// A role sends a call, whether or not it arrives.
    pub fn sent(&self, from: Role, method: &str, json: &str) {
        if let (Role::Member(member), "blind_submitAcknowledgement") = (from, method)
            && let Some((acknowledgement,)) = params::<(Encoded<Acknowledgement>,)>(json)
            && let Ok(acknowledgement) = acknowledgement.decode()
        {
            self.acknowledged(member, acknowledgement.number, acknowledgement.header_hash);
        }
    }

    fn acknowledged(&self, member: u16, number: u64, hash: B256) {
        let enough = usize::from(self.0.threshold);
        let (other, certified, most) = {
            let mut state = self.0.state.lock();
            let most = state.chains(number);
            state.acknowledged.entry((number, hash)).or_default().insert(member);
            let of_number =
                state.acknowledged.range((number, B256::ZERO)..=(number, B256::repeat_byte(0xff)));
            let certified = of_number.filter(|(_, members)| members.len() >= enough).count();
            let other = add(state.by_member.entry((member, number)).or_default(), hash, most);
            (other.filter(|_| self.is_honest(Role::Member(member))), certified, most)
        };
        if certified > most {
            let detail = format!("enough members acknowledged {certified} headers for number {number}");
            self.broken(Rule::OneCertificate, detail);
        }
        if let Some(other) = other {
            let detail = format!("member {member} acknowledged {other} and {hash} for number {number}");
            self.broken(Rule::OneSignature, detail);
        }
    }

    /// A role answers a call, whether or not the answer arrives.
    pub fn answered(&self, role: Role, method: &str, json: &str, answer: &str) {
        if let (Role::Member(member), "committee_getShare") = (role, method)
            && let Some((number, certificate)) = params::<(u64, Encoded<Certificate>)>(json)
            && let Ok(certificate) = certificate.decode()
            && let Ok(Answered { result: Some(share) }) =
                serde_json::from_str::<Answered<Encoded<ReleaseShare>>>(answer)
            && let Ok(share) = share.decode()
        {
            self.share(member, number, &certificate, &share);
        }
    }

    fn share(&self, member: u16, number: u64, certificate: &Certificate, share: &ReleaseShare) {
        if !self.is_honest(Role::Member(member)) {
            return;
        }
        let enough = usize::from(self.0.threshold);
        let announces = self.is_honest(Role::Sequencer);
        let wrong = {
            let mut state = self.0.state.lock();
            state.counts.shares += 1;
            let signers = state.acknowledged.get(&(certificate.number, certificate.header_hash));
            let other = |number, hash| {
                let known = |known: &Vec<B256>| !known.contains(&hash) && known.len() >= state.chains(number);
                announces && state.headers.get(&number).is_some_and(known)
            };
            if signers.map_or(0, BTreeSet::len) < enough {
                Some("against a certificate of a header that too few acknowledged")
            } else if certificate.number < number || share.number != number {
                Some("of another batch than the certificate's")
            } else if other(number, share.header_hash) || other(certificate.number, certificate.header_hash) {
                Some("of a header that was not announced")
            } else {
                None
            }
        };
        if let Some(wrong) = wrong {
            let detail = format!("member {member} gave a share of batch {number} {wrong}");
            self.broken(Rule::NothingDecryptedBefore, detail);
        }
    }

    /// A role tells something to whoever follows it. Gives what, in short.
    pub fn notified(&self, from: Role, topic: Topic, notification: &str) -> String {
        #[derive(Deserialize)]
        struct Notification<'a> {
            #[serde(borrow)]
            params: Params<'a>,
        }
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow)]
            result: &'a RawValue,
        }
        let Ok(Notification { params }) = serde_json::from_str::<Notification<'_>>(notification) else {
            return "nothing readable".to_owned();
        };
        let Ok(event) = FeedEvent::parse(topic, params.result.get()) else {
            return "nothing readable".to_owned();
        };
        let seen = format!("{} {}", topic.as_str(), event.number());
        match event {
            FeedEvent::Header(header) if from == Role::Sequencer => self.header(header.number, header.hash),
            FeedEvent::Certificate(certificate) => self.certificate(certificate.number, certificate.hash),
            FeedEvent::Block(block) => self.block(from, block.number, block.hash),
            _ => {}
        }
        seen
    }

    fn header(&self, number: u64, hash: B256) {
        let other = {
            let mut state = self.0.state.lock();
            if state.made.get(&number) == Some(&hash) {
                return;
            }
            let most = state.chains(number);
            add(state.headers.entry(number).or_default(), hash, most)
        };
        if let Some(other) = other.filter(|_| self.is_honest(Role::Sequencer)) {
            let detail = format!("the sequencer announced {other} and {hash} for number {number}");
            self.broken(Rule::OneSignature, detail);
        }
    }

    /// A header is certified by somebody's word or on somebody's disk.
    pub fn certificate(&self, number: u64, hash: B256) {
        let enough = usize::from(self.0.threshold);
        let (other, signers) = {
            let mut state = self.0.state.lock();
            if state.made.get(&number) == Some(&hash) {
                return;
            }
            let most = state.chains(number);
            let other = add(state.certified.entry(number).or_default(), hash, most);
            (other, state.acknowledged.get(&(number, hash)).map_or(0, BTreeSet::len))
        };
        if let Some(other) = other {
            self.broken(
                Rule::OneCertificate,
                format!("{other} and {hash} are certified for number {number}"),
            );
        }
        if signers < enough {
            let detail =
                format!("header {number} {hash} is certified, and {signers} members acknowledged it");
            self.broken(Rule::CertificateOfAcknowledged, detail);
        }
    }

    /// A block was executed by somebody's word, or stands on somebody's disk.
    pub fn block(&self, role: Role, number: u64, hash: B256) {
        let other = {
            let mut state = self.0.state.lock();
            let most = state.histories();
            let seen = state.blocks.entry(number).or_default();
            match seen.iter().any(|(known, _)| *known == hash) {
                true => None,
                false => add(seen, (hash, role), most),
            }
        };
        if let Some((other, whose)) = other {
            let detail = format!("block {number} is {other} at {whose} and {hash} at {role}");
            self.broken(Rule::SameBlocks, detail);
        }
    }

    /// So much is in a role's fee ledger, with what it holds back. Deposits come in with the first header.
    pub fn ledger(&self, role: Role, total: u128, deposited: u128) {
        if total != 0 && total != deposited {
            let detail = format!("{role} has {total} wei in its ledger, of {deposited} that were deposited");
            self.broken(Rule::FeesAreConserved, detail);
        }
    }

    /// A queue of a role is so long.
    pub fn queue(&self, role: Role, what: &str, length: u64, most: u64) {
        if length > most {
            self.broken(Rule::QueuesAreBounded, format!("{role} has {length} {what}, {most} at most"));
        }
    }

    /// A header was posted to L1.
    pub fn posted(&self, number: u64, hash: B256) {
        let known = {
            let mut state = self.0.state.lock();
            state.counts.posted += 1;
            let state = &*state;
            let announced = state.headers.get(&number).filter(|_| self.is_honest(Role::Sequencer));
            let known = state.certified.get(&number).or(announced);
            known.filter(|known| !known.contains(&hash) && known.len() >= state.chains(number)).cloned()
        };
        if known.is_some() {
            self.broken(
                Rule::L1IsRight,
                format!("L1 has {hash} for number {number}, announced was {known:?}"),
            );
        }
    }

    /// A block was claimed on L1.
    pub fn claimed(&self, number: u64, hash: B256) {
        let known = {
            let mut state = self.0.state.lock();
            state.counts.claimed += 1;
            let known = state.blocks.get(&number).cloned().unwrap_or_default();
            let unknown = known.iter().all(|(known, _)| *known != hash) && known.len() >= state.histories();
            known.first().copied().filter(|_| unknown)
        };
        if known.is_some() {
            self.broken(
                Rule::L1IsRight,
                format!("block {number} is claimed as {hash}, executed was {known:?}"),
            );
        }
    }

    /// The sequencer took an envelope, with or without a promise. It was asked after so many [`losses`](Self::losses).
    pub fn envelope_answered(&self, id: B256, promised_by: Option<u64>, losses: usize) {
        let mut state = self.0.state.lock();
        state.counts.answered += 1;
        if state.losses == losses {
            state.waiting.insert(id, promised_by);
        }
    }

    /// The sequencer refused an envelope for good.
    pub fn envelope_refused(&self) {
        self.0.state.lock().counts.refused += 1;
    }

    /// An answered envelope came to its end, by its user's node.
    pub fn envelope_ended(&self, receipt: &Receipt) {
        let id = receipt.id;
        let promised_by = {
            let mut state = self.0.state.lock();
            let counts = &mut state.counts;
            match receipt.state {
                EnvelopeState::Executed => counts.executed += 1,
                EnvelopeState::Skipped => counts.skipped += 1,
                EnvelopeState::Void => counts.void += 1,
                _ => counts.expired += 1,
            }
            state.waiting.remove(&id).flatten()
        };
        match (receipt.state, &receipt.reason) {
            (EnvelopeState::Executed | EnvelopeState::Expired, _) | (EnvelopeState::Skipped, Some(_)) => {}
            (EnvelopeState::Void, _) if self.is_void(receipt.number) => {}
            (state, reason) => {
                let detail = format!("envelope {id} ended as {state:?}, {reason:?}");
                self.broken(Rule::AnsweredEnvelopesEnd, detail);
            }
        }
        // A sequencer that has not heard yet of a header that L1 made still promises numbers of before it.
        let displaced = receipt.reason.as_deref() == Some(EnvelopeError::WrongGeneration.as_str());
        let excused = |by: u64| displaced && self.0.state.lock().made.range(..=by).next().is_some();
        let binds = |by: &u64| {
            self.is_honest(Role::Sequencer)
                && receipt.number.is_none_or(|number| number > *by)
                && !excused(*by)
        };
        if let Some(by) = promised_by.filter(binds) {
            let detail = format!("envelope {id} was promised by {by}, and is in {:?}", receipt.number);
            self.broken(Rule::PromisesAreKept, detail);
        }
    }

    /// The proxy took a transaction.
    pub fn held(&self) {
        self.0.state.lock().counts.held += 1;
    }

    /// A transaction that the proxy took is in a block.
    pub fn included(&self) {
        self.0.state.lock().counts.included += 1;
    }

    /// The proxy gave a transaction up.
    pub fn given_up(&self) {
        self.0.state.lock().counts.given_up += 1;
    }

    /// The coprocessor has executed so many confidential items by now.
    pub fn confidential(&self, items: usize) {
        self.0.state.lock().counts.confidential = items;
    }

    /// The coprocessor was given an empty disk.
    pub fn emptied(&self) {
        self.0.state.lock().counts.emptied += 1;
    }

    /// How many transactions the proxy took that are in no block.
    pub fn held_back(&self) -> usize {
        let counts = self.0.state.lock().counts;
        counts.held - counts.included
    }

    /// How often the sequencer's disk was lost.
    pub fn losses(&self) -> usize {
        self.0.state.lock().losses
    }

    /// Headers that the sequencer announced and nobody certified yet.
    pub fn open_headers(&self) -> Vec<(u64, B256)> {
        let state = self.0.state.lock();
        let open = state.headers.iter().filter(|(number, _)| !state.certified.contains_key(number));
        open.flat_map(|(number, hashes)| hashes.iter().map(|hash| (*number, *hash))).collect()
    }

    /// The sequencer's disk was lost, and with it what it had answered for and not sealed, and what it had signed that no
    /// member holds: it asks them, and signs these numbers a second time.
    pub fn forgotten(&self, held: &BTreeSet<B256>) {
        let mut state = self.0.state.lock();
        state.losses += 1;
        state.waiting.clear();
        let State { headers, certified, .. } = &mut *state;
        for (number, hashes) in headers {
            hashes.retain(|hash| held.contains(hash) || certified.contains_key(number));
        }
    }

    /// L1 made a header, in a block that is final now. What was promised may have given way to it.
    pub fn made_by_l1(&self, number: u64, hash: B256) {
        let mut state = self.0.state.lock();
        state.made.insert(number, hash);
        state.counts.made += 1;
        state.waiting.values_mut().for_each(|promised_by| *promised_by = None);
    }

    /// L1 declared a run void.
    pub fn declared_void(&self, first: u64, last: u64) {
        self.0.state.lock().void.insert((first, last));
    }

    fn is_void(&self, number: Option<u64>) -> bool {
        let state = self.0.state.lock();
        number.is_some_and(|number| state.void.iter().any(|(first, last)| (*first..=*last).contains(&number)))
    }

    /// L1 punished a role.
    pub fn slashed(&self, role: Role) {
        self.0.state.lock().counts.slashed += 1;
        if self.is_honest(role) {
            self.broken(Rule::L1Judges, format!("{role} is slashed, and honest"));
        }
    }

    /// A role challenged hints that were right.
    pub fn challenge_failed(&self, role: Role) {
        if self.is_honest(role) {
            self.broken(Rule::L1Judges, format!("{role} challenged right hints"));
        }
    }

    /// Hints are final on L1.
    pub fn final_hints(&self, id: u64, wrong: bool) {
        self.0.state.lock().counts.final_hints += 1;
        if wrong {
            self.broken(Rule::L1Judges, format!("wrong hints are final: posting {id}"));
        }
    }

    /// How many blocks there may have been of a number: blocks give way where L1 makes a header, and where it declares a run
    /// void.
    pub fn histories(&self) -> usize {
        self.0.state.lock().histories()
    }

    /// How many answered envelopes have not ended.
    pub fn waiting(&self) -> usize {
        self.0.state.lock().waiting.len()
    }

    /// Everything should have ended by now.
    pub fn nothing_waits(&self) {
        let waiting: Vec<B256> = self.0.state.lock().waiting.keys().copied().collect();
        if !waiting.is_empty() {
            let detail = format!("no end of {} envelopes: {waiting:?}", waiting.len());
            self.broken(Rule::AnsweredEnvelopesEnd, detail);
        }
    }

    /// A role gave up and is started again.
    pub fn role_failed(&self, role: Role, why: &str) {
        self.0.state.lock().counts.failures += 1;
        self.0.trace.event(role, format_args!("gives up: {why}"));
        if why.contains("panicked") {
            self.broken(Rule::NoPanic, format!("{role}: {why}"));
        }
    }
}
