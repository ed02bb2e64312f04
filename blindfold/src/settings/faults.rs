//! Everything that is wrong with a role's settings at once, where its start names the first thing only.
//!
//! The settings types refuse the first key that they cannot take. Here it is noted, taken out or replaced, and the rest is
//! read again. Values are not repeated in what is said: a URL may hold a secret.

use std::collections::BTreeMap;

use config::{ConfigError, Value, ValueKind};
use serde::de::DeserializeOwned;

use super::{SettingsArgs, renamed_in, sources};

/// So many faults are looked for.
const MAX_FAULTS: usize = 32;
/// So many of the keys that are known are named beside one that is not.
const MAX_NAMED_KEYS: usize = 8;

/// What is wrong with a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The sources of the settings cannot be read at all.
    Unreadable,
    /// It has to be there.
    Missing,
    /// There is no such key.
    Unknown,
    /// Its value is not one.
    Unusable,
}

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingFault {
    /// Its key, with dots; empty where the sources cannot be read.
    pub key: String,
    /// What kind of fault it is.
    pub kind: FaultKind,
    /// The same in words, without the value.
    pub what: String,
}

/// A role's settings, as far as they can be read.
#[derive(Debug)]
pub struct Examined<T> {
    /// The settings: without what is unknown, and only if nothing is missing or of the wrong kind.
    pub settings: Option<T>,
    /// What is wrong.
    pub faults: Vec<SettingFault>,
}

/// Reads a role's settings as [`load`](super::load) does, and names all that is wrong with them.
pub fn examine<T: DeserializeOwned>(role: &str, args: &SettingsArgs) -> Examined<T> {
    let unreadable = |what: String| Examined {
        settings: None,
        faults: vec![SettingFault { key: String::new(), kind: FaultKind::Unreadable, what }],
    };
    let value = match sources(role, args) {
        Ok(builder) => builder.build().map(|built| built.cache),
        Err(fault) => return unreadable(format!("{fault:#}")),
    };
    match value {
        Ok(value) => examined(value),
        Err(fault) => unreadable(first_and_last_line(&fault.to_string())),
    }
}

/// TOML's errors show the line, which may hold a secret: place and reason are enough.
fn first_and_last_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    match lines.next_back() {
        Some(last) => format!("{first}: {last}"),
        None => first.to_owned(),
    }
}

fn examined<T: DeserializeOwned>(mut value: Value) -> Examined<T> {
    let mut faults: Vec<SettingFault> = Vec::new();
    // By key, how many stand-ins were tried there. In which order keys are read, nobody knows.
    let mut tried: BTreeMap<String, usize> = BTreeMap::new();
    while faults.len() < MAX_FAULTS {
        let fault = match T::deserialize(value.clone()) {
            Ok(settings) => return Examined { settings: tried.is_empty().then_some(settings), faults },
            Err(error) => SettingFault::from(&error),
        };
        let key = fault.key.clone();
        let goes_on = if fault.kind == FaultKind::Unknown {
            take_out(&mut value, &key)
        } else {
            let next = tried.entry(key.clone()).or_default();
            let stand_in = stand_ins().nth(*next);
            *next += 1;
            stand_in.is_some_and(|kind| put(&mut value, &key, Value::new(None, kind)))
        };
        if faults.iter().all(|known| known.key != key) {
            faults.push(fault);
        }
        if !goes_on {
            break;
        }
    }
    Examined { settings: None, faults }
}

/// What is put in the place of a setting that is missing or of the wrong kind, one after the other until its type takes it,
/// so that the others are read, too.
fn stand_ins() -> impl Iterator<Item = ValueKind> {
    let texts = ["http://127.0.0.1:1".to_owned(), "127.0.0.1:1".to_owned(), format!("0x{}", "0".repeat(40))];
    let plain = [ValueKind::Table(config::Map::new()), ValueKind::Array(Vec::new()), ValueKind::I64(1)];
    plain.into_iter().chain(texts.into_iter().map(ValueKind::String))
}

impl From<&ConfigError> for SettingFault {
    fn from(error: &ConfigError) -> Self {
        let fault = Self::of(error);
        Self { key: dotted(&fault.key), ..fault }
    }
}

impl SettingFault {
    fn of(error: &ConfigError) -> Self {
        match error {
            ConfigError::NotFound(key) => {
                Self { key: key.clone(), what: "is missing".to_owned(), kind: FaultKind::Missing }
            }
            ConfigError::Type { unexpected, expected, key, .. } => {
                // Without the value.
                let given = unexpected.to_string();
                let given = given.split(['`', '"']).next().unwrap_or_default().trim().to_owned();
                let what = format!("is a {given}, expected {expected}");
                Self { key: key.clone().unwrap_or_default(), what, kind: FaultKind::Unusable }
            }
            ConfigError::At { error, key, .. } => {
                let inner = Self::of(error);
                let key = key.clone().unwrap_or_default();
                Self { key: joined(&key, &inner.key), ..inner }
            }
            other => Self::said(&other.to_string()),
        }
    }

    /// From serde's own words.
    fn said(text: &str) -> Self {
        let unknown = text.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`'));
        if let Some((name, what)) = renamed_in(text) {
            return Self { key: name.to_owned(), what: what.to_owned(), kind: FaultKind::Unknown };
        }
        if let Some((name, rest)) = unknown {
            let mut known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
            let more = known.len().saturating_sub(MAX_NAMED_KEYS);
            known.truncate(MAX_NAMED_KEYS);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let what = format!("is no key; there are {}{more}", known.join(", "));
            return Self { key: name.to_owned(), what, kind: FaultKind::Unknown };
        }
        let missing = text.strip_prefix("missing field `").and_then(|rest| rest.split_once('`'));
        if let Some((name, _)) = missing {
            return Self { key: name.to_owned(), what: "is missing".to_owned(), kind: FaultKind::Missing };
        }
        // What stands between quotation marks is a value.
        let parts: Vec<&str> = text.split('"').step_by(2).collect();
        Self { key: String::new(), what: parts.join("…"), kind: FaultKind::Unusable }
    }
}

fn joined(outer: &str, inner: &str) -> String {
    let dot = if outer.is_empty() || inner.is_empty() || inner.starts_with('[') { "" } else { "." };
    format!("{outer}{dot}{inner}")
}

/// `members[0]url` as `members[0].url`.
fn dotted(key: &str) -> String {
    key.replace(']', "].").replace("].[", "][").replace("]..", "].").trim_end_matches('.').to_owned()
}

/// `members[0].url` as `members`, `[0]`, `url`.
fn steps(key: &str) -> impl Iterator<Item = &str> {
    key.split('.').flat_map(|part| {
        let list = part.find('[').unwrap_or(part.len());
        let (name, indices) = part.split_at(list);
        std::iter::once(name).chain(indices.split_inclusive(']')).filter(|step| !step.is_empty())
    })
}

fn index(step: &str) -> Option<usize> {
    step.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

/// The value at `key`'s parent, and the last step to it.
fn parent<'a, 'k>(value: &'a mut Value, key: &'k str) -> Option<(&'a mut Value, &'k str)> {
    let steps: Vec<&str> = steps(key).collect();
    let (last, before) = steps.split_last()?;
    let mut at = value;
    for step in before {
        at = match &mut at.kind {
            ValueKind::Table(table) => table.get_mut(*step)?,
            ValueKind::Array(list) => list.get_mut(index(step)?)?,
            _ => return None,
        };
    }
    Some((at, last))
}

fn take_out(value: &mut Value, key: &str) -> bool {
    match parent(value, key) {
        Some((Value { kind: ValueKind::Table(table), .. }, name)) => table.remove(name).is_some(),
        _ => false,
    }
}

fn put(value: &mut Value, key: &str, new: Value) -> bool {
    match parent(value, key) {
        Some((Value { kind: ValueKind::Table(table), .. }, name)) => {
            table.insert(name.to_owned(), new);
            true
        }
        Some((Value { kind: ValueKind::Array(list), .. }, step)) => {
            match index(step).and_then(|index| list.get_mut(index)) {
                Some(place) => {
                    *place = new;
                    true
                }
                None => false,
            }
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::{CommitteeSettings, SequencerSettings};

    fn all<T: DeserializeOwned>(file: &str, overrides: &[&str]) -> (bool, Vec<(String, String)>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("role.toml");
        std::fs::write(&path, file).unwrap();
        let overrides = overrides.iter().map(|&entry| entry.to_owned()).collect();
        let found = examine::<T>("faults-test", &SettingsArgs { config: Some(path), overrides });
        let faults = found.faults.into_iter().map(|fault| (fault.key, fault.what));
        (found.settings.is_some(), faults.collect())
    }

    const MEMBER: &str = "chain = 'rollup.json'\nparameters = 'parameters.bin'\ndata_dir = 'd'\n[l1]\nurl = 'http://a'\n\
        [key]\nfile = 'k'\n[member]\n";

    #[test]
    fn right_settings_have_no_faults() {
        assert_eq!(all::<CommitteeSettings>(MEMBER, &[]), (true, Vec::new()));
    }

    #[test]
    fn every_fault_is_named_with_its_key_and_without_its_value() {
        let file = "parameters = ['p']\nchains = 'rollup.json'\n[l1]\nurl = 'http://user:hunter2@a'\npoll = 5\n\
            [execution]\nhttp_url = 'http://b'\nengine_url = 'http://b'\n[signing_key]\nfile = 'k'\n\
            [sequencer]\nrpc_addr = 'nowhere-hunter2'\n[[sequencer.members]]\nmember = 'hunter2'\nurl = 'http://c'\nurls = 1\n\
            [sequencer.sealing]\nslot_ms = 'hunter2'";
        let (whole, mut faults) = all::<SequencerSettings>(file, &[]);
        assert!(!whole);
        assert!(!format!("{faults:?}").contains("hunter2"), "{faults:?}");
        faults.sort();
        let keys: Vec<&str> = faults.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(
            keys,
            [
                "chain",
                "chains",
                "execution.jwt_secret",
                "l1.poll",
                "sequencer.members[0].member",
                "sequencer.members[0].urls",
                "sequencer.rpc_addr",
                "sequencer.sealing.slot_ms",
            ],
            "{faults:?}"
        );
        let of = |name: &str| faults.iter().find(|(key, _)| key == name).map(|(_, what)| what.as_str());
        assert_eq!(of("chain"), Some("is missing"));
        assert_eq!(
            of("l1.poll"),
            Some(
                "is no key; there are url, poll_interval_ms, beacon_url, archive_urls, max_transaction_fee_gwei"
            )
        );
        assert_eq!(of("sequencer.sealing.slot_ms"), Some("is a string, expected an integer"));
    }

    #[test]
    fn an_unknown_key_alone_leaves_the_rest_usable() {
        let (whole, faults) = all::<CommitteeSettings>(MEMBER, &["member.limit=1", "l1.url=http://b"]);
        assert!(whole);
        assert_eq!(faults.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["member.limit"]);
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_line_and_without_what_stands_there() {
        let (whole, faults) = all::<CommitteeSettings>("[l1]\nurl = http://user:hunter2@a\n", &[]);
        assert!(!whole && faults.len() == 1, "{faults:?}");
        assert!(faults[0].1.contains("line 2") && !faults[0].1.contains("hunter2"), "{faults:?}");
    }
}
