//! `blindfold l1 status`, `bond`, `committee`, `sequencer`, `stake`, `post-header`, `finalize`, `void`, `claim-reward`: what a
//! person does on L1 by hand once a deployment runs.

pub(crate) mod advice;
mod bond;
mod committee;
mod header;
mod hints;
mod rewards;
mod sequencer;
mod stake;
pub(crate) mod status;

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, Result};
use blindfold_client::KeySource;
use blindfold_l1::{L1Client, L1Writer};
use blindfold_protocol::{ChainConfig, SigningKey};
use clap::{Args, Subcommand};

use crate::roles::{L1Settings, load_chain};

pub(crate) use hints::{without_empty, without_hints};

/// The commands, beside those that set a deployment up.
#[derive(Subcommand, Debug)]
pub enum HandCommand {
    /// Where everything on L1 stands
    #[command(after_help = status::EXAMPLE)]
    Status(status::StatusArgs),
    /// Bonds: the sequencer's, and those of publishers of hints
    #[command(subcommand, after_help = bond::EXAMPLES)]
    Bond(bond::BondCommand),
    /// What the governor changes about committees and rules, with notice
    #[command(subcommand, after_help = committee::EXAMPLES)]
    Committee(committee::CommitteeCommand),
    /// Whose signature stands under headers, and from when on
    #[command(subcommand, after_help = sequencer::EXAMPLES)]
    Sequencer(sequencer::SequencerCommand),
    /// What members of committees have at stake
    #[command(subcommand, after_help = stake::EXAMPLES)]
    Stake(stake::StakeCommand),
    /// Have L1 make the next header when nothing certified comes, or say when it will
    #[command(after_help = header::EXAMPLE)]
    PostHeader(header::PostHeaderArgs),
    /// Make posted hints final whose challenge window is over
    #[command(after_help = hints::FINALIZE_EXAMPLE)]
    Finalize(hints::FinalizeArgs),
    /// Declare runs void that have no hints after their deadline
    #[command(after_help = hints::VOID_EXAMPLE)]
    Void(hints::VoidArgs),
    /// Take out rewards for accusations, answers, reports and challenges
    #[command(after_help = rewards::EXAMPLE)]
    ClaimReward(rewards::ClaimArgs),
}

/// Runs one of them.
///
/// # Errors
/// Whatever L1 or a file objects to.
pub async fn run(command: HandCommand) -> Result<()> {
    match command {
        HandCommand::Status(args) => status::run(&args).await,
        HandCommand::Bond(command) => bond::run(&command).await,
        HandCommand::Committee(command) => committee::run(&command).await,
        HandCommand::Sequencer(command) => sequencer::run(&command).await,
        HandCommand::Stake(command) => stake::run(&command).await,
        HandCommand::PostHeader(args) => header::run(&args).await,
        HandCommand::Finalize(args) => hints::finalize(&args).await,
        HandCommand::Void(args) => hints::void(&args).await,
        HandCommand::ClaimReward(args) => rewards::run(&args).await,
    }
}

/// For a command that only looks.
#[derive(Args, Debug)]
pub struct ReadArgs {
    /// The chain's settings, rollup.json
    #[arg(long, env = "BLINDFOLD_CHAIN")]
    chain: PathBuf,
    /// Your L1 node
    #[arg(long, env = "BLINDFOLD_L1")]
    l1: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// For a command that sends a transaction.
#[derive(Args, Debug)]
pub struct WriteArgs {
    #[command(flatten)]
    read: ReadArgs,
    /// Key file of the account that pays (Ethereum keystore V3)
    #[arg(long, env = "BLINDFOLD_KEY")]
    key: PathBuf,
    /// File whose first line is the password
    #[arg(long, env = "BLINDFOLD_PASSWORD_FILE")]
    password_file: PathBuf,
}

impl ReadArgs {
    async fn connect(&self) -> Result<(Arc<ChainConfig>, L1Client)> {
        let chain = load_chain(&self.chain)?;
        let l1 = L1Settings::new(self.l1.as_str()).connect(&chain).await?;
        Ok((chain, l1))
    }
}

impl WriteArgs {
    fn open(&self) -> Result<SigningKey> {
        let source = KeySource {
            file: self.key.clone(),
            password_file: Some(self.password_file.clone()),
            password_env: None,
        };
        source.open().with_context(|| format!("--key {}", self.key.display()))
    }

    async fn connect(&self) -> Result<(Arc<ChainConfig>, L1Writer)> {
        let key = self.open()?;
        let (chain, l1) = self.read.connect().await?;
        Ok((chain, L1Writer::new(l1, key)))
    }
}

/// Names and values in two columns.
pub(crate) fn table(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let line = |(name, value): &(&str, String)| {
        let mut lines = value.lines();
        let first = format!("{name:width$}  {}", lines.next().unwrap_or_default());
        let indent = " ".repeat(width + 2);
        lines.fold(first, |text, more| format!("{text}\n{indent}{more}"))
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Where to look from for what can still be open: as far back as `blocks`, and never before the deployment.
pub(crate) fn range_start(newest: u64, blocks: u64, chain: &ChainConfig) -> u64 {
    newest.saturating_sub(blocks).max(chain.genesis_l1_origin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deploy::begun::tests::{deployed_in, sent};

    #[derive(clap::Parser)]
    struct Hand {
        #[command(subcommand)]
        command: HandCommand,
    }

    #[tokio::test]
    async fn what_would_change_nothing_is_refused_before_it_is_paid_for() {
        let dir = tempfile::tempdir().unwrap();
        let anvil = deployed_in(dir.path()).await;
        let (at, before) =
            (|name: &str| dir.path().join(name).display().to_string(), sent(&anvil, "latest").await);
        let sequencer = "0x4200000000000000000000000000000000000012";
        for (line, says) in [
            ("hand committee end-at-head --take-back", "no end is announced"),
            ("hand bond sequencer announce 0wei", "nothing is announced"),
            (&format!("hand sequencer name {sequencer}"), "is the present key"),
        ] {
            let account = [
                format!("--l1={}", anvil.url()),
                format!("--chain={}", at("rollup.json")),
                format!("--key={}", at("key.json")),
                format!("--password-file={}", at("password")),
            ];
            let words = line.split(' ').map(str::to_owned).chain(account);
            let Hand { command } = clap::Parser::try_parse_from(words).unwrap();
            let refused = run(command).await.map_err(|error| format!("{error:#}"));
            assert!(refused.as_ref().is_err_and(|refused| refused.contains(says)), "{line}: {refused:?}");
        }
        assert_eq!(sent(&anvil, "latest").await, before);
        assert_eq!(before, "0x9");
    }

    #[test]
    fn columns_are_aligned_and_further_lines_indented() {
        let rows = [("a", "1".to_owned()), ("long name", "2\n3".to_owned())];
        assert_eq!(table(&rows), "a          1\nlong name  2\n           3");
        assert_eq!(table(&[]), "");
    }
}
