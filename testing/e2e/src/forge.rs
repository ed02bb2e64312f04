//! Forgeries that the relay puts on the wire, each once; and what members sign who are in on it.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Context, Result};
use blindfold::devnet::{Devnet, THRESHOLD};
use blindfold_bte::bls::SecretKey;
use blindfold_committee::key_file;
use blindfold_protocol::{
    B256, BatchHeader, BatchHints, Canonical, Certificate, Deployment, Epoch, HintEntry, SealedBatch,
    SigningKey,
    certificate::{aggregate, sign_acknowledgement},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::relay::Tamper;

/// As many members as make a certificate, who sign whatever they are asked to.
pub struct Colluding {
    keys: Vec<(u16, SecretKey)>,
    epoch: Epoch,
    deployment: Deployment,
}

impl Colluding {
    /// Members of the epoch of this number.
    ///
    /// # Errors
    /// When L1 does not know the epoch, or a key file cannot be opened.
    pub async fn of(devnet: &Devnet, number: u64) -> Result<Self> {
        let epoch = devnet.l1.epochs().await?.at(number).context("an epoch")?.clone();
        let keys = (1..=THRESHOLD).map(|member| Ok((member, member_key(devnet, member)?)));
        Ok(Self { keys: keys.collect::<Result<_>>()?, epoch, deployment: devnet.chain.deployment })
    }

    /// Their certificate of a header.
    ///
    /// # Errors
    /// When the epoch is not that of the number.
    pub fn certify(&self, number: u64, hash: B256) -> Result<Certificate> {
        let sign = |(member, key): &(u16, SecretKey)| {
            sign_acknowledgement(key, &self.deployment, self.epoch.epoch, number, hash, *member)
        };
        Ok(aggregate(&self.epoch, &self.keys.iter().map(sign).collect::<Vec<_>>())?)
    }
}

/// A certificate of a header, by members who sign whatever they are asked to.
///
/// # Errors
/// As [`Colluding::of`] and [`Colluding::certify`].
pub async fn colluding(devnet: &Devnet, header: &BatchHeader) -> Result<Certificate> {
    Colluding::of(devnet, header.number).await?.certify(header.number, header.hash())
}

/// The key that this member signs with.
///
/// # Errors
/// When its file cannot be opened.
pub fn member_key(devnet: &Devnet, member: u16) -> Result<SecretKey> {
    let password = fs::read_to_string(devnet.dir().join("password"))?;
    let path = devnet.dir().join(format!("committee/member-{member}.key"));
    Ok(key_file::open_bls_key(&path, password.trim().as_bytes(), None)?)
}

/// Which forgeries wait for their frame.
#[derive(Clone, Default)]
pub struct Forgeries(Arc<State>);

#[derive(Default)]
struct State {
    hint: AtomicBool,
    certificate: AtomicBool,
    /// Members that are to get a second header with the next one.
    second_header: Mutex<Vec<String>>,
}

impl Forgeries {
    /// The full node gets a wrong hint with the next hints that have one.
    pub fn arm_hint(&self) {
        self.0.hint.store(true, Ordering::SeqCst);
    }

    /// The full node gets a wrong certificate next.
    pub fn arm_certificate(&self) {
        self.0.certificate.store(true, Ordering::SeqCst);
    }

    /// These members get a second header for the next number, signed by the sequencer.
    pub fn arm_second_header(&self, members: &[&str]) {
        *self.0.second_header.lock() = members.iter().map(|&member| member.to_owned()).collect();
    }

    /// The rule for the relay. `sequencer` is the dishonest sequencer's own key.
    #[must_use]
    pub fn tamper(&self, sequencer: SigningKey, deployment: Deployment) -> Tamper {
        let state = self.0.clone();
        Box::new(move |role, text| {
            let message: Value = serde_json::from_str(text).ok()?;
            if message["method"] != "blind_subscription" {
                return None;
            }
            match role {
                "full-node" => forged_for_node(&state, &message),
                member if member.starts_with("member-") => {
                    with_second_header(&state, member, text, &message, &sequencer, &deployment)
                }
                _ => None,
            }
        })
    }
}

fn forged_for_node(state: &State, message: &Value) -> Option<Vec<String>> {
    let result = &message["params"]["result"];
    let mut forged = message.clone();
    if state.hint.load(Ordering::SeqCst)
        && let Some(hints) = result["hints"].as_str()
    {
        let mut hints = BatchHints::from_hex(hints).ok()?;
        let key = hints.entries.iter_mut().find_map(|entry| match entry {
            HintEntry::Key(key) => Some(key),
            _ => None,
        })?;
        key[0] ^= 1;
        state.hint.store(false, Ordering::SeqCst);
        forged["params"]["result"]["hints"] = json!(hints.to_hex());
        return Some(vec![forged.to_string()]);
    }
    if state.certificate.load(Ordering::SeqCst)
        && let Some(certificate) = result["certificate"].as_str()
    {
        let mut certificate = Certificate::from_hex(certificate).ok()?;
        // Another three members: the signature is not theirs.
        certificate.signers = if certificate.signers == 0b0111 { 0b1110 } else { 0b0111 };
        state.certificate.store(false, Ordering::SeqCst);
        forged["params"]["result"]["certificate"] = json!(certificate.to_hex());
        return Some(vec![forged.to_string()]);
    }
    None
}

fn with_second_header(
    state: &State,
    member: &str,
    text: &str,
    message: &Value,
    sequencer: &SigningKey,
    deployment: &Deployment,
) -> Option<Vec<String>> {
    let mut waiting = state.second_header.lock();
    let position = waiting.iter().position(|name| name == member)?;
    let sealed = message["params"]["result"]["sealed"].as_str()?;
    let mut sealed = SealedBatch::from_hex(sealed).ok()?;
    sealed.header.timestamp_ms += 1;
    sealed.signature = sequencer.sign(&sealed.header.signing_digest(deployment));
    waiting.remove(position);
    let mut second = message.clone();
    second["params"]["result"]["sealed"] = json!(sealed.to_hex());
    second["params"]["result"]["hash"] = json!(sealed.header.hash());
    Some(vec![text.to_owned(), second.to_string()])
}
