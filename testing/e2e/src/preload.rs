//! A role's process with a wall clock, or a disk, of its own: what it loads before the C library.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

/// The wall clock of one role's process.
pub struct WallClock {
    offset: PathBuf,
    variables: BTreeMap<String, OsString>,
}

impl WallClock {
    /// A clock that is right as yet, for a role of the network in this folder.
    ///
    /// # Errors
    /// Without a C compiler, and elsewhere than on Linux.
    pub async fn of(dir: &Path, role: &str) -> Result<Self> {
        let library = compiled(dir, "clock_offset", include_str!("clock_offset.c")).await?;
        let offset = dir.join(format!("{role}.clock"));
        let variables = BTreeMap::from([
            ("LD_PRELOAD".to_owned(), library.into()),
            ("BLINDFOLD_CLOCK_OFFSET".to_owned(), offset.clone().into()),
        ]);
        let clock = Self { offset, variables };
        clock.jump(0)?;
        Ok(clock)
    }

    /// What the process must be started with.
    pub fn variables(&self) -> BTreeMap<String, OsString> {
        self.variables.clone()
    }

    /// From now on the clock is ahead by so many milliseconds, or behind by as many less than none.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn jump(&self, offset_ms: i64) -> Result<()> {
        in_one_step(&self.offset, &offset_ms.to_string())
    }
}

/// Why a disk takes nothing: the number of the system's error.
#[derive(Clone, Copy, Debug)]
pub enum DiskError {
    /// `EIO`.
    Broken = 5,
    /// `ENOSPC`.
    Full = 28,
}

/// The disk of one role's records.
pub struct Disk {
    errno: PathBuf,
    variables: BTreeMap<String, OsString>,
}

impl Disk {
    /// A disk that takes everything as yet, for a role of the network in this folder.
    ///
    /// # Errors
    /// Without a C compiler, and elsewhere than on Linux.
    pub async fn of(dir: &Path, role: &str) -> Result<Self> {
        let library = compiled(dir, "disk_refuses", include_str!("disk_refuses.c")).await?;
        let errno = dir.join(format!("{role}.disk"));
        let variables = BTreeMap::from([
            ("LD_PRELOAD".to_owned(), library.into()),
            ("BLINDFOLD_DISK_ERRNO".to_owned(), errno.clone().into()),
        ]);
        let disk = Self { errno, variables };
        disk.takes_everything()?;
        Ok(disk)
    }

    /// What the process must be started with.
    pub fn variables(&self) -> BTreeMap<String, OsString> {
        self.variables.clone()
    }

    /// From now on every write to the records fails so.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn refuses(&self, error: DiskError) -> Result<()> {
        in_one_step(&self.errno, &(error as i32).to_string())
    }

    /// From now on none does.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn takes_everything(&self) -> Result<()> {
        in_one_step(&self.errno, "0")
    }
}

/// The process may look at any moment.
fn in_one_step(path: &Path, text: &str) -> Result<()> {
    let next = path.with_extension("next");
    fs::write(&next, text)?;
    Ok(fs::rename(&next, path)?)
}

async fn compiled(dir: &Path, name: &str, text: &str) -> Result<PathBuf> {
    ensure!(cfg!(target_os = "linux"), "another process's clock or disk can be changed on Linux only");
    let (source, library) = (dir.join(format!("{name}.c")), dir.join(format!("{name}.so")));
    fs::write(&source, text)?;
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source);
    let made = compiler.output().await.context("cc, a C compiler, is needed for this")?;
    ensure!(made.status.success(), "cc: {}", String::from_utf8_lossy(&made.stderr));
    Ok(library)
}
