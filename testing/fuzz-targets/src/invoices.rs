use std::sync::LazyLock;

use crate::Counter;
use blindfold_rlwe::schemes::invoice::Invoices;

/// Valid encodings to start from: their lengths are fixed, and no fuzzer finds 331,830 bytes by itself.
struct Samples {
    invoices: Invoices,
    encoded: [Vec<u8>; 3],
}

static SAMPLES: LazyLock<Samples> = LazyLock::new(|| {
    let invoices = Invoices::new(&[9; 32]).expect("fixed numbers");
    let key = invoices.key(&invoices.secret(&[1; 32]));
    let mut rng = Counter(0);
    let prices = invoices.encrypt_prices(&key, &[1, 2], &mut rng).expect("two lines");
    let quantities = invoices.encrypt_quantities(&key, &[3], &mut rng).expect("one line");
    let total = invoices.total(&key, &quantities, &prices, &[0; 32]).expect("fresh operands");
    Samples { encoded: [key.encode(), prices.encode(), total.encode()], invoices }
});

/// Keys, ciphertexts and totals of invoices: what decodes has exactly one encoding, and nothing panics.
///
/// Input: it changes a sample: which one u8 · changes of place u24 and what is flipped there u8. It is taken as an
/// encoding itself, too.
pub fn invoices(input: &[u8]) {
    let Samples { invoices, encoded } = &*SAMPLES;
    let Some((which, changes)) = input.split_first() else { return };
    let mut sample = encoded[usize::from(*which) % encoded.len()].clone();
    for change in changes.chunks_exact(4) {
        let place = usize::from(change[0]) << 16 | usize::from(change[1]) << 8 | usize::from(change[2]);
        let length = sample.len();
        sample[place % length] ^= change[3];
    }
    for bytes in [input, &sample] {
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
}
