//! What was signed, and whether a header may be signed beside it: the rules that the crate's page lists.

use std::{sync::Arc, time::Duration};

use blindfold_chain::{L1Error, L1Reader};
use blindfold_protocol::{Address, B256, BatchHeader, Deployment, Epochs, Promise, Signature65, SigningKey};
use blindfold_runtime::{now, spawn};
use blindfold_store::{Acknowledged, Store, StoreError, What};
use tokio::{
    sync::{Mutex, Semaphore, watch},
    time::{Instant, timeout},
};

use crate::{
    begin::{Known, put_term},
    refusal::SigningRefusal,
};

/// How far above the posted head the first header of a term may be: more than four hours at four headers a second, after
/// which nothing of an earlier key can be posted any more.
const MAX_UNPOSTED_NUMBERS: u64 = 65_536;
/// How often a header is judged, where what it was judged by has changed meanwhile.
const ATTEMPTS: usize = 3;
/// How many requests ask L1 at once; the others wait.
const MAX_QUESTIONS: usize = 8;

/// Signs on the record of what was signed.
pub(crate) struct Floor {
    store: Arc<dyn Store>,
    l1: Arc<dyn L1Reader>,
    key: Arc<SigningKey>,
    deployment: Deployment,
    l1_timeout: Duration,
    /// Held while a header is judged and made durable: one at a time.
    known: Mutex<Known>,
    /// What L1 said last.
    seen: watch::Sender<Seen>,
    questions: Arc<Semaphore>,
}

/// Where L1 was when it was last asked.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// The newest final block, and when it was first told.
    finalized: Option<(u64, Instant)>,
    /// The newest posted number.
    posted: u64,
}

impl Seen {
    /// Whether a block may be final by now: L1 makes at most one a second.
    fn may_be_final(&self, block: u64) -> bool {
        self.finalized.is_some_and(|(finalized, told_at)| {
            block <= finalized.saturating_add(told_at.elapsed().as_secs())
        })
    }
}

/// What L1 says to a header that does not follow what was signed.
struct Said {
    /// The newest final block.
    finalized: u64,
    /// The header that L1 made for the number before, and the block in which it did.
    parent: Option<(B256, u64)>,
    /// For the origin of what was signed for the number: the first header that L1 made after it, by number and block.
    excuse: Option<(u64, Option<(u64, u64)>)>,
    /// Whose the headers are, by origin.
    epochs: Epochs,
    /// The newest posted one.
    posted: Posted,
    /// Whether L1 holds this number or a later one, posted, and not made by itself.
    is_past: bool,
}

/// The newest posted header, not final perhaps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    pub(crate) number: u64,
    hash: B256,
    origin: u64,
}

/// What becomes of a header.
enum Judged {
    /// It is durable.
    Signs,
    /// L1 has to be asked; also about what was signed with this origin.
    AskL1(Option<u64>),
}

impl Floor {
    pub(crate) async fn open(
        store: Arc<dyn Store>,
        l1: Arc<dyn L1Reader>,
        key: Arc<SigningKey>,
        deployment: Deployment,
        l1_timeout_ms: u64,
    ) -> Result<Self, StoreError> {
        let known = Mutex::new(Known::load(store.as_ref()).await?);
        let l1_timeout = Duration::from_millis(l1_timeout_ms);
        let (seen, questions) = (watch::Sender::default(), Arc::new(Semaphore::new(MAX_QUESTIONS)));
        Ok(Self { store, l1, key, deployment, l1_timeout, known, seen, questions })
    }

    pub(crate) fn address(&self) -> Address {
        self.key.address()
    }

    pub(crate) const fn deployment(&self) -> &Deployment {
        &self.deployment
    }

    pub(crate) fn key(&self) -> &SigningKey {
        &self.key
    }

    pub(crate) async fn known(&self) -> Known {
        *self.known.lock().await
    }

    /// What was signed for the newest number that binds.
    pub(crate) async fn newest(&self) -> Result<Option<(u64, Acknowledged)>, StoreError> {
        let Some(number) = self.store.heads().await?.acknowledged else { return Ok(None) };
        Ok(self.store.acknowledgement(number).await?.map(|signed| (number, signed)))
    }

    /// Signs a header; its number is durable before.
    pub(crate) async fn sign_header(
        &self,
        header: &BatchHeader,
        term: Option<u64>,
    ) -> Result<Signature65, SigningRefusal> {
        let mut said = None;
        for _ in 0..ATTEMPTS {
            match self.judge(header, term, said.as_ref()).await? {
                Judged::Signs => return Ok(self.key.sign(&header.signing_digest(&self.deployment))),
                // Not while others wait: L1 may take long.
                Judged::AskL1(origin) => said = Some(self.ask_l1(header, origin).await?),
            }
        }
        let changed = "what was signed for the number changed meanwhile";
        Err(SigningRefusal::Store(StoreError::Failed(changed.to_owned())))
    }

    /// Signs a promise. Whether it can be kept is the caller's to know.
    pub(crate) async fn sign_promise(
        &self,
        (envelope_id, item_hash, seal_by): (B256, B256, u64),
        term: Option<u64>,
    ) -> Result<Promise, SigningRefusal> {
        let mut known = self.known.lock().await;
        let term = newer_term(&known, term)?;
        if known.first.is_none() {
            return Err(SigningRefusal::NotBegun { number: seal_by });
        }
        self.raise_term(&mut known, term).await?;
        Ok(Promise::sign(&self.key, &self.deployment, envelope_id, item_hash, seal_by))
    }

    /// A higher term is durable before anything is signed in it, and nothing raises it but what is signed.
    async fn raise_term(&self, known: &mut Known, term: u64) -> Result<(), SigningRefusal> {
        if term > known.term {
            put_term(self.store.as_ref(), term).await.map_err(SigningRefusal::Store)?;
            known.term = term;
        }
        Ok(())
    }

    async fn judge(
        &self,
        header: &BatchHeader,
        term: Option<u64>,
        said: Option<&Said>,
    ) -> Result<Judged, SigningRefusal> {
        let (number, hash, origin) = (header.number, header.hash(), header.l1_origin_number);
        let mut known = self.known.lock().await;
        let term = newer_term(&known, term)?;
        let first = known.first.ok_or(SigningRefusal::NotBegun { number })?;
        if number == 0 || i64::try_from(number).is_err() || i64::try_from(origin).is_err() {
            return Err(SigningRefusal::WrongNumber(number));
        }
        if number < first {
            return Err(SigningRefusal::BelowFirst { number, first });
        }
        let signed = self.store.acknowledgement(number).await.map_err(SigningRefusal::Store)?;
        if signed.is_some_and(|signed| signed.hash == hash) {
            self.raise_term(&mut known, term).await?;
            return Ok(Judged::Signs);
        }
        let asks = Judged::AskL1(signed.map(|signed| signed.origin));
        let mut made = None;
        if let Some(signed) = signed {
            let Some(said) = said else { return Ok(asks) };
            match said.excuse {
                Some((of, excuse)) if of == signed.origin => {
                    made = Some(excused(header, &signed, said, excuse)?)
                }
                _ => return Ok(asks),
            }
        }
        if !self.follows_signed(header, first, made).await? {
            let Some(said) = said else { return Ok(asks) };
            self.follows_on_l1(header, said).await?;
        }
        let seen = *self.seen.borrow();
        if !seen.may_be_final(origin) {
            let Some(said) = said else { return Ok(asks) };
            // L1 excuses nothing beside a header of an origin that it has not.
            if said.finalized < origin {
                return Err(SigningRefusal::L1Behind { number, origin, finalized: said.finalized });
            }
        }
        if signed.is_none() && number <= seen.posted {
            let Some(said) = said else { return Ok(asks) };
            if said.is_past {
                return Err(SigningRefusal::OlderThanL1 { number, posted: said.posted.number });
            }
        }
        if let Some((made, made_at)) = made {
            self.store.displace_acknowledged(made, made_at).await.map_err(SigningRefusal::Store)?;
        }
        self.store.put_acknowledged(number, hash, origin).await.map_err(|fault| match fault {
            StoreError::Conflict { what: What::Acknowledgement, number, stored, offered } => {
                SigningRefusal::SecondHeader { number, signed: stored, offered }
            }
            fault => SigningRefusal::Store(fault),
        })?;
        self.raise_term(&mut known, term).await?;
        Ok(Judged::Signs)
    }

    /// Whether its parent was signed here, or is the operator's to know; above a header that L1 `made`, whether it was signed
    /// since.
    async fn follows_signed(
        &self,
        header: &BatchHeader,
        first: u64,
        made: Option<(u64, u64)>,
    ) -> Result<bool, SigningRefusal> {
        if header.number == 1 {
            return Ok(header.parent_hash == self.deployment.genesis_hash());
        }
        if header.number == first && made.is_none() {
            return Ok(true);
        }
        let before = self.store.acknowledgement(header.number - 1).await.map_err(SigningRefusal::Store)?;
        let made_at = made.map_or(0, |(_, made_at)| made_at);
        Ok(before.is_some_and(|before| before.hash == header.parent_hash && before.origin >= made_at))
    }

    /// Whether L1 shows that it follows something else: a header of L1's, or another key's.
    async fn follows_on_l1(&self, header: &BatchHeader, said: &Said) -> Result<(), SigningRefusal> {
        let (number, parent, origin) = (header.number, header.parent_hash, header.l1_origin_number);
        if said.parent.is_some_and(|(made, made_at)| made == parent && made_at <= origin) {
            return Ok(());
        }
        if said.finalized < origin {
            return Err(SigningRefusal::L1Behind { number, origin, finalized: said.finalized });
        }
        if let Some(sequencer) = said.epochs.sequencer_at(origin).filter(|named| *named != self.address()) {
            return Err(SigningRefusal::NotOurs { origin, sequencer });
        }
        // Ours may have given way to a certified one of the key before.
        if said.posted.hash == parent && said.posted.number > 0 && said.posted.number == number - 1 {
            return Ok(());
        }
        let newest = self.newest().await.map_err(SigningRefusal::Store)?;
        // Whoever is named from the start has nobody before.
        let since = said.epochs.sequencer_since(origin);
        let begins = since > 0 && newest.is_none_or(|(_, signed)| signed.origin < since);
        let unposted = number.checked_sub(said.posted.number);
        if begins && unposted.is_some_and(|unposted| (1..=MAX_UNPOSTED_NUMBERS).contains(&unposted)) {
            return Ok(());
        }
        let newest = newest.map_or(0, |(number, _)| number);
        Err(SigningRefusal::DoesNotFollow { number, parent, newest })
    }

    /// Asks L1 about a header. It goes on asking when it takes longer than the caller waits: what L1 has said by then is known
    /// to whoever asks next.
    async fn ask_l1(&self, header: &BatchHeader, signed: Option<u64>) -> Result<Said, SigningRefusal> {
        let (l1, questions, number) = (Arc::clone(&self.l1), Arc::clone(&self.questions), header.number);
        let asked = async {
            let question = questions.acquire_owned().await;
            let asked = spawn(async move {
                let _question = question;
                ask(l1.as_ref(), number, signed).await
            });
            asked.await.unwrap_or_else(|_| Err(L1Error::no_answer("the question was broken off")))
        };
        let said = match timeout(self.l1_timeout, asked).await {
            Ok(said) => said.map_err(SigningRefusal::L1)?,
            Err(_) => return Err(SigningRefusal::L1(L1Error::no_answer("it takes too long"))),
        };
        self.saw(said.finalized, said.posted.number);
        Ok(said)
    }

    fn saw(&self, finalized: u64, posted: u64) {
        self.seen.send_modify(|seen| {
            seen.posted = posted;
            // An L1 that stands still here goes on elsewhere: the time counts from the first word of a block.
            if seen.finalized.is_none_or(|(before, _)| before < finalized) {
                seen.finalized = Some((finalized, now()));
            }
        });
    }

    /// Asks L1 where it is; without a limit of time.
    pub(crate) async fn look(&self) -> Result<Posted, L1Error> {
        let finalized = self.l1.finalized().await?.number;
        let posted = posted_head(self.l1.as_ref()).await?;
        self.saw(finalized, posted.number);
        Ok(posted)
    }

    /// The same at a start, which waits for no L1 for long.
    pub(crate) async fn look_soon(&self) -> Result<Posted, L1Error> {
        let looked = timeout(self.l1_timeout, self.look()).await;
        looked.unwrap_or_else(|_| Err(L1Error::no_answer("it takes too long")))
    }

    /// Reads what L1 made since it was last asked, however long that takes: what a request asks is known then.
    pub(crate) async fn read_l1(&self) -> Result<(), L1Error> {
        self.l1.last_l1_header().await.map(drop)
    }

    /// Whether L1's newest posted header is this key's and not known here: then others are not, either.
    pub(crate) async fn is_older_than(&self, posted: &Posted) -> Result<bool, SigningRefusal> {
        let number = posted.number;
        let Some(first) = self.known().await.first else { return Ok(false) };
        let signed = self.store.acknowledgement(number).await.map_err(SigningRefusal::Store)?;
        if number < first || signed.is_some() {
            return Ok(false);
        }
        let said = ask(self.l1.as_ref(), number, None).await.map_err(SigningRefusal::L1)?;
        let sequencer = said.epochs.sequencer_at(posted.origin);
        Ok(said.is_past && sequencer.is_none_or(|sequencer| sequencer == self.address()))
    }
}

/// Refuses an older term than the highest one; gives the offered one.
fn newer_term(known: &Known, term: Option<u64>) -> Result<u64, SigningRefusal> {
    let (offered, seen) = (term.unwrap_or_default(), known.term);
    if offered < seen {
        return Err(SigningRefusal::OlderTerm { offered, seen });
    }
    Ok(offered)
}

async fn posted_head(l1: &dyn L1Reader) -> Result<Posted, L1Error> {
    let head = l1.posted_head().await?;
    Ok(Posted { number: head.number, hash: head.hash, origin: head.l1_origin_number })
}

async fn ask(l1: &dyn L1Reader, number: u64, signed: Option<u64>) -> Result<Said, L1Error> {
    // First: what is final later was not said to it.
    let finalized = l1.finalized().await?.number;
    let parent = l1.l1_header(number.saturating_sub(1)).await?;
    let excuse = match signed {
        Some(origin) => Some((origin, l1.first_l1_header_after(origin).await?)),
        None => None,
    };
    let epochs = l1.epochs().await?;
    let posted = posted_head(l1).await?;
    let is_past = number <= posted.number && {
        // Before those of final blocks: one becomes final meanwhile.
        let pending = l1.l1_headers_not_final().await?;
        let made = l1.l1_headers_from(number).await?;
        let by_l1 = |number| {
            made.iter().any(|made| made.number == number)
                || pending.iter().any(|made| made.header.number == number)
        };
        (number..=posted.number).rev().any(|number| !by_l1(number))
    };
    Ok(Said {
        finalized,
        parent: parent.map(|made| (made.header.hash(), made.l1_block)),
        excuse,
        epochs,
        posted,
        is_past,
    })
}

/// What excuses this header beside the one that was signed, as `BlindedInbox.l1MadeBelow` has it: the first header that L1
/// made after the earlier origin is of a lower number, and not made after the later origin.
fn excused(
    header: &BatchHeader,
    signed: &Acknowledged,
    said: &Said,
    first_after: Option<(u64, u64)>,
) -> Result<(u64, u64), SigningRefusal> {
    let (number, origin) = (header.number, header.l1_origin_number);
    match first_after {
        Some((made, made_at)) if made < number && made_at <= origin => Ok((made, made_at)),
        None if said.finalized < origin => {
            Err(SigningRefusal::L1Behind { number, origin, finalized: said.finalized })
        }
        _ => Err(SigningRefusal::SecondHeader { number, signed: signed.hash, offered: header.hash() }),
    }
}

#[cfg(test)]
#[path = "floor_tests.rs"]
mod tests;
