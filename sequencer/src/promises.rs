//! Promises asked for after an envelope was admitted without one. The store keeps an envelope's record as it was first
//! written, so these few stand in a list of their own, durable before they are signed.

use std::collections::BTreeMap;

use blindfold_protocol::B256;
use blindfold_store::{Store, StoreError};

use crate::{admission::Admission, refusal::AdmissionRefusal};

/// Late promises whose envelopes are still pending, at most.
const MAX_LATE_PROMISES: usize = 1_000;
/// Those of them whose envelopes have the same payer, at most.
const MAX_LATE_PROMISES_PER_PAYER: usize = 64;
/// Where the list is stored.
const KEY: &str = "late_promises";
/// id 32 ‖ sealBy u64.
const ENTRY_BYTES: usize = 40;

/// Promises that were given after their envelopes were stored, by id.
#[derive(Default)]
pub(crate) struct LatePromises(tokio::sync::Mutex<BTreeMap<B256, u64>>);

impl LatePromises {
    /// Reads the list back.
    pub(crate) async fn load(store: &dyn Store) -> Result<BTreeMap<B256, u64>, StoreError> {
        Ok(decode(&store.meta(KEY).await?.unwrap_or_default()))
    }

    pub(crate) fn new(list: BTreeMap<B256, u64>) -> Self {
        Self(tokio::sync::Mutex::new(list))
    }
}

impl Admission {
    /// Promises a pending envelope the first number that has room for it, or what was promised before; durable.
    pub(crate) async fn promise_late(&self, id: B256) -> Result<u64, AdmissionRefusal> {
        let mut list = self.late_promises.0.lock().await;
        let seal_by = {
            let mut pool = self.pool.lock();
            list.retain(|id, _| pool.get(id).is_some());
            // Asked for twice at a time: the first promise stands.
            let Some(meta) = pool.get(&id).cloned() else { return Err(AdmissionRefusal::AlreadyKnown) };
            if let Some(standing) = meta.seal_by {
                return Ok(standing);
            }
            let of_payer = |id: &&B256| pool.get(id).is_some_and(|other| other.payer == meta.payer);
            if list.len() >= MAX_LATE_PROMISES
                || list.keys().filter(of_payer).count() >= MAX_LATE_PROMISES_PER_PAYER
            {
                return Err(AdmissionRefusal::Overloaded);
            }
            // From where the chain stands now: whoever waited for the list may have waited long.
            let window = self.promise_window(&meta, pool.promised_capacity())?;
            let batches = self.cx.config.sealing.promise_batches;
            pool.promise(&id, window).ok_or(AdmissionRefusal::PromiseCapacity { batches })?
        };
        list.insert(id, seal_by);
        if let Err(error) = self.cx.store.put_meta(KEY, &encode(&list)).await {
            tracing::error!(%error, "a promise could not be stored");
            list.remove(&id);
            self.pool.lock().take_back(&id);
            return Err(AdmissionRefusal::Storage);
        }
        Ok(seal_by)
    }
}

fn encode(list: &BTreeMap<B256, u64>) -> Vec<u8> {
    list.iter().flat_map(|(id, seal_by)| [id.as_slice(), &seal_by.to_be_bytes()].concat()).collect()
}

fn decode(bytes: &[u8]) -> BTreeMap<B256, u64> {
    let entries = bytes.chunks_exact(ENTRY_BYTES).filter_map(|entry| {
        let (id, seal_by) = entry.split_at_checked(32)?;
        Some((B256::try_from(id).ok()?, u64::from_be_bytes(seal_by.try_into().ok()?)))
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_survives_and_a_torn_entry_is_left_out() {
        let list: BTreeMap<_, _> = (1u8..5).map(|n| (B256::repeat_byte(n), u64::from(n) * 7)).collect();
        let bytes = encode(&list);
        assert_eq!(decode(&bytes), list);
        assert_eq!(decode(&bytes[..bytes.len() - 1]).len(), 3);
        assert!(decode(&[]).is_empty());
    }
}
