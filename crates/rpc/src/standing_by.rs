//! The port of a sequencer that stands by: every method is refused, and who asks may be told who leads (J-5).

use blindfold_protocol::{Acknowledgement, Address, B256, BatchHints, Release};
use jsonrpsee::{
    Extensions, PendingSubscriptionSink, RpcModule,
    core::{SubscriptionResult, async_trait},
    types::ErrorObjectOwned,
};
use tokio::sync::watch;

use crate::{
    BlindApiServer, Encoded, ForwardApiServer, READ_METHODS, RawEnvelope, ReceiptApiServer, RpcError,
    SequencerApiServer, SyncApiServer,
    types::{
        BatchInfo, EncryptionKeyInfo, FeeAccount, FeeAccountProof, ForwardedAnswer, ForwardedEnvelope,
        LedgerAt, Receipt, Refusal, SendOptions, SentEnvelope, Status, SyncOptions, SyncedEnvelope,
    },
};

/// The methods of a sequencer that stands by, for [`serve`](crate::serve) without a passthrough: each one that it would
/// serve as the leader, reads of the execution client and the subscription among them, is refused with `standing_by`
/// whatever its parameters are. `leader` is the URL of the one that leads, as far as it is known; each refusal reads it
/// anew.
pub fn standing_by(leader: watch::Receiver<Option<String>>) -> RpcModule<watch::Receiver<Option<String>>> {
    let (common, own) = (BlindApiServer::into_rpc(Nobody), SequencerApiServer::into_rpc(Nobody));
    let forwarded = ForwardApiServer::into_rpc(Nobody);
    let (receipts, synced) = (ReceiptApiServer::into_rpc(Nobody), SyncApiServer::into_rpc(Nobody));
    let served = common.method_names().chain(own.method_names()).chain(forwarded.method_names());
    let served = served.chain(receipts.method_names()).chain(synced.method_names());
    let names: Vec<&'static str> = served.chain(READ_METHODS.iter().copied()).collect();
    let mut module = RpcModule::new(leader);
    for name in names {
        let registered = module.register_method(name, |_, leader, _| {
            let refusal = RpcError::standing_by(leader.borrow().as_deref());
            Err::<(), _>(ErrorObjectOwned::from(refusal))
        });
        assert!(registered.is_ok(), "no method has two names");
    }
    module
}

/// Has the names of all methods, and serves none.
struct Nobody;

fn nobody<T>() -> Result<T, RpcError> {
    Err(RpcError::standing_by(None))
}

#[async_trait]
impl BlindApiServer for Nobody {
    async fn get_encryption_key(&self) -> Result<Vec<EncryptionKeyInfo>, RpcError> {
        nobody()
    }

    async fn get_receipt(&self, _: B256) -> Result<Option<Receipt>, RpcError> {
        nobody()
    }

    async fn get_batch(&self, _: u64) -> Result<Option<BatchInfo>, RpcError> {
        nobody()
    }

    async fn get_hints(&self, _: u64) -> Result<Option<Encoded<BatchHints>>, RpcError> {
        nobody()
    }

    async fn get_fee_account(&self, _: Address) -> Result<FeeAccount, RpcError> {
        nobody()
    }

    async fn get_fee_account_proof(
        &self,
        _: Address,
        _: Option<LedgerAt>,
    ) -> Result<Option<FeeAccountProof>, RpcError> {
        nobody()
    }

    async fn get_status(&self) -> Result<Status, RpcError> {
        nobody()
    }

    async fn subscribe_topic(
        &self,
        pending: PendingSubscriptionSink,
        _: &Extensions,
        _: String,
    ) -> SubscriptionResult {
        pending.reject(RpcError::standing_by(None)).await;
        Ok(())
    }
}

#[async_trait]
impl SequencerApiServer for Nobody {
    async fn send_envelope(
        &self,
        _: &Extensions,
        _: Encoded<RawEnvelope>,
        _: Option<SendOptions>,
    ) -> Result<SentEnvelope, RpcError> {
        nobody()
    }

    async fn submit_acknowledgement(
        &self,
        _: &Extensions,
        _: Encoded<Acknowledgement>,
    ) -> Result<bool, RpcError> {
        nobody()
    }

    async fn submit_refusal(&self, _: &Extensions, _: Refusal) -> Result<bool, RpcError> {
        nobody()
    }

    async fn submit_hints(
        &self,
        _: &Extensions,
        _: Encoded<Release>,
        _: Encoded<BatchHints>,
    ) -> Result<bool, RpcError> {
        nobody()
    }
}

#[async_trait]
impl ReceiptApiServer for Nobody {
    async fn get_receipts(&self, _: Vec<B256>) -> Result<Vec<Option<Receipt>>, RpcError> {
        nobody()
    }

    async fn subscribe_receipts(
        &self,
        pending: PendingSubscriptionSink,
        _: &Extensions,
        _: Vec<B256>,
    ) -> SubscriptionResult {
        pending.reject(RpcError::standing_by(None)).await;
        Ok(())
    }
}

#[async_trait]
impl SyncApiServer for Nobody {
    async fn send_envelope_sync(
        &self,
        _: &Extensions,
        _: Encoded<RawEnvelope>,
        _: Option<SyncOptions>,
    ) -> Result<SyncedEnvelope, RpcError> {
        nobody()
    }
}

#[async_trait]
impl ForwardApiServer for Nobody {
    async fn send_envelopes(
        &self,
        _: &Extensions,
        _: Vec<ForwardedEnvelope>,
    ) -> Result<Vec<ForwardedAnswer>, RpcError> {
        nobody()
    }
}
