//! Over BLS12-381 `blst` gives what arkworks gives.

use ark_bls12_381::{Bls12_381, Config, Fq12, Fr, G1Affine, G1Projective, G2Affine, G2Projective};
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::{AdditiveGroup, Field, PrimeField};
use rand_chacha::rand_core::Rng;

use super::{Curve, Integer, generic};
use crate::hash;
use crate::points::{PointError, compressed};
use crate::tests::rng;

type Scalar = Integer<Bls12_381>;
type Prepared = ark_ec::bls12::G2Prepared<Config>;

/// Multiples of the generator, the identity among them, repetitions and opposites too.
fn points(count: usize, seed: u64) -> Vec<G1Affine> {
    let mut rng = rng(seed);
    (0..count)
        .map(|i| match i % 9 {
            4 => G1Affine::zero(),
            6 => G1Affine::generator(),
            7 => -G1Affine::generator(),
            _ => (G1Projective::generator() * hash::random::<Fr>(&mut rng)).into_affine(),
        })
        .collect()
}

fn twins(count: usize, seed: u64) -> Vec<G2Affine> {
    let mut rng = rng(seed);
    (0..count)
        .map(|i| match i % 7 {
            3 => G2Affine::zero(),
            _ => (G2Projective::generator() * hash::random::<Fr>(&mut rng)).into_affine(),
        })
        .collect()
}

fn weights(count: usize, seed: u64) -> Vec<u128> {
    let mut rng = rng(seed);
    let mut word = || u128::from(rng.next_u64());
    (0..count)
        .map(|i| match i % 11 {
            0 => u128::MAX,
            1 => 0,
            2 => 1,
            3 => 1 << 127,
            4 => u128::from(u64::MAX),
            5 => 1 << 64,
            _ => word() << 64 | word(),
        })
        .collect()
}

/// 0, 1, −1, words and their negatives, 66 bits, the ends of each length, and full size.
fn scalars(count: usize, seed: u64) -> Vec<Scalar> {
    let mut rng = rng(seed);
    (0..count)
        .map(|i| {
            let word = rng.next_u64() >> (i % 64);
            let scalar = match i % 13 {
                0 => Fr::ZERO,
                1 => Fr::ONE,
                2 => -Fr::ONE,
                3 | 4 => Fr::from(word),
                5 | 6 => -Fr::from(word),
                7 => Fr::from(u128::from(word) << 2),
                8 => -Fr::from(u64::MAX),
                9 => Fr::from(u128::MAX),
                _ => hash::random(&mut rng),
            };
            scalar.into_bigint()
        })
        .collect()
}

#[test]
fn sums_and_multiples_agree() {
    for count in [0, 1, 2, 3, 16, 17, 100, 1500] {
        let (points, weights) = (points(count, 1), weights(count, 2));
        let weighed = Bls12_381::weigh(&points, &weights);
        assert_eq!(weighed, generic::weigh::<Bls12_381>(&points, &weights), "{count}");
        let sum = Bls12_381::sum_weighted(&points, &weights);
        assert_eq!(sum, generic::sum_weighted::<Bls12_381>(&points, &weights), "{count}");
        assert_eq!(sum, weighed.iter().sum::<G1Projective>(), "{count}");
        let scalars = scalars(count, 3);
        assert_eq!(Bls12_381::sum_g1(&points, &scalars), generic::sum(&points, &scalars), "{count}");
        let twins = twins(count, 4);
        assert_eq!(Bls12_381::sum_g2(&twins, &scalars), generic::sum(&twins, &scalars), "{count}");
    }
}

#[test]
fn pairings_agree() {
    let mut rng = rng(5);
    let finished = |pairs: &[_]| Bls12_381::finish(Bls12_381::miller_loops(pairs));
    for count in [0, 1, 2, 4, 15, 16, 17, 33] {
        let (mut p, mut q) = (points(count, 6), twins(count, 7));
        let mut pairs: Vec<(G1Affine, G2Affine)> = p.iter().copied().zip(q.iter().copied()).collect();
        let slow = generic::finish::<Bls12_381>(generic::miller_loops::<Bls12_381>(&pairs));
        assert_eq!(finished(&pairs), slow, "{count}");
        let prepared: Vec<Prepared> = q.iter().map(Prepared::from).collect();
        for fresh in [0, 1, count / 2, count] {
            let (fresh, rest) = pairs.split_at(fresh.min(count));
            let rest: Vec<_> = rest.iter().map(|(p, _)| *p).zip(&prepared[fresh.len()..]).collect();
            assert_eq!(Bls12_381::finish(Bls12_381::prepared_loops(fresh, &rest)), slow, "{count}");
            assert_eq!(
                generic::finish::<Bls12_381>(generic::prepared_loops::<Bls12_381>(fresh, &rest)),
                slow
            );
        }
        // Completed to a product of 1, by e(−f·P, f^(−1)·Q) for each e(P, Q).
        let factor: Fr = hash::random(&mut rng);
        p = p.iter().map(|p| (*p * -factor).into_affine()).collect();
        q = q.iter().map(|q| (*q * factor.inverse().unwrap()).into_affine()).collect();
        pairs.extend(p.into_iter().zip(q));
        assert_eq!(finished(&pairs), Fq12::ONE, "{count}");
        let (first, second) = pairs.split_at(count);
        let product = Bls12_381::miller_loops(first) * Bls12_381::miller_loops(second);
        assert_eq!(Bls12_381::finish(product), Fq12::ONE, "{count}");
        pairs.push((G1Affine::generator(), G2Affine::generator()));
        assert_ne!(finished(&pairs), Fq12::ONE, "{count}");
    }
}

/// Both readers on the same bytes; what they say.
fn read_both<const G1: bool>(bytes: &[u8]) -> Result<(), PointError> {
    if G1 {
        let point = Bls12_381::read_g1(bytes);
        assert_eq!(point, generic::read(bytes), "{}", hex::encode(bytes));
        point.map(|_| ())
    } else {
        let point = Bls12_381::read_g2(bytes);
        assert_eq!(point, generic::read(bytes), "{}", hex::encode(bytes));
        point.map(|_| ())
    }
}

fn readers_agree<const G1: bool>(encodings: &[Vec<u8>]) {
    let mut rng = rng(8);
    let mut said = [0; 3];
    let mut count = |result| match result {
        Ok(()) => said[0] += 1,
        Err(PointError::Encoding) => said[1] += 1,
        Err(PointError::Subgroup) => said[2] += 1,
    };
    for bytes in encodings {
        // Every combination of the three flags, and a bit of the rest.
        for flags in 0..8 {
            let mut other = bytes.clone();
            other[0] = other[0] & 0x1f | flags << 5;
            count(read_both::<G1>(&other));
            let place = rng.next_u32() as usize % bytes.len();
            other[place] ^= 1 << (rng.next_u32() % 5);
            count(read_both::<G1>(&other));
        }
        for length in [0, bytes.len() - 1, bytes.len() + 1] {
            let mut other = bytes.clone();
            other.resize(length, 0);
            count(read_both::<G1>(&other));
        }
    }
    // x at the ends of its range, each half of it in G2: 0, p − 1, p, p + 1, all ones.
    let p: [u8; 48] = hex::decode(concat!(
        "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f624",
        "1eabfffeb153ffffb9feffffffffaaab"
    ))
    .unwrap()
    .try_into()
    .unwrap();
    let last = |last| {
        let mut x = p;
        x[47] = last;
        x
    };
    let ends = [[0; 48], last(0xaa), p, last(0xac), [0xff; 48]];
    for first in ends {
        for second in ends {
            let mut bytes = if G1 { first.to_vec() } else { [first, second].concat() };
            for flags in [0x80, 0xa0] {
                bytes[0] = bytes[0] & 0x1f | flags;
                count(read_both::<G1>(&bytes));
            }
        }
    }
    println!("read {}, no encodings {}, outside the group {}", said[0], said[1], said[2]);
    assert!(said.iter().all(|count| *count > 20), "{said:?}");
}

#[test]
fn readers_take_the_same_bytes() {
    readers_agree::<true>(&points(36, 9).iter().map(compressed).collect::<Vec<_>>());
    readers_agree::<false>(&twins(36, 10).iter().map(compressed).collect::<Vec<_>>());
}
