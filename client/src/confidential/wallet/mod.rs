//! Making confidential transactions and reading balances.

mod making;
mod open;
mod proving;
mod reading;

use std::sync::Arc;

use alloy_primitives::{Address, keccak256};
use blindfold_confidential::state::{Account, Settings};
use blindfold_confidential::{PolynomialError, secret_commitment};
use blindfold_protocol::SigningKey;
use blindfold_rlwe::rlwe::{EncryptError, HedgedRng, PublicPolynomial, SecretKey};
use blindfold_rlwe::schemes::balance::BalanceError;
use blindfold_runtime::rng;
use zeroize::Zeroizing;

use super::provers::ProvingError;
use super::verified::{VerifiedError, VerifiedState};

pub use making::Made;
pub use open::OpenPayment;
pub use reading::{Balances, HistoryEntry};

/// What the secret of an account is hashed with.
const SECRET_TAG: &[u8] = b"BLINDFOLD-V1-CONFIDENTIAL-WALLET";

/// What went wrong, and at whom.
#[derive(Debug, thiserror::Error)]
pub enum ConfidentialError {
    /// What was executed on this machine cannot be read, or does not say what was asked for.
    #[error(transparent)]
    Verified(#[from] VerifiedError),
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
    /// The account has less than is needed.
    #[error("{available} base units are available, {needed} are needed{advice}")]
    Insufficient {
        /// What is available, in base units.
        available: u64,
        /// Amount and fee together, in base units.
        needed: u128,
        /// What the owner could do about it.
        advice: &'static str,
    },
    /// An own ciphertext does not decrypt.
    #[error("an own ciphertext does not decrypt: {0}")]
    Balance(#[from] BalanceError),
    /// An encryption could not be made.
    #[error(transparent)]
    Encrypt(#[from] EncryptError),
    /// A polynomial of another set.
    #[error(transparent)]
    Polynomial(#[from] PolynomialError),
    /// A receiver's key that does not decode.
    #[error("the receiver's key does not decode")]
    ReceiverKey,
    /// No proof could be made.
    #[error(transparent)]
    Proving(#[from] ProvingError),
    /// The statement made no claim; a mistake of this program.
    #[error("the transaction makes no statement")]
    NoStatement,
    /// The thread that proves ended before it was done.
    #[error("proving was interrupted")]
    Interrupted,
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
    state: VerifiedState,
}

impl ConfidentialWallet {
    /// A wallet for `key`, over what was executed on this machine. What needs a proof is told where the proving keys are.
    #[must_use]
    pub fn new(state: VerifiedState, public: Arc<PublicPolynomial>, key: SigningKey) -> Self {
        let settings = Arc::clone(state.settings());
        let secret = Arc::new(account_secret(&settings, &public, &key));
        Self { settings, public, key, secret, state }
    }

    /// Randomness for what is made of `message`: it follows from the key, the message and fresh bytes, so that a generator
    /// that repeats itself gives nothing away.
    fn randomness(&self, message: &[&[u8]]) -> HedgedRng {
        HedgedRng::new(&self.key.to_bytes()[..], message, &mut rng())
    }

    /// Address of the account's owner.
    #[must_use]
    pub fn address(&self) -> Address {
        self.key.address()
    }

    /// The state that the wallet reads: verified on this machine.
    #[must_use]
    pub const fn state(&self) -> &VerifiedState {
        &self.state
    }

    /// The settings of the deployment.
    #[must_use]
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    async fn found(&self, owner: Address) -> Result<Option<Arc<Account>>, ConfidentialError> {
        Ok(self.state.account(owner).await?)
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
