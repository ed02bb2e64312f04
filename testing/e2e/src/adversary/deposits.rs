//! Somebody takes all the gas that L1 gives away on L2.

use alloy_primitives::{Bytes, U256, hex};
use alloy_sol_types::SolCall;
use anyhow::{Result, bail, ensure};
use blindfold_l1::{L1Error, L1Writer, L2Call, Sent, contracts::DepositPortal::gasPriceWeiCall};
use serde_json::json;

use super::{
    arena::{Arena, until},
    raw::amount,
    report::{Gas, Outcome},
};

/// Gas of all deposits of an L1 block together.
const BLOCK_GAS: u64 = 8_000_000;
/// The most gas that L1 allows a transaction (EIP-7825).
const MOST_L1_GAS: u64 = 1 << 24;
/// Gas of an honest deposit.
const HONEST_GAS: u64 = 100_000;
/// The least price of gas in the portal, in wei.
const LEAST_PRICE_WEI: u64 = 1_000_000_000;
/// What the honest user deposits: an ether.
const DEPOSIT_WEI: u128 = 1_000_000_000_000_000_000;
/// Who deposits: one whose accounts need not come out to the wei.
const USER: usize = 3;

/// One deposit asks for the gas of a whole L1 block. It burns as much on L1; doing so again in the next block would burn
/// more than a transaction can have, so others come in.
pub async fn deposit_hog(arena: &mut Arena) -> Outcome {
    let mut gas = Gas::default();
    let (hog, accomplice) = (arena.bully(), arena.forger());
    let to = arena.users[USER].key.address();
    let deposit = |mint: u128, gas| L2Call {
        to: Some(to),
        mint: U256::from(mint),
        value: U256::from(mint),
        gas,
        data: Bytes::new(),
    };
    let filling = deposit(0, BLOCK_GAS);
    let (one, other) =
        tokio::join!(hog.deposit_transaction(&filling), accomplice.deposit_transaction(&filling));
    let filled = one_of(one, other)?;
    gas.step("depositTransaction of a whole block's gas", filled.gas_used);
    ensure!(
        filled.gas_used >= BLOCK_GAS,
        "expected {BLOCK_GAS} gas to be burnt at least, seen {}",
        filled.gas_used
    );

    let before = arena.reads()?.balance(&to).await?;
    let user = arena.account(arena.users[USER].key.clone());
    let honest = deposited(&user, &deposit(DEPOSIT_WEI, HONEST_GAS)).await?;
    gas.step("depositTransaction after it", honest.gas_used);
    let most = 3 * HONEST_GAS + 100_000;
    ensure!(honest.gas_used < most, "expected less than {most} gas, seen {}", honest.gas_used);
    let next = price(arena, filled.block + 1).await?;
    let again = U256::from(BLOCK_GAS) * next / U256::from(LEAST_PRICE_WEI);
    ensure!(
        again > U256::from(MOST_L1_GAS),
        "expected a second deposit to need more than {MOST_L1_GAS} gas in the next block, seen {again}"
    );
    until("the honest deposit on L2", async || {
        let now = arena.reads()?.balance(&to).await?;
        Ok((now >= before + U256::from(DEPOSIT_WEI)).then_some(()))
    })
    .await?;
    Ok(gas)
}

/// The one that came in; for the other nothing was left, or it would have had to burn too much.
fn one_of(one: Result<Sent, L1Error>, other: Result<Sent, L1Error>) -> Result<Sent> {
    match (one, other) {
        (Ok(sent), Err(error)) | (Err(error), Ok(sent)) => match error {
            L1Error::Failed { .. } | L1Error::Reverted { .. } | L1Error::GasAboveLimit { .. } => Ok(sent),
            other => Err(other.into()),
        },
        (Ok(one), Ok(other)) => bail!("two filled a block, {} and {}", one.block, other.block),
        (Err(one), Err(other)) => bail!("none filled a block: {one}; {other}"),
    }
}

/// A deposit, tried again while the block it was tried on, or came into, has no room.
async fn deposited(user: &L1Writer, deposit: &L2Call) -> Result<Sent> {
    until("a deposit to have room", async || match user.deposit_transaction(deposit).await {
        Ok(sent) => Ok(Some(sent)),
        Err(L1Error::Reverted { reason, .. }) if reason.starts_with("DepositGasExhausted") => Ok(None),
        Err(L1Error::Failed { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    })
    .await
}

/// What deposits cost in this L1 block, in wei a gas.
async fn price(arena: &Arena, block: u64) -> Result<U256> {
    let portal = arena.devnet.chain.deposit_portal;
    let data = hex::encode_prefixed(gasPriceWeiCall {}.abi_encode());
    let call = json!([{ "to": portal, "data": data }, format!("{block:#x}")]);
    until(&format!("L1 block {block}"), async || {
        if arena.raw.height().await? < block {
            return Ok(None);
        }
        Ok(Some(amount(&arena.raw.call("eth_call", call.clone()).await?)?))
    })
    .await
}
