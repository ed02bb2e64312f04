//! Products: exact results, noise within its bound, every error.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use blindfold_rlwe::ring::DecodeError;
use blindfold_rlwe::rlwe::{
    EncryptionWitness, OpenError, Parameters, ParametersLiteral, PublicKey, PublicPolynomial, SecretKey,
};
use blindfold_rlwe::schemes::compute::{
    Compute, ComputeCiphertext, ComputeError, RelinearizationKey, SlotsError,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const T: u64 = 65_537;

struct Setting {
    compute: Compute,
    public: Arc<PublicPolynomial>,
    secret: SecretKey,
    owner: PublicKey,
    key: RelinearizationKey,
    rng: ChaCha20Rng,
}

fn setting() -> Setting {
    let parameters = Parameters::compute().unwrap();
    let public = PublicPolynomial::new(&parameters, &[9; 32]).unwrap();
    let secret = SecretKey::derive(&public, &[1; 32]);
    Setting {
        compute: Compute::new(&parameters).unwrap(),
        owner: secret.public_key(),
        key: RelinearizationKey::derive(&secret, &[1; 32]),
        public,
        secret,
        rng: ChaCha20Rng::seed_from_u64(21),
    }
}

impl Setting {
    fn encrypt(&mut self, message: &[i64]) -> ComputeCiphertext {
        let parameters = self.public.parameters();
        let witness = EncryptionWitness::sample(parameters, 1, message, &mut self.rng).unwrap();
        ComputeCiphertext::fresh(&witness.encrypt(&self.public, &[&self.owner]).unwrap(), 0).unwrap()
    }

    fn numbers(&mut self) -> Vec<u64> {
        (0..4096).map(|_| self.rng.next_u64() % T).collect()
    }

    fn encrypt_slots(&mut self, numbers: &[u64]) -> ComputeCiphertext {
        let message = self.compute.slots().encode(numbers, self.public.parameters()).unwrap();
        self.encrypt(&message)
    }

    /// The slots, after checking the noise against its bound.
    fn decrypt_slots(&self, ciphertext: &ComputeCiphertext) -> Vec<u64> {
        let (message, noise) = self.compute.open(&self.secret, ciphertext).unwrap();
        assert!(noise <= ciphertext.noise_bound());
        println!("noise 2^{} of at most 2^{}", noise.max(1).ilog2(), ciphertext.noise_bound().ilog2());
        self.compute.slots().decode(&message)
    }
}

#[test]
fn sums_and_products_act_on_each_slot() {
    let mut setting = setting();
    let (x, y, z) = (setting.numbers(), setting.numbers(), setting.numbers());
    let [cx, cy, cz] = [&x, &y, &z].map(|numbers| setting.encrypt_slots(numbers));
    assert_eq!(setting.decrypt_slots(&cx), x);

    let mut left = cx.clone();
    left.sub(&cy).unwrap();
    left.add(&cz).unwrap();
    let expected: Vec<u64> = (0..4096).map(|i| (x[i] + T - y[i] + z[i]) % T).collect();
    assert_eq!(setting.decrypt_slots(&left), expected);

    let product = setting.compute.multiply(&left, &cy, &setting.key).unwrap();
    let expected: Vec<u64> = (0..4096).map(|i| expected[i] * y[i] % T).collect();
    assert_eq!(setting.decrypt_slots(&product), expected);
    assert!(product.budget_bits() >= 32, "{}", product.budget_bits());

    let mut twice = product.clone();
    twice.add(&product).unwrap();
    assert_eq!(setting.decrypt_slots(&twice), expected.iter().map(|x| 2 * x % T).collect::<Vec<_>>());
    // A square, and the sum of slots in the constant coefficient.
    let square = setting.compute.multiply(&cx, &cx, &setting.key).unwrap();
    assert_eq!(setting.decrypt_slots(&square), x.iter().map(|x| x * x % T).collect::<Vec<_>>());
    let (message, _) = setting.compute.open(&setting.secret, &square).unwrap();
    let sum = x.iter().fold(0, |sum, x| (sum + x * x) % T);
    assert_eq!((message[0] * 4096).rem_euclid(T as i64) as u64, sum);
}

/// Factors whose message, secret, errors and ephemeral secret all have one sign pattern, so that noise adds up.
#[test]
fn extreme_factors_stay_within_the_bound() {
    let mut setting = setting();
    let parameters = Arc::clone(setting.public.parameters());
    let n = parameters.degree();
    for (s, u, e, m) in [(1, 1, 16, 32_768), (1, -1, -16, -32_768), (-1, 1, 16, 32_768)] {
        let secret = SecretKey::from_coefficients(&setting.public, vec![s; n], vec![e; n]).unwrap();
        let owner = secret.public_key();
        let key = RelinearizationKey::derive(&secret, &[1; 32]);
        let witness =
            EncryptionWitness::from_parts(&parameters, &vec![m; n], vec![u; n], vec![e; n], vec![vec![e; n]])
                .unwrap();
        let one = ComputeCiphertext::fresh(&witness.encrypt(&setting.public, &[&owner]).unwrap(), 0).unwrap();
        let (message, noise) = setting.compute.open(&secret, &one).unwrap();
        assert_eq!(*message, vec![m; n]);
        // X^(N−1) has no term that wraps: N·e·(u + s) + e there, times t, and the rounding of Δ.
        if s == u {
            assert!(
                noise > one.noise_bound() - one.noise_bound() / 1000,
                "the bound of fresh noise is tight"
            );
        }
        let product = setting.compute.multiply(&one, &one, &key).unwrap();
        let (message, noise) = setting.compute.open(&secret, &product).unwrap();
        assert!(noise <= product.noise_bound());
        // Coefficient j of (m·Σ X^i)²: j + 1 terms and N − 1 − j wrapped ones.
        for (j, &coefficient) in message.iter().enumerate() {
            let expected = m * m % T as i64 * (2 * (j as i64 + 1) - n as i64);
            assert_eq!((coefficient - expected) % T as i64, 0);
        }
    }
    setting.secret = SecretKey::derive(&setting.public, &[2; 32]);
    let stranger = setting.encrypt_slots(&[1]);
    let opened = setting.compute.open(&setting.secret, &stranger);
    assert_eq!(opened.unwrap_err(), ComputeError::Open(OpenError::Beyond));
}

#[test]
fn noise_is_counted_and_a_second_product_refused() {
    let mut setting = setting();
    let one = setting.encrypt_slots(&[3; 4096]);
    let product = setting.compute.multiply(&one, &one, &setting.key).unwrap();
    assert_eq!(setting.compute.multiply(&product, &one, &setting.key), Err(ComputeError::Noise));
    // Doubling uses one bit of the budget each time, and ends in an error before it ends in a wrong result.
    let mut sum = product;
    let (mut doublings, budget) = (0, sum.budget_bits());
    while sum.clone().add(&sum).is_ok() {
        let other = sum.clone();
        sum.add(&other).unwrap();
        doublings += 1;
    }
    assert!(doublings == budget || doublings + 1 == budget, "{doublings} of {budget}");
    let expected = (0..doublings).fold(9, |number, _| number * 2 % T);
    assert_eq!(setting.decrypt_slots(&sum), vec![expected; 4096]);
    assert_eq!(sum.clone().sub(&sum), Err(ComputeError::Noise));
}

#[test]
fn mistakes_of_a_caller_are_named() {
    let mut setting = setting();
    let parameters = Arc::clone(setting.public.parameters());
    let balance = Parameters::balance().unwrap();
    assert_eq!(Compute::new(&balance).unwrap_err(), ComputeError::Set);
    let slots = setting.compute.slots();
    assert_eq!(slots.encode(&[0; 4097], &parameters), Err(SlotsError::Count { count: 4097, slots: 4096 }));
    assert_eq!(slots.encode(&[0, T], &parameters), Err(SlotsError::Range { slot: 1 }));

    let one = setting.encrypt_slots(&[1, 2]);
    let mut cut = one.clone();
    cut.keep(5);
    assert_eq!(one.clone().add(&cut), Err(ComputeError::Kept { kept: 5 }));
    assert_eq!(setting.compute.multiply(&one, &cut, &setting.key), Err(ComputeError::Kept { kept: 5 }));
    cut.keep(0);
    assert_eq!(setting.compute.open(&setting.secret, &cut).unwrap().0.len(), 1);

    let other =
        Parameters::new(ParametersLiteral { error_bound: 8, ..parameters.literal().clone() }).unwrap();
    let elsewhere = PublicPolynomial::new(&other, &[9; 32]).unwrap();
    let secret = SecretKey::derive(&elsewhere, &[1; 32]);
    let witness = EncryptionWitness::sample(&other, 1, &[0; 4096], &mut setting.rng).unwrap();
    let multi = witness.encrypt(&elsewhere, &[&secret.public_key()]).unwrap();
    assert_eq!(ComputeCiphertext::fresh(&multi, 1).unwrap_err(), ComputeError::Recipient { index: 1 });
    let foreign = ComputeCiphertext::fresh(&multi, 0).unwrap();
    assert_eq!(one.clone().add(&foreign), Err(ComputeError::Parameters));
    assert_eq!(setting.compute.multiply(&one, &foreign, &setting.key), Err(ComputeError::Parameters));
    let foreign_key = RelinearizationKey::derive(&secret, &[1; 32]);
    assert_eq!(setting.compute.multiply(&one, &one, &foreign_key), Err(ComputeError::Parameters));
    assert_eq!(setting.compute.open(&secret, &one).unwrap_err(), ComputeError::Parameters);
}

#[test]
fn encodings_are_canonical() {
    let mut setting = setting();
    let parameters = Arc::clone(setting.public.parameters());
    let key = setting.key.encode();
    assert_eq!(key.len(), 8 * 27_648);
    assert_eq!(RelinearizationKey::decode(&setting.public, &key).unwrap(), setting.key);
    assert!(matches!(
        RelinearizationKey::decode(&setting.public, &key[1..]),
        Err(DecodeError::Length { expected: 221_184, found: 221_183 })
    ));
    let one = setting.encrypt_slots(&[5]);
    let bytes = one.encode();
    assert_eq!(bytes.len(), 4 * 27_648 + 18);
    assert_eq!(ComputeCiphertext::decode(&parameters, &bytes).unwrap(), one);
    let changed = |from_end: usize, value: &[u8]| {
        let mut bytes = bytes.clone();
        let at = bytes.len() - from_end;
        bytes[at..at + value.len()].copy_from_slice(value);
        ComputeCiphertext::decode(&parameters, &bytes)
    };
    assert_eq!(changed(16, &[0; 16]), Err(DecodeError::Noise));
    assert_eq!(changed(16, &(parameters.modulus() / 2).to_le_bytes()), Err(DecodeError::Noise));
    for kept in [0, 4095, 4097_u16] {
        assert!(matches!(changed(18, &kept.to_le_bytes()), Err(DecodeError::Length { .. })));
    }
    for length in [0, 15, 17, 18, bytes.len() - 1] {
        assert!(matches!(
            ComputeCiphertext::decode(&parameters, &bytes[..length]),
            Err(DecodeError::Length { .. } | DecodeError::Noise)
        ));
    }
    let mut raised = bytes;
    raised[..7].fill(0xff);
    assert_eq!(ComputeCiphertext::decode(&parameters, &raised), Err(DecodeError::Coefficient { index: 0 }));
}

#[test]
fn a_mask_hides_what_a_result_was_made_of_and_keeps_the_message() {
    let mut setting = setting();
    let parameters = Arc::clone(setting.public.parameters());
    let one = setting.encrypt(&{
        let mut message = vec![0; 4096];
        message[..3].copy_from_slice(&[7, -5, 3]);
        message
    });
    let mut cut = setting.compute.multiply(&one, &one, &setting.key).unwrap();
    cut.keep(3);
    let masked = |seed: u8, context: &[u8]| {
        let mut masked = cut.clone();
        let whose = (&*setting.public, &setting.owner);
        setting.compute.mask(&mut masked, whose, &[seed; 32], &[context]).unwrap();
        masked
    };
    let result = masked(1, b"a");
    assert_eq!(result, masked(1, b"a"), "a function of seed and context");
    let all = [&cut, &result, &masked(2, b"a"), &masked(1, b"b")];
    for (i, x) in all.iter().enumerate() {
        for y in &all[..i] {
            assert!(x.c1() != y.c1() && x.c0() != y.c0());
        }
    }
    let (message, noise) = setting.compute.open(&setting.secret, &result).unwrap();
    assert_eq!(*message, [49, -70, 67]);
    // All room is taken: what is left is less than one error, times t.
    assert!(parameters.modulus() / 2 - 1 - result.noise_bound() < u128::from(T));
    let (_, before) = setting.compute.open(&setting.secret, &cut).unwrap();
    println!("noise 2^{} under a mask of 2^{}", before.ilog2(), noise.ilog2());
    assert!(noise >> 20 > before);

    let mut again = result.clone();
    let whose = (&*setting.public, &setting.owner);
    assert_eq!(setting.compute.mask(&mut again, whose, &[1; 32], &[]), Err(ComputeError::Noise));
    assert_eq!(again, result);
    let elsewhere = PublicPolynomial::new(&Parameters::compute_modulo(40_961).unwrap(), &[9; 32]).unwrap();
    let whose = (&*elsewhere, &setting.owner);
    assert_eq!(setting.compute.mask(&mut again, whose, &[1; 32], &[]), Err(ComputeError::Parameters));
}

/// Over many seeds the noise of a masked result is uniform, whatever the result was.
#[test]
fn masks_are_uniform() {
    let mut setting = setting();
    let mut cut = setting.encrypt(&vec![1; 4096]);
    cut.keep(16);
    let (mut upper, mut outer, count) = (0, 0, 60);
    for seed in 0..count {
        let mut masked = cut.clone();
        setting.compute.mask(&mut masked, (&setting.public, &setting.owner), &[seed; 32], &[]).unwrap();
        let bound = masked.noise_bound();
        for coefficient in 0..16 {
            let noise = noise_of(&setting, &masked, coefficient);
            assert!(noise.unsigned_abs() <= bound);
            upper += u32::from(noise > 0);
            outer += u32::from(noise.unsigned_abs() > bound / 2);
        }
    }
    // 480 of 960 expected each: six standard deviations either way.
    println!("{upper} and {outer} of 960");
    assert!((387..=573).contains(&upper) && (387..=573).contains(&outer));
}

/// W of one coefficient, which an owner can compute.
fn noise_of(setting: &Setting, ciphertext: &ComputeCiphertext, coefficient: usize) -> i128 {
    let parameters = setting.public.parameters();
    let (ring, q) = (parameters.ring(), parameters.modulus());
    let mut phase = ring.mul_small(&ring.forward(ciphertext.c1()), setting.secret.coefficients());
    ring.add_assign(&mut phase, ciphertext.c0());
    let moduli: Vec<_> = ring.moduli().collect();
    let residues = [0, 1].map(|i| moduli[i].mul(phase.residues()[4096 * i + coefficient], T));
    // x = r0 + q0·((r1 − r0)/q0 mod q1).
    let difference = moduli[1].sub(residues[1], moduli[1].reduce(residues[0]));
    let digit = moduli[1].mul(difference, moduli[1].inverse(moduli[1].reduce(moduli[0].value())));
    let x = u128::from(residues[0]) + u128::from(moduli[0].value()) * u128::from(digit);
    if x > q / 2 { x as i128 - q as i128 } else { x as i128 }
}
