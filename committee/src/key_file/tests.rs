use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    slice,
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use blindfold_bte::dealer;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use sha2::{Digest, Sha256};

use super::sealed::{
    CHECKSUM_BYTES, HEAD_BYTES, MAGIC, MAX_ITERATIONS, MAX_LANES, MAX_MEMORY_KIB, NONCE_BYTES, SALT_BYTES,
    VERSION, VERSION_WITH_CLEAR_PART,
};
use super::*;

/// As cheap as allowed: these tests are not about the cost.
const CHEAP: KeyFileCost = KeyFileCost { memory_kib: 8, iterations: 1, lanes: 1 };
const PASSWORD: &[u8] = b"correct horse";
/// What the last program without version 2 wrote for [`Setting::new`].
const OLD: &[u8] = include_bytes!("version-1.key");
/// Length of the clear part of version 1.
const CLEAR_BYTES: usize = 2 + 32 + 96 + 48;

struct Setting {
    folder: tempfile::TempDir,
    parameters: Parameters,
    parameters_hash: B256,
    member_key: MemberKey,
    bls_key: bls::SecretKey,
    rng: ChaCha20Rng,
}

impl Setting {
    fn new() -> Self {
        Self::of(8, 2)
    }

    /// The key of this member in the dealing of this seed.
    fn of(seed: u64, member: u16) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let (parameters, mut keys) = dealer::deal(4, 4, 3, &mut rng).expect("deals");
        let bls_key = bls::SecretKey::generate(&[7; 32]).expect("32 bytes");
        Self {
            folder: tempfile::tempdir().expect("folder"),
            parameters_hash: B256::from(parameters.hash()),
            parameters,
            member_key: keys.swap_remove(usize::from(member) - 1),
            bls_key,
            rng,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("member-2.key")
    }

    fn create(&mut self) -> Result<KeyFilePublic, KeyFileError> {
        let path = self.path();
        create(&path, PASSWORD, &self.member_key, &self.bls_key, self.parameters_hash, CHEAP, &mut self.rng)
    }

    /// Writes the files under this name into the folder of another, which outlives this one.
    fn create_in(mut self, other: &Self, name: &str) -> PathBuf {
        let path = other.folder.path().join(name);
        create(&path, PASSWORD, &self.member_key, &self.bls_key, self.parameters_hash, CHEAP, &mut self.rng)
            .expect("created");
        path
    }

    fn bytes(&mut self) -> Vec<u8> {
        self.create().expect("created");
        fs::read(self.path()).expect("readable")
    }

    fn secrets(&self) -> Secrets<'_> {
        Secrets {
            parameters_hash: self.parameters_hash,
            member_key: &self.member_key,
            bls_key: &self.bls_key,
        }
    }

    /// Adds the key of another dealing, which lies in a folder of its own.
    fn add(&mut self, other: &Self) -> Result<Vec<KeyFilePublic>, KeyFileError> {
        add(&self.path(), PASSWORD, &other.path(), PASSWORD, &mut self.rng)
    }
}

/// What opens without a public file.
fn unsealed(bytes: &[u8], password: &[u8]) -> Result<Vec<OpenedKey>, KeyFileError> {
    sealed::unseal(Container::parse(bytes)?, password)
}

/// As version 1 was written.
fn seal_with_clear_part(public: &KeyFilePublic, setting: &Setting) -> Vec<u8> {
    let (mut salt, mut nonce, mut rng) = ([0; SALT_BYTES], [0; NONCE_BYTES], setting.rng.clone());
    rng.fill_bytes(&mut salt);
    rng.fill_bytes(&mut nonce);
    let mut file = [MAGIC.as_slice(), &[VERSION_WITH_CLEAR_PART]].concat();
    file.extend_from_slice(&public.member.to_be_bytes());
    file.extend_from_slice(public.parameters_hash.as_slice());
    file.extend_from_slice(&public.bls_public_key);
    file.extend_from_slice(&public.proof_of_possession);
    file.extend_from_slice(&CHEAP.to_bytes());
    file.extend_from_slice(&salt);
    file.extend_from_slice(&nonce);
    let shares = setting.member_key.encode();
    let length = u32::try_from(shares.len()).expect("short").to_be_bytes();
    let secrets = [&length[..], &shares, setting.bls_key.to_bytes().as_slice()].concat();
    sealed::finish(file, Zeroizing::new(secrets), PASSWORD, CHEAP, &salt, &nonce).expect("sealed")
}

/// Puts the right checksum under changed bytes.
fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let body = bytes.len() - CHECKSUM_BYTES;
    let checksum = Sha256::digest(&bytes[..body]);
    bytes[body..].copy_from_slice(&checksum);
    bytes
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").mode() & 0o777
}

#[test]
fn what_is_written_opens_again() {
    let mut setting = Setting::new();
    let public = setting.create().expect("created");
    assert_eq!(public.member, 2);
    assert_eq!(read_public(&setting.path()).expect("readable"), slice::from_ref(&public));
    let key = bls::PublicKey::from_bytes(&public.bls_public_key).expect("a key");
    let proof = bls::Signature::from_bytes(&public.proof_of_possession).expect("a signature");
    key.verify_possession(&proof).expect("possession");

    let opened = open(&setting.path(), PASSWORD, &setting.parameters).expect("opens");
    assert_eq!(opened.public, public);
    assert_eq!(*opened.member_key.encode(), *setting.member_key.encode());
    assert_eq!(*opened.bls_key.to_bytes(), *setting.bls_key.to_bytes());
    let shown = format!("{opened:?}");
    assert!(!shown.contains("bls_key") && !shown.contains("member_key"), "{shown}");

    assert_eq!([mode(&setting.path()), mode(&public_path(&setting.path()))], [0o600, 0o644]);
    let names: Vec<_> = fs::read_dir(setting.folder.path()).expect("readable").collect();
    assert_eq!(names.len(), 2, "no unfinished file is left");
}

#[test]
fn a_file_of_version_1_still_opens() {
    let setting = Setting::new();
    let public = KeyFilePublic::of(&setting.secrets());
    assert_eq!(seal_with_clear_part(&public, &setting), OLD);
    fs::write(setting.path(), OLD).expect("written");
    assert_eq!(read_public(&setting.path()).expect("readable"), slice::from_ref(&public));
    let opened = open(&setting.path(), PASSWORD, &setting.parameters).expect("opens");
    assert_eq!(opened.public, public);
    assert_eq!(*opened.member_key.encode(), *setting.member_key.encode());
    let key = open_bls_key(&setting.path(), PASSWORD, None).expect("opens");
    assert_eq!(*key.to_bytes(), *setting.bls_key.to_bytes());
    let refused = open(&setting.path(), b"wrong", &setting.parameters);
    assert!(matches!(refused, Err(KeyFileError::WrongPassword)));
}

#[test]
fn a_key_is_never_overwritten() {
    let mut setting = Setting::new();
    let before = setting.bytes();
    assert!(matches!(setting.create(), Err(KeyFileError::Exists { path }) if path == setting.path()));
    assert_eq!(fs::read(setting.path()).expect("readable"), before);
    fs::remove_file(setting.path()).expect("removed");
    let beside = public_path(&setting.path());
    assert!(matches!(setting.create(), Err(KeyFileError::Exists { path }) if path == beside));
    let missing = setting.folder.path().join("absent").join("key");
    let refused = create(
        &missing,
        PASSWORD,
        &setting.member_key,
        &setting.bls_key,
        setting.parameters_hash,
        CHEAP,
        &mut setting.rng,
    );
    assert!(matches!(refused, Err(KeyFileError::Io { .. })));
    assert!(matches!(read_public(&missing), Err(KeyFileError::Io { .. })));
}

#[test]
fn one_file_holds_the_keys_of_several_epochs() {
    let (mut setting, mut later, other) = (Setting::new(), Setting::of(9, 2), Setting::of(10, 2));
    let keys = [setting.create().expect("created"), later.create().expect("created")];
    assert_eq!(setting.add(&later).expect("added"), keys);
    assert_eq!(read_public(&setting.path()).expect("readable"), keys);
    for dealing in [&setting, &later] {
        let opened = open(&setting.path(), PASSWORD, &dealing.parameters).expect("opens");
        assert_eq!(*opened.member_key.encode(), *dealing.member_key.encode());
        let hash = Some(dealing.parameters_hash);
        assert_eq!(public_of(keys.to_vec(), hash).expect("there").parameters_hash, dealing.parameters_hash);
        assert!(open_bls_key(&setting.path(), PASSWORD, hash).is_ok());
    }
    let hashes = vec![setting.parameters_hash, later.parameters_hash];
    assert!(matches!(
        open(&setting.path(), PASSWORD, &other.parameters),
        Err(KeyFileError::OtherParameters { expected, found })
            if expected == other.parameters_hash && found == hashes
    ));
    let unsaid = open_bls_key(&setting.path(), PASSWORD, None);
    assert!(matches!(unsaid, Err(KeyFileError::SeveralKeys { found }) if found == hashes));
    assert!(matches!(public_of(keys.to_vec(), None), Err(KeyFileError::SeveralKeys { .. })));
    let old = public_of(keys[..1].to_vec(), Some(later.parameters_hash)).expect_err("not public");
    assert!(old.to_string().starts_with("the public file has no key of parameters"), "{old}");
    assert!(old.to_string().contains("`blindfold committee key public FILE`"), "{old}");

    // Nothing is written where nothing is new, and the other file stays as it was.
    let before = fs::read(setting.path()).expect("readable");
    setting.add(&later).expect("has it");
    assert_eq!(fs::read(setting.path()).expect("readable"), before);
    assert!(open(&later.path(), PASSWORD, &later.parameters).is_ok());
    assert_eq!(mode(&setting.path()), 0o600);
    assert_eq!(fs::read_dir(setting.folder.path()).expect("readable").count(), 2);
}

#[test]
fn who_could_read_the_files_can_do_so_after_a_key_was_added() {
    let (mut setting, mut later) = (Setting::new(), Setting::of(9, 2));
    setting.create().expect("created");
    later.create().expect("created");
    let beside = public_path(&setting.path());
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("one's own");
    };
    set(&setting.path(), 0o640);
    // As a mask of 077 once left it.
    set(&beside, 0o600);
    setting.add(&later).expect("added");
    assert_eq!([mode(&setting.path()), mode(&beside)], [0o640, 0o644]);
    // What nobody should have been able to do is not kept.
    set(&setting.path(), 0o666);
    let other = Setting::of(10, 2).create_in(&later, "other");
    add(&setting.path(), PASSWORD, &other, PASSWORD, &mut setting.rng).expect("added");
    assert_eq!(mode(&setting.path()), 0o640);
}

#[test]
fn a_link_in_the_public_files_place_is_replaced_and_what_it_names_stays() {
    let mut setting = Setting::new();
    setting.create().expect("created");
    let (beside, named) = (public_path(&setting.path()), setting.folder.path().join("passwd"));
    fs::write(&named, "root").expect("written");
    fs::remove_file(&beside).expect("removed");
    symlink(&named, &beside).expect("linked");
    write_public(&setting.path(), PASSWORD).expect("written");
    assert!(fs::symlink_metadata(&beside).expect("there").is_file());
    assert_eq!(fs::read_to_string(&named).expect("readable"), "root");
    assert!(open(&setting.path(), PASSWORD, &setting.parameters).is_ok());
}

#[test]
fn a_key_file_behind_ones_own_links_gets_the_key_and_the_links_stay() {
    let (mut setting, mut later) = (Setting::new(), Setting::of(9, 2));
    setting.create().expect("created");
    later.create().expect("created");
    let [link, second] = ["link", "second"].map(|name| setting.folder.path().join(name));
    symlink("member-2.key", &link).expect("linked");
    symlink(&link, &second).expect("linked");
    add(&second, PASSWORD, &later.path(), PASSWORD, &mut setting.rng).expect("added");
    assert!([&link, &second].iter().all(|path| path.is_symlink()));
    assert_eq!(unsealed(&fs::read(setting.path()).expect("readable"), PASSWORD).expect("opens").len(), 2);

    // Only root can make a link somebody else's.
    if std::os::unix::fs::lchown(&link, Some(65_534), None).is_ok() {
        for path in [&link, &second] {
            let refused = write_public(path, PASSWORD);
            assert!(matches!(refused, Err(KeyFileError::ForeignLink { path }) if path == link));
        }
    }
}

/// Each waits for the one before and adds to what that one wrote.
#[test]
fn keys_that_are_added_at_the_same_time_are_all_kept() {
    const ADDED: u64 = 6;
    let mut setting = Setting::new();
    setting.create().expect("created");
    let from: Vec<PathBuf> = (1..=ADDED)
        .map(|number| Setting::of(100 + number, 2).create_in(&setting, &format!("from-{number}")))
        .collect();
    let (path, together) = (setting.path(), Barrier::new(from.len()));
    thread::scope(|scope| {
        for (from, seed) in from.iter().zip(1..) {
            let (path, together) = (&path, &together);
            scope.spawn(move || {
                let mut rng = ChaCha20Rng::seed_from_u64(seed);
                together.wait();
                add(path, PASSWORD, from, PASSWORD, &mut rng).expect("added");
            });
        }
    });
    let kept = unsealed(&fs::read(&path).expect("readable"), PASSWORD).expect("opens");
    assert_eq!(kept.len(), from.len() + 1);
    assert!(kept.iter().map(|key| &key.public).eq(&read_public(&path).expect("the present one")));
    assert_eq!(fs::read_dir(setting.folder.path()).expect("readable").count(), 2 * (from.len() + 1));
}

/// The key file and the public one are written one after the other: who starts between the two finds its key all the same.
#[test]
fn a_member_that_starts_while_keys_are_added_finds_its_own() {
    let mut setting = Setting::new();
    setting.create().expect("created");
    let from: Vec<PathBuf> = (1..=16)
        .map(|number| Setting::of(100 + number, 2).create_in(&setting, &format!("from-{number}")))
        .collect();
    let (path, hash, done) = (setting.path(), setting.parameters_hash, AtomicBool::new(false));
    thread::scope(|scope| {
        let starts = scope.spawn(|| {
            let mut opened = Ok(());
            while !done.load(Ordering::SeqCst) && opened.is_ok() {
                opened = open_bls_key(&path, PASSWORD, Some(hash)).map(drop);
            }
            opened
        });
        for from in &from {
            add(&path, PASSWORD, from, PASSWORD, &mut setting.rng).expect("added");
        }
        done.store(true, Ordering::SeqCst);
        starts.join().expect("no panic").expect("its key");
    });
}

#[test]
fn adding_to_a_file_of_version_1_gives_it_the_present_form() {
    let (mut setting, mut later) = (Setting::new(), Setting::of(9, 2));
    later.create().expect("created");
    fs::write(setting.path(), OLD).expect("written");
    // From itself: nothing but the form is new.
    let path = setting.path();
    let keys = add(&path, PASSWORD, &path, PASSWORD, &mut setting.rng).expect("has it");
    assert_eq!(keys, [KeyFilePublic::of(&setting.secrets())]);
    assert_eq!(fs::read(&path).expect("readable")[MAGIC.len()], VERSION);
    assert!(open(&path, PASSWORD, &setting.parameters).is_ok());
    assert_eq!(setting.add(&later).expect("added").len(), 2);
    assert!(open(&path, PASSWORD, &later.parameters).is_ok());
    // And the other way round.
    fs::write(setting.folder.path().join("old"), OLD).expect("written");
    let old = setting.folder.path().join("old");
    let keys = add(&later.path(), PASSWORD, &old, PASSWORD, &mut later.rng).expect("added");
    assert_eq!(keys.len(), 2);
}

#[test]
fn what_does_not_belong_into_a_file_is_not_added() {
    let (mut setting, mut stranger, mut twin) = (Setting::new(), Setting::of(9, 3), Setting::new());
    stranger.create().expect("created");
    twin.bls_key = bls::SecretKey::generate(&[8; 32]).expect("32 bytes");
    twin.create().expect("created");
    let before = setting.bytes();
    assert!(matches!(setting.add(&stranger), Err(KeyFileError::OtherMember { expected: 2, found: 3 })));
    assert!(matches!(
        setting.add(&twin),
        Err(KeyFileError::Duplicate { parameters_hash }) if parameters_hash == setting.parameters_hash
    ));
    let wrong = add(&setting.path(), b"wrong", &stranger.path(), PASSWORD, &mut setting.rng);
    assert!(matches!(wrong, Err(KeyFileError::WrongPassword)));
    let wrong = add(&setting.path(), PASSWORD, &stranger.path(), b"wrong", &mut setting.rng);
    assert!(matches!(wrong, Err(KeyFileError::WrongPassword)));
    assert_eq!(fs::read(setting.path()).expect("readable"), before);
    let many: Vec<Secrets<'_>> = (0..=MAX_KEYS)
        .map(|number| Secrets { parameters_hash: B256::with_last_byte(number as u8), ..setting.secrets() })
        .collect();
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    assert!(matches!(
        sealed::seal(&many, PASSWORD, CHEAP, &mut rng),
        Err(KeyFileError::TooManyKeys { count: 65 })
    ));
    let most = sealed::seal(&many[1..], PASSWORD, CHEAP, &mut rng).expect("sealed");
    assert_eq!(unsealed(&most, PASSWORD).expect("opens").len(), MAX_KEYS);
}

/// As a kill between two files leaves them, or a hand that takes one away.
#[test]
fn half_of_a_pair_is_told_and_mended() {
    let (mut setting, mut later) = (Setting::new(), Setting::of(9, 2));
    let key = setting.create().expect("created");
    later.create().expect("created");
    let (path, beside) = (setting.path(), public_path(&setting.path()));
    let first = fs::read(&beside).expect("readable");
    fs::remove_file(&beside).expect("removed");
    let missing = |error| matches!(error, Some(KeyFileError::PublicMissing { path }) if path == beside);
    assert!(missing(open(&path, PASSWORD, &setting.parameters).err()));
    assert!(missing(open_bls_key(&path, PASSWORD, None).err()));
    assert!(missing(read_public(&path).err()));
    assert!(matches!(write_public(&path, b"wrong"), Err(KeyFileError::WrongPassword)));
    assert_eq!(write_public(&path, PASSWORD).expect("written"), slice::from_ref(&key));
    assert_eq!(fs::read(&beside).expect("readable"), first);

    for again in [true, false] {
        setting.add(&later).expect("added");
        fs::write(&beside, &first).expect("written");
        let refused = open(&path, PASSWORD, &later.parameters);
        assert!(matches!(refused, Err(KeyFileError::PublicDiffers { path }) if path == beside));
        if again {
            setting.add(&later).expect("added");
        } else {
            write_public(&path, PASSWORD).expect("written");
        }
        assert!(open(&path, PASSWORD, &later.parameters).is_ok());
    }

    fs::remove_file(&path).expect("removed");
    for refused in [open(&path, PASSWORD, &setting.parameters).err(), read_public(&path).err()] {
        assert!(
            matches!(&refused, Some(KeyFileError::SecretsMissing { path: missing }) if *missing == path),
            "{refused:?}"
        );
    }
    assert_eq!(read_public(&beside).expect("enough to register").len(), 2);
}

#[test]
fn each_fault_of_the_public_file_has_its_own_error() {
    let mut setting = Setting::new();
    let public = setting.create().expect("created");
    let (path, beside) = (setting.path(), public_path(&setting.path()));
    let good = fs::read_to_string(&beside).expect("readable");
    let with = |text: String| {
        fs::write(&beside, text).expect("written");
        open(&path, PASSWORD, &setting.parameters).expect_err("refused")
    };
    for text in [
        String::new(),
        "[]".to_owned(),
        good[..good.len() - 3].to_owned(),
        good.replace("\"member\"", "\"more\": 1, \"member\""),
        good.replace("\"blsPublicKey\": \"0x", "\"blsPublicKey\": \"0x00"),
        "{\"version\": 2, \"member\": 2, \"keys\": []}".to_owned(),
    ] {
        let error = with(text.clone());
        assert!(
            matches!(&error, KeyFileError::PublicDamaged { path, .. } if *path == beside),
            "{text}: {error}"
        );
    }
    let error = with(good.replace("\"version\": 2", "\"version\": 3"));
    assert!(matches!(error, KeyFileError::UnsupportedVersion { found: 3 }));
    let error = with(" ".repeat(usize::try_from(public::MAX_BYTES).expect("small") + 1));
    assert!(matches!(error, KeyFileError::TooLarge { limit_bytes: public::MAX_BYTES }));
    let encoded = |keys: &[KeyFilePublic]| String::from_utf8(public::encode(keys)).expect("text");
    let error = with(encoded(&[public.clone(), public.clone()]));
    assert!(matches!(error, KeyFileError::Duplicate { .. }));
    let of_each = |number: usize| KeyFilePublic {
        parameters_hash: B256::with_last_byte(number as u8),
        ..public.clone()
    };
    let most: Vec<KeyFilePublic> = (0..=MAX_KEYS).map(of_each).collect();
    assert!(matches!(with(encoded(&most)), KeyFileError::PublicDamaged { .. }));
    assert!(matches!(with(encoded(&most[1..])), KeyFileError::PublicDiffers { .. }));
    let other_proof = [9; 48];
    for other in [
        KeyFilePublic { member: 3, ..public.clone() },
        KeyFilePublic { parameters_hash: B256::ZERO, ..public.clone() },
        KeyFilePublic { proof_of_possession: other_proof, ..public.clone() },
    ] {
        let error = with(encoded(&[other]));
        assert!(matches!(&error, KeyFileError::PublicDiffers { path } if *path == beside), "{error}");
    }
    fs::write(&beside, &good).expect("written");
    assert!(open(&path, PASSWORD, &setting.parameters).is_ok());
    assert_eq!(read_public(&beside).expect("readable"), [public]);
}

#[test]
fn each_fault_has_its_own_error() {
    let mut setting = Setting::new();
    let written = setting.bytes();
    let (hash, own) = (setting.parameters_hash, &setting.parameters);
    let (other, _) = dealer::deal(4, 4, 3, &mut ChaCha20Rng::seed_from_u64(9)).expect("deals");
    let other_hash = B256::from(other.hash());
    for (bytes, cost_at) in [(written, MAGIC.len() + 1), (OLD.to_vec(), MAGIC.len() + 1 + CLEAR_BYTES)] {
        let open = |bytes: &[u8]| unsealed(bytes, PASSWORD);
        assert!(open(&bytes).is_ok());
        assert!(matches!(unsealed(&bytes, b"wrong"), Err(KeyFileError::WrongPassword)));
        assert!(matches!(unsealed(&bytes, b""), Err(KeyFileError::EmptyPassword)));
        fs::write(setting.path(), &bytes).expect("written");
        assert!(super::open(&setting.path(), PASSWORD, own).is_ok());
        assert!(matches!(
            super::open(&setting.path(), PASSWORD, &other),
            Err(KeyFileError::OtherParameters { expected, found }) if expected == other_hash && found == [hash]
        ));
        let mut newer = bytes.clone();
        newer[MAGIC.len()] = 3;
        assert!(matches!(open(&newer), Err(KeyFileError::UnsupportedVersion { found: 3 })));
        for position in MAGIC.len() + 1..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[position] ^= 1;
            assert!(matches!(open(&damaged), Err(KeyFileError::Damaged)), "byte {position}");
        }
        for length in MAGIC.len() + 2..bytes.len() {
            assert!(matches!(open(&bytes[..length]), Err(KeyFileError::Damaged)), "{length} bytes");
        }
        // With a right checksum, what is changed before the secrets is caught by the cipher: clear part, salt, nonce.
        for position in (MAGIC.len() + 1..cost_at).chain([cost_at + 12, cost_at + 12 + SALT_BYTES]) {
            let mut relabelled = bytes.clone();
            relabelled[position] ^= 1;
            let refused = open(&with_checksum(relabelled));
            assert!(matches!(refused, Err(KeyFileError::WrongPassword)), "byte {position}");
        }
        // One version under the other's name.
        let mut renamed = bytes.clone();
        renamed[MAGIC.len()] ^= VERSION ^ VERSION_WITH_CLEAR_PART;
        assert!(open(&with_checksum(renamed)).is_err());
        // A length that does not fit the file.
        let mut short = bytes.clone();
        short.remove(cost_at + HEAD_BYTES);
        assert!(matches!(open(&with_checksum(short)), Err(KeyFileError::Damaged)));
        // A cost that would exhaust memory.
        let mut costly = bytes;
        costly[cost_at..cost_at + 4].copy_from_slice(&u32::MAX.to_be_bytes());
        assert!(matches!(
            open(&with_checksum(costly)),
            Err(KeyFileError::CostOutOfBounds { cost }) if cost.memory_kib == u32::MAX
        ));
    }
    let open = |bytes: &[u8]| unsealed(bytes, PASSWORD);
    assert!(matches!(open(b"-----BEGIN KEY-----"), Err(KeyFileError::NotAKeyFile)));
    assert!(matches!(open(b""), Err(KeyFileError::NotAKeyFile)));
    assert!(matches!(open(MAGIC), Err(KeyFileError::Damaged)));
}

#[test]
fn shares_of_another_dealing_are_refused_before_a_batch_is() {
    let mut setting = Setting::new();
    let (_, mut keys) = dealer::deal(4, 4, 3, &mut ChaCha20Rng::seed_from_u64(9)).expect("deals");
    // The file names the right parameters; only the shares themselves say that they are others'.
    setting.member_key = keys.swap_remove(1);
    setting.create().expect("created");
    assert!(matches!(
        open(&setting.path(), PASSWORD, &setting.parameters),
        Err(KeyFileError::Shares(MemberKeyError::Mismatch { index: 2 }))
    ));
}

#[test]
fn creation_refuses_what_cannot_be_opened() {
    let mut setting = Setting::new();
    let path = setting.path();
    let mut make = |password: &[u8], cost| {
        create(
            &path,
            password,
            &setting.member_key,
            &setting.bls_key,
            setting.parameters_hash,
            cost,
            &mut setting.rng,
        )
    };
    assert!(matches!(make(b"", CHEAP), Err(KeyFileError::EmptyPassword)));
    for cost in [
        KeyFileCost { memory_kib: 7, ..CHEAP },
        KeyFileCost { memory_kib: MAX_MEMORY_KIB + 1, ..CHEAP },
        KeyFileCost { iterations: 0, ..CHEAP },
        KeyFileCost { iterations: MAX_ITERATIONS + 1, ..CHEAP },
        KeyFileCost { lanes: 0, ..CHEAP },
        KeyFileCost { lanes: MAX_LANES + 1, memory_kib: 1024, ..CHEAP },
        KeyFileCost { lanes: 2, memory_kib: 15, ..CHEAP },
    ] {
        assert!(matches!(make(PASSWORD, cost), Err(KeyFileError::CostOutOfBounds { .. })), "{cost:?}");
    }
    assert!(KeyFileCost::default().check().is_ok());
    assert!(!path.exists() && !public_path(&path).exists());
}

#[test]
fn secrets_that_contradict_the_clear_part_are_refused() {
    let setting = Setting::new();
    let own = KeyFilePublic::of(&setting.secrets());
    let open = |public: &KeyFilePublic| unsealed(&seal_with_clear_part(public, &setting), PASSWORD);
    assert!(open(&own).is_ok());
    let other_member = KeyFilePublic { member: 3, ..own.clone() };
    assert!(matches!(open(&other_member), Err(KeyFileError::Contents("another member index"))));
    let other_key = bls::SecretKey::generate(&[8; 32]).expect("32 bytes").public_key().to_bytes();
    let other_key = KeyFilePublic { bls_public_key: other_key, ..own };
    assert!(matches!(open(&other_key), Err(KeyFileError::Contents("another BLS key"))));
}

#[test]
fn secrets_have_one_encoding() {
    let (setting, stranger) = (Setting::new(), Setting::of(9, 3));
    let encoded = |setting: &Setting| {
        let shares = setting.member_key.encode();
        let length = u32::try_from(shares.len()).expect("short").to_be_bytes();
        [&length[..], &shares, setting.bls_key.to_bytes().as_slice()].concat()
    };
    let one = |bytes: &[u8]| match sealed::decode_one(bytes, B256::ZERO) {
        Err(KeyFileError::Contents(reason)) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(one(&[0, 0]), "too short");
    assert_eq!(one(&[0, 0, 0, 9, 1]), "too short");
    assert_eq!(one(&[0, 0, 0, 1, 1, 2, 3]), "too short");
    assert_eq!(one(&[&[0, 0, 0, 1, 1][..], &[0; 32]].concat()), "the shares do not decode");
    assert_eq!(one(&[&encoded(&setting)[..], &[0]].concat()), "wrong length");
    let shares = setting.member_key.encode();
    let length = u32::try_from(shares.len()).expect("short").to_be_bytes();
    assert_eq!(one(&[&length[..], &shares, &[0; 32]].concat()), "the BLS key does not decode");

    let (key, other) = (encoded(&setting), encoded(&stranger));
    let (hash, other_hash) = ([3; 32], [4; 32]);
    let all = |parts: &[&[u8]]| sealed::decode_all(&parts.concat());
    assert_eq!(all(&[&[1], &hash, &key]).expect("decodes").len(), 1);
    assert_eq!(all(&[&[2], &hash, &key, &other_hash, &key]).expect("decodes").len(), 2);
    for (parts, expected) in [
        (&[][..], "too short"),
        (&[&[0][..]], "no number of keys"),
        (&[&[65], &hash, &key], "no number of keys"),
        (&[&[2], &hash, &key], "too short"),
        (&[&[1], &hash, &key, &[0]], "wrong length"),
        (&[&[2], &hash, &key, &other_hash, &other], "keys of several members"),
    ] {
        let refused = all(parts);
        assert!(
            matches!(refused, Err(KeyFileError::Contents(reason)) if reason == expected),
            "{expected}: {refused:?}"
        );
    }
    let twice = all(&[&[2], &hash, &key, &hash, &key]);
    assert!(matches!(twice, Err(KeyFileError::Duplicate { parameters_hash }) if parameters_hash == hash));
}

#[test]
fn a_file_of_any_length_is_refused_in_bounded_memory() {
    let setting = Setting::new();
    let file = fs::File::create(setting.path()).expect("created");
    file.set_len(MAX_FILE_BYTES + 1).expect("sparse");
    assert!(matches!(read_public(&setting.path()), Err(KeyFileError::TooLarge { .. })));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        version in prop::option::of(prop::sample::select(vec![VERSION_WITH_CLEAR_PART, VERSION])),
    ) {
        let _ = public::parse(Path::new("p"), &bytes);
        let _ = sealed::decode_all(&bytes);
        let bytes = match version {
            Some(version) => [MAGIC.as_slice(), &[version], &bytes].concat(),
            None => bytes,
        };
        prop_assert!(Container::parse(&bytes).is_err());
        if bytes.len() > CHECKSUM_BYTES {
            let _ = Container::parse(&with_checksum(bytes));
        }
    }
}
