//! The committee's encryption key, from L1 or from a pinned hash; never on the sequencer's word.

use alloy_primitives::B256;
use async_trait::async_trait;
use blindfold_bte::EncryptionKey;
use blindfold_l1::L1Client;
use blindfold_protocol::{ChainConfig, Epoch, Epochs};
use blindfold_rpc::types::EncryptionKeyInfo;
use blindfold_runtime::{Instant, now};
use tokio::{sync::Mutex, time::Duration};

/// Number of the chain's first batch.
const GENESIS_NUMBER: u64 = 1;

/// Where a client learns of committees: L1's `CommitteeRegistry`.
#[async_trait]
pub trait CommitteeSource: Send + Sync {
    /// The registered epochs, in order.
    async fn epochs(&self) -> Result<Epochs, CommitteeKeyError>;

    /// The encryption key of an epoch, 576 bytes.
    async fn encryption_key(&self, epoch: u64) -> Result<Vec<u8>, CommitteeKeyError>;
}

#[async_trait]
impl CommitteeSource for L1Client {
    async fn epochs(&self) -> Result<Epochs, CommitteeKeyError> {
        Self::epochs(self).await.map_err(|error| CommitteeKeyError::L1(error.to_string()))
    }

    async fn encryption_key(&self, epoch: u64) -> Result<Vec<u8>, CommitteeKeyError> {
        let key = Self::encryption_key(self, epoch).await;
        key.map(|key| key.to_bytes().to_vec()).map_err(|error| CommitteeKeyError::L1(error.to_string()))
    }
}

/// Why there is no key to encrypt to.
#[derive(Debug, thiserror::Error)]
pub enum CommitteeKeyError {
    /// L1 did not answer, or not usably.
    #[error("L1 does not tell the committee's key: {0}")]
    L1(String),
    /// No epoch covers the number.
    #[error("no committee is registered for batch {0}")]
    NoEpoch(u64),
    /// The bytes are no encryption key.
    #[error("the encryption key of epoch {epoch} is unusable: {reason}")]
    Unusable {
        /// Number of the epoch.
        epoch: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The key's hash is not the registered or pinned one.
    #[error(
        "the encryption key of epoch {epoch} has the hash {got}, expected {expected}: do not encrypt to it"
    )]
    WrongHash {
        /// Number of the epoch.
        epoch: u64,
        /// The hash that is expected of the key.
        expected: B256,
        /// The hash of the bytes given.
        got: B256,
    },
    /// The sequencer tells another key than L1. It may be trying to read what users send.
    #[error("the sequencer serves another key for epoch {epoch} ({served}) than L1 registers ({registered})")]
    SequencerDisagrees {
        /// Number of the epoch.
        epoch: u64,
        /// The hash the sequencer serves.
        served: B256,
        /// The hash that L1 registers.
        registered: B256,
    },
}

/// How long L1 is not asked after it did not answer.
const PAUSE: Duration = Duration::from_secs(10);

/// Epochs whose keys are kept: those that end and begin, and one or two that somebody looks back at.
const MAX_KEPT: usize = 4;

/// The keys that were checked last. While L1 is away each goes on counting for the batches of its epoch: what is registered
/// changes with notice only, and the sequencer takes nothing that is encrypted to an epoch which ended early. But a
/// sequencer may be on the side of a committee that was ended for its leaks, and keep a client from L1: so none counts
/// for longer than W. On an L1 that is away for everybody nothing is sealed by then, so nobody honest misses it.
pub(crate) struct KeptKeys {
    max_age: Duration,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// When each was read from L1, oldest first.
    keys: Vec<(Instant, CommitteeKey)>,
    paused_until: Option<Instant>,
}

impl Kept {
    fn of(&self, number: u64) -> Option<(Instant, CommitteeKey)> {
        self.keys.iter().find(|(_, key)| key.covers(number)).cloned()
    }

    fn put(&mut self, key: CommitteeKey) {
        self.keys.retain(|(_, kept)| kept.epoch.epoch != key.epoch.epoch);
        self.keys.push((now(), key));
        if self.keys.len() > MAX_KEPT {
            self.keys.remove(0);
        }
        self.paused_until = None;
    }
}

impl KeptKeys {
    /// None yet, for a chain.
    pub(crate) fn new(chain: &ChainConfig) -> Self {
        let max_age = Duration::from_secs(chain.timing.max_origin_age_seconds.into());
        Self { max_age, kept: Mutex::default() }
    }

    /// The key for batch `number`; one that is older than `refresh` is read from L1 again, and counts from then on if it
    /// passes `check`. Those who ask meanwhile wait for that. Where L1 or `check` contradicts one that is kept, it counts no
    /// more.
    pub(crate) async fn get(
        &self,
        source: &dyn CommitteeSource,
        number: u64,
        pinned: Option<B256>,
        refresh: Duration,
        check: impl AsyncFnOnce(&CommitteeKey) -> Result<(), CommitteeKeyError>,
    ) -> Result<CommitteeKey, CommitteeKeyError> {
        let mut kept = self.kept.lock().await;
        kept.keys.retain(|(since, _)| since.elapsed() < self.max_age);
        let paused = kept.paused_until.is_some_and(|until| now() < until);
        let known = kept.of(number);
        if let Some((since, key)) = &known
            && (paused || since.elapsed() < refresh)
        {
            return Ok(key.clone());
        }
        let read = async {
            let key = CommitteeKey::fetch(source, number, pinned).await?;
            check(&key).await.map(|()| key)
        };
        match read.await {
            Ok(key) => {
                kept.put(key.clone());
                Ok(key)
            }
            Err(error @ CommitteeKeyError::L1(_)) => {
                let Some((_, key)) = known else { return Err(error) };
                tracing::warn!(%error, epoch = key.epoch.epoch, "the committee's key is the one L1 told last");
                kept.paused_until = Some(now() + PAUSE);
                Ok(key)
            }
            Err(error) => {
                kept.keys.retain(|(_, key)| !key.covers(number));
                Err(error)
            }
        }
    }

    /// Forgets them: L1 has to be asked before anything else is encrypted.
    pub(crate) async fn forget(&self) {
        *self.kept.lock().await = Kept::default();
    }
}

/// A checked key and the epoch it belongs to.
#[derive(Clone)]
pub struct CommitteeKey {
    /// The epoch as L1 registers it.
    pub epoch: Epoch,
    /// Everything that L1 registers: whose signature stands under headers, among others.
    pub registered: Epochs,
    /// The epoch's encryption key, which has the registered hash.
    pub key: EncryptionKey,
}

impl CommitteeKey {
    fn covers(&self, number: u64) -> bool {
        (self.epoch.first..=self.epoch.last).contains(&number)
    }

    /// Fetches the key of the committee that certifies batch `number`, and checks it against L1 and, where given,
    /// against a pinned hash.
    ///
    /// # Errors
    /// [`CommitteeKeyError`].
    pub async fn fetch(
        source: &dyn CommitteeSource,
        number: u64,
        pinned: Option<B256>,
    ) -> Result<Self, CommitteeKeyError> {
        let number = number.max(GENESIS_NUMBER);
        let epochs = source.epochs().await?;
        let epoch = epochs.at(number).ok_or(CommitteeKeyError::NoEpoch(number))?.clone();
        let bytes = source.encryption_key(epoch.epoch).await?;
        let unusable = |reason: String| CommitteeKeyError::Unusable { epoch: epoch.epoch, reason };
        let bytes: &[u8; blindfold_bte::GT_BYTES] =
            bytes.as_slice().try_into().map_err(|_| unusable(format!("{} bytes", bytes.len())))?;
        let key = EncryptionKey::from_bytes(bytes).map_err(|error| unusable(error.to_string()))?;
        let got = B256::from(key.hash());
        for expected in [Some(epoch.encryption_key_hash), pinned].into_iter().flatten() {
            if got != expected {
                return Err(CommitteeKeyError::WrongHash { epoch: epoch.epoch, expected, got });
            }
        }
        Ok(Self { epoch, registered: epochs, key })
    }

    /// Compares with what the sequencer serves: another hash for this epoch is an attempt to read.
    ///
    /// # Errors
    /// [`CommitteeKeyError::SequencerDisagrees`].
    pub fn compare(&self, served: &[EncryptionKeyInfo]) -> Result<(), CommitteeKeyError> {
        for info in served.iter().filter(|info| info.epoch == self.epoch.epoch) {
            if info.encryption_key_hash != self.epoch.encryption_key_hash {
                return Err(CommitteeKeyError::SequencerDisagrees {
                    epoch: info.epoch,
                    served: info.encryption_key_hash,
                    registered: self.epoch.encryption_key_hash,
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use blindfold_kit::Committee;
    use parking_lot::Mutex;

    use super::*;

    const NUMBER: u64 = 5;

    /// L1's registry, while it is not away.
    struct Registry {
        committee: Committee,
        last: Mutex<u64>,
        away: Mutex<bool>,
    }

    impl Registry {
        fn new() -> Self {
            Self { committee: Committee::deal(3, 2, 4, 7), last: Mutex::new(100), away: Mutex::new(false) }
        }

        fn is_up(&self) -> Result<(), CommitteeKeyError> {
            if *self.away.lock() { Err(CommitteeKeyError::L1("away".to_owned())) } else { Ok(()) }
        }
    }

    #[async_trait]
    impl CommitteeSource for Registry {
        async fn epochs(&self) -> Result<Epochs, CommitteeKeyError> {
            self.is_up()?;
            let epoch = self.committee.epoch(1, 1, *self.last.lock());
            Ok(Epochs::new(vec![epoch]).expect("valid"))
        }

        async fn encryption_key(&self, _: u64) -> Result<Vec<u8>, CommitteeKeyError> {
            self.is_up()?;
            Ok(self.committee.encryption_key.to_bytes().to_vec())
        }
    }

    fn kept() -> KeptKeys {
        KeptKeys { max_age: Duration::from_secs(3_600), kept: tokio::sync::Mutex::default() }
    }

    async fn get(keys: &KeptKeys, registry: &Registry) -> Result<u64, CommitteeKeyError> {
        let key = keys.get(registry, NUMBER, None, Duration::ZERO, async |_| Ok(())).await;
        key.map(|key| key.epoch.epoch)
    }

    #[tokio::test]
    async fn a_key_counts_while_l1_is_away_and_not_for_ever() {
        let (mut keys, registry) = (kept(), Registry::new());
        get(&keys, &registry).await.expect("L1 tells it");
        *registry.away.lock() = true;
        get(&keys, &registry).await.expect("it is kept");
        keys.max_age = Duration::ZERO;
        assert!(matches!(get(&keys, &registry).await, Err(CommitteeKeyError::L1(_))));
        keys.max_age = Duration::from_secs(3_600);
        assert!(matches!(get(&keys, &registry).await, Err(CommitteeKeyError::L1(_))), "it is dropped");
        *registry.away.lock() = false;
        get(&keys, &registry).await.expect("L1 tells it again");
    }

    #[tokio::test]
    async fn a_key_that_is_contradicted_counts_no_more() {
        let registry = Registry::new();
        let no_epoch = async |keys: &KeptKeys| {
            *registry.last.lock() = NUMBER - 1;
            assert!(matches!(get(keys, &registry).await, Err(CommitteeKeyError::NoEpoch(NUMBER))));
        };
        let other_key = async |keys: &KeptKeys| {
            let (epoch, served, registered) = (0, B256::ZERO, B256::ZERO);
            let check = async |_: &CommitteeKey| {
                Err(CommitteeKeyError::SequencerDisagrees { epoch, served, registered })
            };
            let checked = keys.get(&registry, NUMBER, None, Duration::ZERO, check).await;
            assert!(matches!(checked, Err(CommitteeKeyError::SequencerDisagrees { .. })));
        };
        for contradicted_by_l1 in [true, false] {
            let keys = kept();
            *registry.last.lock() = 100;
            get(&keys, &registry).await.expect("L1 tells it");
            if contradicted_by_l1 {
                no_epoch(&keys).await
            } else {
                other_key(&keys).await
            }
            *registry.away.lock() = true;
            assert!(matches!(get(&keys, &registry).await, Err(CommitteeKeyError::L1(_))));
            *registry.away.lock() = false;
        }
    }
}
