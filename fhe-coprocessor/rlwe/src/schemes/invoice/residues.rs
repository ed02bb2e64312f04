//! Lines as messages, and a total from its residues.

use zeroize::Zeroizing;

use super::InvoiceError;
use crate::ring::Modulus;

/// The plaintext moduli: primes, 1 modulo 8192. Small ones keep the noise small, and their product is above 2^56.
pub const MODULI: [u64; 3] = [319_489, 417_793, 557_057];
/// Most lines of one invoice: 2^8 products below 2^48.
pub const MAX_LINES: usize = 256;

/// Prices at X^i, modulo t and centred: one coefficient for each power.
pub(super) fn price_message(prices: &[u32], modulus: &Modulus, degree: usize) -> Zeroizing<Vec<i64>> {
    let mut message = Zeroizing::new(vec![0; degree]);
    for (place, &price) in message.iter_mut().zip(prices) {
        *place = modulus.centre(modulus.reduce(price.into()));
    }
    message
}

/// Quantities at X^(−i) = −X^(N−i).
pub(super) fn quantity_message(quantities: &[u16], modulus: &Modulus, degree: usize) -> Zeroizing<Vec<i64>> {
    let mut message = Zeroizing::new(vec![0; degree]);
    for (line, &quantity) in quantities.iter().enumerate() {
        let number = modulus.centre(modulus.reduce(quantity.into()));
        match line {
            0 => message[0] = number,
            _ => message[degree - line] = -number,
        }
    }
    message
}

/// The quantities of a message that [`quantity_message`] made, `MAX_LINES` of them; none of another one.
pub(super) fn quantities(message: &[i64], modulus: &Modulus) -> Option<Zeroizing<Vec<u16>>> {
    let degree = message.len();
    let numbers = (0..MAX_LINES).map(|line| match line {
        0 => modulus.lift(message[0]),
        _ => modulus.neg(modulus.lift(message[degree - line])),
    });
    let empty = message[1..=degree - MAX_LINES].iter().fold(true, |all, &number| all & (number == 0));
    let numbers: Option<Vec<u16>> = numbers.map(|number| u16::try_from(number).ok()).collect();
    numbers.filter(|_| empty).map(Zeroizing::new)
}

/// The number below t_1·t_2·t_3 with these residues.
pub(super) fn whole(residues: [u64; 3]) -> Result<u64, InvoiceError> {
    let product: u64 = MODULI.iter().product();
    let mut sum = 0;
    for (&t, residue) in MODULI.iter().zip(residues) {
        let modulus = Modulus::new(t).map_err(|_| InvoiceError::Message)?;
        let cofactor = product / t;
        // Below 2^57 each.
        sum += cofactor * modulus.mul(residue, modulus.inverse(modulus.reduce(cofactor)));
    }
    Ok(sum % product)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_total_is_whole() {
        let largest = MAX_LINES as u64 * u64::from(u32::MAX) * u64::from(u16::MAX);
        assert!(largest < MODULI.iter().product());
        for total in [0, 1, largest, largest - 1, 1 << 40] {
            assert_eq!(whole(MODULI.map(|t| total % t)), Ok(total));
        }
    }

    #[test]
    fn quantities_come_back_and_other_messages_do_not() {
        let modulus = Modulus::new(MODULI[0]).unwrap();
        let given: Vec<u16> = (0..MAX_LINES as u16).map(|line| u16::MAX - line).collect();
        let message = quantity_message(&given, &modulus, 4096);
        assert_eq!(quantities(&message, &modulus).as_deref(), Some(&given));
        let short = quantity_message(&given[..3], &modulus, 4096);
        assert_eq!(quantities(&short, &modulus).unwrap()[..4], [65_535, 65_534, 65_533, 0]);
        for (place, number) in [(0, 70_000), (0, -1), (4095, 1), (17, 1), (4096 - 256, 1)] {
            let mut other = message.clone();
            other[place] = number;
            assert_eq!(quantities(&other, &modulus), None, "{number} at {place}");
        }
    }
}
