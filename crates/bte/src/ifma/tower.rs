//! F_p2, F_p6 and F_p12 in eight lanes: u² = −1, v³ = ξ = 1 + u, w² = v.
//!
//! Products are accumulated unreduced over the tower (54 products and 12 reductions for one of F_p12; Aranha et al.,
//! ePrint 2010/526, section 5). Combinations of unreduced values are written limb by limb, so that each is loaded and
//! stored once: with the products at the machine's peak, it is vector stores that bound a naive form.
//!
//! Bounds: what a reduction gives is below 2p + ε ("reduced"); products take factors up to 2^11·p.

use std::mem::MaybeUninit;

use super::field::{Fp, Packed, Wide, reduce_limbs};
use super::vector::{LANES, add, lanes, sub};

/// Eight elements of F_p2.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Fp2 {
    pub(crate) c0: Fp,
    pub(crate) c1: Fp,
}

#[repr(C)]
pub(super) struct Wide2 {
    pub(super) c0: Wide,
    pub(super) c1: Wide,
}

/// Eight elements of F_p6.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Fp6 {
    pub(crate) c0: Fp2,
    pub(crate) c1: Fp2,
    pub(crate) c2: Fp2,
}

#[repr(C)]
struct Wide6 {
    c0: Wide2,
    c1: Wide2,
    c2: Wide2,
}

/// Eight elements of F_p12.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Fp12 {
    pub(crate) c0: Fp6,
    pub(crate) c1: Fp6,
}

/// Space that is written before it is read: zeroing it would cost as much as the additions.
pub(super) type Out<T> = MaybeUninit<T>;

/// Reduces a signed combination of unreduced values, given limb by limb.
macro_rules! reduce_with {
    (|$i:ident| $limb:expr) => {{
        let mut t = [super::vector::zero(); 16];
        for $i in 0..16 {
            t[$i] = $limb;
        }
        super::field::reduce_limbs!(t)
    }};
}
pub(super) use reduce_with;

lanes! {
    /// Karatsuba: three products.
    #[inline(never)]
    fn wide2(out: &mut Out<Wide2>, a: &Fp2, b: &Fp2) {
        let out = out.as_mut_ptr();
        let v0 = a.c0.wide(&b.c0);
        let sa = a.c0.add_n(&a.c1);
        let sb = b.c0.add_n(&b.c1);
        let v1 = a.c1.wide(&b.c1);
        let mut sum = v0;
        for i in 0..16 {
            // SAFETY: `out` points to writable space for the whole value.
            unsafe { (&raw mut (*out).c0.0[i]).write(sub(v0.0[i], v1.0[i])) };
            sum.0[i] = add(v0.0[i], v1.0[i]);
        }
        let v2 = sa.wide(&sb);
        for i in 0..16 {
            // SAFETY: as above.
            unsafe { (&raw mut (*out).c1.0[i]).write(sub(v2.0[i], sum.0[i])) };
        }
    }

    /// Complex squaring: two products.
    #[inline(never)]
    pub(super) fn square2(out: &mut Out<Wide2>, a: &Fp2) {
        let out = out.as_mut_ptr();
        let sum = a.c0.add_n(&a.c1);
        let difference = a.c0.sub_n(&a.c1);
        // SAFETY: `out` points to writable space for the whole value.
        unsafe { (&raw mut (*out).c0).write(sum.wide(&difference)) };
        let twice = a.c0.add_n(&a.c0);
        // SAFETY: as above.
        unsafe { (&raw mut (*out).c1).write(twice.wide(&a.c1)) };
    }

    /// Karatsuba with six products t of F_p2:
    /// c0 = t0 + ξ(t3 − t1 − t2), c1 = t4 − t0 − t1 + ξ·t2, c2 = t5 − t0 − t2 + t1.
    #[inline(never)]
    fn wide6(out: &mut Out<Wide6>, a: &Fp6, b: &Fp6) {
        let mut t = [const { Out::<Wide2>::uninit() }; 6];
        wide2(&mut t[0], &a.c0, &b.c0);
        wide2(&mut t[1], &a.c1, &b.c1);
        wide2(&mut t[2], &a.c2, &b.c2);
        wide2(&mut t[3], &a.c1.add_n(&a.c2), &b.c1.add_n(&b.c2));
        wide2(&mut t[4], &a.c0.add_n(&a.c1), &b.c0.add_n(&b.c1));
        wide2(&mut t[5], &a.c0.add_n(&a.c2), &b.c0.add_n(&b.c2));
        // SAFETY: the six calls above have written all six.
        let [t0, t1, t2, t3, t4, t5] = t.each_ref().map(|t| unsafe { t.assume_init_ref() });
        let out = out.as_mut_ptr();
        for i in 0..16 {
            let (a0, a1) = (t0.c0.0[i], t0.c1.0[i]);
            let (b0, b1) = (t1.c0.0[i], t1.c1.0[i]);
            let (c0, c1) = (t2.c0.0[i], t2.c1.0[i]);
            let x0 = sub(sub(t3.c0.0[i], b0), c0);
            let x1 = sub(sub(t3.c1.0[i], b1), c1);
            // SAFETY: `out` points to writable space for the whole value.
            unsafe {
                (&raw mut (*out).c0.c0.0[i]).write(add(a0, sub(x0, x1)));
                (&raw mut (*out).c0.c1.0[i]).write(add(a1, add(x0, x1)));
                (&raw mut (*out).c1.c0.0[i]).write(add(sub(sub(t4.c0.0[i], a0), b0), sub(c0, c1)));
                (&raw mut (*out).c1.c1.0[i]).write(add(sub(sub(t4.c1.0[i], a1), b1), add(c0, c1)));
                (&raw mut (*out).c2.c0.0[i]).write(add(sub(sub(t5.c0.0[i], a0), c0), b0));
                (&raw mut (*out).c2.c1.0[i]).write(add(sub(sub(t5.c1.0[i], a1), c1), b1));
            }
        }
    }

    /// (a0, a1, a2)·(x, y, 0) with five products:
    /// c0 = a0·x + ξ·a2·y, c1 = (a0 + a1)(x + y) − a0·x − a1·y, c2 = a1·y + a2·x.
    #[inline(never)]
    fn wide6_sparse(out: &mut Out<Wide6>, a: &Fp6, x: &Fp2, y: &Fp2, x_plus_y: &Fp2) {
        let mut t = [const { Out::<Wide2>::uninit() }; 5];
        wide2(&mut t[0], &a.c0, x);
        wide2(&mut t[1], &a.c1, y);
        wide2(&mut t[2], &a.c2, y);
        wide2(&mut t[3], &a.c2, x);
        wide2(&mut t[4], &a.c0.add_n(&a.c1), x_plus_y);
        // SAFETY: the five calls above have written all five.
        let [t0, t1, t2, t3, t4] = t.each_ref().map(|t| unsafe { t.assume_init_ref() });
        let out = out.as_mut_ptr();
        for i in 0..16 {
            let (a0, a1) = (t0.c0.0[i], t0.c1.0[i]);
            let (b0, b1) = (t1.c0.0[i], t1.c1.0[i]);
            let (c0, c1) = (t2.c0.0[i], t2.c1.0[i]);
            // SAFETY: `out` points to writable space for the whole value.
            unsafe {
                (&raw mut (*out).c0.c0.0[i]).write(add(a0, sub(c0, c1)));
                (&raw mut (*out).c0.c1.0[i]).write(add(a1, add(c0, c1)));
                (&raw mut (*out).c1.c0.0[i]).write(sub(sub(t4.c0.0[i], a0), b0));
                (&raw mut (*out).c1.c1.0[i]).write(sub(sub(t4.c1.0[i], a1), b1));
                (&raw mut (*out).c2.c0.0[i]).write(add(t3.c0.0[i], b0));
                (&raw mut (*out).c2.c1.0[i]).write(add(t3.c1.0[i], b1));
            }
        }
    }

    #[inline(never)]
    fn reduce(out: &mut Fp, a: &Wide) {
        *out = reduce_limbs!(a.0);
    }

    #[inline(never)]
    fn reduce_sum(out: &mut Fp, a: &Wide, b: &Wide) {
        *out = reduce_with!(|i| add(a.0[i], b.0[i]));
    }

    /// a + b − c.
    #[inline(never)]
    fn reduce_sum_difference(out: &mut Fp, a: &Wide, b: &Wide, c: &Wide) {
        *out = reduce_with!(|i| add(a.0[i], sub(b.0[i], c.0[i])));
    }

    /// a + b + c.
    #[inline(never)]
    fn reduce_sum3(out: &mut Fp, a: &Wide, b: &Wide, c: &Wide) {
        *out = reduce_with!(|i| add(a.0[i], add(b.0[i], c.0[i])));
    }

    /// a − b − c.
    #[inline(never)]
    fn reduce_difference(out: &mut Fp, a: &Wide, b: &Wide, c: &Wide) {
        *out = reduce_with!(|i| sub(sub(a.0[i], b.0[i]), c.0[i]));
    }

    /// a + ξ·b.
    #[inline]
    fn reduce2_xi(out: &mut Fp2, a: &Wide2, b: &Wide2) {
        reduce_sum_difference(&mut out.c0, &a.c0, &b.c0, &b.c1);
        reduce_sum3(&mut out.c1, &a.c1, &b.c0, &b.c1);
    }

    #[inline]
    fn reduce2_sum(out: &mut Fp2, a: &Wide2, b: &Wide2) {
        reduce_sum(&mut out.c0, &a.c0, &b.c0);
        reduce_sum(&mut out.c1, &a.c1, &b.c1);
    }

    #[inline]
    fn reduce2_difference(out: &mut Fp2, a: &Wide2, b: &Wide2, c: &Wide2) {
        reduce_difference(&mut out.c0, &a.c0, &b.c0, &c.c0);
        reduce_difference(&mut out.c1, &a.c1, &b.c1, &c.c1);
    }

    #[inline]
    fn reduce2(out: &mut Fp2, a: &Wide2) {
        reduce(&mut out.c0, &a.c0);
        reduce(&mut out.c1, &a.c1);
    }
}

lanes! {
impl Fp2 {
    #[inline]
    pub(crate) fn zero() -> Self {
        Self { c0: Fp::zero(), c1: Fp::zero() }
    }

    #[inline]
    pub(crate) fn add_n(&self, other: &Self) -> Self {
        Self { c0: self.c0.add_n(&other.c0), c1: self.c1.add_n(&other.c1) }
    }

    #[inline]
    pub(crate) fn sub_n(&self, other: &Self) -> Self {
        Self { c0: self.c0.sub_n(&other.c0), c1: self.c1.sub_n(&other.c1) }
    }

    #[inline]
    pub(crate) fn neg(&self) -> Self {
        Self { c0: self.c0.neg(), c1: self.c1.neg() }
    }

    #[inline]
    pub(crate) fn weak(self) -> Self {
        Self { c0: self.c0.weak(), c1: self.c1.weak() }
    }

    /// ξ·self, normalised, up to 1024·p larger.
    #[inline]
    pub(crate) fn times_xi(&self) -> Self {
        Self { c0: self.c0.sub_n(&self.c1), c1: self.c0.add_n(&self.c1) }
    }

    #[inline]
    pub(crate) fn mul(&self, other: &Self) -> Self {
        let mut out = Out::uninit();
        wide2(&mut out, self, other);
        // SAFETY: the call has written all of it.
        let wide = unsafe { out.assume_init_ref() };
        let mut out = Self::zero();
        reduce2(&mut out, wide);
        out
    }

    #[inline]
    pub(crate) fn square(&self) -> Self {
        let mut out = Out::uninit();
        square2(&mut out, self);
        // SAFETY: the call has written all of it.
        let wide = unsafe { out.assume_init_ref() };
        let mut out = Self::zero();
        reduce2(&mut out, wide);
        out
    }

    #[inline]
    pub(crate) fn scale(&self, factor: &Fp) -> Self {
        Self { c0: self.c0.mul(factor), c1: self.c1.mul(factor) }
    }
}
}

lanes! {
impl Fp6 {
    #[inline]
    pub(crate) fn zero() -> Self {
        Self { c0: Fp2::zero(), c1: Fp2::zero(), c2: Fp2::zero() }
    }

    #[inline]
    pub(crate) fn add_n(&self, other: &Self) -> Self {
        Self { c0: self.c0.add_n(&other.c0), c1: self.c1.add_n(&other.c1), c2: self.c2.add_n(&other.c2) }
    }

    #[inline]
    pub(crate) fn sub_n(&self, other: &Self) -> Self {
        Self { c0: self.c0.sub_n(&other.c0), c1: self.c1.sub_n(&other.c1), c2: self.c2.sub_n(&other.c2) }
    }

    #[inline]
    pub(crate) fn neg(&self) -> Self {
        Self { c0: self.c0.neg(), c1: self.c1.neg(), c2: self.c2.neg() }
    }

    #[inline]
    pub(crate) fn weak(self) -> Self {
        Self { c0: self.c0.weak(), c1: self.c1.weak(), c2: self.c2.weak() }
    }

    /// The negative where the mask has a 1; self below 4·p, as is the result.
    pub(crate) fn negate_lanes(&mut self, mask: u8) {
        for c in [&mut self.c0, &mut self.c1, &mut self.c2] {
            c.c0 = c.c0.negate_lanes(mask);
            c.c1 = c.c1.negate_lanes(mask);
        }
    }

    /// v·self.
    #[inline]
    pub(crate) fn times_v(&self) -> Self {
        Self { c0: self.c2.times_xi(), c1: self.c0, c2: self.c1 }
    }

    pub(crate) fn mul(&self, other: &Self) -> Self {
        let mut out = Out::uninit();
        wide6(&mut out, self, other);
        // SAFETY: the call has written all of it.
        let wide = unsafe { out.assume_init_ref() };
        let mut out = Self::zero();
        reduce2(&mut out.c0, &wide.c0);
        reduce2(&mut out.c1, &wide.c1);
        reduce2(&mut out.c2, &wide.c2);
        out
    }
}
}

lanes! {
impl Fp12 {
    #[inline]
    pub(crate) fn one() -> Self {
        let mut out = Self { c0: Fp6::zero(), c1: Fp6::zero() };
        out.c0.c0.c0 = Fp::splat(&Packed::ONE.0);
        out
    }

    #[inline]
    pub(crate) fn mul(&self, other: &Self) -> Self {
        let mut out = *self;
        out.set_product(self, other);
        out
    }

    /// Karatsuba: three products of F_p6.
    #[inline(never)]
    pub(crate) fn set_product(&mut self, a: &Self, b: &Self) {
        let mut t = [const { Out::<Wide6>::uninit() }; 3];
        wide6(&mut t[0], &a.c0, &b.c0);
        wide6(&mut t[1], &a.c1, &b.c1);
        wide6(&mut t[2], &a.c0.add_n(&a.c1), &b.c0.add_n(&b.c1));
        // SAFETY: the three calls above have written all three.
        let [a, b, m] = t.each_ref().map(|t| unsafe { t.assume_init_ref() });
        reduce2_xi(&mut self.c0.c0, &a.c0, &b.c2);
        reduce2_sum(&mut self.c0.c1, &a.c1, &b.c0);
        reduce2_sum(&mut self.c0.c2, &a.c2, &b.c1);
        reduce2_difference(&mut self.c1.c0, &m.c0, &a.c0, &b.c0);
        reduce2_difference(&mut self.c1.c1, &m.c1, &a.c1, &b.c1);
        reduce2_difference(&mut self.c1.c2, &m.c2, &a.c2, &b.c2);
    }

    /// Complex squaring: t = a0·a1, s = (a0 + a1)(a0 + v·a1), (s − t − v·t, 2t).
    #[inline(never)]
    pub(crate) fn set_square(&mut self, a: &Self) {
        let mut w = [const { Out::<Wide6>::uninit() }; 2];
        wide6(&mut w[0], &a.c0, &a.c1);
        wide6(&mut w[1], &a.c0.add_n(&a.c1), &a.c0.add_n(&a.c1.times_v()));
        // SAFETY: the two calls above have written both.
        let [t, s] = w.each_ref().map(|w| unsafe { w.assume_init_ref() });
        let u = &t.c2;
        self.c0.c0.c0 =
            reduce_with!(|i| sub(sub(s.c0.c0.0[i], t.c0.c0.0[i]), sub(u.c0.0[i], u.c1.0[i])));
        self.c0.c0.c1 =
            reduce_with!(|i| sub(sub(s.c0.c1.0[i], t.c0.c1.0[i]), add(u.c0.0[i], u.c1.0[i])));
        reduce2_difference(&mut self.c0.c1, &s.c1, &t.c1, &t.c0);
        reduce2_difference(&mut self.c0.c2, &s.c2, &t.c2, &t.c1);
        reduce2_sum(&mut self.c1.c0, &t.c0, &t.c0);
        reduce2_sum(&mut self.c1.c1, &t.c1, &t.c1);
        reduce2_sum(&mut self.c1.c2, &t.c2, &t.c2);
    }

    /// f·(x + y·v + v·w), a normalised line: ten products of F_p2. f reduced or up to 1000·p, as is the result.
    ///
    /// c0 = f0·(x + y·v) + v²·f1, c1 = f1·(x + y·v) + v·f0; the terms without product enter above the reduction.
    #[inline(never)]
    pub(crate) fn set_line_product(&mut self, f: &Self, x: &Fp2, y: &Fp2) {
        let mut w = [const { Out::<Wide6>::uninit() }; 2];
        let x_plus_y = x.add_n(y);
        wide6_sparse(&mut w[0], &f.c0, x, y, &x_plus_y);
        wide6_sparse(&mut w[1], &f.c1, x, y, &x_plus_y);
        // SAFETY: the two calls above have written both.
        let [a, b] = w.each_ref().map(|w| unsafe { w.assume_init_ref() });
        let (f0, f1) = (&f.c0, &f.c1);
        reduce2_plus_xi(&mut self.c0.c0, &a.c0, &f1.c1);
        reduce2_plus_xi(&mut self.c0.c1, &a.c1, &f1.c2);
        reduce2_plus(&mut self.c0.c2, &a.c2, &f1.c0);
        reduce2_plus_xi(&mut self.c1.c0, &b.c0, &f0.c2);
        reduce2_plus(&mut self.c1.c1, &b.c1, &f0.c0);
        reduce2_plus(&mut self.c1.c2, &b.c2, &f0.c1);
    }

    /// Cyclotomic: the inverse. self below 1000·p.
    #[inline]
    pub(crate) fn conjugate(&self) -> Self {
        Self { c0: self.c0, c1: self.c1.neg() }
    }

    #[inline]
    pub(crate) fn weak(self) -> Self {
        Self { c0: self.c0.weak(), c1: self.c1.weak() }
    }

    /// Gathers one element into each lane.
    pub(crate) fn gather(elements: [&[Packed; 12]; LANES]) -> Self {
        let at = |i: usize| Fp::gather(elements.map(|e| &e[i]));
        let at2 = |i: usize| Fp2 { c0: at(i), c1: at(i + 1) };
        let at6 = |i: usize| Fp6 { c0: at2(i), c1: at2(i + 2), c2: at2(i + 4) };
        Self { c0: at6(0), c1: at6(6) }
    }

    /// Each lane as an element at rest; normalised.
    pub(crate) fn scatter(&self, out: [&mut [Packed; 12]; LANES]) {
        let out = out.map(|e| e.as_mut_ptr());
        for (i, fp) in self.coefficients().into_iter().enumerate() {
            for (lane, packed) in fp.scatter().into_iter().enumerate() {
                // SAFETY: i < 12 and the pointers come from distinct arrays of 12.
                unsafe { out[lane].add(i).write(packed) };
            }
        }
    }

    /// In tower order.
    pub(crate) fn coefficients(&self) -> [&Fp; 12] {
        let [a, b, c, d, e, f] =
            [&self.c0.c0, &self.c0.c1, &self.c0.c2, &self.c1.c0, &self.c1.c1, &self.c1.c2];
        [&a.c0, &a.c1, &b.c0, &b.c1, &c.c0, &c.c1, &d.c0, &d.c1, &e.c0, &e.c1, &f.c0, &f.c1]
    }

    /// `self` where the mask has a 1, `other` elsewhere.
    pub(crate) fn select(&self, other: &Self, mask: u8) -> Self {
        let at2 = |a: &Fp2, b: &Fp2| Fp2 { c0: a.c0.select(&b.c0, mask), c1: a.c1.select(&b.c1, mask) };
        let at6 = |a: &Fp6, b: &Fp6| Fp6 { c0: at2(&a.c0, &b.c0), c1: at2(&a.c1, &b.c1), c2: at2(&a.c2, &b.c2) };
        Self { c0: at6(&self.c0, &other.c0), c1: at6(&self.c1, &other.c1) }
    }
}
}

lanes! {
    /// a + f, f unreduced above the reduction: the result is that much larger.
    #[inline(never)]
    fn reduce_plus(out: &mut Fp, a: &Wide, f: &Fp) {
        *out = reduce_with!(|i| if i < 8 { a.0[i] } else { add(a.0[i], f.0[i - 8]) });
    }

    /// a + f − g + 1024·p.
    #[inline(never)]
    fn reduce_plus_difference(out: &mut Fp, a: &Wide, f: &Fp, g: &Fp) {
        let d = f.sub(g).lift::<1024>();
        *out = reduce_with!(|i| if i < 8 { a.0[i] } else { add(a.0[i], d.0[i - 8]) });
    }

    #[inline(never)]
    fn reduce_plus_sum(out: &mut Fp, a: &Wide, f: &Fp, g: &Fp) {
        *out = reduce_with!(|i| if i < 8 { a.0[i] } else { add(a.0[i], add(f.0[i - 8], g.0[i - 8])) });
    }

    #[inline]
    fn reduce2_plus(out: &mut Fp2, a: &Wide2, f: &Fp2) {
        reduce_plus(&mut out.c0, &a.c0, &f.c0);
        reduce_plus(&mut out.c1, &a.c1, &f.c1);
    }

    /// a + ξ·f.
    #[inline]
    fn reduce2_plus_xi(out: &mut Fp2, a: &Wide2, f: &Fp2) {
        reduce_plus_difference(&mut out.c0, &a.c0, &f.c0, &f.c1);
        reduce_plus_sum(&mut out.c1, &a.c1, &f.c0, &f.c1);
    }
}
