//! The keys behind secp256k1 signatures: the part of [`recover`](crate::signature::recover) that takes the time.
//!
//! Every envelope has a payer's signature, and every role recovers its key, so this is [`blindfold_recovery`] where it can be
//! built, several times as fast as `k256`, which stays where it cannot, in browsers, and for signing. Both give the same key,
//! or none.

#[cfg(not(target_family = "wasm"))]
pub(crate) use blindfold_recovery::{OutOfRange, Signed, keys};

/// The same with `k256`.
#[cfg(target_family = "wasm")]
pub(crate) use with_k256::{OutOfRange, Signed, keys};

#[cfg(target_family = "wasm")]
mod with_k256 {
    /// A signature whose key is asked for.
    #[derive(Clone, Copy)]
    pub(crate) struct Signed {
        pub(crate) digest: [u8; 32],
        /// r ‖ s, big-endian; s may be in either half.
        pub(crate) rs: [u8; 64],
        /// Which of the two points with that r is meant. r itself stands for x, never r plus the group order.
        pub(crate) odd: bool,
    }

    /// r or s is zero or not below the group order: there is no such signature.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct OutOfRange;

    /// The key of each; `None` if no key fits.
    pub(crate) fn keys(signed: &[Signed]) -> Vec<Result<Option<[u8; 64]>, OutOfRange>> {
        signed.iter().map(super::key_with_k256).collect()
    }
}

#[cfg(any(test, target_family = "wasm"))]
fn key_with_k256(signed: &Signed) -> Result<Option<[u8; 64]>, OutOfRange> {
    use k256::ecdsa::{RecoveryId, Signature, VerifyingKey};

    let signature = Signature::from_slice(&signed.rs).map_err(|_| OutOfRange)?;
    let id = RecoveryId::new(signed.odd, false);
    let found = VerifyingKey::recover_from_prehash(&signed.digest, &signature, id);
    Ok(found.ok().map(|key| {
        let mut point = [0; 64];
        point.copy_from_slice(&key.to_sec1_point(false).as_bytes()[1..]);
        point
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::SigningKey;
    use alloy_primitives::B256;
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::{Rng, SeedableRng};

    /// The group order, big-endian.
    const ORDER: [u8; 32] =
        alloy_primitives::hex!("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141");

    fn same(digest: &B256, rs: &[u8; 64]) -> [Result<Option<[u8; 64]>, OutOfRange>; 2] {
        [false, true].map(|odd| {
            let signed = Signed { digest: digest.0, rs: *rs, odd };
            let found = blindfold_recovery::key(&signed);
            assert_eq!(found, key_with_k256(&signed), "{signed:?}");
            // Lanes take as many as eight.
            assert_eq!(keys(&[signed; 8]), [found; 8]);
            found
        })
    }

    #[test]
    fn both_libraries_give_the_same_key_or_none() {
        let mut rng = ChaCha20Rng::seed_from_u64(11);
        let mut none = 0;
        for _ in 0..200 {
            let (mut digest, mut rs) = (B256::ZERO, [0; 64]);
            rng.fill_bytes(digest.as_mut_slice());
            rng.fill_bytes(&mut rs);
            none += same(&digest, &rs).iter().filter(|found| **found == Ok(None)).count();
            let signed = SigningKey::random(&mut rng).sign(&digest);
            rs.copy_from_slice(&signed.0[..64]);
            assert!(same(&digest, &rs).iter().all(|found| matches!(found, Ok(Some(_)))));
            // s in the upper half: another key with the same r, which the caller refuses.
            rs[32] |= 0xf0;
            let _ = same(&digest, &rs);
        }
        assert!(none > 50, "half of all r are no x of a point: {none}");
    }

    #[test]
    fn halves_at_the_ends_of_their_range_are_the_same_to_both() {
        let mut below = ORDER;
        below[31] -= 1;
        let mut above = ORDER;
        above[31] += 1;
        let one = B256::with_last_byte(1).0;
        let ends = [[0; 32], one, below, ORDER, above, [0xff; 32]];
        for r in ends {
            for s in ends {
                let mut rs = [0; 64];
                rs[..32].copy_from_slice(&r);
                rs[32..].copy_from_slice(&s);
                for digest in [B256::ZERO, B256::with_last_byte(1), B256::new(ORDER), B256::repeat_byte(0xff)]
                {
                    let _ = same(&digest, &rs);
                }
            }
        }
    }

    /// A signature whose key would be the point at infinity: s·R = z·G.
    #[test]
    fn the_point_at_infinity_is_no_key() {
        // R = G, so r is its x, and s = z.
        let g = alloy_primitives::hex!("79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798");
        let z = B256::repeat_byte(5);
        let mut rs = [0; 64];
        rs[..32].copy_from_slice(&g);
        rs[32..].copy_from_slice(z.as_slice());
        assert!(same(&z, &rs).contains(&Ok(None)));
    }
}
