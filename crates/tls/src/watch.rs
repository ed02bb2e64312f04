//! Files that change while a role runs.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use blindfold_runtime::blocking;
use zeroize::Zeroizing;

use crate::{TlsError, error::date};

/// How often files are looked at, in milliseconds.
pub const FILES_POLL_MS: u64 = 10_000;

/// What is read from files again.
pub trait Refreshing: Send + Sync + 'static {
    /// What it is, for the log.
    fn name(&self) -> &'static str;

    /// The files, and what was read and refused of them.
    fn files(&self) -> &Files;

    /// Reads them, and takes what they hold. Blocks.
    ///
    /// # Errors
    /// What is wrong with it; then nothing has changed.
    fn take(&self) -> Result<(), TlsError>;

    /// When the certificate expires, in Unix seconds.
    fn expires(&self) -> Option<u64>;

    /// Takes what the files hold, if they have changed since the last time, or if `asked`. Whether it took something. Blocks.
    fn refresh(&self, asked: bool) -> bool {
        let files = self.files();
        let seen = files.digest();
        if files.seen.swap(seen, Ordering::Relaxed) == seen && !asked {
            return false;
        }
        match self.take() {
            Ok(()) => {
                let expires = self.expires().map(date);
                tracing::info!(what = self.name(), expires, "certificate files read again");
                true
            }
            Err(refusal) => {
                files.refused.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(what = self.name(), %refusal, "new certificate files are not used; those before them stay");
                false
            }
        }
    }
}

/// Files by their names.
#[derive(Debug)]
pub struct Files {
    paths: Vec<PathBuf>,
    /// Digest of what was tried last.
    seen: AtomicU64,
    refused: AtomicU64,
}

impl Files {
    /// What is in them now counts as read.
    pub(crate) fn new(paths: Vec<PathBuf>) -> Self {
        let files = Self { paths, seen: AtomicU64::new(0), refused: AtomicU64::new(0) };
        files.seen.store(files.digest(), Ordering::Relaxed);
        files
    }

    /// How often what they held was refused.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Tells contents apart. A file that cannot be read has one of its own.
    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for path in &self.paths {
            fs::read(path).ok().map(Zeroizing::new).as_deref().hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// Refreshes what is read from files whenever they change or the process gets SIGHUP, until it is dropped.
pub async fn watch(what: Arc<dyn Refreshing>) {
    if what.files().paths.is_empty() {
        return std::future::pending().await;
    }
    let mut hangups = match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()) {
        Ok(hangups) => Some(hangups),
        Err(error) => {
            tracing::warn!(%error, "SIGHUP is not listened to; certificate files are looked at by themselves");
            None
        }
    };
    loop {
        let hangup = async {
            match &mut hangups {
                Some(hangups) => drop(hangups.recv().await),
                None => std::future::pending().await,
            }
        };
        let asked = tokio::select! {
            () = hangup => true,
            () = tokio::time::sleep(Duration::from_millis(FILES_POLL_MS)) => false,
        };
        let what = Arc::clone(&what);
        if blocking(move || what.refresh(asked)).await.is_err() {
            tracing::error!("looking at certificate files failed");
        }
    }
}
