//! Invoices: totals are exact, the same everywhere, masked, and every wrong input is named.
#![allow(clippy::unwrap_used)]

use blindfold_rlwe::ring::DecodeError;
use blindfold_rlwe::rlwe::{EncryptionWitness, OpenError, Parameters, PublicPolynomial, SecretKey};
use blindfold_rlwe::schemes::compute::{Compute, ComputeCiphertext, ComputeError, RelinearizationKey};
use blindfold_rlwe::schemes::invoice::{
    InvoiceCiphertext, InvoiceError, InvoiceKey, InvoiceSecret, Invoices, MAX_LINES, MODULI,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const SEED: u64 = 21;

struct Setting {
    invoices: Invoices,
    secret: InvoiceSecret,
    key: InvoiceKey,
    rng: ChaCha20Rng,
}

fn setting() -> Setting {
    println!("seed {SEED}");
    let invoices = Invoices::new(&[9; 32]).unwrap();
    let secret = invoices.secret(&[1; 32]);
    Setting { key: invoices.key(&secret), secret, invoices, rng: ChaCha20Rng::seed_from_u64(SEED) }
}

impl Setting {
    fn both(&mut self, lines: &[(u32, u16)]) -> (InvoiceCiphertext, InvoiceCiphertext) {
        let (prices, quantities): (Vec<u32>, Vec<u16>) = lines.iter().copied().unzip();
        let prices = self.invoices.encrypt_prices(&self.key, &prices, &mut self.rng).unwrap();
        (prices, self.invoices.encrypt_quantities(&self.key, &quantities, &mut self.rng).unwrap())
    }
}

#[test]
fn every_total_is_exact() {
    let mut setting = setting();
    let random: Vec<(u32, u16)> =
        (0..MAX_LINES).map(|_| (setting.rng.next_u32(), setting.rng.next_u32() as u16)).collect();
    let cases = [
        vec![],
        vec![(1999, 3)],
        vec![(0, 9), (7, 0), (250, 4)],
        vec![(u32::MAX, u16::MAX); 222],
        vec![(u32::MAX, u16::MAX); MAX_LINES],
        random[..3].to_vec(),
        random,
    ];
    for lines in cases {
        let (prices, quantities) = setting.both(&lines);
        let total = setting.invoices.total(&setting.key, &quantities, &prices, &[4; 32]).unwrap();
        let expected = lines.iter().map(|&(price, quantity)| u64::from(price) * u64::from(quantity)).sum();
        assert_eq!(setting.invoices.open(&setting.secret, &quantities, &total), Ok(expected));
    }
    let many = MAX_LINES + 1;
    let refused = setting.invoices.encrypt_prices(&setting.key, &vec![1; many], &mut setting.rng);
    assert_eq!(refused, Err(InvoiceError::Lines { lines: many }));
    let refused = setting.invoices.encrypt_quantities(&setting.key, &vec![1; many], &mut setting.rng);
    assert_eq!(refused, Err(InvoiceError::Lines { lines: many }));
}

#[test]
fn it_is_computed_again_from_the_encodings_to_the_byte() {
    let mut setting = setting();
    let (prices, quantities) = setting.both(&[(5, 6), (70, 8)]);
    let total = setting.invoices.total(&setting.key, &quantities, &prices, &[4; 32]).unwrap();
    let elsewhere = Invoices::new(&[9; 32]).unwrap();
    let (key, sent) = (setting.key.encode(), [quantities.encode(), prices.encode()]);
    assert_eq!((key.len(), sent[0].len(), sent[1].len()), (829_440, 331_830, 331_830));
    assert_eq!(
        (elsewhere.key_bytes(), elsewhere.ciphertext_bytes(), elsewhere.total_bytes()),
        (key.len(), sent[0].len(), total.encode().len())
    );
    let key = elsewhere.decode_key(&key).unwrap();
    assert_eq!(key, setting.key);
    let [ordered, priced] = sent.map(|bytes| elsewhere.decode_ciphertext(&bytes).unwrap());
    let again = elsewhere.total(&key, &ordered, &priced, &[4; 32]).unwrap();
    assert_eq!(again.encode(), total.encode());
    assert_eq!(elsewhere.decode_total(&total.encode()).unwrap(), total);
    let other = elsewhere.total(&key, &ordered, &priced, &[5; 32]).unwrap();
    assert_ne!(other.encode(), total.encode());
    assert_eq!(setting.invoices.open(&setting.secret, &quantities, &other), Ok(590));
}

/// The figure of the module's documentation: Σ (2·N·B + W/t + 1)/(2R + 1) over the three moduli, W the bound of the
/// product, R the mask's.
#[test]
fn the_masks_drown_the_noise() {
    let (mut distance, mut t_product) = (0.0, 1.0);
    for t in MODULI {
        let parameters = Parameters::compute_modulo(t).unwrap();
        let (n, q, t) = (4096_u128, parameters.modulus(), u128::from(t));
        let fresh = t * parameters.fresh_noise() + (q % t) * (t / 2);
        // The bound of the table in `compute`, the parts below 2^64 left out: they are paid for by rounding up.
        let product = n * (t * (n + 1) + 1) / 2 * 2 * fresh;
        let range = (q / 2 - 2 * product) / t;
        distance += (2 * n * 16 + product / t + 1) as f64 / (2 * range) as f64;
        t_product *= t as f64;
    }
    println!("distance 2^{:.1}, moduli 2^{:.2}", distance.log2(), t_product.log2());
    assert!(distance.log2() < -27.0);
}

/// What the mask is up against in fact: all coefficients of products of full invoices.
#[test]
fn the_noise_of_products_is_far_below_its_bound() {
    let mut rng = ChaCha20Rng::seed_from_u64(SEED);
    for t in MODULI {
        let parameters = Parameters::compute_modulo(t).unwrap();
        let public = PublicPolynomial::new(&parameters, &[9; 32]).unwrap();
        let secret = SecretKey::derive(&public, &[1; 32]);
        let key = RelinearizationKey::derive(&secret, &[1; 32]);
        let mut encrypt = || {
            let mut message = vec![0; 4096];
            message[..MAX_LINES].fill_with(|| (rng.next_u64() % t) as i64 - (t / 2) as i64);
            let witness = EncryptionWitness::sample(&parameters, 1, &message, &mut rng).unwrap();
            ComputeCiphertext::fresh(&witness.encrypt(&public, &[&secret.public_key()]).unwrap(), 0).unwrap()
        };
        let compute = Compute::new(&parameters).unwrap();
        let product = compute.multiply(&encrypt(), &encrypt(), &key).unwrap();
        let (_, noise) = compute.open(&secret, &product).unwrap();
        println!("t = {t}: noise 2^{} of at most 2^{}", noise.ilog2(), product.noise_bound().ilog2());
        assert!(noise < product.noise_bound() >> 15);
    }
}

#[test]
fn what_is_wrong_is_named() {
    let mut setting = setting();
    let (prices, quantities) = setting.both(&[(5, 6), (70, 8)]);
    let total = setting.invoices.total(&setting.key, &quantities, &prices, &[4; 32]).unwrap();
    let invoices = &setting.invoices;

    let stranger = invoices.secret(&[2; 32]);
    let opened = invoices.open(&stranger, &quantities, &total);
    assert_eq!(opened, Err(InvoiceError::Compute(ComputeError::Open(OpenError::Beyond))));
    // Prices are no quantities, and what was altered is no total.
    assert_eq!(invoices.open(&setting.secret, &prices, &total), Err(InvoiceError::Message));
    let mut bytes = total.encode();
    bytes[6] ^= 1;
    let altered = invoices.decode_total(&bytes).unwrap();
    assert_eq!(invoices.open(&setting.secret, &quantities, &altered), Err(InvoiceError::Message));

    let length = |result: Result<(), InvoiceError>| {
        assert!(matches!(result, Err(InvoiceError::Decode(DecodeError::Length { .. }))), "{result:?}");
    };
    let sent = prices.encode();
    for bytes in [&[][..], &sent[1..], &[&sent[..], &[0]].concat()] {
        length(invoices.decode_ciphertext(bytes).map(drop));
        length(invoices.decode_key(bytes).map(drop));
        length(invoices.decode_total(bytes).map(drop));
    }
    // The noise that it claims, 16 bytes at the end of each of the three.
    let mut claims = sent.clone();
    let end = claims.len() - 16;
    claims[end] ^= 1;
    assert_eq!(invoices.decode_ciphertext(&claims), Err(InvoiceError::NotFresh));
    let mut raised = sent;
    raised[..7].fill(0xff);
    let refused = invoices.decode_ciphertext(&raised);
    assert_eq!(refused, Err(InvoiceError::Decode(DecodeError::Coefficient { index: 0 })));
    let mut raised = setting.key.encode();
    raised[..7].fill(0xff);
    let refused = invoices.decode_key(&raised);
    assert_eq!(refused, Err(InvoiceError::Decode(DecodeError::Coefficient { index: 0 })));
    assert!(!format!("{:?}", setting.secret).contains("seed"));
}
