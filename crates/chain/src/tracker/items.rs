//! The expensive half of the validity rule, off the async threads.

use std::sync::Arc;

use blindfold_protocol::validity::{self, CheckedEnvelope, CheckedItem, Verdict};
use blindfold_protocol::{ChainConfig, Epoch, SealedBatch};
use blindfold_runtime::{blocking_among, joined, rng};
use tokio::task::JoinSet;

use super::TrackerError;

/// Items checked by one blocking task: large enough for the batched proof check to pay, small enough that a full
/// batch spreads over the cores.
pub const CHECK_CHUNK_ITEMS: usize = 256;

/// Checks the items of a batch without looking at the chain: encoding, fixed fields, fee signature, ciphertext point
/// and proof. The answer depends on the items and the epoch alone, so it may be kept.
///
/// Cost: about 0.2 ms per item and core, on the blocking pool.
pub async fn check_items(
    config: &Arc<ChainConfig>,
    epoch: &Arc<Epoch>,
    sealed: &Arc<SealedBatch>,
) -> Result<Vec<CheckedItem>, TrackerError> {
    let count = sealed.items.len();
    let mut tasks = JoinSet::new();
    for (chunk, start) in (0..count).step_by(CHECK_CHUNK_ITEMS).enumerate() {
        let (config, epoch, sealed) = (Arc::clone(config), Arc::clone(epoch), Arc::clone(sealed));
        blocking_among(&mut tasks, move || {
            let end = count.min(start + CHECK_CHUNK_ITEMS);
            let items: Vec<&[u8]> = sealed.items[start..end].iter().map(Vec::as_slice).collect();
            (chunk, validity::check_items(&config, &epoch, &items, &mut rng()))
        });
    }
    let mut chunks = Vec::with_capacity(tasks.len());
    while let Some(done) = tasks.join_next().await {
        chunks.push(joined(done).map_err(|_| TrackerError::Stopped)?);
    }
    chunks.sort_by_key(|(chunk, _)| *chunk);
    Ok(chunks.into_iter().flat_map(|(_, items)| items).collect())
}

/// The accepted envelopes of a batch in committed order, with their item index. Their places in this list, cut into
/// runs of B, are the positions of the release.
pub fn accepted_items<'a>(items: &'a [CheckedItem], verdicts: &[Verdict]) -> Vec<(u32, &'a CheckedEnvelope)> {
    items
        .iter()
        .zip(verdicts)
        .zip(0u32..)
        .filter_map(|((item, verdict), index)| match (item, verdict) {
            (Ok(envelope), Verdict::Accepted { .. }) => Some((index, envelope)),
            _ => None,
        })
        .collect()
}
