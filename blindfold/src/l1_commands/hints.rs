//! `blindfold l1 finalize` and `blindfold l1 void`: what anybody may do for hints when their time is over.

use alloy_primitives::B256;
use anyhow::{Result, bail, ensure};
use blindfold_l1::{L1Client, L1Writer, PostedLog, PostedRun, PostingState, RegistryState, RunReference};
use blindfold_protocol::ChainConfig;
use clap::Args;
use serde::Serialize;

use super::{WriteArgs, range_start};
use crate::wallet::print;

pub(super) const FINALIZE_EXAMPLE: &str = "Examples:
  blindfold l1 finalize --l1 http://127.0.0.1:8545 --chain rollup.json --key key.json --password-file password
  blindfold l1 finalize 17 …      only posting 17

Without ids: every posting of the last --blocks whose window is over. One whose run has other final hints is released
instead, for which its publisher's bond need not answer any more.";

pub(super) const VOID_EXAMPLE: &str = "Examples:
  blindfold l1 void --l1 http://127.0.0.1:8545 --chain rollup.json --key key.json --password-file password
  blindfold l1 void 4096 --yes …      the run that ends with batch 4096

Without a number: lists the runs of the last --blocks that can be declared void, and sends nothing. Nothing of a void
run is ever executed: its fees stay paid, its surcharges return. Postings of the run whose publisher was slashed are
dropped first; the deadline counts anew from that slashing.";

/// Runs that are read at most to see whether they have items: two calls for each.
const MAX_READ_RUNS: usize = 32;

/// Options of `finalize`.
#[derive(Args, Debug)]
pub struct FinalizeArgs {
    /// Ids of postings; all that are due by default
    ids: Vec<u64>,
    /// How far back to look, in L1 blocks; two challenge windows by default
    #[arg(long)]
    blocks: Option<u64>,
    #[command(flatten)]
    write: WriteArgs,
}

/// Options of `void`.
#[derive(Args, Debug)]
pub struct VoidArgs {
    /// Last batch of the run; without it the runs are listed
    last: Option<u64>,
    /// Do it: it cannot be undone
    #[arg(long, requires = "last")]
    yes: bool,
    /// How far back to look, in L1 blocks; two hint deadlines by default
    #[arg(long)]
    blocks: Option<u64>,
    #[command(flatten)]
    write: WriteArgs,
}

/// What is to be done with a posting whose window is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    Finalize,
    Release,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Done {
    id: u64,
    first: u64,
    last: u64,
    step: Step,
    transaction: B256,
    block: u64,
}

pub(super) async fn finalize(args: &FinalizeArgs) -> Result<()> {
    let (chain, writer) = args.write.connect().await?;
    let l1 = writer.client();
    let (newest, timing) = (l1.newest_block().await?, l1.timing().await?);
    let window = u64::from(timing.challenge_window);
    let from = range_start(newest, args.blocks.unwrap_or(2 * window), &chain);
    let hints = l1.recent_hints(from, newest).await?;
    let steps = steps(&hints, &args.ids, newest, window)?;
    let mut done = Vec::new();
    for (posting, step) in steps {
        let sent = match step {
            Step::Finalize => writer.finalize_hints(posting.id).await?,
            Step::Release => writer.release_hints(posting.id).await?,
        };
        if !args.write.read.json {
            let what = if step == Step::Finalize { "final" } else { "released" };
            println!(
                "{what}: posting {} of batches {}–{} ({})",
                posting.id, posting.first, posting.last, sent.transaction
            );
        }
        let PostedLog { id, first, last, .. } = posting;
        done.push(Done { id, first, last, step, transaction: sent.transaction, block: sent.block });
    }
    if args.write.read.json || done.is_empty() {
        return print(args.write.read.json, &done, "no posting is due".to_owned());
    }
    Ok(())
}

/// The postings to close, in order: of each run the oldest becomes final, the others are released.
fn steps(hints: &RegistryState, ids: &[u64], newest: u64, window: u64) -> Result<Vec<(PostedLog, Step)>> {
    let due = |posting: &PostedLog| posting.l1_block.saturating_add(window);
    for id in ids {
        match hints.posting(*id) {
            None => bail!("posting {id} is not in the blocks looked at: give --blocks"),
            Some(hints) if hints.state != PostingState::Open => {
                bail!("posting {id} is not open: it is {:?}", hints.state)
            }
            Some(hints) if due(&hints.posted) > newest => {
                bail!(
                    "posting {id} can be challenged until L1 block {}, the newest is {newest}",
                    due(&hints.posted)
                )
            }
            Some(_) => {}
        }
    }
    let mut served: Vec<u64> = Vec::new();
    let mut steps = Vec::new();
    for posting in hints.open() {
        let wanted = ids.is_empty() || ids.contains(&posting.id);
        if due(posting) > newest || !wanted {
            continue;
        }
        let settled = hints.is_settled(posting.last) || served.contains(&posting.last);
        served.push(posting.last);
        steps.push((*posting, if settled { Step::Release } else { Step::Finalize }));
    }
    Ok(steps)
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Due {
    first: u64,
    last: u64,
    posted_at: u64,
    void_from: u64,
}

pub(super) async fn void(args: &VoidArgs) -> Result<()> {
    let (chain, writer) = args.write.connect().await?;
    let l1 = writer.client();
    let (newest, deadline) = (l1.newest_block().await?, u64::from(l1.timing().await?.hint_deadline));
    let blocks = args.blocks.unwrap_or(2 * deadline);
    let (mut waiting, hints) = without_hints(l1, &chain, newest, blocks).await?;
    let Some(last) = args.last else {
        let unread = without_empty(&mut waiting, async |run| l1.headers_of(run).await).await?;
        return list(&waiting, unread, &hints, newest, deadline, args.write.read.json);
    };
    let Some(run) = waiting.iter().find(|run| run.last == last) else {
        bail!(
            "no run without hints ends with batch {last} in the last {blocks} L1 blocks: `blindfold l1 void` lists them"
        );
    };
    ensure!(
        l1.headers_of(run).await?.is_none_or(|run| has_items(&run)),
        "batches {}–{last} have no items: they wait for no hints, and declaring them void would change nothing",
        run.first
    );
    let from = hints.void_from(run, deadline);
    ensure!(
        newest >= from,
        "batches {}–{last} may get hints until L1 block {from}, the newest is {newest}",
        run.first
    );
    ensure!(
        args.yes,
        "nothing of batches {}–{last} would ever be executed, and nobody can undo it: give --yes if that is wanted",
        run.first
    );
    for posting in hints.invalidated(last) {
        writer.drop_hints(posting.id).await?;
    }
    declare(&writer, run, args.write.read.json).await
}

async fn declare(writer: &L1Writer, run: &RunReference, json: bool) -> Result<()> {
    let sent = writer.void_unreleased(run).await?;
    let text =
        format!("void: batches {}–{} in L1 block {} ({})", run.first, run.last, sent.block, sent.transaction);
    let value = serde_json::json!({
        "first": run.first,
        "last": run.last,
        "transaction": sent.transaction,
        "block": sent.block,
    });
    print(json, &value, text)
}

fn has_items(run: &PostedRun) -> bool {
    run.headers.iter().any(|header| header.envelope_count != 0)
}

/// Takes out the runs without items, which wait for no hints; of the oldest [`MAX_READ_RUNS`]. Gives how many were not read.
pub(crate) async fn without_empty<E>(
    runs: &mut Vec<RunReference>,
    read: impl AsyncFn(&RunReference) -> Result<Option<PostedRun>, E>,
) -> Result<usize, E> {
    let unread = runs.split_off(runs.len().min(MAX_READ_RUNS));
    for run in std::mem::take(runs) {
        if read(&run).await?.is_none_or(|posted| has_items(&posted)) {
            runs.push(run);
        }
    }
    let count = unread.len();
    runs.extend(unread);
    Ok(count)
}

/// The runs of the range that have no hints on L1 and are not void, and what happened to hints in it.
pub(crate) async fn without_hints(
    l1: &L1Client,
    chain: &ChainConfig,
    newest: u64,
    blocks: u64,
) -> Result<(Vec<RunReference>, RegistryState)> {
    let from = range_start(newest, blocks, chain);
    let hints = l1.recent_hints(from, newest).await?;
    let mut runs = l1.recent_runs(from, newest).await?;
    runs.retain(|run| !hints.covers(run.last));
    Ok((runs, hints))
}

fn list(
    waiting: &[RunReference],
    unread: usize,
    hints: &RegistryState,
    newest: u64,
    deadline: u64,
    json: bool,
) -> Result<()> {
    let due: Vec<Due> = waiting
        .iter()
        .map(|run| Due {
            first: run.first,
            last: run.last,
            posted_at: run.posted_at,
            void_from: hints.void_from(run, deadline),
        })
        .filter(|due| due.void_from <= newest)
        .collect();
    let text = match due.as_slice() {
        [] => format!("no run can be declared void; {} wait for hints", waiting.len()),
        due => due.iter().map(line).collect::<Vec<_>>().join("\n"),
    };
    let text = match unread {
        0 => text,
        unread => {
            format!("{text}\nthe newest {unread} runs without hints were not read, and may have no items")
        }
    };
    print(json, &due, text)
}

fn line(due: &Due) -> String {
    let Due { first, last, posted_at, void_from } = due;
    format!(
        "batches {first}–{last}  posted in L1 block {posted_at}, void from {void_from} on: `blindfold l1 void {last}`"
    )
}

#[cfg(test)]
mod tests {
    use alloy_primitives::Address;
    use blindfold_l1::HintEvent;
    use blindfold_protocol::BatchHeader;

    use super::*;
    use crate::test_chain::header;

    #[tokio::test]
    async fn runs_without_items_wait_for_no_hints() {
        let run =
            |number| RunReference { first: number, last: number, posted_at: 9, header_root: B256::ZERO };
        let read = async |run: &RunReference| {
            // The third is in no block any more.
            let header =
                BatchHeader { number: run.last, envelope_count: u32::from(run.last == 2), ..header() };
            Ok::<_, ()>((run.last != 3).then_some(PostedRun { run: *run, headers: vec![header] }))
        };
        let mut runs: Vec<_> = (1..=4).map(run).collect();
        assert_eq!(without_empty(&mut runs, read).await, Ok(0));
        assert_eq!(runs, [run(2), run(3)]);
        let many = u64::try_from(MAX_READ_RUNS).unwrap() + 5;
        let mut runs: Vec<_> = (1..=many).map(run).collect();
        assert_eq!(without_empty(&mut runs, read).await, Ok(5));
        assert_eq!(runs.len(), 2 + 5);
    }

    fn posted(id: u64, last: u64, l1_block: u64) -> HintEvent {
        let publisher = Address::left_padding_from(&id.to_be_bytes());
        let (transaction, root) = (B256::ZERO, B256::ZERO);
        HintEvent::Posted(PostedLog { id, first: last - 1, last, publisher, l1_block, transaction, root })
    }

    fn slashed(id: u64, last: u64) -> HintEvent {
        HintEvent::Slashed {
            id,
            last,
            challenger: Address::ZERO,
            publisher: Address::left_padding_from(&id.to_be_bytes()),
            number: last,
            index: 0,
            reason: 5,
            l1_block: 110,
        }
    }

    #[test]
    fn the_oldest_posting_becomes_final_and_others_are_released() {
        let events = [
            posted(1, 2, 100),
            posted(2, 2, 101),
            posted(3, 2, 102),
            posted(4, 4, 103),
            posted(5, 4, 104),
            posted(6, 6, 105),
            slashed(1, 2),
            HintEvent::Finalized { id: 4, first: 3, last: 4 },
        ];
        let hints: RegistryState = events.iter().collect();
        let found = |newest, ids: &[u64]| {
            let steps = steps(&hints, ids, newest, 24).unwrap();
            steps.into_iter().map(|(posting, step)| (posting.id, step)).collect::<Vec<_>>()
        };
        let all = [(2, Step::Finalize), (3, Step::Release), (5, Step::Release)];
        assert_eq!(found(128, &[]), all);
        assert_eq!(found(129, &[6]), [(6, Step::Finalize)]);
        assert_eq!(found(124, &[]), []);
        let said = |ids: &[u64]| steps(&hints, ids, 128, 24).unwrap_err().to_string();
        assert!(said(&[6]).contains("until L1 block 129"));
        assert!(said(&[1]).contains("Slashed"));
        assert!(said(&[9]).contains("--blocks"));
    }

    #[test]
    fn runs_with_standing_hints_are_not_void() {
        let void = HintEvent::Voided { first: 5, last: 6 };
        let hints: RegistryState =
            [posted(1, 2, 100), posted(2, 4, 100), slashed(1, 2), void].iter().collect();
        assert_eq!([2, 4, 6, 8].map(|last| hints.covers(last)), [false, true, true, false]);
        let due = Due { first: 1, last: 2, posted_at: 90, void_from: 120 };
        assert!(line(&due).contains("`blindfold l1 void 2`"));
        assert_eq!(serde_json::to_value(&due).unwrap()["voidFrom"], 120);
    }
}
