//! What the proxy has answered for, on disk: each held transaction and the envelope that carries it.
//!
//! A transaction's hash is answered only after its row is durable, and an envelope is sent only after its bytes are,
//! so that after a crash the very same envelope is sent again (the same id: the sequencer takes it once).
//!
//! What is written while the disk is busy with a commit waits for the next one together: one commit, and so one sync, for
//! all of it. Whoever finds no commit under way begins one, so nobody waits for others to come.

use std::{
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use alloy_primitives::{Address, B256, Bytes};
use blindfold_runtime::{Cancelled, FileLock, blocking};
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, params};
use tokio::sync::oneshot;

/// Version of the tables.
const SCHEMA_VERSION: i64 = 3;

/// Finished transactions remembered at most; beyond it the oldest are forgotten.
const MAX_FINISHED_ROWS: i64 = 100_000;

/// Most writes of one commit: nobody's answer waits for an endless one.
const MAX_GROUP_WRITES: usize = 1_024;

/// A journal in memory, for tests.
const IN_MEMORY: &str = ":memory:";

/// The journal; one process at a time.
pub struct Journal {
    /// For reads, which need not wait for a commit; none where the journal is in memory.
    reader: Option<Mutex<Connection>>,
    open: Arc<Mutex<Open>>,
    /// What waits for a commit, in its order.
    waiting: Mutex<Vec<Job>>,
    /// Held by whoever has a commit made.
    turn: tokio::sync::Mutex<()>,
}

struct Open {
    connection: Connection,
    /// The last place in the order of arrival that was given out.
    received: i64,
    /// Commits so far.
    commits: u64,
    /// Held for as long as anything may be written: two proxies would send each transaction twice.
    _lock: Option<FileLock>,
}

/// A write, and who waits for it.
struct Job {
    write: Write,
    answer: oneshot::Sender<Result<(), JournalError>>,
}

enum Write {
    Hold { hash: B256, raw: Bytes, gone: bool },
    Carry { envelope: EnvelopeRow, hashes: Vec<B256> },
    Settle { envelope: B256, rows: Vec<(B256, Option<String>, bool)> },
    GiveUp { hash: B256, outcome: String },
}

/// Why the journal does not do its work.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The database reports an error.
    #[error("the proxy's journal: {0}")]
    Database(#[from] rusqlite::Error),
    /// The file cannot be created or locked.
    #[error("{path}: {cause}")]
    File {
        /// Path of the journal.
        path: PathBuf,
        /// What the operating system said.
        cause: io::Error,
    },
    /// Another proxy works on this file.
    #[error("{0} is in use by another proxy: two would send everything twice")]
    InUse(PathBuf),
    /// The file is of another version of this program.
    #[error(
        "{path} has schema {got}, this program writes {SCHEMA_VERSION}: use the program that wrote it, or point `state` at another file"
    )]
    OtherVersion {
        /// Path of the journal.
        path: PathBuf,
        /// Version of its tables.
        got: i64,
    },
    /// The file belongs to another chain or payer.
    #[error("{path} belongs to {found}, not to {expected}: point `state` at another file")]
    Foreign {
        /// Path of the journal.
        path: PathBuf,
        /// Chain, deployment and payer that it belongs to.
        found: String,
        /// Chain, deployment and payer of this proxy.
        expected: String,
    },
    /// The transaction is already in the journal.
    #[error("already known")]
    Known,
    /// The process ends.
    #[error(transparent)]
    Ends(#[from] Cancelled),
}

/// A transaction the proxy answered for and has not seen finished.
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(test, derive(Debug))]
pub struct HeldRow {
    /// The raw signed transaction.
    pub raw: Bytes,
    /// Envelopes that already carried it in vain.
    pub attempts: u32,
    /// The envelope that carries it now.
    pub envelope: Option<B256>,
}

/// An envelope under way, as a row of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvelopeRow {
    /// Id of the envelope.
    pub id: B256,
    /// The sender of the transactions that it carries.
    pub sender: Address,
    /// Its encoding, as it is sent again.
    pub bytes: Bytes,
    /// The envelopes in whose place it was made.
    pub earlier: Vec<B256>,
}

/// What is known of a transaction the proxy once answered for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The envelope that carries or carried it last.
    pub envelope: Option<B256>,
    /// `included`, or why it was given up; none while it is under way.
    pub outcome: Option<String>,
    /// Whether an envelope with it was opened, or may have been: others may have read it.
    pub revealed: bool,
}

/// What the end of an envelope means for one of its transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettledRow<'a> {
    /// Hash of the transaction.
    pub hash: B256,
    /// How it ended; without an outcome it is held again.
    pub outcome: Option<&'a str>,
    /// Whether the envelope was opened, or may have been. Stays once it is set.
    pub revealed: bool,
}

impl Journal {
    /// Opens or creates the journal at `path` for one owner (chain, deployment and payer in a line).
    ///
    /// # Errors
    /// Every variant of [`JournalError`] but [`JournalError::Known`] and [`JournalError::Ends`].
    pub fn open(path: &Path, owner: &str) -> Result<Self, JournalError> {
        let lock = if path == Path::new(IN_MEMORY) { None } else { Some(claim(path)?) };
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version == 2 {
            connection.execute_batch(
                "BEGIN;
                 ALTER TABLE envelopes ADD COLUMN earlier BLOB NOT NULL DEFAULT x'';
                 PRAGMA user_version = 3;
                 COMMIT;",
            )?;
        } else if version != 0 && version != SCHEMA_VERSION {
            return Err(JournalError::OtherVersion { path: path.to_owned(), got: version });
        }
        if version == 0 {
            connection.execute_batch(
                "BEGIN;
                 CREATE TABLE owner (text TEXT NOT NULL);
                 CREATE TABLE transactions (
                     hash BLOB PRIMARY KEY, raw BLOB NOT NULL, received INTEGER NOT NULL,
                     attempts INTEGER NOT NULL DEFAULT 0, envelope BLOB, outcome TEXT,
                     revealed INTEGER NOT NULL DEFAULT 0
                 ) WITHOUT ROWID;
                 CREATE INDEX transactions_under_way ON transactions (received) WHERE outcome IS NULL;
                 CREATE INDEX transactions_finished ON transactions (received) WHERE outcome IS NOT NULL;
                 CREATE TABLE envelopes (
                     id BLOB PRIMARY KEY, sender BLOB NOT NULL, bytes BLOB NOT NULL, earlier BLOB NOT NULL DEFAULT x''
                 ) WITHOUT ROWID;
                 PRAGMA user_version = 3;
                 COMMIT;",
            )?;
        }
        let found: Option<String> =
            connection.query_row("SELECT text FROM owner", [], |row| row.get(0)).optional()?;
        match found {
            None => {
                connection.execute("INSERT INTO owner VALUES (?1)", [owner])?;
            }
            Some(found) if found != owner => {
                return Err(JournalError::Foreign {
                    path: path.to_owned(),
                    found,
                    expected: owner.to_owned(),
                });
            }
            Some(_) => {}
        }
        let received =
            connection
                .query_row("SELECT coalesce(max(received), 0) FROM transactions", [], |row| row.get(0))?;
        let reader = lock.as_ref().map(|_| Connection::open(path)).transpose()?;
        Ok(Self {
            reader: reader.map(Mutex::new),
            open: Arc::new(Mutex::new(Open { connection, received, commits: 0, _lock: lock })),
            waiting: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        })
    }

    /// Records a transaction; durable when this returns. One that was given up may come again, and so may one that was
    /// included, where it is `gone` from the node's blocks: L1 took them back.
    ///
    /// # Errors
    /// [`JournalError::Known`], [`JournalError::Database`], [`JournalError::Ends`].
    pub async fn hold(&self, hash: &B256, raw: &Bytes, gone: bool) -> Result<(), JournalError> {
        self.write(Write::Hold { hash: *hash, raw: raw.clone(), gone }).await
    }

    /// Records that an envelope carries these transactions; durable when this returns.
    ///
    /// # Errors
    /// [`JournalError::Database`], [`JournalError::Ends`].
    pub async fn carry(&self, envelope: &EnvelopeRow, hashes: &[B256]) -> Result<(), JournalError> {
        self.write(Write::Carry { envelope: envelope.clone(), hashes: hashes.to_vec() }).await
    }

    /// Ends an envelope: each transaction with an outcome is finished, the others are held again.
    ///
    /// # Errors
    /// [`JournalError::Database`], [`JournalError::Ends`].
    pub async fn settle(&self, envelope: &B256, rows: &[SettledRow<'_>]) -> Result<(), JournalError> {
        let rows = rows.iter().map(|row| (row.hash, row.outcome.map(str::to_owned), row.revealed)).collect();
        self.write(Write::Settle { envelope: *envelope, rows }).await
    }

    /// Gives up a transaction that is in no envelope.
    ///
    /// # Errors
    /// [`JournalError::Database`], [`JournalError::Ends`].
    pub async fn give_up(&self, hash: &B256, outcome: &str) -> Result<(), JournalError> {
        self.write(Write::GiveUp { hash: *hash, outcome: outcome.to_owned() }).await
    }

    /// How many commits were made since it was opened: each is one sync of the disk.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.open.lock().commits
    }

    /// Queues a write and waits until it is committed. Whoever gets the turn has everything committed that waits by then,
    /// his own with it.
    async fn write(&self, write: Write) -> Result<(), JournalError> {
        let (answer, mut answered) = oneshot::channel();
        self.waiting.lock().push(Job { write, answer });
        loop {
            let _turn = tokio::select! {
                biased;
                answer = &mut answered => return answer.map_err(|_| JournalError::Ends(Cancelled))?,
                turn = self.turn.lock() => turn,
            };
            let jobs: Vec<Job> = {
                let mut waiting = self.waiting.lock();
                let most = waiting.len().min(MAX_GROUP_WRITES);
                waiting.drain(..most).collect()
            };
            if !jobs.is_empty() {
                let open = Arc::clone(&self.open);
                blocking(move || open.lock().commit_all(jobs)).await?;
            }
        }
    }

    fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, JournalError> {
        Ok(match &self.reader {
            Some(reader) => read(&reader.lock())?,
            None => read(&self.open.lock().connection)?,
        })
    }

    /// What is known of a transaction.
    ///
    /// # Errors
    /// [`JournalError::Database`].
    pub fn trace(&self, hash: &B256) -> Result<Option<Traced>, JournalError> {
        self.read(|connection| {
            connection
                .query_row(
                    "SELECT envelope, outcome, revealed FROM transactions WHERE hash = ?1",
                    [hash.as_slice()],
                    |row| {
                        let (envelope, outcome) = (optional_hash(row.get(0)?), row.get(1)?);
                        Ok(Traced { envelope, outcome, revealed: row.get(2)? })
                    },
                )
                .optional()
        })
    }

    /// Everything under way, transactions in order of arrival, for a restart.
    ///
    /// # Errors
    /// [`JournalError::Database`].
    pub fn under_way(&self) -> Result<(Vec<HeldRow>, Vec<EnvelopeRow>), JournalError> {
        let open = self.open.lock();
        let mut query = open.connection.prepare(
            "SELECT raw, attempts, envelope FROM transactions WHERE outcome IS NULL ORDER BY received",
        )?;
        let held = query
            .query_map([], |row| {
                Ok(HeldRow {
                    raw: row.get::<_, Vec<u8>>(0)?.into(),
                    attempts: row.get(1)?,
                    envelope: optional_hash(row.get(2)?),
                })
            })?
            .collect::<Result<_, _>>()?;
        let mut query = open.connection.prepare("SELECT id, sender, bytes, earlier FROM envelopes")?;
        let envelopes = query
            .query_map([], |row| {
                let (id, sender): (Vec<u8>, Vec<u8>) = (row.get(0)?, row.get(1)?);
                let (bytes, earlier): (Vec<u8>, Vec<u8>) = (row.get(2)?, row.get(3)?);
                Ok((optional_hash(Some(id)), Address::try_from(sender.as_slice()).ok(), bytes, earlier))
            })?
            .filter_map(|row| match row {
                Ok((Some(id), Some(sender), bytes, earlier)) => {
                    let earlier = earlier.chunks_exact(32).map(B256::from_slice).collect();
                    Some(Ok(EnvelopeRow { id, sender, bytes: bytes.into(), earlier }))
                }
                // Only this program writes the table, and always whole hashes.
                Ok(_) => None,
                Err(error) => Some(Err(error)),
            })
            .collect::<Result<_, _>>()?;
        Ok((held, envelopes))
    }
}

impl Open {
    /// Makes all of these writes durable by one commit, and answers those who wait. Where that fails, each gets a commit of its
    /// own: one that cannot be written keeps no other from it.
    fn commit_all(&mut self, mut jobs: Vec<Job>) {
        // Whoever is gone was answered nothing, and asks for nothing.
        jobs.retain(|job| !job.answer.is_closed());
        let alone = jobs.len() <= 1;
        let results = match self.commit(&jobs) {
            Ok(results) => results,
            Err(fault) if alone => vec![Err(fault.into())],
            Err(fault) => {
                tracing::warn!(%fault, writes = jobs.len(), "a commit of the proxy's journal failed; one by one");
                let each = jobs.iter().map(|job| {
                    let result = self.commit(std::slice::from_ref(job)).map(|mut results| results.pop());
                    result.map_or_else(|fault| Err(fault.into()), |result| result.unwrap_or(Ok(())))
                });
                each.collect()
            }
        };
        for (job, result) in jobs.into_iter().zip(results) {
            // Whoever does not wait any more does not want to know.
            let _ = job.answer.send(result);
        }
    }

    /// One commit. An error means that nothing of it was written.
    fn commit(&mut self, jobs: &[Job]) -> Result<Vec<Result<(), JournalError>>, rusqlite::Error> {
        let mut received = self.received;
        let mut transaction = self.connection.transaction()?;
        let mut results = Vec::with_capacity(jobs.len());
        for job in jobs {
            let savepoint = transaction.savepoint()?;
            let result = job.write.apply(&savepoint, &mut received);
            match result {
                Ok(()) => savepoint.commit()?,
                // Some faults undo the whole transaction: what follows would be written outside it.
                Err(JournalError::Database(fault)) if savepoint.is_autocommit() => return Err(fault),
                Err(_) => savepoint.finish()?,
            }
            results.push(result);
        }
        transaction.commit()?;
        (self.received, self.commits) = (received, self.commits + 1);
        Ok(results)
    }
}

impl Write {
    fn apply(&self, transaction: &Connection, received: &mut i64) -> Result<(), JournalError> {
        match self {
            Self::Hold { hash, raw, gone } => {
                let under_way: Option<bool> = transaction
                    .query_row(
                        "SELECT outcome IS NULL OR (outcome = 'included' AND NOT ?2) FROM transactions WHERE hash = ?1",
                        params![hash.as_slice(), gone],
                        |row| row.get(0),
                    )
                    .optional()?;
                if under_way == Some(true) {
                    return Err(JournalError::Known);
                }
                let place = received.saturating_add(1);
                transaction.execute(
                    "INSERT INTO transactions (hash, raw, received) VALUES (?1, ?2, ?3)
                     ON CONFLICT (hash) DO UPDATE SET
                         raw = excluded.raw, received = excluded.received, attempts = 0, envelope = NULL, outcome = NULL",
                    params![hash.as_slice(), raw.as_ref(), place],
                )?;
                *received = place;
            }
            Self::Carry { envelope, hashes } => {
                let earlier: Vec<u8> = envelope.earlier.iter().flat_map(|id| id.0).collect();
                // It takes the place of the last of them.
                for id in &envelope.earlier {
                    transaction.execute("DELETE FROM envelopes WHERE id = ?1", [id.as_slice()])?;
                }
                let EnvelopeRow { id, sender, bytes, .. } = envelope;
                transaction.execute(
                    "INSERT INTO envelopes (id, sender, bytes, earlier) VALUES (?1, ?2, ?3, ?4)",
                    params![id.as_slice(), sender.as_slice(), bytes.as_ref(), earlier],
                )?;
                for hash in hashes {
                    transaction.execute(
                        "UPDATE transactions SET envelope = ?2, attempts = attempts + 1 WHERE hash = ?1",
                        params![hash.as_slice(), id.as_slice()],
                    )?;
                }
            }
            Self::Settle { envelope, rows } => {
                for (hash, outcome, revealed) in rows {
                    // One that goes on keeps no envelope; one that ended keeps its last.
                    transaction.execute(
                        "UPDATE transactions SET outcome = ?2, revealed = revealed OR ?3,
                             envelope = CASE WHEN ?2 IS NULL THEN NULL ELSE envelope END
                         WHERE hash = ?1",
                        params![hash.as_slice(), outcome, revealed],
                    )?;
                }
                transaction.execute("DELETE FROM envelopes WHERE id = ?1", [envelope.as_slice()])?;
                forget_old(transaction, *received)?;
            }
            Self::GiveUp { hash, outcome } => {
                transaction.execute(
                    "UPDATE transactions SET outcome = ?2 WHERE hash = ?1",
                    params![hash.as_slice(), outcome],
                )?;
                forget_old(transaction, *received)?;
            }
        }
        Ok(())
    }
}

/// Forgets finished transactions that arrived long ago.
fn forget_old(connection: &Connection, received: i64) -> Result<usize, rusqlite::Error> {
    let oldest_kept = received.saturating_sub(MAX_FINISHED_ROWS);
    connection.execute("DELETE FROM transactions WHERE outcome IS NOT NULL AND received <= ?1", [oldest_kept])
}

/// Creates the file for its owner alone (it holds transactions that nobody may see yet) and locks it.
fn claim(path: &Path) -> Result<FileLock, JournalError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |cause| JournalError::File { path, cause }
    };
    let mut options = FileLock::options();
    options.mode(0o600);
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let lock_path = PathBuf::from(name);
    let lock = FileLock::acquire(&lock_path, &options).map_err(failed(&lock_path))?;
    let lock = lock.ok_or_else(|| JournalError::InUse(path.to_owned()))?;
    // The database gives its side files the permissions of the main one.
    drop(options.open(path).map_err(failed(path))?);
    Ok(lock)
}

fn optional_hash(bytes: Option<Vec<u8>>) -> Option<B256> {
    bytes.and_then(|bytes| B256::try_from(bytes.as_slice()).ok())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn raw(byte: u8) -> Bytes {
        vec![byte; 40].into()
    }

    fn envelope(byte: u8) -> EnvelopeRow {
        EnvelopeRow {
            id: B256::repeat_byte(byte),
            sender: Address::repeat_byte(9),
            bytes: raw(byte),
            earlier: vec![],
        }
    }

    #[tokio::test]
    async fn what_was_held_is_there_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.sqlite");
        let (first, second) = (B256::repeat_byte(1), B256::repeat_byte(2));
        {
            let journal = Journal::open(&path, "owner").unwrap();
            journal.hold(&first, &raw(1), false).await.unwrap();
            journal.hold(&second, &raw(2), false).await.unwrap();
            assert!(matches!(journal.hold(&first, &raw(1), false).await, Err(JournalError::Known)));
            journal.carry(&envelope(7), &[first]).await.unwrap();
        }
        let journal = Journal::open(&path, "owner").unwrap();
        let (held, envelopes) = journal.under_way().unwrap();
        assert_eq!(envelopes, [envelope(7)]);
        assert_eq!(
            held,
            [
                HeldRow { raw: raw(1), attempts: 1, envelope: Some(B256::repeat_byte(7)) },
                HeldRow { raw: raw(2), attempts: 0, envelope: None },
            ]
        );
    }

    #[tokio::test]
    async fn an_envelope_takes_the_place_of_earlier_ones() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.sqlite");
        let hash = B256::repeat_byte(1);
        let later = |byte, earlier: &[u8]| EnvelopeRow {
            earlier: earlier.iter().map(|byte| B256::repeat_byte(*byte)).collect(),
            ..envelope(byte)
        };
        {
            let journal = Journal::open(&path, "owner").unwrap();
            journal.hold(&hash, &raw(1), false).await.unwrap();
            journal.carry(&envelope(7), &[hash]).await.unwrap();
            // As the version before left it.
            let open = journal.open.lock();
            open.connection
                .execute_batch("ALTER TABLE envelopes DROP COLUMN earlier; PRAGMA user_version = 2")
                .unwrap();
        }
        let journal = Journal::open(&path, "owner").unwrap();
        assert_eq!(journal.under_way().unwrap().1, [envelope(7)]);
        journal.carry(&later(8, &[7]), &[hash]).await.unwrap();
        journal.carry(&later(9, &[7, 8]), &[hash]).await.unwrap();
        let (held, envelopes) = journal.under_way().unwrap();
        assert_eq!(envelopes, [later(9, &[7, 8])]);
        assert_eq!(held, [HeldRow { raw: raw(1), attempts: 3, envelope: Some(B256::repeat_byte(9)) }]);
    }

    #[tokio::test]
    async fn a_settled_envelope_frees_or_finishes_its_transactions() {
        let journal = Journal::open(Path::new(":memory:"), "owner").unwrap();
        let (done, again) = (B256::repeat_byte(1), B256::repeat_byte(2));
        journal.hold(&done, &raw(1), false).await.unwrap();
        journal.hold(&again, &raw(2), false).await.unwrap();
        journal.carry(&envelope(7), &[done, again]).await.unwrap();
        let settled = |hash, outcome, revealed| SettledRow { hash, outcome, revealed };
        let rows = [settled(done, Some("included"), true), settled(again, None, false)];
        journal.settle(&B256::repeat_byte(7), &rows).await.unwrap();
        let (held, envelopes) = journal.under_way().unwrap();
        assert!(envelopes.is_empty());
        assert_eq!(held, [HeldRow { raw: raw(2), attempts: 1, envelope: None }]);
        let traced = journal.trace(&done).unwrap().unwrap();
        let envelope = Some(B256::repeat_byte(7));
        assert_eq!(traced, Traced { envelope, outcome: Some("included".into()), revealed: true });
        assert!(!journal.trace(&again).unwrap().unwrap().revealed);
        assert_eq!(journal.trace(&B256::repeat_byte(9)).unwrap(), None);
        assert!(
            matches!(journal.hold(&done, &raw(1), false).await, Err(JournalError::Known)),
            "never sent twice"
        );
        journal.hold(&done, &raw(1), true).await.unwrap();
        assert_eq!(journal.trace(&done).unwrap().unwrap().outcome, None, "its block was taken back");
        journal.give_up(&again, "nonce_too_low").await.unwrap();
        journal.hold(&again, &raw(2), false).await.unwrap();
    }

    #[tokio::test]
    async fn only_its_owner_reads_it_and_one_proxy_at_a_time_opens_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.sqlite");
        let journal = Journal::open(&path, "owner").unwrap();
        journal.hold(&B256::repeat_byte(1), &raw(1), false).await.unwrap();
        for entry in std::fs::read_dir(dir.path()).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o077, 0, "{:?}", entry.path());
        }
        assert!(matches!(Journal::open(&path, "owner"), Err(JournalError::InUse(_))));
        drop(journal);
        Journal::open(&path, "owner").unwrap();
    }

    #[tokio::test]
    async fn the_order_of_arrival_survives_restarts_and_old_outcomes_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.sqlite");
        for byte in [9, 1, 5] {
            let journal = Journal::open(&path, "owner").unwrap();
            journal.hold(&B256::repeat_byte(byte), &raw(byte), false).await.unwrap();
        }
        let journal = Journal::open(&path, "owner").unwrap();
        let (held, _) = journal.under_way().unwrap();
        assert_eq!(held.iter().map(|row| row.raw[0]).collect::<Vec<_>>(), [9, 1, 5]);
        journal.give_up(&B256::repeat_byte(9), "expired").await.unwrap();
        assert!(journal.trace(&B256::repeat_byte(9)).unwrap().is_some());
        journal.open.lock().received += MAX_FINISHED_ROWS;
        journal.give_up(&B256::repeat_byte(5), "expired").await.unwrap();
        assert!(journal.trace(&B256::repeat_byte(9)).unwrap().is_none(), "long ago");
        assert!(journal.trace(&B256::repeat_byte(1)).unwrap().is_some(), "under way, however old");
    }

    #[tokio::test]
    async fn another_owner_and_a_file_of_another_version_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.sqlite");
        drop(Journal::open(&path, "owner").unwrap());
        let missing = dir.path().join("none/journal.sqlite");
        assert!(matches!(Journal::open(&missing, "owner"), Err(JournalError::File { .. })));
        assert!(matches!(Journal::open(&path, "somebody else"), Err(JournalError::Foreign { .. })));
        for version in [1, 99] {
            Connection::open(&path).unwrap().pragma_update(None, "user_version", version).unwrap();
            let refused = Journal::open(&path, "owner");
            assert!(matches!(refused, Err(JournalError::OtherVersion { got, .. }) if got == version));
        }
        std::fs::write(&path, "this is no database, and long enough to be read as one").unwrap();
        assert!(matches!(Journal::open(&path, "owner"), Err(JournalError::Database(_))));
    }

    fn holding(
        journal: &Journal,
        bytes: std::ops::Range<u8>,
    ) -> Vec<impl Future<Output = Result<(), JournalError>>> {
        bytes
            .map(|byte| async move { journal.hold(&B256::repeat_byte(byte), &raw(byte), false).await })
            .collect()
    }

    /// Has all of these writes waiting before the first gets its turn, as they do behind a commit that takes long.
    async fn all_at_once<W: Future>(journal: &Journal, writes: W) -> W::Output {
        let mut writes = std::pin::pin!(writes);
        let turn = journal.turn.lock().await;
        assert!(futures::poll!(&mut writes).is_pending());
        drop(turn);
        writes.await
    }

    #[tokio::test]
    async fn what_comes_while_the_disk_is_busy_is_committed_together() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.sqlite");
        let journal = Journal::open(&path, "owner").unwrap();
        for (n, held) in holding(&journal, 0..8).into_iter().enumerate() {
            held.await.unwrap();
            assert_eq!(journal.commits(), n as u64 + 1, "nobody waits for others to come");
        }
        let together = all_at_once(&journal, futures::future::join_all(holding(&journal, 8..108))).await;
        assert!(together.into_iter().all(|held| held.is_ok()));
        assert_eq!(journal.commits(), 8 + 1);
        drop(journal);
        let (held, _) = Journal::open(&path, "owner").unwrap().under_way().unwrap();
        assert_eq!(held.iter().map(|row| row.raw[0]).collect::<Vec<_>>(), (0..108).collect::<Vec<u8>>());
    }

    #[tokio::test]
    async fn one_write_that_fails_takes_no_other_with_it() {
        let journal = Journal::open(Path::new(":memory:"), "owner").unwrap();
        let (one, two) = (B256::repeat_byte(1), B256::repeat_byte(2));
        journal.hold(&one, &raw(1), false).await.unwrap();
        journal.carry(&envelope(7), &[one]).await.unwrap();
        let before = journal.commits();
        let (again, raws, of_two) = (envelope(7), [1, 2].map(raw), [two]);
        let writes = futures::future::join4(
            journal.hold(&two, &raws[1], false),
            journal.hold(&one, &raws[0], false),
            // There is one with this id.
            journal.carry(&again, &of_two),
            journal.give_up(&two, "expired"),
        );
        let (held, known, twice, given_up) = all_at_once(&journal, writes).await;
        assert!(held.is_ok() && given_up.is_ok());
        assert!(matches!(known, Err(JournalError::Known)));
        assert!(matches!(twice, Err(JournalError::Database(_))));
        assert_eq!(journal.commits(), before + 1);
        let traced = journal.trace(&two).unwrap().unwrap();
        assert_eq!(
            (traced.envelope, traced.outcome.as_deref()),
            (None, Some("expired")),
            "undone, and only that"
        );
    }

    #[tokio::test]
    async fn a_commit_that_fails_is_made_again_write_by_write() {
        let journal = Journal::open(Path::new(":memory:"), "owner").unwrap();
        // As a disk that fills up does, this fault ends the transaction that stands around it.
        journal
            .open
            .lock()
            .connection
            .execute_batch(
                "CREATE TRIGGER full BEFORE INSERT ON transactions WHEN new.raw = x'ff'
                 BEGIN SELECT RAISE(ROLLBACK, 'full'); END",
            )
            .unwrap();
        let (full, hashes) = (Bytes::from_static(&[0xff]), [1, 2, 3, 4].map(B256::repeat_byte));
        let raws = [1, 2, 4].map(raw);
        let writes = futures::future::join4(
            journal.hold(&hashes[0], &raws[0], false),
            journal.hold(&hashes[1], &raws[1], false),
            journal.hold(&hashes[2], &full, false),
            journal.hold(&hashes[3], &raws[2], false),
        );
        let (a, b, c, d) = all_at_once(&journal, writes).await;
        assert!(a.is_ok() && b.is_ok() && d.is_ok());
        assert!(matches!(c, Err(JournalError::Database(_))));
        let (held, _) = journal.under_way().unwrap();
        assert_eq!(held.iter().map(|row| row.raw[0]).collect::<Vec<_>>(), [1, 2, 4]);
    }

    #[tokio::test]
    async fn whoever_hung_up_before_its_turn_holds_nothing_and_delays_nobody() {
        let journal = Journal::open(Path::new(":memory:"), "owner").unwrap();
        let [gone, stays] = [1, 2].map(B256::repeat_byte);
        let turn = journal.turn.lock().await;
        let (gone_raw, stays_raw) = (raw(1), raw(2));
        let mut hangs_up = Box::pin(journal.hold(&gone, &gone_raw, false));
        let mut waits = Box::pin(journal.hold(&stays, &stays_raw, false));
        assert!(futures::poll!(&mut hangs_up).is_pending() && futures::poll!(&mut waits).is_pending());
        drop(hangs_up);
        drop(turn);
        waits.await.unwrap();
        assert_eq!(journal.under_way().unwrap().0.len(), 1);
    }
}
