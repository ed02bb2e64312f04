//! Squarings in the cyclotomic subgroup (Granger and Scott, ePrint 2009/565), and products that run on for long.

use super::field::Fp;
use super::tower::{Fp2, Fp12, Out, Wide2, reduce_with, square2};
use super::vector::{add, lanes, sub};

/// An element that many others are multiplied into: two buffers take turns, so that nothing is copied.
pub(crate) struct Running {
    buffers: [Fp12; 2],
    current: usize,
}

lanes! {
impl Running {
    pub(crate) fn new(value: &Fp12) -> Self {
        Self { buffers: [*value; 2], current: 0 }
    }

    pub(crate) fn value(&self) -> &Fp12 {
        &self.buffers[self.current]
    }

    /// The value and where the next one is written to.
    #[inline]
    fn turn(&mut self) -> (&Fp12, &mut Fp12) {
        let [a, b] = &mut self.buffers;
        self.current ^= 1;
        if self.current == 1 { (a, b) } else { (b, a) }
    }

    /// Times `factor`; both below 2^11·p, reduced after.
    pub(crate) fn multiply(&mut self, factor: &Fp12) {
        let (value, next) = self.turn();
        next.set_product(value, factor);
    }

    /// To the power 2^count, cyclotomic; reduced before, below 600·p after.
    ///
    /// The terms ±2·z of the formula are added unreduced, so values grow: every fourth result is reduced weakly.
    pub(crate) fn square_times(&mut self, count: usize) {
        for i in 0..count {
            if i % 4 == 0 && i > 0 {
                self.buffers[self.current].weaken();
            }
            let (value, next) = self.turn();
            match i % 4 {
                0 => next.set_cyclotomic_square::<8>(value),
                1 => next.set_cyclotomic_square::<32>(value),
                2 => next.set_cyclotomic_square::<128>(value),
                _ => next.set_cyclotomic_square::<512>(value),
            }
        }
    }
}
}

lanes! {
impl Fp12 {
    /// Cyclotomic squaring (Granger and Scott, ePrint 2009/565) of an element below Z·p, where LIFT ≥ 2Z + 1; the
    /// result is below (LIFT + 3)·p: see [`Fp12::square_cyclotomic_times`].
    #[inline(never)]
    fn set_cyclotomic_square<const LIFT: u64>(&mut self, a: &Self) {
        let (f0, f1) = (&a.c0, &a.c1);
        let (g0, g1) = (&mut self.c0, &mut self.c1);
        square_pair::<LIFT>((&mut g0.c0, &mut g1.c1), (&f0.c0, &f1.c1), (&f0.c0, &f1.c1));
        square_pair::<LIFT>((&mut g0.c1, &mut g1.c2), (&f1.c0, &f0.c2), (&f0.c1, &f1.c2));
        square_pair_xi::<LIFT>((&mut g0.c2, &mut g1.c0), (&f0.c1, &f1.c2), (&f0.c2, &f1.c0));
    }

    /// self^(2^count), cyclotomic; self reduced, the result below 600·p.
    pub(crate) fn square_cyclotomic_times(&self, count: usize) -> Self {
        let mut power = Running::new(self);
        power.square_times(count);
        *power.value()
    }

    /// Every coefficient from below 2^11·p to below 1.01·p.
    fn weaken(&mut self) {
        for c6 in [&mut self.c0, &mut self.c1] {
            for c2 in [&mut c6.c0, &mut c6.c1, &mut c6.c2] {
                c2.c0 = c2.c0.weak();
                c2.c1 = c2.c1.weak();
            }
        }
    }
}
}

/// 3·t, with 2·z added ($add) or subtracted ($sub) above the reduction.
macro_rules! triple {
    ($z:expr, $add:ident, |$i:ident| $limb:expr) => {
        reduce_with!(|$i| {
            let t = $limb;
            let t = add(add(t, t), t);
            if $i < 8 { t } else { $add(t, add($z.0[$i - 8], $z.0[$i - 8])) }
        })
    };
}

lanes! {
    /// a², b² and (a + b)².
    #[inline]
    fn squares4(out: &mut [Out<Wide2>; 3], a: &Fp2, b: &Fp2) {
        square2(&mut out[0], a);
        square2(&mut out[1], b);
        square2(&mut out[2], &a.add_n(b));
    }

    /// With (c, d) = (a + b·s)² in F_p4, s² = ξ: (3·c − 2·y + LIFT·p, 3·d + 2·z).
    pub(super) fn square_pair<const LIFT: u64>(out: (&mut Fp2, &mut Fp2), ab: (&Fp2, &Fp2), yz: (&Fp2, &Fp2)) {
        let mut w = [const { Out::<Wide2>::uninit() }; 3];
        squares4(&mut w, ab.0, ab.1);
        // SAFETY: the call has written all three.
        let [x, y, s] = w.each_ref().map(|w| unsafe { w.assume_init_ref() });
        square4_low::<LIFT>(out.0, x, y, yz.0);
        square4_high(out.1, x, y, s, yz.1);
    }

    /// Like [`square_pair`] with ξ·d in place of d.
    pub(super) fn square_pair_xi<const LIFT: u64>(out: (&mut Fp2, &mut Fp2), ab: (&Fp2, &Fp2), yz: (&Fp2, &Fp2)) {
        let mut w = [const { Out::<Wide2>::uninit() }; 3];
        squares4(&mut w, ab.0, ab.1);
        // SAFETY: the call has written all three.
        let [x, y, s] = w.each_ref().map(|w| unsafe { w.assume_init_ref() });
        square4_low::<LIFT>(out.0, x, y, yz.0);
        square4_high_xi(out.1, x, y, s, yz.1);
    }

    /// 3·(a² + ξ·b²) − 2·z + LIFT·p.
    #[inline(never)]
    fn square4_low<const LIFT: u64>(out: &mut Fp2, a: &Wide2, b: &Wide2, z: &Fp2) {
        let lifted = |z: &Fp| Fp::zero().sub(z).sub(z).lift::<LIFT>();
        let z0 = lifted(&z.c0);
        out.c0 = reduce_with!(|i| {
            let t = add(a.c0.0[i], sub(b.c0.0[i], b.c1.0[i]));
            let t = add(add(t, t), t);
            if i < 8 { t } else { add(t, z0.0[i - 8]) }
        });
        let z1 = lifted(&z.c1);
        out.c1 = reduce_with!(|i| {
            let t = add(a.c1.0[i], add(b.c0.0[i], b.c1.0[i]));
            let t = add(add(t, t), t);
            if i < 8 { t } else { add(t, z1.0[i - 8]) }
        });
    }

    /// 3·((a + b)² − a² − b²) + 2·z.
    #[inline(never)]
    fn square4_high(out: &mut Fp2, a: &Wide2, b: &Wide2, s: &Wide2, z: &Fp2) {
        out.c0 = triple!(z.c0, add, |i| sub(sub(s.c0.0[i], a.c0.0[i]), b.c0.0[i]));
        out.c1 = triple!(z.c1, add, |i| sub(sub(s.c1.0[i], a.c1.0[i]), b.c1.0[i]));
    }

    /// 3·ξ·((a + b)² − a² − b²) + 2·z.
    #[inline(never)]
    fn square4_high_xi(out: &mut Fp2, a: &Wide2, b: &Wide2, s: &Wide2, z: &Fp2) {
        let d0 = |i: usize| sub(sub(s.c0.0[i], a.c0.0[i]), b.c0.0[i]);
        let d1 = |i: usize| sub(sub(s.c1.0[i], a.c1.0[i]), b.c1.0[i]);
        out.c0 = triple!(z.c0, add, |i| sub(d0(i), d1(i)));
        out.c1 = triple!(z.c1, add, |i| add(d0(i), d1(i)));
    }
}
