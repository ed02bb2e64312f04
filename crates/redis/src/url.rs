//! Where a server is.

use std::{fmt, path::PathBuf, str::FromStr};

use redis::{ConnectionAddr, IntoConnectionInfo};

use crate::RedisError;

/// Where a Redis server is: `redis://[user@]host[:port][/database]`, `rediss://…` over TLS, or `unix:///path[?db=database]`.
/// It has no password, so it may be printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisUrl {
    pub(crate) place: Place,
    pub(crate) user: Option<String>,
    pub(crate) database: i64,
}

/// What is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Host { name: String, port: u16, secure: bool },
    Unix(PathBuf),
}

impl FromStr for RedisUrl {
    type Err = RedisError;

    /// The errors do not repeat the URL, which may hold a password.
    fn from_str(url: &str) -> Result<Self, RedisError> {
        let fault = |reason| RedisError::Url { reason };
        let (secure, url) = match url.split_once(':') {
            Some(("redis" | "unix", _)) => (false, url.to_owned()),
            // The library is built without its own TLS.
            Some(("rediss", rest)) => (true, format!("redis:{rest}")),
            _ => return Err(fault("use redis://host:port, rediss://host:port or unix:///path")),
        };
        if url.contains('#') {
            return Err(fault("a fragment has no meaning here: certificates are always checked"));
        }
        let info = url
            .as_str()
            .into_connection_info()
            .map_err(|_| fault("use redis://host:port/database, with a number for the database"))?;
        let settings = info.redis_settings();
        if settings.password().is_some() {
            return Err(fault("a password does not stand in the URL: name the file that holds it"));
        }
        let place = match info.addr() {
            ConnectionAddr::Tcp(name, port) => Place::Host { name: name.clone(), port: *port, secure },
            ConnectionAddr::Unix(path) if !secure => Place::Unix(path.clone()),
            _ => return Err(fault("use redis://host:port, rediss://host:port or unix:///path")),
        };
        let database = settings.db();
        if database < 0 {
            return Err(fault("the database is a number from 0"));
        }
        Ok(Self { place, user: settings.username().map(str::to_owned), database })
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Host { name, port, secure } => {
                formatter.write_str(if *secure { "rediss://" } else { "redis://" })?;
                if let Some(user) = &self.user {
                    write!(formatter, "{user}@")?;
                }
                let (open, close) = if name.contains(':') { ("[", "]") } else { ("", "") };
                write!(formatter, "{open}{name}{close}:{port}/{}", self.database)
            }
            Place::Unix(path) => write!(formatter, "unix://{}?db={}", path.display(), self.database),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        for (url, printed) in [
            ("redis://localhost", "redis://localhost:6379/0"),
            ("redis://me@10.0.0.5:7000/3", "redis://me@10.0.0.5:7000/3"),
            ("rediss://cache.example.com", "rediss://cache.example.com:6379/0"),
            ("redis://[::1]:7000", "redis://[::1]:7000/0"),
            ("unix:///run/redis.sock", "unix:///run/redis.sock?db=0"),
            ("unix:///run/redis.sock?db=2", "unix:///run/redis.sock?db=2"),
        ] {
            let read: RedisUrl = url.parse().expect(url);
            assert_eq!(read.to_string(), printed);
            assert_eq!(printed.parse(), Ok(read));
        }
    }

    #[test]
    fn what_is_no_url_is_named_and_not_repeated() {
        for (url, said) in [
            ("", "use redis://"),
            ("http://h", "use redis://"),
            ("redis://", "use redis://"),
            ("redis://h/first", "number for the database"),
            ("redis://h/-1", "number from 0"),
            ("redis://u:secret@h", "password does not stand"),
            ("redis://:secret@h", "password does not stand"),
            ("unix:///a?pass=secret", "password does not stand"),
            ("rediss://h/#insecure", "always checked"),
        ] {
            let fault = url.parse::<RedisUrl>().expect_err(url).to_string();
            assert!(fault.contains(said) && !fault.contains("secret"), "{url}: {fault}");
        }
    }
}
