//! Making confidential transactions and reading balances.

use std::sync::Arc;

use alloy_primitives::{Address, B256, keccak256};
use blindfold_confidential::circuits::{
    Randomness, RefreshWitness, RegistrationWitness, TransferWitness, WithdrawalWitness,
};
use blindfold_confidential::state::{Account, Claim, Premises, Settings};
use blindfold_confidential::transaction::{
    ConfidentialTransaction as T, Deposit, EncodedProof, PROOF_BYTES, Refresh, Register, Rollover,
    TransactionFault, Transfer, Withdraw,
};
use blindfold_confidential::{LIMBS, PolynomialError, secret_commitment};
use blindfold_protocol::{Signature65, SigningKey};
use blindfold_rlwe::rlwe::{EncryptError, EncryptionWitness, PublicKey, PublicPolynomial, SecretKey};
use blindfold_rlwe::schemes::balance::{self, BalanceError};
use blindfold_rpc::confidential::{ConfidentialApiClient, ConfidentialTransactionInfo};
use blindfold_rpc::{HttpClient, ReceivedError};
use serde::Serialize;
use zeroize::Zeroizing;

use super::account::{AccountClaimFault, checked};
use super::provers::{Progress, ProvingError, ProvingKeys, Witness};

/// What the secret of an account is hashed with.
const SECRET_TAG: &[u8] = b"BLINDFOLD-V1-CONFIDENTIAL-WALLET";
/// From this many terms in `available` on, a refresh is advised.
const REFRESH_FROM: u16 = 3_584;
/// From this many terms in `pending` on, a rollover is advised.
const ROLLOVER_FROM: u16 = 3_584;
/// Transactions asked for at a time.
const PAGE: u64 = 64;

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

/// A transaction ready to be sent as an item of kind 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its id.
    pub id: B256,
    /// The item's bytes.
    pub bytes: Vec<u8>,
}

/// What an account holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Balances {
    /// Whose it is.
    pub owner: Address,
    /// What can be spent, in base units.
    pub available: u64,
    /// What came since the last rollover, in base units.
    pub pending: u64,
    /// The public balance, in base units.
    pub public: u64,
    /// Terms in `available`.
    pub available_terms: u16,
    /// Terms in `pending`.
    pub pending_terms: u16,
    /// The account's nonce.
    pub nonce: u64,
    /// What the owner should do soon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<&'static str>,
}

/// A transaction of the owner's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// The transaction.
    pub id: B256,
    /// Its place in the order.
    pub sequence: u64,
    /// Its kind.
    pub kind: &'static str,
    /// The other party, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with: Option<Address>,
    /// Base units that it brought to the confidential account; negative for what it took, the fee included.
    pub change: i128,
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

    /// Opens the account.
    ///
    /// # Errors
    /// [`ConfidentialError`].
    pub async fn register(&self, keys: &ProvingKeys, progress: Progress) -> Result<Made, ConfidentialError> {
        if self.found(self.address()).await?.is_some() {
            return Err(ConfidentialError::Registered(self.address()));
        }
        let mut register = Register {
            owner: self.address(),
            key: self.secret.public_key(),
            secret_commitment: secret_commitment(self.secret.coefficients()),
            proof: no_proof(),
            signature: Signature65([0; 65]),
        };
        let Claim::Registration(statement) =
            self.claim(&T::Register(Box::new(register.clone())), &Premises::None)?
        else {
            return Err(ConfidentialError::NoStatement);
        };
        let witness = RegistrationWitness {
            statement: *statement,
            secret: self.coefficients(),
            error: Zeroizing::new(self.secret.error().to_vec()),
        };
        register.proof = self.proved(keys, Witness::Registration(Box::new(witness)), progress).await?;
        Ok(self.made(T::Register(Box::new(register))))
    }

    /// Moves a public amount into an account.
    ///
    /// # Errors
    /// [`ConfidentialError`].
    pub async fn deposit(&self, to: Address, amount: u64) -> Result<Made, ConfidentialError> {
        self.account_of(to).await?;
        let public = self.coprocessor.get_public_balance(self.address()).await?;
        if public.balance < amount {
            let advice = " in the public ledger";
            return Err(insufficient(public.balance, amount.into(), advice));
        }
        let deposit = Deposit {
            from: self.address(),
            account: to,
            amount,
            nonce: public.nonce,
            signature: Signature65([0; 65]),
        };
        Ok(self.made(T::Deposit(deposit)))
    }

    /// Pays a hidden amount to another account. The deployment's least fee where none is named.
    ///
    /// # Errors
    /// [`ConfidentialError`].
    pub async fn send(
        &self,
        to: Address,
        amount: u64,
        fee: Option<u64>,
        keys: &ProvingKeys,
        progress: Progress,
    ) -> Result<Made, ConfidentialError> {
        let (sender, receiver) = (self.account().await?, self.account_of(to).await?);
        let fee = fee.unwrap_or(self.settings.minimum_fee());
        self.covered(&sender, u128::from(amount) + u128::from(fee))?;
        let auditor = public_key(&self.settings, self.settings.auditor())?;
        let receiver_key = public_key(&self.settings, &receiver.identity.key)?;
        let recipients = [&self.secret.public_key(), &receiver_key, &auditor];
        let (ciphertext, encryption) = balance::encrypt(&self.public, &recipients, amount, &mut rand::rng())?;
        let mut transfer = Transfer {
            sender: self.address(),
            receiver: to,
            nonce: sender.nonce,
            fee,
            amount: ciphertext,
            proof: no_proof(),
        };
        let premises = Premises::Payment(sender, receiver.identity.key.clone());
        let Claim::Transfer(statement) = self.claim(&T::Transfer(Box::new(transfer.clone())), &premises)?
        else {
            return Err(ConfidentialError::NoStatement);
        };
        let witness = TransferWitness {
            statement: *statement,
            secret: self.coefficients(),
            amount: Zeroizing::new(amount),
            randomness: randomness(&encryption).ok_or(ConfidentialError::NoPart)?,
        };
        transfer.proof = self.proved(keys, Witness::Transfer(Box::new(witness)), progress).await?;
        Ok(self.made(T::Transfer(Box::new(transfer))))
    }

    /// Makes what came since the last rollover available.
    ///
    /// # Errors
    /// [`ConfidentialError`].
    pub async fn rollover(&self) -> Result<Made, ConfidentialError> {
        let account = self.account().await?;
        let rollover =
            Rollover { account: self.address(), nonce: account.nonce, signature: Signature65([0; 65]) };
        Ok(self.made(T::Rollover(rollover)))
    }

    /// Encrypts the available balance anew: its counter starts again.
    ///
    /// # Errors
    /// [`ConfidentialError`].
    pub async fn refresh(&self, keys: &ProvingKeys, progress: Progress) -> Result<Made, ConfidentialError> {
        let account = self.account().await?;
        let held = balance::decrypt(&self.secret, account.available.ciphertext())?;
        let own = self.secret.public_key();
        let (ciphertext, encryption) = balance::encrypt(&self.public, &[&own], held, &mut rand::rng())?;
        let mut refresh =
            Refresh { account: self.address(), nonce: account.nonce, balance: ciphertext, proof: no_proof() };
        let premises = Premises::Account(account);
        let Claim::Refresh(statement) = self.claim(&T::Refresh(Box::new(refresh.clone())), &premises)? else {
            return Err(ConfidentialError::NoStatement);
        };
        let witness = RefreshWitness {
            statement: *statement,
            secret: self.coefficients(),
            randomness: randomness(&encryption).ok_or(ConfidentialError::NoPart)?,
        };
        refresh.proof = self.proved(keys, Witness::Refresh(Box::new(witness)), progress).await?;
        Ok(self.made(T::Refresh(Box::new(refresh))))
    }

    /// Pays a public amount from the available balance to an address in the public ledger.
    ///
    /// # Errors
    /// [`ConfidentialError`].
    pub async fn withdraw(
        &self,
        recipient: Address,
        amount: u64,
        keys: &ProvingKeys,
        progress: Progress,
    ) -> Result<Made, ConfidentialError> {
        let account = self.account().await?;
        self.covered(&account, amount.into())?;
        let mut withdraw =
            Withdraw { account: self.address(), nonce: account.nonce, amount, recipient, proof: no_proof() };
        let premises = Premises::Account(account);
        let Claim::Withdrawal(statement) = self.claim(&T::Withdraw(Box::new(withdraw.clone())), &premises)?
        else {
            return Err(ConfidentialError::NoStatement);
        };
        let witness = WithdrawalWitness { statement: *statement, secret: self.coefficients() };
        withdraw.proof = self.proved(keys, Witness::Withdrawal(Box::new(witness)), progress).await?;
        Ok(self.made(T::Withdraw(Box::new(withdraw))))
    }

    /// What the account holds. Two ring products.
    ///
    /// # Errors
    /// [`ConfidentialError`].
    pub async fn balances(&self) -> Result<Balances, ConfidentialError> {
        let account = self.account().await?;
        let public = self.coprocessor.get_public_balance(self.address()).await?;
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
        let mut entries = Vec::new();
        let mut from = 0;
        loop {
            let page = self.coprocessor.get_transfers(self.address(), from, Some(PAGE)).await?;
            let Some(last) = page.last() else { return Ok(entries) };
            from = last.sequence + 1;
            for info in &page {
                entries.extend(self.entry(info)?);
            }
        }
    }

    /// The part of a transaction that concerns this account; `None` where nothing does.
    fn entry(&self, info: &ConfidentialTransactionInfo) -> Result<Option<HistoryEntry>, ConfidentialError> {
        if !info.applied {
            return Ok(None);
        }
        let transaction = T::decode(self.settings.parameters(), &info.transaction)?;
        let us = self.address();
        let amount = |transfer: &Transfer, place: usize| -> Result<i128, ConfidentialError> {
            let part = transfer.amount.for_recipient(place).ok_or(ConfidentialError::NoPart)?;
            Ok(balance::decrypt(&self.secret, &part)?.into())
        };
        let (with, change) = match &transaction {
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
        let (id, sequence, kind) = (info.id, info.sequence, transaction.kind_name());
        Ok(Some(HistoryEntry { id, sequence, kind, with, change }))
    }

    /// Proves on a thread of its own.
    async fn proved(
        &self,
        keys: &ProvingKeys,
        witness: Witness,
        mut progress: Progress,
    ) -> Result<EncodedProof, ConfidentialError> {
        let (keys, ring) = (keys.clone(), *self.settings.ring());
        let proved = tokio::task::spawn_blocking(move || keys.prove(ring, &witness, &mut *progress));
        Ok(proved.await.map_err(|_| ConfidentialError::Interrupted)??)
    }

    fn covered(&self, account: &Account, needed: u128) -> Result<(), ConfidentialError> {
        let available = balance::decrypt(&self.secret, account.available.ciphertext())?;
        if u128::from(available) >= needed {
            return Ok(());
        }
        let pending = account.pending.ciphertext().additions() > 0;
        let advice = if pending { ": roll over what is pending first" } else { "" };
        Err(insufficient(available, needed, advice))
    }

    fn coefficients(&self) -> Zeroizing<Vec<i8>> {
        Zeroizing::new(self.secret.coefficients().to_vec())
    }

    fn claim(&self, transaction: &T, premises: &Premises) -> Result<Claim, ConfidentialError> {
        Claim::new(&self.settings, transaction, premises)?.ok_or(ConfidentialError::NoStatement)
    }

    fn made(&self, mut transaction: T) -> Made {
        transaction.sign(self.settings.domain(), &self.key);
        Made { id: transaction.id(), bytes: transaction.encode() }
    }
}

fn insufficient(available: u64, needed: u128, advice: &'static str) -> ConfidentialError {
    ConfidentialError::Insufficient { available, needed, advice }
}

const fn no_proof() -> EncodedProof {
    EncodedProof([0; PROOF_BYTES])
}

/// A key of the state as the encryption takes it.
fn public_key(
    settings: &Settings,
    key: &blindfold_confidential::Polynomial,
) -> Result<PublicKey, ConfidentialError> {
    let mut packed = Vec::new();
    blindfold_rlwe::ring::pack(key.coefficients(), settings.ring().modulus_bits(), &mut packed);
    PublicKey::decode(settings.parameters(), &packed).map_err(|_| ConfidentialError::ReceiverKey)
}

fn randomness<const K: usize>(witness: &EncryptionWitness) -> Option<Randomness<K>> {
    let e0: Option<Vec<Zeroizing<[i8; LIMBS]>>> =
        witness.e0().map(|e0| Some(Zeroizing::new(<[i8; LIMBS]>::try_from(e0).ok()?))).collect();
    Some(Randomness {
        u: Zeroizing::new(witness.u().to_vec()),
        e1: Zeroizing::new(witness.e1().to_vec()),
        e0: e0?.try_into().ok()?,
    })
}
