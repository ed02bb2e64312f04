//! What stands of what the source says, and who is told of it.

use std::sync::Arc;

use blindfold_chain::announce;
use blindfold_protocol::{BatchHints, Certificate, Release, SealedBatch};
use blindfold_rpc::{
    FeedEvent, Hub, Readiness, ReceiptBoard, Topic,
    types::{BatchInfo, BlockNotification},
};
use parking_lot::Mutex;

use crate::{
    check::{CheckError, Checks},
    follow::SOURCE,
    hints::HintQueue,
    metrics::GatewayMetrics,
    window::{Certified, Taken, Window},
};

/// What is known, shared by whoever follows and whoever answers.
pub(crate) struct Followed {
    pub(crate) checks: Checks,
    pub(crate) window: Mutex<Window>,
    pub(crate) hub: Hub,
    pub(crate) metrics: GatewayMetrics,
    pub(crate) hints: HintQueue,
    pub(crate) readiness: Readiness,
    /// The receipts that are followed here.
    pub(crate) board: ReceiptBoard,
}

impl Followed {
    /// Hands a notification on to the topic's subscribers.
    fn publish(&self, event: &FeedEvent) {
        self.metrics.relayed.get(&[event.topic().as_str()]).increment();
        self.hub.publish(event);
        // Before a certificate, and before a block, nothing that is told changes but by a header.
        if matches!(event.topic(), Topic::Headers | Topic::Certificates | Topic::Blocks) {
            self.board.moved();
        }
    }

    /// Takes a header with what it commits to.
    pub(crate) async fn take_header(
        &self,
        sealed: SealedBatch,
        verdicts: Vec<Option<String>>,
    ) -> Result<Taken, CheckError> {
        let number = sealed.header.number;
        if let Some(known) = self.window.lock().get(number)
            && known.hash == sealed.header.hash()
        {
            return Ok(Taken::Known);
        }
        let held = self.checks.header(sealed, verdicts).await?;
        let event = announce::header(&held.sealed, held.hash, &held.verdicts);
        let taken = {
            let mut window = self.window.lock();
            let taken = window.put(held);
            self.show(&window);
            taken
        };
        // A second header that is signed goes on as well, once: whoever holds the other one has to know.
        if matches!(taken, Taken::New | Taken::Second { new: true }) {
            self.publish(&event);
        }
        Ok(taken)
    }

    /// Takes a certificate that verifies, if its header is here.
    pub(crate) async fn take_certificate(&self, certificate: Certificate) -> Result<Certified, CheckError> {
        {
            let window = self.window.lock();
            if let Some(held) = window.get(certificate.number)
                && held.hash == certificate.header_hash
                && held.certificate.is_some()
            {
                return Ok(Certified::Known);
            }
        }
        self.checks.certificate(certificate).await?;
        let certified = {
            let mut window = self.window.lock();
            let certified = window.certify(certificate);
            self.show(&window);
            certified
        };
        if certified == Certified::New {
            self.publish(&announce::certificate(&certificate));
        }
        Ok(certified)
    }

    pub(crate) fn take_release(&self, release: Release) -> Result<(), CheckError> {
        let held = self.window.lock().get(release.number).cloned();
        let Some(held) = held.filter(|held| held.release.is_none()) else { return Ok(()) };
        self.checks.release(&held, &release)?;
        let event = announce::release(&release);
        if self.window.lock().release(release) {
            self.publish(&event);
        }
        Ok(())
    }

    /// Verifies hints of a batch that is certified here, and hands them on.
    pub(crate) async fn take_hints(&self, hints: Arc<BatchHints>) {
        let number = hints.number;
        let held = {
            let window = self.window.lock();
            window.get(number).filter(|_| number <= window.certified()).cloned()
        };
        // What is not here, or not certified yet, is asked for again.
        let Some(held) = held.filter(|held| held.hints.is_none()) else { return };
        match self.checks.hints(&held, Arc::clone(&hints)).await {
            Ok(()) => {
                let event = announce::hints(&hints);
                let new = self.window.lock().hint(hints);
                if new {
                    self.publish(&event);
                }
            }
            Err(error) => self.refuse(number, &error),
        }
    }

    /// Hands a block on, which nobody can verify who executes nothing.
    pub(crate) fn take_block(&self, block: BlockNotification) {
        self.window.lock().executed(block.last_batch);
        self.publish(&FeedEvent::Block(block));
    }

    /// Takes what the source gave beside a batch's header.
    pub(crate) async fn take_rest(&self, info: &BatchInfo) -> Result<(), CheckError> {
        if let Some(certificate) = &info.certificate {
            let certificate = certificate.decode().map_err(|_| CheckError::Undecodable("certificate"))?;
            self.take_certificate(certificate).await?;
        }
        if let Some(release) = &info.release {
            self.take_release(release.decode().map_err(|_| CheckError::Undecodable("release"))?)?;
        }
        if let Some(hints) = &info.hints {
            self.hints.offer(hints.decode().map_err(|_| CheckError::Undecodable("hints"))?);
        }
        Ok(())
    }

    /// Counts and logs what does not stand; says at `/readyz` what keeps this relay from judging.
    pub(crate) fn refuse(&self, number: u64, error: &CheckError) {
        if error.may_pass() {
            tracing::warn!(number, %error, "cannot be checked");
            self.readiness.set_not_ready(SOURCE, format!("batch {number} cannot be checked: {error}"));
            return;
        }
        self.metrics.refused.increment();
        tracing::warn!(number, %error, "what the source says does not stand");
    }

    pub(crate) fn show(&self, window: &Window) {
        self.metrics.head.set(window.head().unwrap_or_default());
        self.metrics.certified.set(window.certified());
        self.metrics.window_batches.set(window.len() as u64);
    }
}
