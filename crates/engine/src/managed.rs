//! The Go node as a child process, for the devnet and for tests.

use std::{
    env, fs, io,
    os::unix::{fs::OpenOptionsExt, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use alloy_primitives::B256;
use serde::Deserialize;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

use crate::{JwtSecret, JwtSecretError, OpGeth, OpGethConfig};

/// How long a node may take to write its state down after it was asked to stop.
const STOP_TIMEOUT_MS: u64 = 30_000;

/// Longest line in which the node says that it is ready.
const READY_LINE_LIMIT_BYTES: u64 = 4_096;

/// Environment variable that names the node's binary.
const BINARY_VARIABLE: &str = "BLINDFOLD_NODE";

/// Where `scripts/build-node` puts the binary, below the root of the repository.
const BINARY_PATH: &str = "target/tools/blindfold-node";

/// How a node is to run.
#[derive(Clone, Debug)]
pub struct ManagedNodeConfig {
    /// Path of the node's binary.
    pub binary: PathBuf,
    /// Its folder: chain data, `genesis.json`, `jwt.hex` and `node.log` live here. Created if missing.
    pub data_dir: PathBuf,
    /// Its genesis. A folder that was used with another genesis is refused.
    pub genesis: Value,
    /// Address to listen on, for reads and for the Engine API.
    pub address: String,
    /// Port for reads; 0 takes a free one.
    pub http_port: u16,
    /// Port of the Engine API; 0 takes a free one.
    pub engine_port: u16,
    /// How long it may take to be ready, in milliseconds.
    pub ready_timeout_ms: u64,
}

impl ManagedNodeConfig {
    /// Default for [`ready_timeout_ms`](Self::ready_timeout_ms). A start takes half a second; a loaded
    /// machine is slower.
    pub const READY_TIMEOUT_MS: u64 = 120_000;

    /// On the local machine, on free ports.
    pub fn new(binary: impl Into<PathBuf>, data_dir: impl Into<PathBuf>, genesis: Value) -> Self {
        Self {
            binary: binary.into(),
            data_dir: data_dir.into(),
            genesis,
            address: "127.0.0.1".to_owned(),
            http_port: 0,
            engine_port: 0,
            ready_timeout_ms: Self::READY_TIMEOUT_MS,
        }
    }

    /// The binary: `$BLINDFOLD_NODE`, else where `scripts/build-node` puts it below `repository`.
    pub fn default_binary(repository: &Path) -> PathBuf {
        env::var_os(BINARY_VARIABLE).map_or_else(|| repository.join(BINARY_PATH), PathBuf::from)
    }
}

/// A node that did not start.
#[derive(Debug, thiserror::Error)]
pub enum ManagedNodeError {
    /// The binary is not there.
    #[error("no execution node at {0}: build it with scripts/build-node or set BLINDFOLD_NODE")]
    NoBinary(PathBuf),
    /// A file or the process could not be handled.
    #[error("{action} {path}: {cause}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file that it was tried on.
        path: PathBuf,
        /// What the operating system said.
        cause: io::Error,
    },
    /// The folder belongs to another chain.
    #[error("the folder {0} belongs to a chain with another genesis")]
    DifferentGenesis(PathBuf),
    /// The secret cannot be used.
    #[error(transparent)]
    Secret(#[from] JwtSecretError),
    /// The process ended instead of becoming ready.
    #[error("the execution node ended at start ({status}); the end of {log}:\n{tail}")]
    Died {
        /// Exit code or signal that it ended with.
        status: String,
        /// Path of its log file.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// It was not ready in time.
    #[error("the execution node was not ready within {timeout_ms} ms; its log is {log}")]
    NotReady {
        /// How long it was waited for, in milliseconds.
        timeout_ms: u64,
        /// Path of its log file.
        log: PathBuf,
    },
    /// Its first line is not what this version expects.
    #[error("the execution node's first line is not understood: {0:?}")]
    BadReadyLine(String),
}

/// The one line a node prints when it serves.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ready {
    http: String,
    engine: String,
    genesis_hash: B256,
}

/// A running node. Dropping it kills the process; a node whose parent dies stops by itself, because its
/// standard input closes.
#[derive(Debug)]
pub struct ManagedNode {
    config: ManagedNodeConfig,
    secret: JwtSecret,
    child: Child,
    ready: Ready,
}

impl ManagedNode {
    /// Prepares the folder, starts the node and waits until it serves.
    pub async fn start(config: ManagedNodeConfig) -> Result<Self, ManagedNodeError> {
        if !config.binary.is_file() {
            return Err(ManagedNodeError::NoBinary(config.binary));
        }
        prepare(&config)?;
        let secret = JwtSecret::from_file(&config.data_dir.join("jwt.hex"))?;
        let (child, ready) = spawn(&config).await?;
        Ok(Self { config, secret, child, ready })
    }

    /// The URL at which it serves public reads.
    pub fn http_url(&self) -> &str {
        &self.ready.http
    }

    /// Where it serves the Engine API.
    pub fn engine_url(&self) -> &str {
        &self.ready.engine
    }

    /// Hash of its genesis block.
    pub fn genesis_hash(&self) -> B256 {
        self.ready.genesis_hash
    }

    /// The secret of its Engine API.
    pub fn jwt_secret(&self) -> &JwtSecret {
        &self.secret
    }

    /// Its process id while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Path of its log file.
    pub fn log_path(&self) -> PathBuf {
        log_path(&self.config)
    }

    /// A client for it, with the default time limits. Free ports change at a restart: ask again then.
    pub fn client(&self) -> OpGeth {
        OpGeth::new(OpGethConfig::new(self.engine_url(), self.http_url(), self.secret.clone()))
    }

    /// Kills it at once (SIGKILL), as a crash would, and waits for its end.
    pub async fn kill(&mut self) -> Result<(), ManagedNodeError> {
        self.child.kill().await.map_err(|cause| self.io("cannot kill", cause))
    }

    /// Lets it write its state down and end; kills it if that takes too long.
    pub async fn stop(&mut self) -> Result<(), ManagedNodeError> {
        drop(self.child.stdin.take());
        match timeout(Duration::from_millis(STOP_TIMEOUT_MS), self.child.wait()).await {
            Ok(ended) => ended.map(|_| ()).map_err(|cause| self.io("cannot wait for", cause)),
            Err(_) => self.kill().await,
        }
    }

    /// Starts it again on the same folder, after [`kill`](Self::kill) or [`stop`](Self::stop).
    pub async fn restart(&mut self) -> Result<(), ManagedNodeError> {
        self.kill().await?;
        (self.child, self.ready) = spawn(&self.config).await?;
        Ok(())
    }

    fn io(&self, action: &'static str, cause: io::Error) -> ManagedNodeError {
        ManagedNodeError::Io { action, path: self.config.binary.clone(), cause }
    }
}

fn log_path(config: &ManagedNodeConfig) -> PathBuf {
    config.data_dir.join("node.log")
}

/// Writes genesis and secret, or checks those of an earlier run.
fn prepare(config: &ManagedNodeConfig) -> Result<(), ManagedNodeError> {
    let io = |action, path: &Path| {
        let path = path.to_owned();
        move |cause| ManagedNodeError::Io { action, path, cause }
    };
    let dir = &config.data_dir;
    fs::create_dir_all(dir).map_err(io("cannot create", dir))?;
    let genesis = dir.join("genesis.json");
    match fs::read(&genesis) {
        Ok(before) => {
            if serde_json::from_slice::<Value>(&before).ok().as_ref() != Some(&config.genesis) {
                return Err(ManagedNodeError::DifferentGenesis(dir.clone()));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::write(&genesis, config.genesis.to_string()).map_err(io("cannot write", &genesis))?;
        }
        Err(error) => return Err(io("cannot read", &genesis)(error)),
    }
    let secret = dir.join("jwt.hex");
    // Readable by its owner only, from the first moment on.
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&secret) {
        Ok(mut file) => {
            let hex = JwtSecret::generate()?.to_hex();
            io::Write::write_all(&mut file, hex.as_bytes()).map_err(io("cannot write", &secret))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(io("cannot create", &secret)(error)),
    }
}

async fn spawn(config: &ManagedNodeConfig) -> Result<(Child, Ready), ManagedNodeError> {
    let log = log_path(config);
    let log_file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&log)
        .map_err(|cause| ManagedNodeError::Io { action: "cannot write", path: log.clone(), cause })?;
    let mut child = Command::new(&config.binary)
        .arg("--datadir")
        .arg(config.data_dir.join("chain"))
        .arg("--genesis")
        .arg(config.data_dir.join("genesis.json"))
        .arg("--jwt-secret")
        .arg(config.data_dir.join("jwt.hex"))
        .args(["--http-addr", &config.address, "--auth-addr", &config.address])
        .args(["--http-port", &config.http_port.to_string()])
        .args(["--auth-port", &config.engine_port.to_string()])
        .arg("--exit-with-stdin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log_file)
        .kill_on_drop(true)
        .spawn()
        .map_err(|cause| ManagedNodeError::Io {
            action: "cannot start",
            path: config.binary.clone(),
            cause,
        })?;
    let stdout = child.stdout.take().expect("standard output was asked for as a pipe");
    let mut line = String::new();
    let mut reader = BufReader::new(stdout.take(READY_LINE_LIMIT_BYTES));
    let read = timeout(Duration::from_millis(config.ready_timeout_ms), reader.read_line(&mut line)).await;
    match read {
        Err(_) => Err(ManagedNodeError::NotReady { timeout_ms: config.ready_timeout_ms, log }),
        Ok(Err(cause)) => {
            Err(ManagedNodeError::Io { action: "cannot read from", path: config.binary.clone(), cause })
        }
        Ok(Ok(0)) => {
            let status = child.wait().await.map_or_else(
                |error| error.to_string(),
                |status| match status.signal() {
                    Some(signal) => format!("signal {signal}"),
                    None => status.to_string(),
                },
            );
            Err(ManagedNodeError::Died { status, tail: tail(&log), log })
        }
        Ok(Ok(_)) => match serde_json::from_str(&line) {
            Ok(ready) => Ok((child, ready)),
            Err(_) => Err(ManagedNodeError::BadReadyLine(line.trim_end().to_owned())),
        },
    }
}

/// The last lines of a log.
fn tail(path: &Path) -> String {
    const LINES: usize = 8;
    let text = fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
