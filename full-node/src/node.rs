//! What the tasks of a full node share.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::B256;
use blindfold_chain::{
    CertificateOutcome, HintIntake, HintsError, HintsIntakeError, NextStep, RunFetcher, Tracker,
    TrackerError, announce,
};
use blindfold_protocol::{BatchHints, Certificate, Release, SignedHeader};
use blindfold_rpc::{BlindApiClient, HttpClient, Hub};
use blindfold_runtime::{Patience, Pauses, Spawner};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::counters::Counters;
use crate::decrypt::LocalDecryption;
use crate::hint_fetcher::Wake;
use crate::limits::MAX_PARKED_ENTRIES;
use crate::members::Members;
use crate::watch::EvidenceStore;

/// Who may have an ancestor of a certified batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AncestorSource {
    Sequencer,
    Member(u16),
}

pub(crate) struct Node {
    pub(crate) tracker: Tracker,
    pub(crate) intake: HintIntake,
    pub(crate) decryption: LocalDecryption,
    pub(crate) members: Members,
    /// How members are asked for what the sequencer does not give.
    pub(crate) fetcher: RunFetcher,
    /// Who was slow to give an ancestor, or did not have it.
    pub(crate) ancestor_pauses: Mutex<Pauses<AncestorSource>>,
    /// `None` where the node follows from L1 alone.
    pub(crate) sequencer: Option<HttpClient>,
    pub(crate) hub: Hub,
    pub(crate) counters: Counters,
    /// Wakes the fetcher of hints.
    pub(crate) wakes: mpsc::Sender<Wake>,
    /// Blocks that the sequencer announced, by number and hash.
    pub(crate) announced: mpsc::Sender<(u64, B256)>,
    /// Releases that came before their hints.
    pub(crate) releases: Mutex<BTreeMap<u64, Release>>,
    /// Evidence that L1 judges, kept on disk.
    pub(crate) evidence: Arc<EvidenceStore>,
    pub(crate) spawner: Spawner,
    /// How long it has been kept from going on.
    pub(crate) patience: Mutex<Patience>,
}

impl Node {
    /// Notes what keeps the node from going on, and hardly passes by itself. What lasts may be mended by a new start.
    pub(crate) fn stuck(&self, number: u64, refusal: &TrackerError) {
        let lasts = self.patience.lock().failed();
        self.cannot_go_on(number, refusal, lasts);
    }

    /// The same, by whoever knows whether it has lasted too long.
    pub(crate) fn cannot_go_on(&self, number: u64, refusal: &TrackerError, lasts: bool) {
        tracing::error!(number, %refusal, "cannot go on; trying again");
        if lasts {
            self.spawner.fail("chain", refusal.to_string());
        }
    }

    /// Counts and logs a header that is not taken.
    pub(crate) fn header_refused(&self, number: u64, refusal: &TrackerError) {
        if let TrackerError::Second { .. } = refusal {
            self.counters.second_headers_refused.increment();
        }
        match refusal.next_step() {
            NextStep::Reject => {
                self.counters.headers_rejected.add(refusal.as_str());
                tracing::warn!(number, %refusal, "header refused");
            }
            NextStep::Stop => self.stuck(number, refusal),
            NextStep::Retry | NextStep::CatchUp => tracing::debug!(number, %refusal, "header not taken yet"),
        }
    }

    /// Keeps two headers of one number, where they are such: both with the sequencer's signature. Headers that L1 made
    /// have none.
    pub(crate) async fn two_headers(&self, first: SignedHeader, second: SignedHeader) {
        let number = first.header.number;
        let (a, b) = (&first, &second);
        if b.header.number != number || a.header == b.header || !self.tracker.signed_by_one(a, b) {
            return;
        }
        let origins = (a.header.l1_origin_number, b.header.l1_origin_number);
        if self.tracker.excused_by_l1(number, origins).await.unwrap_or(false) {
            tracing::warn!(
                number,
                "the sequencer signed this number again after a header that L1 made below it"
            );
            return;
        }
        match self.evidence.keep_headers(first, second).await {
            Ok(true) => {
                self.counters.watch_equivocations.increment();
                tracing::error!(number, first = %first.header.hash(), second = %second.header.hash(),
                    "the sequencer signed two headers for one number: both are kept; with watch.key set this node \
                     shows them on L1, where they cost the sequencer its bond");
            }
            Ok(false) => {}
            Err(error) => tracing::error!(number, %error, "evidence of a second header could not be stored"),
        }
    }

    /// Keeps what shows that a header of ours and another one of its number were both signed.
    pub(crate) async fn differs_from_ours(&self, other: SignedHeader) {
        let number = other.header.number;
        match self.tracker.store().batch(number).await {
            Ok(Some(ours)) if ours.hash != other.header.hash() => {
                self.two_headers(ours.sealed.signed_header(), other).await;
            }
            Ok(_) => {}
            Err(pruned) if pruned.is_pruned() => {
                tracing::warn!(number, %pruned, "another header of this number cannot be shown beside ours");
            }
            Err(error) => tracing::error!(number, %error, "the disk does not give the batch"),
        }
    }

    /// Counts and logs a certificate that is not taken.
    pub(crate) fn certificate_refused(&self, number: u64, refusal: &TrackerError) {
        let against_the_committee = matches!(refusal, TrackerError::ConflictingCertificates { .. });
        match refusal.next_step() {
            NextStep::Reject => {
                self.counters.bad_certificates_rejected.add(refusal.as_str());
                tracing::warn!(number, %refusal, "certificate refused");
            }
            NextStep::Stop => {
                if against_the_committee {
                    self.counters.bad_certificates_rejected.add(refusal.as_str());
                }
                self.stuck(number, refusal);
            }
            NextStep::Retry | NextStep::CatchUp => {
                tracing::debug!(number, %refusal, "certificate not taken yet")
            }
        }
    }

    /// Tells subscribers of a certificate that was taken.
    pub(crate) fn certificate_taken(&self, certificate: &Certificate, outcome: CertificateOutcome) {
        if outcome != CertificateOutcome::Known {
            self.patience.lock().reset();
            self.counters.certificates_verified.increment();
            self.hub.publish(&announce::certificate(certificate));
        }
    }

    /// Keeps a release until its hints come.
    pub(crate) fn park_release(&self, release: Release) {
        let mut releases = self.releases.lock();
        releases.insert(release.number, release);
        while releases.len() > MAX_PARKED_ENTRIES {
            releases.pop_first();
        }
    }

    /// The release that was published for a batch, if any.
    pub(crate) fn release_of(&self, number: u64) -> Option<Release> {
        self.releases.lock().get(&number).cloned()
    }

    /// Verifies and stores hints, whoever brought them. Wrong ones are counted here.
    pub(crate) async fn take_hints(&self, hints: BatchHints) -> Result<(), HintsIntakeError> {
        self.take(self.release_of(hints.number), hints).await
    }

    /// The same for hints that were made here, and the release that they were made with.
    pub(crate) async fn take_opened(
        &self,
        release: Release,
        hints: BatchHints,
    ) -> Result<(), HintsIntakeError> {
        self.take(Some(release), hints).await
    }

    async fn take(&self, mut release: Option<Release>, hints: BatchHints) -> Result<(), HintsIntakeError> {
        let number = hints.number;
        let taken = match self.intake.submit(release.clone(), hints.clone()).await {
            // The release may be the wrong one of the two.
            Err(HintsIntakeError::Wrong {
                fault: HintsError::OtherHeader | HintsError::SubBatches { .. },
                ..
            }) if release.is_some() => {
                self.releases.lock().remove(&number);
                release = None;
                let taken = self.intake.submit(None, hints.clone()).await;
                if taken.is_ok() {
                    self.counters.bad_releases_rejected.increment();
                }
                taken
            }
            taken => taken,
        };
        match taken {
            Ok(accepted) => {
                self.releases.lock().remove(&number);
                if accepted.new {
                    self.counters.hints_verified.add(accepted.verified as u64);
                    if let Some(release) = release {
                        self.hub.publish(&announce::release(&release));
                    }
                    self.hub.publish(&announce::hints(&hints));
                }
                Ok(())
            }
            Err(refusal) => {
                if let HintsIntakeError::Wrong { .. } | HintsIntakeError::NoParameters { .. } = refusal {
                    self.counters.bad_hints_rejected.add(refusal.as_str());
                    tracing::warn!(number, %refusal, "hints refused");
                }
                Err(refusal)
            }
        }
    }

    /// Asks the sequencer where it stands, and which chain it is on.
    pub(crate) async fn hear_standing(&self) {
        let Some(sequencer) = &self.sequencer else { return };
        let Ok(status) = sequencer.get_status().await else { return };
        let chain = self.tracker.config();
        if let Err(other) = status.check_chain(chain.chain_id, &chain.deployment) {
            tracing::error!("the sequencer {other}");
        } else if status.block.number > 0 {
            self.heard_of_block(status.block.number, status.block.hash).await;
        }
    }

    /// The sequencer announced this block.
    pub(crate) async fn heard_of_block(&self, number: u64, hash: B256) {
        // Its receiver only reads memory and disk, so this never waits long.
        let _ = self.announced.send((number, hash)).await;
    }

    /// The hints that the sequencer holds for a batch.
    pub(crate) async fn fetch_hints(&self, number: u64) -> Option<BatchHints> {
        match self.sequencer.as_ref()?.get_hints(number).await {
            Ok(Some(encoded)) => match encoded.decode() {
                Ok(hints) if hints.number == number => Some(hints),
                Ok(_) | Err(_) => {
                    self.counters.bad_hints_rejected.add("undecodable");
                    None
                }
            },
            Ok(None) => None,
            Err(error) => {
                tracing::debug!(number, %error, "the sequencer gives no hints");
                None
            }
        }
    }
}
