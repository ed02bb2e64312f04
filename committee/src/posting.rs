//! Posting what the sequencer keeps from L1, with an account that pays for it.
//!
//! What is certified and released and never posted is void after the deadline, and public. A member sees both first: it
//! holds the batch and the certificate, and it is asked for the shares.

use std::{sync::Arc, time::Duration};

use blindfold_chain::{OverdueFault, PostFault, PostedRun, RunPoster, Substitute, post_overdue};
use blindfold_runtime::Backoff;

use crate::{acknowledge::stopped, member::Context};

/// Longest pause after trouble, in milliseconds.
const MAX_RETRY_MS: u64 = 60_000;

/// Posts overdue headers until the member stops.
pub(crate) async fn post_what_is_overdue(context: Arc<Context>, l1: Arc<dyn RunPoster>) {
    let mut stop = context.spawner.stop();
    let interval_ms = context.config.limits.posting_check_ms;
    let mut pauses = Backoff::new(interval_ms, MAX_RETRY_MS);
    loop {
        let outcome = tokio::select! {
            () = stopped(&mut stop) => return,
            outcome = look(&context, l1.as_ref()) => outcome,
        };
        let pause = match outcome {
            Ok(run) => {
                pauses.reset();
                Duration::from_millis(if run.is_some_and(|run| run.more) { 0 } else { interval_ms })
            }
            Err(fault) => {
                context.metrics.posting_failures.increment();
                let pause = pauses.pause();
                if let OverdueFault::L1(PostFault::Refused(reason)) = &fault {
                    tracing::warn!(
                        reason,
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
            () = stopped(&mut stop) => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

async fn look(context: &Context, l1: &dyn RunPoster) -> Result<Option<PostedRun>, OverdueFault> {
    let tracker = &context.tracker;
    let newest = context.l1.newest().await.map_err(|fault| PostFault::Unavailable(fault.to_string()))?;
    let epoch = tracker.epoch(tracker.certified().number).await;
    let of = epoch.map_or(0, |epoch| u16::try_from(epoch.members.len()).unwrap_or(u16::MAX));
    let turn = Substitute::Member { index: context.member(), of };
    let posted = post_overdue(l1, tracker, newest, turn).await?;
    if let Some(PostedRun { first, last, .. }) = posted {
        context.metrics.runs_posted.increment();
        tracing::warn!(first, last, "posted certified headers that the sequencer keeps from L1");
    }
    Ok(posted)
}
