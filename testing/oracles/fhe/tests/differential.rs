//! `fhe` 0.1.1 and blindfold-rlwe open, add and multiply each other's ciphertexts.
//!
//! Coefficients are moved across, so what is compared is the mathematics and not the formats: both keep c0 + c1·s =
//! (q/t)·m + noise. The secret moves through the random bits that `fhe` draws it from.

use std::sync::Arc;

use blindfold_rlwe::ring::{Modulus, Ntt};
use blindfold_rlwe::rlwe::{EncryptionWitness, Parameters, PublicPolynomial, SecretKey};
use blindfold_rlwe::schemes::balance;
use blindfold_rlwe::schemes::compute::{Compute, ComputeCiphertext, RelinearizationKey};
use fhe::bfv::{self, BfvParameters, BfvParametersBuilder, Encoding, Multiplicator, Plaintext};
use fhe_math::rq::{Poly, Representation};
use fhe_traits::{FheDecoder, FheDecrypter, FheEncoder, FheEncrypter};
use rand::rngs::StdRng;
use rand::{CryptoRng, RngCore, SeedableRng};
use rand_chacha::rand_core::SeedableRng as _;

/// Words from which `fhe` samples given ternary coefficients: at variance 16 each takes one word, ones in the low half
/// less ones in the high half.
struct Script(std::vec::IntoIter<i8>);

impl RngCore for Script {
    fn next_u64(&mut self) -> u64 {
        match self.0.next() {
            Some(1) => 1,
            Some(-1) => 1 << 32,
            Some(0) => 0,
            other => panic!("one word for each ternary coefficient, not {other:?}"),
        }
    }
    fn next_u32(&mut self) -> u32 {
        panic!("coefficients are drawn by words")
    }
    fn fill_bytes(&mut self, _: &mut [u8]) {
        panic!("coefficients are drawn by words")
    }
}

impl CryptoRng for Script {}

struct Setting {
    ours: Arc<Parameters>,
    public: Arc<PublicPolynomial>,
    secret: SecretKey,
    theirs: Arc<BfvParameters>,
    their_secret: bfv::SecretKey,
}

fn setting(ours: Arc<Parameters>) -> Setting {
    let literal = ours.literal().clone();
    let theirs = BfvParametersBuilder::new()
        .set_degree(literal.degree)
        .set_plaintext_modulus(literal.plaintext_modulus)
        .set_moduli(&literal.primes)
        .set_variance(16)
        .build_arc()
        .unwrap();
    let public = PublicPolynomial::new(&ours, &[9; 32]).unwrap();
    let secret = SecretKey::derive(&public, &[1; 32]);
    let mut script = Script(secret.coefficients().to_vec().into_iter());
    let their_secret = bfv::SecretKey::random(&theirs, &mut script);
    assert!(script.0.next().is_none(), "every coefficient was drawn");
    Setting { ours, public, secret, theirs, their_secret }
}

impl Setting {
    fn ours_to_fhe(&self, c0: &[u64], c1: &[u64]) -> bfv::Ciphertext {
        let context = self.theirs.context_at_level(0).unwrap();
        let parts = [c0, c1].map(|residues| {
            let representation = Representation::PowerBasis;
            let mut poly = <Poly as fhe_math::rq::traits::TryConvertFrom<Vec<u64>>>::try_convert_from(
                residues.to_vec(),
                context,
                false,
                representation,
            )
            .unwrap();
            poly.change_representation(Representation::Ntt);
            poly
        });
        bfv::Ciphertext::new(parts.into(), &self.theirs).unwrap()
    }

    fn fhe_to_residues(&self, ciphertext: &bfv::Ciphertext) -> [Vec<u64>; 2] {
        assert_eq!(ciphertext.len(), 2);
        [0, 1].map(|i| {
            let mut poly = ciphertext[i].clone();
            poly.change_representation(Representation::PowerBasis);
            poly.coefficients().iter().copied().collect()
        })
    }

    /// A ciphertext of theirs as one of ours: their encoding of a whole ciphertext, with our bound of its noise.
    /// Their errors at variance 16 are at most 32 in absolute value, so sixteen times our fresh bound covers them.
    fn fhe_to_ours(&self, ciphertext: &bfv::Ciphertext, noise: u128) -> ComputeCiphertext {
        let [c0, c1] = self.fhe_to_residues(ciphertext);
        let mut bytes = Vec::new();
        for part in [c1, c0] {
            for row in part.chunks(self.ours.degree()) {
                blindfold_rlwe::ring::pack(row, 54, &mut bytes);
            }
        }
        bytes.extend((self.ours.degree() as u16).to_le_bytes());
        bytes.extend(noise.to_le_bytes());
        ComputeCiphertext::decode(&self.ours, &bytes).unwrap()
    }

    fn open_theirs(&self, ciphertext: &bfv::Ciphertext) -> Vec<u64> {
        let plaintext = self.their_secret.try_decrypt(ciphertext).unwrap();
        Vec::<u64>::try_decode(&plaintext, Encoding::poly()).unwrap()
    }
}

/// The product in Z_t[X]/(X^N + 1).
fn product(x: &[u64], y: &[u64], t: u64) -> Vec<u64> {
    let ntt = Ntt::new(Modulus::new(t).unwrap(), x.len()).unwrap();
    let (mut x, mut y) = (x.to_vec(), y.to_vec());
    ntt.forward(&mut x);
    ntt.forward(&mut y);
    x.iter_mut().zip(&y).for_each(|(x, &y)| *x = ntt.modulus().mul(*x, y));
    ntt.inverse(&mut x);
    x
}

#[test]
fn compute_ciphertexts_cross_in_both_directions() {
    let setting = setting(Parameters::compute().unwrap());
    let (t, n) = (setting.ours.literal().plaintext_modulus, setting.ours.degree());
    let mut rng = StdRng::seed_from_u64(5);
    let [x, y] = [0, 1].map(|_| (0..n).map(|_| rng.next_u64() % t).collect::<Vec<u64>>());
    let modulus = Modulus::new(t).unwrap();
    let centred = |message: &[u64]| message.iter().map(|&m| modulus.centre(m)).collect::<Vec<i64>>();

    // Ours: opened, added and multiplied there.
    let compute = Compute::new(&setting.ours).unwrap();
    let relinearization = RelinearizationKey::derive(&setting.secret, &[1; 32]);
    let mut our_rng = rand_chacha::ChaCha20Rng::seed_from_u64(6);
    let owner = setting.secret.public_key();
    let ours = [&x, &y].map(|message| {
        let witness = EncryptionWitness::sample(&setting.ours, 1, &centred(message), &mut our_rng).unwrap();
        ComputeCiphertext::fresh(&witness.encrypt(&setting.public, &[&owner]).unwrap(), 0).unwrap()
    });
    let moved = [&ours[0], &ours[1]].map(|c| setting.ours_to_fhe(c.c0().residues(), c.c1().residues()));
    assert_eq!(setting.open_theirs(&moved[0]), x);
    let sum: Vec<u64> = x.iter().zip(&y).map(|(x, y)| (x + y) % t).collect();
    assert_eq!(setting.open_theirs(&(&moved[0] + &moved[1])), sum);
    let expected = product(&x, &y, t);
    let their_key = bfv::RelinearizationKey::new(&setting.their_secret, &mut rng).unwrap();
    let there = Multiplicator::default(&their_key).unwrap().multiply(&moved[0], &moved[1]).unwrap();
    assert_eq!(setting.open_theirs(&there), expected);

    // Our product, opened here and there; noise within our bound by both accounts.
    let here = compute.multiply(&ours[0], &ours[1], &relinearization).unwrap();
    let (message, noise) = compute.open(&setting.secret, &here).unwrap();
    assert_eq!(*message, centred(&expected));
    let crossed = setting.ours_to_fhe(here.c0().residues(), here.c1().residues());
    assert_eq!(setting.open_theirs(&crossed), expected);
    // SAFETY: `unsafe` marks variable time only; the secret is a test's.
    let [bits_here, bits_there] =
        [&crossed, &there].map(|c| unsafe { setting.their_secret.measure_noise(c) }.unwrap());
    println!(
        "noise of the product in bits of q: {bits_here} ours, {bits_there} theirs; bound {}",
        here.noise_bound() / u128::from(t)
    );
    // W = t·noise, up to the rounding of Δ.
    assert!(bits_here as u32 <= (here.noise_bound() / u128::from(t)).ilog2() + 1);
    assert!((noise / u128::from(t)).ilog2().abs_diff(bits_here as u32) <= 1);

    // Theirs: opened and multiplied here.
    let theirs = [&x, &y].map(|message| {
        let plaintext = Plaintext::try_encode(message, Encoding::poly(), &setting.theirs).unwrap();
        let ciphertext: bfv::Ciphertext = setting.their_secret.try_encrypt(&plaintext, &mut rng).unwrap();
        setting.fhe_to_ours(&ciphertext, 16 * ours[0].noise_bound())
    });
    let (message, _) = compute.open(&setting.secret, &theirs[1]).unwrap();
    assert_eq!(*message, centred(&y));
    let mixed = compute.multiply(&theirs[0], &theirs[1], &relinearization).unwrap();
    let (message, noise) = compute.open(&setting.secret, &mixed).unwrap();
    assert_eq!(*message, centred(&expected));
    assert!(noise <= mixed.noise_bound());
}

#[test]
fn balances_open_there() {
    let setting = setting(Parameters::balance().unwrap());
    let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(8);
    let owner = setting.secret.public_key();
    let mut sum = vec![0; 8];
    let mut total = setting.ours_to_fhe(&vec![0; 2048], &vec![0; 2048]);
    for amount in [0x0123_4567_89ab_cdef, u64::MAX >> 1, 77] {
        let (multi, _) = balance::encrypt(&setting.public, &[&owner], amount, &mut rng).unwrap();
        // Coefficients that were never sent hold noise there; the first eight must be the limbs.
        let mut c0 = multi.c0(0).unwrap().to_vec();
        c0.resize(2048, 0);
        let moved = setting.ours_to_fhe(&c0, multi.c1().residues());
        assert_eq!(setting.open_theirs(&moved)[..8], amount.to_le_bytes().map(u64::from));
        total += &moved;
        sum.iter_mut().zip(amount.to_le_bytes()).for_each(|(sum, limb)| *sum += u64::from(limb));
    }
    assert_eq!(setting.open_theirs(&total)[..8], sum);
}
