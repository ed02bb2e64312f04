//! The half of the validity rule that looks at an item by itself.

use crate::codec::Canonical;
use crate::config::ChainConfig;
use crate::envelope::{Envelope, EnvelopeHeader};
use crate::epoch::Epoch;
use crate::fault::EnvelopeError;
use crate::limits::{EXPIRY_WINDOW, SIZE_BUCKETS};
use crate::merkle;
use crate::signature::recover_all;
use alloy_primitives::{B256, keccak256};
use blindfold_bte::{CiphertextPoint, ProofError, verify_proofs};
use rand_core::CryptoRng;

/// An item that decodes and whose fields and signature hold; its proof has not been looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticEnvelope {
    /// The envelope as it was decoded.
    pub envelope: Envelope,
    /// The envelope's id: [`Envelope::id`].
    pub id: B256,
    /// Hash of its header: the ciphertext's associated data.
    pub ad: B256,
    /// Length of the item, in bytes.
    pub item_bytes: u32,
    /// keccak256 of the item's bytes.
    pub item_hash: B256,
}

/// An item that is valid by itself, for the epoch it was checked against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedEnvelope {
    /// The envelope as it was decoded.
    pub envelope: Envelope,
    /// The envelope's id: [`Envelope::id`].
    pub id: B256,
    /// Hash of its header: the ciphertext's associated data.
    pub ad: B256,
    /// C, decoded and checked to be in its group.
    pub point: CiphertextPoint,
    /// Length of the item, in bytes.
    pub item_bytes: u32,
    /// keccak256 of the item's bytes.
    pub item_hash: B256,
}

/// An item that is skipped whatever the state of the chain, with what the header still counts of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RejectedItem {
    /// The first fault that does not depend on the batch.
    pub fault: EnvelopeError,
    /// Id, or zero when the item does not decode.
    pub id: B256,
    /// Length of the item, in bytes.
    pub item_bytes: u32,
    /// keccak256 of the item's bytes.
    pub item_hash: B256,
    /// The number at which the envelope expires, when the rule looks at expiry and duplicates before this fault.
    pub expiry: Option<u64>,
    /// The envelope's gas limit, which a forced envelope is judged by before this fault; 0 when it does not matter.
    pub gas_limit: u64,
}

/// What [`check_items`] says of one item.
pub type CheckedItem = Result<CheckedEnvelope, RejectedItem>;

/// Leaf of an item in the envelope tree: `id ‖ keccak256(item bytes) ‖ verdict code`, 65 bytes (HS-6).
pub fn item_leaf(id: &B256, item_hash: &B256, code: u8) -> B256 {
    merkle::leaf(&[id.as_slice(), item_hash.as_slice(), &[code]].concat())
}

/// Id, length and hash of an item, whether it holds or not.
pub(super) fn item_facts(item: &CheckedItem) -> (B256, u32, B256) {
    match item {
        Ok(checked) => (checked.id, checked.item_bytes, checked.item_hash),
        Err(rejected) => (rejected.id, rejected.item_bytes, rejected.item_hash),
    }
}

/// The faults of the header's fields and of E's length, up to `gas_limit_too_high`.
pub(super) fn check_fields(
    config: &ChainConfig,
    epoch: &Epoch,
    header: &EnvelopeHeader,
    message_bytes: usize,
) -> Result<(), EnvelopeError> {
    if header.chain_id != config.chain_id {
        return Err(EnvelopeError::WrongChain);
    }
    if header.deployment != config.deployment {
        return Err(EnvelopeError::WrongDeployment);
    }
    if header.epoch != epoch.epoch {
        return Err(EnvelopeError::WrongEpoch);
    }
    if header.encryption_key_hash != epoch.encryption_key_hash {
        return Err(EnvelopeError::WrongEncryptionKey);
    }
    if header.flags != 0 {
        return Err(EnvelopeError::UnknownFlags);
    }
    if !SIZE_BUCKETS.contains(&message_bytes) {
        return Err(EnvelopeError::BadSize);
    }
    if header.gas_limit > config.second_gas_limit() {
        return Err(EnvelopeError::GasLimitTooHigh);
    }
    Ok(())
}

/// `expired` and `expiry_too_far` of an expiry's number for a batch number of this epoch.
pub fn check_expiry(expiry: u64, number: u64, epoch: &Epoch) -> Result<(), EnvelopeError> {
    if expiry < number {
        return Err(EnvelopeError::Expired);
    }
    // Saturating: beyond 2^64 batches there is no expiry that is too far.
    if expiry > number.saturating_add(EXPIRY_WINDOW) || expiry > epoch.last {
        return Err(EnvelopeError::ExpiryTooFar);
    }
    Ok(())
}

/// [`check_expiry`] for a forced envelope: its expiry may be as far as the epoch's last number (FI-5).
pub fn check_forced_expiry(expiry: u64, number: u64, epoch: &Epoch) -> Result<(), EnvelopeError> {
    if expiry < number {
        return Err(EnvelopeError::Expired);
    }
    if expiry > epoch.last { Err(EnvelopeError::ExpiryTooFar) } else { Ok(()) }
}

/// Decodes and checks the fields (V-11).
fn check_encoding(config: &ChainConfig, epoch: &Epoch, item: &[u8]) -> Result<StaticEnvelope, RejectedItem> {
    let item_hash = keccak256(item);
    // Saturating: an item that long is far above the largest envelope, which makes the header itself invalid.
    let item_bytes = u32::try_from(item.len()).unwrap_or(u32::MAX);
    let rejected = |fault, id| RejectedItem { fault, id, item_bytes, item_hash, expiry: None, gas_limit: 0 };

    let Ok(envelope) = Envelope::decode(item) else {
        return Err(rejected(EnvelopeError::Undecodable, B256::ZERO));
    };
    let id = envelope.id();
    let header = &envelope.header;
    check_fields(config, epoch, header, envelope.ciphertext.e.len()).map_err(|fault| rejected(fault, id))?;
    let ad = header.hash();
    Ok(StaticEnvelope { envelope, id, ad, item_bytes, item_hash })
}

/// Decodes and checks fields and signatures (V-11, V-12), each item of its epoch. All signatures at once.
fn check_static_parts<'a>(
    config: &ChainConfig,
    items: impl Iterator<Item = (&'a Epoch, &'a [u8])>,
) -> Vec<Result<StaticEnvelope, RejectedItem>> {
    let mut parts: Vec<_> = items.map(|(epoch, item)| check_encoding(config, epoch, item)).collect();
    // The id binds the deployment, so the digest can be made from it.
    let signed: Vec<_> = parts
        .iter()
        .flatten()
        .map(|item| (config.deployment.digest(&item.id), item.envelope.fee_signature))
        .collect();
    let mut signers = recover_all(&signed).into_iter();
    for part in &mut parts {
        let Ok(item) = part else { continue };
        let header = &item.envelope.header;
        // One signer for each that is left.
        if signers.next() != Some(Ok(header.payer)) {
            *part = Err(RejectedItem {
                fault: EnvelopeError::InvalidFeeSignature,
                id: item.id,
                item_bytes: item.item_bytes,
                item_hash: item.item_hash,
                expiry: Some(header.expiry.number()),
                gas_limit: header.gas_limit,
            });
        }
    }
    parts
}

/// Everything that admission can say of an envelope for a batch number without looking at proof or ledger, in the
/// rule's order. About 0.1 ms, the signature.
///
/// # Errors
/// The first rule that it breaks.
pub fn check_static(
    config: &ChainConfig,
    epoch: &Epoch,
    number: u64,
    item: &[u8],
) -> Result<StaticEnvelope, EnvelopeError> {
    let checked = check_static_all(config, &[(epoch, number, item)]).pop();
    checked.unwrap_or(Err(EnvelopeError::Undecodable))
}

/// [`check_static`] of each, for its epoch and number: signatures of eight and more take a fifth of the time where the
/// processor has AVX-512 IFMA.
pub fn check_static_all(
    config: &ChainConfig,
    items: &[(&Epoch, u64, &[u8])],
) -> Vec<Result<StaticEnvelope, EnvelopeError>> {
    let parts = check_static_parts(config, items.iter().map(|(epoch, _, item)| (*epoch, *item)));
    let judged = parts.into_iter().zip(items).map(|(part, (epoch, number, _))| match part {
        Ok(envelope) => {
            check_expiry(envelope.envelope.header.expiry.number(), *number, epoch)?;
            Ok(envelope)
        }
        Err(RejectedItem { fault, expiry, .. }) => {
            if let Some(expiry) = expiry {
                check_expiry(expiry, *number, epoch)?;
            }
            Err(fault)
        }
    });
    judged.collect()
}

/// Verifies the proofs of many envelopes at once, each result in its place (V-12).
pub fn check_proofs<R: CryptoRng + ?Sized>(envelopes: Vec<StaticEnvelope>, rng: &mut R) -> Vec<CheckedItem> {
    let proofs: Vec<_> =
        envelopes.iter().map(|item| (&item.ad.0, &item.envelope.ciphertext, &item.envelope.proof)).collect();
    let verified = verify_proofs(rng, &proofs);
    assert_eq!(verified.len(), envelopes.len(), "one result for each proof");
    envelopes
        .into_iter()
        .zip(verified)
        .map(|(item, result)| {
            let StaticEnvelope { envelope, id, ad, item_bytes, item_hash } = item;
            match result {
                Ok(point) => Ok(CheckedEnvelope { envelope, id, ad, point, item_bytes, item_hash }),
                Err(error) => {
                    let fault = match error {
                        ProofError::Header(_) => EnvelopeError::InvalidPoint,
                        ProofError::Commitment(_) | ProofError::Response | ProofError::Equation => {
                            EnvelopeError::InvalidProof
                        }
                    };
                    let (expiry, gas_limit) =
                        (Some(envelope.header.expiry.number()), envelope.header.gas_limit);
                    Err(RejectedItem { fault, id, item_bytes, item_hash, expiry, gas_limit })
                }
            }
        })
        .collect()
}

/// Checks items by themselves: decoding, fields, signature, and all proofs in one batch.
///
/// Depends on chain, epoch and bytes alone, so results can be kept for the whole epoch. About 0.2 ms an item.
pub fn check_items<R: CryptoRng + ?Sized>(
    config: &ChainConfig,
    epoch: &Epoch,
    items: &[&[u8]],
    rng: &mut R,
) -> Vec<CheckedItem> {
    let parts = check_static_parts(config, items.iter().map(|item| (epoch, *item)));
    join_proofs(parts, rng)
}

/// [`check_items`] with the signatures spread over this many threads; the proofs use the caller's rayon pool.
/// On wasm there are no threads, and this is [`check_items`].
pub fn check_items_parallel<R: CryptoRng + ?Sized>(
    config: &ChainConfig,
    epoch: &Epoch,
    items: &[&[u8]],
    rng: &mut R,
    threads: usize,
) -> Vec<CheckedItem> {
    let chunk = items.len().div_ceil(threads.max(1)).max(1);
    if cfg!(target_family = "wasm") || chunk == items.len() {
        return check_items(config, epoch, items, rng);
    }
    let mut parts = vec![Vec::new(); items.len().div_ceil(chunk)];
    std::thread::scope(|scope| {
        for (items, part) in items.chunks(chunk).zip(&mut parts) {
            scope.spawn(move || {
                *part = check_static_parts(config, items.iter().map(|item| (epoch, *item)));
            });
        }
    });
    // The scope has joined every thread, and a panic in one would have come through.
    join_proofs(parts.into_iter().flatten().collect(), rng)
}

/// Checks the proofs of the items that have passed so far and puts the results back in order.
fn join_proofs<R: CryptoRng + ?Sized>(
    parts: Vec<Result<StaticEnvelope, RejectedItem>>,
    rng: &mut R,
) -> Vec<CheckedItem> {
    let mut rejected = Vec::with_capacity(parts.len());
    let mut passed = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Ok(envelope) => {
                passed.push(envelope);
                rejected.push(None);
            }
            Err(fault) => rejected.push(Some(fault)),
        }
    }
    let mut proved = check_proofs(passed, rng).into_iter();
    rejected
        .into_iter()
        .filter_map(|fault| fault.map_or_else(|| proved.next(), |fault| Some(Err(fault))))
        .collect()
}
