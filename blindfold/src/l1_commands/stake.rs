//! `blindfold l1 stake`: what a member of a committee has at stake, where the deployment asks for that.

use std::fs;
use std::path::PathBuf;

use alloy_primitives::{Address, B256, U256};
use anyhow::{Context, Result, bail, ensure};
use blindfold_bte::bls;
use blindfold_client::{KeySource, Node};
use blindfold_committee::key_file;
use blindfold_l1::{Acknowledged, Sent};
use blindfold_protocol::{Certificate, certificate::signers};
use blindfold_rpc::types::BatchInfo;
use blindfold_runtime::random;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::{ReadArgs, WriteArgs};
use crate::{
    address::address,
    wallet::{ether, print, wei_u128},
};

pub(super) const EXAMPLES: &str = "Examples:
  blindfold l1 stake deposit 8ether --serves-up-to 2000000 --member member-1.key --member-password-file secret \\
      --l1 URL --chain rollup.json --key key.json --password-file password
  blindfold l1 stake serve 4000000 --member member-1.key …       before an epoch with numbers up to 4,000,000
  blindfold l1 stake serve 0 --member member-1.key …             no further epoch
  blindfold l1 stake show --member member-1.key --l1 URL --chain rollup.json
  blindfold l1 stake leave --member member-1.key …      when its last epoch is over; a week later:
  blindfold l1 stake withdraw --member member-1.key …
  blindfold l1 stake slash 4711 --certified http://127.0.0.1:9580 --certified other.json …

A committee can be registered only where each member's owner agreed to its last number: a stake is bound until then,
and the governor could choose any. All of it is lost when the member's key acknowledges two headers of one number.";

/// `blindfold l1 stake …`
#[derive(Subcommand, Debug)]
pub enum StakeCommand {
    /// Add to the member's stake, before its committee is registered
    Deposit {
        /// For example 8ether
        amount: String,
        /// File with the password of the member's key file
        #[arg(long)]
        member_password_file: PathBuf,
        /// Who takes it out again; the paying account by default
        #[arg(long, value_parser = address)]
        owner: Option<Address>,
        /// The last batch number of epochs that the member may be registered for, as `stake serve` says it afterwards;
        /// without it that is as before, at first none
        #[arg(long, value_name = "NUMBER", conflicts_with = "owner")]
        serves_up_to: Option<u64>,
        #[command(flatten)]
        member: MemberArgs,
        #[command(flatten)]
        write: Box<WriteArgs>,
    },
    /// Say, as the owner, for epochs up to which last batch number the member may be registered from now on
    ///
    /// The stake is bound until the last such epoch is over. A lower number, or 0, takes back what is not registered yet.
    Serve {
        /// For example 2000000; 0 for no further epoch
        #[arg(value_name = "NUMBER")]
        last_number: u64,
        #[command(flatten)]
        member: MemberArgs,
        #[command(flatten)]
        write: Box<WriteArgs>,
    },
    /// Announce, as the owner, that the stake will be taken out, or stay after all
    Leave {
        /// It stays
        #[arg(long)]
        stay: bool,
        #[command(flatten)]
        member: MemberArgs,
        #[command(flatten)]
        write: Box<WriteArgs>,
    },
    /// Take out, as the owner, an announced stake
    Withdraw {
        /// Who gets it; the key's account by default
        #[arg(long, value_parser = address)]
        to: Option<Address>,
        #[command(flatten)]
        member: MemberArgs,
        #[command(flatten)]
        write: Box<WriteArgs>,
    },
    /// Show L1 two certificates of one number: whoever signed both loses its stake, and half of it is the reward
    ///
    /// Commits to the report, waits for a block, and makes it. `blindfold l1 claim-reward` takes the reward out.
    Slash {
        /// The number of the batch that was certified twice
        number: u64,
        /// Who holds one of the two certified headers: the URL of a node, or a file with what one answered to
        /// `blind_getBatch`. Given twice
        #[arg(long, required = true, value_name = "URL|FILE")]
        certified: Vec<String>,
        #[command(flatten)]
        write: Box<WriteArgs>,
    },
    /// How much it is
    Show {
        #[command(flatten)]
        member: MemberArgs,
        #[command(flatten)]
        read: ReadArgs,
    },
}

/// Whose stake.
#[derive(Args, Debug)]
pub struct MemberArgs {
    /// The member's key file, or the public file beside it; it is opened to deposit only
    #[arg(long)]
    member: PathBuf,
    /// Hash of the parameters of the key that is meant, where the file has several
    #[arg(long, value_name = "HASH")]
    parameters_hash: Option<B256>,
}

impl MemberArgs {
    fn key(&self) -> Result<bls::PublicKey> {
        let part = key_file::read_public(&self.member)
            .and_then(|keys| key_file::public_of(keys, self.parameters_hash))
            .with_context(|| self.member.display().to_string())?;
        Ok(bls::PublicKey::from_bytes(&part.bls_public_key)?)
    }
}

pub(super) async fn run(command: &StakeCommand) -> Result<()> {
    match command {
        StakeCommand::Deposit { amount, member_password_file, owner, serves_up_to, member, write } => {
            let amount = wei_u128(amount)?;
            let source = KeySource {
                file: member.member.clone(),
                password_file: Some(member_password_file.clone()),
                password_env: None,
            };
            let password = source.password()?;
            let key = key_file::open_bls_key(&member.member, password.as_bytes(), member.parameters_hash)
                .with_context(|| member.member.display().to_string())?;
            let writer = write.connect().await?.1;
            let owner = owner.unwrap_or(writer.address());
            let sent = writer.deposit_stake(&key, owner, U256::from(amount)).await?;
            let mut what = format!("{} at stake, {owner} takes it out", ether(U256::from(amount)));
            let Some(last_number) = serves_up_to else { return done(write, &what, &sent) };
            let sent = writer.serve(&key.public_key(), *last_number).await?;
            what.push_str(&format!("; {}", service(*last_number)));
            done(write, &what, &sent)
        }
        StakeCommand::Serve { last_number, member, write } => {
            let writer = write.connect().await?.1;
            let sent = writer.serve(&member.key()?, *last_number).await?;
            done(write, &service(*last_number), &sent)
        }
        StakeCommand::Leave { stay, member, write } => {
            let writer = write.connect().await?.1;
            let sent = writer.announce_stake_withdrawal(&member.key()?, !stay).await?;
            let what = if *stay { "the stake stays" } else { "the stake can be taken out in a week" };
            done(write, what, &sent)
        }
        StakeCommand::Withdraw { to, member, write } => {
            let writer = write.connect().await?.1;
            let to = to.unwrap_or(writer.address());
            let sent = writer.withdraw_stake(&member.key()?, to).await?;
            done(write, &format!("the stake went to {to}"), &sent)
        }
        StakeCommand::Slash { number, certified, write } => {
            let [first, second] = certified.as_slice() else {
                bail!("--certified is given {} times, and two headers are needed", certified.len());
            };
            let (first, second) = (certified_by(first, *number).await?, certified_by(second, *number).await?);
            let [one, two] = [&first, &second].map(|side| side.header.hash());
            ensure!(one != two, "both hold the same header {one}: nobody signed two");
            let both = Certificate {
                signers: first.certificate.signers & second.certificate.signers,
                ..first.certificate
            };
            let members = signers(&both);
            ensure!(!members.is_empty(), "no member signed both headers");
            let writer = write.connect().await?.1;
            eprintln!("committing to the report; it is made one block later");
            // Needed for as long as this runs: should it end in between, another commitment does as well.
            let salt = B256::from(random::<[u8; 32]>());
            let sent = writer.report_members(&first, &second, salt).await?;
            let named = members.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
            done(write, &format!("stakes taken of members who signed two headers {number}: {named}"), &sent)
        }
        StakeCommand::Show { member, read } => {
            let l1 = read.connect().await?.1;
            let least = l1.member_stake_wei().await?;
            if least.is_zero() {
                bail!("this deployment asks nothing of its members");
            }
            let stake = l1.member_stake(&member.key()?).await?;
            let value = serde_json::json!({
                "owner": stake.owner,
                "amount": stake.amount,
                "least": least,
                "lastEpoch": stake.last_epoch,
                "unlocksAt": stake.unlocks_at,
                "servesUpTo": stake.serves_up_to,
            });
            let owner = stake.owner.map_or_else(|| "nobody".to_owned(), |owner| owner.to_string());
            let text = format!(
                "{} of {} at stake, {owner} takes it out; member up to epoch {}; {}",
                ether(stake.amount),
                ether(least),
                stake.last_epoch,
                service(stake.serves_up_to)
            );
            print(read.json, &value, text)
        }
    }
}

/// The certified header of this number that a node holds, or held when the file was written.
async fn certified_by(place: &str, number: u64) -> Result<Acknowledged> {
    let answer = if place.starts_with("http") {
        Node::new(place)?.call("blind_getBatch", &[serde_json::json!(number)]).await?
    } else {
        let text = fs::read_to_string(place).with_context(|| place.to_owned())?;
        let answer: Value = serde_json::from_str(&text).with_context(|| format!("{place} is no JSON"))?;
        answer.get("result").cloned().unwrap_or(answer)
    };
    let batch: Option<BatchInfo> =
        serde_json::from_value(answer).with_context(|| format!("{place}: no answer to blind_getBatch"))?;
    let batch = batch.with_context(|| format!("{place} has no batch {number}"))?;
    let header = batch.sealed.decode().with_context(|| format!("{place}: the batch"))?.header;
    let certificate = batch
        .certificate
        .with_context(|| format!("{place} has no certificate of its own for header {number}"))?
        .decode()
        .with_context(|| format!("{place}: the certificate"))?;
    let fits = header.number == number && certificate.header_hash == header.hash();
    ensure!(fits, "{place}: the certificate is not of header {number}");
    Ok(Acknowledged { header, certificate })
}

/// What the owner agreed to.
fn service(last_number: u64) -> String {
    match last_number {
        0 => "the member may be registered for no further epoch".to_owned(),
        number => format!("the member may be registered for epochs up to number {number}"),
    }
}

fn done(write: &WriteArgs, what: &str, sent: &Sent) -> Result<()> {
    let value = serde_json::json!({ "transaction": sent.transaction, "block": sent.block });
    print(write.read.json, &value, format!("{what}; L1 block {} ({})", sent.block, sent.transaction))
}
