//! What roles read of L1, as a seam: the client of the contracts implements it, tests and simulations answer themselves.

pub(crate) mod accusations;
pub(crate) mod beacon;
pub(crate) mod client;
pub(crate) mod committee;
pub(crate) mod compared;
pub(crate) mod data;
pub(crate) mod data_standing;
pub(crate) mod entries;
pub(crate) mod epochs;
pub(crate) mod faults;
pub(crate) mod fetched;
pub(crate) mod hint_calls;
pub(crate) mod hints;
pub(crate) mod journal_reads;
pub(crate) mod ledger;
pub(crate) mod log_reads;
pub(crate) mod outputs;
pub(crate) mod postings;
pub(crate) mod queue;
pub(crate) mod recent;
pub(crate) mod remembered;
pub(crate) mod standing;
pub(crate) mod state_at;

use alloy_primitives::{Address, B256};
use async_trait::async_trait;
use blindfold_engine::L1Origin;
use blindfold_protocol::{BatchHeader, Epochs, HeaderId, L1Timing, SignedHeader};

use crate::{
    error::L1Error,
    events::{
        HintEvent, PostedLog,
        facts::{FallbackHeader, L1News, MAX_FORCED_ENTRIES, PendingFallbackHeader, VoidRun},
    },
    posting::{
        evidence::{DisputeContract, equivocation_evidence},
        hint_blobs::HintData,
        opened_data::KeyedBatch,
        run::{PostedRun, RunReference},
        run_data::CodedBatch,
    },
    reader::{
        accusations::OpenAccusation,
        client::L1Client,
        committee::AnnouncedEnd,
        data::{DataError, FoundData, PostedData},
        faults::Output,
        hints::{PostedHints, PublisherBond},
        postings::{PostedHead, Posting},
        queue::L1Deposit,
    },
};

/// What L1 says.
///
/// Everything here is about blocks that L1 holds for final, so an answer never changes but by what comes after it; but
/// for [`newest`](Self::newest), [`newest_time`](Self::newest_time), [`block_hash`](Self::block_hash),
/// [`l1_headers_not_final`](Self::l1_headers_not_final), and where a question says that it is about the newest block,
/// or that its last one need not be final.
///
/// The client answers everything. Whoever answers for a part only, as the script of a test, leaves the rest to what stands
/// here: [`L1Error::Unsupported`].
#[async_trait]
pub trait L1Reader: Send + Sync {
    /// The newest final block, as far as L1 tells it.
    async fn finalized(&self) -> Result<L1Origin, L1Error>;

    /// The number of the newest block, final or not: by it L1 counts its deadlines.
    async fn newest(&self) -> Result<u64, L1Error> {
        unsupported("newest")
    }

    /// When the newest block was made, final or not, in seconds; `None` where that is not known.
    async fn newest_time(&self) -> Result<Option<u64>, L1Error> {
        Ok(None)
    }

    /// The newest final and the newest block, by number.
    async fn blocks(&self) -> Result<L1Blocks, L1Error> {
        let finalized = self.finalized().await?.number;
        let newest = self.newest().await?.max(finalized);
        Ok(L1Blocks { finalized, newest })
    }

    /// The deadlines of the deployment. They never change.
    async fn timing(&self) -> Result<L1Timing, L1Error> {
        unsupported("timing")
    }

    /// The block of this number, `None` while it is not final here.
    async fn origin(&self, _number: u64) -> Result<Option<L1Origin>, L1Error> {
        unsupported("origin")
    }

    /// The hash of the block of this number on L1's newest chain, final or not; `None` where whoever answers has none yet.
    async fn block_hash(&self, number: u64) -> Result<Option<B256>, L1Error> {
        Ok(self.origin(number).await?.map(|origin| origin.hash))
    }

    /// The epochs registered in `CommitteeRegistry`, in order.
    async fn epochs(&self) -> Result<Epochs, L1Error> {
        unsupported("epochs")
    }

    /// The end of an epoch at the head that is announced, and that nothing has taken back; whether or not it is due. Asked
    /// often, so answered from what is known already.
    async fn announced_end(&self) -> Result<Option<AnnouncedEnd>, L1Error> {
        unsupported("announced_end")
    }

    /// Everything that the validity rule asks of blocks `after + 1 ..= through`, and the forced queue from entry
    /// `cursor` on as far as it stood at block `through`, at most [`MAX_FORCED_ENTRIES`]. `through` is final and not
    /// below `after`.
    async fn facts(&self, _after: u64, _through: u64, _cursor: u64) -> Result<L1News, L1Error> {
        unsupported("facts")
    }

    /// What was deposited for L2 in blocks `after + 1 ..= through`, in L1 order. `through` is final.
    async fn bridge_deposits(&self, _after: u64, _through: u64) -> Result<Vec<L1Deposit>, L1Error> {
        unsupported("bridge_deposits")
    }

    /// The header that L1 made for this number, if it made one.
    async fn l1_header(&self, _number: u64) -> Result<Option<FallbackHeader>, L1Error> {
        unsupported("l1_header")
    }

    /// The newest number for which L1 made a header. Asked often, so answered from what is known already.
    async fn last_l1_header(&self) -> Result<Option<u64>, L1Error> {
        unsupported("last_l1_header")
    }

    /// The headers that L1 made for this number and later ones, oldest first. Answered from what is known already.
    async fn l1_headers_from(&self, number: u64) -> Result<Vec<HeaderId>, L1Error> {
        let mut headers = Vec::new();
        for number in number..=self.last_l1_header().await?.unwrap_or_default() {
            let made = self.l1_header(number).await?;
            headers.extend(made.map(|made| HeaderId { number, hash: made.header.hash() }));
        }
        Ok(headers)
    }

    /// Number and L1 block of the oldest header that L1 made in a block after this one. Answered from what is known already.
    async fn first_l1_header_after(&self, l1_block: u64) -> Result<Option<(u64, u64)>, L1Error> {
        for number in 1..=self.last_l1_header().await?.unwrap_or_default() {
            if let Some(made) = self.l1_header(number).await?.filter(|made| made.l1_block > l1_block) {
                return Ok(Some((number, made.l1_block)));
            }
        }
        Ok(None)
    }

    /// The headers that L1 made in blocks that are not final yet, oldest first.
    async fn l1_headers_not_final(&self) -> Result<Vec<PendingFallbackHeader>, L1Error> {
        Ok(Vec::new())
    }

    /// All runs that L1 declared void, in L1 order. Asked for every batch, so answered from what is known already.
    async fn void_runs(&self) -> Result<Vec<VoidRun>, L1Error> {
        unsupported("void_runs")
    }

    /// The block in which this number was posted.
    async fn posted_at(&self, _number: u64) -> Result<Option<u64>, L1Error> {
        unsupported("posted_at")
    }

    /// Whether hints of this number stand on L1: an open posting, or a final one.
    async fn hints_on_l1(&self, _number: u64) -> Result<bool, L1Error> {
        unsupported("hints_on_l1")
    }

    /// The runs posted in blocks `after + 1 ..= through`, in order, with their data, and the headers that L1 made among
    /// them. `through` is final.
    async fn postings(&self, _after: u64, _through: u64) -> Result<Vec<Posting>, L1Error> {
        unsupported("postings")
    }

    /// The batches of these headers that were posted again in blocks `after + 1 ..= through`, as many as there are.
    /// `through` is final.
    async fn reposted_data(
        &self,
        _headers: &[BatchHeader],
        _after: u64,
        _through: u64,
    ) -> Result<FoundData, L1Error> {
        unsupported("reposted_data")
    }

    /// The runs posted in blocks `after + 1 ..= through`, certified or made by L1, and the hashes of their last headers, in
    /// order, without their data. `through` need not be final.
    async fn posted_runs(&self, _after: u64, _through: u64) -> Result<Vec<(RunReference, B256)>, L1Error> {
        unsupported("posted_runs")
    }

    /// For each header of a posted run its batch as L1 holds it: beside the header, or posted again up to block `through`,
    /// which is final. Where one is missing: why. `own`: batches of it that the caller has, with keys of items whose proof is
    /// right and that they open rightly.
    async fn posted_data(
        &self,
        _run: &RunReference,
        _own: Vec<KeyedBatch>,
        _through: u64,
    ) -> Result<PostedData, L1Error> {
        unsupported("posted_data")
    }

    /// Whether data of kind 2, were they posted now, would give the these batches, of consecutive numbers, to whoever
    /// reads them, if that posting's keys are right. The inner error says why not.
    async fn would_give(
        &self,
        _data: &[u8],
        _batches: Vec<CodedBatch>,
    ) -> Result<Result<(), DataError>, L1Error> {
        unsupported("would_give")
    }

    /// The hints posted in blocks `after + 1 ..= through`, in order, right or wrong. `through` is final.
    async fn posted_hints(&self, _after: u64, _through: u64) -> Result<Vec<PostedHints>, L1Error> {
        unsupported("posted_hints")
    }

    /// What happened to hints in blocks `after + 1 ..= through`, in L1 order. `through` need not be final.
    async fn hint_events(&self, _after: u64, _through: u64) -> Result<Vec<HintEvent>, L1Error> {
        unsupported("hint_events")
    }

    /// How many blocks after a header's posting `FeeVault` pays out its ledger. Never changes.
    async fn claim_delay(&self) -> Result<u64, L1Error> {
        unsupported("claim_delay")
    }

    /// Where the inbox stands after the newest block.
    async fn posted_head(&self) -> Result<PostedHead, L1Error> {
        unsupported("posted_head")
    }

    /// The posted run that holds header `number`, not older than block `since`; `None` while it is not posted. It need
    /// not be final.
    async fn run_of(&self, _number: u64, _since: u64) -> Result<Option<PostedRun>, L1Error> {
        unsupported("run_of")
    }

    /// The accusations of the sequencer that wait for an answer after the newest block; none is older than block `since`.
    async fn open_accusations(&self, _since: u64) -> Result<Vec<OpenAccusation>, L1Error> {
        unsupported("open_accusations")
    }

    /// What L1 lets the sequencer claim after its newest block.
    async fn output_standing(&self) -> Result<OutputStanding, L1Error> {
        unsupported("output_standing")
    }

    /// Final claims about L2 blocks from `from` on, in order and without a gap, at most `limit`.
    async fn final_outputs(&self, _from: u64, _limit: usize) -> Result<Vec<Output>, L1Error> {
        unsupported("final_outputs")
    }

    /// The run and the hints of a posting, final or not; `None` when L1 has no such posting (any more). The inner error says
    /// why hints in blobs cannot be had.
    async fn hint_data(&self, _posted: &PostedLog) -> Result<Option<Result<HintData, DataError>>, L1Error> {
        unsupported("hint_data")
    }

    /// The least bond of a publisher with open postings, which answers for all of them, and what a challenge stakes, in wei.
    /// They never change.
    async fn hint_stakes(&self) -> Result<(u128, u128), L1Error> {
        unsupported("hint_stakes")
    }

    /// A publisher's bond after the newest block.
    async fn publisher_bond(&self, _publisher: Address) -> Result<PublisherBond, L1Error> {
        unsupported("publisher_bond")
    }

    /// Whether both headers were shown with their signer's signature, each beside another one, after this L1 block, or after
    /// the newest for `None`. Else the two are evidence of their own.
    async fn are_shown(&self, _pair: &[SignedHeader; 2], _block: Option<u64>) -> Result<bool, L1Error> {
        unsupported("are_shown")
    }

    /// The L1 block of a commitment to evidence; `None` for none, or when it is used up.
    async fn committed_at(
        &self,
        _contract: DisputeContract,
        _commitment: B256,
    ) -> Result<Option<u64>, L1Error> {
        unsupported("committed_at")
    }

    /// What waits to be claimed by an account, in wei.
    async fn reward_of(&self, _contract: DisputeContract, _account: Address) -> Result<u128, L1Error> {
        unsupported("reward_of")
    }
}

/// How far L1 has come, by block numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct L1Blocks {
    /// Number of the newest final block.
    pub finalized: u64,
    /// Number of the newest block; not below the final one.
    pub newest: u64,
}

/// What L1 lets the sequencer claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputStanding {
    /// The last L2 block with a claim; 0 for none.
    pub last_block: u64,
    /// Number of the last posted header; 0 before the first.
    pub head: u64,
    /// Its time, in milliseconds; 0 before the first.
    pub head_timestamp_ms: u64,
}

pub(crate) fn unsupported<T>(what: &'static str) -> Result<T, L1Error> {
    Err(L1Error::Unsupported { what })
}

#[async_trait]
impl L1Reader for L1Client {
    async fn finalized(&self) -> Result<L1Origin, L1Error> {
        L1Client::finalized(self).await
    }

    async fn newest(&self) -> Result<u64, L1Error> {
        self.newest_block().await
    }

    async fn origin(&self, number: u64) -> Result<Option<L1Origin>, L1Error> {
        L1Client::origin(self, number).await
    }

    async fn epochs(&self) -> Result<Epochs, L1Error> {
        L1Client::epochs(self).await
    }

    async fn announced_end(&self) -> Result<Option<AnnouncedEnd>, L1Error> {
        self.final_end().await
    }

    async fn facts(&self, after: u64, through: u64, cursor: u64) -> Result<L1News, L1Error> {
        Ok(L1News {
            ledger: self.ledger_events(after, through).await?,
            forced: self.forced_entries(cursor, MAX_FORCED_ENTRIES, through).await?,
        })
    }

    async fn bridge_deposits(&self, after: u64, through: u64) -> Result<Vec<L1Deposit>, L1Error> {
        L1Client::bridge_deposits(self, after, through).await
    }

    async fn l1_header(&self, number: u64) -> Result<Option<FallbackHeader>, L1Error> {
        let made = self.all_l1_headers().await?;
        let Some(made) = made.iter().find(|made| made.header.number == number) else { return Ok(None) };
        let (header, l1_block) = (made.header, made.l1_block);
        let count = u64::from(header.envelope_count);
        let items = if count == 0 {
            Vec::new()
        } else {
            // Its items are the entries up to its cursor. Too few of them show when it is applied.
            let from = header.forced_cursor.saturating_sub(count);
            let entries = self.forced_entries(from, header.envelope_count as usize, l1_block).await?;
            entries.into_iter().map(|entry| entry.item).collect()
        };
        Ok(Some(FallbackHeader { header, items, l1_block }))
    }

    async fn last_l1_header(&self) -> Result<Option<u64>, L1Error> {
        Ok(self.all_l1_headers().await?.last().map(|made| made.header.number))
    }

    async fn l1_headers_from(&self, number: u64) -> Result<Vec<HeaderId>, L1Error> {
        let made = self.all_l1_headers().await?;
        let later = made.iter().map(|made| &made.header).filter(|header| header.number >= number);
        Ok(later.map(|header| HeaderId { number: header.number, hash: header.hash() }).collect())
    }

    async fn first_l1_header_after(&self, l1_block: u64) -> Result<Option<(u64, u64)>, L1Error> {
        let made = self.all_l1_headers().await?;
        let after = made.iter().find(|made| made.l1_block > l1_block);
        Ok(after.map(|made| (made.header.number, made.l1_block)))
    }

    async fn l1_headers_not_final(&self) -> Result<Vec<PendingFallbackHeader>, L1Error> {
        L1Client::l1_headers_not_final(self).await
    }

    async fn block_hash(&self, number: u64) -> Result<Option<B256>, L1Error> {
        L1Client::block_hash(self, number).await
    }

    async fn void_runs(&self) -> Result<Vec<VoidRun>, L1Error> {
        let runs = self.all_void_runs().await?;
        Ok(runs.into_iter().map(|(first, last)| VoidRun { first, last }).collect())
    }

    async fn posted_at(&self, number: u64) -> Result<Option<u64>, L1Error> {
        L1Client::posted_at(self, number).await
    }

    async fn hints_on_l1(&self, number: u64) -> Result<bool, L1Error> {
        L1Client::hints_on_l1(self, number).await
    }

    async fn newest_time(&self) -> Result<Option<u64>, L1Error> {
        Ok(Some(L1Client::newest_time(self).await?))
    }

    async fn postings(&self, after: u64, through: u64) -> Result<Vec<Posting>, L1Error> {
        L1Client::postings(self, after, through).await
    }

    async fn reposted_data(
        &self,
        headers: &[BatchHeader],
        after: u64,
        through: u64,
    ) -> Result<FoundData, L1Error> {
        L1Client::reposted_data(self, headers, after, through).await
    }

    async fn posted_runs(&self, after: u64, through: u64) -> Result<Vec<(RunReference, B256)>, L1Error> {
        L1Client::posted_runs(self, after, through).await
    }

    async fn posted_data(
        &self,
        run: &RunReference,
        own: Vec<KeyedBatch>,
        through: u64,
    ) -> Result<PostedData, L1Error> {
        L1Client::posted_data(self, run, own, through).await
    }

    async fn would_give(
        &self,
        data: &[u8],
        batches: Vec<CodedBatch>,
    ) -> Result<Result<(), DataError>, L1Error> {
        L1Client::would_give(self, data, batches).await
    }

    async fn posted_hints(&self, after: u64, through: u64) -> Result<Vec<PostedHints>, L1Error> {
        L1Client::posted_hints(self, after, through).await
    }

    async fn hint_events(&self, after: u64, through: u64) -> Result<Vec<HintEvent>, L1Error> {
        L1Client::hint_events(self, after, through).await
    }

    async fn claim_delay(&self) -> Result<u64, L1Error> {
        Ok(L1Client::claim_delay(self).await?.into())
    }

    async fn timing(&self) -> Result<L1Timing, L1Error> {
        L1Client::timing(self).await
    }

    async fn posted_head(&self) -> Result<PostedHead, L1Error> {
        L1Client::posted_head(self).await
    }

    async fn run_of(&self, number: u64, since: u64) -> Result<Option<PostedRun>, L1Error> {
        L1Client::run_of(self, number, since).await
    }

    async fn open_accusations(&self, since: u64) -> Result<Vec<OpenAccusation>, L1Error> {
        L1Client::open_accusations(self, since).await
    }

    async fn output_standing(&self) -> Result<OutputStanding, L1Error> {
        let last_block = self.last_output().await?;
        let head = L1Client::posted_head(self).await?;
        Ok(OutputStanding { last_block, head: head.number, head_timestamp_ms: head.timestamp_ms })
    }

    async fn final_outputs(&self, from: u64, limit: usize) -> Result<Vec<Output>, L1Error> {
        L1Client::final_outputs(self, from, limit).await
    }

    async fn hint_data(&self, posted: &PostedLog) -> Result<Option<Result<HintData, DataError>>, L1Error> {
        L1Client::hint_data(self, posted).await
    }

    async fn hint_stakes(&self) -> Result<(u128, u128), L1Error> {
        L1Client::hint_stakes(self).await
    }

    async fn publisher_bond(&self, publisher: Address) -> Result<PublisherBond, L1Error> {
        L1Client::publisher_bond(self, publisher).await
    }

    async fn are_shown(&self, pair: &[SignedHeader; 2], block: Option<u64>) -> Result<bool, L1Error> {
        let [one, two] = pair;
        let signer = one.signer(&self.config().deployment);
        let signer = signer.map_err(|error| L1Error::NotSent { reason: error.to_string() })?;
        self.shown_together(signer, equivocation_evidence(one, two), block).await
    }

    async fn committed_at(
        &self,
        contract: DisputeContract,
        commitment: B256,
    ) -> Result<Option<u64>, L1Error> {
        L1Client::committed_at(self, contract, commitment).await
    }

    async fn reward_of(&self, contract: DisputeContract, account: Address) -> Result<u128, L1Error> {
        let amount = match contract {
            DisputeContract::Hints => self.hint_reward(account).await?,
            DisputeContract::Inbox => self.reward(account).await?,
        };
        Ok(amount.saturating_to())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn the_client_leaves_no_question_to_what_stands_in_the_trait() {
        let (questions, answers) = include_str!("mod.rs").split_once("impl L1Reader for L1Client").unwrap();
        let names = |text: &str| {
            let functions = text.split("    async fn ").skip(1);
            functions.map(|rest| rest.split('(').next().unwrap().to_owned()).collect::<BTreeSet<_>>()
        };
        let answers = answers.split("#[cfg(test)]").next().unwrap();
        // Made of other answers, whoever gives them.
        let mut questions = names(questions);
        questions.remove("blocks");
        assert_eq!(questions, names(answers));
    }
}
