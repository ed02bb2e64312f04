use blindfold_protocol::{
    B256, Deployment, Signature65,
    opened::{BatchTerms, OpenBatch},
};

use super::*;

const HINTS: HintsReference = HintsReference { id: 7, l1_block: 9 };

fn run() -> RunTerms {
    let inbox = blindfold_protocol::Address::repeat_byte(3);
    RunTerms { chain_id: 5, deployment: Deployment { l1_chain_id: 1, inbox } }
}

fn data(items: &[Vec<u8>]) -> Vec<u8> {
    let codes = vec![0; items.len()];
    let keys = vec![None; items.len()];
    let terms = BatchTerms { number: 1, epoch: 1, encryption_key_hash: B256::ZERO };
    let batch = OpenBatch { terms, signature: &Signature65::NONE, codes: &codes, items, keys: &keys };
    OpenedData::encode(&run(), HINTS, &[batch]).unwrap()
}

#[test]
fn data_comes_back_smaller() {
    let items = vec![vec![1; 700], vec![], vec![2; 900]];
    let encoded = data(&items);
    assert!(encoded.len() < 200, "{} bytes", encoded.len());
    let decoded = OpenedData::decode(&encoded).unwrap();
    assert_eq!((decoded.hints, decoded.chain_id), (HINTS, 5));
    let [batch] = &decoded.run.batches[..] else { panic!("one batch") };
    assert_eq!((batch.count(), batch.item_bytes(), batch.opened()), (3, 1_600, 0));
}

/// A frame that gives more than it says, or less, or asks for much memory, is refused without taking it.
#[test]
fn a_bomb_is_refused() {
    let honest = data(&[vec![1; 700]]);
    let header = 2 + 3 * 8;
    let with = |length: u32, frame: &[u8]| [&honest[..header], &length.to_be_bytes(), frame].concat();
    let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 3).unwrap();
    assert!(bomb.len() < 20_000);
    let frame = &honest[header + 4..];
    let length = u32::from_be_bytes(honest[header..header + 4].try_into().unwrap());
    assert_eq!(with(length, frame), honest);
    for refused in [
        with(1 << 20, &bomb),
        with(length - 1, frame),
        with(length + 1, frame),
        with(length, &[frame, &[0][..]].concat()),
        with(length, &[frame, frame].concat()),
        with(length, &frame[..frame.len() - 1]),
        with(length, &[]),
        with(0, b"no frame"),
    ] {
        assert_eq!(OpenedData::decode(&refused), Err(DecodeError::Compressed));
    }
    let much = OpenedData::decode(&with(u32::MAX, &bomb));
    assert!(matches!(much, Err(DecodeError::TooLarge { .. })));
    // A window of 128 MiB.
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(27).unwrap();
    encoder.include_contentsize(false).unwrap();
    std::io::Write::write_all(&mut encoder, &[0; 100]).unwrap();
    let wide = encoder.finish().unwrap();
    assert_eq!(OpenedData::decode(&with(100, &wide)), Err(DecodeError::Compressed));
    assert!(matches!(OpenedData::decode(&honest[..5]), Err(DecodeError::Short { .. })));
    assert!(matches!(OpenedData::decode(&[VERSION, 3]), Err(DecodeError::UnknownTag { .. })));
}
