//! F_p and F_p2, as far as the towers and curves here need more than `blst` does with them itself.

use std::mem::MaybeUninit;

use blst::{blst_fp, blst_fp2};

/// Runs a `blst` function that fills its output.
///
/// # Safety
/// `write` must initialise the value it is given a pointer to.
#[inline(always)]
unsafe fn written<T>(write: impl FnOnce(*mut T)) -> T {
    let mut out = MaybeUninit::uninit();
    write(out.as_mut_ptr());
    // SAFETY: initialised, by this function's contract.
    unsafe { out.assume_init() }
}

/// A safe function of one or two field elements for each function of `blst` that does nothing else.
macro_rules! field_functions {
    ($($name:ident($($input:ident),+): $field:ty = $blst:ident;)*) => {$(
        #[inline(always)]
        pub(super) fn $name($($input: &$field),+) -> $field {
            // SAFETY: the inputs are initialised values of the declared type; the function writes its output.
            unsafe { written(|out| blst::$blst(out, $($input),+)) }
        }
    )*};
}

field_functions! {
    add(a, b): blst_fp = blst_fp_add;
    sub(a, b): blst_fp = blst_fp_sub;
    mul(a, b): blst_fp = blst_fp_mul;
    square(a): blst_fp = blst_fp_sqr;
    inverse(a): blst_fp = blst_fp_inverse;
    add2(a, b): blst_fp2 = blst_fp2_add;
    sub2(a, b): blst_fp2 = blst_fp2_sub;
    mul2(a, b): blst_fp2 = blst_fp2_mul;
    square2(a): blst_fp2 = blst_fp2_sqr;
    inverse2(a): blst_fp2 = blst_fp2_inverse;
}

/// Adds `other` bit by bit where `mask` is all ones; touches the same memory whatever the mask.
#[inline(always)]
pub(super) fn or_masked(own: &mut blst_fp, other: &blst_fp, mask: u64) {
    for (limb, other_limb) in own.l.iter_mut().zip(&other.l) {
        *limb |= other_limb & mask;
    }
}

/// (1+u)·a.
#[inline(always)]
pub(super) fn mul2_by_xi(a: &blst_fp2) -> blst_fp2 {
    let [real, imaginary] = &a.fp;
    blst_fp2 { fp: [sub(real, imaginary), add(real, imaginary)] }
}

/// Replaces every element by its inverse, 0 by 0: three products each and one inversion (Montgomery's trick).
/// Branches on which elements are 0, and on nothing else.
pub(super) fn invert_all(elements: &mut [blst_fp]) {
    let zero = blst_fp::default();
    let Some(first) = elements.iter().position(|element| *element != zero) else { return };
    let mut products = Vec::with_capacity(elements.len() - first);
    let mut product = elements[first];
    for element in &elements[first + 1..] {
        products.push(product);
        if *element != zero {
            product = mul(&product, element);
        }
    }
    let mut inverse = inverse(&product);
    for (element, before) in elements[first + 1..].iter_mut().zip(products).rev() {
        if *element != zero {
            (*element, inverse) = (mul(&inverse, &before), mul(&inverse, element));
        }
    }
    elements[first] = inverse;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverting_together_keeps_zeros() {
        let two = crate::curve::G1Affine::generator().0.x;
        let zero = blst_fp::default();
        let values: Vec<blst_fp> =
            (0..9u32).scan(two, |v, _| Some(std::mem::replace(v, square(v)))).collect();
        for zeros in [&[][..], &[0], &[0, 1, 8], &[3, 4], &[0, 1, 2, 3, 4, 5, 6, 7, 8]] {
            let mut some = values.clone();
            zeros.iter().for_each(|i: &usize| some[*i] = zero);
            let mut inverses = some.clone();
            invert_all(&mut inverses);
            for (value, inverted) in some.iter().zip(&inverses) {
                assert!(*inverted == if *value == zero { zero } else { inverse(value) });
            }
        }
        invert_all(&mut []);
    }
}
