//! How many durable writes per second one store takes, alone and with many callers at once.
//!
//! `cargo run --release -p blindfold-store --example group_commit -- [folder]`; the folder decides which disk is
//! measured, the temporary one by default.

use std::path::PathBuf;

use blindfold_protocol::B256;
use blindfold_runtime::now;
use blindfold_store::{PendingEnvelope, SqlStore, Store, StoreError};

const ENVELOPE_BYTES: usize = 622;
const WRITES: u64 = 4_000;

#[tokio::main]
async fn main() -> Result<(), StoreError> {
    let folder = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    for callers in [1u64, 16, 256] {
        let path = folder.join(format!("group-commit-{}-{callers}.db", std::process::id()));
        let store = SqlStore::open(&path)?;
        let each = if callers == 1 { WRITES / 16 } else { WRITES / callers };
        let started = now();
        let mut tasks = tokio::task::JoinSet::new();
        for caller in 0..callers {
            let store = store.clone();
            tasks.spawn(async move {
                for count in 0..each {
                    let mut id = B256::ZERO;
                    id.0[..8].copy_from_slice(&caller.to_be_bytes());
                    id.0[8..16].copy_from_slice(&count.to_be_bytes());
                    let bytes = vec![count as u8; ENVELOPE_BYTES];
                    store
                        .put_envelope(PendingEnvelope { id, bytes, arrived_ms: count, seal_by: None })
                        .await?;
                }
                Ok::<_, StoreError>(())
            });
        }
        while let Some(outcome) = tasks.join_next().await {
            outcome.map_err(|error| StoreError::Failed(error.to_string()))??;
        }
        let rate = (callers * each) as f64 / started.elapsed().as_secs_f64();
        println!("{callers:4} callers: {rate:8.0} durable writes per second");
        drop(store);
        for suffix in ["", "-wal", "-shm", ".lock"] {
            let mut name = path.clone().into_os_string();
            name.push(suffix);
            // Left-over files of a measurement harm nobody.
            let _ = std::fs::remove_file(name);
        }
    }
    Ok(())
}
