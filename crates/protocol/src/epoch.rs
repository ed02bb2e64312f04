//! Key epochs: contiguous ranges of batch numbers, exactly one committee for each number.

use crate::limits::MAX_MEMBERS;
use alloy_primitives::B256;
use blindfold_bte::bls::PublicKey;

/// One epoch, as L1 registered it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Number of the epoch.
    pub epoch: u64,
    /// First batch number.
    pub first: u64,
    /// Last batch number.
    pub last: u64,
    /// Hash of the public parameters.
    pub parameters_hash: B256,
    /// SHA-256 of the encryption key.
    pub encryption_key_hash: B256,
    /// B: the most ciphertexts in one sub-batch.
    pub max_batch: u32,
    /// t: acknowledgements of a certificate, and shares of a release.
    pub threshold: u16,
    /// BLS keys of members 1..n in order.
    pub members: Vec<PublicKey>,
}

/// Why epochs are unusable. The fault of whoever registered or read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EpochFault {
    /// The last number is below the first, or the first is 0, the number of genesis.
    #[error("epoch {epoch}: numbers {first} to {last} are no range above 0")]
    Range {
        /// The epoch.
        epoch: u64,
        /// Its first number.
        first: u64,
        /// Its last number.
        last: u64,
    },
    /// No members, or more than a certificate has bits for.
    #[error("epoch {epoch}: {members} members, not 1 to {MAX_MEMBERS}")]
    Members {
        /// The epoch.
        epoch: u64,
        /// Its members.
        members: usize,
    },
    /// Two disjoint sets of members could certify, or not even all members could.
    #[error("epoch {epoch}: threshold {threshold} of {members} is not a majority")]
    Threshold {
        /// The epoch.
        epoch: u64,
        /// Its threshold.
        threshold: u16,
        /// Its members.
        members: usize,
    },
    /// Sub-batches of no ciphertext.
    #[error("epoch {0}: a sub-batch holds no ciphertext")]
    MaxBatch(u64),
    /// An epoch does not follow the one before: numbers of epochs and of batches are contiguous.
    #[error("epoch {0} does not follow the one before")]
    Gap(u64),
}

impl Epoch {
    /// Whether the number belongs to this epoch.
    pub fn contains(&self, number: u64) -> bool {
        (self.first..=self.last).contains(&number)
    }

    /// The key of member j, from 1.
    pub fn member(&self, member: u16) -> Option<&PublicKey> {
        self.members.get(usize::from(member).checked_sub(1)?)
    }

    /// Checks the epoch by itself.
    pub fn validate(&self) -> Result<(), EpochFault> {
        let (epoch, members) = (self.epoch, self.members.len());
        if self.first == 0 || self.last < self.first {
            return Err(EpochFault::Range { epoch, first: self.first, last: self.last });
        }
        if members == 0 || members > MAX_MEMBERS {
            return Err(EpochFault::Members { epoch, members });
        }
        let threshold = usize::from(self.threshold);
        if threshold > members || 2 * threshold <= members {
            return Err(EpochFault::Threshold { epoch, threshold: self.threshold, members });
        }
        if self.max_batch == 0 {
            return Err(EpochFault::MaxBatch(epoch));
        }
        Ok(())
    }
}

/// The known epochs, contiguous.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Epochs(Vec<Epoch>);

impl Epochs {
    /// Checks each epoch, and that each follows the one before.
    pub fn new(epochs: Vec<Epoch>) -> Result<Self, EpochFault> {
        for epoch in &epochs {
            epoch.validate()?;
        }
        for (before, after) in epochs.iter().zip(epochs.iter().skip(1)) {
            let follows = before.last.checked_add(1) == Some(after.first)
                && before.epoch.checked_add(1) == Some(after.epoch);
            if !follows {
                return Err(EpochFault::Gap(after.epoch));
            }
        }
        Ok(Self(epochs))
    }

    /// The epoch of a batch number.
    pub fn at(&self, number: u64) -> Option<&Epoch> {
        let index = self.0.partition_point(|epoch| epoch.last < number);
        self.0.get(index).filter(|epoch| epoch.contains(number))
    }

    /// The epoch with this number.
    pub fn by_epoch(&self, epoch: u64) -> Option<&Epoch> {
        self.0.iter().find(|candidate| candidate.epoch == epoch)
    }

    /// All epochs in order.
    pub fn as_slice(&self) -> &[Epoch] {
        &self.0
    }
}
