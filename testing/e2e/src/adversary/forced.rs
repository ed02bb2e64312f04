//! What is forced through L1: an envelope that the sequencer does not want, items that are no good, and some that only
//! take room.

use alloy_primitives::{U256, hex};
use alloy_sol_types::{SolCall, SolEvent, SolValue};
use anyhow::{Context, Result, ensure};
use blindfold::devnet::accounts::named_key;
use blindfold_client::Offer;
use blindfold_l1::{
    L1Error, L1Writer,
    contracts::ForcedQueue::{Collected, feePerByteWeiCall},
};
use blindfold_protocol::{Canonical, Envelope, ForcedTransaction};
use futures::future::try_join_all;
use serde_json::json;

use super::{
    arena::{Arena, FUNDS_WEI, UNPAID, until},
    raw::amount,
    report::{Gas, Outcome},
};
use crate::traffic::Sender;

/// Gas that is paid for with a forced transfer.
const TRANSFER_GAS: u64 = 21_000;
/// The most gas that a forced transaction may reserve.
const MOST_GAS: u64 = 10_000_000;
/// Bytes of what reserves it.
const JUNK_BYTES: usize = 16;
/// Accounts that force junk, each of them [`JUNK_OF_EACH`] pieces.
const HOGS: u8 = 4;
const JUNK_OF_EACH: u8 = 4;

fn writer(arena: &Arena, sender: &Sender) -> L1Writer {
    arena.account(sender.key.clone())
}

/// An envelope that the sequencer refuses stands in a batch all the same, and executes.
pub async fn ignored_envelope(arena: &mut Arena) -> Outcome {
    let (raw, _) = arena.unpaid.transfer(0, U256::from(1));
    let envelope = arena.unpaid.envelope(raw.to_vec()).await?;
    arena.unpaid.expect_refusal(&envelope, "insufficient_funds").await?;
    let sent = writer(arena, &arena.unpaid).force_envelope(&envelope.encode()).await?;
    let receipt = arena.executed(envelope.id()).await?;
    arena.unpaid.nonce = 1;
    let (sealed, _) = arena.sealed(receipt.number.context("a number")?).await?;
    let index = receipt.index.context("an index")? as usize;
    ensure!(
        sealed.header.forced_cursor > 0 && sealed.items[index] == envelope.encode(),
        "expected user {UNPAID}'s envelope among the forced items of {:?}",
        sealed.header
    );
    let mut gas = Gas::default();
    gas.step("", sent.gas_used);
    Ok(gas)
}

/// Forced items that are no good are skipped, each with its code, and the chain goes on.
pub async fn invalid_forced(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    // An envelope by its version, with a gas limit of 0, for which nothing has to be paid.
    let mut garbage = vec![0; 700];
    (garbage[0], garbage[699]) = (2, 0x5e);
    let (raw, _) = arena.users[0].transfer(1_000_000, U256::from(1));
    let early = Offer {
        base_fee: 1,
        gas_base_fee: 1,
        priority_fee: 0,
        head: 0,
        generation: 0,
        expiry_batches: 1,
        promise: false,
    };
    let expired = arena.users[1].envelope_for(raw.to_vec(), &early)?.encode();
    let honest = arena.users[2].envelope(raw.to_vec()).await?;
    let forged = Envelope::sign(honest.header, honest.ciphertext, honest.proof, &arena.users[3].key).encode();
    let transaction = ForcedTransaction { gas_limit: TRANSFER_GAS, transaction: raw.to_vec() };
    // Each from an account of its own, so that all are on their way at once; none from the account whose accounts are exact,
    // because what is sent above the queue's price comes back.
    let mut accounts: Vec<L1Writer> = arena.users.iter().map(|user| writer(arena, user)).collect();
    accounts[0] = arena.bully();
    let (one, two, three, four) = tokio::try_join!(
        accounts[0].force_envelope(&garbage),
        accounts[1].force_envelope(&expired),
        accounts[2].force_envelope(&forged),
        accounts[3].force_transaction(TRANSFER_GAS, &raw),
    )?;
    for (name, sent) in [("garbage", one), ("expired", two), ("bad signature", three), ("bad nonce", four)] {
        gas.step(name, sent.gas_used);
    }

    let expected = [
        (garbage, "undecodable"),
        (expired, "expired"),
        (forged, "invalid_fee_signature"),
        (transaction.encode(), "forced_transaction"),
    ];
    let found =
        until("the forced items to stand in batches", async || places(arena, &expected).await).await?;
    // The chain goes on: what comes after them is executed.
    let (_, receipt) = arena.transfer(0).await?;
    let after = receipt.number.context("a number")?;
    ensure!(found.iter().all(|number| *number < after), "expected a batch after {found:?}, seen {after}");
    let hash = alloy_primitives::keccak256(&raw);
    let included = arena.reads()?.call("eth_getTransactionReceipt", &[json!(hash)]).await?;
    ensure!(included.is_null(), "expected the transaction with a bad nonce to be skipped, seen {included}");
    Ok(gas)
}

/// Junk of a few bytes reserves gas that it never uses: it pays for that gas, more for each next piece, and what the gas
/// costs is burnt. Honest transfers go on.
pub async fn reserved_gas(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    let queue = arena.devnet.chain.forced_queue;
    let junk = |hog: u8, n: u8| [&[0xee; JUNK_BYTES - 2][..], &[hog, n]].concat();
    let price = async || anyhow::Ok(arena.devnet.l1.forced_transaction_fee(MOST_GAS, &junk(0, 0)).await?);
    let held = async || amount(&arena.raw.call("eth_getBalance", json!([queue, "latest"])).await?);
    // So that only the junk is in the queue's purse.
    let reporter = arena.reporter();
    if !held().await?.is_zero() {
        reporter.collect_forced_fees().await?;
    }
    let before = price().await?;
    let sent = try_join_all((0..HOGS).map(|hog| {
        let writer = arena.account(named_key(&format!("hog-{hog}")));
        let raw = &arena.raw;
        async move {
            raw.call("anvil_setBalance", json!([writer.address(), U256::from(FUNDS_WEI)])).await?;
            let mut last = None;
            for n in 0..JUNK_OF_EACH {
                let forced = until("room at the offered price", async || {
                    match writer.force_transaction(MOST_GAS, &junk(hog, n)).await {
                        Ok(sent) => Ok(Some(sent)),
                        // The others came first and raised the price.
                        Err(L1Error::Failed { .. }) => Ok(None),
                        Err(error) => Err(error.into()),
                    }
                });
                last = Some(forced.await?);
            }
            last.context("a piece of junk")
        }
    }))
    .await?;
    gas.step("force", sent[0].gas_used);
    let after = price().await?;
    ensure!(after >= before * U256::from(2), "expected the price to rise: {before} wei, then {after}");

    let pieces = || (0..HOGS).flat_map(|hog| (0..JUNK_OF_EACH).map(move |n| junk(hog, n)));
    let paid = held().await?;
    let least = before * U256::from(pieces().count());
    ensure!(paid > least, "expected more than {least} wei in the queue, seen {paid}");
    let items = pieces().map(|raw| ForcedTransaction { gas_limit: MOST_GAS, transaction: raw }.encode());
    let expected: Vec<_> = items.map(|item| (item, "forced_transaction")).collect();
    arena.transfer(0).await?;
    until("the junk to stand in batches", async || places(arena, &expected).await).await?;
    arena.transfer(2).await?;

    // The bytes are the sequencer's, to whom they are a cost; the gas is nobody's.
    let collected = reporter.collect_forced_fees().await?;
    let topics = json!([Collected::SIGNATURE_HASH]);
    let block = format!("{:#x}", collected.block);
    let filter = json!([{ "address": queue, "fromBlock": block, "toBlock": block, "topics": topics }]);
    let logs = arena.raw.call("eth_getLogs", filter).await?;
    let data = hex::decode(logs[0]["data"].as_str().context("what was collected")?)?;
    let shares = <(U256, U256)>::abi_decode(&data)?;
    let of_bytes = U256::from(JUNK_BYTES * expected.len()) * U256::from(fee_per_byte(arena).await?);
    ensure!(
        shares == (of_bytes, paid - of_bytes),
        "of {paid} wei expected {of_bytes} collected, seen {shares:?}"
    );
    gas.step("collect", collected.gas_used);
    Ok(gas)
}

/// What a byte costs in the forced queue, in wei.
async fn fee_per_byte(arena: &Arena) -> Result<u128> {
    let call = json!({ "to": arena.devnet.chain.forced_queue, "data": hex::encode_prefixed(feePerByteWeiCall {}.abi_encode()) });
    let answer = arena.raw.call("eth_call", json!([call, "latest"])).await?;
    Ok(amount(&answer)?.to())
}

/// The batches in which the items stand; `None` while one does not.
pub(super) async fn places(arena: &Arena, expected: &[(Vec<u8>, &str)]) -> Result<Option<Vec<u64>>> {
    let mut found = vec![None; expected.len()];
    for number in 1..=arena.status().await?.certified {
        let info = arena.batch(number).await?;
        let sealed = info.sealed.decode()?;
        for (item, verdict) in sealed.items.iter().zip(&info.verdicts) {
            let Some(at) = expected.iter().position(|(bytes, _)| bytes == item) else { continue };
            ensure!(
                verdict.as_deref() == Some(expected[at].1),
                "forced item in batch {number}: expected {}, seen {verdict:?}",
                expected[at].1
            );
            found[at] = Some(number);
        }
    }
    Ok(found.into_iter().collect())
}
