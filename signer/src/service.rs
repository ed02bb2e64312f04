//! `signer_*`: what the signer serves to sequencers.

use std::sync::Arc;

use async_trait::async_trait;
use blindfold_protocol::{B256, BatchHeader, Deployment, Hello, Party, Promise, SignedHeader};
use blindfold_rpc::{
    Encoded, RpcError, SignerApiServer,
    types::{SignedNumber, SignerStatus},
};
use blindfold_runtime::{Clock, now, random};

use crate::{
    begin::Known,
    floor::Floor,
    metrics::{HEADER, HELLO, PROMISE, SignerMetrics},
    refusal::SigningRefusal,
};

pub(crate) struct Service {
    pub(crate) floor: Arc<Floor>,
    pub(crate) metrics: SignerMetrics,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Service {
    /// Counts what came of a request; a refusal is the operator's to see.
    fn counted<T>(&self, what: &'static str, signed: Result<T, SigningRefusal>) -> Result<T, RpcError> {
        match signed {
            Ok(signed) => {
                self.metrics.signed.get(&[what]).increment();
                Ok(signed)
            }
            Err(refusal) => {
                self.metrics.refusals.get(&[refusal.reason()]).increment();
                tracing::warn!(what, reason = refusal.reason(), %refusal, "nothing signed");
                Err(refusal.into())
            }
        }
    }

    fn decoded(&self, header: &Encoded<BatchHeader>) -> Result<BatchHeader, RpcError> {
        header.decode_param().inspect_err(|_| self.metrics.refusals.get(&["undecodable"]).increment())
    }

    pub(crate) async fn show(&self) {
        let Known { term, .. } = self.floor.known().await;
        self.metrics.term.set(term);
        if let Ok(Some((number, _))) = self.floor.newest().await {
            self.metrics.number.set(number);
        }
    }
}

#[async_trait]
impl SignerApiServer for Service {
    async fn get_status(&self) -> Result<SignerStatus, RpcError> {
        let Known { first, term } = self.floor.known().await;
        let Deployment { l1_chain_id, inbox } = *self.floor.deployment();
        let newest = self.floor.newest().await.map_err(SigningRefusal::Store)?;
        Ok(SignerStatus {
            address: self.floor.address(),
            l1_chain_id,
            inbox,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            first_number: first,
            newest: newest.map(|(number, signed)| SignedNumber {
                number,
                header_hash: signed.hash,
                l1_origin: signed.origin,
            }),
            term,
        })
    }

    async fn sign_header(
        &self,
        header: Encoded<BatchHeader>,
        term: Option<u64>,
    ) -> Result<Encoded<SignedHeader>, RpcError> {
        let header = self.decoded(&header)?;
        let since = now();
        let signature = self.counted(HEADER, self.floor.sign_header(&header, term).await)?;
        self.metrics.header_seconds.observe_duration(since.elapsed());
        self.show().await;
        tracing::debug!(number = header.number, "signed a header");
        Ok(Encoded::new(&SignedHeader { header, signature }))
    }

    async fn sign_promise(
        &self,
        envelope_id: B256,
        item_hash: B256,
        seal_by: u64,
        term: Option<u64>,
    ) -> Result<Encoded<Promise>, RpcError> {
        let signed = self.floor.sign_promise((envelope_id, item_hash, seal_by), term).await;
        Ok(Encoded::new(&self.counted(PROMISE, signed)?))
    }

    async fn sign_hello(&self, server: String) -> Result<String, RpcError> {
        let signed = match server.parse() {
            Ok(server @ Party::Member(_)) => {
                let nonce = random::<[u8; 16]>().into();
                let (key, deployment) = (self.floor.key(), self.floor.deployment());
                Ok(Hello::of_sequencer(key, deployment, server, self.clock.now_ms(), nonce).to_string())
            }
            _ => Err(SigningRefusal::UnknownParty),
        };
        self.counted(HELLO, signed)
    }
}
