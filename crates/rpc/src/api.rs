//! The method traits. `…Server` traits are implemented by the roles and turned into methods by `into_rpc()`; `…Client`
//! traits are implemented for every client of this crate.

#![expect(clippy::disallowed_methods, reason = "tasks that the macro of the library spawns")]

use alloy_primitives::{Address, B256};
use blindfold_protocol::{
    Acknowledgement, BatchHints, Certificate, CertifiedBatch, Release, ReleaseShare, SingletonShare,
};
use jsonrpsee::{core::SubscriptionResult, proc_macros::rpc};
use serde_json::value::RawValue;

use crate::{
    Encoded, RawEnvelope, RpcError,
    types::{
        BatchInfo, CommitteeStatus, EncryptionKeyInfo, FeeAccount, FeeAccountProof, HeldBatch, LedgerAt,
        Receipt, Refusal, SendOptions, SentEnvelope, Status,
    },
};

/// What sequencer and full node both serve.
#[rpc(server, client, namespace = "blind")]
pub trait BlindApi {
    /// The keys of this epoch and, near its end, of the next.
    #[method(name = "getEncryptionKey")]
    async fn get_encryption_key(&self) -> Result<Vec<EncryptionKeyInfo>, RpcError>;

    /// Where an envelope stands; null if it is not known here.
    #[method(name = "getReceipt")]
    async fn get_receipt(&self, id: B256) -> Result<Option<Receipt>, RpcError>;

    /// A batch with everything known about it.
    #[method(name = "getBatch")]
    async fn get_batch(&self, number: u64) -> Result<Option<BatchInfo>, RpcError>;

    /// `blind_getHints`: null until the batch has hints.
    #[method(name = "getHints")]
    async fn get_hints(&self, number: u64) -> Result<Option<Encoded<BatchHints>>, RpcError>;

    /// A payer's account; zeros for one that never had a deposit.
    #[method(name = "getFeeAccount")]
    async fn get_fee_account(&self, address: Address) -> Result<FeeAccount, RpcError>;

    /// A payer's account after a header, by default the last posted one, with its proof for `FeeVault`; null for one
    /// that is not in the ledger.
    #[method(name = "getFeeAccountProof")]
    async fn get_fee_account_proof(
        &self,
        address: Address,
        at: Option<LedgerAt>,
    ) -> Result<Option<FeeAccountProof>, RpcError>;

    /// `blind_getStatus`: how far the chain is here, and counters.
    #[method(name = "getStatus")]
    async fn get_status(&self) -> Result<Status, RpcError>;

    /// Notifications of one [`crate::Topic`]; [`crate::Hub::attach`] serves it. The item's form depends on the topic,
    /// see [`crate::FeedEvent::parse`].
    #[subscription(name = "subscribe" => "subscription", unsubscribe = "unsubscribe", item = Box<RawValue>, with_extensions)]
    async fn subscribe_topic(&self, topic: String) -> SubscriptionResult;
}

/// What only the sequencer serves. [`crate::PeerAddress`] in the extensions says who calls.
#[rpc(server, client, namespace = "blind")]
pub trait SequencerApi {
    /// Admits an envelope; durable before it returns.
    #[method(name = "sendEnvelope", with_extensions)]
    async fn send_envelope(
        &self,
        envelope: Encoded<RawEnvelope>,
        options: Option<SendOptions>,
    ) -> Result<SentEnvelope, RpcError>;

    /// `blind_submitAcknowledgement`, from members. The answer is always true; what is not taken is an error.
    #[method(name = "submitAcknowledgement", with_extensions)]
    async fn submit_acknowledgement(
        &self,
        acknowledgement: Encoded<Acknowledgement>,
    ) -> Result<bool, RpcError>;

    /// A member's refusal with its reason.
    #[method(name = "submitRefusal", with_extensions)]
    async fn submit_refusal(&self, refusal: Refusal) -> Result<bool, RpcError>;

    /// The hint publisher's release and hints for one batch.
    #[method(name = "submitHints", with_extensions)]
    async fn submit_hints(
        &self,
        release: Encoded<Release>,
        hints: Encoded<BatchHints>,
    ) -> Result<bool, RpcError>;
}

/// What a committee member serves to anyone.
#[rpc(server, client, namespace = "committee")]
pub trait CommitteeApi {
    /// What it holds certified for a number.
    #[method(name = "getCertified", with_extensions)]
    async fn get_certified(&self, number: u64) -> Result<Option<Encoded<CertifiedBatch>>, RpcError>;

    /// What it holds sealed for a number, certified or not. Number by number this gives every run up to its certificate.
    #[method(name = "getSealed", with_extensions)]
    async fn get_sealed(&self, number: u64) -> Result<Option<HeldBatch>, RpcError>;

    /// Its share, against a certificate.
    #[method(name = "getShare", with_extensions)]
    async fn get_share(
        &self,
        number: u64,
        certificate: Encoded<Certificate>,
    ) -> Result<Encoded<ReleaseShare>, RpcError>;

    /// Its singleton share of one envelope of a batch it holds certified.
    #[method(name = "getSingleton", with_extensions)]
    async fn get_singleton(&self, number: u64, index: u32) -> Result<Encoded<SingletonShare>, RpcError>;

    /// `committee_getStatus`: what the member acknowledged, knows and refused.
    #[method(name = "getStatus")]
    async fn get_status(&self) -> Result<CommitteeStatus, RpcError>;
}
