//! The reads of public state that pass through to the execution client.

/// Reads that any server of the rollup passes through.
pub const PUBLIC_READS: &[&str] = &[
    "eth_blockNumber",
    "eth_chainId",
    "eth_feeHistory",
    "eth_gasPrice",
    "eth_getBalance",
    "eth_getBlockByHash",
    "eth_getBlockByNumber",
    "eth_getBlockReceipts",
    "eth_getBlockTransactionCountByHash",
    "eth_getBlockTransactionCountByNumber",
    "eth_getCode",
    "eth_getLogs",
    "eth_getProof",
    "eth_getStorageAt",
    "eth_getTransactionByBlockHashAndIndex",
    "eth_getTransactionByBlockNumberAndIndex",
    "eth_getTransactionByHash",
    "eth_getTransactionCount",
    "eth_getTransactionReceipt",
    "eth_maxPriorityFeePerGas",
    "eth_syncing",
    "net_listening",
    "net_version",
    "web3_clientVersion",
    "web3_sha3",
];

/// Reads whose parameters tell what a user is about to send. A node that the user chose serves them;
/// the sequencer must refuse them before it comes here.
pub const SIMULATION_READS: &[&str] = &["eth_call", "eth_createAccessList", "eth_estimateGas"];

/// Whether `method` is a read of public state that says nothing about what its caller is about to send.
pub fn is_public_read(method: &str) -> bool {
    PUBLIC_READS.contains(&method)
}

/// Whether [`crate::ExecutionClient::read`] passes `method` through.
pub(crate) fn passes_through(method: &str) -> bool {
    is_public_read(method) || SIMULATION_READS.contains(&method)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_pass_and_everything_else_does_not() {
        assert!(is_public_read("eth_getBalance"));
        assert!(!is_public_read("eth_call") && passes_through("eth_call"));
        for method in [
            "",
            "eth_sendRawTransaction",
            "eth_sendTransaction",
            "eth_newFilter",
            "engine_filterV1",
            "debug_setHead",
            "ETH_BLOCKNUMBER",
        ] {
            assert!(!passes_through(method), "{method}");
        }
    }
}
