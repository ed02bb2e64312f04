//! `blindfold dealer`: parameters and members' key files from one process. **Development only**: the dealer knows the
//! master secret for a moment, and everybody has to believe that it forgets it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use blindfold_bte::{Parameters, bls, dealer};
use blindfold_committee::key_file::{self, KeyFileCost, KeyFileError, KeyFilePublic};
use blindfold_protocol::{B256, limits::MAX_MEMBERS};
use blindfold_runtime::rng;
use rand::Rng;
use zeroize::Zeroizing;

use crate::new_file::NewFile;

/// What is to be dealt.
#[derive(Clone, Copy)]
pub struct Deal<'a> {
    /// Ciphertexts in one sub-batch at most.
    pub max_batch: u32,
    /// n, how many members the committee has.
    pub members: u16,
    /// Members that must act together.
    pub threshold: u16,
    /// The folder that the files go into.
    pub out: &'a Path,
    /// Password of every key file; members change it by dealing with their own files.
    pub password: &'a str,
    /// What it costs to try one password.
    pub cost: KeyFileCost,
}

impl Deal<'_> {
    /// What the key files or L1 would refuse, said before minutes are spent on it.
    fn check(&self) -> Result<()> {
        let Self { members, threshold, .. } = *self;
        ensure!(!self.password.is_empty(), "the password is empty: key files under it protect nothing");
        ensure!(
            (1..=MAX_MEMBERS).contains(&usize::from(members)),
            "{members} members: L1 registers 1 to {MAX_MEMBERS}"
        );
        ensure!(
            threshold <= members && 2 * u32::from(threshold) > u32::from(members),
            "a threshold of {threshold} among {members} members: L1 registers more than half of the members, and all at most"
        );
        Ok(())
    }

    /// Refuses a folder with files of a dealing, and says where one was cut off: minutes may pass until the last file.
    fn check_place(&self) -> Result<()> {
        let parameters = parameters_in(self.out);
        let keys: Vec<PathBuf> = (1..=MAX_MEMBERS).map(|member| key_in(self.out, member)).collect();
        let files = keys.iter().flat_map(|key| [key.clone(), key_file::public_path(key)]);
        let Some(first) = files.chain([parameters.clone()]).find(|path| path.exists()) else {
            return Ok(());
        };
        let written = keys.iter().filter(|key| key.exists()).count();
        let exists = format!("{} exists already; a key is never overwritten", first.display());
        let dealt = fs::read(&parameters).ok().and_then(|bytes| Parameters::decode(&bytes).ok());
        match dealt.map(|dealt| usize::from(dealt.members())) {
            Some(members) if members == written => {
                // Handed over, or cut off before the last one: no reason to deal again.
                let lost = keys.iter().find(|key| {
                    matches!(key_file::read_public(key), Err(KeyFileError::PublicMissing { .. }))
                });
                let lost = lost.map_or(String::new(), |key| {
                    format!(
                        ". A public file is missing: `blindfold committee key public {}` makes it",
                        key.display()
                    )
                });
                bail!("{exists}: name another folder with --out{lost}")
            }
            members => bail!(
                "{exists}. The dealing in {} is incomplete: {}, with {} key files. If it was interrupted, remove parameters.bin, \
                 every member-*.key and every member-*.key.json there, which nobody can use, and deal again; if its key \
                 files were handed out, name another folder with --out",
                self.out.display(),
                members
                    .map_or("no whole parameters.bin".to_owned(), |n| format!("parameters of {n} members")),
                written
            ),
        }
    }
}

fn parameters_in(folder: &Path) -> PathBuf {
    folder.join("parameters.bin")
}

fn key_in(folder: &Path, member: usize) -> PathBuf {
    folder.join(format!("member-{member}.key"))
}

/// The files that were written.
pub struct Dealt {
    /// Path of the parameter file.
    pub parameters: PathBuf,
    /// Its bytes' hash, as L1 registers it.
    pub parameters_hash: B256,
    /// The committee's encryption key, 576 bytes.
    pub encryption_key: Vec<u8>,
    /// Each member's key file and its public part, in order.
    pub members: Vec<(PathBuf, KeyFilePublic)>,
}

/// Deals and writes `parameters.bin`, `member-<j>.key` and `member-<j>.key.json`; never over existing files.
///
/// Cost: about 0.25 ms for each of the (2 + n)·B points, and one password trial per member.
///
/// # Errors
/// An empty password, a committee that L1 refuses or no scheme has, or files that cannot be written.
pub fn deal(what: &Deal<'_>) -> Result<Dealt> {
    what.check()?;
    what.check_place()?;
    let path = parameters_in(what.out);
    fs::create_dir_all(what.out).with_context(|| format!("{}", what.out.display()))?;
    let file = NewFile::create(&path)?;
    let mut rng = rng();
    let (parameters, keys) = dealer::deal(what.max_batch, what.members, what.threshold, &mut rng)?;
    let parameters_hash = B256::from(parameters.hash());
    file.write(&parameters.encode())?;
    let mut members = Vec::with_capacity(keys.len());
    for key in &keys {
        let mut key_material = Zeroizing::new([0u8; 32]);
        rng.fill_bytes(key_material.as_mut_slice());
        let bls_key = bls::SecretKey::generate(key_material.as_slice())?;
        let path = key_in(what.out, key.index().into());
        let password = what.password.as_bytes();
        let public = key_file::create(&path, password, key, &bls_key, parameters_hash, what.cost, &mut rng)?;
        members.push((path, public));
    }
    let encryption_key = parameters.encryption_key().to_bytes().to_vec();
    Ok(Dealt { parameters: path, parameters_hash, encryption_key, members })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_dealing_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("keys");
        let cost = KeyFileCost { memory_kib: 8, iterations: 1, lanes: 1 };
        let what = Deal { max_batch: 2, members: 4, threshold: 3, out: &out, password: "p", cost };
        for (refused, says) in [
            (Deal { password: "", ..what }, "password"),
            (Deal { members: 65, threshold: 33, ..what }, "members"),
            (Deal { members: 0, threshold: 0, ..what }, "members"),
            (Deal { threshold: 2, ..what }, "more than half"),
            (Deal { threshold: 5, ..what }, "threshold"),
            (Deal { max_batch: 0, ..what }, "batch"),
        ] {
            let error = deal(&refused).err().map(|error| format!("{error:#}")).unwrap_or_default();
            assert!(error.contains(says), "{error:?} says {says}");
            assert!(!out.join("parameters.bin").exists(), "{says}");
        }
        assert_eq!(deal(&what).unwrap().members.len(), 4);
        let refused = || deal(&what).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused().contains("member-1.key exists already"), "{}", refused());
        assert!(!refused().contains("incomplete"), "{}", refused());
        // As a process leaves it that ends in the middle: between a key and its public file, while it writes the keys, and
        // while it deals.
        fs::remove_file(out.join("member-4.key.json")).unwrap();
        assert!(refused().contains("member-4.key` makes it"), "{}", refused());
        assert!(!refused().contains("incomplete") && !refused().contains("remove"), "{}", refused());
        fs::remove_file(out.join("member-4.key")).unwrap();
        for says in ["parameters of 4 members, with 3 key files", "no whole parameters.bin, with 0 key files"]
        {
            assert!(refused().contains(says) && refused().contains("remove"), "{}", refused());
            for member in 1..4 {
                let _ = fs::remove_file(out.join(format!("member-{member}.key")));
                let _ = fs::remove_file(out.join(format!("member-{member}.key.json")));
            }
            fs::write(out.join("parameters.bin"), "").unwrap();
        }
        assert!(!out.join("member-1.key").exists());
    }
}
