//! Numbers to be multiplied: BFV with one product of ciphertexts.
//!
//! A ciphertext (c0, c1) of m is judged by its **scaled noise** W = t·(c0 + c1·s) − q·m, an integer modulo q·t, and
//! decrypts if |W| < q/2. Every ciphertext carries a bound of W that holds in the worst case, computed in integers:
//!
//! | | bound of W |
//! |---|---|
//! | fresh (errors ≤ B, c0 = … + Δ·m, ρ = q mod t) | t·B·(2N + 1) + ρ·t/2 |
//! | sum, difference | W_1 + W_2 |
//! | product | N·(t·(N + 1) + 1)/2·(W_1 + W_2) + N·(min(W_1, W_2)/2 + 1) + t·(1 + N + N²)/2 + relinearization |
//! | relinearization, digits of w = 27 bits | t·Σ_i N·B·2^w |
//! | mask | all that is left: below q/2 |
//!
//! For the product, write t·x_i = q·M_i + W_i with x_i = c_i0 + c_i1·s over the integers, centred coefficients: then
//! ‖M_i‖ ≤ (t·(N + 1) + 1)/2, and t/q·x_1·x_2 = (q·M_1·M_2 + M_1·W_2 + M_2·W_1 + W_1·W_2/q)/t; rounding the three
//! parts adds at most (1 + N + N²)/2. For `compute` a product of fresh ciphertexts has W < 2^74 of q/2 ≈ 2^107, so
//! 2^32 products may be summed, and a second product is refused.
//!
//! Rounding is exact (no approximate base extension), so results are the same bytes on every executor.
//!
//! Sources: Brakerski, ePrint 2012/078; Fan and Vercauteren, ePrint 2012/144 (relinearization version 1, with halves
//! of the residues as digits, after Bajard, Eynard, Hasan and Zucca, ePrint 2016/510). The relinearization key encrypts s²
//! under s: circular security is assumed. That encryptions are well formed is **not** proved in this profile.

mod ciphertext;
mod mask;
mod product;
mod relinearization;
mod slots;

pub use ciphertext::{ComputeCiphertext, ComputeError};
pub use product::Compute;
pub use relinearization::RelinearizationKey;
pub use slots::{Slots, SlotsError};
