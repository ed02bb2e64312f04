//! The one binary encoding: big-endian fixed-width integers, `u32` counts and lengths, a version byte in front.
//!
//! Decoding is strict. A decoder consumes its input exactly, refuses counts and lengths above their limit before it
//! reserves memory for them, and accepts only bytes that encoding gives back again.

use crate::limits::VERSION;

/// Why bytes are not an encoding of the asked structure. Always the fault of whoever made the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The input ends inside a field.
    #[error("{field}: {needed} bytes needed, {left} left")]
    Short {
        /// The field at which the input ends.
        field: &'static str,
        /// Bytes that the field takes.
        needed: usize,
        /// Bytes that the input still has.
        left: usize,
    },
    /// Bytes remain after the last field.
    #[error("{0} bytes left over after the last field")]
    Trailing(usize),
    /// The version byte is not the one this code speaks.
    #[error("version {0} is not known (this program speaks protocol version {VERSION} only)")]
    Version(u8),
    /// A count or length is above its limit.
    #[error("{field}: {got} is above the limit {limit}")]
    TooLarge {
        /// The count or length being read.
        field: &'static str,
        /// The count or length that the input claims.
        got: u64,
        /// The most that is allowed.
        limit: u64,
    },
    /// A tag byte has no meaning.
    #[error("{field}: {value} has no meaning")]
    UnknownTag {
        /// The field whose tag it is.
        field: &'static str,
        /// The byte that was found.
        value: u8,
    },
    /// Compressed bytes are no frame of the format, or not of what they claim to hold.
    #[error("the compressed bytes are no zstd frame of the length that they name")]
    Compressed,
    /// Text is not `0x` and an even number of lower-case hexadecimal digits.
    #[error("not 0x and lower-case hexadecimal digits in pairs")]
    Hex,
}

/// A structure with exactly one encoding (EN-1, EN-2).
pub trait Canonical: Sized {
    /// The one encoding, with the version byte first where the structure has one.
    fn encode(&self) -> Vec<u8>;

    /// Reads the encoding; the input must be consumed exactly.
    fn decode(bytes: &[u8]) -> Result<Self, DecodeError>;

    /// The encoding as lower-case `0x`-hex, the form it has in JSON (EN-3).
    fn to_hex(&self) -> String {
        alloy_primitives::hex::encode_prefixed(self.encode())
    }

    /// Reads what [`to_hex`](Self::to_hex) writes; upper-case digits are refused.
    fn from_hex(text: &str) -> Result<Self, DecodeError> {
        let digits = text.strip_prefix("0x").ok_or(DecodeError::Hex)?;
        if digits.bytes().any(|b| b.is_ascii_uppercase()) {
            return Err(DecodeError::Hex);
        }
        // `decode` would strip a second prefix; digits cannot contain an 'x'.
        if digits.contains('x') {
            return Err(DecodeError::Hex);
        }
        let bytes = alloy_primitives::hex::decode(digits).map_err(|_| DecodeError::Hex)?;
        Self::decode(&bytes)
    }
}

/// Serde adapter: `#[serde(with = "blindfold_protocol::hex_canonical")]` writes a [`Canonical`] value as `0x`-hex.
pub mod hex_canonical {
    use super::Canonical;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes the value as `0x`-hex.
    pub fn serialize<T: Canonical, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&value.to_hex())
    }

    /// Reads the value from `0x`-hex.
    pub fn deserialize<'de, T: Canonical, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        T::from_hex(&text).map_err(D::Error::custom)
    }

    /// The same for `Option<T>`; absent fields also need `#[serde(default)]`.
    pub mod option {
        use super::super::Canonical;
        use serde::{Deserialize, Deserializer, Serializer, de::Error};

        /// Writes `null` or the value as `0x`-hex.
        pub fn serialize<T: Canonical, S: Serializer>(
            value: &Option<T>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            match value {
                Some(value) => serializer.serialize_str(&value.to_hex()),
                None => serializer.serialize_none(),
            }
        }

        /// Reads `null` or the value from `0x`-hex.
        pub fn deserialize<'de, T: Canonical, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<T>, D::Error> {
            let text = Option::<String>::deserialize(deserializer)?;
            text.map(|text| T::from_hex(&text).map_err(D::Error::custom)).transpose()
        }
    }
}

/// Gives a [`Canonical`] type its serde form, `0x`-hex.
macro_rules! serde_as_hex {
    ($($name:ty),+ $(,)?) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::codec::hex_canonical::serialize(self, serializer)
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::codec::hex_canonical::deserialize(deserializer)
            }
        }
    )+};
}
pub(crate) use serde_as_hex;

/// Appends fields to an encoding.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Starts with the version byte.
    pub fn versioned(capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(capacity);
        bytes.push(VERSION);
        Self(bytes)
    }

    /// Starts empty, with room for so many bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }

    /// Appends bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Appends a byte.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    /// Appends two bytes.
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    /// Appends four bytes.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    /// Appends eight bytes.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    /// Appends sixteen bytes.
    pub fn u128(&mut self, value: u128) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    /// A `u32` count. A list longer than that cannot be built from decoded or limited parts.
    pub fn count(&mut self, count: usize) -> &mut Self {
        assert!(u32::try_from(count).is_ok(), "a list of {count} entries has no encoding");
        self.u32(count as u32)
    }

    /// A `u32` length and the bytes.
    pub fn prefixed(&mut self, bytes: &[u8]) -> &mut Self {
        self.count(bytes.len()).bytes(bytes)
    }

    /// The encoding.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads fields from an encoding.
#[derive(Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads from these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Reads and checks the version byte.
    pub fn versioned(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Self(bytes);
        reader.version()?;
        Ok(reader)
    }

    /// Reads and checks the version byte.
    pub fn version(&mut self) -> Result<(), DecodeError> {
        match self.u8("version")? {
            VERSION => Ok(()),
            other => Err(DecodeError::Version(other)),
        }
    }

    /// The next bytes, `needed` of them.
    pub fn take(&mut self, field: &'static str, needed: usize) -> Result<&'a [u8], DecodeError> {
        match self.0.split_at_checked(needed) {
            Some((head, rest)) => {
                self.0 = rest;
                Ok(head)
            }
            None => Err(DecodeError::Short { field, needed, left: self.0.len() }),
        }
    }

    /// The next bytes, as many as the array has.
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let mut out = [0u8; N];
        out.copy_from_slice(self.take(field, N)?);
        Ok(out)
    }

    /// A byte.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        Ok(u8::from_be_bytes(self.array(field)?))
    }

    /// Two bytes.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        Ok(u16::from_be_bytes(self.array(field)?))
    }

    /// Four bytes.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.array(field)?))
    }

    /// Eight bytes.
    pub fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        Ok(u64::from_be_bytes(self.array(field)?))
    }

    /// Sixteen bytes.
    pub fn u128(&mut self, field: &'static str) -> Result<u128, DecodeError> {
        Ok(u128::from_be_bytes(self.array(field)?))
    }

    /// A `u32` count or length of at most `limit`.
    pub fn count(&mut self, field: &'static str, limit: usize) -> Result<usize, DecodeError> {
        let got = self.u32(field)?;
        if got as usize > limit {
            return Err(DecodeError::TooLarge { field, got: u64::from(got), limit: limit as u64 });
        }
        Ok(got as usize)
    }

    /// A `u32` length of at most `limit`, and that many bytes.
    pub fn prefixed(&mut self, field: &'static str, limit: usize) -> Result<&'a [u8], DecodeError> {
        let length = self.count(field, limit)?;
        self.take(field, length)
    }

    /// Bytes that are not read yet.
    pub fn left(&self) -> usize {
        self.0.len()
    }

    /// Refuses bytes that are left over.
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.0.len() {
            0 => Ok(()),
            left => Err(DecodeError::Trailing(left)),
        }
    }
}
