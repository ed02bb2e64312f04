//! Making confidential transactions and reading balances.

mod making;
mod proving;
mod reading;

use std::sync::Arc;

use alloy_primitives::{Address, keccak256};
use blindfold_confidential::state::{Account, Settings};
use blindfold_confidential::transaction::TransactionFault;
use blindfold_confidential::{PolynomialError, secret_commitment};
use blindfold_protocol::SigningKey;
use blindfold_rlwe::rlwe::{EncryptError, PublicPolynomial, SecretKey};
use blindfold_rlwe::schemes::balance::BalanceError;
use blindfold_rpc::confidential::ConfidentialApiClient;
use blindfold_rpc::{HttpClient, ReceivedError};
use zeroize::Zeroizing;

use super::account::{AccountClaimFault, checked};
use super::provers::ProvingError;

pub use making::Made;
pub use reading::{Balances, HistoryEntry};

/// What the secret of an account is hashed with.
const SECRET_TAG: &[u8] = b"BLINDFOLD-V1-CONFIDENTIAL-WALLET";

/// What went wrong, and at whom.
#[derive(Debug, thiserror::Error)]
pub enum ConfidentialError {
    /// The coprocessor refused a call, or did not answer.
    #[error("the coprocessor: {0}")]
    Rpc(ReceivedError),
    /// The coprocessor's account does not hold together.
    #[error(transparent)]
    Account(#[from] AccountClaimFault),
    /// The coprocessor shows a transaction that is none.
    #[error("the coprocessor shows bytes that are no transaction: {0}")]
    Claim(#[from] TransactionFault),
    /// A transfer without the part asked for.
    #[error("the transfer lacks a recipient's part")]
    NoPart,
    /// The owner has no account.
    #[error("{0} has no confidential account: register first")]
    NotRegistered(Address),
    /// The owner has one already.
    #[error("{0} has a confidential account already")]
    Registered(Address),
    /// The registered account is not that of this wallet's key for this deployment.
    #[error("the account of {0} was registered with another secret: this key cannot spend from it")]
    OtherSecret(Address),
    /// The auditor's key is another one.
    #[error("the key is not that of this deployment's auditor")]
    OtherAuditor,
    /// Not enough.
    #[error("{available} base units are available, {needed} are needed{advice}")]
    Insufficient {
        /// What there is.
        available: u64,
        /// Amount and fee.
        needed: u128,
        /// What would help.
        advice: &'static str,
    },
    /// An own ciphertext does not decrypt.
    #[error("an own ciphertext does not decrypt: {0}")]
    Balance(#[from] BalanceError),
    /// An encryption failed.
    #[error(transparent)]
    Encrypt(#[from] EncryptError),
    /// A polynomial of another set.
    #[error(transparent)]
    Polynomial(#[from] PolynomialError),
    /// A receiver's key that does not decode.
    #[error("the receiver's key does not decode")]
    ReceiverKey,
    /// There is no proof.
    #[error(transparent)]
    Proving(#[from] ProvingError),
    /// The statement made no claim; a mistake of this program.
    #[error("the transaction makes no statement")]
    NoStatement,
    /// The proving thread ended.
    #[error("proving was interrupted")]
    Interrupted,
}

impl From<blindfold_rpc::jsonrpsee::core::ClientError> for ConfidentialError {
    fn from(error: blindfold_rpc::jsonrpsee::core::ClientError) -> Self {
        Self::Rpc(error.into())
    }
}

/// The secret of `key`'s account: a function of key and deployment, so that the key is all there is to keep.
///
/// One ring product, and N values from a hash.
#[must_use]
pub fn account_secret(settings: &Settings, public: &Arc<PublicPolynomial>, key: &SigningKey) -> SecretKey {
    let domain = settings.domain();
    let scalar = key.to_bytes();
    let mut message = Zeroizing::new(Vec::with_capacity(SECRET_TAG.len() + 32 + 8 + 8 + 20));
    message.extend_from_slice(SECRET_TAG);
    message.extend_from_slice(scalar.as_slice());
    message.extend_from_slice(&domain.l1_chain_id.to_be_bytes());
    message.extend_from_slice(&domain.chain_id.to_be_bytes());
    message.extend_from_slice(domain.contract.as_slice());
    let seed = Zeroizing::new(keccak256(message.as_slice()).0);
    SecretKey::derive(public, &seed)
}

/// A wallet of one key in one deployment.
pub struct ConfidentialWallet {
    settings: Arc<Settings>,
    public: Arc<PublicPolynomial>,
    key: SigningKey,
    secret: Arc<SecretKey>,
    coprocessor: HttpClient,
}

impl ConfidentialWallet {
    /// A wallet for `key`. What needs a proof is told where the proving keys are.
    #[must_use]
    pub fn new(
        settings: Arc<Settings>,
        public: Arc<PublicPolynomial>,
        key: SigningKey,
        coprocessor: HttpClient,
    ) -> Self {
        let secret = Arc::new(account_secret(&settings, &public, &key));
        Self { settings, public, key, secret, coprocessor }
    }

    /// The account's owner.
    #[must_use]
    pub fn address(&self) -> Address {
        self.key.address()
    }

    /// The deployment's settings.
    #[must_use]
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    async fn found(&self, owner: Address) -> Result<Option<Arc<Account>>, ConfidentialError> {
        let claim = self.coprocessor.get_account(owner, None).await?;
        Ok(claim.map(|claim| checked(&self.settings, &claim)).transpose()?)
    }

    async fn account_of(&self, owner: Address) -> Result<Arc<Account>, ConfidentialError> {
        self.found(owner).await?.ok_or(ConfidentialError::NotRegistered(owner))
    }

    /// The own account, which must be that of this wallet's secret.
    async fn account(&self) -> Result<Arc<Account>, ConfidentialError> {
        let account = self.account_of(self.address()).await?;
        if account.identity.secret_commitment != secret_commitment(self.secret.coefficients()) {
            return Err(ConfidentialError::OtherSecret(self.address()));
        }
        Ok(account)
    }
}
