//! What `BlindedInbox` holds, and what was posted to it.

use std::sync::Arc;

use alloy_eips::BlockId;
use alloy_primitives::{Address, U256};
use alloy_sol_types::SolEvent;
use blindfold_protocol::{B256, BatchHeader, Certificate, HeaderId, SealedBatch};

use crate::{
    contracts::{BlindedInbox, from_contract},
    error::L1Error,
    events::{
        L1HeaderLog,
        facts::PendingFallbackHeader,
        logs::{FinalLog, malformed_log},
    },
    posting::{
        opened_data::KeyedBatch,
        run::{PostedRun, RunReference},
    },
    reader::{
        client::L1Client,
        committee::decompress_signature,
        data::{DataError, InboxCall, PostCall, PostedData, inbox_calls, unfit},
    },
};

/// The last header that was posted, or made by L1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PostedHead {
    /// Its number; 0 before the first.
    pub number: u64,
    /// Its hash; the genesis hash before the first.
    pub hash: B256,
    /// Its time, in milliseconds; 0 before the first.
    pub timestamp_ms: u64,
    /// Its L1 origin; 0 before the first.
    pub l1_origin_number: u64,
    /// Its cursor into the forced queue.
    pub forced_cursor: u64,
    /// The L1 block after which it is the head, the newest that whoever answered knows.
    pub block: u64,
}

/// What answers for a sequencer's faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bond {
    /// In wei, without what is announced to be taken out.
    pub amount: U256,
    /// What the sequencer announced to take out, in wei.
    pub withdrawal: u128,
    /// When it may, if nothing certified is posted until then, Unix seconds; 0 when nothing is announced.
    pub unlocks_at: u64,
    /// When the announcement lapses, Unix seconds; 0 when nothing is announced.
    pub expires_at: u64,
}

/// A run as it was posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posting {
    /// The final L1 block of the posting.
    pub l1_block: u64,
    /// Hash of the transaction that posted it.
    pub transaction: B256,
    /// What L1 commits to: the runs that it cut the headers into, in order; mostly one.
    pub runs: Vec<RunReference>,
    /// The headers of all of them, checked to be chained and to be what the events say.
    pub headers: Vec<BatchHeader>,
    /// The certificate of the last header, which L1 verified; `None` for a header that L1 made itself.
    pub certificate: Option<Certificate>,
    /// The batches that came along. Others may be posted again ([`L1Client::reposted_data`]).
    pub data: PostedData,
}

impl Posting {
    /// First and last number of the headers; zero for a posting without any, which no client gives.
    pub fn numbers(&self) -> (u64, u64) {
        let number = |header: Option<&BatchHeader>| header.map_or(0, |header| header.number);
        (number(self.headers.first()), number(self.headers.last()))
    }

    /// Those of its headers whose data did not come along.
    pub fn lacking(&self) -> Vec<BatchHeader> {
        let places = self.headers.iter().zip(&self.data.batches);
        places.filter(|(_, batch)| batch.is_none()).map(|(header, _)| *header).collect()
    }
}

impl L1Client {
    /// Where the inbox stands after the newest block, which may not be final.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn posted_head(&self) -> Result<PostedHead, L1Error> {
        self.posted_head_at(self.newest_block().await?).await
    }

    /// Where the inbox stands after the newest final block.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn final_posted_head(&self) -> Result<PostedHead, L1Error> {
        self.posted_head_at(self.finalized().await?.number).await
    }

    /// Where the inbox stood after this block.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn posted_head_at(&self, block: u64) -> Result<PostedHead, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let rpc = &self.inner.rpc;
        // Both of one block, so that number and hash belong together.
        let head = rpc.view_at("head", inbox, &BlindedInbox::headCall {}, block).await?;
        let hash = rpc.view_at("headHash", inbox, &BlindedInbox::headHashCall {}, block).await?;
        Ok(PostedHead {
            number: head.number,
            hash,
            timestamp_ms: head.timestampMs,
            l1_origin_number: head.l1OriginNumber,
            forced_cursor: head.forcedCursor,
            block,
        })
    }

    /// The key that signs headers whose L1 origin is the newest block.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn sequencer(&self) -> Result<Address, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        self.inner.rpc.view("sequencer", inbox, &BlindedInbox::sequencerCall {}).await
    }

    /// A sequencer's bond after the newest block.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn bond(&self, sequencer: Address) -> Result<Bond, L1Error> {
        self.bond_at(sequencer, BlockId::latest()).await
    }

    pub(crate) async fn bond_at(&self, sequencer: Address, block: BlockId) -> Result<Bond, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let rpc = &self.inner.rpc;
        let call = BlindedInbox::bondOfCall { sequencer_: sequencer };
        let amount = rpc.view_at("bondOf", inbox, &call, block).await?;
        let call = BlindedInbox::withdrawalOfCall { sequencer_: sequencer };
        let announced = rpc.view_at("withdrawalOf", inbox, &call, block).await?;
        Ok(Bond {
            amount,
            withdrawal: announced.amount,
            unlocks_at: announced.unlocksAt,
            expires_at: announced.expiresAt,
        })
    }

    /// What waits for `reporter` to be claimed, in wei.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn reward(&self, reporter: Address) -> Result<U256, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let call = BlindedInbox::rewardsCall { reporter };
        self.inner.rpc.view("rewards", inbox, &call).await
    }

    /// The runs posted in blocks `after + 1 ..= through`, in order, those that L1 made itself among them. `through` is
    /// final. Data in blobs is fetched from the beacon node; where it fails, that data is missing.
    ///
    /// # Errors
    /// [`L1Error::NotFinal`]; [`L1Error::Malformed`] when events and transactions do not fit each other; the errors
    /// of a call.
    pub async fn postings(&self, after: u64, through: u64) -> Result<Vec<Posting>, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let topics = [
            BlindedInbox::Posted::SIGNATURE_HASH,
            BlindedInbox::BlobsPosted::SIGNATURE_HASH,
            BlindedInbox::L1Header::SIGNATURE_HASH,
        ];
        let logs = self.final_logs(inbox, &topics, after, through).await?;
        let mut postings = Vec::new();
        for call in inbox_calls(&logs)? {
            match (call.made, call.posted.as_slice()) {
                (_, []) => {}
                (Some(header), [(log, event), ..]) => {
                    postings.push(self.l1_made_posting(log, event, header).await?);
                }
                (None, _) => postings.push(self.read_posting(&call).await?.1),
            }
        }
        Ok(postings)
    }

    /// The runs posted in blocks `after + 1 ..= through` and the hashes of their last headers, in order, without their
    /// data. `through` need not be final.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn posted_runs(&self, after: u64, through: u64) -> Result<Vec<(RunReference, B256)>, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let topics = [BlindedInbox::Posted::SIGNATURE_HASH];
        let logs = self.logs_through(inbox, &topics, after, through).await?;
        let events = logs.iter().filter_map(|log| log.event::<BlindedInbox::Posted>().transpose());
        let run = |event: BlindedInbox::Posted| {
            let (first, last, posted_at) = (event.firstNumber, event.lastNumber, event.postedAt);
            (RunReference { first, last, posted_at, header_root: event.headerRoot }, event.headHash)
        };
        events.map(|event| event.map(run)).collect()
    }

    /// For each header of a posted run its batch as L1 holds it: beside the header, or posted again up to block `through`,
    /// which is final. With the sequencer's signatures. Where one is missing: why, above all when it may be in what cannot be
    /// read just now. Other runs of the same call are another look's.
    ///
    /// `own`: batches of it that the caller has, with keys of items whose proof is right and that they open rightly. What was
    /// opened is compared with them, and only what does not compare is encrypted again.
    ///
    /// # Errors
    /// As [`L1Client::postings`]; [`L1Error::Malformed`] where the run was not posted in its block.
    pub async fn posted_data(
        &self,
        run: &RunReference,
        own: Vec<KeyedBatch>,
        through: u64,
    ) -> Result<PostedData, L1Error> {
        let before = run.posted_at.saturating_sub(1);
        let postings = self.postings(before, run.posted_at).await?;
        let posting = postings.into_iter().find(|posting| posting.runs.contains(run));
        let posting = posting.ok_or_else(|| malformed_log(&format!("run {run:?} is not in its block")))?;
        let is_of_run = |number: u64| (run.first..=run.last).contains(&number);
        let lacking: Vec<_> =
            posting.lacking().into_iter().filter(|header| is_of_run(header.number)).collect();
        let mut data = posting.data;
        let (headers, batches): (Vec<_>, _) = posting
            .headers
            .into_iter()
            .zip(std::mem::take(&mut data.batches))
            .filter(|(header, _)| is_of_run(header.number))
            .unzip();
        data.batches = batches;
        let own = own.into_iter().map(|own| (own.batch.sealed.header.hash(), Arc::new(own))).collect();
        let again = self.reposted(&lacking, before, through, own).await?;
        for found in again.batches {
            let place = headers.iter().position(|header| *header == found.header);
            if let Some(place) = place.and_then(|place| data.batches.get_mut(place)) {
                *place = Some(found);
            }
        }
        let whole = data.batches.iter().all(Option::is_some);
        let passing = data.fault.take_if(|fault| fault.may_pass(through));
        data.fault = passing.or(again.unread).or(data.fault).filter(|_| !whole);
        Ok(data)
    }

    /// The headers that L1 made itself in blocks `after + 1 ..= through`, in order. `through` is final.
    ///
    /// # Errors
    /// [`L1Error::NotFinal`]; the errors of a call.
    pub async fn l1_headers(&self, after: u64, through: u64) -> Result<Vec<L1HeaderLog>, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let logs = self.final_logs(inbox, &[BlindedInbox::L1Header::SIGNATURE_HASH], after, through).await?;
        let mut headers = Vec::with_capacity(logs.len());
        for log in logs {
            let Some(event) = log.event::<BlindedInbox::L1Header>()? else { continue };
            let header = from_contract(&event.header);
            if (header.number, header.hash()) != (event.number, event.headerHash) {
                return Err(malformed_log(&format!("header {} is not what its event says", event.number)));
            }
            headers.push(L1HeaderLog { header, l1_block: log.block, transaction: log.transaction });
        }
        Ok(headers)
    }

    /// The headers that L1 made itself in blocks that are not final yet, in order. L1 may still take them back.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn l1_headers_not_final(&self) -> Result<Vec<PendingFallbackHeader>, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let (after, through) = (self.finalized().await?.number, self.newest_block().await?);
        let logs = self.newest_logs(inbox, &[BlindedInbox::L1Header::SIGNATURE_HASH], after, through).await?;
        let mut headers = Vec::with_capacity(logs.len());
        for log in logs {
            if let Some(event) = log.event::<BlindedInbox::L1Header>()? {
                headers.push(PendingFallbackHeader {
                    header: HeaderId { number: event.number, hash: event.headerHash },
                    l1_block: log.block,
                    l1_hash: log.block_hash,
                });
            }
        }
        Ok(headers)
    }

    async fn l1_made_posting(
        &self,
        log: &FinalLog,
        event: &BlindedInbox::Posted,
        header: BatchHeader,
    ) -> Result<Posting, L1Error> {
        let run = check_run(log, event, std::slice::from_ref(&header))?;
        // Its items are the entries of the forced queue up to its cursor.
        let count = u64::from(header.envelope_count);
        let data = match header.forced_cursor.checked_sub(count) {
            Some(from) => {
                let entries = self.forced_entries(from, count as usize, log.block).await?;
                let items: Vec<Vec<u8>> = entries.into_iter().map(|entry| entry.item.to_vec()).collect();
                let complete = items.len() as u64 == count;
                let batch = SealedBatch::by_l1(header, items);
                if complete {
                    PostedData::of(vec![batch])
                } else {
                    PostedData::missing(1, DataError::Mismatch)
                }
            }
            None => PostedData::missing(1, DataError::Mismatch),
        };
        let (l1_block, transaction) = (log.block, log.transaction);
        let (runs, headers) = (vec![run], vec![header]);
        Ok(Posting { l1_block, transaction, runs, headers, certificate: None, data })
    }

    /// What a call of `post` posted, and the call.
    pub(crate) async fn read_posting(&self, call: &InboxCall<'_>) -> Result<(PostCall, Posting), L1Error> {
        let log = call.log;
        let post = self.read_post(call).await?.ok_or_else(|| unlike(log))?;
        let first = call.posted.first().map(|(_, event)| event.firstNumber).unwrap_or_default();
        // The data is for all headers of the call, and so for those that were passed over as well.
        let (_, headers) = headers_from(&post.call, first).ok_or_else(|| unlike(log))?;
        let events: Vec<_> = call.posted.iter().map(|(_, event)| event).collect();
        let runs = check_runs(log, &events, &headers)?;
        let signature = decompress_signature(&post.call.certificate.signature)
            .ok_or_else(|| unfit(&"a posted signature that is no point"))?;
        let certificate = headers.last().map(|last| Certificate {
            epoch: last.epoch,
            number: last.number,
            header_hash: last.hash(),
            signers: post.call.certificate.signers,
            signature: signature.to_bytes(),
        });
        let data = self.data_of(&post, &headers).await?;
        let (l1_block, transaction) = (log.block, log.transaction);
        Ok((post, Posting { l1_block, transaction, runs, headers, certificate, data }))
    }
}

/// The headers of a call from number `first` on, and how many stand in front of them: those were posted before and passed
/// over, so that only the place of a header says its number (L-5).
pub(crate) fn headers_from(call: &BlindedInbox::postCall, first: u64) -> Option<(usize, Vec<BatchHeader>)> {
    let passed = usize::try_from(first.checked_sub(call.headers.first()?.number)?).ok()?;
    Some((passed, call.headers.get(passed..)?.iter().map(from_contract).collect()))
}

/// The headers of one transaction, cut where its events say, each piece as [`check_run`] has it.
fn check_runs(
    log: &FinalLog,
    events: &[&BlindedInbox::Posted],
    headers: &[BatchHeader],
) -> Result<Vec<RunReference>, L1Error> {
    let mut runs: Vec<RunReference> = Vec::new();
    let (mut rest, mut parent) = (headers, None);
    for event in events {
        let length = (event.lastNumber - event.firstNumber.min(event.lastNumber)).saturating_add(1);
        let cut = usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length));
        let (run, after) = cut.ok_or_else(|| unlike(log))?;
        let follows = |header: &BatchHeader| parent.is_none_or(|parent| header.parent_hash == parent);
        if !run.first().is_some_and(follows) {
            return Err(unlike(log));
        }
        runs.push(check_run(log, event, run)?);
        (rest, parent) = (after, Some(event.headHash));
    }
    if rest.is_empty() { Ok(runs) } else { Err(unlike(log)) }
}

fn unlike(log: &FinalLog) -> L1Error {
    unfit(&format!("transaction {} is not what its event says", log.transaction))
}

/// Headers as the event says: chained, and ending in its hash and root.
pub(crate) fn check_run(
    log: &FinalLog,
    event: &BlindedInbox::Posted,
    headers: &[BatchHeader],
) -> Result<RunReference, L1Error> {
    let chained = headers.iter().zip(headers.iter().skip(1)).all(|(a, b)| b.parent_hash == a.hash());
    let run = PostedRun::new(headers.to_vec(), event.postedAt).ok_or_else(|| unlike(log))?.run;
    let head_hash = headers.last().map(BatchHeader::hash);
    let said = (event.firstNumber, event.lastNumber, event.headerRoot, Some(event.headHash), event.postedAt);
    if !chained || said != (run.first, run.last, run.header_root, head_hash, log.block) {
        return Err(unlike(log));
    }
    Ok(run)
}
