//! How the servers that follow keep up: told to whoever watches, and nothing is decided by it.

use std::{sync::Weak, time::Duration};

use blindfold_runtime::spawn;

use crate::{
    StoreError, StoreMetrics,
    sql::{
        Readers,
        session::{Session, Value, first},
    },
};

/// How often the server is asked.
const LOOK: Duration = Duration::from_secs(5);

/// Looks in a row that fail before nothing is shown any more.
const FAILED_LOOKS: u32 = 3;

/// What the server that takes writes says of those that follow it: how many stream, and how far behind the last of all is.
/// Base backups and receivers of logs replay nothing, and are none. A user that may not read it is shown rows without a state,
/// which count for nothing.
const FOLLOWERS: &str = "
    SELECT (COUNT(*) FILTER (WHERE state = 'streaming'))::BIGINT,
        COALESCE((EXTRACT(EPOCH FROM MAX(replay_lag)) * 1000)::BIGINT, 0)
    FROM pg_stat_replication WHERE replay_lsn IS NOT NULL";

/// Shows it in these metrics for as long as the connections are open.
pub(crate) fn show(readers: Weak<Readers>, metrics: StoreMetrics) {
    // It ends with them; nobody waits for it.
    drop(spawn(async move {
        let mut failed = 0;
        loop {
            tokio::time::sleep(LOOK).await;
            let Some(readers) = readers.upgrade() else {
                // Another process may have the records now, and shows it.
                metrics.followers.set(0);
                metrics.replication_lag_ms.set(0);
                return;
            };
            match readers.read(followers).await {
                Ok((followers, lag_ms)) => {
                    failed = 0;
                    metrics.followers.set(followers);
                    metrics.replication_lag_ms.set(lag_ms);
                }
                Err(error) => {
                    tracing::debug!(%error, "how the followers keep up is not known");
                    failed += 1;
                    if failed == FAILED_LOOKS {
                        // Another process may have the records by now.
                        metrics.followers.set(0);
                        metrics.replication_lag_ms.set(0);
                    }
                }
            }
        }
    }));
}

/// How many servers follow, and how far the last of them is behind, in milliseconds.
fn followers(session: &dyn Session) -> Result<(u64, u64), StoreError> {
    let found = first(session, FOLLOWERS, &[], |row| Ok((number(&row.value(0)?), number(&row.value(1)?))))?;
    Ok(found.unwrap_or_default())
}

fn number(value: &Value<'_>) -> u64 {
    match value {
        Value::Integer(number) => u64::try_from(*number).unwrap_or_default(),
        _ => 0,
    }
}
