//! `blindfold store`: what an operator does with a role's records.

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use blindfold_chain::Settled;
use blindfold_committee::VOTES_AFTER_KEY;
use blindfold_full_node::limits::MIN_KEPT_BATCHES;
use blindfold_signer::is_signer;
use blindfold_store::{Copied, Horizon, Purpose, SqlStore, Store, StoreUrl, Verified, transfer, verify};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::roles::store_named;

pub(crate) const EXAMPLES: &str = "Examples:
  blindfold store backup --store sequencer --out sequencer-2026-11-28.db
  blindfold store verify --store sequencer-2026-11-28.db
  blindfold store restore sequencer-2026-11-28.db --store sequencer
  blindfold store prune --store full-node --keep-batches 100000 --dry-run
  blindfold store copy --from sequencer --to postgres://blindfold@db.internal/sequencer --to-password-file password

A store is named by its role's folder (data_dir), by a SQLite file, or by its URL (sqlite:PATH, postgres://user@host/database).
What a restored role may do, and when: docs/operate.md, Backup and restore.";

/// `blindfold store …`
#[derive(Subcommand, Debug)]
pub enum StoreCommand {
    /// Move a role's records to another place, between engines if need be; the role has to be stopped
    ///
    /// The role goes on with the new place alone: the old one refuses to be run on from then on, so that nothing is signed
    /// twice. Set `store.url` to the new place before the next start. After a failure, repeat it with the same places; where that says
    /// that the target is not empty, with an empty one.
    Copy {
        /// Where they are
        #[arg(long, value_name = "STORE")]
        from: String,
        /// Where they go: an empty place
        #[arg(long, value_name = "STORE")]
        to: String,
        /// File whose first line is the password of the PostgreSQL user there
        #[arg(long, value_name = "FILE")]
        from_password_file: Option<PathBuf>,
        /// File whose first line is the password of the PostgreSQL user there
        #[arg(long, value_name = "FILE")]
        to_password_file: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a role's records, as they are at one moment, to a file; the role may be running
    ///
    /// Not a signer's: a copy of them would sign numbers twice.
    Backup {
        #[command(flatten)]
        store: StoreArgs,
        /// The file, a SQLite database; it must not exist yet
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a role's records of a backup, in an empty place
    ///
    /// What was signed since the backup is not in it. A sequencer asks its members about that before its first header; a member
    /// votes again from the next epoch on.
    Restore {
        /// The backup
        #[arg(value_name = "FILE")]
        backup: PathBuf,
        #[command(flatten)]
        store: StoreArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Forget what nobody needs any more of a full node's old batches; the node has to be stopped
    ///
    /// Of batches that L1 can change no more, that are executed, below the fee ledgers that are kept, and not among the
    /// newest that are to be kept, the hashes stay. Hashes, blocks and what was signed are never pruned; records of other
    /// roles are not at all. It may be interrupted: begun again, it goes on. A running node prunes by itself with
    /// `full_node.keep_batches`.
    Prune {
        #[command(flatten)]
        store: StoreArgs,
        /// How many of the newest batches stay whole
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(MIN_KEPT_BATCHES..))]
        keep_batches: u64,
        /// Say what would be pruned, and prune nothing; the node may be running
        #[arg(long)]
        dry_run: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Read all of a role's records, or of a backup, and say what does not fit together; the role may be running
    ///
    /// Ends with status 1 where something does not.
    Verify {
        #[command(flatten)]
        store: StoreArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Which store is meant.
#[derive(Args, Debug)]
pub struct StoreArgs {
    /// Folder of the role's files (data_dir), a SQLite file, or the store's URL
    #[arg(long, value_name = "STORE")]
    store: String,
    /// File whose first line is the password of the store's PostgreSQL user
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

impl StoreArgs {
    fn url(&self) -> Result<StoreUrl> {
        named(&self.store, self.password_file.as_deref()).context("--store")
    }
}

/// A store that a person names; a file is one, too.
fn named(place: &str, password_file: Option<&Path>) -> Result<StoreUrl> {
    let path = Path::new(place);
    if path.is_file() { Ok(StoreUrl::Sqlite(path.to_owned())) } else { store_named(place, password_file) }
}

/// Runs a command.
///
/// # Errors
/// What stops it, with what to do; `verify` where something does not fit.
pub async fn run(command: StoreCommand) -> Result<()> {
    match command {
        StoreCommand::Copy { from, to, from_password_file, to_password_file, json } => {
            let from = named(&from, from_password_file.as_deref()).context("--from")?;
            let to = named(&to, to_password_file.as_deref()).context("--to")?;
            ensure!(from != to, "--from and --to are the same store");
            copy(&from, &to, json).await
        }
        StoreCommand::Backup { store, out, json } => backup(&store.url()?, &out, json).await,
        StoreCommand::Restore { backup, store, json } => restore(&backup, &store.url()?, json).await,
        StoreCommand::Prune { store, keep_batches, dry_run: true, json } => {
            prunable(&store.url()?, keep_batches, json).await
        }
        StoreCommand::Prune { store, keep_batches, dry_run: false, json } => {
            prune(&store.url()?, keep_batches, json).await
        }
        StoreCommand::Verify { store, json } => look(&store.url()?, json).await,
    }
}

async fn copy(from: &StoreUrl, to: &StoreUrl, json: bool) -> Result<()> {
    existing(from)?;
    let source = from.open().await.with_context(|| format!("{from}: the role has to be stopped"))?;
    bound(&source, from).await?;
    let target = opened_empty(to).await?;
    let copied = transfer(&source, &target, &Purpose::Move { to: to.to_string() }, &told(json)).await;
    source.close().await;
    target.close().await;
    let copied = ended(copied, to)?;
    show(json, to, &copied);
    if !json {
        println!("set store.url = \"{to}\" before the role's next start; {from} is run on no more");
    }
    Ok(())
}

async fn backup(from: &StoreUrl, out: &Path, json: bool) -> Result<()> {
    ensure!(!out.exists(), "--out {}: it exists already; name another file", out.display());
    existing(from)?;
    let source = from.open_reader().await.with_context(|| from.to_string())?;
    no_signer(&bound(&source, from).await?)?;
    let target = StoreUrl::Sqlite(out.to_owned());
    let file = target.open().await.with_context(|| out.display().to_string())?;
    let copied = transfer(&source, &file, &Purpose::Backup, &told(json)).await;
    file.close().await;
    let copied = copied.and_then(|copied| SqlStore::make_plain(out).map(|()| copied));
    // What SQLite's own lock is about is over; a backup is one file.
    let _ = std::fs::remove_file(format!("{}.lock", out.display()));
    if copied.is_err() {
        let _ = std::fs::remove_file(out);
    }
    show(json, &target, &copied.with_context(|| format!("no backup of {from} was made"))?);
    Ok(())
}

async fn restore(backup: &Path, to: &StoreUrl, json: bool) -> Result<()> {
    let from = StoreUrl::Sqlite(backup.to_owned());
    existing(&from)?;
    let source = from.open_reader().await.with_context(|| from.to_string())?;
    let role = bound(&source, &from).await?;
    no_signer(&role)?;
    let found = verify(&source, |_| ()).await?;
    if let Some(fault) = found.faults.first() {
        bail!("the backup is damaged: {fault}; `blindfold store verify` says all of it");
    }
    let target = opened_empty(to).await?;
    // It does not know what was voted for since: rule C-1, as for a fresh disk.
    let meta = match role.starts_with("member") {
        true => vec![(VOTES_AFTER_KEY.to_owned(), Vec::new())],
        false => Vec::new(),
    };
    let copied = transfer(&source, &target, &Purpose::Restore { meta }, &told(json)).await;
    target.close().await;
    let copied = ended(copied, to)?;
    show(json, to, &copied);
    if !json {
        println!("{}", advice(&role));
    }
    Ok(())
}

/// Says what pruning would do.
async fn prunable(at: &StoreUrl, keep: u64, json: bool) -> Result<()> {
    existing(at)?;
    let store = at.open_reader().await.with_context(|| at.to_string())?;
    bound(&store, at).await?;
    let finalized = Settled::final_on_disk(&store).await?;
    let horizon = store.horizon(finalized, keep).await?;
    let (batches, bytes) = store.prunable(horizon).await?;
    show_pruned(json, at, horizon, Pruning { batches, bytes, dry_run: true });
    Ok(())
}

async fn prune(at: &StoreUrl, keep: u64, json: bool) -> Result<()> {
    existing(at)?;
    let running = "stop the node first, or let it prune by itself: full_node.keep_batches";
    let store = at.open().await.with_context(|| format!("{at}: {running}"))?;
    bound(&store, at).await?;
    store.check_usable().await.with_context(|| at.to_string())?;
    let finalized = Settled::final_on_disk(&store).await?;
    let shows = std::io::stderr().is_terminal() && !json;
    let mut done = Pruning { batches: 0, bytes: 0, dry_run: false };
    loop {
        let step = store.prune(finalized, keep).await?;
        done.batches += step.batches;
        done.bytes += step.bytes;
        if shows && step.batches > 0 {
            eprint!("\rbatch {}", step.through);
        }
        if !step.more {
            break;
        }
    }
    if shows && done.batches > 0 {
        eprintln!();
    }
    let horizon = store.horizon(finalized, keep).await?;
    store.close().await;
    show_pruned(json, at, horizon, done);
    Ok(())
}

/// What was pruned, or would be.
struct Pruning {
    batches: u64,
    bytes: u64,
    dry_run: bool,
}

fn show_pruned(json: bool, at: &StoreUrl, horizon: Horizon, done: Pruning) {
    let Horizon { pruned, through, kept_for } = horizon;
    let Pruning { batches, bytes, dry_run } = done;
    let next = through.saturating_add(1);
    if json {
        let all = json!({
            "store": at.to_string(),
            "dryRun": dry_run,
            "batches": batches,
            "bytes": bytes,
            "prunedThrough": pruned,
            "through": through,
            "keptFor": kept_for.to_string(),
        });
        println!("{all:#}");
        return;
    }
    let would = if dry_run { "would be pruned" } else { "are pruned" };
    println!(
        "{batches} batches with {bytes} bytes of headers and items {would}, up to batch {}",
        through.max(pruned)
    );
    println!("batch {next} is kept: {kept_for}");
}

/// What an operator has to know of a restored role.
fn advice(role: &str) -> &'static str {
    match role {
        "sequencer" => {
            "what was admitted, promised or signed since the backup is not in it: keep all members running; before its first \
             header the sequencer asks them what they hold"
        }
        member if member.starts_with("member") => {
            "the member follows and gives shares at once, and votes again from the next epoch on (/readyz says from when)"
        }
        _ => "the role fetches and verifies what it missed since the backup",
    }
}

async fn look(at: &StoreUrl, json: bool) -> Result<()> {
    existing(at)?;
    let store = at.open_reader().await.with_context(|| at.to_string())?;
    let shows = std::io::stderr().is_terminal() && !json;
    let progress = move |number: u64| {
        if shows {
            eprint!("\rbatch {number}");
        }
    };
    let found = verify(&store, progress).await?;
    let signed = store.heads().await?.acknowledged;
    if shows {
        eprintln!();
    }
    let Verified {
        bound,
        pruned_through,
        batches,
        items,
        certificates,
        hints,
        blocks,
        confidential_transactions,
        faults,
        more_faults,
    } = &found;
    if json {
        let range =
            |range: &Option<(u64, u64)>| range.map(|(first, last)| json!({ "first": first, "last": last }));
        let all = json!({
            "store": at.to_string(),
            "deployment": bound.as_ref().map(|(deployment, _)| deployment),
            "role": bound.as_ref().map(|(_, role)| role),
            "prunedThrough": pruned_through,
            "batches": range(batches),
            "signed": signed,
            "items": items,
            "certificates": certificates,
            "hints": hints,
            "blocks": range(blocks),
            "confidentialTransactions": confidential_transactions,
            "faults": faults,
            "moreFaults": more_faults,
        });
        println!("{all:#}");
    } else {
        let range = |range: &Option<(u64, u64)>| match range {
            Some((first, last)) => format!("{first} to {last}"),
            None => "none".to_owned(),
        };
        let (deployment, role) =
            bound.clone().unwrap_or_else(|| ("none yet".to_owned(), "none yet".to_owned()));
        for (name, value) in [
            ("deployment", deployment),
            ("role", role),
            ("pruned", range(&(*pruned_through > 0).then_some((1, *pruned_through)))),
            ("batches", range(batches)),
            ("signed", signed.map_or_else(|| "none".to_owned(), |number| format!("up to {number}"))),
            ("items", items.to_string()),
            ("certificates", certificates.to_string()),
            ("hints", hints.to_string()),
            ("blocks", range(blocks)),
            ("confidential", confidential_transactions.to_string()),
        ] {
            println!("{name:13} {value}");
        }
        for fault in faults {
            println!("fault         {fault}");
        }
    }
    match faults.len() as u64 + more_faults {
        0 => Ok(()),
        count => bail!("{count} faults: the files are damaged, or were changed from outside"),
    }
}

/// Refuses what is not there: opening would make it.
fn existing(store: &StoreUrl) -> Result<()> {
    match store {
        StoreUrl::Sqlite(path) if !path.exists() => bail!("there is no store at {}", path.display()),
        _ => Ok(()),
    }
}

/// The role that a store belongs to.
async fn bound(store: &SqlStore, url: &StoreUrl) -> Result<String> {
    let role = store.meta("role").await?.with_context(|| format!("{url} is empty: no role has run on it"))?;
    Ok(String::from_utf8_lossy(&role).into_owned())
}

/// A copy of a signer's records lacks what was signed since, and would sign those numbers twice.
fn no_signer(role: &str) -> Result<()> {
    ensure!(
        !is_signer(role),
        "these are the records of a signer: a copy lacks what is signed after it, and would sign those numbers twice, which \
         costs the bond. There is no backup of them: begin a lost disk anew (`blindfold signer begin`; docs/operate.md, The \
         signer). To move a signer to another place: stop it, then `blindfold store copy`"
    );
    Ok(())
}

async fn opened_empty(url: &StoreUrl) -> Result<SqlStore> {
    if let StoreUrl::Sqlite(path) = url
        && let Some(folder) = path.parent()
    {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    url.open().await.with_context(|| url.to_string())
}

fn ended(copied: Result<Vec<Copied>, blindfold_store::StoreError>, to: &StoreUrl) -> Result<Vec<Copied>> {
    copied.with_context(|| format!("not all has arrived at {to}, and no role runs on it"))
}

/// Says on a terminal which table is done.
fn told(json: bool) -> impl Fn(Copied) + Sync {
    let shows = std::io::stderr().is_terminal() && !json;
    move |Copied { table, rows }| {
        if shows && rows > 0 {
            eprintln!("  {table}: {rows}");
        }
    }
}

fn show(json: bool, to: &StoreUrl, copied: &[Copied]) {
    let rows: u64 = copied.iter().map(|copied| copied.rows).sum();
    if json {
        let tables: serde_json::Map<String, serde_json::Value> =
            copied.iter().map(|copied| (copied.table.to_owned(), copied.rows.into())).collect();
        println!("{:#}", json!({ "store": to.to_string(), "rows": rows, "tables": tables }));
    } else {
        println!("{rows} records are in {to}");
    }
}

#[cfg(test)]
#[path = "store_commands_tests.rs"]
mod tests;
