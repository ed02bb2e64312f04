//! Payments that were refused and can still be applied.
//!
//! A refused transaction changes nothing, its nonce neither: whoever has its bytes may send them again, and they are
//! applied once the reason has gone. A transfer that failed because the receiver's `pending` was full is a cheque in his
//! hands, until the account's nonce moves on.

use alloy_primitives::{Address, B256};
use blindfold_confidential::executor::{Check, Proofs};
use blindfold_confidential::state::{Claim, Premises};
use blindfold_confidential::transaction::ConfidentialTransaction as T;
use serde::Serialize;

use super::{ConfidentialError, ConfidentialWallet};

/// A refused transaction of the owner that can still be applied. [Rolling over](ConfidentialWallet::rollover), or anything
/// else that uses its nonce, ends that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenPayment {
    /// Id of the transaction.
    pub id: B256,
    /// Its place in the order, where it was refused.
    pub sequence: u64,
    /// Its kind, by name.
    pub kind: &'static str,
    /// Who would be paid, where somebody would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Address>,
    /// Why it was refused, in one stable word.
    pub reason: String,
    /// The nonce that it would use.
    pub nonce: u64,
}

impl ConfidentialWallet {
    /// The refused transactions that this account's owner made and that could be applied now, or as soon as the reason for
    /// which they were refused has gone: their nonce is the account's next, and their proof holds for what the account has
    /// available. One proof is verified for each refused transaction that names the account and its nonce.
    ///
    /// What was sent and stands in no executed batch yet can be applied likewise; it is not here.
    ///
    /// # Errors
    /// [`ConfidentialError`].
    pub async fn open_payments(&self, proofs: &dyn Proofs) -> Result<Vec<OpenPayment>, ConfidentialError> {
        let account = self.account().await?;
        let mut open: Vec<OpenPayment> = Vec::new();
        for refused in self.state.refused_for(self.address()).await? {
            let transaction = refused.transaction();
            let to = match transaction {
                T::Transfer(transfer) => Some(transfer.receiver),
                T::Withdraw(withdraw) => Some(withdraw.recipient),
                _ => None,
            };
            let next = transaction.turn() == Some((self.address(), Some(account.nonce)));
            if !next || open.iter().any(|known| known.id == refused.id()) {
                continue;
            }
            let premises = match transaction {
                T::Transfer(transfer) => match self.found(transfer.receiver).await? {
                    Some(receiver) => Premises::Payment(account.clone(), receiver.identity.key.clone()),
                    // No statement can be made before the receiver registers with some key.
                    None => continue,
                },
                _ => Premises::Account(account.clone()),
            };
            let Ok(Some(claim)) = Claim::new(&self.settings, transaction, &premises) else { continue };
            let Some(proof) = transaction.proof() else { continue };
            if proofs.verify(&[Check { claim: &claim, proof }]) == [true] {
                let (kind, reason) =
                    (transaction.kind_name(), refused.refusal().unwrap_or_default().to_owned());
                let (id, sequence, nonce) = (refused.id(), refused.sequence(), account.nonce);
                open.push(OpenPayment { id, sequence, kind, to, reason, nonce });
            }
        }
        Ok(open)
    }
}
