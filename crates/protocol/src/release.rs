//! What opens a batch: members' shares, the combined release, singleton shares, and the published hints.
//!
//! Points are carried as bytes; `blindfold-bte` decodes and checks them.

use crate::codec::{Canonical, DecodeError, Reader, Writer, serde_as_hex};
use crate::limits::MAX_BATCH_ITEMS;
use crate::messages::G1_BYTES;
use alloy_primitives::B256;
use blindfold_bte::{BLINDING_BYTES, Blinding};
use std::fmt;

/// Length of a session key, in bytes.
pub const KEY_BYTES: usize = 16;

const SKIPPED_TAG: u8 = 0;
const KEY_TAG: u8 = 1;
const MALFORMED_TAG: u8 = 2;

/// One member's share of the release, one point per sub-batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReleaseShare {
    /// Number of the batch that it helps to open.
    pub number: u64,
    /// Hash of the certified header.
    pub header_hash: B256,
    /// Index of the member, from 1.
    pub member: u16,
    /// `pd_j` of each sub-batch in order.
    pub pds: Vec<[u8; G1_BYTES]>,
}

impl Canonical for ReleaseShare {
    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::versioned(47 + self.pds.len() * G1_BYTES);
        out.u64(self.number).bytes(self.header_hash.as_slice()).u16(self.member);
        write_points(&mut out, &self.pds);
        out.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::versioned(bytes)?;
        let share = Self {
            number: reader.u64("number")?,
            header_hash: reader.array("header hash")?.into(),
            member: reader.u16("member")?,
            pds: read_points(&mut reader)?,
        };
        reader.finish()?;
        Ok(share)
    }
}

/// The combined release of a batch, one 48-byte point per sub-batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Release {
    /// Number of the batch that it opens.
    pub number: u64,
    /// Hash of the certified header.
    pub header_hash: B256,
    /// `pd` of each sub-batch in order.
    pub pds: Vec<[u8; G1_BYTES]>,
}

impl Canonical for Release {
    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::versioned(45 + self.pds.len() * G1_BYTES);
        out.u64(self.number).bytes(self.header_hash.as_slice());
        write_points(&mut out, &self.pds);
        out.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::versioned(bytes)?;
        let release = Self {
            number: reader.u64("number")?,
            header_hash: reader.array("header hash")?.into(),
            pds: read_points(&mut reader)?,
        };
        reader.finish()?;
        Ok(release)
    }
}

/// One member's share of the singleton release of one malformed item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SingletonShare {
    /// Number of the batch that the item stands in.
    pub number: u64,
    /// Hash of the certified header.
    pub header_hash: B256,
    /// Index of the item in the batch, from 0, skipped items counted.
    pub index: u32,
    /// Index of the member, from 1.
    pub member: u16,
    /// The member's part `σ_j^1 · C`, compressed.
    pub share: [u8; G1_BYTES],
}

impl Canonical for SingletonShare {
    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::versioned(95);
        out.u64(self.number)
            .bytes(self.header_hash.as_slice())
            .u32(self.index)
            .u16(self.member)
            .bytes(&self.share);
        out.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::versioned(bytes)?;
        let share = Self {
            number: reader.u64("number")?,
            header_hash: reader.array("header hash")?.into(),
            index: reader.u32("index")?,
            member: reader.u16("member")?,
            share: reader.array("share")?,
        };
        reader.finish()?;
        Ok(share)
    }
}

/// The hint of one item.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum HintEntry {
    /// The item was skipped by the validity rule and has no position.
    Skipped,
    /// The session key: re-encryption with it gives back the ciphertext.
    Key([u8; KEY_BYTES]),
    /// The ciphertext is malformed; its singleton release proves it.
    Malformed([u8; G1_BYTES]),
}

impl fmt::Debug for HintEntry {
    // A key opens an envelope: it is public once published, and stays out of logs before and after.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Skipped => "Skipped",
            Self::Key(_) => "Key(redacted)",
            Self::Malformed(_) => "Malformed(..)",
        })
    }
}

/// The hints of a batch, one per item: skipped, a 16-byte key, or a 48-byte singleton release; after them the 288-byte
/// blinding factors of all singleton releases, or none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BatchHints {
    /// Number of the batch that they open.
    pub number: u64,
    /// Hash of the certified header.
    pub header_hash: B256,
    /// One entry per item in committed order.
    pub entries: Vec<HintEntry>,
    /// The blinding factor of each malformed entry in order, or none at all. They change nothing of what the hints say;
    /// with them a batch of many malformed items is verified several times as fast.
    pub blindings: Vec<Blinding>,
}

impl BatchHints {
    /// Most bytes of an encoding: every item malformed, every blinding factor stated.
    pub const MAX_BYTES: usize = 45 + MAX_BATCH_ITEMS * (1 + G1_BYTES + BLINDING_BYTES);

    /// Whether both say the same of the same header, whatever is stated beside it.
    pub fn says_the_same(&self, other: &Self) -> bool {
        (self.number, self.header_hash) == (other.number, other.header_hash) && self.entries == other.entries
    }
}

impl Canonical for BatchHints {
    fn encode(&self) -> Vec<u8> {
        let blindings = self.blindings.len() * BLINDING_BYTES;
        let mut out = Writer::versioned(45 + self.entries.len() * (1 + KEY_BYTES) + blindings);
        out.u64(self.number).bytes(self.header_hash.as_slice()).count(self.entries.len());
        for entry in &self.entries {
            match entry {
                HintEntry::Skipped => out.u8(SKIPPED_TAG),
                HintEntry::Key(key) => out.u8(KEY_TAG).bytes(key),
                HintEntry::Malformed(pd) => out.u8(MALFORMED_TAG).bytes(pd),
            };
        }
        for blinding in &self.blindings {
            out.bytes(blinding.as_bytes());
        }
        out.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::versioned(bytes)?;
        let number = reader.u64("number")?;
        let header_hash = reader.array("header hash")?.into();
        let count = reader.count("hints", MAX_BATCH_ITEMS)?;
        let mut entries = Vec::with_capacity(count.min(reader.left()));
        for _ in 0..count {
            entries.push(match reader.u8("hint")? {
                SKIPPED_TAG => HintEntry::Skipped,
                KEY_TAG => HintEntry::Key(reader.array("session key")?),
                MALFORMED_TAG => HintEntry::Malformed(reader.array("singleton release")?),
                value => return Err(DecodeError::UnknownTag { field: "hint", value }),
            });
        }
        // What is left is one for each malformed entry, or nothing.
        let malformed = entries.iter().filter(|entry| matches!(entry, HintEntry::Malformed(_))).count();
        let stated = if reader.left() == 0 { 0 } else { malformed };
        let mut blindings = Vec::with_capacity(stated.min(reader.left() / BLINDING_BYTES));
        for _ in 0..stated {
            blindings.push(Blinding::from_bytes(reader.array("blinding factor")?));
        }
        reader.finish()?;
        Ok(Self { number, header_hash, entries, blindings })
    }
}

fn write_points(out: &mut Writer, points: &[[u8; G1_BYTES]]) {
    out.count(points.len());
    for point in points {
        out.bytes(point);
    }
}

/// A batch has at most as many sub-batches as items.
fn read_points(reader: &mut Reader<'_>) -> Result<Vec<[u8; G1_BYTES]>, DecodeError> {
    let count = reader.count("sub-batches", MAX_BATCH_ITEMS)?;
    let mut points = Vec::with_capacity(count.min(reader.left() / G1_BYTES));
    for _ in 0..count {
        points.push(reader.array("point")?);
    }
    Ok(points)
}

serde_as_hex!(ReleaseShare, Release, SingletonShare, BatchHints);
