//! Where a store is.

use std::{fmt, path::PathBuf, str::FromStr};

use blindfold_runtime::blocking;

use crate::{PostgresUrl, SqlStore, StoreError};

/// Where a store is: `sqlite:PATH` or `postgres://user@host:port/database?options`. Prints without a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL database, or a schema of one.
    Postgres(PostgresUrl),
}

impl StoreUrl {
    /// Opens the store, to write: makes it where there is none, and brings its tables up to date.
    ///
    /// # Errors
    /// As [`SqlStore::open`] and [`SqlStore::connect`].
    pub async fn open(&self) -> Result<SqlStore, StoreError> {
        match self {
            Self::Sqlite(path) => {
                let path = path.clone();
                blocking(move || SqlStore::open(path)).await.map_err(|_| StoreError::Closed)?
            }
            Self::Postgres(url) => SqlStore::connect(url).await,
        }
    }

    /// Opens the store to read what is stored, also beside a process that writes; refuses every write.
    ///
    /// # Errors
    /// As [`SqlStore::open_reader`] and [`SqlStore::connect_reader`].
    pub async fn open_reader(&self) -> Result<SqlStore, StoreError> {
        match self {
            Self::Sqlite(path) => {
                let path = path.clone();
                blocking(move || SqlStore::open_reader(path)).await.map_err(|_| StoreError::Closed)?
            }
            Self::Postgres(url) => SqlStore::connect_reader(url).await,
        }
    }
}

impl FromStr for StoreUrl {
    type Err = StoreError;

    /// The errors do not repeat the URL, which may hold a password.
    fn from_str(url: &str) -> Result<Self, StoreError> {
        let fault =
            |reason: &str| StoreError::Open { store: "store.url".to_owned(), reason: reason.to_owned() };
        match url.split_once(':') {
            // `sqlite:/a/path` and `sqlite:///a/path` are the same.
            Some(("sqlite", path)) => match path.strip_prefix("//").unwrap_or(path) {
                "" => Err(fault("the URL names no file")),
                path => Ok(Self::Sqlite(path.into())),
            },
            Some(("postgres" | "postgresql", _)) => url.parse().map(Self::Postgres),
            _ => Err(fault("it is neither sqlite:PATH nor postgres://user@host:port/database")),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(formatter, "sqlite:{}", path.display()),
            Self::Postgres(url) => url.fmt(formatter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(url: &str) -> String {
        url.parse::<StoreUrl>().expect_err("refused").to_string()
    }

    #[test]
    fn urls() {
        for (url, path) in
            [("sqlite:a/b.db", "a/b.db"), ("sqlite:/a.db", "/a.db"), ("sqlite:///a.db", "/a.db")]
        {
            assert_eq!(url.parse(), Ok(StoreUrl::Sqlite(path.into())));
        }
        let url: StoreUrl = "postgresql://u@one:1,two:2/d?connect_timeout=3".parse().expect("a URL");
        assert_eq!(url.to_string(), "postgres://u@one:1,two:2/d");
        let socket: StoreUrl = "postgres://u@%2Frun%2Fpostgresql/d".parse().expect("a URL");
        assert_eq!(socket.to_string(), "postgres://u@%2Frun%2Fpostgresql:5432/d");
        let schema: StoreUrl = "postgres://u@h/d?options=-csearch_path%3Dmember_1".parse().expect("a URL");
        assert_eq!(schema.to_string(), "postgres://u@h:5432/d?options=-csearch_path%3Dmember_1");
        let secure: StoreUrl =
            "postgres://u@h/d?sslmode=require&options=-csearch_path%3Da".parse().expect("a URL");
        assert_eq!(secure.to_string(), "postgres://u@h:5432/d?sslmode=verify-full&options=-csearch_path%3Da");
        for url in [url, socket, schema, secure] {
            assert_eq!(url.to_string().parse::<StoreUrl>().map(|url| url.to_string()), Ok(url.to_string()));
        }
    }

    #[test]
    fn what_is_no_url_is_named_and_not_repeated() {
        for (url, said) in [
            ("", "neither"),
            ("mysql://u:secret@h/d", "neither"),
            ("/a/secret", "neither"),
            ("sqlite:", "names no file"),
            ("postgres://u:secret@h/d", "password does not stand"),
            ("postgres://u@h", "names no database"),
            ("postgres://u:u@h/d?connect_timeout=x", "connect_timeout"),
            ("postgres://u:secret@h/d?unknown=1", "invalid"),
            ("postgres:///d", "names no host"),
            ("postgres://u@h/d?sslmode=verify-ca", "use verify-full"),
            ("postgres://u@h/d?sslmode=always", "one of disable"),
            ("postgres://u@h/d?sslmode=require&sslmode=disable", "twice"),
            ("postgres://u@%2Frun%2Fpostgresql/d?sslmode=require", "Unix socket"),
        ] {
            let fault = fault(url);
            assert!(fault.contains(said) && !fault.contains("u:secret"), "{url}: {fault}");
        }
    }
}
