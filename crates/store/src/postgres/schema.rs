//! Tables in a server's schema, and their migrations.

use std::time::Duration;

use super::connection::PostgresConnection;
use crate::{
    StoreError, What,
    sql::{
        convert::number,
        session::{Session, Value, execute, first, values},
    },
    sqlite::SCHEMA_VERSION,
};

/// The oldest schema that can be brought up to date. The numbers are SQLite's: the same number is the same tables.
pub const FIRST_POSTGRES_SCHEMA: i64 = 8;

/// The first step makes [`FIRST_POSTGRES_SCHEMA`] in an empty schema, step `i` leads from the schema before it to
/// `FIRST_POSTGRES_SCHEMA + i`. A published step is never changed.
const MIGRATIONS: &[&str] =
    &[include_str!("schema/8.sql"), include_str!("schema/9.sql"), include_str!("schema/10.sql")];

/// How long a step may take: an index of a large table takes longer than a statement may.
const STEP_TIMEOUT: Duration = Duration::from_secs(6 * 3_600);

/// The first schema that tells who leads.
const FIRST_WITH_LEADER: i64 = 9;

const _: () = assert!(FIRST_POSTGRES_SCHEMA + MIGRATIONS.len() as i64 - 1 == SCHEMA_VERSION);

/// The schema's version; `None` where there are no tables of ours.
fn found(connection: &PostgresConnection) -> Result<Option<i64>, StoreError> {
    let exists = first(connection, "SELECT current_schema()", &[], |row| Ok(row.value(0)? != Value::Null))?;
    if exists != Some(true) {
        let wanted = connection.setting("search_path")?;
        return Err(StoreError::Failed(format!("there is no schema {wanted}: create it, or name another")));
    }
    let count = |sql| first(connection, sql, &[], |row| number(row, 0, What::Meta));
    let ours =
        "SELECT COUNT(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'schema_version'";
    if count(ours)? == Some(0) {
        let all = "SELECT COUNT(*) FROM pg_tables WHERE schemaname = current_schema()";
        return match count(all)? {
            Some(0) => Ok(None),
            _ => Err(StoreError::Failed(
                "it holds tables of another program: give this one a database or a schema of its own"
                    .to_owned(),
            )),
        };
    }
    let found = count("SELECT version FROM schema_version")?;
    let missing = || StoreError::Failed("the row of its schema's version is missing".to_owned());
    found
        .map(|version| i64::try_from(version).map_err(|_| StoreError::OutOfRange("schema")))
        .ok_or_else(missing)?
        .map(Some)
}

/// Whether the schema tells who leads; [`migrate`] makes it so.
pub(super) fn tells_leader(connection: &PostgresConnection) -> Result<bool, StoreError> {
    match found(connection)? {
        Some(found) if found > SCHEMA_VERSION => {
            Err(StoreError::NewerSchema { found, known: SCHEMA_VERSION })
        }
        found => Ok(found >= Some(FIRST_WITH_LEADER)),
    }
}

/// Whether the schema is this program's: a reader brings nothing up to date.
pub(super) fn check(connection: &PostgresConnection) -> Result<(), StoreError> {
    match found(connection)? {
        Some(found) if found == SCHEMA_VERSION => Ok(()),
        Some(found) if found > SCHEMA_VERSION => {
            Err(StoreError::NewerSchema { found, known: SCHEMA_VERSION })
        }
        Some(found) => Err(StoreError::Failed(format!(
            "schema {found}, this program's is {SCHEMA_VERSION}: start the role that writes it with this program first"
        ))),
        None => Err(StoreError::Failed("it is empty".to_owned())),
    }
}

/// Brings the schema to [`SCHEMA_VERSION`]; each step is one transaction.
pub(super) fn migrate(connection: &PostgresConnection) -> Result<(), StoreError> {
    loop {
        let step = match found(connection)? {
            None => 0,
            Some(found @ ..FIRST_POSTGRES_SCHEMA) => {
                return Err(StoreError::OlderSchema { found, oldest: FIRST_POSTGRES_SCHEMA });
            }
            Some(found @ FIRST_POSTGRES_SCHEMA..=SCHEMA_VERSION) => found - FIRST_POSTGRES_SCHEMA + 1,
            Some(found) => return Err(StoreError::NewerSchema { found, known: SCHEMA_VERSION }),
        };
        let Some(sql) = usize::try_from(step).ok().and_then(|step| MIGRATIONS.get(step)) else {
            return Ok(());
        };
        connection.script("BEGIN")?;
        connection.script_within(sql, STEP_TIMEOUT)?;
        let version = FIRST_POSTGRES_SCHEMA + step;
        let set = "INSERT INTO schema_version (\"only\", version) VALUES (1, ?1)
                   ON CONFLICT (\"only\") DO UPDATE SET version = excluded.version";
        execute(connection as &dyn Session, set, &values![version])?;
        connection.script("COMMIT")?;
    }
}
