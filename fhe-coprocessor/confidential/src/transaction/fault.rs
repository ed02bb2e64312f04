//! Why bytes are no confidential transaction.

use blindfold_protocol::DecodeError;
use blindfold_rlwe::ring;

/// Why bytes are no confidential transaction; whoever made them is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTransaction {
    /// A field is cut, unknown, or followed by something.
    #[error(transparent)]
    Structure(#[from] DecodeError),
    /// A key or a ciphertext is not in its one form.
    #[error("{field}: {fault}")]
    Element {
        /// The field at which decoding failed.
        field: &'static str,
        /// What is wrong with it.
        fault: ring::DecodeError,
    },
    /// The commitment to a secret is no element of the proofs' field.
    #[error("the secret commitment is not below the order of the proofs' field: encode the reduced element")]
    SecretCommitment,
}
