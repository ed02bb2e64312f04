//! Members, sources and clients that lie.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::Result;
use axum::{Router, body::Bytes, extract::State, http::HeaderMap, response::IntoResponse, routing::post};
use blindfold::devnet::{
    accounts::{SECOND_HINT_PUBLISHER, SEQUENCER, named_key},
    ports::{http, local},
};
use blindfold_protocol::{B256, Canonical};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use toml::Table;

use super::network::Network;
use crate::{
    forge::{Colluding, Forgeries},
    relay::{Relay, Tamper},
    settings_file::section,
};

/// The name under which a role connects to what lies to it.
const LIED_TO: &str = "full-node";

/// The notification, if the text is one.
fn notification(text: &str) -> Option<Value> {
    let message: Value = serde_json::from_str(text).ok()?;
    (message["method"] == "blind_subscription").then_some(message)
}

/// Has a role follow from a source that this rule forges.
async fn follow_forged(network: &mut Network, role: &str, from: u16, rule: Tamper) -> Result<Relay> {
    let relay = Relay::start(local(0), local(from)).await?;
    relay.tamper(rule);
    let table = if role == "relay" { "relay" } else { "full_node" };
    let url = relay.http_url(LIED_TO);
    let change = |settings: &mut Table| {
        section(settings, table)?.insert("sequencer_urls".to_owned(), url.into());
        Ok(())
    };
    network.restart_with(role, change).await?;
    Ok(relay)
}

fn gateway(network: &Network) -> u16 {
    network.devnet.ports.gateways.first().map_or(0, |(rpc, _)| *rpc)
}

/// The relay's source alters every header.
pub async fn lying_source(network: &mut Network, alarms: &[&str]) -> Result<()> {
    let rule: Tamper = Box::new(|_, text| {
        let mut message = notification(text)?;
        let sealed = message["params"]["result"]["sealed"].as_str()?;
        // The last byte is of the signature.
        let (kept, last) = sealed.split_at(sealed.len().checked_sub(2)?);
        let other = if last == "00" { "01" } else { "00" };
        message["params"]["result"]["sealed"] = json!(format!("{kept}{other}"));
        Some(vec![message.to_string()])
    });
    let from = network.devnet.ports.full_node.0;
    let _relay = follow_forged(network, "relay", from, rule).await?;
    network.fire(alarms).await
}

/// The full node gets one wrong hint.
pub async fn wrong_hints(network: &mut Network, alarms: &[&str]) -> Result<()> {
    let forgeries = Forgeries::default();
    let rule = forgeries.tamper(named_key(SEQUENCER), network.devnet.chain.deployment);
    forgeries.arm_hint();
    let _relay = follow_forged(network, "full-node", gateway(network), rule).await?;
    network.fire(alarms).await
}

/// The full node hears of blocks that nobody executed.
pub async fn block_differs(network: &mut Network, alarms: &[&str]) -> Result<()> {
    let rule: Tamper = Box::new(|_, text| {
        let mut message = notification(text)?;
        let result = &mut message["params"]["result"];
        result.get("stateRoot").or_else(|| result.get("state_root"))?;
        result["hash"] = json!(format!("0x{:064x}", 7));
        Some(vec![message.to_string()])
    });
    // Gateways execute nothing, so they announce no blocks.
    let leader = network.leader().await?;
    let from = network
        .devnet
        .sequencers()
        .into_iter()
        .find(|(name, _)| *name == leader)
        .map_or(0, |(_, (rpc, _))| rpc);
    let _relay = follow_forged(network, "full-node", from, rule).await?;
    network.fire(alarms).await
}

/// As many members as make a certificate sign a second header; the full node gets that certificate, too.
pub async fn conflicting_certificates(network: &mut Network, alarms: &[&str]) -> Result<()> {
    let members = Colluding::of(&network.devnet, network.newest()).await?;
    let rule: Tamper = Box::new(move |_, text| {
        let mut message = notification(text)?;
        let result = &mut message["params"]["result"];
        result["certificate"].as_str()?;
        let (number, hash) = (result["number"].as_u64()?, B256::repeat_byte(9));
        result["certificate"] = json!(members.certify(number, hash).ok()?.to_hex());
        result["hash"] = json!(hash);
        Some(vec![text.to_owned(), message.to_string()])
    });
    let _relay = follow_forged(network, "full-node", gateway(network), rule).await?;
    network.fire(alarms).await
}

/// A member answers hint publishers with a share that is not its own.
pub async fn lying_member(network: &mut Network, alarms: &[&str]) -> Result<()> {
    const MEMBER: i64 = 1;
    // The generator of G1, compressed.
    const POINT: &str =
        "97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb";
    let port = network.devnet.ports.members.first().map_or(0, |(rpc, _)| *rpc);
    let relay = Relay::start(local(0), local(port)).await?;
    relay.tamper(Box::new(|_, text| {
        let mut message: Value = serde_json::from_str(text).ok()?;
        let share = message["result"].as_str().filter(|share| share.len() > POINT.len())?;
        let (kept, _) = share.split_at(share.len() - POINT.len());
        message["result"] = json!(format!("{kept}{POINT}"));
        Some(vec![message.to_string()])
    }));
    let url = relay.http_url("hint-publisher");
    for role in ["hint-publisher", SECOND_HINT_PUBLISHER] {
        let change = |settings: &mut Table| {
            let members = section(settings, "hint_publisher")?.get_mut("members");
            for member in members.and_then(toml::Value::as_array_mut).into_iter().flatten() {
                let Some(member) = member.as_table_mut() else { continue };
                if member.get("member").and_then(toml::Value::as_integer) == Some(MEMBER) {
                    member.insert("url".to_owned(), url.clone().into());
                }
            }
            Ok(())
        };
        network.restart_with(role, change).await?;
    }
    // Without this one the lying one is among those that are asked.
    network.kill("member-4").await?;
    network.fire(alarms).await
}

/// A client that answers as one of another version does, once it is told to.
#[derive(Clone)]
struct OtherRules {
    lies: Arc<AtomicBool>,
    upstream: String,
    http: reqwest::Client,
}

/// The full node's execution client knows other reasons to skip than the node does.
pub async fn skip_rule(network: &mut Network, alarms: &[&str]) -> Result<()> {
    let upstream = http(network.devnet.ports.full_node_execution.1);
    let listener = TcpListener::bind(local(0)).await?;
    let url = http(listener.local_addr()?.port());
    let lies = Arc::<AtomicBool>::default();
    let state = OtherRules { lies: Arc::clone(&lies), upstream, http: crate::http_client() };
    let router = Router::new().route("/", post(other_rules)).with_state(state);
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let change = |settings: &mut Table| {
        section(settings, "execution")?.insert("engine_url".to_owned(), url.into());
        Ok(())
    };
    network.restart_with("full-node", change).await?;
    network.devnet.process("full-node")?.ready().await?;
    network.quiet(alarms).await?;
    lies.store(true, Ordering::Relaxed);
    let fired = network.fire(alarms).await;
    server.abort();
    fired
}

async fn other_rules(State(client): State<OtherRules>, headers: HeaderMap, body: Bytes) -> impl IntoResponse {
    let mut request = client.http.post(&client.upstream).body(body.to_vec());
    for name in ["authorization", "content-type"] {
        if let Some(value) = headers.get(name) {
            request = request.header(name, value);
        }
    }
    let text = match request.send().await {
        Ok(answer) => answer.text().await.unwrap_or_default(),
        Err(_) => String::new(),
    };
    let asked = String::from_utf8_lossy(&body).contains("engine_filterInfoV1");
    let mut answer: Value = serde_json::from_str(&text).unwrap_or_default();
    if asked && client.lies.load(Ordering::Relaxed) && answer["result"]["reasons"].is_array() {
        answer["result"]["reasons"] = json!(["of another version"]);
        return ([("content-type", "application/json")], answer.to_string());
    }
    ([("content-type", "application/json")], text)
}
