//! The key file: keys sealed under a password.
//!
//! Integers are big-endian. Everything up to the nonce is public and authenticated as associated data.
//!
//! | bytes | content |
//! |---|---|
//! | 20 | `BLINDFOLD-V1-KEYFILE` |
//! | 1 | version, `2` |
//! | 4 · 4 · 4 | Argon2id cost: memory in KiB, iterations, lanes |
//! | 16 | Argon2id salt |
//! | 24 | XChaCha20-Poly1305 nonce |
//! | 4 + length | length, then the sealed keys and the 16-byte tag |
//! | 32 | SHA-256 of all bytes before it |
//!
//! The checksum has no security role: it tells a damaged file from a wrong password, which an authenticated
//! cipher alone cannot. What is sealed:
//!
//! | bytes | content |
//! |---|---|
//! | 1 | how many keys follow, 1..=64, all of one member and each of other parameters |
//! | 32 | hash of the scheme parameters that the shares belong to |
//! | 4 + length | length, then the `MemberKey` |
//! | 32 | BLS secret |
//!
//! Version 1 had its clear part between version and cost: member index 2, parameters' hash 32, BLS public key 96, proof of
//! possession 48. It sealed one key, without count and hash.

use argon2::{Algorithm, Argon2, Params, Version};
use blindfold_bte::{MemberKey, bls};
use blindfold_protocol::B256;
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305,
    aead::{AeadInOut, Nonce},
};
use rand::CryptoRng;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::{KeyFileError, KeyFilePublic, MAX_FILE_BYTES, MAX_KEYS, OpenedKey};

/// First bytes of every key file.
pub(super) const MAGIC: &[u8; 20] = b"BLINDFOLD-V1-KEYFILE";
/// The version that is written.
pub(super) const VERSION: u8 = 2;
/// The version with a clear part, which is only read.
pub(super) const VERSION_WITH_CLEAR_PART: u8 = 1;
pub(super) const SALT_BYTES: usize = 16;
pub(super) const NONCE_BYTES: usize = 24;
pub(super) const CHECKSUM_BYTES: usize = 32;
const TAG_BYTES: usize = 16;
const HASH_BYTES: usize = 32;
const BLS_SECRET_BYTES: usize = 32;
/// Length of everything before the sealed keys' length.
pub(super) const HEAD_BYTES: usize = 20 + 1 + 12 + SALT_BYTES + NONCE_BYTES;
const MIN_MEMORY_KIB: u32 = 8;
/// A hostile file must not make the opener allocate without bound.
pub(super) const MAX_MEMORY_KIB: u32 = 1024 * 1024;
pub(super) const MAX_ITERATIONS: u32 = 16;
pub(super) const MAX_LANES: u32 = 16;

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
    pub(super) fn check(&self) -> Result<(), KeyFileError> {
        let fits = (1..=MAX_LANES).contains(&self.lanes)
            && (1..=MAX_ITERATIONS).contains(&self.iterations)
            && (MIN_MEMORY_KIB * self.lanes..=MAX_MEMORY_KIB).contains(&self.memory_kib);
        if fits { Ok(()) } else { Err(KeyFileError::CostOutOfBounds { cost: *self }) }
    }

    pub(super) fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        for (place, number) in bytes.chunks_mut(4).zip([self.memory_kib, self.iterations, self.lanes]) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }
}

/// One key, to be sealed.
pub(super) struct Secrets<'a> {
    pub parameters_hash: B256,
    pub member_key: &'a MemberKey,
    pub bls_key: &'a bls::SecretKey,
}

/// A file, taken apart and undamaged, but not opened.
pub(super) struct Container<'a> {
    /// In files of version 1.
    pub clear: Option<KeyFilePublic>,
    pub cost: KeyFileCost,
    salt: &'a [u8; SALT_BYTES],
    nonce: &'a [u8; NONCE_BYTES],
    associated: &'a [u8],
    sealed: &'a [u8],
}

impl<'a> Container<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, KeyFileError> {
        const DAMAGED: KeyFileError = KeyFileError::Damaged;
        let rest = bytes.strip_prefix(MAGIC.as_slice()).ok_or(KeyFileError::NotAKeyFile)?;
        let version = *rest.first().ok_or(DAMAGED)?;
        if version != VERSION && version != VERSION_WITH_CLEAR_PART {
            return Err(KeyFileError::UnsupportedVersion { found: version });
        }
        let (body, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(DAMAGED)?;
        if Sha256::digest(body).as_slice() != checksum {
            return Err(DAMAGED);
        }
        let mut reader = Reader(body.get(MAGIC.len() + 1..).ok_or(DAMAGED)?);
        let clear = match version {
            VERSION_WITH_CLEAR_PART => Some(reader.clear().ok_or(DAMAGED)?),
            _ => None,
        };
        let cost = reader.cost().ok_or(DAMAGED)?;
        cost.check()?;
        let salt = reader.array().ok_or(DAMAGED)?;
        let nonce = reader.array().ok_or(DAMAGED)?;
        let associated = body.get(..body.len() - reader.0.len()).ok_or(DAMAGED)?;
        let sealed = reader.prefixed().ok_or(DAMAGED)?;
        if !reader.0.is_empty() || sealed.len() < TAG_BYTES {
            return Err(DAMAGED);
        }
        Ok(Self { clear, cost, salt, nonce, associated, sealed })
    }
}

/// Decrypts the keys: at least one, all of one member and each of other parameters.
pub(super) fn unseal(container: Container<'_>, password: &[u8]) -> Result<Vec<OpenedKey>, KeyFileError> {
    if password.is_empty() {
        return Err(KeyFileError::EmptyPassword);
    }
    let cipher = cipher(password, container.salt, container.cost)?;
    let mut secrets = Zeroizing::new(container.sealed.to_vec());
    cipher
        .decrypt_in_place(&nonce_of(container.nonce), container.associated, &mut *secrets)
        .map_err(|_| KeyFileError::WrongPassword)?;
    match container.clear {
        Some(clear) => {
            let key = decode_one(&secrets, clear.parameters_hash)?;
            if key.public.member != clear.member {
                return Err(KeyFileError::Contents("another member index"));
            }
            if key.public.bls_public_key != clear.bls_public_key {
                return Err(KeyFileError::Contents("another BLS key"));
            }
            Ok(vec![key])
        }
        None => decode_all(&secrets),
    }
}

const WRONG_LENGTH: KeyFileError = KeyFileError::Contents("wrong length");

pub(super) fn decode_one(secrets: &[u8], parameters_hash: B256) -> Result<OpenedKey, KeyFileError> {
    let mut reader = Reader(secrets);
    let key = reader.key(parameters_hash)?;
    if reader.0.is_empty() { Ok(key) } else { Err(WRONG_LENGTH) }
}

pub(super) fn decode_all(secrets: &[u8]) -> Result<Vec<OpenedKey>, KeyFileError> {
    let (count, rest) = secrets.split_first().ok_or(SHORT)?;
    let count = usize::from(*count);
    if !(1..=MAX_KEYS).contains(&count) {
        return Err(KeyFileError::Contents("no number of keys"));
    }
    let mut reader = Reader(rest);
    let mut keys: Vec<OpenedKey> = Vec::with_capacity(count);
    for _ in 0..count {
        let parameters_hash = B256::from(reader.array::<HASH_BYTES>().ok_or(SHORT)?);
        let key = reader.key(parameters_hash)?;
        if keys.iter().any(|other| other.public.parameters_hash == parameters_hash) {
            return Err(KeyFileError::Duplicate { parameters_hash });
        }
        if keys.first().is_some_and(|first| first.public.member != key.public.member) {
            return Err(KeyFileError::Contents("keys of several members"));
        }
        keys.push(key);
    }
    if reader.0.is_empty() { Ok(keys) } else { Err(WRONG_LENGTH) }
}

const SHORT: KeyFileError = KeyFileError::Contents("too short");

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (head, tail) = self.0.split_first_chunk()?;
        self.0 = tail;
        Some(head)
    }

    fn number(&mut self) -> Option<u32> {
        self.array().map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// A length and as many bytes.
    fn prefixed(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (head, tail) = self.0.split_at_checked(length)?;
        self.0 = tail;
        Some(head)
    }

    fn clear(&mut self) -> Option<KeyFilePublic> {
        Some(KeyFilePublic {
            member: u16::from_be_bytes(*self.array()?),
            parameters_hash: B256::from(self.array::<HASH_BYTES>()?),
            bls_public_key: *self.array()?,
            proof_of_possession: *self.array()?,
        })
    }

    fn cost(&mut self) -> Option<KeyFileCost> {
        Some(KeyFileCost { memory_kib: self.number()?, iterations: self.number()?, lanes: self.number()? })
    }

    fn key(&mut self, parameters_hash: B256) -> Result<OpenedKey, KeyFileError> {
        let shares = self.prefixed().ok_or(SHORT)?;
        let bls_bytes = self.array::<BLS_SECRET_BYTES>().ok_or(SHORT)?;
        let member_key =
            MemberKey::decode(shares).map_err(|_| KeyFileError::Contents("the shares do not decode"))?;
        let bls_key = bls::SecretKey::from_bytes(bls_bytes)
            .map(Box::new)
            .map_err(|_| KeyFileError::Contents("the BLS key does not decode"))?;
        let public =
            KeyFilePublic::of(&Secrets { parameters_hash, member_key: &member_key, bls_key: &bls_key });
        Ok(OpenedKey { public, member_key, bls_key })
    }
}

/// The bytes of a key file with these keys, under a fresh salt and nonce.
pub(super) fn seal(
    keys: &[Secrets<'_>],
    password: &[u8],
    cost: KeyFileCost,
    rng: &mut impl CryptoRng,
) -> Result<Vec<u8>, KeyFileError> {
    if password.is_empty() {
        return Err(KeyFileError::EmptyPassword);
    }
    cost.check()?;
    if keys.len() > MAX_KEYS {
        return Err(KeyFileError::TooManyKeys { count: keys.len() });
    }
    let mut salt = [0; SALT_BYTES];
    let mut nonce = [0; NONCE_BYTES];
    rng.fill_bytes(&mut salt);
    rng.fill_bytes(&mut nonce);
    let mut file = Vec::with_capacity(HEAD_BYTES);
    file.extend_from_slice(MAGIC);
    file.push(VERSION);
    file.extend_from_slice(&cost.to_bytes());
    file.extend_from_slice(&salt);
    file.extend_from_slice(&nonce);
    debug_assert_eq!(file.len(), HEAD_BYTES);
    finish(file, encode(keys)?, password, cost, &salt, &nonce)
}

/// What is sealed, with room for the tag.
fn encode(keys: &[Secrets<'_>]) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
    let too_large = KeyFileError::TooLarge { limit_bytes: MAX_FILE_BYTES };
    let shares: Vec<Zeroizing<Vec<u8>>> = keys.iter().map(|key| key.member_key.encode()).collect();
    let length = |shares: &Zeroizing<Vec<u8>>| HASH_BYTES + 4 + shares.len() + BLS_SECRET_BYTES;
    // The tag is appended in place: with its room reserved, the secrets are never moved and left behind.
    let mut secrets =
        Zeroizing::new(Vec::with_capacity(1 + shares.iter().map(length).sum::<usize>() + TAG_BYTES));
    secrets.push(u8::try_from(keys.len()).map_err(|_| KeyFileError::TooManyKeys { count: keys.len() })?);
    for (key, shares) in keys.iter().zip(&shares) {
        let Ok(share_length) = u32::try_from(shares.len()) else { return Err(too_large) };
        secrets.extend_from_slice(key.parameters_hash.as_slice());
        secrets.extend_from_slice(&share_length.to_be_bytes());
        secrets.extend_from_slice(shares);
        secrets.extend_from_slice(key.bls_key.to_bytes().as_slice());
    }
    Ok(secrets)
}

/// Seals the secrets and puts them and the checksum behind the head of the file.
pub(super) fn finish(
    mut file: Vec<u8>,
    mut secrets: Zeroizing<Vec<u8>>,
    password: &[u8],
    cost: KeyFileCost,
    salt: &[u8; SALT_BYTES],
    nonce: &[u8; NONCE_BYTES],
) -> Result<Vec<u8>, KeyFileError> {
    const TOO_LARGE: KeyFileError = KeyFileError::TooLarge { limit_bytes: MAX_FILE_BYTES };
    cipher(password, salt, cost)?
        .encrypt_in_place(&nonce_of(nonce), &file, &mut *secrets)
        .map_err(|_| TOO_LARGE)?;
    let sealed_length = u32::try_from(secrets.len()).map_err(|_| TOO_LARGE)?;
    file.extend_from_slice(&sealed_length.to_be_bytes());
    file.extend_from_slice(&secrets);
    let checksum = Sha256::digest(&file);
    file.extend_from_slice(&checksum);
    if file.len() as u64 > MAX_FILE_BYTES { Err(TOO_LARGE) } else { Ok(file) }
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
