//! From a transaction and the state at its turn to the statement that its proof must prove.

use std::sync::Arc;

use blindfold_groth16::Statement;

use super::{Account, Identity, Settings, Sum};
use crate::circuits::{RefreshStatement, RegistrationStatement, TransferStatement, WithdrawalStatement};
use crate::statement::{Ciphertext, FreshCiphertext, Holding};
use crate::transaction::ConfidentialTransaction;
use crate::{Fr, LIMBS, Polynomial, PolynomialError};

/// What of the state a proof depends on. Equal premises make equal statements.
#[derive(Debug, Clone)]
pub enum Premises {
    /// Nothing: a registration's statement stands in the transaction.
    None,
    /// The account that acts.
    Account(Arc<Account>),
    /// The account that pays, and the key of the one that is paid.
    Payment(Arc<Account>, Polynomial),
}

impl PartialEq for Premises {
    /// `pending` is no premise, and the index, which registrations before this one's decide, neither.
    fn eq(&self, other: &Self) -> bool {
        let identity = |one: &Identity, other: &Identity| {
            one.owner == other.owner
                && one.key == other.key
                && one.secret_commitment == other.secret_commitment
        };
        let same = |one: &Arc<Account>, other: &Arc<Account>| {
            Arc::ptr_eq(one, other)
                || identity(&one.identity, &other.identity)
                    && one.nonce == other.nonce
                    && one.available == other.available
        };
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Account(one), Self::Account(other)) => same(one, other),
            (Self::Payment(one, key), Self::Payment(other, other_key)) => {
                same(one, other) && key == other_key
            }
            _ => false,
        }
    }
}

/// A statement to be proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The statement of a registration.
    Registration(Box<RegistrationStatement>),
    /// The statement of a transfer.
    Transfer(Box<TransferStatement>),
    /// The statement of a refresh.
    Refresh(Box<RefreshStatement>),
    /// The statement of a withdrawal.
    Withdrawal(Box<WithdrawalStatement>),
}

impl Claim {
    /// The statement of a transaction; `None` for kinds without a proof, and for premises of another kind. Copies up
    /// to two polynomials.
    ///
    /// # Errors
    /// [`PolynomialError`], for a transaction of another set of parameters.
    pub fn new(
        settings: &Settings,
        transaction: &ConfidentialTransaction,
        premises: &Premises,
    ) -> Result<Option<Self>, PolynomialError> {
        use ConfidentialTransaction as T;
        Ok(Some(match (transaction, premises) {
            (T::Register(register), Premises::None) => Self::Registration(Box::new(RegistrationStatement {
                domain: *settings.domain(),
                account: register.owner,
                a: settings.a().clone(),
                key: settings.polynomial(register.key.polynomial())?,
                secret_commitment: register.secret_commitment,
            })),
            (T::Transfer(transfer), Premises::Payment(sender, receiver_key)) => {
                let keys = [sender.identity.key.clone(), receiver_key.clone(), settings.auditor().clone()];
                Self::Transfer(Box::new(TransferStatement {
                    sender: holding(settings, sender)?,
                    receiver: transfer.receiver,
                    fee: transfer.fee,
                    amount: FreshCiphertext {
                        a: settings.a().clone(),
                        keys,
                        c1: settings.polynomial(transfer.amount.c1())?,
                        c0: [0, 1, 2].map(|recipient| limbs(transfer.amount.c0(recipient))),
                    },
                }))
            }
            (T::Refresh(refresh), Premises::Account(account)) => Self::Refresh(Box::new(RefreshStatement {
                owner: holding(settings, account)?,
                balance: FreshCiphertext {
                    a: settings.a().clone(),
                    keys: [account.identity.key.clone()],
                    c1: settings.polynomial(refresh.balance.c1())?,
                    c0: [limbs(refresh.balance.c0(0))],
                },
            })),
            (T::Withdraw(withdraw), Premises::Account(account)) => {
                Self::Withdrawal(Box::new(WithdrawalStatement {
                    owner: holding(settings, account)?,
                    recipient: withdraw.recipient,
                    amount: withdraw.amount,
                }))
            }
            _ => return Ok(None),
        }))
    }

    /// The polynomials that the statement binds.
    pub(crate) fn polynomials(&self) -> Vec<&Polynomial> {
        match self {
            Self::Registration(statement) => vec![&statement.a, &statement.key],
            Self::Transfer(statement) => {
                statement.amount.polynomials().chain([&statement.sender.available.c1]).collect()
            }
            Self::Refresh(statement) => {
                statement.balance.polynomials().chain([&statement.owner.available.c1]).collect()
            }
            Self::Withdrawal(statement) => vec![&statement.owner.available.c1],
        }
    }

    /// The statement, as the proof system takes it.
    #[must_use]
    pub fn statement(&self) -> &(dyn Statement<Fr> + Sync) {
        match self {
            Self::Registration(statement) => &**statement,
            Self::Transfer(statement) => &**statement,
            Self::Refresh(statement) => &**statement,
            Self::Withdrawal(statement) => &**statement,
        }
    }
}

/// The account as a statement names it.
fn holding(settings: &Settings, account: &Account) -> Result<Holding, PolynomialError> {
    Ok(Holding {
        domain: *settings.domain(),
        account: account.identity.owner,
        nonce: account.nonce,
        secret_commitment: account.identity.secret_commitment,
        available: ciphertext(settings, &account.available)?,
    })
}

fn ciphertext(settings: &Settings, sum: &Sum) -> Result<Ciphertext, PolynomialError> {
    let c1 = settings.polynomial(sum.ciphertext().c1())?;
    Ok(Ciphertext { c1, c0: limbs(Some(sum.ciphertext().c0())) })
}

/// The used coefficients; settings have seen to it that there are eight.
fn limbs(c0: Option<&[u64]>) -> [u64; LIMBS] {
    let mut limbs = [0; LIMBS];
    for (limb, coefficient) in limbs.iter_mut().zip(c0.unwrap_or_default()) {
        *limb = *coefficient;
    }
    limbs
}
