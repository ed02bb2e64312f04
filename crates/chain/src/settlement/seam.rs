//! What settlement needs of L1, as a seam: the client of the contracts implements it, tests script it.

use async_trait::async_trait;
use blindfold_l1::{L1Client, PostedData, RunReference, SettlementLog};

use crate::L1Fault;

/// What became of posted runs, in final blocks only, so that an answer never changes.
#[async_trait]
pub trait SettlementView: Send + Sync {
    /// Number of the newest final block.
    async fn finalized(&self) -> Result<u64, L1Fault>;

    /// What happened to runs in blocks `after + 1 ..= through`, in L1 order. `through` is final.
    async fn logs(&self, after: u64, through: u64) -> Result<Vec<SettlementLog>, L1Fault>;

    /// How many blocks after a header's posting `FeeVault` pays out its ledger. Never changes.
    async fn claim_delay(&self) -> Result<u64, L1Fault>;

    /// For each header of a posted run, and of what was posted in the same call, its batch as L1 holds it: beside the
    /// header, or posted again up to block `through`, which is final. Where one is missing: why.
    async fn data(&self, run: &RunReference, through: u64) -> Result<PostedData, L1Fault>;
}

#[async_trait]
impl SettlementView for L1Client {
    async fn finalized(&self) -> Result<u64, L1Fault> {
        Ok(L1Client::finalized(self).await?.number)
    }

    async fn logs(&self, after: u64, through: u64) -> Result<Vec<SettlementLog>, L1Fault> {
        Ok(self.settlement_logs(after, through).await?)
    }

    async fn claim_delay(&self) -> Result<u64, L1Fault> {
        Ok(L1Client::claim_delay(self).await?.into())
    }

    async fn data(&self, run: &RunReference, through: u64) -> Result<PostedData, L1Fault> {
        Ok(self.posted_data(run, through).await?)
    }
}
