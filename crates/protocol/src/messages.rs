//! Small signed messages: promises, acknowledgements, certificates, and a batch with its certificate.

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

/// The sequencer's signed word to seal an envelope by a batch number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Promise {
    /// The envelope.
    pub envelope_id: B256,
    /// The last batch number that keeps the promise.
    pub seal_by: u64,
    /// The sequencer's signature.
    pub signature: Signature65,
}

impl Promise {
    /// What the sequencer signs for this promise.
    pub fn digest(deployment: &Deployment, envelope_id: B256, seal_by: u64) -> B256 {
        let hash =
            struct_hash(&eip712::Promise { version: VERSION, envelopeId: envelope_id, sealBy: seal_by });
        deployment.digest(&hash)
    }

    /// Makes and signs a promise.
    pub fn sign(key: &SigningKey, deployment: &Deployment, envelope_id: B256, seal_by: u64) -> Self {
        let signature = key.sign(&Self::digest(deployment, envelope_id, seal_by));
        Self { envelope_id, seal_by, signature }
    }

    /// What was signed.
    pub fn signing_digest(&self, deployment: &Deployment) -> B256 {
        Self::digest(deployment, self.envelope_id, self.seal_by)
    }

    /// Who signed it.
    pub fn signer(&self, deployment: &Deployment) -> Result<Address, SignatureError> {
        recover(&self.signing_digest(deployment), &self.signature)
    }
}

impl Canonical for Promise {
    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::versioned(106);
        out.bytes(self.envelope_id.as_slice()).u64(self.seal_by).bytes(&self.signature.0);
        out.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::versioned(bytes)?;
        let promise = Self {
            envelope_id: reader.array("envelope id")?.into(),
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
    /// Batch number.
    pub number: u64,
    /// Hash of the header.
    pub header_hash: B256,
    /// Index of the member, from 1. Not signed: the signature names its key.
    pub member: u16,
    /// BLS signature over [`acknowledgement_digest`].
    pub signature: [u8; G1_BYTES],
}

/// What members sign for a header; the same bytes for every member, so that signatures aggregate.
pub fn acknowledgement_digest(deployment: &Deployment, epoch: u64, number: u64, header_hash: B256) -> B256 {
    let hash =
        struct_hash(&eip712::Acknowledgement { version: VERSION, epoch, number, headerHash: header_hash });
    deployment.digest(&hash)
}

impl Acknowledgement {
    /// What the member signed.
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
    /// Batch number.
    pub number: u64,
    /// Hash of the header.
    pub header_hash: B256,
    /// Bit j − 1 is set when member j signed.
    pub signers: u64,
    /// Sum of the members' BLS signatures.
    pub signature: [u8; G1_BYTES],
}

impl Certificate {
    /// What the members signed.
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

/// A batch and the certificate of its header: everything needed to post or decrypt it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CertifiedBatch {
    /// The batch.
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

serde_as_hex!(Promise, Acknowledgement, Certificate, CertifiedBatch);
