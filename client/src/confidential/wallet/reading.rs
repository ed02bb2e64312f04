//! What an account holds, and what happened to it.

use alloy_primitives::{Address, B256};
use blindfold_confidential::transaction::{ConfidentialTransaction as T, Transfer};
use blindfold_rlwe::schemes::balance;
use serde::Serialize;

use super::{ConfidentialError, ConfidentialWallet};
use crate::confidential::VerifiedTransaction;

/// From this many terms in `available` on, a refresh is advised.
const REFRESH_FROM: u16 = 3_584;
/// From this many terms in `pending` on, a rollover is advised.
const ROLLOVER_FROM: u16 = 3_584;
/// What an account holds, decrypted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Balances {
    /// Address of the owner.
    pub owner: Address,
    /// What can be spent, in base units.
    pub available: u64,
    /// What came since the last rollover, in base units.
    pub pending: u64,
    /// The public balance, in base units.
    pub public: u64,
    /// How many terms `available` has.
    pub available_terms: u16,
    /// How many terms `pending` has.
    pub pending_terms: u16,
    /// The nonce of the account's next transaction.
    pub nonce: u64,
    /// What the owner should do soon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<&'static str>,
}

/// A transaction of the owner's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// Id of the transaction.
    pub id: B256,
    /// Its place in the order.
    pub sequence: u64,
    /// Its kind, by name.
    pub kind: &'static str,
    /// The other party, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with: Option<Address>,
    /// Base units that it brought to the confidential account; negative for what it took, the fee included.
    pub change: i128,
}

impl ConfidentialWallet {
    /// What the account holds. Two ring products.
    ///
    /// # Errors
    /// [`ConfidentialError`].
    pub async fn balances(&self) -> Result<Balances, ConfidentialError> {
        let account = self.account().await?;
        let public = self.state.public(self.address()).await?;
        let (available, pending) = (account.available.ciphertext(), account.pending.ciphertext());
        let advice = match (available.additions(), pending.additions()) {
            (terms, _) if terms >= REFRESH_FROM => {
                Some("refresh: the available balance is nearly full of terms")
            }
            (_, terms) if terms >= ROLLOVER_FROM => {
                Some("rollover: the pending balance is nearly full of terms")
            }
            _ => None,
        };
        Ok(Balances {
            owner: self.address(),
            available: balance::decrypt(&self.secret, available)?,
            pending: balance::decrypt(&self.secret, pending)?,
            public: public.balance,
            available_terms: available.additions(),
            pending_terms: pending.additions(),
            nonce: account.nonce,
            advice,
        })
    }

    /// Everything that was applied to the account, oldest first. One ring product for each transfer.
    ///
    /// # Errors
    /// [`ConfidentialError`].
    pub async fn history(&self) -> Result<Vec<HistoryEntry>, ConfidentialError> {
        let applied = self.state.transactions_of(self.address()).await?;
        applied.iter().map(|verified| self.entry(verified)).collect()
    }

    /// The part of an applied transaction that concerns this account.
    fn entry(&self, verified: &VerifiedTransaction) -> Result<HistoryEntry, ConfidentialError> {
        let transaction = verified.transaction();
        let us = self.address();
        let amount = |transfer: &Transfer, place: usize| -> Result<i128, ConfidentialError> {
            let part = transfer.amount.for_recipient(place).ok_or(ConfidentialError::NoPart)?;
            Ok(balance::decrypt(&self.secret, &part)?.into())
        };
        let (with, change) = match transaction {
            T::Transfer(transfer) if transfer.sender == us => {
                (Some(transfer.receiver), -amount(transfer, 0)? - i128::from(transfer.fee))
            }
            T::Transfer(transfer) => (Some(transfer.sender), amount(transfer, 1)?),
            T::Deposit(deposit) if deposit.account == us => {
                (Some(deposit.from).filter(|from| *from != us), deposit.amount.into())
            }
            T::Deposit(deposit) => (Some(deposit.account), 0),
            T::Withdraw(withdraw) if withdraw.account == us => {
                (Some(withdraw.recipient).filter(|recipient| *recipient != us), -i128::from(withdraw.amount))
            }
            T::Withdraw(withdraw) => (Some(withdraw.account), 0),
            T::Register(_) | T::Rollover(_) | T::Refresh(_) => (None, 0),
        };
        let (id, sequence, kind) = (verified.id(), verified.sequence(), transaction.kind_name());
        Ok(HistoryEntry { id, sequence, kind, with, change })
    }
}
