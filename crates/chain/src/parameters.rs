//! The committees' public parameters, one set per epoch, matched with what L1 registered.

use std::sync::Arc;

use alloy_primitives::{Address, B256};
use blindfold_bte::{EncryptionKey, Parameters};
use blindfold_protocol::{Epoch, Epochs};
use parking_lot::RwLock;

/// One epoch with the parameters that its committee uses.
#[derive(Clone)]
pub struct EpochParameters {
    epoch: Epoch,
    parameters: Arc<Parameters>,
    encryption_key: EncryptionKey,
    parameters_location: String,
}

/// Parameters that are not the ones registered for the epoch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParametersMismatch {
    /// The file is another one than the one registered.
    #[error("epoch {epoch}: the parameters have hash {found}, L1 registered {registered}")]
    ParametersHash {
        /// Number of the epoch.
        epoch: u64,
        /// Hash of what is held here.
        found: B256,
        /// Hash that L1 registered.
        registered: B256,
    },
    /// The encryption key in the parameters is another one than the one registered.
    #[error("epoch {epoch}: the encryption key has hash {found}, L1 registered {registered}")]
    EncryptionKeyHash {
        /// Number of the epoch.
        epoch: u64,
        /// Hash of what is held here.
        found: B256,
        /// Hash that L1 registered.
        registered: B256,
    },
    /// B, n or t differs from what is registered.
    #[error("epoch {epoch}: {field} is {found} in the parameters and {registered} on L1")]
    Field {
        /// Number of the epoch.
        epoch: u64,
        /// `max_batch`, `members` or `threshold`.
        field: &'static str,
        /// Its value in the parameters held here.
        found: u64,
        /// Its value on L1.
        registered: u64,
    },
    /// Two sets for one epoch, or epochs that are not in rising order.
    #[error("epoch {epoch} does not follow the one before it")]
    Order {
        /// The epoch out of place.
        epoch: u64,
    },
}

impl EpochParameters {
    /// Matches `parameters` with the registered `epoch`. Their inner consistency ([`Parameters::check`]) is the
    /// caller's to check once, when the file is loaded.
    pub fn new(
        epoch: Epoch,
        parameters: Arc<Parameters>,
        parameters_location: String,
    ) -> Result<Self, ParametersMismatch> {
        let found = B256::from(parameters.hash());
        if found != epoch.parameters_hash {
            let registered = epoch.parameters_hash;
            return Err(ParametersMismatch::ParametersHash { epoch: epoch.epoch, found, registered });
        }
        let encryption_key = parameters.encryption_key();
        let found = B256::from(encryption_key.hash());
        if found != epoch.encryption_key_hash {
            let registered = epoch.encryption_key_hash;
            return Err(ParametersMismatch::EncryptionKeyHash { epoch: epoch.epoch, found, registered });
        }
        let fields = [
            ("max_batch", parameters.max_batch() as u64, u64::from(epoch.max_batch)),
            ("members", u64::from(parameters.members()), epoch.members.len() as u64),
            ("threshold", u64::from(parameters.threshold()), u64::from(epoch.threshold)),
        ];
        for (field, found, registered) in fields {
            if found != registered {
                return Err(ParametersMismatch::Field { epoch: epoch.epoch, field, found, registered });
            }
        }
        Ok(Self { epoch, parameters, encryption_key, parameters_location })
    }

    /// The epoch as L1 registered it.
    pub fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    /// The committee's public parameters, which have the registered hash.
    pub fn parameters(&self) -> &Arc<Parameters> {
        &self.parameters
    }

    /// The key that clients encrypt to, with its tables.
    pub fn encryption_key(&self) -> &EncryptionKey {
        &self.encryption_key
    }

    /// Where the parameter file can be had, as registered.
    pub fn parameters_location(&self) -> &str {
        &self.parameters_location
    }
}

impl std::fmt::Debug for EpochParameters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EpochParameters")
            .field("epoch", &self.epoch.epoch)
            .field("parameters_hash", &self.epoch.parameters_hash)
            .field("parameters_location", &self.parameters_location)
            .finish_non_exhaustive()
    }
}

/// The parameters of every epoch that a process knows, by rising epoch.
#[derive(Debug, Default)]
pub struct ParameterSet {
    epochs: RwLock<Vec<EpochParameters>>,
    /// What L1 registered when it was read last.
    registered: RwLock<Epochs>,
}

impl ParameterSet {
    /// Orders are checked: epochs rise and their ranges of batch numbers do not overlap.
    pub fn new(epochs: Vec<EpochParameters>) -> Result<Self, ParametersMismatch> {
        for pair in epochs.windows(2) {
            let [before, after] = pair else { continue };
            if after.epoch.epoch <= before.epoch.epoch || after.epoch.first <= before.epoch.last {
                return Err(ParametersMismatch::Order { epoch: after.epoch.epoch });
            }
        }
        Ok(Self { epochs: RwLock::new(epochs), registered: RwLock::default() })
    }

    /// Takes over where L1 has the known epochs begin and end now, and whose signature stands under headers: an epoch may
    /// end earlier than it was registered. True when one did.
    pub fn adopt(&self, registered: &Epochs) -> bool {
        let mut changed = false;
        for entry in self.epochs.write().iter_mut() {
            let Some(epoch) = registered.by_epoch(entry.epoch.epoch) else { continue };
            let (now, known) = ((epoch.first, epoch.last), (entry.epoch.first, entry.epoch.last));
            if now != known {
                (entry.epoch.first, entry.epoch.last) = now;
                changed = true;
            }
        }
        *self.registered.write() = registered.clone();
        changed
    }

    /// Whose signature stands under headers with this L1 origin, as L1 was last read; `None` where it names nobody.
    pub fn sequencer_at(&self, origin: u64) -> Option<Address> {
        self.registered.read().sequencer_at(origin)
    }

    /// The parameters under which batch `number` is encrypted and certified.
    pub fn at(&self, number: u64) -> Option<EpochParameters> {
        self.epochs.read().iter().find(|entry| entry.epoch.contains(number)).cloned()
    }

    /// The parameters of an epoch.
    pub fn by_epoch(&self, epoch: u64) -> Option<EpochParameters> {
        self.epochs.read().iter().find(|entry| entry.epoch.epoch == epoch).cloned()
    }

    /// Every epoch with parameters here, in order of their numbers.
    pub fn all(&self) -> Vec<EpochParameters> {
        self.epochs.read().clone()
    }
}
