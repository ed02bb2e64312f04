//! The commands from file to file, with a server between that computes what a coprocessor does.

use std::collections::BTreeMap;
use std::fs;

use alloy_primitives::{Address, B256, Bytes};
use async_trait::async_trait;
use blindfold_client::{confidential::ConfidentialDeployment, keys};
use blindfold_protocol::SigningKey;
use blindfold_rlwe::rlwe::{Parameters, PublicPolynomial, SecretKey};
use blindfold_rlwe::schemes::invoice::Invoices;
use blindfold_rpc::confidential::{
    ConfidentialAccount, ConfidentialApiServer, ConfidentialParameters, ConfidentialStatus,
    ConfidentialTransactionInfo, PublicBalance,
};
use blindfold_rpc::{RpcError, ServerConfig, ServerHandle, serve};
use clap::Parser;

use super::*;
use crate::test_chain::chain;

const DEPLOYMENT_SEED: B256 = B256::repeat_byte(1);

fn nothing<T>() -> Result<T, RpcError> {
    Err(RpcError::internal("this server totals invoices only"))
}

struct Desk(Invoices);

#[async_trait]
impl ConfidentialApiServer for Desk {
    async fn get_status(&self) -> Result<ConfidentialStatus, RpcError> {
        nothing()
    }
    async fn get_parameters(&self) -> Result<ConfidentialParameters, RpcError> {
        nothing()
    }
    async fn get_account(&self, _: Address, _: Option<u64>) -> Result<Option<ConfidentialAccount>, RpcError> {
        nothing()
    }
    async fn get_public_balance(&self, _: Address) -> Result<PublicBalance, RpcError> {
        nothing()
    }
    async fn get_transaction(&self, _: B256) -> Result<Option<ConfidentialTransactionInfo>, RpcError> {
        nothing()
    }
    async fn get_transfers(
        &self,
        _: Address,
        _: u64,
        _: Option<u64>,
    ) -> Result<Vec<ConfidentialTransactionInfo>, RpcError> {
        nothing()
    }
    async fn get_state_root(&self, _: u64) -> Result<Option<B256>, RpcError> {
        nothing()
    }
    async fn get_invoice_total(
        &self,
        key: Bytes,
        quantities: Bytes,
        prices: Bytes,
        mask_seed: B256,
    ) -> Result<Bytes, RpcError> {
        let key = self.0.decode_key(&key).map_err(RpcError::internal)?;
        let quantities = self.0.decode_ciphertext(&quantities).map_err(RpcError::internal)?;
        let prices = self.0.decode_ciphertext(&prices).map_err(RpcError::internal)?;
        let total = self.0.total(&key, &quantities, &prices, &mask_seed.0).map_err(RpcError::internal)?;
        Ok(total.encode().into())
    }
}

#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: InvoiceCommand,
}

/// A folder with everything that the parties share, and the payer's key.
struct Place {
    folder: tempfile::TempDir,
    url: String,
    _server: ServerHandle,
}

impl Place {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let public = PublicPolynomial::new(&Parameters::balance().unwrap(), &DEPLOYMENT_SEED.0).unwrap();
        let deployment = ConfidentialDeployment {
            contract: Address::repeat_byte(3),
            seed: DEPLOYMENT_SEED,
            auditor_key: SecretKey::derive(&public, &[2; 32]).public_key().encode().into(),
            operator: Address::repeat_byte(4),
            minimum_fee: 1,
            allocations: Vec::new(),
            keys: BTreeMap::new(),
        };
        let put = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
        put("rollup.json", serde_json::to_string(&chain()).unwrap());
        put("confidential.json", serde_json::to_string(&deployment).unwrap());
        put("password", "correct horse".to_owned());
        let key = SigningKey::from_bytes(&[7; 32]).unwrap();
        keys::store(&key, &folder.path().join("key.json"), "correct horse").unwrap();
        let mut config = ServerConfig::new(([127, 0, 0, 1], 0).into());
        config.max_request_bytes = MAX_CONFIDENTIAL_REQUEST_BYTES;
        let desk = Desk(Invoices::new(&DEPLOYMENT_SEED.0).unwrap());
        let server = serve(config, desk.into_rpc(), None).await.unwrap();
        Self { folder, url: format!("http://{}", server.local_addr()), _server: server }
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// Runs a line in which `@name` is a file of the folder.
    async fn run(&self, line: &str) -> Result<Value> {
        let shared = "--chain @rollup.json --deployment @confidential.json";
        let line = line.replace("KEY", "--key @key.json --password-file @password");
        let line = format!("invoice {line} {shared}").replace("URL", &self.url);
        let line = line.replace('@', &format!("{}/", self.folder.path().display()));
        let parsed = Line::try_parse_from(line.split_whitespace())?;
        Ok(done(parsed.command).await?.0)
    }

    async fn refused(&self, line: &str) -> String {
        format!("{:#}", self.run(line).await.unwrap_err())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn from_two_files_of_lines_to_a_total() {
    let place = Place::new().await;
    place.put("quantities.csv", "bolts,400\nnuts,3\nscrews,0\n");
    place.put("prices.csv", "# base units\nnuts,1999\nscrews,4294967295\nbolts,25\nwashers,9\n");
    let order = place.run("order @quantities.csv --out @order.json KEY").await.unwrap();
    assert_eq!(order["lines"], 3);
    place.run("prices @prices.csv --order @order.json --out @prices.json").await.unwrap();
    let made = "--order @order.json --prices @prices.json";
    let total = place.run(&format!("total {made} --out @total.json --coprocessor URL")).await.unwrap();
    assert_eq!(total["hashes"]["keyHash"], order["hashes"]["keyHash"]);
    let verified = place.run(&format!("verify @total.json {made}")).await.unwrap();
    assert_eq!((&verified["verified"], &verified["hashes"]), (&json!(true), &total["hashes"]));
    let opened = place.run("open @total.json --order @order.json KEY").await.unwrap();
    assert_eq!(opened, json!({"total": 400 * 25 + 3 * 1999}));

    // Nothing is written over.
    for line in [
        "order @quantities.csv --out @order.json KEY",
        "prices @prices.csv --order @order.json --out @order.json",
        &format!("total {made} --out @total.json --coprocessor URL"),
    ] {
        let refused = place.refused(line).await;
        assert!(refused.contains("a file that does not exist yet"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_named_with_its_line_or_hash() {
    let place = Place::new().await;
    place.put("quantities.csv", "bolts,400\nnuts,3\n");
    place.put("prices.csv", "bolts,25\n");
    place.put("twice.csv", "bolts,25\n\nbolts,26\n");
    place.put("wide.csv", "bolts,65536\n");
    place.run("order @quantities.csv --out @order.json KEY").await.unwrap();
    let refused = place.refused("prices @prices.csv --order @order.json --out @prices.json").await;
    assert!(refused.contains("the order's line 2, `nuts`, has no price"), "{refused}");
    let refused = place.refused("prices @twice.csv --order @order.json --out @prices.json").await;
    assert!(refused.contains("line 3: `bolts` stands here a second time"), "{refused}");
    let refused = place.refused("order @wide.csv --out @other.json KEY").await;
    assert!(
        refused.contains("wide.csv: line 1, `bolts`: the number must be whole, from 0 to 65535"),
        "{refused}"
    );
    let refused = place.refused("prices @prices.csv --order @prices.csv --out @prices.json").await;
    assert!(refused.contains("is not the file that this command takes"), "{refused}");

    place.put("prices.csv", "bolts,25\nnuts,1\n");
    place.run("prices @prices.csv --order @order.json --out @prices.json").await.unwrap();
    let made = "--order @order.json --prices @prices.json";
    place.run(&format!("total {made} --out @total.json --coprocessor URL")).await.unwrap();
    let read = |name: &str| fs::read_to_string(place.folder.path().join(name)).unwrap();
    let altered = |text: &str, field: &str| {
        let at = text.find(field).unwrap() + field.len() + 2_000;
        let digit = if text.as_bytes()[at] == b'0' { "1" } else { "0" };
        [&text[..at], digit, &text[at + 1..]].concat()
    };
    let (prices, total) = (read("prices.json"), read("total.json"));
    place.put("prices.json", &altered(&prices, "\"prices\""));
    let refused = place.refused(&format!("verify @total.json {made}")).await;
    assert!(refused.contains("made of other prices: it names the hash 0x"), "{refused}");
    place.put("prices.json", &prices);
    place.put("total.json", &altered(&total, "\"total\""));
    let refused = place.refused(&format!("verify @total.json {made}")).await;
    assert!(refused.contains("computed again it is 0x"), "{refused}");
    // A coprocessor that is told other bytes says so.
    place.put("prices.json", &prices.replace("\"prices\": \"0x", "\"prices\": \"0xff"));
    let refused = place.refused(&format!("total {made} --out @again.json --coprocessor URL")).await;
    assert!(refused.contains("the coprocessor: "), "{refused}");
    assert!(!place.folder.path().join("again.json").exists());
}
