//! A development L1 as a child process. **Not for anything that holds value**: its keys are public.

use std::{
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use blindfold_protocol::SigningKey;
use blindfold_runtime::blocking;
use serde_json::{Value, json};

use crate::{error::L1Error, transport::Rpc};

/// How long anvil may take until it listens.
const START_TIMEOUT_MS: u64 = 120_000;
/// How long a call of the helper's own may take.
const CALL_TIMEOUT_MS: u64 = 120_000;
/// Of what a child prints before it dies, how much is reported, in bytes.
const REPORTED_OUTPUT_BYTES: usize = 2_000;
const LISTENING: &str = "Listening on ";

/// The secret keys of anvil's funded accounts, from its public mnemonic.
const DEV_KEYS: [[u8; 32]; 10] = [
    alloy_primitives::hex!("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"),
    alloy_primitives::hex!("59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"),
    alloy_primitives::hex!("5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a"),
    alloy_primitives::hex!("7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6"),
    alloy_primitives::hex!("47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a"),
    alloy_primitives::hex!("8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba"),
    alloy_primitives::hex!("92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e"),
    alloy_primitives::hex!("4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356"),
    alloy_primitives::hex!("dbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97"),
    alloy_primitives::hex!("2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6"),
];

/// The key of anvil's funded account `index`, 0 to 9. Public: for development only.
pub fn dev_key(index: usize) -> Option<SigningKey> {
    SigningKey::from_bytes(DEV_KEYS.get(index)?).ok()
}

/// How a development L1 is started.
#[derive(Clone, Debug)]
pub struct AnvilConfig {
    /// Path of the program `anvil`.
    pub program: PathBuf,
    /// Port on 127.0.0.1; 0 for any free one.
    pub port: u16,
    /// Chain id that it serves.
    pub chain_id: u64,
    /// Seconds between blocks; `None` mines a block for each transaction and when told to.
    pub block_time_s: Option<u64>,
    /// Where its output goes; nowhere when `None`.
    pub log: Option<PathBuf>,
}

impl AnvilConfig {
    /// The program that npm installed under `contracts`, with chain id 31337, any free port, and a block for each
    /// transaction.
    ///
    /// # Errors
    /// [`AnvilError::NotInstalled`].
    pub fn installed(contracts: &Path) -> Result<Self, AnvilError> {
        // The package with the program is named by platform; the script beside it would be one more process.
        let packages = contracts.join("node_modules").join("@foundry-rs");
        let program = std::fs::read_dir(&packages)
            .ok()
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("anvil-"))
            .map(|entry| entry.path().join("bin").join(format!("anvil{}", std::env::consts::EXE_SUFFIX)))
            .find(|program| program.is_file())
            .ok_or(AnvilError::NotInstalled { packages })?;
        Ok(Self { program, port: 0, chain_id: 31_337, block_time_s: None, log: None })
    }
}

/// Why anvil does not run.
#[derive(Debug, thiserror::Error)]
pub enum AnvilError {
    /// npm has not installed it.
    #[error("no anvil under {packages}: run scripts/contracts setup")]
    NotInstalled {
        /// Where it was looked for.
        packages: PathBuf,
    },
    /// The program or its log file cannot be used.
    #[error("cannot start {program}: {cause}")]
    Start {
        /// Path of the program, or of its log file.
        program: PathBuf,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// It ended, or did not listen in time.
    #[error("anvil does not listen: {output}")]
    NotListening {
        /// The end of what it printed.
        output: String,
    },
    /// It listens but does not answer.
    #[error(transparent)]
    Call(#[from] L1Error),
}

/// A running anvil; it ends when this is dropped.
#[derive(Debug)]
pub struct ManagedAnvil {
    child: Child,
    url: String,
    chain_id: u64,
    rpc: Rpc,
}

impl ManagedAnvil {
    /// Starts anvil and waits until it answers.
    ///
    /// # Errors
    /// [`AnvilError`].
    pub async fn spawn(config: &AnvilConfig) -> Result<Self, AnvilError> {
        let start = |cause| AnvilError::Start { program: config.program.clone(), cause };
        let mut log = config.log.as_ref().map(std::fs::File::create).transpose().map_err(start)?;
        let mut command = Command::new(&config.program);
        command
            .args(["--hardfork", "osaka", "--slots-in-an-epoch", "1", "--host", "127.0.0.1"])
            .args(["--port", &config.port.to_string(), "--chain-id", &config.chain_id.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(seconds) = config.block_time_s {
            command.args(["--block-time", &seconds.to_string()]);
        }
        let mut child = command.spawn().map_err(start)?;
        let (Some(stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) else {
            // Both were asked for as pipes.
            return Err(AnvilError::NotListening { output: "its output is not connected".to_owned() });
        };
        let (sender, receiver) = mpsc::channel();
        // Reads on for as long as the child lives, so that it never blocks on a full pipe.
        std::thread::spawn(move || {
            let mut sender = Some(sender);
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { break };
                if let Some(log) = log.as_mut() {
                    // The log is for people; anvil runs on without it.
                    let _ = writeln!(log, "{line}");
                }
                if let Some(address) = line.trim().strip_prefix(LISTENING)
                    && let Some(sender) = sender.take()
                {
                    let _ = sender.send(address.to_owned());
                }
            }
        });
        let mut running = Self {
            child,
            url: String::new(),
            chain_id: config.chain_id,
            rpc: Rpc::new("http://127.0.0.1", CALL_TIMEOUT_MS)?,
        };
        let listening = blocking(move || receiver.recv_timeout(Duration::from_millis(START_TIMEOUT_MS)).ok())
            .await
            .ok()
            .flatten();
        let Some(address) = listening else {
            let _ = running.child.kill();
            let mut output = Vec::new();
            let _ = stderr.by_ref().take(REPORTED_OUTPUT_BYTES as u64).read_to_end(&mut output);
            let output = String::from_utf8_lossy(&output).trim().to_owned();
            return Err(AnvilError::NotListening { output });
        };
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        running.url = format!("http://{address}");
        running.rpc = Rpc::new(&running.url, CALL_TIMEOUT_MS)?;
        let given = running.rpc.chain_id().await?;
        if given != config.chain_id {
            return Err(L1Error::WrongChain { expected: config.chain_id, given }.into());
        }
        Ok(running)
    }

    /// Its JSON-RPC endpoint, over HTTP on 127.0.0.1.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Chain id that it serves.
    pub fn chain_id(&self) -> u64 {
        self.chain_id
    }

    /// Process id, for whoever stops or kills it.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Mines this many blocks. With `--slots-in-an-epoch 1` a block is final two blocks later.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn mine(&self, blocks: u64) -> Result<(), L1Error> {
        self.rpc.call::<Value>("anvil_mine", json!([format!("{blocks:#x}")])).await.map(drop)
    }

    /// Calls any of anvil's methods.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn call(&self, method: &'static str, params: Value) -> Result<Value, L1Error> {
        self.rpc.call(method, params).await
    }
}

impl Drop for ManagedAnvil {
    fn drop(&mut self) {
        // It may have ended by itself; nothing is left to do then.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
