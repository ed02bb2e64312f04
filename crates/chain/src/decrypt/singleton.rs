//! Proving malformed envelopes: their singleton releases, from t members each.

use std::{collections::BTreeMap, sync::Arc};

use blindfold_bte::{Blinding, G1_BYTES, Opening};
use blindfold_protocol::{HintEntry, SingletonShare};
use futures::{StreamExt, TryStreamExt, stream};

use super::{AcceptedItem, BatchView, DecryptError, SINGLETON_SHARES, ShareMembers};
use crate::EpochParameters;

/// What is published of an item that did not open: normally its singleton release, and the blinding factor of that.
pub(super) type Proof = (HintEntry, Blinding);

/// The proofs of the accepted items at `positions`, which did not open.
///
/// The positions of the batch are known to be right by now, so a member whose share does not verify is faulty. One that
/// gives a share of another header is not: it is shown no certificate, and where L1 made a header below this batch
/// meanwhile, honest members hold another one.
pub(super) async fn prove_malformed(
    view: &Arc<BatchView>,
    positions: Vec<usize>,
    parameters: &EpochParameters,
    members: &ShareMembers,
    parallel: usize,
) -> Result<BTreeMap<usize, Proof>, DecryptError> {
    stream::iter(positions)
        .map(|position| async move {
            let item = view.accepted.get(position).ok_or(DecryptError::Stopped)?;
            Ok((position, prove_one(view, item, parameters, members).await?))
        })
        .buffer_unordered(parallel)
        .try_collect()
        .await
}

async fn prove_one(
    view: &Arc<BatchView>,
    item: &AcceptedItem,
    parameters: &EpochParameters,
    members: &ShareMembers,
) -> Result<Proof, DecryptError> {
    let epoch = parameters.epoch();
    let threshold = usize::from(epoch.threshold);
    let count = u16::try_from(epoch.members.len()).unwrap_or(u16::MAX);
    let (number, index) = (view.number, item.index);
    let mut answers = members.singletons(number, index, count, threshold);
    let mut shares = BTreeMap::new();
    while let Some((member, answer)) = answers.next().await {
        match answer {
            Ok(share) if fits(view, index, member, &share) => {
                shares.insert(member, share.share);
            }
            Ok(share) if share.header_hash != view.hash => {
                tracing::warn!(member, number, index, "a singleton share of another header");
                members.failed(member);
                answers.ask_another();
            }
            Ok(_) => {
                members.faulty(member, number, "singleton share of another item");
                answers.ask_another();
            }
            Err(fault) => {
                tracing::warn!(member, number, index, %fault, "no singleton share from this member");
                answers.ask_another();
            }
        }
        if shares.len() < threshold {
            continue;
        }
        match answers.meanwhile(combine(item, parameters, &shares)).await? {
            Combined::Proof(proof) => return Ok(*proof),
            Combined::Faulty(faulty) => {
                for member in faulty {
                    shares.remove(&member);
                    members.faulty(member, number, "wrong singleton share");
                    answers.ask_another();
                }
            }
        }
    }
    Err(DecryptError::TooFewShares { what: SINGLETON_SHARES, given: shares.len(), needed: threshold })
}

fn fits(view: &BatchView, index: u32, member: u16, share: &SingletonShare) -> bool {
    share.number == view.number
        && share.header_hash == view.hash
        && share.index == index
        && share.member == member
}

enum Combined {
    Proof(Box<Proof>),
    Faulty(Vec<u16>),
}

async fn combine(
    item: &AcceptedItem,
    parameters: &EpochParameters,
    shares: &BTreeMap<u16, [u8; G1_BYTES]>,
) -> Result<Combined, DecryptError> {
    let (item, scheme) = (item.clone(), Arc::clone(parameters.parameters()));
    let shares: Vec<(u16, [u8; G1_BYTES])> = shares.iter().map(|(member, share)| (*member, *share)).collect();
    blindfold_runtime::blocking(move || {
        let point = item.point()?;
        let combined = scheme.combine_singletons(&shares);
        if let Ok(release) = &combined
            && scheme.verify_singleton(&point, release).is_ok()
        {
            return Ok(Combined::Proof(Box::new(proof(&scheme, &item, release)?)));
        }
        let faulty: Vec<u16> = shares
            .iter()
            .filter(|(member, share)| scheme.verify_singleton_share(*member, &point, share).is_err())
            .map(|(member, _)| *member)
            .collect();
        match combined {
            // Right shares combine to the right release.
            Err(fault) if faulty.is_empty() => Err(DecryptError::Combine(fault)),
            Ok(_) if faulty.is_empty() => Err(DecryptError::Stopped),
            _ => Ok(Combined::Faulty(faulty)),
        }
    })
    .await
    .map_err(|_| DecryptError::Stopped)?
}

/// What the verified singleton release shows, by portable arithmetic. It opens exactly what the batch's release opens, so
/// this is malformed, unless the backend that opened the batch erred; then the key is the truth to publish.
fn proof(
    scheme: &blindfold_bte::Parameters,
    item: &AcceptedItem,
    release: &[u8; G1_BYTES],
) -> Result<Proof, DecryptError> {
    let (opening, blinding) = scheme
        .open_and_blind_singleton(&item.ad.0, &item.ciphertext, release)
        .map_err(DecryptError::Singleton)?;
    let entry = match opening {
        Opening::WellFormed { key, .. } => HintEntry::Key(*key.as_bytes()),
        Opening::Malformed => HintEntry::Malformed(*release),
    };
    Ok((entry, blinding))
}
