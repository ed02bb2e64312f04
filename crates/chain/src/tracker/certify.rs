//! Taking certificates, and giving way to the header that has one.

use std::sync::Arc;

use alloy_primitives::B256;
use blindfold_protocol::{Certificate, CertifiedBatch, SealedBatch, certificate, validity};

use super::{Applied, HeaderId, Refusal, Tracker, load_state};
use crate::limits::DEAD_BRANCH_HEADERS;

/// What a certificate changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateOutcome {
    /// The number and its ancestors are certified now.
    Advanced,
    /// The number was certified through a descendant; its own certificate is kept.
    Kept,
    /// It was known.
    Known,
}

impl Tracker {
    /// Verifies a certificate for a header that is here, keeps it durably, and moves the certified head.
    ///
    /// When it names another header than ours, nothing changes and the refusal says so: fetch the certified batch
    /// and give it to [`accept_certified`](Self::accept_certified). Where L1 made another header a moment ago, it is
    /// refused until that one is final and followed ([`Refusal::OverruledByL1`]).
    pub async fn accept_certificate(&self, certificate: &Certificate) -> Result<CertificateOutcome, Refusal> {
        self.verify_certificate(certificate).await?;
        let (tracker, certificate) = (self.clone(), *certificate);
        self.exclusively(async move { tracker.accept_certificate_locked(&certificate).await })
            .await
            .unwrap_or(Err(Refusal::Stopped))
    }

    /// Takes a batch together with its certificate, whatever uncertified headers stand in its way here.
    ///
    /// If our header of that number is another one and is not certified, ours and its descendants are taken back
    /// and the certified one is applied. The header itself is checked as completely as any other.
    pub async fn accept_certified(
        &self,
        batch: &CertifiedBatch,
    ) -> Result<(Applied, CertificateOutcome), Refusal> {
        let run = [Arc::new(batch.sealed.clone())];
        let (mut applied, outcome) = self.accept_certified_run(&run, &batch.certificate).await?;
        // A run of one gives one.
        applied.pop().map(|applied| (applied, outcome)).ok_or(Refusal::Stopped)
    }

    /// [`accept_certified`](Self::accept_certified) for a run of batches, oldest first, of which the certificate names
    /// the last: it certifies its ancestors. For when more than one of our headers has to give way.
    pub async fn accept_certified_run(
        &self,
        run: &[Arc<SealedBatch>],
        certificate: &Certificate,
    ) -> Result<(Vec<Applied>, CertificateOutcome), Refusal> {
        check_run(run, certificate)?;
        self.verify_certificate(certificate).await?;
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
        .unwrap_or(Err(Refusal::Stopped))
    }

    /// Whether the sequencer signed the header of this batch. Of headers that L1 made nobody did.
    pub fn is_signed(&self, batch: &SealedBatch) -> bool {
        let config = &self.shared.config;
        validity::check_signature(&batch.signed_header(), &config.deployment, &config.sequencer).is_ok()
    }

    /// Verifies a certificate by itself: epoch, signers, threshold, aggregate signature.
    pub async fn verify_certificate(&self, certificate: &Certificate) -> Result<(), Refusal> {
        let number = certificate.number;
        let epoch = self.epoch(number).await?;
        let (deployment, certificate) = (self.shared.config.deployment, *certificate);
        tokio::task::spawn_blocking(move || certificate::verify(&certificate, &epoch, &deployment))
            .await
            .map_err(|_| Refusal::Stopped)?
            .map_err(|fault| Refusal::Certificate { number, fault })
    }

    async fn accept_certificate_locked(
        &self,
        certificate: &Certificate,
    ) -> Result<CertificateOutcome, Refusal> {
        let number = certificate.number;
        let head = self.head();
        if number > head.number {
            return Err(Refusal::Behind { expected: head.number + 1, offered: number });
        }
        let offered = certificate.header_hash;
        let record = self.shared.store.batch(number).await?;
        let known = record.as_ref().map_or(B256::ZERO, |record| record.hash);
        let certified = self.certified();
        if known != offered {
            if record.is_some_and(|record| record.by_l1) {
                return Err(Refusal::ReplacedByL1 { number, made: known, offered });
            }
            return Err(if number <= certified.number {
                self.contradiction(number, known, offered).await?
            } else {
                Refusal::OtherHeaderCertified { number, known, certified: offered }
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
    async fn give_way_to(&self, number: u64, offered: B256, parent: B256) -> Result<bool, Refusal> {
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
                Refusal::AncestorDiffers { number: below, parent }
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

    /// Hash of our header of a number; zero where there is none.
    pub(super) async fn hash_at(&self, number: u64) -> Result<B256, Refusal> {
        let certified = self.certified();
        if number == certified.number {
            return Ok(certified.hash);
        }
        Ok(self.shared.store.batch(number).await?.map_or(B256::ZERO, |record| record.hash))
    }

    /// A certificate for another header than the certified one here: the committee is broken, unless L1 made ours, or one
    /// not far below it. Then votes for the branch that L1 ended may have come together late.
    async fn contradiction(&self, number: u64, known: B256, offered: B256) -> Result<Refusal, Refusal> {
        let near = self.shared.l1.l1_headers_from(number.saturating_sub(DEAD_BRANCH_HEADERS)).await?;
        let made = near.into_iter().rfind(|made| made.number <= number);
        Ok(match made {
            Some(made) => Refusal::ReplacedByL1 { number: made.number, made: made.hash, offered },
            None => Refusal::ConflictingCertificates { number, known, offered },
        })
    }

    /// Takes back our uncertified headers from `number` on.
    pub(super) async fn take_back(&self, number: u64) -> Result<(), Refusal> {
        for reverted in (number..=self.head().number).rev() {
            self.shared.store.revert_sealed(reverted).await?;
        }
        // The disk holds what the accounts were before each header: it is the record, so the state is read from it.
        let state =
            load_state(&self.shared.config, self.shared.store.as_ref()).await.map_err(Refusal::reloading)?;
        let sealed = HeaderId { number: state.head().number, hash: state.head().hash };
        *self.shared.state.write() = state;
        self.shared.sealed.send_replace(sealed);
        Ok(())
    }
}

/// The headers follow each other and the certificate names the last.
fn check_run(run: &[Arc<SealedBatch>], certificate: &Certificate) -> Result<(), Refusal> {
    let certified = certificate.header_hash;
    let mismatch = |number, offered| Refusal::CertificateMismatch { number, offered, certified };
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
