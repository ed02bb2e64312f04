//! Keys of the development network: derived from fixed words, so that every run and every document knows them.
//! They are public. Nothing of value may ever be sent to them.

use alloy_primitives::keccak256;
use blindfold_protocol::SigningKey;

/// Signs headers and promises, and pays for postings.
pub const SEQUENCER: &str = "sequencer";
/// Pays the ordering fees of the proxy's envelopes.
pub const PROXY: &str = "proxy";
/// Posts hints to L1 and locks its bond for them.
pub const HINT_PUBLISHER: &str = "hint-publisher";
/// Shows sequencers and members who the second hint publisher is, where there is one.
pub const SECOND_HINT_PUBLISHER: &str = "hint-publisher-2";
/// Shows sequencers that a gateway is theirs.
pub const GATEWAY: &str = "gateway";
/// Shows on L1 what the full node finds wrong there.
pub const WATCHER: &str = "watcher";

/// The key of a named party.
#[must_use]
pub fn named_key(name: &str) -> SigningKey {
    let seed = keccak256(format!("blindfold development network: {name}"));
    SigningKey::from_bytes(&seed.0).unwrap_or_else(|_| {
        // A hash is no key with probability 2^-128; then its hash is one.
        SigningKey::from_bytes(&keccak256(seed).0)
            .unwrap_or_else(|_| unreachable!("two hashes outside the group order"))
    })
}

/// The key of user account `index`, funded on both layers.
#[must_use]
pub fn account_key(index: usize) -> SigningKey {
    named_key(&format!("account {index}"))
}
