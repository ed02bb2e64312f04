//! What a node means by refusing a transaction: no standard has words for it, so each client has its own.

/// What a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// None: the node has this very transaction.
    Known,
    /// The account has transactions of the other kind in the pool, with blobs or without.
    OtherKind,
    /// The transaction offers too little, for the pool or to take another one's place.
    TooCheap,
    /// The account's nonce or ether, the room in the pool, or the node itself: it may pass.
    Passing,
    /// Anything else: the node takes no such transaction.
    Other,
}

/// The clients' words, in lower case; those that come first count. Whoever passes them on may put others around them.
const WORDS: &[(Refusal, &[&str])] = &[
    (
        Refusal::Known,
        &[
            "already known",     // Geth, Reth, Erigon, Nethermind
            "alreadyknown",      // Nethermind before it took over Geth's words
            "known transaction", // Besu
            "already imported",  // Anvil
        ],
    ),
    (
        Refusal::OtherKind,
        &[
            "address already reserved",                   // Geth, Reth
            "pending transaction type conflict",          // Nethermind
            "pendingtxsofconflictingtype",                // Nethermind before
            "can't replace blob-txn with a non-blob-txn", // Erigon
        ],
    ),
    (
        Refusal::TooCheap,
        &[
            "underpriced",                       // Geth, Reth, Besu, Erigon, Nethermind
            "gas price below",                   // Geth since 1.16, Besu
            "priority fee below minimum",        // Reth
            "replacementnotallowed",             // Nethermind before
            "feetoolow",                         // Nethermind before, FeeTooLowToCompete too
            "could not replace existing tx",     // Erigon
            "fee too low",                       // Erigon
            "insufficient gas price to replace", // Anvil
        ],
    ),
    (
        Refusal::Passing,
        &[
            "nonce",
            "insufficient",
            "balance",
            "base fee",
            "fee cap",        // an operator's bound on what RPC takes: Geth, Besu
            "configured cap", // Reth, likewise
            "is full",
            "account limit",
            "spammer", // Erigon
            "sync",
            "rate limit",
            "too many requests",
            "pool not enabled", // Besu while it syncs
        ],
    ),
];

impl Refusal {
    /// By the message of a JSON-RPC error: codes differ as much as words, and say less.
    pub fn of(message: &str) -> Self {
        let message = message.to_lowercase();
        let said = WORDS.iter().find(|(_, words)| words.iter().any(|words| message.contains(words)));
        said.map_or(Self::Other, |(refusal, _)| *refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_apart_by_the_words_of_each_client() {
        for (message, expected) in [
            ("already known", Refusal::Known),
            ("AlreadyKnown", Refusal::Known),
            ("Known transaction", Refusal::Known),
            ("Tx: [0x01] already Imported", Refusal::Known),
            ("Tx: [0x01] insufficient gas price to replace existing transaction", Refusal::TooCheap),
            ("insufficient funds for gas * price + value: balance 0", Refusal::Passing),
            ("InsufficientFunds, Balance is 1", Refusal::Passing),
            ("nonce too low: next nonce 4, tx nonce 3", Refusal::Passing),
            ("account limit exceeded: pooled 16 txs", Refusal::Passing),
            ("max fee per gas less than block base fee", Refusal::Passing),
            ("txpool is full", Refusal::Passing),
            ("tx fee (2.00 ether) exceeds the configured cap (1.00 ether)", Refusal::Passing),
            ("node is syncing", Refusal::Passing),
            ("transaction type not supported", Refusal::Other),
            ("NotSupportedTxType", Refusal::Other),
            ("unexpected blob sidecar version 1", Refusal::Other),
            ("too many blobs in transaction: have 6, permitted 3", Refusal::Other),
        ] {
            assert_eq!(Refusal::of(message), expected, "{message}");
        }
    }
}
