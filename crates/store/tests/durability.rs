//! What survives: dropping, killing, torn files; and what is refused at opening.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use alloy_primitives::B256;
use blindfold_protocol::ledger::LedgerDelta;
use blindfold_runtime::spawn;
use blindfold_servers::Postgres;
use blindfold_store::{FIRST_SCHEMA, SCHEMA_VERSION, SqlStore, Store, StoreError, StoreUrl, What};
use common::*;

const CHILD_URL: &str = "BLINDFOLD_STORE_CHILD_URL";
const REFUSED_CHILD_PATH: &str = "BLINDFOLD_STORE_REFUSED_CHILD_PATH";
/// Acknowledged writes before the child is killed.
const WRITES_BEFORE_KILL: usize = 40;
const KILLS: usize = 3;

#[tokio::test]
async fn everything_is_there_after_reopening() {
    for place in Place::all() {
        let mut delta = credit(1, None, Some(account(7)));
        delta.nonces.push(nonce_change(1, u64::MAX, None, Some(2)));
        let record = sealed(1, B256::ZERO, &[1], 0, delta);
        {
            let store = place.open().await;
            store.put_envelope(envelope(2)).await.unwrap();
            store.put_sealed(record.clone()).await.unwrap();
            let name = place.url.to_string();
            let in_use = StoreError::InUse(name.strip_prefix("sqlite:").unwrap_or(&name).to_owned());
            assert_eq!(place.url.open().await.err(), Some(in_use));
        }
        let store = place.open().await;
        assert_eq!(store.batch(1).await.unwrap().unwrap().sealed, record.sealed);
        assert_eq!(store.pending_envelopes().await.unwrap(), [envelope(2)]);
        assert_eq!(store.account(payer(1)).await.unwrap(), Some(account(7)));
        assert_eq!(stored_nonces(&store).await, [live(1, u64::MAX, 2)]);
    }
}

fn reopen(path: &Path) -> SqlStore {
    try_reopen(path).unwrap()
}

/// The writer thread of a dropped store gives its lock back when it has ended, which nobody waits for.
fn try_reopen(path: &Path) -> Result<SqlStore, StoreError> {
    loop {
        match SqlStore::open(path) {
            Err(StoreError::InUse(_)) => std::thread::yield_now(),
            opened => return opened,
        }
    }
}

/// Not a test of its own: the process that `kill_in_the_middle_of_writes` kills.
#[test]
fn child_that_writes_until_killed() {
    let Ok(url) = std::env::var(CHILD_URL) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = url.parse::<StoreUrl>().unwrap().open().await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        let newest = store.heads().await.unwrap().sealed.unwrap_or((0, B256::ZERO));
        let sealing = store.clone();
        tasks.spawn(async move {
            let (mut number, mut parent) = newest;
            loop {
                number += 1;
                let record = sealed(number, parent, &[number], 0, LedgerDelta::default());
                parent = record.hash;
                sealing.put_sealed(record).await.unwrap();
                println!("\nacked sealed {number}");
            }
        });
        for lane in 1..=4u64 {
            let store = store.clone();
            let start = store.pending_envelopes().await.unwrap().len() as u64;
            tasks.spawn(async move {
                for count in 0.. {
                    let number = (lane << 40) + (start << 20) + count;
                    store.put_envelope(envelope(number)).await.unwrap();
                    println!("\nacked envelope {number}");
                }
            });
        }
        tasks.join_next().await;
    });
}

#[tokio::test]
async fn kill_in_the_middle_of_writes() {
    let folder = tempfile::tempdir().unwrap();
    let file = format!("sqlite:{}", folder.path().join("store.db").display());
    killed_again_and_again(file).await;
    if let Some(server) = Postgres::shared() {
        killed_again_and_again(server.fresh().unwrap()).await;
    }
}

async fn killed_again_and_again(url: String) {
    let (mut batches, mut envelopes) = (Vec::new(), Vec::new());
    for _ in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_writes_until_killed", "--nocapture", "--test-threads=1"])
            .env(CHILD_URL, &url)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut seen = 0;
        // A kill can cut the last line, so only whole lines count.
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while lines.read_line(&mut line).unwrap() > 0 {
            if let (Some(acked), true) = (line.trim_end().strip_prefix("acked "), line.ends_with('\n')) {
                let (kind, number) = acked.split_once(' ').unwrap();
                let number: u64 = number.parse().unwrap();
                if kind == "sealed" {
                    batches.push(number)
                } else {
                    envelopes.push(number)
                }
                seen += 1;
                if seen == WRITES_BEFORE_KILL {
                    child.kill().unwrap();
                }
            }
            line.clear();
        }
        child.wait().unwrap();
        assert!(seen >= WRITES_BEFORE_KILL, "the child ended by itself after {seen} writes");
    }
    let store = url.parse::<StoreUrl>().unwrap().open().await.unwrap();
    assert!(batches.len() > KILLS);
    for number in &batches {
        assert_eq!(store.batch(*number).await.unwrap().unwrap().number, *number);
        assert!(store.acknowledged(*number).await.unwrap().is_some());
    }
    let pending: std::collections::HashSet<_> =
        store.pending_envelopes().await.unwrap().into_iter().map(|envelope| envelope.id).collect();
    for number in &envelopes {
        assert!(pending.contains(&id(*number)), "envelope {number} was acknowledged and is lost");
    }
}

/// Not a test of its own: writes until the operating system refuses, and says what the store said.
#[tokio::test]
async fn child_that_writes_until_refused() {
    let Ok(path) = std::env::var(REFUSED_CHILD_PATH) else { return };
    let store = reopen(path.as_ref());
    let mut number = 0;
    let error = loop {
        number += 1;
        match store.put_envelope(envelope(number)).await {
            Ok(()) => println!("\nacked envelope {number}"),
            Err(error) => break error,
        }
    };
    let next = store.put_envelope(envelope(number + 1)).await.unwrap_err();
    println!(
        "\nrefused {} {}",
        matches!(error, StoreError::Stopped(_)),
        matches!(next, StoreError::Stopped(_))
    );
    assert!(store.pending_envelopes().await.unwrap().len() as u64 == number - 1, "reading goes on");
}

/// A file-size limit makes the disk fail in the middle: the store stops, and what it acknowledged is there.
#[cfg(unix)]
#[tokio::test]
async fn a_failing_disk_stops_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    // The schema is written without the limit.
    drop(SqlStore::open(&path).unwrap());
    drop(reopen(&path));
    let script = "trap '' XFSZ; ulimit -f 400; exec \"$0\" \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_writes_until_refused", "--nocapture", "--test-threads=1"])
        .env(REFUSED_CHILD_PATH, &path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.contains("\nrefused true true"), "{output}\n{said}");
    let acked = output.lines().filter(|line| line.starts_with("acked envelope ")).count();
    assert!(acked > 0);
    assert!(reopen(&path).pending_envelopes().await.unwrap().len() >= acked);
}

/// Who moves or copies the file has to know when it is whole.
#[tokio::test]
async fn a_closed_store_is_one_file_that_nobody_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let mut parent = B256::ZERO;
    for number in 1..=20 {
        let store = reopen(&path);
        let other = store.clone();
        let record = sealed(number, parent, &[number], 0, LedgerDelta::default());
        parent = record.hash;
        store.put_sealed(record).await.unwrap();
        // A write and a read whose callers went away.
        let (write, read) = (other.clone(), other.clone());
        let abandoned = spawn(async move {
            let _ = tokio::join!(write.put_acknowledged(number, B256::ZERO, 1), read.batches(1, 100));
        });
        tokio::task::yield_now().await;
        abandoned.abort();
        drop(other);
        store.close().await;
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["store.db", "store.db.lock"]);
    }
}

/// A log cut at any place opens, and holds the batches up to some number without a gap, each whole.
#[tokio::test]
async fn a_torn_log_opens_to_a_prefix() {
    const BATCHES: u64 = 6;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqlStore::open(&path).unwrap();
    let mut parent = B256::ZERO;
    for number in 1..=BATCHES {
        let record = sealed(number, parent, &[number], 0, LedgerDelta::default());
        parent = record.hash;
        store.put_sealed(record).await.unwrap();
    }
    let (file, log) = (fs::read(&path).unwrap(), fs::read(folder.path().join("store.db-wal")).unwrap());
    drop(store);

    let mut lengths = std::collections::BTreeSet::new();
    for step in 0..=24 {
        let cut = log.len() * step / 24;
        let torn = folder.path().join(format!("torn-{step}.db"));
        fs::write(&torn, &file).unwrap();
        let mut tail = log[..cut].to_vec();
        // The last sector of an interrupted write may hold anything.
        if let Some(byte) = tail.last_mut() {
            *byte ^= u8::from(step != 24);
        }
        fs::write(folder.path().join(format!("torn-{step}.db-wal")), tail).unwrap();
        let store = SqlStore::open(&torn).unwrap();
        let newest = store.heads().await.unwrap().sealed.map_or(0, |(number, _)| number);
        assert_eq!(store.batches(1, 100).await.unwrap().len() as u64, newest);
        assert_eq!(store.heads().await.unwrap().acknowledged.unwrap_or(0), newest);
        lengths.insert(newest);
    }
    assert!(lengths.contains(&BATCHES) && lengths.len() > 2, "{lengths:?}");
}

#[tokio::test]
async fn damaged_and_foreign_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let garbage = folder.path().join("garbage.db");
    fs::write(&garbage, vec![0x5a; 8_192]).unwrap();
    assert!(
        matches!(SqlStore::open(&garbage), Err(StoreError::Open { store, .. }) if store == garbage.display().to_string())
    );
    let nowhere = folder.path().join("no/such/folder/store.db");
    assert!(matches!(SqlStore::open(nowhere), Err(StoreError::Open { .. })));

    let newer = folder.path().join("newer.db");
    let raw = rusqlite::Connection::open(&newer).unwrap();
    raw.pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
    drop(raw);
    let refused = StoreError::NewerSchema { found: SCHEMA_VERSION + 1, known: SCHEMA_VERSION };
    assert_eq!(SqlStore::open(&newer).err(), Some(refused));

    // Files of protocol version 1 hold nothing that this one understands, and are left as they are.
    let older = folder.path().join("older.db");
    for found in 1..FIRST_SCHEMA {
        let raw = rusqlite::Connection::open(&older).unwrap();
        raw.pragma_update(None, "user_version", found).unwrap();
        raw.execute_batch("CREATE TABLE IF NOT EXISTS accounts (payer BLOB, nonces BLOB)").unwrap();
        drop(raw);
        let refused = StoreError::OlderSchema { found, oldest: FIRST_SCHEMA };
        assert_eq!(try_reopen(&older).err(), Some(refused));
        let raw = rusqlite::Connection::open(&older).unwrap();
        let tables: i64 = raw.query_row("SELECT COUNT(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
        assert_eq!(tables, 1);
    }

    // A record changed from outside does not come out as something else.
    let changed = folder.path().join("changed.db");
    drop(SqlStore::open(&changed).unwrap());
    let store = reopen(&changed);
    store.put_sealed(sealed(1, B256::ZERO, &[1], 0, credit(1, None, Some(account(1))))).await.unwrap();
    let raw = rusqlite::Connection::open(&changed).unwrap();
    raw.execute_batch("UPDATE batches SET sealed = x'02'; UPDATE accounts SET balance = x'00';").unwrap();
    assert!(matches!(store.batch(1).await, Err(StoreError::Corrupt { what: What::Batch, .. })));
    assert!(matches!(store.ledger().await, Err(StoreError::Corrupt { what: What::Account, .. })));
    raw.execute_batch("DROP TABLE meta").unwrap();
    let failed = store.meta("x").await.unwrap_err();
    assert!(matches!(failed, StoreError::Failed(_)) && failed.retry(), "{failed}");
}

/// What held surcharges were was forgotten with the certificate: a rewind would bring back a ledger that never was.
#[tokio::test]
async fn a_disk_of_the_first_schema_goes_back_to_no_certified_batch_of_that_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    drop(SqlStore::open(&path).unwrap());
    let store = reopen(&path);
    store.keep_ledgers_from(0).await.unwrap();
    let first = sealed(1, B256::ZERO, &[], 0, credit(1, None, Some(account(1))));
    let second = sealed(2, first.hash, &[], 0, credit(1, Some(account(1)), None));
    store.put_sealed(first).await.unwrap();
    store.put_sealed(second.clone()).await.unwrap();
    drop(store);
    let raw = rusqlite::Connection::open(&path).unwrap();
    let later = "DROP TABLE held_floor; DROP TABLE displaced_acknowledgements;
        DROP INDEX confidential_accounts_by_version; DROP INDEX confidential_nodes_by_version;
        DROP INDEX public_balances_by_version";
    raw.execute_batch(later).unwrap();
    raw.pragma_update(None, "user_version", FIRST_SCHEMA).unwrap();
    drop(raw);

    let store = reopen(&path);
    let third = sealed(3, second.hash, &[], 0, credit(1, None, Some(account(2))));
    store.put_sealed(third).await.unwrap();
    let refused = store.rewind(1, None).await;
    assert_eq!(refused, Err(StoreError::Forgotten { number: 1, kept_from: 2 }));
    store.rewind(2, None).await.unwrap();
    assert_eq!(store.heads().await.unwrap().sealed, Some((2, second.hash)));
}

/// A file from elsewhere may be anything: nothing in it is computed because it is read.
#[test]
fn a_file_with_views_or_triggers_is_read_by_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot.sqlite");
    drop(SqlStore::open(&path).unwrap());
    drop(SqlStore::open_reader(&path).unwrap());
    let endless = "CREATE VIEW endless AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c";
    let trigger = "CREATE TRIGGER more AFTER INSERT ON meta BEGIN DELETE FROM meta; END";
    for (add, remove) in [(endless, "DROP VIEW endless"), (trigger, "DROP TRIGGER more")] {
        let changed = rusqlite::Connection::open(&path).unwrap();
        changed.execute_batch(add).unwrap();
        let refused = SqlStore::open_reader(&path).unwrap_err().to_string();
        assert!(refused.contains("views, triggers or virtual tables"), "{refused}");
        changed.execute_batch(remove).unwrap();
        drop(SqlStore::open_reader(&path).unwrap());
    }
}
