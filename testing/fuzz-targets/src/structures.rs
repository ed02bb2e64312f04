use crate::Target;
use blindfold_protocol::{
    Acknowledgement, BatchHeader, BatchHints, Canonical, Certificate, CertifiedBatch, DataAttestation,
    Envelope, ForcedTransaction, Head, Hello, Promise, Release, ReleaseShare, SealedBatch, SignedHeader,
    SingletonShare,
};

fn one_encoding<T: Canonical>(bytes: &[u8]) {
    if let Ok(decoded) = T::decode(bytes) {
        assert_eq!(decoded.encode(), bytes);
    }
}

fn run_data(bytes: &[u8]) {
    if let Ok(data) = blindfold_l1::RunData::decode(bytes) {
        assert_eq!(data.encode(), bytes);
    }
}

fn opened_data(bytes: &[u8]) {
    // What is compressed has many encodings: only panics count.
    let _ = blindfold_l1::OpenedData::decode(bytes);
}

/// The body alone, which a fuzzer does not get to through a frame.
fn opened_run(bytes: &[u8]) {
    if let Ok(run) = blindfold_protocol::opened::OpenedRun::decode(1, bytes) {
        let items: usize = run.batches.iter().map(|batch| batch.count()).sum();
        assert!(items <= bytes.len());
        let _: u64 = run.batches.iter().map(|batch| batch.item_bytes()).sum();
    }
}

fn hint_index(bytes: &[u8]) {
    let Some((batches, index)) = bytes.split_first() else { return };
    if let Ok(decoded) = blindfold_l1::HintIndex::decode(index, u64::from(*batches)) {
        assert_eq!(decoded.encode(), index);
    }
}

fn hello(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(hello) = text.parse::<Hello>() {
        assert_eq!(hello.to_string(), text);
    }
}

fn stored_payload(bytes: &[u8]) {
    // JSON inside: spaces make more than one encoding, so only panics count.
    let _ = blindfold_engine::StoredPayload::decode(bytes);
}

/// The decoders that [`structures`] chooses from, by the input's first byte modulo their number.
pub const STRUCTURES: &[(&str, Target)] = &[
    ("Envelope", one_encoding::<Envelope>),
    ("BatchHeader", one_encoding::<BatchHeader>),
    ("SignedHeader", one_encoding::<SignedHeader>),
    ("SealedBatch", one_encoding::<SealedBatch>),
    ("Promise", one_encoding::<Promise>),
    ("Acknowledgement", one_encoding::<Acknowledgement>),
    ("Certificate", one_encoding::<Certificate>),
    ("CertifiedBatch", one_encoding::<CertifiedBatch>),
    ("ReleaseShare", one_encoding::<ReleaseShare>),
    ("Release", one_encoding::<Release>),
    ("SingletonShare", one_encoding::<SingletonShare>),
    ("BatchHints", one_encoding::<BatchHints>),
    ("RunData", run_data),
    ("ForcedTransaction", one_encoding::<ForcedTransaction>),
    ("Head", one_encoding::<Head>),
    ("DataAttestation", one_encoding::<DataAttestation>),
    ("HintPosting", one_encoding::<blindfold_l1::HintPosting>),
    ("StoredPayload", stored_payload),
    ("RunDataPart", one_encoding::<blindfold_l1::DataPart>),
    ("HintIndex", hint_index),
    ("Hello", hello),
    ("OpenedData", opened_data),
    ("OpenedRun", opened_run),
];

/// Every structure of docs/protocol.md: what decodes has exactly one encoding, and nothing panics.
///
/// Input: which structure u8 · its bytes.
pub fn structures(input: &[u8]) {
    if let Some((which, bytes)) = input.split_first() {
        let (_, decode) = STRUCTURES[usize::from(*which) % STRUCTURES.len()];
        decode(bytes);
    }
}
