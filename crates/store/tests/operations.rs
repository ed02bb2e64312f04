//! Every operation of the seam, on each engine, and every refusal.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use alloy_primitives::{Address, B256};
use blindfold_protocol::{
    Deployment,
    ledger::{
        Account, AccountChange, FeeLedger, Held, LedgerBefore, LedgerDelta, LedgerEntry, LiveNonce,
        NonceChange,
    },
};
use blindfold_store::{
    Acknowledged, Heads, ItemLocation, ItemRecord, MAX_META_VALUE_BYTES, MAX_PAGE_RECORDS, PendingEnvelope,
    PostedRecord, SealedRecord, SqlStore, Store, StoreError, What,
};
use common::*;

fn deployment(inbox: u8) -> Deployment {
    Deployment { l1_chain_id: 31_337, inbox: Address::repeat_byte(inbox) }
}

/// The L1 origin of the headers here.
const ORIGIN: u64 = 7;

#[tokio::test]
async fn a_fresh_store_is_empty() {
    on_all(async |store: SqlStore| {
        assert_eq!(store.heads().await.unwrap(), Heads::default());
        assert_eq!(store.ledger_head().await.unwrap(), None);
        assert_eq!(store.batch(1).await.unwrap(), None);
        assert_eq!(store.batch(u64::MAX).await.unwrap(), None);
        assert!(store.batches(u64::MAX, usize::MAX).await.unwrap().is_empty());
        assert!(store.pending_envelopes().await.unwrap().is_empty());
        assert_eq!(store.block_of_batch(u64::MAX).await.unwrap(), None);
        assert!(store.blocks(u64::MAX, 1).await.unwrap().is_empty());
        assert_eq!(store.block_through(u64::MAX).await.unwrap(), None);
        assert_eq!(store.posted().await.unwrap(), None);
        assert_eq!(store.meta("x").await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn binding_holds() {
    on_all(async |store: SqlStore| {
        store.bind(&deployment(1), "sequencer").await.unwrap();
        store.bind(&deployment(1), "sequencer").await.unwrap();
        let other = store.bind(&deployment(2), "sequencer").await.unwrap_err();
        assert!(matches!(other, StoreError::Foreign { name: "deployment", .. }), "{other}");
        let other = store.bind(&deployment(1), "member-1").await.unwrap_err();
        assert!(matches!(other, StoreError::Foreign { name: "role", .. }), "{other}");
    })
    .await;
}

#[tokio::test]
async fn envelopes_wait_leave_and_are_remembered() {
    on_all(async |store: SqlStore| {
        let (mut first, second) = (envelope(1), envelope(2));
        first.seal_by = Some(9);
        store.put_envelope(second.clone()).await.unwrap();
        store.put_envelope(first.clone()).await.unwrap();
        store.put_envelope(first.clone()).await.unwrap();
        assert_eq!(store.pending_envelopes().await.unwrap(), [first, second.clone()]);
        store.remove_envelopes(&[id(1), id(77)], "expired", 5).await.unwrap();
        assert_eq!(store.pending_envelopes().await.unwrap(), [second]);
        assert_eq!(store.envelope_outcome(id(1)).await.unwrap().as_deref(), Some("expired"));
        assert_eq!(store.envelope_outcome(id(77)).await.unwrap(), None, "was never there");
        store.prune_outcomes(5).await.unwrap();
        assert!(store.envelope_outcome(id(1)).await.unwrap().is_some());
        store.prune_outcomes(6).await.unwrap();
        assert!(store.envelope_outcome(id(1)).await.unwrap().is_none());
        let mut late = envelope(3);
        late.arrived_ms = u64::MAX;
        assert_eq!(store.put_envelope(late).await, Err(StoreError::OutOfRange("arrival time")));
    })
    .await;
}

#[tokio::test]
async fn a_batch_with_all_that_follows() {
    on_all(async |store: SqlStore| {
        let promised = PendingEnvelope { seal_by: Some(1), ..envelope(2) };
        for pending in [envelope(1), promised, envelope(3)] {
            store.put_envelope(pending).await.unwrap();
        }
        let held = Held { item: 0, payer: payer(1), amount: 5 };
        let mut delta = credit(1, None, Some(account(100)));
        delta.nonces = vec![nonce_change(1, 7, None, Some(50)), nonce_change(1, 9, None, Some(40))];
        delta.held.push(held_change(1, vec![], vec![held]));
        let mut record = sealed(1, B256::ZERO, &[1, 2], 0, delta);
        record.items[1].fault = Some("fee_nonce_used".to_owned());
        store.put_sealed(record.clone()).await.unwrap();
        store.put_sealed(record.clone()).await.unwrap();

        let read = store.batch(1).await.unwrap().unwrap();
        assert_eq!((read.number, read.hash, &read.sealed), (1, record.hash, &record.sealed));
        assert_eq!(read.items, record.items);
        assert!(read.certificate.is_none() && read.release.is_none() && read.hints.is_none());
        assert_eq!(store.pending_envelopes().await.unwrap(), [envelope(3)]);
        let accepted =
            ItemLocation { number: 1, index: 0, fault: None, header_hash: record.hash, block: None };
        assert_eq!(store.envelope_location(id(1)).await.unwrap(), Some(accepted));
        let skipped = store.envelope_location(id(2)).await.unwrap().unwrap();
        assert_eq!(skipped.fault.as_deref(), Some("fee_nonce_used"));
        assert_eq!(store.envelope_location(id(3)).await.unwrap(), None);
        let at_once = store.envelope_pasts((1..=3).map(id).collect()).await.unwrap();
        for (number, past) in (1..=3).zip(at_once) {
            let one_by_one =
                (store.envelope_location(id(number)).await, store.envelope_outcome(id(number)).await);
            assert_eq!((Ok(past.0), Ok(past.1)), one_by_one);
        }
        assert_eq!(store.account(payer(1)).await.unwrap(), Some(account(100)));
        assert_eq!(stored_accounts(&store).await, [(payer(1), account(100))]);
        assert_eq!(stored_nonces(&store).await, [live(1, 9, 40), live(1, 7, 50)]);
        assert_eq!(stored_held(&store).await, [(1, vec![held])]);
        let head = store.ledger_head().await.unwrap().unwrap();
        assert_eq!((head.number, head.hash, head.head), (1, record.hash, record.head.clone()));
        assert_eq!(store.acknowledged(1).await.unwrap(), Some(record.hash), "signed: true records it");

        // An envelope that a batch accepted is not taken again; one that was skipped is.
        store.put_certificate(&certificate(&record)).await.unwrap();
        store.put_envelope(envelope(1)).await.unwrap();
        store.put_envelope(envelope(2)).await.unwrap();
        assert_eq!(store.pending_envelopes().await.unwrap(), [envelope(2), envelope(3)]);

        let mut second = certificate(&record);
        second.signers = 0b1110;
        store.put_certificate(&second).await.unwrap();
        store.put_release(&release(&record)).await.unwrap();
        store.put_release(&release(&record)).await.unwrap();
        store.put_hints(&hints(&record)).await.unwrap();
        store.put_hints(&hints(&record)).await.unwrap();
        let read = store.batch(1).await.unwrap().unwrap();
        assert_eq!(read.certificate, Some(certificate(&record)), "the first certificate stays");
        assert_eq!((read.release, read.hints), (Some(release(&record)), Some(hints(&record))));

        // A skipped envelope that a later batch accepts is found there.
        let next = sealed(2, record.hash, &[2], 0, LedgerDelta::default());
        store.put_sealed(next.clone()).await.unwrap();
        let location = store.envelope_location(id(2)).await.unwrap().unwrap();
        assert_eq!((location.number, location.header_hash), (2, next.hash));
        let page = store.batches(1, 10).await.unwrap();
        assert_eq!(page.iter().map(|batch| batch.number).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(store.batches(2, 10).await.unwrap().len(), 1);
        assert_eq!(store.batches(1, 1).await.unwrap().len(), 1);

        store.put_block(block(1, 1, 1)).await.unwrap();
        let in_block = async |number| store.envelope_location(id(number)).await.unwrap().unwrap().block;
        assert_eq!((in_block(1).await, in_block(2).await), (Some((1, block(1, 1, 1).hash)), None));
        store.put_posted(PostedRecord { up_to_number: 1, l1_transaction: id(5) }).await.unwrap();
        let heads = Heads {
            sealed: Some((2, next.hash)),
            acknowledged: Some(2),
            certified: Some(1),
            released: Some(1),
            hinted: Some(1),
            hinted_through: Some(1),
            block: Some((1, id(1))),
            posted: Some(1),
        };
        assert_eq!(store.heads().await.unwrap(), heads);
    })
    .await;
}

/// Its payer spoilt it and has paid since: it is admitted anew, and promised, before the batch that skipped it is certified.
#[tokio::test]
async fn an_envelope_that_was_skipped_waits_again_with_its_new_promise() {
    on_all(async |store: SqlStore| {
        let due = PendingEnvelope { seal_by: Some(1), ..envelope(1) };
        for pending in [due, envelope(2)] {
            store.put_envelope(pending).await.unwrap();
        }
        let mut record = sealed(1, B256::ZERO, &[1, 2], 0, LedgerDelta::default());
        for item in &mut record.items {
            item.fault = Some("insufficient_funds".to_owned());
        }
        store.put_sealed(record.clone()).await.unwrap();
        assert_eq!(store.pending_envelopes().await.unwrap(), [envelope(2)], "it was not promised");
        let again = [1, 2].map(|number| PendingEnvelope { seal_by: Some(9), ..envelope(number) });
        for pending in &again {
            store.put_envelope(pending.clone()).await.unwrap();
        }
        assert_eq!(store.pending_envelopes().await.unwrap(), again);
        store.put_envelope(envelope(2)).await.unwrap();
        store.put_certificate(&certificate(&record)).await.unwrap();
        assert_eq!(store.pending_envelopes().await.unwrap(), again);
    })
    .await;
}

#[tokio::test]
async fn hints_out_of_order() {
    on_all(async |store: SqlStore| {
        let mut parent = B256::ZERO;
        let mut records = vec![];
        for number in 1..=4 {
            let record = sealed(number, parent, &[number], 0, LedgerDelta::default());
            parent = record.hash;
            store.put_sealed(record.clone()).await.unwrap();
            records.push(record);
        }
        assert_eq!(store.heads().await.unwrap().hinted_through, None);
        for (put, through) in [(2, None), (0, Some(1)), (1, Some(3)), (3, Some(4))] {
            store.put_hints(&hints(&records[put])).await.unwrap();
            assert_eq!(store.heads().await.unwrap().hinted_through, through);
        }
        assert_eq!(store.heads().await.unwrap().hinted, Some(4));
    })
    .await;
}

/// Each forced transaction has it, each item that does not decode, and all that L1 made: a look at all of them found one of
/// them.
#[tokio::test]
async fn zero_is_the_id_of_nothing() {
    on_all(async |store: SqlStore| {
        let mut record = sealed(1, B256::ZERO, &[1, 2], 0, LedgerDelta::default());
        record.items[0] = ItemRecord { id: B256::ZERO, fault: Some("forced_transaction".to_owned()) };
        store.put_sealed(record).await.unwrap();
        assert_eq!(store.envelope_location(B256::ZERO).await.unwrap(), None);
        assert_eq!(store.envelope_pasts(vec![B256::ZERO]).await.unwrap(), [(None, None)]);
        assert_eq!(store.envelope_location(id(2)).await.unwrap().unwrap().index, 1);
    })
    .await;
}

/// Writes that wait at the same time share a transaction, wherever in it the one stands that is refused half-way.
#[tokio::test]
async fn a_write_that_is_refused_leaves_the_others_of_its_transaction() {
    on_all(async |store: SqlStore| {
        store.keep_ledgers_from(0).await.unwrap();
        let first = sealed(1, B256::ZERO, &[], 1, LedgerDelta::default());
        store.put_sealed(first.clone()).await.unwrap();
        // Written down as signed before its parent is looked at.
        let strange = sealed(2, B256::repeat_byte(9), &[], 1, LedgerDelta::default());
        for refused_at in 0..4_u64 {
            let writes = (0..32_u64).map(|n| {
                let (store, strange) = (&store, strange.clone());
                async move {
                    if n % 4 == refused_at {
                        return store.put_sealed(strange).await;
                    }
                    store.put_envelope(envelope(100 * refused_at + n)).await
                }
            });
            for (n, outcome) in (0_u64..).zip(futures::future::join_all(writes).await) {
                assert_eq!(outcome.is_err(), n % 4 == refused_at, "{outcome:?}");
            }
            assert_eq!(store.acknowledged(2).await.unwrap(), None);
            assert_eq!(store.pending_envelopes().await.unwrap().len() as u64, 24 * (refused_at + 1));
        }
        store.put_sealed(sealed(2, first.hash, &[], 1, LedgerDelta::default())).await.unwrap();
    })
    .await;
}

/// Rule O-7.
#[tokio::test]
async fn what_was_signed_above_a_header_made_by_l1_gives_way_once() {
    on_all(async |store: SqlStore| {
        store.keep_ledgers_from(0).await.unwrap();
        let displaced = |number, parent| sealed(number, parent, &[], 1, LedgerDelta::default());
        let first = displaced(1, B256::ZERO);
        let (two, three) = (displaced(2, first.hash), displaced(3, B256::ZERO));
        store.put_sealed(first.clone()).await.unwrap();
        store.put_sealed(two.clone()).await.unwrap();
        store.put_acknowledged(3, three.hash, ORIGIN).await.unwrap();
        store.put_acknowledged(4, B256::repeat_byte(4), ORIGIN).await.unwrap();
        store.put_acknowledged(5, B256::repeat_byte(5), ORIGIN + 1).await.unwrap();
        store.put_acknowledged(6, B256::repeat_byte(6), ORIGIN).await.unwrap();
        store.revert_sealed(2).await.unwrap();
        let refused = store.put_acknowledged(3, B256::repeat_byte(3), ORIGIN).await.unwrap_err();
        assert!(matches!(refused, StoreError::Conflict { what: What::Acknowledgement, number: 3, .. }));
        let mut made = sealed(2, first.hash, &[], 2, LedgerDelta::default());
        (made.signed, made.made_at) = (false, Some(ORIGIN + 1));
        store.put_sealed(made.clone()).await.unwrap();
        // Up to L1's own number what was signed stays.
        for (number, signed) in [(1, first.hash), (2, two.hash)] {
            let refused = store.put_acknowledged(number, B256::repeat_byte(9), ORIGIN).await.unwrap_err();
            assert!(matches!(refused, StoreError::Conflict { stored, .. } if stored == signed));
        }
        // So it does above it where its origin had seen L1's header: nothing excuses another one with a later origin.
        let refused = store.put_acknowledged(5, B256::repeat_byte(9), ORIGIN).await.unwrap_err();
        assert!(matches!(refused, StoreError::Conflict { stored, .. } if stored == B256::repeat_byte(5)));
        assert_eq!(store.heads().await.unwrap().acknowledged, Some(5));
        // Above it another one can be signed, which then stays; the sequencer's way is the same.
        let next = sealed(3, made.hash, &[], 3, LedgerDelta::default());
        store.put_sealed(next.clone()).await.unwrap();
        assert_eq!(store.acknowledged(3).await.unwrap(), Some(next.hash));
        for (hash, signed) in [(next.hash, true), (three.hash, true), (B256::repeat_byte(3), false)] {
            assert_eq!(store.was_acknowledged(3, hash).await.unwrap(), signed);
        }
        assert!(store.put_acknowledged(3, three.hash, ORIGIN).await.is_err());
        store.put_acknowledged(4, B256::repeat_byte(5), ORIGIN).await.unwrap();
        store.put_acknowledged(4, B256::repeat_byte(5), ORIGIN).await.unwrap();
        assert!(store.put_acknowledged(4, B256::repeat_byte(4), ORIGIN).await.is_err());
        // Where that header of L1's goes, what it excused binds again.
        store.rewind(1, None).await.unwrap();
        let refused = store.put_acknowledged(6, B256::repeat_byte(9), ORIGIN + 1).await.unwrap_err();
        assert!(matches!(refused, StoreError::Conflict { stored, .. } if stored == B256::repeat_byte(6)));
    })
    .await;
}

/// Rule O-7 for whoever signs without the batches.
#[tokio::test]
async fn what_was_signed_gives_way_by_l1s_word_alone() {
    on_all(async |store: SqlStore| {
        let [one, two, three] = [1, 2, 3].map(B256::repeat_byte);
        for (number, hash, origin) in [(4, one, 10), (5, two, 10), (6, three, 20)] {
            store.put_acknowledged(number, hash, origin).await.unwrap();
        }
        let signed = Acknowledged { hash: two, origin: 10, displaced: false };
        assert_eq!(store.acknowledgement(5).await, Ok(Some(signed)));
        assert_eq!(store.acknowledgement(7).await, Ok(None));
        assert!(store.put_acknowledged(5, three, 20).await.is_err());
        store.displace_acknowledged(4, 20).await.unwrap();
        assert_eq!(store.acknowledgement(5).await, Ok(Some(Acknowledged { displaced: true, ..signed })));
        // Its own number stays, and so does what was signed knowing of it.
        for number in [4, 6] {
            assert!(!store.acknowledgement(number).await.unwrap().unwrap().displaced, "{number}");
            assert!(store.put_acknowledged(number, two, 30).await.is_err());
        }
        store.put_acknowledged(5, three, 20).await.unwrap();
        let again = Acknowledged { hash: three, origin: 20, displaced: false };
        assert_eq!(store.acknowledgement(5).await, Ok(Some(again)));
        store.displace_acknowledged(4, 20).await.unwrap();
        assert!(store.put_acknowledged(5, two, 30).await.is_err(), "once");
        assert!(store.was_acknowledged(5, two).await.unwrap());
    })
    .await;
}

/// It may have been forced before its time, and be promised for a later batch.
#[tokio::test]
async fn an_envelope_that_is_skipped_without_being_used_up_waits_on() {
    on_all(async |store: SqlStore| {
        store.put_envelope(envelope(1)).await.unwrap();
        let mut record = sealed(1, B256::ZERO, &[1], 0, LedgerDelta::default());
        record.items[0].fault = Some("wrong_epoch".to_owned());
        store.put_sealed(record.clone()).await.unwrap();
        store.put_certificate(&certificate(&record)).await.unwrap();
        assert_eq!(store.pending_envelopes().await.unwrap(), [envelope(1)]);
    })
    .await;
}

/// What its payer has spoilt ends with the batch that it is promised for. A batch before that one, which took a forced copy,
/// keeps no promise.
#[tokio::test]
async fn a_promised_envelope_that_its_payer_spoilt_waits_for_its_batch() {
    on_all(async |store: SqlStore| {
        let promised = PendingEnvelope { seal_by: Some(2), ..envelope(1) };
        store.put_envelope(promised.clone()).await.unwrap();
        let spoilt = |mut record: SealedRecord| {
            record.items[0].fault = Some("insufficient_funds".to_owned());
            record
        };
        let first = spoilt(sealed(1, B256::ZERO, &[1], 0, LedgerDelta::default()));
        store.put_sealed(first.clone()).await.unwrap();
        assert_eq!(store.pending_envelopes().await.unwrap(), [promised]);
        let second = spoilt(sealed(2, first.hash, &[1], 0, LedgerDelta::default()));
        store.put_sealed(second).await.unwrap();
        assert_eq!(store.pending_envelopes().await.unwrap(), []);
    })
    .await;
}

/// It is promised under the hash of its own bytes: what stood here under the same id would not keep that.
#[tokio::test]
async fn a_copy_that_is_admitted_later_takes_the_place_of_the_one_before() {
    on_all(async |store: SqlStore| {
        store.put_envelope(envelope(1)).await.unwrap();
        let mut record = sealed(1, B256::ZERO, &[1], 0, LedgerDelta::default());
        record.items[0].fault = Some("insufficient_funds".to_owned());
        store.put_sealed(record.clone()).await.unwrap();
        let copy = PendingEnvelope { bytes: vec![0xcc; 300], seal_by: Some(9), ..envelope(1) };
        store.put_envelope(copy.clone()).await.unwrap();
        assert_eq!(store.pending_envelopes().await.unwrap(), std::slice::from_ref(&copy));
        store.put_certificate(&certificate(&record)).await.unwrap();
        assert_eq!(store.pending_envelopes().await.unwrap(), [copy]);
    })
    .await;
}

#[tokio::test]
async fn second_headers_and_second_signatures_are_refused() {
    on_all(async |store: SqlStore| {
        let first = sealed(1, B256::ZERO, &[1], 0, LedgerDelta::default());
        let mut second = sealed(1, B256::ZERO, &[1], 1, LedgerDelta::default());
        store.put_sealed(first.clone()).await.unwrap();
        let conflict =
            |what| StoreError::Conflict { what, number: 1, stored: first.hash, offered: second.hash };
        assert_eq!(store.put_sealed(second.clone()).await, Err(conflict(What::Acknowledgement)));
        let conflict_of_batch = conflict(What::Batch);
        let conflict_of_acknowledgement = conflict(What::Acknowledgement);
        assert_eq!(
            store.put_acknowledged(1, second.hash, ORIGIN).await,
            Err(conflict_of_acknowledgement.clone())
        );
        store.put_acknowledged(1, first.hash, ORIGIN).await.unwrap();
        assert_eq!(store.put_certificate(&certificate(&second)).await, Err(conflict_of_batch.clone()));
        second.signed = false;
        assert_eq!(store.put_sealed(second.clone()).await, Err(conflict_of_batch));

        // What was signed survives the way back; storing what others certified is still possible.
        store.revert_sealed(1).await.unwrap();
        assert_eq!(store.acknowledged(1).await.unwrap(), Some(first.hash));
        assert_eq!(store.put_acknowledged(1, second.hash, ORIGIN).await, Err(conflict_of_acknowledgement));
        store.put_sealed(second.clone()).await.unwrap();
        assert_eq!(store.batch(1).await.unwrap().unwrap().hash, second.hash);
    })
    .await;
}

#[tokio::test]
async fn order_and_consistency_of_batches() {
    on_all(async |store: SqlStore| {
        let missing = |number| StoreError::Missing { what: What::Batch, number };
        let orphan = sealed(5, B256::ZERO, &[1], 0, LedgerDelta::default());
        assert_eq!(store.put_certificate(&certificate(&orphan)).await, Err(missing(5)));
        assert_eq!(store.put_release(&release(&orphan)).await, Err(missing(5)));
        assert_eq!(store.put_hints(&hints(&orphan)).await, Err(missing(5)));
        assert_eq!(store.revert_sealed(5).await, Err(missing(5)));

        store.put_sealed(orphan.clone()).await.unwrap();
        let gap = sealed(7, orphan.hash, &[], 0, LedgerDelta::default());
        assert_eq!(store.put_sealed(gap).await, Err(StoreError::NotNext { expected: 6, offered: 7 }));
        let early = sealed(4, orphan.hash, &[], 0, LedgerDelta::default());
        assert_eq!(store.put_sealed(early).await, Err(StoreError::NotNext { expected: 6, offered: 4 }));
        let astray = sealed(6, id(1), &[], 0, LedgerDelta::default());
        assert!(matches!(store.put_sealed(astray).await, Err(StoreError::Inconsistent { number: 6, .. })));
        let mut short = sealed(6, orphan.hash, &[1], 0, LedgerDelta::default());
        short.items.clear();
        assert!(matches!(store.put_sealed(short).await, Err(StoreError::Inconsistent { number: 6, .. })));
        let mut renamed = sealed(6, orphan.hash, &[1], 0, LedgerDelta::default());
        renamed.hash = id(3);
        assert!(matches!(store.put_sealed(renamed).await, Err(StoreError::Inconsistent { number: 6, .. })));
        assert_eq!(store.acknowledged(6).await.unwrap(), None, "a refused batch leaves nothing");
        let mut huge = sealed(u64::MAX, orphan.hash, &[], 0, LedgerDelta::default());
        huge.signed = false;
        assert_eq!(store.put_sealed(huge).await, Err(StoreError::OutOfRange("batch number")));

        let next = sealed(6, orphan.hash, &[1], 0, LedgerDelta::default());
        store.put_sealed(next.clone()).await.unwrap();
        assert_eq!(store.revert_sealed(5).await, Err(StoreError::NotNewest { number: 5, newest: 6 }));
        store.put_certificate(&certificate(&next)).await.unwrap();
        assert_eq!(store.revert_sealed(6).await, Err(StoreError::Certified(6)));

        let mut other = release(&next);
        store.put_release(&other).await.unwrap();
        other.pds[0] = [9; 48];
        assert!(matches!(
            store.put_release(&other).await,
            Err(StoreError::Conflict { what: What::Release, .. })
        ));
        let mut other = hints(&next);
        store.put_hints(&other).await.unwrap();
        other.entries.clear();
        assert!(matches!(store.put_hints(&other).await, Err(StoreError::Conflict { what: What::Hints, .. })));
    })
    .await;
}

#[tokio::test]
async fn revert_restores_the_ledger_and_the_pending_envelopes() {
    on_all(async |store: SqlStore| {
        store.put_envelope(envelope(1)).await.unwrap();
        let old = account(100);
        let held = Held { item: 0, payer: payer(1), amount: 5 };
        let mut delta = credit(1, None, Some(old));
        delta.nonces = vec![nonce_change(1, 1, None, Some(10)), nonce_change(1, 2, None, Some(1))];
        delta.held.push(held_change(1, vec![], vec![held]));
        let first = sealed(1, B256::ZERO, &[], 0, delta);
        store.put_sealed(first.clone()).await.unwrap();

        let mut delta = credit(1, Some(old), None);
        delta.accounts.extend(credit(2, None, Some(account(u128::MAX))).accounts);
        // One is forgotten, one used anew after its expiry, one comes.
        delta.nonces = vec![
            nonce_change(1, 1, Some(10), None),
            nonce_change(1, 2, Some(1), Some(9)),
            nonce_change(2, 1, None, Some(9)),
        ];
        delta.held.push(held_change(1, vec![held], vec![]));
        let second = sealed(2, first.hash, &[1], 0, delta);
        store.put_sealed(second.clone()).await.unwrap();
        assert_eq!(stored_accounts(&store).await, [(payer(2), account(u128::MAX))]);
        assert_eq!(stored_nonces(&store).await, [live(1, 2, 9), live(2, 1, 9)]);
        assert!(stored_held(&store).await.is_empty() && store.pending_envelopes().await.unwrap().is_empty());

        store.revert_sealed(2).await.unwrap();
        assert_eq!(stored_accounts(&store).await, [(payer(1), old)]);
        assert_eq!(stored_nonces(&store).await, [live(1, 2, 1), live(1, 1, 10)]);
        assert_eq!(stored_held(&store).await, [(1, vec![held])]);
        assert_eq!(store.pending_envelopes().await.unwrap(), [envelope(1)]);
        assert_eq!(store.ledger_head().await.unwrap().unwrap().head, first.head);
        assert_eq!(store.envelope_location(id(1)).await.unwrap(), None);
        store.put_sealed(second).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn earlier_ledgers_are_kept_from_a_number_on() {
    on_all(async |store: SqlStore| {
        let (poor, rich, gone) = (account(5), account(9), account(2));
        let records = chain_of_ledgers(poor, rich, gone);
        for record in &records {
            store.put_sealed(record.clone()).await.unwrap();
        }
        // 1: the poor one comes; 2: becomes rich and uses a nonce, another comes; 3: the other one goes, the nonce is
        // used anew.
        let was = |number, account| LedgerEntry::Account { payer: payer(number), account };
        let used = |expiry| LedgerEntry::Nonce { payer: payer(1), nonce: 4, expiry };
        let after_one = vec![was(1, Some(poor)), was(2, None), used(None)];
        assert_eq!(changed(&store, 1, 3).await, Some(after_one.clone()));
        assert_eq!(changed(&store, 1, u64::MAX).await, Some(after_one.clone()));
        assert_eq!(changed(&store, 1, 2).await, Some(after_one));
        assert_eq!(changed(&store, 2, 3).await, Some(vec![was(2, Some(gone)), used(Some(7))]));
        assert_eq!(changed(&store, 3, 3).await, Some(vec![]));
        // Without a floor what is certified is forgotten, as it always was.
        assert_eq!(store.ledger_floor().await.unwrap(), None);
        store.put_certificate(&certificate(&records[0])).await.unwrap();
        assert_eq!(changed(&store, 0, 3).await, None);
        assert!(changed(&store, 1, 3).await.is_some());
        // With one it stays. It begins at what is here, and never goes back.
        store.keep_ledgers_from(1).await.unwrap();
        assert_eq!(store.ledger_floor().await.unwrap(), Some(3));
        store.keep_ledgers_from(2).await.unwrap();
        assert_eq!(store.ledger_floor().await.unwrap(), Some(3));
        let mut delta = credit(1, Some(rich), Some(poor));
        delta.nonces.push(nonce_change(1, 4, Some(9), None));
        let fourth = sealed(4, records[2].hash, &[], 0, delta);
        store.put_sealed(fourth.clone()).await.unwrap();
        store.put_certificate(&certificate(&fourth)).await.unwrap();
        assert_eq!(changed(&store, 3, 4).await, Some(vec![was(1, Some(rich)), used(Some(9))]));
        assert_eq!(changed(&store, 2, 4).await, None);
        let fifth = sealed(5, fourth.hash, &[], 0, credit(1, Some(poor), None));
        store.put_sealed(fifth.clone()).await.unwrap();
        store.revert_sealed(5).await.unwrap();
        assert_eq!(changed(&store, 4, 5).await, Some(vec![]));
        store.keep_ledgers_from(4).await.unwrap();
        assert_eq!(changed(&store, 3, 4).await, None);
        // A floor above what is certified forgets earlier ledgers, and no way back.
        store.put_sealed(fifth).await.unwrap();
        store.keep_ledgers_from(5).await.unwrap();
        store.revert_sealed(5).await.unwrap();
        assert_eq!(store.account(payer(1)).await.unwrap(), Some(poor));
    })
    .await;
}

#[tokio::test]
async fn what_uncertified_batches_changed_leads_a_ledger_back_before_them() {
    on_all(async |store: SqlStore| {
        let mut records = chain_of_ledgers(account(5), account(9), account(2));
        let held = Held { item: 0, payer: payer(1), amount: 5 };
        let also = Held { item: 1, ..held };
        records[0].ledger.held.push(held_change(1, vec![], vec![held]));
        records[1].ledger.held.push(held_change(1, vec![held], vec![held, also]));
        records[1].ledger.held.push(held_change(2, vec![], vec![also]));
        records[2].ledger.held.push(held_change(1, vec![held, also], vec![]));
        let mut ledgers = Vec::new();
        for record in &records {
            store.put_sealed(record.clone()).await.unwrap();
            ledgers.push(store.ledger().await.unwrap());
        }
        store.put_certificate(&certificate(&records[0])).await.unwrap();
        // A floor of the ledgers that are told is none of the way back.
        store.keep_ledgers_from(3).await.unwrap();
        for number in [2, 3] {
            let mut ledger = ledgers[2].clone();
            let before = store.ledger_before(number).await.unwrap();
            let target = &ledgers[number as usize - 2];
            assert!(ledger.go_back(before, target.root()), "{number}");
            assert_eq!(&ledger, target, "{number}");
        }
        assert_eq!(store.ledger_before(4).await.unwrap(), LedgerBefore::default(), "nothing is above");
        for number in [3, 2] {
            store.revert_sealed(number).await.unwrap();
            assert_eq!(store.ledger().await.unwrap(), ledgers[number as usize - 2]);
        }
    })
    .await;
}

#[tokio::test]
async fn a_ledger_of_several_pages_is_read_whole() {
    let nonces: Vec<_> =
        (0..8_193).map(|nonce| live(nonce as u8, nonce * 7_919 % 8_209, nonce / 1_000)).collect();
    let held: Vec<_> =
        (0..4_097).map(|item| Held { item, payer: payer(1), amount: 1 + u128::from(item) }).collect();
    let whole =
        (0..4_096u64).map(|number| (Address::from_slice(&id(number)[..20]), account(u128::from(number + 1))));
    let whole: Vec<_> = whole.collect();
    let delta = LedgerDelta {
        accounts: whole
            .iter()
            .map(|(payer, account)| AccountChange { payer: *payer, before: None, after: Some(*account) })
            .collect(),
        nonces: nonces
            .iter()
            .map(|LiveNonce { payer, nonce, expiry }| NonceChange {
                payer: *payer,
                nonce: *nonce,
                before: None,
                after: Some(*expiry),
            })
            .collect(),
        held: vec![held_change(1, vec![], held.clone())],
    };
    let expected = FeeLedger::from_parts(whole, nonces, [(1, held)]);
    on_all(async |store: SqlStore| {
        store.put_sealed(sealed(1, B256::ZERO, &[], 0, delta.clone())).await.unwrap();
        assert!(store.ledger().await.unwrap() == expected);
    })
    .await;
}

/// Rule O-2.
#[tokio::test]
async fn a_rewind_takes_certified_batches_back_and_forgets_no_signature() {
    on_all(async |store: SqlStore| {
        store.keep_ledgers_from(0).await.unwrap();
        let held = Held { item: 0, payer: payer(1), amount: 5 };
        let mut delta = credit(1, None, Some(account(9)));
        delta.nonces = vec![nonce_change(1, 4, None, Some(7))];
        delta.held.push(held_change(1, vec![], vec![held]));
        store.put_envelope(envelope(1)).await.unwrap();
        let first = sealed(1, B256::ZERO, &[1], 0, delta);
        store.put_sealed(first.clone()).await.unwrap();
        store.put_certificate(&certificate(&first)).await.unwrap();
        store.put_block(block(1, 1, 1)).await.unwrap();
        // The surcharge returns, the nonce is used anew; L1 did not post these two.
        let mut delta = credit(1, Some(account(9)), Some(account(14)));
        delta.nonces = vec![nonce_change(1, 4, Some(7), Some(9))];
        delta.held.push(held_change(1, vec![held], vec![]));
        for number in [2, 3] {
            store.put_envelope(envelope(number)).await.unwrap();
        }
        let second = sealed(2, first.hash, &[2], 0, delta);
        store.put_sealed(second.clone()).await.unwrap();
        let third = sealed(3, second.hash, &[3], 0, LedgerDelta::default());
        store.put_sealed(third.clone()).await.unwrap();
        store.put_certificate(&certificate(&third)).await.unwrap();
        store.put_hints(&hints(&second)).await.unwrap();
        store.put_release(&release(&second)).await.unwrap();
        store.put_block(block(2, 2, 2)).await.unwrap();
        store.put_posted(PostedRecord { up_to_number: 3, l1_transaction: id(7) }).await.unwrap();
        store.put_envelope(envelope(4)).await.unwrap();

        store.rewind(3, Some("wrong_generation")).await.unwrap();
        assert_eq!(store.heads().await.unwrap().sealed, Some((3, third.hash)), "nothing is above it");
        store.rewind(1, Some("wrong_generation")).await.unwrap();
        let heads = store.heads().await.unwrap();
        assert_eq!((heads.sealed, heads.certified), (Some((1, first.hash)), Some(1)));
        assert_eq!((heads.hinted, heads.released, heads.posted), (None, None, None));
        assert_eq!(heads.block, Some((1, block(1, 1, 1).hash)));
        assert_eq!(store.account(payer(1)).await.unwrap(), Some(account(9)));
        assert_eq!(stored_nonces(&store).await, [live(1, 4, 7)]);
        assert_eq!(stored_held(&store).await, [(1, vec![held])]);
        for (number, record) in [(2, &second), (3, &third)] {
            assert_eq!(store.acknowledged(number).await.unwrap(), Some(record.hash), "it binds");
            let outcome = store.envelope_outcome(id(number)).await.unwrap();
            assert_eq!(outcome.as_deref(), Some("wrong_generation"));
        }
        assert_eq!(store.pending_envelopes().await.unwrap(), [envelope(4)]);
        let other = sealed(2, first.hash, &[], 1, LedgerDelta::default());
        let refused = store.put_sealed(other).await;
        assert!(
            matches!(refused, Err(StoreError::Conflict { what: What::Acknowledgement, .. })),
            "{refused:?}"
        );
        // Without an outcome envelopes wait again.
        let delta = credit(1, Some(account(9)), None);
        store.put_sealed(SealedRecord { ledger: delta, ..second.clone() }).await.unwrap();
        store.put_certificate(&certificate(&second)).await.unwrap();
        store.rewind(1, None).await.unwrap();
        let waiting = store.pending_envelopes().await.unwrap();
        assert_eq!(waiting.iter().map(|it| it.id).collect::<Vec<_>>(), [id(4), id(2)]);
        store.rewind(0, None).await.unwrap();
        assert!(stored_accounts(&store).await.is_empty() && stored_held(&store).await.is_empty());
        assert_eq!(store.heads().await.unwrap().sealed, None);
    })
    .await;
}

#[tokio::test]
async fn a_rewind_goes_no_further_than_ledgers_are_kept() {
    on_all(async |store: SqlStore| {
        let records = chain_of_ledgers(account(5), account(9), account(2));
        for record in &records {
            store.put_sealed(record.clone()).await.unwrap();
        }
        store.put_certificate(&certificate(&records[1])).await.unwrap();
        let refused = store.rewind(1, None).await;
        assert_eq!(refused, Err(StoreError::Forgotten { number: 1, kept_from: 2 }));
        assert_eq!(store.heads().await.unwrap().sealed, Some((3, records[2].hash)));
        store.rewind(2, None).await.unwrap();
        assert_eq!(store.heads().await.unwrap().sealed, Some((2, records[1].hash)));
    })
    .await;
}

async fn changed(store: &dyn Store, number: u64, up_to: u64) -> Option<Vec<LedgerEntry>> {
    store.entries_changed_after(number, up_to).await.unwrap()
}

fn chain_of_ledgers(poor: Account, rich: Account, gone: Account) -> [SealedRecord; 3] {
    let one = sealed(1, B256::ZERO, &[], 0, credit(1, None, Some(poor)));
    let mut delta = credit(1, Some(poor), Some(rich));
    delta.accounts.extend(credit(2, None, Some(gone)).accounts);
    delta.nonces.push(nonce_change(1, 4, None, Some(7)));
    let two = sealed(2, one.hash, &[], 0, delta);
    let mut delta = credit(2, Some(gone), None);
    delta.nonces.push(nonce_change(1, 4, Some(7), Some(9)));
    let three = sealed(3, two.hash, &[], 0, delta);
    [one, two, three]
}

#[tokio::test]
async fn a_ledger_change_must_start_from_what_is_stored() {
    on_all(async |store: SqlStore| {
        let refused = async |delta| store.put_sealed(sealed(1, B256::ZERO, &[], 0, delta)).await;
        let wrong = credit(1, Some(account(1)), Some(account(2)));
        assert_eq!(refused(wrong).await, Err(StoreError::AccountMismatch(payer(1))));
        let mismatch = Err(StoreError::NonceMismatch { payer: payer(1), nonce: 3 });
        let nonces =
            |changes: &[NonceChange]| LedgerDelta { nonces: changes.to_vec(), ..LedgerDelta::default() };
        assert_eq!(refused(nonces(&[nonce_change(1, 3, Some(5), None)])).await, mismatch, "none is there");
        let held = Held { item: 3, payer: payer(1), amount: 5 };
        let wrong = LedgerDelta { held: vec![held_change(4, vec![held], vec![])], ..LedgerDelta::default() };
        assert_eq!(refused(wrong).await, Err(StoreError::HeldMismatch(4)));
        assert_eq!(store.batch(1).await.unwrap(), None);

        let first = sealed(1, B256::ZERO, &[], 0, nonces(&[nonce_change(1, 3, None, Some(5))]));
        store.put_sealed(first.clone()).await.unwrap();
        let refused = async |delta| store.put_sealed(sealed(2, first.hash, &[], 0, delta)).await;
        assert_eq!(refused(nonces(&[nonce_change(1, 3, Some(6), None)])).await, mismatch, "another expiry");
        assert_eq!(refused(nonces(&[nonce_change(1, 3, None, Some(5))])).await, mismatch, "there already");
        assert_eq!(stored_nonces(&store).await, [live(1, 3, 5)]);
    })
    .await;
}

#[tokio::test]
async fn blocks() {
    on_all(async |store: SqlStore| {
        for (number, first, last) in [(1, 1, 3), (2, 4, 4), (3, 6, 9)] {
            store.put_block(block(number, first, last)).await.unwrap();
            store.put_block(block(number, first, last)).await.unwrap();
        }
        assert_eq!(store.block(2).await.unwrap(), Some(block(2, 4, 4)));
        assert_eq!(store.block_by_second(1_003).await.unwrap().unwrap().number, 3);
        assert_eq!(store.block_by_second(1_009).await.unwrap(), None);
        for (batch, expected) in
            [(1, Some(1)), (3, Some(1)), (4, Some(2)), (5, None), (9, Some(3)), (10, None)]
        {
            assert_eq!(
                store.block_of_batch(batch).await.unwrap().map(|block| block.number),
                expected,
                "{batch}"
            );
        }
        for (batch, expected) in
            [(2, None), (3, Some((1, id(1)))), (5, Some((2, id(2)))), (99, Some((3, id(3))))]
        {
            assert_eq!(store.block_through(batch).await.unwrap(), expected, "{batch}");
        }
        let mut second = block(2, 4, 4);
        second.hash = id(99);
        let conflict = StoreError::Conflict { what: What::Block, number: 2, stored: id(2), offered: id(99) };
        assert_eq!(store.put_block(second).await, Err(conflict));
        let mut same_second = block(4, 10, 10);
        same_second.second = 1_003;
        assert!(matches!(store.put_block(same_second).await, Err(StoreError::Conflict { .. })));
        assert!(matches!(store.put_block(block(4, 11, 10)).await, Err(StoreError::Inconsistent { .. })));
        assert_eq!(store.blocks(2, MAX_PAGE_RECORDS * 2).await.unwrap().len(), 2);
        store.revert_blocks(2).await.unwrap();
        assert_eq!(store.heads().await.unwrap().block, Some((1, id(1))));
    })
    .await;
}

#[tokio::test]
async fn meta_values() {
    on_all(async |store: SqlStore| {
        store.put_meta("cursor", b"1").await.unwrap();
        store.put_meta("cursor", b"22").await.unwrap();
        assert_eq!(store.meta("cursor").await.unwrap().unwrap(), b"22");
        let long = vec![0; MAX_META_VALUE_BYTES + 1];
        assert_eq!(store.put_meta("cursor", &long).await, Err(StoreError::OutOfRange("meta value")));
    })
    .await;
}

/// Many writers at once: all are answered, each refusal concerns its own write only.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_write_leaves_its_group_untouched() {
    on_all(async |store: SqlStore| {
        let store = &store;
        let writes = (0..200u64).map(|number| async move {
            if number % 3 == 0 {
                store
                    .put_certificate(&certificate(&sealed(
                        number,
                        B256::ZERO,
                        &[],
                        0,
                        LedgerDelta::default(),
                    )))
                    .await
            } else {
                store.put_envelope(envelope(number)).await
            }
        });
        let outcomes = futures_join(writes).await;
        for (number, outcome) in outcomes.into_iter().enumerate() {
            assert_eq!(outcome.is_err(), number % 3 == 0, "{number}");
        }
        assert_eq!(store.pending_envelopes().await.unwrap().len(), 200 - 67);
    })
    .await;
}

/// Polls all at once so that they queue together.
async fn futures_join<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut pending: Vec<_> = futures.map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = pending.iter().map(|_| None).collect();
    std::future::poll_fn(move |context| {
        let mut waiting = false;
        for (future, slot) in pending.iter_mut().zip(done.iter_mut()) {
            if slot.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(output) => *slot = Some(output),
                    std::task::Poll::Pending => waiting = true,
                }
            }
        }
        if waiting {
            std::task::Poll::Pending
        } else {
            std::task::Poll::Ready(done.iter_mut().map(|slot| slot.take().unwrap()).collect())
        }
    })
    .await
}

#[tokio::test]
async fn skipped_and_undecodable_items() {
    on_all(async |store: SqlStore| {
        let mut record = sealed(1, B256::ZERO, &[1, 2, 1], 0, LedgerDelta::default());
        record.items[1] = ItemRecord { id: B256::ZERO, fault: Some("undecodable".to_owned()) };
        record.items[2].fault = Some("duplicate".to_owned());
        store.put_sealed(record).await.unwrap();
        let location = store.envelope_location(id(1)).await.unwrap().unwrap();
        assert_eq!((location.index, location.fault), (0, None), "the accepted one, not its duplicate");
    })
    .await;
}

/// L1's word certifies: there is no way back from its header, nor from any before it, and a restart knows.
#[tokio::test]
async fn a_header_made_by_l1_is_certified_with_its_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l1.sqlite");
    let first = sealed(1, B256::ZERO, &[1], 0, credit(1, None, Some(account(8))));
    let mut second = sealed(2, first.hash, &[], 0, LedgerDelta::default());
    (second.made_at, second.signed) = (Some(ORIGIN + 1), false);
    {
        let store = SqlStore::open(&path).unwrap();
        store.put_sealed(first.clone()).await.unwrap();
        assert_eq!(store.heads().await.unwrap().certified, None);
        store.put_sealed(second.clone()).await.unwrap();
        store.put_sealed(second.clone()).await.unwrap();
    }
    // The last write may still be on its way: the file is free when it is done.
    let store = loop {
        match SqlStore::open(&path) {
            Err(StoreError::InUse(_)) => tokio::task::yield_now().await,
            opened => break opened.unwrap(),
        }
    };
    let record = store.batch(2).await.unwrap().unwrap();
    assert!(record.by_l1 && record.certificate.is_none());
    assert!(!store.batch(1).await.unwrap().unwrap().by_l1);
    assert_eq!(store.heads().await.unwrap().certified, Some(2));
    assert_eq!(store.heads().await.unwrap().acknowledged, Some(1));
    assert_eq!(store.revert_sealed(2).await, Err(StoreError::Certified(2)));
    assert_eq!(store.account(payer(1)).await.unwrap(), Some(account(8)), "withdrawn is kept");
}
