//! `committee_*`: what a member serves to anyone.

use std::sync::Arc;

use alloy_primitives::Bytes;
use async_trait::async_trait;
use blindfold_protocol::{Certificate, CertifiedBatch, DataAttestation, Party, ReleaseShare, SingletonShare};
use blindfold_rpc::{
    CommitteeApiServer, Encoded, KnownPeer, RpcError,
    jsonrpsee::Extensions,
    types::{CommitteeStatus, HeldBatch},
};
use blindfold_telemetry::CounterSet;

use crate::{
    attest::{AttestationRefusal, Attester},
    member::Context,
    share::{ShareRequestError, ShareService},
};

pub(crate) struct Service {
    pub(crate) context: Arc<Context>,
    pub(crate) shares: Arc<ShareService>,
    pub(crate) attester: Arc<Attester>,
}

#[async_trait]
impl CommitteeApiServer for Service {
    async fn get_certified(
        &self,
        caller: &Extensions,
        number: u64,
    ) -> Result<Option<Encoded<CertifiedBatch>>, RpcError> {
        let batch = self.shares.certified(number, is_peer(caller)).await?;
        Ok(batch.as_ref().map(Encoded::new))
    }

    async fn get_sealed(&self, caller: &Extensions, number: u64) -> Result<Option<HeldBatch>, RpcError> {
        Ok(self.shares.sealed(number, is_peer(caller)).await?)
    }

    async fn get_share(
        &self,
        caller: &Extensions,
        number: u64,
        certificate: Encoded<Certificate>,
    ) -> Result<Encoded<ReleaseShare>, RpcError> {
        let certificate = certificate.decode_param()?;
        let result = self.shares.share(number, &certificate, is_peer(caller)).await;
        count(&self.context.metrics.shares, &result);
        if let Err(refusal) = &result {
            // Anybody can ask. What an operator watches is the counter.
            tracing::debug!(number, reason = refusal.as_str(), %refusal, "no share given");
        }
        Ok(Encoded::new(&result?))
    }

    async fn get_singleton(
        &self,
        caller: &Extensions,
        number: u64,
        index: u32,
    ) -> Result<Encoded<SingletonShare>, RpcError> {
        let result = self.shares.singleton(number, index, is_peer(caller)).await;
        count(&self.context.metrics.singletons, &result);
        Ok(Encoded::new(&result?))
    }

    async fn attest_data(
        &self,
        caller: &Extensions,
        first_number: u64,
        last_number: u64,
        data: Bytes,
    ) -> Result<Encoded<DataAttestation>, RpcError> {
        let result = match caller.get::<KnownPeer>() {
            Some(KnownPeer(Party::Sequencer)) => {
                self.attester.attest((first_number, last_number), data).await
            }
            _ => Err(AttestationRefusal::NotTheSequencer),
        };
        let outcome = match &result {
            Ok(_) => "given",
            Err(AttestationRefusal::Busy) => "busy",
            Err(_) => "refused",
        };
        self.context.metrics.attestations.get(&[outcome]).increment();
        match &result {
            // Anybody can ask.
            Ok(_) | Err(AttestationRefusal::NotTheSequencer | AttestationRefusal::Busy) => {}
            Err(refusal) => {
                let reason = refusal.as_str();
                tracing::warn!(
                    first_number,
                    last_number,
                    reason,
                    %refusal,
                    "data that the sequencer is about to post are not attested"
                );
            }
        }
        Ok(Encoded::new(&result?))
    }

    async fn get_status(&self) -> Result<CommitteeStatus, RpcError> {
        Ok(self.context.status().await)
    }
}

fn is_peer(caller: &Extensions) -> bool {
    caller.get::<KnownPeer>().is_some()
}

fn count<T>(counters: &CounterSet, result: &Result<T, ShareRequestError>) {
    let outcome = match result {
        Ok(_) => "given",
        Err(ShareRequestError::Busy) => "busy",
        Err(_) => "refused",
    };
    counters.get(&[outcome]).increment();
}
