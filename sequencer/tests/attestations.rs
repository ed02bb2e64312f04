//! Data as what it was opened to, which members read before it is posted (OD-6, OD-7).

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use blindfold_kit::{envelope, within};
use blindfold_l1::{HintPosting, HintRoots, L1Error};
use blindfold_rpc::RunningRole;
use common::{
    Running, World,
    doubles::{Reads, Unread},
};

/// The longest that can be set. The inbox makes a block with each question, so a test sees some dozens.
const LONG: u64 = 1_800;
/// L1 blocks that pass in a test.
const SHORT: u64 = 60;

fn world(wait_blocks: u64, readers: &[(u16, Reads)]) -> World {
    let world = World::with(|config, _| {
        config.posting.opened_wait_blocks = wait_blocks;
        config.posting.attestation_wait_ms = 50;
    });
    world.committee.readers.lock().extend(readers.iter().copied());
    world
}

/// Header 2 has an envelope, and is posted with right hints.
async fn opened(running: &Running<'_>) {
    for number in 1..=2 {
        running.send(&envelope(1, number)).await.unwrap();
        running.sealed(number).await;
        running.certify(number).await;
        let mut posted = running.world.inbox.posted.subscribe();
        within("a posting", posted.wait_for(|posted| *posted >= number)).await.unwrap();
    }
    running.hint(2).await;
    let hints = running.open(2).await.1;
    let root = HintRoots::in_calldata(2, &HintPosting::of(&[hints])).calldata.unwrap();
    running.world.inbox.post_hints((2, 2), root);
}

async fn has_data(running: &Running<'_>, number: u64) {
    let inbox = &running.world.inbox;
    running.eventually("the data", async || inbox.data.lock().contains(&(number, number))).await;
}

async fn counted(running: &Running<'_>, outcome: &str) -> u64 {
    let label = format!(r#"blindfold_data_attestations_total{{outcome="{outcome}",role="sequencer"}} "#);
    let metrics = running.admin("/metrics").await;
    let line = metrics.lines().find_map(|line| line.strip_prefix(&label)).unwrap();
    line.parse().unwrap()
}

#[tokio::test]
async fn data_goes_out_once_t_members_have_read_it() {
    for odd in [Reads::Silent, Reads::Lies, Reads::Copies, Reads::Refutes] {
        let world = world(LONG, &[(2, odd)]);
        let running = world.start_funded(&[1]).await;
        opened(&running).await;
        has_data(&running, 2).await;
        assert_eq!(world.inbox.opened.lock().len(), 1, "{odd:?}");
        assert!(world.committee.asked.lock().iter().all(|(_, numbers)| *numbers == (2, 2)));
        assert_eq!(counted(&running, "attested").await, 1, "{odd:?}");
        running.handle.shutdown().await;
    }
}

/// One short of t: the data waits, and is posted as it is when the wait is over. Nothing else waits for it.
#[tokio::test]
async fn a_committee_that_does_not_read_makes_data_dearer_and_not_absent() {
    for readers in [
        [(1, Reads::Silent), (4, Reads::Lies)],
        [(1, Reads::Silent), (4, Reads::Silent)],
        [(2, Reads::Copies), (3, Reads::Lies)],
        [(2, Reads::Refutes), (3, Reads::Silent)],
    ] {
        let world = world(SHORT, &readers);
        let running = world.start_funded(&[1]).await;
        opened(&running).await;
        has_data(&running, 2).await;
        assert_eq!(world.inbox.opened.lock().len(), 0, "{readers:?}");
        assert!(counted(&running, "silent").await > 0, "{readers:?}");
        assert_eq!(
            counted(&running, "attested").await + counted(&running, "refuted").await,
            0,
            "{readers:?}"
        );
        running.handle.shutdown().await;
    }
}

/// What is asked in vain is asked again: a committee that comes back in time is heard.
#[tokio::test]
async fn members_that_come_back_are_asked_again() {
    let world = world(LONG, &[(1, Reads::Silent), (2, Reads::Silent)]);
    let running = world.start_funded(&[1]).await;
    opened(&running).await;
    running.eventually("a vain question", async || counted(&running, "silent").await > 0).await;
    assert_eq!(world.inbox.opened.lock().len(), 0);
    world.committee.readers.lock().clear();
    has_data(&running, 2).await;
    assert_eq!(world.inbox.opened.lock().len(), 1);
    running.handle.shutdown().await;
}

/// Members that cannot read one piece, because of its hints or its numbers, read the next one all the same.
#[tokio::test]
async fn a_piece_that_is_not_read_keeps_no_other_waiting() {
    let world = world(LONG, &[]);
    let unread: Unread = |numbers, _| numbers == (2, 2);
    *world.committee.unread.lock() = Some(unread);
    let running = world.start_funded(&[1]).await;
    opened(&running).await;
    running.eventually("a vain question", async || counted(&running, "silent").await > 0).await;
    running.send(&envelope(1, 3)).await.unwrap();
    running.sealed(3).await;
    running.certify(3).await;
    let mut posted = world.inbox.posted.subscribe();
    within("a posting", posted.wait_for(|posted| *posted >= 3)).await.unwrap();
    running.hint(3).await;
    let hints = running.open(3).await.1;
    let root = HintRoots::in_calldata(3, &HintPosting::of(&[hints])).calldata.unwrap();
    world.inbox.post_hints((3, 3), root);
    has_data(&running, 3).await;
    let numbers: Vec<_> = world.inbox.opened.lock().iter().map(|(numbers, ..)| *numbers).collect();
    assert_eq!(numbers, [(3, 3)]);
    assert!(!world.inbox.data.lock().contains(&(2, 2)), "it still waits");
    running.handle.shutdown().await;
}

/// Whoever posts the right hints first, in blobs where members have no beacon node, makes no data dearer.
#[tokio::test]
async fn hints_that_members_cannot_read_do_not_hide_others_of_the_run() {
    let world = world(LONG, &[]);
    let unread: Unread = |_, data| data.starts_with(b"opened by HintsReference { id: 1,");
    *world.committee.unread.lock() = Some(unread);
    let running = world.start_funded(&[1]).await;
    opened(&running).await;
    running.eventually("a vain question", async || counted(&running, "silent").await > 0).await;
    let root = world.inbox.hint_postings.lock()[0].root;
    let second = world.inbox.post_hints((2, 2), root);
    has_data(&running, 2).await;
    let opened_by: Vec<u64> = world.inbox.opened.lock().iter().map(|(_, hints, _)| hints.id).collect();
    assert_eq!(opened_by, [second]);
    running.handle.shutdown().await;
}

#[tokio::test]
async fn what_so_many_refute_that_t_cannot_sign_is_posted_as_it_is() {
    let world = world(SHORT, &[(1, Reads::Refutes), (2, Reads::Refutes)]);
    let running = world.start_funded(&[1]).await;
    opened(&running).await;
    has_data(&running, 2).await;
    assert_eq!(world.inbox.opened.lock().len(), 0);
    assert_eq!(counted(&running, "refuted").await, 1, "once is enough");
    running.handle.shutdown().await;
}

/// Members that were given the next epoch's key read nothing of the epoch before: its data does not wait for them.
#[tokio::test]
async fn what_a_committee_that_left_does_not_read_is_posted_as_it_is_at_once() {
    let world = world(LONG, &[(1, Reads::Left), (2, Reads::Left)]);
    let running = world.start_funded(&[1]).await;
    opened(&running).await;
    has_data(&running, 2).await;
    assert_eq!(world.inbox.opened.lock().len(), 0);
    assert_eq!(counted(&running, "never").await, 1, "once is enough");
    running.handle.shutdown().await;
}

#[tokio::test]
async fn one_member_that_left_keeps_nobody_from_signing() {
    let world = world(LONG, &[(2, Reads::Left)]);
    let running = world.start_funded(&[1]).await;
    opened(&running).await;
    has_data(&running, 2).await;
    assert_eq!(world.inbox.opened.lock().len(), 1);
    running.handle.shutdown().await;
}

#[tokio::test]
async fn nobody_is_asked_where_the_settings_say_so() {
    let mut world = world(LONG, &[(1, Reads::Refutes), (2, Reads::Refutes)]);
    world.config.posting.attestation_wait_ms = 0;
    let running = world.start_funded(&[1]).await;
    opened(&running).await;
    has_data(&running, 2).await;
    assert_eq!(world.inbox.opened.lock().len(), 1);
    assert_eq!(world.committee.asked.lock().len(), 0);
    running.handle.shutdown().await;
}

/// Nothing of it is on disk: who comes back asks again, and posts once.
#[tokio::test]
async fn a_kill_between_attestation_and_posting_loses_nothing() {
    let world = world(LONG, &[]);
    // L1 is away when the members have signed.
    world.inbox.opened_faults.lock().extend(vec![L1Error::no_answer("scripted outage"); 1_000]);
    let running = world.start_funded(&[1]).await;
    opened(&running).await;
    running.eventually("an attestation", async || counted(&running, "attested").await > 0).await;
    assert_eq!(world.inbox.opened.lock().len(), 0);
    running.handle.abort().await;
    world.committee.asked.lock().clear();
    world.inbox.opened_faults.lock().clear();
    let running = world.start().await;
    has_data(&running, 2).await;
    assert_eq!(world.inbox.opened.lock().len(), 1);
    assert!(world.committee.asked.lock().len() >= 3, "asked anew");
    let mut attempts = world.inbox.attempts.subscribe();
    let now = *attempts.borrow_and_update();
    within("rounds of posting", attempts.wait_for(|count| *count >= now + 6)).await.unwrap();
    assert_eq!(world.inbox.data.lock().iter().filter(|run| **run == (2, 2)).count(), 1, "once");
    running.handle.shutdown().await;
}

/// Data name the hints that they are opened with. Those that were slashed open nothing more: others of the run do, or the
/// data is posted as it is.
#[tokio::test]
async fn hints_that_were_slashed_open_nothing() {
    for posted_again in [false, true] {
        let world = world(if posted_again { LONG } else { SHORT }, &[(1, Reads::Silent), (2, Reads::Silent)]);
        let running = world.start_funded(&[1]).await;
        opened(&running).await;
        running.eventually("a vain question", async || counted(&running, "silent").await > 0).await;
        world.inbox.slash(1);
        let root = world.inbox.hint_postings.lock()[0].root;
        let newest = world.inbox.slashed.lock()[0].1;
        let mut attempts = world.inbox.attempts.subscribe();
        let now = *attempts.borrow_and_update();
        within("rounds of posting", attempts.wait_for(|count| *count >= now + 6)).await.unwrap();
        assert!(world.inbox.head().block > newest, "the slashing is final");
        world.committee.readers.lock().clear();
        let again = posted_again.then(|| world.inbox.post_hints((2, 2), root));
        has_data(&running, 2).await;
        let opened_by: Vec<u64> = world.inbox.opened.lock().iter().map(|(_, hints, _)| hints.id).collect();
        assert_eq!(opened_by, again.into_iter().collect::<Vec<_>>());
        running.handle.shutdown().await;
    }
}
