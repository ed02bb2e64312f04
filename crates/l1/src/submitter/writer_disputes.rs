//! Writing about the sequencer: its bond, reports against it, answers for it. A report is committed to first
//! (`commit`) and shown in a later block, so that nobody can copy it.

use alloy_primitives::{Address, Bytes, U256};
use blindfold_protocol::{B256, Promise, SignedHeader};

use crate::{
    contracts::{BlindedInbox, HintRegistry},
    error::L1Error,
    posting::evidence::{GivenPromise, OmissionAnswer, commitment, equivocation_evidence, omission_evidence},
    submitter::{pending::Sent, writer::L1Writer},
};

/// What comes with an accusation: 0.1 ether.
pub const ACCUSATION_STAKE_WEI: u128 = 100_000_000_000_000_000;

impl L1Writer {
    /// Adds `amount` wei to a sequencer's bond.
    ///
    /// # Errors
    /// [`L1Error::Reverted`]; the errors of a call.
    pub async fn deposit_bond(&self, sequencer: Address, amount: u128) -> Result<Sent, L1Error> {
        let call = BlindedInbox::depositBondCall { sequencer_: sequencer };
        self.to_inbox("depositBond", U256::from(amount), &call).await
    }

    /// Commits to evidence that this account will show to the inbox with the same salt. The salt is random, and the
    /// caller's to keep until then.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn commit(&self, evidence: B256, salt: B256) -> Result<Sent, L1Error> {
        let call = BlindedInbox::commitCall { commitment: commitment(self.address(), evidence, salt) };
        self.to_inbox("commit", U256::ZERO, &call).await
    }

    /// Commits to evidence that this account will show to `HintRegistry`; see [`L1Writer::commit`].
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn commit_challenge(&self, evidence: B256, salt: B256) -> Result<Sent, L1Error> {
        let call = HintRegistry::commitCall { commitment: commitment(self.address(), evidence, salt) };
        let registry = self.client().config().contracts.hint_registry;
        self.send("commit", registry, U256::ZERO, &call).await
    }

    /// Reports two different headers of one number, both signed by the sequencer, to which
    /// [`equivocation_evidence`] was committed in an earlier block. The reward waits for [`L1Writer::claim_reward`].
    ///
    /// # Errors
    /// [`L1Error::Reverted`] when it is no such thing, both were reported already, or no commitment is old enough; the
    /// errors of a call.
    pub async fn slash_equivocation(
        &self,
        first: &SignedHeader,
        second: &SignedHeader,
        salt: B256,
    ) -> Result<Sent, L1Error> {
        let call = BlindedInbox::slashEquivocationCall {
            first: (&first.header).into(),
            firstSignature: Bytes::copy_from_slice(&first.signature.0),
            second: (&second.header).into(),
            secondSignature: Bytes::copy_from_slice(&second.signature.0),
            salt,
        };
        self.reveal("slashEquivocation", self.client().config().deployment.inbox, U256::ZERO, &call).await
    }

    /// Commits to the report of two headers and reports them when the commitment is in a block; a block later it can
    /// be shown.
    ///
    /// # Errors
    /// As [`L1Writer::slash_equivocation`].
    pub async fn report_equivocation(
        &self,
        first: &SignedHeader,
        second: &SignedHeader,
        salt: B256,
    ) -> Result<Sent, L1Error> {
        self.commit(equivocation_evidence(first, second), salt).await?;
        self.slash_equivocation(first, second, salt).await
    }

    /// Says that a promise was not kept, with [`ACCUSATION_STAKE_WEI`]; [`omission_evidence`] was committed to in an
    /// earlier block.
    ///
    /// # Errors
    /// [`L1Error::Reverted`] when the headers up to the promised number are not posted yet, L1 made one of them, or
    /// the promise was the matter of an accusation already; the errors of a call.
    pub async fn accuse_omission(&self, promise: &Promise, salt: B256) -> Result<Sent, L1Error> {
        let call = BlindedInbox::accuseOmissionCall {
            envelopeId: promise.envelope_id,
            itemHash: promise.item_hash,
            sealBy: promise.seal_by,
            signature: Bytes::copy_from_slice(&promise.signature.0),
            salt,
        };
        self.reveal(
            "accuseOmission",
            self.client().config().deployment.inbox,
            U256::from(ACCUSATION_STAKE_WEI),
            &call,
        )
        .await
    }

    /// Commits to the accusation and makes it.
    ///
    /// # Errors
    /// As [`L1Writer::accuse_omission`].
    pub async fn report_omission(&self, promise: &Promise, salt: B256) -> Result<Sent, L1Error> {
        self.commit(omission_evidence(promise.envelope_id, promise.item_hash, promise.seal_by), salt).await?;
        self.accuse_omission(promise, salt).await
    }

    /// Answers an accusation with the envelope's place; the stake becomes this account's reward.
    ///
    /// # Errors
    /// [`L1Error::Reverted`] when no accusation is open, or the place is none; the errors of a call.
    pub async fn answer_omission(&self, answer: &OmissionAnswer) -> Result<Sent, L1Error> {
        // Both were checked when the answer was made.
        let header = answer.run.header(answer.number).ok_or(L1Error::Run(crate::error::RunError::Empty))?;
        let header_proof = answer.run.header_proof(answer.number).unwrap_or_default();
        let call = BlindedInbox::answerOmissionCall {
            promised: (&answer.promise).into(),
            header: header.into(),
            run: (&answer.run.run).into(),
            headerProof: header_proof,
            index: U256::from(answer.index),
            code: answer.leaf.code,
            itemProof: answer.item_proof.clone(),
        };
        self.to_inbox("answerOmission", U256::ZERO, &call).await
    }

    /// Takes the bond for an accusation of having broken this promise that nobody answered in time.
    ///
    /// # Errors
    /// [`L1Error::Reverted`] before that; the errors of a call.
    pub async fn slash_omission(&self, promise: &GivenPromise) -> Result<Sent, L1Error> {
        let call = BlindedInbox::slashOmissionCall { promised: promise.into() };
        self.to_inbox("slashOmission", U256::ZERO, &call).await
    }

    /// Takes out the account's rewards from the inbox.
    ///
    /// # Errors
    /// [`L1Error::Reverted`] when there is none; the errors of a call.
    pub async fn claim_reward(&self) -> Result<Sent, L1Error> {
        self.to_inbox("claimReward", U256::ZERO, &BlindedInbox::claimRewardCall {}).await
    }

    /// Announces that `amount` wei of this account's bond as a sequencer will be taken out; 0 takes it back. What is announced
    /// does not count as bond.
    ///
    /// # Errors
    /// [`L1Error::Reverted`]; the errors of a call.
    pub async fn announce_bond_withdrawal(&self, amount: u128) -> Result<Sent, L1Error> {
        let call = BlindedInbox::announceBondWithdrawalCall { amount };
        self.to_inbox("announceBondWithdrawal", U256::ZERO, &call).await
    }

    /// Takes out what was announced.
    ///
    /// # Errors
    /// [`L1Error::Reverted`] before the delay is over, which begins anew with every certified posting, or while an
    /// accusation is open, or when the announcement lapsed; the errors of a call.
    pub async fn withdraw_bond(&self, to: Address) -> Result<Sent, L1Error> {
        self.to_inbox("withdrawBond", U256::ZERO, &BlindedInbox::withdrawBondCall { to }).await
    }

    async fn to_inbox<C: alloy_sol_types::SolCall>(
        &self,
        name: &'static str,
        value: U256,
        call: &C,
    ) -> Result<Sent, L1Error> {
        self.send(name, self.client().config().deployment.inbox, value, call).await
    }
}
