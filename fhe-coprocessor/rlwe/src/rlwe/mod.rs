//! Ring-LWE encryption over [`ring`](crate::ring): parameter sets, keys, encryption to several recipients, sums.
//!
//! With the public polynomial a, a ternary secret s, and errors of absolute value at most B (uniform):
//!
//! | | equation in R_q |
//! |---|---|
//! | public key | b = −a·s + e |
//! | ciphertext, once | c1 = a·u + e1 |
//! | for each recipient, used coefficients only | c0 = b·u + e0 + Δ·m, Δ = ⌊q/t⌋ |
//! | decryption | c0 + c1·s = Δ·m + n, n = e·u + e1·s + e0, ‖n‖∞ ≤ B·(2N + 1) |
//!
//! Source: Fan and Vercauteren, ePrint 2012/144, with the errors bounded and not Gaussian, because their bound is what
//! a proof shows. One u for several keys is the randomness reuse of Bellare, Boldyreva and Staddon (PKC 2003): the
//! ciphertexts are samples of one secret u under the uniform a, b_1, b_2 …
//!
//! Not guaranteed: chosen-ciphertext security (whoever sees which ciphertexts decrypt learns the secret), the
//! well-formedness of a ciphertext or of a key (that is what proofs are for), hiding of the counter.

mod ciphertext;
mod encryption;
mod hedge;
mod keys;
mod parameters;
mod sample;

pub use ciphertext::{Ciphertext, SumError};
pub use encryption::{EncryptError, EncryptionWitness, MAX_RECIPIENTS, MultiCiphertext};
pub use hedge::HedgedRng;
pub use keys::{KeyError, OpenError, Opening, PublicKey, PublicPolynomial, SEED_BYTES, SecretKey};
pub(crate) use keys::{pack_rows, row_bytes, uniform, unpack_poly, unpack_rows};
pub use parameters::{Parameters, ParametersError, ParametersLiteral};
pub(crate) use sample::Xof;
