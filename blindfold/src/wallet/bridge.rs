//! `blindfold wallet bridge`: ether from L1 to L2.

use alloy_primitives::{Address, Bytes, U256};
use anyhow::{Result, ensure};
use blindfold_l1::{L1Writer, L2Call, Portal};
use clap::Args;

use super::{ChainArgs, KeyArgs, connected, ether, print, wei};
use crate::address::address;

pub(super) const EXAMPLE: &str = "Examples:
  blindfold wallet bridge --amount 1ether --no-way-back --key key.json --password-file password --chain rollup.json \\
      --l1 http://127.0.0.1:8545
  blindfold wallet bridge --amount 1ether --to 0x… --data 0x… --gas 200000 --no-way-back …

The ether is minted on L2 once its L1 block is final and a header has that origin. Where nothing proves execution to L1
yet, as today, it cannot come back: then the command sends nothing without --no-way-back.";

/// Options of `bridge`.
#[derive(Args, Debug)]
pub(super) struct BridgeArgs {
    /// How much leaves L1 and is minted on L2, for example 1ether
    #[arg(long)]
    amount: String,
    /// Who gets it, or is called with it; the key's own address by default
    #[arg(long, value_parser = address)]
    to: Option<Address>,
    /// Input of the call, 0x-hex
    #[arg(long, default_value = "0x")]
    data: Bytes,
    /// Gas of the call on L2, paid for on L1
    #[arg(long, default_value_t = 100_000)]
    gas: u64,
    /// Send it although there is no way back through L1
    #[arg(long)]
    no_way_back: bool,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    chain: ChainArgs,
}

/// Runs `bridge`.
pub(super) async fn run(args: &BridgeArgs, json: bool) -> Result<()> {
    let call = call(args)?;
    let key = args.key.open()?;
    let (from, to) = (key.address(), args.to.unwrap_or(key.address()));
    let (_, l1) = connected(&args.chain).await?;
    may_send(&l1.portal().await?, args.no_way_back)?;
    let sent = L1Writer::new(l1, key).deposit_transaction(&L2Call { to: Some(to), ..call.clone() }).await?;
    let text = format!(
        "{} from {from} go to {to} on L2; sent in L1 block {} ({}), minted once that is final and a header follows it",
        ether(call.mint),
        sent.block,
        sent.transaction
    );
    let value = serde_json::json!({
        "from": from,
        "to": to,
        "amount": call.mint,
        "transaction": sent.transaction,
        "block": sent.block,
    });
    print(json, &value, text)
}

/// Whether the user knows what becomes of the ether.
fn may_send(portal: &Portal, no_way_back: bool) -> Result<()> {
    if portal.outlet.is_some() {
        return Ok(());
    }
    ensure!(
        portal.takes_deposits_without_outlet,
        "nothing proves execution to L1 yet, so there is no way back, and this rollup takes no deposits until there is"
    );
    ensure!(
        no_way_back,
        "nothing proves execution to L1 yet, so this ether cannot come back through L1; nothing was sent. Give \
         --no-way-back if you send it nevertheless"
    );
    eprintln!("this ether cannot come back through L1 until something proves execution there");
    Ok(())
}

/// The call, still without whom it goes to.
fn call(args: &BridgeArgs) -> Result<L2Call> {
    let mint = wei(&args.amount)?;
    ensure!(mint != U256::ZERO || !args.data.is_empty(), "nothing to bring over: give an amount, or --data");
    let least = 21_000 + 40 * args.data.len() as u64;
    ensure!(args.gas >= least, "--gas {} does not cover the call's data: give at least {least}", args.gas);
    Ok(L2Call { to: None, mint, value: mint, gas: args.gas, data: args.data.clone() })
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches};

    use super::*;

    fn parsed(more: &[&str]) -> BridgeArgs {
        let fixed =
            ["bridge", "--key", "k", "--password-file", "p", "--chain", "c", "--l1", "http://127.0.0.1:1"];
        let matches = BridgeArgs::augment_args(Command::new("bridge"))
            .try_get_matches_from(fixed.iter().chain(more))
            .unwrap();
        BridgeArgs::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn ether_without_a_way_back_is_not_sent_unless_the_user_says_so() {
        let portal = |outlet, takes_deposits_without_outlet| Portal { outlet, takes_deposits_without_outlet };
        let refused = |portal, no_way_back| may_send(&portal, no_way_back).unwrap_err().to_string();
        assert!(refused(portal(None, false), true).contains("takes no deposits"));
        assert!(refused(portal(None, true), false).contains("--no-way-back"));
        may_send(&portal(None, true), true).unwrap();
        may_send(&portal(Some(Address::repeat_byte(1)), false), false).unwrap();
        assert!(parsed(&["--amount", "1ether", "--no-way-back"]).no_way_back);
    }

    #[test]
    fn no_example_is_refused_for_want_of_a_way_back() {
        let lines = EXAMPLE.replace("\\\n", " ");
        let mut examples = lines.lines().filter(|line| line.contains("blindfold wallet bridge"));
        assert!(examples.all(|example| example.contains("--no-way-back")), "{lines}");
    }

    #[test]
    fn what_is_minted_is_what_the_call_carries() {
        let call_ = call(&parsed(&["--amount", "2ether"])).unwrap();
        assert_eq!((call_.mint, call_.value, call_.gas), (call_.value, call_.mint, 100_000));
        assert_eq!(ether(call_.mint), "2 ether");
        let poor = call(&parsed(&["--amount", "1wei", "--data", "0x00ff", "--gas", "21000"]));
        assert!(poor.unwrap_err().to_string().contains("at least 21080"));
        assert!(call(&parsed(&["--amount", "0wei"])).is_err());
        assert!(call(&parsed(&["--amount", "0wei", "--data", "0x01"])).is_ok());
    }
}
