//! Takes the hint publisher's release and hints: verified entirely, stored, announced, handed to execution.

use std::sync::Arc;

use blindfold_chain::{HintIntake, HintsIntakeError, announce};
use blindfold_protocol::{BatchHints, Release};
use blindfold_store::StoreError;

use tokio::sync::Mutex;

use crate::{context::Context, gate::Gate, refusal::SubmissionError};

/// Hint lists that may wait for their verification.
const QUEUE_ITEMS: usize = 32;

/// Takes the hints of hint publishers, verified first.
pub(crate) struct HintReceiver {
    cx: Arc<Context>,
    intake: HintIntake,
    /// Bounds the hint lists held at a time.
    gate: Gate,
    /// Hints of publishers who proved who they are.
    of_publishers: Gate,
    /// Of all others one at a time stands in line with them.
    strangers_turn: Mutex<()>,
    /// Hints are verified one batch at a time, with all threads of the backend.
    turn: Mutex<()>,
}

impl HintReceiver {
    pub(crate) fn new(cx: Arc<Context>, intake: HintIntake) -> Self {
        let gate = || Gate::new(1, QUEUE_ITEMS);
        let (strangers_turn, turn) = (Mutex::default(), Mutex::default());
        Self { cx, intake, gate: gate(), of_publishers: gate(), strangers_turn, turn }
    }

    /// True when the hints were added, false when they were here already.
    pub(crate) async fn take_hints(
        &self,
        release: Release,
        hints: BatchHints,
        from_hint_publisher: bool,
    ) -> Result<bool, SubmissionError> {
        let number = hints.number;
        let result = self.take_hints_checked(release, hints, from_hint_publisher).await;
        match &result {
            Ok(true) => self.cx.metrics.hints.increment(),
            Ok(false) => {}
            Err(refusal) => {
                self.cx.metrics.hints_refused.get(&[refusal.reason()]).increment();
                tracing::warn!(number, %refusal, "hints refused");
            }
        }
        result
    }

    async fn take_hints_checked(
        &self,
        release: Release,
        hints: BatchHints,
        from_hint_publisher: bool,
    ) -> Result<bool, SubmissionError> {
        if self.cx.stopping() {
            return Err(SubmissionError::ShuttingDown);
        }
        let (number, head) = (hints.number, self.cx.tracker.head().number);
        if (release.number, release.header_hash) != (number, hints.header_hash) {
            return Err(SubmissionError::ReleaseMismatch);
        }
        if number == 0 || number > head {
            return Err(SubmissionError::UnknownBatch { number, newest: head });
        }
        if number > self.cx.tracker.certified().number {
            return Err(SubmissionError::NotCertified { number });
        }
        // Before a place is taken and anything is verified: after the first right hints, nobody makes us look again.
        match self.intake.known(&hints).await.map_err(|refusal| self.refused_hints(refusal, head))? {
            Some(true) => return Ok(false),
            Some(false) => {
                let detail = format!("batch {number} has its hints, and these are others");
                return Err(SubmissionError::Hints { reason: "second_hints", detail });
            }
            None => {}
        }
        // One place in the queue from the first read to the last write: submissions stay bounded in memory.
        let gate = if from_hint_publisher { &self.of_publishers } else { &self.gate };
        let place = gate.enter()?;
        let accepted = {
            let _stranger = if from_hint_publisher { None } else { Some(self.strangers_turn.lock().await) };
            let _one_at_a_time = self.turn.lock().await;
            check_points(release.clone()).await?;
            self.intake.submit(Some(release), hints.clone()).await
        };
        drop(place);
        let accepted = accepted.map_err(|refusal| self.refused_hints(refusal, head))?;
        if accepted.new {
            tracing::info!(number, hash = %accepted.hash, verified = accepted.verified, "hints verified and stored");
            // The stored release: the first one stays, whoever brings another.
            if let Ok(Some(stored)) =
                self.cx.store.batch(number).await.map(|record| record.and_then(|r| r.release))
            {
                self.cx.hub.publish(&announce::release(&stored));
            }
            self.cx.hub.publish(&announce::hints(&hints));
        }
        Ok(accepted.new)
    }

    fn refused_hints(&self, refusal: HintsIntakeError, head: u64) -> SubmissionError {
        let (reason, detail) = (refusal.as_str(), refusal.to_string());
        match refusal {
            HintsIntakeError::UnknownBatch { number } => {
                SubmissionError::UnknownBatch { number, newest: head }
            }
            HintsIntakeError::NotCertified { number } => SubmissionError::NotCertified { number },
            HintsIntakeError::Wrong { .. } | HintsIntakeError::NoParameters { .. } => {
                SubmissionError::Hints { reason, detail }
            }
            HintsIntakeError::Store(StoreError::Conflict { .. }) => {
                SubmissionError::Hints { reason: "second_hints", detail }
            }
            HintsIntakeError::Store(error) => {
                tracing::error!(%error, "hints not stored");
                SubmissionError::Storage
            }
            HintsIntakeError::Stopped => SubmissionError::ShuttingDown,
        }
    }
}

/// Every point of a release is one of the group: nodes that open the batch themselves rely on it.
async fn check_points(release: Release) -> Result<(), SubmissionError> {
    let wrong = blindfold_runtime::blocking(move || {
        release.pds.iter().position(|pd| blindfold_bte::Release::from_bytes(pd).is_err())
    });
    match wrong.await {
        Ok(None) => Ok(()),
        Ok(Some(index)) => Err(SubmissionError::InvalidRelease { index }),
        Err(blindfold_runtime::Cancelled) => Err(SubmissionError::ShuttingDown),
    }
}
