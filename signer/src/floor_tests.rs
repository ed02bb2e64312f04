#![allow(clippy::unwrap_used)]

use blindfold_chain::FallbackHeader;
use blindfold_kit::{ScriptedL1, chain_config, disk, l1, memory, payer, plain_header, sequencer_key, within};
use blindfold_protocol::{SequencerChange, keccak256};
use proptest::prelude::*;

use super::*;
use crate::begin::{BeginError, begin, forget_terms, role_of};

/// Where L1 is at the start of a test.
const ORIGIN: u64 = 2;

fn deployment() -> Deployment {
    chain_config().deployment
}

/// A header over another one; `salt` makes two of one number differ.
fn header(number: u64, parent: B256, origin: u64, salt: u8) -> BatchHeader {
    BatchHeader {
        parent_hash: parent,
        timestamp_ms: number,
        l1_origin_number: origin,
        envelope_root: B256::repeat_byte(salt),
        ..plain_header(number)
    }
}

/// The chain's first header.
fn first() -> BatchHeader {
    header(1, deployment().genesis_hash(), ORIGIN, 0)
}

fn after(before: &BatchHeader) -> BatchHeader {
    header(before.number + 1, before.hash(), before.l1_origin_number, 0)
}

fn made(number: u64, parent: B256, l1_block: u64) -> FallbackHeader {
    let header = header(number, parent, l1_block - 1, 0xfa);
    FallbackHeader { header, items: Vec::new(), l1_block }
}

async fn floor_on(store: Arc<dyn Store>, l1: &Arc<ScriptedL1>) -> Floor {
    let l1 = Arc::clone(l1) as Arc<dyn L1Reader>;
    store.bind(&deployment(), &role_of(sequencer_key().address())).await.unwrap();
    Floor::open(store, l1, sequencer_key(), deployment(), 1_000).await.unwrap()
}

async fn begun_at(first: u64, l1: &Arc<ScriptedL1>) -> Floor {
    let store = memory();
    begin(store.as_ref(), l1.as_ref(), (&deployment(), sequencer_key().address()), first).await.unwrap();
    floor_on(store, l1).await
}

/// A signer that signed numbers 1 to 4, and the headers.
async fn with_four(l1: &Arc<ScriptedL1>) -> (Floor, Vec<BatchHeader>) {
    let floor = begun_at(1, l1).await;
    let mut headers = vec![first()];
    while headers.len() < 4 {
        headers.push(after(headers.last().unwrap()));
    }
    for header in &headers {
        signs(&floor, header).await;
    }
    (floor, headers)
}

async fn signs(floor: &Floor, header: &BatchHeader) -> Signature65 {
    let signature = floor.sign_header(header, None).await.unwrap();
    let signer = blindfold_protocol::SignedHeader { header: *header, signature }.signer(&deployment());
    assert_eq!(signer, Ok(floor.address()));
    signature
}

async fn refuses(floor: &Floor, header: &BatchHeader) -> &'static str {
    floor.sign_header(header, None).await.unwrap_err().reason()
}

#[tokio::test]
async fn a_number_is_signed_once_and_the_same_header_again() {
    let l1 = l1();
    let (floor, headers) = with_four(&l1).await;
    // L1 is not needed for what follows, nor for the same again.
    l1.set_down(true);
    assert_eq!(signs(&floor, &headers[3]).await, signs(&floor, &headers[3]).await);
    signs(&floor, &after(&headers[3])).await;
    let mut second = headers[3];
    second.gas = 7;
    assert_eq!(refuses(&floor, &second).await, "l1_unavailable");
    l1.set_down(false);
    let refused = floor.sign_header(&second, None).await.unwrap_err();
    let (signed, offered) = (headers[3].hash(), second.hash());
    assert_eq!(refused, SigningRefusal::SecondHeader { number: 4, signed, offered });
    // An L1 that has not come to the second one's origin may excuse it later.
    second.l1_origin_number = ORIGIN + 5;
    assert_eq!(refuses(&floor, &second).await, "l1_behind");
    l1.advance(5);
    assert_eq!(refuses(&floor, &second).await, "second_header");
    assert_eq!(floor.newest().await.unwrap().map(|(number, _)| number), Some(5));
}

#[tokio::test]
async fn a_fresh_record_signs_nothing_until_it_is_told_from_where_on() {
    let l1 = l1();
    l1.posted.lock().insert(7, ORIGIN);
    let (folder, us) = (tempfile::tempdir().unwrap(), sequencer_key().address());
    let store = disk(&folder.path().join("floor.sqlite")).await;
    let floor = floor_on(Arc::clone(&store), &l1).await;
    let refused = floor.sign_header(&first(), None).await.unwrap_err();
    assert_eq!(refused, SigningRefusal::NotBegun { number: 1 });
    assert!(refused.to_string().contains("blindfold signer begin 1"), "{refused}");
    let promise = (B256::ZERO, B256::ZERO, 9);
    assert_eq!(floor.sign_promise(promise, None).await, Err(SigningRefusal::NotBegun { number: 9 }));
    drop(floor);
    let begins = async |first| begin(store.as_ref(), l1.as_ref(), (&deployment(), us), first).await;
    assert!(matches!(begins(0).await, Err(BeginError::Zero)));
    assert!(matches!(begins(7).await, Err(BeginError::Posted { first: 7, posted: 7 })));
    l1.set_down(true);
    assert!(matches!(begins(9).await, Err(BeginError::L1(_))));
    l1.set_down(false);
    begins(9).await.unwrap();
    assert!(matches!(begins(20).await, Err(BeginError::Begun { first: 9 })));
    let floor = floor_on(Arc::clone(&store), &l1).await;
    let eight = header(8, B256::repeat_byte(1), ORIGIN, 0);
    assert_eq!(refuses(&floor, &eight).await, "below_first");
    // What lies below is the operator's to know; nothing else is skipped.
    assert_eq!(refuses(&floor, &header(10, B256::repeat_byte(1), ORIGIN, 0)).await, "does_not_follow");
    let nine = header(9, eight.hash(), ORIGIN, 0);
    signs(&floor, &nine).await;
    signs(&floor, &after(&nine)).await;
    assert_eq!(refuses(&floor, &header(9, eight.hash(), ORIGIN, 1)).await, "second_header");
    // Nobody else signs on this record.
    let other = store.bind(&deployment(), &role_of(payer(1).address())).await;
    assert!(matches!(other, Err(StoreError::Foreign { name: "role", .. })));
    let elsewhere = Deployment { l1_chain_id: 99, ..deployment() };
    let other = store.bind(&elsewhere, &role_of(us)).await;
    assert!(matches!(other, Err(StoreError::Foreign { name: "deployment", .. })));
}

#[tokio::test]
async fn numbers_that_follow_nothing_are_refused_by_name() {
    let l1 = l1();
    let (floor, headers) = with_four(&l1).await;
    for (number, reason) in [(0, "wrong_number"), (u64::MAX, "wrong_number"), (6, "does_not_follow")] {
        assert_eq!(refuses(&floor, &header(number, headers[3].hash(), ORIGIN, 0)).await, reason, "{number}");
    }
    assert_eq!(refuses(&floor, &header(5, headers[2].hash(), ORIGIN, 0)).await, "does_not_follow");
    assert_eq!(refuses(&floor, &header(900, headers[3].hash(), ORIGIN, 0)).await, "does_not_follow");
    assert_eq!(refuses(&floor, &header(5, headers[2].hash(), ORIGIN + 1, 0)).await, "l1_behind");
    let fresh = begun_at(1, &l1).await;
    assert_eq!(refuses(&fresh, &header(1, B256::ZERO, ORIGIN, 0)).await, "does_not_follow");
    signs(&floor, &after(&headers[3])).await;
}

/// Rule O-7, by L1's word.
#[tokio::test]
async fn what_l1_displaced_is_signed_once_more_above_its_header() {
    let l1 = l1();
    let (floor, headers) = with_four(&l1).await;
    // L1 made number 2 in its block 5.
    let two = made(2, headers[0].hash(), 5);
    let three = header(3, two.header.hash(), 5, 0);
    l1.advance(2);
    assert_eq!(refuses(&floor, &three).await, "l1_behind");
    l1.advance(1);
    assert_eq!(refuses(&floor, &three).await, "second_header");
    l1.l1_headers.lock().push(two.clone());
    // Its number stays the first one's, an origin before its block is refused, and so is another parent.
    assert_eq!(refuses(&floor, &header(2, headers[0].hash(), 5, 1)).await, "second_header");
    assert_eq!(refuses(&floor, &header(3, two.header.hash(), 4, 0)).await, "second_header");
    assert_eq!(refuses(&floor, &header(3, headers[1].hash(), 5, 1)).await, "does_not_follow");
    signs(&floor, &three).await;
    assert_eq!(refuses(&floor, &header(3, two.header.hash(), 5, 1)).await, "second_header");
    assert_eq!(refuses(&floor, &headers[2]).await, "second_header");
    // So is what was signed above it, over the new one alone.
    assert_eq!(refuses(&floor, &header(4, headers[2].hash(), 5, 1)).await, "does_not_follow");
    signs(&floor, &header(4, three.hash(), 5, 1)).await;
    // L1 makes 5 and 6, which nobody signed: the next one follows them.
    let five = made(5, B256::repeat_byte(4), 7);
    let six = made(6, five.header.hash(), 8);
    l1.advance(4);
    l1.l1_headers.lock().extend([five, six.clone()]);
    assert_eq!(refuses(&floor, &header(7, six.header.hash(), 7, 0)).await, "does_not_follow");
    let seven = header(7, six.header.hash(), 8, 0);
    signs(&floor, &seven).await;
    signs(&floor, &after(&seven)).await;
}

/// K-6: what another key signed below is not here.
#[tokio::test]
async fn the_first_header_of_a_term_follows_what_another_key_signed() {
    let l1 = l1();
    let (us, them) = (sequencer_key().address(), payer(1).address());
    let named = |from_block, sequencer| SequencerChange { from_block, sequencer };
    *l1.sequencers.lock() = vec![named(0, us), named(100, them), named(200, us)];
    l1.advance(300);
    let (floor, headers) = with_four(&l1).await;
    let parent = B256::repeat_byte(9);
    assert_eq!(refuses(&floor, &header(50, parent, 90, 0)).await, "does_not_follow");
    let theirs = floor.sign_header(&header(50, parent, 150, 0), None).await;
    assert_eq!(theirs, Err(SigningRefusal::NotOurs { origin: 150, sequencer: them }));
    // Not below what is posted, nor without end.
    l1.posted.lock().insert(50, 190);
    assert_eq!(refuses(&floor, &header(50, parent, 200, 0)).await, "does_not_follow");
    let far = 51 + MAX_UNPOSTED_NUMBERS;
    assert_eq!(refuses(&floor, &header(far, parent, 200, 0)).await, "does_not_follow");
    // It signed four; another key had four as well, and the fifth goes above those.
    l1.posted.lock().clear();
    let five = header(5, parent, 200, 0);
    signs(&floor, &five).await;
    assert_eq!(refuses(&floor, &header(50, parent, 200, 0)).await, "does_not_follow");
    signs(&floor, &after(&five)).await;
    assert_eq!(refuses(&floor, &header(4, headers[2].hash(), 200, 1)).await, "second_header");
    // A key that is named for later, on a record of its own.
    *l1.sequencers.lock() = vec![named(0, them), named(200, us)];
    let next = begun_at(1, &l1).await;
    signs(&next, &header(77, parent, 201, 0)).await;
}

#[tokio::test]
async fn who_asks_in_an_older_term_is_refused_for_good() {
    let l1 = l1();
    let (folder, us) = (tempfile::tempdir().unwrap(), sequencer_key().address());
    let store = disk(&folder.path().join("floor.sqlite")).await;
    begin(store.as_ref(), l1.as_ref(), (&deployment(), us), 1).await.unwrap();
    let floor = floor_on(Arc::clone(&store), &l1).await;
    let one = first();
    let signature = floor.sign_header(&one, Some(3)).await.unwrap();
    let older = SigningRefusal::OlderTerm { offered: 2, seen: 3 };
    assert_eq!(floor.sign_header(&one, Some(2)).await, Err(older.clone()));
    let promise = (B256::ZERO, B256::ZERO, 9);
    assert_eq!(floor.sign_promise(promise, Some(2)).await, Err(older));
    assert_eq!(refuses(&floor, &one).await, "older_term");
    // Nothing that is refused raises it.
    let second = header(1, deployment().genesis_hash(), ORIGIN, 1);
    assert_eq!(floor.sign_header(&second, Some(u64::MAX)).await.unwrap_err().reason(), "second_header");
    let gap = header(9, B256::ZERO, ORIGIN, 1);
    assert_eq!(floor.sign_header(&gap, Some(u64::MAX)).await.unwrap_err().reason(), "does_not_follow");
    assert_eq!(floor.known().await.term, 3);
    floor.sign_promise(promise, Some(4)).await.unwrap();
    drop(floor);
    let floor = floor_on(Arc::clone(&store), &l1).await;
    assert_eq!(floor.known().await, Known { first: Some(1), term: 4 });
    assert_eq!(floor.sign_header(&one, Some(3)).await.unwrap_err().reason(), "older_term");
    assert_eq!(floor.sign_header(&one, Some(4)).await.unwrap(), signature);
    drop(floor);
    assert_eq!(forget_terms(store.as_ref(), &deployment(), us).await.unwrap(), 4);
    let floor = floor_on(store, &l1).await;
    assert_eq!(signs(&floor, &one).await, signature);
    assert_eq!(refuses(&floor, &header(1, deployment().genesis_hash(), ORIGIN, 1)).await, "second_header");
}

#[tokio::test]
async fn nothing_is_signed_that_the_disk_does_not_take() {
    let (l1, store) = (l1(), memory());
    let disk = blindfold_kit::FaultyStore::new(store);
    begin(disk.as_ref(), l1.as_ref(), (&deployment(), sequencer_key().address()), 1).await.unwrap();
    let floor = floor_on(disk.clone(), &l1).await;
    for operation in ["put_acknowledged", "acknowledgement"] {
        disk.fail(operation, StoreError::Failed("full".to_owned()));
        assert_eq!(refuses(&floor, &first()).await, "storage", "{operation}");
        disk.heal();
    }
    disk.fail("put_meta", StoreError::Failed("full".to_owned()));
    assert_eq!(floor.sign_header(&first(), Some(1)).await.unwrap_err().reason(), "storage");
    disk.heal();
    assert_eq!(floor.known().await.term, 0);
    signs(&floor, &first()).await;
}

/// Killed between the row and the answer: the next process gives that signature, and no other.
#[tokio::test]
async fn a_row_without_an_answer_binds() {
    let l1 = l1();
    let (folder, us) = (tempfile::tempdir().unwrap(), sequencer_key().address());
    let store = disk(&folder.path().join("floor.sqlite")).await;
    begin(store.as_ref(), l1.as_ref(), (&deployment(), us), 1).await.unwrap();
    let one = first();
    store.put_acknowledged(1, one.hash(), one.l1_origin_number).await.unwrap();
    let floor = floor_on(store, &l1).await;
    assert_eq!(refuses(&floor, &header(1, deployment().genesis_hash(), ORIGIN, 1)).await, "second_header");
    signs(&floor, &one).await;
}

#[tokio::test]
async fn of_two_that_ask_at_once_one_gets_the_number() {
    let l1 = l1();
    let (floor, headers) = with_four(&l1).await;
    let floor = Arc::new(floor);
    let asked = (0u8..8).map(|salt| {
        let (floor, header) = (Arc::clone(&floor), header(5, headers[3].hash(), ORIGIN, salt));
        async move { floor.sign_header(&header, Some(u64::from(salt % 2))).await }
    });
    let mut tasks = tokio::task::JoinSet::new();
    for ask in asked {
        tasks.spawn(ask);
    }
    let answers = within("all answers", tasks.join_all()).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "{answers:?}");
}

/// A copy, or a disk that went back: what L1 holds was signed, by whoever had the newer one.
#[tokio::test]
async fn what_l1_holds_is_not_signed_on_an_older_record() {
    let l1 = l1();
    let (floor, headers) = with_four(&l1).await;
    let five = after(&headers[3]);
    l1.posted.lock().insert(6, ORIGIN);
    let looked = floor.look().await.unwrap();
    assert!(floor.is_older_than(&looked).await.unwrap());
    let refused = floor.sign_header(&five, None).await.unwrap_err();
    assert_eq!(refused, SigningRefusal::OlderThanL1 { number: 5, posted: 6 });
    l1.set_down(true);
    assert_eq!(refuses(&floor, &five).await, "l1_unavailable");
    // What was signed here is signed again.
    signs(&floor, &headers[3]).await;
    l1.set_down(false);
    // What L1 made itself nobody signed; a header beside it is worth nothing, and costs nothing.
    l1.l1_headers.lock().extend([made(5, headers[3].hash(), 2), made(6, B256::repeat_byte(5), 2)]);
    assert!(!floor.is_older_than(&looked).await.unwrap());
    signs(&floor, &five).await;
    // A record that knows all of it.
    l1.posted.lock().insert(4, ORIGIN);
    l1.posted.lock().remove(&6);
    let looked = floor.look().await.unwrap();
    assert!(!floor.is_older_than(&looked).await.unwrap());
    signs(&floor, &after(&five)).await;
    // Nor is one old that does not say from where on it knows; it signs nothing.
    let fresh = floor_on(memory(), &l1).await;
    assert!(!fresh.is_older_than(&looked).await.unwrap());
}

/// A thief with a certificate signs nothing ahead that L1 could never excuse.
#[tokio::test]
async fn no_origin_is_signed_that_l1_has_not() {
    let l1 = l1();
    let (floor, headers) = with_four(&l1).await;
    let mut five = after(&headers[3]);
    five.l1_origin_number = 1 << 62;
    let refused = floor.sign_header(&five, None).await.unwrap_err();
    assert_eq!(refused, SigningRefusal::L1Behind { number: 5, origin: 1 << 62, finalized: ORIGIN });
    five.l1_origin_number = l1.advance(3_000);
    signs(&floor, &five).await;
    assert_eq!(refuses(&floor, &header(6, five.hash(), five.l1_origin_number + 900, 0)).await, "l1_behind");
    // A moment later without L1: nothing new is asked of it.
    l1.set_down(true);
    signs(&floor, &after(&five)).await;
}

/// K-6: ours gave way to what the committee had certified of the key before.
#[tokio::test]
async fn what_l1_holds_of_the_key_before_is_followed() {
    let l1 = l1();
    let (us, them) = (sequencer_key().address(), payer(1).address());
    let named = |from_block, sequencer| SequencerChange { from_block, sequencer };
    *l1.sequencers.lock() = vec![named(0, them), named(100, us)];
    l1.advance(300);
    let floor = begun_at(1, &l1).await;
    let ours = header(7, B256::repeat_byte(9), 100, 0);
    signs(&floor, &ours).await;
    // Of a posted header the script knows the number alone.
    let eight = header(8, B256::ZERO, 101, 0);
    assert_eq!(refuses(&floor, &eight).await, "does_not_follow");
    l1.posted.lock().insert(7, 200);
    signs(&floor, &eight).await;
    signs(&floor, &after(&eight)).await;
    assert_eq!(refuses(&floor, &header(7, B256::ZERO, 101, 1)).await, "second_header");
}

/// The first question after a quiet time takes as long as L1 does; whoever asks again has what it brought.
#[tokio::test]
async fn a_question_goes_on_when_nobody_waits_for_it() {
    let l1 = l1();
    let (mut floor, headers) = with_four(&l1).await;
    floor.l1_timeout = Duration::from_millis(20);
    l1.slow_ms.store(200, std::sync::atomic::Ordering::SeqCst);
    let second = header(4, headers[2].hash(), ORIGIN, 1);
    let answered = l1.answered.subscribe();
    let before = *answered.borrow();
    assert_eq!(refuses(&floor, &second).await, "l1_unavailable");
    let mut answered = answered;
    within("the question to go on", answered.wait_for(|count| *count > before)).await.unwrap();
}

/// An L1 that hangs keeps nobody from what needs no L1.
#[tokio::test]
async fn who_waits_for_l1_holds_nobody_up() {
    let l1 = l1();
    let (floor, headers) = with_four(&l1).await;
    l1.hangs.store(true, std::sync::atomic::Ordering::SeqCst);
    let second = header(4, headers[2].hash(), ORIGIN, 1);
    let (waits, signed) = tokio::join!(floor.sign_header(&second, None), async {
        let five = after(&headers[3]);
        signs(&floor, &five).await
    });
    assert_eq!(waits.unwrap_err().reason(), "l1_unavailable");
    assert_ne!(signed, Signature65::NONE);
}

/// What a random caller may ask for.
#[derive(Clone, Debug)]
enum Step {
    Sign { number: u64, parent: u8, origin: u64, salt: u8, term: u64 },
    Make { number: u64 },
    Advance,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0u64..8, 0u8..4, 1u64..12, 0u8..3, 0u64..2)
            .prop_map(|(number, parent, origin, salt, term)| Step::Sign { number, parent, origin, salt, term }),
        1 => (2u64..8).prop_map(|number| Step::Make { number }),
        1 => Just(Step::Advance),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, rng_seed: prop::test_runner::RngSeed::Fixed(7), ..ProptestConfig::default() })]

    /// Whatever is asked for: of two headers signed for one number, `BlindedInbox` excuses the second.
    #[test]
    fn no_two_headers_are_signed_that_cost_the_bond(steps in prop::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (l1, store) = (l1(), memory());
            begin(store.as_ref(), l1.as_ref(), (&deployment(), sequencer_key().address()), 1).await.unwrap();
            let mut floor = floor_on(Arc::clone(&store), &l1).await;
            let mut signed: Vec<BatchHeader> = Vec::new();
            for step in steps {
                match step {
                    Step::Sign { number, parent, origin, salt, term } => {
                        // Something that was signed, something that L1 made, the genesis, or nothing.
                        let below = number.saturating_sub(1);
                        let ours = signed.iter().rev().find(|header| header.number == below).map(BatchHeader::hash);
                        let theirs = l1.l1_headers.lock().iter().find(|made| made.header.number == below).map(|made| made.header.hash());
                        let parent = match parent {
                            0 => ours,
                            1 => theirs,
                            2 => Some(deployment().genesis_hash()),
                            _ => Some(keccak256([salt])),
                        };
                        let header = header(number, parent.unwrap_or_default(), origin, salt);
                        if floor.sign_header(&header, Some(term)).await.is_ok() && !signed.contains(&header) {
                            signed.push(header);
                        }
                    }
                    Step::Make { number } => {
                        let last = l1.l1_headers.lock().last().map_or(1, |made| made.header.number);
                        if number > last {
                            let block = l1.advance(1);
                            l1.l1_headers.lock().push(made(number, keccak256([1]), block));
                        }
                    }
                    Step::Advance => { l1.advance(1); }
                    Step::Restart => floor = floor_on(Arc::clone(&store), &l1).await,
                }
            }
            let made = l1.l1_headers.lock().clone();
            for (place, later) in signed.iter().enumerate() {
                for earlier in signed[..place].iter().filter(|earlier| earlier.number == later.number) {
                    let (low, high) = (earlier.l1_origin_number, later.l1_origin_number);
                    let first = made.iter().find(|made| made.l1_block > low.min(high));
                    let excused = first.is_some_and(|made| made.l1_block <= low.max(high) && made.header.number < later.number);
                    assert!(excused, "{earlier:?} {later:?}");
                }
            }
        });
    }
}
