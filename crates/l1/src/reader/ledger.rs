//! What happens to fee accounts on L1.

use alloy_primitives::{Address, U256};
use alloy_sol_types::SolEvent;
use blindfold_protocol::validity::{Deposit, LedgerEvent, Withdrawal};

use crate::{
    contracts::FeeVault,
    error::L1Error,
    events::logs::{FinalLog, malformed_log},
    reader::client::L1Client,
};

impl L1Client {
    /// Deposits into `FeeVault` in blocks `after + 1 ..= through`, in L1 order. `through` is final.
    ///
    /// # Errors
    /// [`L1Error::NotFinal`], [`L1Error::FinalityBroken`] when a log is of another block than the final one; the
    /// errors of a call.
    pub async fn deposits(&self, after: u64, through: u64) -> Result<Vec<Deposit>, L1Error> {
        let vault = self.inner.config.contracts.fee_vault;
        let logs = self.final_logs(vault, &[FeeVault::Deposited::SIGNATURE_HASH], after, through).await?;
        logs.iter().filter_map(|log| deposit(log).transpose()).collect()
    }

    /// Everything that the fee ledger hears of L1 in blocks `after + 1 ..= through`, in L1 order: deposits and
    /// requests to withdraw, and the runs that were settled. `through` is final (L-14).
    ///
    /// # Errors
    /// As [`L1Client::deposits`] and [`L1Client::settled_runs`].
    pub async fn ledger_events(&self, after: u64, through: u64) -> Result<Vec<LedgerEvent>, L1Error> {
        let vault = self.inner.config.contracts.fee_vault;
        let topics = [FeeVault::Deposited::SIGNATURE_HASH, FeeVault::WithdrawalRequested::SIGNATURE_HASH];
        let mut events = Vec::new();
        for log in self.final_logs(vault, &topics, after, through).await? {
            let event = match deposit(&log)? {
                Some(deposit) => Some(LedgerEvent::Deposit(deposit)),
                None => withdrawal(&log)?.map(LedgerEvent::Withdrawal),
            };
            events.extend(event.map(|event| (log.position(), event)));
        }
        for (position, settled) in self.settled(after, through).await? {
            events.push((position, LedgerEvent::Settled(settled)));
        }
        events.sort_by_key(|(position, _)| *position);
        Ok(events.into_iter().map(|(_, event)| event).collect())
    }

    /// What `FeeVault` has paid to an account in all, after the newest block, in wei.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn paid(&self, payer: Address) -> Result<U256, L1Error> {
        let vault = self.inner.config.contracts.fee_vault;
        self.inner.rpc.view("paid", vault, &FeeVault::paidCall { payer }).await
    }
}

pub(crate) fn deposit(log: &FinalLog) -> Result<Option<Deposit>, L1Error> {
    let Some(event) = log.event::<FeeVault::Deposited>()? else { return Ok(None) };
    let amount =
        u128::try_from(event.amount).map_err(|_| malformed_log(&"a deposit of more than 128 bits"))?;
    Ok(Some(Deposit { payer: event.payer, amount, l1_block: log.block }))
}

fn withdrawal(log: &FinalLog) -> Result<Option<Withdrawal>, L1Error> {
    let event = log.event::<FeeVault::WithdrawalRequested>()?;
    Ok(event.map(|event| Withdrawal { payer: event.payer, amount: event.amount, l1_block: log.block }))
}
