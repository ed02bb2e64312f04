//! That a ciphertext decrypts to a balance under a secret.
//!
//! With P = c1·s over the integers ([`FullProduct`]), for each limb j:
//!
//! c0_j + P_j − P_(N+j) = Δ·m_j + n_j + q·k_j, with −2^23 ≤ m_j < 2^23, −33·2^23 ≤ n_j < 33·2^23, |k_j| ≤ 2^15.
//!
//! All terms are below 2^70, so this holds over the integers. m_j is unique: were there m', n', k' as well, then
//! Δ·(m_j − m') + (n_j − n') = q·(k' − k_j), and the left side is at most Δ·(2^24 − 1) + 66·2^23 < Δ·2^24 ≤ q in absolute
//! value; so k' = k_j, and as 66·2^23 < Δ, m' = m_j and n' = n_j. A sum of at most 4096 fresh ciphertexts has noise of at
//! most 4096·16·(2N + 1) = 268,500,992 < 33·2^23 for N = 2048 and limbs below 2^20: its owner can prove it, and proves
//! nothing but its limbs. The balance is Σ m_j·2^(8j), below 2^80 in absolute value: an integer too.

use blindfold_groth16::{LinearCombination, Synthesis, SynthesisError, Variable};
use zeroize::Zeroizing;

use super::encryption::packing;
use super::lookup::Tables;
use super::polynomial::{FullProduct, QUOTIENT_BYTES, evaluate};
use crate::ring::NOISE_BOUND;
use crate::statement::Ciphertext;
use crate::{ERROR_BOUND, Fr, LIMBS, Ring};

/// Bytes of a centred limb: |m_j| < 2^23.
const LIMB_BYTES: usize = 3;
/// Bytes of the lower part of the noise; the upper part is looked up among errors, in [−16, 16].
const NOISE_LOW_BYTES: usize = 3;
const NOISE_HALF: i64 = 1 << (8 * NOISE_LOW_BYTES - 1);
const _: () = assert!(NOISE_BOUND == (2 * ERROR_BOUND as u64 + 1) * NOISE_HALF as u64);

/// A committed decryption.
pub(crate) struct Balance {
    pub(crate) product: FullProduct,
    pub(crate) limbs: Vec<Limb>,
    /// Σ m_j·2^(8j).
    pub(crate) sum: LinearCombination<Fr>,
    /// Its value.
    pub(crate) value: Option<Zeroizing<i128>>,
}

/// What is committed of one limb.
pub(crate) struct Limb {
    pub(crate) message: LinearCombination<Fr>,
    pub(crate) noise: LinearCombination<Fr>,
    pub(crate) quotient: LinearCombination<Fr>,
}

impl Balance {
    /// 2N − 1 variables without a range, 72 look-ups.
    pub(crate) fn commit(
        cs: &mut Synthesis<Fr>,
        tables: &mut Tables,
        ring: &Ring,
        witness: Option<(&Ciphertext, &[i8])>,
    ) -> Result<Self, SynthesisError> {
        let xs = witness.map(|(ciphertext, _)| [ciphertext.c1.coefficients()]);
        let product = witness.zip(xs.as_ref()).map(|((_, secret), xs)| (&xs[..], secret));
        let product = FullProduct::commit(cs, ring, packing(), product)?;
        let mut limbs = Vec::with_capacity(LIMBS);
        let mut sum = LinearCombination::zero();
        let mut value = witness.map(|_| Zeroizing::new(0i128));
        for j in 0..LIMBS {
            let exact = witness.zip(product.limb_value(0, j));
            let parts = exact
                .map(|((ciphertext, _), product)| Parts::of(i128::from(ciphertext.c0[j]) + product, ring));
            let part = |of: fn(&Parts) -> i64| parts.as_ref().map(of);
            let message = tables.signed(cs, part(|parts| parts.limb), LIMB_BYTES)?;
            let noise = noise(cs, tables, part(|parts| parts.noise))?;
            let quotient = tables.signed(cs, part(|parts| parts.quotient), QUOTIENT_BYTES)?;
            sum = sum + message.clone() * Fr::from(1u64 << (8 * j));
            if let (Some(value), Some(parts)) = (&mut value, &parts) {
                **value += i128::from(parts.limb) << (8 * j);
            }
            limbs.push(Limb { message, noise, quotient });
        }
        Ok(Self { product, limbs, sum, value })
    }

    /// The equations at τ, given s(τ), and [`crate::statement::Holding::derived`]. 2N + 7 rows.
    pub(crate) fn constrain(
        &self,
        cs: &mut Synthesis<Fr>,
        ring: &Ring,
        point: Variable,
        secret: LinearCombination<Fr>,
        [c1, c0]: [Variable; 2],
    ) -> Result<(), SynthesisError> {
        self.product.constrain(cs, point, c1, secret)?;
        let (delta, modulus) = (Fr::from(ring.delta()), Fr::from(ring.modulus()));
        let limbs = self.limbs.iter().enumerate().map(|(j, Limb { message, noise, quotient })| {
            message.clone() * delta + noise.clone() + quotient.clone() * modulus - self.product.limb(j)
        });
        let sum = evaluate(cs, &limbs.collect::<Vec<_>>(), point)?;
        cs.enforce(sum, Variable::ONE, c0)
    }
}

/// n = low + 2^24·high − 2^23 with 0 ≤ low < 2^24 and |high| ≤ 16: −33·2^23 ≤ n < 33·2^23.
fn noise(
    cs: &mut Synthesis<Fr>,
    tables: &mut Tables,
    value: Option<i64>,
) -> Result<LinearCombination<Fr>, SynthesisError> {
    let shifted = value.map(|value| value + NOISE_HALF);
    let low = shifted.map(|value| value.rem_euclid(2 * NOISE_HALF) as u64);
    let low = tables.unsigned(cs, low, NOISE_LOW_BYTES)?;
    let high = cs.witness(shifted.map(|value| Fr::from(value.div_euclid(2 * NOISE_HALF))))?;
    tables.errors.look_up(high);
    Ok(low + (Fr::from(2 * NOISE_HALF), high) - LinearCombination::constant(Fr::from(NOISE_HALF)))
}

/// Δ·limb + noise + q·quotient, the limb nearest. Wiped.
#[derive(zeroize::ZeroizeOnDrop)]
struct Parts {
    limb: i64,
    noise: i64,
    quotient: i64,
}

impl Parts {
    fn of(value: i128, ring: &Ring) -> Self {
        let (modulus, delta) = (i128::from(ring.modulus()), i128::from(ring.delta()));
        // Centred modulo q, then rounded to a multiple of Δ.
        let quotient = (value + modulus / 2).div_euclid(modulus);
        let centred = value - modulus * quotient;
        let limb = (centred + delta / 2).div_euclid(delta);
        let noise = centred - delta * limb;
        // All are far below 2^63: |value| < 2^69, and the rest are quotients by 2^29 and more.
        Self { limb: limb as i64, noise: noise as i64, quotient: quotient as i64 }
    }
}
