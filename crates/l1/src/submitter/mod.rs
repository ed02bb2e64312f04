//! What one account does on L1, as a seam: the writer of the contracts implements it, tests and simulations script it.

pub(crate) mod account;
pub(crate) mod costs;
pub(crate) mod fees;
pub(crate) mod pending;
pub(crate) mod refusals;
pub(crate) mod sender;
pub(crate) mod stakes;
pub(crate) mod writer;
pub(crate) mod writer_disputes;
pub(crate) mod writer_funds;
pub(crate) mod writer_hints;
pub(crate) mod writer_opened;

use alloy_primitives::{Address, B256};
use async_trait::async_trait;
use blindfold_protocol::{BatchHeader, Certificate, SignedHeader};

use crate::{
    error::L1Error,
    posting::{
        challenge::HintEvidence,
        evidence::{DisputeContract, OmissionAnswer},
        hint_posting::HintPosting,
        opened_data::{HintsReference, KeyedBatch, OpenedPiece},
        run::RunReference,
        run_data::CodedBatch,
    },
    reader::{L1Reader, data_standing::DataStanding, faults::Output, unsupported},
    submitter::{costs::DataCosts, pending::Sent, writer::L1Writer},
};

/// What one account may do on L1, and what it has to know of its own. Methods that send wait until their transaction is in a
/// block, which need not be final.
///
/// Whoever takes a part only, as the script of a test, leaves the rest to what stands here: [`L1Error::Unsupported`].
#[async_trait]
pub trait L1Submitter: Send + Sync {
    /// The account that sends, and pays for, every transaction here.
    fn account(&self) -> Address;

    /// What L1 says where the account's transactions go.
    fn reader(&self) -> &dyn L1Reader;

    /// Whether the data that it posts may be in blobs, which do not last.
    fn may_post_blobs(&self) -> bool {
        false
    }

    /// What the data that it posted cost so far.
    fn data_costs(&self) -> DataCosts {
        DataCosts::default()
    }

    /// Posts certified headers with their data, which is in blocks as well then; the certificate is that of the last.
    /// Gives the transaction with the headers. After an error the headers may be posted with or without their data.
    async fn post(&self, _batches: &[CodedBatch], _certificate: &Certificate) -> Result<Sent, L1Error> {
        unsupported("post")
    }

    /// Posts certified headers without their data.
    async fn post_headers(
        &self,
        _headers: &[BatchHeader],
        _certificate: &Certificate,
    ) -> Result<Sent, L1Error> {
        unsupported("post_headers")
    }

    /// Posts the data of batches whose headers are posted. Gives the last transaction.
    async fn post_data(&self, _batches: &[CodedBatch]) -> Result<Sent, L1Error> {
        unsupported("post_data")
    }

    /// The data of batches of one posted run as what their envelopes were opened to, by the hints of that posting, in the
    /// pieces that are posted one by one. Sends nothing.
    async fn opened_data(
        &self,
        _chain_id: u64,
        _batches: &[KeyedBatch],
        _hints: HintsReference,
    ) -> Result<Vec<OpenedPiece>, L1Error> {
        unsupported("opened_data")
    }

    /// Posts one of them. Gives the last transaction.
    async fn post_opened_data(&self, _piece: &OpenedPiece) -> Result<Sent, L1Error> {
        unsupported("post_opened_data")
    }

    /// Has L1 make the header after this one, its head, as the last one of its epoch; `None` where that one's end is not due.
    async fn end_at_head(&self, _head: &BatchHeader) -> Result<Option<Sent>, L1Error> {
        unsupported("end_at_head")
    }

    /// Whether L1 lacks the data of this posted header.
    async fn lacks_data(&self, _header: &BatchHeader) -> Result<bool, L1Error> {
        unsupported("lacks_data")
    }

    /// Whether these headers, posted in blocks that are not final, have no data there. Of final ones
    /// [`data_standing`](Self::data_standing) tells.
    async fn lacks_new_data(&self, _headers: &[BatchHeader]) -> Result<bool, L1Error> {
        unsupported("lacks_new_data")
    }

    /// Which headers above number `above` L1 holds without their data, among the next that were posted in final blocks
    /// after `after`. It says nothing new when all were looked at.
    async fn data_standing(&self, _above: u64, _after: u64) -> Result<DataStanding, L1Error> {
        unsupported("data_standing")
    }

    /// Claims these L2 blocks in `OutputRegistry`.
    async fn propose_outputs(&self, _outputs: &[Output]) -> Result<Sent, L1Error> {
        unsupported("propose_outputs")
    }

    /// Shows the envelope that an accusation says was left out.
    async fn answer_omission(&self, _answer: &OmissionAnswer) -> Result<Sent, L1Error> {
        unsupported("answer_omission")
    }

    /// Commits to evidence that is shown with the same salt in a later block.
    async fn commit(
        &self,
        _contract: DisputeContract,
        _evidence: B256,
        _salt: B256,
    ) -> Result<Sent, L1Error> {
        unsupported("commit")
    }

    /// Challenges one entry of a posting, with the stake.
    async fn challenge(&self, _evidence: &HintEvidence, _salt: B256) -> Result<Sent, L1Error> {
        unsupported("challenge")
    }

    /// Shows two headers of one number.
    async fn slash_equivocation(&self, _pair: &[SignedHeader; 2], _salt: B256) -> Result<Sent, L1Error> {
        unsupported("slash_equivocation")
    }

    /// Takes what waits to be claimed.
    async fn claim_reward(&self, _contract: DisputeContract) -> Result<Sent, L1Error> {
        unsupported("claim_reward")
    }

    /// Adds to the account's bond as a publisher of hints, in wei.
    async fn deposit_publisher_bond(&self, _amount: u128) -> Result<Sent, L1Error> {
        unsupported("deposit_publisher_bond")
    }

    /// The roots that `HintRegistry` computes from these hints of a run that begins with `first`: in the place that this
    /// account posts to, and in the other one. Both are right; `None` where they do not fit.
    async fn hint_roots(&self, _first: u64, _hints: &HintPosting) -> Result<[Option<B256>; 2], L1Error> {
        unsupported("hint_roots")
    }

    /// Posts the hints of all batches of a run, in order.
    async fn post_hints(&self, _run: &RunReference, _hints: &HintPosting) -> Result<Sent, L1Error> {
        unsupported("post_hints")
    }

    /// Makes a posting its run's hints for good.
    async fn finalize_hints(&self, _posting: u64) -> Result<Sent, L1Error> {
        unsupported("finalize_hints")
    }

    /// Closes a posting whose run has other hints for good.
    async fn release_hints(&self, _posting: u64) -> Result<Sent, L1Error> {
        unsupported("release_hints")
    }
}

#[async_trait]
impl L1Submitter for L1Writer {
    fn account(&self) -> Address {
        self.address()
    }

    fn reader(&self) -> &dyn L1Reader {
        self.client()
    }

    fn may_post_blobs(&self) -> bool {
        L1Writer::may_post_blobs(self)
    }

    fn data_costs(&self) -> DataCosts {
        L1Writer::data_costs(self)
    }

    async fn post(&self, batches: &[CodedBatch], certificate: &Certificate) -> Result<Sent, L1Error> {
        L1Writer::post(self, batches, certificate).await
    }

    async fn post_headers(
        &self,
        headers: &[BatchHeader],
        certificate: &Certificate,
    ) -> Result<Sent, L1Error> {
        L1Writer::post_headers(self, headers, &[], certificate).await
    }

    async fn post_data(&self, batches: &[CodedBatch]) -> Result<Sent, L1Error> {
        L1Writer::post_data(self, batches).await
    }

    async fn opened_data(
        &self,
        chain_id: u64,
        batches: &[KeyedBatch],
        hints: HintsReference,
    ) -> Result<Vec<OpenedPiece>, L1Error> {
        L1Writer::opened_data(self, chain_id, batches, hints).await
    }

    async fn post_opened_data(&self, piece: &OpenedPiece) -> Result<Sent, L1Error> {
        L1Writer::post_opened_data(self, piece).await
    }

    async fn end_at_head(&self, head: &BatchHeader) -> Result<Option<Sent>, L1Error> {
        // The announcement may have been taken back in a block that is not final.
        if !self.client().end_due(head.number.saturating_add(1)).await? {
            return Ok(None);
        }
        Ok(Some(self.post_l1_header(head).await?))
    }

    async fn lacks_data(&self, header: &BatchHeader) -> Result<bool, L1Error> {
        let number = header.number;
        let Some(block) = self.client().posted_at(number).await? else {
            // Not in a final block.
            return L1Writer::lacks_new_data(self, std::slice::from_ref(header)).await;
        };
        let (above, after) = (number.saturating_sub(1), block.saturating_sub(1));
        let standing = L1Writer::data_standing(self, above, after).await?;
        if standing.through < number {
            // Nobody says no before it was looked at (PD-7).
            let reason = format!("what may be the data of {number} cannot be read just now");
            return Err(L1Error::no_answer(reason));
        }
        Ok(standing.lacking.iter().any(|(first, last)| (*first..=*last).contains(&number)))
    }

    async fn lacks_new_data(&self, headers: &[BatchHeader]) -> Result<bool, L1Error> {
        L1Writer::lacks_new_data(self, headers).await
    }

    async fn data_standing(&self, above: u64, after: u64) -> Result<DataStanding, L1Error> {
        L1Writer::data_standing(self, above, after).await
    }

    async fn propose_outputs(&self, outputs: &[Output]) -> Result<Sent, L1Error> {
        L1Writer::propose_outputs(self, outputs).await
    }

    async fn answer_omission(&self, answer: &OmissionAnswer) -> Result<Sent, L1Error> {
        L1Writer::answer_omission(self, answer).await
    }

    async fn commit(&self, contract: DisputeContract, evidence: B256, salt: B256) -> Result<Sent, L1Error> {
        match contract {
            DisputeContract::Hints => self.commit_challenge(evidence, salt).await,
            DisputeContract::Inbox => L1Writer::commit(self, evidence, salt).await,
        }
    }

    async fn challenge(&self, evidence: &HintEvidence, salt: B256) -> Result<Sent, L1Error> {
        let challenge = evidence.challenge().await?;
        L1Writer::challenge(self, evidence.posting.id, &challenge, salt).await
    }

    async fn slash_equivocation(&self, [one, two]: &[SignedHeader; 2], salt: B256) -> Result<Sent, L1Error> {
        L1Writer::slash_equivocation(self, one, two, salt).await
    }

    async fn claim_reward(&self, contract: DisputeContract) -> Result<Sent, L1Error> {
        match contract {
            DisputeContract::Hints => self.claim_hint_reward().await,
            DisputeContract::Inbox => L1Writer::claim_reward(self).await,
        }
    }

    async fn deposit_publisher_bond(&self, amount: u128) -> Result<Sent, L1Error> {
        L1Writer::deposit_publisher_bond(self, amount).await
    }

    async fn hint_roots(&self, first: u64, hints: &HintPosting) -> Result<[Option<B256>; 2], L1Error> {
        L1Writer::hint_roots(self, first, hints).await
    }

    async fn post_hints(&self, run: &RunReference, hints: &HintPosting) -> Result<Sent, L1Error> {
        L1Writer::post_hints(self, run, hints).await
    }

    async fn finalize_hints(&self, posting: u64) -> Result<Sent, L1Error> {
        L1Writer::finalize_hints(self, posting).await
    }

    async fn release_hints(&self, posting: u64) -> Result<Sent, L1Error> {
        L1Writer::release_hints(self, posting).await
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn the_writer_leaves_nothing_to_what_stands_in_the_trait() {
        let (asked, done) = include_str!("mod.rs").split_once("impl L1Submitter for L1Writer").unwrap();
        let names = |text: &str| {
            let functions = text.split("    async fn ").skip(1);
            functions.map(|rest| rest.split('(').next().unwrap().to_owned()).collect::<BTreeSet<_>>()
        };
        assert_eq!(names(asked), names(done.split("#[cfg(test)]").next().unwrap()));
    }
}
