//! The execution client: what the role asks it at its start.

use std::sync::Arc;

use blindfold_engine::{EngineError, ExecutionClient, FilterInfo, OpGeth, OpGethConfig, TransportError};
use blindfold_protocol::{B256, ChainConfig};
use blindfold_store::Store;
use blindfold_telemetry::redact_url;
use serde_json::json;

use super::{
    Patience,
    finding::{Area, Finding},
    within,
};
use crate::roles::ExecutionSettings;

const ENGINE: &str = "execution.engine_url";
const READS: &str = "execution.http_url";

pub(super) async fn look(
    settings: ExecutionSettings,
    chain: Option<Arc<ChainConfig>>,
    store: Option<Arc<dyn Store>>,
    patience: Patience,
) -> Vec<Finding> {
    let Ok(config) = settings.config() else {
        let next = "correct `execution.jwt_secret` first";
        return vec![Finding::not_checked(Area::Execution, ENGINE, "there is no secret to show", next)];
    };
    let Some(chain) = chain else {
        let next = "correct `chain` first";
        return vec![Finding::not_checked(Area::Execution, ENGINE, "the chain is not known", next)];
    };
    let answer_ms = patience.answer_ms;
    let client =
        OpGeth::new(OpGethConfig { engine_timeout_ms: answer_ms, read_timeout_ms: answer_ms, ..config });
    let (engine, reads) = (redact_url(&settings.engine_url), redact_url(&settings.http_url));
    let start = "start the execution client, or correct its URL";
    let by_engine = within(patience, Area::Execution, ENGINE, start, async {
        let info = client.check_compatible(chain.chain_id).await;
        let first = match &store {
            Some(store) => store.block(1).await.ok().flatten().map(|block| block.parent_hash),
            None => None,
        };
        vec![of_engine(&engine, info, first)]
    });
    let by_reads = within(patience, Area::Execution, READS, start, of_reads(&client, &reads, chain.chain_id));
    let (mut findings, more) = tokio::join!(by_engine, by_reads);
    findings.extend(more);
    findings
}

/// What the Engine API said. `first` is the parent of the first block that this role executed.
fn of_engine(url: &str, info: Result<FilterInfo, EngineError>, first: Option<B256>) -> Finding {
    let info = match info {
        Ok(info) => info,
        Err(fault) => {
            let next = match &fault {
                EngineError::Transport(TransportError::Unauthorized { .. }) => {
                    "give the client's --jwt-secret and `execution.jwt_secret` the same file, and set both machines' clocks right"
                }
                EngineError::Transport(_) => "start the execution client, or correct `execution.engine_url`",
                EngineError::IncompatibleClient { .. } => {
                    "start the blindfold-node of this version with this chain's genesis, or correct `execution.engine_url`"
                }
                _ => "name the Engine API of a blindfold-node in `execution.engine_url`",
            };
            return Finding::error(Area::Execution, ENGINE, format!("{url}: {fault}"), next);
        }
    };
    if let Some(first) = first.filter(|first| *first != info.genesis_hash) {
        let found =
            format!("{url}: its genesis is {}, this store's blocks begin after {first}", info.genesis_hash);
        let next = "start the client with the chain's own genesis.json and an empty data folder";
        return Finding::error(Area::Execution, ENGINE, found, next);
    }
    let found = format!("{url}: takes the secret; skip rule {}, genesis {}", info.version, info.genesis_hash);
    Finding::ok(Area::Execution, ENGINE, found)
}

async fn of_reads(client: &OpGeth, url: &str, chain_id: u64) -> Vec<Finding> {
    let asked = async {
        let chain = client.read("eth_chainId", json!([])).await?;
        let newest = client.read("eth_blockNumber", json!([])).await?;
        let version = client.read("web3_clientVersion", json!([])).await?;
        Ok::<_, blindfold_engine::ReadError>((chain, newest, version))
    };
    let (chain, newest, version) = match asked.await {
        Ok(answers) => answers,
        Err(fault) => {
            let next = "start the execution client, or correct `execution.http_url`";
            return vec![Finding::error(Area::Execution, READS, format!("{url}: {fault}"), next)];
        }
    };
    let quantity = |value: &serde_json::Value| {
        value.as_str().and_then(|text| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok())
    };
    vec![match quantity(&chain) {
        Some(given) if given == chain_id => {
            let block = quantity(&newest).map_or("none".to_owned(), |number| number.to_string());
            let version = version.as_str().unwrap_or("no version");
            Finding::ok(Area::Execution, READS, format!("{url}: {version}, block {block}"))
        }
        given => {
            let given = given.map_or("none".to_owned(), |given| given.to_string());
            let next = "name the JSON-RPC of the same client in `execution.http_url`";
            Finding::error(
                Area::Execution,
                READS,
                format!("{url}: its chain id is {given}, the rollup's {chain_id}"),
                next,
            )
        }
    }]
}

#[cfg(test)]
mod tests {
    use super::{super::finding::Level, *};

    fn info() -> FilterInfo {
        FilterInfo {
            version: FilterInfo::VERSION,
            chain_id: 5,
            genesis_hash: B256::repeat_byte(1),
            max_transactions: 1,
            reasons: Vec::new(),
            executes: true,
        }
    }

    #[test]
    fn each_fault_of_a_client_has_its_remedy() {
        let unauthorized = TransportError::Unauthorized { method: "m".to_owned(), status: 401 };
        let timeout = TransportError::Timeout { method: "m".to_owned(), timeout_ms: 5 };
        let other = EngineError::IncompatibleClient { reason: "its chain is 6, ours is 5".to_owned() };
        for (fault, remedy) in [
            (unauthorized.into(), "--jwt-secret"),
            (timeout.into(), "start the execution client"),
            (other, "this chain's genesis"),
            (
                EngineError::Rpc { method: "m".to_owned(), code: -32601, message: "m".to_owned() },
                "blindfold-node",
            ),
        ] {
            let finding = of_engine("http://a", Err(fault), None);
            assert_eq!(finding.level, Level::Error);
            assert!(finding.next.as_ref().is_some_and(|next| next.contains(remedy)), "{finding:?}");
        }
    }

    #[test]
    fn a_client_of_another_genesis_is_found_by_the_first_block() {
        assert_eq!(of_engine("http://a", Ok(info()), None).level, Level::Ok);
        assert_eq!(of_engine("http://a", Ok(info()), Some(B256::repeat_byte(1))).level, Level::Ok);
        let other = of_engine("http://a", Ok(info()), Some(B256::repeat_byte(2)));
        assert!(other.level == Level::Error && other.found.contains("its genesis is 0x0101"), "{other:?}");
    }
}
