//! Every domain tag of the protocol, in one file.
//!
//! The scheme's own tags (`BLINDFOLD-V1-KEM`, `-FO`, `-STREAM`, `-POK`) and the BLS domain tags stand in
//! `blindfold-bte`. Everything else that is hashed or signed is separated either by one of the tags below or by the
//! EIP-712 type hash and domain (`eip712.rs`), which L1 recomputes.

/// `name` of the EIP-712 domain.
pub const DOMAIN_NAME: &str = "Blindfold";
/// `version` of the EIP-712 domain: the protocol's version.
pub const DOMAIN_VERSION: &str = "2";

/// Prefix of the hash that stands for batch number 0.
pub const GENESIS: &[u8] = b"BLINDFOLD-V2-GENESIS";
/// Prefix of the hash that becomes a block's prevRandao.
pub const RANDAO: &[u8] = b"BLINDFOLD-V2-RANDAO";
/// Prefix of the hash that turns a payer's signing key into the wallet secret mixed into session keys.
pub const WALLET_SECRET: &[u8] = b"BLINDFOLD-V1-WALLET-SECRET";

/// What the posting root of hints in blobs begins with, hashed: it is never that of hints in calldata.
pub const HINTS_IN_BLOBS: &[u8] = b"BLINDFOLD-V2-HINTS-IN-BLOBS";

/// First byte under keccak256 for a Merkle leaf.
pub const MERKLE_LEAF: u8 = 0x00;
/// First byte under keccak256 for a Merkle node.
pub const MERKLE_NODE: u8 = 0x01;
/// First byte under keccak256 for the place of an account in the fee ledger's tree.
pub const LEDGER_ACCOUNT: u8 = 0x00;
/// First byte under keccak256 for the place of a live fee nonce in the fee ledger's tree.
pub const LEDGER_NONCE: u8 = 0x01;
