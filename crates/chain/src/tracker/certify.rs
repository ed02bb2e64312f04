//! Taking certificates, and giving way to the header that has one.

use std::sync::{Arc, atomic::Ordering};

use alloy_primitives::{Address, B256};
use blindfold_protocol::{
    BatchHeader, Certificate, CertificateError, CertifiedBatch, Epochs, SealedBatch, SignedHeader,
    certificate::{self, VerifiedCertificate},
    limits::HANDOVER_BLOCKS,
    validity,
};
use blindfold_store::StoreError;

use super::{Applied, HeaderId, Tracker, TrackerError, load_state, stored_head};
use crate::limits::{DISPLACED_BRANCH_HEADERS, MAX_UNCERTIFIED_RUN};
use crate::{L1Error, Office};

/// What a certificate changed on this disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateOutcome {
    /// The number and its ancestors are certified now.
    Advanced,
    /// The number was certified through a descendant; its own certificate is kept.
    Kept,
    /// It was known already: nothing changed.
    Known,
}

impl Tracker {
    /// Verifies a certificate for a header that is here, keeps it durably, and moves the certified head.
    ///
    /// When it names another header than ours, nothing changes and the refusal says so: fetch the certified batch
    /// and give it to [`accept_certified`](Self::accept_certified). Where L1 made another header a moment ago, it is
    /// refused until that one is final and followed ([`TrackerError::OverruledByL1`]).
    pub async fn accept_certificate(
        &self,
        certificate: &Certificate,
    ) -> Result<CertificateOutcome, TrackerError> {
        self.accept_certificate_after(certificate, async {}).await
    }

    /// [`accept_certificate`](Self::accept_certificate), with something to be done once the certificate is verified, before
    /// it is on disk: a start after a crash does not look at it again.
    pub async fn accept_certificate_after(
        &self,
        certificate: &Certificate,
        before: impl Future<Output = ()>,
    ) -> Result<CertificateOutcome, TrackerError> {
        self.verify_certificate(certificate).await?;
        before.await;
        let (tracker, certificate) = (self.clone(), *certificate);
        self.exclusively(async move { tracker.accept_certificate_locked(&certificate).await })
            .await
            .unwrap_or(Err(TrackerError::Stopped))
    }

    /// [`accept_certificate`](Self::accept_certificate) of one that we made ourselves.
    pub async fn accept_own_certificate(
        &self,
        certificate: VerifiedCertificate,
    ) -> Result<CertificateOutcome, TrackerError> {
        let number = certificate.number;
        // Its signature stands; the committee that it is of has to be this number's still.
        certificate::check_form(&certificate, &self.epoch(number).await?)
            .map_err(|fault| TrackerError::Certificate { number, fault })?;
        let tracker = self.clone();
        self.exclusively(async move { tracker.accept_certificate_locked(&certificate).await })
            .await
            .unwrap_or(Err(TrackerError::Stopped))
    }

    /// Takes a batch together with its certificate, whatever uncertified headers stand in its way here.
    ///
    /// If our header of that number is another one and is not certified, ours and its descendants are taken back
    /// and the certified one is applied. The header itself is checked as completely as any other.
    pub async fn accept_certified(
        &self,
        batch: &CertifiedBatch,
    ) -> Result<(Applied, CertificateOutcome), TrackerError> {
        let run = [Arc::new(batch.sealed.clone())];
        let (mut applied, outcome) = self.accept_certified_run(&run, &batch.certificate).await?;
        // A run of one gives one.
        applied.pop().map(|applied| (applied, outcome)).ok_or(TrackerError::Stopped)
    }

    /// [`accept_certified`](Self::accept_certified) for a run of batches, oldest first, of which the certificate names
    /// the last: it certifies its ancestors. For when more than one of our headers has to give way.
    pub async fn accept_certified_run(
        &self,
        run: &[Arc<SealedBatch>],
        certificate: &Certificate,
    ) -> Result<(Vec<Applied>, CertificateOutcome), TrackerError> {
        self.accept_certified_run_after(run, certificate, async {}).await
    }

    /// [`accept_certified_run`](Self::accept_certified_run), with something to be done as in
    /// [`accept_certificate_after`](Self::accept_certificate_after).
    pub async fn accept_certified_run_after(
        &self,
        run: &[Arc<SealedBatch>],
        certificate: &Certificate,
        before: impl Future<Output = ()>,
    ) -> Result<(Vec<Applied>, CertificateOutcome), TrackerError> {
        check_run(run, certificate)?;
        self.verify_certificate(certificate).await?;
        before.await;
        let (tracker, run, certificate) = (self.clone(), run.to_vec(), *certificate);
        self.exclusively(async move {
            tracker.not_overruled(certificate.number, &run).await?;
            for batch in &run {
                let header = &batch.header;
                if tracker.give_way_to(header.number, header.hash(), header.parent_hash).await? {
                    break;
                }
            }
            let mut applied = Vec::with_capacity(run.len());
            for batch in &run {
                // However long the run: its certificate stands, so none of it waits for one.
                applied.push(tracker.apply_sealed_locked(batch, u64::MAX).await?);
            }
            let outcome = tracker.accept_certificate_locked(&certificate).await?;
            Ok((applied, outcome))
        })
        .await
        .unwrap_or(Err(TrackerError::Stopped))
    }

    /// Takes back the headers from `number` on, which nobody certified, for others in their place. None where there is none.
    pub async fn give_up_from(&self, number: u64) -> Result<(), TrackerError> {
        let tracker = self.clone();
        self.exclusively(async move {
            let there = number > tracker.certified().number && number <= tracker.head().number;
            if there { tracker.take_back(number).await } else { Ok(()) }
        })
        .await
        .unwrap_or(Err(TrackerError::Stopped))
    }

    /// Whether a vote for this header, which is here, is due: its certificate could be posted, and the sequencer that signed it
    /// is in office, or was a moment ago. A key that is out of office could still sign with old origins, beside the
    /// next one, whose certificates cover what it adopted. Only the last header of an epoch or of a rule set has to have one of
    /// its own.
    ///
    /// # Errors
    /// As [`may_be_certified`](Self::may_be_certified), and [`TrackerError::EpochEnds`] by the header's own origin, which is the
    /// same for everybody; [`TrackerError::OutOfOffice`].
    pub async fn may_be_voted_for(&self, header: &BatchHeader) -> Result<(), TrackerError> {
        self.may_be_certified(header.number).await?;
        if let Some(closing) = self.closing(header.number)
            && header.l1_origin_number >= closing.closed_from()
        {
            return Err(closing.refusal(header.number));
        }
        let (until, read_at) = {
            let epochs = self.shared.epochs.read();
            (epochs.sequencer_until(header.l1_origin_number), epochs.read_at())
        };
        let number = header.number;
        // Mostly it is in office, and L1 is not asked for the epoch.
        let left = read_at > until.saturating_add(HANDOVER_BLOCKS);
        if left && !self.rules_begin(number.saturating_add(1)) && self.epoch(number).await?.last != number {
            return Err(TrackerError::OutOfOffice { number, until, read_at });
        }
        Ok(())
    }

    /// Whether as many headers of the sequencer that signs with this origin lack a certificate as may, at most
    /// [`MAX_UNCERTIFIED_HEADERS`](crate::limits::MAX_UNCERTIFIED_HEADERS). Those of one before it take no room below
    /// [`MAX_UNCERTIFIED_RUN`]: its time is over, and the next one's certificates cover them.
    pub async fn too_many_uncertified(&self, origin: u64, limit: u64) -> Result<bool, StoreError> {
        let (head, certified) = (self.head().number, self.certified().number);
        let waiting = head.saturating_sub(certified);
        if waiting < limit {
            return Ok(false);
        }
        let since = self.shared.epochs.read().sequencer_since(origin);
        if since == 0 {
            return Ok(true);
        }
        let most = MAX_UNCERTIFIED_RUN.max(limit);
        let records =
            self.shared.store.batches(certified.saturating_add(1), waiting.min(most) as usize).await?;
        let ours = records.iter().filter(|record| record.sealed.header.l1_origin_number >= since);
        Ok(ours.count() as u64 >= limit || waiting >= most)
    }

    /// Where a key stands between the sequencer before it and the one after it, as L1 was last read.
    pub fn office(&self, key: Address) -> Office {
        let epochs = self.shared.epochs.read();
        if epochs.sequencers().is_empty() {
            return Office::Holds { term: 0..=u64::MAX };
        }
        Office::of(epochs.sequencer_term(key), epochs.read_at())
    }

    /// Whether the sequencer signed the header of this batch. Of headers that L1 made nobody did.
    pub fn is_signed(&self, batch: &SealedBatch) -> bool {
        self.is_signed_header(&batch.signed_header())
    }

    /// Whether this header bears the signature of the key that L1, as it was last read, names for its origin.
    pub fn is_signed_header(&self, header: &SignedHeader) -> bool {
        let config = &self.shared.config;
        let named = self.shared.epochs.read().sequencer_at(header.header.l1_origin_number);
        let sequencer = named.unwrap_or(config.sequencer);
        validity::check_signature(header, &config.deployment, &sequencer).is_ok()
    }

    /// Whether one key, which is or was the sequencer's, signed both headers. It may have lost its time meanwhile: it
    /// answers with its bond.
    pub fn signed_by_one(&self, first: &SignedHeader, second: &SignedHeader) -> bool {
        let config = &self.shared.config;
        let Ok(signer) = first.signer(&config.deployment) else { return false };
        second.signer(&config.deployment) == Ok(signer) && self.is_sequencer(signer)
    }

    /// Whether this key is, was or will be the sequencer's, as far as L1 was read.
    pub fn is_sequencer(&self, key: Address) -> bool {
        let epochs = self.shared.epochs.read();
        match epochs.sequencers() {
            [] => key == self.shared.config.sequencer,
            _ => epochs.sequencer_term(key).is_some(),
        }
    }

    /// The key that signs headers with the newest final block, as L1 was last read, as their origin.
    pub fn sequencer_now(&self) -> Address {
        let epochs = self.shared.epochs.read();
        epochs.sequencer_at(epochs.read_at()).unwrap_or(self.shared.config.sequencer)
    }

    /// The newest final L1 block as of which the epochs are known.
    pub fn epochs_read_at(&self) -> u64 {
        self.shared.epochs.read().read_at()
    }

    /// The key that signs headers with this L1 origin.
    ///
    /// # Errors
    /// [`L1Error`] where L1 has to be asked and does not answer, or answers for blocks before the origin only.
    pub async fn sequencer_at(&self, origin: u64) -> Result<Address, L1Error> {
        let known = |epochs: &Epochs| match epochs.sequencers() {
            // L1 names no keys: those of a test, or its contract is not final yet.
            [] => Some(self.shared.config.sequencer),
            _ => epochs.sequencer_at(origin).filter(|_| epochs.read_at() >= origin),
        };
        if let Some(sequencer) = known(&self.shared.epochs.read()) {
            return Ok(sequencer);
        }
        self.read_epochs(false).await?;
        let read = known(&self.shared.epochs.read());
        read.ok_or_else(|| L1Error::NotFinal {
            number: origin,
            finalized: self.shared.epochs.read().read_at(),
        })
    }

    /// The key that has to sign this header.
    pub(super) async fn sequencer_of(&self, header: &BatchHeader) -> Result<Address, TrackerError> {
        let (number, origin) = (header.number, header.l1_origin_number);
        match self.sequencer_at(origin).await {
            // L1 is there, and behind.
            Err(fault) if fault.may_pass() && self.shared.epochs_paused.read().is_none() => {
                Err(TrackerError::OriginNotFinal { number, origin })
            }
            answer => Ok(answer?),
        }
    }

    /// Verifies a certificate by itself: epoch, signers, threshold, aggregate signature.
    pub async fn verify_certificate(&self, certificate: &Certificate) -> Result<(), TrackerError> {
        let number = certificate.number;
        let epoch = self.epoch(number).await?;
        let (deployment, certificate) = (self.shared.config.deployment, *certificate);
        let verified =
            blindfold_runtime::blocking(move || certificate::verify(&certificate, &epoch, &deployment))
                .await
                .map_err(|_| TrackerError::Stopped)?;
        // Every other fault shows before the pairings.
        if matches!(verified, Ok(()) | Err(CertificateError::Signature)) {
            self.shared.certificates_paired.fetch_add(1, Ordering::Relaxed);
        }
        verified.map_err(|fault| TrackerError::Certificate { number, fault })
    }

    async fn accept_certificate_locked(
        &self,
        certificate: &Certificate,
    ) -> Result<CertificateOutcome, TrackerError> {
        let number = certificate.number;
        let head = self.head();
        if number > head.number {
            return Err(TrackerError::Behind { expected: head.number + 1, offered: number });
        }
        let offered = certificate.header_hash;
        let record = match self.shared.store.batch(number).await {
            // What was pruned was certified.
            Err(pruned) if pruned.is_pruned() => {
                let known = self.hash_at(number).await?;
                return match known == offered {
                    true => Ok(CertificateOutcome::Known),
                    false => Err(self.contradiction(number, known, offered).await?),
                };
            }
            record => record?,
        };
        let known = record.as_ref().map_or(B256::ZERO, |record| record.hash);
        let certified = self.certified();
        if known != offered {
            if record.is_some_and(|record| record.by_l1) {
                return Err(TrackerError::ReplacedByL1 { number, made: known, offered });
            }
            return Err(if number <= certified.number {
                self.contradiction(number, known, offered).await?
            } else {
                TrackerError::OtherHeaderCertified { number, known, certified: offered }
            });
        }
        if record.is_some_and(|record| record.certificate.is_some() || record.by_l1) {
            return Ok(CertificateOutcome::Known);
        }
        if number > certified.number {
            self.not_overruled(number, &[]).await?;
        }
        self.shared.store.put_certificate(certificate).await?;
        if number <= certified.number {
            return Ok(CertificateOutcome::Kept);
        }
        self.shared.certified.send_replace(HeaderId { number, hash: offered });
        Ok(CertificateOutcome::Advanced)
    }

    /// Takes back our headers from `number` on if the certified one is another, and only if it fits our chain below.
    /// Says whether it took any back.
    async fn give_way_to(&self, number: u64, offered: B256, parent: B256) -> Result<bool, TrackerError> {
        let head = self.head();
        if number == 0 || number > head.number {
            return Ok(false);
        }
        let certified = self.certified();
        let known = self.hash_at(number).await?;
        if known == offered {
            return Ok(false);
        }
        if number <= certified.number {
            return Err(self.contradiction(number, known, offered).await?);
        }
        let below = number - 1;
        let known_parent = self.hash_at(below).await?;
        if known_parent != parent {
            return Err(if below == certified.number {
                self.contradiction(below, known_parent, parent).await?
            } else {
                TrackerError::AncestorDiffers { number: below, parent }
            });
        }
        tracing::error!(
            number,
            uncertified = %known,
            certified = %offered,
            "the sequencer signed two headers for one number: giving way to the certified one"
        );
        self.take_back(number).await?;
        Ok(true)
    }

    /// Whether our header of this number is one that an earlier sequencer left, or that somebody with its key signed since:
    /// without a certificate, out of office, and not what the sequencer after it seals above. It gives way to that one's,
    /// which stands on all that members had acknowledged.
    pub(super) async fn is_left_over(
        &self,
        header: &BatchHeader,
        offered: B256,
    ) -> Result<bool, TrackerError> {
        let number = header.number;
        if number <= self.certified().number {
            return Ok(false);
        }
        let Some(known) = self.shared.store.batch(number).await? else { return Ok(false) };
        let (until, read_at) = {
            let epochs = self.shared.epochs.read();
            (epochs.sequencer_until(known.sealed.header.l1_origin_number), epochs.read_at())
        };
        let later = header.l1_origin_number > until && read_at > until.saturating_add(HANDOVER_BLOCKS);
        let another = known.hash != offered && !known.by_l1;
        Ok(later && another && self.hash_at(number - 1).await? == header.parent_hash)
    }

    /// Hash of our header of a number; zero where there is none.
    pub(super) async fn hash_at(&self, number: u64) -> Result<B256, TrackerError> {
        let certified = self.certified();
        if number == certified.number {
            return Ok(certified.hash);
        }
        Ok(self.shared.store.header_hash(number).await?.unwrap_or_default())
    }

    /// A certificate for another header than the certified one here: the committee is broken, unless L1 made ours, or one
    /// not far below it. Then votes for the branch that L1 ended may have come together late.
    async fn contradiction(
        &self,
        number: u64,
        known: B256,
        offered: B256,
    ) -> Result<TrackerError, TrackerError> {
        let near = self.shared.l1.l1_headers_from(number.saturating_sub(DISPLACED_BRANCH_HEADERS)).await?;
        let made = near.into_iter().rfind(|made| made.number <= number);
        Ok(match made {
            Some(made) => TrackerError::ReplacedByL1 { number: made.number, made: made.hash, offered },
            None => TrackerError::ConflictingCertificates { number, known, offered },
        })
    }

    /// Takes back our uncertified headers from `number` on.
    ///
    /// Cost: what they changed in the ledger, on disk and in memory.
    pub(super) async fn take_back(&self, number: u64) -> Result<(), TrackerError> {
        blindfold_telemetry::traces::forget_from(number);
        let store = &self.shared.store;
        // By the disk: it may have failed in the middle of this before.
        let newest = store.heads().await?.sealed;
        let head = self.head();
        let agrees = newest == Some((head.number, head.hash));
        // Read while it is there.
        let before = if agrees { Some(store.ledger_before(number).await?) } else { None };
        for reverted in (number..=newest.map_or(0, |(newest, _)| newest)).rev() {
            store.revert_sealed(reverted).await?;
        }
        // The disk is the record: memory goes back only to what it holds.
        let went = match (stored_head(store.as_ref()).await?, before) {
            (Some((head, root)), Some(before)) => self.shared.state.write().go_back(head, root, before),
            _ => false,
        };
        if !went {
            let state =
                load_state(&self.shared.config, store.as_ref()).await.map_err(TrackerError::reloading)?;
            let left = std::mem::replace(&mut *self.shared.state.write(), state);
            // A large one takes a while to drop.
            let _ = blindfold_runtime::blocking(move || drop(left)).await;
        }
        let HeaderId { number, hash } = self.show_sealed();
        tracing::debug!(number, %hash, reloaded = !went, "headers were taken back");
        Ok(())
    }
}

/// The headers follow each other and the certificate names the last.
fn check_run(run: &[Arc<SealedBatch>], certificate: &Certificate) -> Result<(), TrackerError> {
    let certified = certificate.header_hash;
    let mismatch = |number, offered| TrackerError::CertificateMismatch { number, offered, certified };
    let Some(last) = run.last() else { return Err(mismatch(certificate.number, B256::ZERO)) };
    for pair in run.windows(2) {
        let [before, after] = pair else { continue };
        if after.header.number != before.header.number + 1 || after.header.parent_hash != before.header.hash()
        {
            return Err(mismatch(after.header.number, after.header.hash()));
        }
    }
    let (number, offered) = (last.header.number, last.header.hash());
    if number == certificate.number && offered == certified { Ok(()) } else { Err(mismatch(number, offered)) }
}
