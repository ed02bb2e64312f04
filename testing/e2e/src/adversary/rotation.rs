//! A new committee in the middle of everything.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use blindfold::{
    dealer::{Deal, deal},
    deploy::new_epoch,
    devnet::{MEMBERS, THRESHOLD},
};
use blindfold_committee::key_file::KeyFileCost;
use blindfold_protocol::B256;

use super::{
    field::{Field, MAX_BATCH, until},
    report::{Gas, Outcome},
    roles::{change_settings, section},
};

/// Last batch number of the first committee.
pub const FIRST_EPOCH_LAST: u64 = 48;
/// Last batch number of the second.
const SECOND_EPOCH_LAST: u64 = u32::MAX as u64;
/// What it costs to try the password of a key file: next to nothing.
const KEY_FILE_COST: KeyFileCost = KeyFileCost { memory_kib: 64, iterations: 1, lanes: 1 };
/// Folder of the second committee's keys.
const FOLDER: &str = "committee-2";

/// A second epoch with another committee's key, while envelopes for both are under way.
pub async fn rotation(field: &mut Field) -> Outcome {
    let mut gas = Gas::default();
    gas.step("registerEpoch", register(field).await?);
    know_both(field).await?;

    // For the second committee first: they wait until the first one's numbers are over.
    let mut later = Vec::new();
    for index in [2, 3] {
        let mut user = field.with_committee_of(index, FIRST_EPOCH_LAST + 1).await?;
        later.push(user.send().await?.0.id());
        // From here on this user's envelopes are for the second committee.
        field.users[index] = user;
    }
    let mut first: Vec<B256> = Vec::new();
    for index in [0, 1] {
        first.push(field.users[index].send().await?.0.id());
    }
    for id in first {
        let number = field.executed(id).await?.number.context("a number")?;
        ensure!(number <= FIRST_EPOCH_LAST, "expected a batch of the first epoch, seen {number}");
    }
    until("the first epoch to end, with all its hints", async || {
        let status = field.status().await?;
        Ok((status.certified >= FIRST_EPOCH_LAST && status.hinted >= FIRST_EPOCH_LAST).then_some(()))
    })
    .await?;
    take_over(field).await?;
    for id in later {
        let number = field.executed(id).await?.number.context("a number")?;
        ensure!(number > FIRST_EPOCH_LAST, "expected a batch of the second epoch, seen {number}");
    }
    for index in [0, 1] {
        field.users[index] = field.with_committee_of(index, FIRST_EPOCH_LAST + 1).await?;
        field.transfer(index).await?;
    }
    Ok(gas)
}

/// Deals the second committee's keys and registers them.
async fn register(field: &Field) -> Result<u64> {
    let dir = field.devnet.dir();
    let password = std::fs::read_to_string(dir.join("password"))?;
    let out = dir.join(FOLDER);
    let dealt = tokio::task::spawn_blocking(move || {
        deal(&Deal {
            max_batch: MAX_BATCH,
            members: MEMBERS,
            threshold: THRESHOLD,
            out: &out,
            password: password.trim(),
            cost: KEY_FILE_COST,
        })
    })
    .await??;
    let members: Vec<PathBuf> = dealt.members.iter().map(|(path, _)| path.clone()).collect();
    let location = format!("file:{FOLDER}/parameters.bin");
    let epoch = new_epoch(&dealt.parameters, &members, SECOND_EPOCH_LAST, location)?;
    let governor = field.account(blindfold_l1::dev_key(0).context("anvil's first key")?);
    let sent = governor.register_epoch(&epoch).await?;
    until("the second epoch to be final on L1", async || {
        Ok((field.devnet.l1.epochs().await?.as_slice().len() == 2).then_some(()))
    })
    .await?;
    Ok(sent.gas_used)
}

/// Gives sequencer, helper and full node the second committee's parameters.
async fn know_both(field: &mut Field) -> Result<()> {
    let dir = field.devnet.dir().to_owned();
    let parameters = dir.join(FOLDER).join("parameters.bin").display().to_string();
    for role in ["sequencer", "hint-publisher", "full-node"] {
        change_settings(&dir, role, role, |table| {
            let list = table.get_mut("parameters").and_then(toml::Value::as_array_mut);
            list.context("no list of parameters")?.push(parameters.clone().into());
            Ok(())
        })?;
        field.devnet.process(role)?.stop().await;
        field.devnet.process(role)?.start()?;
    }
    for role in ["sequencer", "hint-publisher", "full-node"] {
        field.devnet.process(role)?.ready().await?;
    }
    Ok(())
}

/// The members go on with the keys of the second committee.
async fn take_over(field: &mut Field) -> Result<()> {
    let dir = field.devnet.dir().to_owned();
    for member in 1..=MEMBERS {
        let name = format!("member-{member}");
        change_settings(&dir, &name, &name, |table| {
            let file = dir.join(FOLDER).join(format!("{name}.key")).display().to_string();
            section(table, "key")?.insert("file".to_owned(), file.into());
            Ok(())
        })?;
        field.devnet.process(&name)?.stop().await;
        field.devnet.process(&name)?.start()?;
    }
    for member in 1..=MEMBERS {
        field.devnet.process(&format!("member-{member}"))?.ready().await?;
    }
    Ok(())
}
