//! The senders of a smoke run. They follow the rules or break them; what came of it is for the checker to find out.

use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256};
use anyhow::{Context, Result, bail};
use blindfold_bte::Proof;
use blindfold_client::{
    CommitteeKey, EnvelopeMaker, Node, Offer, Wallet, WalletEndpoints, WalletError,
    transaction::{TransactionFields, sign},
};
use blindfold_l1::L1Client;
use blindfold_protocol::{Bundle, BundleItem, ChainConfig, Envelope, Promise, SigningKey};
use blindfold_rpc::ReceivedError;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::time::{Duration, sleep};

/// Gas of a transfer.
const TRANSFER_GAS: u64 = 21_000;
/// Wei per gas offered; far above what a quiet chain asks.
const MAX_FEE_PER_GAS: u128 = 1_000_000_000;

/// How often an account looks whether node and sequencer have both taken a header that L1 made, and in between waits.
const GENERATION_LOOKS: usize = 60;
const GENERATION_PAUSE: Duration = Duration::from_secs(1);

/// Compressed generator of G1: the C of randomness 1.
const GENERATOR: [u8; 48] = [
    0x97, 0xf1, 0xd3, 0xa7, 0x31, 0x97, 0xd7, 0x94, 0x26, 0x95, 0x63, 0x8c, 0x4f, 0xa9, 0xac, 0x0f, 0xc3,
    0x68, 0x8c, 0x4f, 0x97, 0x74, 0xb9, 0x05, 0xa1, 0x4e, 0x3a, 0x3f, 0x17, 0x1b, 0xac, 0x58, 0x6c, 0x55,
    0xe8, 0x3f, 0xf9, 0x7a, 0x1a, 0xef, 0xfb, 0x3a, 0xf0, 0x0a, 0xdb, 0x22, 0xc6, 0xbb,
];

/// One account with its own wallet.
pub struct Sender {
    /// Its key.
    pub key: SigningKey,
    /// Next nonce of its inner transactions.
    pub nonce: u64,
    wallet: Wallet,
    chain: Arc<ChainConfig>,
    committee: CommitteeKey,
}

impl Sender {
    /// A wallet of `key` that reaches the node and, through the relay, the sequencer.
    ///
    /// # Errors
    /// When the committee's key cannot be had from L1.
    pub async fn new(
        key: SigningKey,
        chain: Arc<ChainConfig>,
        l1: Arc<L1Client>,
        committee: CommitteeKey,
        endpoints: &WalletEndpoints,
    ) -> Result<Self> {
        let wallet = Wallet::new((*chain).clone(), key.clone(), endpoints, l1, None)?;
        Ok(Self { key, nonce: 0, wallet, chain, committee })
    }

    /// A signed transfer of `value` wei with this nonce.
    pub fn transfer(&self, nonce: u64, value: U256) -> (Bytes, B256) {
        let fields = TransactionFields {
            chain_id: self.chain.chain_id,
            nonce,
            to: Address::repeat_byte(0x77),
            value,
            input: Bytes::new(),
            gas_limit: TRANSFER_GAS,
            max_fee_per_gas: MAX_FEE_PER_GAS,
            max_priority_fee_per_gas: 0,
        };
        sign(&fields, &self.key)
    }

    /// An envelope with these raw bytes as its only item.
    ///
    /// # Errors
    /// When the node does not answer.
    pub async fn envelope(&self, item: Vec<u8>) -> Result<Envelope> {
        let offer = self.offer().await?;
        self.envelope_for(item, &offer)
    }

    /// What this account offers now: four times the base fee, and half the longest time.
    ///
    /// # Errors
    /// When the node does not answer.
    pub async fn offer(&self) -> Result<Offer> {
        let status = self.wallet.status().await?;
        Ok(Offer {
            base_fee: status.base_fee.saturating_mul(4),
            gas_base_fee: status.gas_base_fee.saturating_mul(4),
            priority_fee: 0,
            head: status.head.number,
            generation: status.head.generation,
            expiry_batches: 2_048,
            promise: false,
        })
    }

    /// An envelope with these raw bytes as its only item.
    ///
    /// # Errors
    /// When it cannot be encrypted.
    pub fn envelope_for(&self, item: Vec<u8>, offer: &Offer) -> Result<Envelope> {
        let maker = EnvelopeMaker { chain: &self.chain, committee: &self.committee, payer: &self.key };
        let bundle = Bundle { items: vec![BundleItem::transaction(item)] };
        Ok(maker.of_bundle(&bundle, TRANSFER_GAS, offer)?)
    }

    /// Sends an envelope; gives the promise where one was asked for.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn submit(&self, envelope: &Envelope, promise: bool) -> Result<Option<Promise>> {
        Ok(self.wallet.submit(envelope, promise).await?.map(|promised| promised.promise))
    }

    /// An envelope with these raw bytes as its only item, which reserves so much gas.
    ///
    /// # Errors
    /// When it cannot be encrypted.
    pub fn envelope_with_gas(&self, item: Vec<u8>, gas_limit: u64, offer: &Offer) -> Result<Envelope> {
        let maker = EnvelopeMaker { chain: &self.chain, committee: &self.committee, payer: &self.key };
        let bundle = Bundle { items: vec![BundleItem::transaction(item)] };
        Ok(maker.of_bundle(&bundle, gas_limit, offer)?)
    }

    /// Sends an envelope; gives the promise where one was asked for, or the reason of a refusal.
    ///
    /// # Errors
    /// When the sequencer does not answer.
    pub async fn try_submit(
        &self,
        envelope: &Envelope,
        promise: bool,
    ) -> Result<Result<Option<Promise>, String>> {
        match self.wallet.submit(envelope, promise).await {
            Ok(promised) => Ok(Ok(promised.map(|promised| promised.promise))),
            Err(WalletError::Sequencer(ReceivedError::Refused(refusal))) => {
                Ok(Err(refusal.reason.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Sends one honest transfer; gives the envelope and its plaintext. After a header that L1 made it waits until node
    /// and sequencer have both taken it.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn send(&mut self) -> Result<(Envelope, Bytes)> {
        let (raw, _) = self.transfer(self.nonce, U256::from(1));
        for _ in 0..GENERATION_LOOKS {
            let envelope = self.envelope(raw.to_vec()).await?;
            match self.try_submit(&envelope, true).await? {
                Ok(_) => {
                    self.nonce += 1;
                    return Ok((envelope, raw));
                }
                Err(reason) if reason == "wrong_generation" => sleep(GENERATION_PAUSE).await,
                Err(reason) => bail!("the sequencer refuses a transfer: {reason}"),
            }
        }
        bail!("node and sequencer do not come to the same generation")
    }

    /// Sends an envelope with an item that no block can hold.
    ///
    /// # Errors
    /// When it is refused: the sequencer cannot see what is inside.
    pub async fn send_item(&self, item: Vec<u8>) -> Result<()> {
        let envelope = self.envelope(item).await?;
        self.wallet.submit(&envelope, false).await?;
        Ok(())
    }

    /// Sends an envelope whose proof holds and whose D opens to nothing.
    ///
    /// # Errors
    /// When it is refused: only decryption shows it.
    pub async fn send_malformed(&self) -> Result<Envelope> {
        let mut envelope = self.envelope(vec![1; 40]).await?;
        envelope.ciphertext.c = GENERATOR;
        let proof = prove_generator(&envelope);
        let envelope = Envelope::sign(envelope.header, envelope.ciphertext, proof, &self.key);
        self.wallet.submit(&envelope, false).await?;
        Ok(envelope)
    }

    /// Wraps another one's ciphertext and proof into an envelope of its own.
    #[must_use]
    pub fn copy_of(&self, other: &Envelope) -> Envelope {
        let mut header = other.header;
        header.payer = self.key.address();
        header.fee_nonce = rand::random();
        Envelope::sign(header, other.ciphertext.clone(), other.proof, &self.key)
    }

    /// Sends what the sequencer has to refuse.
    ///
    /// # Errors
    /// When it is taken, or refused for another reason.
    pub async fn expect_refusal(&self, envelope: &Envelope, reason: &str) -> Result<()> {
        match self.wallet.submit(envelope, false).await {
            Err(WalletError::Sequencer(ReceivedError::Refused(refusal))) if refusal.reason == reason => {
                Ok(())
            }
            Err(error) => bail!("expected a refusal for {reason}, got: {error}"),
            Ok(_) => bail!("expected a refusal for {reason}, but the envelope was taken"),
        }
    }
}

/// The proof of knowledge of k = 1 with ρ = 1: R = C = [1]₁ and s = 1 + c, by the words of docs/scheme.md.
fn prove_generator(envelope: &Envelope) -> Proof {
    let ciphertext = &envelope.ciphertext;
    let mut hasher = Sha256::new();
    hasher.update(b"BLINDFOLD-V1-POK");
    hasher.update(ciphertext.c);
    hasher.update(ciphertext.d);
    hasher.update(Sha256::digest(&ciphertext.e));
    hasher.update(envelope.header.hash());
    hasher.update(GENERATOR);
    let digest = hasher.finalize();
    let mut challenge = [0u8; 16];
    challenge.copy_from_slice(&digest[..16]);
    let mut s = [0u8; 32];
    s[16..].copy_from_slice(&u128::from_be_bytes(challenge).saturating_add(1).to_be_bytes());
    Proof { r: GENERATOR, s }
}

/// An account whose wallet knows nothing of Blindfold and talks to the proxy.
pub struct Ordinary {
    /// Its key.
    pub key: SigningKey,
    /// Its next nonce.
    pub nonce: u64,
    /// The proxy.
    pub proxy: Node,
    /// The rollup's chain id.
    pub chain_id: u64,
}

impl Ordinary {
    /// Sends a transfer as any wallet does; gives its raw bytes.
    ///
    /// # Errors
    /// When the proxy refuses.
    pub async fn send(&mut self) -> Result<Bytes> {
        let (raw, hash) = self.signed();
        let answered = self.proxy.call("eth_sendRawTransaction", &[json!(raw)]).await?;
        let answered: B256 = answered.as_str().context("a transaction hash")?.parse()?;
        if answered != hash {
            bail!("the proxy answered {answered} for {hash}");
        }
        self.nonce += 1;
        Ok(raw)
    }

    /// Sends one and waits for its receipt in the same call.
    ///
    /// # Errors
    /// When the proxy refuses, or the transfer was not executed.
    pub async fn send_sync(&mut self) -> Result<()> {
        let (raw, hash) = self.signed();
        let receipt = self.proxy.call("eth_sendRawTransactionSync", &[json!(raw)]).await?;
        if receipt["transactionHash"] != json!(hash) || receipt["status"] != "0x1" {
            bail!("the proxy answered {receipt} for {hash}");
        }
        self.nonce += 1;
        Ok(())
    }

    fn signed(&self) -> (Bytes, B256) {
        let fields = TransactionFields {
            chain_id: self.chain_id,
            nonce: self.nonce,
            to: Address::repeat_byte(0x77),
            value: U256::from(1),
            input: Bytes::new(),
            gas_limit: TRANSFER_GAS,
            max_fee_per_gas: MAX_FEE_PER_GAS,
            max_priority_fee_per_gas: 0,
        };
        sign(&fields, &self.key)
    }
}
