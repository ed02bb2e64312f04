//! Products over the integers: what a proof of an identity modulo q is about.

/// x·y in Z\[X\], without reduction: n + m − 1 coefficients, each below 2^(62+7)·min(n, m) in absolute value. Costs n·m
/// products of a word and a byte, without branches on the values. The product is the caller's to wipe: with `x` it
/// gives `y` away.
///
/// # Panics
/// If a factor is empty, or a coefficient of `x` is 2^62 or above.
#[must_use]
pub fn integer_product(x: &[u64], y: &[i8]) -> Vec<i128> {
    assert!(!x.is_empty() && !y.is_empty(), "two polynomials");
    assert!(x.iter().all(|x| x >> super::MAX_MODULUS_BITS == 0), "coefficients of a ring");
    let mut product = vec![0_i128; x.len() + y.len() - 1];
    for (i, &y) in y.iter().enumerate() {
        for (sum, &x) in product[i..].iter_mut().zip(x) {
            *sum += i128::from(x as i64) * i128::from(y);
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_is_not_reduced() {
        let top = (1 << 62) - 1;
        assert_eq!(
            integer_product(&[top, 2], &[-128, 1, 3]),
            [i128::from(top) * -128, i128::from(top) - 256, i128::from(top) * 3 + 2, 6]
        );
    }
}
