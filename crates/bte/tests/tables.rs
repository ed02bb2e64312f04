//! Tables change how fast a batch is decrypted, never to what; files with tables are checked before they are used.

mod common;

use blindfold_bte::{Backend, MemberKey, Opening, Parameters, PointError, Portable, TableError};
use common::{Made, batch, deal, inputs, points, shares};

const MAX_BATCH: u32 = 5;
const HEADER_BYTES: usize = 43;
const POINT_BYTES: usize = 192;
const CHECKSUM_BYTES: usize = 32;

fn dealt() -> (Parameters, Vec<MemberKey>) {
    deal(MAX_BATCH, 3, 2, 1)
}

/// The same parameters without the tables computed so far.
fn fresh(parameters: &Parameters) -> Parameters {
    Parameters::decode(&parameters.encode()).expect("own encoding")
}

/// Cross-terms, and what the batch decrypts to in both ways.
fn results(
    parameters: &Parameters,
    keys: &[MemberKey],
    batch: &[Made],
) -> (Vec<[u8; 576]>, Vec<Opening>, Vec<Opening>) {
    let backend = Portable::new(2);
    let points = points(batch);
    let release = parameters.combine(&shares(keys, &points)).expect("enough");
    let predecrypted = backend.predecrypt(parameters, &points).expect("within limits");
    let opened = backend.finalize(parameters, &predecrypted, &release, &inputs(batch)).expect("the same");
    let at_once = backend.decrypt(parameters, &points, &release, &inputs(batch)).expect("within limits");
    (predecrypted.cross_terms(), opened, at_once)
}

/// The file with another content under a right checksum.
fn resealed(mut file: Vec<u8>, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let content = file.len() - CHECKSUM_BYTES;
    change(&mut file[..content]);
    let checksum =
        Sha256::new().chain_update(b"BLINDFOLD-V1-TABLE").chain_update(&file[..content]).finalize();
    file[content..].copy_from_slice(&checksum);
    file
}

#[test]
fn memory_changes_no_result() {
    let (parameters, keys) = dealt();
    let lines_bytes = 68 * 288;
    // Nothing fits, one of the two tables, both of the smaller batches', everything.
    let limits = [0, 5 * lines_bytes, 12 * lines_bytes, usize::MAX];
    for size in [1, 2, 5] {
        let batch = batch(&parameters, size, 2);
        let want = results(&parameters, &keys, &batch);
        assert!(want.1.iter().all(|opening| matches!(opening, Opening::WellFormed { .. })));
        assert_eq!(want.1, want.2);
        for limit in limits {
            let limited = parameters.clone().with_memory_limit(limit);
            assert_eq!(limited, parameters);
            assert_eq!(results(&limited, &keys, &batch), want, "{size} {limit}");
            let prepared = parameters.clone().with_memory_limit(limit);
            prepared.prepare(size);
            assert_eq!(results(&prepared, &keys, &batch), want, "{size} {limit}");
        }
    }
}

#[test]
fn tables_survive_a_round_trip() {
    let (parameters, keys) = dealt();
    for none in [0, 1, 6, usize::MAX] {
        assert!(parameters.table_points(none).is_none() && parameters.export_table(none).is_none());
    }
    for (size, table_points) in [(2, 4), (3, 6), (4, 8), (5, 12)] {
        assert_eq!(parameters.table_points(size), Some(table_points));
        let file = parameters.export_table(size).expect("a size with a table");
        assert_eq!(file.len(), HEADER_BYTES + table_points * POINT_BYTES + CHECKSUM_BYTES);
        let other = fresh(&parameters);
        assert_eq!(other.import_table(&file), Ok(()));
        assert_eq!(other.import_table(&file), Ok(()));
        assert_eq!(other.export_table(size), Some(file));
        let batch = batch(&parameters, size, 3);
        assert_eq!(results(&other, &keys, &batch), results(&parameters, &keys, &batch));
    }
}

#[test]
fn damage_is_noticed_wherever_it_is() {
    let (parameters, _) = dealt();
    let file = parameters.export_table(2).expect("a size with a table");
    let target = fresh(&parameters);
    for position in 0..file.len() {
        let mut damaged = file.clone();
        damaged[position] ^= 1 << (position % 8);
        let error = target.import_table(&damaged).expect_err("damaged");
        let expected = match position {
            0..8 => matches!(error, TableError::Magic),
            8 => matches!(error, TableError::Version(_)),
            9..41 => matches!(error, TableError::Parameters),
            41..43 => matches!(error, TableError::Domain { .. } | TableError::Length { .. }),
            _ => matches!(error, TableError::Checksum),
        };
        assert!(expected, "{position}: {error}");
    }
    for length in 0..file.len() {
        let error = target.import_table(&file[..length]).expect_err("too short");
        assert!(matches!(error, TableError::Magic | TableError::Length { .. }), "{length}: {error}");
    }
    let longer = [&file[..], &[0]].concat();
    let (expected, actual) = (file.len(), longer.len());
    assert_eq!(target.import_table(&longer), Err(TableError::Length { expected, actual }));
}

#[test]
fn tables_that_do_not_belong_are_refused() {
    let (parameters, _) = dealt();
    let file = parameters.export_table(4).expect("a size with a table");
    let (others, _) = deal(MAX_BATCH, 3, 2, 2);
    assert_eq!(others.import_table(&file), Err(TableError::Parameters));
    let import = |change: fn(&mut [u8])| fresh(&parameters).import_table(&resealed(file.clone(), change));
    assert_eq!(import(|_| {}), Ok(()));
    assert_eq!(import(|bytes| bytes[8] = 2), Err(TableError::Version(2)));
    // No batch of at most 5 needs 2·2^3 points; none at all less than 2·2 or four cosets.
    for (log_size, cosets) in [(3, 2), (16, 2), (0, 2), (0, 3), (2, 1), (2, 4), (2, 0), (255, 3)] {
        let bytes = resealed(file.clone(), |bytes| bytes[41..43].copy_from_slice(&[log_size, cosets]));
        let error = fresh(&parameters).import_table(&bytes);
        assert_eq!(error, Err(TableError::Domain { log_size, cosets }));
    }
    let point = |index, source| Err(TableError::Point { index, source });
    const SECOND: usize = HEADER_BYTES + POINT_BYTES;
    assert_eq!(import(|bytes| bytes[SECOND + 191] ^= 1), point(1, PointError::NotOnCurve));
    assert_eq!(import(|bytes| bytes[SECOND] |= 0x80), point(1, PointError::NotCanonical));
    assert_eq!(import(|bytes| bytes[HEADER_BYTES..][..48].fill(0x1f)), point(0, PointError::NotCanonical));
}

/// Someone else's points under a right checksum: no ciphertext opens to anything wrong.
#[test]
fn a_wrong_table_opens_nothing_wrong() {
    let (parameters, keys) = dealt();
    let batch = batch(&parameters, 4, 5);
    let file = parameters.export_table(4).expect("a size with a table");
    let swapped = resealed(file, |bytes| {
        let (first, rest) = bytes[HEADER_BYTES..].split_at_mut(POINT_BYTES);
        first.swap_with_slice(&mut rest[..POINT_BYTES]);
    });
    let wrong = fresh(&parameters);
    assert_eq!(wrong.import_table(&swapped), Ok(()));
    let (_, opened, at_once) = results(&wrong, &keys, &batch);
    assert!(opened.iter().chain(&at_once).all(|opening| *opening == Opening::Malformed));
}
