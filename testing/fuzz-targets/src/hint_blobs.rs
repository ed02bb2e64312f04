use blindfold_l1::{HintBlobs, HintIndex, PostedEntry, decode_blobs, encode_blobs};
use blindfold_protocol::{Bytes, limits::MAX_BATCH_ITEMS};

const BLOB_BYTES: usize = 131_072;
const ELEMENT_BYTES: usize = 32;
const MALFORMED: u8 = 2;
/// The kind of an entry that cannot be read.
const NO_ENTRY: u8 = 0xff;

/// Hints in blobs: what data the field elements hold has one form, and of what index and blobs say nothing is made up.
///
/// Input: batches u8 · words of the index u8 · the index · blobs u8 (at most two) · the first element that is written
/// u16 · elements. All other elements are zero.
pub fn hint_blobs(input: &[u8]) {
    let Some(([batches, words], rest)) = input.split_first_chunk::<2>() else { return };
    let Some((index, rest)) = rest.split_at_checked(4 * usize::from(*words)) else { return };
    let Some(([blobs, start @ ..], elements)) = rest.split_first_chunk::<3>() else { return };
    let mut content = vec![0; usize::from(*blobs % 3) * BLOB_BYTES];
    let start = content.len().min(usize::from(u16::from_be_bytes(*start)) * ELEMENT_BYTES);
    content[start..].iter_mut().zip(elements).for_each(|(place, byte)| *place = *byte);
    let blobs: Vec<Bytes> = content.chunks(BLOB_BYTES).map(Bytes::copy_from_slice).collect();
    if let Ok(data) = decode_blobs(&blobs) {
        let again = encode_blobs(&data).expect("it came from blobs");
        assert!(again.iter().map(|blob| blob.as_slice()).eq(blobs.iter().map(|blob| blob.as_ref())));
    }
    if let Ok(decoded) = HintIndex::decode(index, u64::from(*batches)) {
        assert_eq!(decoded.encode(), index);
        read(decoded, u64::from(*batches), blobs);
    }
}

/// The hints have a batch for each of the index, not more entries than a run has, each with the release that the index
/// gives it, and are malformed only where the index says so.
fn read(index: HintIndex, batches: u64, blobs: Vec<Bytes>) {
    let named = index.malformed(0);
    let hints = HintBlobs::shown(index, Vec::new(), blobs).hints();
    assert_eq!(hints.batches.len() as u64, batches);
    let entries: usize = hints.batches.iter().map(|batch| batch.entries.len()).sum();
    assert!(entries <= MAX_BATCH_ITEMS + 1);
    for (number, batch) in (0u64..).zip(&hints.batches) {
        let listed: Vec<u32> =
            named.iter().filter(|(of, _)| *of == number).map(|(_, place)| *place).collect();
        assert_eq!(batch.singletons.len(), listed.len().min(batch.entries.len()));
        for (place, entry) in (0u32..).zip(&batch.entries) {
            let release = listed.iter().position(|listed| *listed == place);
            match entry.kind {
                NO_ENTRY => {}
                MALFORMED => assert_eq!(release.map(PostedEntry::malformed), Some(*entry)),
                _ => assert_eq!(release, None),
            }
        }
    }
}
