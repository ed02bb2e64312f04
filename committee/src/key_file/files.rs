//! Reading in bounds, and writing as a whole.

use std::{
    fs::{self, File, Metadata, OpenOptions, Permissions},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
};

use blindfold_runtime::random;
use zeroize::Zeroizing;

use super::{KeyFileError, MAX_FILE_BYTES};

/// As many links in a row as Linux follows.
const MAX_LINKS: usize = 40;

pub(super) fn read_bounded(path: &Path, limit_bytes: u64) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
    let file = File::open(path).map_err(|cause| failed(path, cause))?;
    read_open(&file, path, limit_bytes)
}

fn read_open(file: &File, path: &Path, limit_bytes: u64) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
    let mut bytes = Zeroizing::new(Vec::new());
    file.take(limit_bytes + 1).read_to_end(&mut bytes).map_err(|cause| failed(path, cause))?;
    if bytes.len() as u64 > limit_bytes {
        return Err(KeyFileError::TooLarge { limit_bytes });
    }
    Ok(bytes)
}

fn failed(path: &Path, cause: io::Error) -> KeyFileError {
    KeyFileError::Io { path: path.to_owned(), cause }
}

/// Who may read a file, as Unix counts it.
pub(super) const OWNER: u32 = 0o600;
pub(super) const EVERYBODY: u32 = 0o644;
/// What a key file may keep of its mode: a service's group may read it.
const OWNER_AND_GROUP: u32 = 0o640;

/// A key file that only this run changes until it is dropped. The lock is on the file itself: it needs no other file that
/// could be left behind, and whoever may not read the key cannot hold it.
pub(super) struct Held {
    /// Where the file lies, behind all links.
    path: PathBuf,
    file: File,
}

impl Held {
    /// Waits for whoever holds the file. What the system says is for the caller to put into words.
    pub(super) fn open(path: &Path) -> Result<Self, KeyFileError> {
        loop {
            let fail = |cause| failed(path, cause);
            let file = File::open(path).map_err(fail)?;
            file.lock().map_err(fail)?;
            let held = file.metadata().map_err(fail)?;
            let target = behind_links(path, &held)?;
            let there = fs::symlink_metadata(&target).map_err(fail)?;
            // Another run may have put its own in this place while this one waited.
            if (there.dev(), there.ino()) == (held.dev(), held.ino()) {
                return Ok(Self { path: target, file });
            }
        }
    }

    pub(super) fn read(&self) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
        read_open(&self.file, &self.path, MAX_FILE_BYTES)
    }

    /// Puts other bytes into the file's place, for the same readers, and holds these.
    pub(super) fn replace(&mut self, bytes: &[u8]) -> Result<(), KeyFileError> {
        let before = self.file.metadata().map_err(|cause| failed(&self.path, cause))?;
        self.file = write(&self.path, bytes, |file, unfinished| {
            file.lock()?;
            own_as(file, &before)?;
            settle(file, before.mode() & OWNER_AND_GROUP)?;
            fs::rename(unfinished, &self.path)
        })?;
        Ok(())
    }
}

/// Where links lead. A link is followed if it is root's or the file owner's: anybody else's could name a file that is not
/// theirs, for a run with more rights to change.
fn behind_links(path: &Path, file: &Metadata) -> Result<PathBuf, KeyFileError> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        let fail = |cause| failed(path, cause);
        let link = fs::symlink_metadata(&target).map_err(fail)?;
        if !link.is_symlink() {
            return Ok(target);
        }
        if link.uid() != 0 && link.uid() != file.uid() {
            return Err(KeyFileError::ForeignLink { path: target });
        }
        let next = fs::read_link(&target).map_err(fail)?;
        target = target.parent().unwrap_or(Path::new("")).join(next);
    }
    Err(KeyFileError::ForeignLink { path: target })
}

/// Links the finished file to its name: that fails where a rename would silently replace an existing key.
pub(super) fn write_new(path: &Path, bytes: &[u8], mode: u32) -> Result<(), KeyFileError> {
    write(path, bytes, |file, unfinished| {
        settle(file, mode)?;
        fs::hard_link(unfinished, path)
    })
    .map(drop)
}

/// Puts the finished file, for everybody to read, in the place of the one or the link that may be there.
pub(super) fn replace_public(path: &Path, bytes: &[u8]) -> Result<(), KeyFileError> {
    write(path, bytes, |file, unfinished| {
        if let Ok(before) = fs::symlink_metadata(path) {
            match own_as(file, &before) {
                // Only root gives files away. Everybody may read this one, whoever owns it.
                Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => {}
                owned => owned?,
            }
        }
        settle(file, EVERYBODY)?;
        fs::rename(unfinished, path)
    })
    .map(drop)
}

/// Gives the open file, whatever its name says by now, the owner and group of another.
fn own_as(file: &File, other: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    let [uid, gid] = [(own.uid(), other.uid()), (own.gid(), other.gid())]
        .map(|(own, other)| (own != other).then_some(other));
    if uid.is_none() && gid.is_none() { Ok(()) } else { fchown(file, uid, gid) }
}

/// Sets the mode, of which the process's mask may have taken some, and makes everything durable.
fn settle(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

/// Writes beside the target. `finish` settles the file and gives it its name.
fn write(
    path: &Path,
    bytes: &[u8],
    finish: impl FnOnce(&File, &Path) -> io::Result<()>,
) -> Result<File, KeyFileError> {
    let fail = |cause: io::Error| match cause.kind() {
        io::ErrorKind::AlreadyExists => KeyFileError::Exists { path: path.to_owned() },
        _ => failed(path, cause),
    };
    let mut beside = path.file_name().ok_or_else(|| fail(io::ErrorKind::InvalidInput.into()))?.to_owned();
    beside.push(format!(".{:08x}.new", random::<u32>()));
    let beside = path.with_file_name(beside);
    let mut file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(OWNER).open(&beside).map_err(fail)?;
    let written = file.write_all(bytes).and_then(|()| finish(&file, &beside));
    // Gone already where it was renamed.
    let _ = fs::remove_file(&beside);
    written.map_err(fail)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(fail)?;
    Ok(file)
}
