//! What the kernels' tests share: elements in the kernels' memory layout, and inputs.
#![allow(dead_code)] // every test takes what it needs

pub mod pairs;

use ark_bls12_381::{Fq, Fq2, Fq6, Fq12};
use ark_ff::{AdditiveGroup, BigInt, Field, PrimeField};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// An element of F_p2: Montgomery limbs of both coefficients.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Words2(pub [u64; 12]);

/// An element of F_p.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Words(pub [u64; 6]);

/// An element of F_p12 in tower order.
pub type Words12 = [Words2; 6];

pub fn fp_to_words(a: &Fq) -> Words {
    Words(a.0.0)
}

pub fn fp2_to_words(a: &Fq2) -> Words2 {
    let mut words = [0; 12];
    words[..6].copy_from_slice(&a.c0.0.0);
    words[6..].copy_from_slice(&a.c1.0.0);
    Words2(words)
}

pub fn fp2_from_words(words: &Words2) -> Fq2 {
    let limbs = |at: usize| {
        let limbs: [u64; 6] = words.0[at..at + 6].try_into().expect("six limbs");
        let fp = Fq::new_unchecked(BigInt(limbs));
        assert!(BigInt(limbs) < Fq::MODULUS, "reduced");
        fp
    };
    Fq2::new(limbs(0), limbs(6))
}

pub fn to_words(a: &Fq12) -> Words12 {
    [a.c0.c0, a.c0.c1, a.c0.c2, a.c1.c0, a.c1.c1, a.c1.c2].map(|c| fp2_to_words(&c))
}

pub fn all_to_words(elements: &[Fq12]) -> Vec<Words12> {
    elements.iter().map(to_words).collect()
}

pub fn all_from_words(elements: &[Words12]) -> Vec<Fq12> {
    elements.iter().map(from_words).collect()
}

pub fn from_words(words: &Words12) -> Fq12 {
    let c = words.each_ref().map(fp2_from_words);
    Fq12::new(Fq6::new(c[0], c[1], c[2]), Fq6::new(c[3], c[4], c[5]))
}

pub fn random(seed: u64) -> ChaCha20Rng {
    println!("seed {seed}");
    ChaCha20Rng::seed_from_u64(seed)
}

pub fn random_field<F: PrimeField>(rng: &mut ChaCha20Rng) -> F {
    let mut bytes = [0; 64];
    rng.fill_bytes(&mut bytes);
    F::from_le_bytes_mod_order(&bytes)
}

pub fn random2(rng: &mut ChaCha20Rng) -> Fq2 {
    Fq2::new(random_field(rng), random_field(rng))
}

pub fn random12(rng: &mut ChaCha20Rng) -> Fq12 {
    let mut six = || Fq6::new(random2(rng), random2(rng), random2(rng));
    Fq12::new(six(), six())
}

/// −1/R: p − 1 as the kernels see it.
pub fn largest() -> Fq {
    let mut limbs = Fq::MODULUS;
    limbs.0[0] -= 1;
    Fq::new_unchecked(limbs)
}

/// Elements at which carries and bounds are at their extremes, and random ones.
pub fn samples2(seed: u64) -> Vec<Fq2> {
    let (zero, one, m) = (Fq::from(0u64), Fq::from(1u64), largest());
    let mut samples = vec![
        Fq2::new(zero, zero),
        Fq2::new(one, zero),
        Fq2::new(zero, one),
        Fq2::new(m, m),
        Fq2::new(m, zero),
        Fq2::new(zero, m),
        Fq2::new(-one, -one),
    ];
    let mut rng = random(seed);
    samples.extend((0..6).map(|_| random2(&mut rng)));
    samples
}

/// The same for F_p12.
pub fn samples12(seed: u64) -> Vec<Fq12> {
    let all = |c: Fq2| Fq12::new(Fq6::new(c, c, c), Fq6::new(c, c, c));
    let m = largest();
    let (high, low) = (all(Fq2::new(m, m)), all(Fq2::new(Fq::from(0u64), m)));
    let mut samples = vec![Fq12::ZERO, Fq12::ONE, high, low, all(Fq2::new(m, Fq::from(0u64)))];
    samples.push(Fq12::new(high.c0, Fq6::ZERO));
    samples.push(Fq12::new(Fq6::ZERO, high.c0));
    let mut rng = random(seed);
    samples.extend((0..5).map(|_| random12(&mut rng)));
    samples
}

/// |x|, x the curve parameter.
pub const X: u64 = 0xd201_0000_0001_0000;

pub fn conjugate(f: &Fq12) -> Fq12 {
    Fq12::new(f.c0, -f.c1)
}

/// The easy part of the final exponentiation: f^((p^6−1)(p²+1)).
pub fn cyclotomic(f: &Fq12) -> Fq12 {
    let unitary = conjugate(f) * f.inverse().expect("not zero");
    unitary.frobenius_map(2) * unitary
}
