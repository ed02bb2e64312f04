//! Memory for Miller lines: a number of bytes that tables share.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that may still be kept.
pub(crate) struct Budget(AtomicUsize);

impl Budget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(AtomicUsize::new(bytes))
    }

    /// Takes so many bytes, if there are.
    fn take(&self, bytes: usize) -> bool {
        // Only a count: nothing is read on the strength of it.
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    /// What `cell` holds; at first use that is what `make` makes, if there are so many bytes, and `None` for good if not.
    pub(crate) fn keep<'a, T>(
        &self,
        cell: &'a OnceLock<Option<T>>,
        bytes: usize,
        make: impl FnOnce() -> T,
    ) -> Option<&'a T> {
        if let Some(kept) = cell.get() {
            return kept.as_ref();
        }
        // Made outside the cell: a thread that waits in rayon may pick up another task that needs this cell.
        let made = self.take(bytes).then(make);
        let took = made.is_some();
        if cell.set(made).is_err() && took {
            self.0.fetch_add(bytes, Ordering::Relaxed); // another thread was faster
        }
        cell.get().and_then(Option::as_ref)
    }
}
