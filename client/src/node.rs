//! The user's own node: the only server that sees what a wallet estimates, simulates or asks about.

use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use blindfold_rpc::{
    ClientBuildError, ClientConfig, HttpClient, ReceivedError, http_client,
    jsonrpsee::core::{client::ClientT, params::ArrayParams, traits::ToRpcParams},
};
use serde_json::{Value, json, value::RawValue};

/// A JSON-RPC client of the user's node.
#[derive(Clone, Debug)]
pub struct Node {
    client: Arc<HttpClient>,
}

/// What the node was asked and did not answer as it should.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The node refused, or gave no answer.
    #[error("{method}: {cause}")]
    Call {
        /// The JSON-RPC method that was called.
        method: String,
        /// What came instead of a result.
        cause: ReceivedError,
    },
    /// The result is not what the method gives.
    #[error("{method}: the node's answer is not understood: {answer:.200}")]
    Answer {
        /// The JSON-RPC method that was called.
        method: String,
        /// The answer that the node gave.
        answer: String,
    },
}

/// Parameters that are handed on as they came.
struct Verbatim(Option<Box<RawValue>>);

impl ToRpcParams for Verbatim {
    fn to_rpc_params(self) -> Result<Option<Box<RawValue>>, serde_json::Error> {
        Ok(self.0)
    }
}

impl From<HttpClient> for Node {
    fn from(client: HttpClient) -> Self {
        Self { client: Arc::new(client) }
    }
}

impl Node {
    /// A client for the node at `url` (HTTP).
    ///
    /// # Errors
    /// When the URL is unusable.
    pub fn new(url: &str) -> Result<Self, ClientBuildError> {
        Ok(http_client(url, &ClientConfig::default())?.into())
    }

    /// Hands a call on untouched.
    ///
    /// # Errors
    /// The node's own error, or that no answer came.
    pub async fn raw(
        &self,
        method: &str,
        params: Option<Box<RawValue>>,
    ) -> Result<Box<RawValue>, ReceivedError> {
        self.client.request::<Box<RawValue>, _>(method, Verbatim(params)).await.map_err(ReceivedError::from)
    }

    /// Calls with positional parameters.
    ///
    /// # Errors
    /// [`NodeError::Call`].
    pub async fn call(&self, method: &str, params: &[Value]) -> Result<Value, NodeError> {
        let mut list = ArrayParams::new();
        for param in params {
            // A JSON value always serializes.
            let _ = list.insert(param);
        }
        self.client
            .request(method, list)
            .await
            .map_err(|error| NodeError::Call { method: method.to_owned(), cause: error.into() })
    }

    async fn quantity(&self, method: &str, params: &[Value]) -> Result<U256, NodeError> {
        let answer = self.call(method, params).await?;
        answer
            .as_str()
            .and_then(|text| U256::from_str_radix(text.strip_prefix("0x")?, 16).ok())
            .ok_or_else(|| NodeError::Answer { method: method.to_owned(), answer: answer.to_string() })
    }

    async fn quantity_u64(&self, method: &str, params: &[Value]) -> Result<u64, NodeError> {
        let quantity = self.quantity(method, params).await?;
        u64::try_from(quantity)
            .map_err(|_| NodeError::Answer { method: method.to_owned(), answer: quantity.to_string() })
    }

    /// The chain id.
    ///
    /// # Errors
    /// [`NodeError`].
    pub async fn chain_id(&self) -> Result<u64, NodeError> {
        self.quantity_u64("eth_chainId", &[]).await
    }

    /// Next nonce of an account after the newest block.
    ///
    /// # Errors
    /// [`NodeError`].
    pub async fn nonce(&self, address: &Address) -> Result<u64, NodeError> {
        self.quantity_u64("eth_getTransactionCount", &[json!(address), json!("latest")]).await
    }

    /// Balance after the newest block, in wei.
    ///
    /// # Errors
    /// [`NodeError`].
    pub async fn balance(&self, address: &Address) -> Result<U256, NodeError> {
        self.quantity("eth_getBalance", &[json!(address), json!("latest")]).await
    }

    /// Gas that a call needs.
    ///
    /// # Errors
    /// [`NodeError`].
    pub async fn estimate_gas(&self, call: &Value) -> Result<u64, NodeError> {
        self.quantity_u64("eth_estimateGas", std::slice::from_ref(call)).await
    }

    /// Base fee of the newest block, in wei per gas.
    ///
    /// # Errors
    /// [`NodeError`].
    pub async fn base_fee(&self) -> Result<u128, NodeError> {
        let block = self.call("eth_getBlockByNumber", &[json!("latest"), json!(false)]).await?;
        block["baseFeePerGas"]
            .as_str()
            .and_then(|text| u128::from_str_radix(text.strip_prefix("0x")?, 16).ok())
            .ok_or_else(|| NodeError::Answer {
                method: "eth_getBlockByNumber".to_owned(),
                answer: block["baseFeePerGas"].to_string(),
            })
    }

    /// The receipt of a transaction, once it is in a block.
    ///
    /// # Errors
    /// [`NodeError::Call`].
    pub async fn transaction_receipt(&self, hash: &B256) -> Result<Option<Value>, NodeError> {
        let answer = self.call("eth_getTransactionReceipt", &[json!(hash)]).await?;
        Ok((!answer.is_null()).then_some(answer))
    }
}
