//! What is forced through L1: an envelope that the sequencer does not want, and items that are no good.

use alloy_primitives::U256;
use anyhow::{Context, Result, ensure};
use blindfold_client::Offer;
use blindfold_l1::L1Writer;
use blindfold_protocol::{Canonical, Envelope, ForcedTransaction};
use serde_json::json;

use super::{
    field::{Field, UNPAID, until},
    report::{Gas, Outcome},
};
use crate::traffic::Sender;

/// Gas that is paid for with a forced transfer.
const TRANSFER_GAS: u64 = 21_000;

fn writer(field: &Field, sender: &Sender) -> L1Writer {
    field.account(sender.key.clone())
}

/// An envelope that the sequencer refuses stands in a batch all the same, and executes.
pub async fn ignored_envelope(field: &mut Field) -> Outcome {
    let (raw, _) = field.unpaid.transfer(0, U256::from(1));
    let envelope = field.unpaid.envelope(raw.to_vec()).await?;
    field.unpaid.expect_refusal(&envelope, "insufficient_funds").await?;
    let sent = writer(field, &field.unpaid).force_envelope(&envelope.encode()).await?;
    let receipt = field.executed(envelope.id()).await?;
    field.unpaid.nonce = 1;
    let (sealed, _) = field.sealed(receipt.number.context("a number")?).await?;
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
pub async fn invalid_forced(field: &mut Field) -> Outcome {
    let mut gas = Gas::default();
    // An envelope by its version, with a gas limit of 0, for which nothing has to be paid.
    let mut garbage = vec![0; 700];
    (garbage[0], garbage[699]) = (2, 0x5e);
    let (raw, _) = field.users[0].transfer(1_000_000, U256::from(1));
    let early =
        Offer { base_fee: 1, gas_base_fee: 1, priority_fee: 0, head: 0, generation: 0, expiry_batches: 1 };
    let expired = field.users[1].envelope_for(raw.to_vec(), &early)?.encode();
    let honest = field.users[2].envelope(raw.to_vec()).await?;
    let forged = Envelope::sign(honest.header, honest.ciphertext, honest.proof, &field.users[3].key).encode();
    let transaction = ForcedTransaction { gas_limit: TRANSFER_GAS, transaction: raw.to_vec() };
    // Each from an account of its own, so that all are on their way at once; none from the account whose books are exact,
    // because what is sent above the queue's price comes back.
    let mut accounts: Vec<L1Writer> = field.users.iter().map(|user| writer(field, user)).collect();
    accounts[0] = field.bully();
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
        until("the forced items to stand in batches", async || places(field, &expected).await).await?;
    // The chain goes on: what comes after them is executed.
    let (_, receipt) = field.transfer(0).await?;
    let after = receipt.number.context("a number")?;
    ensure!(found.iter().all(|number| *number < after), "expected a batch after {found:?}, seen {after}");
    let hash = alloy_primitives::keccak256(&raw);
    let included = field.reads()?.call("eth_getTransactionReceipt", &[json!(hash)]).await?;
    ensure!(included.is_null(), "expected the transaction with a bad nonce to be skipped, seen {included}");
    Ok(gas)
}

/// The batches in which the items stand; `None` while one does not.
pub(super) async fn places(field: &Field, expected: &[(Vec<u8>, &str)]) -> Result<Option<Vec<u64>>> {
    let mut found = vec![None; expected.len()];
    for number in 1..=field.status().await?.certified {
        let info = field.batch(number).await?;
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
