//! The convolution of [`crate::convolution`] in eight lanes. Elements lie in memory one by one; each step gathers
//! those it works on into lanes, whatever their places, so that no lane stays empty for the sake of a layout.

use super::kept;
use super::pairing::LaneLines;
use super::points::{self, PackedPoint, Points};
use super::target::{self, ONE12, Packed12, Powers, easy_parts};
use super::tower::Fp12;
use super::vector::{LANES, lanes};
use crate::convolution::{Budget, Domain, FixedSide};
use crate::curve::{G1Affine, G2Affine, Scalar};
use crate::digits::X;
use crate::par;

/// Points that one task multiplies: they share their field inversions.
const TASK_POINTS: usize = 1024;
/// Pairings that one task computes.
const TASK_PAIRINGS: usize = 64;
/// Exponentiations that one task computes, with one table of powers.
const TASK_POWERS: usize = 32;

/// What [`crate::convolution::convolve`] gives, at rest.
///
/// # Safety
/// The machine must support what [`super::Ifma::new`] tests.
pub(super) unsafe fn convolve(
    fixed: &FixedSide,
    budget: &Budget,
    inputs: &[G1Affine],
    release: Option<&G1Affine>,
) -> Vec<Packed12> {
    let domain = fixed.domain();
    let shape = domain.shape();
    assert!(inputs.len() <= shape.capacity(), "more inputs than the domain is made for");
    // SAFETY: by this function's contract.
    let values = unsafe { fold(domain, inputs, release) };
    // SAFETY: likewise.
    let values = unsafe { forward(domain, values) };
    // SAFETY: likewise.
    let mut values = unsafe { multiply(fixed, budget, &values) };
    // SAFETY: likewise.
    unsafe { back(domain, &mut values, inputs.len()) }
}

/// Consecutive pieces of whole vectors.
fn pieces<T: Send>(
    count: usize,
    most: usize,
    task: impl Fn(std::ops::Range<usize>) -> Vec<T> + Sync + Send,
) -> Vec<T> {
    par::pieces(count, most, LANES, task)
}

/// For each coset j, element l: Σ_q ζ^(j(l+qM))·slot_(l+qM).
unsafe fn fold(domain: &Domain, inputs: &[G1Affine], release: Option<&G1Affine>) -> Vec<PackedPoint> {
    let (shape, size) = (domain.shape(), domain.shape().size());
    let mut slots = vec![PackedPoint::INFINITE; 2 * size];
    // SAFETY: by this function's contract.
    let packed = unsafe { PackedPoint::pack(inputs) };
    for (position, point) in packed.iter().enumerate() {
        slots[shape.slot(position)] = *point;
    }
    if let Some(release) = release {
        // SAFETY: likewise.
        slots[shape.release_slot()] = unsafe { PackedPoint::pack(&[release.neg()]) }[0];
    }
    // SAFETY: likewise.
    let twisted = unsafe { PackedPoint::times_powers_of_zeta(&slots) };
    let twist = |coset: usize, slot: usize| &twisted[slot][shape.twist(coset, slot)];
    pieces(shape.points(), TASK_POINTS, |range| {
        let low: Vec<&PackedPoint> = range.clone().map(|i| twist(i / size, i % size)).collect();
        let high: Vec<&PackedPoint> = range.clone().map(|i| twist(i / size, i % size + size)).collect();
        if high.iter().all(|point| point.infinite) {
            return low.into_iter().copied().collect();
        }
        // SAFETY: likewise.
        unsafe { sum(&low, &high) }
    })
}

lanes! {
    fn sum(a: &[&PackedPoint], b: &[&PackedPoint]) -> Vec<PackedPoint> {
        let (mut a, mut b, count) = (Points::gather(a), Points::gather(b), a.len());
        a.butterfly(&mut b);
        a.to_packed(count)
    }

    /// (a + b, a − b) for each pair.
    fn butterflies(a: &[&PackedPoint], b: &[&PackedPoint]) -> Vec<[PackedPoint; 2]> {
        let (mut sums, mut differences, count) = (Points::gather(a), Points::gather(b), a.len());
        sums.butterfly(&mut differences);
        let pairs = sums.to_packed(count).into_iter().zip(differences.to_packed(count));
        pairs.map(|(sum, difference)| [sum, difference]).collect()
    }

    /// Each point times the scalar with its digits.
    fn multiples(points: &[&PackedPoint], mut digits: Vec<points::Digits>) -> Vec<PackedPoint> {
        digits.resize(points.len().next_multiple_of(LANES), [[0; _]; 2]);
        let mut products = Points::gather(points);
        products.multiply(&digits);
        products.to_packed(points.len())
    }
}

/// Radix 2, decimation in frequency, all cosets at once.
unsafe fn forward(domain: &Domain, mut values: Vec<PackedPoint>) -> Vec<PackedPoint> {
    let size = domain.shape().size();
    let twiddles: Vec<points::Digits> = domain.roots()[..size / 2].iter().map(points::digits).collect();
    let mut half = size / 2;
    while half > 0 {
        // Butterfly i joins two elements of block i mod `blocks`; the first ones of each block have no twiddle.
        let (blocks, stride) = (values.len() / (2 * half), size / (2 * half));
        let low = |i: usize| 2 * half * (i % blocks) + i / blocks;
        let results = pieces(values.len() / 2, TASK_POINTS, |range| {
            let a: Vec<&PackedPoint> = range.clone().map(|i| &values[low(i)]).collect();
            let b: Vec<&PackedPoint> = range.map(|i| &values[low(i) + half]).collect();
            // SAFETY: by this function's contract.
            unsafe { butterflies(&a, &b) }
        });
        for (i, [sum, difference]) in results.into_iter().enumerate() {
            values[low(i)] = sum;
            values[low(i) + half] = difference;
        }
        let results = pieces(values.len() / 2 - blocks, TASK_POINTS, |range| {
            let range = range.start + blocks..range.end + blocks;
            let points: Vec<&PackedPoint> = range.clone().map(|i| &values[low(i) + half]).collect();
            let digits = range.map(|i| twiddles[i / blocks * stride]).collect();
            // SAFETY: likewise.
            unsafe { multiples(&points, digits) }
        });
        for (i, product) in results.into_iter().enumerate() {
            values[low(i + blocks) + half] = product;
        }
        half /= 2;
    }
    values
}

/// The pairings with the fixed side, up to the hard part.
unsafe fn multiply(fixed: &FixedSide, budget: &Budget, values: &[PackedPoint]) -> Vec<Packed12> {
    // SAFETY: by this function's contract.
    let make = |points: &[G2Affine]| unsafe { LaneLines::new(points) };
    let kept = kept::lane_lines(fixed, budget, make);
    pieces(values.len(), TASK_PAIRINGS, |range| {
        let lines = |group: usize| {
            let points = fixed.points();
            make(&points[LANES * group..points.len().min(LANES * (group + 1))])
        };
        // SAFETY: likewise.
        unsafe {
            pairings(&values[range.clone()], |vector, with| {
                let group = range.start / LANES + vector;
                match kept {
                    Some(kept) => with(&kept[group]),
                    None => with(&lines(group)),
                }
            })
        }
    })
}

lanes! {
    fn pairings(points: &[PackedPoint], lines: impl Fn(usize, &mut dyn FnMut(&LaneLines))) -> Vec<Packed12> {
        let references: Vec<&PackedPoint> = points.iter().collect();
        let arguments = Points::gather(&references).arguments();
        let mut values = vec![Fp12::one(); arguments.len()];
        for (vector, argument) in arguments.iter().enumerate() {
            lines(vector, &mut |lines| values[vector] = lines.miller_loop(argument));
        }
        easy_parts(&mut values);
        let mut out = vec![ONE12; LANES * values.len()];
        for (value, out) in values.iter().zip(out.as_chunks_mut().0) {
            value.scatter(out.each_mut());
        }
        out.truncate(points.len());
        out
    }
}

/// One of the nodes of a split-radix transform: where its part begins, and the length of that part.
fn nodes(size: usize, start: usize, by_log_length: &mut [Vec<usize>]) {
    by_log_length[size.ilog2() as usize].push(start);
    if size > 2 {
        nodes(size / 2, start, by_log_length);
        nodes(size / 4, start + size / 2, by_log_length);
        nodes(size / 4, start + 3 * size / 4, by_log_length);
    }
}

/// The transforms in GT, in place, all cosets at once; then the cosets together.
unsafe fn back(domain: &Domain, values: &mut [Packed12], outputs: usize) -> Vec<Packed12> {
    let (shape, size) = (domain.shape(), domain.shape().size());
    let mut by_log_length = vec![Vec::new(); size.ilog2() as usize + 1];
    for coset in 0..shape.cosets {
        nodes(size, coset * size, &mut by_log_length);
    }
    let x = Scalar::from_u64(X).neg();
    let conjugate = x.mul(&x).mul(&x) != *domain.root(size / 4);
    // SAFETY: by this function's contract; only called from here.
    let fourth_root = |g: &Fp12| unsafe { fourth_root(g, conjugate) };
    let pairs: Vec<[usize; 2]> = by_log_length[1].iter().map(|start| [*start, start + 1]).collect();
    // SAFETY: by this function's contract.
    unsafe { in_place(values, &pairs, |[a, b]| [a.mul(&b), a.mul(&b.conjugate())]) };
    for (log_length, starts) in by_log_length.iter().enumerate().skip(2) {
        let quarter = 1usize << (log_length - 2);
        let stride = size >> log_length;
        // SAFETY: likewise.
        unsafe { twiddle(domain, values, quarter, stride, starts, &fourth_root) };
        let quads: Vec<[usize; 4]> = starts
            .iter()
            .flat_map(|start| {
                (0..quarter).map(move |k| std::array::from_fn(|block| start + k + block * quarter))
            })
            .collect();
        // SAFETY: likewise.
        unsafe {
            in_place(values, &quads, |[even, other, a, b]| {
                let sum = a.mul(&b);
                let difference = fourth_root(&a.mul(&b.conjugate()));
                [
                    even.mul(&sum),
                    other.mul(&difference),
                    even.mul(&sum.conjugate()),
                    other.mul(&difference.conjugate()),
                ]
            });
        }
    }
    pieces(outputs, TASK_PAIRINGS, |range| {
        // SAFETY: likewise.
        unsafe { join(domain, values, range) }
    })
}

/// An exponentiation by ω^exponent·i^turns, where i = ω^(M/4) costs nothing.
#[derive(Clone, Copy)]
struct Twiddle {
    exponent: usize,
    turns: usize,
    element: usize,
}

/// Raises element k of the third quarter of each node to ω^(k·stride), and that of the last quarter to ω^(3k·stride).
///
/// As many vectors as possible have one exponent in all lanes, which saves some fifteen products. Up to powers of i both
/// quarters of all nodes have the same exponents, since 3 is invertible modulo the length of a quarter.
unsafe fn twiddle(
    domain: &Domain,
    values: &mut [Packed12],
    quarter: usize,
    stride: usize,
    starts: &[usize],
    fourth_root: &(impl Fn(&Fp12) -> Fp12 + Sync),
) {
    let mut by_class = vec![Vec::with_capacity(2 * starts.len()); quarter];
    for k in 1..quarter {
        for (multiple, block) in [(k, 2), (3 * k, 3)] {
            let (class, turns) = (multiple % quarter, multiple / quarter);
            let place = |start: &usize| Twiddle {
                exponent: class * stride,
                turns,
                element: start + block * quarter + k,
            };
            by_class[class].extend(starts.iter().map(place));
        }
    }
    let (mut work, mut mixed) = (Vec::new(), Vec::new());
    for class in by_class {
        let (same, rest) = class.split_at(class.len() / LANES * LANES);
        work.extend_from_slice(same);
        mixed.extend_from_slice(rest);
    }
    work.append(&mut mixed);
    let results = pieces(work.len(), TASK_POWERS, |range| {
        // SAFETY: by this function's contract.
        unsafe { powers(domain, values, &work[range], fourth_root) }
    });
    for (twiddle, result) in work.iter().zip(results) {
        values[twiddle.element] = result;
    }
}

lanes! {
    /// g^i: the cube of the Frobenius map, or the inverse of that.
    fn fourth_root(g: &Fp12, conjugate: bool) -> Fp12 {
        let cube = g.frobenius(3);
        if conjugate { cube.conjugate() } else { cube }
    }

    fn powers(
        domain: &Domain,
        values: &[Packed12],
        work: &[Twiddle],
        fourth_root: &impl Fn(&Fp12) -> Fp12,
    ) -> Vec<Packed12> {
        let mut table = None;
        let mut out = vec![ONE12; work.len().next_multiple_of(LANES)];
        for (work, out) in work.chunks(LANES).zip(out.as_chunks_mut().0) {
            let at = |lane: usize| work.get(lane).unwrap_or(&work[0]);
            let base = Fp12::gather(std::array::from_fn(|lane| &values[at(lane).element]));
            let mut power = if work.iter().all(|twiddle| twiddle.exponent == work[0].exponent) {
                base.pow_same(domain.root(work[0].exponent))
            } else {
                let digits: [target::Digits; LANES] =
                    std::array::from_fn(|lane| target::digits(domain.root(at(lane).exponent)));
                base.pow_each(table.get_or_insert_with(Powers::new), digits.each_ref())
            };
            let turned = |turns: usize| {
                (0..LANES).fold(0, |mask, lane| mask | u8::from(at(lane).turns == turns) << lane)
            };
            let (once, twice) = (turned(1), turned(2));
            if once != 0 {
                power = fourth_root(&power).select(&power, once);
            }
            if twice != 0 {
                power = power.conjugate().select(&power, twice);
            }
            power.scatter(out.each_mut());
        }
        out.truncate(work.len());
        out
    }

    /// X_i = Π_j Y^(j)_(i mod M)^(ζ^(ji)) for i of a range.
    fn join(domain: &Domain, values: &[Packed12], range: std::ops::Range<usize>) -> Vec<Packed12> {
        let (shape, size) = (domain.shape(), domain.shape().size());
        let mut out = vec![ONE12; range.len().next_multiple_of(LANES)];
        for (chunk, out) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let index = |lane: usize| (range.start + LANES * chunk + lane).min(range.end - 1);
            let of = |coset: usize| {
                Fp12::gather(std::array::from_fn(|lane| &values[coset * size + index(lane) % size]))
            };
            let mut product = of(0);
            for coset in 1..shape.cosets {
                let plain = of(coset);
                let once = plain.frobenius(2).conjugate();
                let twice = once.frobenius(2).conjugate();
                let lanes = |power: usize| {
                    (0..LANES).fold(0, |mask, lane| {
                        mask | u8::from(shape.twist(coset, index(lane)) == power) << lane
                    })
                };
                let twisted = once.select(&twice.select(&plain, lanes(2)), lanes(1));
                product = product.mul(&twisted);
            }
            product.scatter(out.each_mut());
        }
        out.truncate(range.len());
        out
    }
}

/// Replaces the elements at each set of places by what `change` gives for them. Places are distinct.
unsafe fn in_place<const N: usize>(
    values: &mut [Packed12],
    places: &[[usize; N]],
    change: impl Fn([Fp12; N]) -> [Fp12; N] + Sync + Send,
) {
    let results = pieces(places.len(), TASK_PAIRINGS, |range| {
        // SAFETY: by this function's contract.
        unsafe { changed(values, &places[range], &change) }
    });
    for (places, results) in places.iter().zip(results) {
        for (place, result) in places.iter().zip(results) {
            values[*place] = result;
        }
    }
}

lanes! {
    /// What `change` gives for the elements at each set of places.
    fn changed<const N: usize>(
        values: &[Packed12],
        places: &[[usize; N]],
        change: &impl Fn([Fp12; N]) -> [Fp12; N],
    ) -> Vec<[Packed12; N]> {
        let mut out = vec![[ONE12; N]; places.len().next_multiple_of(LANES)];
        for (places, out) in places.chunks(LANES).zip(out.as_chunks_mut::<LANES>().0) {
            let at = |lane: usize| places.get(lane).unwrap_or(&places[0]);
            let elements =
                std::array::from_fn(|which| Fp12::gather(std::array::from_fn(|lane| &values[at(lane)[which]])));
            for (which, result) in change(elements).iter().enumerate() {
                result.scatter(out.each_mut().map(|lane| &mut lane[which]));
            }
        }
        out.truncate(places.len());
        out
    }
}
