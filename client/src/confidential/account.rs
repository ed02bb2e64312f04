//! An account as a coprocessor shows it, checked against the state root.

use std::sync::Arc;

use alloy_primitives::Address;
use blindfold_confidential::state::{Account, Head, Settings};
use blindfold_confidential::tree::{DEPTH, Proof};
use blindfold_rpc::confidential::{ConfidentialAccount, ConfidentialCiphertext};

/// An answer that does not hold together. The coprocessor is at fault.
#[derive(Debug, thiserror::Error)]
pub enum AccountClaimError {
    /// The fields are no account.
    #[error("the coprocessor's account does not decode: {0}")]
    Undecodable(String),
    /// The proof has another length than the tree is deep.
    #[error("the coprocessor's proof has {0} siblings, the tree has {DEPTH} levels")]
    ProofLength(usize),
    /// The account of somebody else.
    #[error("the coprocessor shows the account of {found}, {asked} was asked for")]
    OtherOwner {
        /// The owner that was asked for.
        asked: Address,
        /// The owner of the account that is shown.
        found: Address,
    },
    /// The proof does not lead to the state root that was told with it.
    #[error("the coprocessor's account is not under the state root that it tells")]
    WrongRoot,
}

/// The account of `owner`, if it stands under the state root that comes with it. Whether that is the root of the chain is for
/// a coprocessor of one's own to say: **do not decrypt it**, but take it from [`VerifiedState`](super::VerifiedState).
///
/// Costs five hashes of 14 KB and 32 of 65 bytes.
///
/// # Errors
/// [`AccountClaimError`].
pub fn checked(
    settings: &Settings,
    owner: Address,
    claim: &ConfidentialAccount,
) -> Result<Arc<Account>, AccountClaimError> {
    if claim.owner != owner {
        return Err(AccountClaimError::OtherOwner { asked: owner, found: claim.owner });
    }
    let mut record = vec![RECORD_VERSION];
    record.extend(claim.index.to_be_bytes());
    record.extend(claim.owner);
    record.extend(claim.nonce.to_be_bytes());
    record.extend(claim.secret_commitment);
    record.extend(claim.public_key.iter());
    for ciphertext in [&claim.available, &claim.pending] {
        let ConfidentialCiphertext { c1, c0, counter } = ciphertext;
        record.extend(c1.iter().chain(c0.iter()));
        let counter = u16::try_from(*counter)
            .map_err(|_| AccountClaimError::Undecodable("a counter above 16 bits".to_owned()))?;
        // As the ciphertext's own encoding has it.
        record.extend(counter.to_le_bytes());
    }
    let account = Account::decode(settings, &record)
        .map_err(|fault| AccountClaimError::Undecodable(fault.to_string()))?;
    let siblings = <[_; DEPTH as usize]>::try_from(claim.siblings.as_slice())
        .map_err(|_| AccountClaimError::ProofLength(claim.siblings.len()))?;
    let head = Head {
        version: claim.version,
        accounts: claim.accounts,
        public_accounts: claim.public_accounts,
        accounts_root: claim.accounts_root,
        public_root: claim.public_root,
        confidential: 0,
    };
    let root = Proof(siblings).root(claim.index, &account.leaf());
    if root != claim.accounts_root || head.state_root() != claim.state_root {
        return Err(AccountClaimError::WrongRoot);
    }
    Ok(Arc::new(account))
}

/// Version byte of an account's record.
const RECORD_VERSION: u8 = 1;
