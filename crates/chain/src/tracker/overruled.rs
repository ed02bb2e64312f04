//! Headers that L1 made a moment ago. Only a final one is followed, for L1 may still take it back; but nothing is voted
//! for or certified in its place meanwhile. A certificate that came so late would be void a few minutes later, for
//! everybody who took it.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::{HeaderId, Refusal, Tracker};
use crate::L1Fault;
use crate::limits::{L1_HEADERS_AGE_MS, L1_HEADERS_PATIENCE_MS};

/// The headers that L1 made and that may not be on this chain yet.
#[derive(Debug, Default)]
pub(super) struct Overruled {
    /// What L1 told last, oldest first.
    headers: Vec<HeaderId>,
    /// When it was asked last, whether or not it answered.
    asked_at: Option<Instant>,
}

impl Tracker {
    /// Asks L1 which headers it made. An L1 that does not answer changes nothing.
    pub(super) async fn look_for_l1_headers(&self) {
        let limit = Duration::from_millis(L1_HEADERS_PATIENCE_MS);
        let told = timeout(limit, self.headers_of_l1()).await;
        let mut known = self.shared.overruled.write();
        known.asked_at = Some(Instant::now());
        match told {
            Ok(Ok(headers)) => known.headers = headers,
            Ok(Err(fault)) => tracing::debug!(%fault, "L1 does not tell which headers it made"),
            Err(_) => tracing::debug!("L1 does not tell in time which headers it made"),
        }
    }

    /// Whether this chain up to `number` has every header that L1 made, final or not. Asks L1 only where nobody
    /// did in the last seconds ([`follow_l1`](Self::follow_l1) does); while it is away its last word counts.
    ///
    /// # Errors
    /// [`Refusal::OverruledByL1`], and the store's.
    pub async fn not_overruled(&self, number: u64) -> Result<(), Refusal> {
        let fresh = Duration::from_millis(L1_HEADERS_AGE_MS);
        if self.shared.overruled.read().asked_at.is_none_or(|at| at.elapsed() > fresh) {
            self.look_for_l1_headers().await;
        }
        let headers = self.shared.overruled.read().headers.clone();
        for made in headers.into_iter().filter(|made| made.number <= number) {
            if self.hash_at(made.number).await? != made.hash {
                return Err(Refusal::OverruledByL1 { number: made.number, made: made.hash });
            }
        }
        Ok(())
    }

    async fn headers_of_l1(&self) -> Result<Vec<HeaderId>, L1Fault> {
        let l1 = &self.shared.l1;
        // In this order: what becomes final in between is among the final ones.
        let mut headers = l1.l1_headers_not_final().await?;
        let next = self.certified().number.saturating_add(1);
        let last = l1.last_l1_header().await?.filter(|last| *last >= next);
        for number in last.into_iter().flat_map(|last| [next, last]) {
            if let Some(made) = l1.l1_header(number).await? {
                headers.push(HeaderId { number, hash: made.header.hash() });
            }
        }
        headers.sort_unstable_by_key(|made| made.number);
        Ok(headers)
    }
}
