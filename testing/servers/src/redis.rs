//! A Redis server that keeps nothing on disk.

use std::{
    fs, io,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tempfile::TempDir;

use crate::{PAUSE, POLLS, SUPERVISED, ServerError, not_run, on_path, succeeded};

/// Name of the program, and of the Debian package that has it.
const PROGRAM: &str = "redis-server";
/// Name of its socket in its folder.
const SOCKET: &str = "redis.sock";
/// Name of the file with its process's number.
const PID: &str = "redis.pid";

/// A Redis server of one's own, on a Unix socket. What it holds is in memory only.
#[derive(Debug)]
pub struct Redis {
    folder: TempDir,
    /// Settings that it is started with beside those of every server here: `--name`, value.
    settings: Vec<String>,
    supervisor: Option<Child>,
}

impl Redis {
    /// Starts a server, which ends when this is dropped or its process ends, in any way. About 50 ms.
    ///
    /// # Errors
    /// [`ServerError::Missing`] without the package `redis-server`; [`ServerError::Failed`] with what it said.
    pub fn start() -> Result<Self, ServerError> {
        Self::start_with(&[])
    }

    /// The same with settings, each a name and its value: `["--requirepass", "secret"]`.
    ///
    /// # Errors
    /// As [`Redis::start`].
    pub fn start_with(settings: &[&str]) -> Result<Self, ServerError> {
        if on_path(PROGRAM).is_none() || on_path("redis-cli").is_none() {
            return Err(ServerError::Missing("Redis", PROGRAM));
        }
        let folder = tempfile::Builder::new().prefix("redis-").tempdir()?;
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let mut made = Self { folder, settings, supervisor: None };
        made.resume_start()?;
        Ok(made)
    }

    /// One for a test; `None` where Redis is not installed, which is told to whoever reads what did not run.
    ///
    /// # Panics
    /// Where it is installed and does not start, and, with `BLINDFOLD_REQUIRED` set, where it is not.
    pub fn for_test() -> Option<Self> {
        Self::for_test_with(&[])
    }

    /// The same with settings.
    ///
    /// # Panics
    /// As [`Redis::for_test`].
    pub fn for_test_with(settings: &[&str]) -> Option<Self> {
        match Self::start_with(settings) {
            Ok(started) => Some(started),
            Err(missing @ ServerError::Missing(..)) if std::env::var_os("BLINDFOLD_REQUIRED").is_none() => {
                not_run(&format!("what needs Redis: {missing}"));
                None
            }
            Err(error) => panic!("Redis: {error}"),
        }
    }

    /// Starts the server again, empty, after [`Redis::end`].
    ///
    /// # Errors
    /// Where it does not answer in time; with its log.
    pub fn resume_start(&mut self) -> Result<(), ServerError> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SUPERVISED, "sh"]).arg(self.folder.path()).args(["KILL", PROGRAM]);
        shell.args(["--port", "0", "--save", "", "--appendonly", "no"]);
        shell.arg("--dir").arg(self.folder.path());
        shell.arg("--unixsocket").arg(self.socket());
        shell.arg("--pidfile").arg(self.folder.path().join(PID));
        shell.args(&self.settings);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        self.supervisor = Some(shell.spawn()?);
        for _ in 0..POLLS {
            // One that wants a password answers, too.
            if self.run(&["PING"]).is_ok_and(|said| said == "PONG" || said.starts_with("NOAUTH")) {
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        Err(ServerError::Failed(PROGRAM, log))
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join(SOCKET)
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Runs a command; what `redis-cli` prints of the answer.
    ///
    /// # Errors
    /// Where the server does not answer. That it refuses is an answer.
    pub fn run(&self, command: &[&str]) -> Result<String, ServerError> {
        let mut cli = Command::new("redis-cli");
        cli.arg("-s").arg(self.socket()).args(command);
        succeeded("redis-cli", cli.output()?).map(|text| text.trim().to_owned())
    }

    /// Empties it.
    ///
    /// # Errors
    /// Where it does not run.
    pub fn flush(&self) -> Result<(), ServerError> {
        self.run(&["FLUSHALL", "SYNC"]).map(drop)
    }

    /// Answers nobody any more, as behind a cut network, until [`heal`](Self::heal): what is sent waits.
    ///
    /// # Errors
    /// Where it does not run.
    pub fn cut(&self) -> Result<(), ServerError> {
        self.signal(Signal::SIGSTOP)
    }

    /// Answers again, what was sent meanwhile first.
    ///
    /// # Errors
    /// Where it does not run.
    pub fn heal(&self) -> Result<(), ServerError> {
        self.signal(Signal::SIGCONT)
    }

    /// Ends the server at once, as a crash does. What it held is gone.
    ///
    /// # Errors
    /// Where it does not run.
    pub fn end(&mut self) -> Result<(), ServerError> {
        self.signal(Signal::SIGKILL)?;
        // The shell has nothing to wait for any more; it must not remove the files.
        if let Some(mut supervisor) = self.supervisor.take() {
            let pid = i32::try_from(supervisor.id()).map_err(io::Error::other)?;
            kill(Pid::from_raw(pid), Signal::SIGKILL).map_err(io::Error::from)?;
            supervisor.wait()?;
        }
        for name in [PID, SOCKET] {
            match fs::remove_file(self.folder.path().join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }

    fn signal(&self, signal: Signal) -> Result<(), ServerError> {
        let text = fs::read_to_string(self.folder.path().join(PID))?;
        let unknown = |_| ServerError::Failed(PROGRAM, "its process is not known".to_owned());
        let pid = text.trim().parse().map_err(unknown)?;
        Ok(kill(Pid::from_raw(pid), signal).map_err(io::Error::from)?)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        if let Some(mut supervisor) = self.supervisor.take() {
            // The shell ends the server with the pipe.
            drop(supervisor.stdin.take());
            let _ = supervisor.wait();
        }
    }
}
