//! Who lies: a role runs as it is, and what it says goes out as something else. It has the keys of those it speaks for, so
//! what it makes up is signed as it should be.

use std::{collections::BTreeMap, sync::Arc};

use alloy_primitives::{B256, keccak256};
use blindfold_bte::bls::SecretKey;
use blindfold_protocol::{
    Acknowledgement, BatchHeader, BatchHints, Deployment, HintEntry, Promise, Release, ReleaseShare,
    SealedBatch, SigningKey, SingletonShare, certificate::sign_acknowledgement,
};
use blindfold_rpc::{
    Encoded, Topic,
    types::{BatchInfo, BatchState, CommitteeStatus, HeaderNotification, SentEnvelope},
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use crate::{
    Role, Trace,
    faults::{Fault, Faults},
    plants::Plant,
};

/// The epoch of a run.
const EPOCH: u64 = 1;
/// A promise that cannot be kept is of so many numbers before the right one.
const TOO_EARLY: u64 = 4;
/// How far ahead a member claims to be that is not.
const AHEAD: u64 = 1_000;

/// How a role lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lie {
    /// A member acknowledges a second header for each number: the one that a sequencer shows to others, or any.
    VotesTwice,
    /// A member gives no shares.
    WithholdsShares,
    /// A member gives shares that are points and no shares.
    WrongShares,
    /// A member's votes do not verify, and its answers are nonsense, or those to other questions.
    Garbage,
    /// A hint publisher sends wrong keys, wrong verdicts, and releases that are none.
    WrongHints,
    /// The sequencer shows other headers to some members, each as valid as the one that it shows to everybody else.
    Equivocates {
        /// To whom.
        members: Vec<u16>,
        /// How many headers in a row.
        headers: usize,
    },
}

/// What Byzantine roles say. Clones are the same.
#[derive(Clone)]
pub struct Byzantine(Arc<Shared>);

struct Shared {
    deployment: Deployment,
    sequencer: SigningKey,
    members: Vec<SecretKey>,
    plant: Option<Plant>,
    faults: Faults,
    trace: Trace,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What the sequencer shows to some, oldest first.
    branch: Vec<BatchHeader>,
    /// What each said last to each kind of question.
    last: BTreeMap<(Role, String), Value>,
}

#[derive(Deserialize)]
struct Answered<T> {
    result: Option<T>,
}

fn result<T: DeserializeOwned>(answer: &RawValue) -> Option<T> {
    serde_json::from_str::<Answered<T>>(answer.get()).ok()?.result
}

fn answer(result: &impl Serialize) -> Option<Box<RawValue>> {
    to_raw_value(&json!({ "jsonrpc": "2.0", "id": 0, "result": result })).ok()
}

fn refusal() -> Option<Box<RawValue>> {
    let error = json!({ "code": -38_003, "message": "later", "data": { "reason": "later", "retry": true } });
    to_raw_value(&json!({ "jsonrpc": "2.0", "id": 0, "error": error })).ok()
}

fn request(method: &str, params: &impl Serialize) -> Option<String> {
    let request = json!({ "jsonrpc": "2.0", "id": 0, "method": method, "params": params });
    serde_json::to_string(&request).ok()
}

/// One of so many, always the same for the same bytes.
fn choice(bytes: &[u8], of: usize) -> usize {
    usize::from(keccak256(bytes)[0]) % of
}

/// What goes out in the place of a call.
#[derive(Default)]
pub struct Said {
    /// Another request.
    pub instead: Option<String>,
    /// One more.
    pub also: Option<String>,
}

impl Byzantine {
    /// Whoever lies has these keys.
    pub fn new(
        deployment: Deployment,
        sequencer: SigningKey,
        members: Vec<SecretKey>,
        plant: Option<Plant>,
        faults: Faults,
        trace: Trace,
    ) -> Self {
        Self(Arc::new(Shared {
            deployment,
            sequencer,
            members,
            plant,
            faults,
            trace,
            state: Mutex::default(),
        }))
    }

    fn lies(&self, role: Role) -> Vec<Lie> {
        let mut lies = Vec::new();
        self.0.faults.each(|fault, _| match fault {
            Fault::Lies { role: faulty, how } if *faulty == role => lies.push(how.clone()),
            _ => {}
        });
        // What an honest role does that has a bug.
        if (self.0.plant, role) == (Some(Plant::VotesTwice), Role::Member(1)) {
            lies.push(Lie::VotesTwice);
        }
        lies
    }

    fn lies_so(&self, role: Role, how: &Lie) -> bool {
        self.0.faults.any(
            |fault| matches!(fault, Fault::Lies { role: faulty, how: so } if *faulty == role && so == how),
        )
    }

    /// What a role sends in place of this call, and beside it.
    pub fn call(&self, from: Role, method: &str, params: &str) -> Said {
        match (from, method) {
            (Role::Member(member), "blind_submitAcknowledgement") => self.vote(from, member, params),
            (Role::Publisher(_), "blind_submitHints") if self.lies_so(from, &Lie::WrongHints) => {
                let instead = wrong_hints(params).and_then(|params| request(method, &params));
                self.0.trace.event(from, format_args!("lies of hints"));
                Said { instead, also: None }
            }
            _ => Said::default(),
        }
    }

    fn vote(&self, from: Role, member: u16, params: &str) -> Said {
        const METHOD: &str = "blind_submitAcknowledgement";
        let Some(real) = serde_json::from_str::<(Encoded<Acknowledgement>,)>(params).ok() else {
            return Said::default();
        };
        let Ok(real) = real.0.decode() else { return Said::default() };
        let key = &self.0.members[usize::from(member - 1)];
        let sign = |number, hash| sign_acknowledgement(key, &self.0.deployment, EPOCH, number, hash, member);
        let send = |vote: &Acknowledgement| request(METHOD, &(Encoded::new(vote),));
        let mut said = Said::default();
        for lie in self.lies(from) {
            match lie {
                Lie::VotesTwice => {
                    let twin = self.twin(real.number).filter(|twin| *twin != real.header_hash);
                    let other = twin.unwrap_or_else(|| keccak256(real.header_hash));
                    self.0.trace.event(from, format_args!("votes for {other}, too"));
                    said.also = send(&sign(real.number, other));
                }
                Lie::Garbage => {
                    self.0.trace.event(from, format_args!("votes without a signature"));
                    let signature = sign(real.number, B256::ZERO).signature;
                    said.instead = send(&Acknowledgement { signature, ..real });
                }
                _ => {}
            }
        }
        said
    }

    /// What a role answers in place of this answer.
    pub fn answer(
        &self,
        from: Role,
        to: Role,
        method: &str,
        params: &str,
        truth: &RawValue,
    ) -> Option<Box<RawValue>> {
        let answer = match (from, to) {
            (Role::Member(1), _) if self.0.plant == Some(Plant::OtherShare) => other_share(method, truth),
            (Role::Member(member), _) => self.of_member(member, method, params, truth),
            (Role::Sequencer, Role::User(_)) if self.0.plant == Some(Plant::PromisesTooEarly) => {
                self.early_promise(truth)
            }
            (Role::Sequencer, Role::Member(member)) if method == "blind_getBatch" => {
                self.other_batch(member, truth)
            }
            _ => None,
        };
        if answer.is_some() {
            self.0.trace.event(from, format_args!("lies to {to} {method}"));
        }
        answer
    }

    fn of_member(&self, member: u16, method: &str, params: &str, truth: &RawValue) -> Option<Box<RawValue>> {
        let role = Role::Member(member);
        let mut lie = None;
        for how in self.lies(role) {
            lie = match how {
                Lie::WithholdsShares if matches!(method, "committee_getShare" | "committee_getSingleton") => {
                    refusal()
                }
                Lie::WrongShares => self.wrong_share(member, method, truth),
                Lie::Garbage => self.garbage(role, method, params, truth),
                _ => None,
            }
            .or(lie);
        }
        lie
    }

    /// Points that nobody can tell from shares without a pairing.
    fn wrong_share(&self, member: u16, method: &str, truth: &RawValue) -> Option<Box<RawValue>> {
        let key = &self.0.members[usize::from(member - 1)];
        match method {
            "committee_getShare" => {
                let mut share = result::<Encoded<ReleaseShare>>(truth)?.decode().ok()?;
                for pd in &mut share.pds {
                    *pd = key.sign(&keccak256(*pd).0).to_bytes();
                }
                answer(&Encoded::new(&share))
            }
            "committee_getSingleton" => {
                let mut share = result::<Encoded<SingletonShare>>(truth)?.decode().ok()?;
                share.share = key.sign(&keccak256(share.share).0).to_bytes();
                answer(&Encoded::new(&share))
            }
            _ => None,
        }
    }

    fn garbage(&self, role: Role, method: &str, params: &str, truth: &RawValue) -> Option<Box<RawValue>> {
        let said: Value = result(truth)?;
        let kind = [method, params, truth.get()].concat();
        let before = self.0.state.lock().last.insert((role, method.to_owned()), said.clone());
        match choice(kind.as_bytes(), 6) {
            0 => answer(&Value::Null),
            1 => answer(&"0x"),
            2 => refusal(),
            // The answer to another question.
            3 => answer(&before?),
            4 => match said {
                Value::String(hex) => answer(&&hex[..hex.len() / 4 * 2]),
                _ => answer(&json!([member_of(&said), 1, { "sealed": "0x02" }])),
            },
            _ => {
                let mut status: CommitteeStatus = serde_json::from_value(said).ok()?;
                status.certified += AHEAD;
                status.acknowledged += AHEAD;
                answer(&status)
            }
        }
    }

    /// What a role tells a follower in place of this notification.
    pub fn notification(
        &self,
        from: Role,
        to: Role,
        topic: Topic,
        truth: &RawValue,
    ) -> Option<Box<RawValue>> {
        let (Role::Sequencer, Role::Member(member), Topic::Headers) = (from, to, topic) else { return None };
        let mut notification: Value = serde_json::from_str(truth.get()).ok()?;
        let said: HeaderNotification =
            serde_json::from_value(notification.pointer("/params/result")?.clone()).ok()?;
        let other = self.other(member, &said.sealed.decode().ok()?)?;
        self.0.trace.event(from, format_args!("shows {to} {} for {}", other.header.hash(), said.number));
        let said = HeaderNotification { hash: other.header.hash(), sealed: Encoded::new(&other), ..said };
        *notification.pointer_mut("/params/result")? = serde_json::to_value(said).ok()?;
        to_raw_value(&notification).ok()
    }

    fn early_promise(&self, truth: &RawValue) -> Option<Box<RawValue>> {
        let sent: SentEnvelope = result(truth)?;
        let promise = sent.promise.as_ref()?.decode().ok()?;
        let Promise { envelope_id, item_hash, seal_by, .. } = promise;
        let seal_by = seal_by.saturating_sub(TOO_EARLY);
        let early = Promise::sign(&self.0.sequencer, &self.0.deployment, envelope_id, item_hash, seal_by);
        answer(&SentEnvelope { promise: Some(Encoded::new(&early)), ..sent })
    }

    fn other_batch(&self, member: u16, truth: &RawValue) -> Option<Box<RawValue>> {
        let said: BatchInfo = result(truth)?;
        let other = self.other(member, &said.sealed.decode().ok()?)?;
        answer(&BatchInfo {
            hash: other.header.hash(),
            timestamp_ms: other.header.timestamp_ms,
            state: BatchState::Sealed,
            sealed: Encoded::new(&other),
            certificate: None,
            release: None,
            hints: None,
            ..said
        })
    }

    /// The hash of the other header of a number.
    fn twin(&self, number: u64) -> Option<B256> {
        let state = self.0.state.lock();
        state.branch.iter().find(|header| header.number == number).map(BatchHeader::hash)
    }

    /// What this member is shown in the place of a batch. The branch begins at the first batch that is asked for.
    fn other(&self, member: u16, real: &SealedBatch) -> Option<SealedBatch> {
        let mut most = 0;
        if self.0.plant == Some(Plant::ShowsTwoHeaders) && member == 1 {
            most = usize::MAX;
        }
        self.0.faults.each(|fault, _| match fault {
            Fault::Lies { how: Lie::Equivocates { members, headers }, .. } if members.contains(&member) => {
                most = most.max(*headers);
            }
            _ => {}
        });
        let mut state = self.0.state.lock();
        let branch = &mut state.branch;
        let known = branch.iter().find(|header| header.number == real.header.number).copied();
        let header = match (known, branch.last()) {
            _ if most == 0 => return None,
            (Some(header), _) => header,
            (None, Some(last)) if last.number + 1 != real.header.number || branch.len() >= most => {
                return None;
            }
            (None, last) => {
                let parent_hash = last.map_or(real.header.parent_hash, BatchHeader::hash);
                // Of the same second, so that it has the same fees.
                let timestamp_ms = match real.header.timestamp_ms {
                    last_ms if last_ms % 1_000 == 999 => last_ms - 1,
                    timestamp_ms => timestamp_ms + 1,
                };
                let header = BatchHeader { parent_hash, timestamp_ms, ..real.header };
                branch.push(header);
                header
            }
        };
        drop(state);
        let signature = header.sign(&self.0.sequencer, &self.0.deployment).signature;
        Some(SealedBatch { header, signature, items: real.items.clone() })
    }
}

/// A share with another batch's number.
fn other_share(method: &str, truth: &RawValue) -> Option<Box<RawValue>> {
    if method != "committee_getShare" {
        return None;
    }
    let mut share = result::<Encoded<ReleaseShare>>(truth)?.decode().ok()?;
    share.number += 1;
    answer(&Encoded::new(&share))
}

fn member_of(said: &Value) -> &Value {
    said.get("member").unwrap_or(&Value::Null)
}

/// A release and hints, of which one is wrong.
fn wrong_hints(params: &str) -> Option<(Encoded<Release>, Encoded<BatchHints>)> {
    let (release, hints): (Encoded<Release>, Encoded<BatchHints>) = serde_json::from_str(params).ok()?;
    let (mut release, mut hints) = (release.decode().ok()?, hints.decode().ok()?);
    let kind = choice(release.header_hash.as_slice(), 4);
    // A point, and not the one that is asked for.
    let point = release.pds.first().copied().unwrap_or([0xc0; 48]);
    if kind == 0 {
        release.pds.iter_mut().for_each(|pd| pd[20] ^= 1);
    }
    for entry in &mut hints.entries {
        *entry = match (kind, *entry) {
            (1, HintEntry::Key(mut key)) => {
                key[0] ^= 1;
                HintEntry::Key(key)
            }
            (2, HintEntry::Key(_)) => HintEntry::Malformed(point),
            (3, HintEntry::Key(_)) => HintEntry::Skipped,
            (_, HintEntry::Malformed(_)) => HintEntry::Key([1; 16]),
            (_, entry) => entry,
        };
    }
    Some((Encoded::new(&release), Encoded::new(&hints)))
}
