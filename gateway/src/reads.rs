//! JSON-RPC of relays and gateways.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use blindfold_chain::encryption_keys;
use blindfold_protocol::{Acknowledgement, Address, B256, BatchHints, Canonical, Release};
use blindfold_rpc::{
    BlindApiServer, Encoded, Passthrough, PeerAddress, READ_METHODS, RawEnvelope, ReceiptApiServer,
    ReceiptSource, RpcError, SequencerApiServer, SyncApiServer, Wire,
    jsonrpsee::{
        Extensions, PendingSubscriptionSink, RpcModule, core::SubscriptionResult, types::ErrorObjectOwned,
    },
    limits::MAX_RECEIPTS,
    too_many_ids,
    types::{
        BatchInfo, EncryptionKeyInfo, FeeAccount, FeeAccountProof, LedgerAt, Receipt, Refusal, SendOptions,
        SentEnvelope, Status, SyncOptions, SyncedEnvelope,
    },
};
use blindfold_runtime::{Instant, now};
use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use crate::{
    admission::Admission, check::CheckError, coalesce::Source, limits::MAX_STATUS_AGE_MS, source::Followed,
};

/// What is served, and on what it stands.
#[derive(Clone)]
pub(crate) struct Reads {
    pub(crate) role: &'static str,
    pub(crate) followed: Arc<Followed>,
    pub(crate) source: Source,
    /// None in a relay.
    pub(crate) admission: Option<Arc<Admission>>,
    pub(crate) status: Arc<Mutex<Option<(Status, Instant)>>>,
    /// Batches that are fetched and verified now, for all who ask for them.
    pub(crate) fetching: Arc<Mutex<HashMap<u64, Fetching>>>,
    /// Of them so many are verified at the same time.
    pub(crate) verifying: Arc<Semaphore>,
}

/// A batch that is fetched and verified.
pub(crate) type Fetching = Shared<BoxFuture<'static, Result<Option<Arc<BatchInfo>>, RpcError>>>;

impl Reads {
    /// All methods in one table.
    pub(crate) fn into_module(self) -> RpcModule<Self> {
        let takes_envelopes = self.admission.is_some();
        let mut module = BlindApiServer::into_rpc(self.clone());
        let receipts = module.merge(ReceiptApiServer::into_rpc(self.clone()));
        assert!(receipts.is_ok(), "the traits name different methods");
        if takes_envelopes {
            let synced = module.merge(SyncApiServer::into_rpc(self.clone()));
            let merged = module.merge(SequencerApiServer::into_rpc(self));
            assert!(merged.is_ok() && synced.is_ok(), "the traits name different methods");
            // Members and hint publishers talk to the sequencers themselves.
            for method in ["blind_submitAcknowledgement", "blind_submitRefusal", "blind_submitHints"] {
                module.remove_method(method);
            }
        }
        module
    }

    /// Reads of public state, which the source hands on to its execution client.
    pub(crate) fn passthrough(&self) -> Passthrough {
        let (source, metrics) = (self.source.clone(), self.followed.metrics.clone());
        Passthrough::new(READ_METHODS.iter().copied(), move |method, params| {
            let (source, reads) = (source.clone(), metrics.reads.clone());
            async move {
                reads.increment();
                let answer = source.raw(&method, params.as_deref()).await.map_err(ErrorObjectOwned::from)?;
                Ok(RawValue::to_owned(&answer))
            }
        })
    }

    /// A batch of the source, of which everything that can be verified is: once for all who ask for it at the same time.
    async fn fetched(&self, number: u64) -> Result<Option<BatchInfo>, RpcError> {
        let fetching = {
            let mut under_way = self.fetching.lock();
            let reads = self.clone();
            let begin = || {
                async move {
                    let answer = reads.fetch(number).await.map(|info| info.map(Arc::new));
                    reads.fetching.lock().remove(&number);
                    answer
                }
                .boxed()
                .shared()
            };
            under_way.entry(number).or_insert_with(begin).clone()
        };
        Ok(fetching.await?.map(|info| BatchInfo::clone(&info)))
    }

    async fn fetch(&self, number: u64) -> Result<Option<BatchInfo>, RpcError> {
        let info: Option<BatchInfo> = self.source.get("blind_getBatch", &[number]).await?;
        let Some(info) = info else { return Ok(None) };
        let Ok(_turn) = self.verifying.acquire().await else {
            return Err(RpcError::unavailable("shutting_down", "the server is stopping"));
        };
        let checked = self.check(number, &info).await;
        match checked {
            Ok(()) => Ok(Some(info)),
            Err(error) => {
                // What cannot be judged here says nothing of the source, nor of this relay.
                if !error.may_pass() {
                    self.followed.refuse(number, &error);
                }
                let message = match error.may_pass() {
                    true => "this batch cannot be verified here now",
                    false => "what the source says of this batch does not stand",
                };
                Err(RpcError::unavailable("source_unavailable", message))
            }
        }
    }

    async fn check(&self, number: u64, info: &BatchInfo) -> Result<(), CheckError> {
        let checks = &self.followed.checks;
        let wrong = || CheckError::View(blindfold_chain::ViewError::Root);
        let sealed = read(&info.sealed).ok_or_else(wrong)?;
        if sealed.header.number != number || sealed.header.hash() != info.hash {
            return Err(wrong());
        }
        {
            // What gave way has signatures and hints, too.
            let window = self.followed.window.lock();
            if number <= window.certified() && window.get(number).is_some_and(|held| held.hash != info.hash) {
                return Err(CheckError::Contradiction);
            }
        }
        let held = checks.header(sealed, info.verdicts.clone()).await?;
        if let Some(certificate) = &info.certificate {
            let certificate = read(certificate).ok_or_else(wrong)?;
            if (certificate.number, certificate.header_hash) != (number, held.hash) {
                return Err(wrong());
            }
            checks.certificate(certificate).await?;
        }
        if let Some(release) = &info.release {
            checks.release(&held, &read(release).ok_or_else(wrong)?)?;
        }
        if let Some(hints) = &info.hints {
            checks.hints(&held, Arc::new(read(hints).ok_or_else(wrong)?)).await?;
        }
        Ok(())
    }

    async fn batch(&self, number: u64) -> Result<Option<BatchInfo>, RpcError> {
        let here = {
            let window = self.followed.window.lock();
            let info = window.info(number);
            if info.is_some() && window.is_settled(number) {
                return Ok(info);
            }
            info
        };
        match self.fetched(number).await {
            // Better what was verified here than nothing.
            Err(error) if error.retry && here.is_some() => Ok(here),
            answer => answer,
        }
    }
}

fn read<T: Wire + Canonical>(encoded: &Encoded<T>) -> Option<T> {
    encoded.decode().ok()
}

#[async_trait]
impl BlindApiServer for Reads {
    async fn get_encryption_key(&self) -> Result<Vec<EncryptionKeyInfo>, RpcError> {
        self.followed.metrics.reads.increment();
        let head = self.followed.window.lock().head();
        let away =
            || RpcError::unavailable("source_unavailable", "where the chain stands is not known here yet");
        let next = match head {
            Some(head) => head + 1,
            // A chain that has no header yet, or one that is not known here yet.
            None if self.get_status().await.is_ok_and(|status| status.head.number == 0) => 1,
            None => return Err(away()),
        };
        Ok(encryption_keys(&self.followed.checks.parameters, next))
    }

    async fn get_receipt(&self, id: B256) -> Result<Option<Receipt>, RpcError> {
        self.followed.metrics.reads.increment();
        self.source.get("blind_getReceipt", &[id]).await
    }

    async fn get_batch(&self, number: u64) -> Result<Option<BatchInfo>, RpcError> {
        self.followed.metrics.reads.increment();
        self.batch(number).await
    }

    async fn get_hints(&self, number: u64) -> Result<Option<Encoded<BatchHints>>, RpcError> {
        self.followed.metrics.reads.increment();
        let here = self.followed.window.lock().get(number).and_then(|held| held.hints.clone());
        if let Some(hints) = here {
            return Ok(Some(Encoded::new(&*hints)));
        }
        Ok(self.batch(number).await?.and_then(|info| info.hints))
    }

    async fn get_fee_account(&self, address: Address) -> Result<FeeAccount, RpcError> {
        self.followed.metrics.reads.increment();
        self.source.get("blind_getFeeAccount", &[address]).await
    }

    async fn get_fee_account_proof(
        &self,
        address: Address,
        at: Option<LedgerAt>,
    ) -> Result<Option<FeeAccountProof>, RpcError> {
        self.followed.metrics.reads.increment();
        self.source.get("blind_getFeeAccountProof", &(address, at)).await
    }

    async fn get_status(&self) -> Result<Status, RpcError> {
        self.followed.metrics.reads.increment();
        let answer: Result<Status, RpcError> = self.source.get("blind_getStatus", &[(); 0]).await;
        let mut status = match answer {
            Ok(status) => {
                *self.status.lock() = Some((status.clone(), now()));
                status
            }
            Err(error) => {
                let kept = self.status.lock().clone();
                let age = Duration::from_millis(MAX_STATUS_AGE_MS);
                let young = kept.filter(|(_, since)| since.elapsed() < age);
                young.map(|(status, _)| status).ok_or(error)?
            }
        };
        self.role.clone_into(&mut status.role);
        env!("CARGO_PKG_VERSION").clone_into(&mut status.version);
        status.counters = self.counters();
        Ok(status)
    }

    async fn subscribe_topic(
        &self,
        pending: PendingSubscriptionSink,
        extensions: &Extensions,
        topic: String,
    ) -> SubscriptionResult {
        self.followed.hub.attach(pending, extensions, &topic).await
    }
}

impl Reads {
    fn counters(&self) -> BTreeMap<String, u64> {
        let metrics = &self.followed.metrics;
        let mut counters = BTreeMap::from([
            ("reads".to_owned(), metrics.reads.get()),
            ("refused".to_owned(), metrics.refused.get()),
            ("source_failures".to_owned(), metrics.source_failures.get()),
        ]);
        for topic in crate::metrics::TOPICS {
            counters.insert(format!("relayed_{topic}"), metrics.relayed.get(&[topic]).get());
        }
        if self.admission.is_some() {
            counters.insert("envelopes_forwarded".to_owned(), metrics.envelopes_forwarded.get());
            for reason in crate::admission::REFUSAL_REASONS {
                let count = metrics.envelopes_refused.get(&[reason]).get();
                counters.insert(format!("envelopes_refused_{reason}"), count);
            }
        }
        counters
    }
}

/// Receipts of the source, as they are now.
pub(crate) struct OfSource(pub(crate) Source);

#[async_trait]
impl ReceiptSource for OfSource {
    async fn receipts(&self, ids: Vec<B256>) -> Result<Vec<Option<Receipt>>, RpcError> {
        let count = ids.len();
        one_for_each(count, self.0.anew("blind_getReceipts", &[ids]).await?)
    }
}

fn one_for_each(count: usize, receipts: Vec<Option<Receipt>>) -> Result<Vec<Option<Receipt>>, RpcError> {
    if receipts.len() == count {
        return Ok(receipts);
    }
    let message = format!("the source gave {} receipts for {count} ids", receipts.len());
    Err(RpcError::unavailable("source_unavailable", message))
}

#[async_trait]
impl ReceiptApiServer for Reads {
    async fn get_receipts(&self, ids: Vec<B256>) -> Result<Vec<Option<Receipt>>, RpcError> {
        self.followed.metrics.reads.increment();
        match ids.len() {
            count @ 1..=MAX_RECEIPTS => {
                one_for_each(count, self.source.get("blind_getReceipts", &[ids]).await?)
            }
            count => Err(too_many_ids(count)),
        }
    }

    async fn subscribe_receipts(
        &self,
        pending: PendingSubscriptionSink,
        extensions: &Extensions,
        ids: Vec<B256>,
    ) -> SubscriptionResult {
        self.followed.board.serve(pending, extensions, ids).await
    }
}

#[async_trait]
impl SyncApiServer for Reads {
    async fn send_envelope_sync(
        &self,
        caller: &Extensions,
        envelope: Encoded<RawEnvelope>,
        options: Option<SyncOptions>,
    ) -> Result<SyncedEnvelope, RpcError> {
        let options = options.unwrap_or_default();
        let send_options = SendOptions { promise: options.promise };
        let sent = self.send_envelope(caller, envelope.clone(), Some(send_options));
        self.followed.board.send_sync(caller, &envelope, options, sent).await
    }
}

/// Of these methods `blind_sendEnvelope` alone is served, by a gateway.
#[async_trait]
impl SequencerApiServer for Reads {
    async fn send_envelope(
        &self,
        caller: &Extensions,
        envelope: Encoded<RawEnvelope>,
        options: Option<SendOptions>,
    ) -> Result<SentEnvelope, RpcError> {
        let Some(admission) = &self.admission else {
            return Err(RpcError::unknown_method("blind_sendEnvelope"));
        };
        let promise = options.unwrap_or_default().promise;
        let source: Option<IpAddr> = caller.get::<PeerAddress>().map(|peer| peer.0.ip());
        admission.admit(source, envelope, promise).await
    }

    async fn submit_acknowledgement(
        &self,
        _: &Extensions,
        _: Encoded<Acknowledgement>,
    ) -> Result<bool, RpcError> {
        Err(RpcError::unknown_method("blind_submitAcknowledgement"))
    }

    async fn submit_refusal(&self, _: &Extensions, _: Refusal) -> Result<bool, RpcError> {
        Err(RpcError::unknown_method("blind_submitRefusal"))
    }

    async fn submit_hints(
        &self,
        _: &Extensions,
        _: Encoded<Release>,
        _: Encoded<BatchHints>,
    ) -> Result<bool, RpcError> {
        Err(RpcError::unknown_method("blind_submitHints"))
    }
}
