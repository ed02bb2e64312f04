//! The client of the contracts as a view of L1.

use async_trait::async_trait;
use blindfold_l1::{L1Client, L1Error, Recovery};
use blindfold_protocol::Epochs;
use blindfold_protocol::validity::Deposit;

use crate::{L1Fault, L1Origin, L1View};

impl From<L1Error> for L1Fault {
    fn from(error: L1Error) -> Self {
        let reason = error.to_string();
        match error.recovery() {
            // Where L1 moved on, asking again looks anew.
            Recovery::Retry | Recovery::Refresh => Self::Unavailable { reason },
            Recovery::GiveUp => Self::Unusable { reason },
        }
    }
}

#[async_trait]
impl L1View for L1Client {
    async fn finalized(&self) -> Result<L1Origin, L1Fault> {
        Ok(L1Client::finalized(self).await?)
    }

    async fn origin(&self, number: u64) -> Result<Option<L1Origin>, L1Fault> {
        Ok(L1Client::origin(self, number).await?)
    }

    async fn deposits(&self, after: u64, through: u64) -> Result<Vec<Deposit>, L1Fault> {
        Ok(L1Client::deposits(self, after, through).await?)
    }

    async fn epochs(&self) -> Result<Epochs, L1Fault> {
        Ok(L1Client::epochs(self).await?)
    }
}
