//! Transactions that no honest client would send: L1 has to take them into a block and refuse them there.

use alloy_primitives::{Address, B256, U256, hex};
use anyhow::{Context, Result, bail, ensure};
use blindfold_l1::contracts::describe_error;
use serde_json::{Value, json};
use tokio::time::Duration;

use super::arena::until;

/// Gas of such a transaction: the most that L1 allows one.
const GAS: u64 = 1 << 24;

/// How long L1 may take for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A transaction that has to fail.
#[derive(Clone, Debug)]
pub struct Doomed {
    /// What is wrong with it.
    pub what: &'static str,
    /// Input.
    pub input: Vec<u8>,
    /// Wei that come along.
    pub value: u128,
    /// The contract's error, or a part of it; empty when gas runs out.
    pub error: &'static str,
    /// Gas limit, if it is not the most that L1 allows.
    pub gas: Option<u64>,
}

impl Doomed {
    /// Without ether, with all the gas there is.
    pub fn new(what: &'static str, input: Vec<u8>, error: &'static str) -> Self {
        Self { what, input, value: 0, error, gas: None }
    }
}

/// L1's own interface, beside the client of the contracts.
#[derive(Clone)]
pub struct RawL1 {
    url: String,
    http: reqwest::Client,
}

impl RawL1 {
    /// For the development L1 at `url`.
    pub fn new(url: &str) -> Self {
        Self { url: url.to_owned(), http: crate::http_client() }
    }

    async fn answer(&self, method: &str, params: Value) -> Result<Value> {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let response = self
            .http
            .post(&self.url)
            .timeout(ANSWER_TIMEOUT)
            .header("content-type", "application/json")
            .body(request.to_string())
            .send()
            .await
            .with_context(|| format!("L1: {method}"))?;
        let text = response.text().await?;
        serde_json::from_str(&text).with_context(|| format!("L1: {method}: {text:.200}"))
    }

    /// A call's result.
    ///
    /// # Errors
    /// L1's error.
    pub async fn call(&self, method: &str, params: Value) -> Result<Value> {
        let answer = self.answer(method, params).await?;
        if let Some(error) = answer.get("error") {
            bail!("L1: {method}: {error}");
        }
        Ok(answer["result"].clone())
    }

    /// The newest block.
    ///
    /// # Errors
    /// When L1 does not answer.
    pub async fn height(&self) -> Result<u64> {
        quantity(&self.call("eth_blockNumber", json!([])).await?)
    }

    /// The receipt of a transaction that is on its way.
    ///
    /// # Errors
    /// When it does not get into a block.
    pub async fn receipt(&self, transaction: B256) -> Result<Value> {
        until(&format!("transaction {transaction} on L1"), async || {
            let receipt = self.call("eth_getTransactionReceipt", json!([transaction])).await?;
            Ok((!receipt.is_null()).then_some(receipt))
        })
        .await
    }

    /// Gas of the first transaction after block `after` that emitted this event, with these indexed fields after it.
    ///
    /// # Errors
    /// When there is none.
    pub async fn gas_of_event(&self, contract: Address, after: u64, topics: &[Option<B256>]) -> Result<u64> {
        let filter =
            json!([{ "address": contract, "fromBlock": format!("{:#x}", after + 1), "topics": topics }]);
        let logs = self.call("eth_getLogs", filter).await?;
        let hash = logs[0]["transactionHash"].as_str().context("no such event on L1")?.parse()?;
        quantity(&self.receipt(hash).await?["gasUsed"])
    }

    /// Sends all of them for real, from an account that need not have its key here, and makes sure that each is in a
    /// block, failed, and would fail with the error that is said. Gives the most gas that one used.
    ///
    /// # Errors
    /// Names what did not fail as it must.
    pub async fn all_fail(&self, from: Address, to: Address, doomed: &[Doomed]) -> Result<u64> {
        self.call("anvil_impersonateAccount", json!([from])).await?;
        let mut sent = Vec::new();
        for attempt in doomed {
            let input = hex::encode_prefixed(&attempt.input);
            let gas = attempt.gas.unwrap_or(GAS);
            let transaction = json!({ "from": from, "to": to, "input": input,
                "value": U256::from(attempt.value), "gas": format!("{gas:#x}") });
            let error = self.error_of(&transaction).await?;
            let error =
                error.with_context(|| format!("{}: expected a refusal, it was taken", attempt.what))?;
            ensure!(
                error.contains(attempt.error),
                "{}: expected {}, seen {error}",
                attempt.what,
                attempt.error
            );
            let hash = self.call("eth_sendTransaction", json!([transaction])).await?;
            sent.push(hash.as_str().context("a transaction hash")?.parse::<B256>()?);
        }
        self.call("anvil_stopImpersonatingAccount", json!([from])).await?;
        let mut most = 0;
        for (attempt, hash) in doomed.iter().zip(sent) {
            let receipt = self.receipt(hash).await?;
            ensure!(
                receipt["status"] == "0x0",
                "{}: expected to fail on L1, it did not: {hash}",
                attempt.what
            );
            most = most.max(quantity(&receipt["gasUsed"])?);
        }
        Ok(most)
    }

    /// The error that a transaction would meet now, in words; `None` when it would succeed.
    ///
    /// # Errors
    /// When L1 does not answer.
    pub async fn error_of(&self, transaction: &Value) -> Result<Option<String>> {
        let answer = self.answer("eth_call", json!([transaction, "latest"])).await?;
        let Some(error) = answer.get("error") else { return Ok(None) };
        let data = error["data"].as_str().and_then(|data| hex::decode(data).ok());
        let described = data.and_then(|data| describe_error(&data));
        Ok(Some(described.unwrap_or_else(|| error.to_string())))
    }
}

/// A hexadecimal quantity.
///
/// # Errors
/// When it is none.
pub fn quantity(value: &Value) -> Result<u64> {
    let text = value.as_str().with_context(|| format!("{value} is no quantity"))?;
    Ok(u64::from_str_radix(text.trim_start_matches("0x"), 16)?)
}

/// A hexadecimal quantity of up to 256 bits.
///
/// # Errors
/// When it is none.
pub fn amount(value: &Value) -> Result<U256> {
    let text = value.as_str().with_context(|| format!("{value} is no amount"))?;
    Ok(U256::from_str_radix(text.trim_start_matches("0x"), 16)?)
}
