//! Confidential transactions: items of kind 1 in a bundle.
//!
//! One encoding each: version u8 ‖ kind u8 ‖ the fields in the order of the struct, integers big-endian, ring elements
//! packed as [`blindfold_rlwe`] packs them, everything of a fixed length. The id is keccak256 of that encoding; since proofs
//! can be made again, it names these bytes and not what they do: nonces keep anything from happening twice.
//!
//! What a transaction does not carry is as important: no key and no ciphertext of the state. Those are looked up.

pub(crate) mod codec;
mod fault;
pub mod signing;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use alloy_primitives::{Address, B256, keccak256};
use blindfold_protocol::Signature65;
use blindfold_rlwe::rlwe::{MultiCiphertext, Parameters, PublicKey};

use crate::Fr;

pub use fault::InvalidTransaction;

/// Version byte in front of every transaction.
pub const VERSION: u8 = 1;
/// Length of every proof, in bytes.
pub const PROOF_BYTES: usize = 288;
/// Recipients of a transfer's ciphertext: sender, receiver, auditor, in this order.
pub const TRANSFER_RECIPIENTS: usize = 3;

/// A proof as it came; its points are looked at when it is verified.
#[derive(Clone, PartialEq, Eq)]
pub struct EncodedProof(pub [u8; PROOF_BYTES]);

impl std::fmt::Debug for EncodedProof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EncodedProof({})", keccak256(self.0))
    }
}

/// Opens an account: its key, and the commitment to its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register {
    /// The account's name: its owner's address.
    pub owner: Address,
    /// The account's public key b.
    pub key: PublicKey,
    /// The commitment to its secret: Poseidon of s.
    pub secret_commitment: Fr,
    /// That key and commitment are those of one small secret.
    pub proof: EncodedProof,
    /// The owner's signature over [`signing::Registration`].
    pub signature: Signature65,
}

/// Moves a public amount into an account's pending balance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deposit {
    /// Who pays, from the public ledger.
    pub from: Address,
    /// The account that is credited.
    pub account: Address,
    /// The amount, in base units.
    pub amount: u64,
    /// The nonce of `from` in the public ledger.
    pub nonce: u64,
    /// That of `from`, over [`signing::Deposit`].
    pub signature: Signature65,
}

/// Pays a hidden amount from one account's available balance into another's pending one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// Owner of the account that pays.
    pub sender: Address,
    /// The account that is paid.
    pub receiver: Address,
    /// The sender's nonce that it uses.
    pub nonce: u64,
    /// What the operator gets, in base units.
    pub fee: u64,
    /// The amount, for sender, receiver and auditor.
    pub amount: MultiCiphertext,
    /// That the three hold one amount, which the sender has beside the fee.
    pub proof: EncodedProof,
}

/// Adds the pending balance to the available one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollover {
    /// Owner of the account that acts.
    pub account: Address,
    /// The account's nonce that it uses.
    pub nonce: u64,
    /// The owner's signature over [`signing::Rollover`].
    pub signature: Signature65,
}

/// Puts a fresh ciphertext of the same balance in the place of the available one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refresh {
    /// Owner of the account that acts.
    pub account: Address,
    /// The account's nonce that it uses.
    pub nonce: u64,
    /// The balance, for the account alone.
    pub balance: MultiCiphertext,
    /// That it is fresh and holds what the available one holds.
    pub proof: EncodedProof,
}

/// Pays a public amount from the available balance to an address in the public ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withdraw {
    /// Owner of the account that acts.
    pub account: Address,
    /// The account's nonce that it uses.
    pub nonce: u64,
    /// The amount, in base units.
    pub amount: u64,
    /// The account of the public ledger that is paid.
    pub recipient: Address,
    /// That the account has the amount.
    pub proof: EncodedProof,
}

/// A confidential transaction, by its kind byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfidentialTransaction {
    /// Kind 1: opens an account.
    Register(Box<Register>),
    /// Kind 2: from the public ledger into an account.
    Deposit(Deposit),
    /// Kind 3: pays another account a hidden amount.
    Transfer(Box<Transfer>),
    /// Kind 4: makes what is pending available.
    Rollover(Rollover),
    /// Kind 5: encrypts what is available anew.
    Refresh(Box<Refresh>),
    /// Kind 6: from an account into the public ledger.
    Withdraw(Box<Withdraw>),
}

impl ConfidentialTransaction {
    /// The kind byte of its encoding.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        match self {
            Self::Register(_) => 1,
            Self::Deposit(_) => 2,
            Self::Transfer(_) => 3,
            Self::Rollover(_) => 4,
            Self::Refresh(_) => 5,
            Self::Withdraw(_) => 6,
        }
    }

    /// The name of the kind in JSON and logs.
    #[must_use]
    pub const fn kind_name(&self) -> &'static str {
        match self {
            Self::Register(_) => "register",
            Self::Deposit(_) => "deposit",
            Self::Transfer(_) => "transfer",
            Self::Rollover(_) => "rollover",
            Self::Refresh(_) => "refresh",
            Self::Withdraw(_) => "withdraw",
        }
    }

    /// The proof, where the kind has one.
    #[must_use]
    pub fn proof(&self) -> Option<&EncodedProof> {
        match self {
            Self::Register(register) => Some(&register.proof),
            Self::Transfer(transfer) => Some(&transfer.proof),
            Self::Refresh(refresh) => Some(&refresh.proof),
            Self::Withdraw(withdraw) => Some(&withdraw.proof),
            Self::Deposit(_) | Self::Rollover(_) => None,
        }
    }

    /// The turn that a kind with a proof asks for: the account that acts, and its nonce; no nonce where it is opened. `None`
    /// for kinds without a proof.
    #[must_use]
    pub fn turn(&self) -> Option<(Address, Option<u64>)> {
        match self {
            Self::Register(register) => Some((register.owner, None)),
            Self::Transfer(transfer) => Some((transfer.sender, Some(transfer.nonce))),
            Self::Refresh(refresh) => Some((refresh.account, Some(refresh.nonce))),
            Self::Withdraw(withdraw) => Some((withdraw.account, Some(withdraw.nonce))),
            Self::Deposit(_) | Self::Rollover(_) => None,
        }
    }

    /// Its id: keccak256 of the encoding.
    #[must_use]
    pub fn id(&self) -> B256 {
        keccak256(self.encode())
    }

    /// The one encoding: 14,332 bytes for a transfer under `balance`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Reads what [`encode`](Self::encode) wrote for this set of parameters, and nothing else. Lengths are compared before
    /// anything is allocated.
    ///
    /// # Errors
    /// [`InvalidTransaction`].
    pub fn decode(parameters: &Arc<Parameters>, bytes: &[u8]) -> Result<Self, InvalidTransaction> {
        codec::decode(parameters, bytes)
    }
}
