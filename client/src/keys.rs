//! Key files: Ethereum keystore V3, the format every Ethereum wallet reads.
//!
//! A password comes from a file or from the environment, never from the command line, where other users of the
//! machine could read it.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use alloy_primitives::{Address, hex};
use blindfold_protocol::SigningKey;
use blindfold_runtime::{random, rng};
use eth_keystore::KeystoreError;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// A key file longer than this is none.
const MAX_KEY_FILE_BYTES: u64 = 64 * 1024;

/// The one version read and written.
const VERSION: u64 = 3;

/// Longest password, in bytes.
const MAX_PASSWORD_BYTES: u64 = 4 * 1024;

/// A key file and where its password is found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeySource {
    /// The key file (Ethereum keystore V3).
    pub file: PathBuf,
    /// The file whose first line is the password.
    pub password_file: Option<PathBuf>,
    /// The environment variable that holds the password, where no file is given.
    pub password_env: Option<String>,
}

/// A key that cannot be opened, written or listed.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A file cannot be read or written.
    #[error("{action} {path}: {cause}")]
    Io {
        /// What was tried on the file.
        action: &'static str,
        /// The file that it was tried on.
        path: PathBuf,
        /// What the operating system said.
        cause: io::Error,
    },
    /// The file is not a key file.
    #[error("{path} is not an Ethereum key file (keystore V3): {reason}")]
    NotAKeyFile {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The password does not open the file.
    #[error("the password does not open {path}")]
    WrongPassword {
        /// Path of the file.
        path: PathBuf,
    },
    /// Neither a password file nor a set environment variable.
    #[error("no password for {path}: set `password_file`, or the variable that `password_env` names")]
    NoPassword {
        /// Path of the key file.
        path: PathBuf,
    },
    /// An empty password protects nothing.
    #[error("the password for {path} is empty: it has to be the first line of the password file")]
    EmptyPassword {
        /// Path of the key file.
        path: PathBuf,
    },
    /// A file of that name is already there; a key is never overwritten.
    #[error("{path} exists already; a key is never overwritten")]
    Exists {
        /// Path of the file.
        path: PathBuf,
    },
    /// What should be imported is no key.
    #[error("not a secp256k1 secret key: 64 hexadecimal digits, not zero, below the group order")]
    NotAKey,
}

impl KeySource {
    /// Opens the key.
    ///
    /// Cost: the key file's own scrypt parameters, about a tenth of a second.
    ///
    /// # Errors
    /// Every variant of [`KeyError`] but [`KeyError::EmptyPassword`], [`KeyError::Exists`] and [`KeyError::NotAKey`].
    pub fn open(&self) -> Result<SigningKey, KeyError> {
        let password = self.password()?;
        open(&self.file, &password)
    }

    /// Reads the password from its file, else from the environment.
    ///
    /// # Errors
    /// [`KeyError::Io`] and [`KeyError::NoPassword`].
    pub fn password(&self) -> Result<Zeroizing<String>, KeyError> {
        if let Some(path) = &self.password_file {
            let text = read_bounded(path, MAX_PASSWORD_BYTES)?;
            return Ok(Zeroizing::new(text.lines().next().unwrap_or_default().to_owned()));
        }
        let variable = self.password_env.as_deref().and_then(std::env::var_os);
        match variable.and_then(|value| value.into_string().ok()) {
            Some(password) => Ok(Zeroizing::new(password)),
            None => Err(KeyError::NoPassword { path: self.file.clone() }),
        }
    }
}

/// Opens a key file with a password.
///
/// # Errors
/// [`KeyError::Io`], [`KeyError::NotAKeyFile`], [`KeyError::WrongPassword`].
pub fn open(path: &Path, password: &str) -> Result<SigningKey, KeyError> {
    let not_a_key_file = |reason: String| KeyError::NotAKeyFile { path: path.to_owned(), reason };
    let text = read_bounded(path, MAX_KEY_FILE_BYTES).map_err(|error| match error {
        KeyError::Io { cause, .. } if cause.kind() == io::ErrorKind::InvalidData => not_a_key_file(
            "it is no text; a member's key file belongs into `key` of its own role alone".to_owned(),
        ),
        other => other,
    })?;
    serde_json::from_str::<Header>(&text).map_err(|error| not_a_key_file(error.to_string())).and_then(
        |header| match header.version {
            VERSION => Ok(()),
            version => Err(not_a_key_file(format!("version {version}, expected {VERSION}"))),
        },
    )?;
    let scalar = eth_keystore::decrypt_key(path, password.as_bytes()).map(Zeroizing::new).map_err(
        |error| match error {
            KeystoreError::MacMismatch => KeyError::WrongPassword { path: path.to_owned() },
            other => not_a_key_file(other.to_string()),
        },
    )?;
    let scalar: &[u8; 32] = scalar.as_slice().try_into().map_err(|_| KeyError::NotAKey)?;
    SigningKey::from_bytes(scalar).map_err(|_| KeyError::NotAKey)
}

/// Makes a fresh key and writes it to `path`.
///
/// # Errors
/// As [`store`].
pub fn create(path: &Path, password: &str) -> Result<SigningKey, KeyError> {
    let key = SigningKey::random(&mut rng());
    store(&key, path, password)?;
    Ok(key)
}

/// Writes an existing key, 64 hexadecimal digits, to `path`.
///
/// # Errors
/// [`KeyError::NotAKey`], and as [`store`].
pub fn import(secret_hex: &str, path: &Path, password: &str) -> Result<SigningKey, KeyError> {
    let bytes = Zeroizing::new(hex::decode(secret_hex.trim()).map_err(|_| KeyError::NotAKey)?);
    let scalar: &[u8; 32] = bytes.as_slice().try_into().map_err(|_| KeyError::NotAKey)?;
    let key = SigningKey::from_bytes(scalar).map_err(|_| KeyError::NotAKey)?;
    store(&key, path, password)?;
    Ok(key)
}

/// Writes a key encrypted under `password`, readable by its owner alone, all or nothing; never over another file.
///
/// # Errors
/// [`KeyError::EmptyPassword`], [`KeyError::Exists`], [`KeyError::Io`].
pub fn store(key: &SigningKey, path: &Path, password: &str) -> Result<(), KeyError> {
    if password.is_empty() {
        return Err(KeyError::EmptyPassword { path: path.to_owned() });
    }
    if path.exists() {
        return Err(KeyError::Exists { path: path.to_owned() });
    }
    let io =
        |action: &'static str| move |cause: io::Error| KeyError::Io { action, path: path.to_owned(), cause };
    let dir = folder_of(path);
    fs::create_dir_all(dir).map_err(io("cannot create the folder of"))?;
    // The library writes with the process's default permissions, so it writes into a folder of ours first.
    let staging = dir.join(format!(".key-{:016x}", random::<u64>()));
    fs::create_dir(&staging).map_err(io("cannot create"))?;
    let encrypted = fs::set_permissions(&staging, fs::Permissions::from_mode(0o700))
        .map_err(io("cannot protect"))
        .and_then(|()| {
            let scalar = key.to_bytes();
            eth_keystore::encrypt_key(
                &staging,
                &mut rand_08::rngs::OsRng,
                scalar.as_slice(),
                password,
                Some("key"),
            )
            .map_err(|error| io("cannot encrypt")(io::Error::other(error.to_string())))
        })
        .and_then(|_| fs::read(staging.join("key")).map_err(io("cannot read back")));
    fs::remove_dir_all(&staging).map_err(io("cannot remove the staging folder of"))?;
    let text =
        with_address(&encrypted?, &key.address()).map_err(|error| io("cannot encode")(error.into()))?;
    write_new(path, |file| file.write_all(text.as_bytes())).map_err(|cause| match cause.kind() {
        io::ErrorKind::AlreadyExists => KeyError::Exists { path: path.to_owned() },
        _ => io("cannot write")(cause),
    })
}

/// The key file with the address in it, as geth writes it: a renamed file still tells whose key it is.
fn with_address(key_file: &[u8], address: &Address) -> serde_json::Result<String> {
    let mut fields: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(key_file)?;
    fields.insert("address".to_owned(), hex::encode(address).into());
    serde_json::to_string(&fields)
}

/// Writes beside the target, syncs, then gives the finished file its name: what a full disk cuts off never has it.
fn write_new(path: &Path, write: impl FnOnce(&mut fs::File) -> io::Result<()>) -> io::Result<()> {
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(format!(".{:016x}.new", random::<u64>()));
    let beside = path.with_file_name(name);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    let written = write(&mut file)
        .and_then(|()| file.sync_all())
        .and_then(|()| give_name(&beside, path, |from, to| fs::hard_link(from, to)));
    // Gone already where it was renamed.
    let _ = fs::remove_file(&beside);
    written?;
    fs::File::open(folder_of(path))?.sync_all()
}

/// Links a file to its name, as for members' key files: that fails where a rename would replace another key. Where the file
/// system has no such links, it is renamed over an empty file of our own.
fn give_name(
    beside: &Path,
    path: &Path,
    link: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    match link(beside, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            fs::rename(beside, path).inspect_err(|_| {
                // It holds nothing. Where it cannot go, the next try says that it is there.
                let _ = fs::remove_file(path);
            })
        }
        linked => linked,
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The key files of a folder, whatever they are called, by the address that they or their names ([`file_name`]) carry;
/// those of other programs may carry none.
///
/// # Errors
/// [`KeyError::Io`] when the folder cannot be read.
pub fn list(dir: &Path) -> Result<Vec<(Option<Address>, PathBuf)>, KeyError> {
    let io = |cause| KeyError::Io { action: "cannot list", path: dir.to_owned(), cause };
    let mut keys = Vec::new();
    for entry in fs::read_dir(dir).map_err(io)? {
        let path = entry.map_err(io)?.path();
        if !path.is_file() {
            continue;
        }
        // Secrets of others and binary files lie there, too: what cannot be read as a key file is none of ours.
        let text = read_bounded(&path, MAX_KEY_FILE_BYTES).ok();
        let header = text.and_then(|text| serde_json::from_str::<Header>(&text).ok());
        let Some(header) = header.filter(|header| header.version == VERSION && header.crypto.is_some())
        else {
            continue;
        };
        let named = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        let address = header.address.and_then(|address| address.as_str()?.parse().ok());
        keys.push((address.or(named), path));
    }
    keys.sort_unstable();
    Ok(keys)
}

/// The name of a key file in a folder of keys.
#[must_use]
pub fn file_name(address: &Address) -> String {
    format!("{address}.json")
}

/// Only what tells a key file from anything else, and whose it is.
#[derive(Deserialize)]
struct Header {
    version: u64,
    crypto: Option<serde::de::IgnoredAny>,
    address: Option<serde_json::Value>,
}

fn read_bounded(path: &Path, limit_bytes: u64) -> Result<Zeroizing<String>, KeyError> {
    let io = |cause| KeyError::Io { action: "cannot read", path: path.to_owned(), cause };
    let length = fs::metadata(path).map_err(io)?.len();
    if length > limit_bytes {
        let reason = format!("{length} bytes, at most {limit_bytes}");
        return Err(KeyError::NotAKeyFile { path: path.to_owned(), reason });
    }
    fs::read_to_string(path).map(Zeroizing::new).map_err(io)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

    #[test]
    fn a_key_survives_its_file_and_only_its_owner_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys/fee.json");
        let key = import(SECRET, &path, "password").unwrap();
        assert_eq!(key.address().to_string(), "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
        assert_eq!(open(&path, "password").unwrap().address(), key.address());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(
            fs::read_dir(dir.path().join("keys")).unwrap().count(),
            1,
            "nothing staged is left behind"
        );
        assert!(!fs::read_to_string(&path).unwrap().contains(SECRET));
    }

    #[test]
    fn a_folder_lists_its_keys_by_address_whatever_they_are_called() {
        let dir = tempfile::tempdir().unwrap();
        let (key, renamed) = (SigningKey::random(&mut rng()), SigningKey::random(&mut rng()));
        let at = |name: &str| dir.path().join(name);
        store(&key, &at(&file_name(&key.address())), "p").unwrap();
        store(&renamed, &at("fee.json"), "p").unwrap();
        // Another program's, without an address.
        let mut nameless: serde_json::Value =
            serde_json::from_slice(&fs::read(at("fee.json")).unwrap()).unwrap();
        nameless.as_object_mut().unwrap().remove("address").unwrap();
        fs::write(at("nameless"), nameless.to_string()).unwrap();
        fs::write(at("notes.txt"), "no key").unwrap();
        fs::write(at("rollup.json"), "{\"version\":3}").unwrap();
        fs::create_dir(at("folder")).unwrap();
        let cut_off = fs::read(at("fee.json")).unwrap()[..100].to_vec();
        fs::write(at(&file_name(&Address::repeat_byte(1))), cut_off).unwrap();
        let mut expected = vec![
            (None, at("nameless")),
            (Some(key.address()), at(&file_name(&key.address()))),
            (Some(renamed.address()), at("fee.json")),
        ];
        expected.sort_unstable();
        assert_eq!(list(dir.path()).unwrap(), expected);
        assert_eq!(open(&at("nameless"), "p").unwrap().address(), renamed.address());
        assert!(matches!(list(&at("none")), Err(KeyError::Io { .. })));
    }

    #[test]
    fn a_key_file_has_its_name_only_once_it_is_whole_and_takes_no_other_ones() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fee.json");
        let files = || fs::read_dir(dir.path()).unwrap().count();
        let full = write_new(&path, |file| {
            file.write_all(b"{\"crypto\"")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(files(), 0, "what was cut off is gone");
        write_new(&path, |file| file.write_all(b"whole")).unwrap();
        let second = write_new(&path, |file| file.write_all(b"another"));
        // The same without links.
        let (unlinked, part) = (dir.path().join("unlinked.json"), dir.path().join("part"));
        let none = |_: &Path, _: &Path| Err(io::ErrorKind::Unsupported.into());
        fs::write(&part, b"whole").unwrap();
        give_name(&part, &unlinked, none).unwrap();
        assert!(!part.exists() && fs::read(&unlinked).unwrap() == b"whole");
        fs::rename(&unlinked, &part).unwrap();
        let taken = give_name(&part, &path, none).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        fs::remove_file(&part).unwrap();
        assert_eq!(second.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!((fs::read(&path).unwrap(), files()), (b"whole".to_vec(), 1));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn each_fault_has_its_own_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fee.json");
        create(&path, "password").unwrap();
        assert!(matches!(open(&path, "another"), Err(KeyError::WrongPassword { .. })));
        assert!(matches!(create(&path, "password"), Err(KeyError::Exists { .. })));
        let empty = dir.path().join("empty.json");
        assert!(matches!(create(&empty, ""), Err(KeyError::EmptyPassword { .. })));
        assert!(!empty.exists());
        assert!(matches!(import("00", &dir.path().join("a"), "p"), Err(KeyError::NotAKey)));
        assert!(matches!(import(&"0".repeat(64), &dir.path().join("a"), "p"), Err(KeyError::NotAKey)));
        assert!(matches!(open(&dir.path().join("none"), "p"), Err(KeyError::Io { .. })));
        let missing = open(&dir.path().join("none"), "p").unwrap_err();
        assert!(missing.to_string().contains("No such file"), "{missing}");
        assert!(std::error::Error::source(&missing).is_none(), "said once");
        for text in ["", "{}", "{\"version\":1}", "not json"] {
            let path = dir.path().join("broken");
            fs::write(&path, text).unwrap();
            assert!(matches!(open(&path, "p"), Err(KeyError::NotAKeyFile { .. })), "{text:?}");
        }
        let members = dir.path().join("member-1.key");
        fs::write(&members, b"BLINDFOLD-V1-KEYFILE\x01\xff\xfe").unwrap();
        let refused = open(&members, "p").unwrap_err().to_string();
        assert!(refused.contains("member-1.key is not an Ethereum key file"), "{refused}");
        fs::write(dir.path().join("large"), vec![b' '; MAX_KEY_FILE_BYTES as usize + 1]).unwrap();
        assert!(matches!(open(&dir.path().join("large"), "p"), Err(KeyError::NotAKeyFile { .. })));
    }

    #[test]
    fn a_password_comes_from_its_file_or_is_missed() {
        let dir = tempfile::tempdir().unwrap();
        let password_file = dir.path().join("password");
        fs::write(&password_file, "from the file\nsecond line").unwrap();
        let mut source =
            KeySource { file: "k".into(), password_file: Some(password_file), password_env: None };
        assert_eq!(source.password().unwrap().as_str(), "from the file");
        source.password_file = None;
        assert!(matches!(source.password(), Err(KeyError::NoPassword { .. })));
        source.password_env = Some("BLINDFOLD_TEST_VARIABLE_THAT_IS_NOT_SET".to_owned());
        assert!(matches!(source.password(), Err(KeyError::NoPassword { .. })));
    }
}
