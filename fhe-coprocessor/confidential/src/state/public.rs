//! Accounts of the public ledger.

use alloy_primitives::{Address, B256, Keccak256};

use crate::tags;

/// What an address has in the clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicAccount {
    /// Its place in the tree, in order of the first credit.
    pub index: u32,
    /// The balance, in base units.
    pub balance: u64,
    /// How many deposits it has made.
    pub nonce: u64,
}

impl PublicAccount {
    /// keccak256(0x03 ‖ address ‖ balance ‖ nonce).
    #[must_use]
    pub fn leaf(&self, address: &Address) -> B256 {
        let mut hash = Keccak256::new();
        hash.update([tags::PUBLIC_LEAF]);
        hash.update(address);
        hash.update(self.balance.to_be_bytes());
        hash.update(self.nonce.to_be_bytes());
        hash.finalize()
    }
}
