//! Who owns what: the worth of every honest account on both layers before and after, and what it spent itself.

use std::collections::BTreeMap;

use alloy_primitives::{Address, U256};
use anyhow::{Context, Result};
use blindfold_protocol::{Canonical, Envelope};
use blindfold_rpc::{
    BlindApiClient,
    types::{LedgerAt, LedgerTag},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    arena::{Arena, until},
    raw::{amount, quantity},
};

/// The ledger as the server knows it by now.
const LATEST: LedgerAt = LedgerAt::Tag(LedgerTag::Latest);

/// What honest accounts had when the network stood, or after the last case that took nothing from them.
#[derive(Debug, Default)]
pub struct Accounting {
    accounts: Vec<(String, Address)>,
    /// The account that earns nothing either: for it the accounts have to come out to the wei, or they find no loss.
    exact: Option<usize>,
    before: BTreeMap<Address, U256>,
    spent_before: BTreeMap<Address, U256>,
    /// What each had, and had spent, at the last look without a loss.
    clean: Mutex<BTreeMap<Address, (U256, U256)>>,
    on_l1: Mutex<SpentOnL1>,
}

/// What the accounts spent on L1 up to a block. It is counted once: there are many blocks, and none is taken back.
#[derive(Clone, Debug, Default)]
struct SpentOnL1 {
    through: u64,
    spent: BTreeMap<Address, U256>,
}

impl Accounting {
    /// Notes what these accounts have. The one called `exact` will earn nothing.
    ///
    /// # Errors
    /// When L1 or the full node does not answer.
    pub async fn open(arena: &Arena, accounts: &[(String, Address)], exact: &str) -> Result<Self> {
        let exact = accounts.iter().position(|(name, _)| name == exact);
        let mut accounting = Self { accounts: accounts.to_vec(), exact, ..Self::default() };
        accounting.spent_before = accounting.spent(arena).await?;
        for (_, address) in accounts {
            accounting.before.insert(*address, worth(arena, *address).await?);
        }
        Ok(accounting)
    }

    /// Names every account that has less than it had, but for what it spent itself: gas, ordering fees, fees of the
    /// forced queue, and what it sent to others on L2.
    ///
    /// # Errors
    /// When L1 or the full node does not answer.
    pub async fn losses(&self, arena: &Arena) -> Result<Vec<String>> {
        let spent_before_looking = self.spent(arena).await?;
        // The worth first: what is spent later counts as spent and not as lost.
        let mut worths = Vec::new();
        for (name, address) in &self.accounts {
            worths.push((name, *address, worth(arena, *address).await?));
        }
        let spent = self.spent(arena).await?;
        let of =
            |map: &BTreeMap<Address, U256>, address: &Address| map.get(address).copied().unwrap_or_default();
        let mut losses = Vec::new();
        for (place, (name, address, after)) in worths.iter().enumerate() {
            let after = *after;
            let spent = of(&spent, address) - of(&self.spent_before, address);
            let before = of(&self.before, address);
            if Some(place) == self.exact && after + spent != before {
                losses.push(format!(
                    "the accounts do not add up: {name} had {before}, spent {spent}, has {after}"
                ));
            }
            if after + spent < before {
                let lost = before - after - spent;
                losses.push(format!(
                    "{name} ({address}) lost {lost} wei: had {before}, spent {spent}, has {after}"
                ));
            }
        }
        if losses.is_empty() {
            // Whoever spent something meanwhile has no worth that goes with it: for him the earlier one stands.
            let quiet = |address: &Address| of(&spent_before_looking, address) == of(&spent, address);
            let found = worths.into_iter().filter(|(_, address, _)| quiet(address));
            let found = found.map(|(_, address, after)| (address, (after, of(&spent, &address))));
            *self.clean.lock() = found.collect();
        }
        Ok(losses)
    }

    /// From now on nobody may have less than at the last look without a loss.
    pub fn close_case(&mut self) {
        for (address, (worth, spent)) in std::mem::take(&mut *self.clean.lock()) {
            self.before.insert(address, worth);
            self.spent_before.insert(address, spent);
        }
    }

    /// What each spent so far.
    async fn spent(&self, arena: &Arena) -> Result<BTreeMap<Address, U256>> {
        let mut on_l1 = self.on_l1.lock().clone();
        for (_, address) in &self.accounts {
            on_l1.spent.entry(*address).or_default();
        }
        let queue = arena.devnet.chain.forced_queue;
        let after = on_l1.through;
        on_l1.through = transactions(&L1(arena), after, &mut on_l1.spent, |to| to == Some(queue)).await?;
        let mut spent = on_l1.spent.clone();
        *self.on_l1.lock() = on_l1;
        transactions(&L2(arena), 0, &mut spent, |_| true).await?;
        ordering_fees(arena, &mut spent).await?;
        Ok(spent)
    }
}

/// Ether on L1 and L2, rewards, bond and fee account of an address, all of one moment.
async fn worth(arena: &Arena, address: Address) -> Result<U256> {
    until(&format!("a quiet moment to count what {address} has"), async || {
        let before = heads(arena).await?;
        let worth = worth_by_parts(arena, address).await?;
        Ok((heads(arena).await? == before).then_some(worth))
    })
    .await
}

/// Where both layers are: L1's height, the full node's certified header, its hints and its block.
async fn heads(arena: &Arena) -> Result<(u64, u64, u64, u64)> {
    let status = arena.status().await?;
    Ok((arena.raw.height().await?, status.certified, status.hinted, status.block.number))
}

/// Ether on L1 and L2, rewards, bond and fee account of an address, one after another.
async fn worth_by_parts(arena: &Arena, address: Address) -> Result<U256> {
    let l1 = &arena.devnet.l1;
    let on_l1 = amount(&arena.raw.call("eth_getBalance", json!([address, "latest"])).await?)?;
    let on_l2 = arena.reads()?.balance(&address).await?;
    let claims = l1.reward(address).await? + l1.hint_reward(address).await?;
    let bond = l1.publisher_bond(address).await?.total;
    let held = arena.node().get_fee_account(address).await?.held;
    let fees = match arena.node().get_fee_account_proof(address, Some(LATEST)).await? {
        Some(account) => U256::from(account.balance) + U256::from(account.withdrawn) + U256::from(held),
        None => U256::from(held),
    };
    // What the vault has paid by an exit is still in the ledger of a rollup that stands still.
    Ok(on_l1 + on_l2 + claims + U256::from(bond) + fees - l1.paid(address).await?)
}

/// Where blocks come from.
trait Blocks {
    async fn call(&self, method: &str, params: [Value; 2]) -> Result<Value>;
}

struct L1<'a>(&'a Arena);
struct L2<'a>(&'a Arena);

impl Blocks for L1<'_> {
    async fn call(&self, method: &str, params: [Value; 2]) -> Result<Value> {
        let given = params.into_iter().filter(|param| !param.is_null()).collect::<Vec<_>>();
        self.0.raw.call(method, json!(given)).await
    }
}

impl Blocks for L2<'_> {
    async fn call(&self, method: &str, params: [Value; 2]) -> Result<Value> {
        let given = params.into_iter().filter(|param| !param.is_null()).collect::<Vec<_>>();
        Ok(self.0.reads()?.call(method, &given).await?)
    }
}

/// Adds gas, and the value of transactions to whom it counts as spent, in the blocks after this one. Gives the last.
async fn transactions(
    blocks: &impl Blocks,
    after: u64,
    spent: &mut BTreeMap<Address, U256>,
    counts: impl Fn(Option<Address>) -> bool,
) -> Result<u64> {
    let newest = quantity(&blocks.call("eth_blockNumber", [Value::Null, Value::Null]).await?)?;
    for number in after + 1..=newest {
        let block = blocks.call("eth_getBlockByNumber", [json!(format!("{number:#x}")), json!(true)]).await?;
        for transaction in block["transactions"].as_array().context("transactions of a block")? {
            let from = transaction["from"].as_str().context("a sender")?.parse::<Address>()?;
            let Some(sum) = spent.get_mut(&from) else { continue };
            let receipt =
                blocks.call("eth_getTransactionReceipt", [transaction["hash"].clone(), Value::Null]);
            let receipt = receipt.await?;
            *sum += amount(&receipt["gasUsed"])? * amount(&receipt["effectiveGasPrice"])?;
            if !receipt["blobGasPrice"].is_null() && !receipt["blobGasUsed"].is_null() {
                *sum += amount(&receipt["blobGasUsed"])? * amount(&receipt["blobGasPrice"])?;
            }
            let to = transaction["to"].as_str().map(str::parse).transpose()?;
            if receipt["status"] == "0x1" && counts(to) {
                *sum += amount(&transaction["value"])?;
            }
        }
    }
    Ok(newest)
}

/// Adds what accepted envelopes paid for their bytes and for the gas they reserved; forced ones pay none.
async fn ordering_fees(arena: &Arena, spent: &mut BTreeMap<Address, U256>) -> Result<()> {
    let head = arena.status().await?.head.number;
    let mut cursor = 0;
    for number in 1..=head {
        let (sealed, codes) = arena.sealed(number).await?;
        let forced = usize::try_from(sealed.header.forced_cursor - cursor)?;
        cursor = sealed.header.forced_cursor;
        for (item, _) in sealed.items.iter().zip(codes).skip(forced).filter(|(_, code)| *code == 0) {
            let envelope = Envelope::decode(item)?;
            let Some(sum) = spent.get_mut(&envelope.header.payer) else { continue };
            let offered = sealed.header.base_fee.saturating_add(envelope.header.priority_fee);
            *sum += U256::from(item.len()) * U256::from(offered.min(envelope.header.max_fee));
            *sum += U256::from(envelope.header.gas_limit) * U256::from(sealed.header.gas_base_fee);
        }
    }
    Ok(())
}
