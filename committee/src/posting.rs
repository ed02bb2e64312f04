//! Posting what the sequencer keeps from L1, with an account that pays for it.
//!
//! What is certified and released and never posted is void after the deadline, and public. A member sees both first: it
//! holds the batch and the certificate, and it is asked for the shares.

use std::{sync::Arc, time::Duration};

use blindfold_chain::{L1Error, L1RoundError, L1Submitter, Look, SubstitutePoster, Turn};
use blindfold_runtime::{Backoff, until};

use crate::member::Context;

/// Longest pause after trouble, in milliseconds.
const MAX_RETRY_MS: u64 = 60_000;

/// Posts overdue headers until the member stops.
pub(crate) async fn post_what_is_overdue(context: Arc<Context>, l1: Arc<dyn L1Submitter>) {
    let mut stop = context.spawner.stop();
    let interval_ms = context.config.limits.posting_check_ms;
    let mut pauses = Backoff::new(interval_ms, MAX_RETRY_MS);
    let mut poster = SubstitutePoster::new(l1, context.tracker.clone());
    loop {
        let outcome = tokio::select! {
            () = until(&mut stop) => return,
            outcome = look(&context, &mut poster) => outcome,
        };
        let pause = match outcome {
            Ok(look) => {
                pauses.reset();
                Duration::from_millis(if look.more { 0 } else { interval_ms })
            }
            Err(fault) => {
                context.metrics.posting_failures.increment();
                let pause = pauses.pause();
                if let L1RoundError::L1(error) = &fault
                    && !error.is_transient()
                {
                    tracing::warn!(
                        %error,
                        ?pause,
                        "L1 refuses headers that the sequencer keeps from it; they are tried again. Was somebody faster, \
                         or has the account of posting_key too little ether?"
                    );
                } else {
                    tracing::warn!(%fault, ?pause, "posting what the sequencer keeps from L1 waits and tries again");
                }
                pause
            }
        };
        tokio::select! {
            () = until(&mut stop) => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

async fn look(context: &Context, poster: &mut SubstitutePoster) -> Result<Look, L1RoundError> {
    let tracker = &context.tracker;
    // Whatever it is, it is no refusal of headers.
    let newest = context.l1.newest().await.map_err(|error| L1Error::no_answer(error.to_string()))?;
    let epoch = tracker.epoch(tracker.certified().number).await.ok();
    let members = epoch.as_ref().map_or(1, |epoch| u16::try_from(epoch.members.len()).unwrap_or(u16::MAX));
    // Who is no member of it any more comes last.
    let present = epoch.is_some_and(|epoch| context.is_member_of(&epoch));
    let index = if present { context.member() } else { members };
    let look = poster.look(newest, Turn::Member { index, of: members }).await?;
    if let Some((first, last)) = look.posted {
        context.metrics.runs_posted.increment();
        tracing::warn!(first, last, "posted certified headers that the sequencer keeps from L1");
    }
    if let Some(number) = look.ended {
        tracing::warn!(number, "had L1 make the last header of an epoch whose end was announced and is due");
    }
    Ok(look)
}
