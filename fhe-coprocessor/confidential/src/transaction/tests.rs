use std::sync::Arc;

use alloy_primitives::{Address, hex};
use blindfold_protocol::{DecodeError, Signature65, SigningKey};
use blindfold_rlwe::ring;
use blindfold_rlwe::rlwe::{Parameters, PublicPolynomial, SecretKey};
use blindfold_rlwe::schemes::balance;
use proptest::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::ConfidentialTransaction as T;
use super::*;
use crate::statement::Domain;

/// One of each kind.
fn transactions(parameters: &Arc<Parameters>) -> [T; 6] {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let public = PublicPolynomial::insecure(parameters, &[1; 32]);
    let keys = [2, 3, 4].map(|seed| SecretKey::derive(&public, &[seed; 32]).public_key());
    let [a, b, c] = &keys;
    let (amount, _) = balance::encrypt(&public, &[a, b, c], 77, &mut rng).unwrap();
    let (own, _) = balance::encrypt(&public, &[a], 78, &mut rng).unwrap();
    let (proof, signature) = (EncodedProof([9; PROOF_BYTES]), Signature65([8; 65]));
    let [one, two] = [1, 2].map(Address::repeat_byte);
    [
        T::Register(Box::new(Register {
            owner: one,
            key: a.clone(),
            secret_commitment: -Fr::from(1u64),
            proof: proof.clone(),
            signature,
        })),
        T::Deposit(Deposit { from: one, account: two, amount: 5, nonce: 6, signature }),
        T::Transfer(Box::new(Transfer {
            sender: one,
            receiver: two,
            nonce: 1 << 40,
            fee: 3,
            amount,
            proof: proof.clone(),
        })),
        T::Rollover(Rollover { account: two, nonce: 9, signature }),
        T::Refresh(Box::new(Refresh { account: one, nonce: 2, balance: own, proof: proof.clone() })),
        T::Withdraw(Box::new(Withdraw { account: one, nonce: 2, amount: 3, recipient: two, proof })),
    ]
}

#[test]
fn each_kind_has_one_encoding() {
    for (parameters, lengths) in [
        (Parameters::balance().unwrap(), [14_231, 123, 14_332, 95, 14_196, 346]),
        (Parameters::toy().unwrap(), [839, 123, 940, 95, 804, 346]),
    ] {
        for ((transaction, length), kind) in transactions(&parameters).iter().zip(lengths).zip(1..) {
            let bytes = transaction.encode();
            assert_eq!((bytes.len(), &bytes[..2]), (length, &[1, kind][..]), "{}", transaction.kind_name());
            assert_eq!(T::decode(&parameters, &bytes).as_ref(), Ok(transaction));
            assert_eq!(transaction.id(), keccak256(&bytes));
            for cut in 0..bytes.len().min(900) {
                assert!(matches!(
                    T::decode(&parameters, &bytes[..cut]),
                    Err(InvalidTransaction::Structure(DecodeError::Short { .. }))
                ));
            }
            let longer = [bytes.as_slice(), &[0]].concat();
            assert_eq!(
                T::decode(&parameters, &longer),
                Err(InvalidTransaction::Structure(DecodeError::Trailing(1)))
            );
        }
    }
}

#[test]
fn a_transfer_fits_its_bucket() {
    let parameters = Parameters::balance().unwrap();
    for transaction in transactions(&parameters) {
        let item = blindfold_protocol::BundleItem::confidential(transaction.encode());
        let bundle = blindfold_protocol::Bundle { items: vec![item] };
        assert!(bundle.unpadded_len() <= 14_500, "{}", transaction.kind_name());
        assert!(bundle.encode_padded().unwrap().len() <= 16_384);
    }
}

#[test]
fn each_fault_is_named() {
    let parameters = Parameters::toy().unwrap();
    let [register, _, transfer, ..] = transactions(&parameters).map(|transaction| transaction.encode());
    let decode = |bytes: &[u8]| T::decode(&parameters, bytes).unwrap_err();
    let changed = |bytes: &[u8], place: usize, new: &[u8]| {
        let mut bytes = bytes.to_vec();
        bytes[place..place + new.len()].copy_from_slice(new);
        bytes
    };
    assert_eq!(decode(&changed(&transfer, 0, &[2])), InvalidTransaction::Structure(DecodeError::Version(2)));
    for value in [0, 7, 255] {
        let unknown = DecodeError::UnknownTag { field: "kind", value };
        assert_eq!(decode(&changed(&transfer, 1, &[value])), InvalidTransaction::Structure(unknown));
    }
    let raised = changed(&transfer, 58, &[0xff; 7]);
    let fault = ring::DecodeError::Coefficient { index: 0 };
    assert_eq!(decode(&raised), InvalidTransaction::Element { field: "amount", fault });
    let raised = changed(&register, 22, &[0xff; 7]);
    assert_eq!(decode(&raised), InvalidTransaction::Element { field: "key", fault });
    // r itself: one more than the commitment that stands there.
    let order = hex!("73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001");
    let place = register.len() - 65 - PROOF_BYTES - 32;
    assert_eq!(register[place..place + 31], order[..31]);
    assert_eq!(decode(&changed(&register, place, &order)), InvalidTransaction::SecretCommitment);
    assert_eq!(decode(&changed(&register, place, &[0xff; 32])), InvalidTransaction::SecretCommitment);
}

#[test]
fn signatures_are_for_one_deployment_and_everything_signed() {
    let parameters = Parameters::toy().unwrap();
    let key = SigningKey::from_bytes(&[5; 32]).unwrap();
    let domain = Domain { l1_chain_id: 1, chain_id: 2, contract: Address::repeat_byte(3) };
    let others = [
        Domain { l1_chain_id: 9, ..domain },
        Domain { chain_id: 9, ..domain },
        Domain { contract: Address::repeat_byte(9), ..domain },
    ];
    for mut transaction in transactions(&parameters) {
        match &mut transaction {
            T::Register(register) => register.owner = key.address(),
            T::Deposit(deposit) => deposit.from = key.address(),
            T::Rollover(rollover) => rollover.account = key.address(),
            T::Transfer(_) | T::Refresh(_) | T::Withdraw(_) => {
                assert!(transaction.signing(&domain).is_none() && transaction.is_signed(&domain));
                continue;
            }
        }
        assert!(!transaction.is_signed(&domain));
        transaction.sign(&domain, &key);
        assert!(transaction.is_signed(&domain));
        assert!(others.iter().all(|other| !transaction.is_signed(other)));
        match &mut transaction {
            T::Register(register) => register.secret_commitment = Fr::from(1u64),
            T::Deposit(deposit) => deposit.amount += 1,
            T::Rollover(rollover) => rollover.nonce += 1,
            _ => {}
        }
        assert!(!transaction.is_signed(&domain));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256, failure_persistence: None, rng_seed: prop::test_runner::RngSeed::Fixed(13), ..Default::default()
    })]

    #[test]
    fn what_decodes_encodes_to_the_same_bytes(mut bytes in prop::collection::vec(any::<u8>(), 0..1000), kind in 0u8..8) {
        let parameters = Parameters::toy().unwrap();
        if let [version, tag, ..] = bytes.as_mut_slice() {
            (*version, *tag) = (VERSION, kind);
        }
        if let Ok(transaction) = T::decode(&parameters, &bytes) {
            prop_assert_eq!(transaction.encode(), bytes);
        }
    }

    #[test]
    fn altered_transactions_are_others_or_none(which in 0usize..6, place in any::<usize>(), bit in 0u32..8) {
        let parameters = Parameters::toy().unwrap();
        let original = &transactions(&parameters)[which];
        let mut bytes = original.encode();
        let place = place % bytes.len();
        bytes[place] ^= 1 << bit;
        if let Ok(transaction) = T::decode(&parameters, &bytes) {
            prop_assert_ne!(&transaction, original);
            prop_assert_eq!(transaction.encode(), bytes);
        }
    }
}
