//! `blindfold archive`: keeps data that L1 only names, by its hash, and gives it to whoever asks. Plain HTTP: `PUT` and `GET
//! /data/<SHA-256>`. It holds no keys and knows of no chain: what guarantees it gives, its operator does (docs/l1.md).
//!
//! It is read at one address and written to at another, which is for the sequencer alone: whoever writes can fill it.

mod files;

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use anyhow::{Context, Result, bail};
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Path, Request, State},
    http::{Response, StatusCode, header},
    routing::get,
};
use blindfold_l1::MAX_ARCHIVED_BYTES;
use blindfold_rpc::{AdminConfig, Readiness, ServerHandle, admin, serve_http};
use blindfold_runtime::blocking;
use blindfold_telemetry::Metrics;
use clap::Args;
use tokio::sync::Semaphore;

use crate::roles::asked_to_stop;
use files::{FileFault, Files};

/// Pieces of data that are in memory at the same time at most, read or written.
const MAX_AT_ONCE: usize = 8;
/// Connections of readers at the same time at most.
const MAX_READERS: u32 = 32;

/// `blindfold archive`
#[derive(Args, Debug)]
pub struct ArchiveArgs {
    /// Folder of the data; made if it is missing
    #[arg(long)]
    dir: PathBuf,
    /// Where data is read: for everybody
    #[arg(long, default_value = "127.0.0.1:9650")]
    read_addr: SocketAddr,
    /// Where data is written, and health is told: for the sequencer alone
    #[arg(long, default_value = "127.0.0.1:9651")]
    write_addr: SocketAddr,
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
    at_once: Semaphore,
}

impl Running {
    async fn start(args: ArchiveArgs) -> Result<Self> {
        let ArchiveArgs { dir, read_addr, write_addr, max_bytes } = args;
        let opened = {
            let dir = dir.clone();
            blocking(move || Files::open(&dir, max_bytes)).await?
        };
        let files = opened.with_context(|| format!("--dir {}", dir.display()))?;
        tracing::info!(bytes = files.used_bytes(), max_bytes, "the archive's data is there");
        let shared = Arc::new(Shared { files, at_once: Semaphore::new(MAX_AT_ONCE) });
        let metrics = Metrics::new("archive", env!("CARGO_PKG_VERSION"))?;
        let reading: Router = Router::new().route("/data/{hash}", get(give)).with_state(Arc::clone(&shared));
        let writing: Router = Router::new().route("/data/{hash}", get(give).put(take)).with_state(shared);
        let config = AdminConfig { addr: write_addr };
        let writes = admin(config, Readiness::new(&[]), move || metrics.render(), Some(writing));
        let writes = writes.await.context("--write-addr")?;
        let reads = serve_http(read_addr, reading, MAX_READERS).await.context("--read-addr")?;
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
    let Ok(_turn) = shared.at_once.acquire().await else { return busy() };
    let (files, name) = (Arc::clone(&shared), hash.clone());
    let read = blocking(move || files.files.read(&name)).await;
    match read {
        Ok(Ok(Some(data))) => {
            let mut response = Response::new(Body::from(data));
            let kind = header::HeaderValue::from_static("application/octet-stream");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            response
        }
        Ok(Ok(None)) => words(StatusCode::NOT_FOUND, "there is no such data\n"),
        Ok(Err(fault)) => of_fault(&hash, &fault),
        Err(_) => busy(),
    }
}

/// Answers 200 when the data is on the disk, to stay.
async fn take(
    State(shared): State<Arc<Shared>>,
    Path(hash): Path<String>,
    request: Request,
) -> Response<Body> {
    let Ok(_turn) = shared.at_once.acquire().await else { return busy() };
    // One byte more shows that there is more.
    let Ok(data) = to_bytes(request.into_body(), MAX_ARCHIVED_BYTES + 1).await else {
        return of_fault(&hash, &FileFault::TooLong);
    };
    let (files, name) = (Arc::clone(&shared), hash.clone());
    match blocking(move || files.files.write(&name, &data)).await {
        Ok(Ok(())) => words(StatusCode::OK, "kept\n"),
        Ok(Err(fault)) => of_fault(&hash, &fault),
        Err(_) => busy(),
    }
}

fn busy() -> Response<Body> {
    words(StatusCode::SERVICE_UNAVAILABLE, "the archive is stopping\n")
}

#[cfg(test)]
#[path = "archive/tests.rs"]
mod tests;
