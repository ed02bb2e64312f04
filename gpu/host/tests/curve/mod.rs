//! What the tests of curve kernels share: the kernels' memory layout, conversions to and from arkworks, seeds, digits.

#![allow(dead_code)] // each test file uses its part

use ark_bls12_381::{Fq, Fr, G1Affine, G1Projective, G2Affine};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, BigInt, BigInteger, PrimeField};
use blindfold_gpu as _; // links the emulated kernels
use rand_chacha::ChaCha20Rng;

use crate::common::{self, random_field};

/// The seed of every test here.
const SEED: u64 = 0x6b65_726e_656c_7331;

/// A generator with the fixed seed, which is printed (and seen when the test fails).
pub fn rng() -> ChaCha20Rng {
    common::random(SEED)
}

/// A random point of G1.
pub fn random_point(rng: &mut ChaCha20Rng) -> G1Projective {
    G1Affine::generator() * random_field::<Fr>(rng)
}

/// A random point of G2.
pub fn random_g2(rng: &mut ChaCha20Rng) -> G2Affine {
    (G2Affine::generator() * random_field::<Fr>(rng)).into_affine()
}

/// An element of F_p: Montgomery limbs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct RawFp(pub [u64; 6]);

impl From<Fq> for RawFp {
    fn from(a: Fq) -> Self {
        Self(a.0.0)
    }
}

impl RawFp {
    /// Panics unless the element is fully reduced.
    pub fn to_field(self) -> Fq {
        assert!(BigInt(self.0) < Fq::MODULUS, "not reduced: {:x?}", self.0);
        Fq::new_unchecked(BigInt(self.0))
    }
}

/// (x, y), (0, 0) the identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RawAffine(pub [RawFp; 2]);

impl From<G1Affine> for RawAffine {
    fn from(a: G1Affine) -> Self {
        a.xy().map_or(Self::default(), |(x, y)| Self([x.into(), y.into()]))
    }
}

/// (x : y : z), (0 : y : 0) the identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RawPoint(pub [RawFp; 3]);

impl RawPoint {
    /// The same point with another z; the identity as (0 : z : 0).
    pub fn scaled(a: G1Projective, z: Fq) -> Self {
        match a.into_affine().xy() {
            Some((x, y)) => Self([(x * z).into(), (y * z).into(), z.into()]),
            None => Self([Fq::ZERO.into(), z.into(), Fq::ZERO.into()]),
        }
    }

    /// Panics unless it is (0 : y : 0) with y ≠ 0 or a point of the curve.
    pub fn to_affine(self) -> G1Affine {
        let [x, y, z] = self.0.map(RawFp::to_field);
        if z == Fq::ZERO {
            assert!(x == Fq::ZERO && y != Fq::ZERO, "not an identity");
            return G1Affine::identity();
        }
        let point = G1Affine::new_unchecked(x / z, y / z);
        assert!(point.is_on_curve(), "off the curve");
        point
    }
}

/// An affine form that came from a kernel.
pub fn from_raw_affine(a: RawAffine) -> G1Affine {
    if a == RawAffine::default() {
        return G1Affine::identity();
    }
    G1Affine::new_unchecked(a.0[0].to_field(), a.0[1].to_field())
}

/// Points that the formulas must not treat differently, and random ones.
pub fn points(rng: &mut ChaCha20Rng, count: usize) -> Vec<G1Projective> {
    (0..count)
        .map(|i| match i % 8 {
            5 => G1Projective::ZERO,
            6 => G1Affine::generator().into(),
            7 => -G1Projective::from(G1Affine::generator()),
            _ => random_point(rng),
        })
        .collect()
}

/// 0, 1, r − 1, powers around the split of a scalar, and random ones.
pub fn scalars(rng: &mut ChaCha20Rng, count: usize) -> Vec<Fr> {
    let x_squared = Fr::from(X_SQUARED);
    let edges =
        [Fr::ZERO, Fr::from(1), -Fr::from(1), x_squared, -x_squared, x_squared - Fr::from(1), Fr::from(2)];
    (0..count).map(|i| edges.get(i).copied().unwrap_or_else(|| random_field(rng))).collect()
}

/// A scalar as the kernels read it: plain limbs, least significant first.
pub fn limbs(k: &Fr) -> [u32; 8] {
    let limbs = k.into_bigint().0;
    std::array::from_fn(|i| (limbs[i / 2] >> (32 * (i % 2))) as u32)
}

/// x², x the curve parameter.
pub const X_SQUARED: u128 = 0xac45_a401_0001_a402_0000_0001_0000_0000;

/// k = k₁ + k₂·x², both below x².
pub fn halves(k: &Fr) -> [u128; 2] {
    let (mut remainder, mut quotient) = (k.into_bigint(), 0u128);
    for bit in (0..128).rev() {
        // x²·2^bit, where that is below 2^256.
        let mut shifted = BigInt::<4>([X_SQUARED as u64, (X_SQUARED >> 64) as u64, 0, 0]);
        shifted <<= bit;
        if shifted <= remainder {
            remainder.sub_with_borrow(&shifted);
            quotient |= 1 << bit;
        }
    }
    [u128::from(remainder.0[0]) | u128::from(remainder.0[1]) << 64, quotient]
}

/// Binary positions of recoded scalars.
pub const POSITIONS: usize = 133;

/// Digits of each scalar, [scalar][position][half]: width-5 non-adjacent form (`odd`), or one at every fourth position.
pub fn recode(scalars: &[Fr], odd: bool) -> Vec<i8> {
    let mut digits = vec![0i8; scalars.len() * POSITIONS * 2];
    for (scalar, digits) in scalars.iter().zip(digits.chunks_mut(POSITIONS * 2)) {
        for (half, mut k) in halves(scalar).into_iter().enumerate() {
            let mut position = 0;
            while k > 0 {
                if !odd || k & 1 == 1 {
                    let width = if odd { 5 } else { 4 };
                    let low = (k & ((1 << width) - 1)) as i8;
                    let digit = if low > (1 << (width - 1)) { low - (1 << width) } else { low };
                    digits[2 * position + half] = digit;
                    k = k.wrapping_sub(digit as i128 as u128);
                }
                let step = if odd { 1 } else { 4 };
                k >>= step;
                position += step;
            }
        }
    }
    digits
}
