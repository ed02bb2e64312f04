//! What is known of a transaction without the state.

use alloy_primitives::B256;

use super::Check;
use crate::state::{Claim, Premises, Refusal, Settings};
use crate::transaction::ConfidentialTransaction;

/// A decoded transaction whose signature holds, or why it is none.
pub(super) struct Screened {
    pub(super) id: B256,
    pub(super) transaction: Result<ConfidentialTransaction, Refusal>,
}

impl Screened {
    /// Decodes; where the kind has a signature, one recovery. `id` is the hash of the bytes.
    pub(super) fn new(settings: &Settings, bytes: &[u8], id: B256) -> Self {
        let transaction = ConfidentialTransaction::decode(settings.parameters(), bytes)
            .map_err(|_| Refusal::Undecodable)
            .and_then(|transaction| {
                let signed = transaction.is_signed(settings.domain());
                if signed { Ok(transaction) } else { Err(Refusal::InvalidSignature) }
            });
        Self { id, transaction }
    }

    /// What the proof must prove.
    pub(super) fn claim(&self, settings: &Settings, premises: &Premises) -> Option<Claim> {
        Claim::new(settings, self.transaction.as_ref().ok()?, premises).ok().flatten()
    }

    pub(super) fn check<'a>(&'a self, claim: &'a Claim) -> Option<Check<'a>> {
        Some(Check { claim, proof: self.transaction.as_ref().ok()?.proof()? })
    }
}
