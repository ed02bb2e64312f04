//! The two files in which a member keeps its keys. It has one for each epoch that it serves in: the shares of the
//! decryption key, and the BLS key that it acknowledges with.
//!
//! - The key file (`member-2.key`) holds the secrets, sealed under one password (`sealed`).
//! - The public file beside it (`member-2.key.json`) says what L1 registers of each key, for anybody to read (`public`).
//!   It names no deployment, so that it can be handed in before the contracts exist.
//!
//! Whoever has key file and password can make the public file, not the other way round. So the key file is written first,
//! and both as a whole: whatever is killed between the two loses nothing, the next reader says that the public file is
//! missing or too old ([`KeyFileError::PublicMissing`], [`KeyFileError::PublicDiffers`]), and [`write_public`] mends it.
//!
//! Files of version 1 held one key, and its public part inside. They still open; [`add`] gives them the present form.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use blindfold_bte::{MemberKey, MemberKeyError, Parameters, bls};
use blindfold_protocol::B256;
use blindfold_runtime::rng;
use rand::CryptoRng;
use zeroize::Zeroizing;

mod files;
mod public;
mod sealed;
#[cfg(test)]
mod tests;

pub use public::path_of as public_path;
pub use sealed::KeyFileCost;

use files::{EVERYBODY, Held, OWNER, read_bounded, replace_public, write_new};
use sealed::{Container, Secrets};

/// Keys in one file: epochs of a year, if each lasts a week.
pub const MAX_KEYS: usize = 64;
/// A key holds 32 bytes for each ciphertext of a sub-batch; this leaves room for half a million in all.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// What anyone may know of a key: what L1 registers for the member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFilePublic {
    /// Index of the member, 1..n.
    pub member: u16,
    /// Hash of the scheme parameters that the shares belong to.
    pub parameters_hash: B256,
    /// BLS public key, 96 bytes compressed.
    pub bls_public_key: [u8; 96],
    /// Proof of possession of the BLS key, 48 bytes compressed.
    pub proof_of_possession: [u8; 48],
}

impl KeyFilePublic {
    fn of(secrets: &Secrets<'_>) -> Self {
        Self {
            member: secrets.member_key.index(),
            parameters_hash: secrets.parameters_hash,
            bls_public_key: secrets.bls_key.public_key().to_bytes(),
            proof_of_possession: secrets.bls_key.prove_possession().to_bytes(),
        }
    }
}

/// One key of an opened file.
pub struct OpenedKey {
    /// What is public of it, checked against the secrets.
    pub public: KeyFilePublic,
    /// Shares of the decryption key.
    pub member_key: MemberKey,
    /// The BLS key that signs acknowledgements. Boxed: a list of keys that moves its entries would leave copies behind.
    pub bls_key: Box<bls::SecretKey>,
}

impl OpenedKey {
    fn secrets(&self) -> Secrets<'_> {
        let Self { public, member_key, bls_key } = self;
        Secrets { parameters_hash: public.parameters_hash, member_key, bls_key }
    }
}

impl fmt::Debug for OpenedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedKey").field("public", &self.public).finish_non_exhaustive()
    }
}

/// Why a key file could not be written or opened.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The operating system did not give or take the file.
    #[error("key file {path}: {cause}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// What the operating system said.
        cause: io::Error,
    },
    /// A key is never overwritten.
    #[error("{path} exists already; a key is never overwritten")]
    Exists {
        /// Path of the file.
        path: PathBuf,
    },
    /// The key file is a link of somebody who owns neither it nor the system.
    #[error("{path} is a link of somebody else's, or one of too many in a row: name the key file itself")]
    ForeignLink {
        /// Path of the link.
        path: PathBuf,
    },
    /// Only the public file is there.
    #[error("the key file {path} is missing, only its public file is there: restore it from its backup")]
    SecretsMissing {
        /// Path of the key file.
        path: PathBuf,
    },
    /// Only the key file is there.
    #[error("the public file {path} is missing: `blindfold committee key public` makes it from the key file")]
    PublicMissing {
        /// Path of the public file.
        path: PathBuf,
    },
    /// The public file is not the JSON of one.
    #[error(
        "the public file {path} is damaged: {reason}; `blindfold committee key public` makes it from the key file"
    )]
    PublicDamaged {
        /// Path of the public file.
        path: PathBuf,
        /// What does not fit the form.
        reason: String,
    },
    /// The public file is of other keys: of another member, or from before one was added.
    #[error(
        "the public file {path} does not fit the secrets; `blindfold committee key public` makes it from the key file"
    )]
    PublicDiffers {
        /// Path of the public file.
        path: PathBuf,
    },
    /// Longer than any such file.
    #[error("the file is longer than {limit_bytes} bytes")]
    TooLarge {
        /// The most that such a file has, in bytes.
        limit_bytes: u64,
    },
    /// The first bytes are something else's.
    #[error("this is not a key file")]
    NotAKeyFile,
    /// Written by another version of this program.
    #[error("key file version {found} is not supported (supported: 1 and {})", sealed::VERSION)]
    UnsupportedVersion {
        /// The version that the file states.
        found: u8,
    },
    /// Bytes are missing, added or changed.
    #[error("the key file is damaged: restore it from its backup")]
    Damaged,
    /// The cost stands outside the accepted bounds.
    #[error("the password cost {cost:?} is outside the accepted bounds")]
    CostOutOfBounds {
        /// The cost asked for or read.
        cost: KeyFileCost,
    },
    /// An empty password protects nothing.
    #[error("the password is empty")]
    EmptyPassword,
    /// The secrets did not open.
    #[error("wrong password")]
    WrongPassword,
    /// No key of the file is of these scheme parameters.
    #[error("the key file has no key of parameters {expected}, only of {}", list(found))]
    OtherParameters {
        /// Hash of the parameters in use.
        expected: B256,
        /// Hashes of the parameters that the file has keys of.
        found: Vec<B256>,
    },
    /// No key of these scheme parameters is public: there is none, or the public file is from before it was added.
    #[error(
        "the public file has no key of parameters {expected}, only of {}; if one was added, \
         `blindfold committee key public FILE` brings it up to date",
        list(found)
    )]
    PublicOtherParameters {
        /// Hash of the parameters in use.
        expected: B256,
        /// Hashes of the parameters that the public file has keys of.
        found: Vec<B256>,
    },
    /// One key is wanted, the file has several, and nothing says which.
    #[error("the key file has several keys, of parameters {}: say which one is meant", list(found))]
    SeveralKeys {
        /// Hashes of the parameters that the file has keys of.
        found: Vec<B256>,
    },
    /// Two keys of the same parameters: which one L1 registered cannot be told.
    #[error("there are two different keys of parameters {parameters_hash}")]
    Duplicate {
        /// Hash of these parameters.
        parameters_hash: B256,
    },
    /// A key of somebody else.
    #[error("the key to be added is of member {found}, the key file of member {expected}")]
    OtherMember {
        /// The member of the key file.
        expected: u16,
        /// The member of the key.
        found: u16,
    },
    /// No room for another key.
    #[error("a key file holds at most {MAX_KEYS} keys, this one would have {count}")]
    TooManyKeys {
        /// How many keys there would be.
        count: usize,
    },
    /// The shares are not those that the parameters have verification keys for: every release would be refused.
    #[error("the shares do not fit the parameters: {0}; restore the key file that the dealing made")]
    Shares(MemberKeyError),
    /// The secrets opened but are no keys, or not those of the clear part that files of version 1 have.
    #[error("the sealed keys are not what the key file says: {0}")]
    Contents(&'static str),
    /// There is not enough memory for the password cost.
    #[error("not enough memory to derive the key from the password")]
    OutOfMemory,
}

fn list(hashes: &[B256]) -> String {
    hashes.iter().map(B256::to_string).collect::<Vec<_>>().join(", ")
}

/// Writes a new key file with one key, readable by its owner only, and its public file. Each is written as a whole and
/// durable when this returns; neither is written over another. Takes as long as one password trial (`cost`).
///
/// # Errors
/// [`KeyFileError::EmptyPassword`], [`KeyFileError::CostOutOfBounds`], [`KeyFileError::Exists`],
/// [`KeyFileError::OutOfMemory`], [`KeyFileError::TooLarge`], [`KeyFileError::Io`].
pub fn create(
    path: &Path,
    password: &[u8],
    member_key: &MemberKey,
    bls_key: &bls::SecretKey,
    parameters_hash: B256,
    cost: KeyFileCost,
    rng: &mut impl CryptoRng,
) -> Result<KeyFilePublic, KeyFileError> {
    // A public file without secrets is what is left of a lost key: not ours to replace.
    if let Some(path) = [path.to_owned(), public_path(path)].into_iter().find(|path| path.exists()) {
        return Err(KeyFileError::Exists { path });
    }
    let secrets = Secrets { parameters_hash, member_key, bls_key };
    let public = KeyFilePublic::of(&secrets);
    write_new(path, &sealed::seal(&[secrets], password, cost, rng)?, OWNER)?;
    write_new(&public_path(path), &public::encode(std::slice::from_ref(&public)), EVERYBODY)?;
    Ok(public)
}

/// Adds the keys of another key file of the same member, which stays as it is, and gives `path` the present form if it
/// is of version 1. Password, cost, owner and readers stay those of `path`. May be repeated, after a kill too, and waits
/// for another run that changes the file. Returns what is public of all keys.
///
/// # Errors
/// As [`open`] for either file, without what concerns public files and parameters; [`KeyFileError::OtherMember`],
/// [`KeyFileError::Duplicate`], [`KeyFileError::TooManyKeys`], [`KeyFileError::ForeignLink`]. Nothing is changed then.
pub fn add(
    path: &Path,
    password: &[u8],
    from: &Path,
    from_password: &[u8],
    rng: &mut impl CryptoRng,
) -> Result<Vec<KeyFilePublic>, KeyFileError> {
    let mut held = hold(path)?;
    let bytes = held.read()?;
    let container = Container::parse(&bytes)?;
    let (cost, mut changed) = (container.cost, container.clear.is_some());
    let mut keys = sealed::unseal(container, password)?;
    for key in sealed::unseal(Container::parse(&read_key_file(from)?)?, from_password)? {
        let own = keys.iter().find(|own| own.public.parameters_hash == key.public.parameters_hash);
        match (own, keys.first()) {
            // A run before this one came so far. Parameters and member decide which shares are right.
            (Some(own), _) if own.public == key.public => continue,
            (Some(_), _) => {
                return Err(KeyFileError::Duplicate { parameters_hash: key.public.parameters_hash });
            }
            (None, Some(first)) if first.public.member != key.public.member => {
                let (expected, found) = (first.public.member, key.public.member);
                return Err(KeyFileError::OtherMember { expected, found });
            }
            _ => keys.push(key),
        }
        changed = true;
    }
    let secrets: Vec<Secrets<'_>> = keys.iter().map(OpenedKey::secrets).collect();
    if changed {
        held.replace(&sealed::seal(&secrets, password, cost, rng)?)?;
    }
    write_public_of(path, keys)
}

/// Makes the public file anew from the secrets, in place of the one that may be there. Waits for another run that
/// changes the key file.
///
/// # Errors
/// As [`open`], without what concerns public files and parameters; [`KeyFileError::ForeignLink`].
pub fn write_public(path: &Path, password: &[u8]) -> Result<Vec<KeyFilePublic>, KeyFileError> {
    let held = hold(path)?;
    write_public_of(path, sealed::unseal(Container::parse(&held.read()?)?, password)?)
}

fn write_public_of(path: &Path, keys: Vec<OpenedKey>) -> Result<Vec<KeyFilePublic>, KeyFileError> {
    let public: Vec<KeyFilePublic> = keys.into_iter().map(|key| key.public).collect();
    let (beside, bytes) = (public_path(path), public::encode(&public));
    if read_bounded(&beside, public::MAX_BYTES).is_ok_and(|there| *there == bytes) {
        return Ok(public);
    }
    replace_public(&beside, &bytes)?;
    Ok(public)
}

/// The text of the public file of these keys, which are of one member.
pub fn public_json(keys: &[KeyFilePublic]) -> String {
    String::from_utf8_lossy(&public::encode(keys)).into_owned()
}

/// What is public of the keys, in the order in which they were added: at least one, all of one member. `path` is that of a
/// public file or of a key file, which is then not opened. Proofs of possession are not verified; whoever registers
/// them does that.
///
/// # Errors
/// As [`open`], except those about the password and the secrets.
pub fn read_public(path: &Path) -> Result<Vec<KeyFilePublic>, KeyFileError> {
    let bytes = read_key_file(path)?;
    if bytes.trim_ascii_start().starts_with(b"{") {
        return public::parse(path, &bytes);
    }
    match Container::parse(&bytes)?.clear {
        Some(public) => Ok(vec![public]),
        None => read_beside(path),
    }
}

/// The one of a file's keys that is of these parameters; without parameters the only one.
///
/// # Errors
/// [`KeyFileError::PublicOtherParameters`], [`KeyFileError::SeveralKeys`].
pub fn public_of(
    mut keys: Vec<KeyFilePublic>,
    parameters_hash: Option<B256>,
) -> Result<KeyFilePublic, KeyFileError> {
    let index = index_of(keys.iter(), parameters_hash).map_err(|error| match error {
        KeyFileError::OtherParameters { expected, found } => {
            KeyFileError::PublicOtherParameters { expected, found }
        }
        other => other,
    })?;
    Ok(keys.swap_remove(index))
}

/// Opens a key file with its password and takes the key of these scheme parameters: its shares are checked against the
/// member's verification keys, all at once with random weights.
///
/// # Errors
/// Distinct variants for a file that is not one, of another version, damaged, without one of the two files, with a public
/// file of something else, without a key of the parameters, and for a wrong password; [`KeyFileError::Contents`] if the
/// secrets contradict the clear part of version 1, [`KeyFileError::Shares`] if they contradict the parameters.
pub fn open(path: &Path, password: &[u8], parameters: &Parameters) -> Result<OpenedKey, KeyFileError> {
    let opened = open_one(path, password, Some(B256::from(parameters.hash())))?;
    opened.member_key.check(parameters, &mut rng()).map_err(KeyFileError::Shares)?;
    Ok(opened)
}

/// Opens a key file for a BLS key alone, for what needs no shares: putting a stake behind the key. The shares are not
/// checked, so no parameters are needed; their hash says which key is meant where there are several.
///
/// # Errors
/// As [`open`], except those about shares; [`KeyFileError::SeveralKeys`].
pub fn open_bls_key(
    path: &Path,
    password: &[u8],
    parameters_hash: Option<B256>,
) -> Result<bls::SecretKey, KeyFileError> {
    // Moved out, it would stay behind in the box; a copy leaves the box to be wiped.
    open_one(path, password, parameters_hash).map(|opened| bls::SecretKey::clone(&opened.bls_key))
}

fn open_one(path: &Path, password: &[u8], parameters_hash: Option<B256>) -> Result<OpenedKey, KeyFileError> {
    let mut keys = match open_pair(path, password) {
        // They are written one after the other, and somebody may be at it.
        Err(KeyFileError::PublicDiffers { .. } | KeyFileError::PublicMissing { .. }) => {
            let _held = hold(path)?;
            open_pair(path, password)?
        }
        opened => opened?,
    };
    let index = index_of(keys.iter().map(|key| &key.public), parameters_hash)?;
    Ok(keys.swap_remove(index))
}

/// The keys of a key file, which are those of the public file beside it.
fn open_pair(path: &Path, password: &[u8]) -> Result<Vec<OpenedKey>, KeyFileError> {
    let bytes = read_key_file(path)?;
    let container = Container::parse(&bytes)?;
    // Before the password is tried, which takes time.
    let public = if container.clear.is_none() { Some(read_beside(path)?) } else { None };
    let keys = sealed::unseal(container, password)?;
    if public.is_some_and(|public| !public.iter().eq(keys.iter().map(|key| &key.public))) {
        return Err(KeyFileError::PublicDiffers { path: public_path(path) });
    }
    Ok(keys)
}

fn index_of<'a>(
    keys: impl ExactSizeIterator<Item = &'a KeyFilePublic> + Clone,
    parameters_hash: Option<B256>,
) -> Result<usize, KeyFileError> {
    let found = || keys.clone().map(|key| key.parameters_hash).collect();
    match parameters_hash {
        Some(expected) => keys
            .clone()
            .position(|key| key.parameters_hash == expected)
            .ok_or_else(|| KeyFileError::OtherParameters { expected, found: found() }),
        None if keys.len() == 1 => Ok(0),
        None => Err(KeyFileError::SeveralKeys { found: found() }),
    }
}

fn read_key_file(path: &Path) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
    read_bounded(path, MAX_FILE_BYTES).map_err(missing_secrets)
}

/// The key file, for this run alone.
fn hold(path: &Path) -> Result<Held, KeyFileError> {
    Held::open(path).map_err(missing_secrets)
}

fn missing_secrets(error: KeyFileError) -> KeyFileError {
    match error {
        KeyFileError::Io { cause, path }
            if cause.kind() == io::ErrorKind::NotFound && public_path(&path).exists() =>
        {
            KeyFileError::SecretsMissing { path }
        }
        other => other,
    }
}

fn read_beside(path: &Path) -> Result<Vec<KeyFilePublic>, KeyFileError> {
    let path = public_path(path);
    match read_bounded(&path, public::MAX_BYTES) {
        Ok(bytes) => public::parse(&path, &bytes),
        Err(KeyFileError::Io { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {
            Err(KeyFileError::PublicMissing { path })
        }
        Err(other) => Err(other),
    }
}
