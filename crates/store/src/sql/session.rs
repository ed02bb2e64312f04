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
    Text(&'a str),
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
        Self::Text(value)
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
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let statements: Vec<(&str, &[Value<'_>])> = rows.iter().map(|row| (sql, row.as_slice())).collect();
    session.execute_all(&statements)
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

/// A connection whose transactions the store's own threads begin and end.
pub(crate) trait Connection: Send {
    /// What runs statements.
    fn session(&self) -> &dyn Session;

    /// Begins a transaction that writes, and makes sure that this store still may.
    fn begin(&mut self) -> Result<(), StoreError>;

    /// Begins one write within the transaction.
    fn begin_write(&mut self) -> Result<(), StoreError>;

    /// Ends one write: what it wrote stays, or is undone.
    fn end_write(&mut self, keep: bool) -> Result<(), StoreError>;

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
}
