//! The tracker: what it takes, what it refuses and why, and what a restart finds.

use std::sync::{Arc, atomic::Ordering};

use blindfold_chain::limits::MAX_WAITING_PROOFS;
use blindfold_chain::{
    AccountProofError, CertificateOutcome, L1Error, NextStep, OpenError, Sealed, SealingError, Tracker,
    TrackerError, check_items,
};
use blindfold_kit::*;
use blindfold_protocol::validity::{ChainState, Verdict};
use blindfold_protocol::{
    Address, B256, Certificate, CertifiedBatch, Epoch, Epochs, ForcedEntry, RulesChange, SealedBatch,
    Signature65, SigningKey,
};
use blindfold_store::{Store, StoreError, What};

/// The same header with something changed, signed by whom it may concern.
fn resigned(
    sealed: &SealedBatch,
    key: &SigningKey,
    change: impl FnOnce(&mut blindfold_protocol::BatchHeader),
) -> Arc<SealedBatch> {
    let mut header = sealed.header;
    change(&mut header);
    let signed = header.sign(key, &chain_config().deployment);
    Arc::new(SealedBatch { header, signature: signed.signature, items: sealed.items.clone() })
}

#[tokio::test]
async fn headers_are_followed_and_known_ones_answered_again() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let node = tracker_on(memory(), &l1).await;
    let first = sequencer.seal(0, vec![]).await;
    let second = sequencer.seal_envelopes(250, &[envelope(1, 1), envelope(1, 1)]).await;
    assert_eq!(second.verdicts[0], Verdict::Accepted { position: 0 });
    assert!(matches!(second.verdicts[1], Verdict::Skipped(fault) if fault.as_str() == "duplicate"));

    assert!(node.apply_sealed(&first.batch).await.unwrap().is_new());
    let applied = node.apply_sealed(&second.batch).await.unwrap();
    assert_eq!((applied.number, applied.hash), (2, second.hash));
    assert_eq!(applied.verdicts, second.verdicts);
    assert_eq!(applied.items.as_ref().unwrap().len(), 2);
    let again = node.apply_sealed(&second.batch).await.unwrap();
    assert!(!again.is_new());
    assert_eq!(again.verdicts, second.verdicts);
    assert_eq!(node.head(), sequencer.tracker.head());
    assert_eq!(node.account(&payer(1).address()), sequencer.tracker.account(&payer(1).address()));
    assert_eq!(node.held(&payer(1).address()), 500);
}

#[tokio::test]
async fn a_restart_finds_the_same_chain() {
    let l1 = l1();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chain.sqlite");
    let sequencer = Sealer::new(&l1).await;
    let first = sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
    let second = sequencer.seal_envelopes(250, &[envelope(1, 2)]).await;
    {
        let node = tracker_on(disk(&path).await, &l1).await;
        node.apply_sealed(&first.batch).await.unwrap();
        node.accept_certificate(&certificate_of(&first.batch)).await.unwrap();
        node.apply_sealed(&second.batch).await.unwrap();
    }
    let node = tracker_on(disk(&path).await, &l1).await;
    assert_eq!(node.head(), sequencer.tracker.head());
    assert_eq!((node.certified().number, node.certified().hash), (1, first.hash));
    let roots = [&node, &sequencer.tracker].map(|tracker| tracker.with_state(|state| state.ledger().root()));
    assert_eq!(roots[0], roots[1]);
    let third = sequencer.seal_envelopes(500, &[envelope(1, 3)]).await;
    node.apply_sealed(&third.batch).await.unwrap();
}

#[tokio::test]
async fn a_damaged_ledger_is_noticed_at_the_start() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    sequencer.seal(0, vec![]).await;
    // The header commits to a deposit that the accounts on this disk do not have.
    let store = memory();
    let sealed = sequencer.tracker.store().batch(1).await.unwrap().unwrap();
    let record = blindfold_store::SealedRecord {
        hash: sealed.hash,
        sealed: sealed.sealed,
        items: vec![],
        ledger: blindfold_protocol::LedgerDelta::default(),
        head: sequencer.tracker.store().ledger_head().await.unwrap().unwrap().head,
        signed: false,
        made_at: None,
    };
    store.put_sealed(record).await.unwrap();
    let opened = Tracker::open(chain_config(), store, Arc::clone(&l1) as _).await;
    assert!(matches!(opened.err(), Some(OpenError::DamagedLedger { number: 1 })));
}

#[tokio::test]
async fn opening_needs_l1() {
    let l1 = l1();
    *l1.fault.lock() = Some(L1Error::no_answer("scripted"));
    let opened = Tracker::open(chain_config(), memory(), Arc::clone(&l1) as _).await;
    assert!(matches!(opened.err(), Some(OpenError::L1(error)) if error.is_transient()));
}

/// Every header asked L1 for its origin again, so that an outage stopped certification with the first.
#[tokio::test]
async fn an_unchanged_origin_asks_l1_nothing() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let first = sequencer.seal(0, vec![]).await;
    let second = sequencer.seal_envelopes(250, &[envelope(1, 1)]).await;
    l1.deposit(payer(1).address(), 1);
    let moved = sequencer.seal(500, vec![]).await;
    let node = tracker_on(memory(), &l1).await;
    node.apply_sealed(&first.batch).await.unwrap();
    *l1.fault.lock() = Some(L1Error::no_answer("scripted"));
    node.apply_sealed(&second.batch).await.unwrap();
    // Another origin has to be looked up.
    assert_ne!(moved.batch.header.l1_origin_number, first.batch.header.l1_origin_number);
    assert_eq!(node.apply_sealed(&moved.batch).await.unwrap_err().as_str(), "l1_unavailable");
    *l1.fault.lock() = None;
    node.apply_sealed(&moved.batch).await.unwrap();
}

/// L1 fell silent right after the sequencer named one of its blocks, so that nobody could check that header.
#[tokio::test]
async fn an_origin_that_was_read_ahead_asks_l1_nothing() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let first = sequencer.seal(0, vec![]).await;
    l1.deposit(payer(1).address(), 1);
    let second = sequencer.seal(250, vec![]).await;
    l1.deposit(payer(1).address(), 2);
    let third = sequencer.seal(500, vec![]).await;
    l1.deposit(payer(1).address(), 3);
    let fourth = sequencer.seal(750, vec![]).await;
    let node = tracker_on(memory(), &l1).await;
    node.apply_sealed(&first.batch).await.unwrap();
    let newest = std::mem::replace(&mut *l1.finalized.lock(), third.batch.header.l1_origin_number);
    node.read_ahead().await.unwrap();
    *l1.finalized.lock() = newest;
    *l1.fault.lock() = Some(L1Error::no_answer("scripted"));
    assert!(node.read_ahead().await.is_err(), "what was read before stays");
    node.apply_sealed(&second.batch).await.unwrap();
    node.apply_sealed(&third.batch).await.unwrap();
    // The last one's was not seen in time.
    assert_eq!(node.apply_sealed(&fourth.batch).await.unwrap_err().as_str(), "l1_unavailable");
}

/// Each header asked L1 for the epochs, and waited as long as L1 let it.
#[tokio::test]
async fn known_epochs_are_not_waited_for() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let first = sequencer.seal(0, vec![]).await;
    let second = sequencer.seal(250, vec![]).await;
    let node = tracker_on(memory(), &l1).await;
    l1.slow_ms.store(NEVER_MS, Ordering::SeqCst);
    within("a header", node.apply_sealed(&first.batch)).await.unwrap();
    within("another", node.apply_sealed(&second.batch)).await.unwrap();
    assert_eq!(node.epoch(1).await.unwrap().epoch, 1);
}

#[tokio::test]
async fn each_refusal_of_a_header_is_named() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let first = sequencer.seal(0, vec![]).await;
    let second = sequencer.seal_envelopes(250, &[envelope(1, 1)]).await;
    let node = tracker_on(memory(), &l1).await;
    let stranger = SigningKey::from_bytes(&[77; 32]).unwrap();
    let key = sequencer_key();

    let behind = node.apply_sealed(&second.batch).await.unwrap_err();
    assert!(matches!(behind, TrackerError::Behind { expected: 1, offered: 2 }));
    assert_eq!(behind.next_step(), NextStep::CatchUp);

    let foreign = node.apply_sealed(&resigned(&first.batch, &stranger, |_| {})).await.unwrap_err();
    assert_eq!((foreign.as_str(), foreign.next_step()), ("wrong_signer", NextStep::Reject));
    let mut unsigned = (*first.batch).clone();
    unsigned.signature = Signature65([1; 65]);
    assert_eq!(node.apply_sealed(&Arc::new(unsigned)).await.unwrap_err().as_str(), "bad_signature");

    let wrong = node.apply_sealed(&resigned(&first.batch, &key, |header| header.gas += 1)).await.unwrap_err();
    assert_eq!((wrong.as_str(), wrong.next_step()), ("wrong_gas", NextStep::Reject));
    let orphan =
        node.apply_sealed(&resigned(&first.batch, &key, |header| header.parent_hash = B256::ZERO)).await;
    assert_eq!(orphan.unwrap_err().as_str(), "wrong_parent");

    let early = node.apply_sealed(&resigned(&first.batch, &key, |header| header.l1_origin_number = 99)).await;
    let early = early.unwrap_err();
    assert!(matches!(early, TrackerError::OriginNotFinal { number: 1, origin: 99 }));
    assert_eq!((early.as_str(), early.next_step()), ("origin_not_final", NextStep::Retry));

    *l1.fault.lock() = Some(L1Error::no_answer("scripted"));
    let away = node.apply_sealed(&first.batch).await.unwrap_err();
    assert_eq!((away.as_str(), away.next_step()), ("l1_unavailable", NextStep::Retry));
    *l1.fault.lock() = Some(L1Error::nonsense("scripted"));
    assert_eq!(node.apply_sealed(&first.batch).await.unwrap_err().next_step(), NextStep::Stop);
    *l1.fault.lock() = None;

    // Whatever was refused, the right one is still taken.
    node.apply_sealed(&first.batch).await.unwrap();
    let another = resigned(&first.batch, &key, |header| header.timestamp_ms += 1);
    let second_header = node.apply_sealed(&another).await.unwrap_err();
    assert!(matches!(second_header, TrackerError::Second { number: 1, known, .. } if known == first.hash));
    assert_eq!(second_header.next_step(), NextStep::Reject);

    let on_another = resigned(&second.batch, &key, |header| header.parent_hash = another.header.hash());
    let differs = node.apply_sealed(&on_another).await.unwrap_err();
    assert!(
        matches!(differs, TrackerError::AncestorDiffers { number: 1, parent } if parent == another.header.hash())
    );
    assert_eq!(differs.next_step(), NextStep::CatchUp);
}

#[tokio::test]
async fn uncertified_headers_are_bounded() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let node = tracker_on(memory(), &l1).await;
    let limit = blindfold_chain::limits::MAX_UNCERTIFIED_HEADERS;
    let mut last = sequencer.seal(0, vec![]).await;
    node.apply_sealed(&last.batch).await.unwrap();
    for number in 2..=limit {
        last = sequencer.seal(number * 250, vec![]).await;
        node.apply_sealed(&last.batch).await.unwrap();
    }
    let origin = l1_block(2);
    let full =
        sequencer.tracker.seal(START_MS + 10_000, 0, vec![], &origin, &signer_of(&sequencer.tracker)).await;
    assert!(matches!(full.unwrap_err(), SealingError::TooManyUncertified { .. }));
    // A certificate of any of them makes room: the last certifies all.
    sequencer.certify(&last).await;
    let next = sequencer.seal(10_000, vec![]).await;
    let refused = node.apply_sealed(&next.batch).await.unwrap_err();
    assert!(matches!(refused, TrackerError::TooManyUncertified { .. }));
    assert_eq!((refused.as_str(), refused.next_step()), ("too_many_uncertified", NextStep::Retry));
    node.accept_certificate(&certificate_of(&last.batch)).await.unwrap();
    node.apply_sealed(&next.batch).await.unwrap();
}

#[tokio::test]
async fn numbers_need_an_epoch_and_a_new_one_is_looked_up() {
    let l1 = l1();
    let mut short = epoch();
    short.last = 1;
    *l1.epochs.lock() = blindfold_protocol::Epochs::new(vec![short.clone()]).unwrap();
    let node = tracker_on(memory(), &l1).await;
    let refused = node.epoch(2).await.unwrap_err();
    assert!(matches!(refused, TrackerError::NoEpoch { number: 2 }));
    assert_eq!((refused.as_str(), refused.next_step()), ("no_epoch", NextStep::Retry));
    let mut next = epoch();
    (next.epoch, next.first) = (2, 2);
    *l1.epochs.lock() = blindfold_protocol::Epochs::new(vec![short, next]).unwrap();
    assert_eq!(node.epoch(2).await.unwrap().epoch, 2);
}

#[tokio::test]
async fn an_epoch_that_ends_earlier_is_noticed_and_known_ones_serve_without_l1() {
    let l1 = l1();
    let node = tracker_on(memory(), &l1).await;
    assert_eq!(node.epoch(5).await.unwrap().epoch, EPOCH);
    let early = Epoch { epoch: 1, last: 4, ..epoch() };
    let next = Epoch { epoch: 2, first: 5, ..epoch() };
    *l1.epochs.lock() = Epochs::new(vec![early, next]).unwrap();
    assert_eq!(node.epoch(5).await.unwrap().epoch, 2);
    *l1.fault.lock() = Some(L1Error::no_answer("scripted"));
    assert_eq!(node.epoch(4).await.unwrap().epoch, 1);
}

/// Rule L-1.
#[tokio::test]
async fn nothing_is_sealed_or_taken_before_the_epochs_notice_is_over() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let node = tracker_on(memory(), &l1).await;
    let early = sequencer.seal(0, vec![]).await;
    let origin = early.batch.header.l1_origin_number;
    *l1.epochs.lock() = Epochs::new(vec![Epoch { counts_from: origin + 1, ..epoch() }]).unwrap();
    let refused = node.apply_sealed(&early.batch).await.unwrap_err();
    assert!(matches!(refused, TrackerError::EpochNotInForce { number: 1, .. }), "{refused}");
    assert_eq!((refused.as_str(), refused.next_step()), ("epoch_not_in_force", NextStep::Reject));
    let block = l1_block(origin);
    let refused = node.seal(START_MS, 0, vec![], &block, &signer_of(&node)).await.unwrap_err();
    assert!(matches!(refused, SealingError::EpochNotInForce { number: 1, .. }), "{refused}");
    *l1.epochs.lock() = Epochs::new(vec![Epoch { counts_from: origin, ..epoch() }]).unwrap();
    node.apply_sealed(&early.batch).await.unwrap();
}

#[tokio::test]
async fn rules_that_this_build_does_not_know_stop_it_before_their_first_number() {
    let l1 = l1();
    let node = tracker_on(memory(), &l1).await;
    let scheduled = Epochs::new(vec![epoch()]).unwrap();
    *l1.epochs.lock() = scheduled.with_rules(vec![RulesChange { first: 3, rules: 2 }]).unwrap();
    node.epoch(2).await.unwrap();
    let refused = node.epoch(3).await.unwrap_err();
    assert!(matches!(refused, TrackerError::UnknownRules { number: 3, rules: 2 }), "{refused}");
    assert_eq!((refused.as_str(), refused.next_step()), ("unknown_rules", NextStep::Stop));
}

#[tokio::test]
async fn certificates_advance_and_forged_ones_do_not() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let node = tracker_on(memory(), &l1).await;
    let first = sequencer.seal(0, vec![]).await;
    let second = sequencer.seal(250, vec![]).await;
    let certificate = certificate_of(&second.batch);
    let behind = node.accept_certificate(&certificate).await.unwrap_err();
    assert!(matches!(behind, TrackerError::Behind { expected: 1, offered: 2 }));
    node.apply_sealed(&first.batch).await.unwrap();
    node.apply_sealed(&second.batch).await.unwrap();

    let forge = |change: fn(&mut Certificate)| {
        let mut forged = certificate;
        change(&mut forged);
        forged
    };
    for (forged, reason) in [
        (forge(|certificate| certificate.signers = 0b0111), "bad_signature"),
        (forge(|certificate| certificate.signers = 0b0011), "too_few_signers"),
        (forge(|certificate| certificate.signers |= 1 << 9), "unknown_signers"),
        (forge(|certificate| certificate.signature = [0xff; 48]), "bad_point"),
        (forge(|certificate| certificate.epoch = 2), "wrong_epoch"),
        (forge(|certificate| certificate.header_hash = B256::ZERO), "bad_signature"),
    ] {
        let refused = node.accept_certificate(&forged).await.unwrap_err();
        assert_eq!((refused.as_str(), refused.next_step()), (reason, NextStep::Reject));
    }
    assert_eq!(node.certified().number, 0);

    let watch = node.watch_certified();
    assert_eq!(node.accept_certificate(&certificate).await.unwrap(), CertificateOutcome::Advanced);
    assert!(watch.has_changed().unwrap());
    assert_eq!(node.accept_certificate(&certificate).await.unwrap(), CertificateOutcome::Known);
    // The first is certified through its descendant; its own certificate is kept all the same.
    let of_first = certificate_of(&first.batch);
    assert_eq!(node.accept_certificate(&of_first).await.unwrap(), CertificateOutcome::Kept);
    assert_eq!(node.certified().number, 2);
}

#[tokio::test]
async fn the_certified_header_of_two_wins() {
    let l1 = l1();
    // Two sequencers with one key: the same chain up to 1, then two headers for 2.
    let (honest, other) = (Sealer::new(&l1).await, Sealer::new(&l1).await);
    let first = honest.seal(0, vec![]).await;
    assert_eq!(other.seal(0, vec![]).await.hash, first.hash);
    let shown = other.seal_envelopes(300, &[envelope(1, 7)]).await;
    let shown_next = other.seal_envelopes(600, &[envelope(1, 8)]).await;
    let truth = honest.seal_envelopes(250, &[envelope(1, 1)]).await;
    assert_ne!(truth.hash, shown.hash);

    let node = tracker_on(memory(), &l1).await;
    for sealed in [&first, &shown, &shown_next] {
        node.apply_sealed(&sealed.batch).await.unwrap();
    }
    assert!(matches!(
        node.apply_sealed(&truth.batch).await.unwrap_err(),
        TrackerError::Second { number: 2, .. }
    ));
    let refused = node.accept_certificate(&certificate_of(&truth.batch)).await.unwrap_err();
    assert!(matches!(refused, TrackerError::OtherHeaderCertified { number: 2, .. }));
    assert_eq!(refused.next_step(), NextStep::CatchUp);

    let (applied, outcome) = node.accept_certified(&certified(&truth.batch)).await.unwrap();
    assert!(applied.is_new());
    assert_eq!(outcome, CertificateOutcome::Advanced);
    assert_eq!(node.head(), honest.tracker.head());
    let roots = [&node, &honest.tracker].map(|tracker| tracker.with_state(|state| state.ledger().root()));
    assert_eq!(roots[0], roots[1]);
    assert!(node.store().batch(3).await.unwrap().is_none());

    // From here on the other branch is a contradiction that no honest committee makes.
    let broken = node.accept_certified(&certified(&shown.batch)).await.unwrap_err();
    assert!(matches!(broken, TrackerError::ConflictingCertificates { number: 2, .. }));
    assert_eq!(broken.next_step(), NextStep::Stop);
    let broken = node.accept_certificate(&certificate_of(&shown.batch)).await.unwrap_err();
    assert!(matches!(broken, TrackerError::ConflictingCertificates { number: 2, .. }));
    let broken = node.accept_certified(&certified(&shown_next.batch)).await.unwrap_err();
    assert_eq!(broken.as_str(), "wrong_parent");
}

/// What L1 said to a header was kept without the place in the queue from which it was read: after the node had given way to
/// the certified one of two headers, that one's forced items were not known any more, ever.
#[tokio::test]
async fn the_queue_is_read_anew_when_headers_give_way() {
    let l1 = l1();
    l1.force(|index, at| ForcedEntry::transaction(index, 50_000, *b"raw", at));
    let (honest, other) = (Sealer::new(&l1).await, Sealer::new(&l1).await);
    let first = honest.seal(0, vec![]).await;
    assert_eq!(other.seal(0, vec![]).await.hash, first.hash);
    let shown = other.seal_forced(300, 1, vec![]).await;
    let shown_next = other.seal(600, vec![]).await;
    let truth = honest.seal_forced(250, 1, vec![]).await;
    let node = tracker_on(memory(), &l1).await;
    node.read_ahead().await.unwrap();
    for sealed in [&first, &shown, &shown_next] {
        node.apply_sealed(&sealed.batch).await.unwrap();
    }
    let (applied, _) = node.accept_certified(&certified(&truth.batch)).await.unwrap();
    assert!(applied.is_new());
    assert_eq!(node.head(), honest.tracker.head());
}

#[tokio::test]
async fn a_run_of_certified_ancestors_replaces_ours() {
    let l1 = l1();
    let (honest, other) = (Sealer::new(&l1).await, Sealer::new(&l1).await);
    let shown = [other.seal(300, vec![]).await, other.seal(600, vec![]).await];
    let truth = [honest.seal(250, vec![]).await, honest.seal_envelopes(500, &[envelope(1, 1)]).await];
    let node = tracker_on(memory(), &l1).await;
    for sealed in &shown {
        node.apply_sealed(&sealed.batch).await.unwrap();
    }
    let certificate = certificate_of(&truth[1].batch);
    let refused = node.accept_certified(&certified(&truth[1].batch)).await.unwrap_err();
    assert!(
        matches!(refused, TrackerError::AncestorDiffers { number: 1, parent } if parent == truth[0].hash)
    );
    assert_eq!(node.head().hash, shown[1].hash, "nothing was taken back yet");

    let run = [Arc::clone(&truth[0].batch), Arc::clone(&truth[1].batch)];
    // Whoever looks for a vote of its own in the certificate has done so before it is on disk.
    let mut looked = false;
    let before = async {
        assert_eq!(node.store().heads().await.unwrap().certified, None);
        assert_eq!(node.head().hash, shown[1].hash);
        looked = true;
    };
    let (applied, _) = node.accept_certified_run_after(&run, &certificate, before).await.unwrap();
    assert!(looked);
    assert_eq!(applied.len(), 2);
    assert_eq!(node.head(), honest.tracker.head());
    assert_eq!(node.certified().number, 2);

    // Runs that are none.
    let mismatch = |result: Result<_, TrackerError>| {
        matches!(result.map(|_: (Vec<_>, _)| ()), Err(TrackerError::CertificateMismatch { .. }))
    };
    assert!(mismatch(node.accept_certified_run(&[], &certificate).await));
    assert!(mismatch(node.accept_certified_run(&run[..1], &certificate).await));
    let gap = [Arc::clone(&shown[0].batch), Arc::clone(&truth[1].batch)];
    assert!(mismatch(node.accept_certified_run(&gap, &certificate).await));
    let swapped = CertifiedBatch { sealed: (*truth[0].batch).clone(), certificate };
    assert_eq!(node.accept_certified(&swapped).await.unwrap_err().as_str(), "certificate_mismatch");
}

#[tokio::test]
async fn a_disk_that_refuses_leaves_memory_as_it_was() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    // This process has signed another header for number 1 before.
    sequencer.tracker.store().put_acknowledged(1, B256::repeat_byte(1), 1).await.unwrap();
    let before = sequencer.tracker.head();
    let sealed =
        sequencer.tracker.seal(START_MS, 0, vec![], &l1_block(2), &signer_of(&sequencer.tracker)).await;
    let conflict = |error: &SealingError| {
        matches!(
            error,
            SealingError::Store(StoreError::Conflict { what: What::Acknowledgement, number: 1, .. })
        )
    };
    assert!(conflict(&sealed.unwrap_err()));
    assert_eq!(sequencer.tracker.head(), before);
    assert_eq!(sequencer.tracker.account(&payer(1).address()).balance, 0, "the deposit is not credited");
}

#[tokio::test]
async fn each_refusal_to_seal_is_named() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    sequencer.seal(0, vec![]).await;
    let seal = |ms: u64, origin: u64| {
        let tracker = sequencer.tracker.clone();
        async move {
            tracker.seal(START_MS + ms, 0, vec![], &l1_block(origin), &signer_of(&tracker)).await.unwrap_err()
        }
    };
    assert!(
        matches!(seal(0, 2).await, SealingError::Rule(fault) if fault.as_str() == "time_not_after_parent")
    );
    assert!(matches!(seal(250, 1).await, SealingError::Rule(fault) if fault.as_str() == "origin_back"));
    *l1.fault.lock() = Some(L1Error::no_answer("scripted"));
    l1.finalized.lock().clone_from(&3);
    assert!(matches!(seal(250, 3).await, SealingError::L1(_)));
    *l1.fault.lock() = None;
    *l1.epochs.lock() = blindfold_protocol::Epochs::new(vec![]).unwrap();
    let lost = tracker_on(memory(), &l1).await;
    let refused = lost.seal(START_MS, 0, vec![], &l1_block(2), &signer_of(&lost)).await.unwrap_err();
    assert!(matches!(refused, SealingError::NoEpoch { number: 1 }));
}

#[tokio::test]
async fn a_dropped_caller_leaves_memory_and_disk_together() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let node = tracker_on(memory(), &l1).await;
    let first = sequencer.seal(0, vec![]).await;
    let mut watch = node.watch_sealed();
    {
        let mut apply = Box::pin(node.apply_sealed(&first.batch));
        // One poll starts it, then the caller goes away.
        let _ = futures::poll!(apply.as_mut());
    }
    within("the header", watch.wait_for(|head| head.number == 1)).await.unwrap();
    assert_eq!(node.store().heads().await.unwrap().sealed, Some((1, first.hash)));
    assert!(!node.apply_sealed(&first.batch).await.unwrap().is_new());
}

#[tokio::test]
async fn items_are_checked_in_chunks_and_in_order() {
    let many = blindfold_chain::CHECK_CHUNK_ITEMS + 3;
    let mut items: Vec<Vec<u8>> = (0..many).map(|index| vec![index as u8; 3]).collect();
    items[0] = blindfold_protocol::Canonical::encode(&envelope(1, 1));
    items[many - 1] = blindfold_protocol::Canonical::encode(&envelope(1, 2));
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let sealed = sequencer.seal(0, items).await;
    let (config, epoch) = (chain_config(), Arc::new(epoch()));
    let checked = check_items(&config, &epoch, &sealed.batch).await.unwrap();
    assert_eq!(checked.len(), many);
    let accepted = blindfold_chain::accepted_items(&checked, &sealed.verdicts);
    assert_eq!(accepted.iter().map(|(index, _)| *index as usize).collect::<Vec<_>>(), vec![0, many - 1]);
}

/// What is sent to a server before it is durable may stay in its log, or be shown to a reader, and never be durable.
#[tokio::test]
async fn on_a_server_a_header_is_signed_after_it_is_durable() {
    let (l1, store) = (l1(), FaultyStore::new(memory()));
    store.show_early();
    let tracker = tracker_on(store.clone(), &l1).await;
    store.hold("put_signature");
    let signer = signer_of(&tracker);
    let sealing = {
        let tracker = tracker.clone();
        blindfold_runtime::spawn(
            async move { tracker.seal(START_MS, 0, vec![], &l1_block(2), &signer).await },
        )
    };
    within("the signature", store.somebody_waits()).await;
    assert!(!store.batch(1).await.unwrap().unwrap().is_signed());
    assert_eq!(tracker.watch_sealed().borrow().number, 0, "and it is not to be seen");
    store.release();
    let sealed = sealing.await.unwrap().unwrap();
    assert_eq!(store.batch(1).await.unwrap().unwrap().sealed, *sealed.batch);
    assert_eq!(
        sealed.batch.signed_header().signer(&chain_config().deployment),
        Ok(sequencer_key().address())
    );
    assert_eq!(tracker.watch_sealed().borrow().number, 1);
}

/// The header is stored, and the server is away when its signature is to be: what is sealed next has to wait for it.
#[tokio::test]
async fn nothing_is_sealed_above_a_header_whose_signature_is_not_stored() {
    let (l1, store) = (l1(), FaultyStore::new(memory()));
    store.show_early();
    let tracker = tracker_on(store.clone(), &l1).await;
    let signer = signer_of(&tracker);
    store.fail("put_signature", StoreError::Failed("away".to_owned()));
    let sealing = {
        let (tracker, signer) = (tracker.clone(), signer.clone());
        blindfold_runtime::spawn(
            async move { tracker.seal(START_MS, 0, vec![], &l1_block(2), &signer).await },
        )
    };
    within("two failures", async {
        while store.failures() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    store.heal();
    assert_eq!(sealing.await.unwrap().unwrap().batch.header.number, 1, "the same call goes on");
    assert!(store.batch(1).await.unwrap().unwrap().is_signed());
    assert_eq!(tracker.watch_sealed().borrow().number, 1);
}

/// A sequencer on a disk that fails as it is told, with a certified header and two that are not, both of which took something
/// from accounts; and its state after the first.
async fn two_to_take_back() -> (Sealer, Arc<FaultyStore>, ChainState) {
    let (l1, store) = (l1(), FaultyStore::new(memory()));
    let sealer = Sealer { tracker: tracker_on(store.clone(), &l1).await, l1 };
    let first = sealer.seal_envelopes(0, &[envelope(1, 1)]).await;
    sealer.certify(&first).await;
    let state = sealer.tracker.with_state(ChainState::clone);
    sealer.seal_envelopes(250, &[envelope(1, 2), envelope(2, 1)]).await;
    sealer.seal_envelopes(500, &[envelope(1, 3), envelope(3, 1)]).await;
    (sealer, store, state)
}

/// A ledger of half a million nonces was read anew, and every header waited for it.
#[tokio::test]
async fn headers_are_taken_back_without_a_look_at_the_whole_ledger() {
    let (sealer, store, before) = two_to_take_back().await;
    let tracker = &sealer.tracker;
    store.fail("ledger", StoreError::Failed("not asked for".to_owned()));
    tracker.give_up_from(2).await.unwrap();
    assert!(tracker.with_state(|state| *state == before));
    assert_eq!(tracker.watch_sealed().borrow().number, 1);
    let shown = tracker.prove_newest_account(&payer(1).address()).unwrap();
    assert_eq!((shown.header.number, shown.account), (1, tracker.account(&payer(1).address())));
    store.heal();
    assert_eq!(store.ledger().await.unwrap(), *before.ledger());
    let reopened = tracker_on(store.clone(), &sealer.l1).await;
    assert!(reopened.with_state(|state| tracker.with_state(|known| state == known)));
}

#[tokio::test]
async fn memory_that_is_ahead_of_the_disk_is_read_anew() {
    let (sealer, store, before) = two_to_take_back().await;
    // The disk has taken them back, and does not say what it has now.
    store.fail("ledger_head", StoreError::Failed("a moment".to_owned()));
    assert!(matches!(sealer.tracker.give_up_from(2).await, Err(TrackerError::Store(_))));
    assert_eq!(sealer.tracker.head().number, 3);
    store.heal();
    sealer.tracker.give_up_from(2).await.unwrap();
    assert!(sealer.tracker.with_state(|state| *state == before));
}

/// A proof waited for the header that was on its way to the disk, and the one after that for the proof.
#[tokio::test]
async fn a_proof_waits_for_no_header() {
    let (l1, store) = (l1(), FaultyStore::new(memory()));
    let sealer = Sealer { tracker: tracker_on(store.clone(), &l1).await, l1 };
    store.keep_ledgers_from(0).await.unwrap();
    let first = sealer.seal_envelopes(0, &[envelope(1, 1)]).await;
    sealer.certify(&first).await;
    let second = sealer.seal_envelopes(250, &[envelope(1, 2)]).await;
    let (tracker, payer) = (sealer.tracker.clone(), payer(1).address());
    store.hold("put_sealed");
    let sealing = {
        let (tracker, signer) = (tracker.clone(), signer_of(&tracker));
        blindfold_runtime::spawn(async move {
            tracker.seal(START_MS + 500, 0, vec![], &l1_block(2), &signer).await
        })
    };
    within("the write", store.somebody_waits()).await;
    let shown = within("a proof", tracker.prove_account(&payer, 1)).await.unwrap().unwrap();
    assert_eq!(shown.header.hash, first.hash);
    assert!(shown.proof.verify(&first.batch.header.fee_ledger_root, &payer, &shown.account));
    let newest = tracker.prove_newest_account(&payer).unwrap();
    assert_eq!(newest.header.hash, second.hash, "what is not durable is not shown");
    let refused = tracker.prove_account(&payer, 3).await;
    assert!(matches!(refused, Err(AccountProofError::NoHeader { number: 3, newest: 2 })), "{refused:?}");
    store.release();
    let third = sealing.await.unwrap().unwrap();
    assert_eq!(tracker.prove_newest_account(&payer).unwrap().header.hash, third.hash);
}

#[tokio::test]
async fn an_account_is_proved_however_many_headers_ago() {
    let l1 = l1();
    let sealer = Sealer::new(&l1).await;
    let tracker = &sealer.tracker;
    tracker.store().keep_ledgers_from(0).await.unwrap();
    let payer = payer(1).address();
    let mut sealed = Vec::new();
    for number in 0..300 {
        l1.deposit(payer, 1);
        l1.deposit(Address::repeat_byte(number as u8), 1);
        sealed.push(sealer.seal(number * 250, vec![]).await);
        sealer.certify(sealed.last().unwrap()).await;
    }
    for number in [20, 290, 1, 2] {
        let header = &sealed[number - 1].batch.header;
        let shown = tracker.prove_account(&payer, number as u64).await.unwrap().unwrap();
        assert_eq!(shown.account.balance, RICH + number as u128);
        assert!(shown.proof.verify(&header.fee_ledger_root, &payer, &shown.account), "{number}");
    }
}

/// So many certified headers, each of which changes an account, on a disk that a test steers.
async fn chain_of(headers: u64) -> (Sealer, Arc<FaultyStore>, Vec<Sealed>) {
    let (l1, store) = (l1(), FaultyStore::new(memory()));
    let sealer = Sealer { tracker: tracker_on(store.clone(), &l1).await, l1 };
    store.keep_ledgers_from(0).await.expect("a floor");
    let mut sealed = Vec::new();
    for place in 0..headers {
        sealer.l1.deposit(payer(1).address(), 1);
        let one = sealer.seal(place * 250, vec![]).await;
        // It certifies those before it as well.
        if place % 8 == 7 || place + 1 == headers {
            sealer.certify(&one).await;
        }
        sealed.push(one);
    }
    (sealer, store, sealed)
}

/// All proofs waited for each other: those by the last posted header for one that somebody asked for by one of a day before.
#[tokio::test]
async fn a_proof_by_a_late_header_waits_for_none_by_an_early_one() {
    let (sealer, store, sealed) = chain_of(300).await;
    let prove = |number: u64| {
        let tracker = sealer.tracker.clone();
        blindfold_runtime::spawn(async move { tracker.prove_account(&payer(1).address(), number).await })
    };
    store.hold("entries_changed_after");
    let early = prove(1);
    within("the early one", store.waits(1)).await;
    let late = prove(299);
    within("the late one beside it", store.waits(2)).await;
    store.release();
    for (proof, of) in [(early, &sealed[0]), (late, &sealed[298])] {
        let shown = within("a proof", proof).await.unwrap().unwrap().unwrap();
        assert_eq!(shown.header.hash, of.hash);
    }
}

#[tokio::test]
async fn more_proofs_than_may_wait_are_refused() {
    let (sealer, store, _) = chain_of(24).await;
    store.hold("entries_changed_after");
    let (told, mut answers) = tokio::sync::mpsc::unbounded_channel();
    let asked = MAX_WAITING_PROOFS as u64 + 2;
    for number in 1..=asked {
        let (tracker, told) = (sealer.tracker.clone(), told.clone());
        blindfold_runtime::spawn(async move {
            let answer = tracker.prove_account(&payer(1).address(), number).await;
            told.send(answer).expect("somebody listens");
        });
    }
    let refused = within("a refusal", answers.recv()).await.unwrap();
    assert!(matches!(refused, Err(AccountProofError::Busy)), "{refused:?}");
    store.release();
    for _ in 1..asked {
        let shown = within("a proof", answers.recv()).await.unwrap();
        assert!(shown.unwrap().is_some());
    }
}

/// Each began at the newest header again, and so did each that was refused in the end.
#[tokio::test]
async fn proofs_one_after_the_other_do_not_all_go_the_whole_way() {
    let (sealer, store, sealed) = chain_of(600).await;
    let (tracker, payer) = (&sealer.tracker, payer(1).address());
    let reads = || store.calls("entries_changed_after");
    for number in 10..=20 {
        let before = reads();
        let shown = tracker.prove_account(&payer, number).await.unwrap().unwrap();
        let root = &sealed[number as usize - 1].batch.header.fee_ledger_root;
        assert!(shown.proof.verify(root, &payer, &shown.account), "{number}");
        assert_eq!(reads() - before, if number == 10 { 3 } else { 1 }, "{number}");
    }
    store.keep_ledgers_from(9).await.unwrap();
    let before = reads();
    let refused = tracker.prove_account(&payer, 8).await;
    assert!(matches!(refused, Err(AccountProofError::Forgotten(8))), "{refused:?}");
    assert_eq!(reads(), before);
}
