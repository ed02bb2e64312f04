//! The wallet: deposits, envelopes, and checks of what became of them.

use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256};
use blindfold_protocol::{
    Bundle, BundleItem, Canonical, ChainConfig, Envelope, EnvelopeError, Epochs, Promise, SigningKey,
    envelope_builder::BuildError,
};
use blindfold_rpc::{
    BlindApiClient, ClientBuildError, ClientConfig, Encoded, HttpClient, ReceivedError, SequencerApiClient,
    SequencerUrls, http_client, http_client_of,
    types::{EnvelopeState, OtherChain, Receipt, SendOptions, Status},
};
use blindfold_runtime::now;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::json;
use tokio::time::{Duration, sleep};

use crate::{
    committee_key::{CommitteeKey, CommitteeKeyError, CommitteeSource, KeptKeys},
    envelopes::{DEFAULT_EXPIRY_BATCHES, EnvelopeMaker, Offer},
    inclusion::{Inclusion, InclusionError, check_inclusion, check_promise, check_promised},
    node::{Node, NodeError},
    transaction::{SignedTransaction, TransactionError, TransactionFields, sign},
};

/// How often a waiting wallet asks for the receipt.
const POLL_INTERVAL_MS: u64 = 200;

/// Wei per gas offered above the base fee.
const PRIORITY_FEE_PER_GAS_WEI: u128 = 1_000_000;

/// A forced envelope may use at most this part of a second's gas.
const FORCED_GAS_DIVISOR: u64 = 16;

/// Where a wallet finds the parties it talks to.
#[derive(Clone, Debug)]
pub struct WalletEndpoints {
    /// The user's own node (HTTP).
    pub node: String,
    /// The sequencers (HTTP), one of which leads; they get envelopes and nothing else.
    pub sequencers: SequencerUrls,
}

/// A wallet with one key that sends and pays.
pub struct Wallet {
    chain: ChainConfig,
    key: SigningKey,
    node: Node,
    node_rpc: HttpClient,
    sequencer: HttpClient,
    source: Arc<dyn CommitteeSource>,
    /// What L1 said last about epochs and sequencers.
    registered: Mutex<Option<Epochs>>,
    kept: KeptKeys,
    pinned: Option<B256>,
}

/// What went wrong, and at whom.
#[derive(Debug, thiserror::Error)]
pub enum WalletError {
    /// A URL cannot be used.
    #[error(transparent)]
    Endpoint(#[from] ClientBuildError),
    /// The committee's key cannot be trusted or had.
    #[error(transparent)]
    CommitteeKey(#[from] CommitteeKeyError),
    /// The user's node failed, or gave no answer.
    #[error("your node: {0}")]
    Node(#[from] NodeError),
    /// The user's node refused a `blind_*` call, or did not answer.
    #[error("your node: {0}")]
    NodeRpc(ReceivedError),
    /// The user's node serves another chain.
    #[error("your node {0}")]
    OtherChain(OtherChain),
    /// The sequencer refused the envelope, or did not answer.
    #[error("the sequencer: {0}")]
    Sequencer(ReceivedError),
    /// The inner transaction is not one this chain executes.
    #[error(transparent)]
    Transaction(#[from] TransactionError),
    /// The envelope cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A server said something that does not check.
    #[error("a server's claim does not check: {0}")]
    Claim(#[from] InclusionError),
    /// The sequencer answered with another id than the envelope's.
    #[error("the sequencer answered with id {got} for envelope {sent}")]
    WrongId {
        /// Id of the envelope that was sent.
        sent: B256,
        /// The id in the answer.
        got: B256,
    },
    /// Asked for a promise, the sequencer gave none. It has the envelope all the same.
    #[error("the sequencer has envelope {0}, which may be executed, and gave no promise although asked")]
    NoPromise(B256),
    /// More gas than a forced envelope may use.
    #[error("{gas} gas is more than a forced envelope may use, {limit}: force it in parts, or give --gas")]
    GasAboveForced {
        /// Gas limit of the transaction.
        gas: u64,
        /// The most that an envelope may ask for.
        limit: u64,
    },
    /// The envelope is not in a batch the node knows.
    #[error("envelope {0} is not in any batch your node knows")]
    Unknown(B256),
    /// Nothing final within the time given.
    #[error(
        "envelope {id} is {} after {waited_ms} ms; it may be executed up to batch {expiry}",
        seen(*state)
    )]
    TimedOut {
        /// Id of the envelope.
        id: B256,
        /// The state that was known last.
        state: Option<EnvelopeState>,
        /// The last batch that may hold it.
        expiry: u64,
        /// How long was waited, in milliseconds.
        waited_ms: u64,
    },
}

/// An envelope that is made and not sent yet, so that its names are known before anybody else has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The envelope as it was sent.
    pub envelope: Envelope,
    /// Hashes of the inner transactions.
    pub transactions: Vec<B256>,
}

/// A promise that names the envelope in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promised {
    /// The sequencer's signed promise.
    pub promise: Promise,
    /// Why L1 could not be asked whose signature it has. Whoever sends once more may get no promise at all.
    pub unchecked: Option<String>,
}

/// What a sent envelope gives back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sent {
    /// Id of the envelope.
    pub envelope: B256,
    /// Hashes of the inner transactions.
    pub transactions: Vec<B256>,
    /// By which batch the sequencer has signed to seal it, where a promise was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promised_by: Option<u64>,
    /// The signed promise: evidence, should it not be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise: Option<Encoded<Promise>>,
    /// Why L1 could not be asked whose signature the promise has, where it did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise_unchecked: Option<String>,
    /// Bytes the ordering fee is charged for.
    pub bytes: u64,
}

/// A call or transfer to be sent.
#[derive(Clone, Debug)]
pub struct Call {
    /// The account that is called or paid.
    pub to: Address,
    /// What it carries, in wei.
    pub value: U256,
    /// Its input, empty for a plain transfer.
    pub input: Bytes,
    /// Gas limit; the user's node estimates where none is given.
    pub gas_limit: Option<u64>,
    /// Nonce; the user's node tells where none is given.
    pub nonce: Option<u64>,
}

impl Wallet {
    /// A wallet for `key`. `pinned` is a hash of the committee's key the user has from elsewhere.
    ///
    /// # Errors
    /// [`WalletError::Endpoint`].
    pub fn new(
        chain: ChainConfig,
        key: SigningKey,
        endpoints: &WalletEndpoints,
        source: Arc<dyn CommitteeSource>,
        pinned: Option<B256>,
    ) -> Result<Self, WalletError> {
        let config = ClientConfig::default();
        Ok(Self {
            kept: KeptKeys::new(&chain),
            chain,
            key,
            node: Node::new(&endpoints.node)?,
            node_rpc: http_client(&endpoints.node, &config)?,
            sequencer: http_client_of(&endpoints.sequencers, &config)?,
            source,
            registered: Mutex::default(),
            pinned,
        })
    }

    /// Address of the wallet's key, which pays.
    #[must_use]
    pub fn address(&self) -> Address {
        self.key.address()
    }

    /// Where the user's node stands.
    ///
    /// # Errors
    /// [`WalletError::NodeRpc`], [`WalletError::OtherChain`].
    pub async fn status(&self) -> Result<Status, WalletError> {
        let status = BlindApiClient::get_status(&self.node_rpc).await;
        let status = status.map_err(|error| WalletError::NodeRpc(error.into()))?;
        status.check_chain(self.chain.chain_id, &self.chain.deployment).map_err(WalletError::OtherChain)?;
        Ok(status)
    }

    /// The committee's key for the next batch, from L1 (while it is away, as this wallet read it last); refuses where the
    /// sequencer serves another.
    ///
    /// # Errors
    /// [`WalletError::CommitteeKey`], [`WalletError::Sequencer`].
    pub async fn committee(&self, head: u64) -> Result<CommitteeKey, WalletError> {
        let committee = self.committee_of(head.saturating_add(1)).await?;
        let served = self
            .sequencer
            .get_encryption_key()
            .await
            .map_err(|error| WalletError::Sequencer(error.into()))?;
        committee.compare(&served)?;
        *self.registered.lock() = Some(committee.registered.clone());
        Ok(committee)
    }

    async fn committee_of(&self, number: u64) -> Result<CommitteeKey, CommitteeKeyError> {
        self.kept.get(&*self.source, number, self.pinned, Duration::ZERO, async |_| Ok(())).await
    }

    /// Signs one transaction, encrypts it and sends the envelope.
    ///
    /// # Errors
    /// [`WalletError`].
    pub async fn send(&self, call: &Call, promise: bool) -> Result<Sent, WalletError> {
        self.deliver(&self.prepare(call, promise).await?, promise).await
    }

    /// Encrypts one confidential transaction and sends the envelope. It asks for no gas.
    ///
    /// # Errors
    /// [`WalletError`].
    pub async fn send_confidential(&self, id: B256, bytes: Vec<u8>) -> Result<Sent, WalletError> {
        self.deliver(&self.prepare_confidential(id, bytes).await?, false).await
    }

    /// Signs one transaction and encrypts it, with an offer that is enough for a promise where one will be asked for.
    ///
    /// # Errors
    /// [`WalletError`].
    pub async fn prepare(&self, call: &Call, promise: bool) -> Result<Prepared, WalletError> {
        let transaction = self.sign(call).await?;
        let (committee, offer) = self.offer(promise).await?;
        let maker = EnvelopeMaker { chain: &self.chain, committee: &committee, payer: &self.key };
        let envelope = maker.of_transactions(std::slice::from_ref(&transaction), &offer)?;
        Ok(Prepared { envelope, transactions: vec![transaction.hash] })
    }

    /// Encrypts one confidential transaction.
    ///
    /// # Errors
    /// [`WalletError`].
    pub async fn prepare_confidential(&self, id: B256, bytes: Vec<u8>) -> Result<Prepared, WalletError> {
        let (committee, offer) = self.offer(false).await?;
        let maker = EnvelopeMaker { chain: &self.chain, committee: &committee, payer: &self.key };
        let bundle = Bundle { items: vec![BundleItem::confidential(bytes)] };
        let envelope = maker.of_bundle(&bundle, 0, &offer)?;
        Ok(Prepared { envelope, transactions: vec![id] })
    }

    async fn offer(&self, promise: bool) -> Result<(CommitteeKey, Offer), WalletError> {
        let status = self.status().await?;
        let committee = self.committee(status.head.number).await?;
        let offer = Offer {
            base_fee: status.base_fee,
            gas_base_fee: status.gas_base_fee,
            priority_fee: 0,
            head: status.head.number,
            generation: status.head.generation,
            expiry_batches: DEFAULT_EXPIRY_BATCHES,
            promise,
        };
        Ok((committee, offer))
    }

    /// Sends an envelope, for the first time or once more: the same bytes are executed once at most. Whatever this fails
    /// with, somebody may have them by then.
    ///
    /// # Errors
    /// As [`Wallet::submit`].
    pub async fn deliver(&self, prepared: &Prepared, promise: bool) -> Result<Sent, WalletError> {
        let Prepared { envelope, transactions } = prepared;
        let promised = match self.submit(envelope, promise).await {
            // It was taken before: in a batch already, or over, as the wait will tell.
            Err(WalletError::Sequencer(error)) if error.reason() == "already_known" => {
                if promise {
                    return Err(WalletError::NoPromise(envelope.id()));
                }
                None
            }
            answer => answer?,
        };
        Ok(Sent {
            envelope: envelope.id(),
            transactions: transactions.clone(),
            promised_by: promised.as_ref().map(|promised| promised.promise.seal_by),
            promise: promised.as_ref().map(|promised| Encoded::new(&promised.promise)),
            promise_unchecked: promised.and_then(|promised| promised.unchecked),
            bytes: envelope.encode().len() as u64,
        })
    }

    /// Signs one transaction and encrypts it for the forced queue of L1. The sequencer is not asked anything: it may be
    /// the reason to force.
    ///
    /// # Errors
    /// [`WalletError::GasAboveForced`]; [`WalletError`].
    pub async fn forced_envelope(&self, call: &Call) -> Result<(Envelope, SignedTransaction), WalletError> {
        let transaction = self.sign(call).await?;
        let limit = self.chain.second_gas_limit() / FORCED_GAS_DIVISOR;
        if transaction.gas_limit > limit {
            return Err(WalletError::GasAboveForced { gas: transaction.gas_limit, limit });
        }
        let status = self.status().await?;
        let next = status.head.number.saturating_add(1);
        let committee = self.committee_of(next).await?;
        let maker = EnvelopeMaker { chain: &self.chain, committee: &committee, payer: &self.key };
        let envelope = maker.forced(std::slice::from_ref(&transaction), status.head.generation)?;
        Ok((envelope, transaction))
    }

    /// Signs the inner transaction; nonce, gas and fees come from the user's node.
    ///
    /// # Errors
    /// [`WalletError::Node`], [`WalletError::Transaction`].
    pub async fn sign(&self, call: &Call) -> Result<SignedTransaction, WalletError> {
        let from = self.key.address();
        let nonce = match call.nonce {
            Some(nonce) => nonce,
            None => self.node.nonce(&from).await?,
        };
        let gas_limit = match call.gas_limit {
            Some(gas_limit) => gas_limit,
            None => {
                let estimate = json!({"from": from, "to": call.to, "value": call.value, "input": call.input});
                self.node.estimate_gas(&estimate).await?
            }
        };
        let base_fee = self.node.base_fee().await?;
        let fields = TransactionFields {
            chain_id: self.chain.chain_id,
            nonce,
            to: call.to,
            value: call.value,
            input: call.input.clone(),
            gas_limit,
            max_fee_per_gas: base_fee.saturating_mul(2).saturating_add(PRIORITY_FEE_PER_GAS_WEI),
            max_priority_fee_per_gas: PRIORITY_FEE_PER_GAS_WEI,
        };
        let (raw, _) = sign(&fields, &self.key);
        Ok(SignedTransaction::decode(raw, self.chain.chain_id)?)
    }

    /// Sends an envelope; checks id and promise of the answer. Gives the promise.
    ///
    /// # Errors
    /// [`WalletError::Sequencer`], [`WalletError::WrongId`], [`WalletError::Claim`], [`WalletError::NoPromise`].
    pub async fn submit(&self, envelope: &Envelope, promise: bool) -> Result<Option<Promised>, WalletError> {
        let sent = self
            .sequencer
            .send_envelope(Encoded::from_bytes(envelope.encode()), Some(SendOptions { promise }))
            .await
            .map_err(|error| WalletError::Sequencer(error.into()))?;
        let id = envelope.id();
        if sent.id != id {
            return Err(WalletError::WrongId { sent: id, got: sent.id });
        }
        match sent.promise {
            Some(promise) => {
                let promise = promise.decode().map_err(|_| InclusionError::Undecodable("promise"))?;
                let unchecked = self.check_promise(envelope, &promise).await?;
                Ok(Some(Promised { promise, unchecked }))
            }
            None if promise => Err(WalletError::NoPromise(id)),
            None => Ok(None),
        }
    }

    /// Checks a promise by what L1 said last. L1 is asked where nothing is known, or another key signed it; while it is
    /// away its last word counts, and without one this says why: the promise is evidence that comes once.
    async fn check_promise(
        &self,
        envelope: &Envelope,
        promise: &Promise,
    ) -> Result<Option<String>, InclusionError> {
        let known = self.registered.lock().clone();
        let checked = known.map(|registered| check_promise(&self.chain, &registered, envelope, promise));
        match checked {
            None | Some(Err(InclusionError::PromiseSignature(_))) => {}
            Some(checked) => return checked.map(|_| None),
        }
        match self.source.epochs().await {
            Ok(registered) => {
                let checked = check_promise(&self.chain, &registered, envelope, promise);
                *self.registered.lock() = Some(registered);
                checked.map(|_| None)
            }
            Err(error) => match checked {
                Some(checked) => checked.map(|_| None),
                None => check_promised(envelope, promise).map(|_| Some(error.to_string())),
            },
        }
    }

    /// What the user's node knows of an envelope.
    ///
    /// # Errors
    /// [`WalletError::NodeRpc`].
    pub async fn receipt(&self, id: B256) -> Result<Option<Receipt>, WalletError> {
        self.node_rpc.get_receipt(id).await.map_err(|error| WalletError::NodeRpc(error.into()))
    }

    /// Waits until nothing can change the envelope's state any more; `progress` hears each new state.
    ///
    /// # Errors
    /// [`WalletError::NodeRpc`], [`WalletError::TimedOut`].
    pub async fn wait(
        &self,
        envelope: &Envelope,
        timeout_ms: u64,
        mut progress: impl FnMut(EnvelopeState),
    ) -> Result<Receipt, WalletError> {
        let (id, expiry) = (envelope.id(), envelope.header.expiry.number());
        let started = now();
        let timed_out = |waited_ms| waited_ms >= timeout_ms;
        let mut last = None;
        loop {
            let (receipt, is_final) = match self.standing(envelope).await {
                // A node that is away for a moment does not end the wait.
                Err(WalletError::NodeRpc(error))
                    if error.retry() && !timed_out(started.elapsed().as_millis() as u64) =>
                {
                    (None, false)
                }
                standing => standing?,
            };
            if let Some(receipt) = receipt {
                if last != Some(receipt.state) {
                    progress(receipt.state);
                    last = Some(receipt.state);
                }
                if is_final {
                    return Ok(receipt);
                }
            }
            let waited_ms = started.elapsed().as_millis() as u64;
            if timed_out(waited_ms) {
                return Err(WalletError::TimedOut { id, state: last, expiry, waited_ms });
            }
            sleep(Duration::from_millis(POLL_INTERVAL_MS)).await;
        }
    }

    /// The envelope's receipt, and whether it stays as it is. A receipt is found by the id, which proof and signature do
    /// not change, so what it says of a skipped item need not be about these bytes.
    async fn standing(&self, envelope: &Envelope) -> Result<(Option<Receipt>, bool), WalletError> {
        let id = envelope.id();
        let receipt = self.receipt(id).await?;
        if let Some(receipt) = receipt.clone()
            && self.stays(envelope, &receipt).await?
        {
            return Ok((Some(receipt), true));
        }
        let status = self.status().await?;
        let expiry = envelope.header.expiry;
        let displaced = expiry.is_before(status.head.generation);
        let expired = status.certified >= expiry.number() && status.head.generation == expiry.generation();
        if !displaced && !expired {
            return Ok((receipt, false));
        }
        // Asked once more, after the status: the node had every batch that can hold the envelope by then.
        match self.receipt(id).await? {
            Some(receipt) => {
                let is_over = is_final(receipt.state);
                Ok((Some(receipt), is_over))
            }
            None => Ok((Some(in_no_batch(id, displaced)), true)),
        }
    }

    /// Whether a receipt says how the envelope ended before its expiry has passed.
    async fn stays(&self, envelope: &Envelope, receipt: &Receipt) -> Result<bool, WalletError> {
        let (Some(reason), Some(number), Some(index)) = (&receipt.reason, receipt.number, receipt.index)
        else {
            let over = [EnvelopeState::Executed, EnvelopeState::Malformed, EnvelopeState::Void];
            return Ok(over.contains(&receipt.state));
        };
        match EnvelopeError::from_name(reason) {
            // Opened: only an accepted item is, and none is accepted twice.
            None => Ok(is_final(receipt.state)),
            Some(fault) if is_final(receipt.state) && FAULTS_OF_BYTES.contains(&fault) => {
                let batch = self.node_rpc.get_batch(number).await;
                let batch = batch.map_err(|error| WalletError::NodeRpc(error.into()))?;
                let Some(batch) = batch else { return Ok(false) };
                let sealed = batch.sealed.decode();
                let sealed = sealed.map_err(|_| InclusionError::Undecodable("sealed batch"))?;
                Ok(sealed.items.get(index as usize).is_some_and(|item| *item == envelope.encode()))
            }
            Some(_) => Ok(false),
        }
    }

    /// Fetches the envelope's batch from the user's node and checks signature, certificate, place and hint against L1.
    ///
    /// # Errors
    /// [`WalletError`].
    pub async fn check(&self, id: B256) -> Result<Inclusion, WalletError> {
        let receipt = self.receipt(id).await?.ok_or(WalletError::Unknown(id))?;
        let number = receipt.number.ok_or(WalletError::Unknown(id))?;
        let batch = self
            .node_rpc
            .get_batch(number)
            .await
            .map_err(|error| WalletError::NodeRpc(error.into()))?
            .ok_or(WalletError::Unknown(id))?;
        let committee = self.committee_of(number).await?;
        Ok(check_inclusion(&self.chain, &committee, id, number, &batch)?)
    }
}

/// Faults that the bytes themselves have. What else a batch says of an envelope may be past in a later one.
pub(crate) const FAULTS_OF_BYTES: &[EnvelopeError] = &[
    EnvelopeError::Undecodable,
    EnvelopeError::WrongChain,
    EnvelopeError::WrongDeployment,
    EnvelopeError::InvalidFeeSignature,
    EnvelopeError::InvalidPoint,
    EnvelopeError::InvalidProof,
];

/// What a node says of an envelope that may still be executed.
fn seen(state: Option<EnvelopeState>) -> String {
    match state {
        None => "in no batch that your node knows".to_owned(),
        Some(EnvelopeState::Skipped) => "skipped, or a copy of it is,".to_owned(),
        Some(state) => format!("{state:?}").to_lowercase(),
    }
}

/// The receipt of an envelope that no batch holds and none can hold any more. Batches that gave way to a header of L1's may
/// have held it, and have been opened.
fn in_no_batch(id: B256, displaced: bool) -> Receipt {
    Receipt {
        id,
        state: EnvelopeState::Expired,
        reason: displaced.then(|| EnvelopeError::WrongGeneration.as_str().to_owned()),
        number: None,
        index: None,
        header_hash: None,
        block_number: None,
        block_hash: None,
        transactions: None,
    }
}

/// Whether an item with this state changes it no more. Of an envelope that says nothing yet where it was skipped or has
/// expired by a server's word: the item may be a copy with another proof or signature, see [`Wallet::wait`].
#[must_use]
pub fn is_final(state: EnvelopeState) -> bool {
    match state {
        EnvelopeState::Executed
        | EnvelopeState::Skipped
        | EnvelopeState::Malformed
        | EnvelopeState::Expired
        | EnvelopeState::Void => true,
        EnvelopeState::Pending | EnvelopeState::Sealed | EnvelopeState::Certified => false,
    }
}
