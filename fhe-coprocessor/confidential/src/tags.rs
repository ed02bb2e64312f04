//! Every domain tag of confidential balances, in one file.

/// First element of the Poseidon hash of a secret.
pub(crate) const SECRET_COMMITMENT: &[u8] = b"BLINDFOLD-V1-SECRET";
/// Identity and statements of the circuit of registrations.
pub(crate) const REGISTRATION: &[u8] = b"BLINDFOLD-V1-CONFIDENTIAL-REGISTRATION";
/// … of transfers.
pub(crate) const TRANSFER: &[u8] = b"BLINDFOLD-V1-CONFIDENTIAL-TRANSFER";
/// … of refreshes.
pub(crate) const REFRESH: &[u8] = b"BLINDFOLD-V1-CONFIDENTIAL-REFRESH";
/// … of withdrawals.
pub(crate) const WITHDRAWAL: &[u8] = b"BLINDFOLD-V1-CONFIDENTIAL-WITHDRAWAL";

/// `name` of the EIP-712 domain.
pub(crate) const EIP712_NAME: &str = "Blindfold Confidential";
/// `version` of the EIP-712 domain.
pub(crate) const EIP712_VERSION: &str = "1";
/// First byte under keccak256 for the leaf of an account.
pub(crate) const ACCOUNT_LEAF: u8 = 0x00;
/// First byte under keccak256 for a node of either tree.
pub(crate) const TREE_NODE: u8 = 0x01;
/// First byte under keccak256 for a state root.
pub(crate) const STATE_ROOT: u8 = 0x02;
/// First byte under keccak256 for the leaf of a public account.
pub(crate) const PUBLIC_LEAF: u8 = 0x03;
/// Seed of the weights of proofs that are verified together.
pub(crate) const BATCH_WEIGHTS: &[u8] = b"BLINDFOLD-V1-CONFIDENTIAL-WEIGHTS";
