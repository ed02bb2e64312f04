//! Reading epochs and encryption keys of `CommitteeRegistry`.

use std::sync::Arc;

use alloy_eips::BlockId;
use alloy_primitives::U256;
use blindfold_bte::{EncryptionKey, GT_BYTES};
use blindfold_protocol::{Address, Epochs, RulesChange, SequencerChange};

use crate::{
    contracts::{BlindedInbox, CommitteeRegistry},
    error::L1Error,
    reader::{
        client::L1Client,
        committee::{AnnouncedEnd, EpochRecord, Registry, record},
    },
};

impl L1Client {
    /// The end of an epoch that is announced after the newest block, if there is one.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn announced_end(&self) -> Result<Option<AnnouncedEnd>, L1Error> {
        self.ending(BlockId::latest()).await
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
        self.inner.rpc.view("endDue", registry, &CommitteeRegistry::endDueCall { number }).await
    }

    async fn ending(&self, block: impl Into<BlockId>) -> Result<Option<AnnouncedEnd>, L1Error> {
        let registry = self.inner.config.contracts.registry;
        let call = CommitteeRegistry::endingCall {};
        let found = self.inner.rpc.view_at("ending", registry, &call, block).await?;
        let end = AnnouncedEnd {
            epoch: found.epoch,
            announced_at: found.announcedAt,
            until: found.until,
            for_silence: found.forSilence,
        };
        Ok((end.epoch != 0).then_some(end))
    }

    /// The announced end, unless its committee was silent and is back: the rule of `endDue`.
    async fn ending_in_force(&self, block: u64) -> Result<Option<AnnouncedEnd>, L1Error> {
        let Some(end) = self.ending(block).await? else { return Ok(None) };
        if end.for_silence {
            let (inbox, call) = (self.inner.config.deployment.inbox, BlindedInbox::lastCertifiedAtCall {});
            let certified_at = self.inner.rpc.view_at("lastCertifiedAt", inbox, &call, block).await?;
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
        let numbers = self.inner.rpc.view("numbersOf", registry, &call).await?;
        Ok((numbers.firstNumber, numbers.lastNumber))
    }

    /// The key that signs headers once every change that is named by now has begun, as of the newest block.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn last_sequencer(&self) -> Result<Address, L1Error> {
        let registry = self.inner.config.contracts.registry;
        let call = CommitteeRegistry::sequencerAtCall { l1Block: u64::MAX };
        self.inner.rpc.view("sequencerAt", registry, &call).await
    }

    /// The last change of the rule set after the newest block, if there is one: while it is far enough ahead it can be taken
    /// back.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn last_rules_change(&self) -> Result<Option<RulesChange>, L1Error> {
        let (rpc, registry) = (&self.inner.rpc, self.inner.config.contracts.registry);
        let call = CommitteeRegistry::rulesChangeCountCall {};
        let count = rpc.view("rulesChangeCount", registry, &call).await?;
        let Some(last) = count.checked_sub(U256::ONE) else { return Ok(None) };
        let call = CommitteeRegistry::rulesChangesCall(last);
        let change = rpc.view("rulesChanges", registry, &call).await?;
        Ok(Some(RulesChange { first: change.firstNumber, rules: change.rules }))
    }

    /// The registered epochs, in order, as they stand on the newest final block.
    ///
    /// # Errors
    /// [`L1Error::MemberKey`], [`L1Error::Epochs`] when the contract holds what it should have refused; the errors
    /// of a call.
    pub async fn epoch_records(&self) -> Result<Vec<EpochRecord>, L1Error> {
        Ok(self.registry().await?.records.clone())
    }

    /// The registered epochs, rule sets and keys of sequencers as the rules take them.
    ///
    /// # Errors
    /// As [`L1Client::epoch_records`].
    pub async fn epochs(&self) -> Result<Epochs, L1Error> {
        Ok(self.registry().await?.epochs.clone())
    }

    /// What the registry holds on the newest final block. Asks once for each such block whether anything changed, and
    /// reads everything anew when it did: an epoch can end earlier than it was registered.
    async fn registry(&self) -> Result<Arc<Registry>, L1Error> {
        let address = self.inner.config.contracts.registry;
        let finalized = self.finalized().await?.number;
        let mut known = self.inner.registry.lock().await;
        if let Some(known) = known.as_ref().filter(|known| known.block >= finalized) {
            return Ok(Arc::clone(known));
        }
        let (rpc, block) = (&self.inner.rpc, finalized);
        let call = CommitteeRegistry::revisionCall {};
        let revision = match rpc.view_at("revision", address, &call, block).await {
            Ok(revision) => revision,
            // Before the registry's own block is final there is no code to answer.
            Err(L1Error::Undecodable { .. }) if known.is_none() => return Ok(Arc::default()),
            Err(error) => return Err(error),
        };
        let ending = self.ending_in_force(block).await?;
        let read = match known.as_ref().filter(|known| known.revision == revision) {
            Some(known) => {
                let (records, epochs) = (known.records.clone(), known.epochs.clone());
                Registry { revision, block, records, epochs: epochs.read_again_at(block), ending }
            }
            None => {
                let records = self.records(block).await?;
                let epochs = records.iter().map(|record| record.epoch.clone()).collect();
                let epochs = Epochs::new(epochs)?
                    .with_rules(self.rules(block).await?)?
                    .with_sequencers(self.sequencers(block).await?, block)?;
                Registry { revision, block, records, epochs, ending }
            }
        };
        Ok(Arc::clone(known.insert(Arc::new(read))))
    }

    /// The epochs after a block.
    async fn records(&self, block: u64) -> Result<Vec<EpochRecord>, L1Error> {
        let (rpc, address) = (&self.inner.rpc, self.inner.config.contracts.registry);
        let count = rpc.view_at("epochCount", address, &CommitteeRegistry::epochCountCall {}, block).await?;
        let mut records = Vec::new();
        for epoch in 1..=count {
            let found =
                rpc.view_at("getEpoch", address, &CommitteeRegistry::getEpochCall { epoch }, block).await?;
            records.push(record(epoch, found)?);
        }
        Ok(records)
    }

    /// The rule sets after a block.
    async fn rules(&self, block: u64) -> Result<Vec<RulesChange>, L1Error> {
        let (rpc, address) = (&self.inner.rpc, self.inner.config.contracts.registry);
        let call = CommitteeRegistry::rulesChangeCountCall {};
        let count: u64 = rpc.view_at("rulesChangeCount", address, &call, block).await?.saturating_to();
        let mut rules = Vec::new();
        for index in 0..count {
            let call = CommitteeRegistry::rulesChangesCall(U256::from(index));
            let change = rpc.view_at("rulesChanges", address, &call, block).await?;
            rules.push(RulesChange { first: change.firstNumber, rules: change.rules });
        }
        Ok(rules)
    }

    /// The keys of sequencers after a block.
    async fn sequencers(&self, block: u64) -> Result<Vec<SequencerChange>, L1Error> {
        let (rpc, address) = (&self.inner.rpc, self.inner.config.contracts.registry);
        let call = CommitteeRegistry::firstSequencerCall {};
        let sequencer = rpc.view_at("firstSequencer", address, &call, block).await?;
        let mut sequencers = vec![SequencerChange { from_block: 0, sequencer }];
        let call = CommitteeRegistry::sequencerChangeCountCall {};
        let count: u64 = rpc.view_at("sequencerChangeCount", address, &call, block).await?.saturating_to();
        for index in 0..count {
            let call = CommitteeRegistry::sequencerChangesCall(U256::from(index));
            let change = rpc.view_at("sequencerChanges", address, &call, block).await?;
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
        let bytes = self.inner.rpc.view("encryptionKey", self.inner.config.contracts.registry, &call).await?;
        let refused = L1Error::EncryptionKey(epoch);
        let bytes: &[u8; GT_BYTES] = bytes.as_ref().try_into().map_err(|_| refused.clone())?;
        let key = EncryptionKey::from_bytes(bytes).map_err(|_| refused.clone())?;
        if key.hash() != record.epoch.encryption_key_hash.0 {
            return Err(refused);
        }
        Ok(key)
    }
}
