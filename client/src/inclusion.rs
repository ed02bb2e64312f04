//! Checks of what others say about an envelope: promise, header, certificate, place, hint. Nothing here trusts a server.

use alloy_primitives::{Address, B256, keccak256};
use blindfold_bte::SessionKey;
use blindfold_protocol::{
    BatchHints, Canonical, ChainConfig, Envelope, Epochs, HintEntry, Promise, SealedBatch, Verdict,
    certificate,
    fault::{CODE_ACCEPTED, CODE_VOID},
    merkle, signature,
    validity::item_leaf,
};
use blindfold_rpc::types::BatchInfo;
use serde::Serialize;

use crate::committee_key::CommitteeKey;

/// What was found right about an envelope; each field has been checked, not asked, but for one value of
/// [`HintFinding`] that says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inclusion {
    /// Id of the envelope.
    pub id: B256,
    /// Number of the batch that holds it.
    pub number: u64,
    /// Hash of that batch's certified header.
    pub header_hash: B256,
    /// Its index in the batch.
    pub index: u32,
    /// Members that signed the certificate.
    pub signers: u32,
    /// What the hint, if there is one, proves.
    pub hint: HintFinding,
}

/// What the hint of an envelope proves. That an envelope was skipped is certified with the header, whose root binds every
/// verdict. That it is malformed needs the public parameters to check, which a full node has and a wallet does not: this
/// one is the node's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HintFinding {
    /// The batch has no hints yet.
    NotYet,
    /// Re-encryption gives exactly this ciphertext.
    WellFormed,
    /// Skipped by rule, as the committee certified.
    Skipped,
    /// The node calls it malformed.
    Malformed,
}

/// What is wrong with what a server said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InclusionError {
    /// A structure does not decode.
    #[error("the server's {0} does not decode")]
    Undecodable(&'static str),
    /// The promise is for another envelope.
    #[error("the promise names envelope {0}")]
    PromiseOfAnother(B256),
    /// The promise is not the sequencer's.
    #[error("the promise is not signed by the sequencer {0}")]
    PromiseSignature(Address),
    /// The promise names a batch that may not hold the envelope any more: it promises nothing.
    #[error("the promise names batch {seal_by}, after the envelope's expiry {expiry}")]
    PromiseTooLate {
        /// The number that was promised.
        seal_by: u64,
        /// The number of the envelope's expiry.
        expiry: u64,
    },
    /// The batch is not the one asked for.
    #[error("the server gave batch {got} for {asked}")]
    WrongBatch {
        /// The number that was asked for.
        asked: u64,
        /// The number that was given.
        got: u64,
    },
    /// The header is not the sequencer's.
    #[error("the header is not signed by the sequencer {0}")]
    HeaderSignature(Address),
    /// The items, with the verdicts on them, do not hash to the header's root.
    #[error("the batch's items and verdicts do not match the header's envelope root")]
    Root,
    /// The batch does not hold the envelope.
    #[error("the batch does not hold the envelope")]
    Absent,
    /// There is no certificate yet.
    #[error("the batch has no certificate yet")]
    NotCertified,
    /// The certificate does not certify this header by this committee.
    #[error("the certificate is invalid")]
    Certificate,
    /// The hints are of another batch, or their count is wrong.
    #[error("the hints do not belong to the batch")]
    Hints,
    /// The hint does not re-encrypt to the ciphertext.
    #[error("the hint does not re-encrypt to the ciphertext")]
    WrongHint,
}

/// Checks a promise to seal an envelope by whom L1 holds for the sequencer; gives the number by which it is to be sealed.
///
/// # Errors
/// [`InclusionError::PromiseOfAnother`], [`InclusionError::PromiseSignature`], [`InclusionError::PromiseTooLate`].
pub fn check_promise(
    chain: &ChainConfig,
    registered: &Epochs,
    envelope: &Envelope,
    promise: &Promise,
) -> Result<u64, InclusionError> {
    let seal_by = check_promised(envelope, promise)?;
    let sequencer = registered.sequencer_at(registered.read_at()).unwrap_or(chain.sequencer);
    match signature::recover(&promise.signing_digest(&chain.deployment), &promise.signature) {
        Ok(signer) if signer == sequencer => Ok(seal_by),
        _ => Err(InclusionError::PromiseSignature(sequencer)),
    }
}

/// What of that needs no L1: whatever but the signature.
pub(crate) fn check_promised(envelope: &Envelope, promise: &Promise) -> Result<u64, InclusionError> {
    // The very bytes: a promise for a copy with another proof or signature would be kept by what nobody accepts.
    if promise.envelope_id != envelope.id() || promise.item_hash != keccak256(envelope.encode()) {
        return Err(InclusionError::PromiseOfAnother(promise.envelope_id));
    }
    let (seal_by, expiry) = (promise.seal_by, envelope.header.expiry.number());
    if seal_by > expiry { Err(InclusionError::PromiseTooLate { seal_by, expiry }) } else { Ok(seal_by) }
}

/// Checks everything about the place of envelope `id` in the batch that a server gave.
///
/// # Errors
/// Every variant but those of promises.
pub fn check_inclusion(
    chain: &ChainConfig,
    committee: &CommitteeKey,
    id: B256,
    number: u64,
    batch: &BatchInfo,
) -> Result<Inclusion, InclusionError> {
    let sealed = &batch.sealed.decode().map_err(|_| InclusionError::Undecodable("sealed batch"))?;
    if sealed.header.number != number {
        return Err(InclusionError::WrongBatch { asked: number, got: sealed.header.number });
    }
    let named = committee.registered.sequencer_at(sealed.header.l1_origin_number);
    let sequencer = named.unwrap_or(chain.sequencer);
    match signature::recover(&sealed.header.signing_digest(&chain.deployment), &sealed.signature) {
        Ok(signer) if signer == sequencer => {}
        _ => return Err(InclusionError::HeaderSignature(sequencer)),
    }
    let (index, accepted) = check_root(sealed, &batch.verdicts, id)?;
    let header_hash = sealed.header.hash();
    let certificate = batch.certificate.as_ref().ok_or(InclusionError::NotCertified)?;
    let certificate = certificate.decode().map_err(|_| InclusionError::Undecodable("certificate"))?;
    let names_this = certificate.number == number && certificate.header_hash == header_hash;
    if !names_this || certificate::verify(&certificate, &committee.epoch, &chain.deployment).is_err() {
        return Err(InclusionError::Certificate);
    }
    let hint = match &batch.hints {
        _ if !accepted => HintFinding::Skipped,
        None => HintFinding::NotYet,
        Some(hints) => {
            let hints = hints.decode().map_err(|_| InclusionError::Undecodable("hints"))?;
            check_hint(committee, sealed, header_hash, index, &hints)?
        }
    };
    Ok(Inclusion { id, number, header_hash, index, signers: certificate.signers.count_ones(), hint })
}

/// The index of the envelope, and whether it is accepted.
fn check_root(
    sealed: &SealedBatch,
    verdicts: &[Option<String>],
    id: B256,
) -> Result<(u32, bool), InclusionError> {
    let mut index = None;
    if verdicts.len() != sealed.items.len() {
        return Err(InclusionError::Root);
    }
    let mut leaves = Vec::with_capacity(sealed.items.len());
    for (position, (item, verdict)) in sealed.items.iter().zip(verdicts).enumerate() {
        let code = Verdict::code_of_reason(verdict.as_deref()).ok_or(InclusionError::Root)?;
        let envelope = Envelope::decode(item).ok().filter(|_| code != CODE_VOID);
        let item_id = envelope.map_or(B256::ZERO, |envelope| envelope.id());
        if item_id == id && index.is_none() {
            index = u32::try_from(position).ok().map(|position| (position, code == CODE_ACCEPTED));
        }
        leaves.push(item_leaf(&item_id, &keccak256(item), code));
    }
    let counted = usize::try_from(sealed.header.envelope_count) == Ok(leaves.len());
    if !counted || merkle::root(&leaves) != sealed.header.envelope_root {
        return Err(InclusionError::Root);
    }
    index.ok_or(InclusionError::Absent)
}

fn check_hint(
    committee: &CommitteeKey,
    sealed: &SealedBatch,
    header_hash: B256,
    index: u32,
    hints: &BatchHints,
) -> Result<HintFinding, InclusionError> {
    let number = sealed.header.number;
    if hints.number != number || hints.header_hash != header_hash || hints.entries.len() != sealed.items.len()
    {
        return Err(InclusionError::Hints);
    }
    let index = index as usize;
    let (Some(entry), Some(item)) = (hints.entries.get(index), sealed.items.get(index)) else {
        return Err(InclusionError::Hints);
    };
    match entry {
        // Certified as accepted.
        HintEntry::Skipped => Err(InclusionError::Hints),
        HintEntry::Malformed(_) => Ok(HintFinding::Malformed),
        HintEntry::Key(key) => {
            let envelope = Envelope::decode(item).map_err(|_| InclusionError::WrongHint)?;
            let ad = envelope.header.hash();
            committee
                .key
                .open_hint(&ad.0, &envelope.ciphertext, &SessionKey::from_bytes(*key))
                .map(|_| HintFinding::WellFormed)
                .map_err(|_| InclusionError::WrongHint)
        }
    }
}
