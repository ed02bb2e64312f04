//! The scalar field F_r, r the order of G1, G2 and GT.

use blst::{blst_fr, blst_scalar};
use rand_core::CryptoRng;
use zeroize::{Zeroize, Zeroizing};

/// An element of F_r in Montgomery form. All operations but [`Scalar::pow`] run in constant time.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Scalar(blst_fr);

impl Zeroize for Scalar {
    fn zeroize(&mut self) {
        self.0.l.zeroize();
    }
}

impl Scalar {
    pub(crate) const ZERO: Self = Self(blst_fr { l: [0; 4] });

    pub(crate) fn one() -> Self {
        Self::from_u64(1)
    }

    pub(crate) fn from_u64(value: u64) -> Self {
        let limbs = [value, 0, 0, 0];
        let mut out = blst_fr::default();
        // SAFETY: `limbs` has the four 64-bit words that the function reads.
        unsafe { blst::blst_fr_from_uint64(&mut out, limbs.as_ptr()) };
        Self(out)
    }

    /// Reads 32 big-endian bytes; `None` unless the value is below r.
    pub(crate) fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
        let mut scalar = blst_scalar::default();
        // SAFETY: `bytes` has the 32 bytes that the function reads.
        unsafe { blst::blst_scalar_from_bendian(&mut scalar, bytes.as_ptr()) };
        // SAFETY: `scalar` is initialised.
        if !unsafe { blst::blst_scalar_fr_check(&scalar) } {
            return None;
        }
        Some(Self::from_blst(&scalar))
    }

    /// Interprets any number of big-endian bytes modulo r.
    pub(crate) fn reduce(bytes: &[u8]) -> Self {
        let mut scalar = blst_scalar::default();
        // The returned flag says whether the result is non-zero; zero is a valid residue here.
        // SAFETY: pointer and length describe the slice `bytes`.
        unsafe { blst::blst_scalar_from_be_bytes(&mut scalar, bytes.as_ptr(), bytes.len()) };
        Self::from_blst(&scalar)
    }

    pub(crate) fn random(rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        let mut wide = Zeroizing::new([0; 64]);
        rng.fill_bytes(&mut *wide);
        Self::reduce(&*wide)
    }

    fn from_blst(scalar: &blst_scalar) -> Self {
        let mut out = blst_fr::default();
        // SAFETY: both are initialised values of the declared types.
        unsafe { blst::blst_fr_from_scalar(&mut out, scalar) };
        Self(out)
    }

    /// The value as 32 little-endian bytes: the form in which `blst` takes multipliers. Wiped by `blst` on drop.
    pub(crate) fn to_blst(self) -> blst_scalar {
        let mut scalar = blst_scalar::default();
        // SAFETY: both are initialised values of the declared types.
        unsafe { blst::blst_scalar_from_fr(&mut scalar, &self.0) };
        scalar
    }

    pub(crate) fn to_le_bytes(self) -> [u8; 32] {
        self.to_blst().b
    }

    pub(crate) fn to_bytes(self) -> [u8; 32] {
        let mut bytes = self.to_le_bytes();
        bytes.reverse();
        bytes
    }

    /// The value as four 64-bit limbs, least significant first.
    pub(crate) fn to_limbs(self) -> [u64; 4] {
        let bytes = Zeroizing::new(self.to_le_bytes());
        std::array::from_fn(|i| {
            let mut limb = [0; 8];
            limb.copy_from_slice(&bytes[8 * i..8 * i + 8]);
            u64::from_le_bytes(limb)
        })
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        let mut out = blst_fr::default();
        // SAFETY: all three are initialised values of the declared type.
        unsafe { blst::blst_fr_add(&mut out, &self.0, &other.0) };
        Self(out)
    }

    pub(crate) fn sub(&self, other: &Self) -> Self {
        let mut out = blst_fr::default();
        // SAFETY: all three are initialised values of the declared type.
        unsafe { blst::blst_fr_sub(&mut out, &self.0, &other.0) };
        Self(out)
    }

    pub(crate) fn mul(&self, other: &Self) -> Self {
        let mut out = blst_fr::default();
        // SAFETY: all three are initialised values of the declared type.
        unsafe { blst::blst_fr_mul(&mut out, &self.0, &other.0) };
        Self(out)
    }

    pub(crate) fn neg(&self) -> Self {
        Self::ZERO.sub(self)
    }

    /// 1/self; 0 for 0.
    pub(crate) fn inverse(&self) -> Self {
        let mut out = blst_fr::default();
        // SAFETY: both are initialised values of the declared type.
        unsafe { blst::blst_fr_inverse(&mut out, &self.0) };
        Self(out)
    }

    /// self^exponent, the exponent in little-endian limbs and public.
    pub(crate) fn pow(&self, exponent: &[u64]) -> Self {
        let mut out = Self::one();
        for limb in exponent.iter().rev() {
            for bit in (0..64).rev() {
                out = out.mul(&out);
                if limb >> bit & 1 == 1 {
                    out = out.mul(self);
                }
            }
        }
        out
    }

    pub(crate) fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
}
