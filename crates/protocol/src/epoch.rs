//! Key epochs: contiguous ranges of batch numbers, exactly one committee for each number.

use std::{ops::RangeInclusive, sync::Arc};

use crate::limits::MAX_MEMBERS;
use alloy_primitives::{Address, B256};
use blindfold_bte::bls::PublicKey;

/// The rule set that every deployment begins with.
pub const FIRST_RULES: u16 = 1;

/// One epoch, as L1 registered it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Number of the epoch, counted from 1.
    pub epoch: u64,
    /// First batch number; that of epoch 1 is 1.
    pub first: u64,
    /// Last batch number; one below the first when the epoch ended before it began.
    pub last: u64,
    /// The L1 block from which on its certificates count: a header's origin is not below it.
    pub counts_from: u64,
    /// The epoch whose encryption key it continues, 0 for a key of its own.
    pub continues: u64,
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
pub enum EpochError {
    /// The range is reversed, or the first is 0, the number of genesis.
    #[error("epoch {epoch}: numbers {first} to {last} are no range above 0")]
    Range {
        /// Number of the epoch.
        epoch: u64,
        /// The first number that it claims.
        first: u64,
        /// The last number that it claims.
        last: u64,
    },
    /// No members, or more than a certificate has bits for.
    #[error("epoch {epoch}: {members} members, not 1 to {MAX_MEMBERS}")]
    Members {
        /// Number of the epoch.
        epoch: u64,
        /// How many members it has.
        members: usize,
    },
    /// Two disjoint sets of members could certify, or not even all members could.
    #[error("epoch {epoch}: threshold {threshold} of {members} is not a majority")]
    Threshold {
        /// Number of the epoch.
        epoch: u64,
        /// The threshold t that it asks for.
        threshold: u16,
        /// How many members it has.
        members: usize,
    },
    /// An epoch whose B is 0.
    #[error("epoch {0}: a sub-batch holds no ciphertext")]
    MaxBatch(u64),
    /// An epoch continues the key of none before it.
    #[error("epoch {epoch} continues the key of {continues}, which is none before it")]
    Continues {
        /// Number of the epoch.
        epoch: u64,
        /// The epoch that it names.
        continues: u64,
    },
    /// A rule set does not begin after the one before, or is not above it.
    #[error("rule set {rules} from number {first} does not follow the one before")]
    Rules {
        /// The batch number from which on it would count.
        first: u64,
        /// The rule set that it names.
        rules: u16,
    },
    /// Keys of sequencers are out of order, or the first does not count from the beginning.
    #[error("the sequencer's key from L1 block {from_block} on does not follow the one before")]
    Sequencers {
        /// The first L1 block that it counts for.
        from_block: u64,
    },
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
    pub fn validate(&self) -> Result<(), EpochError> {
        let (epoch, members) = (self.epoch, self.members.len());
        if self.first == 0 || self.last < self.first - 1 {
            return Err(EpochError::Range { epoch, first: self.first, last: self.last });
        }
        if members == 0 || members > MAX_MEMBERS {
            return Err(EpochError::Members { epoch, members });
        }
        if self.continues != 0 && self.continues >= epoch {
            return Err(EpochError::Continues { epoch, continues: self.continues });
        }
        let threshold = usize::from(self.threshold);
        if threshold > members || 2 * threshold <= members {
            return Err(EpochError::Threshold { epoch, threshold: self.threshold, members });
        }
        if self.max_batch == 0 {
            return Err(EpochError::MaxBatch(epoch));
        }
        Ok(())
    }
}

/// A rule set and the number from which on it is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RulesChange {
    /// The batch number from which on it counts.
    pub first: u64,
    /// The rule set; [`FIRST_RULES`] counts before any change.
    pub rules: u16,
}

/// A sequencer's key and the L1 block from which on it counts: headers whose L1 origin is that block or a later one are
/// signed with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequencerChange {
    /// The first L1 origin whose header bears its signature.
    pub from_block: u64,
    /// Address of the key that signs.
    pub sequencer: Address,
}

/// What `CommitteeRegistry` says: the known epochs, contiguous, the rule sets that it schedules, and whose signature stands
/// under headers (L-1). A copy shares what is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Epochs {
    epochs: Arc<[Epoch]>,
    rules: Arc<[RulesChange]>,
    sequencers: Arc<[SequencerChange]>,
    read_at: u64,
}

impl Epochs {
    /// Checks each epoch, and that each follows the one before.
    pub fn new(epochs: Vec<Epoch>) -> Result<Self, EpochError> {
        for epoch in &epochs {
            epoch.validate()?;
        }
        for (before, after) in epochs.iter().zip(epochs.iter().skip(1)) {
            let follows = before.last.checked_add(1) == Some(after.first)
                && before.epoch.checked_add(1) == Some(after.epoch);
            if !follows {
                return Err(EpochError::Gap(after.epoch));
            }
        }
        Ok(Self { epochs: epochs.into(), ..Self::default() })
    }

    /// The same with the rule sets that begin after the first one: each later and higher than the one before.
    pub fn with_rules(self, rules: Vec<RulesChange>) -> Result<Self, EpochError> {
        let mut before = RulesChange { first: 0, rules: FIRST_RULES };
        for change in &rules {
            if change.first <= before.first || change.rules <= before.rules {
                return Err(EpochError::Rules { first: change.first, rules: change.rules });
            }
            before = *change;
        }
        Ok(Self { rules: rules.into(), ..self })
    }

    /// The same with the keys of sequencers, the chain's first from block 0 on among them, as they stood in L1 block
    /// `read_at`: each from a later block on than the one before, and another key than it.
    pub fn with_sequencers(self, sequencers: Vec<SequencerChange>, read_at: u64) -> Result<Self, EpochError> {
        let begins = sequencers.first().is_some_and(|change| change.from_block == 0);
        let first = sequencers.first().map(|change| change.from_block).unwrap_or_default();
        let wrong = sequencers.iter().zip(sequencers.iter().skip(1)).find(|(before, after)| {
            after.from_block <= before.from_block || after.sequencer == before.sequencer
        });
        match wrong {
            Some((_, after)) => Err(EpochError::Sequencers { from_block: after.from_block }),
            None if begins => Ok(Self { sequencers: sequencers.into(), read_at, ..self }),
            None => Err(EpochError::Sequencers { from_block: first }),
        }
    }

    /// The same, of which a later L1 block said nothing else.
    pub fn read_again_at(self, read_at: u64) -> Self {
        Self { read_at, ..self }
    }

    /// Whose signature stands under headers with this L1 origin; `None` where no key is known. It can change for origins
    /// above [`read_at`](Self::read_at) (K-1).
    pub fn sequencer_at(&self, origin: u64) -> Option<Address> {
        let index = self.sequencers.partition_point(|change| change.from_block <= origin);
        self.sequencers.get(index.checked_sub(1)?).map(|change| change.sequencer)
    }

    /// The first of the L1 origins around this one whose headers are signed with one key.
    pub fn sequencer_since(&self, origin: u64) -> u64 {
        let last = self.sequencers.iter().rev().find(|change| change.from_block <= origin);
        last.map_or(0, |change| change.from_block)
    }

    /// The last of the L1 origins around this one whose headers are signed with one key: `u64::MAX` where no change comes
    /// after it.
    pub fn sequencer_until(&self, origin: u64) -> u64 {
        let next = self.sequencers.iter().find(|change| change.from_block > origin);
        next.map_or(u64::MAX, |change| change.from_block.saturating_sub(1))
    }

    /// The newest stretch of L1 origins of headers that this key signs, as far as is known: `u64::MAX` is the end of one
    /// that has none. `None` for a key that was never named.
    pub fn sequencer_term(&self, sequencer: Address) -> Option<RangeInclusive<u64>> {
        let place = self.sequencers.iter().rposition(|change| change.sequencer == sequencer)?;
        let from = self.sequencers.get(place)?.from_block;
        let next = self.sequencers.get(place + 1);
        Some(from..=next.map_or(u64::MAX, |change| change.from_block.saturating_sub(1)))
    }

    /// The rule sets that begin after the first one, in order.
    pub fn rules(&self) -> &[RulesChange] {
        &self.rules
    }

    /// Keys of sequencers, in order.
    pub fn sequencers(&self) -> &[SequencerChange] {
        &self.sequencers
    }

    /// The final L1 block that this was read at, 0 where nothing was: what it says of headers with origins up to there
    /// stays.
    pub fn read_at(&self) -> u64 {
        self.read_at
    }

    /// The epoch of a batch number.
    pub fn at(&self, number: u64) -> Option<&Epoch> {
        let index = self.epochs.partition_point(|epoch| epoch.last < number);
        self.epochs.get(index).filter(|epoch| epoch.contains(number))
    }

    /// The rule set of a batch number (L-2).
    pub fn rules_at(&self, number: u64) -> u16 {
        let index = self.rules.partition_point(|change| change.first <= number);
        index
            .checked_sub(1)
            .and_then(|index| self.rules.get(index))
            .map_or(FIRST_RULES, |change| change.rules)
    }

    /// The epoch with this number.
    pub fn by_epoch(&self, epoch: u64) -> Option<&Epoch> {
        self.epochs.iter().find(|candidate| candidate.epoch == epoch)
    }

    /// All epochs that are known, in order of their numbers.
    pub fn as_slice(&self) -> &[Epoch] {
        &self.epochs
    }
}
