//! Tables as bytes: what [`Parameters::prepare`] computes for one domain, to be kept on disk by whoever has one.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `BFTABLES` |
//! | 1 | version, 1 |
//! | 32 | [`Parameters::hash`] |
//! | 1, 1 | log₂ M, c |
//! | c·M × 192 | the fixed side of the convolution in order \[coset\]\[bit-reversed frequency\]: affine, uncompressed |
//! | 32 | SHA-256(`BLINDFOLD-V1-TABLE` ‖ everything before) |
//!
//! The checksum finds damage, not malice: whoever can write the file can compute it. Points are checked to be on the
//! curve but not to be in the subgroup, which would cost what the file is to save. No more trust is needed: wrong
//! points make wrong cross-terms, under which ciphertexts fail the check of re-encryption and open as malformed;
//! they can make no ciphertext open to a wrong message. Keep the file where only the program writes.

use super::Parameters;
use crate::convolution::Shape;
use crate::curve::{G2_SERIALIZED_BYTES, G2Affine, PointError};
use crate::hash::sha256;
use crate::{par, tags};

const MAGIC: &[u8; 8] = b"BFTABLES";
const VERSION: u8 = 1;
const HEADER_BYTES: usize = 43;
const CHECKSUM_BYTES: usize = 32;

/// Why a table was refused. Compute it anew ([`Parameters::prepare`]) and replace the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// Does not start with the magic bytes of a table.
    #[error("not a table of public parameters")]
    Magic,
    /// A version this build does not read.
    #[error("table version {0} is not supported")]
    Version(u8),
    /// The table was computed from other parameters.
    #[error("the table belongs to other parameters")]
    Parameters,
    /// No batch under these parameters uses a domain of this shape.
    #[error("no batch uses a domain of {cosets} cosets of 2^{log_size} points")]
    Domain {
        /// log₂ M.
        log_size: u8,
        /// c.
        cosets: u8,
    },
    /// Not as long as its own header says.
    #[error("table should have {expected} bytes, has {actual}")]
    Length {
        /// Bytes that the header implies.
        expected: usize,
        /// How many bytes were given.
        actual: usize,
    },
    /// The checksum does not fit: the file is damaged.
    #[error("the table's checksum is wrong")]
    Checksum,
    /// A point is not one, although the checksum is right: not written by [`Parameters::export_table`].
    #[error("table point {index}: {source}")]
    Point {
        /// In file order from 0.
        index: usize,
        /// What is wrong with it.
        source: PointError,
    },
}

impl Parameters {
    /// How many points the table for batches of `batch` ciphertexts has, which names it among the tables of one key:
    /// 2·`batch`, `batch` rounded up to 2^k or 1.5·2^k. `None` outside 2..=B; a single ciphertext needs no table.
    pub fn table_points(&self, batch: usize) -> Option<usize> {
        self.table_shape(batch).map(Shape::points)
    }

    /// The table for batches of `batch` ciphertexts, computed now if it has not been; `None` outside 2..=B. 192 bytes
    /// for each of [`Parameters::table_points`].
    pub fn export_table(&self, batch: usize) -> Option<Vec<u8>> {
        let shape = self.table_shape(batch)?;
        let points = self.fixed_side(batch).points();
        let mut out = Vec::with_capacity(file_bytes(shape));
        out.extend_from_slice(MAGIC);
        out.push(VERSION);
        out.extend_from_slice(&self.hash());
        out.extend_from_slice(&[shape.log_size as u8, shape.cosets as u8]);
        for point in points {
            out.extend_from_slice(&point.serialize());
        }
        let checksum = checksum(&out);
        out.extend_from_slice(&checksum);
        Some(out)
    }

    /// Takes what [`Parameters::export_table`] gave, so that it need not be computed. Changes nothing if that table is
    /// there already. Costs a curve check for each point, and its Miller lines if memory allows them to be kept.
    ///
    /// Only damage is found, see the checksum: read no file that others can write. (If one does, ciphertexts that
    /// should open turn out malformed; none opens to anything wrong.)
    ///
    /// # Errors
    /// [`TableError`]: the file is at fault.
    pub fn import_table(&self, bytes: &[u8]) -> Result<(), TableError> {
        let short = TableError::Length { expected: HEADER_BYTES + CHECKSUM_BYTES, actual: bytes.len() };
        let (magic, rest) = bytes.split_first_chunk::<8>().ok_or(TableError::Magic)?;
        if magic != MAGIC {
            return Err(TableError::Magic);
        }
        let ([version], rest) = rest.split_first_chunk().ok_or(short)?;
        if *version != VERSION {
            return Err(TableError::Version(*version));
        }
        let (hash, rest) = rest.split_first_chunk::<32>().ok_or(short)?;
        if *hash != self.hash() {
            return Err(TableError::Parameters);
        }
        let ([log_size, cosets], rest) = rest.split_first_chunk().ok_or(short)?;
        let shape = self.used_shape(*log_size, *cosets)?;
        let expected = file_bytes(shape);
        if bytes.len() != expected {
            return Err(TableError::Length { expected, actual: bytes.len() });
        }
        let (content, found) = bytes.split_at(expected - CHECKSUM_BYTES);
        if checksum(content) != found {
            return Err(TableError::Checksum);
        }
        if self.known_fixed_side(shape).is_none() {
            self.keep_fixed_side(shape, decode_points(&rest[..shape.points() * G2_SERIALIZED_BYTES])?);
        }
        Ok(())
    }

    fn table_shape(&self, batch: usize) -> Option<Shape> {
        (2..=self.max_batch()).contains(&batch).then(|| Shape::for_batch(batch))
    }

    /// The shape with these numbers, if a batch under these parameters uses it.
    fn used_shape(&self, log_size: u8, cosets: u8) -> Result<Shape, TableError> {
        let refused = TableError::Domain { log_size, cosets };
        if u32::from(log_size) > usize::BITS / 2 || !(2..=3).contains(&cosets) {
            return Err(refused); // before anything is computed from them
        }
        let shape = Shape { log_size: u32::from(log_size), cosets: usize::from(cosets) };
        match self.table_shape(shape.capacity().min(self.max_batch())) {
            Some(used) if used == shape => Ok(shape),
            _ => Err(refused),
        }
    }
}

fn file_bytes(shape: Shape) -> usize {
    HEADER_BYTES + shape.points() * G2_SERIALIZED_BYTES + CHECKSUM_BYTES
}

fn checksum(content: &[u8]) -> [u8; 32] {
    sha256(&[tags::TABLE, content])
}

fn decode_points(bytes: &[u8]) -> Result<Vec<G2Affine>, TableError> {
    let (chunks, _) = bytes.as_chunks::<G2_SERIALIZED_BYTES>();
    let points = par::map(chunks.len(), |i| G2Affine::deserialize(&chunks[i]));
    let numbered = points.into_iter().enumerate();
    numbered.map(|(index, point)| point.map_err(|source| TableError::Point { index, source })).collect()
}
