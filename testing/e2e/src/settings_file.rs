//! Changing the settings files of a running network's roles.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use toml::{Table, Value};

/// Changes a role's settings file into that of `to`.
///
/// # Errors
/// When it cannot be read, changed or written.
pub fn change_settings(
    dir: &Path,
    from: &str,
    to: &str,
    change: impl FnOnce(&mut Table) -> Result<()>,
) -> Result<()> {
    let path = dir.join(format!("{from}.toml"));
    let text = fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
    let mut table: Table = text.parse().with_context(|| format!("{}", path.display()))?;
    change(&mut table).with_context(|| format!("{}", path.display()))?;
    Ok(fs::write(dir.join(format!("{to}.toml")), toml::to_string(&table)?)?)
}

/// A table of settings.
///
/// # Errors
/// When there is none of that name.
pub fn section<'a>(table: &'a mut Table, name: &str) -> Result<&'a mut Table> {
    table.get_mut(name).and_then(Value::as_table_mut).with_context(|| format!("no table {name}"))
}
