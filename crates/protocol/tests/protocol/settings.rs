//! Chain settings and epochs.

use crate::common::{CHAIN_ID, config, epoch};
use alloy_primitives::Address;
use blindfold_protocol::{
    ChainConfig, ChainConfigError, Epoch, EpochError, Epochs, FIRST_RULES, RulesChange, SequencerChange,
};

#[test]
fn settings_round_trip() {
    let config = config();
    assert_eq!(config.validate(), Ok(()));
    let text = serde_json::to_string_pretty(&config).unwrap();
    assert!(text.contains("\"initialBaseFee\": \"0x3e8\""), "{text}");
    assert!(text.contains("\"blockGasLimit\": 200000000"), "{text}");
    assert!(text.contains("\"forcedQueue\"") && text.contains("\"postingDeadline\": 14400"), "{text}");
    assert_eq!(serde_json::from_str::<ChainConfig>(&text).unwrap(), config);
    let unknown = text.replacen('{', "{\"surprise\": 1,", 1);
    assert!(serde_json::from_str::<ChainConfig>(&unknown).is_err());
    let large = text.replace("\"0x3e8\"", "\"0xffffffffffffffffffffffffffffffff\"");
    assert_eq!(serde_json::from_str::<ChainConfig>(&large).unwrap().initial_base_fee, u128::MAX);
    for bad in ["3e8", "0x", "0x03e8", "0x+3e8", "0xg", "0x100000000000000000000000000000000"] {
        let text = text.replace("\"0x3e8\"", &format!("\"{bad}\""));
        assert!(serde_json::from_str::<ChainConfig>(&text).is_err(), "{bad}");
    }
}

/// Rule L-15.
#[test]
fn every_bad_setting() {
    let with = |change: fn(&mut ChainConfig)| {
        let mut config = config();
        change(&mut config);
        config.validate()
    };
    assert_eq!(with(|c| c.chain_id = 0), Err(ChainConfigError::ZeroChainId("chainId")));
    assert_eq!(with(|c| c.deployment.l1_chain_id = 0), Err(ChainConfigError::ZeroChainId("l1ChainId")));
    assert_eq!(with(|c| c.deployment.l1_chain_id = CHAIN_ID), Err(ChainConfigError::SameChainId(CHAIN_ID)));
    assert_eq!(with(|c| c.deployment.inbox = Address::ZERO), Err(ChainConfigError::ZeroAddress("inbox")));
    assert_eq!(with(|c| c.registry = Address::ZERO), Err(ChainConfigError::ZeroAddress("registry")));
    assert_eq!(with(|c| c.fee_vault = Address::ZERO), Err(ChainConfigError::ZeroAddress("feeVault")));
    assert_eq!(with(|c| c.sequencer = Address::ZERO), Err(ChainConfigError::ZeroAddress("sequencer")));
    assert_eq!(with(|c| c.fee_recipient = Address::ZERO), Err(ChainConfigError::ZeroAddress("feeRecipient")));
    assert_eq!(with(|c| c.forced_queue = Address::ZERO), Err(ChainConfigError::ZeroAddress("forcedQueue")));
    assert_eq!(with(|c| c.hint_registry = Address::ZERO), Err(ChainConfigError::ZeroAddress("hintRegistry")));
    assert_eq!(with(|c| c.hint_verifier = Address::ZERO), Err(ChainConfigError::ZeroAddress("hintVerifier")));
    assert_eq!(
        with(|c| c.deposit_portal = Address::ZERO),
        Err(ChainConfigError::ZeroAddress("depositPortal"))
    );
    assert_eq!(
        with(|c| c.output_registry = Address::ZERO),
        Err(ChainConfigError::ZeroAddress("outputRegistry"))
    );
    assert_eq!(
        with(|c| c.timing.posting_deadline = 0),
        Err(ChainConfigError::ZeroTiming("timing.postingDeadline"))
    );
    assert_eq!(with(|c| c.timing.forced_delay = 0), Err(ChainConfigError::ZeroTiming("timing.forcedDelay")));
    assert_eq!(
        with(|c| c.timing.answer_window = 0),
        Err(ChainConfigError::ZeroTiming("timing.answerWindow"))
    );
    assert_eq!(
        with(|c| c.timing.hint_deadline = 0),
        Err(ChainConfigError::ZeroTiming("timing.hintDeadline"))
    );
    assert_eq!(
        with(|c| c.timing.challenge_window = 0),
        Err(ChainConfigError::ZeroTiming("timing.challengeWindow"))
    );
    assert_eq!(
        with(|c| c.timing.withdrawal_delay = 0),
        Err(ChainConfigError::ZeroTiming("timing.withdrawalDelay"))
    );
    assert_eq!(
        with(|c| c.timing.forced_delay = c.timing.posting_deadline),
        Err(ChainConfigError::ForcedDelay)
    );
    let sum = |c: &mut ChainConfig| c.timing.withdrawal_delay = 14_400 + 7_200;
    assert_eq!(with(sum), Err(ChainConfigError::WithdrawalDelay));
    assert_eq!(with(|c| c.block_gas_limit = 169_000_000), Ok(()));
    assert_eq!(with(|c| c.block_gas_limit = 168_999_999), Err(ChainConfigError::BlockGas(168_999_999)));
    assert_eq!(with(|c| c.min_base_fee = 0), Err(ChainConfigError::ZeroMinBaseFee));
    assert_eq!(with(|c| c.initial_base_fee = 9), Err(ChainConfigError::BaseFee));
    assert_eq!(with(|c| c.min_gas_base_fee = 0), Err(ChainConfigError::ZeroMinGasBaseFee));
    assert_eq!(with(|c| c.min_gas_base_fee = 4), Err(ChainConfigError::GasBaseFee));
    assert_eq!(with(|c| c.base_fee_recipient = Address::ZERO), Ok(()), "burnt");
    assert_eq!(
        with(|c| c.timing.max_origin_age_seconds = 0),
        Err(ChainConfigError::ZeroTiming("timing.maxOriginAgeSeconds"))
    );
    // How old final blocks are is L1's affair: on a development network seconds.
    assert_eq!(with(|c| c.timing.max_origin_age_seconds = 1), Ok(()));
}

/// Rule L-1.
#[test]
fn epochs_are_contiguous() {
    let one = Epoch { epoch: 0, first: 1, last: 10, ..epoch() };
    let two = Epoch { epoch: 1, first: 11, last: 20, ..epoch() };
    let epochs = Epochs::new(vec![one.clone(), two.clone()]).unwrap();
    let at = |number| epochs.at(number).map(|epoch| epoch.epoch);
    assert_eq!(
        [at(0), at(1), at(10), at(11), at(20), at(21)],
        [None, Some(0), Some(0), Some(1), Some(1), None]
    );
    assert_eq!(epochs.by_epoch(1), Some(&two));
    assert_eq!(epochs.by_epoch(2), None);
    assert_eq!(epochs.as_slice().len(), 2);
    assert_eq!(Epochs::default().at(1), None);
    assert_eq!(one.member(0), None);
    assert_eq!(one.member(1), Some(&one.members[0]));
    assert_eq!(one.member(5), None);

    let new = |epochs: &[&Epoch]| Epochs::new(epochs.iter().map(|epoch| (*epoch).clone()).collect());
    assert_eq!(new(&[&one, &Epoch { first: 12, ..two.clone() }]), Err(EpochError::Gap(1)));
    assert_eq!(new(&[&one, &Epoch { epoch: 2, ..two.clone() }]), Err(EpochError::Gap(2)));
    assert_eq!(new(&[&two, &one]), Err(EpochError::Gap(0)));
    assert_eq!(
        new(&[&Epoch { first: 0, ..one.clone() }]),
        Err(EpochError::Range { epoch: 0, first: 0, last: 10 })
    );
    assert_eq!(
        new(&[&Epoch { first: 12, ..one.clone() }]),
        Err(EpochError::Range { epoch: 0, first: 12, last: 10 })
    );
    let continues = Epoch { continues: 1, ..two.clone() };
    assert_eq!(continues.validate(), Err(EpochError::Continues { epoch: 1, continues: 1 }));
    let none = Epoch { members: Vec::new(), ..one.clone() };
    assert_eq!(none.validate(), Err(EpochError::Members { epoch: 0, members: 0 }));
    let many = Epoch { members: vec![one.members[0]; 65], ..one.clone() };
    assert_eq!(many.validate(), Err(EpochError::Members { epoch: 0, members: 65 }));
    for threshold in [0, 2, 5] {
        let bad = Epoch { threshold, ..one.clone() };
        assert_eq!(bad.validate(), Err(EpochError::Threshold { epoch: 0, threshold, members: 4 }));
    }
    assert_eq!(Epoch { max_batch: 0, ..one }.validate(), Err(EpochError::MaxBatch(0)));
}

#[test]
fn an_epoch_that_ended_before_it_began_has_no_number() {
    let one = Epoch { epoch: 1, first: 1, last: 10, ..epoch() };
    let two = Epoch { epoch: 2, first: 11, last: 10, ..epoch() };
    let three = Epoch { epoch: 3, first: 11, last: 20, ..epoch() };
    let epochs = Epochs::new(vec![one, two, three]).unwrap();
    let at = |number| epochs.at(number).map(|epoch| epoch.epoch);
    assert_eq!([at(10), at(11), at(20), at(21)], [Some(1), Some(3), Some(3), None]);
    let never = Epoch { epoch: 1, first: 1, last: 0, ..epoch() };
    assert_eq!(Epochs::new(vec![never]).unwrap().at(1), None);
}

/// Rule L-2.
#[test]
fn rule_sets_begin_at_their_numbers() {
    let change = |first, rules| RulesChange { first, rules };
    let epochs = Epochs::default().with_rules(vec![change(5, 2), change(9, 4)]).unwrap();
    assert_eq!([1, 4, 5, 8, 9, u64::MAX].map(|number| epochs.rules_at(number)), [1, 1, 2, 2, 4, 4]);
    assert_eq!(Epochs::default().rules_at(7), FIRST_RULES);
    for changes in [vec![change(5, 1)], vec![change(5, 2), change(5, 3)], vec![change(5, 2), change(6, 2)]] {
        assert!(matches!(Epochs::default().with_rules(changes), Err(EpochError::Rules { .. })));
    }
}

#[test]
fn a_sequencers_key_counts_from_an_l1_block_on() {
    let key = |byte| Address::repeat_byte(byte);
    let change = |from_block, byte| SequencerChange { from_block, sequencer: key(byte) };
    let named = |changes| Epochs::default().with_sequencers(changes, 90);
    let epochs = named(vec![change(0, 1), change(50, 2), change(80, 1)]).unwrap();
    let at = |origin| epochs.sequencer_at(origin).unwrap();
    assert_eq!([0, 49, 50, 79, 80, u64::MAX].map(at), [1, 1, 2, 2, 1, 1].map(key));
    let until = |origin| epochs.sequencer_until(origin);
    assert_eq!([0, 49, 50, 79, 80].map(until), [49, 49, 79, 79, u64::MAX]);
    let since = |origin| epochs.sequencer_since(origin);
    assert_eq!([0, 49, 50, 79, 80].map(since), [0, 0, 50, 50, 80]);
    // Of a key that was named twice the newest stretch.
    assert_eq!(epochs.sequencer_term(key(1)), Some(80..=u64::MAX));
    assert_eq!(epochs.sequencer_term(key(2)), Some(50..=79));
    assert_eq!(epochs.sequencer_term(key(3)), None);
    assert_eq!(epochs.read_at(), 90);
    assert_eq!(Epochs::default().sequencer_at(7), None);
    for (changes, wrong) in [
        (vec![], 0),
        (vec![change(1, 1)], 1),
        (vec![change(0, 1), change(0, 2)], 0),
        (vec![change(0, 1), change(9, 1)], 9),
        (vec![change(0, 1), change(9, 2), change(8, 1)], 8),
    ] {
        assert_eq!(named(changes), Err(EpochError::Sequencers { from_block: wrong }));
    }
}
