//! Which methods of the execution client a server serves, and which it must not even see.

use std::{collections::HashSet, fmt, future::Future, pin::Pin, sync::Arc};

use jsonrpsee::types::ErrorObjectOwned;
use serde_json::value::RawValue;

/// Reads of public state that sequencer and full node pass to their execution client.
pub const READ_METHODS: &[&str] = &[
    "eth_blockNumber",
    "eth_chainId",
    "eth_getBalance",
    "eth_getCode",
    "eth_getStorageAt",
    "eth_getTransactionCount",
    "eth_getBlockByNumber",
    "eth_getBlockByHash",
    "eth_getBlockTransactionCountByHash",
    "eth_getBlockTransactionCountByNumber",
    "eth_getBlockReceipts",
    "eth_getTransactionByHash",
    "eth_getTransactionByBlockHashAndIndex",
    "eth_getTransactionByBlockNumberAndIndex",
    "eth_getTransactionReceipt",
    "eth_getLogs",
    "eth_gasPrice",
    "eth_maxPriorityFeePerGas",
    "eth_feeHistory",
    "eth_syncing",
    "eth_getProof",
    "net_version",
    "net_listening",
    "web3_clientVersion",
    "web3_sha3",
];

/// What a full node serves beside [`READ_METHODS`]: these show what a wallet is about to do, so the sequencer refuses
/// them.
pub const NODE_ONLY_METHODS: &[&str] = &["eth_call", "eth_estimateGas", "eth_createAccessList"];

/// Methods that would show a transaction, or the intent of one, before it is ordered. See [`is_plaintext_method`].
pub const PLAINTEXT_METHODS: &[&str] = &[
    "eth_call",
    "eth_estimateGas",
    "eth_createAccessList",
    "eth_callMany",
    "eth_callBundle",
    "eth_simulateV1",
    "eth_fillTransaction",
    "eth_signTransaction",
    "eth_sendTransaction",
    "eth_sendRawTransaction",
    "eth_sendRawTransactionSync",
    "eth_sendRawTransactionConditional",
    "eth_sendPrivateTransaction",
    "eth_sendPrivateRawTransaction",
    "eth_sendUserOperation",
    "eth_estimateUserOperationGas",
    "eth_resend",
    "debug_traceCall",
    "debug_traceCallMany",
    "trace_call",
    "trace_callMany",
    "trace_rawTransaction",
    "wallet_sendTransaction",
    "wallet_sendCalls",
];

/// Families of which new members appear from time to time.
const PLAINTEXT_PREFIXES: &[&str] = &["eth_send", "eth_simulate", "eth_estimate", "mev_", "wallet_send"];

/// Whether a method is answered with `plaintext_refused` where it is not served: the named ones and every method that
/// begins like a send, a simulation or an estimate.
pub fn is_plaintext_method(method: &str) -> bool {
    PLAINTEXT_METHODS.contains(&method) || PLAINTEXT_PREFIXES.iter().any(|prefix| method.starts_with(prefix))
}

/// What a passed-through call gives: the result as it came, or the error object as it came.
pub type PassthroughFuture = Pin<Box<dyn Future<Output = Result<Box<RawValue>, ErrorObjectOwned>> + Send>>;

type Handler = Arc<dyn Fn(String, Option<Box<RawValue>>) -> PassthroughFuture + Send + Sync>;

/// Methods that are handed to an async function instead of a registered method.
#[derive(Clone)]
pub struct Passthrough {
    allowed: Arc<HashSet<&'static str>>,
    handler: Handler,
}

impl Passthrough {
    /// `allowed` methods go to `handler` with their parameters untouched.
    pub fn new<F, R>(allowed: impl IntoIterator<Item = &'static str>, handler: F) -> Self
    where
        F: Fn(String, Option<Box<RawValue>>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Box<RawValue>, ErrorObjectOwned>> + Send + 'static,
    {
        Self {
            allowed: Arc::new(allowed.into_iter().collect()),
            handler: Arc::new(move |method, params| Box::pin(handler(method, params))),
        }
    }

    /// Whether the method is handed on.
    pub fn allows(&self, method: &str) -> bool {
        self.allowed.contains(method)
    }

    pub(crate) fn call(&self, method: &str, params: Option<Box<RawValue>>) -> PassthroughFuture {
        (self.handler)(method.to_owned(), params)
    }
}

impl fmt::Debug for Passthrough {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Passthrough").field("allowed", &self.allowed.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_read_is_a_plaintext_method_and_every_node_only_method_is() {
        assert!(!READ_METHODS.iter().any(|method| is_plaintext_method(method)));
        assert!(NODE_ONLY_METHODS.iter().all(|method| is_plaintext_method(method)));
        assert!(is_plaintext_method("eth_sendBundle") && is_plaintext_method("eth_simulateV9"));
        assert!(!is_plaintext_method("blind_sendEnvelope"));
    }
}
