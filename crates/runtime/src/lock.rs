use std::{
    fs::{OpenOptions, TryLockError},
    io,
    path::Path,
};

/// The operating system's lock of a file, which ends with the process, however that ends, or with this value.
///
/// A child process holds whatever its parent has open from its start until it runs its own program: closing the file
/// would leave it locked so long. So it is unlocked when this value is dropped, for all who have it open.
#[derive(Debug)]
pub struct FileLock {
    file: std::fs::File,
}

impl FileLock {
    /// Locks the file, which is created where there is none, as `options` say, which must open it for writing. `None`
    /// where another process, or another value of this one, holds the lock. Blocks on the disk.
    ///
    /// # Errors
    /// What the operating system says: the file cannot be opened, or its disk knows no locks.
    pub fn acquire(path: &Path, options: &OpenOptions) -> io::Result<Option<Self>> {
        let file = options.open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// How a file is opened that is there for its lock alone.
    pub fn options() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        options
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Where it fails, the lock ends with the last who has the file open.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_it_until_it_is_dropped_whoever_else_has_the_file_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let acquire = || FileLock::acquire(&path, &FileLock::options()).unwrap();
        let first = acquire().unwrap();
        assert!(acquire().is_none());
        // What a child process has between its start and its program.
        let inherited = first.file.try_clone().unwrap();
        drop(first);
        assert!(acquire().is_some());
        drop(inherited);
        assert!(FileLock::acquire(&folder.path().join("no/lock"), &FileLock::options()).is_err());
    }
}
