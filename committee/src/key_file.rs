//! The encrypted file in which a member keeps its two secrets: the shares of the decryption key and the
//! BLS key it acknowledges with.
//!
//! Integers are big-endian. Everything up to the nonce is public and authenticated as associated data.
//!
//! | bytes | content |
//! |---|---|
//! | 20 | `BLINDFOLD-V1-KEYFILE` |
//! | 1 | version, `1` |
//! | 2 | member index, 1..n |
//! | 32 | hash of the scheme parameters that the shares belong to |
//! | 96 | BLS public key (G2, compressed) |
//! | 48 | proof of possession of the BLS key (G1, compressed) |
//! | 4 · 4 · 4 | Argon2id cost: memory in KiB, iterations, lanes |
//! | 16 | Argon2id salt |
//! | 24 | XChaCha20-Poly1305 nonce |
//! | 4 + length | length, then the sealed secrets: `u32 length · MemberKey · BLS secret 32`, and the 16-byte tag |
//! | 32 | SHA-256 of all bytes before it |
//!
//! The checksum has no security role: it tells a damaged file from a wrong password, which an authenticated
//! cipher alone cannot. The public part names no deployment, so that it can be handed in for registration
//! before the contracts exist.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use argon2::{Algorithm, Argon2, Params, Version};
use blindfold_bte::{MemberKey, MemberKeyError, Parameters, bls};
use blindfold_protocol::B256;
use blindfold_runtime::rng;
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305,
    aead::{AeadInOut, Nonce},
};
use rand::CryptoRng;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

#[cfg(test)]
mod tests;

/// First bytes of every key file.
const MAGIC: &[u8; 20] = b"BLINDFOLD-V1-KEYFILE";
/// The one version written and read.
const VERSION: u8 = 1;
const SALT_BYTES: usize = 16;
const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 32;
const BLS_SECRET_BYTES: usize = 32;
/// Length of everything before the sealed secrets' length.
const PUBLIC_BYTES: usize = 20 + 1 + 2 + 32 + 96 + 48 + 12 + SALT_BYTES + NONCE_BYTES;
/// A key file holds 32 bytes for each ciphertext of a sub-batch; this leaves room for half a million.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
const MIN_MEMORY_KIB: u32 = 8;
/// A hostile file must not make the opener allocate without bound.
const MAX_MEMORY_KIB: u32 = 1024 * 1024;
const MAX_ITERATIONS: u32 = 16;
const MAX_LANES: u32 = 16;

/// What it costs to try one password (Argon2id, RFC 9106).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFileCost {
    /// Memory in KiB, 8 per lane at least, 1 GiB at most.
    pub memory_kib: u32,
    /// Passes over the memory, 1..=16.
    pub iterations: u32,
    /// Lanes of Argon2, 1..=16.
    pub lanes: u32,
}

impl Default for KeyFileCost {
    /// The second recommended option of RFC 9106 §4 with one lane: 64 MiB, 3 passes.
    fn default() -> Self {
        Self { memory_kib: 64 * 1024, iterations: 3, lanes: 1 }
    }
}

impl KeyFileCost {
    fn check(&self) -> Result<(), KeyFileError> {
        let fits = (1..=MAX_LANES).contains(&self.lanes)
            && (1..=MAX_ITERATIONS).contains(&self.iterations)
            && (MIN_MEMORY_KIB * self.lanes..=MAX_MEMORY_KIB).contains(&self.memory_kib);
        if fits { Ok(()) } else { Err(KeyFileError::CostOutOfBounds { cost: *self }) }
    }
}

/// The part of a key file that anyone may read: what L1 registers for the member.
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

/// What an opened key file holds.
pub struct OpenedKey {
    /// The clear part, checked against the secrets.
    pub public: KeyFilePublic,
    /// Shares of the decryption key.
    pub member_key: MemberKey,
    /// The BLS key that signs acknowledgements.
    pub bls_key: bls::SecretKey,
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
        /// Path of the key file.
        path: PathBuf,
        /// What the operating system said.
        cause: io::Error,
    },
    /// A key file is never overwritten.
    #[error("key file {path} exists already; it is never overwritten")]
    Exists {
        /// Path of the key file.
        path: PathBuf,
    },
    /// Longer than any key file.
    #[error("the file is longer than {MAX_FILE_BYTES} bytes")]
    TooLarge,
    /// The first bytes are something else's.
    #[error("this is not a key file")]
    NotAKeyFile,
    /// Written by another version of this program.
    #[error("key file version {found} is not supported (supported: {VERSION})")]
    UnsupportedVersion {
        /// The version byte of the file.
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
    /// The shares belong to other scheme parameters.
    #[error("the key file belongs to parameters {found}, not {expected}")]
    OtherParameters {
        /// Hash of the parameters in use.
        expected: B256,
        /// Hash of the parameters that the file names.
        found: B256,
    },
    /// The shares are not those that the parameters have verification keys for: every release would be refused.
    #[error("the shares do not fit the parameters: {0}; restore the key file that the dealing made")]
    Shares(MemberKeyError),
    /// The secrets opened but are not those that the clear part describes.
    #[error("the secrets do not match the clear part: {0}")]
    Contents(&'static str),
    /// There is not enough memory for the password cost.
    #[error("not enough memory to derive the key from the password")]
    OutOfMemory,
}

/// Writes a new key file, readable by its owner only, all or nothing and durable when this returns.
/// Refuses to overwrite. Takes as long as one password trial (`cost`).
///
/// # Errors
/// [`KeyFileError::EmptyPassword`], [`KeyFileError::CostOutOfBounds`], [`KeyFileError::Exists`],
/// [`KeyFileError::OutOfMemory`], [`KeyFileError::Io`].
pub fn create(
    path: &Path,
    password: &[u8],
    member_key: &MemberKey,
    bls_key: &bls::SecretKey,
    parameters_hash: B256,
    cost: KeyFileCost,
    rng: &mut impl CryptoRng,
) -> Result<KeyFilePublic, KeyFileError> {
    if password.is_empty() {
        return Err(KeyFileError::EmptyPassword);
    }
    cost.check()?;
    let public = KeyFilePublic {
        member: member_key.index(),
        parameters_hash,
        bls_public_key: bls_key.public_key().to_bytes(),
        proof_of_possession: bls_key.prove_possession().to_bytes(),
    };
    let mut salt = [0; SALT_BYTES];
    let mut nonce = [0; NONCE_BYTES];
    rng.fill_bytes(&mut salt);
    rng.fill_bytes(&mut nonce);
    let bytes = seal(&public, member_key, bls_key, password, cost, &salt, &nonce)?;
    write_new(path, &bytes)?;
    Ok(public)
}

/// Reads the clear part. Its checksum is verified, its proof of possession is not (whoever registers it does).
///
/// # Errors
/// As [`open`], except those about the password and the secrets.
pub fn read_public(path: &Path) -> Result<KeyFilePublic, KeyFileError> {
    Ok(Container::parse(&read_bounded(path)?)?.public)
}

/// Opens a key file with its password, for these scheme parameters: the shares are checked against the member's
/// verification keys, all at once with random weights.
///
/// # Errors
/// Distinct variants for a file that is not one, of another version, damaged, of other parameters, and for a
/// wrong password; [`KeyFileError::Contents`] if the secrets contradict the clear part, [`KeyFileError::Shares`] if
/// they contradict the parameters.
pub fn open(path: &Path, password: &[u8], parameters: &Parameters) -> Result<OpenedKey, KeyFileError> {
    open_bytes(&read_bounded(path)?, password, parameters)
}

/// Opens a key file for its BLS key alone, for what needs no shares: putting a stake behind the key. The shares are
/// not checked, so no parameters are needed.
///
/// # Errors
/// As [`open`], except those about parameters and shares.
pub fn open_bls_key(path: &Path, password: &[u8]) -> Result<bls::SecretKey, KeyFileError> {
    unseal(Container::parse(&read_bounded(path)?)?, password).map(|opened| opened.bls_key)
}

fn open_bytes(bytes: &[u8], password: &[u8], parameters: &Parameters) -> Result<OpenedKey, KeyFileError> {
    let container = Container::parse(bytes)?;
    let parameters_hash = B256::from(parameters.hash());
    if container.public.parameters_hash != parameters_hash {
        let found = container.public.parameters_hash;
        return Err(KeyFileError::OtherParameters { expected: parameters_hash, found });
    }
    let opened = unseal(container, password)?;
    opened.member_key.check(parameters, &mut rng()).map_err(KeyFileError::Shares)?;
    Ok(opened)
}

/// Decrypts the secrets and compares them with the clear part.
fn unseal(container: Container<'_>, password: &[u8]) -> Result<OpenedKey, KeyFileError> {
    if password.is_empty() {
        return Err(KeyFileError::EmptyPassword);
    }
    let cipher = cipher(password, &container.salt, container.cost)?;
    let mut secrets = Zeroizing::new(container.sealed.to_vec());
    cipher
        .decrypt_in_place(&nonce_of(&container.nonce), container.associated, &mut *secrets)
        .map_err(|_| KeyFileError::WrongPassword)?;
    let (member_key, bls_key) = decode_secrets(&secrets)?;
    let public = container.public;
    if member_key.index() != public.member {
        return Err(KeyFileError::Contents("another member index"));
    }
    if bls_key.public_key().to_bytes() != public.bls_public_key {
        return Err(KeyFileError::Contents("another BLS key"));
    }
    Ok(OpenedKey { public, member_key, bls_key })
}

fn decode_secrets(secrets: &[u8]) -> Result<(MemberKey, bls::SecretKey), KeyFileError> {
    const SHORT: KeyFileError = KeyFileError::Contents("too short");
    let (length, rest) = secrets.split_first_chunk::<4>().ok_or(SHORT)?;
    let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| SHORT)?;
    let (share_bytes, rest) = rest.split_at_checked(length).ok_or(SHORT)?;
    let bls_bytes: &[u8; BLS_SECRET_BYTES] =
        rest.try_into().map_err(|_| KeyFileError::Contents("wrong length"))?;
    let member_key =
        MemberKey::decode(share_bytes).map_err(|_| KeyFileError::Contents("the shares do not decode"))?;
    let bls_key = bls::SecretKey::from_bytes(bls_bytes)
        .map_err(|_| KeyFileError::Contents("the BLS key does not decode"))?;
    Ok((member_key, bls_key))
}

struct Container<'a> {
    public: KeyFilePublic,
    cost: KeyFileCost,
    salt: [u8; SALT_BYTES],
    nonce: [u8; NONCE_BYTES],
    associated: &'a [u8],
    sealed: &'a [u8],
}

impl<'a> Container<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, KeyFileError> {
        let rest = bytes.strip_prefix(MAGIC.as_slice()).ok_or(KeyFileError::NotAKeyFile)?;
        let version = *rest.first().ok_or(KeyFileError::Damaged)?;
        if version != VERSION {
            return Err(KeyFileError::UnsupportedVersion { found: version });
        }
        let (body, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(KeyFileError::Damaged)?;
        if Sha256::digest(body).as_slice() != checksum {
            return Err(KeyFileError::Damaged);
        }
        let associated = body.get(..PUBLIC_BYTES).ok_or(KeyFileError::Damaged)?;
        let mut reader = Reader(body.get(MAGIC.len() + 1..).ok_or(KeyFileError::Damaged)?);
        let public = KeyFilePublic {
            member: u16::from_be_bytes(reader.array()?),
            parameters_hash: B256::from(reader.array::<32>()?),
            bls_public_key: reader.array()?,
            proof_of_possession: reader.array()?,
        };
        let cost = KeyFileCost {
            memory_kib: u32::from_be_bytes(reader.array()?),
            iterations: u32::from_be_bytes(reader.array()?),
            lanes: u32::from_be_bytes(reader.array()?),
        };
        cost.check()?;
        let salt = reader.array()?;
        let nonce = reader.array()?;
        let length = u32::from_be_bytes(reader.array()?);
        let sealed = reader.0;
        if u32::try_from(sealed.len()) != Ok(length) || sealed.len() < TAG_BYTES {
            return Err(KeyFileError::Damaged);
        }
        Ok(Self { public, cost, salt, nonce, associated, sealed })
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], KeyFileError> {
        let (head, tail) = self.0.split_first_chunk::<N>().ok_or(KeyFileError::Damaged)?;
        self.0 = tail;
        Ok(*head)
    }
}

fn seal(
    public: &KeyFilePublic,
    member_key: &MemberKey,
    bls_key: &bls::SecretKey,
    password: &[u8],
    cost: KeyFileCost,
    salt: &[u8; SALT_BYTES],
    nonce: &[u8; NONCE_BYTES],
) -> Result<Vec<u8>, KeyFileError> {
    let shares = member_key.encode();
    let share_length = u32::try_from(shares.len()).map_err(|_| KeyFileError::TooLarge)?;
    // The tag is appended in place: with its room reserved, the secrets are never moved and left behind.
    let mut secrets = Zeroizing::new(Vec::with_capacity(4 + shares.len() + BLS_SECRET_BYTES + TAG_BYTES));
    secrets.extend_from_slice(&share_length.to_be_bytes());
    secrets.extend_from_slice(&shares);
    secrets.extend_from_slice(bls_key.to_bytes().as_slice());

    let mut file = Vec::with_capacity(PUBLIC_BYTES + 4 + secrets.capacity() + CHECKSUM_BYTES);
    file.extend_from_slice(MAGIC);
    file.push(VERSION);
    file.extend_from_slice(&public.member.to_be_bytes());
    file.extend_from_slice(public.parameters_hash.as_slice());
    file.extend_from_slice(&public.bls_public_key);
    file.extend_from_slice(&public.proof_of_possession);
    file.extend_from_slice(&cost.memory_kib.to_be_bytes());
    file.extend_from_slice(&cost.iterations.to_be_bytes());
    file.extend_from_slice(&cost.lanes.to_be_bytes());
    file.extend_from_slice(salt);
    file.extend_from_slice(nonce);
    debug_assert_eq!(file.len(), PUBLIC_BYTES);

    cipher(password, salt, cost)?
        .encrypt_in_place(&nonce_of(nonce), &file, &mut *secrets)
        .map_err(|_| KeyFileError::TooLarge)?;
    let sealed_length = u32::try_from(secrets.len()).map_err(|_| KeyFileError::TooLarge)?;
    file.extend_from_slice(&sealed_length.to_be_bytes());
    file.extend_from_slice(&secrets);
    let checksum = Sha256::digest(&file);
    file.extend_from_slice(&checksum);
    if file.len() as u64 > MAX_FILE_BYTES {
        return Err(KeyFileError::TooLarge);
    }
    Ok(file)
}

fn cipher(
    password: &[u8],
    salt: &[u8; SALT_BYTES],
    cost: KeyFileCost,
) -> Result<XChaCha20Poly1305, KeyFileError> {
    let out_of_bounds = |_| KeyFileError::CostOutOfBounds { cost };
    let params =
        Params::new(cost.memory_kib, cost.iterations, cost.lanes, Some(32)).map_err(out_of_bounds)?;
    let mut key = Zeroizing::new([0u8; 32]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(password, salt, key.as_mut_slice())
        .map_err(|error| match error {
            argon2::Error::OutOfMemory => KeyFileError::OutOfMemory,
            _ => KeyFileError::CostOutOfBounds { cost },
        })?;
    Ok(XChaCha20Poly1305::new((&*key).into()))
}

fn nonce_of(nonce: &[u8; NONCE_BYTES]) -> Nonce<XChaCha20Poly1305> {
    (*nonce).into()
}

fn read_bounded(path: &Path) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
    let fail = |cause| KeyFileError::Io { path: path.to_owned(), cause };
    let mut bytes = Zeroizing::new(Vec::new());
    let file = File::open(path).map_err(fail)?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(KeyFileError::TooLarge);
    }
    Ok(bytes)
}

/// Writes beside the target, syncs, then links the finished file to its name: linking fails where a rename
/// would silently replace an existing key.
fn write_new(path: &Path, bytes: &[u8]) -> Result<(), KeyFileError> {
    let fail = |cause: io::Error| match cause.kind() {
        io::ErrorKind::AlreadyExists => KeyFileError::Exists { path: path.to_owned() },
        _ => KeyFileError::Io { path: path.to_owned(), cause },
    };
    let mut name = path.file_name().ok_or_else(|| fail(io::ErrorKind::InvalidInput.into()))?.to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let temporary = path.with_file_name(name);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::hard_link(&temporary, path)
    });
    let removed = match &written {
        // Somebody else's unfinished file: not ours to remove.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !path.exists() => Ok(()),
        _ => std::fs::remove_file(&temporary),
    };
    written.and(removed).map_err(fail)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(fail)
}
