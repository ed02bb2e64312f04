//! Points as bytes: one encoding each, checked for curve and subgroup.

use ark_ec::{AffineRepr, VariableBaseMSM};
use ark_ff::{PrimeField, Zero};
use ark_serialize::{Compress, Validate};

use crate::par;

/// Why bytes are not a point of the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PointError {
    /// Not the canonical encoding of a point on the curve.
    #[error("not the canonical encoding of a point on the curve")]
    Encoding,
    /// A point on the curve outside the group of prime order.
    #[error("outside the group of prime order")]
    Subgroup,
}

/// The compressed encoding.
pub(crate) fn compressed<G: AffineRepr>(point: &G) -> Vec<u8> {
    let mut out = Vec::with_capacity(point.compressed_size());
    write(&mut out, point, Compress::Yes);
    out
}

/// Appends an encoding; writing to memory cannot fail.
pub(crate) fn write<G: AffineRepr>(out: &mut Vec<u8>, point: &G, compress: Compress) {
    let written = point.serialize_with_mode(&mut *out, compress);
    debug_assert!(written.is_ok());
}

/// Length of a point's encoding.
pub(crate) fn size<G: AffineRepr>(compress: Compress) -> usize {
    G::zero().serialized_size(compress)
}

/// Reads a point of exactly [`size`] bytes; checked for encoding, curve and subgroup. A square root where compressed,
/// and a subgroup check.
pub(crate) fn read<G: AffineRepr>(bytes: &[u8], compress: Compress) -> Result<G, PointError> {
    let point = read_unchecked::<G>(bytes, compress)?;
    // Encodings that reduce or ignore bits decode to a point whose own encoding differs.
    let mut again = Vec::with_capacity(bytes.len());
    write(&mut again, &point, compress);
    if again != bytes {
        return Err(PointError::Encoding);
    }
    match point.check() {
        Ok(()) => Ok(point),
        Err(_) if compress == Compress::No && !on_curve(&point) => Err(PointError::Encoding),
        Err(_) => Err(PointError::Subgroup),
    }
}

/// The compressed encoding of a point determines the curve, the uncompressed one does not.
fn on_curve<G: AffineRepr>(point: &G) -> bool {
    read_unchecked::<G>(&compressed(point), Compress::Yes).as_ref() == Ok(point)
}

/// Reads a point whose bytes are known by their hash; neither curve nor subgroup is checked.
pub(crate) fn read_unchecked<G: AffineRepr>(bytes: &[u8], compress: Compress) -> Result<G, PointError> {
    G::deserialize_with_mode(bytes, compress, Validate::No).map_err(|_| PointError::Encoding)
}

/// Σ scalarsᵢ · basesᵢ on all threads. Variable time; zero scalars cost nothing, scalars of up to 8, 16, 32 and 64 bits
/// (or the negatives of such) as much less as they are shorter.
pub(crate) fn msm<G: AffineRepr>(
    bases: &[G],
    scalars: &[<G::ScalarField as PrimeField>::BigInt],
) -> G::Group {
    debug_assert_eq!(bases.len(), scalars.len());
    par::pieces(bases.len().min(scalars.len()), 1, 1 << 10, |range| {
        G::Group::msm_bigint(&bases[range.clone()], &scalars[range])
    })
    .into_iter()
    .fold(G::Group::zero(), |sum, part| sum + part)
}
