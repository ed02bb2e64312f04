//! One role's settings: flags over environment over one TOML file, in that order of precedence.
//!
//! | source | form | example |
//! |---|---|---|
//! | flag | `--set key=value`, dots for nesting | `--set sequencer.rpc_addr=127.0.0.1:9545` |
//! | environment | `BLINDFOLD_<ROLE>__<KEY>`, `__` for nesting | `BLINDFOLD_SEQUENCER__SEQUENCER__RPC_ADDR=…` |
//! | file | `--config role.toml` | `[sequencer]` `rpc_addr = "…"` |
//!
//! Unknown keys are refused by the settings types themselves. Secrets never stand in any of the three: a setting names
//! the file that holds them.

mod faults;

use std::path::PathBuf;

use anyhow::{Context, Error, Result};
use clap::Args;
use config::{Config, ConfigBuilder, ConfigError, Environment, File, FileFormat, builder::DefaultState};
use serde::de::DeserializeOwned;

pub use faults::{Examined, FaultKind, SettingFault, examine};

/// Where a role's settings come from.
#[derive(Args, Clone, Debug)]
pub struct SettingsArgs {
    /// TOML file with the role's settings
    #[arg(long, short, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// One setting; wins over the environment and the file. Repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
}

/// Reads and checks the settings of `role`.
///
/// # Errors
/// A file that cannot be read, an override without `=`, a key nobody knows, a value of the wrong type.
pub fn load<T: DeserializeOwned>(role: &str, args: &SettingsArgs) -> Result<T> {
    let read: Result<T, ConfigError> = sources(role, args)?.build().and_then(Config::try_deserialize);
    let read = read.map_err(|error| match renamed_in(&error.to_string()) {
        Some((_, renamed)) => Error::from(error).context(renamed),
        None => error.into(),
    });
    read.with_context(|| format!("settings of the {role} are not usable; docs/operate.md lists every key"))
}

/// Keys that had another name or form before, and what they are now.
const RENAMED: &[(&str, &str)] = &[(
    "sequencer_url",
    "`sequencer_url` is now `sequencer_urls`: a list, so that there may be sequencers that stand by",
)];

/// The key with another name now that an error is about.
fn renamed_in(error: &str) -> Option<(&'static str, &'static str)> {
    RENAMED.iter().copied().find(|(old, _)| error.contains(&format!("unknown field `{old}`")))
}

/// File, environment and flags, each over the one before.
fn sources(role: &str, args: &SettingsArgs) -> Result<ConfigBuilder<DefaultState>> {
    let prefix = format!("BLINDFOLD_{}", role.to_uppercase().replace('-', "_"));
    let mut builder = Config::builder();
    if let Some(path) = &args.config {
        let text = std::fs::read_to_string(path).with_context(|| {
            format!("cannot read {}; `--config` names the {role}'s TOML file", path.display())
        })?;
        builder = builder.add_source(File::from_str(&text, FileFormat::Toml));
    }
    builder = builder.add_source(
        Environment::with_prefix(&prefix).prefix_separator("__").separator("__").try_parsing(true),
    );
    for entry in &args.overrides {
        let (key, value) = entry.split_once('=').with_context(|| {
            format!("`--set {entry}`: expected KEY=VALUE, for example sequencer.rpc_addr=127.0.0.1:9545")
        })?;
        builder = builder.set_override(key, parsed(value))?;
    }
    Ok(builder)
}

/// A flag's value as TOML would read it, else as a string.
fn parsed(value: &str) -> config::Value {
    if let Ok(number) = value.parse::<i64>() {
        number.into()
    } else if let Ok(truth) = value.parse::<bool>() {
        truth.into()
    } else {
        value.into()
    }
}

#[cfg(test)]
mod tests {
    use blindfold_rpc::SequencerUrls;
    use serde::Deserialize;

    use super::*;
    use crate::roles::CommitteeSettings;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        listen: String,
        #[serde(default)]
        limit: u64,
    }

    fn args(file: &str, overrides: &[&str]) -> (tempfile::TempDir, SettingsArgs) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("role.toml");
        std::fs::write(&path, file).unwrap();
        let overrides = overrides.iter().map(|&entry| entry.to_owned()).collect();
        (dir, SettingsArgs { config: Some(path), overrides })
    }

    #[test]
    fn a_flag_wins_over_the_file() {
        let (_dir, args) = args("listen = \"a\"\nlimit = 1", &["limit=7"]);
        assert_eq!(load::<Sample>("settings-test", &args).unwrap(), Sample { listen: "a".into(), limit: 7 });
    }

    #[test]
    fn unknown_keys_wrong_types_and_bad_overrides_are_refused() {
        for (file, overrides) in [
            ("listen = \"a\"\nlimt = 1", &[][..]),
            ("listen = \"a\"\nlimit = \"many\"", &[]),
            ("listen = ", &[]),
            ("limit = 1", &[]),
            ("listen = \"a\"", &["limit"]),
            ("listen = \"a\"", &["unknown=1"]),
        ] {
            let (_dir, args) = args(file, overrides);
            assert!(load::<Sample>("settings-test", &args).is_err(), "{file} {overrides:?}");
        }
    }

    #[test]
    fn a_key_with_another_name_now_is_refused_with_the_new_one() {
        let member = "chain = 'r'\nparameters = 'p'\ndata_dir = 'd'\n[l1]\nurl = 'http://a'\n[key]\nfile = 'k'\n[member]\n";
        let file = format!("{member}sequencer_url = 'http://a'");
        let (_dir, old) = args(&file, &[]);
        let refused = format!("{:#}", load::<CommitteeSettings>("settings-test", &old).unwrap_err());
        assert!(refused.contains("`sequencer_url` is now `sequencer_urls`"), "{refused}");
        let examined = examine::<CommitteeSettings>("settings-test", &old);
        let fault = &examined.faults[0];
        assert_eq!((fault.key.as_str(), fault.kind), ("member.sequencer_url", FaultKind::Unknown));
        assert!(fault.what.contains("is now `sequencer_urls`"), "{fault:?}");
        let (_dir, new) = args(member, &["member.sequencer_urls=http://a, http://b:1"]);
        let settings: CommitteeSettings = load("settings-test", &new).unwrap();
        assert_eq!(settings.member.sequencer_urls, SequencerUrls::new(["http://a", "http://b:1"]));
    }

    #[test]
    fn a_missing_file_says_which() {
        let args = SettingsArgs { config: Some("/nonexistent/role.toml".into()), overrides: Vec::new() };
        assert!(
            format!("{:#}", load::<Sample>("sequencer", &args).unwrap_err())
                .contains("/nonexistent/role.toml")
        );
    }
}
