//! `blindfold l1 committee`: what the governor changes about epochs and rule sets, each with notice.

use anyhow::Result;
use blindfold_l1::Sent;
use clap::{Args, Subcommand};

use super::WriteArgs;
use crate::wallet::print;

pub(super) const EXAMPLES: &str = "Examples:
  blindfold l1 committee end --epoch 3 --last 9000000 --l1 URL --chain rollup.json --key governor.json --password-file password
  blindfold l1 committee silent …          the governor, after the posting deadline without anything certified
  blindfold l1 committee end-silent …      anyone, the answer window later, if nothing came
  blindfold l1 committee rules --from 9000000 --rules 2 …

What changes at a number is far ahead of the posted head (`--switch-lead` at deployment), so every role has read it by
then. Only a committee that L1 does not hear of ends at the head.";

/// What the governor changes.
#[derive(Subcommand, Debug)]
pub enum CommitteeCommand {
    /// End an epoch earlier than it is registered; the next one begins behind it
    End {
        /// The epoch
        #[arg(long)]
        epoch: u64,
        /// Its last batch number from now on
        #[arg(long)]
        last: u64,
        #[command(flatten)]
        write: Box<WriteArgs>,
    },
    /// Say that the committee is silent, so that its epoch can be ended at the head
    Silent(SendArgs),
    /// End the epoch of a committee that was said to be silent and did not come back; anyone may
    EndSilent(SendArgs),
    /// Schedule a rule set
    Rules {
        /// The first batch number that has it
        #[arg(long)]
        from: u64,
        /// The rule set
        #[arg(long)]
        rules: u16,
        #[command(flatten)]
        write: Box<WriteArgs>,
    },
}

/// For what has no options of its own.
#[derive(Args, Debug)]
pub struct SendArgs {
    #[command(flatten)]
    write: Box<WriteArgs>,
}

pub(super) async fn run(command: &CommitteeCommand) -> Result<()> {
    match command {
        CommitteeCommand::End { epoch, last, write } => {
            let sent = write.connect().await?.1.end_epoch(*epoch, *last).await?;
            done(write, &format!("epoch {epoch} ends with batch {last}"), &sent)
        }
        CommitteeCommand::Silent(SendArgs { write }) => {
            let writer = write.connect().await?.1;
            let sent = writer.announce_silence().await?;
            let window = writer.client().timing().await?.answer_window;
            let after = sent.block.saturating_add(window.into());
            done(
                write,
                &format!("unless something certified comes, its epoch can end after L1 block {after}"),
                &sent,
            )
        }
        CommitteeCommand::EndSilent(SendArgs { write }) => {
            let sent = write.connect().await?.1.end_silent_epoch().await?;
            done(write, "the silent committee's epoch ends with the posted head", &sent)
        }
        CommitteeCommand::Rules { from, rules, write } => {
            let sent = write.connect().await?.1.schedule_rules(*from, *rules).await?;
            done(write, &format!("rule set {rules} begins with batch {from}"), &sent)
        }
    }
}

fn done(write: &WriteArgs, what: &str, sent: &Sent) -> Result<()> {
    let value = serde_json::json!({ "transaction": sent.transaction, "block": sent.block });
    print(write.read.json, &value, format!("{what}; L1 block {} ({})", sent.block, sent.transaction))
}
