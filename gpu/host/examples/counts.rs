//! Counts what a device executes for one batch, from the plans and recodings that the backend itself uses, as JSON for
//! `scripts/gpu-bounds`. Batches are powers of two, given as arguments.
//!
//! For each launch: warps, and summed over them how often each call in the kernel is executed (by function, its calls in
//! the order of the source) and how often each loop's body (in the order of the loops' heads).

use ark_bls12_381::Fr;
use ark_ff::{FftField, Field, PrimeField};
use blindfold_bte::accelerator::{Shape, Twiddle};
use blindfold_gpu::digits::{Form, HALVES, POSITIONS, point_digits};
use blindfold_gpu::exponents::{self, DIGITS, NAF_ENTRIES, WINDOW_ENTRIES};
use blindfold_gpu::{Limits, split_radix};

/// Threads of a warp, and the elements of F_p12 it holds.
const WARP_THREADS: usize = 32;
const WARP_ELEMENTS: usize = 5;
/// Multiprocessors of the device that scripts/gpu-bounds reckons with.
const PROCESSORS: usize = 132;
/// Elements that a thread of `InvertAll` takes.
const INVERTED_TOGETHER: usize = 16;
/// Of a Miller loop and of an exponentiation by x: squarings, and products with lines or with the base.
const MILLER_SQUARINGS: usize = 62;
const MILLER_LINES: usize = 68;
const X_SQUARINGS: usize = 63;
const X_PRODUCTS: usize = 5;
/// Exponentiations by x of a hard part.
const HARD_POWERS: usize = 5;

/// One launch of a kernel, counted over all its warps.
struct Launch {
    kernel: &'static str,
    warps: usize,
    calls: Vec<(&'static str, Vec<usize>)>,
    loops: Vec<usize>,
}

impl Launch {
    /// A kernel of which all warps do the same.
    fn uniform(
        kernel: &'static str,
        warps: usize,
        calls: &[(&'static str, &[usize])],
        loops: &[usize],
    ) -> Self {
        let times = |counts: &[usize]| counts.iter().map(|count| count * warps).collect();
        let calls = calls.iter().map(|(name, counts)| (*name, times(counts))).collect();
        Self { kernel, warps, calls, loops: times(loops) }
    }

    fn json(&self) -> String {
        let calls: Vec<String> =
            self.calls.iter().map(|(name, counts)| format!("\"{name}\":{counts:?}")).collect();
        let (kernel, warps, loops) = (self.kernel, self.warps, &self.loops);
        format!(
            "{{\"kernel\":\"{kernel}\",\"warps\":{warps},\"calls\":{{{}}},\"loops\":{loops:?}}}",
            calls.join(",")
        )
    }
}

fn threads(items: usize) -> usize {
    items.div_ceil(WARP_THREADS)
}

fn elements(items: usize) -> usize {
    items.div_ceil(WARP_ELEMENTS)
}

/// ω^i for 0 ≤ i < M.
fn twiddles(size: usize) -> Vec<Twiddle> {
    let root = Fr::get_root_of_unity(size as u64).expect("lengths are powers of two");
    let powers = std::iter::successors(Some(Fr::ONE), |power| Some(*power * root)).take(size);
    powers.map(|power| Twiddle::of(&power.into_bigint().0).expect("an element of F_r")).collect()
}

/// The butterflies of a level of the point transform, as `transform::PointLevel` walks them.
fn point_level(shape: Shape, half: usize, twiddles: &[Twiddle]) -> Launch {
    let (items, blocks) = (shape.points() / 2, shape.points() / (2 * half));
    let shares = blocks >= WARP_THREADS; // as in domain.rs
    let digits =
        point_digits(&twiddles[..shape.size() / 2], if shares { Form::Sparse } else { Form::Aligned });
    let (mut multiplied, mut additions) = (0, [0; HALVES]);
    for warp in 0..threads(items) {
        let places = |item: usize| item / blocks;
        let (first, last) = (places(warp * WARP_THREADS), places((items - 1).min(warp * 32 + 31)));
        let scalars: Vec<usize> =
            (first.max(1)..=last).map(|place| place * (shape.size() / (2 * half))).collect();
        multiplied += usize::from(!scalars.is_empty());
        for position in 0..POSITIONS {
            for (which, count) in additions.iter_mut().enumerate() {
                let digit = |scalar: &usize| digits[(scalar * POSITIONS + position) * HALVES + which] != 0;
                *count += usize::from(scalars.iter().any(digit));
            }
        }
    }
    let warps = threads(items);
    let table = if shares { multiplied } else { 0 };
    let mut adds = vec![warps, warps];
    adds.extend([multiplied; 7]);
    adds.extend(additions);
    let doublings = multiplied * POSITIONS;
    Launch {
        kernel: "transform::PointLevel",
        warps,
        calls: vec![("g1::add", adds), ("g1::twice", vec![table, doublings])],
        loops: vec![doublings],
    }
}

/// The same in lanes, as `transform::PointLevelInLanes` walks them.
fn point_level_in_lanes(shape: Shape, half: usize, twiddles: &[Twiddle]) -> Launch {
    let (items, blocks) = (shape.points() / 2, shape.points() / (2 * half));
    let shares = blocks >= WARP_ELEMENTS; // as in domain.rs
    let digits =
        point_digits(&twiddles[..shape.size() / 2], if shares { Form::Sparse } else { Form::Aligned });
    let (mut multiplied, mut doublings, mut additions) = (0, 0, 0);
    for warp in 0..elements(items) {
        let first = warp * WARP_ELEMENTS;
        let places = first / blocks..=(first + WARP_ELEMENTS - 1).min(items - 1) / blocks;
        if *places.end() == 0 {
            continue;
        }
        multiplied += 1;
        let scalars: Vec<usize> = places.map(|place| place * (shape.size() / (2 * half))).collect();
        let any =
            |place: usize| scalars.iter().any(|scalar| digits[scalar * POSITIONS * HALVES + place] != 0);
        let walked: Vec<usize> = (0..POSITIONS * HALVES).filter(|place| any(*place)).collect();
        // The first digit starts the sum.
        doublings += walked.last().map_or(0, |place| place / HALVES);
        additions += walked.len().saturating_sub(1);
    }
    let warps = elements(items);
    let table = if shares { multiplied } else { 0 };
    Launch {
        kernel: "transform::PointLevelInLanes",
        warps,
        calls: vec![
            ("g1_lanes::add", vec![warps, warps, 7 * multiplied, additions]),
            ("g1_lanes::twice", vec![table, doublings]),
        ],
        loops: [8, POSITIONS, POSITIONS * HALVES].map(|count| count * multiplied).to_vec(),
    }
}

/// The powers of a level of the target transform, a digit of an exponent to a group, as `DigitPowers` and `JoinPowers`
/// compute them.
fn digit_powers(level: &split_radix::Level, twiddles: &[Twiddle]) -> [Launch; 2] {
    let shares = level.starts.len() >= WARP_ELEMENTS; // as in domain.rs
    let (entries, recode): (_, fn([u64; DIGITS]) -> _) =
        if shares { (NAF_ENTRIES, exponents::naf) } else { (WINDOW_ENTRIES, exponents::windows) };
    let jobs = level.twiddles.len();
    let (mut squarings, mut products, warps) = (0, 0, elements(DIGITS * jobs));
    let (mut odd_maps, mut even_maps) = (0, 0);
    let items: Vec<usize> = (0..DIGITS * jobs).collect();
    for items in items.chunks(WARP_ELEMENTS) {
        let mut any = [false; exponents::POSITIONS];
        for item in items {
            let [_, exponent] = level.twiddles[item % jobs];
            for (any, word) in any.iter_mut().zip(recode(twiddles[exponent as usize].digits)) {
                *any |= word.to_le_bytes()[item / jobs] != 0;
            }
        }
        let digits = items[0] / jobs..=items[items.len() - 1] / jobs;
        odd_maps += usize::from(digits.clone().any(|digit| digit % 2 == 1));
        even_maps += usize::from(digits.clone().any(|digit| digit == 2));
        squarings += any.iter().rposition(|code| *code).unwrap_or(0);
        products += any.iter().filter(|code| **code).count().saturating_sub(1);
    }
    let entries = entries as usize;
    let powers = Launch {
        kernel: "DigitPowers",
        warps,
        calls: vec![
            ("gt::cyclotomic_square", vec![usize::from(shares) * warps, squarings]),
            ("gt::mul", vec![(entries - 1) * warps, products]),
            ("gt::frobenius_odd", vec![entries * odd_maps]),
            ("gt::frobenius_2", vec![entries * even_maps]),
        ],
        loops: [entries, exponents::POSITIONS].map(|count| count * warps).to_vec(),
    };
    let more = DIGITS - 1;
    [powers, Launch::uniform("JoinPowers", elements(jobs), &[("gt::mul", &[more])], &[more])]
}

/// The powers of a level of the target transform, as `Powers` computes them.
fn powers(level: &split_radix::Level, twiddles: &[Twiddle]) -> Launch {
    let shares = level.starts.len() >= WARP_ELEMENTS; // as in domain.rs
    let (entries, recode): (_, fn([u64; DIGITS]) -> _) =
        if shares { (NAF_ENTRIES, exponents::naf) } else { (WINDOW_ENTRIES, exponents::windows) };
    let (mut squarings, mut products, warps) = (0, 0, elements(level.twiddles.len()));
    for jobs in level.twiddles.chunks(WARP_ELEMENTS) {
        let mut any = [0; exponents::POSITIONS];
        for [_, exponent] in jobs {
            for (any, word) in any.iter_mut().zip(recode(twiddles[*exponent as usize].digits)) {
                *any |= word;
            }
        }
        let codes = |word: &u32| word.to_le_bytes().iter().filter(|code| **code != 0).count();
        // The first factor starts the product.
        squarings += any.iter().rposition(|word| *word != 0).unwrap_or(0);
        products += any.iter().map(codes).sum::<usize>().saturating_sub(1);
    }
    let entries = entries as usize;
    Launch {
        kernel: "Powers",
        warps,
        calls: vec![
            ("gt::cyclotomic_square", vec![usize::from(shares) * warps, squarings]),
            ("gt::mul", vec![(entries - 1) * warps, products]),
            ("gt::frobenius_odd", vec![2 * entries * warps]),
            ("gt::frobenius_2", vec![entries * warps]),
        ],
        loops: [entries, DIGITS * entries, exponents::POSITIONS, DIGITS * exponents::POSITIONS]
            .map(|count| count * warps)
            .to_vec(),
    }
}

/// Miller loops and easy parts of so many pairs, with the inversions.
fn pairings(count: usize) -> Vec<Launch> {
    let calls: &[(_, &[usize])] = &[
        ("gt::square", &[MILLER_SQUARINGS, 1]),
        ("gt::mul_line", &[MILLER_LINES]),
        ("gt::mul", &[1; 5]),
        ("gt::frobenius_2", &[1; 3]),
    ];
    vec![
        Launch::uniform("MillerLoops", elements(count), calls, &[MILLER_SQUARINGS + 1, MILLER_LINES]),
        Launch::uniform(
            "InvertAll",
            threads(count.div_ceil(INVERTED_TOGETHER)),
            &[("fp::pow", &[1])],
            &[INVERTED_TOGETHER, INVERTED_TOGETHER],
        ),
    ]
}

fn point_transform(shape: Shape, twiddles: &[Twiddle]) -> Vec<Launch> {
    let fold = Launch::uniform("transform::Fold", threads(shape.points()), &[("g1::add_affine", &[1])], &[]);
    let in_lanes = shape.points() / 2 <= PROCESSORS * Limits::default().in_lanes_max;
    let level = if in_lanes { point_level_in_lanes } else { point_level };
    let levels = (0..shape.log_size).rev().map(|log_half| level(shape, 1 << log_half, twiddles));
    std::iter::once(fold).chain(levels).collect()
}

fn target_transform(shape: Shape, count: usize, twiddles: &[Twiddle]) -> Vec<Launch> {
    let mut launches = vec![];
    for level in split_radix::levels(shape.size(), shape.cosets) {
        let transforms = level.starts.len();
        if level.length == 2 {
            launches.push(Launch::uniform("Butterflies", elements(transforms), &[("gt::mul", &[1, 1])], &[]));
            continue;
        }
        match level.twiddles.len() {
            0 => (),
            jobs if jobs <= PROCESSORS * Limits::default().digits_apart_max => {
                launches.extend(digit_powers(&level, twiddles));
            }
            _ => launches.push(powers(&level, twiddles)),
        }
        let calls: &[(_, &[usize])] = &[("gt::mul", &[1; 6]), ("gt::frobenius_odd", &[1])];
        launches.push(Launch::uniform("Combine", elements(transforms * level.length / 4), calls, &[]));
    }
    let more = shape.cosets - 1;
    let calls: &[(_, &[usize])] = &[("gt::mul", &[more]), ("gt::pow_zeta", &[more])];
    launches.push(Launch::uniform("Unfold", elements(count), calls, &[more]));
    launches
}

fn blinding_factors(count: usize) -> Vec<Launch> {
    let (squarings, products) = (HARD_POWERS * X_SQUARINGS, HARD_POWERS * X_PRODUCTS);
    let calls: &[(_, &[usize])] = &[
        ("gt::cyclotomic_square", &[squarings, 1]),
        // With the cross-term, by x, with the other of a step, + p² of the last step, and the two at the end.
        ("gt::mul", &[1, products, HARD_POWERS - 1, 1, 1, 1]),
        ("gt::frobenius_odd", &[1]),
        ("gt::frobenius_2", &[1]),
    ];
    let blindings = Launch::uniform("Blindings", elements(count), calls, &[HARD_POWERS, squarings]);
    pairings(count).into_iter().chain([blindings]).collect()
}

fn counts(batch: usize) -> String {
    assert!(batch.is_power_of_two() && batch >= 4, "batches of a power of two, at least 4");
    let shape = Shape { log_size: batch.ilog2(), cosets: 2 };
    let twiddles = twiddles(shape.size());
    let mut pairings = pairings(shape.points());
    pairings.push(Launch::uniform("Divide", threads(6 * shape.points()), &[], &[]));
    let phases = [
        ("point transform", point_transform(shape, &twiddles)),
        ("pairings", pairings),
        ("target transform", target_transform(shape, batch, &twiddles)),
        ("blinding factors", blinding_factors(batch)),
    ];
    let phase = |(name, launches): &(&str, Vec<Launch>)| {
        let launches: Vec<String> = launches.iter().map(Launch::json).collect();
        format!("{{\"name\":\"{name}\",\"launches\":[{}]}}", launches.join(","))
    };
    let phases: Vec<String> = phases.iter().map(phase).collect();
    format!("{{\"batch\":{batch},\"phases\":[{}]}}", phases.join(","))
}

fn main() {
    let batches = std::env::args().skip(1).map(|batch| batch.parse().expect("batches are numbers"));
    let all: Vec<String> = batches.map(counts).collect();
    println!("[{}]", all.join(",\n"));
}
