//! Making transactions.

use alloy_primitives::{Address, B256};
use blindfold_confidential::circuits::{
    RefreshWitness, RegistrationWitness, TransferWitness, WithdrawalWitness,
};
use blindfold_confidential::secret_commitment;
use blindfold_confidential::state::{Account, Claim, Premises};
use blindfold_confidential::transaction::{
    ConfidentialTransaction as T, Deposit, EncodedProof, PROOF_BYTES, Refresh, Register, Rollover, Transfer,
    Withdraw,
};
use blindfold_protocol::Signature65;
use blindfold_rlwe::schemes::balance;
use zeroize::Zeroizing;

use super::proving::{public_key, randomness};
use super::{ConfidentialError, ConfidentialWallet};
use crate::confidential::provers::{Progress, ProvingKeys, Witness};

/// A transaction ready to be sent as an item of kind 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Id of the transaction.
    pub id: B256,
    /// Its bytes, as an item of a bundle.
    pub bytes: Vec<u8>,
}
impl ConfidentialWallet {
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
        let public = self.state.public(self.address()).await?;
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
        let numbers = [sender.nonce, amount, fee].map(u64::to_be_bytes);
        let mut rng = self.randomness(&[b"transfer", to.as_slice(), numbers.as_flattened()]);
        let (ciphertext, encryption) = balance::encrypt(&self.public, &recipients, amount, &mut rng)?;
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
        let numbers = [account.nonce, held].map(u64::to_be_bytes);
        let mut rng = self.randomness(&[b"refresh", numbers.as_flattened()]);
        let (ciphertext, encryption) = balance::encrypt(&self.public, &[&own], held, &mut rng)?;
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

    fn covered(&self, account: &Account, needed: u128) -> Result<(), ConfidentialError> {
        let available = balance::decrypt(&self.secret, account.available.ciphertext())?;
        if u128::from(available) >= needed {
            return Ok(());
        }
        let pending = account.pending.ciphertext().additions() > 0;
        let advice = if pending { ": roll over what is pending first" } else { "" };
        Err(insufficient(available, needed, advice))
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
