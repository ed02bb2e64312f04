//! Files that commands write, and never over another one.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow};

/// A file that was just made, and goes away again unless it is written. Made before what cannot be done twice, so that
/// nothing is done whose outcome has no place.
#[derive(Debug)]
pub(crate) struct NewFile {
    path: PathBuf,
    file: File,
    written: bool,
}

impl NewFile {
    /// Makes the file, which must not exist yet.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let file = File::create_new(path).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                anyhow!("{} exists already; it is never overwritten: name another file", path.display())
            }
            _ => anyhow!("cannot make {}: {error}", path.display()),
        })?;
        Ok(Self { path: path.to_owned(), file, written: false })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes it, durable when this returns.
    pub(crate) fn write(mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_all(bytes).and_then(|()| self.file.sync_all());
        self.written = written.is_ok();
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.written {
            // It holds nothing. Where it cannot go, the next try says that it is there.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stays_only_once_it_is_written_and_is_written_over_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        drop(NewFile::create(&path).unwrap());
        assert!(!path.exists());
        NewFile::create(&path).unwrap().write(b"first").unwrap();
        let again = NewFile::create(&path).unwrap_err().to_string();
        assert!(again.contains("a.json exists already"), "{again}");
        assert_eq!(fs::read(&path).unwrap(), b"first");
        let nowhere = NewFile::create(&dir.path().join("none/a.json")).unwrap_err().to_string();
        assert!(nowhere.contains("cannot make"), "{nowhere}");
    }
}
