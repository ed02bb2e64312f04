//! Seconds, prevRandao, sequence numbers.

use crate::common::some_header;
use alloy_primitives::{B256, keccak256};
use blindfold_protocol::BatchHeader;
use blindfold_protocol::block::{OrderError, Seconds, block_second, prev_randao, sequence_number};

fn header(number: u64, timestamp_ms: u64, l1_origin_number: u64) -> BatchHeader {
    BatchHeader { number, timestamp_ms, l1_origin_number, ..some_header() }
}

/// Rules.
#[test]
fn seconds_close_with_the_first_later_header() {
    assert_eq!(block_second(1_999), 1);
    let mut seconds = Seconds::default();
    let mut push = |number, time, origin, accepted| {
        seconds.push(&header(number, time, origin), B256::repeat_byte(number as u8), accepted)
    };
    assert_eq!(push(5, 1_000, 7, 0), Ok(None));
    assert_eq!(push(6, 1_250, 7, 2), Ok(None));
    assert_eq!(push(7, 1_999, 8, 1), Ok(None));
    let closed = push(8, 2_000, 8, 0).unwrap().unwrap();
    assert_eq!((closed.second, closed.first, closed.last, closed.accepted), (1, 5, 7, 3));
    assert_eq!(closed.last_hash, B256::repeat_byte(7));
    assert_eq!(closed.l1_origin_number, 8);
    assert!(closed.has_block(0));
    assert_eq!(closed.prev_randao(), prev_randao(&B256::repeat_byte(7)));
    // A second of nothing but skipped items makes no block.
    let closed = push(9, 9_000, 8, 1).unwrap().unwrap();
    assert_eq!((closed.first, closed.last, closed.has_block(0)), (8, 8, false));

    assert_eq!(push(9, 9_100, 8, 1), Err(OrderError::Number { last: 9, got: 9 }));
    assert_eq!(push(11, 9_100, 8, 1), Err(OrderError::Number { last: 9, got: 11 }));
    assert_eq!(push(10, 8_999, 8, 1), Err(OrderError::Time { open: 9, got: 8 }));
    assert_eq!(seconds.open().map(|open| open.last), Some(9), "a refused header changes nothing");
}

/// Rule X-3.
#[test]
fn block_attributes() {
    let hash = B256::repeat_byte(3);
    let expected = keccak256([b"BLINDFOLD-V2-RANDAO".as_slice(), hash.as_slice()].concat());
    assert_eq!(prev_randao(&hash), expected);
    assert_eq!(sequence_number(None, 5), 0);
    assert_eq!(sequence_number(Some((5, 0)), 5), 1);
    assert_eq!(sequence_number(Some((5, 9)), 6), 0);
}
