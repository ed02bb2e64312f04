//! Decrypting a batch locally, from the committee's shares, when nobody publishes true hints.
//!
//! The cheap path of the scheme: shares are combined without being verified, and one ciphertext that opens proves the
//! release right. Only where none opens are shares verified, liars named, and other members' shares taken.

use std::collections::BTreeSet;
use std::sync::Arc;

use alloy_primitives::B256;
use blindfold_bte::{
    self as bte, Backend, BatchError, Check, Ciphertext, CiphertextPoint, G1_BYTES, Opening, PreDecrypted,
};
use blindfold_chain::{EpochParameters, ParameterSet, Tracker, check_release_shape, verdicts};
use blindfold_protocol::validity::sub_batches;
use blindfold_protocol::{BatchHints, Canonical, Certificate, Envelope, HintEntry, Release};
use blindfold_runtime::rng;
use blindfold_store::{BatchRecord, StoreError};
use futures::StreamExt;

use crate::counters::Counters;
use crate::members::Members;

/// Why a batch could not be decrypted now.
#[derive(Debug, thiserror::Error)]
pub enum DecryptFault {
    /// The disk.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The batch or its certificate is not here.
    #[error("batch {0} is not certified here")]
    NotCertified(u64),
    /// The parameters of its epoch are not configured.
    #[error("no parameters are configured for batch {0}")]
    NoParameters(u64),
    /// Too few members gave true shares; they may come back.
    #[error("batch {number}: {given} members gave true {what}, {needed} are needed")]
    TooFewShares {
        /// Batch number.
        number: u64,
        /// `shares` or `singleton shares`.
        what: &'static str,
        /// True ones so far.
        given: usize,
        /// The threshold.
        needed: usize,
    },
    /// An accepted item does not decode: our disk is damaged.
    #[error("batch {number}: accepted item {index} does not decode")]
    Damaged {
        /// Batch number.
        number: u64,
        /// Item index.
        index: u32,
    },
    /// The backend refuses a batch that the rules allow.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The process is shutting down.
    #[error("shutting down")]
    Stopped,
}

/// Decrypts batches with what the members give.
#[derive(Clone)]
pub struct LocalDecryption {
    /// The chain of headers.
    pub tracker: Tracker,
    /// Public parameters.
    pub parameters: Arc<ParameterSet>,
    /// Does the heavy work.
    pub backend: Arc<dyn Backend>,
    /// Whom to ask.
    pub members: Members,
    /// Where liars are counted.
    pub counters: Counters,
}

/// An accepted item.
struct Item {
    index: u32,
    ad: [u8; 32],
    ciphertext: Ciphertext,
    point: CiphertextPoint,
}

/// One sub-batch: its items, the pre-decryption, and the result once known.
struct SubBatch {
    items: Vec<Item>,
    prepared: PreDecrypted,
    opened: Option<([u8; G1_BYTES], Vec<Opening>)>,
}

type Share = (u16, Vec<[u8; G1_BYTES]>);

impl LocalDecryption {
    /// The hints of a certified batch, made here. `published` is a release that somebody published, if any: it saves
    /// asking the members when it proves itself.
    pub async fn decrypt(
        &self,
        number: u64,
        published: Option<Release>,
    ) -> Result<(Release, BatchHints), DecryptFault> {
        let record = self.tracker.store().batch(number).await?.ok_or(DecryptFault::NotCertified(number))?;
        let certificate = self.certificate(&record).await?;
        let parameters = self.parameters.at(number).ok_or(DecryptFault::NoParameters(number))?;
        let published = usable(&parameters, &record, published)?;
        let (backend, of_blocking, record_of_blocking) =
            (Arc::clone(&self.backend), parameters.clone(), record.clone());
        let mut batches = blocking(move || {
            let mut batches = prepare(backend.as_ref(), &of_blocking, &record_of_blocking)?;
            if let Some(release) = &published {
                open_with(backend.as_ref(), &of_blocking, &mut batches, release)?;
            }
            Ok::<_, DecryptFault>(batches)
        })
        .await??;
        if batches.iter().any(|batch| batch.opened.is_none()) {
            batches = self.open_with_shares(&record, &certificate, &parameters, batches).await?;
        }
        self.hints(&record, &parameters, batches).await
    }

    /// The batch's own certificate or that of the next descendant that has one: it certifies its ancestors.
    async fn certificate(&self, record: &BatchRecord) -> Result<Certificate, DecryptFault> {
        let certified = self.tracker.certified().number;
        if let Some(certificate) = record.certificate {
            return Ok(certificate);
        }
        for number in record.number + 1..=certified {
            let descendant = self.tracker.store().batch(number).await?;
            if let Some(certificate) = descendant.and_then(|descendant| descendant.certificate) {
                return Ok(certificate);
            }
        }
        Err(DecryptFault::NotCertified(record.number))
    }

    async fn open_with_shares(
        &self,
        record: &BatchRecord,
        certificate: &Certificate,
        parameters: &EpochParameters,
        mut batches: Vec<SubBatch>,
    ) -> Result<Vec<SubBatch>, DecryptFault> {
        let (number, needed) = (record.number, usize::from(parameters.epoch().threshold));
        let mut shares: Vec<Share> = Vec::new();
        let mut answers = self.members.shares(*certificate, number, record.hash, batches.len());
        while let Some((member, answer)) = answers.next().await {
            match answer {
                Ok(share) => shares.push((member, share.pds)),
                Err(fault) => tracing::warn!(number, member, %fault, "no share"),
            }
            if shares.len() < needed {
                continue;
            }
            let (backend, of_blocking, given) =
                (Arc::clone(&self.backend), parameters.clone(), shares.clone());
            let (opened, liars) = blocking(move || {
                let liars = combine_all(backend.as_ref(), &of_blocking, &mut batches, &given)?;
                Ok::<_, DecryptFault>((batches, liars))
            })
            .await??;
            batches = opened;
            for liar in &liars {
                tracing::error!(number, member = liar, "a member gave a wrong share");
                self.counters.lying_members.add(&liar.to_string());
            }
            shares.retain(|(member, _)| !liars.contains(member));
            if batches.iter().all(|batch| batch.opened.is_some()) {
                return Ok(batches);
            }
        }
        Err(DecryptFault::TooFewShares { number, what: "shares", given: shares.len(), needed })
    }

    /// Puts the entries together; a malformed item needs its singleton release.
    async fn hints(
        &self,
        record: &BatchRecord,
        parameters: &EpochParameters,
        batches: Vec<SubBatch>,
    ) -> Result<(Release, BatchHints), DecryptFault> {
        let (number, header_hash) = (record.number, record.hash);
        let mut entries = vec![HintEntry::Skipped; record.items.len()];
        let mut pds = Vec::with_capacity(batches.len());
        for batch in batches {
            // `open_with_shares` returned because every sub-batch is opened.
            let Some((pd, openings)) = batch.opened else { continue };
            pds.push(pd);
            for (item, opening) in batch.items.iter().zip(openings) {
                let entry = match opening {
                    Opening::WellFormed { key, .. } => HintEntry::Key(*key.as_bytes()),
                    Opening::Malformed => {
                        let release = self.singleton(number, header_hash, parameters, item).await?;
                        self.shown(parameters, item, release).await?
                    }
                };
                if let Some(place) = entries.get_mut(item.index as usize) {
                    *place = entry;
                }
            }
        }
        Ok((
            Release { number, header_hash, pds },
            BatchHints { number, header_hash, entries, blindings: vec![] },
        ))
    }

    /// What a true singleton release shows of an item that did not open, by portable arithmetic: that it is malformed,
    /// unless the backend erred.
    async fn shown(
        &self,
        parameters: &EpochParameters,
        item: &Item,
        release: [u8; G1_BYTES],
    ) -> Result<HintEntry, DecryptFault> {
        let (scheme, ad) = (Arc::clone(parameters.parameters()), item.ad);
        let ciphertext = item.ciphertext.clone();
        let opened = blocking(move || scheme.open_singleton(&ad, &ciphertext, &release)).await?;
        match opened {
            Ok(Opening::WellFormed { key, .. }) => {
                self.counters.overruled.get(&[Check::Opening.name()]).increment();
                Ok(HintEntry::Key(*key.as_bytes()))
            }
            _ => Ok(HintEntry::Malformed(release)),
        }
    }

    async fn singleton(
        &self,
        number: u64,
        header_hash: B256,
        parameters: &EpochParameters,
        item: &Item,
    ) -> Result<[u8; G1_BYTES], DecryptFault> {
        let needed = usize::from(parameters.epoch().threshold);
        let mut shares = Vec::new();
        let mut answers = self.members.singletons(number, header_hash, item.index);
        while let Some((member, answer)) = answers.next().await {
            let share = match answer {
                Ok(share) => share.share,
                Err(fault) => {
                    tracing::warn!(number, member, index = item.index, %fault, "no singleton share");
                    continue;
                }
            };
            let (of_blocking, point) = (Arc::clone(parameters.parameters()), item.point);
            let verified =
                blocking(move || of_blocking.verify_singleton_share(member, &point, &share)).await?;
            if let Err(error) = verified {
                tracing::error!(number, member, index = item.index, %error, "a member gave a wrong singleton share");
                self.counters.lying_members.add(&member.to_string());
                continue;
            }
            shares.push((member, share));
            if shares.len() == needed {
                // Verified shares of distinct members: combining them cannot fail but by our own fault.
                match parameters.parameters().combine_singletons(&shares) {
                    Ok(release) => return Ok(release),
                    Err(error) => tracing::error!(number, %error, "verified singleton shares do not combine"),
                }
            }
        }
        Err(DecryptFault::TooFewShares { number, what: "singleton shares", given: shares.len(), needed })
    }
}

/// A published release, if it has the form that the batch asks for.
fn usable(
    parameters: &EpochParameters,
    record: &BatchRecord,
    published: Option<Release>,
) -> Result<Option<Release>, StoreError> {
    let verdicts = verdicts(record)?;
    Ok(published
        .filter(|release| check_release_shape(parameters, &record.sealed, &verdicts, release).is_ok()))
}

/// Decodes the accepted items and pre-decrypts each sub-batch.
fn prepare(
    backend: &dyn Backend,
    parameters: &EpochParameters,
    record: &BatchRecord,
) -> Result<Vec<SubBatch>, DecryptFault> {
    let number = record.number;
    let mut batches = Vec::new();
    for indices in sub_batches(&verdicts(record)?, parameters.epoch().max_batch) {
        let mut items = Vec::with_capacity(indices.len());
        for index in indices {
            let damaged = DecryptFault::Damaged { number, index };
            let Some(bytes) = record.sealed.items.get(index as usize) else { return Err(damaged) };
            let Ok(Envelope { header, ciphertext, .. }) = Envelope::decode(bytes) else {
                return Err(damaged);
            };
            let Ok(point) = ciphertext.header() else { return Err(damaged) };
            items.push(Item { index, ad: header.hash().0, ciphertext, point });
        }
        let points: Vec<CiphertextPoint> = items.iter().map(|item| item.point).collect();
        let prepared = backend.predecrypt(parameters.parameters(), &points)?;
        batches.push(SubBatch { items, prepared, opened: None });
    }
    Ok(batches)
}

/// Opens every sub-batch that this release proves itself for.
fn open_with(
    backend: &dyn Backend,
    parameters: &EpochParameters,
    batches: &mut [SubBatch],
    release: &Release,
) -> Result<(), DecryptFault> {
    for (batch, pd) in batches.iter_mut().zip(&release.pds) {
        if let Ok(pd) = bte::Release::from_bytes(pd) {
            let openings = finalize(backend, parameters, batch, &pd)?;
            if openings.iter().any(|opening| opening.key().is_some()) {
                batch.opened = Some((pd.to_bytes(), openings));
            }
        }
    }
    Ok(())
}

/// Opens what is not open yet with the shares given, at least t of them. Returns the members that lied.
fn combine_all(
    backend: &dyn Backend,
    parameters: &EpochParameters,
    batches: &mut [SubBatch],
    shares: &[Share],
) -> Result<BTreeSet<u16>, DecryptFault> {
    let mut liars = BTreeSet::new();
    for (place, batch) in batches.iter_mut().enumerate().filter(|(_, batch)| batch.opened.is_none()) {
        let honest = |liars: &BTreeSet<u16>| -> Vec<(u16, [u8; G1_BYTES])> {
            let honest = shares.iter().filter(|(member, _)| !liars.contains(member));
            honest.filter_map(|(member, pds)| Some((*member, *pds.get(place)?))).collect()
        };
        if let Ok(release) = parameters.parameters().combine(&honest(&liars)) {
            let openings = finalize(backend, parameters, batch, &release)?;
            if openings.iter().any(|opening| opening.key().is_some()) {
                batch.opened = Some((release.to_bytes(), openings));
                continue;
            }
        }
        // Nothing proves the release: either all ciphertexts are malformed or a share is wrong.
        let points: Vec<CiphertextPoint> = batch.items.iter().map(|item| item.point).collect();
        let found = backend.find_liars(&mut rng(), parameters.parameters(), &points, &honest(&liars))?;
        liars.extend(found);
        if let Ok(release) = parameters.parameters().combine(&honest(&liars)) {
            let openings = finalize(backend, parameters, batch, &release)?;
            batch.opened = Some((release.to_bytes(), openings));
        }
    }
    Ok(liars)
}

fn finalize(
    backend: &dyn Backend,
    parameters: &EpochParameters,
    batch: &SubBatch,
    release: &bte::Release,
) -> Result<Vec<Opening>, BatchError> {
    let ciphertexts: Vec<_> = batch.items.iter().map(|item| (&item.ad, &item.ciphertext)).collect();
    backend.finalize(parameters.parameters(), &batch.prepared, release, &ciphertexts)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, DecryptFault> {
    blindfold_runtime::blocking(work).await.map_err(|_| DecryptFault::Stopped)
}
