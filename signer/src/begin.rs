//! What an operator tells a signer that does not serve: from which number on it signs, and that terms start anew.

use blindfold_chain::{L1Error, L1Reader};
use blindfold_protocol::{Address, Deployment};
use blindfold_store::{Store, StoreError};
use thiserror::Error;

/// Where the store has the first number that is signed; nothing in a fresh one.
const FIRST_KEY: &str = "signer.first_number";
/// Where the store has the highest term that was seen.
const TERM_KEY: &str = "signer.term";

/// What the names of all signers' stores begin with.
const ROLE: &str = "signer-";

/// Name under which the store is bound, beside the deployment: one for each key, so that no key signs on another's record.
#[must_use]
pub fn role_of(key: Address) -> String {
    format!("{ROLE}{key:#x}")
}

/// Whether a store bound under this name is a signer's. No copy of one may sign: it lacks what was signed since.
#[must_use]
pub fn is_signer(role: &str) -> bool {
    role.starts_with(ROLE)
}

/// Why a signer does not begin.
#[derive(Debug, Error)]
pub enum BeginError {
    /// It knows what the key has signed, and goes on from there.
    #[error(
        "this signer has begun with number {first}, and knows what the key has signed since: nothing to do"
    )]
    Begun {
        /// The first number that it signs.
        first: u64,
    },
    /// Headers count from 1.
    #[error("headers count from 1")]
    Zero,
    /// L1 holds a header of that number.
    #[error(
        "L1 holds headers up to number {posted}: the key may have signed number {first}. Begin with a later one"
    )]
    Posted {
        /// The number that was to be the first.
        first: u64,
        /// The newest posted one.
        posted: u64,
    },
    /// L1 does not tell what is posted.
    #[error("L1 does not tell which header was posted last: {0}")]
    L1(#[from] L1Error),
    /// The disk failed, or belongs to another key or deployment.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a store says of itself beside what was signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// The first number that is signed; `None` for a fresh one.
    pub(crate) first: Option<u64>,
    /// The highest term that was seen; 0 for none.
    pub(crate) term: u64,
}

impl Known {
    /// Reads it. What is damaged is not known: then nothing is signed.
    pub(crate) async fn load(store: &dyn Store) -> Result<Self, StoreError> {
        let number =
            |bytes: Option<Vec<u8>>| bytes.map(|bytes| bytes.try_into().ok().map(u64::from_be_bytes));
        let first = number(store.meta(FIRST_KEY).await?).flatten();
        // No request has so high a term.
        let term = number(store.meta(TERM_KEY).await?).map_or(0, |term| term.unwrap_or(u64::MAX));
        Ok(Self { first, term })
    }
}

/// Stores the highest term; durable before it counts.
pub(crate) async fn put_term(store: &dyn Store, term: u64) -> Result<(), StoreError> {
    store.put_meta(TERM_KEY, &term.to_be_bytes()).await
}

/// Says to a fresh signer that the key has signed nothing from number `first` on; durable when it returns.
///
/// # Errors
/// See [`BeginError`]; nothing has changed then.
pub async fn begin(
    store: &dyn Store,
    l1: &dyn L1Reader,
    (deployment, key): (&Deployment, Address),
    first: u64,
) -> Result<(), BeginError> {
    store.bind(deployment, &role_of(key)).await?;
    if let Some(first) = Known::load(store).await?.first {
        return Err(BeginError::Begun { first });
    }
    if first == 0 {
        return Err(BeginError::Zero);
    }
    let posted = l1.posted_head().await?.number;
    if first <= posted {
        return Err(BeginError::Posted { first, posted });
    }
    Ok(store.put_meta(FIRST_KEY, &first.to_be_bytes()).await?)
}

/// The first number that the signer on this store signs; `None` for a fresh one, which signs nothing.
///
/// # Errors
/// The disk failed.
pub async fn first_number(store: &dyn Store) -> Result<Option<u64>, StoreError> {
    Ok(Known::load(store).await?.first)
}

/// Forgets the highest term, for a database of the sequencers whose terms start anew; gives it. What was signed stays.
///
/// # Errors
/// The disk failed, or belongs to another key or deployment.
pub async fn forget_terms(
    store: &dyn Store,
    deployment: &Deployment,
    key: Address,
) -> Result<u64, StoreError> {
    store.bind(deployment, &role_of(key)).await?;
    let Known { term, .. } = Known::load(store).await?;
    put_term(store, 0).await?;
    Ok(term)
}
