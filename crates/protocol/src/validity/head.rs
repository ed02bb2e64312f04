//! The little of the last header that the next one depends on.

use crate::codec::{Canonical, DecodeError, Reader, Writer, serde_as_hex};
use crate::config::ChainConfig;
use alloy_primitives::B256;

/// The last header, as far as the next one depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Head {
    /// Number of the last header; 0 is genesis.
    pub number: u64,
    /// Hash of the header, or the genesis hash.
    pub hash: B256,
    /// Time of the last header, in Unix milliseconds.
    pub timestamp_ms: u64,
    /// Number of the L1 origin.
    pub l1_origin: u64,
    /// Hash of the L1 origin; zero for genesis, whose origin no header names.
    pub l1_origin_hash: B256,
    /// Timestamp of the L1 origin, Unix seconds; zero for genesis.
    pub l1_origin_time: u64,
    /// Base fee of the header, in wei per item byte.
    pub base_fee: u128,
    /// Gas base fee of the header, in wei per unit of gas.
    pub gas_base_fee: u128,
    /// Gas of all batches of the header's second so far.
    pub second_gas: u64,
    /// Item bytes of all batches of the header's second so far, skipped items included.
    pub second_bytes: u64,
    /// Of these the bytes of accepted envelopes and forced transactions, which the base fee follows.
    pub second_load_bytes: u64,
    /// Cursor of the forced queue.
    pub forced_cursor: u64,
    /// The L1 block that made the header; 0 for one that L1 did not make. The next header's origin is not older.
    pub made_at: u64,
    /// The chain's generation: the headers up to this one that L1 made, modulo 65,536.
    pub generation: u16,
}

impl Head {
    /// The head before the first header.
    pub fn genesis(config: &ChainConfig) -> Self {
        Self {
            number: 0,
            hash: config.deployment.genesis_hash(),
            timestamp_ms: 0,
            l1_origin: config.genesis_l1_origin,
            l1_origin_hash: B256::ZERO,
            l1_origin_time: 0,
            base_fee: config.initial_base_fee,
            gas_base_fee: config.initial_gas_base_fee,
            second_gas: 0,
            second_bytes: 0,
            second_load_bytes: 0,
            forced_cursor: 0,
            made_at: 0,
            generation: 0,
        }
    }
}

/// version · number u64 · hash 32 · timestampMs u64 · l1Origin u64 · l1OriginHash 32 · l1OriginTime u64 · baseFee u128 ·
/// gasBaseFee u128 · secondGas u64 · secondBytes u64 · secondLoadBytes u64 · forcedCursor u64 · madeAt u64 ·
/// generation u16.
impl Canonical for Head {
    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::versioned(171);
        out.u64(self.number)
            .bytes(self.hash.as_slice())
            .u64(self.timestamp_ms)
            .u64(self.l1_origin)
            .bytes(self.l1_origin_hash.as_slice())
            .u64(self.l1_origin_time)
            .u128(self.base_fee)
            .u128(self.gas_base_fee)
            .u64(self.second_gas)
            .u64(self.second_bytes)
            .u64(self.second_load_bytes)
            .u64(self.forced_cursor)
            .u64(self.made_at)
            .u16(self.generation);
        out.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::versioned(bytes)?;
        let head = Self {
            number: reader.u64("number")?,
            hash: reader.array("hash")?.into(),
            timestamp_ms: reader.u64("timestamp")?,
            l1_origin: reader.u64("L1 origin")?,
            l1_origin_hash: reader.array("L1 origin hash")?.into(),
            l1_origin_time: reader.u64("L1 origin time")?,
            base_fee: reader.u128("base fee")?,
            gas_base_fee: reader.u128("gas base fee")?,
            second_gas: reader.u64("second gas")?,
            second_bytes: reader.u64("second bytes")?,
            second_load_bytes: reader.u64("second load bytes")?,
            forced_cursor: reader.u64("forced cursor")?,
            made_at: reader.u64("L1 block that made it")?,
            generation: reader.u16("generation")?,
        };
        reader.finish()?;
        Ok(head)
    }
}

serde_as_hex!(Head);
