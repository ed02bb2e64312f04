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

use anyhow::{Context, Result};
use clap::Args;
use config::{Config, ConfigBuilder, Environment, File, FileFormat, builder::DefaultState};
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
    sources(role, args)?
        .build()
        .and_then(Config::try_deserialize)
        .with_context(|| format!("settings of the {role} are not usable; docs/operate.md lists every key"))
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
    use serde::Deserialize;

    use super::*;

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
    fn a_missing_file_says_which() {
        let args = SettingsArgs { config: Some("/nonexistent/role.toml".into()), overrides: Vec::new() };
        assert!(
            format!("{:#}", load::<Sample>("sequencer", &args).unwrap_err())
                .contains("/nonexistent/role.toml")
        );
    }
}
