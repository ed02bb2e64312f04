//! `blindfold l1 status`.

use alloy_primitives::{Address, B256, U256};
use anyhow::Result;
use blindfold_l1::{
    AnnouncedEnd, GivenPromise, L1HeaderDue, PostingState, RegistryState, RunReference, SequencerEvent,
    Standing,
};
use blindfold_protocol::Epochs;
use clap::Args;
use serde::Serialize;

use super::{ReadArgs, hints::without_empty, range_start, table};
use crate::wallet::{ether, print};

pub(super) const EXAMPLE: &str = "Examples:
  blindfold l1 status --l1 http://127.0.0.1:8545 --chain rollup.json
  blindfold l1 status --json --blocks 20000 …      looks further back

Up to L1's newest block, which may not be final; epochs, rule sets and sequencers are those of the newest final block, by
which every role goes. Postings, void runs, publishers and accusations are those of the last --blocks; everything else is
complete.";

/// Publishers whose bonds are looked up at most.
const MAX_PUBLISHERS: usize = 16;
/// Lines of one list in the table at most; JSON has all.
const MAX_LISTED: usize = 8;

/// Options of `status`.
#[derive(Args, Debug)]
pub struct StatusArgs {
    /// How far back to look, in L1 blocks; two challenge windows by default
    #[arg(long)]
    blocks: Option<u64>,
    #[command(flatten)]
    read: ReadArgs,
}

/// Where everything stands.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    /// L1's newest block.
    block: u64,
    /// Lists begin after this block.
    listed_from: u64,
    head: Head,
    l1_headers: L1Headers,
    forced: Forced,
    sequencer: Sequencer,
    registry: Registry,
    hints: Hints,
    publishers: Vec<Publisher>,
    /// The last L2 block with a claimed output; 0 for none.
    last_output: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    number: u64,
    hash: B256,
    l1_origin: u64,
    /// L1 block of the last posting, whoever made the header; 0 for none.
    posted_at: u64,
    /// L1 block of the last certified posting; 0 for none.
    certified_at: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct L1Headers {
    /// How many there are.
    made: u64,
    /// The next may be made now.
    due: bool,
    /// Not before this L1 block, unless a forced item is due earlier; absent when due.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<u64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Forced {
    length: u64,
    taken: u64,
    due: u64,
    /// From this L1 origin on headers must hold the next one that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_due: Option<u64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sequencer {
    address: Address,
    bond: U256,
    announced: U256,
    /// Unix seconds; 0 when nothing is announced.
    unlocks_at: u64,
    open_accusations: u64,
    accusations: Vec<Accusation>,
    equivocations: Vec<u64>,
}

/// What the governor says: whose certificates count, under which rules, and what comes next.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Registry {
    /// The final block that this is of, the announced end aside.
    block: u64,
    epochs: Vec<EpochEntry>,
    /// The end of an epoch at the head that is announced after the newest block.
    announced_end: Option<End>,
    /// The first rule set is not among them.
    rule_sets: Vec<RuleSet>,
    /// Keys of sequencers that count for origins above the newest block.
    next_sequencers: Vec<NextSequencer>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct EpochEntry {
    epoch: u64,
    /// Its first and last batch number. One that was taken back has its last number before its first.
    first: u64,
    last: u64,
    /// The L1 block from which on its certificates count.
    counts_from: u64,
    /// The earlier epoch whose key it continues, 0 for none.
    continues: u64,
    members: usize,
    threshold: u16,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct End {
    epoch: u64,
    /// After this L1 block the next header that L1 makes is the epoch's last.
    until: u64,
    /// Something certified in between takes it back.
    for_silence: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RuleSet {
    rules: u16,
    /// The first batch number that has it.
    first: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NextSequencer {
    sequencer: Address,
    /// The first L1 origin of headers that it signs.
    from_block: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Accusation {
    /// The promise's id.
    promise: B256,
    /// Who gave it.
    sequencer: Address,
    envelope: B256,
    item_hash: B256,
    seal_by: u64,
    answer_until: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Hints {
    /// Postings ever.
    postings: u64,
    open: Vec<OpenPosting>,
    /// Final ones of the range.
    finalized: usize,
    slashed: usize,
    void: Vec<(u64, u64)>,
    /// Runs of the range without hints: first, last, and the L1 block from which on they may be declared void.
    waiting: Vec<(u64, u64, u64)>,
    /// How many of these were not read, and may have no items.
    waiting_unread: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OpenPosting {
    id: u64,
    first: u64,
    last: u64,
    publisher: Address,
    final_from: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Publisher {
    address: Address,
    total: U256,
    locked: U256,
    open: u32,
}

pub(super) async fn run(args: &StatusArgs) -> Result<()> {
    let (chain, l1) = args.read.connect().await?;
    let standing = l1.standing().await?;
    let blocks = args.blocks.unwrap_or(2 * u64::from(standing.timing.challenge_window));
    let from = range_start(standing.block, blocks, &chain);
    let hints = l1.recent_hints(from, standing.block).await?;
    let faults = l1.recent_faults(from, standing.block).await?;
    let mut runs = l1.recent_runs(from, standing.block).await?;
    runs.retain(|run| !hints.covers(run.last));
    let unread = without_empty(&mut runs, async |run| l1.headers_of(run).await).await?;
    let parent_items = l1.head_header().await?.map_or(0, |header| header.envelope_count);
    let registry = registry(&l1.epochs().await?, l1.announced_end().await?, &standing);
    let mut report = report(&standing, registry, &hints, &faults, &runs, parent_items);
    report.listed_from = from;
    report.hints.waiting_unread = unread;
    let mut addresses: Vec<Address> = hints.postings().map(|hints| hints.posted.publisher).collect();
    addresses.sort_unstable();
    addresses.dedup();
    for address in addresses.into_iter().take(MAX_PUBLISHERS) {
        let bond = l1.publisher_bond(address).await?;
        let (total, locked) = (U256::from(bond.total), U256::from(bond.locked));
        report.publishers.push(Publisher { address, total, locked, open: bond.open });
    }
    print(args.read.json, &report, text(&report))
}

fn registry(epochs: &Epochs, end: Option<AnnouncedEnd>, standing: &Standing) -> Registry {
    // The contract keeps what nothing comes of any more: the committee is back, or the epoch ended at its last number.
    let stands = |end: &AnnouncedEnd| {
        let is_back = end.for_silence && standing.last_certified_at >= end.announced_at;
        let next = standing.head.number.saturating_add(1);
        let ended = epochs.at(next).is_some_and(|serving| serving.epoch > end.epoch);
        !is_back && !ended
    };
    let entry = |epoch: &blindfold_protocol::Epoch| EpochEntry {
        epoch: epoch.epoch,
        first: epoch.first,
        last: epoch.last,
        counts_from: epoch.counts_from,
        continues: epoch.continues,
        members: epoch.members.len(),
        threshold: epoch.threshold,
    };
    let later = epochs.sequencers().iter().filter(|change| change.from_block > standing.block);
    Registry {
        block: epochs.read_at(),
        epochs: epochs.as_slice().iter().map(entry).collect(),
        announced_end: end.filter(stands).map(|end| End {
            epoch: end.epoch,
            until: end.until,
            for_silence: end.for_silence,
        }),
        rule_sets: epochs
            .rules()
            .iter()
            .map(|change| RuleSet { rules: change.rules, first: change.first })
            .collect(),
        next_sequencers: later
            .map(|change| NextSequencer { sequencer: change.sequencer, from_block: change.from_block })
            .collect(),
    }
}

fn report(
    standing: &Standing,
    registry: Registry,
    hints: &RegistryState,
    faults: &[SequencerEvent],
    runs: &[RunReference],
    parent_items: u32,
) -> Report {
    let due = standing.l1_header_due(parent_items);
    // Before the first certified header L1 makes none, and the inbox holds the block of its deployment as that of a posting.
    let posted = standing.head.number != 0;
    let block_of = |at: u64| if posted { at } else { 0 };
    Report {
        block: standing.block,
        listed_from: 0,
        head: Head {
            number: standing.head.number,
            hash: standing.head.hash,
            l1_origin: standing.head.l1_origin_number,
            posted_at: block_of(standing.head_posted_at),
            certified_at: block_of(standing.last_certified_at),
        },
        l1_headers: L1Headers {
            made: standing.l1_made,
            due: posted && matches!(due, L1HeaderDue::Now { .. }),
            from: match due {
                L1HeaderDue::From(block) | L1HeaderDue::NothingToInclude { empty_from: block } if posted => {
                    Some(block)
                }
                _ => None,
            },
        },
        forced: Forced {
            length: standing.forced_length,
            taken: standing.head.forced_cursor,
            due: standing.forced_due(),
            next_due: standing.forced_next.first().map(|item| standing.due_at(item)),
        },
        sequencer: Sequencer {
            address: standing.sequencer,
            bond: standing.bond.amount,
            announced: U256::from(standing.bond.withdrawal),
            unlocks_at: standing.bond.unlocks_at,
            open_accusations: standing.open_accusations,
            accusations: open_accusations(faults),
            equivocations: equivocations(faults),
        },
        registry,
        hints: hints_of(standing, hints, runs),
        publishers: Vec::new(),
        last_output: standing.last_output,
    }
}

fn hints_of(standing: &Standing, hints: &RegistryState, runs: &[RunReference]) -> Hints {
    let window = u64::from(standing.timing.challenge_window);
    let deadline = u64::from(standing.timing.hint_deadline);
    let count = |state| hints.postings().filter(|hints| hints.state == state).count();
    let waiting = runs.iter().filter(|run| !hints.covers(run.last));
    Hints {
        postings: standing.hint_postings,
        open: hints
            .open()
            .map(|posting| OpenPosting {
                id: posting.id,
                first: posting.first,
                last: posting.last,
                publisher: posting.publisher,
                final_from: posting.l1_block.saturating_add(window),
            })
            .collect(),
        finalized: count(PostingState::Final),
        slashed: count(PostingState::Slashed),
        void: hints.void_runs().collect(),
        waiting: waiting.map(|run| (run.first, run.last, hints.void_from(run, deadline))).collect(),
        waiting_unread: 0,
    }
}

fn equivocations(faults: &[SequencerEvent]) -> Vec<u64> {
    let number = |event: &SequencerEvent| match event {
        SequencerEvent::Equivocation { number, .. } => Some(*number),
        _ => None,
    };
    faults.iter().filter_map(number).collect()
}

fn open_accusations(faults: &[SequencerEvent]) -> Vec<Accusation> {
    let mut open: Vec<Accusation> = Vec::new();
    for event in faults {
        match *event {
            SequencerEvent::Accused { promise, answer_until, .. } => {
                let GivenPromise { sequencer, envelope_id: envelope, item_hash, seal_by } = promise;
                let promise = promise.id();
                open.push(Accusation { promise, sequencer, envelope, item_hash, seal_by, answer_until });
            }
            SequencerEvent::Answered { promise_id, .. } | SequencerEvent::Omission { promise_id, .. } => {
                open.retain(|accusation| accusation.promise != promise_id);
            }
            SequencerEvent::Equivocation { .. } => {}
        }
    }
    open
}

/// The first lines of a list, and how many there are besides.
fn listed(lines: impl ExactSizeIterator<Item = String>, none: &str) -> String {
    let count = lines.len();
    let mut shown: Vec<String> = lines.take(MAX_LISTED).collect();
    if count > MAX_LISTED {
        shown.push(format!("and {} more: --json lists them", count - MAX_LISTED));
    }
    if shown.is_empty() { none.to_owned() } else { shown.join("\n") }
}

/// The rows of what the governor says.
fn registry_rows(registry: &Registry, newest: u64) -> Vec<(&'static str, String)> {
    let epoch = |e: &EpochEntry| {
        let EpochEntry { epoch, first, last, .. } = *e;
        if last < first {
            return format!("epoch {epoch}: taken back, no batch");
        }
        let counts = match e.counts_from {
            from if from > newest => format!(", counts from L1 block {from} on"),
            _ => String::new(),
        };
        format!("epoch {epoch}: batches {first}–{last}, {} of {} members{counts}", e.threshold, e.members)
    };
    let end = |end: &End| {
        let unless = if end.for_silence { ", unless something certified comes" } else { "" };
        format!(
            "epoch {} at the head: with the next header that L1 makes after L1 block {}{unless}",
            end.epoch, end.until
        )
    };
    let rules = |set: &RuleSet| format!("{} from batch {} on", set.rules, set.first);
    let sequencer = |next: &NextSequencer| format!("{} from L1 block {} on", next.sequencer, next.from_block);
    // The last ones are those that matter.
    let skipped = registry.epochs.len().saturating_sub(MAX_LISTED);
    let mut epochs: Vec<String> = registry.epochs.iter().skip(skipped).map(epoch).collect();
    if skipped > 0 {
        epochs.push(format!("and {skipped} earlier: --json lists them"));
    }
    let none = || "none".to_owned();
    vec![
        ("epochs", if epochs.is_empty() { none() } else { epochs.join("\n") }),
        ("announced end", registry.announced_end.as_ref().map_or_else(none, end)),
        ("rule sets", listed(registry.rule_sets.iter().rev().map(rules), "the first one")),
        ("named next", listed(registry.next_sequencers.iter().map(sequencer), "none named")),
    ]
}

fn text(report: &Report) -> String {
    let Report { head, l1_headers, forced, sequencer, hints, .. } = report;
    let posted = match head.posted_at {
        0 => "nothing yet".to_owned(),
        at => format!("L1 block {at}, {} blocks ago", report.block.saturating_sub(at)),
    };
    let certified = match head.certified_at {
        0 => "nothing yet".to_owned(),
        at => format!("last in L1 block {at}"),
    };
    let next_l1 = match (l1_headers.due, l1_headers.from) {
        (true, _) => "the next is due: `blindfold l1 post-header`".to_owned(),
        (false, Some(from)) => format!("the next not before L1 block {from}"),
        (false, None) => "nothing to put into one".to_owned(),
    };
    let waiting = forced.length.saturating_sub(forced.taken);
    let next_forced =
        forced.next_due.map(|at| format!(", the next due from L1 block {at} on")).unwrap_or_default();
    let announced = match sequencer.unlocks_at {
        0 => String::new(),
        at => format!(", {} announced, from {at} on (Unix seconds)", ether(sequencer.announced)),
    };
    let accusation = |a: &Accusation| {
        format!(
            "envelope {} by batch {}, to be answered until L1 block {}",
            a.envelope, a.seal_by, a.answer_until
        )
    };
    let open = |p: &OpenPosting| {
        format!(
            "posting {} of batches {}–{} by {}, final from L1 block {} on",
            p.id, p.first, p.last, p.publisher, p.final_from
        )
    };
    let without = |(first, last, from): &(u64, u64, u64)| {
        format!("batches {first}–{last}, void from L1 block {from} on")
    };
    let mut waiting_runs = listed(hints.waiting.iter().map(without), "no run");
    if hints.waiting_unread > 0 {
        let unread = format!("\nof which {} were not read, and may have no items", hints.waiting_unread);
        waiting_runs.push_str(&unread);
    }
    let publisher =
        |p: &Publisher| format!("{}: bond {} for {} open postings", p.address, ether(p.total), p.open);
    let mut rows = vec![
        ("L1 block", report.block.to_string()),
        ("head", format!("{} {} (L1 origin {})", head.number, head.hash, head.l1_origin)),
        ("last posting", posted),
        ("certified", certified),
        ("made by L1", format!("{}; {next_l1}", l1_headers.made)),
        ("forced items", format!("{} of {} wait, {} due{next_forced}", waiting, forced.length, forced.due)),
        ("sequencer", format!("{}: bond {}{announced}", sequencer.address, ether(sequencer.bond))),
        (
            "accusations",
            listed(sequencer.accusations.iter().map(accusation), &sequencer.open_accusations.to_string()),
        ),
        (
            "hints",
            format!(
                "{} postings, lately {} final and {} slashed",
                hints.postings, hints.finalized, hints.slashed
            ),
        ),
        ("open hints", listed(hints.open.iter().map(open), "none")),
        ("without hints", waiting_runs),
        ("void runs", listed(hints.void.iter().map(|(a, b)| format!("batches {a}–{b}")), "none lately")),
        ("publishers", listed(report.publishers.iter().map(publisher), "none lately")),
        ("outputs", format!("claimed up to L2 block {}", report.last_output)),
    ];
    let at = rows.iter().position(|(name, _)| *name == "hints").unwrap_or(rows.len());
    rows.splice(at..at, registry_rows(&report.registry, report.block));
    if !sequencer.equivocations.is_empty() {
        let numbers: Vec<String> = sequencer.equivocations.iter().map(u64::to_string).collect();
        rows.push(("two headers", format!("for {}", numbers.join(", "))));
    }
    table(&rows)
}

#[cfg(test)]
pub(crate) mod tests {
    use blindfold_bte::bls::SecretKey;
    use blindfold_l1::{Bond, HintEvent, PostedHead, PostedLog, QueuedItem};
    use blindfold_protocol::{Epoch, L1Timing, RulesChange, SequencerChange};

    use super::*;

    pub fn standing(block: u64) -> Standing {
        Standing {
            block,
            timing: L1Timing {
                posting_deadline: 100,
                forced_delay: 10,
                answer_window: 20,
                hint_deadline: 30,
                challenge_window: 24,
                withdrawal_delay: 500,
                max_origin_age_seconds: 14_400,
            },
            sequencer: Address::repeat_byte(5),
            head: PostedHead {
                number: 7,
                hash: B256::repeat_byte(7),
                timestamp_ms: 0,
                l1_origin_number: 990,
                forced_cursor: 4,
                block: 0,
            },
            head_posted_at: 1_000,
            last_certified_at: 1_000,
            equivocated_at: 0,
            end_due: false,
            l1_made: 2,
            forced_length: 4,
            forced_next: Vec::new(),
            bond: Bond { amount: U256::from(10u128.pow(18)), withdrawal: 0, unlocks_at: 0, expires_at: 0 },
            open_accusations: 1,
            hint_postings: 3,
            last_output: 12,
        }
    }

    pub fn item(index: u64, enqueued_at: u64) -> QueuedItem {
        QueuedItem { index, is_transaction: true, enqueued_at, gas_limit: 21_000, length: 100 }
    }

    pub fn epoch(epoch: u64, first: u64, last: u64) -> Epoch {
        let key = SecretKey::generate(&[7; 32]).unwrap().public_key();
        Epoch {
            epoch,
            first,
            last,
            counts_from: 500 * epoch,
            continues: 0,
            parameters_hash: B256::ZERO,
            encryption_key_hash: B256::ZERO,
            max_batch: 2,
            threshold: 3,
            members: vec![key; 4],
        }
    }

    fn governed() -> Registry {
        let change = |from_block, byte| SequencerChange { from_block, sequencer: Address::repeat_byte(byte) };
        let epochs = Epochs::new(vec![epoch(1, 1, 100), epoch(2, 101, 100), epoch(3, 101, 200)]).unwrap();
        let epochs = epochs.with_rules(vec![RulesChange { first: 90, rules: 2 }]).unwrap();
        let named = vec![change(0, 5), change(400, 6), change(1_900, 7)];
        let epochs = epochs.with_sequencers(named, 1_040).unwrap();
        let end = AnnouncedEnd { epoch: 1, announced_at: 900, until: 1_300, for_silence: false };
        registry(&epochs, Some(end), &standing(1_050))
    }

    #[test]
    fn an_end_for_silence_says_what_takes_it_back_and_nothing_is_said_of_nothing() {
        let standing = standing(1_050);
        let silent = AnnouncedEnd { epoch: 1, announced_at: 1_001, until: 1_300, for_silence: true };
        let rows = |epochs: &Epochs, end| registry_rows(&registry(epochs, end, &standing), standing.block);
        let shown = rows(&Epochs::default(), Some(silent));
        assert!(shown[1].1.contains("unless something certified comes"), "{shown:?}");
        let back = AnnouncedEnd { announced_at: 1_000, ..silent };
        let over = Epochs::new(vec![epoch(1, 1, 7), epoch(2, 8, 20)]).unwrap();
        for (epochs, end) in [(&Epochs::default(), back), (&over, silent)] {
            assert_eq!(rows(epochs, Some(end))[1].1, "none");
        }
        let shown = rows(&Epochs::default(), None);
        let values: Vec<&str> = shown.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["none", "none", "the first one", "none named"]);
    }

    fn full() -> Report {
        let posted = |id, publisher| PostedLog {
            id,
            first: 1,
            last: 4,
            publisher: Address::repeat_byte(publisher),
            l1_block: 1_001,
            transaction: B256::ZERO,
            root: B256::ZERO,
        };
        let slashed = HintEvent::Slashed {
            id: 2,
            last: 4,
            challenger: Address::ZERO,
            publisher: Address::repeat_byte(8),
            number: 1,
            index: 0,
            reason: 5,
            l1_block: 1_002,
        };
        let void = HintEvent::Voided { first: 5, last: 5 };
        let events = [HintEvent::Posted(posted(2, 8)), HintEvent::Posted(posted(3, 9)), slashed, void];
        let hints: RegistryState = events.iter().collect();
        let run = |first, last, posted_at| RunReference { first, last, posted_at, header_root: B256::ZERO };
        let promise = |id, seal_by| GivenPromise {
            sequencer: Address::repeat_byte(7),
            envelope_id: B256::repeat_byte(id),
            item_hash: B256::repeat_byte(0xcc),
            seal_by,
        };
        let accused = |id, seal_by| SequencerEvent::Accused {
            promise: promise(id, seal_by),
            accuser: Address::ZERO,
            answer_until: 1_020,
        };
        let faults = [
            accused(1, 5),
            SequencerEvent::Answered { promise_id: promise(1, 5).id(), answerer: Address::ZERO, number: 5 },
            accused(2, 4),
        ];
        let mut standing = standing(1_050);
        (standing.forced_length, standing.forced_next) = (6, vec![item(4, 1_030), item(5, 1_049)]);
        report(&standing, governed(), &hints, &faults, &[run(1, 4, 998), run(5, 5, 999), run(6, 7, 1_000)], 0)
    }

    #[test]
    fn the_table_shows_everything() {
        let text = text(&full());
        for part in [
            "head           7 0x0707",
            "L1 block 1000, 50 blocks ago",
            "2; the next not before L1 block 1101",
            "2 of 6 wait, 1 due, the next due from L1 block 1040 on",
            "bond 1 ether",
            "by batch 4, to be answered until L1 block 1020",
            "epoch 1: batches 1–100, 3 of 4 members\n",
            "epoch 2: taken back",
            "epoch 3: batches 101–200, 3 of 4 members, counts from L1 block 1500 on",
            "epoch 1 at the head: with the next header that L1 makes after L1 block 1300\n",
            "2 from batch 90 on",
            "0x0707070707070707070707070707070707070707 from L1 block 1900 on",
            "3 postings, lately 0 final and 1 slashed",
            "posting 3 of batches 1–4",
            "final from L1 block 1025 on",
            "batches 6–7, void from L1 block 1030 on",
            "batches 5–5",
            "claimed up to L2 block 12",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.contains("0x0101"), "answered accusations are over:\n{text}");
    }

    #[test]
    fn json_has_the_same_under_stable_names() {
        let json = serde_json::to_value(full()).unwrap();
        assert_eq!(json["head"]["number"], 7);
        assert_eq!(json["l1Headers"], serde_json::json!({"made": 2, "due": false, "from": 1_101}));
        assert_eq!(json["forced"], serde_json::json!({"length": 6, "taken": 4, "due": 1, "nextDue": 1_040}));
        assert_eq!(json["sequencer"]["accusations"][0]["sealBy"], 4);
        let registry = &json["registry"];
        assert_eq!(registry["block"], 1_040);
        let second = serde_json::json!({"epoch": 3, "first": 101, "last": 200, "countsFrom": 1_500, "continues": 0,
            "members": 4, "threshold": 3});
        assert_eq!(registry["epochs"][2], second);
        let end = serde_json::json!({"epoch": 1, "until": 1_300, "forSilence": false});
        assert_eq!(registry["announcedEnd"], end);
        assert_eq!(registry["ruleSets"], serde_json::json!([{"rules": 2, "first": 90}]));
        let next = serde_json::json!([{"sequencer": Address::repeat_byte(7), "fromBlock": 1_900}]);
        assert_eq!(registry["nextSequencers"], next);
        assert_eq!(json["hints"]["open"][0]["finalFrom"], 1_025);
        assert_eq!(json["hints"]["waiting"], serde_json::json!([[6, 7, 1_030]]));
        assert_eq!(json["lastOutput"], 12);
    }

    #[test]
    fn before_the_first_posting_nothing_is_due() {
        let mut standing = standing(5_000);
        // The inbox begins with the block of its deployment in both.
        (standing.head.number, standing.head_posted_at, standing.last_certified_at) = (0, 9, 9);
        let report = report(&standing, governed(), &RegistryState::default(), &[], &[], 0);
        assert!(!report.l1_headers.due && report.l1_headers.from.is_none());
        let text = text(&report);
        for part in ["last posting   nothing yet", "certified      nothing yet"] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!((&json["head"]["postedAt"], &json["head"]["certifiedAt"]), (&0.into(), &0.into()));
    }

    #[test]
    fn long_lists_are_cut_in_the_table() {
        let lines = |count: u64| listed((0..count).collect::<Vec<_>>().iter().map(u64::to_string), "none");
        assert_eq!(lines(0), "none");
        assert_eq!(lines(8).lines().count(), 8);
        assert!(lines(10).ends_with("and 2 more: --json lists them"));
    }
}
