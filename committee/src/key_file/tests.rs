use std::os::unix::fs::PermissionsExt;

use blindfold_bte::dealer;
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::*;

/// As cheap as allowed: these tests are not about the cost.
const CHEAP: KeyFileCost = KeyFileCost { memory_kib: 8, iterations: 1, lanes: 1 };
const PASSWORD: &[u8] = b"correct horse";

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
        let mut rng = ChaCha20Rng::seed_from_u64(8);
        let (parameters, mut keys) = dealer::deal(4, 4, 3, &mut rng).expect("deals");
        let bls_key = bls::SecretKey::generate(&[7; 32]).expect("32 bytes");
        Self {
            folder: tempfile::tempdir().expect("folder"),
            parameters_hash: B256::from(parameters.hash()),
            parameters,
            member_key: keys.swap_remove(1),
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

    fn bytes(&mut self) -> Vec<u8> {
        self.create().expect("created");
        std::fs::read(self.path()).expect("readable")
    }
}

/// Puts the right checksum under changed bytes.
fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let body = bytes.len() - CHECKSUM_BYTES;
    let checksum = Sha256::digest(&bytes[..body]);
    bytes[body..].copy_from_slice(&checksum);
    bytes
}

#[test]
fn what_is_written_opens_again() {
    let mut setting = Setting::new();
    let public = setting.create().expect("created");
    assert_eq!(public.member, 2);
    assert_eq!(read_public(&setting.path()).expect("readable"), public);
    let key = bls::PublicKey::from_bytes(&public.bls_public_key).expect("a key");
    let proof = bls::Signature::from_bytes(&public.proof_of_possession).expect("a signature");
    key.verify_possession(&proof).expect("possession");

    let opened = open(&setting.path(), PASSWORD, &setting.parameters).expect("opens");
    assert_eq!(opened.public, public);
    assert_eq!(*opened.member_key.encode(), *setting.member_key.encode());
    assert_eq!(*opened.bls_key.to_bytes(), *setting.bls_key.to_bytes());
    let shown = format!("{opened:?}");
    assert!(!shown.contains("bls_key") && !shown.contains("member_key"), "{shown}");

    let mode = std::fs::metadata(setting.path()).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let names: Vec<_> = std::fs::read_dir(setting.folder.path()).expect("readable").collect();
    assert_eq!(names.len(), 1, "no unfinished file is left");
}

#[test]
fn a_key_is_never_overwritten() {
    let mut setting = Setting::new();
    let before = setting.bytes();
    assert!(matches!(setting.create(), Err(KeyFileError::Exists { path }) if path == setting.path()));
    assert_eq!(std::fs::read(setting.path()).expect("readable"), before);
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
fn each_fault_has_its_own_error() {
    let mut setting = Setting::new();
    let bytes = setting.bytes();
    let (hash, own) = (setting.parameters_hash, &setting.parameters);
    let open = |bytes: &[u8]| open_bytes(bytes, PASSWORD, own);

    assert!(matches!(open_bytes(&bytes, b"wrong", own), Err(KeyFileError::WrongPassword)));
    assert!(matches!(open_bytes(&bytes, b"", own), Err(KeyFileError::EmptyPassword)));
    let (other, _) = dealer::deal(4, 4, 3, &mut ChaCha20Rng::seed_from_u64(9)).expect("deals");
    let other_hash = B256::from(other.hash());
    assert!(matches!(
        open_bytes(&bytes, PASSWORD, &other),
        Err(KeyFileError::OtherParameters { expected, found }) if expected == other_hash && found == hash
    ));
    assert!(matches!(open(b"-----BEGIN KEY-----"), Err(KeyFileError::NotAKeyFile)));
    assert!(matches!(open(b""), Err(KeyFileError::NotAKeyFile)));
    let mut newer = bytes.clone();
    newer[MAGIC.len()] = 2;
    assert!(matches!(open(&newer), Err(KeyFileError::UnsupportedVersion { found: 2 })));
    assert!(matches!(open(MAGIC), Err(KeyFileError::Damaged)));
    for position in MAGIC.len() + 1..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1;
        assert!(matches!(open(&damaged), Err(KeyFileError::Damaged)), "byte {position}");
    }
    for length in MAGIC.len() + 2..bytes.len() {
        assert!(matches!(open(&bytes[..length]), Err(KeyFileError::Damaged)), "{length} bytes");
    }
    // With a right checksum, a changed clear part is caught by the cipher.
    let mut relabelled = bytes.clone();
    relabelled[MAGIC.len() + 2] ^= 1;
    assert!(matches!(open(&with_checksum(relabelled)), Err(KeyFileError::WrongPassword)));
    // A length that does not fit the file.
    let mut short = bytes.clone();
    short.remove(PUBLIC_BYTES + 10);
    assert!(matches!(open(&with_checksum(short)), Err(KeyFileError::Damaged)));
    // A cost that would exhaust memory.
    let mut costly = bytes;
    let cost_at = PUBLIC_BYTES - NONCE_BYTES - SALT_BYTES - 12;
    costly[cost_at..cost_at + 4].copy_from_slice(&u32::MAX.to_be_bytes());
    assert!(matches!(
        open(&with_checksum(costly)),
        Err(KeyFileError::CostOutOfBounds { cost }) if cost.memory_kib == u32::MAX
    ));
}

#[test]
fn shares_of_another_dealing_are_refused_before_a_batch_is() {
    let mut setting = Setting::new();
    let (_, mut keys) = dealer::deal(4, 4, 3, &mut ChaCha20Rng::seed_from_u64(9)).expect("deals");
    // The clear part names the right parameters; only the shares themselves say that they are others'.
    setting.member_key = keys.swap_remove(1);
    let bytes = setting.bytes();
    assert!(matches!(
        open_bytes(&bytes, PASSWORD, &setting.parameters),
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
    assert!(!path.exists());
}

#[test]
fn secrets_that_contradict_the_clear_part_are_refused() {
    let setting = Setting::new();
    let own = KeyFilePublic {
        member: 2,
        parameters_hash: setting.parameters_hash,
        bls_public_key: setting.bls_key.public_key().to_bytes(),
        proof_of_possession: setting.bls_key.prove_possession().to_bytes(),
    };
    let open = |public: &KeyFilePublic| {
        let bytes = seal(public, &setting.member_key, &setting.bls_key, PASSWORD, CHEAP, &[1; 16], &[2; 24])
            .expect("sealed");
        open_bytes(&bytes, PASSWORD, &setting.parameters)
    };
    assert!(open(&own).is_ok());
    let other_member = KeyFilePublic { member: 3, ..own.clone() };
    assert!(matches!(open(&other_member), Err(KeyFileError::Contents("another member index"))));
    let other_key = bls::SecretKey::generate(&[8; 32]).expect("32 bytes").public_key().to_bytes();
    let other_key = KeyFilePublic { bls_public_key: other_key, ..own };
    assert!(matches!(open(&other_key), Err(KeyFileError::Contents("another BLS key"))));

    let reason = |bytes: &[u8]| match decode_secrets(bytes) {
        Err(KeyFileError::Contents(reason)) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(&[0, 0]), "too short");
    assert_eq!(reason(&[0, 0, 0, 9, 1]), "too short");
    assert_eq!(reason(&[0, 0, 0, 1, 1, 2, 3]), "wrong length");
    assert_eq!(reason(&[&[0, 0, 0, 1, 1][..], &[0; 32]].concat()), "the shares do not decode");
    let shares = setting.member_key.encode();
    let length = u32::try_from(shares.len()).expect("short").to_be_bytes();
    assert_eq!(reason(&[&length[..], &shares, &[0; 32]].concat()), "the BLS key does not decode");
}

#[test]
fn a_file_of_any_length_is_refused_in_bounded_memory() {
    let setting = Setting::new();
    let file = File::create(setting.path()).expect("created");
    file.set_len(MAX_FILE_BYTES + 1).expect("sparse");
    assert!(matches!(read_public(&setting.path()), Err(KeyFileError::TooLarge)));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), prefixed: bool) {
        let bytes = if prefixed { [MAGIC.as_slice(), &[VERSION], &bytes].concat() } else { bytes };
        prop_assert!(Container::parse(&bytes).is_err());
        if bytes.len() > CHECKSUM_BYTES {
            let _ = Container::parse(&with_checksum(bytes));
        }
    }
}
