//! Every structure of docs/protocol.md: what decodes has exactly one encoding, and nothing panics.
#![no_main]

use blindfold_protocol::{
    Account, Acknowledgement, BatchHeader, BatchHints, Canonical, Certificate, CertifiedBatch, Envelope,
    ForcedTransaction, Head, Promise, Release, ReleaseShare, SealedBatch, SignedHeader, SingletonShare,
};
use libfuzzer_sys::fuzz_target;

fn one_encoding<T: Canonical>(bytes: &[u8]) {
    if let Ok(decoded) = T::decode(bytes) {
        assert_eq!(decoded.encode(), bytes);
    }
}

fuzz_target!(|input: (u8, &[u8])| {
    let (kind, bytes) = input;
    match kind % 17 {
        0 => one_encoding::<Envelope>(bytes),
        1 => one_encoding::<BatchHeader>(bytes),
        2 => one_encoding::<SignedHeader>(bytes),
        3 => one_encoding::<SealedBatch>(bytes),
        4 => one_encoding::<Promise>(bytes),
        5 => one_encoding::<Acknowledgement>(bytes),
        6 => one_encoding::<Certificate>(bytes),
        7 => one_encoding::<CertifiedBatch>(bytes),
        8 => one_encoding::<ReleaseShare>(bytes),
        9 => one_encoding::<Release>(bytes),
        10 => one_encoding::<SingletonShare>(bytes),
        11 => one_encoding::<BatchHints>(bytes),
        12 => {
            if let Ok(data) = blindfold_l1::RunData::decode(bytes) {
                assert_eq!(data.encode(), bytes);
            }
        }
        13 => one_encoding::<ForcedTransaction>(bytes),
        14 => one_encoding::<Account>(bytes),
        15 => one_encoding::<Head>(bytes),
        _ => {
            // JSON inside: spaces make more than one encoding, so only panics count.
            let _ = blindfold_engine::StoredPayload::decode(bytes);
        }
    }
});
