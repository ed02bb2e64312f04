//! Giving the hints to the sequencer, until it has them.

use std::time::Duration;

use blindfold_protocol::{BatchHints, Release};
use blindfold_rpc::{BlindApiClient, Encoded, HttpClient, ReceivedError, SequencerApiClient};
use blindfold_runtime::Backoff;

use crate::WorkError;

/// Longest pause before the sequencer is offered hints again, in milliseconds.
const MAX_PAUSE_MS: u64 = 5_000;

/// Sends release and hints until the sequencer takes them, or has the hints of this header from elsewhere.
///
/// Stated blinding factors only save work: who does not take the hints with them is offered the hints alone.
///
/// # Errors
/// [`WorkError::NotTaken`] when it refuses them for good.
pub(crate) async fn publish(
    sequencer: &HttpClient,
    release: &Release,
    mut hints: BatchHints,
    retry: Duration,
) -> Result<(), WorkError> {
    let (number, mut unanswered) = (hints.number, false);
    let mut pauses = Backoff::new(u64::try_from(retry.as_millis()).unwrap_or(u64::MAX), MAX_PAUSE_MS);
    loop {
        let error = match sequencer.submit_hints(Encoded::new(release), Encoded::new(&hints)).await {
            Ok(_) => return Ok(()),
            Err(error) => ReceivedError::from(error),
        };
        // The answer may have been lost, or another hint publisher was faster.
        if let Ok(Some(known)) = sequencer.get_hints(number).await
            && known.decode().is_ok_and(|known| known.header_hash == hints.header_hash)
        {
            return Ok(());
        }
        // L1 may have made another header in its place.
        if let Ok(Some(info)) = sequencer.get_batch(number).await
            && info.sealed.decode().is_ok_and(|sealed| sealed.header.hash() != hints.header_hash)
        {
            return Err(WorkError::NotTaken { reason: "it has another header of that number".to_owned() });
        }
        let without = match &error {
            ReceivedError::Refused(error) => !error.retry,
            // Once may be a lost answer; more than once the request may be too large.
            ReceivedError::NoAnswer(_) => std::mem::replace(&mut unanswered, true),
        };
        if without && !hints.blindings.is_empty() {
            tracing::warn!(number, %error, "hints not taken; sending them without blinding factors");
            hints.blindings.clear();
            continue;
        }
        if !error.retry() {
            return Err(WorkError::NotTaken { reason: error.to_string() });
        }
        tracing::warn!(number, %error, "hints not taken; sending them again");
        tokio::time::sleep(pauses.pause_after(error.retry_after())).await;
    }
}
