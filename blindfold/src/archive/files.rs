//! Data on disk, each piece in a file of its hash's name. What is written is on the disk, or not there at all.

use std::{
    fs::{self, File, TryLockError},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

use blindfold_l1::{ArchivedData, MAX_ARCHIVED_BYTES};
use parking_lot::Mutex;
use thiserror::Error;

/// Digits of a SHA-256 in hex.
const NAME_DIGITS: usize = 64;
/// Digits that name the folder of a file, so that none has too many.
const FOLDER_DIGITS: usize = 2;

/// Why data is not taken, or not given.
#[derive(Debug, Error)]
pub(super) enum FileFault {
    #[error("data is named by its SHA-256, in 64 lower-case hex digits")]
    Name,
    #[error("these bytes have the SHA-256 {given}")]
    OtherBytes { given: String },
    #[error("no more than {MAX_ARCHIVED_BYTES} bytes are kept as one")]
    TooLong,
    #[error("the archive is full")]
    Full,
    #[error("what is on the disk is not what was kept")]
    Damaged,
    #[error("the disk: {0}")]
    Disk(#[from] io::Error),
}

/// Brings a file, or the names in a folder, to the disk to stay: a seam for tests.
type SyncPath = Box<dyn Fn(&Path) -> io::Result<()> + Send + Sync>;

fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn write_whole(path: &Path, data: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(data)?;
    file.sync_all()
}

/// The folder of an archive, which one process has.
pub(super) struct Files {
    data: PathBuf,
    /// Where a file is written before it gets its name.
    unfinished: PathBuf,
    max_bytes: u64,
    /// Bytes of all data. Locked while something is written.
    used: Mutex<u64>,
    sync: SyncPath,
    _lock: File,
}

impl Files {
    /// Opens a folder, which is made if it is missing, and forgets what was not written to its end.
    pub fn open(dir: &Path, max_bytes: u64) -> Result<Self, FileFault> {
        Self::open_with(dir, max_bytes, Box::new(sync))
    }

    fn open_with(dir: &Path, max_bytes: u64, sync: SyncPath) -> Result<Self, FileFault> {
        let (data, unfinished) = (dir.join("data"), dir.join("unfinished"));
        fs::create_dir_all(&data)?;
        let lock = File::create(dir.join("lock"))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::Error::new(ErrorKind::ResourceBusy, "another archive runs on it"),
            TryLockError::Error(error) => error,
        })?;
        fs::create_dir_all(&unfinished)?;
        sync(dir)?;
        for entry in fs::read_dir(&unfinished)? {
            fs::remove_file(entry?.path())?;
        }
        let mut used = 0u64;
        for folder in fs::read_dir(&data)? {
            for file in fs::read_dir(folder?.path())? {
                used = used.saturating_add(file?.metadata()?.len());
            }
        }
        Ok(Self { data, unfinished, max_bytes, used: Mutex::new(used), sync, _lock: lock })
    }

    pub fn used_bytes(&self) -> u64 {
        *self.used.lock()
    }

    /// The data of this name, if it is here.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, FileFault> {
        let path = self.path(name)?;
        match fs::metadata(&path) {
            Ok(found) if found.len() > MAX_ARCHIVED_BYTES as u64 => return Err(FileFault::Damaged),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let data = fs::read(&path)?;
        match name_of(&data) {
            Some(found) if found == name => Ok(Some(data)),
            _ => Err(FileFault::Damaged),
        }
    }

    /// Keeps data under its name. What is damaged on the disk it replaces.
    pub fn write(&self, name: &str, data: &[u8]) -> Result<(), FileFault> {
        let path = self.path(name)?;
        let given = name_of(data).ok_or(FileFault::TooLong)?;
        if given != name {
            return Err(FileFault::OtherBytes { given });
        }
        let folder = path.parent().ok_or(FileFault::Name)?;
        let mut used = self.used.lock();
        let before = match self.read(name) {
            // Whoever wrote it may have died before its name was on the disk to stay.
            Ok(Some(_)) => {
                (self.sync)(&path)?;
                return self.sync_names(folder);
            }
            Ok(None) => 0,
            Err(FileFault::Damaged) => fs::metadata(&path)?.len(),
            Err(fault) => return Err(fault),
        };
        let after = used.saturating_sub(before).saturating_add(data.len() as u64);
        if after > self.max_bytes {
            return Err(FileFault::Full);
        }
        if !folder.exists() {
            fs::create_dir(folder)?;
        }
        let unfinished = self.unfinished.join(name);
        if let Err(fault) = write_whole(&unfinished, data).and_then(|()| fs::rename(&unfinished, &path)) {
            // What a full disk took of it would be there until the next start, and nobody counts it.
            _ = fs::remove_file(&unfinished);
            return Err(fault.into());
        }
        *used = after;
        self.sync_names(folder)
    }

    /// Brings the name of what is in a folder to the disk, and the folder's own: it may be new.
    fn sync_names(&self, folder: &Path) -> Result<(), FileFault> {
        (self.sync)(folder)?;
        (self.sync)(&self.data)?;
        Ok(())
    }

    fn path(&self, name: &str) -> Result<PathBuf, FileFault> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if name.len() != NAME_DIGITS || !name.bytes().all(is_digit) {
            return Err(FileFault::Name);
        }
        let folder = name.get(..FOLDER_DIGITS).ok_or(FileFault::Name)?;
        Ok(self.data.join(folder).join(name))
    }
}

/// The name of these bytes; `None` for too many.
fn name_of(data: &[u8]) -> Option<String> {
    ArchivedData::of(data).ok().map(|named| hex::encode(named.hash))
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    use super::*;

    fn name(data: &[u8]) -> String {
        name_of(data).unwrap()
    }

    #[test]
    fn what_a_write_left_half_done_is_brought_to_the_disk_before_it_is_called_kept() {
        let dir = tempfile::tempdir().unwrap();
        let synced = Arc::new(Mutex::new(Vec::new()));
        let fails = Arc::new(AtomicBool::new(false));
        let (paths, fault) = (Arc::clone(&synced), Arc::clone(&fails));
        let scripted = move |path: &Path| {
            if fault.load(Ordering::SeqCst) {
                return Err(io::Error::other("scripted"));
            }
            paths.lock().push(path.to_owned());
            sync(path)
        };
        let files = Files::open_with(dir.path(), 100, Box::new(scripted)).unwrap();
        let (name, data) = (name(b"some data"), dir.path().join("data"));
        let folder = data.join(&name[..FOLDER_DIGITS]);
        fails.store(true, Ordering::SeqCst);
        // As a kill between the file's name and its folder leaves it.
        assert!(matches!(files.write(&name, b"some data"), Err(FileFault::Disk(_))));
        assert!(folder.join(&name).exists());
        assert!(matches!(files.write(&name, b"some data"), Err(FileFault::Disk(_))), "still not to stay");
        fails.store(false, Ordering::SeqCst);
        synced.lock().clear();
        files.write(&name, b"some data").unwrap();
        assert_eq!(*synced.lock(), [folder.join(&name), folder, data]);
        assert_eq!(files.used_bytes(), 9, "once");
    }

    #[test]
    fn a_new_folder_and_the_name_in_it_are_brought_to_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let synced = Arc::new(Mutex::new(Vec::new()));
        let paths = Arc::clone(&synced);
        let scripted = move |path: &Path| {
            paths.lock().push(path.to_owned());
            sync(path)
        };
        let files = Files::open_with(dir.path(), 100, Box::new(scripted)).unwrap();
        synced.lock().clear();
        let (name, data) = (name(b"some data"), dir.path().join("data"));
        files.write(&name, b"some data").unwrap();
        assert_eq!(*synced.lock(), [data.join(&name[..FOLDER_DIGITS]), data]);
    }

    #[test]
    fn data_is_kept_over_a_restart_and_what_was_not_finished_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::open(dir.path(), 100).unwrap();
        assert!(matches!(Files::open(dir.path(), 100), Err(FileFault::Disk(_))), "one process has it");
        files.write(&name(b"some data"), b"some data").unwrap();
        files.write(&name(b"some data"), b"some data").unwrap();
        files.write(&name(b""), b"").unwrap();
        assert_eq!(files.used_bytes(), 9, "once");
        fs::write(dir.path().join("unfinished").join(name(b"other")), b"oth").unwrap();
        drop(files);
        let files = Files::open(dir.path(), 100).unwrap();
        assert_eq!(files.used_bytes(), 9);
        assert_eq!(files.read(&name(b"some data")).unwrap().as_deref(), Some(b"some data".as_slice()));
        assert_eq!(files.read(&name(b"")).unwrap().as_deref(), Some(b"".as_slice()));
        assert_eq!(files.read(&name(b"other")).unwrap(), None);
        assert_eq!(fs::read_dir(dir.path().join("unfinished")).unwrap().count(), 0);
    }

    #[test]
    fn what_a_full_disk_did_not_take_leaves_nothing_there() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::open(dir.path(), 100).unwrap();
        let (name, unfinished) = (name(b"some data"), dir.path().join("unfinished"));
        std::os::unix::fs::symlink("/dev/full", unfinished.join(&name)).unwrap();
        assert!(matches!(files.write(&name, b"some data"), Err(FileFault::Disk(_))));
        assert_eq!(fs::read_dir(&unfinished).unwrap().count(), 0);
        assert_eq!(files.used_bytes(), 0);
        files.write(&name, b"some data").unwrap();
        assert_eq!(files.used_bytes(), 9);
    }

    #[test]
    fn nothing_is_kept_under_another_name_or_beyond_the_limits() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::open(dir.path(), 10).unwrap();
        let other = files.write(&name(b"other"), b"some data");
        assert!(matches!(other, Err(FileFault::OtherBytes { given }) if given == name(b"some data")));
        for bad in ["", "../lock", &name(b"a").to_uppercase(), &name(b"a")[1..], &"é".repeat(32)] {
            assert!(matches!(files.write(bad, b"a"), Err(FileFault::Name)), "{bad}");
            assert!(matches!(files.read(bad), Err(FileFault::Name)), "{bad}");
        }
        files.write(&name(b"some data"), b"some data").unwrap();
        assert!(matches!(files.write(&name(b"ab"), b"ab"), Err(FileFault::Full)));
        files.write(&name(b"a"), b"a").unwrap();
        files.write(&name(b"a"), b"a").unwrap();
        let long = vec![0; MAX_ARCHIVED_BYTES + 1];
        assert!(matches!(files.write(&name(b"a"), &long), Err(FileFault::TooLong)));
        assert_eq!(files.used_bytes(), 10);
    }

    #[test]
    fn what_the_disk_damaged_is_not_given_and_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::open(dir.path(), 100).unwrap();
        let name = name(b"some data");
        files.write(&name, b"some data").unwrap();
        fs::write(files.path(&name).unwrap(), b"some dat4!").unwrap();
        assert!(matches!(files.read(&name), Err(FileFault::Damaged)));
        drop(files);
        let files = Files::open(dir.path(), 100).unwrap();
        assert_eq!(files.used_bytes(), 10);
        files.write(&name, b"some data").unwrap();
        assert_eq!((files.used_bytes(), files.read(&name).unwrap().unwrap().len()), (9, 9));
    }
}
