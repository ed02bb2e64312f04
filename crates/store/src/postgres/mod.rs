//! PostgreSQL: a server of the operator's, that may be replicated.

mod connection;
mod lease;
pub(crate) mod replication;
mod schema;
mod tls;

use std::{fmt, str::FromStr};

use blindfold_runtime::blocking;
use connection::PostgresConnection;
pub use connection::{RESOLVE_TIMEOUT, SERVER_TIMEOUT};
pub(crate) use lease::Watch;
pub use schema::FIRST_POSTGRES_SCHEMA;
use tokio_postgres::{
    Config,
    config::{Host, SslMode, TargetSessionAttrs},
};

use crate::{
    StoreError,
    sql::{READERS, SqlStore, session::Connection},
};

/// The schema of a store whose URL names none.
const DEFAULT_SCHEMA: &str = "public";
/// Name of this program's sessions at the server.
const APPLICATION: &str = "blindfold";

/// Where a PostgreSQL server is, and which of its databases, or which schema of one, is meant. Prints as a URL of the same
/// place, without the password.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    server: Box<Config>,
    schema: String,
}

impl PostgresUrl {
    /// The same with a password.
    pub fn with_password(mut self, password: &[u8]) -> Self {
        self.server.password(password);
        self
    }

    fn config(&self) -> &Config {
        &self.server
    }

    /// Whether it is spoken to over TLS.
    fn is_secure(&self) -> bool {
        self.server.get_ssl_mode() == SslMode::Require
    }

    /// The one schema that the store is in.
    fn schema(&self) -> &str {
        &self.schema
    }
}

impl FromStr for PostgresUrl {
    type Err = StoreError;

    /// Reads `postgres://user@host:port/database?options`; `options=-csearch_path%3Dname` names a schema other than
    /// `public`. Or several hosts of one replicated server, of which the one that takes writes is used.
    /// `sslmode=verify-full`, or `require`, which means the same here, is TLS with a certificate that is checked. The errors do
    /// not repeat it.
    fn from_str(url: &str) -> Result<Self, StoreError> {
        let fault = |reason: String| StoreError::Open { store: "postgres://…".to_owned(), reason };
        let (mode, url) = tls::mode_of(url).map_err(|reason| fault(reason.to_owned()))?;
        let mut server: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            let source = std::error::Error::source(&error);
            fault(source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}")))
        })?;
        if server.get_dbname().is_none_or(str::is_empty) {
            return Err(fault("the URL names no database".to_owned()));
        }
        if server.get_password().is_some() {
            return Err(fault(
                "a password does not stand in the URL: name the file that holds it".to_owned(),
            ));
        }
        if server.get_hosts().is_empty() {
            return Err(fault("the URL names no host".to_owned()));
        }
        if mode == SslMode::Require && server.get_hosts().iter().any(|host| matches!(host, Host::Unix(_))) {
            let reason = "sslmode is for hosts: a Unix socket does not leave this machine";
            return Err(fault(reason.to_owned()));
        }
        server.ssl_mode(mode);
        if server.get_application_name().is_none() {
            server.application_name(APPLICATION);
        }
        if server.get_connect_timeout().is_none() {
            server.connect_timeout(std::time::Duration::from_secs(5));
        }
        server.target_session_attrs(TargetSessionAttrs::ReadWrite);
        let schema = match schema_named(server.get_options().unwrap_or_default()) {
            Ok(schema) => schema.unwrap_or(DEFAULT_SCHEMA).to_owned(),
            Err(reason) => return Err(fault(reason.to_owned())),
        };
        Ok(Self { server: Box::new(server), schema })
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("postgres://")?;
        if let Some(user) = self.server.get_user() {
            write!(formatter, "{}@", encoded(user))?;
        }
        let ports = self.server.get_ports();
        for (index, host) in self.server.get_hosts().iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            match host {
                Host::Tcp(address) if address.contains(':') => write!(formatter, "{comma}[{address}]")?,
                Host::Tcp(name) => write!(formatter, "{comma}{name}")?,
                Host::Unix(folder) => write!(formatter, "{comma}{}", encoded(&folder.to_string_lossy()))?,
            }
            if let Some(port) = ports.get(index).or_else(|| ports.first()) {
                write!(formatter, ":{port}")?;
            }
        }
        write!(formatter, "/{}", encoded(self.server.get_dbname().unwrap_or_default()))?;
        let secure = self.is_secure().then(|| "sslmode=verify-full".to_owned());
        let options = self.server.get_options().map(|options| format!("options={}", encoded(options)));
        let mut mark = '?';
        for option in [secure, options].into_iter().flatten() {
            write!(formatter, "{mark}{option}")?;
            mark = '&';
        }
        Ok(())
    }
}

/// The schema that a URL's options name, if they do.
fn schema_named(options: &str) -> Result<Option<&str>, &'static str> {
    let mut paths = options.split_whitespace().filter_map(|option| {
        let option = option.strip_prefix("-c").or_else(|| option.strip_prefix("--")).unwrap_or(option);
        option.strip_prefix("search_path=").or_else(|| option.strip_prefix("search-path="))
    });
    let (path, more) = (paths.next(), paths.next());
    if more.is_some() {
        return Err("the URL names search_path twice");
    }
    let is_name = |name: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        !name.is_empty() && name.len() < 64 && name.bytes().all(plain)
    };
    match path {
        Some(name) if !is_name(name) => {
            Err("search_path has to name one schema, in small letters, digits and underscores")
        }
        path => Ok(path),
    }
}

/// A part of a URL, with what has a meaning in one encoded.
fn encoded(part: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    part.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl SqlStore {
    /// Connects to a PostgreSQL database (or to the schema of it that the URL's `search_path` names), brings its tables up
    /// to date, and takes it: another process that writes to it is refused while this one has it.
    ///
    /// # Errors
    /// [`StoreError::InUse`], [`StoreError::Open`] (also for a server whose settings do not keep what it committed),
    /// [`StoreError::OlderSchema`], [`StoreError::NewerSchema`].
    pub async fn connect(url: &PostgresUrl) -> Result<Self, StoreError> {
        connected(url, |url| {
            let mut writer = PostgresConnection::connect(url)?;
            writer.check_server()?;
            writer.lock()?;
            schema::migrate(&writer)?;
            let term = writer.take(None)?;
            Ok((writer, Some(term)))
        })
        .await
    }

    /// Connects to a PostgreSQL database that another process may be writing, to read what it has stored; refuses every
    /// write.
    ///
    /// # Errors
    /// [`StoreError::Open`], [`StoreError::NewerSchema`].
    pub async fn connect_reader(url: &PostgresUrl) -> Result<Self, StoreError> {
        connected(url, |url| {
            let writer = PostgresConnection::connect(url)?;
            schema::check(&writer)?;
            Ok((writer, None))
        })
        .await
    }
}

/// Connects off the async threads: each connection has a runtime of its own.
/// The connection that writes, and how often the store had been taken then, if it took it.
type Writing = (PostgresConnection, Option<u64>);

async fn connected(
    url: &PostgresUrl,
    writer: fn(&PostgresUrl) -> Result<Writing, StoreError>,
) -> Result<SqlStore, StoreError> {
    let url = url.clone();
    let opened = blocking(move || {
        let opened = || {
            let (writer, term) = writer(&url)?;
            SqlStore::on_connections(Box::new(writer), readers(&url)?)
                .map(SqlStore::on_server)
                .map(|store| match term {
                    Some(term) => store.in_term(term),
                    None => store,
                })
                .map_err(|error| StoreError::Failed(error.to_string()))
        };
        opened().map_err(|error| to_open(&url, error))
    });
    opened.await.map_err(|_| StoreError::Closed)?
}

fn readers(url: &PostgresUrl) -> Result<Vec<Box<dyn Connection>>, StoreError> {
    let reader =
        |_| -> Result<Box<dyn Connection>, StoreError> { Ok(Box::new(PostgresConnection::connect(url)?)) };
    (0..READERS).map(reader).collect()
}

/// SQLSTATE of a lock that was not given in time.
const LOCK_NOT_AVAILABLE: &str = "(SQLSTATE 55P03)";

/// A failure while the store is opened is one of opening it.
fn to_open(url: &PostgresUrl, error: StoreError) -> StoreError {
    match error {
        StoreError::Failed(reason) if reason.ends_with(LOCK_NOT_AVAILABLE) => {
            StoreError::InUse(url.to_string())
        }
        StoreError::Failed(reason) => StoreError::Open { store: url.to_string(), reason },
        other => other,
    }
}
