//! What the statements need of an engine: a connection that runs them, rows that they are read from.
//!
//! The statements themselves are shared. They name parameters `?1`, `?2`, …, hold numbers as 64-bit integers and everything
//! else as bytes or text, and use of SQL what both engines understand alike.

use std::{borrow::Cow, ops::ControlFlow};

use alloy_primitives::{Address, B256};

use crate::StoreError;

/// A value of a parameter or a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Null,
    Integer(i64),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
}

macro_rules! integers {
    ($($narrow:ty),*) => {$(
        impl From<$narrow> for Value<'_> {
            fn from(value: $narrow) -> Self {
                Self::Integer(i64::from(value))
            }
        }
    )*};
}

integers!(i64, u32, u16, u8, bool);

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value.into())
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(value: &'a [u8]) -> Self {
        Self::Bytes(Cow::Borrowed(value))
    }
}

impl From<Vec<u8>> for Value<'_> {
    fn from(value: Vec<u8>) -> Self {
        Self::Bytes(Cow::Owned(value))
    }
}

impl<const N: usize> From<[u8; N]> for Value<'_> {
    fn from(value: [u8; N]) -> Self {
        Self::Bytes(Cow::Owned(value.to_vec()))
    }
}

impl<'a> From<&'a B256> for Value<'a> {
    fn from(value: &'a B256) -> Self {
        value.as_slice().into()
    }
}

impl<'a> From<&'a Address> for Value<'a> {
    fn from(value: &'a Address) -> Self {
        value.as_slice().into()
    }
}

impl Value<'_> {
    /// The same, kept from its row.
    pub(crate) fn into_owned(self) -> Value<'static> {
        match self {
            Self::Null => Value::Null,
            Self::Integer(value) => Value::Integer(value),
            Self::Text(text) => Value::Text(text.into_owned().into()),
            Self::Bytes(bytes) => Value::Bytes(bytes.into_owned().into()),
        }
    }

    /// How many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Null => 0,
            Self::Integer(_) => 8,
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The parameters of a statement, in order.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        [$($crate::sql::session::Value::from($value)),*]
    };
}
pub(crate) use values;

/// A row of an answer.
pub(crate) trait Row {
    /// The value in a column, counted from 0.
    fn value(&self, column: usize) -> Result<Value<'_>, StoreError>;
}

/// What reads a row and says whether to go on.
pub(crate) type ReadRow<'a> = &'a mut dyn FnMut(&dyn Row) -> Result<ControlFlow<()>, StoreError>;

/// A connection to an engine, in a transaction of its owner.
pub(crate) trait Session {
    /// Runs statements in order, and stops at the first that fails; how many rows each changed. Over a network they cost
    /// one round trip together.
    fn execute_all(&self, statements: &[(&str, &[Value<'_>])]) -> Result<Vec<u64>, StoreError>;

    /// Reads the rows of an answer until there are no more or no more are wanted.
    fn query(&self, sql: &str, values: &[Value<'_>], read: ReadRow<'_>) -> Result<(), StoreError>;
}

/// Runs a statement; how many rows it changed.
pub(crate) fn execute(session: &dyn Session, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
    Ok(session.execute_all(&[(sql, values)])?.first().copied().unwrap_or_default())
}

/// Runs a statement once for each row of parameters, as [`Session::execute_all`] does.
pub(crate) fn execute_each<const N: usize>(
    session: &dyn Session,
    sql: &str,
    rows: &[[Value<'_>; N]],
) -> Result<Vec<u64>, StoreError> {
    let statements: Vec<(&str, &[Value<'_>])> = rows.iter().map(|row| (sql, row.as_slice())).collect();
    if statements.is_empty() { Ok(Vec::new()) } else { session.execute_all(&statements) }
}

/// Rows that one statement names: a statement is kept prepared for each of these numbers.
const ROWS: [usize; 3] = [64, 8, 1];

/// Rows in parts as large as [`ROWS`] has them.
fn parts<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let length = ROWS.into_iter().find(|length| *length <= rows.len())?;
        let (part, rest) = rows.split_at(length);
        rows = rest;
        Some(part)
    })
}

/// Writes `text` for each of `count` rows, `?` replaced by the parameters' names from `first` on.
fn write_rows(sql: &mut String, count: usize, text: &str, between: &str, first: usize) {
    let mut parameter = first;
    for row in 0..count {
        if row > 0 {
            sql.push_str(between);
        }
        for character in text.chars() {
            sql.push(character);
            if character == '?' {
                sql.push_str(&parameter.to_string());
                parameter += 1;
            }
        }
    }
}

/// Statements that wait to be run together, in order.
#[derive(Default)]
pub(crate) struct Statements<'a>(Vec<(Cow<'a, str>, Vec<Value<'a>>)>);

impl<'a> Statements<'a> {
    /// Adds a statement.
    pub(crate) fn add<const N: usize>(&mut self, sql: &'a str, values: [Value<'a>; N]) {
        self.0.push((sql.into(), values.into()));
    }

    /// Adds the insertion of many rows, few statements altogether. `into` is the table with its columns, `then` what follows
    /// the values.
    pub(crate) fn insert<const N: usize>(&mut self, into: &str, rows: &[[Value<'a>; N]], then: &str) {
        for part in parts(rows) {
            self.0.push((insertion(into, N, part.len(), then).into(), part.as_flattened().to_vec()));
        }
    }

    /// Adds a statement for the rows that have one of many keys: `sql` with its own parameters, and for each key
    /// `condition` with `?` for each of its values.
    pub(crate) fn for_keys<const N: usize>(
        &mut self,
        sql: &str,
        own: &[Value<'a>],
        condition: &str,
        keys: &[[Value<'a>; N]],
    ) {
        for part in parts(keys) {
            let mut whole = format!("{sql} (");
            write_rows(&mut whole, part.len(), condition, " OR ", own.len() + 1);
            whole.push(')');
            self.0.push((whole.into(), [own, part.as_flattened()].concat()));
        }
    }

    /// Runs them; how many rows each changed.
    pub(crate) fn run(self, session: &dyn Session) -> Result<Vec<u64>, StoreError> {
        let statements: Vec<(&str, &[Value<'_>])> =
            self.0.iter().map(|(sql, values)| (sql.as_ref(), values.as_slice())).collect();
        if statements.is_empty() { Ok(Vec::new()) } else { session.execute_all(&statements) }
    }
}

fn insertion(into: &str, width: usize, rows: usize, then: &str) -> String {
    let mut sql = format!("INSERT INTO {into} VALUES ");
    write_rows(&mut sql, rows, &format!("({})", vec!["?"; width].join(", ")), ", ", 1);
    sql.push(' ');
    sql.push_str(then);
    sql
}

/// Inserts rows of values that come from another store.
pub(crate) fn insert_values(
    session: &dyn Session,
    into: &str,
    width: usize,
    rows: &[Vec<Value<'_>>],
) -> Result<(), StoreError> {
    let mut statements = Statements::default();
    for part in parts(rows) {
        statements.0.push((insertion(into, width, part.len(), "").into(), part.concat()));
    }
    statements.run(session).map(drop)
}

/// Inserts rows and reads what the statement returns of those that were inserted.
pub(crate) fn insert_returning<const N: usize>(
    session: &dyn Session,
    into: &str,
    rows: &[[Value<'_>; N]],
    then: &str,
    mut read: impl FnMut(&dyn Row) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    parts(rows).try_for_each(|part| {
        each(session, &insertion(into, N, part.len(), then), part.as_flattened(), &mut read)
    })
}

/// Runs a statement for the rows that have one of many keys, and reads its answer: `sql`, for each key `condition` with `?`
/// for each of its values, and `then`.
pub(crate) fn for_keys<const N: usize>(
    session: &dyn Session,
    (sql, condition, then): (&str, &str, &str),
    keys: &[[Value<'_>; N]],
    mut read: impl FnMut(&dyn Row) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    parts(keys).try_for_each(|part| {
        let mut whole = format!("{sql} (");
        write_rows(&mut whole, part.len(), condition, " OR ", 1);
        whole.push_str(") ");
        whole.push_str(then);
        each(session, &whole, part.as_flattened(), &mut read)
    })
}

/// The first row of an answer, read by a function with our errors.
pub(crate) fn first<T>(
    session: &dyn Session,
    sql: &str,
    values: &[Value<'_>],
    read: impl FnOnce(&dyn Row) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let (mut read, mut found) = (Some(read), None);
    session.query(sql, values, &mut |row| {
        found = read.take().map(|read| read(row)).transpose()?;
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Reads every row of an answer.
pub(crate) fn each(
    session: &dyn Session,
    sql: &str,
    values: &[Value<'_>],
    mut read: impl FnMut(&dyn Row) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    session.query(sql, values, &mut |row| {
        read(row)?;
        Ok(ControlFlow::Continue(()))
    })
}

/// All rows of an answer.
pub(crate) fn all<T>(
    session: &dyn Session,
    sql: &str,
    values: &[Value<'_>],
    mut read: impl FnMut(&dyn Row) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut found = Vec::new();
    each(session, sql, values, |row| {
        found.push(read(row)?);
        Ok(())
    })?;
    Ok(found)
}

/// Rows of [`each_by_pages`] that are asked for at once.
const PAGE_ROWS: i64 = 4_096;

/// Reads every row of a table in the order of its key, the first `key` of the columns. In parts: a server's answer is held
/// as a whole before its first row is read.
pub(crate) fn each_by_pages(
    session: &dyn Session,
    table: &str,
    (columns, key): (&[&str], usize),
    mut read: impl FnMut(&dyn Row) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let select = format!("SELECT {} FROM {table}", columns.join(", "));
    let keys = columns.get(..key).unwrap_or_default().join(", ");
    let after: Vec<String> = (1..=key).map(|parameter| format!("?{parameter}")).collect();
    let after = after.join(", ");
    let next = format!("{select} WHERE ({keys}) > ({after}) ORDER BY {keys} LIMIT {PAGE_ROWS}");
    let mut sql = format!("{select} ORDER BY {keys} LIMIT {PAGE_ROWS}");
    let mut last: Vec<Value<'static>> = Vec::new();
    loop {
        let (mut rows, mut read_last) = (0, Vec::new());
        each(session, &sql, &last, |row| {
            rows += 1;
            if rows == PAGE_ROWS {
                let values = (0..key).map(|column| row.value(column).map(Value::into_owned));
                read_last = values.collect::<Result<_, _>>()?;
            }
            read(row)
        })?;
        if rows < PAGE_ROWS {
            return Ok(());
        }
        last = read_last;
        sql.clone_from(&next);
    }
}

/// A connection whose transactions the store's own threads begin and end.
pub(crate) trait Connection: Send {
    /// What runs statements.
    fn session(&self) -> &dyn Session;

    /// Begins a transaction that writes, and makes sure that this store still may.
    fn begin(&mut self) -> Result<(), StoreError>;

    /// Begins one write behind others of the transaction, which stay if it is undone.
    fn begin_write(&mut self) -> Result<(), StoreError>;

    /// Ends such a write: what it wrote stays, or is undone.
    fn end_write(&mut self, keep: bool) -> Result<(), StoreError>;

    /// Makes sure that what was written since the transaction began is there still.
    fn stands(&mut self) -> Result<(), StoreError>;

    /// Makes the transaction durable.
    fn commit(&mut self) -> Result<(), StoreError>;

    /// Gives up whatever transaction is open. What cannot be given up is found by the next `begin`.
    fn roll_back(&mut self);

    /// Begins a transaction that reads one state of the store.
    fn begin_read(&mut self) -> Result<(), StoreError>;

    /// Ends it.
    fn end_read(&mut self);

    /// After each group of writes, whatever became of it.
    fn after_group(&mut self) {}

    /// Length of the log beside it, where it has one.
    fn log_bytes(&self) -> u64 {
        0
    }
}
