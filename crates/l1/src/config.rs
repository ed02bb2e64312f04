//! Where L1 and the contracts are.

use blindfold_protocol::{Address, ChainConfig, Deployment, L1Timing};

use crate::archive::ArchiveToken;

/// How long an answer about the newest final block is taken for current, unless the configuration says otherwise.
const DEFAULT_POLL_INTERVAL_MS: u64 = 1_000;
/// How long one call may take, unless the configuration says otherwise.
const DEFAULT_REQUEST_TIMEOUT_MS: u64 = 10_000;
/// How long to wait for a transaction to get into a block, unless the configuration says otherwise.
pub(crate) const DEFAULT_CONFIRMATION_TIMEOUT_MS: u64 = 60_000;
/// The most that one transaction may cost, unless the configuration says otherwise: an ether, as much as Geth and Reth take by
/// RPC.
pub const DEFAULT_MAX_TRANSACTION_FEE_WEI: u128 = 1_000_000_000_000_000_000;

/// The contracts of a deployment beside its `BlindedInbox`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct L1Contracts {
    /// `CommitteeRegistry`: epochs, rule sets and sequencers.
    pub registry: Address,
    /// `FeeVault`: deposits and withdrawals of fee accounts.
    pub fee_vault: Address,
    /// `ForcedQueue`: items that headers must take.
    pub forced_queue: Address,
    /// `HintRegistry`: posted hints and their disputes.
    pub hint_registry: Address,
    /// `HintVerifier`: the judge of one hint.
    pub hint_verifier: Address,
    /// `DepositPortal`: ether and calls from L1 to L2.
    pub deposit_portal: Address,
    /// `OutputRegistry`: the sequencer's claims of L2 state.
    pub output_registry: Address,
}

/// What the contracts were deployed with, as the chain's settings say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeployedWith {
    /// The deadlines that the contracts were given.
    pub timing: L1Timing,
    /// The sequencer before any change.
    pub sequencer: Address,
}

/// Where L1 and the contracts are.
#[derive(Clone)]
pub struct L1Config {
    /// `http://` or `https://` URL of the endpoint. May hold a secret, so it is not printed.
    pub url: String,
    /// URL of a beacon node, for reading data that was posted in blobs; may hold a secret likewise.
    pub beacon_url: Option<String>,
    /// URLs of archives, for data that L1 only names; none reads and writes no such data.
    pub archive_urls: Vec<String>,
    /// What is shown to these archives by whoever writes, each to the one in its place; none is shown nothing.
    pub archive_tokens: Vec<ArchiveToken>,
    /// L1 chain id and `BlindedInbox`.
    pub deployment: Deployment,
    /// The contracts beside the inbox.
    pub contracts: L1Contracts,
    /// What the contracts are compared with when the connection is made; `None` takes what they say.
    pub deployed_with: Option<DeployedWith>,
    /// The block by whose state the contracts are checked when the connection is made; the newest by default.
    pub checked_at: Option<u64>,
    /// The L1 block after which something can have happened to the contracts.
    pub start_block: u64,
    /// Where what happened to batches is kept over restarts; `None` reads it from `start_block` on at each start. One
    /// process has the file.
    pub journal: Option<std::path::PathBuf>,
    /// How long an answer about the newest final block is taken for current, in milliseconds.
    pub poll_interval_ms: u64,
    /// How long one call may take, in milliseconds. Data of archives may take longer, as long as it goes on.
    pub request_timeout_ms: u64,
    /// How long to wait for a transaction to get into a block, in milliseconds.
    pub confirmation_timeout_ms: u64,
    /// The most that one transaction may cost, its blobs included and the value that it carries not, in wei.
    pub max_transaction_fee_wei: u128,
}

impl L1Config {
    /// With the contracts of a chain and the default intervals, without a beacon node.
    pub fn new(url: impl Into<String>, chain: &ChainConfig) -> Self {
        let contracts = L1Contracts {
            registry: chain.registry,
            fee_vault: chain.fee_vault,
            forced_queue: chain.forced_queue,
            hint_registry: chain.hint_registry,
            hint_verifier: chain.hint_verifier,
            deposit_portal: chain.deposit_portal,
            output_registry: chain.output_registry,
        };
        let start_block = chain.genesis_l1_origin;
        let deployed_with = Some(DeployedWith { timing: chain.timing, sequencer: chain.sequencer });
        Self { start_block, deployed_with, ..Self::with_contracts(url, chain.deployment, contracts) }
    }

    /// With contracts given one by one and the default intervals, without a beacon node.
    pub fn with_contracts(url: impl Into<String>, deployment: Deployment, contracts: L1Contracts) -> Self {
        Self {
            url: url.into(),
            beacon_url: None,
            archive_urls: Vec::new(),
            archive_tokens: Vec::new(),
            deployment,
            contracts,
            deployed_with: None,
            checked_at: None,
            start_block: 0,
            journal: None,
            poll_interval_ms: DEFAULT_POLL_INTERVAL_MS,
            request_timeout_ms: DEFAULT_REQUEST_TIMEOUT_MS,
            confirmation_timeout_ms: DEFAULT_CONFIRMATION_TIMEOUT_MS,
            max_transaction_fee_wei: DEFAULT_MAX_TRANSACTION_FEE_WEI,
        }
    }
}

impl std::fmt::Debug for L1Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("L1Config")
            .field("url", &"redacted")
            .field("beacon_url", &self.beacon_url.as_ref().map(|_| "redacted"))
            .field("archive_urls", &format_args!("{} redacted", self.archive_urls.len()))
            .field("archive_tokens", &self.archive_tokens)
            .field("deployment", &self.deployment)
            .field("contracts", &self.contracts)
            .field("deployed_with", &self.deployed_with)
            .field("checked_at", &self.checked_at)
            .field("start_block", &self.start_block)
            .field("journal", &self.journal)
            .field("poll_interval_ms", &self.poll_interval_ms)
            .field("request_timeout_ms", &self.request_timeout_ms)
            .field("confirmation_timeout_ms", &self.confirmation_timeout_ms)
            .field("max_transaction_fee_wei", &self.max_transaction_fee_wei)
            .finish()
    }
}
