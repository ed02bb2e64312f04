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
