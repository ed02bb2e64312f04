//! A connection to a PostgreSQL server.
//!
//! Each has a runtime of its own, which the thread that uses it drives: the statements are asked for one after the other by
//! plain functions, and no event loop has to come round in between.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    error::Error as _,
    future::Future,
    pin::pin,
    time::Duration,
};

use blindfold_runtime::{now, random};
use bytes::BytesMut;
use futures::{TryStreamExt, future::join, stream::FuturesOrdered, stream::StreamExt};
use tokio::{runtime::Runtime, task::JoinHandle, time};
use tokio_postgres::{
    Client, Statement,
    error::{Severity, SqlState},
    types::{IsNull, ToSql, Type, to_sql_checked},
};

use super::{LOCK_NOT_AVAILABLE, PostgresUrl, tls::connector};
use crate::{
    Candidate, Leader, StoreError, What,
    sql::{
        convert::number,
        session::{Connection, ReadRow, Row, Session, Value, execute, first, values},
    },
};

/// How long a server may take to accept a connection, and to answer anything that is asked of it. A transaction that waits
/// longer for replicas has an answer that was lost.
pub const SERVER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a store waits for a server after the answer to a commit was lost. Then it stops: what stands is open.
pub const RESOLVE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a connection waits for the store, which whoever had it before may just be giving back.
const TAKE_TIMEOUT_MS: u64 = 2_000;
/// The pause between two attempts to reach a server.
const RECONNECT_PAUSE: Duration = Duration::from_millis(200);

/// What every session is set to. A machine that is gone, or a process that hangs in a transaction, holds neither the store
/// nor its rows for long. What the server makes durable stays what it was when the session began, whatever it is set to
/// later.
const SESSION: &str = "
    SET client_connection_check_interval = '1s';
    SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3;
    SET standard_conforming_strings = on;
    SET client_min_messages = warning;
    SELECT set_config('synchronous_commit', current_setting('synchronous_commit'), false);";

/// How long a statement waits for a row.
const ROW_TIMEOUT: &str = "SET lock_timeout = 5000";

/// How long a session may do nothing in a transaction: one that writes holds rows; one that reads holds none, and may wait
/// for whoever takes what it reads.
const WRITER_IDLE: &str = "SET idle_in_transaction_session_timeout = '10s'";
const READER_IDLE: &str = "SET idle_in_transaction_session_timeout = '30min'";

/// The lock of a store's schema: a prefix of ours, so that no other program's lock on the database is the same.
const LOCK_KEY: &str = "(1651469428::bigint << 32) + current_schema()::regnamespace::oid::bigint";

/// Which side of the store a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// It reads.
    None,
    /// It writes: the holder that it drew, and the number of the last transaction that it began. No number comes twice,
    /// whatever became of the one before, so that a number that stands says which one does.
    Writer { holder: i64, begun: i64 },
}

/// A sign of life of whoever has the store: holder, and number of its last transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sign(Option<i64>, Option<i64>);

pub(super) struct PostgresConnection {
    /// `Some` until it is dropped.
    runtime: Option<Runtime>,
    server: PostgresUrl,
    client: Option<Client>,
    /// Moves bytes between the client and the socket, which it owns.
    transport: Option<JoinHandle<()>>,
    hold: Hold,
    /// Prepared on this connection.
    statements: RefCell<HashMap<String, Statement>>,
    /// What goes out ahead of the next statement and has no answer of its own.
    ahead: RefCell<String>,
    /// A statement of this write failed: until it is undone the server refuses all others.
    failed: Cell<bool>,
    /// The connection is of no use any more.
    lost: Cell<bool>,
    /// A transaction is open at the server.
    open: Cell<bool>,
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match (self, ty) {
            (Self::Null, _) => Ok(IsNull::Yes),
            (Self::Integer(value), &Type::INT4) => i32::try_from(*value)?.to_sql(ty, out),
            (Self::Integer(value), &Type::INT8) => value.to_sql(ty, out),
            (Self::Text(text), &Type::TEXT | &Type::VARCHAR) => text.as_ref().to_sql(ty, out),
            (Self::Bytes(bytes), &Type::BYTEA) => bytes.as_ref().to_sql(ty, out),
            (value, ty) => Err(format!("a statement's parameter is {ty}, and not {value:?}").into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        // What fits is only known with the value.
        true
    }

    to_sql_checked!();
}

impl Row for tokio_postgres::Row {
    fn value(&self, column: usize) -> Result<Value<'_>, StoreError> {
        let of = self.columns().get(column).map(|column| column.type_().clone());
        let value = match of {
            Some(Type::INT8) => self.try_get::<_, Option<i64>>(column).map(Value::from),
            Some(Type::INT4) => self.try_get::<_, Option<i32>>(column).map(|it| it.map(i64::from).into()),
            Some(Type::BOOL) => self.try_get::<_, Option<bool>>(column).map(Value::from),
            Some(Type::TEXT | Type::VARCHAR | Type::NAME) => {
                self.try_get::<_, Option<&str>>(column).map(Value::from)
            }
            Some(Type::BYTEA) => self.try_get::<_, Option<&[u8]>>(column).map(Value::from),
            other => return Err(StoreError::Failed(format!("column {column} of an answer is {other:?}"))),
        };
        value.map_err(|error| StoreError::Failed(error.to_string()))
    }
}

/// An answer that did not come in time.
const SILENT: &str = "the server did not answer in time";

impl PostgresConnection {
    /// Connects, to read.
    pub(super) fn connect(server: &PostgresUrl) -> Result<Self, StoreError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let mut connection = Self {
            runtime: Some(runtime.map_err(|error| StoreError::Failed(error.to_string()))?),
            server: server.clone(),
            client: None,
            transport: None,
            hold: Hold::None,
            statements: RefCell::default(),
            ahead: RefCell::default(),
            failed: Cell::new(false),
            lost: Cell::new(false),
            open: Cell::new(false),
        };
        connection.reconnect()?;
        Ok(connection)
    }

    /// Takes the store, to write, and gives the term: whoever had it writes no more. The lock is this connection's already.
    pub(super) fn take(&mut self, candidate: Option<&Candidate>) -> Result<u64, StoreError> {
        self.script(WRITER_IDLE)?;
        let holder = random::<i64>();
        let (leader, lease_ms) = (candidate.map(|it| it.url.as_str()), candidate.map(Candidate::lease_ms));
        let sql = "UPDATE writer SET holder = ?1, commits = 0, term = term + 1, leader = ?2, lease_ms = ?3
                   RETURNING term";
        let term = first(self, sql, &values![holder, leader, lease_ms], |row| number(row, 0, What::Meta))?;
        let term = term.ok_or_else(|| StoreError::Failed("the row of its writer is missing".to_owned()))?;
        self.hold = Hold::Writer { holder, begun: 0 };
        Ok(term)
    }

    /// Waits for the lock of the schema, which the server gives back with this connection.
    pub(super) fn lock(&self) -> Result<(), StoreError> {
        self.lock_within(TAKE_TIMEOUT_MS)
    }

    /// The same for another time.
    fn lock_within(&self, timeout_ms: u64) -> Result<(), StoreError> {
        self.script(&format!(
            "SET lock_timeout = {timeout_ms}; SELECT pg_advisory_lock({LOCK_KEY}); {ROW_TIMEOUT}"
        ))
    }

    /// Whether the lock of the schema became this connection's while it waited for it.
    pub(super) fn try_lock(&self, timeout_ms: u64) -> Result<bool, StoreError> {
        match self.lock_within(timeout_ms) {
            Ok(()) => Ok(true),
            Err(StoreError::Failed(reason)) if reason.ends_with(LOCK_NOT_AVAILABLE) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The session at the server that has the lock of the schema, if any has.
    pub(super) fn lock_holder(&self) -> Result<Option<u64>, StoreError> {
        let sql = format!(
            "SELECT pid FROM pg_locks
             WHERE locktype = 'advisory' AND granted AND objsubid = 1
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
               AND (classid::bigint << 32) + objid::bigint = {LOCK_KEY}"
        );
        first(self, &sql, &[], |row| number(row, 0, What::Meta))
    }

    /// Ends a session at the server: what it has not committed is undone.
    pub(super) fn end_session(&self, pid: u64) -> Result<(), StoreError> {
        let pid = i64::try_from(pid).map_err(|_| StoreError::OutOfRange("session"))?;
        let sql = "SELECT pg_terminate_backend(?1::bigint::int)";
        first(self, sql, &values![pid], |_| Ok(())).map(drop)
    }

    /// Who took the store last, and what changes with each of its transactions.
    pub(super) fn leader(&self) -> Result<(Leader, Sign), StoreError> {
        let sql = "SELECT term, leader, lease_ms, holder, commits FROM writer";
        let leader = first(self, sql, &[], |row| {
            let integer = |column| match row.value(column)? {
                Value::Integer(value) => Ok(Some(value)),
                _ => Ok::<_, StoreError>(None),
            };
            let url = match row.value(1)? {
                Value::Text(url) => Some(url.into_owned()),
                _ => None,
            };
            let lease = integer(2)?.map(|lease| Duration::from_millis(u64::try_from(lease).unwrap_or(0)));
            let sign = Sign(integer(3)?, integer(4)?);
            Ok((Leader { term: number(row, 0, What::Meta)?, url, lease }, sign))
        })?;
        leader.ok_or_else(|| StoreError::Failed("the row of its writer is missing".to_owned()))
    }

    /// Runs statements without parameters.
    pub(super) fn script(&self, sql: &str) -> Result<(), StoreError> {
        self.script_within(sql, SERVER_TIMEOUT)
    }

    /// The same for another time.
    pub(super) fn script_within(&self, sql: &str, timeout: Duration) -> Result<(), StoreError> {
        let client = self.client()?;
        self.answered_within(timeout, client.batch_execute(sql))
    }

    /// Refuses a server that may lose what it has committed, or that does not hold text as it is.
    pub(super) fn check_server(&self) -> Result<(), StoreError> {
        let durable = ["on", "local", "remote_write", "remote_apply"];
        for (name, wanted, why) in [
            ("fsync", &["on"][..], "what it has committed may be gone after a power failure"),
            ("full_page_writes", &["on"], "a power failure may damage it"),
            ("synchronous_commit", &durable, "what it has committed may be gone after a crash"),
            ("server_encoding", &["UTF8"], "create the database with ENCODING 'UTF8'"),
        ] {
            let value = self.setting(name)?;
            if !wanted.contains(&value.as_str()) {
                return Err(StoreError::Failed(format!("the server says {name} = {value}: {why}")));
            }
        }
        Ok(())
    }

    /// A name for what the server says of itself.
    pub(super) fn setting(&self, name: &str) -> Result<String, StoreError> {
        let sql = "SELECT current_setting(?1)";
        let found = first(self, sql, &values![name], |row| match row.value(0)? {
            Value::Text(text) => Ok(text.into_owned()),
            _ => Err(StoreError::Failed(format!("the server does not tell {name}"))),
        })?;
        Ok(found.unwrap_or_default())
    }

    fn client(&self) -> Result<&Client, StoreError> {
        match &self.client {
            Some(client) if !self.lost.get() => Ok(client),
            _ => Err(StoreError::Failed("the connection to the server is gone".to_owned())),
        }
    }

    fn drive<F: Future>(&self, timeout: Duration, future: F) -> Option<F::Output> {
        let runtime = self.runtime.as_ref()?;
        runtime.block_on(async { time::timeout(timeout, future).await.ok() })
    }

    /// Waits for an answer and takes note of what it says of the connection.
    fn answered<T>(
        &self,
        asked: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, StoreError> {
        self.answered_within(SERVER_TIMEOUT, asked)
    }

    /// The same for another time.
    fn answered_within<T>(
        &self,
        timeout: Duration,
        asked: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, StoreError> {
        match self.drive(timeout, asked) {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => {
                self.failed.set(true);
                self.lost.set(self.lost.get() || is_lost(&error));
                Err(error_of(&error))
            }
            None => {
                self.failed.set(true);
                self.lost.set(true);
                Err(StoreError::Failed(SILENT.to_owned()))
            }
        }
    }

    /// Connects anew. A writer takes the lock of the store again, and stops if another had the store in between.
    fn reconnect(&mut self) -> Result<(), StoreError> {
        self.disconnect();
        self.statements.get_mut().clear();
        self.ahead.get_mut().clear();
        self.failed.set(false);
        self.open.set(false);
        let tls = connector(&self.server)?;
        let (client, connection) = match self.drive(SERVER_TIMEOUT, self.server.config().connect(tls)) {
            Some(connected) => connected.map_err(|error| error_of(&error))?,
            None => return Err(StoreError::Failed(SILENT.to_owned())),
        };
        if let Some(runtime) = &self.runtime {
            // It ends with the client, or says why through it.
            self.transport = Some(runtime.spawn(async { drop(connection.await) }));
        }
        self.client = Some(client);
        self.lost.set(false);
        // The schema is the one that the URL names, whatever else there is on the server's path.
        let schema = format!("SET search_path = \"{}\"", self.server.schema());
        let set = self.script(&format!("{schema};{ROW_TIMEOUT};{SESSION}")).and_then(|()| match self.hold {
            Hold::None => self.script(READER_IDLE),
            Hold::Writer { holder, .. } => {
                self.script(WRITER_IDLE)?;
                self.check_server()?;
                // Who lost it need not wait for the lock of whoever has it.
                self.not_taken(holder)?;
                self.lock()?;
                self.still_held(holder)
            }
        });
        if set.is_err() {
            // Nor does it keep the lock from whoever has the store now.
            self.disconnect();
        }
        set
    }

    /// Closes the socket, with which the server gives the lock to whoever waits for it.
    fn disconnect(&mut self) {
        self.client = None;
        if let (Some(transport), Some(runtime)) = (self.transport.take(), &self.runtime) {
            transport.abort();
            // It was told to end, or did before.
            let _ = runtime.block_on(transport);
        }
    }

    /// Makes sure that nobody else took the store, whoever has its lock now.
    fn not_taken(&self, holder: i64) -> Result<(), StoreError> {
        match first(self, "SELECT 1 FROM writer WHERE holder = ?1", &values![holder], |_| Ok(()))? {
            Some(()) => Ok(()),
            None => Err(StoreError::Fenced),
        }
    }

    /// The same durably.
    fn still_held(&self, holder: i64) -> Result<(), StoreError> {
        // What is durable after this was so before.
        match execute(self, "UPDATE writer SET commits = commits WHERE holder = ?1", &values![holder])? {
            1 => Ok(()),
            _ => Err(StoreError::Fenced),
        }
    }

    /// What became of a transaction whose answer was lost.
    fn resolve(&mut self, expected: i64) -> Result<(), StoreError> {
        let deadline = now() + RESOLVE_TIMEOUT;
        loop {
            let told = self.reconnect().and_then(|()| {
                let sql = "SELECT commits FROM writer";
                first(self, sql, &[], |row| Ok(row.value(0)? == Value::Integer(expected)))
            });
            match told {
                Ok(Some(true)) => return Ok(()),
                Ok(_) => {
                    return Err(StoreError::Failed(
                        "the answer to a commit was lost, and nothing of it stands".into(),
                    ));
                }
                Err(stopped @ (StoreError::Stopped(_) | StoreError::Fenced)) => return Err(stopped),
                Err(error) if now() > deadline => {
                    return Err(StoreError::Stopped(format!(
                        "the answer to a commit was lost, and the server has not been reached since: {error}"
                    )));
                }
                Err(error) => {
                    tracing::warn!(%error, "the answer to a commit was lost; what became of it is not known yet");
                    std::thread::sleep(RECONNECT_PAUSE);
                }
            }
        }
    }

    /// Begins a transaction; one attempt more where the connection turns out to be gone, for nothing is lost by that.
    fn open_with(&mut self, begin: impl Fn(&Self) -> Result<(), StoreError>) -> Result<(), StoreError> {
        if self.client().is_ok() {
            self.failed.set(false);
            match begin(self) {
                Err(_) if self.lost.get() => {}
                begun => return begun,
            }
        }
        self.reconnect()?;
        begin(self)
    }

    fn prepared(&self, client: &Client, sql: &str) -> Result<Statement, StoreError> {
        if let Some(statement) = self.statements.borrow().get(sql) {
            return Ok(statement.clone());
        }
        self.send_ahead(client)?;
        // No statement of ours holds a question mark that is not a parameter's.
        let statement = self.answered(client.prepare(&sql.replace('?', "$")))?;
        self.statements.borrow_mut().insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Sends what is to go ahead now.
    fn send_ahead(&self, client: &Client) -> Result<(), StoreError> {
        let ahead = self.ahead.take();
        if ahead.is_empty() { Ok(()) } else { self.answered(client.batch_execute(&ahead)) }
    }

    fn put_ahead(&self, sql: &str) {
        let mut ahead = self.ahead.borrow_mut();
        ahead.push_str(sql);
        ahead.push(';');
    }
}

/// Whether the connection ended with this error.
fn is_lost(error: &tokio_postgres::Error) -> bool {
    match error.as_db_error() {
        Some(told) => {
            let ends = [Severity::Fatal, Severity::Panic];
            told.parsed_severity().is_none_or(|severity| ends.contains(&severity))
                || told.code().code().starts_with("08")
        }
        // The server said nothing: the way to it failed, or what was said on it.
        None => error.is_closed() || error.source().is_some_and(|source| source.is::<std::io::Error>()),
    }
}

fn error_of(error: &tokio_postgres::Error) -> StoreError {
    let Some(told) = error.as_db_error() else {
        let reason = error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
        return StoreError::Failed(match blindfold_tls::advice(&reason) {
            Some(advice) => format!("{advice} ({reason})"),
            None => reason,
        });
    };
    let reason = format!("{} (SQLSTATE {})", told.message(), told.code().code());
    let damaged = [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED, SqlState::IO_ERROR];
    if damaged.contains(told.code()) { StoreError::Stopped(reason) } else { StoreError::Failed(reason) }
}

impl Session for PostgresConnection {
    fn execute_all(&self, statements: &[(&str, &[Value<'_>])]) -> Result<Vec<u64>, StoreError> {
        let client = self.client()?;
        let prepared =
            statements.iter().map(|(sql, _)| self.prepared(client, sql)).collect::<Result<Vec<_>, _>>()?;
        let ahead = self.ahead.take();
        let sent_ahead = async { if ahead.is_empty() { Ok(()) } else { client.batch_execute(&ahead).await } };
        // A request goes out when its future is polled first, which happens in their order.
        let run = async {
            let asked = prepared
                .iter()
                .zip(statements)
                .map(|(statement, (_, values))| client.execute_raw(statement, values.iter()));
            let mut answers = asked.collect::<FuturesOrdered<_>>();
            let (mut changed, mut refused) = (Vec::with_capacity(statements.len()), None);
            while let Some(answer) = answers.next().await {
                match answer {
                    Ok(rows) => changed.push(rows),
                    // Those behind it are refused because of it.
                    Err(error) => drop(refused.get_or_insert(error)),
                }
            }
            refused.map_or(Ok(changed), Err)
        };
        self.answered(async {
            let (ahead, changed) = join(sent_ahead, run).await;
            ahead?;
            changed
        })
    }

    fn query(&self, sql: &str, values: &[Value<'_>], read: ReadRow<'_>) -> Result<(), StoreError> {
        let client = self.client()?;
        let statement = self.prepared(client, sql)?;
        self.send_ahead(client)?;
        let rows: Vec<_> = self.answered(async {
            let rows = client.query_raw(&statement, values.iter()).await?;
            pin!(rows).try_collect().await
        })?;
        for row in &rows {
            if read(row)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl Connection for PostgresConnection {
    fn session(&self) -> &dyn Session {
        self
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        let Hold::Writer { holder, begun } = self.hold else {
            return Err(StoreError::Failed("this store was opened to read".to_owned()));
        };
        let next = begun.saturating_add(1);
        self.hold = Hold::Writer { holder, begun: next };
        self.open_with(|connection| {
            connection.put_ahead("BEGIN");
            connection.open.set(true);
            let sql = "UPDATE writer SET commits = ?2 WHERE holder = ?1";
            match execute(connection, sql, &values![holder, next])? {
                1 => Ok(()),
                _ => Err(StoreError::Fenced),
            }
        })
    }

    fn begin_write(&mut self) -> Result<(), StoreError> {
        self.put_ahead("SAVEPOINT one_write");
        Ok(())
    }

    fn end_write(&mut self, keep: bool) -> Result<(), StoreError> {
        if keep {
            self.stands()?;
        }
        self.client()?;
        self.failed.set(false);
        self.put_ahead(if keep { "RELEASE one_write" } else { "ROLLBACK TO one_write; RELEASE one_write" });
        Ok(())
    }

    fn stands(&mut self) -> Result<(), StoreError> {
        self.client()?;
        if self.failed.get() {
            return Err(StoreError::Failed("a statement of a write failed".to_owned()));
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        let Hold::Writer { begun, .. } = self.hold else { return Err(StoreError::Closed) };
        self.put_ahead("COMMIT");
        let sent = self.client().and_then(|client| self.send_ahead(client));
        // Whatever was answered instead, it may stand: a server can fail after it made it durable.
        if let Err(error) = sent {
            tracing::warn!(%error, "no answer to a commit, or a strange one");
            self.resolve(begun)?;
        }
        self.open.set(false);
        Ok(())
    }

    fn roll_back(&mut self) {
        self.ahead.get_mut().clear();
        self.failed.set(false);
        if self.open.replace(false) && self.client().is_ok() && self.script("ROLLBACK").is_err() {
            self.lost.set(true);
        }
    }

    fn begin_read(&mut self) -> Result<(), StoreError> {
        self.open_with(|connection| {
            connection.open.set(true);
            connection.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        })
    }

    fn end_read(&mut self) {
        self.roll_back();
    }
}

impl Drop for PostgresConnection {
    fn drop(&mut self) {
        self.client = None;
        if let Some(runtime) = self.runtime.take() {
            // It may be dropped on an async thread, where nothing may be waited for.
            runtime.shutdown_background();
        }
    }
}
