//! A member of which a test scripts what it is about.

use async_trait::async_trait;
use blindfold_protocol::{Bytes, Certificate, CertifiedBatch, DataAttestation, ReleaseShare, SingletonShare};
use blindfold_rpc::{
    CommitteeApiServer, Encoded, RpcError,
    jsonrpsee::{Extensions, Methods},
    types::{CommitteeStatus, HeldBatch},
};

/// What a member answers. It has no batches, and refuses whatever else a test leaves out.
#[async_trait]
pub trait MemberAnswers: Send + Sync + 'static {
    /// To `committee_getCertified`.
    async fn get_certified(&self, _: u64) -> Result<Option<Encoded<CertifiedBatch>>, RpcError> {
        Ok(None)
    }

    /// To `committee_getSealed`.
    async fn get_sealed(&self, _: u64) -> Result<Option<HeldBatch>, RpcError> {
        Ok(None)
    }

    /// To `committee_getShare`.
    async fn get_share(&self, _: u64, _: Encoded<Certificate>) -> Result<Encoded<ReleaseShare>, RpcError> {
        Err(left_out())
    }

    /// To `committee_getSingleton`.
    async fn get_singleton(&self, _: u64, _: u32) -> Result<Encoded<SingletonShare>, RpcError> {
        Err(left_out())
    }

    /// To `committee_attestData`.
    async fn attest_data(&self, _: u64, _: u64, _: Bytes) -> Result<Encoded<DataAttestation>, RpcError> {
        Err(left_out())
    }

    /// To `committee_getStatus`.
    async fn get_status(&self) -> Result<CommitteeStatus, RpcError> {
        Err(left_out())
    }
}

fn left_out() -> RpcError {
    RpcError::refused("not_here", "not a part of this double")
}

/// A member's methods, answered so.
pub fn member_that_answers(answers: impl MemberAnswers) -> Methods {
    Served(answers).into_rpc().into()
}

struct Served<A>(A);

#[async_trait]
impl<A: MemberAnswers> CommitteeApiServer for Served<A> {
    async fn get_certified(
        &self,
        _: &Extensions,
        number: u64,
    ) -> Result<Option<Encoded<CertifiedBatch>>, RpcError> {
        self.0.get_certified(number).await
    }

    async fn get_sealed(&self, _: &Extensions, number: u64) -> Result<Option<HeldBatch>, RpcError> {
        self.0.get_sealed(number).await
    }

    async fn get_share(
        &self,
        _: &Extensions,
        number: u64,
        certificate: Encoded<Certificate>,
    ) -> Result<Encoded<ReleaseShare>, RpcError> {
        self.0.get_share(number, certificate).await
    }

    async fn get_singleton(
        &self,
        _: &Extensions,
        number: u64,
        index: u32,
    ) -> Result<Encoded<SingletonShare>, RpcError> {
        self.0.get_singleton(number, index).await
    }

    async fn attest_data(
        &self,
        _: &Extensions,
        first: u64,
        last: u64,
        data: Bytes,
    ) -> Result<Encoded<DataAttestation>, RpcError> {
        self.0.attest_data(first, last, data).await
    }

    async fn get_status(&self) -> Result<CommitteeStatus, RpcError> {
        self.0.get_status().await
    }
}
