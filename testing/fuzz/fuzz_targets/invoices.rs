//! Keys, ciphertexts and totals of invoices: what decodes has exactly one encoding, and nothing panics.
#![no_main]

use std::sync::LazyLock;

use blindfold_rlwe::schemes::invoice::Invoices;
use libfuzzer_sys::fuzz_target;

/// Valid encodings to start from: their lengths are fixed, and no fuzzer finds 331,830 bytes by itself.
struct Samples {
    invoices: Invoices,
    encoded: [Vec<u8>; 3],
}

static SAMPLES: LazyLock<Samples> = LazyLock::new(|| {
    let invoices = Invoices::new(&[9; 32]).expect("fixed numbers");
    let key = invoices.key(&invoices.secret(&[1; 32]));
    let mut rng = Counting(0);
    let prices = invoices.encrypt_prices(&key, &[1, 2], &mut rng).expect("two lines");
    let quantities = invoices.encrypt_quantities(&key, &[3], &mut rng).expect("one line");
    let total = invoices.total(&key, &quantities, &prices, &[0; 32]).expect("fresh operands");
    Samples { encoded: [key.encode(), prices.encode(), total.encode()], invoices }
});

/// Fixed bytes: the samples need no randomness.
struct Counting(u64);

impl rand_core::TryRng for Counting {
    type Error = core::convert::Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        self.try_next_u64().map(|word| word as u32)
    }
    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        Ok(self.0)
    }
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        bytes.iter_mut().for_each(|byte| *byte = self.try_next_u64().map_or(0, |word| (word >> 32) as u8));
        Ok(())
    }
}

impl rand_core::TryCryptoRng for Counting {}

/// The input changes a sample: which one, then places of three bytes and what is flipped there. What is left of
/// it is taken as an encoding itself.
fuzz_target!(|bytes: &[u8]| {
    let Samples { invoices, encoded } = &*SAMPLES;
    let Some((which, changes)) = bytes.split_first() else { return };
    let mut sample = encoded[usize::from(*which) % encoded.len()].clone();
    for change in changes.chunks_exact(4) {
        let place = usize::from(change[0]) << 16 | usize::from(change[1]) << 8 | usize::from(change[2]);
        let length = sample.len();
        sample[place % length] ^= change[3];
    }
    for bytes in [bytes, &sample] {
        if let Ok(key) = invoices.decode_key(bytes) {
            assert!(key.encode() == bytes);
        }
        if let Ok(ciphertext) = invoices.decode_ciphertext(bytes) {
            assert!(ciphertext.encode() == bytes);
        }
        if let Ok(total) = invoices.decode_total(bytes) {
            assert!(total.encode() == bytes);
        }
    }
});
