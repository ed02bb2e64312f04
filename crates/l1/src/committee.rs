//! Epochs and encryption keys of `CommitteeRegistry`.

use alloy_primitives::U256;
use blindfold_bte::{
    EncryptionKey, GT_BYTES,
    bls::{PublicKey, Signature},
};
use blindfold_protocol::{Address, B256, Epoch, Epochs, RulesChange, SequencerChange};

use crate::{
    L1Client, L1Error,
    contracts::{BlindedInbox, CommitteeRegistry},
};

/// One coordinate as EIP-2537 has it: 16 zero bytes and 48 of the number.
const COORDINATE_BYTES: usize = 64;
const PADDING_BYTES: usize = 16;
/// (p − 1) / 2, in 48 bytes: a compressed point's flag says whether y is above it.
const HALF_MODULUS: [u8; 48] = alloy_primitives::hex!(
    "0d0088f51cbff34d258dd3db21a5d66bb23ba5c279c2895fb39869507b587b120f55ffff58a9ffffdcff7fffffffd555"
);

/// An epoch as L1 registered it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochRecord {
    /// What the rules need.
    pub epoch: Epoch,
    /// Where the public parameters can be fetched; their hash decides.
    pub parameters_location: String,
}

/// What `CommitteeRegistry` held on a final block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registry {
    /// The contract's count of changes.
    revision: u64,
    /// The block.
    block: u64,
    records: Vec<EpochRecord>,
    rules: Vec<RulesChange>,
    sequencers: Vec<SequencerChange>,
    /// An announced end that is still in force. The count of changes leaves it out, so it is read for each block.
    ending: Option<AnnouncedEnd>,
}

/// A member of a committee to be registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMember {
    /// Its key.
    pub key: PublicKey,
    /// Its proof of possession, `SecretKey::prove_possession`.
    pub possession: Signature,
}

/// An epoch to be registered. It begins where the one before ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEpoch {
    /// Last batch number.
    pub last: u64,
    /// B.
    pub max_batch: u32,
    /// t.
    pub threshold: u16,
    /// Hash of the public parameters.
    pub parameters_hash: B256,
    /// The earlier epoch whose key it continues; 0 for a new key.
    pub continues: u64,
    /// The encryption key.
    pub encryption_key: EncryptionKey,
    /// h₁ of the parameters, which is a point like a member's key.
    pub h1: PublicKey,
    /// Where the public parameters can be fetched.
    pub parameters_location: String,
    /// Members 1..n in order.
    pub members: Vec<NewMember>,
}

/// An end of an epoch at the head that the governor announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnouncedEnd {
    /// The epoch.
    pub epoch: u64,
    /// The block of the announcement.
    pub announced_at: u64,
    /// After this block the next header that L1 makes is its last.
    pub until: u64,
    /// Announced for silence: something certified since takes it back.
    pub for_silence: bool,
}

impl L1Client {
    /// The end of an epoch that is announced after the newest block, if there is one.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn announced_end(&self) -> Result<Option<AnnouncedEnd>, L1Error> {
        self.ending("latest").await
    }

    /// The end of an epoch that is announced after the newest final block, and that nothing certified has taken back since.
    ///
    /// # Errors
    /// As [`L1Client::epoch_records`].
    pub async fn final_end(&self) -> Result<Option<AnnouncedEnd>, L1Error> {
        Ok(self.registry().await?.ending)
    }

    /// Whether the end of this number's epoch is due after the newest block: the header of that number is L1's to make.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn end_due(&self, number: u64) -> Result<bool, L1Error> {
        let registry = self.inner.config.contracts.registry;
        self.inner.rpc.view("endDue", registry, &CommitteeRegistry::endDueCall { number }, "latest").await
    }

    async fn ending(&self, block: &str) -> Result<Option<AnnouncedEnd>, L1Error> {
        let registry = self.inner.config.contracts.registry;
        let call = CommitteeRegistry::endingCall {};
        let found = self.inner.rpc.view("ending", registry, &call, block).await?;
        let end = AnnouncedEnd {
            epoch: found.epoch,
            announced_at: found.announcedAt,
            until: found.until,
            for_silence: found.forSilence,
        };
        Ok((end.epoch != 0).then_some(end))
    }

    /// The announced end, unless its committee was silent and is back: the rule of `endDue`.
    async fn ending_in_force(&self, block: &str) -> Result<Option<AnnouncedEnd>, L1Error> {
        let Some(end) = self.ending(block).await? else { return Ok(None) };
        if end.for_silence {
            let (inbox, call) = (self.inner.config.deployment.inbox, BlindedInbox::lastCertifiedAtCall {});
            let certified_at = self.inner.rpc.view("lastCertifiedAt", inbox, &call, block).await?;
            return Ok((certified_at < end.announced_at).then_some(end));
        }
        Ok(Some(end))
    }

    /// An epoch's first and last batch number, as of the newest block; of one that was taken back the last is before the
    /// first.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn numbers_of(&self, epoch: u64) -> Result<(u64, u64), L1Error> {
        let registry = self.inner.config.contracts.registry;
        let call = CommitteeRegistry::numbersOfCall { epoch };
        let numbers = self.inner.rpc.view("numbersOf", registry, &call, "latest").await?;
        Ok((numbers.firstNumber, numbers.lastNumber))
    }

    /// The key that signs headers once every change that is named by now has begun, as of the newest block.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn last_sequencer(&self) -> Result<Address, L1Error> {
        let registry = self.inner.config.contracts.registry;
        let call = CommitteeRegistry::sequencerAtCall { l1Block: u64::MAX };
        self.inner.rpc.view("sequencerAt", registry, &call, "latest").await
    }

    /// The last change of the rule set after the newest block, if there is one: while it is far enough ahead it can be taken
    /// back.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn last_rules_change(&self) -> Result<Option<RulesChange>, L1Error> {
        let (rpc, registry) = (&self.inner.rpc, self.inner.config.contracts.registry);
        let call = CommitteeRegistry::rulesChangeCountCall {};
        let count = rpc.view("rulesChangeCount", registry, &call, "latest").await?;
        let Some(last) = count.checked_sub(U256::ONE) else { return Ok(None) };
        let call = CommitteeRegistry::rulesChangesCall(last);
        let change = rpc.view("rulesChanges", registry, &call, "latest").await?;
        Ok(Some(RulesChange { first: change.firstNumber, rules: change.rules }))
    }

    /// The registered epochs, in order, as they stand on the newest final block.
    ///
    /// # Errors
    /// [`L1Error::MemberKey`], [`L1Error::Epochs`] when the contract holds what it should have refused; the errors
    /// of a call.
    pub async fn epoch_records(&self) -> Result<Vec<EpochRecord>, L1Error> {
        Ok(self.registry().await?.records)
    }

    /// The registered epochs, rule sets and keys of sequencers as the rules take them.
    ///
    /// # Errors
    /// As [`L1Client::epoch_records`].
    pub async fn epochs(&self) -> Result<Epochs, L1Error> {
        let Registry { block, records, rules, sequencers, .. } = self.registry().await?;
        let epochs =
            Epochs::new(records.into_iter().map(|record| record.epoch).collect())?.with_rules(rules)?;
        // Before the registry's own block is final it says nothing.
        if sequencers.is_empty() { Ok(epochs) } else { Ok(epochs.with_sequencers(sequencers, block)?) }
    }

    /// What the registry holds on the newest final block. Asks once for each such block whether anything changed, and
    /// reads everything anew when it did: an epoch can end earlier than it was registered.
    async fn registry(&self) -> Result<Registry, L1Error> {
        let address = self.inner.config.contracts.registry;
        let finalized = self.finalized().await?.number;
        let mut known = self.inner.registry.lock().await;
        if known.as_ref().is_some_and(|known| known.block >= finalized) {
            return Ok(known.clone().unwrap_or_default());
        }
        let block = format!("{finalized:#x}");
        let (rpc, block) = (&self.inner.rpc, block.as_str());
        let revision = match rpc.view("revision", address, &CommitteeRegistry::revisionCall {}, block).await {
            Ok(revision) => revision,
            // Before the registry's own block is final there is no code to answer.
            Err(L1Error::Undecodable { .. }) if known.is_none() => return Ok(Registry::default()),
            Err(error) => return Err(error),
        };
        let ending = self.ending_in_force(block).await?;
        if let Some(known) = known.as_mut().filter(|known| known.revision == revision) {
            (known.block, known.ending) = (finalized, ending);
            return Ok(known.clone());
        }
        let mut read = Registry { revision, block: finalized, ending, ..Registry::default() };
        let count = rpc.view("epochCount", address, &CommitteeRegistry::epochCountCall {}, block).await?;
        for epoch in 1..=count {
            let found =
                rpc.view("getEpoch", address, &CommitteeRegistry::getEpochCall { epoch }, block).await?;
            read.records.push(record(epoch, found)?);
        }
        let call = CommitteeRegistry::rulesChangeCountCall {};
        let count: u64 = rpc.view("rulesChangeCount", address, &call, block).await?.saturating_to();
        for index in 0..count {
            let call = CommitteeRegistry::rulesChangesCall(U256::from(index));
            let change = rpc.view("rulesChanges", address, &call, block).await?;
            read.rules.push(RulesChange { first: change.firstNumber, rules: change.rules });
        }
        read.sequencers = self.sequencers(block).await?;
        *known = Some(read.clone());
        Ok(read)
    }

    /// The keys of sequencers after a block.
    async fn sequencers(&self, block: &str) -> Result<Vec<SequencerChange>, L1Error> {
        let (rpc, address) = (&self.inner.rpc, self.inner.config.contracts.registry);
        let call = CommitteeRegistry::firstSequencerCall {};
        let sequencer = rpc.view("firstSequencer", address, &call, block).await?;
        let mut sequencers = vec![SequencerChange { from_block: 0, sequencer }];
        let call = CommitteeRegistry::sequencerChangeCountCall {};
        let count: u64 = rpc.view("sequencerChangeCount", address, &call, block).await?.saturating_to();
        for index in 0..count {
            let call = CommitteeRegistry::sequencerChangesCall(U256::from(index));
            let change = rpc.view("sequencerChanges", address, &call, block).await?;
            sequencers.push(SequencerChange { from_block: change.fromBlock, sequencer: change.sequencer });
        }
        Ok(sequencers)
    }

    /// The encryption key of an epoch, checked against its registered hash.
    ///
    /// # Errors
    /// [`L1Error::UnknownEpoch`], [`L1Error::EncryptionKey`]; the errors of a call.
    pub async fn encryption_key(&self, epoch: u64) -> Result<EncryptionKey, L1Error> {
        let records = self.epoch_records().await?;
        let record =
            records.iter().find(|record| record.epoch.epoch == epoch).ok_or(L1Error::UnknownEpoch(epoch))?;
        let call = CommitteeRegistry::encryptionKeyCall { epoch };
        let bytes = self
            .inner
            .rpc
            .view("encryptionKey", self.inner.config.contracts.registry, &call, "latest")
            .await?;
        let refused = L1Error::EncryptionKey(epoch);
        let bytes: &[u8; GT_BYTES] = bytes.as_ref().try_into().map_err(|_| refused.clone())?;
        let key = EncryptionKey::from_bytes(bytes).map_err(|_| refused.clone())?;
        if key.hash() != record.epoch.encryption_key_hash.0 {
            return Err(refused);
        }
        Ok(key)
    }
}

fn record(number: u64, read: CommitteeRegistry::Epoch) -> Result<EpochRecord, L1Error> {
    let members = read
        .memberKeys
        .iter()
        .enumerate()
        .map(|(index, key)| {
            decompress_key(key).ok_or(L1Error::MemberKey { epoch: number, member: index + 1 })
        })
        .collect::<Result<_, _>>()?;
    let epoch = Epoch {
        epoch: number,
        first: read.firstNumber,
        last: read.lastNumber,
        counts_from: read.countsFrom,
        continues: read.continues,
        parameters_hash: read.parametersHash,
        encryption_key_hash: read.encryptionKeyHash,
        max_batch: read.maxBatch,
        threshold: read.threshold,
        members,
    };
    epoch.validate()?;
    Ok(EpochRecord { epoch, parameters_location: read.parametersLocation })
}

/// A key from its EIP-2537 encoding.
pub(crate) fn decompress_key(bytes: &[u8]) -> Option<PublicKey> {
    let bytes: &[u8; 4 * COORDINATE_BYTES] = bytes.try_into().ok()?;
    let [x0, x1, y0, y1] = [0, 1, 2, 3].map(|slot| coordinate(bytes, slot));
    let mut compressed = [0u8; 96];
    compressed[..48].copy_from_slice(x1);
    compressed[48..].copy_from_slice(x0);
    let deciding = if y1.iter().any(|byte| *byte != 0) { y1 } else { y0 };
    compressed[0] |= flags(deciding);
    // The round trip refuses padding that is not zero and a y that is not on the curve.
    PublicKey::from_bytes(&compressed).ok().filter(|key| key.to_eip2537() == *bytes)
}

/// A signature from its EIP-2537 encoding.
pub(crate) fn decompress_signature(bytes: &[u8]) -> Option<Signature> {
    let bytes: &[u8; 2 * COORDINATE_BYTES] = bytes.try_into().ok()?;
    let mut compressed = [0u8; 48];
    compressed.copy_from_slice(coordinate(bytes, 0));
    compressed[0] |= flags(coordinate(bytes, 1));
    Signature::from_bytes(&compressed).ok().filter(|signature| signature.to_eip2537() == *bytes)
}

/// The 48 bytes of coordinate `slot`.
fn coordinate(bytes: &[u8], slot: usize) -> &[u8] {
    &bytes[slot * COORDINATE_BYTES + PADDING_BYTES..(slot + 1) * COORDINATE_BYTES]
}

/// Flags of a compressed point: compressed, and which of the two y it is.
fn flags(y: &[u8]) -> u8 {
    if y > HALF_MODULUS.as_slice() { 0xa0 } else { 0x80 }
}

#[cfg(test)]
#[path = "committee_tests.rs"]
mod tests;
