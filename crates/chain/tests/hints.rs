//! Hints: the true ones open a batch, each false one is named with its item.

use blindfold_bte::{Blinding, STATED_MIN};
use blindfold_chain::{HintsError, HintsIntakeError, ItemOutcome, check_release_shape, verify_hints};
use blindfold_kit::*;
use blindfold_protocol::{B256, BatchHints, Bundle, HintEntry, Release};

type Change<'a> = &'a dyn Fn(&mut BatchHints);

/// A batch of: a good envelope, a copy of it (skipped), a malformed one, another good one.
async fn mixed(sequencer: &Sealer) -> blindfold_chain::Sealed {
    sequencer.seal_envelopes(0, &[envelope(1, 1), envelope(1, 1), malformed(1, 2), envelope(1, 3)]).await
}

#[tokio::test]
async fn true_hints_open_a_batch() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let sealed = mixed(&sequencer).await;
    let (release, hints) = open_batch(&sealed.batch, &sealed.verdicts);
    let parameters = parameter_set().at(1).unwrap().clone();
    let outcomes = verify_hints(&*backend(), &parameters, &sealed.batch, &sealed.verdicts, &hints).unwrap();
    let message = |nonce| Bundle::of_transactions([transaction(1, nonce)]).encode_padded().unwrap();
    assert_eq!(outcomes[0], ItemOutcome::Message(message(1)));
    assert!(matches!(outcomes[1], ItemOutcome::Skipped(fault) if fault.as_str() == "duplicate"));
    assert_eq!(outcomes[2], ItemOutcome::Malformed);
    assert_eq!(outcomes[3], ItemOutcome::Message(message(3)));
    assert!(!format!("{outcomes:?}").contains("[1, 0"), "messages stay out of logs");
    check_release_shape(&parameters, &sealed.batch, &sealed.verdicts, &release).unwrap();
}

#[tokio::test]
async fn each_false_hint_is_named() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let sealed = mixed(&sequencer).await;
    let (release, hints) = open_batch(&sealed.batch, &sealed.verdicts);
    let points = points_of(&sealed.batch, &sealed.verdicts);
    let parameters = parameter_set().at(1).unwrap().clone();
    let verify = |change: Change<'_>| {
        let mut forged = hints.clone();
        change(&mut forged);
        verify_hints(&*backend(), &parameters, &sealed.batch, &sealed.verdicts, &forged).unwrap_err()
    };
    // What a hint publisher would publish who claims that the first envelope is malformed: its true singleton release.
    let of_first = singleton(&points[0][0].2);
    let cases: [(Change<'_>, HintsError, &str); 9] = [
        (&|hints| hints.number = 2, HintsError::OtherHeader, "other_header"),
        (&|hints| hints.header_hash = B256::ZERO, HintsError::OtherHeader, "other_header"),
        (
            &|hints| {
                hints.entries.pop();
            },
            HintsError::Count { expected: 4, found: 3 },
            "wrong_count",
        ),
        (&|hints| hints.entries[0] = HintEntry::Skipped, HintsError::NotSkipped { index: 0 }, "not_skipped"),
        (&|hints| hints.entries[1] = hints.entries[0], HintsError::Skipped { index: 1 }, "hint_for_skipped"),
        (&|hints| hints.entries[3] = hints.entries[0], HintsError::WrongKey { index: 3 }, "wrong_key"),
        (&|hints| hints.entries[2] = HintEntry::Key([7; 16]), HintsError::WrongKey { index: 2 }, "wrong_key"),
        (
            &|hints| hints.entries[2] = HintEntry::Malformed(of_first),
            HintsError::WrongSingleton { index: 2 },
            "wrong_singleton",
        ),
        (
            &|hints| hints.entries[0] = HintEntry::Malformed(of_first),
            HintsError::FalseMalformed { index: 0 },
            "false_malformed",
        ),
    ];
    for (change, expected, name) in cases {
        let fault = verify(change);
        assert_eq!((fault.as_str(), &fault), (name, &expected));
    }
    assert_eq!(
        verify(&|hints| hints.entries[2] = HintEntry::Malformed([0xff; 48])),
        HintsError::WrongSingleton { index: 2 }
    );

    // An accepted item that does not decode cannot come from verdicts that we computed.
    let mut damaged = (*sealed.batch).clone();
    damaged.items[0].truncate(9);
    let fault = verify_hints(&*backend(), &parameters, &damaged, &sealed.verdicts, &hints).unwrap_err();
    assert_eq!((fault.as_str(), fault), ("undecodable", HintsError::Undecodable { index: 0 }));

    let shape = |change: &dyn Fn(&mut Release)| {
        let mut forged = release.clone();
        change(&mut forged);
        check_release_shape(&parameters, &sealed.batch, &sealed.verdicts, &forged).unwrap_err()
    };
    assert_eq!(shape(&|release| release.header_hash = B256::ZERO), HintsError::OtherHeader);
    let fault = shape(&|release| release.pds.push([0; 48]));
    assert_eq!(
        (fault.as_str(), fault),
        ("wrong_sub_batches", HintsError::SubBatches { expected: 1, found: 2 })
    );
}

#[tokio::test]
async fn more_than_one_sub_batch() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let envelopes: Vec<_> = (1..=u64::from(MAX_BATCH) + 2).map(|nonce| envelope(1, nonce)).collect();
    let sealed = sequencer.seal_envelopes(0, &envelopes).await;
    let (release, hints) = open_batch(&sealed.batch, &sealed.verdicts);
    assert_eq!(release.pds.len(), 2);
    let parameters = parameter_set().at(1).unwrap().clone();
    check_release_shape(&parameters, &sealed.batch, &sealed.verdicts, &release).unwrap();
    let outcomes = verify_hints(&*backend(), &parameters, &sealed.batch, &sealed.verdicts, &hints).unwrap();
    assert!(outcomes.iter().all(|outcome| matches!(outcome, ItemOutcome::Message(_))));
}

/// They make many malformed items cheap to check, and nothing else: a wrong one is refused.
#[tokio::test]
async fn stated_blinding_factors_are_right_or_refused() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let mut envelopes = vec![envelope(1, 0)];
    envelopes.extend((1..=STATED_MIN as u64).map(|nonce| malformed(1, nonce)));
    let sealed = sequencer.seal_envelopes(0, &envelopes).await;
    let (release, plain) = open_batch(&sealed.batch, &sealed.verdicts);
    let parameters = parameter_set().at(1).unwrap().clone();
    let mut hints = plain.clone();
    let blind = |entry: &HintEntry| match entry {
        HintEntry::Malformed(release) => Some(committee().parameters.blind_singleton(release).unwrap()),
        _ => None,
    };
    hints.blindings = plain.entries.iter().filter_map(blind).collect();
    assert_eq!(hints.blindings.len(), STATED_MIN);
    let verify =
        |hints: &BatchHints| verify_hints(&*backend(), &parameters, &sealed.batch, &sealed.verdicts, hints);
    assert_eq!(verify(&hints), verify(&plain));

    let another = committee().parameters.blind_singleton(&release.pds[0]).unwrap();
    let changes: [&dyn Fn(&mut BatchHints); 4] = [
        &|hints| hints.blindings[7] = another,
        &|hints| hints.blindings[0] = Blinding::from_bytes([0xff; 288]),
        &|hints| hints.blindings.truncate(STATED_MIN - 1),
        &|hints| hints.blindings.push(another),
    ];
    for change in changes {
        let mut forged = hints.clone();
        change(&mut forged);
        let fault = verify(&forged).unwrap_err();
        assert_eq!((fault.as_str(), fault), ("wrong_blinding", HintsError::WrongBlinding));
    }
    // Whoever lies about an item is told which one.
    let mut forged = hints.clone();
    forged.entries[5] = HintEntry::Malformed(release.pds[0]);
    assert_eq!(verify(&forged), Err(HintsError::WrongSingleton { index: 5 }));

    // Whether they are stated makes no other hints of it.
    let client = ScriptedExecution::new();
    let node = Machine::start(memory(), &l1, &client).await;
    node.take(&sealed).await;
    assert!(node.intake.submit(Some(release.clone()), hints.clone()).await.unwrap().new);
    assert!(!node.intake.submit(Some(release), plain.clone()).await.unwrap().new);
    assert_eq!(node.intake.known(&plain).await.unwrap(), Some(true));
    node.tracker.store().put_hints(&plain).await.unwrap();
    assert_eq!(node.tracker.store().batch(1).await.unwrap().unwrap().hints, Some(hints));
}

#[tokio::test]
async fn the_door_for_hints_takes_only_the_truth_about_certified_batches() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let sealed = mixed(&sequencer).await;
    let (release, hints) = open_batch(&sealed.batch, &sealed.verdicts);
    let client = ScriptedExecution::new();
    let node = Machine::start(memory(), &l1, &client).await;

    let refused = node.intake.submit(Some(release.clone()), hints.clone()).await.unwrap_err();
    assert!(matches!(refused, HintsIntakeError::UnknownBatch { number: 1 }));
    assert_eq!((refused.as_str(), refused.retry()), ("unknown_batch", true));
    node.tracker.apply_sealed(&sealed.batch).await.unwrap();
    let refused = node.intake.submit(Some(release.clone()), hints.clone()).await.unwrap_err();
    assert!(matches!(refused, HintsIntakeError::NotCertified { number: 1 }));
    assert_eq!((refused.as_str(), refused.retry()), ("not_certified", true));
    node.take(&sealed).await;

    let mut forged = hints.clone();
    forged.entries[0] = HintEntry::Key([1; 16]);
    let refused = node.intake.submit(Some(release.clone()), forged.clone()).await.unwrap_err();
    assert_eq!((refused.as_str(), refused.retry()), ("wrong_key", false));
    let mut elsewhere = hints.clone();
    elsewhere.header_hash = B256::ZERO;
    assert_eq!(node.intake.submit(None, elsewhere).await.unwrap_err().as_str(), "other_header");
    let mut short = release.clone();
    short.pds.clear();
    assert_eq!(
        node.intake.submit(Some(short), hints.clone()).await.unwrap_err().as_str(),
        "wrong_sub_batches"
    );
    assert!(node.tracker.store().batch(1).await.unwrap().unwrap().hints.is_none());

    let accepted = node.intake.submit(Some(release.clone()), hints.clone()).await.unwrap();
    assert_eq!((accepted.number, accepted.hash, accepted.verified, accepted.new), (1, sealed.hash, 3, true));
    let again = node.intake.submit(Some(release), hints).await.unwrap();
    assert!(!again.new);
    assert_eq!(node.intake.submit(None, forged).await.unwrap_err().as_str(), "wrong_key");
}
