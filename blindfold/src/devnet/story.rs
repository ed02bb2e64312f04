//! The first encrypted transfer, told as it happens.

use alloy_primitives::{Bytes, U256};
use anyhow::{Context, Result, bail};
use blindfold_client::{
    Node,
    transaction::{TransactionFields, sign},
};
use blindfold_rpc::{ClientConfig, http_client_of};
use blindfold_runtime::now;
use serde_json::json;
use tokio::time::{Duration, sleep};

use super::{Devnet, Progress, accounts::account_key, ports::http};

/// How long the transfer may take; a fresh machine is slow at first.
const STORY_TIMEOUT_MS: u128 = 60_000;
/// How often the story looks.
const LOOK_INTERVAL_MS: u64 = 25;

/// Sends one ether from account 0 to account 1 through the proxy, as any wallet would, and tells what becomes of it.
///
/// # Errors
/// When it does not arrive.
pub async fn first_transfer(devnet: &Devnet, progress: &Progress) -> Result<()> {
    let proxy = Node::new(&http(devnet.ports.proxy.0))?;
    let node = Node::new(&http(devnet.ports.full_node.0))?;
    let (from, to) = (account_key(0), account_key(1).address());
    let before = node.balance(&to).await?;
    let fields = TransactionFields {
        chain_id: devnet.chain.chain_id,
        nonce: node.nonce(&from.address()).await?,
        to,
        value: U256::from(1_000_000_000_000_000_000u128),
        input: Bytes::new(),
        gas_limit: 21_000,
        max_fee_per_gas: node.base_fee().await?.saturating_mul(2),
        max_priority_fee_per_gas: 0,
    };
    let (raw, hash) = sign(&fields, &from);
    wait_for_deposit(devnet).await?;
    let started = now();
    let report = |what: String| progress.step(format!("  +{:>5} ms  {what}", started.elapsed().as_millis()));

    progress
        .step("a first encrypted transfer, sent to the proxy by a wallet that knows nothing of Blindfold");
    proxy.call("eth_sendRawTransaction", &[json!(raw)]).await?;
    report(format!("the proxy holds transaction {hash} and encrypts it"));
    let mut envelope = None;
    let mut state = String::new();
    loop {
        if started.elapsed().as_millis() > STORY_TIMEOUT_MS {
            bail!(
                "the transfer is still {state:?} after {STORY_TIMEOUT_MS} ms; logs: {}",
                devnet.dir().display()
            );
        }
        if envelope.is_none() {
            let traced = proxy.call("proxy_getEnvelope", &[json!(hash)]).await?;
            envelope = traced["envelope"].as_str().map(str::to_owned);
            if let Some(id) = &envelope {
                report(format!("the sequencer has envelope {id} and cannot read it"));
            }
        }
        if let Some(id) = &envelope {
            // The sequencer knows of sealing first; what is executed, the full node says.
            let sealed = proxy.call("blind_getReceipt", &[json!(id)]).await?;
            let executed = node.call("blind_getReceipt", &[json!(id)]).await?;
            let receipt = if executed.is_null() { sealed } else { executed };
            let now = receipt["state"].as_str().unwrap_or_default().to_owned();
            if now != state {
                report(sentence(&now, &receipt));
                state = now;
            }
        }
        if let Some(receipt) = node.transaction_receipt(&hash).await? {
            let block = receipt["blockNumber"].as_str().context("a receipt without block")?.to_owned();
            report(format!("the wallet sees its receipt: block {block}, status {}", receipt["status"]));
            break;
        }
        sleep(Duration::from_millis(LOOK_INTERVAL_MS)).await;
    }
    let after = node.balance(&to).await?;
    if after != before + fields.value {
        bail!("account 1 had {before} wei and has {after}, expected one ether more");
    }
    Ok(())
}

fn sentence(state: &str, receipt: &serde_json::Value) -> String {
    let number = &receipt["number"];
    match state {
        "pending" => "it waits for its slot".to_owned(),
        "sealed" => format!("batch {number} is sealed: the order is signed, over ciphertexts"),
        "certified" => {
            format!("three of four members certified batch {number}; only now do they release its 48 bytes")
        }
        "executed" => format!(
            "the full node checked its 16-byte hint by re-encryption and executed it in block {}",
            receipt["blockNumber"]
        ),
        other => format!("it is {other}"),
    }
}

/// The proxy's fee deposit counts once its L1 block is final; envelopes before that would be refused.
async fn wait_for_deposit(devnet: &Devnet) -> Result<()> {
    let node = Node::from(http_client_of(&devnet.sequencer_urls(), &ClientConfig::default())?);
    let payer = super::accounts::named_key(super::accounts::PROXY).address();
    let started = now();
    loop {
        let account = node.call("blind_getFeeAccount", &[json!(payer)]).await?;
        if account["balance"].as_str().is_some_and(|balance| balance != "0x0") {
            return Ok(());
        }
        if started.elapsed().as_millis() > STORY_TIMEOUT_MS {
            bail!("the proxy's fee deposit does not count after {STORY_TIMEOUT_MS} ms: {account}");
        }
        sleep(Duration::from_millis(LOOK_INTERVAL_MS)).await;
    }
}
