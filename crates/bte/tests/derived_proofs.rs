//! Derived proofs of knowledge against the reference, and as vectors: `testing/vectors/hints/derived-proofs.json`.
//!
//! The file follows from a fixed seed. The test fails when it differs from what the reference gives; with
//! `BLINDFOLD_WRITE_VECTORS=1` it is written instead.

mod common;

use std::path::PathBuf;

use blindfold_bte::{Proof, ProofForm, ReencryptItem, SessionKey, verify_proof};
use blindfold_reference::{Reference, derived_nonce};
use common::{deal, rng};
use rand_chacha::rand_core::Rng;
use serde_json::json;

/// The seed of `hints/verifier.json`, whose encryption key these are for.
const KEY_SEED: u64 = 0x6869_6e74;
const LENGTHS: [usize; 7] = [0, 1, 31, 32, 33, 256, 512];

fn x(bytes: impl AsRef<[u8]>) -> String {
    format!("0x{}", hex::encode(bytes))
}

#[test]
fn derived_proofs_are_those_of_the_reference() {
    let parameters = deal(4, 4, 3, KEY_SEED).0;
    let ek = parameters.encryption_key();
    let plain = Reference::from_bytes(parameters.max_batch(), |i| parameters.h(i), &ek.to_bytes())
        .expect("valid parameters");
    let mut rng = rng(0x0070_6f6b);
    let mut cases = Vec::new();
    for length in LENGTHS {
        let (mut ad, mut key, mut message) = ([0; 32], [0; 16], vec![0; length]);
        rng.fill_bytes(&mut ad);
        rng.fill_bytes(&mut key);
        rng.fill_bytes(&mut message);
        let rho = derived_nonce(&key, &ad, &message);
        let expected = plain.encrypt(&ad, &message, &key, &rho).expect("a scalar");

        let session = SessionKey::from_bytes(key);
        let (ciphertext, proof) = ek.encrypt_deterministic(&ad, &message, &session).expect("short");
        assert_eq!((ciphertext.c, ciphertext.d), (expected.ciphertext.c, expected.ciphertext.d), "{length}");
        assert_eq!(ciphertext.e, expected.ciphertext.e, "{length}");
        assert_eq!(proof, Proof { r: expected.r, s: expected.s }, "{length}");
        verify_proof(&ad, &ciphertext, &proof).expect("a right proof");
        let form = ProofForm::of(&ad, &ciphertext, &proof, &message, &session);
        assert_eq!(form, ProofForm::Derived, "{length}");
        let item = ReencryptItem { ad: &ad, message: &message, key: &session, proof: form };
        assert_eq!(ek.reencrypt(&[item]), [Some((ciphertext.clone(), proof))], "{length}");

        cases.push(json!({
            "ad": x(ad), "key": x(key), "message": x(&message), "rho": x(rho),
            "c": x(ciphertext.c), "d": x(ciphertext.d), "e": x(&ciphertext.e), "r": x(proof.r), "s": x(proof.s),
        }));
    }
    let text = serde_json::to_string_pretty(&json!({ "cases": cases })).expect("plain values") + "\n";
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testing/vectors/hints/derived-proofs.json");
    if std::env::var_os("BLINDFOLD_WRITE_VECTORS").is_some() {
        std::fs::write(&path, &text).expect("a writable file");
    }
    let committed = std::fs::read_to_string(&path).expect("the committed file");
    assert!(committed == text, "{} differs from what the code gives", path.display());
}
