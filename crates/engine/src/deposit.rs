//! The first transaction of every block: the L1-attributes deposit of the OP Stack (Jovian format).

use alloy_primitives::{Address, B256, Bytes, U256, address, keccak256};
use alloy_rlp::{BufMut, Encodable, Header};

use crate::BlockInputs;

/// EIP-2718 type byte of a deposit transaction.
pub const DEPOSIT_TYPE: u8 = 0x7e;

/// Sender of the attributes deposit; no key exists for it.
pub const ATTRIBUTES_DEPOSITOR: Address = address!("deaddeaddeaddeaddeaddeaddeaddeaddead0001");

/// The contract at which the OP Stack keeps L1 attributes. In the default genesis it has no logic: its
/// storage, from which the client reads fee scalars, never changes.
pub const L1_BLOCK_PREDEPLOY: Address = address!("4200000000000000000000000000000000000015");

/// Gas limit of the attributes deposit.
pub const ATTRIBUTES_DEPOSIT_GAS: u64 = 1_000_000;

/// Selector of `setL1BlockValuesJovian()`; its arguments are packed, not ABI-encoded.
const SELECTOR: [u8; 4] = [0x3d, 0xb6, 0xbe, 0x2b];

/// Length of the call data; the client refuses any other.
const CALL_DATA_BYTES: usize = 178;

/// Domain of the source hash of an attributes deposit (OP Stack: 0 is for user deposits, 1 for this).
const SOURCE_DOMAIN_ATTRIBUTES: u64 = 1;

/// All fee scalars are zero: Blindfold charges for data by its own fee ledger. The client takes a zero
/// DA-footprint scalar as zero; only op-node, which is not in use here, replaces it by a default.
const BASE_FEE_SCALAR: u32 = 0;
const BLOB_BASE_FEE_SCALAR: u32 = 0;
const OPERATOR_FEE_SCALAR: u32 = 0;
const OPERATOR_FEE_CONSTANT: u64 = 0;
const DA_FOOTPRINT_GAS_SCALAR: u16 = 0;

/// The attributes deposit of the block with these inputs, as raw EIP-2718 bytes (0x7e ‖ RLP).
pub fn attributes_deposit(inputs: &BlockInputs) -> Bytes {
    let source_hash = source_hash(inputs.l1_origin.hash, inputs.sequence_number);
    let data = call_data(inputs);
    let zero = 0u64; // RLP of zero is the same for every width
    let is_system_transaction = false;
    let payload_length = source_hash.length()
        + ATTRIBUTES_DEPOSITOR.length()
        + L1_BLOCK_PREDEPLOY.length()
        + zero.length() // mint
        + zero.length() // value
        + ATTRIBUTES_DEPOSIT_GAS.length()
        + is_system_transaction.length()
        + data.as_slice().length();
    let mut raw = Vec::with_capacity(1 + 4 + payload_length);
    raw.put_u8(DEPOSIT_TYPE);
    Header { list: true, payload_length }.encode(&mut raw);
    source_hash.encode(&mut raw);
    ATTRIBUTES_DEPOSITOR.encode(&mut raw);
    L1_BLOCK_PREDEPLOY.encode(&mut raw);
    zero.encode(&mut raw);
    zero.encode(&mut raw);
    ATTRIBUTES_DEPOSIT_GAS.encode(&mut raw);
    is_system_transaction.encode(&mut raw);
    data.as_slice().encode(&mut raw);
    raw.into()
}

/// keccak256(domain ‖ keccak256(origin hash ‖ sequence number)): unique per block.
fn source_hash(origin: B256, sequence_number: u64) -> B256 {
    let mut inner = [0u8; 64];
    inner[..32].copy_from_slice(origin.as_slice());
    inner[56..].copy_from_slice(&sequence_number.to_be_bytes());
    let mut outer = [0u8; 64];
    outer[24..32].copy_from_slice(&SOURCE_DOMAIN_ATTRIBUTES.to_be_bytes());
    outer[32..].copy_from_slice(keccak256(inner).as_slice());
    keccak256(outer)
}

fn call_data(inputs: &BlockInputs) -> Vec<u8> {
    let origin = &inputs.l1_origin;
    let mut data = Vec::with_capacity(CALL_DATA_BYTES);
    data.extend_from_slice(&SELECTOR);
    data.extend_from_slice(&BASE_FEE_SCALAR.to_be_bytes());
    data.extend_from_slice(&BLOB_BASE_FEE_SCALAR.to_be_bytes());
    data.extend_from_slice(&inputs.sequence_number.to_be_bytes());
    data.extend_from_slice(&origin.timestamp.to_be_bytes());
    data.extend_from_slice(&origin.number.to_be_bytes());
    data.extend_from_slice(&U256::from(origin.base_fee).to_be_bytes::<32>());
    data.extend_from_slice(&U256::from(origin.blob_base_fee).to_be_bytes::<32>());
    data.extend_from_slice(origin.hash.as_slice());
    data.extend_from_slice(B256::ZERO.as_slice()); // batcher hash: there is no batcher
    data.extend_from_slice(&OPERATOR_FEE_SCALAR.to_be_bytes());
    data.extend_from_slice(&OPERATOR_FEE_CONSTANT.to_be_bytes());
    data.extend_from_slice(&DA_FOOTPRINT_GAS_SCALAR.to_be_bytes());
    assert_eq!(data.len(), CALL_DATA_BYTES, "layout of the attributes call data");
    data
}

#[cfg(test)]
mod tests {
    use alloy_rlp::{Decodable, PayloadView};

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
        assert_eq!(raw[0], DEPOSIT_TYPE);
        let mut body = &raw[1..];
        let PayloadView::List(fields) = Header::decode_raw(&mut body).unwrap() else { panic!("no list") };
        assert!(body.is_empty());
        let field = |index: usize| {
            let mut field = fields[index];
            Header::decode_bytes(&mut field, false).unwrap().to_vec()
        };
        assert_eq!(fields.len(), 8);
        assert_eq!(field(0), source_hash(B256::repeat_byte(0x22), 5).to_vec());
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
}
