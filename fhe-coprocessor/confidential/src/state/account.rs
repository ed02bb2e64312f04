//! Accounts with encrypted balances.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use alloy_primitives::{Address, B256, Keccak256, keccak256};
use blindfold_protocol::DecodeError;
use blindfold_rlwe::ring;
use blindfold_rlwe::rlwe::Ciphertext;

use super::Settings;
use crate::keccak::hash_on_all_threads;
use crate::transaction::InvalidTransaction;
use crate::transaction::codec::{Reader, element_bytes};
use crate::{Fr, Polynomial, PolynomialError, tags};

/// Version byte of an account's record.
const VERSION: u8 = 1;
/// Bytes of the counter at the end of a ciphertext's record.
const COUNTER_BYTES: usize = 2;

/// A counted ciphertext, hashed at most once.
#[derive(Debug, Clone)]
pub struct Sum {
    ciphertext: Ciphertext,
    hash: OnceLock<B256>,
}

impl Sum {
    /// The sum that this ciphertext is, not hashed yet.
    #[must_use]
    pub const fn new(ciphertext: Ciphertext) -> Self {
        Self { ciphertext, hash: OnceLock::new() }
    }

    /// The ciphertext that was hashed.
    #[must_use]
    pub const fn ciphertext(&self) -> &Ciphertext {
        &self.ciphertext
    }

    /// keccak256 of c1 ‖ c0, packed, without the counter. Costs N·54 bits of hashing the first time.
    #[must_use]
    pub fn hash(&self) -> &B256 {
        self.hash.get_or_init(|| keccak256(self.packed()))
    }

    /// Hashes those that are not hashed yet, on all threads.
    pub(crate) fn hash_all<'a>(sums: impl IntoIterator<Item = &'a Arc<Self>>) {
        let mut seen = HashSet::new();
        let unhashed: Vec<&Self> = sums
            .into_iter()
            .map(|sum| &**sum)
            .filter(|sum| sum.hash.get().is_none() && seen.insert(std::ptr::from_ref(*sum)))
            .collect();
        hash_on_all_threads(
            &unhashed,
            |sum| sum.packed(),
            |sum, hash| {
                // Another thread may have been first, with the same hash.
                sum.hash.get_or_init(|| hash);
            },
        );
    }

    /// c1 ‖ c0.
    fn packed(&self) -> Vec<u8> {
        let mut record = self.ciphertext.encode();
        record.truncate(record.len() - COUNTER_BYTES);
        record
    }
}

impl PartialEq for Sum {
    fn eq(&self, other: &Self) -> bool {
        self.ciphertext == other.ciphertext
    }
}

impl Eq for Sum {}

/// What of an account never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its place in the tree, in order of registration.
    pub index: u32,
    /// Address of the owner, which names the account.
    pub owner: Address,
    /// The public key b.
    pub key: Polynomial,
    /// The commitment to its secret: Poseidon of s.
    pub secret_commitment: Fr,
}

/// An account. A clone costs nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// What never changes: owner, key and commitment.
    pub identity: Arc<Identity>,
    /// Transactions that the account has made, registration aside.
    pub nonce: u64,
    /// What its owner can spend.
    pub available: Arc<Sum>,
    /// What others have paid since the last rollover.
    pub pending: Arc<Sum>,
}

/// Why bytes are no account's record: they are not what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    /// A field is cut, unknown, or followed by something.
    #[error(transparent)]
    Structure(#[from] DecodeError),
    /// Key or commitment are not in their one form.
    #[error(transparent)]
    Field(#[from] InvalidTransaction),
    /// A ciphertext is not in its one form.
    #[error("{field}: {fault}")]
    Ciphertext {
        /// The field at which decoding failed.
        field: &'static str,
        /// What is wrong with it.
        fault: ring::DecodeError,
    },
    /// The key is of another set.
    #[error(transparent)]
    Polynomial(#[from] PolynomialError),
}

impl Account {
    /// A new account: nothing available, nothing pending.
    #[must_use]
    pub fn new(settings: &Settings, identity: Identity) -> Self {
        let zero = || Arc::clone(settings.zero());
        Self { identity: Arc::new(identity), nonce: 0, available: zero(), pending: zero() }
    }

    /// keccak256(0x00 ‖ owner ‖ nonce u64 ‖ keccak256(b) ‖ secret commitment ‖ counter of available u16 ‖ counter of
    /// pending u16 ‖ keccak256(available) ‖ keccak256(pending)).
    #[must_use]
    pub fn leaf(&self) -> B256 {
        let mut hash = Keccak256::new();
        hash.update([tags::ACCOUNT_LEAF]);
        hash.update(self.identity.owner);
        hash.update(self.nonce.to_be_bytes());
        hash.update(self.identity.key.hash());
        hash.update(element_bytes(&self.identity.secret_commitment));
        hash.update(self.available.ciphertext.additions().to_be_bytes());
        hash.update(self.pending.ciphertext.additions().to_be_bytes());
        hash.update(self.available.hash());
        hash.update(self.pending.hash());
        hash.finalize()
    }

    /// The record for a store: version ‖ index u32 ‖ owner ‖ nonce u64 ‖ secret commitment ‖ b ‖ available ‖ pending,
    /// ciphertexts with their counters.
    #[must_use]
    pub fn encode(&self, settings: &Settings) -> Vec<u8> {
        let Identity { index, owner, key, secret_commitment } = &*self.identity;
        let mut record = vec![VERSION];
        record.extend(index.to_be_bytes());
        record.extend(owner);
        record.extend(self.nonce.to_be_bytes());
        record.extend(element_bytes(secret_commitment));
        ring::pack(key.coefficients(), settings.ring().modulus_bits(), &mut record);
        record.extend(self.available.ciphertext.encode());
        record.extend(self.pending.ciphertext.encode());
        record
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`AccountError`].
    pub fn decode(settings: &Settings, record: &[u8]) -> Result<Self, AccountError> {
        let parameters = settings.parameters();
        let mut reader = Reader(record);
        match reader.u8("version")? {
            VERSION => {}
            other => return Err(DecodeError::Version(other).into()),
        }
        let index = reader.u32("index")?;
        let owner = reader.address("owner")?;
        let nonce = reader.u64("nonce")?;
        let secret_commitment = reader.element()?;
        let key = settings.polynomial(reader.key(parameters)?.polynomial())?;
        let mut sum = |field| -> Result<Arc<Sum>, AccountError> {
            let bytes = reader.take(field, Ciphertext::encoded_bytes(parameters))?;
            let ciphertext = Ciphertext::decode(parameters, bytes)
                .map_err(|fault| AccountError::Ciphertext { field, fault })?;
            let sum = Sum::new(ciphertext);
            // One for all accounts: `pending` is nothing most of the time.
            Ok(if sum == **settings.zero() { Arc::clone(settings.zero()) } else { Arc::new(sum) })
        };
        let (available, pending) = (sum("available")?, sum("pending")?);
        reader.finish()?;
        let identity = Arc::new(Identity { index, owner, key, secret_commitment });
        Ok(Self { identity, nonce, available, pending })
    }
}
