//! Servers of others that tests and development chains start for themselves, from the system's packages.
//!
//! [`Postgres`] is a server on a folder of its own that goes with whoever started it, whatever becomes of them. A test asks
//! for [`Postgres::shared`], one for each test program, and for a schema of its own in it. [`Redis`] starts in no time: a test
//! has its own.

mod cluster;
mod redis;
mod way;

use std::{
    ffi::OsStr,
    fs, io,
    io::Write,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, User, geteuid},
};
use tempfile::TempDir;

pub use self::redis::Redis;
pub use cluster::PostgresCluster;
pub use way::Way;

/// Why a server does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// It is not installed.
    #[error("{0} is not installed: apt-get install {1}")]
    Missing(&'static str, &'static str),
    /// A command of its failed.
    #[error("{0}: {1}")]
    Failed(&'static str, String),
    /// Files or processes.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// How often a server's start or end is looked at, and with which pauses: half a minute.
const POLLS: usize = 1_500;
const PAUSE: Duration = Duration::from_millis(20);
/// Sessions that it takes: each store has five.
const MAX_CONNECTIONS: u32 = 200;
/// Name of its superuser and of its first database.
const NAME: &str = "blindfold";
/// Ends the server by a signal with the pipe from whoever started it, and removes its files. In the shell's background QUIT
/// is ignored by whoever does not handle it.
const SUPERVISED: &str = r#"
    folder=$1; signal=$2; shift 2
    "$@" >"$folder/log" 2>&1 </dev/null &
    server=$!
    cat >/dev/null
    kill -"$signal" "$server" 2>/dev/null
    kill -CONT "$server" 2>/dev/null
    wait "$server"
    rm -rf "$folder"
"#;

/// A PostgreSQL server of one's own, on a Unix socket.
#[derive(Debug)]
pub struct Postgres {
    folder: TempDir,
    tools: PathBuf,
    /// Settings that it is started with, beside those of every server here.
    settings: Vec<String>,
    supervisor: Option<Child>,
    /// Of TCP, where it listens there, over TLS; its socket has the number in its name.
    port: Option<u16>,
}

impl Postgres {
    /// Makes a database and starts its server, which ends when this is dropped or its process ends, in any way. About 1.5 s.
    ///
    /// # Errors
    /// [`ServerError::Missing`] without the package `postgresql`; [`ServerError::Failed`] with what its tools said.
    pub fn start() -> Result<Self, ServerError> {
        let mut made = Self::in_new_folder(&[])?;
        let mut init = made.command("initdb");
        init.args([
            "--username",
            NAME,
            "--auth",
            "trust",
            "--encoding",
            "UTF8",
            "--no-locale",
            "--no-instructions",
        ]);
        init.arg("--no-sync").arg(made.data());
        succeeded("initdb", init.output()?)?;
        made.resume_start()?;
        succeeded("createdb", made.tool("createdb").arg(NAME).output()?)?;
        Ok(made)
    }

    fn in_new_folder(settings: &[String]) -> Result<Self, ServerError> {
        let tools = tools().ok_or(ServerError::Missing("PostgreSQL", "postgresql"))?;
        let folder = tempfile::Builder::new().prefix("postgres-").tempdir()?;
        if let Some(user) = server_user() {
            chown(folder.path(), Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
        }
        Ok(Self { folder, tools, settings: settings.to_vec(), supervisor: None, port: None })
    }

    /// Makes a server that follows this one under a name, and starts it with these settings, each `name=value`.
    pub(crate) fn follower(&self, name: &str, settings: &[String]) -> Result<Self, ServerError> {
        let mut made = Self::in_new_folder(settings)?;
        made.copy_from(self, name)?;
        made.resume_start()?;
        Ok(made)
    }

    /// Takes the database of a server that runs, to follow it under a name. What was here before is gone.
    ///
    /// # Errors
    /// [`ServerError::Failed`] with what its tools said.
    pub(crate) fn copy_from(&mut self, leader: &Self, name: &str) -> Result<(), ServerError> {
        match fs::remove_dir_all(self.data()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut backup = self.command("pg_basebackup");
        backup.arg("--dbname").arg(leader.connection_of(name)).arg("--pgdata").arg(self.data());
        backup.args(["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"]);
        succeeded("pg_basebackup", backup.output()?).map(drop)
    }

    /// How a server that follows this one reaches it.
    pub(crate) fn connection_of(&self, name: &str) -> String {
        format!("host={} user={NAME} application_name={name}", self.folder.path().display())
    }

    /// The one of this process; `None` where PostgreSQL is not installed, which is told to whoever reads what did not run.
    ///
    /// # Panics
    /// Where it is installed and does not start, and, with `BLINDFOLD_REQUIRED` set, where it is not.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Postgres>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| match Self::start() {
            Ok(started) => Some(started),
            Err(missing @ ServerError::Missing(..)) if std::env::var_os("BLINDFOLD_REQUIRED").is_none() => {
                not_run(&format!("what needs PostgreSQL: {missing}"));
                None
            }
            Err(error) => panic!("PostgreSQL: {error}"),
        });
        shared.as_ref()
    }

    /// Starts the server on its database, after [`Postgres::end`].
    ///
    /// # Errors
    /// Where it does not take connections in time; with its log.
    pub fn resume_start(&mut self) -> Result<(), ServerError> {
        let mut shell = self.command("/bin/sh");
        shell.args(["-c", SUPERVISED, "sh"]).arg(self.folder.path()).arg("QUIT");
        shell.arg(self.tools.join("postgres"));
        shell.arg("-D").arg(self.data()).arg("-k").arg(self.folder.path());
        match self.port {
            None => shell.args(["-c", "listen_addresses="]),
            Some(port) => shell
                .args(["-c", "listen_addresses=127.0.0.1", "-c", "ssl=on"])
                .arg("-p")
                .arg(port.to_string()),
        };
        shell.arg("-c").arg(format!("max_connections={MAX_CONNECTIONS}"));
        for setting in &self.settings {
            shell.arg("-c").arg(setting);
        }
        self.supervisor =
            Some(shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        for _ in 0..POLLS {
            if self.tool("pg_isready").output()?.status.success() {
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        Err(ServerError::Failed("postgres", log))
    }

    /// Starts the server on its database, after [`Postgres::end`], so that it listens on this port of 127.0.0.1 too, there with
    /// a certificate.
    ///
    /// # Errors
    /// As [`Postgres::resume_start`].
    pub fn resume_start_over_tls(
        &mut self,
        port: u16,
        certificate: &str,
        key: &str,
    ) -> Result<(), ServerError> {
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            let path = self.data().join(name);
            fs::write(&path, text)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
            if let Some(user) = server_user() {
                chown(&path, Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
            }
        }
        self.port = Some(port);
        self.resume_start()
    }

    /// The folder of its socket.
    pub fn socket(&self) -> &Path {
        self.folder.path()
    }

    /// The URL of an empty schema that nobody else has.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn fresh(&self) -> Result<String, ServerError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let schema = format!("fresh_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        self.run(&format!("CREATE SCHEMA {schema}"))?;
        Ok(self.url(&schema))
    }

    /// The URL of a schema.
    pub fn url(&self, schema: &str) -> String {
        socket_url([self.socket()].into_iter(), schema)
    }

    /// Runs SQL as the superuser; what it prints, columns separated by `|`.
    ///
    /// # Errors
    /// With what the server said.
    pub fn run(&self, sql: &str) -> Result<String, ServerError> {
        let mut psql = self.tool("psql");
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1"]);
        psql.args(["--dbname", NAME, "--command", sql]);
        succeeded("psql", psql.output()?).map(|text| text.trim().to_owned())
    }

    /// Ends the server at once, as a crash does; its database stays.
    ///
    /// # Errors
    /// Where it does not run.
    pub fn end(&mut self) -> Result<(), ServerError> {
        self.signal(Signal::SIGQUIT)?;
        // The shell has nothing to wait for any more; it must not remove the files.
        if let Some(mut supervisor) = self.supervisor.take() {
            let pid = i32::try_from(supervisor.id()).map_err(io::Error::other)?;
            kill(Pid::from_raw(pid), Signal::SIGKILL).map_err(io::Error::from)?;
            supervisor.wait()?;
        }
        for _ in 0..POLLS {
            if self.pid().is_err() {
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
        Err(ServerError::Failed("postgres", "it does not end".to_owned()))
    }

    /// Sends a signal to the server's first process.
    ///
    /// # Errors
    /// Where it does not run.
    pub fn signal(&self, signal: Signal) -> Result<(), ServerError> {
        Ok(kill(Pid::from_raw(self.pid()?), signal).map_err(io::Error::from)?)
    }

    fn pid(&self) -> Result<i32, ServerError> {
        let file = fs::read_to_string(self.data().join("postmaster.pid"))?;
        let first = file.lines().next().unwrap_or_default();
        first.parse().map_err(|_| ServerError::Failed("postgres", "its process is not known".to_owned()))
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A tool that talks to the server.
    fn tool(&self, name: &str) -> Command {
        let mut tool = Command::new(self.tools.join(name));
        tool.arg("--host").arg(self.folder.path()).args(["--username", NAME]);
        if let Some(port) = self.port {
            tool.arg("--port").arg(port.to_string());
        }
        tool
    }

    /// A command of the user that the server runs as: it does not run as root.
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.tools.join(name));
        if let Some(user) = server_user() {
            command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
        }
        command.current_dir(self.folder.path());
        command
    }
}

/// The URL of a schema at whichever of the servers with these sockets' folders takes writes.
pub(crate) fn socket_url<'a>(folders: impl Iterator<Item = &'a Path>, schema: &str) -> String {
    let sockets = folders.map(|folder| folder.display().to_string().replace('/', "%2F"));
    let sockets = sockets.collect::<Vec<_>>().join(",");
    format!("postgres://{NAME}@{sockets}/{NAME}?options=-csearch_path%3D{schema}")
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(mut supervisor) = self.supervisor.take() {
            // The shell ends the server with the pipe.
            drop(supervisor.stdin.take());
            let _ = supervisor.wait();
        }
    }
}

/// The folder on the path that has a program.
fn on_path(program: &str) -> Option<PathBuf> {
    std::env::var_os("PATH")
        .and_then(|path| std::env::split_paths(&path).find(|folder| folder.join(program).exists()))
}

/// The folder of the newest server's tools.
fn tools() -> Option<PathBuf> {
    let mut packaged: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin"))).filter(|(_, bin)| bin.join("initdb").exists())
        })
        .collect();
    packaged.sort();
    packaged.pop().map(|(_, bin)| bin).or_else(|| on_path("initdb"))
}

/// Whom the server runs as where this process is root; `None` for this process's own user.
fn server_user() -> Option<User> {
    if !geteuid().is_root() {
        return None;
    }
    ["postgres", "nobody"].into_iter().find_map(|name| User::from_name(name).ok().flatten())
}

fn succeeded(name: &'static str, output: Output) -> Result<String, ServerError> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(ServerError::Failed(name, text(&output.stderr)))
    }
}

/// A line in the file that `BLINDFOLD_NOT_RUN` names, if it names one: what a test that passes prints, nobody sees.
fn not_run(line: &str) {
    eprintln!("NOT RUN: {line}");
    let path = std::env::var_os("BLINDFOLD_NOT_RUN");
    let file = path.as_deref().filter(|path| *path != OsStr::new(""));
    let Some(file) = file.and_then(|path| fs::OpenOptions::new().append(true).create(true).open(path).ok())
    else {
        return;
    };
    let _ = writeln!(&file, "{line}");
}
