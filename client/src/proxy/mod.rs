//! The encrypting proxy: an ordinary wallet points its RPC URL here and works unchanged.
//!
//! | call | goes to |
//! |---|---|
//! | `eth_sendRawTransaction` | nobody as it is: held durably, encrypted, and sent to the sequencer as an envelope that the proxy's own fee key pays for |
//! | `eth_sendRawTransactionSync` | the same; answered with the receipt that the user's node gives |
//! | reads, `eth_call`, `eth_estimateGas`, `eth_createAccessList` | the user's node, never the sequencer |
//! | `blind_*` | the sequencer |
//! | `eth_getTransactionCount(…, "pending")`, `eth_getTransactionByHash` | the node, completed by what is held here |
//! | `proxy_getEnvelope(transaction hash)` | answered here: envelope id, outcome, and whether others may have read it |
//! | anything else | refused |
//!
//! One sender's consecutive nonces that arrive within the bundle window share an envelope; the next envelope of that
//! sender waits until the user's node has the previous one in a batch, so that nonces are ordered as the wallet meant them.
//!
//! P-1: a transaction is encrypted again by itself only while nobody can have read it: its envelope expired, or the
//! validity rule left it out unopened. One that was opened and is in no block ends with the reason; sending it once
//! more would let others run in front of it, so that takes the user's word ([`Resend`]).

mod config;
mod journal;
mod pool;
mod rate;
mod rpc;
mod steps;
mod worker;

use std::{collections::HashSet, sync::Arc};

use alloy_primitives::B256;
use blindfold_protocol::{Canonical, ChainConfig, Envelope, Expiry, SigningKey, limits::MAX_MESSAGE_BYTES};
use blindfold_rpc::{
    BlindApiClient, ClientBuildError, ClientConfig, HttpClient, RoleBase, RunningRole, ServeError,
    ServerConfig, http_client, http_client_of, jsonrpsee::core::RegisterMethodError, types::OtherChain,
};
use blindfold_runtime::now;
use blindfold_telemetry::{Counter, Gauge, Metrics, MetricsError};
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, watch},
    time::Duration,
};

pub use config::{ProxyConfig, ProxyConfigError, Resend};
pub use journal::{Journal, JournalError};

use crate::{
    committee_key::{CommitteeKey, CommitteeKeyError, CommitteeSource, KeptKeys},
    node::Node,
    transaction::SignedTransaction,
};
use pool::Pool;
use rate::SendRate;

/// Longest raw transaction that fits an envelope alone, in bytes.
pub const MAX_TRANSACTION_BYTES: usize = MAX_MESSAGE_BYTES - 8;

/// How long the start waits for the node to say what it is, in milliseconds; a node may come up after the proxy.
const ROLE_TIMEOUT_MS: u64 = 2_000;

/// What a sequencer says in `blind_getStatus`.
const SEQUENCER_ROLE: &str = "sequencer";

/// Readiness condition: the journal is read and the worker runs.
const WORKER: &str = "worker";

/// A running proxy.
pub struct Proxy {
    inner: Arc<Inner>,
    base: RoleBase,
    rpc_addr: std::net::SocketAddr,
}

/// Why the proxy does not start.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// A setting that cannot work.
    #[error(transparent)]
    Config(#[from] ProxyConfigError),
    /// A URL in the settings cannot be used.
    #[error(transparent)]
    Endpoint(#[from] ClientBuildError),
    /// The journal cannot be opened or read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A port cannot be listened on.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Two metrics of one name: a fault of this program.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// Two methods of one name: a fault of this program.
    #[error(transparent)]
    Methods(#[from] RegisterMethodError),
    /// `node_url` leads to a node of another chain.
    #[error("node_url {0}")]
    OtherChain(OtherChain),
    /// `node_url` leads to a sequencer: it would see what wallets estimate and simulate.
    #[error(
        "the server at node_url says that it is a sequencer: it would see what wallets estimate and simulate"
    )]
    NodeIsSequencer,
}

pub(crate) struct Inner {
    config: ProxyConfig,
    chain: ChainConfig,
    payer: SigningKey,
    node: Node,
    node_rpc: HttpClient,
    sequencer: HttpClient,
    sequencer_raw: Node,
    source: Arc<dyn CommitteeSource>,
    pinned: Option<B256>,
    pool: Mutex<Pool>,
    journal: Journal,
    committee: KeptKeys,
    /// How many envelopes the sequencer is offered.
    rate: Mutex<SendRate>,
    wake: Notify,
    /// Changes when transactions come to their ends.
    settled: watch::Sender<()>,
    metrics: ProxyMetrics,
}

struct ProxyMetrics {
    accepted: Counter,
    envelopes: Counter,
    included: Counter,
    again: Counter,
    given_up: Counter,
    failures: Counter,
    held: Gauge,
}

impl ProxyMetrics {
    fn new(metrics: &Metrics) -> Result<Self, MetricsError> {
        Ok(Self {
            accepted: metrics
                .counter("transactions_accepted_total", "Transactions answered with their hash")?,
            envelopes: metrics.counter("envelopes_sent_total", "Envelopes the sequencer took")?,
            included: metrics.counter("transactions_included_total", "Transactions seen in a block")?,
            again: metrics
                .counter("transactions_encrypted_again_total", "Transactions put into a further envelope")?,
            given_up: metrics
                .counter("transactions_given_up_total", "Transactions that ended outside a block")?,
            failures: metrics.counter("rounds_failed_total", "Steps that a server's failure put off")?,
            held: metrics.gauge("transactions_held", "Transactions under way")?,
        })
    }
}

impl Inner {
    /// The committee's key for batch `number`: from L1, kept for a while and while L1 is away, compared with what the
    /// sequencer serves.
    async fn committee(&self, number: u64) -> Result<CommitteeKey, CommitteeKeyError> {
        let refresh = Duration::from_millis(self.config.key_refresh_ms);
        let compare = async |key: &CommitteeKey| match self.sequencer.get_encryption_key().await {
            Ok(served) => key.compare(&served),
            Err(_) => Ok(()),
        };
        self.committee.get(&*self.source, number, self.pinned, refresh, compare).await
    }
}

impl Proxy {
    /// Opens the journal, takes up what was under way, and serves.
    ///
    /// # Errors
    /// [`ProxyError`].
    pub async fn start(
        config: ProxyConfig,
        chain: ChainConfig,
        payer: SigningKey,
        source: Arc<dyn CommitteeSource>,
        pinned: Option<B256>,
    ) -> Result<Self, ProxyError> {
        config.validate()?;
        let owner =
            format!("chain {} of {} paid by {}", chain.chain_id, chain.deployment.inbox, payer.address());
        let journal = Journal::open(&config.state, &owner)?;
        let registry = Metrics::new("proxy", env!("CARGO_PKG_VERSION"))?;
        let metrics = ProxyMetrics::new(&registry)?;
        let client = ClientConfig::default();
        let inner = Arc::new(Inner {
            pool: Mutex::new(restored(&journal, chain.chain_id)?),
            node: Node::new(&config.node_url)?,
            node_rpc: http_client(&config.node_url, &client)?,
            sequencer: http_client_of(&config.sequencer_urls, &client)?,
            sequencer_raw: Node::from(http_client_of(&config.sequencer_urls, &client)?),
            committee: KeptKeys::new(&chain),
            rate: Mutex::new(SendRate::new(config.poll_interval_ms, now())),
            chain,
            payer,
            source,
            pinned,
            journal,
            wake: Notify::new(),
            settled: watch::Sender::new(()),
            metrics,
            config,
        });
        let role = tokio::time::timeout(Duration::from_millis(ROLE_TIMEOUT_MS), inner.node_rpc.get_status());
        if let Ok(Ok(status)) = role.await {
            if status.role == SEQUENCER_ROLE {
                return Err(ProxyError::NodeIsSequencer);
            }
            let checked = status.check_chain(inner.chain.chain_id, &inner.chain.deployment);
            checked.map_err(ProxyError::OtherChain)?;
        }
        let mut base = RoleBase::new(registry, &[WORKER]);
        base.serve_admin(inner.config.admin_addr, None).await?;
        let server = ServerConfig {
            inbound: inner.config.inbound.clone(),
            ..ServerConfig::new(inner.config.rpc_addr)
        };
        let through = rpc::passthrough(inner.clone());
        let rpc_addr = base.serve_rpc(server, rpc::module(inner.clone())?, Some(through)).await?;
        base.tasks().spawn(WORKER, worker::run(inner.clone(), base.tasks().stop()));
        base.readiness().set_ready(WORKER);
        Ok(Self { inner, base, rpc_addr })
    }

    /// The address at which wallets connect.
    #[must_use]
    pub fn local_addr(&self) -> std::net::SocketAddr {
        self.rpc_addr
    }

    /// How many transactions are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.inner.pool.lock().len()
    }
}

impl RunningRole for Proxy {
    fn base(&self) -> &RoleBase {
        &self.base
    }

    /// Stops serving and working; what is under way stays in the journal.
    async fn shutdown(self) {
        self.base.shutdown(async {}).await;
    }
}

/// The pool as the journal has it.
fn restored(journal: &Journal, chain_id: u64) -> Result<Pool, JournalError> {
    let (held, envelopes) = journal.under_way()?;
    let ids: HashSet<B256> = envelopes.iter().map(|row| row.id).collect();
    let mut pool = Pool::default();
    for row in held {
        match SignedTransaction::decode(row.raw, chain_id) {
            Ok(transaction) => {
                // In an envelope that is not there it would wait for ever.
                let envelope = row.envelope.filter(|id| ids.contains(id));
                pool.insert(transaction, row.attempts, envelope);
            }
            // It was decoded before it was written; a damaged row must not keep the others from being sent.
            Err(error) => tracing::error!(%error, "a transaction in the journal does not decode"),
        }
    }
    for row in envelopes {
        // Bytes that do not decode cannot be sent again; they are over as soon as the node shows that nobody has them.
        let expiry =
            Envelope::decode(&row.bytes).map_or(Expiry::new(0, 0), |envelope| envelope.header.expiry);
        pool.restore_envelope(row, expiry);
    }
    Ok(pool)
}
