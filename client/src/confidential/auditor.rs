//! The auditor's view.

use std::sync::Arc;

use alloy_primitives::{Address, B256};
use blindfold_confidential::state::Settings;
use blindfold_confidential::transaction::ConfidentialTransaction;
use blindfold_rlwe::rlwe::{PublicPolynomial, SecretKey};
use blindfold_rlwe::schemes::balance;
use serde::Serialize;

use super::verified::VerifiedTransaction;
use super::wallet::ConfidentialError;

/// The auditor's place among the recipients of a transfer.
const AUDITOR: usize = 2;

/// Reads the amounts of transfers.
pub struct Auditor {
    secret: SecretKey,
}

/// A transfer as the auditor sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Audited {
    /// Id of the transaction.
    pub id: B256,
    /// Its place in the order.
    pub sequence: u64,
    /// The account that paid.
    pub sender: Address,
    /// The account that was paid.
    pub receiver: Address,
    /// The amount, in base units.
    pub amount: u64,
    /// The fee, in base units.
    pub fee: u64,
}

impl Auditor {
    /// With the auditor's seed.
    ///
    /// # Errors
    /// [`ConfidentialError::OtherAuditor`] where the deployment has another auditor.
    pub fn new(
        settings: &Settings,
        public: &Arc<PublicPolynomial>,
        seed: &[u8; 32],
    ) -> Result<Self, ConfidentialError> {
        let secret = SecretKey::derive(public, seed);
        let key = settings.polynomial(secret.public_key().polynomial())?;
        if key != *settings.auditor() {
            return Err(ConfidentialError::OtherAuditor);
        }
        Ok(Self { secret })
    }

    /// The transfer in a transaction that was executed on this machine; `None` for other kinds, and for a refused one, whose
    /// proof nobody has looked at. One ring product.
    ///
    /// # Errors
    /// [`ConfidentialError::Balance`], [`ConfidentialError::NoPart`]: neither for a transfer whose proof held.
    pub fn read(&self, verified: &VerifiedTransaction) -> Result<Option<Audited>, ConfidentialError> {
        let ConfidentialTransaction::Transfer(transfer) = verified.transaction() else { return Ok(None) };
        if verified.refusal().is_some() {
            return Ok(None);
        }
        let part = transfer.amount.for_recipient(AUDITOR).ok_or(ConfidentialError::NoPart)?;
        Ok(Some(Audited {
            id: verified.id(),
            sequence: verified.sequence(),
            sender: transfer.sender,
            receiver: transfer.receiver,
            amount: balance::decrypt(&self.secret, &part)?,
            fee: transfer.fee,
        }))
    }
}
