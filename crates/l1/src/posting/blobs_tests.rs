use alloy_eips::eip7594::CELLS_PER_EXT_BLOB;

use super::*;

fn data(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// Rule L-9.
#[test]
fn data_comes_back_from_the_blobs_it_was_written_to() {
    let room = BLOB_ROOM_BYTES - LENGTH_BYTES;
    for (length, blobs) in [
        (0, 1),
        (1, 1),
        (27, 1),
        (28, 1),
        (room - 1, 1),
        (room, 1),
        (room + 1, 2),
        (room + BLOB_ROOM_BYTES, 2),
        (MAX_BLOB_DATA_BYTES, MAX_BLOBS),
    ] {
        let data = data(length);
        let encoded = encode_blobs(&data).unwrap();
        assert_eq!(encoded.len(), blobs, "{length}");
        assert_eq!(decode_blobs(&encoded), Ok(data), "{length}");
    }
    let bytes = MAX_BLOB_DATA_BYTES + 1;
    assert_eq!(encode_blobs(&data(bytes)), Err(BlobError::TooLong { bytes }));
}

#[test]
fn data_has_one_form_only() {
    let good = encode_blobs(&data(100)).unwrap();
    let with = |at: usize, byte: u8| {
        let mut blobs = good.clone();
        blobs[0].0[at] = byte;
        decode_blobs(&blobs)
    };
    assert_eq!(with(ELEMENT_BYTES, 1), Err(BlobError::NotData("the first byte of an element is not zero")));
    assert_eq!(with(1, 0xff), Err(BlobError::NotData("the data is cut off")));
    assert_eq!(with(BYTES_PER_BLOB - 1, 1), Err(BlobError::NotData("what follows the data is not zero")));
    assert_eq!(decode_blobs(&[Blob::ZERO; 0]), Err(BlobError::NotData("there is no blob")));
    let longer = [good.clone(), encode_blobs(&[]).unwrap()].concat();
    assert_eq!(decode_blobs(&longer), Err(BlobError::NotData("there is a blob more than the data needs")));
}

#[test]
fn sidecars_hold_what_nodes_check() {
    let blobs = encode_blobs(&data(200_000)).unwrap();
    let hashes: Vec<B256> = blobs.iter().map(|blob| versioned_hash(blob.as_slice()).unwrap()).collect();
    let sidecar = sidecar(blobs).unwrap();
    assert_eq!(sidecar.versioned_hashes().collect::<Vec<_>>(), hashes);
    assert_eq!(sidecar.cell_proofs.len(), 2 * CELLS_PER_EXT_BLOB);
    sidecar.validate(&hashes, &SETTINGS).unwrap();
}

#[test]
fn a_blob_with_an_element_above_the_modulus_has_no_hash() {
    assert!(matches!(versioned_hash(&[0xff; BYTES_PER_BLOB]), Err(BlobError::Kzg(_))));
    assert!(matches!(versioned_hash(&[0; BYTES_PER_BLOB - 1]), Err(BlobError::NotData(_))));
    assert!(matches!(decode_blobs(&[[0; 31]]), Err(BlobError::NotData(_))));
}

// The commitment to zero is the point at infinity.
#[test]
fn the_hash_of_the_zero_blob_is_known() {
    let mut infinity = [0; 48];
    infinity[0] = 0xc0;
    assert_eq!(versioned_hash(&[0; BYTES_PER_BLOB]), Ok(kzg_to_versioned_hash(&infinity)));
}
