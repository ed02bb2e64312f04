//! Reading in bounds, and writing as a whole.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::Path,
};

use blindfold_runtime::random;
use zeroize::Zeroizing;

use super::KeyFileError;

pub(super) fn read_bounded(path: &Path, limit_bytes: u64) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
    let fail = |cause| KeyFileError::Io { path: path.to_owned(), cause };
    let mut bytes = Zeroizing::new(Vec::new());
    let file = File::open(path).map_err(fail)?;
    file.take(limit_bytes + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > limit_bytes {
        return Err(KeyFileError::TooLarge { limit_bytes });
    }
    Ok(bytes)
}

/// Who may read a file, as Unix counts it.
pub(super) const OWNER: u32 = 0o600;
pub(super) const EVERYBODY: u32 = 0o644;

/// Links the finished file to its name: that fails where a rename would silently replace an existing key.
pub(super) fn write_new(path: &Path, bytes: &[u8], readers: u32) -> Result<(), KeyFileError> {
    write(path, bytes, readers, |finished, path| fs::hard_link(finished, path))
}

/// Puts the finished file in the place of the one that may be there, whoever owns that, and behind a link if it is one.
pub(super) fn replace(path: &Path, bytes: &[u8], readers: u32) -> Result<(), KeyFileError> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    write(&path, bytes, readers, |finished, path| {
        #[cfg(unix)]
        if let Ok(before) = fs::metadata(path) {
            use std::os::unix::fs::{MetadataExt, chown};
            chown(finished, Some(before.uid()), Some(before.gid()))?;
        }
        fs::rename(finished, path)
    })
}

/// Writes beside the target and syncs before it gets its name.
fn write(
    path: &Path,
    bytes: &[u8],
    readers: u32,
    name: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> Result<(), KeyFileError> {
    let fail = |cause: io::Error| match cause.kind() {
        io::ErrorKind::AlreadyExists => KeyFileError::Exists { path: path.to_owned() },
        _ => KeyFileError::Io { path: path.to_owned(), cause },
    };
    let mut beside = path.file_name().ok_or_else(|| fail(io::ErrorKind::InvalidInput.into()))?.to_owned();
    beside.push(format!(".{:08x}.new", random::<u32>()));
    let beside = path.with_file_name(beside);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, readers);
    let mut file = options.open(&beside).map_err(fail)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| name(&beside, path));
    // Gone already where it was renamed.
    let _ = fs::remove_file(&beside);
    written.map_err(fail)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(fail)
}
