//! Admission: every check of an envelope with its precise refusal, then durable, then acknowledged.

use std::{net::IpAddr, sync::Arc, time::Instant};

use blindfold_protocol::{
    Address, B256, Canonical, Envelope, EnvelopeFault, Epoch, Promise,
    limits::MAX_ENVELOPE_BYTES,
    validity::{ChainState, CheckedEnvelope},
};
use blindfold_store::PendingEnvelope;

use crate::{
    core::{Core, PoolItem},
    mempool::{Mempool, Meta, PoolRefusal},
    refusal::AdmissionRefusal,
};

/// An envelope that the sequencer answers for.
#[derive(Clone, Debug)]
pub(crate) struct Admitted {
    /// Its id.
    pub(crate) id: B256,
    /// The promise, if asked for.
    pub(crate) promise: Option<Promise>,
}

impl Core {
    /// Admits an envelope: durable when this returns. The same envelope again gives the same answer.
    pub(crate) async fn admit(
        &self,
        source: Option<IpAddr>,
        bytes: Vec<u8>,
        promise: bool,
    ) -> Result<Admitted, AdmissionRefusal> {
        let started = Instant::now();
        let result = self.admit_checked(source, bytes, promise).await;
        match &result {
            Ok(_) => self.metrics.admission_seconds.observe_duration(started.elapsed()),
            Err(refusal) => {
                self.metrics.envelopes_refused.get(&[refusal.reason()]).increment();
                tracing::debug!(reason = refusal.reason(), %refusal, "envelope refused");
            }
        }
        result
    }

    async fn admit_checked(
        &self,
        source: Option<IpAddr>,
        bytes: Vec<u8>,
        promise: bool,
    ) -> Result<Admitted, AdmissionRefusal> {
        if self.stopping() {
            return Err(AdmissionRefusal::ShuttingDown);
        }
        if source.is_some_and(|source| !self.sources.allow(source, Instant::now())) {
            return Err(AdmissionRefusal::SourceLimit);
        }
        if bytes.len() > MAX_ENVELOPE_BYTES {
            return Err(AdmissionRefusal::TooLarge { bytes: bytes.len(), limit: MAX_ENVELOPE_BYTES });
        }
        let envelope = Envelope::decode(&bytes).map_err(|error| {
            fault(EnvelopeFault::Undecodable, format!("the envelope does not decode: {error}"))
        })?;
        let id = envelope.id();
        if let Some(known) = self.known(&id, promise).await? {
            return Ok(known);
        }
        let meta = meta_of(&envelope, id, bytes.len(), None);
        // A full pool or a greedy payer costs no verification. The check that counts comes with the place itself.
        let room = self.pool.lock().check(&meta);
        if !matches!(room, Err(PoolRefusal::NoncePending)) {
            self.place(room)?;
        }
        let (epoch, number) = self.epoch_for(&envelope).await?;
        let bytes: Arc<[u8]> = bytes.into();
        let checked = self
            .verifier
            .verify(Arc::clone(&bytes), epoch, number)
            .await?
            .map_err(|kind| explain(kind, &envelope, number))?;
        self.take_place(meta, PoolItem { bytes, checked: Arc::new(checked) }, promise).await
    }

    /// The epoch the envelope was encrypted for, if a batch of it can come (the next number's, or the one after),
    /// and the next number. For any other envelope the next number's epoch, against which it is wrong.
    async fn epoch_for(&self, envelope: &Envelope) -> Result<(Arc<Epoch>, u64), AdmissionRefusal> {
        let number = self.tracker.head().number + 1;
        let current = self.tracker.epoch(number).await.map_err(|refusal| {
            tracing::warn!(%refusal, number, "no epoch for the next batch");
            AdmissionRefusal::NoEpoch
        })?;
        let header = &envelope.header;
        if Some(header.epoch) == current.epoch.checked_add(1)
            && let Ok(following) = self.tracker.epoch(current.last.saturating_add(1)).await
        {
            if header.expiry < following.first {
                return Err(explain(EnvelopeFault::Expired, envelope, following.first));
            }
            return Ok((Arc::new(following), number));
        }
        Ok((Arc::new(current), number))
    }

    /// Answers for an envelope that is here already: pending ones get the same answer, later ones a refusal.
    async fn known(&self, id: &B256, promise: bool) -> Result<Option<Admitted>, AdmissionRefusal> {
        let pending = self.pool.lock().get(id).cloned();
        if let Some(meta) = pending {
            return self.acknowledge_again(meta, promise).await.map(Some);
        }
        match self.store.envelope_location(*id).await {
            Ok(None) => {}
            Ok(Some(_)) => return Err(AdmissionRefusal::AlreadyKnown),
            Err(error) => return Err(storage(&error)),
        }
        match self.store.envelope_outcome(*id).await {
            Ok(None) => Ok(None),
            Ok(Some(_)) => Err(AdmissionRefusal::AlreadyKnown),
            Err(error) => Err(storage(&error)),
        }
    }

    /// The same envelope again. Its first sender may still wait for the disk, so this call waits for it as well.
    async fn acknowledge_again(&self, meta: Meta, promise: bool) -> Result<Admitted, AdmissionRefusal> {
        let id = meta.id;
        let Some(item) = self.pool.lock().item(&id).cloned() else {
            // Sealed in this very moment.
            return Err(AdmissionRefusal::AlreadyKnown);
        };
        self.make_durable(id, &item, meta.seal_by).await?;
        if self.pool.lock().get(&id).is_none() {
            // Sealed meanwhile, or the first call failed at the disk and took it out.
            return Err(match self.store.envelope_location(id).await {
                Ok(Some(_)) => AdmissionRefusal::AlreadyKnown,
                _ => AdmissionRefusal::Storage,
            });
        }
        let seal_by = match meta.seal_by {
            None if promise => {
                let seal_by = self.seal_by(&meta);
                Some(self.promise_late(id, seal_by).await?)
            }
            standing => standing.filter(|_| promise),
        };
        Ok(self.answer(id, seal_by))
    }

    /// Takes a place in the mempool, writes the envelope down, then offers it to batches.
    async fn take_place(
        &self,
        mut meta: Meta,
        item: PoolItem,
        promise: bool,
    ) -> Result<Admitted, AdmissionRefusal> {
        let id = meta.id;
        if promise {
            meta.seal_by = Some(self.seal_by(&meta));
        }
        let seal_by = meta.seal_by;
        let reserved = {
            // The pool's lock comes before the tracker's, here and in the sealer.
            let mut pool = self.pool.lock();
            self.affordable(&pool, &meta, &item.checked)?;
            let reserved = pool.reserve(meta, item.clone());
            self.show_pool(&pool);
            reserved
        };
        if reserved == Err(PoolRefusal::Known) {
            // Another call brought it while this one verified.
            return self.known(&id, promise).await?.ok_or(AdmissionRefusal::AlreadyKnown);
        }
        self.place(reserved)?;
        if let Err(refusal) = self.make_durable(id, &item, seal_by).await {
            let mut pool = self.pool.lock();
            pool.remove(&id);
            self.show_pool(&pool);
            return Err(refusal);
        }
        self.pool.lock().ready(&id);
        if self.arrived.add(item.bytes.len(), &self.config.sealing) {
            self.full.notify_one();
        }
        self.metrics.envelopes_admitted.increment();
        Ok(self.answer(id, if promise { seal_by } else { None }))
    }

    /// Fee nonce, fee and funds after the last sealed header, less what the payer's pending envelopes will cost.
    fn affordable(
        &self,
        pool: &Mempool<PoolItem>,
        meta: &Meta,
        checked: &CheckedEnvelope,
    ) -> Result<(), AdmissionRefusal> {
        self.tracker.with_state(|state| {
            let number = state.head().number + 1;
            state.admissible(checked).map_err(|kind| explain(kind, &checked.envelope, number))?;
            if pool.get(&meta.id).is_some() {
                // The same envelope, brought by another call meanwhile, is no competitor of itself.
                return Ok(());
            }
            let (base_fee, surcharge) = (state.next_base_fee(), self.chain.malformed_surcharge);
            let balance = state.ledger().account(&meta.payer).map_or(0, |account| account.balance);
            let pending = self.committed(pool, state, &meta.payer);
            let fee = meta.fee(base_fee).saturating_add(surcharge);
            let needed = pending.saturating_add(fee);
            if balance < needed {
                let detail = format!(
                    "the payer has {balance} wei; this envelope costs {fee} wei and its pending ones {pending} wei"
                );
                return Err(fault(EnvelopeFault::InsufficientFunds, detail));
            }
            Ok(())
        })
    }

    /// What the payer's pending envelopes will cost at the next base fee.
    pub(crate) fn committed(&self, pool: &Mempool<PoolItem>, state: &ChainState, payer: &Address) -> u128 {
        let number = state.head().number + 1;
        let account = state.ledger().account(payer);
        // A live fee nonce is an envelope that was paid for.
        let paid = |nonce: u64| {
            account.and_then(|account| account.nonces.get(&nonce)).is_some_and(|by| *by >= number)
        };
        pool.committed(payer, state.next_base_fee(), self.chain.malformed_surcharge, paid)
    }

    async fn make_durable(
        &self,
        id: B256,
        item: &PoolItem,
        seal_by: Option<u64>,
    ) -> Result<(), AdmissionRefusal> {
        let arrived_ms = self.clock.now_ms();
        let record = PendingEnvelope { id, bytes: item.bytes.to_vec(), arrived_ms, seal_by };
        self.store.put_envelope(record).await.map_err(|error| storage(&error))
    }

    /// The number by which a promise says the envelope is sealed. An envelope of the next epoch counts from there.
    fn seal_by(&self, meta: &Meta) -> u64 {
        let head = self.tracker.head().number;
        let from = match self.parameters.iter().find(|entry| entry.epoch().epoch == meta.epoch) {
            Some(entry) => entry.epoch().first.saturating_sub(1).max(head),
            None => head,
        };
        from.saturating_add(self.config.sealing.promise_batches).min(meta.expiry)
    }

    fn answer(&self, id: B256, seal_by: Option<u64>) -> Admitted {
        let promise = seal_by.map(|seal_by| {
            self.metrics.promises.increment();
            Promise::sign(&self.key, &self.chain.deployment, id, seal_by)
        });
        Admitted { id, promise }
    }

    fn place(&self, result: Result<(), PoolRefusal>) -> Result<(), AdmissionRefusal> {
        match result {
            // The same id is answered before a place is asked for.
            Ok(()) | Err(PoolRefusal::Known) => Ok(()),
            Err(PoolRefusal::NoncePending) => Err(fault(
                EnvelopeFault::FeeNonceUsed,
                "another pending envelope of the payer uses this fee nonce".to_owned(),
            )),
            Err(PoolRefusal::Full) => Err(AdmissionRefusal::PoolFull),
            Err(PoolRefusal::PayerLimit) => {
                Err(AdmissionRefusal::PayerLimit { limit: self.config.mempool.max_per_payer })
            }
        }
    }
}

/// What ordering needs to know of an envelope.
pub(crate) fn meta_of(envelope: &Envelope, id: B256, bytes: usize, seal_by: Option<u64>) -> Meta {
    let header = &envelope.header;
    Meta {
        id,
        payer: header.payer,
        fee_nonce: header.fee_nonce,
        epoch: header.epoch,
        expiry: header.expiry,
        max_fee: header.max_fee,
        priority_fee: header.priority_fee,
        gas_limit: header.gas_limit,
        // An envelope has at most MAX_ENVELOPE_BYTES.
        item_bytes: bytes as u32,
        seal_by,
    }
}

fn fault(fault: EnvelopeFault, detail: String) -> AdmissionRefusal {
    AdmissionRefusal::Fault { fault, detail }
}

/// A fault with the fields that it is about.
fn explain(kind: EnvelopeFault, envelope: &Envelope, number: u64) -> AdmissionRefusal {
    let header = &envelope.header;
    let detail = match kind {
        EnvelopeFault::WrongChain => format!("the envelope is for chain {}", header.chain_id),
        EnvelopeFault::WrongDeployment => {
            format!(
                "the envelope is for the inbox {} on L1 chain {}",
                header.deployment.inbox, header.deployment.l1_chain_id
            )
        }
        EnvelopeFault::WrongEpoch => {
            format!("the envelope is for epoch {}, batch {number} is not", header.epoch)
        }
        EnvelopeFault::Expired => {
            format!("the envelope expired with batch {}, the next is {number}", header.expiry)
        }
        EnvelopeFault::ExpiryTooFar => {
            format!(
                "the envelope's expiry {} is too far ahead of batch {number} or after its epoch",
                header.expiry
            )
        }
        EnvelopeFault::GasLimitTooHigh => format!("the gas limit {} does not fit a block", header.gas_limit),
        EnvelopeFault::FeeNonceUsed => format!("the fee nonce {} is used", header.fee_nonce),
        EnvelopeFault::FeeTooLow => {
            format!(
                "max fee {} and priority fee {} do not pay the base fee",
                header.max_fee, header.priority_fee
            )
        }
        EnvelopeFault::InsufficientFunds => {
            format!("the fee account of {} does not cover the fee", header.payer)
        }
        other => format!("the envelope breaks the rule {}", other.as_str()),
    };
    fault(kind, detail)
}

fn storage(error: &blindfold_store::StoreError) -> AdmissionRefusal {
    tracing::error!(%error, "the store refused an envelope");
    AdmissionRefusal::Storage
}
