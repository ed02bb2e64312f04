//! Users: wallets that encrypt transfers, send them until somebody answers, and wait for what becomes of them.

use std::{sync::Arc, time::Duration};

use alloy_primitives::{Address, B256, Bytes, U256};
use blindfold_client::{
    EnvelopeMaker, Offer, Prepared, SignedTransaction, TransactionFields, Wallet, WalletEndpoints,
    WalletError, transaction::sign,
};
use blindfold_protocol::{Bundle, BundleItem, SigningKey};
use blindfold_rpc::{
    ClientConfig, HttpClient, http_client,
    jsonrpsee::core::{client::ClientT, rpc_params},
    types::Receipt,
};
use blindfold_runtime::{Instant, now, spawn};
use rand::RngExt;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use serde_json::Value;
use tokio::time::sleep;

use crate::{
    Role,
    world::{World, user_key},
};

/// What is asked again is asked after so long, in milliseconds.
const RETRY_MS: u64 = 500;
/// What is in a block is looked at again after so long, in milliseconds.
const LOOK_AGAIN_MS: u64 = 2_000;
/// Longer than any run, in milliseconds.
const PATIENCE_MS: u64 = 600_000;
/// Gas of a transfer.
const GAS: u64 = 21_000;
/// Batches in which an envelope may be sealed.
const EXPIRY_BATCHES: u64 = 1_024;

/// A user with one account that sends and pays.
pub struct User {
    world: Arc<World>,
    role: Role,
    index: u16,
    key: SigningKey,
    wallet: Arc<Wallet>,
    rng: ChaCha20Rng,
    nonce: u64,
}

impl User {
    /// A user; the one of index 0 is not among those who send as they like.
    ///
    /// # Errors
    /// When a URL is unusable.
    pub fn new(world: &Arc<World>, index: u16) -> anyhow::Result<Self> {
        let role = Role::User(index);
        let life = world.lives.begin(role);
        let endpoints = WalletEndpoints {
            node: life.url(world.node_of(index)),
            sequencers: life.url(Role::Sequencer).into(),
        };
        let key = user_key(index);
        let source = Arc::new(world.l1.view(&life));
        let wallet = Wallet::new(world.chain.as_ref().clone(), key.clone(), &endpoints, source, None)?;
        let rng = ChaCha20Rng::seed_from_u64(world.plan.seed << 8 | u64::from(index));
        Ok(Self { world: Arc::clone(world), role, index, key, wallet: Arc::new(wallet), rng, nonce: 0 })
    }

    /// Sends all envelopes of the plan.
    pub async fn run(mut self) {
        for _ in 0..self.world.plan.envelopes {
            let pause_ms = self.rng.random_range(0..=self.world.plan.pause_ms);
            sleep(Duration::from_millis(pause_ms)).await;
            let promise = self.rng.random_range(0..3) == 0;
            if let Some(prepared) = self.send(promise).await {
                let (world, wallet, role) = (Arc::clone(&self.world), Arc::clone(&self.wallet), self.role);
                spawn(async move { wait(&world, &wallet, role, &prepared).await });
            }
        }
    }

    /// Sends one envelope and waits for its end; gives when it was sent and what became of it.
    pub async fn probe(mut self) -> Option<(Instant, Receipt)> {
        let sent = now();
        let prepared = self.send(false).await?;
        Some((sent, wait(&self.world, &self.wallet, self.role, &prepared).await?))
    }

    /// Sends the next envelope until it is answered; `None` where it is refused for good.
    async fn send(&mut self, promise: bool) -> Option<Prepared> {
        let prepared = loop {
            match self.prepare(promise).await {
                Ok(prepared) => break prepared,
                Err(error) => self.failed("prepares", &error),
            }
            sleep(Duration::from_millis(RETRY_MS)).await;
        };
        let id = prepared.envelope.id();
        loop {
            // A word that was on its way when the sequencer's disk was lost binds the one that comes after no more.
            let losses = self.world.checks.losses();
            match self.wallet.deliver(&prepared, promise).await {
                Ok(sent) => {
                    self.world.trace.event(self.role, format_args!("has the word for {id}"));
                    self.world.checks.envelope_answered(id, sent.promised_by, losses);
                    self.nonce += 1;
                    return Some(prepared);
                }
                // It was taken, and the promise that it may have come with is lost.
                Err(WalletError::NoPromise(_)) => {
                    self.world.checks.envelope_answered(id, None, losses);
                    self.nonce += 1;
                    return Some(prepared);
                }
                Err(WalletError::Sequencer(error)) if !error.retry() => {
                    self.world.trace.event(self.role, format_args!("is refused {id}: {error}"));
                    self.world.checks.envelope_refused();
                    return None;
                }
                Err(error) => self.failed("sends", &error),
            }
            sleep(Duration::from_millis(RETRY_MS)).await;
        }
    }

    fn failed(&self, what: &str, error: &WalletError) {
        self.world.trace.event(self.role, format_args!("{what} in vain: {error}"));
    }

    async fn prepare(&mut self, promise: bool) -> Result<Prepared, WalletError> {
        let status = self.wallet.status().await?;
        let committee = self.wallet.committee(status.head.number).await?;
        let fields = TransactionFields {
            chain_id: self.world.chain.chain_id,
            nonce: self.nonce,
            to: Address::repeat_byte(0xa0 + self.index as u8),
            value: U256::from(1 + self.nonce),
            input: Bytes::new(),
            gas_limit: GAS,
            max_fee_per_gas: 1_000_000,
            max_priority_fee_per_gas: 0,
        };
        let transaction = SignedTransaction::decode(sign(&fields, &self.key).0, self.world.chain.chain_id)?;
        let offer = Offer {
            base_fee: status.base_fee,
            gas_base_fee: status.gas_base_fee,
            priority_fee: 0,
            head: status.head.number,
            generation: status.head.generation,
            expiry_batches: EXPIRY_BATCHES,
            promise,
        };
        let maker = EnvelopeMaker { chain: &self.world.chain, committee: &committee, payer: &self.key };
        let envelope = match self.world.plan.coprocessor {
            Some(_) => {
                let item = self.world.confidential.next_item();
                let mut bundle = Bundle::of_transactions([transaction.raw.to_vec()]);
                bundle.items.push(BundleItem::confidential(item.clone()));
                let envelope = maker.of_bundle(&bundle, GAS, &offer)?;
                self.world.confidential.sends(envelope.id(), item);
                envelope
            }
            None => maker.of_transactions(std::slice::from_ref(&transaction), &offer)?,
        };
        Ok(Prepared { envelope, transactions: vec![transaction.hash] })
    }
}

/// Forces transactions in through L1, one after the other; each again that L1 drops.
pub async fn force(world: Arc<World>) {
    let (index, role) = (world.forcer(), Role::User(world.forcer()));
    let view = world.l1.view(&world.lives.begin(role));
    let mut rng = ChaCha20Rng::seed_from_u64(world.plan.seed << 8 | u64::from(index));
    for place in 0..usize::from(world.plan.forced) {
        sleep(Duration::from_millis(rng.random_range(0..=world.plan.pause_ms))).await;
        let fields = TransactionFields {
            chain_id: world.chain.chain_id,
            nonce: place as u64,
            to: Address::repeat_byte(0xa0 + index as u8),
            value: U256::from(1),
            input: Bytes::new(),
            gas_limit: GAS,
            max_fee_per_gas: 1_000_000,
            max_priority_fee_per_gas: 0,
        };
        let raw = sign(&fields, &user_key(index)).0;
        loop {
            let (entries, final_entries) = world.l1.forced();
            if final_entries > place {
                break;
            }
            if entries <= place
                && let Err(fault) = view.force(GAS, raw.to_vec()).await
            {
                world.trace.event(role, format_args!("forces in vain: {fault}"));
            }
            sleep(Duration::from_millis(RETRY_MS)).await;
        }
    }
}

/// A user with an ordinary wallet, whose transactions go through the proxy: none waits for the one before it.
pub async fn use_proxy(world: Arc<World>) {
    let index = world.proxied_user();
    let role = Role::User(index);
    let life = world.lives.begin(role);
    let Ok(proxy) = http_client(&life.url(Role::Proxy), &ClientConfig::default()) else { return };
    let proxy = Arc::new(proxy);
    let mut rng = ChaCha20Rng::seed_from_u64(world.plan.seed << 8 | u64::from(index));
    for nonce in 0..u64::from(world.plan.proxied) {
        sleep(Duration::from_millis(rng.random_range(0..=world.plan.pause_ms))).await;
        let fields = TransactionFields {
            chain_id: world.chain.chain_id,
            nonce,
            to: Address::repeat_byte(0xa0 + index as u8),
            value: U256::from(1 + nonce),
            input: Bytes::new(),
            gas_limit: GAS,
            max_fee_per_gas: 1_000_000,
            max_priority_fee_per_gas: 0,
        };
        let (raw, hash) = sign(&fields, &user_key(index));
        hand_over(&world, &proxy, role, &raw).await;
        world.trace.event(role, format_args!("has the proxy's word for {hash}"));
        world.checks.held();
        spawn(see_through(Arc::clone(&world), Arc::clone(&proxy), role, raw, hash));
    }
}

/// Gives a transaction to the proxy until it has it, or has had it.
async fn hand_over(world: &World, proxy: &HttpClient, role: Role, raw: &Bytes) {
    loop {
        let sent: Result<B256, _> = proxy.request("eth_sendRawTransaction", rpc_params![raw]).await;
        match sent.map_err(|error| error.to_string()) {
            Ok(_) => return,
            Err(error) if error.contains("already known") || error.contains("nonce too low") => return,
            Err(error) => world.trace.event(role, format_args!("hands over in vain: {error}")),
        }
        sleep(Duration::from_millis(RETRY_MS)).await;
    }
}

/// Sees that a transaction is in a block and stays there, and gives it to the proxy again where that gave it up, or where its
/// block was taken back.
async fn see_through(world: Arc<World>, proxy: Arc<HttpClient>, role: Role, raw: Bytes, hash: B256) {
    let mut is_included = false;
    loop {
        sleep(Duration::from_millis(if is_included { LOOK_AGAIN_MS } else { RETRY_MS })).await;
        let receipt: Result<Value, _> = proxy.request("eth_getTransactionReceipt", rpc_params![hash]).await;
        match receipt {
            Err(_) => continue,
            Ok(receipt) if receipt.is_null() => {}
            Ok(_) if is_included => continue,
            Ok(_) => {
                world.trace.event(role, format_args!("{hash} is in a block"));
                world.checks.included();
                is_included = true;
                continue;
            }
        }
        if is_included {
            world.trace.event(role, format_args!("{hash} is in no block any more"));
            world.checks.held();
            is_included = false;
            hand_over(&world, &proxy, role, &raw).await;
            continue;
        }
        let traced: Result<Value, _> = proxy.request("proxy_getEnvelope", rpc_params![hash]).await;
        let outcome = traced.ok().and_then(|traced| traced["outcome"].as_str().map(str::to_owned));
        if let Some(outcome) = outcome.filter(|outcome| outcome != "included") {
            world.trace.event(role, format_args!("{hash} is given up: {outcome}"));
            world.checks.given_up();
            hand_over(&world, &proxy, role, &raw).await;
        }
    }
}

/// Waits for the end of an envelope, and checks by L1 what the node says of it.
async fn wait(world: &Arc<World>, wallet: &Wallet, role: Role, prepared: &Prepared) -> Option<Receipt> {
    let id = prepared.envelope.id();
    let receipt = loop {
        match wallet.wait(&prepared.envelope, PATIENCE_MS, |_| {}).await {
            Ok(receipt) => break receipt,
            Err(error) => world.trace.event(role, format_args!("waits in vain for {id}: {error}")),
        }
        sleep(Duration::from_millis(RETRY_MS)).await;
    };
    let state = format!("{:?}", receipt.state).to_lowercase();
    world.trace.event(role, format_args!("{id} is {state} in {:?}", receipt.number));
    world.checks.envelope_ended(&receipt);
    Some(receipt)
}
