//! The registers of a warp: one value for each of its lanes.

/// Lanes of a warp.
pub(crate) const LANES: usize = 32;

/// Which lanes: bit l is lane l.
pub(crate) type Mask = u32;

/// All lanes.
pub(crate) const ALL: Mask = !0;

/// A register of up to 32 bits in every lane; shorter ones are extended by zeros.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Words(pub(crate) [u32; LANES]);

/// A register of 64 bits in every lane.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Longs(pub(crate) [u64; LANES]);

impl Words {
    pub(crate) const fn of(value: u32) -> Self {
        Self([value; LANES])
    }

    /// Takes over the values of some lanes.
    #[inline(always)]
    pub(crate) fn put(&mut self, values: &Self, lanes: Mask) {
        if lanes == ALL {
            *self = *values;
        } else {
            for lane in 0..LANES {
                if lanes >> lane & 1 == 1 {
                    self.0[lane] = values.0[lane];
                }
            }
        }
    }

    #[inline(always)]
    pub(crate) fn map(&self, f: impl Fn(u32) -> u32) -> Self {
        let mut result = Self([0; LANES]);
        for lane in 0..LANES {
            result.0[lane] = f(self.0[lane]);
        }
        result
    }

    #[inline(always)]
    pub(crate) fn zip(&self, other: &Self, f: impl Fn(u32, u32) -> u32) -> Self {
        let mut result = Self([0; LANES]);
        for lane in 0..LANES {
            result.0[lane] = f(self.0[lane], other.0[lane]);
        }
        result
    }

    #[inline(always)]
    pub(crate) fn compare(&self, other: &Self, f: impl Fn(u32, u32) -> bool) -> Mask {
        (0..LANES).fold(0, |mask, lane| mask | u32::from(f(self.0[lane], other.0[lane])) << lane)
    }
}

impl Longs {
    pub(crate) const fn of(value: u64) -> Self {
        Self([value; LANES])
    }

    /// Takes over the values of some lanes.
    #[inline(always)]
    pub(crate) fn put(&mut self, values: &Self, lanes: Mask) {
        if lanes == ALL {
            *self = *values;
        } else {
            for lane in 0..LANES {
                if lanes >> lane & 1 == 1 {
                    self.0[lane] = values.0[lane];
                }
            }
        }
    }

    #[inline(always)]
    pub(crate) fn zip(&self, other: &Self, f: impl Fn(u64, u64) -> u64) -> Self {
        let mut result = Self([0; LANES]);
        for lane in 0..LANES {
            result.0[lane] = f(self.0[lane], other.0[lane]);
        }
        result
    }

    /// With a second operand of 32 bits: shifts.
    #[inline(always)]
    pub(crate) fn shift(&self, by: &Words, f: impl Fn(u64, u32) -> u64) -> Self {
        let mut result = Self([0; LANES]);
        for lane in 0..LANES {
            result.0[lane] = f(self.0[lane], by.0[lane]);
        }
        result
    }

    #[inline(always)]
    pub(crate) fn compare(&self, other: &Self, f: impl Fn(u64, u64) -> bool) -> Mask {
        (0..LANES).fold(0, |mask, lane| mask | u32::from(f(self.0[lane], other.0[lane])) << lane)
    }
}

/// The lanes of a mask, in one order or the other.
pub(crate) fn lanes_of(mask: Mask, backwards: bool) -> impl Iterator<Item = usize> {
    (0..LANES)
        .map(move |i| if backwards { LANES - 1 - i } else { i })
        .filter(move |lane| mask >> lane & 1 == 1)
}
