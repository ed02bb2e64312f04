//! `blindfold l1 bond …`.

use alloy_primitives::{Address, U256};
use anyhow::{Context, Result, ensure};
use blindfold_l1::{Bond, L1Client, PublisherBond, Sent};
use clap::{Args, Subcommand};
use serde::Serialize;

use super::{ReadArgs, WriteArgs, table};
use crate::{
    address::address,
    wallet::{ether, print, wei_u128},
};

pub(super) const EXAMPLES: &str = "Examples:
  blindfold l1 bond sequencer deposit 32ether --l1 http://127.0.0.1:8545 --chain rollup.json --key key.json \\
      --password-file password
  blindfold l1 bond sequencer announce 10ether …      then, after the delay: `bond sequencer withdraw`
  blindfold l1 bond publisher deposit 10ether …       of the key's account
  blindfold l1 bond publisher show 0x… --l1 http://127.0.0.1:8545 --chain rollup.json";

/// `blindfold l1 bond …`
#[derive(Subcommand, Debug)]
pub enum BondCommand {
    /// A sequencer's, lost for two headers of one number or a broken promise
    #[command(subcommand)]
    Sequencer(SequencerBondCommand),
    /// A publisher's, half of which wrong hints cost
    #[command(subcommand)]
    Publisher(PublisherBondCommand),
}

/// `blindfold l1 bond sequencer …`
#[derive(Subcommand, Debug)]
pub enum SequencerBondCommand {
    /// Add to a bond; anyone may
    Deposit {
        #[command(flatten)]
        amount: AmountArgs,
        /// Whose bond; the sequencer in office by default
        #[arg(long, value_parser = address)]
        of: Option<Address>,
    },
    /// Announce that a part of the key's own bond will be taken out; 0wei takes it back
    Announce(AmountArgs),
    /// Take out what was announced
    Withdraw {
        /// Who gets it; the key's account by default
        #[arg(long, value_parser = address)]
        to: Option<Address>,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// How much it is
    Show {
        /// Whose; the sequencer in office by default
        #[arg(long, value_parser = address)]
        of: Option<Address>,
        #[command(flatten)]
        read: ReadArgs,
    },
}

/// `blindfold l1 bond publisher …`
#[derive(Subcommand, Debug)]
pub enum PublisherBondCommand {
    /// Add to the bond of the key's account
    Deposit(AmountArgs),
    /// Take out what open postings do not lock; there is no delay
    Withdraw(AmountArgs),
    /// How much it is
    Show {
        /// The publisher's account
        #[arg(value_parser = address)]
        publisher: Address,
        #[command(flatten)]
        read: ReadArgs,
    },
}

/// How much, and who sends.
#[derive(Args, Debug)]
pub struct AmountArgs {
    /// For example 1ether
    amount: String,
    #[command(flatten)]
    write: WriteArgs,
}

pub(super) async fn run(command: &BondCommand) -> Result<()> {
    match command {
        BondCommand::Sequencer(command) => sequencer(command).await,
        BondCommand::Publisher(command) => publisher(command).await,
    }
}

async fn sequencer(command: &SequencerBondCommand) -> Result<()> {
    match command {
        SequencerBondCommand::Deposit { amount: args, of } => {
            let amount = wei_u128(&args.amount)?;
            let (_, writer) = args.write.connect().await?;
            let sequencer = one_of(*of, writer.client()).await?;
            let sent = writer.deposit_bond(sequencer, amount).await?;
            show_sequencer(sequencer, writer.client(), Some(&sent), args.write.read.json).await
        }
        SequencerBondCommand::Announce(args) => {
            let amount = wei_u128(&args.amount)?;
            let (_, writer) = args.write.connect().await?;
            ensure!(
                amount != 0 || writer.client().bond(writer.address()).await?.unlocks_at != 0,
                "nothing is announced of the bond of {}, so there is nothing to take back",
                writer.address()
            );
            let sent = writer.announce_bond_withdrawal(amount).await?;
            show_sequencer(writer.address(), writer.client(), Some(&sent), args.write.read.json).await
        }
        SequencerBondCommand::Withdraw { to, write } => {
            let (_, writer) = write.connect().await?;
            let bond = writer.client().bond(writer.address()).await?;
            ensure!(
                bond.unlocks_at != 0,
                "nothing is announced, or the announcement lapsed: `blindfold l1 bond sequencer announce` first"
            );
            let sent = writer.withdraw_bond(to.unwrap_or(writer.address())).await.context(format!(
                "the bond can be taken out from {} on (Unix seconds), while no accusation is open, and unless headers are \
                 posted until then that this key may have signed",
                bond.unlocks_at
            ))?;
            show_sequencer(writer.address(), writer.client(), Some(&sent), write.read.json).await
        }
        SequencerBondCommand::Show { of, read } => {
            let (_, l1) = read.connect().await?;
            show_sequencer(one_of(*of, &l1).await?, &l1, None, read.json).await
        }
    }
}

async fn publisher(command: &PublisherBondCommand) -> Result<()> {
    match command {
        PublisherBondCommand::Deposit(args) => {
            let amount = wei_u128(&args.amount)?;
            let (_, writer) = args.write.connect().await?;
            let sent = writer.deposit_publisher_bond(amount).await?;
            show_publisher(writer.client(), writer.address(), Some(&sent), args.write.read.json).await
        }
        PublisherBondCommand::Withdraw(args) => {
            let amount = wei_u128(&args.amount)?;
            let (_, writer) = args.write.connect().await?;
            let bond = writer.client().publisher_bond(writer.address()).await?;
            let free = bond.total.saturating_sub(bond.locked);
            ensure!(
                amount <= free,
                "{} must stay while postings are open: at most {} can be taken out now",
                ether(U256::from(bond.locked)),
                ether(U256::from(free))
            );
            let sent = writer.withdraw_publisher_bond(amount).await?;
            show_publisher(writer.client(), writer.address(), Some(&sent), args.write.read.json).await
        }
        PublisherBondCommand::Show { publisher, read } => {
            let (_, l1) = read.connect().await?;
            show_publisher(&l1, *publisher, None, read.json).await
        }
    }
}

/// This sequencer, or else the one in office.
async fn one_of(sequencer: Option<Address>, l1: &L1Client) -> Result<Address> {
    match sequencer {
        Some(sequencer) => Ok(sequencer),
        None => Ok(l1.sequencer().await?),
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SequencerReport {
    sequencer: Address,
    bond: U256,
    announced: U256,
    /// Unix seconds; 0 when nothing is announced.
    unlocks_at: u64,
    expires_at: u64,
    open_accusations: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction: Option<alloy_primitives::B256>,
}

async fn show_sequencer(sequencer: Address, l1: &L1Client, sent: Option<&Sent>, json: bool) -> Result<()> {
    let Bond { amount, withdrawal, unlocks_at, expires_at } = l1.bond(sequencer).await?;
    let report = SequencerReport {
        sequencer,
        bond: amount,
        announced: U256::from(withdrawal),
        unlocks_at,
        expires_at,
        open_accusations: l1.standing().await?.open_accusations,
        transaction: sent.map(|sent| sent.transaction),
    };
    print(json, &report, sequencer_table(&report))
}

fn sequencer_table(report: &SequencerReport) -> String {
    let announced = match report.unlocks_at {
        0 => "nothing".to_owned(),
        at => format!(
            "{}, from {at} on if nothing certified is posted until then, and before {} (Unix seconds)",
            ether(report.announced),
            report.expires_at
        ),
    };
    let mut rows = vec![
        ("sequencer", report.sequencer.to_string()),
        ("bond", ether(report.bond)),
        ("announced", announced),
        ("accusations", report.open_accusations.to_string()),
    ];
    rows.extend(report.transaction.map(|hash| ("transaction", hash.to_string())));
    table(&rows)
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PublisherReport {
    publisher: Address,
    total: U256,
    /// What of it must stay while postings are open.
    locked: U256,
    open_postings: u32,
    /// What it has to be at least for postings, however many.
    publisher_bond: U256,
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction: Option<alloy_primitives::B256>,
}

async fn show_publisher(l1: &L1Client, publisher: Address, sent: Option<&Sent>, json: bool) -> Result<()> {
    let PublisherBond { total, locked, open } = l1.publisher_bond(publisher).await?;
    let report = PublisherReport {
        publisher,
        total: U256::from(total),
        locked: U256::from(locked),
        open_postings: open,
        publisher_bond: U256::from(l1.hint_stakes().await?.0),
        transaction: sent.map(|sent| sent.transaction),
    };
    print(json, &report, publisher_table(&report))
}

fn publisher_table(report: &PublisherReport) -> String {
    let free = report.total.saturating_sub(report.locked);
    let missing = report.publisher_bond.saturating_sub(report.total);
    let covers = match missing.is_zero() {
        true => "postings, however many".to_owned(),
        false => format!("no posting: {} are missing", ether(missing)),
    };
    let mut rows = vec![
        ("publisher", report.publisher.to_string()),
        ("bond", ether(report.total)),
        ("covers", covers),
        ("open postings", report.open_postings.to_string()),
        ("can be taken out", ether(free)),
    ];
    rows.extend(report.transaction.map(|hash| ("transaction", hash.to_string())));
    table(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_say_what_can_be_taken_out() {
        let ether = |count: u64| U256::from(count) * U256::from(10u128.pow(18));
        let report = SequencerReport {
            sequencer: Address::repeat_byte(1),
            bond: ether(32),
            announced: ether(2),
            unlocks_at: 1_700_000_000,
            expires_at: 1_701_000_000,
            open_accusations: 1,
            transaction: None,
        };
        assert!(sequencer_table(&report).contains("announced    2 ether, from 1700000000 on"));
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!((&json["openAccusations"], json.get("transaction")), (&1.into(), None));
        let quiet = SequencerReport { unlocks_at: 0, ..report };
        assert!(sequencer_table(&quiet).contains("nothing"));

        let report = PublisherReport {
            publisher: Address::repeat_byte(2),
            total: ether(10),
            locked: ether(4),
            open_postings: 7,
            publisher_bond: ether(4),
            transaction: Some(Default::default()),
        };
        let text = publisher_table(&report);
        assert!(text.contains("postings, however many") && text.contains("6 ether"), "{text}");
        assert_eq!(serde_json::to_value(&report).unwrap()["publisherBond"], "0x3782dace9d900000");
        let short = PublisherReport { total: ether(1), locked: ether(0), open_postings: 0, ..report };
        assert!(publisher_table(&short).contains("no posting: 3 ether are missing"));
    }
}
