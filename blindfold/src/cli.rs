//! The command line.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, Result};
use blindfold_committee::key_file::{self, KeyFileCost};
use blindfold_protocol::limits::MAX_MEMBERS;
use blindfold_telemetry::{LogFormat, init_logging};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::{
    archive::ArchiveArgs,
    bench::BenchCommand,
    dealer::{Deal, deal},
    deploy::{GenesisArgs, L1Command},
    devnet::DevnetArgs,
    doctor::{self, DoctorArgs},
    health::HealthArgs,
    member_keys::{self, KeyCommand},
    roles::{
        self, CommitteeSettings, CoprocessorSettings, FullNodeSettings, GatewaySettings,
        HintPublisherSettings, ProxySettings, RelaySettings, SequencerSettings, SignerSettings, signer,
    },
    settings::SettingsArgs,
    setup::SetupCommand,
    store_commands::{self, StoreCommand},
    wallet::WalletArgs,
};

/// A rollup sequencer that cannot read what it orders
#[derive(Parser, Debug)]
#[command(version, max_term_width = 110)]
pub struct Cli {
    /// How log lines look
    #[arg(long, global = true, value_enum, default_value = "text", env = "BLINDFOLD_LOG_FORMAT")]
    log_format: Format,
    /// What is logged, as for RUST_LOG: info, or blindfold_sequencer=debug,info
    #[arg(long, global = true, default_value = "info", env = "BLINDFOLD_LOG")]
    log: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Start the whole system on this machine, until Ctrl-C
    #[command(after_help = "Examples:\n  blindfold devnet\n  blindfold devnet --free-ports --once")]
    Devnet(DevnetArgs),
    /// Make a committee's keys in one process (development only: the dealer has to be believed)
    #[command(
        after_help = "Example:\n  blindfold dealer --members 4 --threshold 3 --max-batch 512 --out keys --password-file password"
    )]
    Dealer(DealerArgs),
    /// Deploy the contracts on L1, register committees, and act there by hand
    #[command(subcommand)]
    L1(L1Command),
    /// Write the genesis of the execution clients
    Genesis(GenesisArgs),
    /// Order envelopes: JSON-RPC, mempool, sealing, feed, posting to L1
    #[command(after_help = EXAMPLE_SEQUENCER)]
    Sequencer(RebuildArgs),
    /// Hold the sequencer's key: sign each number once, whichever sequencer asks
    #[command(args_conflicts_with_subcommands = true, after_help = EXAMPLE_SIGNER)]
    Signer(SignerArgs),
    /// Be a committee member: acknowledge headers, release shares
    #[command(args_conflicts_with_subcommands = true, after_help = EXAMPLE_COMMITTEE)]
    Committee(CommitteeArgs),
    /// Be a hint publisher: pre-decrypt, finalize, publish hints
    #[command(
        after_help = "Example:\n  blindfold hint-publisher --config hint-publisher.toml --set backend.threads=8"
    )]
    HintPublisher(SettingsArgs),
    /// Follow, verify and execute the chain; serve eth_* and blind_*
    #[command(args_conflicts_with_subcommands = true, after_help = EXAMPLE_FULL_NODE)]
    FullNode(FullNodeArgs),
    /// Hand the feed and the public reads on, verified, to as many as ask
    #[command(
        after_help = "Example:\n  blindfold relay --config relay.toml --set relay.rpc_addr=0.0.0.0:9620"
    )]
    Relay(SettingsArgs),
    /// Be one of a sequencer's front-ends: a relay that takes envelopes, verifies and forwards them
    #[command(
        after_help = "Examples:\n  blindfold gateway --config gateway.toml\n  blindfold doctor gateway --config gateway.toml"
    )]
    Gateway(SettingsArgs),
    /// Execute confidential transactions in committed order; serve confidential_*
    #[command(args_conflicts_with_subcommands = true, after_help = EXAMPLE_COPROCESSOR)]
    Coprocessor(CoprocessorArgs),
    /// Encrypt what an ordinary wallet sends
    #[command(
        after_help = "Example:\n  blindfold proxy --config proxy.toml\n  cast send --rpc-url http://127.0.0.1:9590 --value 1ether 0x…"
    )]
    Proxy(SettingsArgs),
    /// Keep data that L1 only names, by its hash, and give it to whoever asks
    #[command(
        after_help = "Example:\n  blindfold archive --dir archive --read-addr 0.0.0.0:9650 --token-file archive.token\n\nWhat it guarantees, and what it does not: docs/l1.md."
    )]
    Archive(ArchiveArgs),
    /// Move, back up, restore and verify a role's records
    #[command(subcommand, after_help = store_commands::EXAMPLES)]
    Store(StoreCommand),
    /// Keys, deposits, transfers, and checks of what the sequencer says
    Wallet(WalletArgs),
    /// Find out what would keep a role from starting or going on, without starting or stopping it
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(DoctorArgs),
    /// Ask a role's admin port whether it is well: exit status 0 if it is
    #[command(
        after_help = "Examples:\n  blindfold health http://127.0.0.1:9546/healthz\n  blindfold health http://127.0.0.1:9546/readyz"
    )]
    Health(HealthArgs),
    /// Measure the scheme, or a running system
    #[command(subcommand)]
    Bench(BenchCommand),
}

/// How long the process waits at its end for threads at work, in milliseconds.
const THREADS_END_TIMEOUT_MS: u64 = 5_000;
const EXAMPLE_SEQUENCER: &str = "Examples:\n  blindfold sequencer --config sequencer.toml\n  \
    BLINDFOLD_SEQUENCER__L1__URL=http://127.0.0.1:8545 blindfold sequencer --config sequencer.toml\n  \
    blindfold sequencer --config sequencer.toml --rebuild-from-l1\n\n\
    Every key: docs/operate.md. Flags win over the environment, the environment over the file.";

const EXAMPLE_SIGNER: &str = "Examples:\n  blindfold signer begin 1 --config signer.toml\n  \
    blindfold signer --config signer.toml\n  \
    blindfold signer forget-terms --config signer.toml\n\n\
    Every key, and what to do when its disk is lost: docs/operate.md.";

const EXAMPLE_COMMITTEE: &str = "Examples:\n  blindfold committee --config member-1.toml\n  \
    blindfold committee --config member-1.toml --rebuild-from-l1\n  \
    blindfold committee key show member-1.key";

const EXAMPLE_FULL_NODE: &str = "Examples:\n  blindfold full-node --config full-node.toml\n  \
    blindfold full-node join snapshot.db --config full-node.toml";

const EXAMPLE_COPROCESSOR: &str = "Examples:\n  blindfold coprocessor --config coprocessor.toml\n  \
    blindfold coprocessor setup dev --out confidential-keys\n\n\
    Every key: docs/operate.md. What is executed: docs/coprocessor.md.";

#[derive(Args, Debug)]
struct RebuildArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// First take back what the disk holds above the last header that L1 holds, too, then run: for a role that stopped
    /// because L1 made another header in place of a certified one. On any other disk it changes nothing
    #[arg(long)]
    rebuild_from_l1: bool,
}

#[derive(Args, Debug)]
struct SignerArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(subcommand)]
    command: Option<SignerCommand>,
}

#[derive(Subcommand, Debug)]
enum SignerCommand {
    /// Tell a signer with a fresh database from which number on it signs; once, while it does not run
    Begin {
        /// A number from which on the key has signed nothing anywhere: 1 for a new chain
        number: u64,
        #[command(flatten)]
        settings: SettingsArgs,
    },
    /// Forget the highest term that sequencers asked in, for a database of theirs that was restored or replaced
    ForgetTerms(SettingsArgs),
}

#[derive(Args, Debug)]
struct FullNodeArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(subcommand)]
    command: Option<FullNodeCommand>,
}

#[derive(Subcommand, Debug)]
enum FullNodeCommand {
    /// Begin a new node with the batches of a snapshot, while it does not run: a backup of any other full node
    ///
    /// Nothing in it is believed: headers, items, certificates and hints are verified by this node's own L1, and the node
    /// executes them itself. Interrupted, or refused at some batch, it goes on where it was, also with another snapshot.
    Join {
        /// The snapshot: what `blindfold store backup` wrote for a full node that keeps all batches
        #[arg(value_name = "FILE")]
        snapshot: PathBuf,
        #[command(flatten)]
        settings: SettingsArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args, Debug)]
struct CommitteeArgs {
    #[command(flatten)]
    run: RebuildArgs,
    #[command(subcommand)]
    command: Option<CommitteeCommand>,
}

#[derive(Subcommand, Debug)]
enum CommitteeCommand {
    /// Look at a member's key file, and add the keys of later epochs to it
    #[command(subcommand, after_help = member_keys::EXAMPLES)]
    Key(KeyCommand),
}

#[derive(Args, Debug)]
struct CoprocessorArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(subcommand)]
    command: Option<CoprocessorCommand>,
}

#[derive(Subcommand, Debug)]
enum CoprocessorCommand {
    /// Make the circuits' keys and the constants of a deployment
    #[command(subcommand)]
    Setup(SetupCommand),
}

#[derive(Args, Debug)]
struct DealerArgs {
    /// Committee members, 64 at most
    #[arg(long, value_parser = clap::value_parser!(u16).range(2..=MAX_MEMBERS as i64))]
    members: u16,
    /// Members that must act together; more than half
    #[arg(long)]
    threshold: u16,
    /// Ciphertexts in one sub-batch at most
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    max_batch: u32,
    /// Folder for parameters.bin, and for each member member-<j>.key and member-<j>.key.json
    #[arg(long)]
    out: PathBuf,
    /// File whose first line is the password of every key file
    #[arg(long)]
    password_file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Cli {
    /// Parses the process's command line; ends the process where it cannot be, or asks for help.
    #[must_use]
    pub fn of_process() -> Self {
        let parsed = Self::from_arg_matches(&command().get_matches());
        parsed.unwrap_or_else(|error| error.format(&mut command()).exit())
    }
}

/// The command line. Its help shows no value of an environment variable: URLs may hold secrets.
fn command() -> clap::Command {
    fn without_values(command: clap::Command) -> clap::Command {
        command.mut_args(|arg| arg.hide_env_values(true)).mut_subcommands(without_values)
    }
    without_values(Cli::command())
}

/// Runs a parsed command line.
///
/// # Errors
/// Whatever stops the command, with what to do about it.
pub fn run(cli: Cli) -> Result<()> {
    let format = match cli.log_format {
        Format::Text => LogFormat::Text,
        Format::Json => LogFormat::Json,
    };
    // The commands for people say on standard output what they do; their log is for what goes wrong.
    let quiet = matches!(
        cli.command,
        Command::Devnet(_)
            | Command::L1(_)
            | Command::Genesis(_)
            | Command::Store(_)
            | Command::Wallet(_)
            | Command::Bench(_)
            | Command::Dealer(_)
            | Command::Doctor(_)
            | Command::Health(_)
            | Command::Committee(CommitteeArgs { command: Some(_), .. })
            | Command::Signer(SignerArgs { command: Some(_), .. })
            | Command::FullNode(FullNodeArgs { command: Some(_), .. })
            | Command::Coprocessor(CoprocessorArgs { command: Some(_), .. })
    ) && cli.log == "info";
    init_logging(format, if quiet { "warn" } else { &cli.log })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(dispatch(cli.command));
    // A thread that hangs must not keep a process whose role has ended.
    runtime.shutdown_timeout(Duration::from_millis(THREADS_END_TIMEOUT_MS));
    done
}

/// What a program that ended so gives to the system. An error is told last, in one line with its causes: a stack backtrace,
/// which `anyhow` would print after it where the environment asks for one, hides it from whoever reads the end of a log.
#[must_use]
pub fn exit_code(outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {}", in_one_line(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error with its causes. Some errors name their cause themselves: what was said already is not said again.
fn in_one_line(error: &anyhow::Error) -> String {
    let mut line = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line
}

async fn dispatch(command: Command) -> Result<()> {
    match command {
        Command::Devnet(args) => crate::devnet::run(args).await,
        Command::Dealer(args) => run_dealer(&args),
        Command::L1(command) => crate::deploy::run(command).await,
        Command::Genesis(args) => crate::deploy::run_genesis(&args),
        Command::Sequencer(RebuildArgs { settings, rebuild_from_l1 }) => {
            roles::run::<SequencerSettings>(&settings, rebuild_from_l1).await
        }
        Command::Signer(SignerArgs { settings, command: None }) => {
            roles::run::<SignerSettings>(&settings, false).await
        }
        Command::Signer(SignerArgs { command: Some(SignerCommand::Begin { number, settings }), .. }) => {
            signer::begin(&settings, number).await
        }
        Command::Signer(SignerArgs { command: Some(SignerCommand::ForgetTerms(settings)), .. }) => {
            signer::forget_terms(&settings).await
        }
        Command::Committee(CommitteeArgs {
            run: RebuildArgs { settings, rebuild_from_l1 },
            command: None,
        }) => roles::run::<CommitteeSettings>(&settings, rebuild_from_l1).await,
        Command::Committee(CommitteeArgs { command: Some(CommitteeCommand::Key(command)), .. }) => {
            member_keys::run(&command)
        }
        Command::HintPublisher(args) => roles::run::<HintPublisherSettings>(&args, false).await,
        Command::FullNode(FullNodeArgs { settings, command: None }) => {
            roles::run::<FullNodeSettings>(&settings, false).await
        }
        Command::FullNode(FullNodeArgs {
            command: Some(FullNodeCommand::Join { snapshot, settings, json }),
            ..
        }) => roles::full_node::join(&snapshot, &settings, json).await,
        Command::Relay(args) => roles::run::<RelaySettings>(&args, false).await,
        Command::Gateway(args) => roles::run::<GatewaySettings>(&args, false).await,
        Command::Coprocessor(CoprocessorArgs { settings, command: None }) => {
            roles::run::<CoprocessorSettings>(&settings, false).await
        }
        Command::Coprocessor(CoprocessorArgs {
            command: Some(CoprocessorCommand::Setup(command)), ..
        }) => crate::setup::run(command).await,
        Command::Proxy(args) => roles::run::<ProxySettings>(&args, false).await,
        Command::Archive(args) => crate::archive::run(args).await,
        Command::Store(command) => store_commands::run(command).await,
        Command::Wallet(args) => crate::wallet::run(args).await,
        Command::Doctor(args) => doctor::run(args).await,
        Command::Health(args) => crate::health::run(args).await,
        Command::Bench(command) => crate::bench::run(command).await,
    }
}

fn run_dealer(args: &DealerArgs) -> Result<()> {
    let text = std::fs::read_to_string(&args.password_file)
        .with_context(|| format!("--password-file {}", args.password_file.display()))?;
    eprintln!("dealing for development: this process knows the master secret until it ends");
    let dealt = deal(&Deal {
        max_batch: args.max_batch,
        members: args.members,
        threshold: args.threshold,
        out: &args.out,
        password: text.lines().next().unwrap_or_default(),
        cost: KeyFileCost::default(),
    })?;
    if args.json {
        let members: Vec<_> = dealt
            .members
            .iter()
            .map(|(path, public)| {
                serde_json::json!({
                    "member": public.member,
                    "keyFile": path,
                    "publicFile": key_file::public_path(path),
                    "blsPublicKey": hex::encode(public.bls_public_key),
                    "proofOfPossession": hex::encode(public.proof_of_possession),
                })
            })
            .collect();
        let summary = serde_json::json!({
            "parameters": dealt.parameters,
            "parametersHash": dealt.parameters_hash,
            "members": members,
        });
        println!("{summary:#}");
    } else {
        println!("parameters  {}  (hash {})", dealt.parameters.display(), dealt.parameters_hash);
        for (path, public) in &dealt.members {
            println!("member {}    {}", public.member, path.display());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_shows_no_value_of_an_environment_variable() {
        fn shown(command: &clap::Command) -> Vec<String> {
            let own = command
                .get_arguments()
                .filter(|arg| arg.get_env().is_some() && !arg.is_hide_env_values_set())
                .map(|arg| format!("{} {}", command.get_name(), arg.get_id()));
            own.chain(command.get_subcommands().flat_map(shown)).collect()
        }
        command().debug_assert();
        assert_eq!(shown(&command()), [""; 0]);
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn no_cause_is_told_twice() {
        let names_it = || anyhow::anyhow!("refused").context("settings: refused").context("sequencer.toml");
        assert_eq!(in_one_line(&names_it()), "sequencer.toml: settings: refused");
        let does_not = anyhow::anyhow!("refused").context("settings");
        assert_eq!(in_one_line(&does_not), "settings: refused");
    }

    const ADDRESS: &str = "0x4200000000000000000000000000000000000011";
    const HASH: &str = "0x1111111111111111111111111111111111111111111111111111111111111111";
    const CHAIN: &str = "--chain c --l1 http://127.0.0.1:1";
    const KEY: &str = "--key k --password-file p";
    const NODE: &str = "--node http://127.0.0.1:2";

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        let line = line.replace("ADDRESS", ADDRESS).replace("HASH", HASH);
        let line = line.replace("CHAIN", CHAIN).replace("KEY", KEY).replace("NODE", NODE);
        let line = line.replace("SEQUENCER", "--sequencer http://127.0.0.1:3");
        let line = line.replace("PROVING", "--proving-keys k");
        let line = line.replace("CONFIDENTIAL", "--deployment d --coprocessor-data c");
        Cli::try_parse_from(std::iter::once("blindfold").chain(line.split_whitespace()))
    }

    #[test]
    fn what_people_do_on_l1_is_parsed() {
        for line in [
            "wallet force-envelope ADDRESS 1ether --data 0x01 --gas 30000 --nonce 4 KEY CHAIN NODE",
            "wallet force-envelope ADDRESS 1ether --l1-key l --l1-password-file q KEY CHAIN NODE --json",
            "wallet force-transaction --raw 0x02f8 KEY CHAIN",
            "wallet force-transaction --transfer ADDRESS 1ether --gas 21000 KEY CHAIN NODE",
            "wallet bridge --amount 1ether KEY CHAIN",
            "wallet bridge --amount 1ether --to ADDRESS --data 0x01 --gas 50000 KEY CHAIN",
            "wallet withdraw-fees request all KEY CHAIN",
            "wallet withdraw-fees claim KEY CHAIN NODE --wait 5",
            "wallet withdraw-fees exit KEY CHAIN NODE",
            "wallet withdraw-fees status KEY CHAIN NODE --json",
            "wallet accuse promise.json KEY CHAIN",
            "wallet accuse promise.json KEY CHAIN NODE",
            "wallet slash FILE KEY CHAIN",
            "wallet send ADDRESS 1ether --promise --promise-file f KEY CHAIN NODE --sequencer http://127.0.0.1:3",
            "sequencer --config sequencer.toml",
            "sequencer --config sequencer.toml --rebuild-from-l1 --set sequencer.posting.enabled=false",
            "signer --config signer.toml",
            "signer begin 1 --config signer.toml",
            "signer forget-terms --config signer.toml",
            "committee --config member-1.toml --rebuild-from-l1",
            "committee key show member-1.key --json",
            "committee key add member-1.key --from next.key --password-file p --from-password-file q --json",
            "committee key public member-1.key --password-file p",
            "l1 stake serve 5 --member m --parameters-hash HASH KEY CHAIN",
            "store copy --from sequencer --to postgres://u@h/d --to-password-file p --json",
            "store backup --store sequencer --out backup.db",
            "store restore backup.db --store postgres://u@h/d --password-file p",
            "full-node join snapshot.db --config full-node.toml --json",
            "store verify --store backup.db --json",
            "health http://127.0.0.1:9546/readyz --timeout-ms 500",
            "store prune --store full-node --keep-batches 100000 --dry-run --json",
            "wallet send ADDRESS 1ether KEY CHAIN NODE SEQUENCER --sequencer http://127.0.0.1:4",
            "wallet send ADDRESS 1ether KEY CHAIN NODE --sequencer http://127.0.0.1:3,http://127.0.0.1:4",
            "l1 status CHAIN --json --blocks 100",
            "l1 bond sequencer deposit 1ether KEY CHAIN",
            "l1 bond sequencer announce 1ether KEY CHAIN --json",
            "l1 bond sequencer withdraw --to ADDRESS KEY CHAIN",
            "l1 bond sequencer show CHAIN",
            "l1 bond publisher deposit 1ether KEY CHAIN",
            "l1 bond publisher withdraw 1ether KEY CHAIN",
            "l1 bond publisher show ADDRESS CHAIN",
            "l1 post-header KEY CHAIN",
            "l1 finalize KEY CHAIN",
            "l1 finalize 1 2 KEY CHAIN --blocks 50",
            "l1 void KEY CHAIN",
            "l1 void 7 --yes KEY CHAIN --json",
            "l1 claim-reward KEY CHAIN",
            "coprocessor --config coprocessor.toml --set coprocessor.kept_versions=5",
            "coprocessor setup dev --out keys --json",
            "coprocessor setup powers start --out p0 --json",
            "coprocessor setup powers contribute --from p0 --out p1",
            "coprocessor setup powers contribute --from p1 --out p2 --beacon HASH --json",
            "coprocessor setup powers import --transcript t --transcript-log-size 21 --out p0 --json",
            "coprocessor setup powers verify --from p2 --json",
            "coprocessor setup powers verify --from p2 --transcript t",
            "coprocessor setup phase2 start --powers p2 --out k0",
            "coprocessor setup phase2 start --powers p2 --transcript t --transcript-log-size 20 --out k0",
            "coprocessor setup phase2 contribute --from k0 --out k1 --beacon HASH --beacon-log-iterations 30",
            "coprocessor setup phase2 verify --powers p2 --from k1 --json",
            "coprocessor setup phase2 finish --powers p2 --from k1 --out keys",
            "coprocessor setup deployment --keys k --contract ADDRESS --operator ADDRESS --minimum-fee 1 \
             --allocate ADDRESS=5 --auditor-key a --auditor-password-file p --out confidential.json",
            "wallet confidential register KEY CHAIN NODE SEQUENCER CONFIDENTIAL PROVING --wait",
            "wallet confidential deposit 5 --to ADDRESS KEY CHAIN NODE SEQUENCER CONFIDENTIAL",
            "wallet confidential send ADDRESS 5 --fee 2 KEY CHAIN NODE SEQUENCER CONFIDENTIAL PROVING --wait 5 --json",
            "wallet confidential rollover KEY CHAIN NODE SEQUENCER CONFIDENTIAL",
            "wallet confidential refresh KEY CHAIN NODE SEQUENCER CONFIDENTIAL PROVING",
            "wallet confidential withdraw 5 --to ADDRESS KEY CHAIN NODE SEQUENCER CONFIDENTIAL PROVING",
            "wallet confidential balance KEY --chain r --deployment d --coprocessor-data c",
            "wallet confidential history KEY --chain r --deployment d --coprocessor-data c --json",
            "wallet confidential payments KEY --chain r --deployment d --coprocessor-data c --proving-keys k",
            "wallet confidential audit ADDRESS --auditor-key a --auditor-password-file p --chain r --deployment d \
             --coprocessor-data c",
            "wallet confidential invoice order q.csv --out o KEY --chain r --deployment d",
            "wallet confidential invoice prices p.csv --order o --out p --chain r --deployment d --json",
            "wallet confidential invoice total --order o --prices p --out t --chain r --deployment d \
             --coprocessor http://127.0.0.1:4",
            "wallet confidential invoice verify t --order o --prices p --chain r --deployment d --json",
            "wallet confidential invoice open t --order o KEY --chain r --deployment d",
        ] {
            if let Err(error) = parse(line) {
                panic!("{line}: {error}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        for line in [
            "wallet force-transaction KEY CHAIN",
            "wallet force-transaction --raw 0x02 --transfer ADDRESS 1ether KEY CHAIN NODE",
            "wallet force-transaction --transfer ADDRESS 1ether KEY CHAIN",
            "wallet force-transaction --raw 0x02 --gas 21000 KEY CHAIN",
            "wallet send ADDRESS 1ether --promise-file f KEY CHAIN NODE --sequencer http://127.0.0.1:3",
            "wallet send ADDRESS 1ether KEY CHAIN NODE",
            "store prune --store full-node --keep-batches 5",
            "wallet send-again KEY CHAIN NODE SEQUENCER",
            "wallet force-envelope ADDRESS 1ether --l1-password-file q KEY CHAIN NODE",
            "wallet slash KEY CHAIN",
            "dealer --members 1 --threshold 1 --max-batch 8 --out o --password-file p",
            "dealer --members 65 --threshold 33 --max-batch 8 --out o --password-file p",
            "dealer --members 4 --threshold 3 --max-batch 0 --out o --password-file p",
            "wallet confidential invoice open t KEY --chain r --deployment d",
            "wallet confidential invoice total --order o --prices p --chain r --deployment d",
            "l1 void --yes KEY CHAIN",
            "health",
            "health 127.0.0.1:9546",
            "health http://127.0.0.1:9546/readyz --timeout-ms 0",
            "committee --rebuild-from-l1 key show member-1.key",
            "committee key add member-1.key --password-file p",
            "l1 bond publisher announce 1ether KEY CHAIN",
            "wallet confidential register KEY CHAIN NODE SEQUENCER CONFIDENTIAL",
            "coprocessor setup powers contribute --from p1 --out p2 --beacon 0x11",
            "coprocessor setup powers contribute --from p1 --out p2 --beacon-log-iterations 3",
            "coprocessor setup phase2 contribute --from p1 --out p2 --beacon HASH --beacon-log-iterations 31",
            "wallet confidential rollover KEY CHAIN NODE SEQUENCER CONFIDENTIAL PROVING",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn an_address_with_a_wrong_checksum_is_no_address() {
        // The right checksum, none three times, and one with a letter of the wrong case.
        for (address, right) in [
            ("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", true),
            ("0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", true),
            ("5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", true),
            ("0x5AAEB6053F3E94C9B9A09F33669435E7EF1BEAED", true),
            ("0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", false),
        ] {
            for line in [
                "l1 deploy --l1 x KEY --chain-id 5 --sequencer OTHER",
                "l1 deploy --l1 x KEY --chain-id 5 --sequencer ADDRESS --fee-recipient OTHER",
                "l1 deploy --l1 x KEY --chain-id 5 --sequencer ADDRESS --base-fee-recipient OTHER",
                "l1 bond sequencer deposit 1ether --of OTHER KEY CHAIN",
                "l1 bond sequencer withdraw --to OTHER KEY CHAIN",
                "l1 bond sequencer show --of OTHER CHAIN",
                "l1 bond publisher show OTHER CHAIN",
                "l1 sequencer name OTHER KEY CHAIN",
                "l1 stake deposit 1ether --owner OTHER --member m --member-password-file q KEY CHAIN",
                "l1 stake withdraw --to OTHER --member m KEY CHAIN",
                "wallet deposit 1ether --payer OTHER KEY CHAIN",
                "wallet send OTHER 1ether KEY CHAIN NODE SEQUENCER",
                "wallet force-envelope OTHER 1ether KEY CHAIN NODE",
                "wallet bridge --amount 1ether --to OTHER KEY CHAIN",
                "wallet confidential deposit 5 --to OTHER KEY CHAIN NODE SEQUENCER CONFIDENTIAL",
                "wallet confidential send OTHER 5 KEY CHAIN NODE SEQUENCER CONFIDENTIAL PROVING",
                "wallet confidential withdraw 5 --to OTHER KEY CHAIN NODE SEQUENCER CONFIDENTIAL PROVING",
                "wallet confidential audit OTHER --auditor-key a --auditor-password-file p --chain r --deployment d \
                 --coprocessor-data c",
                "coprocessor setup deployment --keys k --contract OTHER --operator ADDRESS --minimum-fee 1 \
                 --auditor-key a --auditor-password-file p --out confidential.json",
                "coprocessor setup deployment --keys k --contract ADDRESS --operator OTHER --minimum-fee 1 \
                 --auditor-key a --auditor-password-file p --out confidential.json",
            ] {
                let parsed = parse(&line.replace("OTHER", address));
                assert_eq!(parsed.is_ok(), right, "{line} with {address}: {:?}", parsed.err());
            }
        }
    }

    #[test]
    fn what_the_wallets_examples_say_can_be_typed() {
        let cli = Cli::command();
        let mut left = vec![cli.find_subcommand("wallet").unwrap()];
        let mut typed = 0;
        while let Some(command) = left.pop() {
            left.extend(command.get_subcommands());
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let help = help.replace("\\\n", " ").replace("0x…", &format!("0x{}", "1".repeat(40)));
            let exports = help.lines().filter_map(|line| line.trim().strip_prefix("export "));
            let exported: Vec<_> =
                exports.flat_map(str::split_whitespace).filter_map(|set| set.split_once('=')).collect();
            let examples = help.lines().map(str::trim).filter(|line| line.starts_with("blindfold "));
            // Those that … cuts off go on as another does.
            for example in examples.filter(|example| !example.contains('…')) {
                let mut words: Vec<String> = example.split_whitespace().map(str::to_owned).collect();
                let called = words[1..]
                    .iter()
                    .try_fold(&cli, |called, word| called.find_subcommand(word).ok_or(called));
                let called = called.unwrap_or_else(|called| called);
                for argument in called.get_arguments() {
                    let of = |name: &&(&str, &str)| argument.get_env().is_some_and(|env| env == name.0);
                    if let (Some((_, value)), Some(long)) = (exported.iter().find(of), argument.get_long()) {
                        words.extend([format!("--{long}"), (*value).to_owned()]);
                    }
                }
                Cli::try_parse_from(&words).unwrap_or_else(|error| panic!("{example}: {error}"));
                typed += 1;
            }
        }
        assert!(typed >= 15, "{typed}");
    }

    #[test]
    fn the_doctor_takes_what_its_examples_say_and_needs_a_role() {
        let examples = doctor::EXAMPLES.lines().map(str::trim).filter(|line| line.starts_with("blindfold "));
        let mut typed = 0;
        for example in examples {
            Cli::try_parse_from(example.split_whitespace())
                .unwrap_or_else(|error| panic!("{example}: {error}"));
            typed += 1;
        }
        assert_eq!(typed, 3);
        for line in ["doctor", "doctor --config c", "doctor wallet", "doctor proxy --timeout-ms 0"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn every_command_by_hand_has_an_example() {
        let cli = Cli::command();
        let find = |group: &str, name: &str| {
            let group = cli.find_subcommand(group).unwrap();
            group.find_subcommand(name).unwrap().get_after_help().map(ToString::to_string).unwrap_or_default()
        };
        for (group, name) in [
            ("wallet", "send"),
            ("wallet", "send-again"),
            ("wallet", "force-envelope"),
            ("wallet", "force-transaction"),
            ("wallet", "bridge"),
            ("wallet", "withdraw-fees"),
            ("wallet", "accuse"),
            ("wallet", "slash"),
            ("l1", "status"),
            ("l1", "bond"),
            ("l1", "post-header"),
            ("l1", "finalize"),
            ("l1", "void"),
            ("l1", "claim-reward"),
        ] {
            assert!(find(group, name).contains(&format!("blindfold {group} {name}")), "{group} {name}");
        }
        let invoice = cli.find_subcommand("wallet").and_then(|wallet| wallet.find_subcommand("confidential"));
        let invoice = invoice.and_then(|confidential| confidential.find_subcommand("invoice")).unwrap();
        for command in invoice.get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let name = command.get_name();
            assert!(help.contains(&format!("blindfold wallet confidential invoice {name}")), "{name}");
        }
    }
}
