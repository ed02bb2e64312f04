//! Every domain tag of this crate, once.

/// Session key mask: SHA-256(KEM ‖ ek^k).
pub(crate) const KEM: &[u8] = b"BLINDFOLD-V1-KEM";
/// Encryption randomness from the session key (Fujisaki–Okamoto).
pub(crate) const FO: &[u8] = b"BLINDFOLD-V1-FO";
/// Key stream of the message.
pub(crate) const STREAM: &[u8] = b"BLINDFOLD-V1-STREAM";
/// Challenge of the proof of knowledge.
pub(crate) const POK: &[u8] = b"BLINDFOLD-V1-POK";
/// Commitment randomness of a derived proof of knowledge: whoever opened the ciphertext computes it again.
pub(crate) const POK_DERIVED: &[u8] = b"BLINDFOLD-V1-POK-DERIVED";
/// The secret point at which the sums of a release start: local to the member, never recomputed by anyone else.
pub(crate) const RELEASE_BLIND: &[u8] = b"BLINDFOLD-V1-RELEASE-BLIND";
/// Hash of a parameter file.
pub(crate) const PARAMETERS: &[u8] = b"BLINDFOLD-V1-PARAMETERS";
/// Checksum of a table computed from parameters.
pub(crate) const TABLE: &[u8] = b"BLINDFOLD-V1-TABLE";
/// BLS signatures over 32-byte hashes (draft-irtf-cfrg-bls-signature, proof-of-possession scheme, signatures in G1).
pub(crate) const BLS_SIGNATURE: &[u8] = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";
/// Proofs of possession of a BLS key.
pub(crate) const BLS_POSSESSION: &[u8] = b"BLS_POP_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";
