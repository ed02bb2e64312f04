//! Archives of data that L1 only names: plain HTTP servers that give bytes for their SHA-256. None is believed: what it gives
//! counts when it has the hash and the length that L1 recorded. Whether it goes on giving them is a matter of trust
//! (docs/l1.md).

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use alloy_primitives::{Bytes, keccak256};
use blindfold_runtime::{Instant, Pauses, joined, now};
use parking_lot::Mutex;
use reqwest::header::HeaderValue;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::{sync::Semaphore, task::JoinSet, time::timeout_at};

use crate::{error::L1Error, posting::archived::ArchivedData, transport::Http};

/// How the calls are named in errors.
const PUT_DATA: &str = "PUT /data";
const GET_DATA: &str = "GET /data";
const GET_ROOM: &str = "GET /room";
/// Where an archive says how much room it has, below its URL.
pub const ROOM_PATH: &str = "/room";
/// What stands before a token.
const SCHEME: &str = "Bearer ";
/// Fewer characters can be tried.
const MIN_TOKEN_CHARS: usize = 16;
/// Longer headers are not taken everywhere.
const MAX_TOKEN_CHARS: usize = 1_024;
/// How long the other archives are waited for once one has the data, in milliseconds. What they have not taken by then they
/// may take later: nothing waits for it.
const LAG_MS: u64 = 5_000;
/// Pieces of data that are on their way to one archive at the same time at most: each is in memory.
const MAX_UPLOADS: usize = 4;
/// How long an archive that gives no answer is not asked again, whatever is named, in milliseconds: at first and at most.
const SILENT_MS: (u64, u64) = (1_000, 30_000);

/// What whoever writes into an archive shows it. It is not printed.
#[derive(Clone)]
pub struct ArchiveToken(HeaderValue);

/// A text that is no token. The text itself is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a token has {MIN_TOKEN_CHARS} to {MAX_TOKEN_CHARS} visible characters of ASCII, and no space")]
pub struct TokenError;

impl ArchiveToken {
    /// Reads a token.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let fits = (MIN_TOKEN_CHARS..=MAX_TOKEN_CHARS).contains(&text.len());
        if !fits || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError);
        }
        let mut header = HeaderValue::from_str(&format!("{SCHEME}{text}")).map_err(|_| TokenError)?;
        header.set_sensitive(true);
        Ok(Self(header))
    }

    /// Whether a request shows it that has this in its header `authorization`. How long the answer takes says nothing of the
    /// place in which they differ.
    #[must_use]
    pub fn is_shown_by(&self, authorization: &[u8]) -> bool {
        let Some((scheme, token)) = authorization.split_at_checked(SCHEME.len()) else { return false };
        let own = self.0.as_bytes().get(SCHEME.len()..).unwrap_or_default();
        scheme.eq_ignore_ascii_case(SCHEME.as_bytes()) && keccak256(token) == keccak256(own)
    }
}

impl fmt::Debug for ArchiveToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ArchiveToken(redacted)")
    }
}

/// How much an archive holds, as it tells those who write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArchiveRoom {
    /// Bytes of all data.
    pub used_bytes: u64,
    /// So many at most.
    pub max_bytes: u64,
}

/// One archive, and what it wants to see of whoever writes.
#[derive(Clone, Debug)]
struct Place {
    http: Http,
    token: Option<ArchiveToken>,
    /// Places of what is on its way there.
    uploads: Arc<Semaphore>,
}

impl Place {
    fn authorization(&self) -> Option<&HeaderValue> {
        self.token.as_ref().map(|token| &token.0)
    }

    /// Puts data there, unless too much is on its way already.
    async fn put(&self, named: ArchivedData, body: Bytes) -> Result<(), L1Error> {
        let outcome = match self.uploads.try_acquire() {
            Ok(_place) => self.http.put(PUT_DATA, &named.path(), body, self.authorization()).await,
            Err(_) => Err(L1Error::no_answer("an archive has not taken yet what it was given before")),
        };
        outcome.inspect_err(|fault| {
            tracing::warn!(%fault, hash = %named.hash, "an archive does not take data");
        })
    }
}

/// Archives that hold the same data, or are to.
#[derive(Clone, Debug)]
pub struct Archive {
    archives: Arc<[Place]>,
    /// The one that gave data last: it is asked first.
    first: Arc<AtomicUsize>,
    /// Those that gave no answer, by their places.
    silent: Arc<Mutex<Pauses<usize>>>,
    lag: Duration,
}

impl Archive {
    /// These archives by their URLs; none is asked yet. An answer begins within `timeout_ms`, and goes on within as much; what
    /// is put has the time of its bytes besides.
    ///
    /// # Errors
    /// [`L1Error::Url`], [`L1Error::Tls`].
    pub fn new(urls: &[String], timeout_ms: u64) -> Result<Self, L1Error> {
        let place = |url: &String| {
            let uploads = Arc::new(Semaphore::new(MAX_UPLOADS));
            Http::new(url, timeout_ms).map(|http| Place { http, token: None, uploads })
        };
        let archives = urls.iter().map(place).collect::<Result<_, _>>()?;
        let silent = Arc::new(Mutex::new(Pauses::new(SILENT_MS.0, SILENT_MS.1)));
        Ok(Self { archives, first: Arc::default(), silent, lag: Duration::from_millis(LAG_MS) })
    }

    /// These are shown to whom is written to, each to the archive in its place and to no other.
    #[must_use]
    pub fn with_tokens(self, tokens: &[ArchiveToken]) -> Self {
        let place =
            |(index, place): (usize, &Place)| Place { token: tokens.get(index).cloned(), ..place.clone() };
        Self { archives: self.archives.iter().enumerate().map(place).collect(), ..self }
    }

    /// How much room the first of them has, as it tells whoever may write there.
    ///
    /// # Errors
    /// [`L1Error::HttpStatus`] where it does not tell: 401 for want of the right token, 404 or 405 where nobody writes.
    pub async fn room(&self) -> Result<ArchiveRoom, L1Error> {
        let none = || L1Error::NotArchived { reason: "no archive is configured".to_owned() };
        let place = self.archives.first().ok_or_else(none)?;
        place.http.get_as(GET_ROOM, ROOM_PATH, place.authorization()).await
    }

    /// Puts the data into all archives at once, and returns when one has it on its disk and the others had some seconds. One that
    /// is slower gets it beside whatever comes next, until it has too much on its way.
    ///
    /// # Errors
    /// [`L1Error::NotArchived`] for data that is too long; that of the last archive where none takes it.
    pub async fn publish(&self, data: &[u8]) -> Result<ArchivedData, L1Error> {
        let named =
            ArchivedData::of(data).map_err(|fault| L1Error::NotArchived { reason: fault.to_string() })?;
        let body = Bytes::copy_from_slice(data);
        let mut under_way = JoinSet::new();
        for (index, place) in self.archives.iter().cloned().enumerate() {
            let body = body.clone();
            under_way.spawn(async move { (index, place.put(named, body).await) });
        }
        let mut last: Option<(usize, L1Error)> = None;
        // The others' time is over then.
        let mut until: Option<Instant> = None;
        loop {
            let ended = match until {
                Some(until) => timeout_at(until, under_way.join_next()).await.unwrap_or_default(),
                None => under_way.join_next().await,
            };
            match ended.map(joined) {
                Some(Ok((_, Ok(())))) => until = until.or_else(|| Some(now() + self.lag)),
                Some(Ok((index, Err(fault)))) => {
                    last = last.filter(|(other, _)| *other > index).or(Some((index, fault)));
                }
                // It was cancelled: the process ends.
                Some(Err(_)) => {}
                None => break,
            }
        }
        under_way.detach_all();
        match (until, last) {
            (Some(_), _) => Ok(named),
            (None, Some((_, fault))) => Err(fault),
            (None, None) => Err(L1Error::NotArchived { reason: "no archive is configured".to_owned() }),
        }
    }

    /// The data, of the first archive that has it.
    ///
    /// # Errors
    /// Of one that may give it later, if there is such a one; else that of the archive that was asked last:
    /// [`L1Error::NotArchived`] where it gave something else.
    pub async fn fetch(&self, named: &ArchivedData) -> Result<Bytes, L1Error> {
        let count = self.archives.len();
        let first = self.first.load(Ordering::Relaxed);
        let mut told: Option<L1Error> = None;
        for turn in 0..count {
            let index = first.wrapping_add(turn) % count;
            let Some(archive) = self.archives.get(index) else { continue };
            let fault = match self.ask(index, archive, named).await {
                Ok(data) => {
                    self.first.store(index, Ordering::Relaxed);
                    return Ok(data);
                }
                Err(fault) => fault,
            };
            if !told.as_ref().is_some_and(L1Error::is_transient) {
                told = Some(fault);
            }
        }
        Err(told.unwrap_or_else(|| L1Error::NotArchived { reason: "no archive is configured".to_owned() }))
    }

    /// The data, of this archive. Anybody can name what is nowhere: one that is silent is not waited for each time (DA-4).
    async fn ask(&self, index: usize, archive: &Place, named: &ArchivedData) -> Result<Bytes, L1Error> {
        if !self.silent.lock().is_over(&index) {
            return Err(L1Error::no_answer("an archive gave none a moment ago, and is asked again later"));
        }
        let mut begun = false;
        let (path, length) = (named.path(), named.length as usize);
        let answer = archive.http.get_bytes(GET_DATA, &path, length, || begun = true).await;
        // Long data that does not come to its end may be long alone.
        if begun {
            self.silent.lock().succeeded(&index);
        } else {
            self.silent.lock().failed(index);
        }
        let data = answer?;
        if !named.names(&data) {
            let reason = format!("{} bytes that are not those of {}", data.len(), named.hash);
            return Err(L1Error::NotArchived { reason });
        }
        Ok(data)
    }
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
