//! Parsed block details, kept for receipts: a wallet asks for every envelope of a block within a short time.

use std::collections::VecDeque;
use std::sync::Arc;

use alloy_primitives::B256;
use parking_lot::Mutex;

use crate::BlockDetails;
use crate::limits::MAX_CACHED_BLOCKS;

/// The last blocks asked for, by hash, in order of use: a block of the same number may take the place of one (VR-2).
#[derive(Default)]
pub(super) struct DetailsCache {
    blocks: Mutex<VecDeque<(B256, Arc<BlockDetails>)>>,
}

impl DetailsCache {
    pub(super) fn get(&self, block: B256) -> Option<Arc<BlockDetails>> {
        let mut blocks = self.blocks.lock();
        let place = blocks.iter().position(|(hash, _)| *hash == block)?;
        let entry = blocks.remove(place)?;
        let details = Arc::clone(&entry.1);
        blocks.push_front(entry);
        Some(details)
    }

    pub(super) fn put(&self, block: B256, details: Arc<BlockDetails>) {
        let mut blocks = self.blocks.lock();
        blocks.retain(|(hash, _)| *hash != block);
        blocks.push_front((block, details));
        blocks.truncate(MAX_CACHED_BLOCKS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DepositCursor;

    fn details(gas_used: u64) -> Arc<BlockDetails> {
        let (transactions, envelopes) = (Vec::new(), Vec::new());
        let deposits = DepositCursor { through: 0, then: 0, more: false };
        Arc::new(BlockDetails {
            transactions,
            l1_origin_number: 0,
            sequence_number: 0,
            gas_used,
            deposits,
            envelopes,
        })
    }

    #[test]
    fn the_least_used_block_is_dropped() {
        let hash = |number: u64| B256::left_padding_from(&number.to_be_bytes());
        let cache = DetailsCache::default();
        for number in 0..MAX_CACHED_BLOCKS as u64 {
            cache.put(hash(number), details(number));
        }
        assert_eq!(cache.get(hash(0)).unwrap().gas_used, 0);
        cache.put(hash(1_000), details(1_000));
        assert!(
            cache.get(hash(0)).is_some() && cache.get(hash(1_000)).is_some() && cache.get(hash(1)).is_none()
        );
    }
}
