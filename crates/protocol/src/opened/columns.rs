//! Columns: all values of one kind, one after the other.

use std::collections::BTreeMap;

use crate::codec::DecodeError;
use alloy_primitives::{Address, U256};

/// What stands together, in this order (OD-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Column {
    BatchItems,
    BatchSignatures,
    Codes,
    Forms,
    RawLengths,
    RawBytes,
    Payers,
    PayerTable,
    FeeNonces,
    MaxFees,
    PriorityFees,
    MaxGasFees,
    GasLimits,
    Generations,
    Expiries,
    Buckets,
    FeeSignatures,
    Challenges,
    Responses,
    MessageLengths,
    MessageBytes,
    BundleItems,
    ItemForms,
    OtherLengths,
    OtherBytes,
    Nonces,
    MaxPriorityFeesPerGas,
    MaxFeesPerGas,
    TransactionGasLimits,
    Recipients,
    RecipientTable,
    ValueExponents,
    ValueMantissas,
    InputLengths,
    InputBytes,
    Signatures,
}

/// How many there are.
const COLUMNS: usize = Column::Signatures as usize + 1;
/// Bits of a byte of a varint that are the number's.
const VARINT_BITS: usize = 7;
const MORE: u8 = 0x80;
/// What [`DecodeError`] names: which column it is, its place in the list tells.
const FIELD: &str = "opened data";
const TABLE_INDEX: &str = "index of an address";

/// Columns that are written.
pub(super) struct Writer {
    columns: Vec<Vec<u8>>,
}

impl Writer {
    pub fn new() -> Self {
        Self { columns: vec![Vec::new(); COLUMNS] }
    }

    pub fn bytes(&mut self, column: Column, bytes: &[u8]) {
        if let Some(column) = self.columns.get_mut(column as usize) {
            column.extend_from_slice(bytes);
        }
    }

    /// A number, seven bits a byte, the lowest first, the last byte below 128.
    pub fn number(&mut self, column: Column, number: impl Into<u128>) {
        self.wide(column, U256::from(number.into()));
    }

    pub fn wide(&mut self, column: Column, mut number: U256) {
        loop {
            let low = number.as_limbs()[0] as u8 & !MORE;
            number >>= VARINT_BITS;
            if number.is_zero() {
                return self.bytes(column, &[low]);
            }
            self.bytes(column, &[low | MORE]);
        }
    }

    /// The lengths of all columns, and then their bytes.
    pub fn finish(mut self) -> Vec<u8> {
        let columns = std::mem::take(&mut self.columns);
        let mut lengths = Self { columns: vec![Vec::new()] };
        for column in &columns {
            lengths.number(Column::BatchItems, column.len() as u64);
        }
        let mut out = lengths.columns.concat();
        out.extend(columns.into_iter().flatten());
        out
    }
}

/// Columns that are read, each from its front.
pub(super) struct Reader<'a> {
    columns: [&'a [u8]; COLUMNS],
}

impl<'a> Reader<'a> {
    pub fn new(body: &'a [u8]) -> Result<Self, DecodeError> {
        let (mut rest, mut lengths) = (body, [0usize; COLUMNS]);
        for length in &mut lengths {
            let value = varint(&mut rest, usize::BITS as usize)?;
            *length = usize::try_from(value).unwrap_or(usize::MAX);
        }
        let mut columns = [&[][..]; COLUMNS];
        for (column, length) in columns.iter_mut().zip(lengths) {
            *column = take(&mut rest, length)?;
        }
        if rest.is_empty() { Ok(Self { columns }) } else { Err(DecodeError::Trailing(rest.len())) }
    }

    fn column(&mut self, column: Column) -> &mut &'a [u8] {
        // The array has a place for each variant.
        let [first, rest @ ..] = &mut self.columns;
        match (column as usize).checked_sub(1).and_then(|place| rest.get_mut(place)) {
            Some(column) => column,
            None => first,
        }
    }

    pub fn left(&mut self, column: Column) -> usize {
        self.column(column).len()
    }

    pub fn bytes(&mut self, column: Column, length: usize) -> Result<&'a [u8], DecodeError> {
        take(self.column(column), length)
    }

    pub fn array<const N: usize>(&mut self, column: Column) -> Result<[u8; N], DecodeError> {
        let mut out = [0; N];
        out.copy_from_slice(self.bytes(column, N)?);
        Ok(out)
    }

    pub fn byte(&mut self, column: Column) -> Result<u8, DecodeError> {
        self.array::<1>(column).map(|[byte]| byte)
    }

    pub fn u128(&mut self, column: Column) -> Result<u128, DecodeError> {
        Ok(varint(self.column(column), 128)?.to())
    }

    pub fn u64(&mut self, column: Column) -> Result<u64, DecodeError> {
        Ok(varint(self.column(column), 64)?.to())
    }

    pub fn wide(&mut self, column: Column) -> Result<U256, DecodeError> {
        varint(self.column(column), 256)
    }

    /// A number of bytes that stand in another column, and those.
    pub fn prefixed(&mut self, lengths: Column, bytes: Column) -> Result<&'a [u8], DecodeError> {
        let length = usize::try_from(self.u64(lengths)?).unwrap_or(usize::MAX);
        self.bytes(bytes, length)
    }

    /// Nothing may be left over.
    pub fn finish(self) -> Result<(), DecodeError> {
        let left: usize = self.columns.iter().map(|column| column.len()).sum();
        if left == 0 { Ok(()) } else { Err(DecodeError::Trailing(left)) }
    }
}

fn take<'a>(from: &mut &'a [u8], length: usize) -> Result<&'a [u8], DecodeError> {
    let left = from.len();
    let short = DecodeError::Short { field: FIELD, needed: length, left };
    let (head, rest) = from.split_at_checked(length).ok_or(short)?;
    *from = rest;
    Ok(head)
}

/// A number of at most so many bits.
fn varint(from: &mut &[u8], bits: usize) -> Result<U256, DecodeError> {
    let mut number = U256::ZERO;
    let mut shift = 0;
    loop {
        let [byte] = take(from, 1)? else { return Err(DecodeError::Trailing(0)) };
        let part = U256::from(byte & !MORE);
        let room = bits.saturating_sub(shift);
        if part.bit_len() > room {
            return Err(DecodeError::TooLarge { field: FIELD, got: u64::MAX, limit: bits as u64 });
        }
        if !part.is_zero() {
            number |= part << shift;
        }
        if byte & MORE == 0 {
            return Ok(number);
        }
        shift += VARINT_BITS;
        if shift > bits {
            return Err(DecodeError::TooLarge { field: FIELD, got: u64::MAX, limit: bits as u64 });
        }
    }
}

/// Addresses that were named before: 0 stands for a new one, which the table's column has next, n + 1 for the nth.
#[derive(Default)]
pub(super) struct KnownAddresses {
    places: BTreeMap<Address, u64>,
    known: Vec<Address>,
}

impl KnownAddresses {
    pub fn put(&mut self, out: &mut Writer, column: Column, table: Column, address: Address) {
        let next = self.places.len() as u64 + 1;
        match self.places.get(&address) {
            Some(place) => out.number(column, *place),
            None => {
                out.number(column, 0u64);
                out.bytes(table, address.as_slice());
                self.places.insert(address, next);
            }
        }
    }

    pub fn take(
        &mut self,
        from: &mut Reader<'_>,
        column: Column,
        table: Column,
    ) -> Result<Address, DecodeError> {
        let place = from.u64(column)?;
        let Some(index) = place.checked_sub(1) else {
            let address = Address::from(from.array::<20>(table)?);
            self.known.push(address);
            return Ok(address);
        };
        let known = usize::try_from(index).ok().and_then(|index| self.known.get(index)).copied();
        let limit = self.known.len() as u64;
        known.ok_or(DecodeError::TooLarge { field: TABLE_INDEX, got: place, limit })
    }
}

/// Numbers near another one: 0, -1, 1, -2, … as 0, 1, 2, 3, …
pub(super) const fn difference(from: u64, to: u64) -> u64 {
    let difference = to.wrapping_sub(from) as i64;
    ((difference << 1) ^ (difference >> 63)) as u64
}

/// The number that is so far away.
pub(super) const fn add_difference(from: u64, difference: u64) -> u64 {
    let signed = (difference >> 1) as i64 ^ -((difference & 1) as i64);
    from.wrapping_add(signed as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_differences_come_back() {
        let numbers = [0u128, 1, 127, 128, u64::MAX.into(), u128::MAX];
        let mut out = Writer::new();
        for number in numbers {
            out.number(Column::MaxFees, number);
        }
        out.wide(Column::ValueMantissas, U256::MAX);
        let body = out.finish();
        let mut from = Reader::new(&body).unwrap();
        for number in numbers {
            assert_eq!(from.u128(Column::MaxFees), Ok(number));
        }
        assert_eq!(from.wide(Column::ValueMantissas), Ok(U256::MAX));
        assert_eq!(from.finish(), Ok(()));
        for (from, to) in [(0, 0), (5, 4), (4, 5), (0, u64::MAX), (u64::MAX, 0), (7, 1 << 63)] {
            assert_eq!(add_difference(from, difference(from, to)), to);
        }
        assert_eq!([difference(9, 8), difference(9, 10)], [1, 2], "near is short");
    }

    #[test]
    fn a_number_that_does_not_fit_is_refused() {
        let mut out = Writer::new();
        out.number(Column::Nonces, 1u128 << 64);
        out.bytes(Column::MaxFees, &[0x80; 40]);
        out.bytes(Column::Generations, &[0xff]);
        let body = out.finish();
        let mut from = Reader::new(&body).unwrap();
        assert!(matches!(from.u64(Column::Nonces), Err(DecodeError::TooLarge { .. })));
        assert!(matches!(from.u128(Column::MaxFees), Err(DecodeError::TooLarge { .. })));
        assert!(matches!(from.u64(Column::Generations), Err(DecodeError::Short { .. })));
    }
}
