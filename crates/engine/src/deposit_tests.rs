#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use alloy_primitives::{b256, hex, keccak256};
use alloy_rlp::{Decodable, Header, PayloadView};

use super::*;
use crate::L1Origin;

fn inputs(sequence_number: u64) -> BlockInputs {
    BlockInputs {
        timestamp: 1_000,
        prev_randao: B256::repeat_byte(1),
        fee_recipient: Address::repeat_byte(2),
        gas_limit: 200_000_000,
        l1_origin: L1Origin {
            number: 7,
            hash: B256::repeat_byte(0x22),
            timestamp: 990,
            base_fee: 1 << 70,
            blob_base_fee: 3,
            parent_beacon_block_root: B256::repeat_byte(4),
        },
        sequence_number,
        l1_deposits: Vec::new(),
    }
}

#[test]
fn has_the_fields_of_the_op_stack() {
    let raw = attributes_deposit(&inputs(5));
    assert_eq!(raw[0], 0x7e);
    let mut body = &raw[1..];
    let PayloadView::List(fields) = Header::decode_raw(&mut body).unwrap() else { panic!("no list") };
    assert!(body.is_empty());
    let field = |index: usize| {
        let mut field = fields[index];
        Header::decode_bytes(&mut field, false).unwrap().to_vec()
    };
    assert_eq!(fields.len(), 8);
    assert_eq!(field(0), L1InfoDepositSource::new(B256::repeat_byte(0x22), 5).source_hash().to_vec());
    assert_eq!(field(1), ATTRIBUTES_DEPOSITOR.to_vec());
    assert_eq!(field(2), L1_BLOCK_PREDEPLOY.to_vec());
    for zero in [3, 4, 6] {
        assert_eq!(field(zero), Vec::<u8>::new());
    }
    assert_eq!(u64::decode(&mut &fields[5][..]).unwrap(), ATTRIBUTES_DEPOSIT_GAS);
    let data = field(7);
    assert_eq!(data.len(), CALL_DATA_BYTES);
    assert_eq!(&data[..4], &SELECTOR);
    assert_eq!(&data[12..20], &5u64.to_be_bytes());
    assert_eq!(&data[20..28], &990u64.to_be_bytes());
    assert_eq!(&data[28..36], &7u64.to_be_bytes());
    assert_eq!(&data[52..68], &(1u128 << 70).to_be_bytes());
    assert_eq!(&data[84..100], &3u128.to_be_bytes());
    assert_eq!(&data[100..132], B256::repeat_byte(0x22).as_slice());
    assert!(data[132..].iter().all(|&byte| byte == 0), "batcher hash and scalars are zero");
}

#[test]
fn no_two_blocks_share_one() {
    assert_ne!(attributes_deposit(&inputs(0)), attributes_deposit(&inputs(1)));
    assert_eq!(attributes_deposit(&inputs(1)), attributes_deposit(&inputs(1)));
}

// Published vectors: of viem (computeSourceHash) and of Optimism's contracts (Hashing).
#[test]
fn source_hashes_are_those_of_the_op_stack() {
    let block = b256!("9ba3933dc6ce43c145349770a39c30f9b647f17668f004bd2e05c80a2e7262f7");
    let user = b256!("d0868c8764d81f1749edb7dec4a550966963540d9fe50aefce8cdb38ea7b2213");
    assert_eq!(UserDepositSource::new(block, 196).source_hash(), user);
    let attributes = b256!("722c43232e2f9dc07ebc07a02a3056993a2ed1328a1c81377ea99d135af39536");
    assert_eq!(L1InfoDepositSource::new(block, 1).source_hash(), attributes);
    let block = b256!("d25df7858efc1778118fb133ac561b138845361626dfb976699c5287ed0f4959");
    let user = b256!("f923fb07134d7d287cb52c770cc619e17e82606c21a875c92f4c63b65280a5cc");
    assert_eq!(UserDepositSource::new(block, 1).source_hash(), user);
}

/// A published vector of viem (getL2TransactionHash): a deposit on L1 and the hash of its transaction on L2.
const OPAQUE: [u8; OPAQUE_HEAD_BYTES] = hex!(
    "00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "000000000000000000000000000045000000000000520800"
);

fn published() -> BridgeDeposit<'static> {
    let account = address!("1a1e021a302c237453d3d45c7b82b19ceeb7e2e6");
    BridgeDeposit {
        l1_block_hash: b256!("634c52556471c589f42db9131467e0c9484f5c73049e32d1a74e2a4ce0f91d57"),
        log_index: 109,
        from: account,
        to: account,
        opaque_data: &OPAQUE,
    }
}

#[test]
fn a_deposit_is_the_transaction_that_the_op_stack_makes_of_it() {
    let transaction = bridge_deposit(&published()).unwrap();
    let expected = b256!("0a60b983815ed475c5919609025204a479654d93afc610feca7d99ae0befc329");
    assert_eq!(keccak256(&transaction.raw), expected);
    assert_eq!(transaction.gas, 21_000);
}

#[test]
fn minting_creating_and_calling_are_encoded() {
    let mut opaque = [U256::from(7).to_be_bytes::<32>(), U256::MAX.to_be_bytes()].concat();
    opaque.extend_from_slice(&100_000u64.to_be_bytes());
    opaque.extend_from_slice(&[1, 0xca, 0xfe]);
    let transaction = bridge_deposit(&BridgeDeposit { opaque_data: &opaque, ..published() }).unwrap();
    let mut body = &transaction.raw[1..];
    let PayloadView::List(fields) = Header::decode_raw(&mut body).unwrap() else { panic!("no list") };
    assert_eq!(fields[2], [0x80], "a creation goes nowhere");
    assert_eq!(u128::decode(&mut &fields[3][..]).unwrap(), 7);
    assert_eq!(U256::decode(&mut &fields[4][..]).unwrap(), U256::MAX);
    assert_eq!(u64::decode(&mut &fields[5][..]).unwrap(), 100_000);
    assert_eq!(fields[7], [0x82, 0xca, 0xfe]);
}

#[test]
fn opaque_data_of_another_form_is_refused() {
    let with = |opaque_data: &[u8]| bridge_deposit(&BridgeDeposit { opaque_data, ..published() });
    for length in [0, 31, 32, 71, 72] {
        assert_eq!(with(&OPAQUE[..length]), Err(DepositError::Short(length)));
    }
    let mut changed = OPAQUE;
    changed[OPAQUE_HEAD_BYTES - 1] = 2;
    assert_eq!(with(&changed), Err(DepositError::Creation(2)));
    let mut changed = OPAQUE;
    changed[15] = 1;
    assert_eq!(with(&changed), Err(DepositError::Mint));
}
