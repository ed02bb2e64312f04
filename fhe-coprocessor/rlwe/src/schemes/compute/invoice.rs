//! An invoice's total, Σ price·quantity, by one product and without rotations.
//!
//! Prices and quantities are split into octal digits. With line i's price digits at X^(S·i + k) and its quantity digits
//! at X^(l − S·i), S = 16 weights apart, the product's coefficient w < S is Σ_i Σ_(k+l=w) p_ik·q_il: digits of different
//! lines meet at S·(i − i') + k + l, outside of 0..S. It is exact while it is below t: a line adds at most 6·7² = 294,
//! so 222 lines do. The total is Σ_w coefficient_w·8^w.
//!
//! Whoever returns the total keeps the first S coefficients only
//! ([`ComputeCiphertext::keep`](super::ComputeCiphertext::keep)): the others mix prices and quantities of different
//! lines.

use zeroize::Zeroizing;

use crate::rlwe::Parameters;

/// Octal digits of a price of 32 bits, and of a quantity of 16.
const PRICE_DIGITS: usize = 11;
const QUANTITY_DIGITS: usize = 6;
/// Coefficients of the product that carry the total.
pub const WEIGHTS: usize = PRICE_DIGITS + QUANTITY_DIGITS - 1;
const DIGIT_BITS: u32 = 3;
/// Most lines of one invoice: 222·294 < 65537.
pub const MAX_LINES: usize = 222;

/// Why there is no total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvoiceError {
    /// More lines than stay exact.
    #[error("{lines} lines: an invoice has at most {MAX_LINES}, split it and add the totals")]
    Lines {
        /// Lines given.
        lines: usize,
    },
    /// N is too small, or t is not above 222·294.
    #[error("these parameters are too small for invoices")]
    Parameters,
    /// A message that no invoice makes.
    #[error("the opened message is not the total of an invoice")]
    Message,
}

/// The message with all prices, for the party that knows them.
///
/// # Errors
/// [`InvoiceError::Lines`], [`InvoiceError::Parameters`].
pub fn price_message(prices: &[u32], parameters: &Parameters) -> Result<Zeroizing<Vec<i64>>, InvoiceError> {
    let mut message = empty(prices.len(), parameters)?;
    for (line, &price) in prices.iter().enumerate() {
        for (k, digit) in digits(price, PRICE_DIGITS).enumerate() {
            message[WEIGHTS * line + k] = digit;
        }
    }
    Ok(message)
}

/// The message with all quantities, for the party that knows them; X^(−j) = −X^(N − j).
///
/// # Errors
/// [`InvoiceError::Lines`], [`InvoiceError::Parameters`].
pub fn quantity_message(
    quantities: &[u16],
    parameters: &Parameters,
) -> Result<Zeroizing<Vec<i64>>, InvoiceError> {
    let mut message = empty(quantities.len(), parameters)?;
    for (line, &quantity) in quantities.iter().enumerate() {
        for (l, digit) in digits(quantity.into(), QUANTITY_DIGITS).enumerate() {
            // A quantity has fewer digits than the distance of lines: l ≥ S·i for the first line only.
            match l.checked_sub(WEIGHTS * line) {
                Some(at) => message[at] = digit,
                None => message[parameters.degree() + l - WEIGHTS * line] = -digit,
            }
        }
    }
    Ok(message)
}

/// The total from the first coefficients of the opened product.
///
/// # Errors
/// [`InvoiceError::Message`] if there are too few.
pub fn total(message: &[i64], parameters: &Parameters) -> Result<u64, InvoiceError> {
    let t = parameters.literal().plaintext_modulus as i64;
    let weights = message.get(..WEIGHTS).ok_or(InvoiceError::Message)?;
    // Weights of an invoice lie in 0..t; messages are centred.
    weights
        .iter()
        .rev()
        .try_fold(0_u64, |sum, &weight| {
            let weight = if weight < 0 { weight + t } else { weight };
            sum.checked_mul(1 << DIGIT_BITS)?.checked_add(u64::try_from(weight).ok()?)
        })
        .ok_or(InvoiceError::Message)
}

fn empty(lines: usize, parameters: &Parameters) -> Result<Zeroizing<Vec<i64>>, InvoiceError> {
    if lines > MAX_LINES {
        return Err(InvoiceError::Lines { lines });
    }
    let exact = (MAX_LINES * QUANTITY_DIGITS * 49) as u64;
    if parameters.degree() < 2 * WEIGHTS + WEIGHTS * MAX_LINES
        || parameters.literal().plaintext_modulus <= exact
    {
        return Err(InvoiceError::Parameters);
    }
    Ok(Zeroizing::new(vec![0; parameters.degree()]))
}

fn digits(number: u32, count: usize) -> impl Iterator<Item = i64> {
    (0..count as u32).map(move |i| i64::from((number >> (DIGIT_BITS * i)) & 7))
}
