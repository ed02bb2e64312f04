//! Every target on what fuzzers found and what damage makes of the conformance vectors.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use blindfold_fuzz_targets::{STRUCTURES, TARGETS, Target};
use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};

const SEED: u64 = 0x626c696e64666f6c;
/// Damaged copies of each string of the vectors.
const COPIES: usize = 12;
/// Longer ones are parameter files, which take a millisecond each to decode.
const MAX_SAMPLE_BYTES: usize = 4_096;

fn testing(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("it can be read").path())
        .collect();
    files.sort();
    files
}

fn target(name: &str) -> Target {
    TARGETS.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no target {name}")).1
}

/// Runs a target and names the input when it panics.
fn run(name: &str, target: Target, input: &[u8]) {
    let result = std::panic::catch_unwind(|| target(input));
    assert!(result.is_ok(), "target {name} panics on {}", hex::encode(input));
}

/// Every hexadecimal string of a JSON file, as bytes.
fn byte_strings(value: &serde_json::Value, found: &mut BTreeSet<Vec<u8>>) {
    match value {
        serde_json::Value::String(text) => {
            if let Ok(bytes) = hex::decode(text.strip_prefix("0x").unwrap_or(text))
                && (1..=MAX_SAMPLE_BYTES).contains(&bytes.len())
            {
                found.insert(bytes);
            }
        }
        serde_json::Value::Array(list) => list.iter().for_each(|value| byte_strings(value, found)),
        serde_json::Value::Object(map) => map.values().for_each(|value| byte_strings(value, found)),
        _ => {}
    }
}

fn samples() -> Vec<Vec<u8>> {
    let mut found = BTreeSet::new();
    for folder in ["vectors", "vectors/protocol", "vectors/skip", "vectors/hints"] {
        for file in
            files(&testing(folder)).iter().filter(|file| file.extension().is_some_and(|end| end == "json"))
        {
            let text = fs::read_to_string(file).expect("a vector can be read");
            byte_strings(&serde_json::from_str(&text).expect("a vector is JSON"), &mut found);
        }
    }
    found.into_iter().collect()
}

/// A flipped bit, a cut, an insertion, a repetition, or a length field full of ones.
fn damage(bytes: &[u8], rng: &mut ChaCha20Rng) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let place = rng.next_u32() as usize % out.len();
    match rng.next_u32() % 5 {
        0 => out[place] ^= 1 << (rng.next_u32() % 8),
        1 => out.truncate(place),
        2 => out.insert(place, rng.next_u32() as u8),
        3 => out.extend_from_slice(&bytes[place..]),
        _ => out[place..].iter_mut().take(4).for_each(|byte| *byte = 0xff),
    }
    out
}

#[test]
fn what_fuzzers_found_stays_mended() {
    let folders = files(&testing("fuzz/corpus"));
    let names: BTreeSet<String> = folders
        .iter()
        .map(|folder| folder.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names, targets, "one folder of inputs for each target");
    for (folder, name) in folders.iter().zip(&names) {
        let inputs = files(folder);
        assert!(!inputs.is_empty(), "{name} has no inputs");
        for input in inputs {
            run(name, target(name), &fs::read(input).expect("an input can be read"));
        }
    }
}

/// What stands in no vector: damaged twice, so that what lengths and counts say fits nothing.
#[test]
fn damaged_inputs_panic_no_target() {
    println!("seed {SEED:#x}");
    let mut rng = ChaCha20Rng::seed_from_u64(SEED);
    for (name, copies) in [("proxy_header", 2_000), ("hint_blobs", 200), ("feed", 2_000)] {
        for input in files(&testing("fuzz/corpus").join(name)) {
            let input = fs::read(input).expect("an input can be read");
            for _ in 0..copies {
                let once = damage(&input, &mut rng);
                run(name, target(name), &once);
                if !once.is_empty() {
                    run(name, target(name), &damage(&once, &mut rng));
                }
            }
        }
    }
}

#[test]
fn damaged_vectors_panic_no_decoder() {
    println!("seed {SEED:#x}");
    let mut rng = ChaCha20Rng::seed_from_u64(SEED);
    let samples = samples();
    assert!(samples.len() > 100, "the vectors were read");
    for sample in &samples {
        let copies: Vec<Vec<u8>> = (0..COPIES).map(|_| damage(sample, &mut rng)).collect();
        for bytes in std::iter::once(sample).chain(&copies) {
            for (which, (name, decode)) in STRUCTURES.iter().enumerate() {
                assert!(which < 256, "the first byte chooses");
                run(name, *decode, bytes);
            }
            let what = rng.next_u32() as u8;
            run("scheme", target("scheme"), &[&[what], bytes.as_slice()].concat());
            run("skip_rule", target("skip_rule"), &[&[what; 9], bytes.as_slice()].concat());
            run("confidential", target("confidential"), bytes);
        }
    }
}
