//! Receipts, asked for by many at a time.

use anyhow::{Result, ensure};
use blindfold_protocol::B256;
use blindfold_rpc::{HttpClient, ReceiptApiClient, limits::MAX_RECEIPTS};
use blindfold_runtime::now;
use serde::Serialize;
use tokio::time::Duration;

/// How long they are asked for.
const SECONDS: u64 = 5;
/// Calls under way at the same time, each on a connection of its own.
const CALLS: usize = 4;

/// How many receipts a sequencer gives over HTTP, with nothing else to do.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Polled {
    /// Receipts of one call.
    pub(super) ids_per_call: usize,
    calls_under_way: usize,
    pub(super) per_second: f64,
}

/// Asks for the receipts of these envelopes, all executed, again and again.
pub(super) async fn poll(sequencer: &HttpClient, ids: &[B256]) -> Result<Polled> {
    let end = now() + Duration::from_secs(SECONDS);
    let started = now();
    let caller = |first: usize| async move {
        let mut given = 0;
        for ids in ids.chunks(MAX_RECEIPTS).cycle().skip(first) {
            if now() >= end {
                break;
            }
            let receipts = sequencer.get_receipts(ids.to_vec()).await?;
            ensure!(receipts.iter().all(Option::is_some), "a receipt that is not there");
            given += receipts.len();
        }
        anyhow::Ok(given)
    };
    ensure!(!ids.is_empty(), "nothing to ask for");
    let (first, second, third, fourth) = tokio::try_join!(caller(0), caller(1), caller(2), caller(3))?;
    let given = first + second + third + fourth;
    let per_second = given as f64 / started.elapsed().as_secs_f64();
    Ok(Polled { ids_per_call: ids.len().min(MAX_RECEIPTS), calls_under_way: CALLS, per_second })
}
