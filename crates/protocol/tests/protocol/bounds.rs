//! What is allowed just so, and what is one too many.

use crate::common::{bls_key, checked_envelopes, config, envelope, epoch, fields, signing_key, some_header};
use alloy_primitives::B256;
use blindfold_protocol::block::{Second, Seconds};
use blindfold_protocol::bte::{BLINDING_BYTES, Blinding};
use blindfold_protocol::config::MIN_BLOCK_GAS;
use blindfold_protocol::envelope_builder::EnvelopeFields;
use blindfold_protocol::fault::keeps_promise;
use blindfold_protocol::ledger::{Account, FeeLedger, LedgerEntry, LedgerProof, LedgerTree};
use blindfold_protocol::limits::{
    EXPIRY_WINDOW, MAX_BATCH_ITEMS, MAX_BUNDLE_ITEMS, MAX_ENVELOPE_BYTES, MAX_FORCED_ITEMS, MAX_MEMBERS,
    MAX_MESSAGE_BYTES, MAX_PRUNED_NONCES, MAX_SEALED_BATCH_BYTES, MAX_SECOND_BYTES, TARGET_SECOND_BYTES,
};
use blindfold_protocol::messages::{
    ACKNOWLEDGEMENT_BYTES, CERTIFICATE_BYTES, DATA_ATTESTATION_BYTES, G1_BYTES, PROMISE_BYTES,
};
use blindfold_protocol::validity::{Load, SealError, check_expiry, check_forced_expiry};
use blindfold_protocol::{
    Acknowledgement, AttestedData, BaseFees, BatchHeader, BatchHints, Bundle, BundleError, BundleItem,
    Canonical, Certificate, CertifiedBatch, ChainConfig, ChainConfigError, ChainState, DataAttestation,
    DecodeError, Envelope, EnvelopeError, Epoch, EpochError, Epochs, Head, HintEntry, Promise, Release,
    ReleaseShare, SealedBatch, SequencerChange, Signature65, SignedHeader, SingletonShare, Verdict, data,
};

/// As many items as a batch may have, with as many bytes as a second may have.
fn full_items() -> Vec<Vec<u8>> {
    let all = usize::try_from(MAX_SECOND_BYTES).unwrap();
    let (each, more) = (all / MAX_BATCH_ITEMS, all % MAX_BATCH_ITEMS);
    (0..MAX_BATCH_ITEMS).map(|place| vec![0x5a; each + usize::from(place < more)]).collect()
}

#[test]
fn a_full_batch_decodes_and_takes_as_many_bytes_as_the_limit_says() {
    let sealed = SealedBatch { header: some_header(), signature: Signature65([7; 65]), items: full_items() };
    let bytes = sealed.encode();
    assert_eq!(bytes.len(), MAX_SEALED_BATCH_BYTES);
    assert_eq!(bytes.capacity(), bytes.len(), "reserved at once");
    assert_eq!(SealedBatch::decode(&bytes).unwrap(), sealed);

    let codes = vec![0; MAX_BATCH_ITEMS];
    let posted = data::encode(&codes, &sealed.items);
    assert_eq!(posted.len(), data::MAX_DATA_BYTES);
    assert_eq!(posted.capacity(), posted.len(), "reserved at once");
    assert_eq!(data::decode(&posted).unwrap().len(), MAX_BATCH_ITEMS);

    // One byte more, with an item less: within the length of the whole, above that of a second.
    let mut items = full_items();
    let last = items.pop().unwrap();
    items[0].extend(last);
    items[0].push(0);
    let more = SealedBatch { items, ..sealed };
    let too_many = |fault| matches!(fault, DecodeError::TooLarge { field: "item bytes", got, .. } if got == MAX_SECOND_BYTES + 1);
    assert!(too_many(SealedBatch::decode(&more.encode()).unwrap_err()));
    assert!(too_many(data::decode(&data::encode(&codes[1..], &more.items)).unwrap_err()));
    assert_eq!(MAX_PRUNED_NONCES, MAX_BATCH_ITEMS + MAX_BATCH_ITEMS, "twice what a batch can add");
}

#[test]
fn the_largest_envelope_decodes() {
    let bundle = Bundle { items: vec![BundleItem::transaction(vec![1; MAX_MESSAGE_BYTES - 8])] };
    let largest = blindfold_protocol::envelope_builder::build(
        &crate::common::ENCRYPTION_KEY,
        &fields(),
        &bundle,
        &signing_key(1),
        &mut crate::common::rng(1),
    )
    .unwrap();
    let mut bytes = largest.encode();
    assert_eq!(bytes.len(), MAX_ENVELOPE_BYTES);
    assert_eq!(Envelope::decode(&bytes).unwrap(), largest);
    bytes.push(0);
    assert!(matches!(Envelope::decode(&bytes), Err(DecodeError::TooLarge { field: "envelope", .. })));
}

#[test]
fn a_bundle_has_as_many_items_as_it_may() {
    let bundle = |count| Bundle { items: vec![BundleItem::transaction(vec![]); count] };
    let most = bundle(MAX_BUNDLE_ITEMS);
    let mut message = most.encode_padded().unwrap();
    assert_eq!(Bundle::decode(&message).unwrap(), most);
    assert_eq!(
        bundle(MAX_BUNDLE_ITEMS + 1).encode_padded(),
        Err(BundleError::TooManyItems(MAX_BUNDLE_ITEMS + 1))
    );
    let count = u16::try_from(MAX_BUNDLE_ITEMS + 1).unwrap();
    message[1..3].copy_from_slice(&count.to_be_bytes());
    assert_eq!(Bundle::decode(&message), Err(BundleError::TooManyItems(MAX_BUNDLE_ITEMS + 1)));
    // What fits a bucket to the byte.
    let full = Bundle { items: vec![BundleItem::transaction(vec![1; 256 - 8])] };
    assert_eq!(full.encode_padded_to(256).unwrap().len(), 256);
}

#[test]
fn settings_at_their_limits() {
    let at = |change: fn(&mut ChainConfig)| {
        let mut config = config();
        change(&mut config);
        config.validate()
    };
    assert_eq!(at(|c| c.block_gas_limit = MIN_BLOCK_GAS), Ok(()));
    assert_eq!(
        at(|c| c.block_gas_limit = MIN_BLOCK_GAS - 1),
        Err(ChainConfigError::BlockGas(MIN_BLOCK_GAS - 1))
    );
    assert_eq!(at(|c| c.initial_base_fee = c.min_base_fee), Ok(()));
    assert_eq!(at(|c| c.initial_gas_base_fee = c.min_gas_base_fee), Ok(()));
}

#[test]
fn committees_at_their_limits() {
    let of = |members: u16, threshold: u16| Epoch {
        members: (1..=members).map(|member| bls_key(member).public_key()).collect(),
        threshold,
        ..epoch()
    };
    let most = u16::try_from(MAX_MEMBERS).unwrap();
    for (members, threshold) in [(1, 1), (2, 2), (5, 3), (5, 5), (most, most / 2 + 1), (most, most)] {
        assert_eq!(of(members, threshold).validate(), Ok(()), "{threshold} of {members}");
    }
    for (members, threshold) in [(4, 2), (5, 2), (5, 6), (most, most / 2)] {
        let fault = EpochError::Threshold { epoch: 3, threshold, members: members.into() };
        assert_eq!(of(members, threshold).validate(), Err(fault));
    }
    assert!(matches!(of(most + 1, most).validate(), Err(EpochError::Members { .. })));
    let changes = vec![SequencerChange { from_block: 0, sequencer: signing_key(1).address() }];
    let epochs = Epochs::default().with_sequencers(changes.clone(), 90).unwrap();
    assert_eq!(epochs.sequencers(), changes);
}

/// `Promises` of the contracts has the same list (P-4).
#[test]
fn what_keeps_a_promise() {
    let kept = |number: u64| (0..=u8::MAX).filter(|code| keeps_promise(*code, number, 9)).collect::<Vec<_>>();
    let duplicate = EnvelopeError::Duplicate.code();
    assert_eq!(kept(8), [0, duplicate]);
    // What its payer has spoilt stands where it was promised to stand, or it says nothing.
    let spoilt = [EnvelopeError::FeeNonceUsed, EnvelopeError::InsufficientFunds].map(EnvelopeError::code);
    assert_eq!(kept(9), [0, duplicate, spoilt[0], spoilt[1]]);
    assert_eq!(kept(10), [0u8; 0]);
}

#[test]
fn only_a_signature_of_zeros_claims_to_be_l1s() {
    let items = vec![envelope(&fields(), &signing_key(1), 1).encode(), vec![1, 2, 3]];
    let by_l1 = SealedBatch::by_l1(some_header(), items.clone());
    assert!(by_l1.claims_l1());
    assert_eq!(by_l1.item_slices(), items.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let mut signed = by_l1;
    signed.signature.0[64] = 1;
    assert!(!signed.claims_l1());
    let header: SignedHeader = signed.signed_header();
    let bytes = header.encode();
    assert_eq!(bytes.capacity(), bytes.len(), "reserved at once");
}

#[test]
fn a_second_with_deposits_alone_makes_a_block() {
    let header = |number, timestamp_ms| BatchHeader { number, timestamp_ms, ..some_header() };
    let mut seconds = Seconds::default();
    seconds.push(&header(1, 1_000), B256::ZERO, 0).unwrap();
    let closed: Second = seconds.push(&header(2, 2_000), B256::ZERO, 0).unwrap().unwrap();
    assert_eq!((closed.has_block(0), closed.has_block(1)), (false, true));
}

/// What is reserved at once is what is written: nothing is copied while it grows, and the named lengths are right.
#[test]
fn messages_are_as_long_as_their_lengths_say() {
    let exact = |bytes: Vec<u8>| {
        assert_eq!(bytes.capacity(), bytes.len(), "reserved at once");
        bytes.len()
    };
    let (header_hash, signature) = (B256::repeat_byte(1), [2; G1_BYTES]);
    let certificate = Certificate { epoch: 1, number: 2, header_hash, signers: 7, signature };
    assert_eq!(exact(certificate.encode()), CERTIFICATE_BYTES);
    let acknowledgement = Acknowledgement { epoch: 1, number: 2, header_hash, member: 3, signature };
    assert_eq!(exact(acknowledgement.encode()), ACKNOWLEDGEMENT_BYTES);
    let promise = Promise {
        envelope_id: header_hash,
        item_hash: header_hash,
        seal_by: 4,
        signature: Signature65([3; 65]),
    };
    assert_eq!(exact(promise.encode()), PROMISE_BYTES);
    let data = AttestedData { epoch: 1, first_number: 2, last_number: 3, kind: 0, data_hash: header_hash };
    assert_eq!(exact(DataAttestation { data, member: 1, signature }.encode()), DATA_ATTESTATION_BYTES);
    let sealed =
        SealedBatch { header: some_header(), signature: Signature65([7; 65]), items: vec![vec![1; 9]] };
    exact(CertifiedBatch { sealed, certificate }.encode());
    for count in [0, 1, 3] {
        let pds = vec![[5; G1_BYTES]; count];
        exact(Release { number: 1, header_hash, pds: pds.clone() }.encode());
        exact(ReleaseShare { number: 1, header_hash, member: 2, pds }.encode());
        let entries = vec![HintEntry::Key([6; 16]); count];
        exact(BatchHints { number: 1, header_hash, entries, blindings: vec![] }.encode());
    }
    exact(SingletonShare { number: 1, header_hash, index: 2, member: 3, share: signature }.encode());
    let most = BatchHints {
        number: 1,
        header_hash,
        entries: vec![HintEntry::Malformed(signature); MAX_BATCH_ITEMS],
        blindings: vec![Blinding::from_bytes([8; BLINDING_BYTES]); MAX_BATCH_ITEMS],
    };
    assert_eq!(most.encode().len(), BatchHints::MAX_BYTES);
    assert_eq!(BatchHints::decode(&most.encode()), Ok(most));
}

#[test]
fn hints_say_the_same_of_the_same_header_whatever_is_stated_beside_them() {
    let header_hash = B256::repeat_byte(1);
    let entries = vec![HintEntry::Key([6; 16]), HintEntry::Malformed([5; G1_BYTES])];
    let hints = BatchHints { number: 1, header_hash, entries, blindings: vec![] };
    let stated = vec![Blinding::from_bytes([8; BLINDING_BYTES])];
    assert!(hints.says_the_same(&BatchHints { blindings: stated, ..hints.clone() }));
    assert!(!hints.says_the_same(&BatchHints { number: 2, ..hints.clone() }));
    assert!(!hints.says_the_same(&BatchHints { header_hash: B256::repeat_byte(2), ..hints.clone() }));
    assert!(!hints.says_the_same(&BatchHints { entries: hints.entries[..1].to_vec(), ..hints.clone() }));
}

#[test]
fn at_their_targets_the_base_fees_stand_still() {
    let config = config();
    let fees = BaseFees { base_fee: 1_000_000, gas_base_fee: 1_000_000 };
    let target = Load { bytes: TARGET_SECOND_BYTES, gas: config.second_gas_limit() / 2 };
    assert_eq!(fees.after(target, 1, &config), fees);
    let full = Load { bytes: MAX_SECOND_BYTES, gas: config.second_gas_limit() };
    let raised = BaseFees { base_fee: 1_125_000, gas_base_fee: 1_125_000 };
    assert_eq!(fees.after(full, 1, &config), raised);
}

#[test]
fn an_envelope_may_expire_with_the_batch_that_holds_it() {
    let epoch = epoch();
    for check in [check_expiry, check_forced_expiry] {
        assert_eq!(check(7, 7, &epoch), Ok(()));
        assert_eq!(check(6, 7, &epoch), Err(EnvelopeError::Expired));
        assert_eq!(check(epoch.last, epoch.last, &epoch), Ok(()));
        assert_eq!(check(epoch.last + 1, epoch.last, &epoch), Err(EnvelopeError::ExpiryTooFar));
    }
}

#[test]
fn what_is_skipped_makes_no_block() {
    let made = [Verdict::Accepted { position: 0 }, Verdict::ForcedTransaction];
    assert!(made.iter().all(Verdict::makes_block));
    assert!(!Verdict::Skipped(EnvelopeError::Duplicate).makes_block());
}

#[test]
fn a_path_is_as_long_as_a_key() {
    let (payer, account) = (signing_key(1).address(), Account { balance: 1, withdrawn: 0 });
    let root = |length| LedgerProof { siblings: vec![B256::ZERO; length] }.root_with(&payer, &account);
    assert!(root(256).is_some());
    assert_eq!(root(257), None);
}

#[test]
fn the_tree_gives_back_what_an_account_has() {
    let payer = signing_key(1).address();
    let account =
        Account { balance: 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10, withdrawn: 0x1112_1314_0000_0001 };
    let entry = LedgerEntry::Account { payer, account: Some(account) };
    let (found, proof) = LedgerTree::default().with([entry]).prove(&payer).unwrap();
    assert_eq!(found, account);
    assert!(proof.siblings.is_empty());

    let ledger = FeeLedger::default();
    let mut changes = ledger.changes();
    changes.credit(payer, 5).unwrap();
    assert_eq!((changes.balance(&payer), changes.account(&payer).balance), (5, 5));
}

#[test]
fn l1_makes_a_header_of_the_largest_items_and_of_no_more_than_it_may() {
    let state = ChainState::genesis(config());
    let made = |items: &[Vec<u8>]| state.l1_header(state.head().timestamp_ms + 1, items, &epoch());
    let largest = vec![0; MAX_ENVELOPE_BYTES];
    let header = made(&vec![largest.clone(); MAX_FORCED_ITEMS]).unwrap();
    let (count, bytes) = (MAX_FORCED_ITEMS, MAX_FORCED_ITEMS * MAX_ENVELOPE_BYTES);
    assert_eq!((header.envelope_count as usize, header.envelope_bytes as usize), (count, bytes));
    let longer = vec![0; MAX_ENVELOPE_BYTES + 1];
    assert!(matches!(made(&[largest, longer]), Err(SealError::ItemTooLong { index: 1, .. })));
    let more = vec![vec![1]; MAX_FORCED_ITEMS + 1];
    assert!(matches!(made(&more), Err(SealError::ForcedCap(_))));
}

/// What the mempool takes and what a header takes expires by the same rule.
#[test]
fn an_envelope_is_admissible_from_one_end_of_its_window_to_the_other() {
    let payer = signing_key(1);
    let accounts = [(payer.address(), Account { balance: u128::MAX >> 1, withdrawn: 0 })];
    let ledger = FeeLedger::from_parts(accounts, [], []);
    let head = Head { number: 6, ..Head::genesis(&config()) };
    let state = ChainState::from_parts(config(), head, ledger);
    let admissible = |expiry| {
        let item = envelope(&EnvelopeFields { expiry, ..fields() }, &payer, 1);
        state.admissible(&checked_envelopes(&[item]).remove(0).unwrap(), 1)
    };
    assert_eq!(admissible(6), Err(EnvelopeError::Expired));
    assert_eq!(admissible(7), Ok(()));
    assert_eq!(admissible(7 + EXPIRY_WINDOW), Ok(()));
    assert_eq!(admissible(8 + EXPIRY_WINDOW), Err(EnvelopeError::ExpiryTooFar));
}
