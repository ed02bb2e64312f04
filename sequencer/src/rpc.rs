//! The sequencer's JSON-RPC: the shared reads, and what only the sequencer takes.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::Arc,
};

use async_trait::async_trait;
use blindfold_chain::{ReadApi, RoleView};
use blindfold_protocol::{Acknowledgement, Address, B256, BatchHints, Party, Release};
use blindfold_rpc::{
    BlindApiServer, Encoded, ForwardApiServer, KnownPeer, PeerAddress, RawEnvelope, ReceiptApiServer,
    RpcError, SequencerApiServer, SyncApiServer,
    jsonrpsee::{Extensions, PendingSubscriptionSink, RpcModule, core::SubscriptionResult},
    limits::{MAX_FORWARDED_BYTES, MAX_FORWARDED_ENVELOPES},
    types::{
        BatchInfo, EncryptionKeyInfo, EnvelopeState, FeeAccount, FeeAccountProof, ForwardedAnswer,
        ForwardedEnvelope, LedgerAt, Receipt, Refusal, SendOptions, SentEnvelope, Status, SyncOptions,
        SyncedEnvelope,
    },
};
use futures::future::join_all;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    admission::Admission,
    certifier::Certifier,
    context::Context,
    hints::HintReceiver,
    pool::Pool,
    refusal::{ADMISSION_REASONS, AdmissionRefusal},
};

/// What the sequencer adds to the shared reads.
pub(crate) struct SequencerView {
    pub(crate) cx: Arc<Context>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) certifier: Arc<Certifier>,
}

impl RoleView for SequencerView {
    fn role(&self) -> &'static str {
        "sequencer"
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        let metrics = &self.cx.metrics;
        let mut counters: BTreeMap<String, u64> = [
            ("envelopes_admitted", metrics.envelopes_admitted.get()),
            ("envelopes_expired", metrics.envelopes_expired.get()),
            ("promises", metrics.promises.get()),
            ("batches_sealed", metrics.batches_sealed.get()),
            ("closing_headers", metrics.closing_headers.get()),
            ("seal_failures", metrics.seal_failures.get()),
            ("seal_waits", metrics.seal_waits.get()),
            ("acknowledgements", metrics.acknowledgements.get()),
            ("certificates", metrics.certificates.get()),
            ("member_refusals", metrics.member_refusals.get()),
            ("hints", metrics.hints.get()),
            ("postings", metrics.postings.get()),
            ("opened_postings", metrics.opened_postings.get()),
            ("posting_failures", metrics.posting_failures.get()),
            ("accusations_answered", metrics.accusations_answered.get()),
            ("accusations_lost", u64::try_from(metrics.accusations_lost.get()).unwrap_or_default()),
            ("accusation_failures", metrics.accusation_failures.get()),
            ("outputs_proposed", metrics.outputs_proposed.get()),
            ("output_failures", metrics.output_failures.get()),
            ("blocks", metrics.blocks.get()),
        ]
        .into_iter()
        .map(|(name, count)| (name.to_owned(), count))
        .collect();
        for reason in ADMISSION_REASONS {
            counters.insert(format!("refused_{reason}"), metrics.envelopes_refused.get(&[reason]).get());
        }
        for refusal in self.certifier.refusals() {
            *counters.entry(format!("refusals_of_member_{}", refusal.member)).or_default() += 1;
        }
        counters
    }

    fn pending_envelopes(&self) -> Option<u64> {
        Some(self.pool.lock().len() as u64)
    }

    fn posted(&self) -> Option<u64> {
        u64::try_from(self.cx.metrics.posted_number.get()).ok()
    }

    fn reserved(&self, payer: &Address) -> u128 {
        let pool = self.pool.lock();
        self.cx.tracker.with_state(|state| self.pool.committed(&pool, state, payer))
    }

    fn unsealed(&self, id: &B256) -> Option<(EnvelopeState, Option<String>)> {
        self.pool.lock().get(id).map(|_| (EnvelopeState::Pending, None))
    }
}

/// Everything that the sequencer serves over JSON-RPC.
#[derive(Clone)]
pub(crate) struct SequencerRpc {
    pub(crate) cx: Arc<Context>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) certifier: Arc<Certifier>,
    pub(crate) hints: Arc<HintReceiver>,
    pub(crate) reads: ReadApi,
    pub(crate) forwards: Arc<Forwards>,
}

/// Places for what each gateway forwards: one takes at most its part of the queue of verification.
pub(crate) struct Forwards(HashMap<Address, Arc<Semaphore>>);

/// What part of the queue of verification one gateway may fill.
const PART_OF_GATEWAY: usize = 4;

impl Forwards {
    pub(crate) fn new(gateways: &[Address], queue_items: usize) -> Self {
        let places = (queue_items / PART_OF_GATEWAY).max(MAX_FORWARDED_ENVELOPES);
        Self(gateways.iter().map(|gateway| (*gateway, Arc::new(Semaphore::new(places)))).collect())
    }

    fn take(&self, gateway: Address, places: u32) -> Option<OwnedSemaphorePermit> {
        Arc::clone(self.0.get(&gateway)?).try_acquire_many_owned(places).ok()
    }
}

impl SequencerRpc {
    /// All methods in one table.
    pub(crate) fn into_module(self) -> RpcModule<Self> {
        let mut module = BlindApiServer::into_rpc(self.clone());
        let own = module.merge(SequencerApiServer::into_rpc(self.clone()));
        let forwarded = module.merge(ForwardApiServer::into_rpc(self.clone()));
        let receipts = module.merge(ReceiptApiServer::into_rpc(self.reads.clone()));
        let synced = module.merge(SyncApiServer::into_rpc(self));
        let merged = [own, forwarded, receipts, synced];
        assert!(merged.iter().all(Result::is_ok), "the traits name different methods");
        module
    }
}

#[async_trait]
impl BlindApiServer for SequencerRpc {
    async fn get_encryption_key(&self) -> Result<Vec<EncryptionKeyInfo>, RpcError> {
        self.reads.get_encryption_key().await
    }

    async fn get_receipt(&self, id: B256) -> Result<Option<Receipt>, RpcError> {
        self.reads.get_receipt(id).await
    }

    async fn get_batch(&self, number: u64) -> Result<Option<BatchInfo>, RpcError> {
        self.reads.get_batch(number).await
    }

    async fn get_hints(&self, number: u64) -> Result<Option<Encoded<BatchHints>>, RpcError> {
        self.reads.get_hints(number).await
    }

    async fn get_fee_account(&self, address: Address) -> Result<FeeAccount, RpcError> {
        self.reads.get_fee_account(address).await
    }

    async fn get_fee_account_proof(
        &self,
        address: Address,
        at: Option<LedgerAt>,
    ) -> Result<Option<FeeAccountProof>, RpcError> {
        self.reads.get_fee_account_proof(address, at).await
    }

    async fn get_status(&self) -> Result<Status, RpcError> {
        self.reads.get_status().await
    }

    async fn subscribe_topic(
        &self,
        pending: PendingSubscriptionSink,
        extensions: &Extensions,
        topic: String,
    ) -> SubscriptionResult {
        self.cx.hub.attach(pending, extensions, &topic).await
    }
}

#[async_trait]
impl SequencerApiServer for SequencerRpc {
    async fn send_envelope(
        &self,
        caller: &Extensions,
        envelope: Encoded<RawEnvelope>,
        options: Option<SendOptions>,
    ) -> Result<SentEnvelope, RpcError> {
        let promise = options.unwrap_or_default().promise;
        self.admit(address(caller), envelope, promise).await
    }

    async fn submit_acknowledgement(
        &self,
        caller: &Extensions,
        acknowledgement: Encoded<Acknowledgement>,
    ) -> Result<bool, RpcError> {
        let acknowledgement = acknowledgement.decode_param()?;
        let known = caller.get::<KnownPeer>().map(|peer| peer.0);
        let own = known == Some(Party::Member(acknowledgement.member));
        self.certifier.take_acknowledgement(acknowledgement, own).await?;
        Ok(true)
    }

    async fn submit_refusal(&self, _caller: &Extensions, refusal: Refusal) -> Result<bool, RpcError> {
        self.certifier.take_refusal(refusal)?;
        Ok(true)
    }

    async fn submit_hints(
        &self,
        caller: &Extensions,
        release: Encoded<Release>,
        hints: Encoded<BatchHints>,
    ) -> Result<bool, RpcError> {
        let known = caller.get::<KnownPeer>().map(|peer| peer.0);
        let from_hint_publisher = matches!(known, Some(Party::HintPublisher(_)));
        self.hints.take_hints(release.decode_param()?, hints.decode_param()?, from_hint_publisher).await?;
        Ok(true)
    }
}

#[async_trait]
impl SyncApiServer for SequencerRpc {
    async fn send_envelope_sync(
        &self,
        caller: &Extensions,
        envelope: Encoded<RawEnvelope>,
        options: Option<SyncOptions>,
    ) -> Result<SyncedEnvelope, RpcError> {
        let options = options.unwrap_or_default();
        let sent = self.admit(address(caller), envelope.clone(), options.promise);
        self.reads.board().send_sync(caller, &envelope, options, sent).await
    }
}

#[async_trait]
impl ForwardApiServer for SequencerRpc {
    async fn send_envelopes(
        &self,
        caller: &Extensions,
        envelopes: Vec<ForwardedEnvelope>,
    ) -> Result<Vec<ForwardedAnswer>, RpcError> {
        let known = caller.get::<KnownPeer>().map(|peer| peer.0);
        let Some(Party::Gateway(known)) = known else {
            return Err(RpcError::refused(
                "not_a_gateway",
                "only gateways that `sequencer.gateways` names forward envelopes, and show so by a hello",
            ));
        };
        let bytes: usize = envelopes.iter().map(|forwarded| forwarded.envelope.bytes().len()).sum();
        if envelopes.len() > MAX_FORWARDED_ENVELOPES || envelopes.len() > 1 && bytes > MAX_FORWARDED_BYTES {
            let message = format!(
                "{} envelopes of {bytes} bytes; one call has at most {MAX_FORWARDED_ENVELOPES} of {MAX_FORWARDED_BYTES} \
                 bytes",
                envelopes.len()
            );
            return Err(RpcError::invalid_params("too_many_envelopes", message));
        }
        let places = u32::try_from(envelopes.len()).unwrap_or(u32::MAX);
        let Some(_places) = self.forwards.take(known, places) else {
            let message = "as many envelopes of this gateway are under way as may be";
            let time = self.admission.time_to_come_back(&AdmissionRefusal::Overloaded);
            return Err(RpcError::busy("overloaded", message).after_some(time));
        };
        // All at once: they are verified together, and written down in one step of the disk.
        let answers = envelopes.into_iter().map(|forwarded| async move {
            let ForwardedEnvelope { envelope, promise } = forwarded;
            ForwardedAnswer::from(self.admit(None, envelope, promise).await)
        });
        Ok(join_all(answers).await)
    }
}

impl SequencerRpc {
    async fn admit(
        &self,
        source: Option<IpAddr>,
        envelope: Encoded<RawEnvelope>,
        promise: bool,
    ) -> Result<SentEnvelope, RpcError> {
        let admitted = self.admission.admit(source, envelope.into_bytes().to_vec(), promise).await.map_err(
            |refusal| {
                let time = self.admission.time_to_come_back(&refusal);
                RpcError::from(refusal).after_some(time)
            },
        )?;
        Ok(SentEnvelope { id: admitted.id, promise: admitted.promise.as_ref().map(Encoded::new) })
    }
}

fn address(caller: &Extensions) -> Option<IpAddr> {
    caller.get::<PeerAddress>().map(|peer| peer.0.ip())
}
