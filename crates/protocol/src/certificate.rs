//! Acknowledgements and certificates: made, aggregated, verified.
//!
//! Members' keys carry proofs of possession, which L1 checks at registration; only for such keys is the sum of
//! signatures over one message evidence that each signer signed.

use crate::eip712::Deployment;
use crate::epoch::Epoch;
use crate::limits::MAX_MEMBERS;
use crate::messages::{
    Acknowledgement, AttestedData, Certificate, DataAttestation, G1_BYTES, acknowledgement_digest,
};
use alloy_primitives::B256;
use blindfold_bte::bls::{self, PublicKey, SecretKey, Signature};

/// Why an acknowledgement or certificate is refused. The fault of whoever sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// It names another epoch than the one it is checked against.
    #[error("epoch {got}, expected {expected}")]
    Epoch {
        /// The epoch that it names.
        got: u64,
        /// The epoch that it is checked against.
        expected: u64,
    },
    /// The number does not belong to the epoch.
    #[error("batch {0} does not belong to the epoch")]
    Number(u64),
    /// The epoch has no member of this index.
    #[error("there is no member {0}")]
    Member(u16),
    /// Two acknowledgements of one member.
    #[error("member {0} appears twice")]
    Duplicate(u16),
    /// An acknowledgement of another header than the first one's.
    #[error("the acknowledgement of member {0} is for another header")]
    Mixed(u16),
    /// Fewer signers than the threshold.
    #[error("{got} signers, {needed} needed")]
    TooFew {
        /// How many members signed.
        got: u32,
        /// The epoch's threshold t.
        needed: u16,
    },
    /// Bits set for members that do not exist.
    #[error("signers {0:#x} name members that do not exist")]
    Signers(u64),
    /// The signature is no point of the group.
    #[error("the signature is no point of the group")]
    Point,
    /// The signature does not verify.
    #[error("the signature does not verify")]
    Signature,
}

/// Signs a header as a member. The caller has made "number: hash" durable before.
pub fn sign_acknowledgement(
    key: &SecretKey,
    deployment: &Deployment,
    epoch: u64,
    number: u64,
    header_hash: B256,
    member: u16,
) -> Acknowledgement {
    let digest = acknowledgement_digest(deployment, epoch, number, header_hash);
    let signature = key.sign(&digest.0).to_bytes();
    Acknowledgement { epoch, number, header_hash, member, signature }
}

/// Signs for posted data.
pub fn sign_attestation(
    key: &SecretKey,
    deployment: &Deployment,
    data: AttestedData,
    member: u16,
) -> DataAttestation {
    let signature = key.sign(&data.signing_digest(deployment).0).to_bytes();
    DataAttestation { data, member, signature }
}

/// Checks one attestation of data of this epoch. Costs two pairings.
pub fn verify_attestation(
    attestation: &DataAttestation,
    epoch: &Epoch,
    deployment: &Deployment,
) -> Result<(), CertificateError> {
    let DataAttestation { data, member, signature } = attestation;
    check_place(data.epoch, data.first_number, epoch)?;
    check_place(data.epoch, data.last_number, epoch)?;
    let key = epoch.member(*member).ok_or(CertificateError::Member(*member))?;
    let signature = point(signature)?;
    let digest = data.signing_digest(deployment);
    key.verify(&digest.0, &signature).map_err(|_| CertificateError::Signature)
}

/// An acknowledgement whose signature [stands](verify_acknowledgement).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct VerifiedAcknowledgement {
    acknowledgement: Acknowledgement,
    signature: Signature,
}

/// A certificate that stands: it is made of acknowledgements of which each one does ([`certify`]), or was verified as a whole
/// ([`certify_together`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedCertificate(Certificate);

impl std::fmt::Debug for VerifiedAcknowledgement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("VerifiedAcknowledgement").field(&self.acknowledgement).finish()
    }
}

impl VerifiedAcknowledgement {
    /// The acknowledgement.
    pub const fn acknowledgement(&self) -> Acknowledgement {
        self.acknowledgement
    }
}

impl std::ops::Deref for VerifiedAcknowledgement {
    type Target = Acknowledgement;

    fn deref(&self) -> &Acknowledgement {
        &self.acknowledgement
    }
}

impl std::ops::Deref for VerifiedCertificate {
    type Target = Certificate;

    fn deref(&self) -> &Certificate {
        &self.0
    }
}

/// Checks one acknowledgement. Costs two pairings.
pub fn verify_acknowledgement(
    acknowledgement: &Acknowledgement,
    epoch: &Epoch,
    deployment: &Deployment,
) -> Result<VerifiedAcknowledgement, CertificateError> {
    check_place(acknowledgement.epoch, acknowledgement.number, epoch)?;
    let key = epoch.member(acknowledgement.member).ok_or(CertificateError::Member(acknowledgement.member))?;
    let signature = point(&acknowledgement.signature)?;
    let digest = acknowledgement.signing_digest(deployment);
    key.verify(&digest.0, &signature).map_err(|_| CertificateError::Signature)?;
    Ok(VerifiedAcknowledgement { acknowledgement: *acknowledgement, signature })
}

/// Makes a certificate of acknowledgements. All given are used. It needs no check of its own: signatures of one message that
/// stand under their keys add up to one that stands under the sum of the keys.
pub fn certify(
    epoch: &Epoch,
    acknowledgements: &[VerifiedAcknowledgement],
) -> Result<VerifiedCertificate, CertificateError> {
    add_up(epoch, acknowledgements.iter().map(|of| (of.acknowledgement, Ok(of.signature))))
        .map(VerifiedCertificate)
}

/// Makes a certificate of acknowledgements that nobody has verified, and verifies it. All given are used. Costs two pairings,
/// however many there are, and one addition for each.
///
/// Where it stands nothing is said of a single acknowledgement: two members can have made theirs so that what is wrong in one
/// makes up for the other, and both sign for the header by that. Where it does not, at least one does not stand, and
/// [`verify_acknowledgement`] finds out which.
pub fn certify_together(
    epoch: &Epoch,
    deployment: &Deployment,
    acknowledgements: &[Acknowledgement],
) -> Result<VerifiedCertificate, CertificateError> {
    let certificate = aggregate(epoch, acknowledgements)?;
    verify(&certificate, epoch, deployment)?;
    Ok(VerifiedCertificate(certificate))
}

/// Makes a certificate of acknowledgements that nobody has verified. All given are used; it stands if each of them does.
pub fn aggregate(
    epoch: &Epoch,
    acknowledgements: &[Acknowledgement],
) -> Result<Certificate, CertificateError> {
    add_up(epoch, acknowledgements.iter().map(|of| (*of, point(&of.signature))))
}

fn add_up(
    epoch: &Epoch,
    acknowledgements: impl ExactSizeIterator<Item = (Acknowledgement, Result<Signature, CertificateError>)>
    + Clone,
) -> Result<Certificate, CertificateError> {
    let needed = epoch.threshold;
    let Some((first, _)) = acknowledgements.clone().next() else {
        return Err(CertificateError::TooFew { got: 0, needed });
    };
    check_place(first.epoch, first.number, epoch)?;
    let (mut signers, mut signatures) = (0u64, Vec::with_capacity(acknowledgements.len()));
    for (acknowledgement, signature) in acknowledgements {
        let member = acknowledgement.member;
        let same = (acknowledgement.epoch, acknowledgement.number, acknowledgement.header_hash)
            == (first.epoch, first.number, first.header_hash);
        if !same {
            return Err(CertificateError::Mixed(member));
        }
        let bit = epoch.member(member).and_then(|_| signer_bit(member));
        let bit = bit.ok_or(CertificateError::Member(member))?;
        if signers & bit != 0 {
            return Err(CertificateError::Duplicate(member));
        }
        signers |= bit;
        signatures.push(signature?);
    }
    check_count(signers, epoch)?;
    let signature = bls::aggregate(&signatures).map_err(|_| CertificateError::Signature)?.to_bytes();
    Ok(Certificate {
        epoch: first.epoch,
        number: first.number,
        header_hash: first.header_hash,
        signers,
        signature,
    })
}

/// Checks a certificate. Costs two pairings and one addition per signer.
pub fn verify(
    certificate: &Certificate,
    epoch: &Epoch,
    deployment: &Deployment,
) -> Result<(), CertificateError> {
    let keys = check_form(certificate, epoch)?;
    let signature = point(&certificate.signature)?;
    let digest = certificate.signing_digest(deployment);
    bls::verify_aggregate(&keys, &digest.0, &signature).map_err(|_| CertificateError::Signature)
}

/// Checks everything about a certificate but its signature, without a pairing: epoch, number, and that enough members
/// of the committee are named. Gives their keys.
pub fn check_form(certificate: &Certificate, epoch: &Epoch) -> Result<Vec<PublicKey>, CertificateError> {
    check_place(certificate.epoch, certificate.number, epoch)?;
    check_count(certificate.signers, epoch)?;
    signer_keys(certificate.signers, epoch)
}

/// Indices of the members that signed, from 1, ascending.
pub fn signers(certificate: &Certificate) -> Vec<u16> {
    (1..=MAX_MEMBERS as u16)
        .filter(|member| signer_bit(*member).is_some_and(|bit| certificate.signers & bit != 0))
        .collect()
}

/// Bit j − 1 stands for member j.
fn signer_bit(member: u16) -> Option<u64> {
    1u64.checked_shl(u32::from(member).checked_sub(1)?)
}

fn signer_keys(signers: u64, epoch: &Epoch) -> Result<Vec<PublicKey>, CertificateError> {
    let known = epoch.members.len().min(MAX_MEMBERS);
    // A shift by 64 leaves no bit: all members are known then.
    if signers.checked_shr(known as u32).unwrap_or(0) != 0 {
        return Err(CertificateError::Signers(signers));
    }
    Ok(epoch
        .members
        .iter()
        .take(known)
        .enumerate()
        .filter(|(j, _)| signers >> j & 1 == 1)
        .map(|(_, key)| *key)
        .collect())
}

fn check_place(epoch: u64, number: u64, expected: &Epoch) -> Result<(), CertificateError> {
    if epoch != expected.epoch {
        return Err(CertificateError::Epoch { got: epoch, expected: expected.epoch });
    }
    if !expected.contains(number) {
        return Err(CertificateError::Number(number));
    }
    Ok(())
}

fn check_count(signers: u64, epoch: &Epoch) -> Result<(), CertificateError> {
    let (got, needed) = (signers.count_ones(), epoch.threshold);
    // An epoch's threshold is not 0; an unvalidated one must not let an empty certificate pass.
    if got == 0 || got < u32::from(needed) {
        return Err(CertificateError::TooFew { got, needed });
    }
    Ok(())
}

fn point(bytes: &[u8; G1_BYTES]) -> Result<Signature, CertificateError> {
    Signature::from_bytes(bytes).map_err(|_| CertificateError::Point)
}
