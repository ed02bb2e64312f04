//! A sequencer as a script.

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
};

use async_trait::async_trait;
use blindfold_chain::announce;
use blindfold_protocol::{
    Acknowledgement, Address, B256, BatchHints, Canonical, Certificate, Envelope, Party, PartyKey, Release,
    SealedBatch, certificate, validity::Verdict,
};
use blindfold_rpc::{
    BlindApiServer, Doorkeeper, Encoded, FeedEvent, FeedSource, ForwardApiServer, Hub, KnownPeer,
    RawEnvelope, ReceiptApiServer, RpcError, SequencerApiServer, ServerConfig, ServerHandle, Topic,
    jsonrpsee::{Extensions, Methods, PendingSubscriptionSink, core::SubscriptionResult},
    serve, standing_by,
    types::{
        BatchHead, BatchInfo, BatchState, BlockHead, BlockNotification, EncryptionKeyInfo, FeeAccount,
        FeeAccountProof, ForwardedAnswer, ForwardedEnvelope, LedgerAt, Receipt, Refusal, SendOptions,
        SentEnvelope, Status,
    },
};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{START_MS, THRESHOLD, chain_config, committee, within};

/// What a [`SequencerDouble`] shows, does and was sent.
#[derive(Default)]
pub struct SequencerState {
    /// What it keeps.
    pub batches: BTreeMap<u64, BatchInfo>,
    /// As they were sent.
    pub acknowledgements: Vec<Acknowledgement>,
    /// Who proved to have brought them.
    pub brought_by: Vec<Option<Party>>,
    /// As they were sent.
    pub refusals: Vec<Refusal>,
    /// The last ones taken.
    pub hints: BTreeMap<u64, (Release, BatchHints)>,
    /// Whether t acknowledgements are made a certificate and announced.
    pub aggregate: bool,
    /// Whether batches are kept from whoever asks.
    pub withhold: bool,
    /// How many submissions of hints are turned away before one is taken, and whether for good.
    pub turn_away_hints: (usize, bool),
    /// How many there were.
    pub hint_submissions: usize,
    /// Whoever acknowledges this number gets no answer.
    pub hangs: Option<u64>,
    /// Whoever asks for this number's hints is answered once there are some, and whoever gives them thereafter.
    pub late_hints: Option<u64>,
    /// How often those late hints were shown.
    pub late_hints_shown: usize,
    /// How often they were asked for, shown or not yet.
    pub late_hints_asked: usize,
    /// How often its status was asked for.
    pub status_calls: usize,
    /// How often each batch was given to whoever asked for it; what is announced is not counted.
    pub batches_given: BTreeMap<u64, usize>,
    /// Envelopes that gateways forwarded, call by call.
    pub forwarded: Vec<Vec<ForwardedEnvelope>>,
    /// The reason for which envelopes are refused, each by itself.
    pub refuses_envelopes: Option<&'static str>,
    /// What calls with envelopes are refused with.
    pub refuses_forwards: Option<RpcError>,
    /// The ids that receipts were asked for, call by call.
    pub receipts_asked: Vec<Vec<B256>>,
    /// What `blind_getReceipts` gives.
    pub receipts: HashMap<B256, Receipt>,
    /// The number that it says its head has, in place of the newest one that it keeps.
    pub claims_head: Option<u64>,
}

/// What lives as long as anybody calls.
pub struct Double {
    /// Read and changed at any time.
    pub state: Mutex<SequencerState>,
    hub: Hub,
    changed: watch::Sender<u64>,
}

/// Stands in for a sequencer over real sockets: shows what tests give it and collects what it is sent. Dropping it closes
/// its port.
pub struct SequencerDouble {
    /// What outlives the port.
    pub double: Arc<Double>,
    /// The port.
    pub server: ServerHandle,
}

impl SequencerDouble {
    /// On a free port.
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// On a free port, with other limits.
    pub async fn start_with(adjust: impl FnOnce(&mut ServerConfig)) -> Self {
        let state = SequencerState { aggregate: true, ..SequencerState::default() };
        let double = Arc::new(Double {
            state: Mutex::new(state),
            hub: Hub::default(),
            changed: watch::Sender::new(0),
        });
        let (mut config, methods) = Self::server(&double, ([127, 0, 0, 1], 0).into());
        adjust(&mut config);
        let server = serve(config, methods, None).await.expect("listens");
        Self { double, server }
    }

    /// On a given port, after another one was closed.
    pub async fn serve(double: &Arc<Double>, addr: SocketAddr) -> ServerHandle {
        let (config, methods) = Self::server(double, addr);
        serve(config, methods, None).await.expect("listens")
    }

    /// It dies, and the one that stood by goes on from the same records, at its own address.
    pub async fn replaced_by(self, standby: Standby) -> Self {
        let Self { double, server } = self;
        assert!(server.shutdown().await, "it ends in time");
        let addr = standby.server.local_addr();
        let (config, methods) = Self::server(&double, addr);
        Self { double, server: standby.leads(config, methods).await }
    }

    fn server(double: &Arc<Double>, addr: SocketAddr) -> (ServerConfig, Methods) {
        let mut methods = BlindApiServer::into_rpc(Api(Arc::clone(double)));
        methods.merge(SequencerApiServer::into_rpc(Api(Arc::clone(double)))).expect("names differ");
        methods.merge(ForwardApiServer::into_rpc(Api(Arc::clone(double)))).expect("names differ");
        methods.merge(ReceiptApiServer::into_rpc(Api(Arc::clone(double)))).expect("names differ");
        let key_of = |party| {
            let key = match party {
                Party::Member(member) => {
                    committee().public.get(usize::from(member) - 1).copied().map(PartyKey::Bls)
                }
                Party::Gateway(account) => Some(PartyKey::Address(account)),
                other => panic!("{other} does not introduce itself"),
            };
            Box::pin(std::future::ready(key)) as Pin<Box<dyn Future<Output = _> + Send>>
        };
        let mut config = ServerConfig::new(addr);
        config.feed = Some(FeedSource::Hub(double.hub.clone()));
        let deployment = chain_config().deployment;
        config.doorkeeper = Some(Doorkeeper::new(deployment, Party::Sequencer, key_of, || START_MS + 60_000));
        (config, methods.into())
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.server.local_addr())
    }

    /// Waits until `condition` holds.
    pub async fn wait(&self, what: &str, condition: impl Fn(&SequencerState) -> bool) {
        within(what, self.double.until(condition)).await;
    }

    /// Waits until `count` followers are subscribed to headers, so that nothing announced is missed.
    pub async fn followed_by(&self, count: usize) {
        within("followers", async {
            while self.double.hub.subscribers(Topic::Headers) < count
                || self.double.hub.subscribers(Topic::Certificates) < count
            {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        })
        .await;
    }

    /// Keeps a batch without announcing it.
    pub fn keep(&self, sealed: &SealedBatch, verdicts: &[Verdict]) {
        let number = sealed.header.number;
        let info = BatchInfo {
            number,
            hash: sealed.header.hash(),
            timestamp_ms: sealed.header.timestamp_ms,
            state: BatchState::Sealed,
            sealed: Encoded::new(sealed),
            certificate: None,
            release: None,
            hints: None,
            verdicts: announce::verdict_names(verdicts),
        };
        self.double.state.lock().batches.insert(number, info);
    }

    /// Keeps hints with their batch, and announces them.
    pub fn publish_hints(&self, release: &Release, hints: &BatchHints) {
        if let Some(info) = self.double.state.lock().batches.get_mut(&hints.number) {
            (info.release, info.hints) = (Some(Encoded::new(release)), Some(Encoded::new(hints)));
        }
        self.double.hub.publish(&announce::release(release));
        self.double.hub.publish(&announce::hints(hints));
    }

    /// Announces a block.
    pub fn announce_block(&self, block: &BlockNotification) {
        self.double.hub.publish(&FeedEvent::Block(block.clone()));
    }

    /// Announces a header.
    pub fn announce(&self, sealed: &SealedBatch, verdicts: &[Verdict]) {
        self.double.hub.publish(&announce::header(sealed, sealed.header.hash(), verdicts));
    }

    /// Keeps and announces a batch.
    pub fn publish(&self, sealed: &SealedBatch, verdicts: &[Verdict]) {
        self.keep(sealed, verdicts);
        self.announce(sealed, verdicts);
    }

    /// Keeps a certificate without announcing it.
    pub fn keep_certificate(&self, certificate: &Certificate) {
        self.double.keep_certificate(certificate);
    }

    /// Announces a certificate.
    pub fn announce_certificate(&self, certificate: &Certificate) {
        self.double.hub.publish(&announce::certificate(certificate));
    }

    /// Keeps and announces one.
    pub fn publish_certificate(&self, certificate: &Certificate) {
        self.keep_certificate(certificate);
        self.announce_certificate(certificate);
    }

    /// The one that it keeps.
    pub fn certificate(&self, number: u64) -> Option<Certificate> {
        self.double
            .state
            .lock()
            .batches
            .get(&number)?
            .certificate
            .as_ref()
            .map(|known| known.decode().expect("ours"))
    }
}

/// A sequencer that stands by: refuses everything until it leads.
pub struct Standby {
    server: ServerHandle,
    /// Whom it names as the one that leads.
    pub leader: watch::Sender<Option<String>>,
}

impl Standby {
    /// On a free port; knows that this one leads.
    pub async fn start(leader: &str) -> Self {
        let (leader, known) = watch::channel(Some(leader.to_owned()));
        let config = ServerConfig::new(([127, 0, 0, 1], 0).into());
        Self { server: serve(config, standing_by(known), None).await.expect("listens"), leader }
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.server.local_addr())
    }

    /// Leads from now on: serves these methods at its address.
    pub async fn leads(self, config: ServerConfig, methods: impl Into<Methods>) -> ServerHandle {
        let config = ServerConfig { addr: self.server.local_addr(), ..config };
        assert!(self.server.shutdown().await, "it ends in time");
        let methods = methods.into();
        within("its port is free", async {
            loop {
                match serve(config.clone(), methods.clone(), None).await {
                    Ok(server) => return server,
                    Err(_) => tokio::time::sleep(std::time::Duration::from_millis(2)).await,
                }
            }
        })
        .await
    }
}

impl Double {
    fn touch(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    async fn until(&self, condition: impl Fn(&SequencerState) -> bool) {
        let mut changed = self.changed.subscribe();
        changed.wait_for(|_| condition(&self.state.lock())).await.expect("the double lives");
    }

    fn keep_certificate(&self, certificate: &Certificate) {
        let mut state = self.state.lock();
        if let Some(info) = state.batches.get_mut(&certificate.number) {
            info.certificate = Some(Encoded::new(certificate));
            info.state = BatchState::Certified;
        }
        drop(state);
        self.touch();
    }

    /// Makes the certificate once t members acknowledged the kept header.
    fn aggregate(&self, number: u64) {
        let state = self.state.lock();
        let Some(info) = state.batches.get(&number) else { return };
        if !state.aggregate || info.certificate.is_some() {
            return;
        }
        let hash = info.hash;
        let mut own: Vec<Acknowledgement> = state
            .acknowledgements
            .iter()
            .filter(|acknowledgement| acknowledgement.number == number && acknowledgement.header_hash == hash)
            .copied()
            .collect();
        own.sort_by_key(|acknowledgement| acknowledgement.member);
        own.dedup_by_key(|acknowledgement| acknowledgement.member);
        drop(state);
        if own.len() >= usize::from(THRESHOLD) {
            let epoch = committee().epoch(own[0].epoch, 1, u64::MAX);
            let certificate = certificate::aggregate(&epoch, &own).expect("they verify");
            self.keep_certificate(&certificate);
            self.hub.publish(&announce::certificate(&certificate));
        }
    }
}

struct Api(Arc<Double>);

#[async_trait]
impl BlindApiServer for Api {
    async fn get_encryption_key(&self) -> Result<Vec<EncryptionKeyInfo>, RpcError> {
        Ok(Vec::new())
    }

    async fn get_receipt(&self, id: B256) -> Result<Option<Receipt>, RpcError> {
        self.0.state.lock().receipts_asked.push(vec![id]);
        self.0.touch();
        Ok(None)
    }

    async fn get_batch(&self, number: u64) -> Result<Option<BatchInfo>, RpcError> {
        let mut state = self.0.state.lock();
        let given = if state.withhold { None } else { state.batches.get(&number).cloned() };
        if given.is_some() {
            *state.batches_given.entry(number).or_default() += 1;
        }
        Ok(given)
    }

    async fn get_hints(&self, number: u64) -> Result<Option<Encoded<BatchHints>>, RpcError> {
        if self.0.state.lock().late_hints == Some(number) {
            self.0.state.lock().late_hints_asked += 1;
            self.0.touch();
            self.0.until(|state| state.hints.contains_key(&number)).await;
            self.0.state.lock().late_hints_shown += 1;
            self.0.touch();
        }
        Ok(self.0.state.lock().hints.get(&number).map(|(_, hints)| Encoded::new(hints)))
    }

    async fn get_fee_account(&self, _address: Address) -> Result<FeeAccount, RpcError> {
        Err(RpcError::refused("not_here", "not a part of this double"))
    }

    async fn get_fee_account_proof(
        &self,
        _: Address,
        _: Option<LedgerAt>,
    ) -> Result<Option<FeeAccountProof>, RpcError> {
        Ok(None)
    }

    async fn get_status(&self) -> Result<Status, RpcError> {
        let chain = chain_config();
        self.0.state.lock().status_calls += 1;
        self.0.touch();
        let state = self.0.state.lock();
        let head = state.batches.values().next_back().map_or(
            BatchHead { number: 0, hash: B256::ZERO, timestamp_ms: 0, generation: 0 },
            |info| BatchHead {
                number: state.claims_head.unwrap_or(info.number),
                hash: info.hash,
                timestamp_ms: info.timestamp_ms,
                generation: 0,
            },
        );
        let certified = state.batches.values().filter(|info| info.certificate.is_some());
        Ok(Status {
            role: "sequencer".to_owned(),
            version: "0.0.0".to_owned(),
            chain_id: chain.chain_id,
            l1_chain_id: chain.deployment.l1_chain_id,
            inbox: chain.deployment.inbox,
            head,
            certified: certified.map(|info| info.number).max().unwrap_or(0),
            hinted: (1..).take_while(|number| state.hints.contains_key(number)).last().unwrap_or(0),
            posted: None,
            block: BlockHead { number: 0, hash: B256::ZERO, timestamp: 0 },
            pending_envelopes: None,
            base_fee: 1,
            gas_base_fee: 1,
            counters: BTreeMap::new(),
        })
    }

    async fn subscribe_topic(
        &self,
        pending: PendingSubscriptionSink,
        extensions: &Extensions,
        topic: String,
    ) -> SubscriptionResult {
        self.0.hub.attach(pending, extensions, &topic).await
    }
}

#[async_trait]
impl ReceiptApiServer for Api {
    async fn get_receipts(&self, ids: Vec<B256>) -> Result<Vec<Option<Receipt>>, RpcError> {
        let mut state = self.0.state.lock();
        let receipts = ids.iter().map(|id| state.receipts.get(id).cloned()).collect();
        state.receipts_asked.push(ids);
        drop(state);
        self.0.touch();
        Ok(receipts)
    }

    async fn subscribe_receipts(
        &self,
        pending: PendingSubscriptionSink,
        _: &Extensions,
        _: Vec<B256>,
    ) -> SubscriptionResult {
        pending.reject(RpcError::refused("not_here", "not a part of this double")).await;
        Ok(())
    }
}

#[async_trait]
impl ForwardApiServer for Api {
    async fn send_envelopes(
        &self,
        caller: &Extensions,
        envelopes: Vec<ForwardedEnvelope>,
    ) -> Result<Vec<ForwardedAnswer>, RpcError> {
        if !matches!(caller.get::<KnownPeer>().map(|peer| peer.0), Some(Party::Gateway(_))) {
            return Err(RpcError::refused("not_a_gateway", "scripted"));
        }
        if let Some(refusal) = self.0.state.lock().refuses_forwards.clone() {
            return Err(refusal);
        }
        let refuses = self.0.state.lock().refuses_envelopes;
        let answer = |forwarded: &ForwardedEnvelope| {
            let id =
                Envelope::decode(forwarded.envelope.bytes()).map_or(B256::ZERO, |envelope| envelope.id());
            match refuses {
                Some(reason) => Err(RpcError::refused(reason, "scripted")),
                None => Ok(SentEnvelope { id, promise: None }),
            }
            .into()
        };
        let answers = envelopes.iter().map(answer).collect();
        self.0.state.lock().forwarded.push(envelopes);
        self.0.touch();
        Ok(answers)
    }
}

#[async_trait]
impl SequencerApiServer for Api {
    async fn send_envelope(
        &self,
        _: &Extensions,
        _: Encoded<RawEnvelope>,
        _: Option<SendOptions>,
    ) -> Result<SentEnvelope, RpcError> {
        Err(RpcError::refused("not_here", "not a part of this double"))
    }

    async fn submit_acknowledgement(
        &self,
        caller: &Extensions,
        acknowledgement: Encoded<Acknowledgement>,
    ) -> Result<bool, RpcError> {
        let acknowledgement = acknowledgement.decode_param()?;
        self.0.state.lock().brought_by.push(caller.get::<KnownPeer>().map(|peer| peer.0));
        if self.0.state.lock().hangs == Some(acknowledgement.number) {
            std::future::pending::<()>().await;
        }
        self.0.state.lock().acknowledgements.push(acknowledgement);
        self.0.aggregate(acknowledgement.number);
        self.0.touch();
        Ok(true)
    }

    async fn submit_refusal(&self, _: &Extensions, refusal: Refusal) -> Result<bool, RpcError> {
        self.0.state.lock().refusals.push(refusal);
        self.0.touch();
        Ok(true)
    }

    async fn submit_hints(
        &self,
        _: &Extensions,
        release: Encoded<Release>,
        hints: Encoded<BatchHints>,
    ) -> Result<bool, RpcError> {
        let (release, hints) = (release.decode_param()?, hints.decode_param()?);
        let number = hints.number;
        {
            let mut state = self.0.state.lock();
            state.hint_submissions += 1;
            let (times, for_good) = &mut state.turn_away_hints;
            if *times > 0 {
                *times -= 1;
                return Err(if *for_good {
                    RpcError::refused("wrong_key", "scripted")
                } else {
                    RpcError::unavailable("not_certified", "scripted")
                });
            }
            state.hints.insert(number, (release, hints));
        }
        self.0.touch();
        if self.0.state.lock().late_hints == Some(number) {
            self.0.until(|state| state.late_hints_shown > 0).await;
            // By then whoever was shown them has gone on.
            let asked = self.0.state.lock().status_calls;
            self.0.until(|state| state.status_calls > asked + 2).await;
        }
        Ok(true)
    }
}
