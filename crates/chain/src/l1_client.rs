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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_pass_is_asked_again() {
        let away = L1Error::Timeout { method: "eth_getLogs".to_owned(), timeout_ms: 1 };
        assert!(
            matches!(L1Fault::from(away), L1Fault::Unavailable { reason } if reason.contains("eth_getLogs"))
        );
        let wrong = L1Fault::from(L1Error::WrongChain { expected: 1, given: 2 });
        assert!(matches!(&wrong, L1Fault::Unusable { .. }));
        assert!(!wrong.is_transient());
    }
}
