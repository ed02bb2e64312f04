//! Files that commands write, and never over another one.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Error, Result, anyhow};
use blindfold_runtime::random;

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
            ErrorKind::AlreadyExists => exists(path),
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

/// Writes a file that must not exist yet, as a whole: whoever finds it, after a crash too, finds all of it.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let part = beside(path, &format!(".{:08x}.part", random::<u32>()));
    NewFile::create(&part)?.write(bytes)?;
    let linked = match fs::hard_link(&part, path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(exists(path)),
        // Where the file system has no such links: over an empty file of our own.
        Err(_) => match NewFile::create(path) {
            Ok(mut own) => {
                own.written = fs::rename(&part, path).is_ok();
                if own.written { Ok(()) } else { Err(anyhow!("cannot write {}", path.display())) }
            }
            Err(error) => Err(error),
        },
        Ok(()) => Ok(()),
    };
    // Gone already where it was renamed.
    let _ = fs::remove_file(&part);
    linked?;
    // The name, too, is to outlive a crash.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The file of this name and ending, in the same folder.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

pub(crate) fn exists(path: &Path) -> Error {
    anyhow!("{} exists already; it is never overwritten: name another file", path.display())
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
    #[test]
    fn a_file_that_is_written_whole_is_written_over_no_other_and_leaves_no_part() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        write_whole(&path, b"first").unwrap();
        let again = write_whole(&path, b"second").unwrap_err().to_string();
        assert!(again.contains("a.json exists already"), "{again}");
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(write_whole(&dir.path().join("none/a.json"), b"").is_err());
    }
}
