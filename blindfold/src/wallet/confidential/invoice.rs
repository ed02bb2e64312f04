//! `blindfold wallet confidential invoice`: totals of hidden prices and hidden quantities, from file to file.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use blindfold_client::confidential::invoice::{Invoicing, Lines, Order, PriceList, Total};
use blindfold_rpc::limits::MAX_CONFIDENTIAL_REQUEST_BYTES;
use blindfold_rpc::{ClientConfig, http_client};
use blindfold_runtime::rng;
use clap::{Args, Subcommand};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::super::{KeyArgs, print};
use crate::{
    roles::{load_chain, load_deployment},
    setup::write_secret,
};

/// Largest file that is read: an order has about 2.3 MB and its names.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// Examples of the commands.
pub(crate) const EXAMPLES: &str = "Examples, with --chain and --deployment or BLINDFOLD_CHAIN and BLINDFOLD_CONFIDENTIAL:
  payer     blindfold wallet confidential invoice order quantities.csv --out order.json --key k --password-file p
  supplier  blindfold wallet confidential invoice prices prices.csv --order order.json --out prices.json
  supplier  blindfold wallet confidential invoice total --order order.json --prices prices.json --out total.json \\
                --coprocessor http://127.0.0.1:9600
  anybody   blindfold wallet confidential invoice verify total.json --order order.json --prices prices.json
  payer     blindfold wallet confidential invoice open total.json --order order.json --key k --password-file p
  payer     blindfold wallet confidential send 0x… TOTAL --key k --password-file p --wait

A CSV has lines `name,number`: whole quantities up to 65535, whole prices in base units up to 4294967295; 256 lines at
most. Prices are found by the names of the order. order.json goes to the supplier and total.json to the payer.
prices.json never goes to the payer: with his key it is the price list. Whoever verifies must not be the payer.
What is hidden from whom, and what is not guaranteed: docs/coprocessor.md#invoices.";

/// What payer, supplier and others do with an invoice.
#[derive(Subcommand, Debug)]
pub(crate) enum InvoiceCommand {
    /// Payer: encrypt the quantities of an order, under a new key that follows from the wallet's
    #[command(after_help = EXAMPLES)]
    Order {
        /// CSV of name,quantity
        lines: PathBuf,
        /// The order, for the supplier; a new file
        #[arg(long)]
        out: PathBuf,
        #[command(flatten)]
        key: KeyArgs,
        #[command(flatten)]
        at: PartiesArgs,
    },
    /// Supplier: encrypt the prices of an order's lines to the payer
    #[command(after_help = EXAMPLES)]
    Prices {
        /// CSV of name,price; it may have more lines than the order
        lines: PathBuf,
        /// The payer's order
        #[arg(long)]
        order: PathBuf,
        /// The prices, a new file. Not for the payer
        #[arg(long)]
        out: PathBuf,
        #[command(flatten)]
        at: PartiesArgs,
    },
    /// Supplier: have a coprocessor compute the total
    #[command(after_help = EXAMPLES)]
    Total {
        #[command(flatten)]
        made_of: MadeOf,
        /// The total, for the payer; a new file
        #[arg(long)]
        out: PathBuf,
        /// Any coprocessor of the deployment; it learns neither prices nor quantities
        #[arg(long, env = "BLINDFOLD_COPROCESSOR_URL")]
        coprocessor: String,
        #[command(flatten)]
        at: PartiesArgs,
    },
    /// Anybody but the payer: compute the total again, here, and compare
    #[command(after_help = EXAMPLES)]
    Verify {
        /// The total
        total: PathBuf,
        #[command(flatten)]
        made_of: MadeOf,
        #[command(flatten)]
        at: PartiesArgs,
    },
    /// Payer: decrypt the total
    #[command(after_help = EXAMPLES)]
    Open {
        /// The total
        total: PathBuf,
        /// The own order
        #[arg(long)]
        order: PathBuf,
        #[command(flatten)]
        key: KeyArgs,
        #[command(flatten)]
        at: PartiesArgs,
    },
}

/// What a total is made of.
#[derive(Args, Debug)]
pub(crate) struct MadeOf {
    /// The payer's order
    #[arg(long)]
    order: PathBuf,
    /// The supplier's prices
    #[arg(long)]
    prices: PathBuf,
}

/// What every party of a deployment shares.
#[derive(Args, Debug)]
pub(crate) struct PartiesArgs {
    /// The chain's settings, rollup.json
    #[arg(long, env = "BLINDFOLD_CHAIN")]
    chain: PathBuf,
    /// The deployment, confidential.json
    #[arg(long, env = "BLINDFOLD_CONFIDENTIAL")]
    deployment: PathBuf,
}

impl PartiesArgs {
    fn invoicing(&self) -> Result<Invoicing> {
        let (chain, deployment) = (load_chain(&self.chain)?, load_deployment(&self.deployment)?);
        let (_, settings) = deployment.settings(&chain)?;
        Ok(Invoicing::new(&settings, deployment.seed)?)
    }
}

impl MadeOf {
    fn read(&self) -> Result<(Order, PriceList)> {
        Ok((document(&self.order)?, document(&self.prices)?))
    }
}

/// Runs one of them.
///
/// # Errors
/// Whatever it meets.
pub(crate) async fn run(command: InvoiceCommand, json: bool) -> Result<()> {
    let (shown, text) = done(command).await?;
    print(json, &shown, text)
}

/// What a command has to say, as JSON and for a reader.
async fn done(command: InvoiceCommand) -> Result<(Value, String)> {
    use InvoiceCommand as C;
    Ok(match command {
        C::Order { lines, out, key, at } => {
            let listed = Lines::parse(&text(&lines)?).with_context(|| lines.display().to_string())?;
            let order = at.invoicing()?.order(&key.open()?, &listed, &mut rng())?;
            written(&out, &order)?;
            let (count, key_hash, quantities_hash) =
                (order.lines.len(), order.key_hash(), order.quantities_hash());
            let text = format!(
                "order of {count} lines  {}\nkey         {key_hash}\nquantities  {quantities_hash}\n\
                 Give it to the supplier. It is needed again to open the total.",
                out.display()
            );
            let hashes = json!({"keyHash": key_hash, "quantitiesHash": quantities_hash});
            (json!({"file": out, "lines": count, "hashes": hashes}), text)
        }
        C::Prices { lines, order, out, at } => {
            let listed = Lines::parse(&text(&lines)?).with_context(|| lines.display().to_string())?;
            let prices = at.invoicing()?.prices(&document(&order)?, &listed, &mut rng())?;
            written(&out, &prices)?;
            let text = format!(
                "prices  {}  {}\nKeep it from the payer: with his key it is the price list.",
                prices.hash(),
                out.display()
            );
            let hashes = json!({"orderHash": prices.order_hash, "pricesHash": prices.hash()});
            (json!({"file": out, "hashes": hashes}), text)
        }
        C::Total { made_of, out, coprocessor, at } => {
            let (order, prices) = made_of.read()?;
            let config =
                ClientConfig { max_request_bytes: MAX_CONFIDENTIAL_REQUEST_BYTES, ..ClientConfig::default() };
            let client = http_client(&coprocessor, &config)?;
            let total = at.invoicing()?.ask(&client, &order, &prices).await?;
            written(&out, &total)?;
            let text = format!("total  {}  {}\nGive it to the payer.", total.hash(), out.display());
            (json!({"file": out, "hashes": hashes(&total)}), text)
        }
        C::Verify { total, made_of, at } => {
            let (order, prices) = made_of.read()?;
            let claimed: Total = document(&total)?;
            at.invoicing()?.verify(&order, &prices, &claimed)?;
            let text = format!("verified: order and prices give this total, to the byte\n{}", claimed.hash());
            (json!({"verified": true, "hashes": hashes(&claimed)}), text)
        }
        C::Open { total, order, key, at } => {
            let (order, claimed): (Order, Total) = (document(&order)?, document(&total)?);
            let opened = at.invoicing()?.open(&key.open()?, &order, &claimed)?;
            (json!({"total": opened}), format!("total  {opened}"))
        }
    })
}

fn hashes(total: &Total) -> Value {
    json!({
        "keyHash": total.key_hash,
        "quantitiesHash": total.quantities_hash,
        "pricesHash": total.prices_hash,
        "totalHash": total.hash(),
    })
}

/// Writes a document that only its owner can read; never over one that is there.
fn written(path: &Path, document: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(document)?;
    write_secret(path, &text).context("--out: name a file that does not exist yet")
}

fn document<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = text(path)?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} is not the file that this command takes", path.display()))
}

fn text(path: &Path) -> Result<Zeroizing<String>> {
    let file = std::fs::File::open(path).with_context(|| path.display().to_string())?;
    let mut text = Zeroizing::new(String::new());
    file.take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .with_context(|| format!("{} is no text", path.display()))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        bail!("{} is longer than any file of an invoice, {MAX_FILE_BYTES} bytes", path.display());
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
