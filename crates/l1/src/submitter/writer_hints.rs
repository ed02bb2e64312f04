//! Writing hints, and disputing those of others.

use alloy_primitives::U256;
use alloy_sol_types::SolCall;
use blindfold_protocol::{B256, Canonical};

use crate::{
    contracts::HintRegistry,
    error::L1Error,
    posting::{
        blobs::encode_blobs,
        challenge::Challenge,
        evidence::challenge_evidence,
        hint_blobs::{HintIndex, content},
        hint_posting::HintPosting,
        hint_roots::HintRoots,
        place::DataPlace,
        run::RunReference,
    },
    submitter::{pending::Sent, writer::L1Writer},
};

impl L1Writer {
    /// Adds `amount` wei to the account's bond as a publisher of hints.
    ///
    /// # Errors
    /// [`L1Error::Reverted`]; the errors of a call.
    pub async fn deposit_publisher_bond(&self, amount: u128) -> Result<Sent, L1Error> {
        self.to_hints("depositBond", U256::from(amount), &HintRegistry::depositBondCall {}).await
    }

    /// Takes out what of that bond need not stay for open postings.
    ///
    /// # Errors
    /// [`L1Error::Reverted`] for more; the errors of a call.
    pub async fn withdraw_publisher_bond(&self, amount: u128) -> Result<Sent, L1Error> {
        self.to_hints("withdrawBond", U256::ZERO, &HintRegistry::withdrawBondCall { amount }).await
    }

    /// Posts the hints of a run, in calldata or in blobs as [`L1Writer::with_data_in`] says. The account's bond answers
    /// for them as for all its open postings.
    ///
    /// # Errors
    /// [`L1Error::Reverted`] when the run is not posted, final or void, the same hints are open, or the bond does not
    /// suffice; [`L1Error::TransactionTooLarge`] or [`L1Error::Blobs`] for more than fits; the errors of a call.
    pub async fn post_hints(&self, run: &RunReference, hints: &HintPosting) -> Result<Sent, L1Error> {
        if self.place == DataPlace::Blobs {
            let index = HintIndex::of(hints).encode().into();
            let call = HintRegistry::postHintsInBlobsCall { run: run.into(), index };
            let registry = self.client().config().contracts.hint_registry;
            let blobs = encode_blobs(&content(hints)).map_err(L1Error::Blobs)?;
            return self.send_with_blobs("postHintsInBlobs", registry, &call, blobs).await;
        }
        let call = HintRegistry::postHintsCall { run: run.into(), data: hints.encode().into() };
        self.to_hints("postHints", U256::ZERO, &call).await
    }

    /// The roots that L1 computes from these hints of a run that begins with `first`: in the place that
    /// [`L1Writer::with_data_in`] says, and in the other one. See [`HintRoots::of`].
    ///
    /// # Errors
    /// [`L1Error::Blobs`] when the library fails.
    pub async fn hint_roots(&self, first: u64, hints: &HintPosting) -> Result<[Option<B256>; 2], L1Error> {
        Ok(HintRoots::of(first, hints.clone()).await?.in_place(self.place))
    }

    /// Disputes an entry of an open posting, with the challenge's stake; the evidence was committed to in an earlier
    /// block with [`L1Writer::commit_challenge`]. A stake that comes back and the reward wait for
    /// [`L1Writer::claim_hint_reward`].
    ///
    /// # Errors
    /// [`L1Error::Reverted`] for what cannot be judged; the errors of a call.
    pub async fn challenge(&self, posting: u64, challenge: &Challenge, salt: B256) -> Result<Sent, L1Error> {
        let (_, stake) = self.client().hint_stakes().await?;
        let call = HintRegistry::challengeCall { id: posting, given: challenge.call.clone(), salt };
        let registry = self.client().config().contracts.hint_registry;
        self.reveal("challenge", registry, U256::from(stake), &call).await
    }

    /// Commits to the challenge and makes it.
    ///
    /// # Errors
    /// As [`L1Writer::challenge`].
    pub async fn dispute(&self, posting: u64, challenge: &Challenge, salt: B256) -> Result<Sent, L1Error> {
        let evidence = challenge_evidence(posting, challenge.number(), challenge.index());
        self.commit_challenge(evidence, salt).await?;
        self.challenge(posting, challenge, salt).await
    }

    /// Makes a posting its run's hints for good, when its window is over.
    ///
    /// # Errors
    /// [`L1Error::Reverted`] before that; the errors of a call.
    pub async fn finalize_hints(&self, posting: u64) -> Result<Sent, L1Error> {
        self.to_hints("finalize", U256::ZERO, &HintRegistry::finalizeCall { id: posting }).await
    }

    /// Closes a posting whose run has other final hints.
    ///
    /// # Errors
    /// [`L1Error::Reverted`] before that; the errors of a call.
    pub async fn release_hints(&self, posting: u64) -> Result<Sent, L1Error> {
        self.to_hints("release", U256::ZERO, &HintRegistry::releaseCall { id: posting }).await
    }

    /// Clears away an invalidated posting: one whose publisher was slashed.
    ///
    /// # Errors
    /// [`L1Error::Reverted`] for one that is not invalidated; the errors of a call.
    pub async fn drop_hints(&self, posting: u64) -> Result<Sent, L1Error> {
        self.to_hints("drop", U256::ZERO, &HintRegistry::dropCall { id: posting }).await
    }

    /// Declares a run void that has no hints after its deadline.
    ///
    /// # Errors
    /// [`L1Error::Reverted`] before that, or when there are hints, invalidated ones that were not dropped among them;
    /// the errors of a call.
    pub async fn void_unreleased(&self, run: &RunReference) -> Result<Sent, L1Error> {
        let call = HintRegistry::voidUnreleasedCall { run: run.into() };
        self.to_hints("voidUnreleased", U256::ZERO, &call).await
    }

    /// Takes out the account's rewards from `HintRegistry`.
    ///
    /// # Errors
    /// [`L1Error::Reverted`] when there is none; the errors of a call.
    pub async fn claim_hint_reward(&self) -> Result<Sent, L1Error> {
        self.to_hints("claimReward", U256::ZERO, &HintRegistry::claimRewardCall {}).await
    }

    async fn to_hints<C: SolCall>(&self, name: &'static str, value: U256, call: &C) -> Result<Sent, L1Error> {
        self.send(name, self.client().config().contracts.hint_registry, value, call).await
    }
}
