//! Σ scalarᵢ·baseᵢ over a proving key, whose scalars are a witness's: many are 0, many are short, and many are equal
//! (values out of a small range, and the inverses that look-ups make of them).
//!
//! A scalar above r/2 is taken for its negative, the bases of equal scalars are added up first, and what is left goes to
//! buckets as wide as its scalars are.

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{BigInteger, PrimeField, Zero};
use zeroize::Zeroizing;

use crate::par;

/// Points whose sums `blst` makes.
pub(super) trait Buckets: AffineRepr {
    /// Σ pointᵢ.
    fn add_all(points: &[Self]) -> Self::Group;

    /// Σ scalarᵢ·pointᵢ for scalars of `bytes` bytes each, lowest first, one after the other.
    fn buckets(points: &[Self], scalars: &[u8], bytes: usize) -> Self::Group;
}

/// Bytes of short scalars, of middle ones (quotients and products of a circuit over small polynomials), and of all.
const WIDTHS: [usize; 3] = [2, 10, 32];

/// Fewest points on a thread.
const PIECE_MIN: usize = 1 << 10;

type Scalar<G> = <<G as AffineRepr>::ScalarField as PrimeField>::BigInt;

/// One product of the sum: absolute value and sign of the scalar, place of the base.
type Term<G> = (Scalar<G>, bool, u32);

pub(super) fn sum<G: Buckets>(bases: &[G], scalars: &[Scalar<G>]) -> G::Group {
    assert_eq!(bases.len(), scalars.len(), "a scalar for each base");
    let terms = terms::<G>(scalars);
    let base = |(_, negative, place): &Term<G>| {
        let base = bases[*place as usize];
        if *negative { (-base.into_group()).into_affine() } else { base }
    };
    let runs: Vec<&[Term<G>]> = terms.chunk_by(|one, other| one.0 == other.0).collect();
    let (single, equal): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| run.len() == 1);
    let added: Vec<G::Group> =
        par::map(equal.len(), |i| G::add_all(&equal[i].iter().map(base).collect::<Vec<G>>()));

    let mut points: Vec<G> = single.iter().map(|run| base(&run[0])).collect();
    points.extend(G::Group::normalize_batch(&added));
    let mut order: Vec<(&Scalar<G>, G)> = single
        .iter()
        .chain(&equal)
        .map(|run| &run[0].0)
        .zip(points)
        .filter(|(_, point)| !point.is_zero())
        .collect();
    order.sort_unstable_by_key(|(scalar, _)| scalar.num_bits());

    let mut total = G::Group::zero();
    let mut rest = &order[..];
    for bytes in WIDTHS {
        let (fitting, wider) =
            rest.split_at(rest.partition_point(|(s, _)| s.num_bits() as usize <= 8 * bytes));
        rest = wider;
        total += in_buckets(fitting, bytes);
    }
    total
}

/// What is not 0, by absolute value.
fn terms<G: AffineRepr>(scalars: &[Scalar<G>]) -> Zeroizing<Vec<Term<G>>> {
    let mut terms: Zeroizing<Vec<Term<G>>> = Zeroizing::new(Vec::with_capacity(scalars.len()));
    for (place, scalar) in scalars.iter().enumerate().filter(|(_, scalar)| !scalar.is_zero()) {
        let mut negative = G::ScalarField::MODULUS;
        negative.sub_with_borrow(scalar);
        let smaller = negative < *scalar;
        terms.push((if smaller { negative } else { *scalar }, smaller, place as u32));
    }
    terms.sort_unstable();
    terms
}

fn in_buckets<G: Buckets>(terms: &[(&Scalar<G>, G)], bytes: usize) -> G::Group {
    par::pieces(terms.len(), 1, PIECE_MIN, |range| {
        let terms = &terms[range];
        let mut scalars = Zeroizing::new(Vec::with_capacity(terms.len() * bytes));
        for (scalar, _) in terms {
            scalars.extend_from_slice(&Zeroizing::new(scalar.to_bytes_le())[..bytes]);
        }
        G::buckets(&terms.iter().map(|(_, point)| *point).collect::<Vec<G>>(), &scalars, bytes)
    })
    .into_iter()
    .fold(G::Group::zero(), |sum, part| sum + part)
}
