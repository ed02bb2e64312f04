//! What several tests need.
#![allow(dead_code)] // each test file uses its own part

use std::io::Write as _;

use blindfold_bte::{
    Backend, Ciphertext, CiphertextPoint, EncryptionKey, MemberKey, Parameters, Proof, SessionKey, dealer,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

pub fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

pub fn deal(max_batch: u32, members: u16, threshold: u16, seed: u64) -> (Parameters, Vec<MemberKey>) {
    dealer::deal(max_batch, members, threshold, &mut rng(seed)).expect("a valid shape")
}

/// An honest ciphertext with everything about it.
#[derive(Clone)]
pub struct Made {
    pub ad: [u8; 32],
    pub message: Vec<u8>,
    pub ciphertext: Ciphertext,
    pub proof: Proof,
    pub key: SessionKey,
}

impl Made {
    pub fn new(ek: &EncryptionKey, number: usize, rng: &mut ChaCha20Rng) -> Self {
        let ad = [number as u8; 32];
        let message = vec![number as u8 ^ 0x55; 7 * number];
        let (ciphertext, proof, key) = ek.encrypt(&ad, &message, b"wallet", rng).expect("a short message");
        Self { ad, message, ciphertext, proof, key }
    }

    pub fn point(&self) -> CiphertextPoint {
        self.ciphertext.header().expect("honest")
    }
}

pub fn batch(parameters: &Parameters, size: usize, seed: u64) -> Vec<Made> {
    let (ek, mut rng) = (parameters.encryption_key(), rng(seed));
    (0..size).map(|number| Made::new(&ek, number, &mut rng)).collect()
}

pub fn points(batch: &[Made]) -> Vec<CiphertextPoint> {
    batch.iter().map(Made::point).collect()
}

pub fn inputs(batch: &[Made]) -> Vec<(&[u8; 32], &Ciphertext)> {
    batch.iter().map(|made| (&made.ad, &made.ciphertext)).collect()
}

pub fn shares(keys: &[MemberKey], points: &[CiphertextPoint]) -> Vec<(u16, [u8; 48])> {
    keys.iter().map(|key| (key.index(), key.release_share(points).expect("within limits"))).collect()
}

/// A point of the curve outside the subgroup: a subgroup point plus one of order 3.
pub fn off_subgroup() -> [u8; 48] {
    point("a55293eaa86b7af493578b73ab2d7edd49e0f1a7821e7ed11a4dc83dd6eed67a7d680e8fe49794874f1cfa9fc48212e5")
}

/// 48 bytes in hexadecimal.
pub fn point(text: &str) -> [u8; 48] {
    hex::decode(text).ok().and_then(|bytes| bytes.try_into().ok()).expect("48 bytes")
}

/// Points of the curve of order 3 and 11, and the generator plus each.
pub fn small_order() -> [[u8; 48]; 4] {
    [
        "a00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
        "b9b3e2c8c6bbf59d3c326b531fc1e639d29200c28624ac604f251a12908c9b7f735318617f625954cc71cdf03229b1ef",
        "ae9277968cb92c78d15a2a2ed855d55061c3929db43d1e53d6d13bee755ff9a91b3f577bbb2f15c6ba8206a6a81c4afd",
        "add0bf3057c67011374bc51a8f7a1ed69dd2067c4cf8caa84e416a6f3da6cc6eccdc26527ffd3c9994589370a5247854",
    ]
    .map(point)
}

/// The generator of G1.
pub fn generator() -> [u8; 48] {
    point("97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb")
}

pub const IDENTITY_G1: [u8; 48] = {
    let mut bytes = [0; 48];
    bytes[0] = 0xc0;
    bytes
};

/// The lanes' backend; where this processor lacks the instructions the tests say so, or fail if `BLINDFOLD_EXPECT_IFMA`
/// is 1.
pub fn lanes() -> Option<Box<dyn Backend>> {
    let lanes = blindfold_bte::lanes(2);
    if lanes.is_none() {
        no_lanes();
    }
    lanes
}

/// A line in the file that `BLINDFOLD_NOT_RUN` names, if it names one: what a test that passes prints, nobody sees.
pub fn no_lanes() {
    let expected = std::env::var("BLINDFOLD_EXPECT_IFMA").is_ok_and(|value| value == "1");
    assert!(!expected, "this processor has no AVX-512 IFMA, and BLINDFOLD_EXPECT_IFMA=1 says it has");
    let line = "backend \"ifma\": this processor has no AVX-512 IFMA";
    println!("NOT RUN: {line}");
    if let Some(path) = std::env::var_os("BLINDFOLD_NOT_RUN") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        writeln!(file.expect("BLINDFOLD_NOT_RUN names a file"), "{line}").expect("it can be written");
    }
}
