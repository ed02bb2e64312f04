//! What this machine has: files and keys. Nothing is written; a key is opened as its role opens it.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use alloy_primitives::Address;
use blindfold_bte::Parameters;
use blindfold_client::{KeySource, confidential::provers, keys::KeyError};
use blindfold_committee::key_file::{self, KeyFileError, KeyFilePublic};
use blindfold_protocol::{B256, ChainConfig};
use blindfold_runtime::{rng, wall_ms};
use blindfold_tls::{look_at_pair, look_at_roots};

use super::{
    finding::{Area, Finding},
    subject::{AccountUse, ConfidentialSubject, MemberSubject, Subject},
};
use crate::roles::{load_chain, load_deployment, read_parameters};

/// Permission bits of everybody but owner and group.
const OTHERS_READ: u32 = 0o004;
/// Who writes a key file or its password decides what the role signs with.
const NOT_ONLY_OWNER_WRITES: u32 = 0o022;

/// A certificate that expires sooner should be renewed.
const CERTIFICATE_WARNING_DAYS: u64 = 14;
const SECONDS_PER_DAY: u64 = 86_400;

/// What the checks of others go on from.
#[derive(Default)]
pub(super) struct Local {
    pub chain: Option<Arc<ChainConfig>>,
    pub parameters: Vec<(PathBuf, Parameters)>,
    pub accounts: Vec<OpenedAccount>,
    pub member: Option<KeyFilePublic>,
}

/// An account whose key opened.
#[derive(Clone, Copy)]
pub(super) struct OpenedAccount {
    pub setting: &'static str,
    pub is_for: AccountUse,
    pub address: Address,
}

/// Files and keys. Blocks, and takes as long as the passwords' cost.
pub(super) fn look(subject: &Subject, deep: bool) -> (Local, Vec<Finding>) {
    let mut looked = Looked::default();
    looked.chain(&subject.chain);
    for path in &subject.parameters {
        looked.parameters(path, deep);
    }
    if let Some(execution) = &subject.execution {
        let setting = "execution.jwt_secret";
        if looked.secret_file(setting, &execution.jwt_secret, Content::Plain)
            && let Err(fault) = execution.client()
        {
            let next = "write 64 hexadecimal digits into it (`openssl rand -hex 32`), the same for the execution client";
            looked.findings.push(Finding::error(Area::Files, setting, format!("{fault:#}"), next));
        }
    }
    if let Some(confidential) = &subject.confidential {
        looked.confidential(confidential);
    }
    looked.certificates(subject);
    for account in &subject.accounts {
        looked.account(account.setting, &account.source, account.is_for);
    }
    if let Some(member) = &subject.member {
        looked.member(member);
    }
    (looked.local, looked.findings)
}

/// Whether whoever reads a file has a secret at once, or needs a password, too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Plain,
    Encrypted,
}

#[derive(Default)]
struct Looked {
    local: Local,
    findings: Vec<Finding>,
    /// Secret files that were looked at, and whether they can be read: several keys may share a password.
    seen: Vec<(PathBuf, bool)>,
}

impl Looked {
    fn chain(&mut self, path: &Path) {
        match load_chain(path) {
            Ok(chain) => {
                let found = format!(
                    "{}: chain {} on L1 {}, inbox {}",
                    path.display(),
                    chain.chain_id,
                    chain.deployment.l1_chain_id,
                    chain.deployment.inbox
                );
                self.findings.push(Finding::ok(Area::Files, "chain", found));
                self.local.chain = Some(chain);
            }
            Err(fault) => {
                let next = "put the rollup.json of this deployment there, or correct `chain`; every party has the same file";
                self.findings.push(Finding::error(Area::Files, "chain", format!("{fault:#}"), next));
            }
        }
    }

    fn parameters(&mut self, path: &Path, deep: bool) {
        let checked = read_parameters(path).map_err(|fault| format!("{fault:#}")).and_then(|parameters| {
            if deep {
                let fault = |fault| format!("{} fails its checks: {fault}", path.display());
                parameters.check(&mut rng()).map_err(fault)?;
            }
            Ok(parameters)
        });
        match checked {
            Ok(parameters) => {
                let found = format!(
                    "{}: hash {}, {} of {} members, B = {}{}",
                    path.display(),
                    B256::from(parameters.hash()),
                    parameters.threshold(),
                    parameters.members(),
                    parameters.max_batch(),
                    if deep { ", equations hold" } else { "" }
                );
                self.findings.push(Finding::ok(Area::Files, "parameters", found));
                self.local.parameters.push((path.to_owned(), parameters));
            }
            Err(found) => {
                let next = "fetch the parameter file again (L1 registers its hash), or correct `parameters`";
                self.findings.push(Finding::error(Area::Files, "parameters", found, next));
            }
        }
    }

    fn confidential(&mut self, subject: &ConfidentialSubject) {
        let ConfidentialSubject { deployment, keys_dir, insecure } = subject;
        let keys = load_deployment(deployment).map(|deployment| deployment.keys);
        let keys = match keys {
            Ok(keys) => {
                let found = format!("{} names the keys of {} circuits", deployment.display(), keys.len());
                self.findings.push(Finding::ok(Area::Files, "deployment", found));
                keys
            }
            Err(fault) => {
                let next = "put the confidential.json of this deployment there, or correct `deployment`";
                self.findings.push(Finding::error(Area::Files, "deployment", format!("{fault:#}"), next));
                return;
            }
        };
        self.findings.push(match provers::verifiers(keys_dir, &keys, *insecure) {
            Ok(_) => {
                Finding::ok(Area::Files, "keys_dir", format!("{}: the verifying keys are those", keys_dir.display()))
            }
            Err(fault) => {
                let next = "put the deployment's verifying keys into `keys_dir`; insecure_development_setup = true takes \
                            development keys";
                Finding::error(Area::Files, "keys_dir", fault, next)
            }
        });
    }

    /// What this role shows over TLS, and whom it trusts.
    fn certificates(&mut self, subject: &Subject) {
        let tls = &subject.tls;
        if let Some(file) = &tls.ca_file {
            self.authorities("tls.ca_file", file);
        }
        match tls.pair() {
            Ok(None) => {}
            Ok(Some((cert, key))) => self.pair("tls", cert, key),
            Err(fault) => {
                self.findings.push(Finding::error(Area::Settings, "tls", fault, "correct the section [tls]"));
            }
        }
        for listener in &subject.listeners {
            let setting = listener.setting;
            self.pair(setting, &listener.files.cert_file, &listener.files.key_file);
            if let Some(file) = &listener.files.client_ca_file {
                self.authorities(&format!("{setting}.client_ca_file"), file);
            }
        }
    }

    fn authorities(&mut self, setting: &str, file: &Path) {
        self.findings.push(match look_at_roots(file) {
            Ok(count) => {
                Finding::ok(Area::Files, setting, format!("{}: {count} authorities", file.display()))
            }
            Err(fault) => Finding::error(Area::Files, setting, fault, format!("correct `{setting}`")),
        });
    }

    fn pair(&mut self, setting: &str, cert: &Path, key: &Path) {
        if !self.secret_file(&format!("{setting}.key_file"), key, Content::Plain) {
            return;
        }
        let subject = format!("{setting}.cert_file");
        let renew = "renew it; a running role reads the files again within seconds, or at SIGHUP";
        self.findings.push(match look_at_pair(cert, key) {
            Err(fault) => {
                let next = format!("correct `{setting}.cert_file` and `{setting}.key_file`");
                Finding::error(Area::Keys, subject, fault, next)
            }
            Ok(facts) => {
                let now = wall_ms() / 1_000;
                let days = facts.not_after.saturating_sub(now) / SECONDS_PER_DAY;
                let shown = cert.display();
                if now < facts.not_before {
                    let next = "see whether this machine's clock is right, or wait";
                    Finding::error(Area::Keys, subject, format!("{shown} does not count yet"), next)
                } else if facts.not_after < now {
                    Finding::error(Area::Keys, subject, format!("{shown} has expired"), renew)
                } else if days < CERTIFICATE_WARNING_DAYS {
                    Finding::warning(Area::Keys, subject, format!("{shown} expires in {days} days"), renew)
                } else {
                    let found = format!("{shown}: its key fits, it expires in {days} days");
                    Finding::ok(Area::Keys, subject, found)
                }
            }
        });
    }

    /// Looks at a file that holds a secret; whether it can be read.
    fn secret_file(&mut self, setting: &str, path: &Path, content: Content) -> bool {
        if let Some((_, readable)) = self.seen.iter().find(|(seen, _)| seen == path) {
            return *readable;
        }
        let finding = secret_file(setting, path, content);
        let readable = path.is_file() && fs::File::open(path).is_ok();
        self.seen.push((path.to_owned(), readable));
        self.findings.push(finding);
        readable
    }

    /// Looks at a key file and its password's; whether it makes sense to open the key.
    fn key_files(&mut self, setting: &'static str, source: &KeySource) -> bool {
        let key = self.secret_file(&format!("{setting}.file"), &source.file, Content::Encrypted);
        let password = source.password_file.as_ref();
        let password = password
            .is_none_or(|path| self.secret_file(&format!("{setting}.password_file"), path, Content::Plain));
        if !(key && password) {
            let next = "see to its files first";
            self.findings.push(Finding::not_checked(Area::Keys, setting, "the key was not opened", next));
        }
        key && password
    }

    fn account(&mut self, setting: &'static str, source: &KeySource, is_for: AccountUse) {
        if !self.key_files(setting, source) {
            return;
        }
        self.findings.push(match source.open() {
            Ok(key) => {
                let address = key.address();
                self.local.accounts.push(OpenedAccount { setting, is_for, address });
                Finding::ok(Area::Keys, setting, format!("opens: {address}"))
            }
            Err(fault) => {
                let next = match &fault {
                    KeyError::NotAKeyFile { .. } | KeyError::NotAKey => {
                        format!(
                            "name an Ethereum key file in `{setting}.file` (`blindfold wallet new` makes one)"
                        )
                    }
                    _ => password_advice(setting),
                };
                Finding::error(Area::Keys, setting, fault, next)
            }
        });
    }

    fn member(&mut self, subject: &MemberSubject) {
        if !self.key_files("key", &subject.source) {
            return;
        }
        let Some((_, parameters)) = self.local.parameters.first() else {
            let next = "correct `parameters` first: the key is checked against them";
            self.findings.push(Finding::not_checked(Area::Keys, "key", "the key was not opened", next));
            return;
        };
        let opened = match subject.source.password() {
            Ok(password) => key_file::open(&subject.source.file, password.as_bytes(), parameters),
            Err(fault) => {
                self.findings.push(Finding::error(Area::Keys, "key", fault, password_advice("key")));
                return;
            }
        };
        let public = match opened {
            Ok(opened) => opened.public.clone(),
            Err(fault) => {
                let next = match &fault {
                    KeyFileError::WrongPassword | KeyFileError::EmptyPassword => password_advice("key"),
                    KeyFileError::OtherParameters { .. } | KeyFileError::PublicOtherParameters { .. } => {
                        "name the file of the key's own dealing in `parameters`, or add the key of these with \
                         `blindfold committee key add`"
                            .to_owned()
                    }
                    KeyFileError::PublicMissing { .. }
                    | KeyFileError::PublicDiffers { .. }
                    | KeyFileError::PublicDamaged { .. } => {
                        format!("run `blindfold committee key public {}`", subject.source.file.display())
                    }
                    _ => "restore the member's two key files from their backup, or correct `key.file`".to_owned(),
                };
                self.findings.push(Finding::error(Area::Keys, "key", fault, next));
                return;
            }
        };
        let found = format!("opens: member {} of parameters {}", public.member, public.parameters_hash);
        self.findings.push(Finding::ok(Area::Keys, "key", found));
        if let Err(fault) = subject.config.check(public.member) {
            let next = "correct that setting; docs/operate.md has its range";
            self.findings.push(Finding::error(Area::Settings, "member", format!("member.{fault}"), next));
        }
        self.local.member = Some(public);
    }
}

fn password_advice(setting: &str) -> String {
    format!(
        "put the password into the first line of `{setting}.password_file`, or into the variable that \
         `{setting}.password_env` names, here as where the role runs"
    )
}

/// Who may read and replace a file with a secret.
pub(super) fn secret_file(setting: &str, path: &Path, content: Content) -> Finding {
    let shown = path.display();
    let correct = format!("correct `{setting}`, or put the file there");
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(fault) => return Finding::error(Area::Files, setting, format!("{shown}: {fault}"), correct),
    };
    if metadata.is_dir() {
        return Finding::error(Area::Files, setting, format!("{shown} is a folder"), correct);
    }
    if !metadata.is_file() {
        let found = format!("{shown} is no regular file: it may be for the role alone to read");
        return Finding::not_checked(Area::Files, setting, found, "see that the role itself can read it");
    }
    if let Err(fault) = fs::File::open(path) {
        let next = match fault.kind() {
            io::ErrorKind::PermissionDenied => {
                format!("run this as the role's user, or make that user the owner of {shown}")
            }
            _ => correct,
        };
        return Finding::error(Area::Files, setting, format!("{shown}: {fault}"), next);
    }
    let mode = metadata.permissions().mode() & 0o7777;
    let found = format!("{shown}, mode {mode:04o}");
    if mode & OTHERS_READ != 0 && content == Content::Plain {
        let next = format!("run `chmod o-rwx {shown}`, and change the secret if others use this machine");
        return Finding::error(
            Area::Files,
            setting,
            format!("{found}: everybody here can read the secret"),
            next,
        );
    }
    if mode & OTHERS_READ != 0 {
        let next = format!("run `chmod o-rwx {shown}`");
        return Finding::warning(
            Area::Files,
            setting,
            format!("{found}: everybody here can try passwords on it"),
            next,
        );
    }
    if mode & NOT_ONLY_OWNER_WRITES != 0 {
        let next = format!("run `chmod go-w {shown}`");
        return Finding::warning(
            Area::Files,
            setting,
            format!("{found}: not its owner alone can replace it"),
            next,
        );
    }
    Finding::ok(Area::Files, setting, found)
}

#[cfg(test)]
#[path = "local_tests.rs"]
mod tests;
