//! Golden vectors of hints, read by the contracts' tests as well: `testing/vectors/hints/verifier.json`.
//!
//! Everything in them follows from fixed seeds. The test fails when the file differs from what the code gives; with
//! `BLINDFOLD_WRITE_VECTORS=1` it is written instead.

mod common;

use std::path::PathBuf;

use blindfold_bte::{Ciphertext, EncryptionKey, SessionKey};
use common::{deal, rng};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Cases with a length drawn from 1 … 400.
const RANDOM_CASES: usize = 64;
/// Further lengths: two buckets of envelopes, and the longest message.
const LENGTHS: [usize; 3] = [256, 512, 32_768];

fn x(bytes: impl AsRef<[u8]>) -> String {
    format!("0x{}", hex::encode(bytes))
}

/// A number below `limit`.
fn below(rng: &mut ChaCha20Rng, limit: usize) -> usize {
    rng.next_u32() as usize % limit
}

/// One byte of `bytes` with a bit pattern that is not zero.
fn damage(rng: &mut ChaCha20Rng, field: &str, bytes: &mut [u8]) -> Value {
    let (index, pattern) = (below(rng, bytes.len()), 1 + below(rng, 255) as u8);
    bytes[index] ^= pattern;
    json!({ "field": field, "index": index, "xor": pattern })
}

/// An honest hint, which opens, and two damages, with which it does not.
fn case(ek: &EncryptionKey, number: usize, length: usize, rng: &mut ChaCha20Rng) -> Value {
    let (mut ad, mut key, mut message) = ([0; 32], [0; 16], vec![0; length]);
    rng.fill_bytes(&mut ad);
    rng.fill_bytes(&mut key);
    rng.fill_bytes(&mut message);
    let hint = SessionKey::from_bytes(key);
    let (honest, _) = ek.encrypt_deterministic(&ad, &message, &hint).expect("a short message");
    assert_eq!(ek.open_hint(&ad, &honest, &hint).as_ref(), Ok(&message));

    // Each field in turn; and D, the only one for which the header is still right, in every case.
    let damages = [["ad", "c", "e", "key"][number % 4], "d"].map(|field| {
        let (mut ad, mut key, mut ciphertext) = (ad, key, honest.clone());
        let Ciphertext { c, d, e } = &mut ciphertext;
        let bytes: &mut [u8] = match field {
            "ad" => &mut ad,
            "c" => c,
            "d" => d,
            "e" => e,
            _ => &mut key,
        };
        let damage = damage(rng, field, bytes);
        assert!(ek.open_hint(&ad, &ciphertext, &SessionKey::from_bytes(key)).is_err());
        damage
    });
    json!({
        "ad": x(ad),
        "c": x(honest.c),
        "d": x(honest.d),
        "e": x(&honest.e),
        "key": x(key),
        "messageSha256": x(Sha256::digest(&message)),
        "damages": damages,
    })
}

#[test]
fn hints_for_the_verifier_on_l1() {
    let mut rng = rng(0x6869_6e74);
    let ek = deal(4, 4, 3, 0x6869_6e74).0.encryption_key();
    let drawn: Vec<usize> = (0..RANDOM_CASES).map(|_| 1 + below(&mut rng, 400)).collect();
    let lengths = drawn.into_iter().chain(LENGTHS);
    let cases: Vec<Value> =
        lengths.enumerate().map(|(number, length)| case(&ek, number, length, &mut rng)).collect();
    let file = json!({ "encryptionKey": x(ek.to_bytes()), "cases": cases });

    let text = serde_json::to_string_pretty(&file).expect("plain values") + "\n";
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testing/vectors/hints");
    let path = folder.join("verifier.json");
    if std::env::var_os("BLINDFOLD_WRITE_VECTORS").is_some() {
        std::fs::create_dir_all(&folder).expect("a writable folder");
        std::fs::write(&path, &text).expect("a writable file");
    }
    let committed = std::fs::read_to_string(&path).expect("the committed file");
    assert!(committed == text, "{} differs from what the code gives", path.display());
}
