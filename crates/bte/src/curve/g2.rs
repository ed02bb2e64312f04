//! G2: where the public parameters and verification keys live.

use blst::{BLST_ERROR, blst_p2, blst_p2_affine};

use super::g1::beta_power;
use super::{PointError, Scalar, point_error};

/// Bytes of [`G2Affine::serialize`].
pub(crate) const G2_SERIALIZED_BYTES: usize = 192;

/// A point in Jacobian coordinates.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct G2(pub(super) blst_p2);

/// A point in affine coordinates; the identity is (0, 0).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct G2Affine(pub(super) blst_p2_affine);

impl G2 {
    pub(crate) fn generator() -> Self {
        // SAFETY: the function returns the address of a constant that lives as long as the program.
        Self(unsafe { *blst::blst_p2_generator() })
    }

    pub(crate) fn is_identity(&self) -> bool {
        // SAFETY: the argument is an initialised point.
        unsafe { blst::blst_p2_is_inf(&self.0) }
    }

    /// Complete addition: right for equal, opposite and identity operands, too.
    pub(crate) fn add(&self, other: &Self) -> Self {
        let mut out = blst_p2::default();
        // SAFETY: all three are initialised points.
        unsafe { blst::blst_p2_add_or_double(&mut out, &self.0, &other.0) };
        Self(out)
    }

    /// Complete addition of an affine point.
    pub(crate) fn add_affine(&self, other: &G2Affine) -> Self {
        let mut out = blst_p2::default();
        // SAFETY: all three are initialised points.
        unsafe { blst::blst_p2_add_or_double_affine(&mut out, &self.0, &other.0) };
        Self(out)
    }

    pub(crate) fn double(&self) -> Self {
        let mut out = blst_p2::default();
        // SAFETY: both are initialised points.
        unsafe { blst::blst_p2_double(&mut out, &self.0) };
        Self(out)
    }

    pub(crate) fn neg(&self) -> Self {
        let mut out = *self;
        // SAFETY: the argument is an initialised point, changed in place.
        unsafe { blst::blst_p2_cneg(&mut out.0, true) };
        out
    }

    /// [k]·self in constant time (`blst` uses masked tables and the ψ endomorphism).
    pub(crate) fn mul(&self, k: &Scalar) -> Self {
        let scalar = k.to_blst();
        let mut out = blst_p2::default();
        // SAFETY: the scalar has the 32 bytes that 255 bits span.
        unsafe { blst::blst_p2_mult(&mut out, &self.0, scalar.b.as_ptr(), 255) };
        Self(out)
    }

    /// [ζ^power]·self, ζ = −x² a primitive cube root of unity in F_r: (β²x, y) for power 1; power at most 2. Two field
    /// products. Only for points of the subgroup.
    pub(crate) fn times_zeta(&self, power: usize) -> Self {
        let mut out = *self;
        if let Some(factor) = beta_power(2 * power % 3) {
            for coefficient in &mut out.0.x.fp {
                // SAFETY: all are initialised field elements; input and output may coincide.
                unsafe { blst::blst_fp_mul(coefficient, coefficient, factor) };
            }
        }
        out
    }

    /// Converts many points with one field inversion per thousand or so; identities are allowed.
    pub(crate) fn to_affine_batch(points: &[Self]) -> Vec<G2Affine> {
        let pointers: Vec<*const blst_p2> = points.iter().map(|p| &p.0 as *const _).collect();
        let mut out = vec![blst_p2_affine::default(); points.len()];
        if !points.is_empty() {
            // SAFETY: there are `points.len()` valid input pointers and as many output elements.
            unsafe { blst::blst_p2s_to_affine(out.as_mut_ptr(), pointers.as_ptr(), points.len()) };
        }
        out.into_iter().map(G2Affine).collect()
    }

    pub(crate) fn to_affine(self) -> G2Affine {
        let mut out = blst_p2_affine::default();
        // SAFETY: both are initialised points.
        unsafe { blst::blst_p2_to_affine(&mut out, &self.0) };
        G2Affine(out)
    }

    /// Σ scalarᵢ·pointᵢ in variable time; scalars are little-endian, N bytes each (16 for batch weights).
    pub(crate) fn multi_scalar<const N: usize>(points: &[G2Affine], scalars: &[[u8; N]]) -> Self {
        assert_eq!(points.len(), scalars.len(), "one scalar per point");
        let (mut point_refs, mut scalar_refs) = (Vec::new(), Vec::new());
        for (point, scalar) in points.iter().zip(scalars) {
            if !point.is_identity() {
                point_refs.push(&point.0 as *const blst_p2_affine);
                scalar_refs.push(scalar.as_ptr());
            }
        }
        let count = point_refs.len();
        let mut out = blst_p2::default();
        if count > 0 {
            // SAFETY: pure function of its argument.
            let scratch_bytes = unsafe { blst::blst_p2s_mult_pippenger_scratch_sizeof(count) };
            let mut scratch = vec![0u64; scratch_bytes.div_ceil(8)];
            // SAFETY: `count` valid pointers each to points and to N-byte scalars, and the scratch space asked for.
            unsafe {
                blst::blst_p2s_mult_pippenger(
                    &mut out,
                    point_refs.as_ptr(),
                    count,
                    scalar_refs.as_ptr(),
                    (8 * N).min(255),
                    scratch.as_mut_ptr(),
                );
            }
        }
        Self(out)
    }
}

impl From<&G2Affine> for G2 {
    fn from(point: &G2Affine) -> Self {
        let mut out = blst_p2::default();
        // SAFETY: both are initialised points.
        unsafe { blst::blst_p2_from_affine(&mut out, &point.0) };
        Self(out)
    }
}

impl G2Affine {
    pub(crate) fn generator() -> Self {
        // SAFETY: the function returns the address of a constant that lives as long as the program.
        Self(unsafe { *blst::blst_p2_affine_generator() })
    }

    pub(crate) fn is_identity(&self) -> bool {
        // SAFETY: the argument is an initialised point.
        unsafe { blst::blst_p2_affine_is_inf(&self.0) }
    }

    pub(crate) fn neg(&self) -> Self {
        let mut out = *self;
        for coefficient in &mut out.0.y.fp {
            // SAFETY: an initialised field element, which input and output may both be; −0 is 0.
            unsafe { blst::blst_fp_cneg(coefficient, coefficient, true) };
        }
        out
    }

    /// Decodes a canonical compressed point of the subgroup; the identity is accepted.
    pub(crate) fn decode(bytes: &[u8; 96]) -> Result<Self, PointError> {
        let mut point = blst_p2_affine::default();
        // SAFETY: `bytes` has the 96 bytes that the function reads.
        match unsafe { blst::blst_p2_uncompress(&mut point, bytes.as_ptr()) } {
            BLST_ERROR::BLST_SUCCESS => {}
            code => return Err(point_error(code)),
        }
        // SAFETY: `point` is on the curve.
        if !unsafe { blst::blst_p2_affine_in_g2(&point) } {
            return Err(PointError::NotInSubgroup);
        }
        Ok(Self(point))
    }

    /// x and y in full, 192 bytes: for files of our own, which are read back without a square root for each point.
    pub(crate) fn serialize(&self) -> [u8; G2_SERIALIZED_BYTES] {
        let mut out = [0; G2_SERIALIZED_BYTES];
        // SAFETY: `out` has the 192 bytes that the function writes.
        unsafe { blst::blst_p2_affine_serialize(out.as_mut_ptr(), &self.0) };
        out
    }

    /// Reads what [`G2Affine::serialize`] wrote and checks that the point is on the curve. The **subgroup is not
    /// checked**; the identity is accepted.
    pub(crate) fn deserialize(bytes: &[u8; G2_SERIALIZED_BYTES]) -> Result<Self, PointError> {
        const COMPRESSED: u8 = 0x80;
        if bytes[0] & COMPRESSED != 0 {
            return Err(PointError::NotCanonical); // the function below would read it as half as long
        }
        let mut point = blst_p2_affine::default();
        // SAFETY: `bytes` has the 192 bytes that the function reads.
        match unsafe { blst::blst_p2_deserialize(&mut point, bytes.as_ptr()) } {
            BLST_ERROR::BLST_SUCCESS => Ok(Self(point)),
            code => Err(point_error(code)),
        }
    }

    pub(crate) fn encode(&self) -> [u8; 96] {
        let mut out = [0; 96];
        // SAFETY: `out` has the 96 bytes that the function writes.
        unsafe { blst::blst_p2_affine_compress(out.as_mut_ptr(), &self.0) };
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endomorphism_is_multiplication_by_a_cube_root_of_unity() {
        let x = Scalar::from_u64(crate::digits::X);
        let point = G2::generator().mul(&Scalar::from_u64(77));
        for power in 0..3 {
            assert!(point.times_zeta(power) == point.mul(&x.mul(&x).neg().pow(&[power as u64])));
            assert!(G2::default().times_zeta(power).is_identity());
        }
    }

    #[test]
    fn serialized_points_come_back_and_others_are_refused() {
        for point in [G2::default(), G2::generator(), G2::generator().mul(&Scalar::from_u64(3))] {
            let bytes = point.to_affine().serialize();
            assert!(G2Affine::deserialize(&bytes) == Ok(point.to_affine()));
            let mut compressed = bytes;
            compressed[0] |= 0x80;
            assert_eq!(G2Affine::deserialize(&compressed).err(), Some(PointError::NotCanonical));
            let mut changed = bytes;
            changed[191] ^= 1;
            assert!(G2Affine::deserialize(&changed).is_err());
        }
        let generator = G2Affine::generator().serialize();
        let mut compressed = [0; G2_SERIALIZED_BYTES];
        compressed[..96].copy_from_slice(&G2Affine::generator().encode());
        assert_eq!(G2Affine::deserialize(&compressed).err(), Some(PointError::NotCanonical));
        assert_eq!(G2Affine::deserialize(&[0xff; 192]).err(), Some(PointError::NotCanonical));
        let mut off = generator;
        off[191] ^= 1;
        assert_eq!(G2Affine::deserialize(&off).err(), Some(PointError::NotOnCurve));
        let mut large = generator;
        large[..48].copy_from_slice(&[0x1f; 48]);
        assert_eq!(G2Affine::deserialize(&large).err(), Some(PointError::NotCanonical));
    }
}
