//! A sequencer whose key is in the wrong hands gives way to another one.

use std::fs;

use anyhow::{Context, bail, ensure};
use blindfold::devnet::accounts::named_key;
use blindfold_client::keys;
use blindfold_protocol::limits::HANDOVER_BLOCKS;

use super::{
    arena::{Arena, TIMING, until},
    committee::{everything_posted, mine_to},
    money::headers_of_one_number,
    report::{Gas, Outcome},
    sequencer::{BOND_WEI, bond, bond_is_lost, salt},
};
use crate::settings_file::{change_settings, section};

/// Name of the next key, and of its files.
const NEXT: &str = "sequencer-2";

/// Whoever has the sequencer's key signs two headers. The bond is lost, and within the hour another key counts: the
/// earlier one admits and seals nothing, and the next one goes on above what the committee holds.
pub async fn stolen_key_replaced(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    let headers = headers_of_one_number(arena, 1).await?;
    bond(arena).await?;
    arena.reporter().report_equivocation(&headers[0], &headers[1], salt()).await?;
    bond_is_lost(arena).await?;

    let next = named_key(NEXT);
    let dir = arena.devnet.dir().to_owned();
    let key_file = dir.join("keys").join(format!("{NEXT}.json"));
    keys::store(&next, &key_file, fs::read_to_string(dir.join("password"))?.trim())?;
    arena.forger().deposit_bond(next.address(), BOND_WEI).await?;
    everything_posted(arena).await?;
    let governor = arena.account(blindfold_l1::dev_key(0).context("anvil's first key")?);
    let named = governor.name_sequencer(next.address()).await?;
    gas.step("nameSequencer", named.gas_used);
    let term = until("the next key to be final on L1", async || {
        Ok(arena.devnet.l1.epochs().await?.sequencer_term(next.address()))
    })
    .await?;
    let (from, hour) = (*term.start(), named.block + u64::from(TIMING.forced_delay));
    ensure!(from == hour, "expected the key to count from L1 block {hour} on, seen {from}");

    mine_to(arena, from).await?;
    let user = &mut arena.users[0];
    let (raw, _) = user.transfer(user.nonce, alloy_primitives::U256::from(1));
    let envelope = user.envelope(raw.to_vec()).await?;
    let user = &arena.users[0];
    until("the earlier sequencer to admit nothing", async || {
        match user.try_submit(&envelope, false).await? {
            Err(reason) if reason == "out_of_office" => Ok(Some(())),
            // It has not seen the block yet, and took the envelope.
            Err(reason) if reason == "already_known" => Ok(None),
            Err(reason) => bail!("expected the refusal out_of_office, seen {reason}"),
            Ok(_) => Ok(None),
        }
    })
    .await?;
    everything_posted(arena).await?;
    let last = arena.status().await?.certified;

    arena.devnet.process("sequencer")?.kill().await?;
    change_settings(&dir, "sequencer", "sequencer", |table| {
        section(table, "signing_key")?.insert("file".to_owned(), key_file.display().to_string().into());
        let data_dir = dir.join(NEXT).display().to_string();
        section(table, "sequencer")?.insert("data_dir".to_owned(), data_dir.into());
        Ok(())
    })?;
    mine_to(arena, from + HANDOVER_BLOCKS * 3 / 2).await?;
    arena.devnet.process("sequencer")?.start()?;
    arena.devnet.process("sequencer")?.ready().await?;
    arena.users[1].nonce = arena.reads()?.nonce(&arena.users[1].key.address()).await?;
    let (_, receipt) = arena.transfer(1).await?;
    let number = receipt.number.context("a number")?;
    ensure!(number > last, "expected a batch after {last}, seen {number}");
    let (sealed, _) = arena.sealed(number).await?;
    let signer = sealed.signed_header().signer(&arena.devnet.chain.deployment)?;
    ensure!(signer == next.address(), "expected batch {number} of {}, seen {signer}", next.address());
    arena.posted_run(number).await?;
    let left = arena.devnet.l1.bond(next.address()).await?.amount;
    ensure!(
        left == alloy_primitives::U256::from(BOND_WEI),
        "expected the next bond untouched, seen {left} wei"
    );
    Ok(gas)
}
