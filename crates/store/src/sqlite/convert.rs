//! Between records and SQLite's values. SQLite's integers have 63 bits for us; amounts are 16 bytes, big-endian.

use alloy_primitives::{Address, B256};
use blindfold_protocol::{
    codec::Canonical,
    ledger::{Account, Held},
};
use rusqlite::{Row, types::ValueRef};

use crate::{StoreError, What};

/// Bytes of one encoded [`Held`]: item u32, payer 20, amount u128.
const HELD_BYTES: usize = 40;

/// A number as SQLite holds it.
pub(super) fn integer(value: u64, name: &'static str) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| StoreError::OutOfRange(name))
}

/// Reads a number; SQLite's are signed, and a negative one is damage.
pub(super) fn number(row: &Row<'_>, column: usize, what: What) -> Result<u64, StoreError> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| corrupt(what, "negative number"))
}

/// Reads a number that may be absent.
pub(super) fn optional_number(row: &Row<'_>, column: usize, what: What) -> Result<Option<u64>, StoreError> {
    let value: Option<i64> = row.get(column)?;
    value.map(|value| u64::try_from(value).map_err(|_| corrupt(what, "negative number"))).transpose()
}

/// Reads bytes of a fixed length.
pub(super) fn array<const N: usize>(row: &Row<'_>, column: usize, what: What) -> Result<[u8; N], StoreError> {
    match row.get_ref(column)? {
        ValueRef::Blob(bytes) => bytes.try_into().map_err(|_| corrupt(what, "field of a wrong length")),
        _ => Err(corrupt(what, "field of a wrong type")),
    }
}

/// Reads a hash of 32 bytes.
pub(super) fn hash(row: &Row<'_>, column: usize, what: What) -> Result<B256, StoreError> {
    array::<32>(row, column, what).map(B256::from)
}

/// Reads a structure in its binary encoding.
pub(super) fn structure<T: Canonical>(row: &Row<'_>, column: usize, what: What) -> Result<T, StoreError> {
    match row.get_ref(column)? {
        ValueRef::Blob(bytes) => T::decode(bytes).map_err(|fault| StoreError::corrupt(what, &fault)),
        _ => Err(corrupt(what, "field of a wrong type")),
    }
}

pub(super) fn corrupt(what: What, fault: &str) -> StoreError {
    StoreError::Corrupt { what, fault: fault.to_owned() }
}

/// Reads an account from its two columns.
pub(super) fn account(row: &Row<'_>, balance: usize, withdrawn: usize) -> Result<Account, StoreError> {
    let balance = u128::from_be_bytes(array(row, balance, What::Account)?);
    let withdrawn = u128::from_be_bytes(array(row, withdrawn, What::Account)?);
    Ok(Account { balance, withdrawn })
}

/// Reads an account that may be absent: both columns null.
pub(super) fn optional_account(
    row: &Row<'_>,
    balance: usize,
    withdrawn: usize,
) -> Result<Option<Account>, StoreError> {
    if row.get_ref(balance)? == ValueRef::Null {
        return Ok(None);
    }
    account(row, balance, withdrawn).map(Some)
}

/// Held surcharges of one batch as bytes.
pub(super) fn held_to_bytes(held: &[Held]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(held.len() * HELD_BYTES);
    for entry in held {
        bytes.extend_from_slice(&entry.item.to_be_bytes());
        bytes.extend_from_slice(entry.payer.as_slice());
        bytes.extend_from_slice(&entry.amount.to_be_bytes());
    }
    bytes
}

/// Reads what [`held_to_bytes`] wrote.
pub(super) fn held_from_bytes(bytes: &[u8]) -> Result<Vec<Held>, StoreError> {
    let (entries, rest) = bytes.as_chunks::<HELD_BYTES>();
    if !rest.is_empty() {
        return Err(corrupt(What::Account, "held surcharges of a wrong length"));
    }
    Ok(entries
        .iter()
        .map(|entry| {
            let (mut item, mut payer, mut amount) = ([0; 4], [0; 20], [0; 16]);
            item.copy_from_slice(&entry[..4]);
            payer.copy_from_slice(&entry[4..24]);
            amount.copy_from_slice(&entry[24..]);
            Held {
                item: u32::from_be_bytes(item),
                payer: Address::from(payer),
                amount: u128::from_be_bytes(amount),
            }
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn held_round_trip(entries in proptest::collection::vec(any::<(u32, [u8; 20], u128)>(), 0..20)) {
            let held: Vec<Held> = entries
                .into_iter()
                .map(|(item, payer, amount)| Held { item, payer: Address::from(payer), amount })
                .collect();
            prop_assert_eq!(held_from_bytes(&held_to_bytes(&held)), Ok(held));
        }

        #[test]
        fn arbitrary_bytes_are_an_error_or_read_back(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            match held_from_bytes(&bytes) {
                Ok(held) => prop_assert_eq!(held_to_bytes(&held), bytes),
                Err(error) => {
                    let named = matches!(error, StoreError::Corrupt { what: What::Account, .. });
                    prop_assert!(named);
                }
            }
        }
    }
}
