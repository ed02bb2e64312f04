//! Small signed messages: promises, acknowledgements, certificates, attestations of posted data, and a batch with its
//! certificate.

use crate::codec::{Canonical, DecodeError, Reader, Writer, serde_as_hex};
use crate::eip712::{self, Deployment, struct_hash};
use crate::header::SealedBatch;
use crate::limits::{MAX_SEALED_BATCH_BYTES, VERSION};
use crate::signature::{Signature65, SignatureError, SigningKey, recover};
use alloy_primitives::{Address, B256};

/// Length of a compressed G1 point (BLS signature, share, release), in bytes.
pub const G1_BYTES: usize = 48;
/// Length of an encoded [`Certificate`], in bytes.
pub const CERTIFICATE_BYTES: usize = 1 + 8 + 8 + 32 + 8 + G1_BYTES;
/// Length of an encoded [`Acknowledgement`], in bytes.
pub const ACKNOWLEDGEMENT_BYTES: usize = 1 + 8 + 8 + 32 + 2 + G1_BYTES;

/// Length of an encoded [`Promise`], in bytes.
pub const PROMISE_BYTES: usize = 1 + 32 + 32 + 8 + 65;
/// Length of an encoded [`DataAttestation`], in bytes.
pub const DATA_ATTESTATION_BYTES: usize = 1 + 8 + 8 + 8 + 1 + 32 + 2 + G1_BYTES;

/// The sequencer's signed word to seal an item, byte for byte, by a batch number.
///
/// The id alone would not do: signature and proof do not change it, so that a copy that no rule accepts has it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Promise {
    /// Id of the promised envelope.
    pub envelope_id: B256,
    /// keccak256 of the item's bytes.
    pub item_hash: B256,
    /// The last batch number that keeps the promise.
    pub seal_by: u64,
    /// Signature of the sequencer that gives it.
    pub signature: Signature65,
}

impl Promise {
    /// What the sequencer signs for this promise.
    pub fn digest(deployment: &Deployment, envelope_id: B256, item_hash: B256, seal_by: u64) -> B256 {
        deployment.digest(&Self::hash_of(envelope_id, item_hash, seal_by))
    }

    fn hash_of(envelope_id: B256, item_hash: B256, seal_by: u64) -> B256 {
        struct_hash(&eip712::Promise {
            version: VERSION,
            envelopeId: envelope_id,
            itemHash: item_hash,
            sealBy: seal_by,
        })
    }

    /// Its hash (`hashStruct` of EIP-712), by which L1 names accusations.
    pub fn hash(&self) -> B256 {
        Self::hash_of(self.envelope_id, self.item_hash, self.seal_by)
    }

    /// Makes and signs a promise.
    pub fn sign(
        key: &SigningKey,
        deployment: &Deployment,
        envelope_id: B256,
        item_hash: B256,
        seal_by: u64,
    ) -> Self {
        let signature = key.sign(&Self::digest(deployment, envelope_id, item_hash, seal_by));
        Self { envelope_id, item_hash, seal_by, signature }
    }

    /// What the sequencer signed: [`Promise::digest`] of its own fields.
    pub fn signing_digest(&self, deployment: &Deployment) -> B256 {
        Self::digest(deployment, self.envelope_id, self.item_hash, self.seal_by)
    }

    /// The address whose key signed; whether it is a sequencer's is for the caller to compare.
    pub fn signer(&self, deployment: &Deployment) -> Result<Address, SignatureError> {
        recover(&self.signing_digest(deployment), &self.signature)
    }
}

impl Canonical for Promise {
    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::versioned(PROMISE_BYTES);
        out.bytes(self.envelope_id.as_slice())
            .bytes(self.item_hash.as_slice())
            .u64(self.seal_by)
            .bytes(&self.signature.0);
        out.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::versioned(bytes)?;
        let promise = Self {
            envelope_id: reader.array("envelope id")?.into(),
            item_hash: reader.array("item hash")?.into(),
            seal_by: reader.u64("seal by")?,
            signature: Signature65(reader.array("sequencer signature")?),
        };
        reader.finish()?;
        Ok(promise)
    }
}

/// One member's word that a header is valid. A member gives one per number, ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Acknowledgement {
    /// Key epoch of the number.
    pub epoch: u64,
    /// Number of the acknowledged batch.
    pub number: u64,
    /// Hash of its header.
    pub header_hash: B256,
    /// Index of the member, from 1. Not signed: the signature names its key.
    pub member: u16,
    /// The member's BLS signature over [`acknowledgement_digest`], compressed.
    pub signature: [u8; G1_BYTES],
}

/// What members sign for a header; the same bytes for every member, so that signatures aggregate (HS-2).
pub fn acknowledgement_digest(deployment: &Deployment, epoch: u64, number: u64, header_hash: B256) -> B256 {
    let hash =
        struct_hash(&eip712::Acknowledgement { version: VERSION, epoch, number, headerHash: header_hash });
    deployment.digest(&hash)
}

impl Acknowledgement {
    /// What the member signed: [`acknowledgement_digest`] of its fields.
    pub fn signing_digest(&self, deployment: &Deployment) -> B256 {
        acknowledgement_digest(deployment, self.epoch, self.number, self.header_hash)
    }
}

impl Canonical for Acknowledgement {
    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::versioned(ACKNOWLEDGEMENT_BYTES);
        out.u64(self.epoch)
            .u64(self.number)
            .bytes(self.header_hash.as_slice())
            .u16(self.member)
            .bytes(&self.signature);
        out.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::versioned(bytes)?;
        let acknowledgement = Self {
            epoch: reader.u64("epoch")?,
            number: reader.u64("number")?,
            header_hash: reader.array("header hash")?.into(),
            member: reader.u16("member")?,
            signature: reader.array("BLS signature")?,
        };
        reader.finish()?;
        Ok(acknowledgement)
    }
}

/// At least a threshold of acknowledgements in one signature. It certifies the header and all its ancestors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Certificate {
    /// Key epoch of the number.
    pub epoch: u64,
    /// Number of the certified batch.
    pub number: u64,
    /// Hash of its header.
    pub header_hash: B256,
    /// Bit j − 1 is set when member j signed.
    pub signers: u64,
    /// Sum of the members' BLS signatures.
    pub signature: [u8; G1_BYTES],
}

impl Certificate {
    /// What each of the members signed: [`acknowledgement_digest`] of its fields.
    pub fn signing_digest(&self, deployment: &Deployment) -> B256 {
        acknowledgement_digest(deployment, self.epoch, self.number, self.header_hash)
    }
}

impl Canonical for Certificate {
    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::versioned(CERTIFICATE_BYTES);
        out.u64(self.epoch)
            .u64(self.number)
            .bytes(self.header_hash.as_slice())
            .u64(self.signers)
            .bytes(&self.signature);
        out.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::versioned(bytes)?;
        let certificate = Self {
            epoch: reader.u64("epoch")?,
            number: reader.u64("number")?,
            header_hash: reader.array("header hash")?.into(),
            signers: reader.u64("signers")?,
            signature: reader.array("BLS signature")?,
        };
        reader.finish()?;
        Ok(certificate)
    }
}

/// One member's word that posted data, or data that are about to be, give back the batches `first_number ..= last_number` that
/// it holds certified (OD-6). It is true or false of the bytes, whoever looks and however often: of one run there may be any
/// number of data with different hashes that all give it back, so a member may attest them all, and keeps no record (OD-7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DataAttestation {
    /// The posted data that the member vouches for.
    pub data: AttestedData,
    /// Index of the member, from 1. Not signed: the signature names its key.
    pub member: u16,
    /// The member's BLS signature over [`AttestedData::signing_digest`], compressed.
    pub signature: [u8; G1_BYTES],
}

/// What members sign for posted data; the same bytes for every member, so that signatures aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttestedData {
    /// Key epoch of the numbers.
    pub epoch: u64,
    /// First batch number of the data.
    pub first_number: u64,
    /// Last batch number of the data.
    pub last_number: u64,
    /// Form of the data: [`KIND_OPENED`](crate::data::KIND_OPENED). The other forms need no attestation: anybody hashes them.
    pub kind: u8,
    /// keccak256 of the whole `RunData`, wherever and in however many parts it is posted. It names the posting of hints that
    /// the data are opened with.
    pub data_hash: B256,
}

impl AttestedData {
    /// What the members sign: the digest of `DataAttestation` in the deployment's domain.
    pub fn signing_digest(&self, deployment: &Deployment) -> B256 {
        let hash = struct_hash(&eip712::DataAttestation {
            version: VERSION,
            epoch: self.epoch,
            firstNumber: self.first_number,
            lastNumber: self.last_number,
            kind: self.kind,
            dataHash: self.data_hash,
        });
        deployment.digest(&hash)
    }
}

impl Canonical for DataAttestation {
    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::versioned(DATA_ATTESTATION_BYTES);
        out.u64(self.data.epoch)
            .u64(self.data.first_number)
            .u64(self.data.last_number)
            .u8(self.data.kind)
            .bytes(self.data.data_hash.as_slice())
            .u16(self.member)
            .bytes(&self.signature);
        out.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::versioned(bytes)?;
        let attestation = Self {
            data: AttestedData {
                epoch: reader.u64("epoch")?,
                first_number: reader.u64("first number")?,
                last_number: reader.u64("last number")?,
                kind: reader.u8("kind")?,
                data_hash: reader.array("data hash")?.into(),
            },
            member: reader.u16("member")?,
            signature: reader.array("BLS signature")?,
        };
        reader.finish()?;
        Ok(attestation)
    }
}

/// A batch and the certificate of its header: everything needed to post or decrypt it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CertifiedBatch {
    /// Header, sequencer's signature and items.
    pub sealed: SealedBatch,
    /// The certificate of its header.
    pub certificate: Certificate,
}

impl Canonical for CertifiedBatch {
    fn encode(&self) -> Vec<u8> {
        let sealed = self.sealed.encode();
        let mut out = Writer::versioned(1 + 4 + sealed.len() + 4 + CERTIFICATE_BYTES);
        out.prefixed(&sealed).prefixed(&self.certificate.encode());
        out.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::versioned(bytes)?;
        let sealed = SealedBatch::decode(reader.prefixed("sealed batch", MAX_SEALED_BATCH_BYTES)?)?;
        let certificate = Certificate::decode(reader.prefixed("certificate", CERTIFICATE_BYTES)?)?;
        reader.finish()?;
        Ok(Self { sealed, certificate })
    }
}

serde_as_hex!(Promise, Acknowledgement, Certificate, DataAttestation, CertifiedBatch);
