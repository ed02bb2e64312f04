//! Machines that come back with an older disk, or with none, and what is posted without its data.

use std::{collections::BTreeMap, fs, path::Path};

use alloy_primitives::B256;
use anyhow::{Context, Result, bail, ensure};
use blindfold::devnet::MEMBERS;
use blindfold_l1::{CodedBatch, L1Error, Supplier};
use blindfold_protocol::{Acknowledgement, Canonical, Certificate};
use blindfold_rpc::CommitteeApiClient;
use serde_json::Value;

use super::{
    arena::{Arena, until},
    committee::everything_posted,
    report::{Gas, Outcome},
};
use crate::{
    relay::{Direction, Recorded},
    settings_file::{change_settings, section},
};

/// How often it is tried to be faster than the sequencer's poster.
const ATTEMPTS: usize = 8;
/// Pause between two postings of a sequencer that somebody else is to be faster than, in milliseconds.
const HESITATION_MS: i64 = 600_000;

/// How often somebody was shown a second header.
async fn second_headers(arena: &Arena) -> Result<u64> {
    let mut seen = arena.counter("second_headers_refused").await?;
    for member in 1..=MEMBERS {
        seen += arena.second_headers(member).await?;
    }
    Ok(seen)
}

/// The sequencer comes back without its disk: it signs nothing that it signed before, and goes on.
pub async fn restored_sequencer(arena: &mut Arena) -> Outcome {
    arena.transfer(0).await?;
    let before = (second_headers(arena).await?, arena.status().await?.certified);
    arena.devnet.process("sequencer")?.kill().await?;
    fs::remove_dir_all(arena.devnet.dir().join("sequencer"))?;
    arena.devnet.process("sequencer")?.start()?;
    arena.devnet.process("sequencer")?.ready().await?;
    let (_, receipt) = arena.transfer(1).await?;
    let number = receipt.number.context("a number")?;
    ensure!(number > before.1, "expected a batch after {}, seen {number}", before.1);
    let after = second_headers(arena).await?;
    ensure!(after == before.0, "expected no second header, seen {} and then {after}", before.0);
    Ok(Gas::default())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// A member comes back with an older disk, and then with none: it votes for nothing a second time.
pub async fn restored_member(arena: &mut Arena) -> Outcome {
    let name = format!("member-{MEMBERS}");
    let (disk, kept) = (arena.devnet.dir().join(&name), arena.devnet.dir().join("older-disk"));
    arena.transfer(0).await?;
    arena.devnet.process(&name)?.kill().await?;
    copy(&disk, &kept)?;
    arena.devnet.process(&name)?.start()?;
    arena.devnet.process(&name)?.ready().await?;
    let (_, receipt) = arena.transfer(1).await?;
    let voted = receipt.number.context("a number")?;
    until("the member's own vote", async || {
        let status = CommitteeApiClient::get_status(&arena.member(MEMBERS)?).await?;
        if status.acknowledged >= voted {
            return Ok(Some(()));
        }
        // The others were faster: there is a vote to be cast on another batch.
        arena.transfer(1).await?;
        Ok(None)
    })
    .await?;

    arena.devnet.process(&name)?.kill().await?;
    fs::remove_dir_all(&disk)?;
    copy(&kept, &disk)?;
    // Ready it is only when it may vote; the others certify without it.
    arena.devnet.process(&name)?.start()?;
    arena.transfer(2).await?;

    // With no disk at all it votes for nothing of this epoch any more.
    arena.devnet.process(&name)?.kill().await?;
    fs::remove_dir_all(&disk)?;
    // Under another name at the relay, so that nothing that was on its way is taken for a vote from now on.
    let emptied = format!("{name}-without-disk");
    change_settings(arena.devnet.dir(), &name, &name, |table| {
        let url = arena.relay.http_url(&emptied);
        section(table, "member")?.insert("sequencer_urls".to_owned(), url.into());
        Ok(())
    })?;
    arena.devnet.process(&name)?.start()?;
    let (_, receipt) = arena.transfer(0).await?;
    let number = receipt.number.context("a number")?;
    until("the member to see that it lost its disk", async || {
        let status = CommitteeApiClient::get_status(&arena.member(MEMBERS)?).await?;
        Ok((status.certified >= number && status.votes_from.is_none_or(|from| from > number)).then_some(()))
    })
    .await?;
    arena.transfer(1).await?;
    let recording = arena.relay.recording();
    one_vote_each(&recording, &name)?;
    ensure!(recording.iter().any(|record| record.role == emptied), "{emptied} did not come to the sequencer");
    if let Some(vote) = votes_of(&recording, &emptied)?.first() {
        bail!("{name} voted for {} without knowing its votes", vote.number);
    }
    Ok(Gas::default())
}

/// The votes of a role that the relay saw on their way.
fn votes_of(recording: &[Recorded], role: &str) -> Result<Vec<Acknowledgement>> {
    let mut votes = Vec::new();
    let sent = recording.iter().filter(|record| record.role == role);
    for record in sent.filter(|record| record.direction == Direction::ToSequencer) {
        let Ok(message) = serde_json::from_str::<Value>(&record.text) else { continue };
        if message["method"] != "blind_submitAcknowledgement" {
            continue;
        }
        let given = message["params"][0].as_str().or_else(|| message["params"]["acknowledgement"].as_str());
        votes.push(Acknowledgement::from_hex(given.context("an acknowledgement")?)?);
    }
    Ok(votes)
}

/// The member voted once for each number.
fn one_vote_each(recording: &[Recorded], role: &str) -> Result<()> {
    let mut votes: BTreeMap<u64, B256> = BTreeMap::new();
    for Acknowledgement { number, header_hash: hash, .. } in votes_of(recording, role)? {
        let first = *votes.entry(number).or_insert(hash);
        ensure!(first == hash, "{role} voted twice for {number}: for {first} and for {hash}");
    }
    ensure!(!votes.is_empty(), "the relay saw no vote of {role} at all: nothing is shown");
    Ok(())
}

/// Changes how often the sequencer posts. Gives how often it did. Counts from its next start on.
fn posting_interval(arena: &Arena, interval_ms: i64) -> Result<i64> {
    let mut before = None;
    change_settings(arena.devnet.dir(), "sequencer", "sequencer", |table| {
        let posting = section(section(table, "sequencer")?, "posting")?;
        before = posting.insert("interval_ms".to_owned(), interval_ms.into());
        Ok(())
    })?;
    before.and_then(|before| before.as_integer()).context("no interval before")
}

/// The sequencer starts anew with little to post and a long time to do so. Gives the time that it took before.
pub(super) async fn sequencer_hesitates(arena: &mut Arena) -> Result<i64> {
    everything_posted(arena).await?;
    let usual_ms = posting_interval(arena, HESITATION_MS)?;
    arena.devnet.kill_and_restart("sequencer").await?;
    Ok(usual_ms)
}

/// The sequencer, which may be gone, starts anew and posts as before.
pub(super) async fn sequencer_goes_on(arena: &mut Arena, usual_ms: i64) -> Result<()> {
    posting_interval(arena, usual_ms)?;
    let sequencer = arena.devnet.process("sequencer")?;
    if sequencer.pid().is_ok() {
        sequencer.kill().await?;
    }
    sequencer.start()?;
    sequencer.ready().await
}

/// Somebody posts certified headers without their data before the sequencer does: the sequencer supplies the data.
pub async fn prefix_without_data(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    for _ in 0..ATTEMPTS {
        let usual_ms = sequencer_hesitates(arena).await?;
        let outcome = posted_without_data(arena).await;
        sequencer_goes_on(arena, usual_ms).await?;
        let Some((numbers, used)) = outcome? else { continue };
        gas.step("post without data", used);
        until("the headers to be final on L1, with their data", async || {
            if arena.devnet.l1.final_posted_head().await?.number < numbers.1 {
                return Ok(None);
            }
            let after = arena.devnet.chain.genesis_l1_origin;
            let standing = arena.devnet.l1.data_standing(numbers.0 - 1, after, Supplier::default()).await?;
            let among = |(first, last): &(u64, u64)| *first <= numbers.1 && *last >= numbers.0;
            let there = standing.through >= numbers.1 && !standing.lacking.iter().any(among);
            Ok(there.then_some(()))
        })
        .await?;
        arena.transfer(1).await?;
        return Ok(gas);
    }
    bail!("the sequencer had posted everything in each of {ATTEMPTS} attempts")
}

/// Has an envelope certified, ends the sequencer and posts in its place. `None` when it was faster.
async fn posted_without_data(arena: &mut Arena) -> Result<Option<((u64, u64), u64)>> {
    let id = arena.users[0].send().await?.0.id();
    until("the envelope to be certified", async || {
        let number = arena.receipt_of_sequencer(id).await?.and_then(|receipt| receipt.number);
        let certified = arena.status().await?.certified;
        Ok(number.filter(|number| *number <= certified))
    })
    .await?;
    arena.devnet.process("sequencer")?.kill().await?;
    without_data(arena).await
}

/// The sequencer gets a batch released, and keeps it from L1 so that it could be ordered again in the light of what it
/// says: whoever has it posts it, and its place is final.
pub async fn released_but_never_posted(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    for _ in 0..ATTEMPTS {
        let usual_ms = sequencer_hesitates(arena).await?;
        let outcome = released_and_posted(arena).await;
        sequencer_goes_on(arena, usual_ms).await?;
        let Some((number, used)) = outcome? else { continue };
        gas.step("post", used);
        let (_, receipt) = arena.transfer(1).await?;
        let next = receipt.number.context("a number")?;
        ensure!(next > number, "expected a batch after {number}, seen {next}");
        arena.posted_run(next).await?;
        return Ok(gas);
    }
    bail!("the sequencer had posted everything in each of {ATTEMPTS} attempts")
}

/// Has an envelope executed, ends the sequencer and posts in its place. `None` when it was faster.
async fn released_and_posted(arena: &mut Arena) -> Result<Option<(u64, u64)>> {
    let (_, receipt) = arena.transfer(0).await?;
    let number = receipt.number.context("a number")?;
    arena.devnet.process("sequencer")?.kill().await?;
    let first = arena.devnet.l1.posted_head().await?.number + 1;
    if first > number {
        return Ok(None);
    }
    let Some(used) = with_data(arena, first).await? else { return Ok(None) };
    let run = arena.posted_run(number).await?;
    let ours = arena.batch(number).await?.hash;
    let there = run.headers.iter().any(|header| header.hash() == ours);
    ensure!(there, "expected batch {number} as it was certified on L1");
    Ok(Some((number, used)))
}

/// The certificate of the last header that both the full node and a member have as certified.
async fn last_certificate(arena: &Arena) -> Result<Certificate> {
    until("the full node and a member to have the same certified", async || {
        let last = arena.status().await?.certified;
        let Some(certified) = arena.member(1)?.get_certified(last).await? else { return Ok(None) };
        let certificate = certified.decode()?.certificate;
        Ok((arena.status().await?.certified >= certificate.number).then_some(certificate))
    })
    .await
}

/// Posts what is certified and not on L1 yet with its data, as the full node and a member have it.
async fn with_data(arena: &Arena, first: u64) -> Result<Option<u64>> {
    let certificate = last_certificate(arena).await?;
    let mut batches = Vec::new();
    for number in first..=certificate.number {
        let (sealed, codes) = arena.sealed(number).await?;
        batches.push(CodedBatch { sealed, codes });
    }
    match arena.bully().post(&batches, &certificate).await {
        Ok(sent) => Ok(Some(sent.gas_used)),
        // What the sequencer had on its way came first.
        Err(L1Error::Reverted { .. } | L1Error::Failed { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Posts what is certified and not on L1 yet, without data. `None` when there is nothing of it.
async fn without_data(arena: &Arena) -> Result<Option<((u64, u64), u64)>> {
    let first = arena.devnet.l1.posted_head().await?.number + 1;
    let certificate = last_certificate(arena).await?;
    let mut headers = Vec::new();
    for number in first..=certificate.number {
        headers.push(arena.sealed(number).await?.0.header);
    }
    if headers.is_empty() {
        return Ok(None);
    }
    match arena.bully().post_headers(&headers, &[], &certificate).await {
        // What the sequencer had on its way may have come first, with its data.
        Ok(sent) => {
            let run = arena.devnet.l1.run_of(certificate.number, sent.block).await?;
            let ours = run.is_some_and(|run| run.run.posted_at == sent.block);
            Ok(ours.then_some(((first, certificate.number), sent.gas_used)))
        }
        Err(L1Error::Reverted { .. } | L1Error::Failed { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
