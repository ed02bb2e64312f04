//! Exact conversion of a centred residue-number representation to other primes, by Garner's mixed radix.

use super::Modulus;

/// From residues modulo q_1 … q_k to residues modulo p_1 … p_l of the **centred** integer, |x| ≤ (q−1)/2 for q = ∏ q_i.
/// Exact, and without branches on the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BasisConversion {
    from: Vec<Modulus>,
    to: Vec<Modulus>,
    /// (q_1 … q_(i−1))^(−1) mod q_i.
    inverses: Vec<u64>,
    /// q_1 … q_(j−1) mod q_i for j ≤ i, row i.
    places: Vec<Vec<u64>>,
    /// q_1 … q_(j−1) mod p_i for every j, row i.
    target_places: Vec<Vec<u64>>,
    /// (q−1)/2 modulo each q_i and each p_i.
    halves: Vec<u64>,
    target_halves: Vec<u64>,
}

impl BasisConversion {
    /// Tables from distinct primes `from` to primes `to`. Costs k exponentiations and O(k·(k + l)) products.
    #[must_use]
    pub fn new(from: &[Modulus], to: &[Modulus]) -> Self {
        let places = |modulus: &Modulus, count: usize| -> Vec<u64> {
            let next = |place: &mut u64, prime: &Modulus| {
                let current = *place;
                *place = modulus.mul(current, modulus.reduce(prime.value()));
                Some(current)
            };
            from.iter().take(count).scan(1, next).collect()
        };
        let half = |modulus: &Modulus| {
            let product = from.iter().fold(1, |product, q| modulus.mul(product, modulus.reduce(q.value())));
            modulus.mul(modulus.sub(product, 1), modulus.inverse(2))
        };
        let own: Vec<Vec<u64>> = from.iter().enumerate().map(|(i, modulus)| places(modulus, i + 1)).collect();
        Self {
            inverses: own
                .iter()
                .zip(from)
                .map(|(row, modulus)| modulus.inverse(row[row.len() - 1]))
                .collect(),
            places: own,
            target_places: to.iter().map(|modulus| places(modulus, from.len())).collect(),
            halves: from.iter().map(half).collect(),
            target_halves: to.iter().map(half).collect(),
            from: from.to_vec(),
            to: to.to_vec(),
        }
    }

    /// Converts n integers: `residues` holds n for each of the first primes, prime after prime; so does the result for
    /// the others. Costs k²/2 + k·l products for each integer.
    ///
    /// # Panics
    /// If `residues` is not k·n long.
    #[must_use]
    pub fn convert(&self, residues: &[u64]) -> Vec<u64> {
        let count = residues.len() / self.from.len();
        assert_eq!(residues.len(), count * self.from.len(), "n residues for each prime");
        let mut converted = vec![0; count * self.to.len()];
        let mut digits = vec![0; self.from.len()];
        for column in 0..count {
            self.digits(residues, column, &mut digits);
            for (i, modulus) in self.to.iter().enumerate() {
                let shifted = sum_of_places(modulus, &digits, &self.target_places[i]);
                converted[i * count + column] = modulus.sub(shifted, self.target_halves[i]);
            }
        }
        converted
    }

    /// Mixed-radix digits of integer `column`, plus (q−1)/2, which lies in [0, q).
    fn digits(&self, residues: &[u64], column: usize, digits: &mut [u64]) {
        let count = residues.len() / self.from.len();
        for (i, modulus) in self.from.iter().enumerate() {
            let shifted = modulus.add(residues[i * count + column], self.halves[i]);
            let below = sum_of_places(modulus, &digits[..i], &self.places[i]);
            digits[i] = modulus.mul(modulus.sub(shifted, below), self.inverses[i]);
        }
    }

    /// The centred integers themselves, for q < 2^127.
    pub(crate) fn integers(&self, residues: &[u64]) -> Vec<i128> {
        let count = residues.len() / self.from.len();
        let half = (self.from.iter().map(|q| u128::from(q.value())).product::<u128>() / 2) as i128;
        let mut digits = vec![0; self.from.len()];
        let integer = |column| {
            self.digits(residues, column, &mut digits);
            let horner = digits.iter().zip(&self.from).rev();
            horner.fold(0, |sum: i128, (&digit, q)| sum * i128::from(q.value()) + i128::from(digit)) - half
        };
        (0..count).map(integer).collect()
    }
}

fn sum_of_places(modulus: &Modulus, digits: &[u64], places: &[u64]) -> u64 {
    let terms = digits.iter().zip(places);
    terms.fold(0, |sum, (&digit, &place)| modulus.add(sum, modulus.mul(modulus.reduce(digit), place)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moduli(primes: &[u64]) -> Vec<Modulus> {
        primes.iter().map(|&q| Modulus::new(q).unwrap()).collect()
    }

    #[test]
    fn every_small_integer_keeps_its_centred_value() {
        let from = moduli(&[3, 17, 5]);
        let to = moduli(&[65_537, 7]);
        let conversion = BasisConversion::new(&from, &to);
        let (low, high) = (-127_i64, 127_i64); // q = 255
        for x in low..=high {
            let residues: Vec<u64> = from.iter().map(|q| x.rem_euclid(q.value() as i64) as u64).collect();
            let expected: Vec<u64> = to.iter().map(|p| x.rem_euclid(p.value() as i64) as u64).collect();
            assert_eq!(conversion.convert(&residues), expected, "{x}");
        }
    }

    #[test]
    fn wide_integers_go_there_and_back() {
        let from = moduli(&[18_014_398_492_704_769, 18_014_398_207_492_097]);
        let to = moduli(&[18_014_398_190_714_881, 18_014_397_804_838_913, 65_537]);
        let q: i128 = from.iter().map(|m| i128::from(m.value())).product();
        let values = [0, 1, -1, (q - 1) / 2, -(q - 1) / 2, (q - 1) / 2 - 1, q / 3, -q / 7];
        let residues = |moduli: &[Modulus]| -> Vec<u64> {
            let row = |m: &Modulus| values.map(|x| x.rem_euclid(i128::from(m.value())) as u64);
            moduli.iter().flat_map(row).collect()
        };
        let there = BasisConversion::new(&from, &to).convert(&residues(&from));
        assert_eq!(there, residues(&to));
        assert_eq!(BasisConversion::new(&to, &from).convert(&there), residues(&from));
    }
}
