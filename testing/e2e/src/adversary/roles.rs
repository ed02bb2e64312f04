//! Changing and adding roles of a running network.

use std::{fs, path::Path};

use alloy_primitives::Address;
use anyhow::{Context, Result};
use blindfold::devnet::{
    accounts::{SECOND_HINT_PUBLISHER, named_key},
    ports::local,
    process::RoleProcess,
};
use toml::{Table, Value};

use super::arena::Arena;

/// How long the second hint publisher leaves a run to the first.
const TAKEOVER_MS: i64 = 3_000;

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

/// The process of a second hint publisher, not started yet, and its account.
///
/// It also posts hints to L1, somewhat later than the first. The network has its key already.
///
/// # Errors
/// When its files cannot be written.
pub fn second_hint_publisher(arena: &Arena) -> Result<(RoleProcess, Address)> {
    let dir = arena.devnet.dir();
    let key = named_key(SECOND_HINT_PUBLISHER);
    let key_file = dir.join("keys").join(format!("{SECOND_HINT_PUBLISHER}.json"));
    let admin = std::net::TcpListener::bind(local(0))?.local_addr()?;
    change_settings(dir, "hint-publisher", SECOND_HINT_PUBLISHER, |table| {
        table.insert("data_dir".to_owned(), dir.join(SECOND_HINT_PUBLISHER).display().to_string().into());
        let posting = section(table, "l1_posting")?;
        posting.insert("takeover_ms".to_owned(), TAKEOVER_MS.into());
        section(posting, "key")?.insert("file".to_owned(), key_file.display().to_string().into());
        let role = section(table, "hint_publisher")?;
        role.insert("admin_addr".to_owned(), admin.to_string().into());
        role.insert("sequencer_urls".to_owned(), arena.relay.http_url(SECOND_HINT_PUBLISHER).into());
        Ok(())
    })?;
    let settings = dir.join(format!("{SECOND_HINT_PUBLISHER}.toml")).display().to_string();
    let arguments = vec!["hint-publisher".to_owned(), "--config".to_owned(), settings];
    let binary = std::env::current_exe()?.with_file_name("blindfold");
    let log = dir.join("logs").join(format!("{SECOND_HINT_PUBLISHER}.log"));
    Ok((RoleProcess::new(SECOND_HINT_PUBLISHER, &binary, arguments, admin, log), key.address()))
}
