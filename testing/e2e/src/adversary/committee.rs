//! A committee that falls silent: before its release, and for good.

use std::fs;

use alloy_primitives::{Address, B256, U256};
use anyhow::{Context, Result, bail, ensure};
use blindfold::devnet::{
    MEMBERS,
    accounts::{HINT_PUBLISHER, named_key},
    ports::http,
};
use blindfold_client::{
    FeeProof, keys,
    transaction::{TransactionFields, sign},
};
use blindfold_l1::{HintPosting, L1Error, L1HeaderDue, PostedBatch, PostedEntry, PostedRun};
use blindfold_protocol::{BatchHeader, Certificate, SealedBatch};
use blindfold_rpc::{
    CommitteeApiClient, Encoded, ReceivedError,
    types::{BatchInfo, BatchState, EnvelopeState},
};
use serde_json::Value;
use tokio::process::Command;

use super::{
    arena::{Arena, REPORTER, TIMING, until},
    raw::quantity,
    report::{Gas, Outcome},
    sequencer::gained,
};
use crate::forge::{colluding, member_key};

/// Blocks until a block is final.
const FINALITY: u64 = 3;
/// What the forced transaction moves: five ether.
const RESCUED_WEI: u128 = 5 * 1_000_000_000_000_000_000;
/// Where it goes.
const REFUGE: Address = Address::repeat_byte(0x4e);
/// Gas of a transfer.
const TRANSFER_GAS: u64 = 21_000;
/// How often L1's height is raised until something is due.
const MINING_ATTEMPTS: usize = 8;
/// How often a run is made that is to begin with a certain batch.
const RUN_ATTEMPTS: usize = 4;

/// Runs without hints become void; without a committee L1 makes headers, and users get their money out.
pub async fn silent_committee(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    let withheld = certified_and_gone(arena).await?;
    void(arena, &withheld, &mut gas).await?;

    everything_posted(arena).await?;
    members(arena, false).await?;
    // Nothing of the rollup is left but users and a node. What the sequencer sealed from here on would come to nothing.
    arena.devnet.process("sequencer")?.kill().await?;
    let request = arena.account(arena.users[0].key.clone()).request_withdrawal(u128::MAX).await?;
    gas.step("requestWithdrawal", request.gas_used);
    rescue(arena, &mut gas).await?;
    exit(arena, request.block, &mut gas).await?;
    Ok(gas)
}

/// Members give no shares of a run, and a publisher calls everything in it malformed: nobody has a key that would refute
/// that, but nobody has a singleton release either. So the full node, which opened nothing, has the claim slashed, and
/// the run becomes void in its time.
pub async fn unreleased_run_claimed_malformed(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    let Withheld { number, ref run, .. } = certified_and_gone(arena).await?;
    arena.devnet.process("full-node")?.start()?;

    let forger = arena.forger();
    let (bond, _) = arena.devnet.l1.hint_stakes().await?;
    forger.deposit_publisher_bond(bond).await?;
    let claimed = |header: &BatchHeader| {
        let items = header.envelope_count as usize;
        PostedBatch {
            entries: (0..items).map(PostedEntry::malformed).collect(),
            singletons: vec![[7; 48]; items],
        }
    };
    let posting = HintPosting { batches: run.headers.iter().map(claimed).collect() };
    let sent = forger.post_hints(&run.run, &posting).await?;
    gas.step("postHints", sent.gas_used);
    let log = arena.posting_by(forger.address(), run.run.last).await?;
    arena.slashed(log.id, sent.block).await?;
    ensure!(
        arena.devnet.l1.publisher_bond(forger.address()).await?.total == 0,
        "expected the forger's bond to be gone"
    );

    let start = arena.devnet.chain.genesis_l1_origin;
    let seen = arena.devnet.l1.recent_hints(start, arena.raw.height().await?).await?;
    mine_to(arena, seen.void_from(&run.run, TIMING.hint_deadline.into())).await?;
    let anyone = arena.account(arena.users[3].key.clone());
    let sent = until("L1 to take the run for void", async || match anyone.void_unreleased(&run.run).await {
        Ok(sent) => Ok(Some(sent)),
        // A slashing that came after the look moved the deadline once more.
        Err(L1Error::Reverted { reason, .. }) if reason.starts_with("TooEarly") => {
            arena.devnet.mine(1).await?;
            Ok(None)
        }
        Err(error) => Err(error.into()),
    })
    .await?;
    gas.step("voidUnreleased", sent.gas_used);
    // Whoever was gone comes back, and the chain goes on behind it.
    members(arena, true).await?;
    arena.devnet.process("hint-publisher")?.start()?;
    void_at_the_node(arena, number).await?;
    everything_posted(arena).await?;
    Ok(gas)
}

/// A threshold of members acknowledges two headers of one number. L1 takes the stakes of those that did, shown by
/// `blindfold l1 stake slash` with what two nodes answered, and the chain goes on: they are still the committee.
pub async fn double_acknowledgement(arena: &mut Arena) -> Outcome {
    let (_, receipt) = arena.transfer(0).await?;
    let first = arena.sealed(receipt.number.context("a number")?).await?.0;
    let mut second = first.clone();
    second.header.gas += 1;
    let mut answers = Vec::new();
    let mut signed = u64::MAX;
    for sealed in [first, second] {
        let certificate = colluding(&arena.devnet, &sealed.header).await?;
        signed &= certificate.signers;
        answers.push(answer(&sealed, &certificate));
    }
    let before = stakes(arena).await?;
    let reporter = arena.reporter();
    let rewards = arena.devnet.l1.stake_reward(reporter.address()).await?;
    let gas_used = slash(arena, &answers).await?;
    let mut lost = U256::ZERO;
    for (place, (before, after)) in before.into_iter().zip(stakes(arena).await?).enumerate() {
        let left = if signed >> place & 1 == 1 { U256::ZERO } else { before };
        ensure!(!before.is_zero() && after == left, "member {}: {before} wei, then {after}", place + 1);
        lost += before - left;
    }
    let earned = gained(arena.devnet.l1.stake_reward(reporter.address()).await?, rewards)?;
    ensure!(earned == lost / U256::from(2), "expected half of {lost} wei for the reporter, seen {earned}");
    let mut gas = Gas::default();
    gas.step("slashDouble", gas_used);
    gas.step("claimReward", reporter.claim_stake_reward().await?.gas_used);
    Ok(gas)
}

/// What a node that took this header and certificate answers to `blind_getBatch`.
fn answer(sealed: &SealedBatch, certificate: &Certificate) -> BatchInfo {
    BatchInfo {
        number: sealed.header.number,
        hash: sealed.header.hash(),
        timestamp_ms: sealed.header.timestamp_ms,
        state: BatchState::Certified,
        sealed: Encoded::new(sealed),
        certificate: Some(Encoded::new(certificate)),
        release: None,
        hints: None,
        verdicts: Vec::new(),
    }
}

/// Shows L1 both answers, by the command and the reporter's key file; the gas of the report.
async fn slash(arena: &Arena, answers: &[BatchInfo]) -> Result<u64> {
    let dir = arena.devnet.dir();
    let key = dir.join("keys").join(format!("{REPORTER}.json"));
    keys::store(&named_key(REPORTER), &key, fs::read_to_string(dir.join("password"))?.trim())?;
    let mut command = Command::new(crate::program()?);
    command.args(["l1", "stake", "slash", "--json", "--l1", arena.devnet.l1_url()]);
    command.arg("--chain").arg(dir.join("rollup.json")).arg("--key").arg(key);
    command.arg("--password-file").arg(dir.join("password"));
    for (place, answer) in answers.iter().enumerate() {
        let file = dir.join(format!("acknowledged-{place}.json"));
        fs::write(&file, serde_json::to_vec(answer)?)?;
        command.arg("--certified").arg(file);
    }
    let number = answers.first().context("an answer")?.number;
    let output = command.arg(number.to_string()).kill_on_drop(true).output().await?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "blindfold l1 stake slash: {}: {said}", output.status);
    let printed: Value = serde_json::from_slice(&output.stdout)?;
    let transaction = printed["transaction"].as_str().context("no transaction was printed")?.parse()?;
    quantity(&arena.raw.receipt(transaction).await?["gasUsed"])
}

/// What each member has at stake, in order.
async fn stakes(arena: &Arena) -> Result<Vec<U256>> {
    let mut stakes = Vec::new();
    for member in 1..=MEMBERS {
        let key = member_key(&arena.devnet, member)?.public_key();
        stakes.push(arena.devnet.l1.member_stake(&key).await?.amount);
    }
    Ok(stakes)
}

/// Ends or starts all members.
pub(super) async fn members(arena: &mut Arena, run: bool) -> Result<()> {
    for member in 1..=MEMBERS {
        let process = arena.devnet.process(&format!("member-{member}"))?;
        match (run, process.pid().is_ok()) {
            (true, false) => process.start()?,
            (false, true) => process.kill().await?,
            _ => {}
        }
    }
    if run {
        for member in 1..=MEMBERS {
            arena.devnet.process(&format!("member-{member}"))?.ready().await?;
        }
    }
    Ok(())
}

/// Waits until the sequencer has nothing under way and L1 has all of it.
pub(super) async fn everything_posted(arena: &Arena) -> Result<()> {
    until("everything to be certified and on L1", async || {
        let status = arena.sequencer_status().await?;
        let posted = arena.devnet.l1.final_posted_head().await?.number;
        Ok((status.certified == status.head.number && posted == status.head.number).then_some(()))
    })
    .await
}

/// Mines until L1 is at this height.
pub(super) async fn mine_to(arena: &Arena, block: u64) -> Result<()> {
    let height = arena.raw.height().await?;
    arena.devnet.mine(block.saturating_sub(height).max(1)).await
}

/// A batch that is certified and posted, and that nobody asked the members to release.
struct Withheld {
    id: B256,
    number: u64,
    run: PostedRun,
    nonce: u64,
}

async fn certified_and_gone(arena: &mut Arena) -> Result<Withheld> {
    for _ in 0..RUN_ATTEMPTS {
        let withheld = certified_alone(arena).await?;
        let Withheld { id, number, ref run, .. } = withheld;
        if run.run.first == number {
            members(arena, false).await?;
            return Ok(withheld);
        }
        // Something else was sealed meanwhile and stands in the same run.
        for role in ["full-node", "hint-publisher"] {
            arena.devnet.process(role)?.start()?;
            arena.devnet.process(role)?.ready().await?;
        }
        arena.executed(id).await?;
        arena.users[3].nonce += 1;
    }
    bail!("in {RUN_ATTEMPTS} attempts no run began with the batch in question")
}

/// A batch that is certified and posted, which nobody has opened who is there to do so.
async fn certified_alone(arena: &mut Arena) -> Result<Withheld> {
    // What is executed already must not be of the same run: a node that executed what L1 voids has to stop.
    everything_posted(arena).await?;
    let earlier = arena.posted_run(arena.sequencer_status().await?.head.number).await?;
    if earlier.headers.iter().any(|header| header.envelope_count > 0) {
        arena.posting_by(named_key(HINT_PUBLISHER).address(), earlier.run.last).await?;
    }
    let (raw, _) = arena.users[3].transfer(arena.users[3].nonce, U256::from(1));
    let envelope = arena.users[3].envelope(raw.to_vec()).await?;
    let (id, nonce) = (envelope.id(), arena.users[3].nonce);
    // Who opens what is certified would do so at once.
    arena.devnet.process("hint-publisher")?.kill().await?;
    arena.devnet.process("full-node")?.kill().await?;
    arena.users[3].submit(&envelope, false).await?;
    let number = until("the envelope to be certified", async || {
        let receipt = arena.receipt_of_sequencer(id).await?;
        Ok(receipt
            .filter(|receipt| receipt.state == EnvelopeState::Certified)
            .and_then(|receipt| receipt.number))
    })
    .await?;
    // The empty header that closes its second, too.
    until("the second to be closed", async || {
        Ok((arena.sequencer_status().await?.head.number > number).then_some(()))
    })
    .await?;
    everything_posted(arena).await?;
    let run = arena.posted_run(number).await?;
    Ok(Withheld { id, number, run, nonce })
}

/// No shares from half the deadline on; void after it; nothing of it executes.
async fn void(arena: &mut Arena, withheld: &Withheld, gas: &mut Gas) -> Result<()> {
    let Withheld { id, number, ref run, nonce } = *withheld;
    let posted_at = run.run.posted_at;
    mine_to(arena, posted_at + u64::from(TIMING.hint_deadline) / 2 + FINALITY).await?;
    members(arena, true).await?;
    for role in ["full-node", "hint-publisher"] {
        arena.devnet.process(role)?.start()?;
    }
    arena.devnet.process("full-node")?.ready().await?;
    for member in 1..=MEMBERS {
        let certified = arena.member(member)?.get_certified(run.run.last).await?;
        let certificate = certified.context("the run's certificate")?.decode()?.certificate;
        let asked = arena.member(member)?.get_share(number, Encoded::new(&certificate)).await;
        match asked.map_err(ReceivedError::from) {
            Err(ReceivedError::Refused(refusal)) if refusal.reason == "unreleased_too_long" => {}
            other => bail!("member {member}: expected unreleased_too_long, seen {other:?}"),
        }
    }
    let anyone = arena.account(arena.users[3].key.clone());
    mine_to(arena, posted_at + u64::from(TIMING.hint_deadline)).await?;
    gas.step("voidUnreleased", anyone.void_unreleased(&run.run).await?.gas_used);
    void_at_the_node(arena, number).await?;
    let receipt = arena.receipt(id).await?.context("the void envelope's receipt")?;
    ensure!(receipt.state == EnvelopeState::Void, "expected a void envelope, seen {receipt:?}");
    let after = arena.reads()?.nonce(&arena.users[3].key.address()).await?;
    ensure!(
        after == nonce,
        "expected nothing of the void batch executed, the nonce is {after} and was {nonce}"
    );
    Ok(())
}

/// Waits until the full node has the batch as void. Between two looks at L1 a node counts L1's blocks by the clock, on
/// which mining has no effect: so it starts anew, and looks.
async fn void_at_the_node(arena: &mut Arena, number: u64) -> Result<()> {
    arena.devnet.kill_and_restart("full-node").await?;
    until("the batch to be void at the full node", async || {
        Ok((arena.batch(number).await?.state == BatchState::Void).then_some(()))
    })
    .await
}

/// L1 makes the header that holds a user's forced transaction, and one that closes its second.
async fn rescue(arena: &mut Arena, gas: &mut Gas) -> Result<()> {
    let user = &arena.users[1];
    let fields = TransactionFields {
        chain_id: arena.devnet.chain.chain_id,
        nonce: user.nonce,
        to: REFUGE,
        value: U256::from(RESCUED_WEI),
        input: Default::default(),
        gas_limit: TRANSFER_GAS,
        max_fee_per_gas: 1_000_000_000,
        max_priority_fee_per_gas: 0,
    };
    let (raw, _) = sign(&fields, &user.key);
    let forced = arena.account(user.key.clone()).force_transaction(TRANSFER_GAS, &raw).await?;
    gas.step("force", forced.gas_used);
    let parent = last_header(arena).await?;
    mine_to(arena, forced.block + u64::from(TIMING.forced_delay)).await?;
    let made = make_header(arena, &parent).await?;
    gas.step("postL1Header with a transaction", made);
    let closed = last_header(arena).await?;
    ensure!(
        (closed.number, closed.envelope_count) == (parent.number + 1, 1),
        "expected header {} with the forced transaction, seen {closed:?}",
        parent.number + 1
    );
    gas.step("postL1Header that closes its second", make_header(arena, &closed).await?);
    until("the forced transaction to be executed", async || {
        Ok((arena.reads()?.balance(&REFUGE).await? == U256::from(RESCUED_WEI)).then_some(()))
    })
    .await
}

/// The last header on L1, final.
pub(super) async fn last_header(arena: &Arena) -> Result<BatchHeader> {
    let newest = arena.devnet.l1.posted_head().await?.number;
    let run = arena.posted_run(newest).await?;
    run.headers.last().copied().context("a run with headers")
}

/// Has L1 make the header after `parent` as soon as it may. Gives the gas; none where somebody else was faster, as roles are
/// at the end of an epoch.
pub(super) async fn make_header(arena: &Arena, parent: &BatchHeader) -> Result<u64> {
    for _ in 0..MINING_ATTEMPTS {
        if arena.devnet.l1.posted_head().await?.number > parent.number {
            ensure!(
                is_by_l1(arena, parent.number + 1).await?,
                "a certified header follows {}",
                parent.number
            );
            return Ok(0);
        }
        match arena.devnet.l1.standing().await?.l1_header_due(parent.envelope_count) {
            L1HeaderDue::Now { .. } => match arena.reporter().post_l1_header(parent).await {
                Ok(sent) => return Ok(sent.gas_used),
                // The block that it came into, or was tried on, belonged to the committee.
                Err(L1Error::Reverted { reason, .. })
                    if reason.starts_with("L1HeaderNotDue") || reason.starts_with("WrongParent") => {}
                Err(L1Error::Failed { .. }) => {}
                Err(error) => return Err(error.into()),
            },
            L1HeaderDue::From(block) => mine_to(arena, block).await?,
            L1HeaderDue::NothingToInclude { .. } => {
                bail!("nothing to include in the header after {}", parent.number)
            }
        }
    }
    bail!("L1 does not come to make the header after {}", parent.number)
}

/// Whether the posted header of this number is one that L1 made, in a final block or not.
pub(super) async fn is_by_l1(arena: &Arena, number: u64) -> Result<bool> {
    let l1 = &arena.devnet.l1;
    let new = l1.l1_headers_not_final().await?;
    let known = l1.all_l1_headers().await?;
    Ok(new
        .iter()
        .map(|made| made.header.number)
        .chain(known.iter().map(|made| made.header.number))
        .any(|it| it == number))
}

/// The fee deposit leaves without the rollup.
async fn exit(arena: &Arena, requested_at: u64, gas: &mut Gas) -> Result<()> {
    mine_to(arena, requested_at + u64::from(TIMING.withdrawal_delay)).await?;
    let head = last_header(arena).await?;
    let payer = arena.users[0].key.address();
    until("the full node to have L1's head", async || {
        Ok((arena.status().await?.certified == head.number).then_some(()))
    })
    .await?;
    let node = http(arena.devnet.ports.full_node.0);
    let shown = FeeProof::fetch_posted(&node, payer, &arena.devnet.l1).await?.context("a posted header")?;
    let proof = shown.against_head(&arena.devnet.l1).await?;
    let proof =
        proof.with_context(|| format!("the full node's ledger is not that of L1's head: {shown:?}"))?;
    let balance = proof.balance;
    let sent = arena.account(arena.users[0].key.clone()).exit(&proof).await?;
    gas.step("exit", sent.gas_used);
    let paid = arena.devnet.l1.paid(payer).await?;
    ensure!(
        balance > 0 && paid == U256::from(balance),
        "expected the whole balance of {balance} wei to leave, seen {paid}"
    );
    Ok(())
}
