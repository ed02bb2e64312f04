//! `blindfold dealer`: parameters and members' key files from one process. **Development only**: the dealer knows the
//! master secret for a moment, and everybody has to believe that it forgets it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use blindfold_bte::{bls, dealer};
use blindfold_committee::key_file::{self, KeyFileCost, KeyFilePublic};
use blindfold_protocol::B256;
use rand::Rng;
use zeroize::Zeroizing;

/// What is to be dealt.
pub struct Deal<'a> {
    /// Ciphertexts in one sub-batch at most.
    pub max_batch: u32,
    /// Committee members.
    pub members: u16,
    /// Members that must act together.
    pub threshold: u16,
    /// Where the files go.
    pub out: &'a Path,
    /// Password of every key file; members change it by dealing with their own files.
    pub password: &'a str,
    /// What it costs to try one password.
    pub cost: KeyFileCost,
}

/// What was written.
pub struct Dealt {
    /// The parameter file.
    pub parameters: PathBuf,
    /// Its bytes' hash, as L1 registers it.
    pub parameters_hash: B256,
    /// The committee's encryption key, 576 bytes.
    pub encryption_key: Vec<u8>,
    /// Each member's key file and its public part, in order.
    pub members: Vec<(PathBuf, KeyFilePublic)>,
}

/// Deals and writes `parameters.bin` and `member-<j>.key`; never over existing files.
///
/// Cost: about 0.25 ms for each of the (2 + n)·B points, and one password trial per member.
///
/// # Errors
/// A shape that no scheme has, or files that cannot be written.
pub fn deal(what: &Deal<'_>) -> Result<Dealt> {
    fs::create_dir_all(what.out).with_context(|| format!("{}", what.out.display()))?;
    let mut rng = rand::rng();
    let (parameters, keys) = dealer::deal(what.max_batch, what.members, what.threshold, &mut rng)?;
    let parameters_hash = B256::from(parameters.hash());
    let path = what.out.join("parameters.bin");
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .with_context(|| format!("{}: parameters are never overwritten", path.display()))?;
    std::io::Write::write_all(&mut file, &parameters.encode())?;
    file.sync_all()?;
    let mut members = Vec::with_capacity(keys.len());
    for key in &keys {
        let mut key_material = Zeroizing::new([0u8; 32]);
        rng.fill_bytes(key_material.as_mut_slice());
        let bls_key = bls::SecretKey::generate(key_material.as_slice())?;
        let path = what.out.join(format!("member-{}.key", key.index()));
        let password = what.password.as_bytes();
        let public = key_file::create(&path, password, key, &bls_key, parameters_hash, what.cost, &mut rng)?;
        members.push((path, public));
    }
    let encryption_key = parameters.encryption_key().to_bytes().to_vec();
    Ok(Dealt { parameters: path, parameters_hash, encryption_key, members })
}
