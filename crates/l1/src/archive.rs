//! Archives of data that L1 only names: plain HTTP servers that give bytes for their SHA-256. None is believed: what it gives
//! counts when it has the hash and the length that L1 recorded. Whether it goes on giving them is a matter of trust
//! (docs/l1.md).

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use alloy_primitives::Bytes;

use crate::{error::L1Error, posting::archived::ArchivedData, transport::Http};

/// How the calls are named in errors.
const PUT_DATA: &str = "PUT /data";
const GET_DATA: &str = "GET /data";

/// Archives that hold the same data, or are to.
#[derive(Clone, Debug)]
pub struct Archive {
    archives: Arc<[Http]>,
    /// The one that gave data last: it is asked first.
    first: Arc<AtomicUsize>,
}

impl Archive {
    /// These archives by their URLs; none is asked yet. An answer begins within `timeout_ms`, and goes on within as much; what
    /// is put has the time of its bytes besides.
    ///
    /// # Errors
    /// [`L1Error::Url`], [`L1Error::Tls`].
    pub fn new(urls: &[String], timeout_ms: u64) -> Result<Self, L1Error> {
        let archives = urls.iter().map(|url| Http::new(url, timeout_ms)).collect::<Result<_, _>>()?;
        Ok(Self { archives, first: Arc::default() })
    }

    /// Puts the data into every archive that takes it, at least into one; each has it on its disk when it says so.
    ///
    /// # Errors
    /// [`L1Error::NotArchived`] for data that is too long; that of the last archive where none takes it.
    pub async fn publish(&self, data: &[u8]) -> Result<ArchivedData, L1Error> {
        let named =
            ArchivedData::of(data).map_err(|fault| L1Error::NotArchived { reason: fault.to_string() })?;
        let body = Bytes::copy_from_slice(data);
        let (mut taken, mut last) = (0usize, None);
        for archive in self.archives.iter() {
            match archive.put(PUT_DATA, &named.path(), body.clone()).await {
                Ok(()) => taken += 1,
                Err(fault) => {
                    tracing::warn!(%fault, hash = %named.hash, "an archive does not take data");
                    last = Some(fault);
                }
            }
        }
        match (taken, last) {
            (0, Some(fault)) => Err(fault),
            (0, None) => Err(L1Error::NotArchived { reason: "no archive is configured".to_owned() }),
            _ => Ok(named),
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
            let fault = match archive.get_bytes(GET_DATA, &named.path(), named.length as usize).await {
                Ok(data) if named.names(&data) => {
                    self.first.store(index, Ordering::Relaxed);
                    return Ok(data);
                }
                Ok(data) => L1Error::NotArchived {
                    reason: format!("{} bytes that are not those of {}", data.len(), named.hash),
                },
                Err(fault) => fault,
            };
            if !told.as_ref().is_some_and(L1Error::is_transient) {
                told = Some(fault);
            }
        }
        Err(told.unwrap_or_else(|| L1Error::NotArchived { reason: "no archive is configured".to_owned() }))
    }
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
