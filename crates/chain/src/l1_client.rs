//! The client of the contracts as a view of L1.

use async_trait::async_trait;
use blindfold_l1::{L1Client, L1Error, Recovery};
use blindfold_protocol::{Bytes, Epochs, ForcedEntry, LedgerEvent};

use crate::l1::MAX_FORCED_ENTRIES;
use crate::{DepositGas, L1Fault, L1MadeHeader, L1News, L1Origin, L1View, VoidRun};

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

    async fn epochs(&self) -> Result<Epochs, L1Fault> {
        Ok(L1Client::epochs(self).await?)
    }

    async fn facts(&self, after: u64, through: u64, cursor: u64) -> Result<L1News, L1Fault> {
        Ok(L1News {
            ledger: ledger_events(self, after, through).await?,
            forced: forced_entries(self, cursor, MAX_FORCED_ENTRIES, through).await?,
            deposits: deposit_gas(self, after, through).await?,
        })
    }

    async fn bridge_deposits(&self, after: u64, through: u64) -> Result<Vec<Bytes>, L1Fault> {
        bridge_deposits(self, after, through).await
    }

    async fn l1_header(&self, number: u64) -> Result<Option<L1MadeHeader>, L1Fault> {
        Ok(l1_headers(self).await?.into_iter().find(|made| made.header.number == number))
    }

    async fn last_l1_header(&self) -> Result<Option<u64>, L1Fault> {
        Ok(l1_headers(self).await?.last().map(|made| made.header.number))
    }

    async fn void_runs(&self) -> Result<Vec<VoidRun>, L1Fault> {
        void_runs(self).await
    }

    async fn posted_at(&self, number: u64) -> Result<Option<u64>, L1Fault> {
        posted_at(self, number).await
    }

    async fn hints_on_l1(&self, number: u64) -> Result<bool, L1Fault> {
        hints_on_l1(self, number).await
    }
}

// What the client of the contracts does not read yet, each in one place.

async fn ledger_events(client: &L1Client, after: u64, through: u64) -> Result<Vec<LedgerEvent>, L1Fault> {
    if through <= after {
        return Ok(Vec::new());
    }
    let deposits = client.deposits(after, through).await?;
    Ok(deposits.into_iter().map(LedgerEvent::Deposit).collect())
}

async fn forced_entries(
    _client: &L1Client,
    _from_index: u64,
    _limit: usize,
    _through: u64,
) -> Result<Vec<ForcedEntry>, L1Fault> {
    Ok(Vec::new())
}

async fn deposit_gas(_client: &L1Client, _after: u64, _through: u64) -> Result<Vec<DepositGas>, L1Fault> {
    Ok(Vec::new())
}

async fn bridge_deposits(_client: &L1Client, _after: u64, _through: u64) -> Result<Vec<Bytes>, L1Fault> {
    Ok(Vec::new())
}

async fn l1_headers(_client: &L1Client) -> Result<Vec<L1MadeHeader>, L1Fault> {
    Ok(Vec::new())
}

async fn void_runs(_client: &L1Client) -> Result<Vec<VoidRun>, L1Fault> {
    Ok(Vec::new())
}

async fn posted_at(_client: &L1Client, _number: u64) -> Result<Option<u64>, L1Fault> {
    Ok(None)
}

async fn hints_on_l1(_client: &L1Client, _number: u64) -> Result<bool, L1Fault> {
    Ok(false)
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
