//! Between records and the engines' values. Integers have 63 bits for us; amounts are 16 bytes, big-endian.

use alloy_primitives::{Address, B256};
use blindfold_protocol::{
    codec::Canonical,
    ledger::{Account, Held},
};

use super::session::{Row, Value};
use crate::{StoreError, What};

/// Bytes of one encoded [`Held`]: item u32, payer 20, amount u128.
const HELD_BYTES: usize = 40;

/// A number as the engines hold it.
pub(crate) fn integer(value: u64, name: &'static str) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| StoreError::OutOfRange(name))
}

/// Reads a number; the engines' are signed, and a negative one is damage.
pub(crate) fn number(row: &dyn Row, column: usize, what: What) -> Result<u64, StoreError> {
    optional_number(row, column, what)?.ok_or_else(|| wrong_type(what))
}

/// Reads a number that may be absent.
pub(crate) fn optional_number(row: &dyn Row, column: usize, what: What) -> Result<Option<u64>, StoreError> {
    match row.value(column)? {
        Value::Null => Ok(None),
        Value::Integer(value) => u64::try_from(value).map(Some).map_err(|_| corrupt(what, "negative number")),
        _ => Err(wrong_type(what)),
    }
}

/// Reads a number of fewer bits.
pub(crate) fn narrow<T: TryFrom<u64>>(row: &dyn Row, column: usize, what: What) -> Result<T, StoreError> {
    T::try_from(number(row, column, what)?).map_err(|_| corrupt(what, "number out of range"))
}

/// Reads what is true where it is not 0.
pub(crate) fn flag(row: &dyn Row, column: usize, what: What) -> Result<bool, StoreError> {
    Ok(number(row, column, what)? != 0)
}

/// Reads bytes of any length.
pub(crate) fn bytes(row: &dyn Row, column: usize, what: What) -> Result<Vec<u8>, StoreError> {
    with_bytes(row, column, what, |bytes| Ok(bytes.to_vec()))
}

/// Reads text.
pub(crate) fn text(row: &dyn Row, column: usize, what: What) -> Result<String, StoreError> {
    optional_text(row, column, what)?.ok_or_else(|| wrong_type(what))
}

/// Reads text that may be absent.
pub(crate) fn optional_text(row: &dyn Row, column: usize, what: What) -> Result<Option<String>, StoreError> {
    match row.value(column)? {
        Value::Null => Ok(None),
        Value::Text(text) => Ok(Some(text.into_owned())),
        _ => Err(wrong_type(what)),
    }
}

/// Reads bytes of a fixed length.
pub(crate) fn array<const N: usize>(row: &dyn Row, column: usize, what: What) -> Result<[u8; N], StoreError> {
    with_bytes(row, column, what, |bytes| {
        bytes.try_into().map_err(|_| corrupt(what, "field of a wrong length"))
    })
}

/// Reads a hash of 32 bytes.
pub(crate) fn hash(row: &dyn Row, column: usize, what: What) -> Result<B256, StoreError> {
    array::<32>(row, column, what).map(B256::from)
}

/// Reads an address.
pub(crate) fn address(row: &dyn Row, column: usize, what: What) -> Result<Address, StoreError> {
    array::<20>(row, column, what).map(Address::from)
}

/// Reads a structure in its binary encoding.
pub(crate) fn structure<T: Canonical>(row: &dyn Row, column: usize, what: What) -> Result<T, StoreError> {
    with_bytes(row, column, what, |bytes| T::decode(bytes).map_err(|fault| StoreError::corrupt(what, &fault)))
}

/// Reads a structure that may be absent.
pub(crate) fn optional_structure<T: Canonical>(
    row: &dyn Row,
    column: usize,
    what: What,
) -> Result<Option<T>, StoreError> {
    match row.value(column)? {
        Value::Null => Ok(None),
        _ => structure(row, column, what).map(Some),
    }
}

fn with_bytes<T>(
    row: &dyn Row,
    column: usize,
    what: What,
    read: impl FnOnce(&[u8]) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    match row.value(column)? {
        Value::Bytes(bytes) => read(&bytes),
        _ => Err(wrong_type(what)),
    }
}

fn wrong_type(what: What) -> StoreError {
    corrupt(what, "field of a wrong type")
}

pub(crate) fn corrupt(what: What, fault: &str) -> StoreError {
    StoreError::Corrupt { what, fault: fault.to_owned() }
}

/// Reads an account from its two columns.
pub(crate) fn account(row: &dyn Row, balance: usize, withdrawn: usize) -> Result<Account, StoreError> {
    let balance = u128::from_be_bytes(array(row, balance, What::Account)?);
    let withdrawn = u128::from_be_bytes(array(row, withdrawn, What::Account)?);
    Ok(Account { balance, withdrawn })
}

/// Reads an account that may be absent: both columns null.
pub(crate) fn optional_account(
    row: &dyn Row,
    balance: usize,
    withdrawn: usize,
) -> Result<Option<Account>, StoreError> {
    match row.value(balance)? {
        Value::Null => Ok(None),
        _ => account(row, balance, withdrawn).map(Some),
    }
}

/// Held surcharges of one batch as bytes.
pub(crate) fn held_to_bytes(held: &[Held]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(held.len() * HELD_BYTES);
    for entry in held {
        bytes.extend_from_slice(&entry.item.to_be_bytes());
        bytes.extend_from_slice(entry.payer.as_slice());
        bytes.extend_from_slice(&entry.amount.to_be_bytes());
    }
    bytes
}

/// Reads what [`held_to_bytes`] wrote.
pub(crate) fn held_from_bytes(bytes: &[u8]) -> Result<Vec<Held>, StoreError> {
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
