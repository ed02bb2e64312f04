//! What a node means by refusing a transaction: no standard has words for it, so each client has its own. And whether it takes
//! transactions with blobs at all.

use std::time::Duration;

use blindfold_runtime::Instant;

use crate::error::{L1Error, RPC_LIMIT_EXCEEDED, RPC_RESOURCE_UNAVAILABLE, SEND};

/// Transactions with blobs that are refused one after the other before a node counts as one that takes none.
const BLOB_REFUSALS: u32 = 3;
/// How long blobs are then left alone.
const BLOB_PAUSE_MS: u64 = 3_600_000;

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

/// Whether no such transaction is taken, whatever it offers and whenever it comes. Of what the server says of itself that is not
/// known, and neither is what became of a transaction without an answer.
pub(crate) fn refuses_such(fault: &L1Error) -> bool {
    match fault {
        L1Error::BlobsRefused { .. } => true,
        L1Error::Rpc { method, code, message } => {
            let is_own_trouble = matches!(*code, RPC_RESOURCE_UNAVAILABLE | RPC_LIMIT_EXCEEDED);
            method == SEND && !is_own_trouble && Refusal::of(message) == Refusal::Other
        }
        L1Error::Unanswered { cause, .. } => refuses_request(cause),
        _ => false,
    }
}

/// Whether a server in front of the node took no such request, for its length perhaps: the node was not given it.
pub(crate) fn refuses_request(cause: &L1Error) -> bool {
    matches!(cause, L1Error::HttpStatus { .. }) && !cause.is_transient()
}

/// Whether the node takes transactions with blobs, as far as it was given some (DC-5).
#[derive(Debug, Default)]
pub(crate) struct BlobRefusals {
    in_a_row: u32,
    until: Option<Instant>,
}

impl BlobRefusals {
    /// One was taken.
    pub fn taken(&mut self) {
        *self = Self::default();
    }

    /// One was refused for being one. True where blobs are left alone from now on.
    pub fn refused(&mut self, at: Instant) -> bool {
        self.in_a_row = self.in_a_row.saturating_add(1);
        let are_refused = self.in_a_row >= BLOB_REFUSALS;
        if are_refused {
            self.until = Some(at + Duration::from_millis(BLOB_PAUSE_MS));
        }
        are_refused
    }

    /// Whether they are left alone at this time.
    pub fn is_paused(&self, at: Instant) -> bool {
        self.until.is_some_and(|until| at < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule DC-5.
    #[test]
    fn blobs_are_left_alone_for_an_hour_after_three_refusals() {
        let began = blindfold_runtime::now();
        let after = |ms| began + Duration::from_millis(ms);
        let mut refusals = BlobRefusals::default();
        assert_eq!([0, 1].map(|ms| refusals.refused(after(ms))), [false, false]);
        assert!(!refusals.is_paused(after(2)));
        assert!(refusals.refused(after(2)));
        let end = 2 + BLOB_PAUSE_MS;
        assert!(refusals.is_paused(after(end - 1)) && !refusals.is_paused(after(end)));
        assert!(refusals.refused(after(end)), "one more is enough");
        assert!(refusals.is_paused(after(end + 1)));
        refusals.taken();
        assert!(!refusals.is_paused(after(end + 1)) && !refusals.refused(after(end + 1)));
    }

    #[test]
    fn what_may_pass_is_no_refusal_of_blobs() {
        let said =
            |code, message: &str| L1Error::Rpc { method: SEND.to_owned(), code, message: message.to_owned() };
        let answered = |status| L1Error::Unanswered {
            call: "post",
            transaction: Default::default(),
            cause: Box::new(L1Error::HttpStatus { method: SEND.to_owned(), status }),
        };
        for fault in [
            said(-32_000, "transaction type not supported"),
            said(-32_010, "NotSupportedTxType"),
            answered(413),
        ] {
            assert!(refuses_such(&fault), "{fault}");
        }
        for fault in [
            said(-32_000, "insufficient funds"),
            said(-32_005, "daily request count exceeded"),
            answered(429),
            answered(502),
            L1Error::refused("Paused"),
        ] {
            assert!(!refuses_such(&fault), "{fault}");
        }
    }

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
