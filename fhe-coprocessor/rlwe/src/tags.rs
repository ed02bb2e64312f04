//! Every domain tag of this crate, once.

/// The public polynomials: a from the deployment's seed.
pub(crate) const PUBLIC: &[u8] = b"BLINDFOLD-V1-RLWE-PUBLIC";
/// The ternary secret, from the wallet's seed.
pub(crate) const SECRET: &[u8] = b"BLINDFOLD-V1-RLWE-SECRET";
/// The error of the public key, from the wallet's seed.
pub(crate) const KEY_ERROR: &[u8] = b"BLINDFOLD-V1-RLWE-KEY-ERROR";
/// Ephemeral secret and errors of one encryption, from a fresh seed and the message.
pub(crate) const ENCRYPTION: &[u8] = b"BLINDFOLD-V1-RLWE-ENCRYPTION";
/// Randomness of a use, from a secret, what it is for, and fresh bytes.
pub(crate) const HEDGE: &[u8] = b"BLINDFOLD-V1-RLWE-HEDGE";
/// The uniform halves of a relinearization key, from the public seed.
pub(crate) const RELINEARIZATION: &[u8] = b"BLINDFOLD-V1-RLWE-RELINEARIZATION";
/// The errors of a relinearization key, from the wallet's seed.
pub(crate) const RELINEARIZATION_ERROR: &[u8] = b"BLINDFOLD-V1-RLWE-RELINEARIZATION-ERROR";
/// What a mask adds to a result, from its own seed.
pub(crate) const MASK: &[u8] = b"BLINDFOLD-V1-RLWE-MASK";
