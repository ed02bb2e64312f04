//! Batch headers, alone and with their items.

use crate::codec::{Canonical, DecodeError, Reader, Writer, serde_as_hex};
use crate::eip712::{self, Deployment, struct_hash};
use crate::limits::{MAX_BATCH_ITEMS, MAX_ENVELOPE_BYTES, MAX_SEALED_BATCH_BYTES, MAX_SECOND_BYTES, VERSION};
use crate::signature::{SIGNATURE_BYTES, Signature65, SignatureError, SigningKey, recover};
use alloy_primitives::{Address, B256};

/// Length of an encoded [`BatchHeader`], in bytes.
pub const BATCH_HEADER_BYTES: usize = 259;

/// What the sequencer commits to for one batch. Nothing counts until a certificate names its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchHeader {
    /// Number of the batch; the first is 1.
    pub number: u64,
    /// Hash of the header before it, or the genesis hash.
    pub parent_hash: B256,
    /// Time of sealing, Unix milliseconds; strictly above the parent's.
    pub timestamp_ms: u64,
    /// The final L1 block whose deposits are counted in.
    pub l1_origin_number: u64,
    /// Hash of that L1 block.
    pub l1_origin_hash: B256,
    /// Timestamp of that L1 block, Unix seconds.
    pub l1_origin_time: u64,
    /// Merkle root over `id ‖ keccak256(item bytes) ‖ verdict code` of all items in order.
    pub envelope_root: B256,
    /// Commitment to the batch's data as they are posted on L1 ([`data`](crate::data)); zero for a
    /// header that L1 made, which does not have the items' bytes.
    pub data_hash: B256,
    /// Number of items, skipped ones included.
    pub envelope_count: u32,
    /// Sum of the lengths of all items, skipped ones included.
    pub envelope_bytes: u32,
    /// Sum of the gas limits of the accepted items and forced transactions.
    pub gas: u64,
    /// Ordering fee per item byte, in wei.
    pub base_fee: u128,
    /// Ordering fee per unit of gas that an envelope reserves, in wei.
    pub gas_base_fee: u128,
    /// Root of the fee ledger after this batch.
    pub fee_ledger_root: B256,
    /// Position in the L1 queue of forced items after this batch.
    pub forced_cursor: u64,
    /// Key epoch, a function of the number.
    pub epoch: u64,
    /// The rule set that the header obeys, a function of the number.
    pub rules: u16,
}

/// A header by number and hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderId {
    /// Batch number; 0 is the genesis.
    pub number: u64,
    /// Hash of the header, or the genesis hash.
    pub hash: B256,
}

impl BatchHeader {
    /// EIP-712 struct hash: the hash that certificates and the next header name (HS-2).
    pub fn hash(&self) -> B256 {
        struct_hash(&eip712::BatchHeader {
            version: VERSION,
            number: self.number,
            parentHash: self.parent_hash,
            timestampMs: self.timestamp_ms,
            l1OriginNumber: self.l1_origin_number,
            l1OriginHash: self.l1_origin_hash,
            l1OriginTime: self.l1_origin_time,
            envelopeRoot: self.envelope_root,
            dataHash: self.data_hash,
            envelopeCount: self.envelope_count,
            envelopeBytes: self.envelope_bytes,
            gas: self.gas,
            baseFee: self.base_fee,
            gasBaseFee: self.gas_base_fee,
            feeLedgerRoot: self.fee_ledger_root,
            forcedCursor: self.forced_cursor,
            epoch: self.epoch,
            rules: self.rules,
        })
    }

    /// What the sequencer signs: the digest of the hash in the deployment's domain.
    pub fn signing_digest(&self, deployment: &Deployment) -> B256 {
        deployment.digest(&self.hash())
    }

    /// The whole second this batch belongs to, and so the timestamp of its L2 block.
    pub fn second(&self) -> u64 {
        crate::block::block_second(self.timestamp_ms)
    }

    /// Signs the header as the sequencer.
    pub fn sign(self, key: &SigningKey, deployment: &Deployment) -> SignedHeader {
        SignedHeader { header: self, signature: key.sign(&self.signing_digest(deployment)) }
    }

    fn write(&self, out: &mut Writer) {
        out.u8(VERSION)
            .u64(self.number)
            .bytes(self.parent_hash.as_slice())
            .u64(self.timestamp_ms)
            .u64(self.l1_origin_number)
            .bytes(self.l1_origin_hash.as_slice())
            .u64(self.l1_origin_time)
            .bytes(self.envelope_root.as_slice())
            .bytes(self.data_hash.as_slice())
            .u32(self.envelope_count)
            .u32(self.envelope_bytes)
            .u64(self.gas)
            .u128(self.base_fee)
            .u128(self.gas_base_fee)
            .bytes(self.fee_ledger_root.as_slice())
            .u64(self.forced_cursor)
            .u64(self.epoch)
            .u16(self.rules);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.version()?;
        Ok(Self {
            number: reader.u64("number")?,
            parent_hash: reader.array("parent hash")?.into(),
            timestamp_ms: reader.u64("timestamp")?,
            l1_origin_number: reader.u64("L1 origin number")?,
            l1_origin_hash: reader.array("L1 origin hash")?.into(),
            l1_origin_time: reader.u64("L1 origin time")?,
            envelope_root: reader.array("envelope root")?.into(),
            data_hash: reader.array("data hash")?.into(),
            envelope_count: reader.u32("envelope count")?,
            envelope_bytes: reader.u32("envelope bytes")?,
            gas: reader.u64("gas")?,
            base_fee: reader.u128("base fee")?,
            gas_base_fee: reader.u128("gas base fee")?,
            fee_ledger_root: reader.array("fee ledger root")?.into(),
            forced_cursor: reader.u64("forced cursor")?,
            epoch: reader.u64("epoch")?,
            rules: reader.u16("rules")?,
        })
    }
}

impl Canonical for BatchHeader {
    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::with_capacity(BATCH_HEADER_BYTES);
        self.write(&mut out);
        out.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let header = Self::read(&mut reader)?;
        reader.finish()?;
        Ok(header)
    }
}

/// A header with the sequencer's signature: the evidence that it was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SignedHeader {
    /// The header that was signed.
    pub header: BatchHeader,
    /// The sequencer's signature over its digest.
    pub signature: Signature65,
}

impl SignedHeader {
    /// The address whose key signed; whether it is the sequencer's is for the caller to compare.
    pub fn signer(&self, deployment: &Deployment) -> Result<Address, SignatureError> {
        recover(&self.header.signing_digest(deployment), &self.signature)
    }
}

impl Canonical for SignedHeader {
    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::versioned(1 + BATCH_HEADER_BYTES + SIGNATURE_BYTES);
        self.header.write(&mut out);
        out.bytes(&self.signature.0);
        out.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::versioned(bytes)?;
        let header = BatchHeader::read(&mut reader)?;
        let signature = Signature65(reader.array("sequencer signature")?);
        reader.finish()?;
        Ok(Self { header, signature })
    }
}

/// A signed header with the bytes of its items: header, sequencer's signature, items.
///
/// Decoding bounds count and lengths; whether the items belong to the header is for the validity rule to say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SealedBatch {
    /// The header, which commits to the items.
    pub header: BatchHeader,
    /// The sequencer's signature over its digest; 65 zero bytes for a header that L1 made.
    pub signature: Signature65,
    /// Item bytes in committed order, as they were received.
    pub items: Vec<Vec<u8>>,
}

impl SealedBatch {
    /// The header with its signature, without the items.
    pub fn signed_header(&self) -> SignedHeader {
        SignedHeader { header: self.header, signature: self.signature }
    }

    /// A header that L1 made, with its items: nobody signed it.
    pub fn by_l1(header: BatchHeader, items: Vec<Vec<u8>>) -> Self {
        Self { header, signature: Signature65::NONE, items }
    }

    /// Whether this claims to be a header that L1 made. Only L1 can say whether it is.
    pub fn claims_l1(&self) -> bool {
        self.signature == Signature65::NONE
    }

    /// The items as slices, as the validity rule takes them.
    pub fn item_slices(&self) -> Vec<&[u8]> {
        self.items.iter().map(Vec::as_slice).collect()
    }
}

impl Canonical for SealedBatch {
    fn encode(&self) -> Vec<u8> {
        let size: usize = self.items.iter().map(|item| item.len() + 4).sum();
        let mut out = Writer::versioned(1 + BATCH_HEADER_BYTES + SIGNATURE_BYTES + 4 + size);
        self.header.write(&mut out);
        out.bytes(&self.signature.0).count(self.items.len());
        for item in &self.items {
            out.prefixed(item);
        }
        out.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() > MAX_SEALED_BATCH_BYTES {
            let limit = MAX_SEALED_BATCH_BYTES as u64;
            return Err(DecodeError::TooLarge { field: "sealed batch", got: bytes.len() as u64, limit });
        }
        let mut reader = Reader::versioned(bytes)?;
        let header = BatchHeader::read(&mut reader)?;
        let signature = Signature65(reader.array("sequencer signature")?);
        let count = reader.count("items", MAX_BATCH_ITEMS)?;
        // Every item takes at least its length prefix, so the reservation is bounded by the input.
        let mut items = Vec::with_capacity(count.min(reader.left() / 4));
        let mut total = 0u64;
        for _ in 0..count {
            let item = reader.prefixed("item", MAX_ENVELOPE_BYTES)?;
            total += item.len() as u64;
            if total > MAX_SECOND_BYTES {
                return Err(DecodeError::TooLarge {
                    field: "item bytes",
                    got: total,
                    limit: MAX_SECOND_BYTES,
                });
            }
            items.push(item.to_vec());
        }
        reader.finish()?;
        Ok(Self { header, signature, items })
    }
}

serde_as_hex!(BatchHeader, SignedHeader, SealedBatch);
