//! Conformance: every field of every vector file, made by an independent implementation, is reproduced, and every
//! input it lists for rejection is refused.
//!
//! The folder is `$BTE_VECTORS`, by default the project's own copy.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use blindfold_bte::{
    Backend, Ciphertext, CiphertextPoint, MemberKey, Opening, Parameters, PointError, Portable, Proof,
    ProofError, Release, SessionKey, auto, dealer, verify_proof, verify_proofs,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::Value;

const SCHEME: &str = "BLINDFOLD-V1";

fn folder() -> PathBuf {
    std::env::var_os("BTE_VECTORS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/vectors"), PathBuf::from)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("{field} is missing or no string"))
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().unwrap_or_else(|| panic!("{field} is missing or no list"))
}

fn number<T: TryFrom<u64>>(value: &Value, field: &str) -> T {
    let number = value[field].as_u64().unwrap_or_else(|| panic!("{field} is missing or no number"));
    T::try_from(number).ok().unwrap_or_else(|| panic!("{field} is out of range"))
}

fn unhex(text: &str) -> Vec<u8> {
    hex::decode(text).expect("hexadecimal")
}

fn array<const N: usize>(text: &str) -> [u8; N] {
    unhex(text).try_into().unwrap_or_else(|_| panic!("{N} bytes expected in {text}"))
}

/// The fields of an object must be exactly these: a field that nothing checks is a vector that nothing tests.
fn fields(value: &Value, known: &[&str], optional: &[&str]) {
    let present: BTreeSet<&str> = value.as_object().expect("an object").keys().map(String::as_str).collect();
    for field in &present {
        assert!(known.contains(field) || optional.contains(field), "unknown field {field}");
    }
    for field in known {
        assert!(present.contains(field), "missing field {field}");
    }
}

struct Item {
    ad: [u8; 32],
    ciphertext: Ciphertext,
    proof: Proof,
}

impl Item {
    fn read(value: &Value) -> Self {
        Self {
            ad: array(text(value, "ad")),
            ciphertext: Ciphertext {
                c: array(text(value, "c")),
                d: array(text(value, "d")),
                e: unhex(text(value, "e")),
            },
            proof: Proof { r: array(text(value, "pok_r")), s: array(text(value, "pok_s")) },
        }
    }
}

fn set_up(file: &Value) -> (Parameters, Vec<MemberKey>) {
    let (max_batch, members): (u32, u16) = (number(file, "max_batch"), number(file, "members"));
    let by_exponent = file["shares"].as_object().expect("shares by exponent");
    assert_eq!(by_exponent.len(), max_batch as usize);
    let shares: Vec<Vec<[u8; 32]>> = (1..=max_batch)
        .map(|i| {
            let row = by_exponent[&i.to_string()].as_array().expect("a list of shares");
            row.iter().map(|share| array(share.as_str().expect("a share"))).collect()
        })
        .collect();
    let tau = array(text(file, "tau"));
    dealer::from_secrets(max_batch, members, number(file, "threshold"), &tau, &shares).expect("valid secrets")
}

fn check_batch(name: &str, file: &Value) {
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    fields(
        file,
        &[
            "scheme",
            "max_batch",
            "members",
            "threshold",
            "tau",
            "ek",
            "tau_g1",
            "tau2_g1",
            "h",
            "shares",
            "ciphertexts",
            "pd_shares",
            "pd",
        ],
        &[],
    );
    let (parameters, keys) = set_up(file);
    parameters.check(&mut rng).expect("the parameters fit together");
    let max_batch = parameters.max_batch();
    let ek = parameters.encryption_key();

    assert_eq!(hex::encode(ek.to_bytes()), text(file, "ek"), "{name}: ek");
    assert_eq!(hex::encode(parameters.tau_g1()), text(file, "tau_g1"), "{name}: tau_g1");
    assert_eq!(hex::encode(parameters.tau2_g1()), text(file, "tau2_g1"), "{name}: tau2_g1");
    let h = file["h"].as_object().expect("h by exponent");
    let present: BTreeSet<usize> = h.keys().map(|i| i.parse().expect("an exponent")).collect();
    let expected: BTreeSet<usize> = (1..=2 * max_batch).filter(|i| *i != max_batch + 1).collect();
    assert_eq!(present, expected, "{name}: exponents of h");
    for (i, value) in h {
        let own = parameters.h(i.parse().expect("an exponent")).expect("present");
        assert_eq!(Some(hex::encode(own).as_str()), value.as_str(), "{name}: h_{i}");
    }
    assert!(
        parameters.h(0).is_none()
            && parameters.h(max_batch + 1).is_none()
            && parameters.h(2 * max_batch + 1).is_none()
    );
    for key in &keys {
        key.check(&parameters, &mut rng).expect("member keys belong to the parameters");
        assert_eq!(MemberKey::decode(&key.encode()).expect("own encoding").encode(), key.encode());
    }
    assert_eq!(Parameters::decode(&parameters.encode()).expect("own encoding"), parameters);

    let entries = list(file, "ciphertexts");
    let items: Vec<Item> = entries.iter().map(Item::read).collect();
    let mut points = Vec::new();
    for item in &items {
        let point = verify_proof(&item.ad, &item.ciphertext, &item.proof).expect("proof of knowledge");
        assert_eq!(point.to_bytes(), item.ciphertext.c);
        points.push(point);
    }
    let proofs: Vec<_> = items.iter().map(|i| (&i.ad, &i.ciphertext, &i.proof)).collect();
    assert!(verify_proofs(&mut rng, &proofs).iter().all(Result::is_ok), "{name}: batched proofs");

    // Release.
    let given = list(file, "pd_shares");
    assert_eq!(given.len(), keys.len());
    let mut shares = Vec::new();
    for (key, given) in keys.iter().zip(given) {
        let share = key.release_share(&points).expect("a batch within limits");
        assert_eq!(Some(hex::encode(share).as_str()), given.as_str(), "{name}: pd_{}", key.index());
        assert_eq!(auto(1).release_share(key, &points), Ok(share));
        parameters.verify_share(key.index(), &points, &share).expect("an honest share");
        shares.push((key.index(), share));
    }
    assert_eq!(parameters.invalid_shares(&mut rng, &points, &shares), Ok(vec![]));
    let threshold = usize::from(parameters.threshold());
    for start in 0..shares.len() {
        let some: Vec<_> = shares.iter().cycle().skip(start).take(threshold).copied().collect();
        let release = parameters.combine(&some).expect("enough shares");
        assert_eq!(hex::encode(release.to_bytes()), text(file, "pd"), "{name}: pd");
    }

    // Decryption.
    let backend = Portable::new(2);
    let release = Release::from_bytes(&array(text(file, "pd"))).expect("a point");
    let predecrypted = backend.predecrypt(&parameters, &points).expect("a batch within limits");
    let cross = predecrypted.cross_terms();
    let blinding = predecrypted.unblind(&parameters, &release).expect("same parameters");
    let inputs: Vec<_> = items.iter().map(|i| (&i.ad, &i.ciphertext)).collect();
    let opened = backend.finalize(&parameters, &predecrypted, &release, &inputs).expect("the same batch");
    for (i, entry) in entries.iter().enumerate() {
        let known = ["ad", "c", "d", "e", "pok_r", "pok_s", "cross", "z", "malformed", "hint", "message"];
        fields(entry, &known, &["singleton_pd"]);
        assert_eq!(hex::encode(cross[i]), text(entry, "cross"), "{name}: cross-term {i}");
        assert_eq!(hex::encode(blinding[i]), text(entry, "z"), "{name}: z {i}");
        let malformed = entry["malformed"].as_bool().expect("a flag");
        assert_eq!(malformed, entry.get("singleton_pd").is_some(), "{name}: singleton {i}");
        let (item, point) = (&items[i], &points[i]);
        if malformed {
            assert!(entry["hint"].is_null() && entry["message"].is_null());
            assert_eq!(opened[i], Opening::Malformed, "{name}: {i}");
            let pd: [u8; 48] = array(text(entry, "singleton_pd"));
            let singles: Vec<_> = keys.iter().map(|key| (key.index(), key.singleton_share(point))).collect();
            for (member, share) in &singles {
                parameters.verify_singleton_share(*member, point, share).expect("an honest share");
            }
            assert_eq!(parameters.combine_singletons(&singles), Ok(pd), "{name}: singleton {i}");
            assert_eq!(parameters.verify_singleton(point, &pd), Ok(()));
            assert_eq!(parameters.verify_singletons(&mut rng, &[(*point, pd)]), [Ok(())]);
            assert_eq!(parameters.open_singleton(&item.ad, &item.ciphertext, &pd), Ok(Opening::Malformed));
        } else {
            let hint = SessionKey::from_bytes(array(text(entry, "hint")));
            let message = unhex(text(entry, "message"));
            assert_eq!(
                opened[i],
                Opening::WellFormed { key: hint.clone(), message: message.clone() },
                "{name}: {i}"
            );
            assert_eq!(
                ek.open_hint(&item.ad, &item.ciphertext, &hint).as_deref(),
                Ok(&message[..]),
                "{name}: {i}"
            );
            let verified = backend.open_hints(&ek, &[(&item.ad, &item.ciphertext, &hint)]);
            assert_eq!(verified, [Ok(message.clone())]);
            let (again, _) = ek.encrypt_deterministic(&item.ad, &message, &hint).expect("a short message");
            assert_eq!(again, item.ciphertext, "{name}: encryption {i}");
        }
    }
}

fn check_rejects(name: &str, file: &Value, folder: &Path) {
    let mut rng = ChaCha20Rng::seed_from_u64(8);
    fields(file, &["scheme", "kind", "base", "g1", "scalars", "hints", "poks"], &[]);
    let base = read(&folder.join(text(file, "base")));
    let (parameters, _) = set_up(&base);
    let ek = parameters.encryption_key();
    let entries = list(&base, "ciphertexts");
    let honest = Item::read(&entries[0]);

    for entry in list(file, "g1") {
        fields(entry, &["name", "bytes"], &[]);
        let bytes = unhex(text(entry, "bytes"));
        let refused = CiphertextPoint::try_from(&bytes[..]).expect_err(text(entry, "name"));
        match <[u8; 48]>::try_from(bytes) {
            Ok(c) => {
                let ciphertext = Ciphertext { c, ..honest.ciphertext.clone() };
                let result = verify_proof(&honest.ad, &ciphertext, &honest.proof);
                assert_eq!(result, Err(ProofError::Header(refused)), "{name}: {}", text(entry, "name"));
                let batch = [(&honest.ad, &ciphertext, &honest.proof)];
                assert_eq!(auto(1).verify_proofs(&mut rng, &batch), [result]);
            }
            Err(bytes) => assert_eq!(refused, PointError::Length { expected: 48, actual: bytes.len() }),
        }
    }
    for entry in list(file, "scalars") {
        fields(entry, &["name", "bytes"], &[]);
        // Another length does not even have the type of a scalar.
        if let Ok(s) = <[u8; 32]>::try_from(unhex(text(entry, "bytes"))) {
            let proof = Proof { s, ..honest.proof };
            let result = verify_proof(&honest.ad, &honest.ciphertext, &proof);
            assert_eq!(result, Err(ProofError::Response), "{name}: {}", text(entry, "name"));
            assert!(MemberKey::from_shares(1, &[s]).is_err(), "{name}: {}", text(entry, "name"));
        }
    }
    for entry in list(file, "hints") {
        fields(entry, &["name", "index", "hint"], &[]);
        let item = Item::read(&entries[number::<usize>(entry, "index")]);
        if let Ok(hint) = <[u8; 16]>::try_from(unhex(text(entry, "hint"))) {
            let hint = SessionKey::from_bytes(hint);
            let alone = ek.open_hint(&item.ad, &item.ciphertext, &hint).expect_err(text(entry, "name"));
            let batched = ek.open_hints(&[(&item.ad, &item.ciphertext, &hint)]);
            assert_eq!(batched, [Err(alone)], "{name}: {}", text(entry, "name"));
        }
    }
    for entry in list(file, "poks") {
        fields(entry, &["name", "index", "field", "bytes"], &[]);
        let mut changed = entries[number::<usize>(entry, "index")].clone();
        let field = text(entry, "field");
        assert!(changed.get(field).is_some(), "{name}: no field {field}");
        changed[field] = entry["bytes"].clone();
        let item = Item::read(&changed);
        let refused = verify_proof(&item.ad, &item.ciphertext, &item.proof).expect_err(text(entry, "name"));
        let sound = (&honest.ad, &honest.ciphertext, &honest.proof);
        let batch = [sound, (&item.ad, &item.ciphertext, &item.proof), sound];
        let results = verify_proofs(&mut rng, &batch);
        assert!(results[0].is_ok() && results[1] == Err(refused) && results[2].is_ok());
        assert_eq!(auto(1).verify_proofs(&mut rng, &batch), results);
    }
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn vectors_of_the_whole_folder() {
    let folder = folder();
    let listing = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let files: BTreeMap<String, Value> = listing
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| (path.file_name().expect("a name").to_string_lossy().into_owned(), read(&path)))
        .collect();
    assert!(!files.is_empty(), "no vectors in {}", folder.display());
    for (name, file) in &files {
        assert_eq!(text(file, "scheme"), SCHEME, "{name}: another scheme");
        match file.get("kind").map(|kind| kind.as_str()) {
            None => check_batch(name, file),
            Some(Some("rejects")) => check_rejects(name, file, &folder),
            Some(kind) => panic!("{name}: vectors of unknown kind {kind:?}"),
        }
    }
}
