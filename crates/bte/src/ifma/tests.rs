//! Lanes against the scalar arithmetic: over AVX-512 IFMA, and on every machine over [`crate::emulated`]'s vectors.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::comb::LaneComb;
use super::encode::{encode_gt, encode_points};
use super::field::{Fp, LIMBS, MODULUS, P, Packed, times};
use super::generator::generator_times;
use super::opening;
use super::pairing::LaneLines;
use super::points::{self, PackedPoint, Points};
use super::target::{self, Powers, easy_parts, hard_parts, quotients};
use super::tower::Fp12;
use super::vector::{self, LANES, MASK, lanes};
use super::{batch, decode, stated, straus};
use crate::comb::GtComb;
use crate::convolution;
use crate::curve::limbs::multiply;
use crate::curve::{G1, G1Affine, G2, G2Affine, Gt, PointError, Scalar, miller_loop};
use crate::digits::{X, glv_halves};
use crate::opening::{open_all, tests::samples};
use crate::stated::{Blinding, places_hold, tests as stated_tests};
use crate::{Backend, Ciphertext, CiphertextPoint, Portable, dealer};

fn rng() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(5)
}

/// 0, 1, −1, x, 8, 16 and random ones.
fn scalars(count: usize) -> Vec<Scalar> {
    let mut rng = rng();
    let edges = [0, 1, X, 8, 16].map(Scalar::from_u64).into_iter().chain([Scalar::one().neg()]);
    let random = std::iter::from_fn(|| Some(Scalar::random(&mut rng)));
    edges.chain(random).take(count).collect()
}

/// Small multiples of the generator with repetitions, opposites and identities.
fn some_points(count: usize) -> Vec<G1> {
    let multiple = |i: usize| G1::generator().mul_public(&Scalar::from_u64(i as u64 % 5));
    (0..count).map(|i| if i % 3 == 1 { multiple(i).neg() } else { multiple(i) }).collect()
}

/// Elements in `blst`'s form whose integers or residues lie next to 0 and p.
fn edges() -> Vec<[u64; 6]> {
    let (zero, one) = ([0; 6], *Gt::one().limbs()[0]);
    let small = [1, 2, 64, 1 << 52].map(|low| [low, 0, 0, 0, 0, 0]);
    let near_p = [1, 2, 64]
        .map(|less| [MODULUS[0] - less, MODULUS[1], MODULUS[2], MODULUS[3], MODULUS[4], MODULUS[5]]);
    [&[zero, one][..], &small, &near_p].concat()
}

fn millers() -> [Gt; LANES] {
    let point = |i: usize| G1::generator().mul_public(&Scalar::from_u64(i as u64 + 2)).to_affine();
    std::array::from_fn(|i| miller_loop(&point(i), &G2Affine::generator()))
}

lanes! {
    fn gather(points: &[G1]) -> Points {
        let affine: Vec<G1Affine> = points.iter().map(|p| p.to_affine()).collect();
        Points::gather(&PackedPoint::pack(&affine).iter().collect::<Vec<_>>())
    }

    fn unpack(points: &Points, count: usize) -> Vec<G1> {
        let one = |p: &PackedPoint| {
            let [x, y] = [p.x, p.y].map(|c: Packed| Fp::gather([&c; LANES]).to_blst()[0]);
            if p.infinite { G1::default() } else { G1::from(&G1Affine::from_limbs(x, y)) }
        };
        points.to_packed(count).iter().map(one).collect()
    }

    fn check_final_exponentiation() {
        let millers = millers();
        let easy = millers.map(|m| m.easy_part());
        let lanes = Fp12::from_gt(easy.each_ref());
        assert!(lanes.to_gt() == easy);
        assert!(lanes.conjugate().to_gt() == easy.map(|e| e.conjugate()));
        assert!((1..4).all(|power| lanes.frobenius(power).to_gt() == easy.map(|e| e.frobenius(power))));
        let mut several = [lanes, lanes.conjugate()];
        hard_parts(&mut several);
        assert!(several[0].to_gt() == easy.map(|e| e.hard_part()));
        assert!(several[1].to_gt() == easy.map(|e| e.hard_part().conjugate()));
        // Compressed squaring cannot represent 1.
        let mut with_one = easy;
        with_one[3] = Gt::one();
        let mut several = [lanes, Fp12::from_gt(with_one.each_ref())];
        hard_parts(&mut several);
        assert!(several[1].to_gt() == with_one.map(|e| e.hard_part()));
        let mut several = [Fp12::from_gt(millers.each_ref()); 3];
        easy_parts(&mut several);
        assert!(several.iter().all(|values| values.to_gt() == easy));
    }

    fn check_long_chains() {
        // Lazily reduced values grow; short tests would not notice if they were not held in bounds.
        let easy = millers().map(|m| m.easy_part());
        let lanes = Fp12::from_gt(easy.each_ref());
        for count in [1, 2, 3, 4, 5, 7, 8, 300] {
            let want = easy.map(|e| (0..count).fold(e, |e, _| e.square()));
            assert!(lanes.square_cyclotomic_times(count).to_gt() == want, "{count}");
        }
        let mut product = (lanes, easy);
        for _ in 0..300 {
            product.0 = product.0.square_cyclotomic_times(3).mul(&lanes);
            product.1 = std::array::from_fn(|i| product.1[i].square().square().square().mul(&easy[i]));
        }
        assert!(product.0.to_gt() == product.1);
    }

    fn check_powers() {
        let easy = millers().map(|m| m.easy_part());
        let lanes = Fp12::from_gt(easy.each_ref());
        let mut powers = Powers::new();
        for scalars in scalars(3 * LANES).chunks(LANES) {
            let digits: Vec<target::Digits> = scalars.iter().map(target::digits).collect();
            let want = std::array::from_fn(|i| easy[i].pow_public(&scalars[i]));
            assert!(lanes.pow_each(&mut powers, std::array::from_fn(|i| &digits[i])).to_gt() == want);
            for k in scalars {
                assert!(lanes.pow_same(k).to_gt() == easy.map(|e| e.pow_public(k)));
            }
        }
    }

    fn check_fixed_bases() {
        let base = millers()[0].easy_part().hard_part();
        let x = Scalar::from_u64(X);
        let edges = [x.sub(&Scalar::one()), x.mul(&x), x.mul(&x).neg(), Scalar::reduce(&[0x88; 64])];
        let scalars = [&scalars(LANES + 3)[..], &edges].concat();
        let want: Vec<[u8; 576]> = scalars.iter().map(|k| base.pow_public(k).encode()).collect();
        for window_bits in [4, 7, 8, 13, 16] {
            let comb = LaneComb::new(&GtComb::new(&base, window_bits));
            for count in [0, 1, 8, scalars.len()] {
                let mut products = comb.products(&scalars[..count]);
                quotients(&mut products);
                let got: Vec<[u8; 576]> = products.iter().flat_map(|p| encode_gt(p)).collect();
                assert!(got[..count] == want[..count], "{window_bits} {count}");
            }
        }
        let want: Vec<[u8; 48]> = scalars.iter().map(|k| G1::generator().mul_public(k).to_affine().encode()).collect();
        for count in [0, 1, 8, scalars.len()] {
            assert!(encode_points(&generator_times(&scalars[..count]), count) == want[..count], "{count}");
        }
    }

    /// An exponent, found by searching, for which a coefficient of the norm of the product of table entries is a residue
    /// just above 0: less than a weak reduction that counted on a summand of 1024·p took for granted.
    fn check_norm_near_zero() {
        let base = G1::generator().mul_public(&Scalar::from_u64(2)).to_affine();
        let base = miller_loop(&base, &G2Affine::generator()).easy_part().hard_part();
        let k = "37dc58977dbb9506b10be130b28740760e0c5676c3627e09335953644d00ece1";
        let k = Scalar::from_bytes(&hex::decode(k).expect("hex").try_into().expect("32 bytes")).expect("below r");
        let mut products = LaneComb::new(&GtComb::new(&base, 13)).products(&[k]);
        quotients(&mut products);
        assert!(encode_gt(&products[0])[0] == base.pow_public(&k).encode());
    }

    /// One element in every lane.
    fn splat(limbs: &[u64; 6]) -> Fp {
        Fp::from_blst([limbs; LANES])
    }

    fn equal(a: &Fp, b: &Fp) -> bool {
        a.sub_n(&b.weak()).mul(&Fp::splat(&Packed::ONE.0)).zero_lanes() == 0xff
    }

    /// k·p + d for every k that a weak reduction takes, and top limbs about its first quotient.
    fn check_weak_reduction() {
        let mut one = [0; LIMBS];
        one[0] = 1;
        let one = Fp::splat(&one);
        for k in 0..=2055 {
            let multiple = Fp::splat(&times(&P, k));
            assert!(equal(&multiple.weak(), &Fp::zero()), "{k}");
            assert!(equal(&multiple.add(&one).weak(), &one), "{k}");
            if k > 0 {
                assert!(equal(&multiple.sub(&one).weak(), &one.neg()), "{k}");
            }
        }
        for top in [0, 1, 63, 64, 65, 66, P[LIMBS - 1] + 63, P[LIMBS - 1] + 64, P[LIMBS - 1] + 65, P[LIMBS - 1] + 66] {
            for low in [0, 1, MASK] {
                let mut limbs = [low; LIMBS];
                limbs[LIMBS - 1] = top;
                assert!(equal(&Fp::splat(&limbs).weak(), &Fp::splat(&limbs)), "{top} {low}");
            }
        }
    }

    /// Residues next to 0 and p in every place of every operation.
    fn check_edges_of_the_field() {
        let edges = edges();
        for a in &edges {
            for b in &edges {
                let (x, y) = (splat(a), splat(b));
                assert!(x.mul(&y).to_blst() == [multiply(a, b); LANES]);
                let difference = x.square().sub_n(&y.square());
                assert!(equal(&x.add_n(&y).mul(&x.sub_n(&y)), &difference));
                assert!(equal(&x.add_n(&y.neg()), &x.sub_n(&y)) && equal(&x.negate_lanes(0xff), &x.neg()));
                assert!((x.sub_n(&y).mul(&Fp::splat(&Packed::ONE.0)).zero_lanes() == 0xff) == (a == b));
            }
        }
    }

    /// f/conj(f) where coefficients are next to 0 and p, also those of the squares that norms are made of.
    fn check_edges_of_quotients() {
        let edges = edges();
        let mut rng = rng();
        for _ in 0..40 {
            let mut limbs = [[0; 6]; 12];
            limbs.iter_mut().for_each(|limbs| *limbs = edges[(rng.next_u32() as usize) % edges.len()]);
            limbs[0] = edges[1 + rng.next_u32() as usize % (edges.len() - 1)];
            let f = Fp12::from_gt([&Gt::from_limbs(&limbs); LANES]);
            let mut quotient = [f];
            quotients(&mut quotient);
            let product = quotient[0].mul(&f.conjugate());
            assert!(product.coefficients().into_iter().zip(f.coefficients()).all(|(a, b)| equal(a, b)));
        }
    }

    fn check_encodings() {
        let elements = millers();
        assert!(encode_gt(&Fp12::from_gt(elements.each_ref())) == elements.map(|e| e.encode()));
        let mut zeros = Fp12::one();
        zeros.c1 = zeros.c0.sub_n(&zeros.c0);
        assert!(encode_gt(&zeros) == [Gt::one().encode(); LANES]);
        let points = some_points(2 * LANES);
        let want: Vec<[u8; 48]> = points.iter().map(|p| p.to_affine().encode()).collect();
        assert!(encode_points(&gather(&points), points.len()) == want);
    }

    fn check_openings() {
        let samples = samples();
        let inputs = samples.inputs();
        for count in [0, 1, 8, 9] {
            let blindings = samples.blindings[..count].chunks(LANES);
            let blindings: Vec<Fp12> = blindings
                .map(|chunk| Fp12::from_gt(std::array::from_fn(|lane| chunk.get(lane).unwrap_or(&chunk[0]))))
                .collect();
            let want = open_all(&samples.ek, &inputs[..count], &samples.blindings[..count]);
            assert_eq!(opening::open_all(&samples.ek, &inputs[..count], &blindings), want);
        }
    }

    fn check_stated() {
        let (values, scalars) = stated_tests::powers(9);
        let weights = stated_tests::weights(9);
        let expected = stated_tests::expected(&scalars, &weights);
        // SAFETY: this runs where the features are there.
        let places = |values: &[Gt]| unsafe {
            let blindings: Vec<Blinding> = values.iter().map(Blinding::new).collect();
            let elements = stated::elements(&blindings.iter().collect::<Vec<_>>())?;
            Some(stated::places(&elements, &weights))
        };
        assert!(places_hold(&places(&values).expect("elements of GT"), &expected));
        let mut wrong = values.clone();
        wrong[8] = wrong[8].mul(&stated_tests::outside());
        assert!(!places_hold(&places(&wrong).expect("elements of the cyclotomic subgroup"), &expected));
        let mut bytes = *Blinding::new(&values[8]).as_bytes();
        bytes[287] ^= 1;
        let (good, bad) = (Blinding::new(&values[0]), Blinding::from_bytes(bytes));
        // SAFETY: likewise.
        assert!(unsafe { stated::elements(&[&good, &bad]) }.is_none());
    }

    fn check_pairings() {
        // The identity among the fixed points, among the arguments, and a vector that is not full.
        let fixed: Vec<G2Affine> =
            (0..7).map(|i| G2::generator().mul(&Scalar::from_u64(i)).to_affine()).collect();
        let points: Vec<G1> = (0..LANES).map(|i| G1::generator().mul_public(&Scalar::from_u64([1, 0, 2, 3, 4, 5, 6, 7][i]))).collect();
        let arguments = gather(&points).arguments();
        let mut values = [LaneLines::new(&fixed).miller_loop(&arguments[0])];
        easy_parts(&mut values);
        hard_parts(&mut values);
        let got = values[0].to_gt();
        for (i, fixed) in fixed.iter().enumerate() {
            let want = miller_loop(&points[i].to_affine(), fixed).easy_part().hard_part();
            assert!(got[i] == want && got[i].is_one() == (i < 2), "{i}");
        }
        assert!(got[7].is_one());
    }

    fn check_points() {
        let count = 3 * LANES;
        let (a, b) = (some_points(count), some_points(count + 7).split_off(7));
        let mut doubled = gather(&a);
        doubled.double();
        assert!(unpack(&doubled, count) == a.iter().map(G1::double).collect::<Vec<_>>());
        let (mut sums, mut differences) = (gather(&a), gather(&b));
        sums.butterfly(&mut differences);
        assert!(unpack(&sums, count) == a.iter().zip(&b).map(|(a, b)| a.add(b)).collect::<Vec<_>>());
        assert!(unpack(&differences, count) == a.iter().zip(&b).map(|(a, b)| a.sub(b)).collect::<Vec<_>>());
        let scalars = scalars(count);
        let mut products = gather(&a);
        products.multiply(&scalars.iter().map(points::digits).collect::<Vec<_>>());
        assert!(unpack(&products, count) == a.iter().zip(&scalars).map(|(a, k)| a.mul_public(k)).collect::<Vec<_>>());
    }

    fn check_sums_of_products() {
        let blind = G1::generator().mul_public(&Scalar::reduce(&[0x5a; 64]));
        for count in [0, 1, 7, 8, 9, 127, 128, 129, 300] {
            let (points, scalars) = (some_points(count), scalars(count));
            let affine: Vec<G1Affine> = points.iter().map(|p| p.to_affine()).collect();
            let halves: Vec<[u128; 2]> = scalars.iter().map(|k| glv_halves(k).into()).collect();
            let low: Vec<[u128; 1]> = halves.iter().map(|[low, _]| [!low]).collect();
            let sum = |scalars: &[Scalar]| {
                points.iter().zip(scalars).fold(G1::default(), |sum, (p, k)| sum.add(&p.mul_public(k)))
            };
            assert!(straus::sum(&affine, &halves, &blind) == Some(sum(&scalars)), "{count}");
            let short: Vec<Scalar> = low.iter().map(|[low]| Scalar::reduce(&low.to_be_bytes())).collect();
            assert!(straus::sum(&affine, &low, &blind) == Some(sum(&short)), "{count}");
        }
        // A blind that meets a multiple of the point.
        assert!(straus::sum(&[G1Affine::generator()], &[[3]], &G1::generator()).is_none());
    }

    fn check_decoding() {
        // Points of order 3 and 11, the generator plus each, and what is not a point; see `testing/vectors`.
        let small_order = [
            "a00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
            "b9b3e2c8c6bbf59d3c326b531fc1e639d29200c28624ac604f251a12908c9b7f735318617f625954cc71cdf03229b1ef",
            "ae9277968cb92c78d15a2a2ed855d55061c3929db43d1e53d6d13bee755ff9a91b3f577bbb2f15c6ba8206a6a81c4afd",
            "add0bf3057c67011374bc51a8f7a1ed69dd2067c4cf8caa84e416a6f3da6cc6eccdc26527ffd3c9994589370a5247854",
            // x = p, which is 0 modulo p; x = p + the generator's does not fit.
            "9a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab",
        ];
        let small_order = small_order.map(|text| hex::decode(text).expect("hex").try_into().expect("48 bytes"));
        let mut encodings: Vec<[u8; 48]> = small_order.into();
        encodings.extend(some_points(9).iter().map(|p| p.to_affine().encode()));
        let mut rng = rng();
        // Half of them on the curve, outside the subgroup; and random points of the subgroup.
        encodings.extend((0..40).map(|_| {
            let mut bytes = [0; 48];
            rng.fill_bytes(&mut bytes[1..]);
            bytes[0] = 0x80;
            bytes
        }));
        encodings.extend(scalars(40).iter().map(|k| G1::generator().mul_public(k).to_affine().encode()));
        // Every encoding with all flags.
        let flags = (0..8u8).flat_map(|flags| {
            encodings.iter().map(move |bytes| {
                let mut bytes = *bytes;
                bytes[0] = bytes[0] & 0x1f | flags << 5;
                bytes
            })
        });
        let all: Vec<[u8; 48]> = flags.chain(encodings.iter().copied()).collect();
        for count in [all.len(), 0, 1, 8, 9] {
            let all: Vec<&[u8; 48]> = all.iter().rev().take(count).collect();
            let want: Vec<_> = all.iter().map(|bytes| G1Affine::decode(bytes)).collect();
            assert!(decode::decode(&all) == want);
            if count > 100 {
                let kinds = [PointError::NotCanonical, PointError::NotOnCurve, PointError::NotInSubgroup];
                assert!(kinds.iter().all(|kind| want.contains(&Err(*kind))));
                assert!(want.iter().filter(|point| point.is_ok()).count() > 120);
            }
        }
    }
}

/// Runs a function declared by [`lanes`] where that is sound.
macro_rules! on_lanes {
    ($($test:ident: $check:ident;)*) => { $(
        #[test]
        fn $test() {
            if vector::supported() {
                // SAFETY: the features are there.
                unsafe { $check() }
            }
        }
    )* };
}

on_lanes! {
    final_exponentiation: check_final_exponentiation;
    long_chains_stay_in_bounds: check_long_chains;
    powers: check_powers;
    fixed_bases_at_the_edges: check_fixed_bases;
    norm_near_zero: check_norm_near_zero;
    weak_reduction_of_every_multiple: check_weak_reduction;
    field_at_the_edges: check_edges_of_the_field;
    quotients_at_the_edges: check_edges_of_quotients;
    encodings: check_encodings;
    openings_are_those_of_the_portable_backend: check_openings;
    stated_blindings: check_stated;
    pairings_with_identities: check_pairings;
    points_with_duplicates_and_opposites: check_points;
    sums_of_products: check_sums_of_products;
    decoding: check_decoding;
}

#[test]
fn the_convolution_is_that_of_the_portable_backend() {
    if !vector::supported() {
        return;
    }
    let (parameters, _) = dealer::deal(40, 1, 1, &mut rng()).expect("a valid shape");
    for batch in vector::BATCHES.iter().copied() {
        let inputs: Vec<G1Affine> = some_points(batch).iter().map(|p| p.to_affine()).collect();
        let fixed = parameters.fixed_side(batch);
        for release in [None, Some(&G1Affine::generator())] {
            let want = convolution::convolve(fixed, parameters.budget(), &inputs, release);
            // SAFETY: the features are there.
            let got = unsafe { super::convolve::convolve(fixed, parameters.budget(), &inputs, release) };
            assert_eq!(got.len(), batch);
            for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                // SAFETY: likewise.
                let got = unsafe { Fp12::gather([got; LANES]).to_gt() };
                assert!(got[0].hard_part() == want.hard_part(), "{batch} {i}");
            }
        }
    }
}

/// Ten ciphertexts, two of them malformed, with the batch's release and everybody's singleton release.
#[test]
fn batches_and_singletons_open_as_in_the_portable_backend() {
    if !vector::supported() {
        return;
    }
    let mut rng = rng();
    let (parameters, keys) = dealer::deal(10, 1, 1, &mut rng).expect("a valid shape");
    let ek = parameters.encryption_key();
    let ads: Vec<[u8; 32]> = (0..10).map(|i| [i; 32]).collect();
    let mut ciphertexts: Vec<Ciphertext> =
        ads.iter().map(|ad| ek.encrypt(ad, &[7; 40], b"", &mut rng).expect("short").0).collect();
    ciphertexts[1].d[0] ^= 1;
    ciphertexts[9].e[0] ^= 1;
    let inputs: Vec<(&[u8; 32], &Ciphertext)> = ads.iter().zip(&ciphertexts).collect();
    let points: Vec<CiphertextPoint> = ciphertexts.iter().map(|c| c.header().expect("a point")).collect();

    let share = keys[0].release_share(&points).expect("within limits");
    let release = parameters.combine(&[(1, share)]).expect("enough");
    let portable = Portable::new(1);
    let want = portable.decrypt(&parameters, &points, &release, &inputs).expect("within limits");
    assert_eq!(want.iter().filter(|opening| opening.key().is_none()).count(), 2);
    // SAFETY: the features are there.
    let prepared = unsafe { batch::predecrypt(&parameters, &points) }.expect("within limits");
    // SAFETY: likewise.
    assert_eq!(unsafe { batch::finalize(&parameters, &prepared, &release, &inputs) }, Ok(want.clone()));
    // SAFETY: likewise.
    assert_eq!(unsafe { batch::decrypt(&parameters, &points, &release, &inputs) }, Ok(want.clone()));

    let singletons: Vec<G1Affine> = points
        .iter()
        .map(|point| G1Affine::decode(&keys[0].singleton_share(point)).expect("a point"))
        .collect();
    // SAFETY: likewise.
    assert_eq!(unsafe { batch::open_singletons(&parameters, &singletons, &inputs) }, want);
}
