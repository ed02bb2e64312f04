//! Envelopes: a header in the clear, a ciphertext, its proof, and the fee payer's signature.

use crate::codec::{Canonical, DecodeError, Reader, Writer, serde_as_hex};
use crate::eip712::{self, Deployment};
use crate::expiry::Expiry;
use crate::limits::{ENVELOPE_OVERHEAD_BYTES, MAX_ENVELOPE_BYTES, MAX_MESSAGE_BYTES, VERSION};
use crate::signature::{Signature65, SignatureError, SigningKey, recover};
use alloy_primitives::{Address, B256};
use blindfold_bte::{Ciphertext, Proof};
use sha2::{Digest, Sha256};

/// Length of an encoded [`EnvelopeHeader`], in bytes.
pub const ENVELOPE_HEADER_BYTES: usize = 170;

/// What everyone may see of an envelope. Its hash is the ciphertext's associated data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EnvelopeHeader {
    /// Chain id of the rollup.
    pub chain_id: u64,
    /// L1 chain id and `BlindedInbox`.
    pub deployment: Deployment,
    /// Key epoch the envelope is encrypted for.
    pub epoch: u64,
    /// SHA-256 of that epoch's encryption key.
    pub encryption_key_hash: B256,
    /// Who pays the ordering fee; need not be the sender of anything inside.
    pub payer: Address,
    /// Random number, used once by this payer until the expiry. Not ordered.
    pub fee_nonce: u64,
    /// Most the payer gives per item byte, in wei.
    pub max_fee: u128,
    /// What the payer gives above the base fee per item byte, in wei.
    pub priority_fee: u128,
    /// Most the payer gives per unit of gas that the envelope reserves, in wei.
    pub max_gas_fee: u128,
    /// Sum of the inner transactions' gas limits that may run.
    pub gas_limit: u64,
    /// The last batch number that may hold the envelope, and the generation that the batch has to be of.
    pub expiry: Expiry,
    /// What the rule set may add to an envelope; rule set 1 knows none, so 0.
    pub flags: u8,
}

impl EnvelopeHeader {
    /// EIP-712 struct hash: the associated data `ad` of the ciphertext.
    pub fn hash(&self) -> B256 {
        eip712::envelope_header_hash(&self.to_eip712())
    }

    fn to_eip712(self) -> eip712::EnvelopeHeader {
        eip712::EnvelopeHeader {
            version: VERSION,
            chainId: self.chain_id,
            l1ChainId: self.deployment.l1_chain_id,
            inbox: self.deployment.inbox,
            epoch: self.epoch,
            encryptionKeyHash: self.encryption_key_hash,
            payer: self.payer,
            feeNonce: self.fee_nonce,
            maxFee: self.max_fee,
            priorityFee: self.priority_fee,
            maxGasFee: self.max_gas_fee,
            gasLimit: self.gas_limit,
            expiry: self.expiry.to_u64(),
            flags: self.flags,
        }
    }

    fn write(&self, out: &mut Writer) {
        out.u8(VERSION)
            .u64(self.chain_id)
            .u64(self.deployment.l1_chain_id)
            .bytes(self.deployment.inbox.as_slice())
            .u64(self.epoch)
            .bytes(self.encryption_key_hash.as_slice())
            .bytes(self.payer.as_slice())
            .u64(self.fee_nonce)
            .u128(self.max_fee)
            .u128(self.priority_fee)
            .u128(self.max_gas_fee)
            .u64(self.gas_limit)
            .u64(self.expiry.to_u64())
            .u8(self.flags);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.version()?;
        Ok(Self {
            chain_id: reader.u64("chain id")?,
            deployment: Deployment {
                l1_chain_id: reader.u64("L1 chain id")?,
                inbox: reader.array("inbox")?.into(),
            },
            epoch: reader.u64("epoch")?,
            encryption_key_hash: reader.array("encryption key hash")?.into(),
            payer: reader.array("payer")?.into(),
            fee_nonce: reader.u64("fee nonce")?,
            max_fee: reader.u128("max fee")?,
            priority_fee: reader.u128("priority fee")?,
            max_gas_fee: reader.u128("max gas fee")?,
            gas_limit: reader.u64("gas limit")?,
            expiry: Expiry::from_u64(reader.u64("expiry")?),
            flags: reader.u8("flags")?,
        })
    }
}

impl Canonical for EnvelopeHeader {
    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::with_capacity(ENVELOPE_HEADER_BYTES);
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

/// An encrypted bundle, ready to be ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The header in the clear.
    pub header: EnvelopeHeader,
    /// The encrypted bundle: C, D and E.
    pub ciphertext: Ciphertext,
    /// Proof of knowledge of the ciphertext's randomness, bound to the header.
    pub proof: Proof,
    /// The payer's signature over the id.
    pub fee_signature: Signature65,
}

impl Envelope {
    /// EIP-712 struct hash over header, C, D and SHA-256(E). Proof and signature do not change it (HS-1).
    pub fn id(&self) -> B256 {
        envelope_id(&self.header, &self.ciphertext)
    }

    /// [`Self::id`], for whoever has the hash of the header already.
    pub fn id_under(&self, header: &B256) -> B256 {
        id_under(header, &self.ciphertext)
    }

    /// What the payer signs: the digest of the id in the deployment's domain.
    pub fn signing_digest(&self, deployment: &Deployment) -> B256 {
        deployment.digest(&self.id())
    }

    /// Who signed it; only the header's payer is right.
    pub fn signer(&self, deployment: &Deployment) -> Result<Address, SignatureError> {
        recover(&self.signing_digest(deployment), &self.fee_signature)
    }

    /// Puts ciphertext and header together and signs them for the payer.
    pub fn sign(header: EnvelopeHeader, ciphertext: Ciphertext, proof: Proof, key: &SigningKey) -> Self {
        let digest = header.deployment.digest(&envelope_id(&header, &ciphertext));
        Self { header, ciphertext, proof, fee_signature: key.sign(&digest) }
    }

    /// Length of the encoding, in bytes: what the ordering fee is charged for.
    pub fn encoded_len(&self) -> usize {
        ENVELOPE_OVERHEAD_BYTES + self.ciphertext.e.len()
    }
}

/// [`Envelope::id`] of an envelope that is not signed yet.
pub fn envelope_id(header: &EnvelopeHeader, ciphertext: &Ciphertext) -> B256 {
    id_under(&header.hash(), ciphertext)
}

fn id_under(header: &B256, ciphertext: &Ciphertext) -> B256 {
    eip712::envelope_hash(header, &ciphertext.c, &ciphertext.d, &Sha256::digest(&ciphertext.e).into())
}

impl Canonical for Envelope {
    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::with_capacity(self.encoded_len());
        self.header.write(&mut out);
        out.bytes(&self.ciphertext.c)
            .bytes(&self.ciphertext.d)
            .bytes(&self.proof.r)
            .bytes(&self.proof.s)
            .bytes(&self.fee_signature.0)
            .prefixed(&self.ciphertext.e);
        out.finish()
    }

    /// Any length of E up to the largest bucket decodes; whether it is a bucket is a validity rule.
    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() > MAX_ENVELOPE_BYTES {
            let limit = MAX_ENVELOPE_BYTES as u64;
            return Err(DecodeError::TooLarge { field: "envelope", got: bytes.len() as u64, limit });
        }
        let mut reader = Reader::new(bytes);
        let header = EnvelopeHeader::read(&mut reader)?;
        let c = reader.array("C")?;
        let d = reader.array("D")?;
        let proof = Proof { r: reader.array("proof R")?, s: reader.array("proof s")? };
        let fee_signature = Signature65(reader.array("fee signature")?);
        let e = reader.prefixed("E", MAX_MESSAGE_BYTES)?.to_vec();
        reader.finish()?;
        Ok(Self { header, ciphertext: Ciphertext { c, d, e }, proof, fee_signature })
    }
}

serde_as_hex!(EnvelopeHeader, Envelope);
