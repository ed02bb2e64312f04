//! Adding roles to a running network.

use alloy_primitives::Address;
use anyhow::Result;
use blindfold::devnet::{
    accounts::{SECOND_HINT_PUBLISHER, named_key},
    ports::local,
    process::RoleProcess,
};

use super::arena::Arena;
use crate::settings_file::{change_settings, section};

/// How long the second hint publisher leaves a run to the first.
const TAKEOVER_MS: i64 = 3_000;

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
    let binary = crate::program()?;
    let log = dir.join("logs").join(format!("{SECOND_HINT_PUBLISHER}.log"));
    Ok((RoleProcess::new(SECOND_HINT_PUBLISHER, &binary, arguments, admin, log), key.address()))
}
