//! Proof that the sequencer signed two headers for one number, kept for whoever slashes its bond.

use std::sync::Arc;

use blindfold_protocol::{Canonical, SignedHeader, header::BATCH_HEADER_BYTES};
use blindfold_store::{Store, StoreError};
use parking_lot::Mutex;

/// Key under which the evidence lies in the store.
const META_KEY: &str = "committee.evidence";
/// Pairs kept. One is enough to slash; a sequencer that signs without end must not fill our disk.
const MAX_PAIRS: usize = 64;
/// Version byte of the stored form.
const FORMAT_VERSION: u8 = 2;

/// Two different headers for one number, both signed by the sequencer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The header this member held first.
    pub first: SignedHeader,
    /// The one it was shown later.
    pub second: SignedHeader,
}

/// The stored bytes are no evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored evidence does not decode")]
pub struct DamagedEvidence;

/// Why evidence could not be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// The disk failed, or refused a step.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is on disk is not what was written.
    #[error(transparent)]
    Damaged(#[from] DamagedEvidence),
}

/// Pairs seen and how many second headers were refused, durable.
///
/// Stored as `version u8 · refused u64 · pairs (SignedHeader, SignedHeader)`.
pub(crate) struct EvidenceStore {
    store: Arc<dyn Store>,
    records: Mutex<Records>,
    writer: tokio::sync::Mutex<()>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Records {
    refused: u64,
    pairs: Vec<Evidence>,
}

impl EvidenceStore {
    pub(crate) async fn open(store: Arc<dyn Store>) -> Result<Self, EvidenceError> {
        let records = match store.meta(META_KEY).await? {
            Some(bytes) => Records::decode(&bytes)?,
            None => Records::default(),
        };
        Ok(Self { store, records: Mutex::new(records), writer: tokio::sync::Mutex::new(()) })
    }

    /// Keeps a pair; durable when it returns true. False if this second header is known already.
    pub(crate) async fn keep(&self, evidence: Evidence) -> Result<bool, StoreError> {
        let _writing = self.writer.lock().await;
        let mut records = self.records.lock().clone();
        if records.pairs.iter().any(|known| known.second.header == evidence.second.header) {
            return Ok(false);
        }
        records.refused = records.refused.saturating_add(1);
        if records.pairs.len() < MAX_PAIRS {
            records.pairs.push(evidence);
        }
        self.store.put_meta(META_KEY, &records.encode()).await?;
        *self.records.lock() = records;
        Ok(true)
    }

    /// Second headers refused, over all restarts.
    pub(crate) fn refused(&self) -> u64 {
        self.records.lock().refused
    }

    pub(crate) fn list(&self) -> Vec<Evidence> {
        self.records.lock().pairs.clone()
    }
}

impl Records {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT_VERSION];
        bytes.extend_from_slice(&self.refused.to_be_bytes());
        for pair in &self.pairs {
            bytes.extend_from_slice(&pair.first.encode());
            bytes.extend_from_slice(&pair.second.encode());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, DamagedEvidence> {
        let rest = bytes.strip_prefix(&[FORMAT_VERSION]).ok_or(DamagedEvidence)?;
        let (refused, rest) = rest.split_first_chunk::<8>().ok_or(DamagedEvidence)?;
        let header = |bytes| SignedHeader::decode(bytes).map_err(|_| DamagedEvidence);
        let chunks = rest.chunks_exact(2 * SIGNED_HEADER_BYTES);
        if !chunks.remainder().is_empty() || rest.len() > MAX_PAIRS * 2 * SIGNED_HEADER_BYTES {
            return Err(DamagedEvidence);
        }
        let pairs = chunks
            .map(|pair| {
                let (first, second) = pair.split_at(SIGNED_HEADER_BYTES);
                Ok(Evidence { first: header(first)?, second: header(second)? })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { refused: u64::from_be_bytes(*refused), pairs })
    }
}

/// Length of an encoded [`SignedHeader`]: version, header, signature.
const SIGNED_HEADER_BYTES: usize = 1 + BATCH_HEADER_BYTES + 65;

#[cfg(test)]
mod tests {
    use blindfold_protocol::{B256, BatchHeader, signature::Signature65};
    use proptest::prelude::*;

    use super::*;

    fn signed(number: u64, mark: u8) -> SignedHeader {
        let header =
            BatchHeader { parent_hash: B256::repeat_byte(mark), ..blindfold_kit::plain_header(number) };
        SignedHeader { header, signature: Signature65([mark; 65]) }
    }

    proptest! {
        #[test]
        fn decoding_gives_back_what_was_encoded(refused: u64, marks in prop::collection::vec(any::<(u8, u8)>(), 0..8)) {
            let pairs = marks.iter().map(|(a, b)| Evidence { first: signed(3, *a), second: signed(3, *b) }).collect();
            let records = Records { refused, pairs };
            prop_assert_eq!(Records::decode(&records.encode()), Ok(records));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..1200)) {
            if let Ok(records) = Records::decode(&bytes) {
                prop_assert_eq!(records.encode(), bytes);
            }
        }
    }

    #[tokio::test]
    async fn pairs_survive_a_restart_and_are_bounded() {
        let store: Arc<dyn Store> = Arc::new(blindfold_store::SqlStore::in_memory().expect("opens"));
        let evidence = EvidenceStore::open(Arc::clone(&store)).await.expect("opens");
        let pair = Evidence { first: signed(1, 1), second: signed(1, 2) };
        assert!(evidence.keep(pair).await.expect("kept"));
        assert!(!evidence.keep(pair).await.expect("known"));
        let reopened = EvidenceStore::open(Arc::clone(&store)).await.expect("opens");
        assert_eq!((reopened.refused(), reopened.list()), (1, vec![pair]));
        for number in 2..100 {
            let pair = Evidence { first: signed(number, 1), second: signed(number, 2) };
            assert!(reopened.keep(pair).await.expect("kept"));
        }
        assert_eq!((reopened.refused(), reopened.list().len()), (99, MAX_PAIRS));
        store.put_meta(META_KEY, &[9]).await.expect("written");
        assert!(matches!(EvidenceStore::open(store).await, Err(EvidenceError::Damaged(DamagedEvidence))));
    }
}
