//! Files and keys of one machine.

use blindfold_certificates::{Authority, Pair, Said};
use blindfold_client::keys;
use blindfold_runtime::rng;
use tempfile::TempDir;

use super::*;
use crate::doctor::finding::Level;

fn file(dir: &TempDir, name: &str, mode: u32) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, "secret").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

#[test]
fn who_may_read_and_replace_a_secret_is_told() {
    let dir = tempfile::tempdir().unwrap();
    for (mode, plain, encrypted) in [
        (0o600, Level::Ok, Level::Ok),
        (0o400, Level::Ok, Level::Ok),
        (0o640, Level::Ok, Level::Ok),
        (0o644, Level::Error, Level::Warning),
        (0o660, Level::Warning, Level::Warning),
    ] {
        let path = file(&dir, &format!("{mode:o}"), mode);
        assert_eq!(secret_file("key.file", &path, Content::Plain).level, plain, "{mode:o}");
        let key = secret_file("key.file", &path, Content::Encrypted);
        assert_eq!(key.level, encrypted, "{mode:o}");
        assert!(key.level == Level::Ok || key.next.is_some_and(|next| next.starts_with("run `chmod ")));
    }
    let missing = secret_file("key.file", &dir.path().join("none"), Content::Plain);
    assert!(missing.level == Level::Error && missing.next.is_some_and(|next| next.contains("`key.file`")));
    assert_eq!(secret_file("key.file", dir.path(), Content::Plain).level, Level::Error);
    assert_eq!(secret_file("key.file", Path::new("/dev/null"), Content::Plain).level, Level::NotChecked);
}

#[test]
fn a_key_opens_or_its_fault_has_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key.json");
    let key = keys::create(&path, "right").unwrap();
    let source = |password: &str, file: &Path| {
        let at = dir.path().join("password");
        fs::write(&at, password).unwrap();
        fs::set_permissions(&at, fs::Permissions::from_mode(0o600)).unwrap();
        KeySource { file: file.to_owned(), password_file: Some(at), password_env: None }
    };
    let look = |source: &KeySource| {
        let mut looked = Looked::default();
        looked.account("posting_key", source, AccountUse::PaysL1);
        let address = looked.local.accounts.first().map(|account| account.address);
        (looked.findings.pop().unwrap(), address)
    };
    let (opened, address) = look(&source("right\nrest", &path));
    assert_eq!((opened.level, address), (Level::Ok, Some(key.address())));
    let (wrong, none) = look(&source("wrong", &path));
    assert_eq!((wrong.level, none), (Level::Error, None));
    assert!(wrong.next.is_some_and(|next| next.contains("`posting_key.password_file`")));
    let (no_key, _) = look(&source("right", &file(&dir, "other", 0o600)));
    assert!(no_key.next.is_some_and(|next| next.contains("`posting_key.file`")));
    let (missing, _) = look(&source("right", &dir.path().join("none")));
    assert_eq!(missing.level, Level::NotChecked);
    let no_password = KeySource { file: path, password_file: None, password_env: None };
    let (no_password, _) = look(&no_password);
    assert!(no_password.level == Level::Error && no_password.found.starts_with("no password for"));
}

#[test]
fn parameters_decode_and_their_equations_are_checked_when_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let (parameters, _) = blindfold_bte::dealer::deal(2, 3, 2, &mut rng()).unwrap();
    let path = dir.path().join("parameters.bin");
    fs::write(&path, parameters.encode()).unwrap();
    let look = |path: &Path, deep| {
        let mut looked = Looked::default();
        looked.parameters(path, deep);
        looked.findings.pop().unwrap()
    };
    let fine = look(&path, true);
    assert!(
        fine.level == Level::Ok && fine.found.ends_with("2 of 3 members, B = 2, equations hold"),
        "{fine:?}"
    );
    assert_eq!(look(&path, false).level, Level::Ok);
    assert_eq!(look(&file(&dir, "none.bin", 0o600), false).level, Level::Error);
}

#[test]
fn a_coprocessor_without_its_deployment_is_told_what_to_put_where() {
    let dir = tempfile::tempdir().unwrap();
    let look = |deployment: PathBuf| {
        let subject = ConfidentialSubject { deployment, keys_dir: dir.path().to_owned(), insecure: false };
        let mut looked = Looked::default();
        looked.confidential(&subject);
        looked.findings
    };
    for deployment in [dir.path().join("none.json"), file(&dir, "confidential.json", 0o600)] {
        let [finding] = look(deployment).try_into().unwrap();
        assert_eq!((finding.level, finding.subject.as_str()), (Level::Error, "deployment"));
        assert!(finding.next.is_some_and(|next| next.contains("confidential.json of this deployment")));
    }
}

#[test]
fn certificates_that_expire_or_do_not_fit_are_told() {
    let authority = Authority::new();
    let look = |pair: &Pair| {
        let mut looked = Looked::default();
        looked.pair("sequencer.inbound.tls", &pair.cert_file, &pair.key_file);
        let finding = looked.findings.pop().unwrap();
        assert_eq!(finding.subject, "sequencer.inbound.tls.cert_file");
        (finding.level, finding.found)
    };
    for (days, level, words) in [
        (-1, Level::Error, "has expired"),
        (13, Level::Warning, "expires in 13 days"),
        (14, Level::Ok, "expires in 14 days"),
    ] {
        let pair = authority.pair(&format!("days{days}"), Said { days, ..Said::default() });
        let (found, text) = look(&pair);
        assert!(found == level && text.contains(words), "{days}: {text}");
    }
    let (one, two) = (authority.pair("one", Said::default()), authority.pair("two", Said::default()));
    let (level, found) = look(&Pair { key_file: two.key_file, ..one.clone() });
    assert!(level == Level::Error && found.contains("is not that of the certificate"), "{found}");
    fs::set_permissions(&one.key_file, fs::Permissions::from_mode(0o644)).unwrap();
    let mut looked = Looked::default();
    looked.pair("tls", &one.cert_file, &one.key_file);
    assert_eq!(looked.findings[0].level, Level::Error, "everybody can read the key");
    looked.authorities("tls.ca_file", &authority.ca_file());
    looked.authorities("tls.ca_file", &one.key_file);
    assert_eq!(
        looked.findings.iter().rev().take(2).map(|finding| finding.level).collect::<Vec<_>>(),
        [Level::Error, Level::Ok]
    );
}
