//! What each kind of transaction does.

use std::sync::Arc;

use alloy_primitives::Address;
use blindfold_rlwe::rlwe::{Ciphertext, MultiCiphertext, SumError};
use blindfold_rlwe::schemes::balance;

use super::{Account, Identity, Ledger, Premises, PublicAccount, Refusal, Storage, Sum};
use crate::transaction::{ConfidentialTransaction, Deposit, Refresh, Register, Rollover, Transfer, Withdraw};

/// Recipients of a transfer's ciphertext, by place.
const SENDER: usize = 0;
const RECEIVER: usize = 1;

/// Why a judgement ended early.
#[derive(Debug)]
pub(crate) enum Stop<E> {
    /// The transaction is refused and changes nothing.
    Refused(Refusal),
    /// The state could not be read: nothing is known about the transaction.
    Storage(E),
}

impl<E> From<Refusal> for Stop<E> {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// What a transaction makes of the state, not yet in place.
#[derive(Debug, Clone)]
pub(crate) struct Effects {
    /// Accounts, new or changed, each once.
    pub(crate) accounts: Vec<Arc<Account>>,
    /// Public accounts, new or changed, each once.
    pub(crate) public: Vec<(Address, PublicAccount)>,
    /// What came into the accounts, in base units.
    pub(crate) paid_in: u64,
    /// What left them.
    pub(crate) paid_out: u64,
}

/// A transaction that the state allows if its proof does.
#[derive(Debug, Clone)]
pub(crate) struct Judged {
    /// What the proof, if the kind has one, depends on.
    pub(crate) premises: Premises,
    /// What happens.
    pub(crate) effects: Effects,
}

/// The public account that got a payment out of the accounts.
type Payment = Option<(Address, PublicAccount)>;

type Judgement<S> = Result<Judged, Stop<<S as Storage>::Error>>;

/// Judges a transaction whose signature was checked, changing nothing. At most three sums of ciphertexts.
pub(crate) fn judge<S: Storage>(
    ledger: &mut Ledger<'_, S>,
    transaction: &ConfidentialTransaction,
) -> Judgement<S> {
    match transaction {
        ConfidentialTransaction::Register(register) => judge_register(ledger, register),
        ConfidentialTransaction::Deposit(deposit) => judge_deposit(ledger, deposit),
        ConfidentialTransaction::Transfer(transfer) => judge_transfer(ledger, transfer),
        ConfidentialTransaction::Rollover(rollover) => judge_rollover(ledger, rollover),
        ConfidentialTransaction::Refresh(refresh) => judge_refresh(ledger, refresh),
        ConfidentialTransaction::Withdraw(withdraw) => judge_withdraw(ledger, withdraw),
    }
}

fn judge_register<S: Storage>(ledger: &mut Ledger<'_, S>, register: &Register) -> Judgement<S> {
    if ledger.is_registered(&register.owner).map_err(Stop::Storage)? {
        return Err(Refusal::AlreadyRegistered.into());
    }
    // The last index stays free, so that the count fits its type.
    let index = ledger.head.accounts;
    if index == u32::MAX {
        return Err(Refusal::TooManyAccounts.into());
    }
    let settings = ledger.settings;
    let key = settings.polynomial(register.key.polynomial()).map_err(|_| Refusal::Undecodable)?;
    let identity =
        Identity { index, owner: register.owner, key, secret_commitment: register.secret_commitment };
    let account = Account::new(settings, identity);
    Ok(Judged { premises: Premises::None, effects: effects([account], []) })
}

fn judge_deposit<S: Storage>(ledger: &mut Ledger<'_, S>, deposit: &Deposit) -> Judgement<S> {
    // Anybody can sign a deposit: the account, which is large, is read for one that can be paid.
    if !ledger.is_registered(&deposit.account).map_err(Stop::Storage)? {
        return Err(Refusal::UnknownReceiver.into());
    }
    let payer = ledger.public_account(&deposit.from).map_err(Stop::Storage)?;
    check_nonce(payer.map_or(0, |payer| payer.nonce), deposit.nonce)?;
    if deposit.amount < ledger.settings.minimum_fee().max(1) {
        return Err(Refusal::AmountTooLow.into());
    }
    let payer = payer.ok_or(Refusal::InsufficientFunds)?;
    let left = payer.balance.checked_sub(deposit.amount).ok_or(Refusal::InsufficientFunds)?;
    let account = receiver(ledger, &deposit.account)?;
    let pending = credited(&account, |sum| sum.add_public(&balance::limbs(deposit.amount)))?;
    ledger.head.confidential.checked_add(deposit.amount).ok_or(Refusal::SupplyOverflow)?;
    let payer = PublicAccount { balance: left, nonce: payer.nonce + 1, ..payer };
    let account = Account { pending, ..Account::clone(&account) };
    let effects = Effects { paid_in: deposit.amount, ..effects([account], [(deposit.from, payer)]) };
    Ok(Judged { premises: Premises::None, effects })
}

fn judge_transfer<S: Storage>(ledger: &mut Ledger<'_, S>, transfer: &Transfer) -> Judgement<S> {
    if transfer.sender == transfer.receiver {
        return Err(Refusal::SameAccount.into());
    }
    let sender = actor(ledger, &transfer.sender, transfer.nonce)?;
    let receiver = receiver(ledger, &transfer.receiver)?;
    if transfer.fee < ledger.settings.minimum_fee() {
        return Err(Refusal::FeeTooLow.into());
    }
    let copy = |recipient| copy(&transfer.amount, recipient);
    let available = changed(&sender.available, |sum| {
        sum.sub(&copy(SENDER)?)?;
        sum.sub_public(&balance::limbs(transfer.fee))
    })
    .ok_or(Refusal::AvailableFull)?;
    let pending = credited(&receiver, |sum| sum.add(&copy(RECEIVER)?))?;
    let operator = pay(ledger, ledger.settings.operator(), transfer.fee)?;
    let premises = Premises::Payment(Arc::clone(&sender), receiver.identity.key.clone());
    let accounts = [
        Account { nonce: sender.nonce + 1, available, ..Account::clone(&sender) },
        Account { pending, ..Account::clone(&receiver) },
    ];
    let effects = Effects { paid_out: transfer.fee, ..effects(accounts, operator) };
    Ok(Judged { premises, effects })
}

fn judge_rollover<S: Storage>(ledger: &mut Ledger<'_, S>, rollover: &Rollover) -> Judgement<S> {
    let account = actor(ledger, &rollover.account, rollover.nonce)?;
    // A rollover of nothing makes nothing: for its 95 bytes it would take 32 KB.
    let available = match account.pending.ciphertext().additions() {
        0 => Arc::clone(&account.available),
        _ => changed(&account.available, |sum| sum.add(account.pending.ciphertext()))
            .ok_or(Refusal::RolloverFull)?,
    };
    let pending = Arc::clone(ledger.settings.zero());
    let account = Account { nonce: account.nonce + 1, available, pending, ..Account::clone(&account) };
    Ok(Judged { premises: Premises::None, effects: effects([account], []) })
}

fn judge_refresh<S: Storage>(ledger: &mut Ledger<'_, S>, refresh: &Refresh) -> Judgement<S> {
    let account = actor(ledger, &refresh.account, refresh.nonce)?;
    let available = copy(&refresh.balance, SENDER).map_err(|_| Refusal::Undecodable)?;
    let premises = Premises::Account(Arc::clone(&account));
    let available = Arc::new(Sum::new(available));
    let account = Account { nonce: account.nonce + 1, available, ..Account::clone(&account) };
    Ok(Judged { premises, effects: effects([account], []) })
}

fn judge_withdraw<S: Storage>(ledger: &mut Ledger<'_, S>, withdraw: &Withdraw) -> Judgement<S> {
    let account = actor(ledger, &withdraw.account, withdraw.nonce)?;
    if withdraw.amount == 0 {
        return Err(Refusal::AmountTooLow.into());
    }
    let available = changed(&account.available, |sum| sum.sub_public(&balance::limbs(withdraw.amount)))
        .ok_or(Refusal::AvailableFull)?;
    let recipient = pay(ledger, withdraw.recipient, withdraw.amount)?;
    let premises = Premises::Account(Arc::clone(&account));
    let account = Account { nonce: account.nonce + 1, available, ..Account::clone(&account) };
    let effects = Effects { paid_out: withdraw.amount, ..effects([account], recipient) };
    Ok(Judged { premises, effects })
}

/// The account that a transaction speaks for, at its nonce.
fn actor<S: Storage>(
    ledger: &mut Ledger<'_, S>,
    owner: &Address,
    nonce: u64,
) -> Result<Arc<Account>, Stop<S::Error>> {
    let account = ledger.account(owner).map_err(Stop::Storage)?.ok_or(Refusal::UnknownAccount)?;
    check_nonce(account.nonce, nonce)?;
    Ok(account)
}

fn receiver<S: Storage>(ledger: &mut Ledger<'_, S>, owner: &Address) -> Result<Arc<Account>, Stop<S::Error>> {
    Ok(ledger.account(owner).map_err(Stop::Storage)?.ok_or(Refusal::UnknownReceiver)?)
}

fn check_nonce(expected: u64, found: u64) -> Result<(), Refusal> {
    match found.cmp(&expected) {
        std::cmp::Ordering::Less => Err(Refusal::NonceTooLow),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(Refusal::NonceTooHigh),
    }
}

/// What recipient `index` of a ciphertext adds; there are as many as the decoder asked for.
fn copy(ciphertext: &MultiCiphertext, index: usize) -> Result<Ciphertext, SumError> {
    ciphertext.for_recipient(index).ok_or(SumError::Message)
}

/// A sum after a change; `None` where it would have too many terms.
fn changed(sum: &Sum, change: impl FnOnce(&mut Ciphertext) -> Result<(), SumError>) -> Option<Arc<Sum>> {
    let mut ciphertext = sum.ciphertext().clone();
    change(&mut ciphertext).ok()?;
    Some(Arc::new(Sum::new(ciphertext)))
}

/// `pending` after a credit. It must leave room for the one term of a refreshed `available`: else nothing could ever
/// empty it.
fn credited(
    account: &Account,
    change: impl FnOnce(&mut Ciphertext) -> Result<(), SumError>,
) -> Result<Arc<Sum>, Refusal> {
    let limit = account.pending.ciphertext().parameters().literal().max_additions - 1;
    changed(&account.pending, change)
        .filter(|sum| sum.ciphertext().additions() <= limit)
        .ok_or(Refusal::PendingFull)
}

/// The public account of `address` after `amount` has left the accounts for it. Nothing is touched for an amount of 0.
fn pay<S: Storage>(
    ledger: &mut Ledger<'_, S>,
    address: Address,
    amount: u64,
) -> Result<Payment, Stop<S::Error>> {
    if amount == 0 {
        return Ok(None);
    }
    ledger.head.confidential.checked_sub(amount).ok_or(Refusal::ConfidentialSupply)?;
    let account = match ledger.public_account(&address).map_err(Stop::Storage)? {
        Some(account) => account,
        // The last index stays free, so that the count fits its type.
        None if ledger.head.public_accounts == u32::MAX => return Err(Refusal::TooManyAccounts.into()),
        None => PublicAccount { index: ledger.head.public_accounts, balance: 0, nonce: 0 },
    };
    let balance = account.balance.checked_add(amount).ok_or(Refusal::SupplyOverflow)?;
    Ok(Some((address, PublicAccount { balance, ..account })))
}

fn effects(
    accounts: impl IntoIterator<Item = Account>,
    public: impl IntoIterator<Item = (Address, PublicAccount)>,
) -> Effects {
    Effects {
        accounts: accounts.into_iter().map(Arc::new).collect(),
        public: public.into_iter().collect(),
        paid_in: 0,
        paid_out: 0,
    }
}
