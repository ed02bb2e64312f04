//! Reports against the sequencer and answers for it.

use blindfold_bte::dealer;
use blindfold_l1::{
    ACCUSATION_STAKE_WEI, GivenPromise, ItemLeaf, OmissionAnswer, OpenAccusation, SequencerEvent,
    equivocation_evidence, omission_evidence,
};
use blindfold_protocol::{
    B256, Bundle, Canonical, Promise, U256,
    envelope_builder::{EnvelopeFields, build},
};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

use crate::stage::{CHAIN_ID, SEQUENCER, Stage, TIMING, USER, key, reverted};

const SALT: B256 = B256::repeat_byte(0x5a);

#[tokio::test]
async fn equivocation_costs_the_bond() {
    let stage = Stage::new().await;
    let reporter = stage.writer(USER).await;
    let client = reporter.client();
    let sequencer = key(SEQUENCER).address();
    reporter.deposit_bond(sequencer, 1_001).await.unwrap();
    assert_eq!(client.sequencer().await.unwrap(), sequencer);
    assert_eq!(client.bond(sequencer).await.unwrap().amount, U256::from(1_001));

    let one = stage.batches(None, &[10])[0].sealed.signed_header();
    let two = stage.batches(None, &[11])[0].sealed.signed_header();
    reverted(reporter.slash_equivocation(&one, &one, SALT).await, "SameHeader");
    let mut forged = two;
    forged.signature = two.header.sign(&key(USER), &stage.deployment()).signature;
    reverted(reporter.slash_equivocation(&one, &forged, SALT).await, "BadSequencerSignature { which: 2 }");
    reverted(reporter.slash_equivocation(&one, &two, SALT).await, "NotCommitted");
    reverted(reporter.claim_reward().await, "ZeroAmount");

    assert_eq!(equivocation_evidence(&one, &two), equivocation_evidence(&two, &one));
    reporter.commit(equivocation_evidence(&one, &two), SALT).await.unwrap();
    stage.anvil.mine(1).await.unwrap();
    let evidence = equivocation_evidence(&one, &two);
    let shown = async |block| client.shown_together(sequencer, evidence, block).await.unwrap();
    let before = client.newest_block().await.unwrap();
    assert!(!shown(None).await);
    // Somebody who copies the report has no commitment.
    let copier = stage.writer(SEQUENCER).await;
    reverted(copier.slash_equivocation(&one, &two, SALT).await, "NotCommitted");
    let sent = reporter.slash_equivocation(&two, &one, SALT).await.unwrap();
    let bond = client.bond(sequencer).await.unwrap();
    assert_eq!((bond.amount, bond.withdrawal, bond.unlocks_at), (U256::ZERO, 0, 0));
    assert_eq!(client.reward(reporter.address()).await.unwrap(), U256::from(500));
    assert!(shown(None).await && shown(Some(sent.block)).await && !shown(Some(before)).await);
    let of_another = client.shown_together(reporter.address(), evidence, None);
    assert!(!of_another.await.unwrap(), "as this signer's");
    reporter.claim_reward().await.unwrap();
    assert_eq!(client.reward(reporter.address()).await.unwrap(), U256::ZERO);
    reporter.deposit_bond(sequencer, 1).await.unwrap();
    reverted(reporter.slash_equivocation(&two, &one, SALT).await, "AlreadySlashed { number: 1 }");

    let through = stage.finalize().await;
    let events = client.sequencer_events(0, through).await.unwrap();
    let expected = SequencerEvent::Equivocation {
        sequencer,
        number: 1,
        reporter: reporter.address(),
        first: two.header.hash(),
        second: one.header.hash(),
        l1_block: sent.block,
    };
    assert_eq!(events, [expected]);
}

#[tokio::test]
async fn a_promise_is_accused_and_answered_or_costs_the_bond() {
    let stage = Stage::new().await;
    let epochs = stage.register(1_000).await;
    let mut rng = ChaCha20Rng::seed_from_u64(9);
    let encryption_key = dealer::deal(2, 1, 1, &mut rng).unwrap().0.encryption_key();
    let fields = EnvelopeFields {
        chain_id: CHAIN_ID + 1,
        deployment: stage.deployment(),
        epoch: 1,
        fee_nonce: 1,
        max_fee: 1,
        priority_fee: 0,
        max_gas_fee: 1_000,
        gas_limit: 21_000,
        expiry: 100,
        generation: 0,
    };
    let item = build(&encryption_key, &fields, &Bundle::default(), &key(USER), &mut rng).unwrap().encode();
    let ItemLeaf { id, item_hash, .. } = ItemLeaf::new(&item, 15);
    let batch = stage.coded(None, vec![vec![1, 2, 3], item], &[1, 15], |_| {});
    let run = stage.post(&epochs, std::slice::from_ref(&batch)).await;

    let accuser = stage.writer(USER).await;
    let client = accuser.client();
    accuser.deposit_bond(key(SEQUENCER).address(), 1_000).await.unwrap();
    let promise = |id: B256| Promise::sign(&key(SEQUENCER), &stage.deployment(), id, item_hash, 1);
    let accuse = async |id: B256| {
        accuser.commit(omission_evidence(id, item_hash, 1), SALT).await.unwrap();
        stage.anvil.mine(1).await.unwrap();
        accuser.accuse_omission(&promise(id), SALT).await.unwrap().block
    };
    let open = async || client.open_accusations(0).await.unwrap();
    let given = |id: B256| GivenPromise::new(&promise(id), key(SEQUENCER).address());
    let waits = |envelope_id, block| OpenAccusation {
        promise: given(envelope_id),
        answer_until: block + u64::from(TIMING.answer_window),
    };
    assert_eq!(open().await, []);
    let kept = accuse(id).await;
    assert_eq!(open().await, [waits(id, kept)]);
    let answer = OmissionAnswer::new(run, &batch, &[1, 15], given(id)).unwrap();
    let answerer = stage.writer(SEQUENCER).await;
    answerer.answer_omission(&answer).await.unwrap();
    reverted(answerer.answer_omission(&answer).await, "NoOpenAccusation");
    assert_eq!(open().await, []);
    assert_eq!(client.reward(answerer.address()).await.unwrap(), U256::from(ACCUSATION_STAKE_WEI));

    let lost = B256::repeat_byte(0x77);
    let broken = accuse(lost).await;
    reverted(accuser.slash_omission(&given(lost)).await, "AnswerWindowOpen");
    // Nobody slashes at once: it is open as long.
    stage.anvil.mine(3 * u64::from(TIMING.answer_window)).await.unwrap();
    assert_eq!(open().await, [waits(lost, broken)]);
    accuser.slash_omission(&given(lost)).await.unwrap();
    assert_eq!(open().await, []);
    let reward = client.reward(accuser.address()).await.unwrap();
    assert_eq!(reward, U256::from(ACCUSATION_STAKE_WEI + 500));

    let through = stage.finalize().await;
    let accused = |envelope_id, block| SequencerEvent::Accused {
        promise: given(envelope_id),
        accuser: accuser.address(),
        answer_until: block + u64::from(TIMING.answer_window),
    };
    let expected = [
        accused(id, kept),
        SequencerEvent::Answered { promise_id: given(id).id(), answerer: answerer.address(), number: 1 },
        accused(lost, broken),
        SequencerEvent::Omission { promise_id: given(lost).id(), accuser: accuser.address() },
    ];
    assert_eq!(client.sequencer_events(0, through).await.unwrap(), expected);
}
