//! A role as a child process: started, killed, stopped for a while, started again.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::OpenOptions,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use blindfold_runtime::now;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::{
    process::{Child, Command},
    time::{sleep, timeout},
};

use crate::http_probe;

/// How long a role may take until it serves. Checking parameters takes seconds on a loaded machine.
const READY_TIMEOUT_MS: u64 = 120_000;
/// How often readiness is looked up.
const READY_POLL_MS: u64 = 50;
/// How long one look at it may take.
const READY_ANSWER_MS: u64 = 1_000;
/// How long a role may take to end in order.
const STOP_TIMEOUT_MS: u64 = 15_000;
/// How much of a log an error shows, in bytes.
const LOG_TAIL_BYTES: usize = 3_000;

/// The process of one role.
#[derive(Debug)]
pub struct RoleProcess {
    name: String,
    binary: PathBuf,
    arguments: Vec<String>,
    variables: BTreeMap<String, OsString>,
    admin: std::net::SocketAddr,
    log: PathBuf,
    child: Option<Child>,
}

impl RoleProcess {
    /// A process that is not started yet.
    pub fn new(
        name: &str,
        binary: &Path,
        arguments: Vec<String>,
        admin: std::net::SocketAddr,
        log: PathBuf,
    ) -> Self {
        let variables = BTreeMap::new();
        Self {
            name: name.to_owned(),
            binary: binary.to_owned(),
            arguments,
            variables,
            admin,
            log,
            child: None,
        }
    }

    /// Name of the role, as messages give it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Path of its log file.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Variables of its environment beside our own, from its next start on, in place of those named before.
    pub fn set_variables(&mut self, variables: BTreeMap<String, OsString>) {
        self.variables = variables;
    }

    /// Starts the process; its output goes to the end of its log file.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&mut self) -> Result<()> {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .with_context(|| format!("{}", self.log.display()))?;
        let child = Command::new(&self.binary)
            .args(&self.arguments)
            .envs(&self.variables)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Its own group: Ctrl-C reaches the devnet alone, which then ends its children in order.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", self.binary.display()))?;
        self.child = Some(child);
        Ok(())
    }

    /// Waits until `/readyz` answers 200.
    ///
    /// # Errors
    /// When the process ends, or is not ready in time; both with the end of its log.
    pub async fn ready(&mut self) -> Result<()> {
        let started = now();
        loop {
            if let Some(status) = self.ended()? {
                bail!(
                    "{} ended ({status}); the end of {}:\n{}",
                    self.name,
                    self.log.display(),
                    self.log_tail()
                );
            }
            let ready = http_probe::get(&self.admin.to_string(), "/readyz", READY_ANSWER_MS).await;
            if ready.is_ok_and(|ready| ready.status == 200) {
                return Ok(());
            }
            if started.elapsed() > Duration::from_millis(READY_TIMEOUT_MS) {
                bail!(
                    "{} is not ready after {READY_TIMEOUT_MS} ms; the end of {}:\n{}",
                    self.name,
                    self.log.display(),
                    self.log_tail()
                );
            }
            sleep(Duration::from_millis(READY_POLL_MS)).await;
        }
    }

    /// What it shows at `/metrics`.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn metrics(&self) -> Result<String> {
        let answer = http_probe::get(&self.admin.to_string(), "/metrics", READY_ANSWER_MS).await?;
        Ok(answer.body)
    }

    /// The end of its log.
    #[must_use]
    pub fn log_tail(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&text[text.len().saturating_sub(LOG_TAIL_BYTES)..]).into_owned()
    }

    /// How the process ended by itself; `None` while it runs, and when it was ended here.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        match &mut self.child {
            Some(child) => Ok(child.try_wait()?),
            None => Ok(None),
        }
    }

    /// As [`RoleProcess::ended`], told once: the status, the end of the log, and how to start it again.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn report_ended(&mut self) -> Result<Option<String>> {
        let Some(status) = self.ended()? else { return Ok(None) };
        self.child = None;
        let (name, log) = (&self.name, self.log.display());
        let (tail, binary, arguments) = (self.log_tail(), self.binary.display(), self.arguments.join(" "));
        Ok(Some(format!(
            "{name} ended ({status}); the end of {log}:\n{}\nto start it again: {binary} {arguments}",
            tail.trim_end()
        )))
    }

    /// Its process id.
    ///
    /// # Errors
    /// When it does not run.
    pub fn pid(&self) -> Result<u32> {
        self.child.as_ref().and_then(Child::id).with_context(|| format!("{} does not run", self.name))
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let id = i32::try_from(self.pid()?)?;
        kill(Pid::from_raw(id), signal).with_context(|| format!("{signal} to {}", self.name))
    }

    /// Kills it (`SIGKILL`), and waits until it is gone.
    ///
    /// # Errors
    /// When it does not run.
    pub async fn kill(&mut self) -> Result<()> {
        self.signal(Signal::SIGKILL)?;
        if let Some(mut child) = self.child.take() {
            child.wait().await?;
        }
        Ok(())
    }

    /// Stops its execution until [`RoleProcess::resume`] (`SIGSTOP`).
    ///
    /// # Errors
    /// When it does not run.
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::SIGSTOP)
    }

    /// Lets it go on (`SIGCONT`).
    ///
    /// # Errors
    /// When it does not run.
    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::SIGCONT)
    }

    /// Ends it in order (`SIGTERM`), by force when that takes too long.
    pub async fn stop(&mut self) {
        if self.signal(Signal::SIGTERM).is_err() {
            return;
        }
        if let Some(mut child) = self.child.take()
            && timeout(Duration::from_millis(STOP_TIMEOUT_MS), child.wait()).await.is_err()
        {
            tracing::warn!(role = self.name, "did not end in time; killed");
            // An error means that it ended in the meantime.
            let _ = child.kill().await;
        }
    }
}
