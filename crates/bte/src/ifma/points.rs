//! G1 in eight lanes: affine points, additions in batches that share one field inversion (Montgomery's trick).
//!
//! An addition costs 6 field products, a doubling 7, three of them for its share of the inversion. **A single zero
//! denominator would poison the whole batch**, and whoever encrypts can cause one: equal or opposite ciphertexts meet in
//! the butterflies of a transform. So the product of all denominators is tested; where a lane is zero, its denominator
//! is replaced by 1, the batch done again, and that lane's sum computed by itself.

use std::sync::OnceLock;

use super::field::{Fp, Packed};
use super::pairing::Arguments;
use super::vector::{LANES, lanes};
use crate::curve::limbs::{invert, multiply};
use crate::curve::{G1, G1Affine, Scalar};
use crate::digits::glv_halves;

/// A point at rest. `infinite` overrides the coordinates, which are then those of no point.
#[derive(Clone, Copy)]
pub(crate) struct PackedPoint {
    pub(crate) x: Packed,
    pub(crate) y: Packed,
    pub(crate) infinite: bool,
}

lanes! {
impl PackedPoint {
    /// Any affine points.
    pub(crate) fn pack(points: &[G1Affine]) -> Vec<Self> {
        let mut out = Vec::with_capacity(points.len());
        for chunk in points.chunks(LANES) {
            let limbs = |lane: usize| chunk.get(lane).unwrap_or(&chunk[0]).limbs();
            let x = Fp::from_blst(std::array::from_fn(|lane| limbs(lane)[0])).weak().scatter();
            let y = Fp::from_blst(std::array::from_fn(|lane| limbs(lane)[1])).weak().scatter();
            out.extend(chunk.iter().enumerate().map(|(lane, point)| Self {
                x: x[lane],
                y: y[lane],
                infinite: point.is_identity(),
            }));
        }
        out
    }
}
}

lanes! {
impl PackedPoint {
    /// Each point times 1, ζ and ζ², where ζ(x, y) = (βx, y).
    pub(crate) fn times_powers_of_zeta(points: &[Self]) -> Vec<[Self; 3]> {
        let beta = beta();
        let mut out = Vec::with_capacity(points.len());
        for chunk in points.chunks(LANES) {
            let x = Fp::gather(std::array::from_fn(|lane| &chunk.get(lane).unwrap_or(&chunk[0]).x));
            let once = x.mul(&beta);
            let twice = once.mul(&beta).weak().scatter();
            let once = once.weak().scatter();
            out.extend(chunk.iter().enumerate().map(|(lane, point)| {
                [*point, Self { x: once[lane], ..*point }, Self { x: twice[lane], ..*point }]
            }));
        }
        out
    }
}
}

impl PackedPoint {
    pub(crate) const INFINITE: Self = Self { x: Packed::ONE, y: Packed::ONE, infinite: true };
}

/// Vectors of points: lane l of vector v is point 8·v + l.
#[derive(Default)]
pub(crate) struct Points {
    x: Vec<Fp>,
    y: Vec<Fp>,
    /// One bit for each lane.
    infinite: Vec<u8>,
}

/// Bits of one window of a multiplication, and windows of 128 bits with the last carry.
const WINDOW_BITS: u32 = 4;
const WINDOWS: usize = 33;
const MULTIPLES: usize = 1 << (WINDOW_BITS - 1);

/// Signed digits of the two halves of a scalar, −8 to 8, least significant first.
pub(crate) type Digits = [[i8; WINDOWS]; 2];

/// Splits k = k1 + k2·x² and recodes both halves, without branches on k.
pub(crate) fn digits(k: &Scalar) -> Digits {
    let (low, high) = glv_halves(k);
    [low, high].map(|half| {
        let mut carry = 0;
        std::array::from_fn(|i| {
            let window = if i < 32 { (half >> (WINDOW_BITS * i as u32)) as u8 & 15 } else { 0 } + carry;
            carry = (window + 7) >> 4; // 1 if window > 8
            (window as i8) - ((carry as i8) << WINDOW_BITS)
        })
    })
}

lanes! {
    /// Replaces each vector by its inverse; lanes of `ones` count as 1 and their results mean nothing. Gives the vectors
    /// and lanes that were zero, which were treated likewise.
    fn invert_all(values: &mut [Fp], ones: &mut [u8]) -> Vec<(usize, u8)> {
        let one = Fp::splat(&Packed::ONE.0);
        let mut zeros = Vec::new();
        let mut prefixes = Vec::with_capacity(values.len());
        loop {
            prefixes.clear();
            let mut product = one;
            for (value, ones) in values.iter_mut().zip(ones.iter()) {
                if *ones != 0 {
                    *value = one.select(value, *ones);
                }
                prefixes.push(product);
                product = product.mul(value);
            }
            if product.zero_lanes() == 0 {
                let mut inverse = invert_lanes(&product);
                for (value, prefix) in values.iter_mut().zip(&prefixes).rev() {
                    let out = inverse.mul(prefix);
                    inverse = inverse.mul(value);
                    *value = out;
                }
                return zeros;
            }
            for (index, (value, ones)) in values.iter().zip(ones.iter_mut()).enumerate() {
                let zero = value.mul(&one).zero_lanes();
                if zero != 0 {
                    *ones |= zero;
                    zeros.push((index, zero));
                }
            }
        }
    }

    /// 1/value in each lane, none of them zero: one inversion for all eight.
    pub(super) fn invert_lanes(value: &Fp) -> Fp {
        let elements = value.to_blst();
        let mut prefixes = [elements[0]; LANES];
        for lane in 1..LANES {
            prefixes[lane] = multiply(&prefixes[lane - 1], &elements[lane]);
        }
        let mut inverse = invert(&prefixes[LANES - 1]);
        let mut out = elements;
        for lane in (1..LANES).rev() {
            out[lane] = multiply(&inverse, &prefixes[lane - 1]);
            inverse = multiply(&inverse, &elements[lane]);
        }
        out[0] = inverse;
        Fp::from_blst(out.each_ref())
    }

    /// (λ² − x1 − x2, λ(x1 − x3) − y1).
    #[inline]
    pub(super) fn chord(slope: &Fp, x1: &Fp, y1: &Fp, x2: &Fp) -> (Fp, Fp) {
        let x3 = slope.square().sub(x1).sub(x2).lift::<8>().weak();
        let y3 = slope.mul(&x1.sub_n(&x3)).sub(y1).lift::<8>().weak();
        (x3, y3)
    }

    /// The beta with [x²](x, y) = (βx, −y).
    #[inline]
    pub(super) fn beta() -> Fp {
        static CELL: OnceLock<Packed> = OnceLock::new();
        let packed = CELL.get_or_init(|| {
            let image = G1::generator().times_x_squared().to_affine();
            let quotient = multiply(image.limbs()[0], &invert(G1Affine::generator().limbs()[0])); // of x, not 0
            Fp::from_blst([&quotient; LANES]).scatter()[0]
        });
        Fp::splat(&packed.0)
    }
}

lanes! {
impl Points {
    /// Fills the last vector up with identities.
    pub(crate) fn gather(points: &[&PackedPoint]) -> Self {
        let mut out = Self::default();
        for chunk in points.chunks(LANES) {
            let points: [&PackedPoint; LANES] =
                std::array::from_fn(|lane| chunk.get(lane).copied().unwrap_or(&PackedPoint::INFINITE));
            out.x.push(Fp::gather(points.map(|p| &p.x)));
            out.y.push(Fp::gather(points.map(|p| &p.y)));
            out.infinite.push((0..LANES).fold(0, |mask, lane| mask | u8::from(points[lane].infinite) << lane));
        }
        out
    }

    pub(crate) fn len(&self) -> usize {
        self.x.len()
    }

    /// Appends a vector of points, normalised and below 2p.
    pub(super) fn push(&mut self, x: Fp, y: Fp, infinite: u8) {
        self.x.push(x);
        self.y.push(y);
        self.infinite.push(infinite);
    }

    /// x, y and the lanes at infinity.
    pub(super) fn coordinates(&self, vector: usize) -> (&Fp, &Fp, u8) {
        (&self.x[vector], &self.y[vector], self.infinite[vector])
    }

    /// Adds the vectors from `keep` on, at most as many as stay, to the first ones.
    pub(super) fn fold(&mut self, keep: usize) {
        let (x, y, skip) = (self.x.split_off(keep), self.y.split_off(keep), self.infinite.split_off(keep));
        self.add(&x, &y, &skip);
    }

    /// Multiplies the vectors from `start` on by x².
    pub(super) fn times_x_squared(&mut self, start: usize) {
        let beta = beta();
        for i in start..self.len() {
            self.x[i] = self.x[i].mul(&beta);
            self.y[i] = self.y[i].neg();
        }
    }

    /// The first arguments of pairings.
    pub(crate) fn arguments(&self) -> Vec<Arguments> {
        Arguments::new(&self.x, &self.y, &self.infinite)
    }

    /// The first `count` points.
    pub(crate) fn to_packed(&self, count: usize) -> Vec<PackedPoint> {
        let mut out = Vec::with_capacity(LANES * self.len());
        for vector in 0..self.len() {
            let (x, y) = (self.x[vector].weak().scatter(), self.y[vector].weak().scatter());
            for lane in 0..LANES {
                let infinite = self.infinite[vector] >> lane & 1 == 1;
                out.push(PackedPoint { x: x[lane], y: y[lane], infinite });
            }
        }
        out.truncate(count);
        out
    }

    /// One lane as a point by itself.
    fn single(&self, vector: usize, lane: usize) -> G1Affine {
        if self.infinite[vector] >> lane & 1 == 1 {
            return G1::default().to_affine();
        }
        G1Affine::from_limbs(self.x[vector].to_blst()[lane], self.y[vector].to_blst()[lane])
    }

    fn set_single(&mut self, vector: usize, lane: usize, point: &G1) {
        let bit = 1u8 << lane;
        if point.is_identity() {
            self.infinite[vector] |= bit;
            return;
        }
        let point = point.to_affine();
        let [x, y] = point.limbs();
        self.infinite[vector] &= !bit;
        self.x[vector] = Fp::from_blst([x; LANES]).select(&self.x[vector], bit).weak();
        self.y[vector] = Fp::from_blst([y; LANES]).select(&self.y[vector], bit).weak();
    }

    /// Doubles every point.
    pub(crate) fn double(&mut self) {
        let mut inverses: Vec<Fp> = self.y.iter().map(|y| y.add_n(y)).collect();
        // A point of odd order has y ≠ 0: the list of exceptions stays empty.
        invert_all(&mut inverses, &mut self.infinite.clone());
        for (i, inverse) in inverses.iter().enumerate() {
            let square = self.x[i].square();
            let slope = square.add(&square).add(&square).normalise().mul(inverse);
            (self.x[i], self.y[i]) = chord(&slope, &self.x[i], &self.y[i], &self.x[i]);
        }
    }

    /// Adds (x, y), no identities, lane by lane to the first vectors, but where `skip` has a 1.
    fn add(&mut self, x: &[Fp], y: &[Fp], skip: &[u8]) {
        let mut ones: Vec<u8> = self.infinite.iter().zip(skip).map(|(infinite, skip)| infinite | skip).collect();
        let mut inverses: Vec<Fp> = x.iter().zip(&self.x).map(|(x2, x1)| x2.sub_n(x1)).collect();
        let zeros = invert_all(&mut inverses, &mut ones);
        let mut patches = Vec::new();
        for (vector, lanes) in zeros {
            for lane in (0..LANES).filter(|lane| lanes >> lane & 1 == 1) {
                let other = G1Affine::from_limbs(x[vector].to_blst()[lane], y[vector].to_blst()[lane]);
                patches.push((vector, lane, G1::from(&self.single(vector, lane)).add_affine(&other)));
            }
        }
        for (i, inverse) in inverses.iter().enumerate() {
            let slope = y[i].sub_n(&self.y[i]).mul(inverse);
            let (x3, y3) = chord(&slope, &self.x[i], &self.y[i], &x[i]);
            let first = self.infinite[i] & !skip[i];
            self.x[i] = x[i].select(&self.x[i].select(&x3, skip[i]), first);
            self.y[i] = y[i].select(&self.y[i].select(&y3, skip[i]), first);
            self.infinite[i] &= skip[i];
        }
        for (vector, lane, sum) in patches {
            self.set_single(vector, lane, &sum);
        }
    }

    /// (a + b, a − b) in place of (a, b).
    pub(crate) fn butterfly(&mut self, other: &mut Self) {
        let mut ones: Vec<u8> = self.infinite.iter().zip(&other.infinite).map(|(a, b)| a | b).collect();
        let mut inverses: Vec<Fp> = other.x.iter().zip(&self.x).map(|(b, a)| b.sub_n(a)).collect();
        let zeros = invert_all(&mut inverses, &mut ones);
        let mut patches = Vec::new();
        for (vector, lanes) in zeros {
            for lane in (0..LANES).filter(|lane| lanes >> lane & 1 == 1) {
                let (a, b) = (G1::from(&self.single(vector, lane)), G1::from(&other.single(vector, lane)));
                patches.push((vector, lane, a.add(&b), a.sub(&b)));
            }
        }
        for (i, inverse) in inverses.iter().enumerate() {
            let (ax, ay, bx, by) = (self.x[i], self.y[i], other.x[i], other.y[i]);
            let minus_by = by.neg();
            let (sum_x, sum_y) = chord(&by.sub_n(&ay).mul(inverse), &ax, &ay, &bx);
            let (difference_x, difference_y) = chord(&minus_by.sub_n(&ay).mul(inverse), &ax, &ay, &bx);
            // a at infinity: (b, −b). b at infinity: (a, a). Both: both.
            let (a_infinite, b_infinite) = (self.infinite[i], other.infinite[i]);
            self.x[i] = bx.select(&ax.select(&sum_x, b_infinite), a_infinite);
            self.y[i] = by.select(&ay.select(&sum_y, b_infinite), a_infinite);
            other.x[i] = bx.select(&ax.select(&difference_x, b_infinite), a_infinite);
            other.y[i] = minus_by.select(&ay.select(&difference_y, b_infinite), a_infinite);
            self.infinite[i] = a_infinite & b_infinite;
            other.infinite[i] = a_infinite & b_infinite;
        }
        for (vector, lane, sum, difference) in patches {
            self.set_single(vector, lane, &sum);
            other.set_single(vector, lane, &difference);
        }
    }

    /// Multiplies point i by the scalar with digits i: 129 doublings and about 72 additions, always. The digits choose
    /// addresses: not for secrets.
    pub(crate) fn multiply(&mut self, digits: &[Digits]) {
        let vectors = self.len();
        assert_eq!(digits.len(), LANES * vectors);
        let table = self.multiples();
        let (mut x, mut y, mut skip) = (self.x.clone(), self.y.clone(), vec![0; vectors]);
        let points_at_infinity = std::mem::replace(&mut self.infinite, vec![0xff; vectors]);
        for window in (0..WINDOWS).rev() {
            if window < WINDOWS - 1 {
                for _ in 0..WINDOW_BITS {
                    self.double();
                }
            }
            for half in 0..2 {
                for vector in 0..vectors {
                    let at: [i8; LANES] = std::array::from_fn(|lane| digits[LANES * vector + lane][half][window]);
                    (x[vector], y[vector], skip[vector]) = look_up(&table[LANES * vector..][..LANES], half, &at);
                    skip[vector] |= points_at_infinity[vector];
                }
                self.add(&x, &y, &skip);
            }
        }
    }

    /// Point by point: 1, 2 … 8 times it.
    fn multiples(&self) -> Vec<[Multiple; MULTIPLES]> {
        let beta = beta();
        let mut out = vec![[Multiple::default(); MULTIPLES]; LANES * self.len()];
        for (vector, multiples) in self.multiples_in_lanes().iter().enumerate() {
            for (index, [x, y]) in multiples.iter().enumerate() {
                let (endo_x, x, y) = (x.mul(&beta).scatter(), x.scatter(), y.scatter());
                for lane in 0..LANES {
                    out[LANES * vector + lane][index] =
                        Multiple { x: [x[lane], endo_x[lane]], y: y[lane] };
                }
            }
        }
        out
    }

    /// Vector by vector: 1, 2 … 8 times it, as (x, y).
    pub(super) fn multiples_in_lanes(&self) -> Vec<[[Fp; 2]; MULTIPLES]> {
        let points = self.x.iter().zip(&self.y);
        let mut out: Vec<_> = points.map(|(x, y)| [[*x, *y]; MULTIPLES]).collect();
        let mut multiple =
            Self { x: self.x.clone(), y: self.y.clone(), infinite: self.infinite.clone() };
        let skip = self.infinite.clone();
        for index in 1..MULTIPLES {
            match index {
                1 => multiple.double(),
                _ => multiple.add(&self.x, &self.y, &skip),
            }
            for (vector, out) in out.iter_mut().enumerate() {
                out[index] = [multiple.x[vector], multiple.y[vector]];
            }
        }
        out
    }
}
}

/// A multiple of a point, and of its image under the endomorphism but for the sign of y.
#[derive(Clone, Copy, Default)]
struct Multiple {
    x: [Packed; 2],
    y: Packed,
}

lanes! {
    /// Each lane's digit times its point, and the lanes whose digit is 0.
    #[inline]
    fn look_up(rows: &[[Multiple; MULTIPLES]], half: usize, digits: &[i8; LANES]) -> (Fp, Fp, u8) {
        let entry = |lane: usize| &rows[lane][usize::from(digits[lane].unsigned_abs().max(1)) - 1];
        let x = Fp::gather(std::array::from_fn(|lane| &entry(lane).x[half]));
        let y = Fp::gather(std::array::from_fn(|lane| &entry(lane).y));
        let mask = |is: &dyn Fn(i8) -> bool| (0..LANES).fold(0, |mask, lane| mask | u8::from(is(digits[lane])) << lane);
        // The endomorphism's sign turns the second half around.
        let negative = mask(&|digit| digit < 0) ^ if half == 1 { 0xff } else { 0 };
        (x, y.negate_lanes(negative), mask(&|digit| digit == 0))
    }
}
