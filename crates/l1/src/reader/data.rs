//! The data of posted headers: what counts, wherever it stands.
//!
//! One rule for all readers. The data of a certified header is a batch that fits its data hash and bears the sequencer's
//! signature. It may stand beside the header or be posted again, by anybody, alone or among others: what L1 holds is put
//! together number by number. What cannot be read counts for nothing. A header that L1 made has its items in the forced
//! queue.

use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, Bytes, keccak256};
use alloy_sol_types::{SolCall, SolEvent};
use blindfold_protocol::{
    B256, BatchHeader, Canonical, DecodeError, Epochs, SealedBatch, data::KIND_OPENED,
    validity::check_signature,
};

use crate::{
    contracts::{BlindedInbox, from_contract},
    error::L1Error,
    events::logs::FinalLog,
    posting::{
        archived::ArchivedData,
        blobs::BlobError,
        parts::{OwnBatches, Search},
        place::{DataName, OnL1},
        run_data::{DataPart, Entries, MAX_RUN_BATCHES, PartName},
    },
    reader::{client::L1Client, fetched::DataLook},
};

/// L1 blocks that are read in one step: what was logged in them is in memory at once.
const DATA_STEP_BLOCKS: u64 = 64;

/// Why the data that came with headers is of no use. Look for it in data that was posted again, or ask a member (PD-3).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DataError {
    /// The posting had no data, neither in calldata nor in blobs.
    #[error("no data came with the headers")]
    Absent,
    /// The bytes are no `RunData`.
    #[error("the data cannot be read: {0}")]
    Decode(#[from] DecodeError),
    /// It does not fit the headers.
    #[error("the data does not fit the headers")]
    Mismatch,
    /// It refers to a posting of hints that is not there.
    #[error("the data is to be opened with hint posting {0}, which is not where it says")]
    Hints(u64),
    /// It fits, and the sequencer did not sign it.
    #[error("the data does not carry the sequencer's signatures")]
    Unsigned,
    /// It came in blobs, and no beacon node is configured.
    #[error("the data is in blobs, and there is no beacon node to ask")]
    NoBeacon,
    /// The beacon node does not answer, or with nonsense.
    #[error("the data is in blobs, and the beacon node does not give them: {0}")]
    Beacon(L1Error),
    /// The beacon node no longer has its blobs.
    #[error("the beacon node does not have the blobs of L1 block {0}")]
    Pruned(u64),
    /// L1 only names it, and no archive is configured.
    #[error("the data is in an archive, and there is none to ask")]
    NoArchive,
    /// L1 only names it, and no archive gives it.
    #[error("no archive gives the data {hash}: {fault}")]
    Withheld {
        /// Its SHA-256.
        hash: B256,
        /// What the archive did that was asked last.
        fault: Box<L1Error>,
    },
    /// Its blobs hold no data.
    #[error(transparent)]
    Blobs(#[from] BlobError),
}

impl DataError {
    /// Whether it says nothing of the data, and another try may read it, as of this final block: a beacon node that fails
    /// may come back, and one that lacks what all of them should still keep may get it.
    pub fn may_pass(&self, finalized: u64) -> bool {
        match self {
            Self::Beacon(_) => true,
            // Anybody can name what no archive was ever given: one that says that it has not got it is believed.
            Self::Withheld { fault, .. } => fault.is_transient(),
            Self::Pruned(l1_block) => finalized.saturating_sub(*l1_block) < BLOB_RETENTION_BLOCKS,
            _ => false,
        }
    }

    /// Whether it is not in calldata, and not to be had.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.is_of_blobs() || matches!(self, Self::NoArchive | Self::Withheld { .. })
    }

    /// Whether it stands in blobs that are not to be had.
    pub(crate) fn is_of_blobs(&self) -> bool {
        matches!(self, Self::NoBeacon | Self::Beacon(_) | Self::Pruned(_))
    }
}

/// What came along with posted headers, as far as it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostedData {
    /// For each header its batch, where it came along.
    pub batches: Vec<Option<SealedBatch>>,
    /// Why one is missing; `None` when none is.
    pub fault: Option<DataError>,
}

impl PostedData {
    /// No data for this many headers.
    pub fn missing(headers: usize, fault: DataError) -> Self {
        Self { batches: vec![None; headers], fault: Some(fault) }
    }

    /// The batches of all headers.
    pub fn of(batches: Vec<SealedBatch>) -> Self {
        Self { batches: batches.into_iter().map(Some).collect(), fault: None }
    }

    /// The batches of all headers, or why one is missing.
    ///
    /// # Errors
    /// What was the matter with the first that is missing.
    pub fn whole(&self) -> Result<Vec<SealedBatch>, DataError> {
        let all: Option<Vec<SealedBatch>> = self.batches.iter().cloned().collect();
        all.ok_or_else(|| self.fault.clone().unwrap_or(DataError::Absent))
    }

    /// The batches of these headers, by what posted data hold of them.
    pub(crate) fn of_entries(
        mut entries: Entries,
        headers: &[BatchHeader],
        signed: impl Fn(&SealedBatch) -> bool,
    ) -> Self {
        let mut fault = None;
        let mut read = |header: &BatchHeader| {
            let joined = entries.remove(&header.number);
            let why = if joined.is_some() { DataError::Unsigned } else { DataError::Mismatch };
            let batch = joined.filter(&signed);
            if batch.is_none() {
                fault.get_or_insert(why);
            }
            batch
        };
        let batches = headers.iter().map(&mut read).collect();
        Self { batches, fault }
    }
}

/// What one transaction did to the inbox, by its logs. An inbox is called directly: that is one call.
pub(crate) struct InboxCall<'a> {
    /// The first of its logs, which says block and transaction.
    pub log: &'a FinalLog,
    /// The runs that it posted.
    pub posted: Vec<(&'a FinalLog, BlindedInbox::Posted)>,
    /// The header that L1 made in it.
    pub made: Option<BatchHeader>,
    again: Option<BlindedInbox::PostedAgain>,
    part: Option<BlindedInbox::DataPosted>,
    blobs: Vec<B256>,
}

/// The transactions that these logs are of, in order.
pub(crate) fn inbox_calls(logs: &[FinalLog]) -> Result<Vec<InboxCall<'_>>, L1Error> {
    let mut calls = Vec::new();
    for logs in logs.chunk_by(|a, b| a.transaction == b.transaction) {
        let [log, ..] = logs else { continue };
        let mut call =
            InboxCall { log, posted: Vec::new(), made: None, again: None, part: None, blobs: Vec::new() };
        for log in logs {
            if let Some(event) = log.event::<BlindedInbox::Posted>()? {
                call.posted.push((log, event));
            } else if let Some(event) = log.event::<BlindedInbox::L1Header>()? {
                call.made = Some(from_contract(&event.header));
            } else if let Some(event) = log.event::<BlindedInbox::BlobsPosted>()? {
                call.blobs = event.versionedHashes;
            } else if let Some(event) = log.event::<BlindedInbox::PostedAgain>()? {
                call.blobs.clone_from(&event.versionedHashes);
                call.again = Some(event);
            } else if let Some(event) = log.event::<BlindedInbox::DataPosted>()? {
                call.blobs.clone_from(&event.versionedHashes);
                call.part = Some(event);
            }
        }
        calls.push(call);
    }
    Ok(calls)
}

impl InboxCall<'_> {
    /// Number of the last header that it posted.
    pub fn last_posted(&self) -> Option<u64> {
        self.posted.last().map(|(_, event)| event.lastNumber)
    }

    /// First and last number of the headers that it posted.
    pub fn posted_span(&self) -> Option<(u64, u64)> {
        let first = self.posted.first().map(|(_, event)| event.firstNumber);
        first.zip(self.last_posted())
    }

    /// The numbers of headers posted before of which it may hold the data.
    pub fn others(&self) -> Option<(u64, u64)> {
        let longest = MAX_RUN_BATCHES as u64 - 1;
        let again = self.again.as_ref().map(|event| (event.firstNumber, event.lastNumber));
        let part =
            |event: &BlindedInbox::DataPosted| (event.firstNumber, event.firstNumber.saturating_add(longest));
        again.or_else(|| self.part.as_ref().map(part))
    }

    /// Who posted data of headers that were there before.
    pub fn poster(&self) -> Option<Address> {
        let again = self.again.as_ref().map(|event| event.poster);
        again.or_else(|| self.part.as_ref().map(|event| event.poster))
    }

    /// Whether it may hold data that is looked for.
    pub fn concerns(&self, search: &Search) -> bool {
        self.others().is_some_and(|(first, last)| search.wants(first, last))
    }
}

/// What one call brought of the batches that are looked for, or why its data cannot be read.
#[derive(Default)]
pub(crate) struct Searched {
    pub batches: Vec<SealedBatch>,
    pub fault: Option<DataError>,
    /// The account that posted it.
    pub poster: Option<Address>,
    /// Which part of which data it brings of headers that were there before, as far as it says.
    pub part: Option<PartName>,
    /// Whether it brings batches as what they were opened to.
    pub is_opened: bool,
}

/// What the input of a call has for data of headers that were there before, or that it posts.
struct Brought {
    poster: Address,
    l1_block: u64,
    /// Number of the first header that it is for.
    from: u64,
    /// Whether it is a part, as `postData` brings it.
    is_part: bool,
    /// Which one, by what the call says of headers that were there before.
    part: Option<PartName>,
    data: Bytes,
}

impl Brought {
    /// `None` where the input does not decode.
    fn of(call: &InboxCall<'_>, sender: Address, input: &[u8]) -> Option<Self> {
        let l1_block = call.log.block;
        if let Some(event) = &call.part {
            let data = BlindedInbox::postDataCall::abi_decode(input).ok()?.data;
            let (from, part) = (event.firstNumber, PartName::of_call(event.firstNumber, input));
            return Some(Self { poster: event.poster, l1_block, from, is_part: true, part, data });
        }
        let BlindedInbox::postCall { headers, data, .. } = BlindedInbox::postCall::abi_decode(input).ok()?;
        let (from, part) = (headers.first()?.number, call.others().map(PartName::whole));
        Some(Self { poster: sender, l1_block, from, is_part: false, part, data })
    }

    /// How what it names is looked through.
    fn look(&self, named: DataName, search: &Search) -> DataLook {
        let (from, is_part) = (self.from, self.is_part);
        DataLook { from, is_part, named, wanted: search.wanted_of(from) }
    }

    /// Nothing was read of it.
    fn unread(&self, fault: DataError) -> Searched {
        let (fault, poster) = (Some(fault), Some(self.poster));
        Searched { fault, poster, part: self.part, ..Searched::default() }
    }
}

/// What a call of `post` brought.
pub(crate) struct PostCall {
    pub call: BlindedInbox::postCall,
    /// The account that sent the transaction.
    pub sender: Address,
    l1_block: u64,
    data: Result<Bytes, DataError>,
}

impl PostCall {
    /// Number of its first header, which its data begins with.
    fn from(&self) -> Option<u64> {
        self.call.headers.first().map(|header| header.number)
    }
}

/// What was found of batches that are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundData {
    /// Those that are there, in order, with the sequencer's signatures.
    pub batches: Vec<SealedBatch>,
    /// Why something that may hold others could not be read just now: look again soon.
    pub unread: Option<DataError>,
}

/// How long beacon nodes keep blobs at least, in L1 blocks: 4,096 epochs.
pub(crate) const BLOB_RETENTION_BLOCKS: u64 = 4_096 * 32;

impl L1Client {
    /// The batches of these headers that were posted again in blocks `after + 1 ..= through`: alone or with further
    /// headers (`postData`), or in a call of `post` that came when they were posted already (PD-2).
    ///
    /// # Errors
    /// As [`L1Client::postings`].
    pub async fn reposted_data(
        &self,
        headers: &[BatchHeader],
        after: u64,
        through: u64,
    ) -> Result<FoundData, L1Error> {
        self.reposted(headers, after, through, OwnBatches::new()).await
    }

    /// The same for whoever has these batches.
    pub(crate) async fn reposted(
        &self,
        headers: &[BatchHeader],
        after: u64,
        through: u64,
        own: OwnBatches,
    ) -> Result<FoundData, L1Error> {
        let topics = [BlindedInbox::DataPosted::SIGNATURE_HASH, BlindedInbox::PostedAgain::SIGNATURE_HASH];
        let inbox = self.inner.config.deployment.inbox;
        let mut search = Search::with_own(own);
        search.want(headers.iter().copied());
        let mut found = FoundData::default();
        let newest = through;
        for (after, through) in steps(after, through) {
            if search.is_over() {
                break;
            }
            let logs = self.final_logs(inbox, &topics, after, through).await?;
            for call in inbox_calls(&logs)? {
                if call.concerns(&search) {
                    let Searched { batches, fault, .. } = self.search_call(&call, &mut search).await?;
                    found.batches.extend(batches);
                    found.unread = found.unread.or(fault.filter(|fault| fault.may_pass(newest)));
                }
            }
        }
        if search.is_over() {
            found.unread = None;
        }
        found.batches.sort_by_key(|batch| batch.header.number);
        Ok(found)
    }

    /// What a call brought of the batches that are looked for. Nobody checked its bytes: what cannot be read is passed over.
    pub(crate) async fn search_call(
        &self,
        call: &InboxCall<'_>,
        search: &mut Search,
    ) -> Result<Searched, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let (sender, input) = self.input_to(inbox, call.log.transaction).await?;
        let Some(brought) = Brought::of(call, sender, &input) else { return Ok(Searched::default()) };
        let posted = OnL1 { l1_block: brought.l1_block, input: &brought.data, blobs: &call.blobs };
        if let Some(named) = posted.archived() {
            return self.search_archived(&brought, (posted, named), search).await;
        }
        if let Some(named) = posted.in_blobs() {
            return self.search_blobs(&brought, (posted, named), search).await;
        }
        match self.posted_bytes(posted).await? {
            Ok(bytes) => self.search_bytes(&brought, &bytes, search).await,
            Err(fault) => Ok(brought.unread(fault)),
        }
    }

    /// The same of data that is in an archive: what was fetched in vain is not fetched again (DA-4).
    async fn search_archived(
        &self,
        brought: &Brought,
        (posted, named): (OnL1<'_>, ArchivedData),
        search: &mut Search,
    ) -> Result<Searched, L1Error> {
        let (fetched, from, is_part) = (&self.inner.fetched, brought.from, brought.is_part);
        let may_be = fetched.may_be(&named, |part| match part {
            Some(part) => is_part && part.first == from && search.wants(from, part.last),
            None => !is_part,
        });
        let look = brought.look(DataName::Archived(named), search);
        if !may_be || self.was_vain(&look, search) {
            return Ok(brought.unread(DataError::Mismatch));
        }
        let known = fetched.vain(&look.named);
        let is_new = known.is_none();
        let bytes = match known {
            Some(bytes) => bytes,
            None if search.may_fetch() => match self.posted_bytes(posted).await? {
                Ok(bytes) => bytes,
                Err(fault) => return Ok(brought.unread(fault)),
            },
            None => {
                let fault = Box::new(L1Error::no_answer(
                    "archives gave much that is of no use: the rest is fetched with the next look",
                ));
                return Ok(brought.unread(DataError::Withheld { hash: named.hash, fault }));
            }
        };
        let (length, wanted) = (bytes.len(), search.wanted_count());
        let searched = self.search_fetched(brought, look, bytes, search).await?;
        if is_new && search.wanted_count() == wanted {
            search.note_vain(length);
        }
        Ok(searched)
    }

    /// The same of data in blobs: those of no use are not fetched, and committed to, with each look (PD-3).
    async fn search_blobs(
        &self,
        brought: &Brought,
        (posted, named): (OnL1<'_>, DataName),
        search: &mut Search,
    ) -> Result<Searched, L1Error> {
        let fetched = &self.inner.fetched;
        let look = brought.look(named, search);
        if self.was_vain(&look, search) {
            return Ok(brought.unread(DataError::Mismatch));
        }
        let bytes = match fetched.vain(&named) {
            Some(bytes) => bytes,
            None => match self.posted_bytes(posted).await? {
                Ok(bytes) => bytes,
                Err(fault) => {
                    // What is no data never will be.
                    if matches!(fault, DataError::Blobs(_)) {
                        fetched.note_vain(look);
                    }
                    return Ok(brought.unread(fault));
                }
            },
        };
        self.search_fetched(brought, look, bytes, search).await
    }

    /// Whether nothing was found by this look before, in the same search or not long ago.
    fn was_vain(&self, look: &DataLook, search: &Search) -> bool {
        search.has_looked_at(look.from, look.is_part, look.named) || self.inner.fetched.was_vain(look)
    }

    /// The batches that are looked for in what was fetched, which is remembered where there are none.
    async fn search_fetched(
        &self,
        brought: &Brought,
        look: DataLook,
        bytes: Bytes,
        search: &mut Search,
    ) -> Result<Searched, L1Error> {
        let fetched = &self.inner.fetched;
        let wanted = search.wanted_count();
        let searched = self.search_bytes(brought, &bytes, search).await?;
        // Of several parts each poster's are others.
        let is_whole = !look.is_part || searched.part.is_none_or(|part| part.parts == 1);
        if is_whole {
            search.note_look(look.from, look.is_part, look.named);
        }
        if search.wanted_count() < wanted {
            fetched.forget_vain(&look.named);
            return Ok(searched);
        }
        // What opened data holds depends on hints, too.
        let stays = is_whole && searched.fault.is_none() && !searched.is_opened;
        if stays && brought.l1_block <= self.finalized().await?.number {
            fetched.note_vain(look);
        }
        fetched.keep_vain(look.named, bytes);
        Ok(searched)
    }

    /// The batches that are looked for in the bytes that a call brought.
    async fn search_bytes(
        &self,
        brought: &Brought,
        bytes: &[u8],
        search: &mut Search,
    ) -> Result<Searched, L1Error> {
        let (poster, mut part) = (Some(brought.poster), brought.part);
        let mut whole = None;
        if brought.is_part {
            let found = DataPart::decode(bytes).ok().filter(|part| part.first == brought.from);
            let Some(found) = found else { return Ok(Searched::default()) };
            part = Some(found.name());
            whole = search.complete(brought.poster, found);
            if whole.is_none() {
                return Ok(Searched { poster, part, ..Searched::default() });
            }
        }
        let data = whole.as_deref().unwrap_or(bytes);
        let is_opened = data.get(1) == Some(&KIND_OPENED);
        let (batches, fault) = self.search_data(brought.from, brought.l1_block, data, search).await?;
        Ok(Searched { batches, fault, poster, part, is_opened })
    }

    /// The batches that are looked for in this `RunData`, or why nothing of it can be read, if that may pass.
    async fn search_data(
        &self,
        from: u64,
        l1_block: u64,
        data: &[u8],
        search: &mut Search,
    ) -> Result<(Vec<SealedBatch>, Option<DataError>), L1Error> {
        let mut wanted = search.wanted_from(from);
        if search.asks_only_whether() {
            let hash = keccak256(data);
            let is_known = |header: &mut BatchHeader| {
                self.inner.compared.holds(from, &hash, &header.hash()) == Some(true)
            };
            for header in wanted.extract_if(.., is_known) {
                search.forget((header.number, header.number));
            }
        }
        if wanted.is_empty() {
            return Ok((Vec::new(), None));
        }
        match self.entries(from, l1_block, data, &wanted, search.own()).await? {
            Ok(entries) => {
                let epochs = self.epochs().await?;
                Ok((search.take(entries, |batch| self.is_signed(batch, &epochs)), None))
            }
            // Of data that cannot be read at all nothing is said; of hints in blobs, as of the blobs themselves.
            Err(fault) => Ok((Vec::new(), Some(fault).filter(DataError::is_of_blobs))),
        }
    }

    pub(crate) async fn search_post(
        &self,
        post: &PostCall,
        search: &mut Search,
    ) -> Result<Searched, L1Error> {
        let searched = Searched { poster: Some(post.sender), ..Searched::default() };
        let data = match &post.data {
            Ok(data) => data,
            Err(fault) => return Ok(Searched { fault: Some(fault.clone()), ..searched }),
        };
        let Some(from) = post.from() else { return Ok(Searched::default()) };
        let (batches, fault) = self.search_data(from, post.l1_block, data, search).await?;
        Ok(Searched { batches, fault, ..searched })
    }

    /// What a call of `post` brought of the batches of these headers of it.
    pub(crate) async fn data_of(
        &self,
        post: &PostCall,
        headers: &[BatchHeader],
    ) -> Result<PostedData, L1Error> {
        let missing = |fault| Ok(PostedData::missing(headers.len(), fault));
        match (&post.data, post.from()) {
            (Ok(data), Some(from)) => {
                let own = OwnBatches::new();
                match self.entries(from, post.l1_block, data, headers, &own).await? {
                    Ok(entries) => {
                        let epochs = self.epochs().await?;
                        Ok(PostedData::of_entries(entries, headers, |batch| self.is_signed(batch, &epochs)))
                    }
                    Err(fault) => missing(fault),
                }
            }
            (Ok(_), None) => missing(DataError::Mismatch),
            (Err(fault), _) => missing(fault.clone()),
        }
    }

    /// The call of `post` with its data; `None` when its input does not decode.
    pub(crate) async fn read_post(&self, call: &InboxCall<'_>) -> Result<Option<PostCall>, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let (sender, input) = self.input_to(inbox, call.log.transaction).await?;
        let Ok(decoded) = BlindedInbox::postCall::abi_decode(&input) else { return Ok(None) };
        let posted = OnL1 { l1_block: call.log.block, input: &decoded.data, blobs: &call.blobs };
        let data = self.posted_bytes(posted).await?;
        Ok(Some(PostCall { call: decoded, sender, l1_block: call.log.block, data }))
    }

    /// A header is certified by its hash, and posted without its signature: that comes with the data, from anybody. Its
    /// origin is final where its posting is (PD-1).
    pub(crate) fn is_signed(&self, batch: &SealedBatch, epochs: &Epochs) -> bool {
        let sequencer = epochs.sequencer_at(batch.header.l1_origin_number);
        let deployment = &self.inner.config.deployment;
        sequencer
            .is_some_and(|sequencer| check_signature(&batch.signed_header(), deployment, &sequencer).is_ok())
    }

    /// The blobs with these versioned hashes, in order, of an L1 block, or why they cannot be had, a beacon node that fails
    /// among the reasons; `None` when there is no such block, or none after it. Neither need be final: a wrong one names
    /// other blobs, which do not count.
    ///
    /// # Errors
    /// The errors of a call.
    pub(crate) async fn blobs_of(
        &self,
        l1_block: u64,
        hashes: &[B256],
    ) -> Result<Option<Result<Vec<Bytes>, DataError>>, L1Error> {
        let Some(beacon) = &self.inner.beacon else { return Ok(Some(Err(DataError::NoBeacon))) };
        let holder = self.block(l1_block).await?;
        let child = self.block(l1_block.saturating_add(1)).await?;
        let Some((holder, child)) = holder.zip(child) else { return Ok(None) };
        Ok(Some(match beacon.blobs(&holder, &child, hashes).await {
            Ok(found) => found.ok_or(DataError::Pruned(l1_block)),
            Err(error) => Err(DataError::Beacon(error)),
        }))
    }

    /// Sender and input of a transaction to a contract (L-7).
    pub(crate) async fn input_to(&self, contract: Address, hash: B256) -> Result<(Address, Bytes), L1Error> {
        let found = self.inner.rpc.transaction(hash).await?;
        let transaction = found.ok_or_else(|| unfit(&format!("transaction {hash} is missing")))?;
        if transaction.to() != Some(contract) {
            return Err(unfit(&format!("transaction {hash} does not go to {contract}")));
        }
        Ok((transaction.inner.signer(), transaction.input().clone()))
    }
}

/// The blocks `after + 1 ..= through` in steps, each as what it comes after and its last.
pub(crate) fn steps(after: u64, through: u64) -> impl Iterator<Item = (u64, u64)> {
    let step =
        move |start: &u64| Some(start.saturating_add(DATA_STEP_BLOCKS)).filter(|start| *start < through);
    let starts = std::iter::successors(Some(after).filter(|after| *after < through), step);
    starts.map(move |start| (start, through.min(start.saturating_add(DATA_STEP_BLOCKS))))
}

pub(crate) fn unfit(reason: &impl std::fmt::Display) -> L1Error {
    L1Error::Malformed { method: "eth_getTransactionByHash".to_owned(), reason: reason.to_string() }
}
