//! `blindfold archive`: keeps data that L1 only names, by its hash, and gives it to whoever asks. Plain HTTP: `PUT` and `GET
//! /data/<SHA-256>`. It holds no keys and knows of no chain: what guarantees it gives, its operator does (docs/l1.md).
//!
//! It is read at one address and written to at another, which is for the sequencer alone: whoever writes can fill it. So whoever
//! writes has to show a token, where one is set.

mod files;
mod metrics;

use std::{future::poll_fn, net::SocketAddr, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use axum::{
    Router,
    body::{Body, HttpBody},
    extract::{Path, Request, State},
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
    routing::get,
};
use blindfold_l1::{ArchiveRoom, ArchiveToken, MAX_ARCHIVED_BYTES, ROOM_PATH};
use blindfold_rpc::{AdminConfig, Readiness, ServerHandle, admin, serve_http};
use blindfold_runtime::{Instant, blocking, now};
use clap::Args;
use thiserror::Error;
use tokio::{sync::Semaphore, time::timeout_at};

use crate::roles::{asked_to_stop, l1::archive_token};
use files::{FileFault, Files};
use metrics::ArchiveMetrics;

/// Pieces of data that are read from the disk at the same time at most; and so many that come in, which are in memory.
const MAX_AT_ONCE: usize = 8;
/// How long whoever sends data may send nothing, in milliseconds.
const UPLOAD_PATIENCE_MS: u64 = 10_000;
/// At what rate bytes that come in give back patience: sending one now and then does not keep a place.
const MIN_UPLOAD_BYTES_PER_SECOND: u64 = 64 << 10;
/// Connections of readers at the same time at most.
const MAX_READERS: u32 = 32;
/// Most of them of one address, unless set otherwise: whoever reads slowly keeps no other from reading.
const MAX_READERS_PER_ADDRESS: u32 = 8;
/// Holds while the disk takes what comes.
const DISK: &str = "disk";
/// Holds while the longest piece has room.
const ROOM: &str = "room";

/// `blindfold archive`
#[derive(Args, Debug)]
pub struct ArchiveArgs {
    /// Folder of the data; made if it is missing
    #[arg(long)]
    dir: PathBuf,
    /// Where data is read: for everybody
    #[arg(long, default_value = "127.0.0.1:9650")]
    read_addr: SocketAddr,
    /// Where data is written, and health and metrics are told: for the sequencer alone
    #[arg(long, default_value = "127.0.0.1:9651")]
    write_addr: SocketAddr,
    /// File whose first line is the token that whoever writes has to show; without it whoever reaches the address writes
    #[arg(long)]
    token_file: Option<PathBuf>,
    /// Readers of one address at the same time at most, of 32 in all; behind a reverse proxy all are of its address
    #[arg(long, default_value_t = MAX_READERS_PER_ADDRESS, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_READERS)))]
    max_readers_per_address: u32,
    /// Bytes of data at most; what comes above is refused
    #[arg(long, default_value_t = 1 << 40)]
    max_bytes: u64,
}

/// Runs until it is asked to stop.
///
/// # Errors
/// When the folder or a port cannot be used, or a server ends.
pub async fn run(args: ArchiveArgs) -> Result<()> {
    let running = Running::start(args).await?;
    let (reads, writes) = (running.reads.ended(), running.writes.ended());
    let cause = tokio::select! {
        asked = asked_to_stop() => { asked?; None }
        cause = reads => Some(cause),
        cause = writes => Some(cause),
    };
    running.reads.shutdown().await;
    running.writes.shutdown().await;
    cause.map_or(Ok(()), |cause| bail!("the archive cannot go on: {cause}"))
}

struct Running {
    reads: ServerHandle,
    writes: ServerHandle,
}

struct Shared {
    files: Files,
    max_bytes: u64,
    /// What whoever writes has to show.
    token: Option<ArchiveToken>,
    metrics: ArchiveMetrics,
    readiness: Readiness,
    /// Places of readers, who wait for nobody that writes.
    reads: Semaphore,
    /// Places of what comes in, from its first byte until it is on the disk.
    uploads: Semaphore,
    patience: Duration,
}

impl Shared {
    fn may_write(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        headers.get(header::AUTHORIZATION).is_some_and(|shown| token.is_shown_by(shown.as_bytes()))
    }

    /// So many bytes are held now.
    fn holds(&self, used_bytes: u64) {
        self.metrics.used.set(used_bytes);
        if used_bytes.saturating_add(MAX_ARCHIVED_BYTES as u64) <= self.max_bytes {
            self.readiness.set_ready(ROOM);
        } else {
            let max_bytes = self.max_bytes;
            self.readiness.set_not_ready(ROOM, format!("{used_bytes} of {max_bytes} bytes are held"));
        }
    }
}

impl Running {
    async fn start(args: ArchiveArgs) -> Result<Self> {
        Self::start_with(args, Duration::from_millis(UPLOAD_PATIENCE_MS)).await
    }

    async fn start_with(args: ArchiveArgs, patience: Duration) -> Result<Self> {
        let ArchiveArgs { dir, read_addr, write_addr, token_file, max_readers_per_address, max_bytes } = args;
        let token = token_file.as_deref().map(archive_token).transpose().context("--token-file")?;
        if token.is_none() && !write_addr.ip().is_loopback() {
            tracing::warn!(%write_addr, "whoever reaches this address can fill the archive: set --token-file");
        }
        let opened = {
            let dir = dir.clone();
            blocking(move || Files::open(&dir, max_bytes)).await?
        };
        let files = opened.with_context(|| format!("--dir {}", dir.display()))?;
        tracing::info!(bytes = files.used_bytes(), max_bytes, "the archive's data is there");
        let (reads, uploads) = (Semaphore::new(MAX_AT_ONCE), Semaphore::new(MAX_AT_ONCE));
        let (metrics, readiness) = (ArchiveMetrics::new()?, Readiness::new(&[DISK, ROOM]));
        let (registry, conditions) = (metrics.registry.clone(), readiness.clone());
        metrics.limit.set(max_bytes);
        let used_bytes = files.used_bytes();
        let shared =
            Arc::new(Shared { files, max_bytes, token, metrics, readiness, reads, uploads, patience });
        shared.holds(used_bytes);
        shared.readiness.set_ready(DISK);
        let reading: Router = Router::new().route("/data/{hash}", get(give)).with_state(Arc::clone(&shared));
        let writing = Router::new().route("/data/{hash}", get(give).put(take)).route(ROOM_PATH, get(room));
        let config = AdminConfig { addr: write_addr };
        let writing = writing.with_state(shared);
        let writes = admin(config, conditions, move || registry.render(), Some(writing));
        let writes = writes.await.context("--write-addr")?;
        let reads = serve_http(read_addr, reading, MAX_READERS, max_readers_per_address);
        let reads = reads.await.context("--read-addr")?;
        tracing::info!(local_addr = %reads.local_addr(), "the archive gives data");
        Ok(Self { reads, writes })
    }
}

/// An answer in words.
fn words(code: StatusCode, text: impl Into<String>) -> Response<Body> {
    let mut response = Response::new(Body::from(text.into()));
    *response.status_mut() = code;
    response
}

/// The same answer, which says of what kind it is.
fn of_kind(mut response: Response<Body>, kind: &'static str) -> Response<Body> {
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn no_token() -> Response<Body> {
    let mut response = words(StatusCode::UNAUTHORIZED, "whoever writes has to show the archive's token\n");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

fn of_fault(hash: &str, fault: &FileFault) -> Response<Body> {
    let code = match fault {
        FileFault::Name | FileFault::OtherBytes { .. } => StatusCode::BAD_REQUEST,
        FileFault::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
        FileFault::Full => StatusCode::INSUFFICIENT_STORAGE,
        FileFault::Damaged | FileFault::Disk(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    if code.is_server_error() {
        tracing::warn!(%hash, %fault, "the archive fails");
    }
    words(code, format!("{fault}\n"))
}

async fn give(State(shared): State<Arc<Shared>>, Path(hash): Path<String>) -> Response<Body> {
    let (response, bytes) = given(&shared, hash).await;
    shared.metrics.read(response.status(), bytes);
    response
}

/// The answer to a question for data, and how many bytes of data it has.
async fn given(shared: &Arc<Shared>, hash: String) -> (Response<Body>, usize) {
    let Ok(_turn) = shared.reads.acquire().await else { return (busy(), 0) };
    let (files, name) = (Arc::clone(shared), hash.clone());
    let read = blocking(move || files.files.read(&name)).await;
    match read {
        Ok(Ok(Some(data))) => {
            let bytes = data.len();
            (of_kind(Response::new(Body::from(data)), "application/octet-stream"), bytes)
        }
        Ok(Ok(None)) => (words(StatusCode::NOT_FOUND, "there is no such data\n"), 0),
        Ok(Err(fault)) => (of_fault(&hash, &fault), 0),
        Err(_) => (busy(), 0),
    }
}

/// Tells whoever may write how much room there is.
async fn room(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response<Body> {
    if !shared.may_write(&headers) {
        return no_token();
    }
    let max_bytes = shared.max_bytes;
    // It waits for whatever is written.
    let Ok(used_bytes) = blocking(move || shared.files.used_bytes()).await else { return busy() };
    match serde_json::to_string(&ArchiveRoom { used_bytes, max_bytes }) {
        Ok(text) => of_kind(words(StatusCode::OK, text), "application/json"),
        Err(_) => busy(),
    }
}

/// Answers 200 when the data is on the disk, to stay.
async fn take(
    State(shared): State<Arc<Shared>>,
    Path(hash): Path<String>,
    request: Request,
) -> Response<Body> {
    let response = taken(&shared, hash, request).await;
    shared.metrics.written(response.status());
    response
}

async fn taken(shared: &Arc<Shared>, hash: String, request: Request) -> Response<Body> {
    // Whoever may not write takes no place.
    if !shared.may_write(request.headers()) {
        return no_token();
    }
    let Ok(_turn) = shared.uploads.acquire().await else { return busy() };
    let data = match whole(request.into_body(), shared.patience).await {
        Ok(data) => data,
        Err(NotWhole::TooLong) => return of_fault(&hash, &FileFault::TooLong),
        Err(fault) => {
            tracing::warn!(%fault, "data did not come to its end");
            return words(StatusCode::REQUEST_TIMEOUT, format!("{fault}\n"));
        }
    };
    let (files, name) = (Arc::clone(shared), hash.clone());
    let written = blocking(move || (files.files.write(&name, &data), files.files.used_bytes())).await;
    let Ok((written, used_bytes)) = written else { return busy() };
    shared.holds(used_bytes);
    match written {
        Ok(()) => {
            shared.readiness.set_ready(DISK);
            words(StatusCode::OK, "kept\n")
        }
        Err(fault) => {
            if matches!(fault, FileFault::Disk(_)) {
                shared.readiness.set_not_ready(DISK, fault.to_string());
            }
            of_fault(&hash, &fault)
        }
    }
}

/// Why a body is not there.
#[derive(Debug, Error)]
enum NotWhole {
    #[error("no more than {MAX_ARCHIVED_BYTES} bytes are kept as one")]
    TooLong,
    #[error("data must go on coming, at {MIN_UPLOAD_BYTES_PER_SECOND} bytes a second")]
    TooSlow,
    #[error("the connection ended in the middle of it")]
    Broken,
}

/// A body, as long as it goes on coming.
async fn whole(mut body: Body, patience: Duration) -> Result<Vec<u8>, NotWhole> {
    let mut data = Vec::new();
    let mut until = now() + patience;
    loop {
        let next = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
        let Some(frame) = timeout_at(until, next).await.map_err(|_| NotWhole::TooSlow)? else {
            return Ok(data);
        };
        // Trailers are of no use here.
        let Ok(part) = frame.map_err(|_| NotWhole::Broken)?.into_data() else { continue };
        if data.len().saturating_add(part.len()) > MAX_ARCHIVED_BYTES {
            return Err(NotWhole::TooLong);
        }
        data.extend_from_slice(&part);
        until = put_off(until, part.len(), patience, now());
    }
}

/// When patience ends that would have ended then, now that so many bytes came.
fn put_off(until: Instant, bytes: usize, patience: Duration, now: Instant) -> Instant {
    let micros = (bytes as u64).saturating_mul(1_000_000) / MIN_UPLOAD_BYTES_PER_SECOND;
    (until.max(now) + Duration::from_micros(micros)).min(now + patience)
}

fn busy() -> Response<Body> {
    words(StatusCode::SERVICE_UNAVAILABLE, "the archive is stopping\n")
}

#[cfg(test)]
#[path = "archive/tests.rs"]
mod tests;
