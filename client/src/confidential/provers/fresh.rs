//! Files that are there as a whole or not at all, and that never replace one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::KeysError;

/// Writes a file that must not be there yet. A crash leaves it missing, and perhaps one beside it whose name ends in
/// `.partial-` and a number.
///
/// # Errors
/// [`KeysError::Exists`], [`KeysError::File`].
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<(), KeysError> {
    absent(path)?;
    let partial = partial(path);
    let written = synced(&partial, bytes).and_then(|()| fs::hard_link(&partial, path));
    // The link has the bytes now; where there is none, nothing is worth keeping.
    let removed = fs::remove_file(&partial);
    match written.and(removed).and_then(|()| sync_parent(path)) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(KeysError::Exists(path.to_owned())),
        Err(error) => Err(failed(path, &error)),
    }
}

/// Makes a folder that must not be there yet, or be empty, and fills it: it appears when `fill` has returned.
///
/// # Errors
/// [`KeysError::Exists`], [`KeysError::File`], and those of `fill`.
pub(super) fn new_folder<T>(
    path: &Path,
    fill: impl FnOnce(&Path) -> Result<T, KeysError>,
) -> Result<T, KeysError> {
    absent(path)?;
    let partial = partial(path);
    fs::create_dir_all(&partial).map_err(|error| failed(&partial, &error))?;
    let filled = fill(&partial).and_then(|filled| match fs::rename(&partial, path) {
        Ok(()) => sync_parent(path).map(|()| filled).map_err(|error| failed(path, &error)),
        Err(_) if path.exists() => Err(KeysError::Exists(path.to_owned())),
        Err(error) => Err(failed(path, &error)),
    });
    if filled.is_err() {
        // What went wrong is told already.
        let _ = fs::remove_dir_all(&partial);
    }
    filled
}

/// Refuses a path at which there is something: before the minutes that it takes to make what would stand there.
///
/// # Errors
/// [`KeysError::Exists`].
pub fn absent(path: &Path) -> Result<(), KeysError> {
    let empty_folder = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    if path.symlink_metadata().is_ok() && !empty_folder() {
        return Err(KeysError::Exists(path.to_owned()));
    }
    Ok(())
}

/// Writes a file and has the disk keep it.
pub(super) fn synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn partial(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".partial-{}", std::process::id()));
    path.with_file_name(name)
}

fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

pub(super) fn failed(path: &Path, error: &io::Error) -> KeysError {
    KeysError::File { path: path.to_owned(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn nothing_is_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("state");
        write_new(&file, b"first").unwrap();
        assert!(matches!(write_new(&file, b"second"), Err(KeysError::Exists(path)) if path == file));
        assert_eq!(fs::read(&file).unwrap(), b"first");
        let folder = dir.path().join("keys");
        new_folder(&folder, |dir| synced(&dir.join("a"), b"a").map_err(|e| failed(dir, &e))).unwrap();
        assert!(matches!(new_folder(&folder, |_| Ok(())), Err(KeysError::Exists(path)) if path == folder));
        assert_eq!(
            (names(dir.path()), names(&folder)),
            (vec!["keys".into(), "state".into()], vec!["a".into()])
        );
    }

    #[test]
    fn what_fails_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("keys");
        let fault = || KeysError::NotPinned("transfer");
        let filled: Result<(), _> =
            new_folder(&folder, |dir| synced(&dir.join("a"), b"a").map_err(|_| fault()).and(Err(fault())));
        assert!(matches!(filled, Err(KeysError::NotPinned("transfer"))));
        // Somebody else was first while this one was being filled.
        let late = new_folder(&folder, |_| {
            write_new(&folder.join("b"), b"b").or_else(|_| {
                fs::create_dir(&folder).map_err(|error| failed(&folder, &error))?;
                write_new(&folder.join("b"), b"b")
            })
        });
        assert!(matches!(late, Err(KeysError::Exists(_))));
        assert_eq!((names(dir.path()), names(&folder)), (vec!["keys".to_owned()], vec!["b".to_owned()]));
        assert!(matches!(write_new(&dir.path().join("no/file"), b""), Err(KeysError::File { .. })));
    }
}
