//! `blindfold l1 sequencer`: whose signature stands under headers, and from when on.

use alloy_primitives::{Address, B256, U256};
use anyhow::{Result, ensure};
use blindfold_l1::{L1Client, Sent};
use blindfold_protocol::SequencerChange;
use clap::Subcommand;
use serde::Serialize;

use super::{ReadArgs, WriteArgs, advice::advised, table};
use crate::{
    address::address,
    wallet::{ether, print},
};

pub(super) const EXAMPLES: &str = "Examples:
  blindfold l1 sequencer show --l1 http://127.0.0.1:8545 --chain rollup.json
  blindfold l1 sequencer name 0x… --l1 URL --chain rollup.json --key governor.json --password-file password

A key counts for headers whose L1 origin is a given block or a later one: an answer window after it was named, or a forced
delay where the present one lost its bond or is silent. Start the next sequencer before, with its key and an empty folder
or a copy of the earlier one's: it follows, and begins when its time has come. docs/operate.md has the steps.";

/// Keys of sequencers.
#[derive(Subcommand, Debug)]
pub enum SequencerCommand {
    /// The keys on L1's newest final block, from when on each counts, and its bond
    Show {
        #[command(flatten)]
        read: ReadArgs,
    },
    /// Name the next one, as the governor; naming the present one takes back a change that has not begun
    Name {
        /// Address of the next key
        #[arg(value_parser = address)]
        sequencer: Address,
        #[command(flatten)]
        write: Box<WriteArgs>,
    },
}

pub(super) async fn run(command: &SequencerCommand) -> Result<()> {
    match command {
        SequencerCommand::Show { read } => {
            let (_, l1) = read.connect().await?;
            show(&l1, None, read.json).await
        }
        SequencerCommand::Name { sequencer, write } => {
            let (_, writer) = write.connect().await?;
            let l1 = writer.client();
            ensure!(
                l1.sequencer().await? != *sequencer || l1.last_sequencer().await? != *sequencer,
                "{sequencer} is the present key, and no other is named: there is no change to take back"
            );
            let sent = writer.name_sequencer(*sequencer).await.map_err(advised)?;
            show(writer.client(), Some(&sent), write.read.json).await
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    /// Of L1's newest block, final or not.
    in_office: Address,
    /// The final L1 block that the rest is of.
    l1_block: u64,
    sequencers: Vec<Entry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction: Option<B256>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    sequencer: Address,
    from_block: u64,
    bond: U256,
}

async fn show(l1: &L1Client, sent: Option<&Sent>, json: bool) -> Result<()> {
    let epochs = l1.epochs().await?;
    let mut sequencers = Vec::new();
    for SequencerChange { from_block, sequencer } in epochs.sequencers().iter().copied() {
        sequencers.push(Entry { sequencer, from_block, bond: l1.bond(sequencer).await?.amount });
    }
    let report = Report {
        in_office: l1.sequencer().await?,
        l1_block: epochs.read_at(),
        sequencers,
        transaction: sent.map(|sent| sent.transaction),
    };
    print(json, &report, text(&report))
}

fn text(report: &Report) -> String {
    let line = |entry: &Entry| {
        format!("{} from L1 block {} on, bond {}", entry.sequencer, entry.from_block, ether(entry.bond))
    };
    let entries: Vec<String> = report.sequencers.iter().map(line).collect();
    let mut rows = vec![
        ("in office", report.in_office.to_string()),
        ("named", entries.join("\n")),
        ("as of", format!("L1 block {}, the newest final one", report.l1_block)),
    ];
    if let Some(hash) = report.transaction {
        rows.push(("transaction", hash.to_string()));
        rows.push((
            "",
            "what was named just now is shown when it is final: `blindfold l1 sequencer show`".to_owned(),
        ));
    }
    table(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_shown_with_its_first_block_and_bond() {
        let entry = |byte, from_block| Entry {
            sequencer: Address::repeat_byte(byte),
            from_block,
            bond: U256::from(10u64.pow(18)),
        };
        let report = Report {
            in_office: Address::repeat_byte(1),
            l1_block: 900,
            sequencers: vec![entry(1, 0), entry(2, 7_300)],
            transaction: None,
        };
        let text = text(&report);
        for part in ["in office", "0x0202", "from L1 block 7300 on, bond 1 ether", "L1 block 900"] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!((&json["sequencers"][1]["fromBlock"], json.get("transaction")), (&7_300.into(), None));
    }
}
