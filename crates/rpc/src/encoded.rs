//! Hex in JSON: structures in their one binary encoding, and wei quantities.

use std::{fmt, marker::PhantomData};

use alloy_primitives::Bytes;
use blindfold_protocol::{
    Acknowledgement, BatchHeader, BatchHints, Certificate, CertifiedBatch, DataAttestation, Promise, Release,
    ReleaseShare, SealedBatch, SignedHeader, SingletonShare,
    codec::{Canonical, DecodeError},
    limits::{MAX_ENVELOPE_BYTES, MAX_SEALED_BATCH_BYTES},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::RpcError;

const KIB: usize = 1 << 10;

/// A structure that travels as hex, with a bound on what a peer may send for it. The bound keeps hostile input from
/// being decoded at all; the decoder checks the exact form.
pub trait Wire {
    /// Name of the structure, for error messages.
    const NAME: &'static str;
    /// Length of the longest encoding, in bytes.
    const MAX_BYTES: usize;
}

/// An envelope as it was sent.
///
/// It stays bytes: the sequencer stores and hashes exactly these, and names the fault of bytes that are no envelope
/// itself. `Encoded::from_bytes(envelope.encode())` makes one, `Envelope::decode(encoded.bytes())` reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawEnvelope {}

macro_rules! wire {
    ($($structure:ident: $max:expr),* $(,)?) => {$(
        impl Wire for $structure {
            const NAME: &'static str = stringify!($structure);
            const MAX_BYTES: usize = $max;
        }
    )*};
}

wire! {
    // A little more than any envelope, so that the sequencer itself names one that is too large.
    RawEnvelope: MAX_ENVELOPE_BYTES + KIB,
    SealedBatch: MAX_SEALED_BATCH_BYTES,
    CertifiedBatch: MAX_SEALED_BATCH_BYTES + KIB,
    BatchHeader: KIB,
    SignedHeader: KIB,
    Promise: KIB,
    Acknowledgement: KIB,
    Certificate: KIB,
    DataAttestation: KIB,
    // 48 bytes for each sub-batch, of which there are at most as many as items (4,096).
    Release: 200 * KIB,
    ReleaseShare: 200 * KIB,
    SingletonShare: KIB,
    // At most 49 bytes for each of 4,096 items, and 288 where its blinding factor is stated.
    BatchHints: BatchHints::MAX_BYTES,
}

/// A structure in its binary encoding, `0x`-hex in JSON. Length and hex are checked on arrival; decoding is left to
/// [`Encoded::decode`], so that a server can hand on what it stores without decoding it and can name the fault.
pub struct Encoded<T> {
    bytes: Bytes,
    structure: PhantomData<fn() -> T>,
}

impl<T: Wire + Canonical> Encoded<T> {
    /// Wraps the encoding of a structure.
    pub fn new(structure: &T) -> Self {
        Self { bytes: structure.encode().into(), structure: PhantomData }
    }

    /// Decodes the structure, as strictly as everywhere.
    pub fn decode(&self) -> Result<T, DecodeError> {
        T::decode(&self.bytes)
    }

    /// Decodes a parameter: a fault becomes `-32602` with reason `undecodable`.
    pub fn decode_param(&self) -> Result<T, RpcError> {
        self.decode()
            .map_err(|fault| RpcError::invalid_params("undecodable", format!("{}: {fault}", T::NAME)))
    }
}

impl<T> Encoded<T> {
    /// Takes an encoding from a trusted place (the own store); nothing is checked.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), structure: PhantomData }
    }

    /// The encoding, unchecked where it came from a peer.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The encoding itself, unchecked where it came from a peer.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }
}

impl<T> Clone for Encoded<T> {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), structure: PhantomData }
    }
}

impl<T> PartialEq for Encoded<T> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<T> Eq for Encoded<T> {}

impl<T> fmt::Debug for Encoded<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Encoded({} bytes)", self.bytes.len())
    }
}

impl<T: Wire + Canonical> From<&T> for Encoded<T> {
    fn from(structure: &T) -> Self {
        Self::new(structure)
    }
}

impl<T> Serialize for Encoded<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&alloy_primitives::hex::encode_prefixed(&self.bytes))
    }
}

impl<'de, T: Wire> Deserialize<'de> for Encoded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(PhantomData<fn() -> T>);

        impl<T: Wire> de::Visitor<'_> for Visitor<T> {
            type Value = Encoded<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "a {} as 0x-hex of at most {} bytes", T::NAME, T::MAX_BYTES)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Encoded<T>, E> {
                let digits =
                    text.strip_prefix("0x").ok_or_else(|| E::custom(format!("{}: no 0x", T::NAME)))?;
                if digits.len() > 2 * T::MAX_BYTES {
                    let (given, max) = (digits.len() / 2, T::MAX_BYTES);
                    return Err(E::custom(format!("{}: {given} bytes, at most {max} allowed", T::NAME)));
                }
                // One form only, so that equal structures are equal text. A batch has megabytes of digits: pieces without a
                // branch for each are compared many digits at a time.
                let is_digit = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
                let are_digits = |piece: &[u8]| piece.iter().fold(true, |all, digit| all & is_digit(digit));
                if !digits.as_bytes().chunks(64).all(are_digits) {
                    return Err(E::custom(format!("{}: not lower-case hex", T::NAME)));
                }
                let bytes = alloy_primitives::hex::decode(digits)
                    .map_err(|fault| E::custom(format!("{}: not hex: {fault}", T::NAME)))?;
                Ok(Encoded { bytes: bytes.into(), structure: PhantomData })
            }
        }

        deserializer.deserialize_str(Visitor(PhantomData))
    }
}

/// `#[serde(with)]`: a `u128` as a JSON-RPC quantity (`0x0`, no leading zeros, lower or upper case digits).
pub mod quantity {
    use super::*;

    /// Writes the amount as `0x` and hexadecimal digits.
    pub fn serialize<S: Serializer>(value: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{value:#x}"))
    }

    /// Reads an amount from `0x` and hexadecimal digits.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = u128;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a 0x quantity of at most 128 bits")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<u128, E> {
                parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_str(Visitor)
    }

    fn parse(text: &str) -> Option<u128> {
        let digits = text.strip_prefix("0x")?;
        let canonical = digits == "0" || !digits.starts_with('0');
        let hex = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        // from_str_radix would also take a sign, which `hex` excludes.
        if canonical && hex { u128::from_str_radix(digits, 16).ok() } else { None }
    }
}
