//! What was signed, and whether a header may be signed beside it: the rules that the crate's page lists.

use std::{sync::Arc, time::Duration};

use blindfold_chain::{L1Error, L1Reader};
use blindfold_protocol::{Address, B256, BatchHeader, Deployment, Epochs, Promise, Signature65, SigningKey};
use blindfold_store::{Acknowledged, Store, StoreError, What};
use tokio::{sync::Mutex, time::timeout};

use crate::{
    begin::{Known, put_term},
    refusal::SigningRefusal,
};

/// How far above the posted head the first header of a term may be: more than four hours at four headers a second, after
/// which nothing of an earlier key can be posted any more.
const MAX_UNPOSTED_NUMBERS: u64 = 65_536;
/// How often a header is judged, where what it was judged by has changed meanwhile.
const ATTEMPTS: usize = 3;

/// Signs on the record of what was signed.
pub(crate) struct Floor {
    store: Arc<dyn Store>,
    l1: Arc<dyn L1Reader>,
    key: Arc<SigningKey>,
    deployment: Deployment,
    l1_timeout: Duration,
    /// Held while a header is judged and made durable: one at a time.
    known: Mutex<Known>,
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
    /// The newest posted number.
    posted: u64,
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
        Ok(Self { store, l1, key, deployment, l1_timeout, known })
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
        self.raise_term(&mut known, term).await?;
        if known.first.is_none() {
            return Err(SigningRefusal::NotBegun { number: seal_by });
        }
        Ok(Promise::sign(&self.key, &self.deployment, envelope_id, item_hash, seal_by))
    }

    /// Refuses an older term than the highest one; a higher one is durable before anything is signed in it.
    async fn raise_term(&self, known: &mut Known, term: Option<u64>) -> Result<(), SigningRefusal> {
        let (offered, seen) = (term.unwrap_or_default(), known.term);
        if offered < seen {
            return Err(SigningRefusal::OlderTerm { offered, seen });
        }
        if offered > seen {
            put_term(self.store.as_ref(), offered).await.map_err(SigningRefusal::Store)?;
            known.term = offered;
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
        self.raise_term(&mut known, term).await?;
        let first = known.first.ok_or(SigningRefusal::NotBegun { number })?;
        if number == 0 || i64::try_from(number).is_err() || i64::try_from(origin).is_err() {
            return Err(SigningRefusal::WrongNumber(number));
        }
        if number < first {
            return Err(SigningRefusal::BelowFirst { number, first });
        }
        let signed = self.store.acknowledgement(number).await.map_err(SigningRefusal::Store)?;
        if signed.is_some_and(|signed| signed.hash == hash) {
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
        if let Some((made, made_at)) = made {
            self.store.displace_acknowledged(made, made_at).await.map_err(SigningRefusal::Store)?;
        }
        self.store.put_acknowledged(number, hash, origin).await.map_err(|fault| match fault {
            StoreError::Conflict { what: What::Acknowledgement, number, stored, offered } => {
                SigningRefusal::SecondHeader { number, signed: stored, offered }
            }
            fault => SigningRefusal::Store(fault),
        })?;
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
        let newest = self.newest().await.map_err(SigningRefusal::Store)?;
        // Whoever is named from the start has nobody before.
        let since = said.epochs.sequencer_since(origin);
        let begins = since > 0 && newest.is_none_or(|(_, signed)| signed.origin < since);
        let unposted = number.checked_sub(said.posted);
        if begins && unposted.is_some_and(|unposted| (1..=MAX_UNPOSTED_NUMBERS).contains(&unposted)) {
            return Ok(());
        }
        let newest = newest.map_or(0, |(number, _)| number);
        Err(SigningRefusal::DoesNotFollow { number, parent, newest })
    }

    async fn ask_l1(&self, header: &BatchHeader, signed: Option<u64>) -> Result<Said, SigningRefusal> {
        let asked = async {
            // First: what is final later was not said to it.
            let finalized = self.l1.finalized().await?.number;
            let parent = self.l1.l1_header(header.number.saturating_sub(1)).await?;
            let excuse = match signed {
                Some(origin) => Some((origin, self.l1.first_l1_header_after(origin).await?)),
                None => None,
            };
            Ok(Said {
                finalized,
                parent: parent.map(|made| (made.header.hash(), made.l1_block)),
                excuse,
                epochs: self.l1.epochs().await?,
                posted: self.l1.posted_head().await?.number,
            })
        };
        match timeout(self.l1_timeout, asked).await {
            Ok(said) => said.map_err(SigningRefusal::L1),
            Err(_) => Err(SigningRefusal::L1(L1Error::no_answer("it takes too long"))),
        }
    }
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
