//! `blindfold l1 committee`: what the governor changes about epochs and rule sets, each with notice.

use anyhow::{Context, Result, ensure};
use blindfold_l1::{AnnouncedEnd, Sent};
use blindfold_protocol::{Epochs, RulesChange};
use clap::{Args, Subcommand};

use super::{WriteArgs, advice::advised};
use crate::wallet::print;

pub(super) const EXAMPLES: &str = "Examples:
  blindfold l1 committee end --epoch 3 --last 9000000 --l1 URL --chain rollup.json --key governor.json --password-file password
  blindfold l1 committee silent …          the governor, after the posting deadline without anything certified
  blindfold l1 committee end-at-head …     the governor, of a committee that certifies too little to be silent
  blindfold l1 committee end-at-head --take-back …
  blindfold l1 committee end-now …         anyone, when the notice is over and nothing was ever certified; later
                                           `blindfold l1 post-header` ends the epoch with L1's header
  blindfold l1 committee rules --from 9000000 --rules 2 …

What changes at a number is far ahead of the posted head (`--switch-lead` at deployment), so every role has read it by
then. An end at the head has its notice in L1 blocks: the answer window for a committee that L1 does not hear of, unless it
comes back, and for any other as long as a new committee waits (`--epoch-notice`). An epoch whose certificates do not
count yet can be taken back whole: `end --last` with the number before its first.";

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
    /// Say that the committee is silent, so that its epoch ends with the next header that L1 makes after the answer window
    Silent(SendArgs),
    /// Announce that the epoch ends with a header that L1 makes once the notice is over, whatever its committee does
    EndAtHead {
        /// Take an announced end back
        #[arg(long)]
        take_back: bool,
        #[command(flatten)]
        write: Box<WriteArgs>,
    },
    /// End the first epoch, whose end is due, before anything was certified; anyone may
    EndNow(SendArgs),
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
            let writer = write.connect().await?.1;
            let sent = writer.end_epoch(*epoch, *last).await.map_err(advised)?;
            done(write, &ended(*epoch, writer.client().numbers_of(*epoch).await?), &sent)
        }
        CommitteeCommand::Silent(SendArgs { write }) => {
            let writer = write.connect().await?.1;
            let sent = writer.announce_silence().await.map_err(advised)?;
            let end = writer.client().announced_end().await?.context("the announcement was taken back")?;
            warn_without_next(&writer.client().epochs().await?, &end);
            let what = format!(
                "unless something certified comes, epoch {} ends with the next header that L1 makes after L1 block {}",
                end.epoch, end.until
            );
            done(write, &what, &sent)
        }
        CommitteeCommand::EndAtHead { take_back, write } => {
            let writer = write.connect().await?.1;
            ensure!(
                !*take_back || writer.client().announced_end().await?.is_some(),
                "no end is announced, so there is nothing to take back: `blindfold l1 status` shows what is"
            );
            let sent = writer.announce_end(*take_back).await.map_err(advised)?;
            if *take_back {
                return done(write, "no end is announced any more", &sent);
            }
            let end = writer.client().announced_end().await?.context("the announcement was taken back")?;
            warn_without_next(&writer.client().epochs().await?, &end);
            let what = format!(
                "epoch {} ends with the next header that L1 makes after L1 block {}",
                end.epoch, end.until
            );
            done(write, &what, &sent)
        }
        CommitteeCommand::EndNow(SendArgs { write }) => {
            let sent = write.connect().await?.1.end_first_epoch().await.map_err(advised)?;
            done(write, "the first epoch ended before its first number", &sent)
        }
        CommitteeCommand::Rules { from, rules, write } => {
            let writer = write.connect().await?.1;
            let sent = writer.schedule_rules(*from, *rules).await.map_err(advised)?;
            let last = writer.client().last_rules_change().await?;
            done(write, &scheduled(RulesChange { first: *from, rules: *rules }, last), &sent)
        }
    }
}

/// What became of an epoch that was ended at a number. Before its first one it is taken back whole.
fn ended(epoch: u64, (first, last): (u64, u64)) -> String {
    if last < first {
        format!("epoch {epoch} is taken back whole: it has no batch")
    } else {
        format!("epoch {epoch} ends with batch {last}")
    }
}

/// What became of a rule set that was scheduled. With the one that is in force before, the contract takes the last one back.
fn scheduled(asked: RulesChange, last: Option<RulesChange>) -> String {
    let RulesChange { first, rules } = asked;
    if last == Some(asked) {
        format!("rule set {rules} begins with batch {first}")
    } else {
        format!("the rule set that was scheduled is taken back: rule set {rules} stays")
    }
}

/// Says that nobody certifies anything behind an announced end, where that is so.
fn warn_without_next(epochs: &Epochs, end: &AnnouncedEnd) {
    if !has_next(epochs, end.epoch) {
        eprintln!(
            "no epoch behind epoch {} is registered, as of the newest final L1 block: behind its end nothing is certified \
             until there is one whose notice is over. `blindfold l1 register` it now, or take the end back with \
             `blindfold l1 committee end-at-head --take-back`",
            end.epoch
        );
    }
}

/// Whether an epoch with numbers of its own is registered behind this one.
fn has_next(epochs: &Epochs, epoch: u64) -> bool {
    epochs.as_slice().iter().any(|next| next.epoch > epoch && next.first <= next.last)
}

fn done(write: &WriteArgs, what: &str, sent: &Sent) -> Result<()> {
    let value = serde_json::json!({ "transaction": sent.transaction, "block": sent.block });
    print(write.read.json, &value, format!("{what}; L1 block {} ({})", sent.block, sent.transaction))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::l1_commands::status::tests::epoch;

    #[test]
    fn a_rule_set_that_is_taken_back_is_not_said_to_begin() {
        let asked = RulesChange { first: 900, rules: 2 };
        assert_eq!(scheduled(asked, Some(asked)), "rule set 2 begins with batch 900");
        for last in [None, Some(RulesChange { first: 100, rules: 2 })] {
            assert!(scheduled(asked, last).contains("taken back: rule set 2 stays"));
        }
    }

    #[test]
    fn an_epoch_that_is_taken_back_whole_is_not_said_to_end_with_a_batch() {
        assert_eq!(ended(2, (1_001, 1_000)), "epoch 2 is taken back whole: it has no batch");
        assert_eq!(ended(2, (1_001, 1_001)), "epoch 2 ends with batch 1001");
    }

    #[test]
    fn an_epoch_that_was_taken_back_is_no_next_one() {
        let epochs = |all: Vec<_>| Epochs::new(all).unwrap();
        assert!(!has_next(&epochs(vec![epoch(1, 1, 100)]), 1));
        assert!(has_next(&epochs(vec![epoch(1, 1, 100), epoch(2, 101, 200)]), 1));
        assert!(!has_next(&epochs(vec![epoch(1, 1, 100), epoch(2, 101, 100)]), 1));
    }
}
