//! Data that L1 only names (`RunData` of kind 3 of docs/protocol.md): its hash and length. The bytes, a `RunData` of another
//! kind or a part of one, are in archives.

use alloy_primitives::hex;
use blindfold_protocol::{B256, Canonical, DecodeError, data::KIND_ARCHIVED, limits::VERSION};
use sha2::{Digest, Sha256};

use crate::posting::run_data::{MAX_POSTER_PART_BYTES, Reader, put_length};

/// The longest data that is archived at once, in bytes: what readers keep of other data while it is not complete.
pub const MAX_ARCHIVED_BYTES: usize = MAX_POSTER_PART_BYTES;

/// Version, kind, hash and length.
const REFERENCE_BYTES: usize = 1 + 1 + 32 + 4;

/// What L1 says of archived data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArchivedData {
    /// SHA-256 of the bytes, by which archives name them.
    pub hash: B256,
    /// How many there are.
    pub length: u32,
}

impl ArchivedData {
    /// Of these bytes.
    ///
    /// # Errors
    /// [`DecodeError::TooLarge`] for more than [`MAX_ARCHIVED_BYTES`].
    pub fn of(data: &[u8]) -> Result<Self, DecodeError> {
        let (got, limit) = (data.len() as u64, MAX_ARCHIVED_BYTES as u64);
        let length = u32::try_from(data.len()).ok().filter(|_| got <= limit);
        let length = length.ok_or(DecodeError::TooLarge { field: "archived data", got, limit })?;
        Ok(Self { hash: sha256(data), length })
    }

    /// Whether these are the bytes.
    pub fn names(&self, data: &[u8]) -> bool {
        data.len() as u64 == u64::from(self.length) && sha256(data) == self.hash
    }

    /// Where an archive has them, below its URL.
    pub fn path(&self) -> String {
        format!("/data/{}", hex::encode(self.hash))
    }

    /// Whether posted bytes only name data. Parts of data, which begin with a number, are longer.
    pub(crate) fn is_named_by(posted: &[u8]) -> bool {
        posted.len() == REFERENCE_BYTES && posted.starts_with(&[VERSION, KIND_ARCHIVED])
    }
}

fn sha256(data: &[u8]) -> B256 {
    B256::new(Sha256::digest(data).into())
}

impl Canonical for ArchivedData {
    fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, KIND_ARCHIVED];
        out.extend_from_slice(self.hash.as_slice());
        put_length(&mut out, self.length as usize);
        out
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader(bytes);
        reader.version()?;
        match reader.array("kind of data")? {
            [KIND_ARCHIVED] => {}
            [value] => return Err(DecodeError::UnknownTag { field: "kind of data", value }),
        }
        let hash = B256::new(reader.array("hash")?);
        let length = reader.length("archived data", MAX_ARCHIVED_BYTES)? as u32;
        reader.finish()?;
        Ok(Self { hash, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_names_its_bytes_and_no_others() {
        let archived = ArchivedData::of(b"some data").unwrap();
        assert_eq!(archived.path(), "/data/1307990e6ba5ca145eb35e99182a9bec46531bc54ddf656a602c780fa0240dee");
        assert!(archived.names(b"some data"));
        assert!(!archived.names(b"some dat4") && !archived.names(b"some data ") && !archived.names(b""));
        let encoded = archived.encode();
        assert_eq!(encoded.len(), REFERENCE_BYTES);
        assert!(ArchivedData::is_named_by(&encoded));
        assert_eq!(ArchivedData::decode(&encoded), Ok(archived));
        for length in 0..encoded.len() {
            assert!(ArchivedData::decode(&encoded[..length]).is_err());
        }
        assert_eq!(ArchivedData::decode(&[encoded.as_slice(), &[0]].concat()), Err(DecodeError::Trailing(1)));
        let kind = |kind| [&[encoded[0], kind], &encoded[2..]].concat();
        let unknown = DecodeError::UnknownTag { field: "kind of data", value: 1 };
        assert_eq!(ArchivedData::decode(&kind(1)), Err(unknown));
    }

    #[test]
    fn nothing_is_archived_that_readers_do_not_take() {
        assert!(ArchivedData::of(&vec![0; MAX_ARCHIVED_BYTES]).is_ok());
        let long = ArchivedData::of(&vec![0; MAX_ARCHIVED_BYTES + 1]);
        assert!(matches!(long, Err(DecodeError::TooLarge { field: "archived data", .. })));
        let mut encoded = ArchivedData { hash: B256::ZERO, length: 0 }.encode();
        encoded[34..].copy_from_slice(&(MAX_ARCHIVED_BYTES as u32 + 1).to_be_bytes());
        assert!(matches!(ArchivedData::decode(&encoded), Err(DecodeError::TooLarge { .. })));
    }
}
