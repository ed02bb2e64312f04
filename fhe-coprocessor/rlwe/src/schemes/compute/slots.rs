//! N numbers modulo t in one message, so that sums and products act on each.

use zeroize::Zeroizing;

use crate::ring::{Ntt, bit_reverse};
use crate::rlwe::Parameters;

/// Why numbers are no message; the caller's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SlotsError {
    /// There are more numbers than slots.
    #[error("{count} numbers do not fit the {slots} slots: use another ciphertext for the rest")]
    Count {
        /// How many numbers were given.
        count: usize,
        /// How many slots there are: N.
        slots: usize,
    },
    /// A number is not reduced.
    #[error("the number in slot {slot} is not below t: split it into digits")]
    Range {
        /// Which slot it is, from 0.
        slot: usize,
    },
}

/// The transform modulo t: slot i holds the value of the message at ψ^(2i+1), ψ as in [`Ntt::new`].
///
/// The constant coefficient of a message times N is the sum of its slots modulo t.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slots(pub(super) Ntt);

impl Slots {
    /// N.
    #[must_use]
    pub fn count(parameters: &Parameters) -> usize {
        parameters.degree()
    }

    /// The message whose slots are `numbers`, zeros after them: N centred coefficients. Costs one transform.
    ///
    /// # Errors
    /// [`SlotsError`].
    pub fn encode(
        &self,
        numbers: &[u64],
        parameters: &Parameters,
    ) -> Result<Zeroizing<Vec<i64>>, SlotsError> {
        let (slots, modulus) = (parameters.degree(), self.0.modulus());
        if numbers.len() > slots {
            return Err(SlotsError::Count { count: numbers.len(), slots });
        }
        if let Some(slot) = numbers.iter().position(|&number| number >= modulus.value()) {
            return Err(SlotsError::Range { slot });
        }
        let mut values = Zeroizing::new(vec![0; slots]);
        for (i, &number) in numbers.iter().enumerate() {
            values[bit_reverse(i, slots)] = number;
        }
        self.0.inverse(&mut values);
        Ok(Zeroizing::new(values.iter().map(|&x| modulus.centre(x)).collect()))
    }

    /// The slots of a message of N centred coefficients. Costs one transform.
    #[must_use]
    pub fn decode(&self, message: &[i64]) -> Vec<u64> {
        let mut values: Vec<u64> = message.iter().map(|&m| self.0.modulus().lift(m)).collect();
        self.0.forward(&mut values);
        (0..values.len()).map(|i| values[bit_reverse(i, values.len())]).collect()
    }
}
