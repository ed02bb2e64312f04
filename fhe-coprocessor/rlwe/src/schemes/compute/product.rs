//! Tables of the scheme: products, opening, slots.

use std::sync::Arc;

use zeroize::Zeroizing;

use super::ciphertext::bounded;
use super::{ComputeCiphertext, ComputeError, RelinearizationKey, Slots};
use crate::ring::{BasisConversion, Modulus, Ntt, Poly, Ring, Spectrum};
use crate::rlwe::{OpenError, Parameters, SecretKey};

/// The primes of P: 1 modulo 2^24, of 54 bits, and not among those of q.
const AUXILIARY: [u64; 3] = [18_014_398_190_714_881, 18_014_397_804_838_913, 18_014_397_737_730_049];

/// The scheme over one parameter set, with what products need.
///
/// The product of two ciphertexts is formed modulo q and modulo P = p_1·p_2·p_3 > 2·t·N·q, which holds
/// y = ⌊t·x/q⌉ exactly: with r = \[t·x\]_q centred, y = (t·x − r)/q modulo P.
#[derive(Debug)]
pub struct Compute {
    parameters: Arc<Parameters>,
    slots: Slots,
    auxiliary: Ring,
    to_auxiliary: BasisConversion,
    from_auxiliary: BasisConversion,
    to_plaintext: BasisConversion,
}

/// A polynomial modulo q and modulo P.
type Extended = (Spectrum, Spectrum);

impl Compute {
    /// Tables for a set. Costs O(N) products for each of seven primes.
    ///
    /// # Errors
    /// [`ComputeError::Set`].
    pub fn new(parameters: &Arc<Parameters>) -> Result<Self, ComputeError> {
        let literal = parameters.literal();
        let (ring, t) = (parameters.ring(), literal.plaintext_modulus);
        let own: Vec<Modulus> = ring.moduli().copied().collect();
        let one_width = own.iter().all(|modulus| modulus.bits() == own[0].bits());
        let apart = literal.primes.iter().all(|prime| !AUXILIARY.contains(prime));
        // 2·t·N·q ≤ 2^(1 + 20 + 15 + 108) < P.
        let narrow = parameters.modulus() >> 108 == 0 && t >> 20 == 0;
        if literal.used != literal.degree || !one_width || !apart || !narrow {
            return Err(ComputeError::Set);
        }
        let plaintext = Modulus::new(t).map_err(|_| ComputeError::Set)?;
        let slots = Slots(Ntt::new(plaintext, literal.degree).map_err(|_| ComputeError::Set)?);
        let auxiliary = Ring::new(literal.degree, &AUXILIARY).map_err(|_| ComputeError::Set)?;
        let other: Vec<Modulus> = auxiliary.moduli().copied().collect();
        Ok(Self {
            to_auxiliary: BasisConversion::new(&own, &other),
            from_auxiliary: BasisConversion::new(&other, &own),
            to_plaintext: BasisConversion::new(&own, &[plaintext]),
            parameters: Arc::clone(parameters),
            slots,
            auxiliary,
        })
    }

    /// The set of parameters that it was made under.
    #[must_use]
    pub const fn parameters(&self) -> &Arc<Parameters> {
        &self.parameters
    }

    /// Messages from numbers and back.
    #[must_use]
    pub const fn slots(&self) -> &Slots {
        &self.slots
    }

    /// x·y, relinearized. Costs, for k primes of q and three of P, 7·(k + 3) + k² + 2·k transforms and seven exact
    /// conversions of N integers from one basis to the other and three back.
    ///
    /// # Errors
    /// [`ComputeError::Parameters`], [`ComputeError::Kept`], [`ComputeError::Noise`].
    pub fn multiply(
        &self,
        x: &ComputeCiphertext,
        y: &ComputeCiphertext,
        key: &RelinearizationKey,
    ) -> Result<ComputeCiphertext, ComputeError> {
        key.check(&self.parameters)?;
        for operand in [x, y] {
            if *operand.parameters != *self.parameters {
                return Err(ComputeError::Parameters);
            }
            if operand.kept != self.parameters.degree() {
                return Err(ComputeError::Kept { kept: operand.kept });
            }
        }
        let noise = bounded(&self.parameters, self.noise_of_product(x.noise, y.noise))?;
        let [x0, x1, y0, y1] = [&x.c0, &x.c1, &y.c0, &y.c1].map(|poly| self.extend(poly));
        let mut cross = self.times(&x0, &y1);
        let second = self.times(&x1, &y0);
        self.parameters.ring().add_spectrum(&mut cross.0, &second.0);
        self.auxiliary.add_spectrum(&mut cross.1, &second.1);

        let mut c0 = self.scale_down(&self.times(&x0, &y0));
        let mut c1 = self.scale_down(&cross);
        let (b, a) = key.apply(&self.scale_down(&self.times(&x1, &y1)));
        self.parameters.ring().add_assign(&mut c0, &b);
        self.parameters.ring().add_assign(&mut c1, &a);
        Ok(ComputeCiphertext { parameters: Arc::clone(&self.parameters), c0, c1, kept: x.kept, noise })
    }

    /// The bound of the module's table; `None` if it does not fit 128 bits.
    fn noise_of_product(&self, x: u128, y: u128) -> Option<u128> {
        let degree = self.parameters.degree() as u128;
        let t = u128::from(self.parameters.literal().plaintext_modulus);
        let cross = (degree * (t * (degree + 1) + 1)).div_ceil(2).checked_mul(x.checked_add(y)?)?;
        let small = degree.checked_mul(x.min(y) / 2 + 1)?;
        let rounding = (t * (1 + degree + degree * degree)).div_ceil(2);
        let relinearization = RelinearizationKey::noise(&self.parameters)?;
        cross.checked_add(small)?.checked_add(rounding)?.checked_add(relinearization)
    }

    /// The centred integers of a polynomial modulo q, modulo P as well.
    fn extend(&self, poly: &Poly) -> Extended {
        (self.parameters.ring().forward(poly), self.auxiliary.forward(&self.convert(poly)))
    }

    fn convert(&self, poly: &Poly) -> Poly {
        let residues = self.to_auxiliary.convert(poly.residues());
        // Conversion reduces.
        self.auxiliary.from_residues(residues).unwrap_or_else(|| self.auxiliary.zero())
    }

    fn times(&self, x: &Extended, y: &Extended) -> Extended {
        let (mut own, mut other) = x.clone();
        self.parameters.ring().mul_assign(&mut own, &y.0);
        self.auxiliary.mul_assign(&mut other, &y.1);
        (own, other)
    }

    /// ⌊t·x/q⌉ modulo q.
    fn scale_down(&self, x: &Extended) -> Poly {
        let (ring, t) = (self.parameters.ring(), self.parameters.literal().plaintext_modulus);
        let remainder = self.convert(&times_constant(ring, &ring.inverse(&x.0), t));
        let mut quotient = times_constant(&self.auxiliary, &self.auxiliary.inverse(&x.1), t);
        self.auxiliary.sub_assign(&mut quotient, &remainder);
        let rows = quotient.residues().chunks(ring.degree()).zip(self.auxiliary.moduli());
        let divided: Vec<u64> = rows
            .flat_map(|(row, p)| {
                let q = (self.parameters.modulus() % u128::from(p.value())) as u64;
                let inverse = p.inverse(q);
                row.iter().map(move |&y| p.mul(y, inverse))
            })
            .collect();
        ring.from_residues(self.from_auxiliary.convert(&divided)).unwrap_or_else(|| ring.zero())
    }

    /// The message: the kept coefficients, centred modulo t, and the largest |W| among them. Costs two transforms for
    /// each prime and N conversions; its time depends on the outcome only.
    ///
    /// With r = \[t·(c0 + c1·s)\]_q centred, which is W, m = −r·q^(−1) modulo t.
    ///
    /// Do not let others learn whether ciphertexts of their choice open.
    ///
    /// # Errors
    /// [`ComputeError::Parameters`]; [`ComputeError::Open`] if W is beyond its bound: a wrong secret, or a ciphertext
    /// that was never one.
    pub fn open(
        &self,
        secret: &SecretKey,
        ciphertext: &ComputeCiphertext,
    ) -> Result<(Zeroizing<Vec<i64>>, u128), ComputeError> {
        let same = *ciphertext.parameters == *self.parameters
            && **secret.public_polynomial().parameters() == *self.parameters;
        if !same {
            return Err(ComputeError::Parameters);
        }
        let ring = self.parameters.ring();
        let mut phase = Zeroizing::new(ring.mul_small(&ring.forward(&ciphertext.c1), secret.coefficients()));
        ring.add_assign(&mut phase, &ciphertext.c0);
        let t = self.slots.0.modulus();
        let scaled = Zeroizing::new(times_constant(ring, &phase, t.value()));
        let noise = Zeroizing::new(self.to_plaintext.integers(scaled.residues()));
        let largest = noise[..ciphertext.kept].iter().fold(0, |largest, w| largest.max(w.unsigned_abs()));
        if largest > ciphertext.noise {
            return Err(OpenError::Beyond.into());
        }
        let factor = t.neg(t.inverse((self.parameters.modulus() % u128::from(t.value())) as u64));
        let remainders = Zeroizing::new(self.to_plaintext.convert(scaled.residues()));
        let message = remainders[..ciphertext.kept].iter().map(|&r| t.centre(t.mul(r, factor))).collect();
        Ok((Zeroizing::new(message), largest))
    }
}

/// constant·poly, for a constant below every prime.
fn times_constant(ring: &Ring, poly: &Poly, constant: u64) -> Poly {
    let rows = poly.residues().chunks(ring.degree()).zip(ring.moduli());
    let residues =
        rows.flat_map(|(row, modulus)| row.iter().map(move |&x| modulus.mul(x, constant))).collect();
    ring.from_residues(residues).unwrap_or_else(|| ring.zero())
}
