//! Every domain tag of this crate, once.

/// The challenges from statement, key and commitment.
pub(crate) const CHALLENGE: &[u8] = b"BLINDFOLD-V1-GROTH16-CHALLENGE";
/// Hash of a constraint system.
pub(crate) const CIRCUIT: &[u8] = b"BLINDFOLD-V1-GROTH16-CIRCUIT";
/// Which curve a file is for.
pub(crate) const CURVE: &[u8] = b"BLINDFOLD-V1-GROTH16-CURVE";
/// Hash of a verifying key.
pub(crate) const VERIFYING_KEY: &[u8] = b"BLINDFOLD-V1-GROTH16-VK";
/// Hash of a proving key.
pub(crate) const PROVING_KEY: &[u8] = b"BLINDFOLD-V1-GROTH16-PK";
/// The weight that joins the two equations of one proof.
pub(crate) const WEIGHT: &[u8] = b"BLINDFOLD-V1-GROTH16-WEIGHT";
/// The base of the commitment's blinding, hashed to the curve.
pub(crate) const BLINDING_BASE: &[u8] = b"BLINDFOLD-V1-GROTH16-BLINDING-BASE";
/// Secrets of the development set-up from a seed.
pub(crate) const DEVELOPMENT: &[u8] = b"BLINDFOLD-V1-GROTH16-DEVELOPMENT";
/// Hash of the powers of tau.
pub(crate) const POWERS: &[u8] = b"BLINDFOLD-V1-GROTH16-POWERS";
/// Start of a set-up transcript's hash.
pub(crate) const TRANSCRIPT: &[u8] = b"BLINDFOLD-V1-GROTH16-TRANSCRIPT";
/// One more contribution in a set-up transcript's hash.
pub(crate) const CONTRIBUTION: &[u8] = b"BLINDFOLD-V1-GROTH16-CONTRIBUTION";
/// Challenge of a contribution's proof of knowledge.
pub(crate) const KNOWLEDGE: &[u8] = b"BLINDFOLD-V1-GROTH16-KNOWLEDGE";
/// Secrets of the contribution made from a public beacon.
pub(crate) const BEACON: &[u8] = b"BLINDFOLD-V1-GROTH16-BEACON";
