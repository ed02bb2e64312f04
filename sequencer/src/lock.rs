//! One process per data folder: an operating-system lock that ends with the process, however it ends.

use std::{
    io,
    path::{Path, PathBuf},
};

use blindfold_runtime::FileLock;
use thiserror::Error;

/// Name of the lock file in the data folder.
pub const LOCK_FILE: &str = "sequencer.lock";

/// Name of the lock file of a process that may lead later.
const STANDBY_LOCK_FILE: &str = "standby.lock";

/// The lock of a data folder, held while this value lives.
#[derive(Debug)]
pub struct DataLock {
    _file: FileLock,
}

/// Why the folder cannot be used.
#[derive(Debug, Error)]
pub enum LockError {
    /// Another process holds the lock of this folder.
    #[error(
        "{0} is in use by another process; two sequencers on one disk would sign two headers for one number"
    )]
    InUse(PathBuf),
    /// The operating system did not give the lock file.
    #[error("cannot lock {path}: {cause}")]
    Io {
        /// The lock file or its folder.
        path: PathBuf,
        /// What the operating system said.
        cause: io::Error,
    },
}

impl DataLock {
    /// Creates the folder if it is missing and locks it.
    pub fn acquire(folder: &Path) -> Result<Self, LockError> {
        Self::acquire_file(folder, LOCK_FILE)
    }

    /// The same for a process that may lead later, and then acquires the folder's lock, too.
    pub(crate) fn acquire_to_stand_by(folder: &Path) -> Result<Self, LockError> {
        Self::acquire_file(folder, STANDBY_LOCK_FILE)
    }

    fn acquire_file(folder: &Path, name: &str) -> Result<Self, LockError> {
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |cause| LockError::Io { path, cause }
        };
        std::fs::create_dir_all(folder).map_err(failed(folder))?;
        let path = folder.join(name);
        let file = FileLock::acquire(&path, &FileLock::options()).map_err(failed(&path))?;
        file.map(|file| Self { _file: file }).ok_or_else(|| LockError::InUse(folder.to_path_buf()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_refused_until_the_first_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let first = DataLock::acquire(folder.path()).unwrap();
        assert!(matches!(DataLock::acquire(folder.path()), Err(LockError::InUse(_))));
        drop(first);
        DataLock::acquire(folder.path()).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, b"x").unwrap();
        assert!(matches!(DataLock::acquire(&file.join("sub")), Err(LockError::Io { .. })));
    }
}
