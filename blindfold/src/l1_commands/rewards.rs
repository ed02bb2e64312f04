//! `blindfold l1 claim-reward`.

use alloy_primitives::U256;
use anyhow::{Result, ensure};
use clap::Args;

use super::WriteArgs;
use crate::wallet::{ether, print};

pub(super) const EXAMPLE: &str = "Example:
  blindfold l1 claim-reward --l1 http://127.0.0.1:8545 --chain rollup.json --key key.json --password-file password

Takes out what waits for the key's account in BlindedInbox, HintRegistry and MemberStakes: rewards, and stakes that
came back.";

/// Options of `claim-reward`.
#[derive(Args, Debug)]
pub struct ClaimArgs {
    #[command(flatten)]
    write: WriteArgs,
}

pub(super) async fn run(args: &ClaimArgs) -> Result<()> {
    let (_, writer) = args.write.connect().await?;
    let account = writer.address();
    let inbox = writer.client().reward(account).await?;
    let hints = writer.client().hint_reward(account).await?;
    let members = writer.client().stake_reward(account).await?;
    ensure!([inbox, hints, members] != [U256::ZERO; 3], "no reward waits for {account}");
    let (mut lines, mut transactions) = (Vec::new(), Vec::new());
    if inbox != U256::ZERO {
        let sent = writer.claim_reward().await?;
        lines.push(format!(
            "{} from BlindedInbox in L1 block {} ({})",
            ether(inbox),
            sent.block,
            sent.transaction
        ));
        transactions.push(sent.transaction);
    }
    if hints != U256::ZERO {
        let sent = writer.claim_hint_reward().await?;
        lines.push(format!(
            "{} from HintRegistry in L1 block {} ({})",
            ether(hints),
            sent.block,
            sent.transaction
        ));
        transactions.push(sent.transaction);
    }
    if members != U256::ZERO {
        let sent = writer.claim_stake_reward().await?;
        lines.push(format!(
            "{} from MemberStakes in L1 block {} ({})",
            ether(members),
            sent.block,
            sent.transaction
        ));
        transactions.push(sent.transaction);
    }
    let value = serde_json::json!({
        "account": account,
        "inbox": inbox,
        "hintRegistry": hints,
        "memberStakes": members,
        "transactions": transactions,
    });
    print(args.write.read.json, &value, lines.join("\n"))
}
