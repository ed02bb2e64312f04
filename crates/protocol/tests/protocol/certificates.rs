//! Acknowledgements and certificates: every way to be refused.

use crate::common::{MEMBERS, bls_key, deployment, epoch};
use alloy_primitives::B256;
use blindfold_protocol::certificate::{
    CertificateError, aggregate, certify, sign_acknowledgement, sign_attestation, signers, verify,
    verify_acknowledgement, verify_attestation,
};
use blindfold_protocol::data::KIND_OPENED;
use blindfold_protocol::{Acknowledgement, AttestedData, DataAttestation, Deployment, Epoch};

const HASH: B256 = B256::repeat_byte(0x77);

fn acknowledge(member: u16) -> Acknowledgement {
    sign_acknowledgement(&bls_key(member), &deployment(), 3, 9, HASH, member)
}

#[test]
fn any_threshold_certifies() {
    for missing in 1..=MEMBERS {
        let given: Vec<_> = (1..=MEMBERS).filter(|member| *member != missing).map(acknowledge).collect();
        for acknowledgement in &given {
            let verified = verify_acknowledgement(acknowledgement, &epoch(), &deployment());
            assert_eq!(*verified.unwrap(), *acknowledgement);
        }
        let certificate = aggregate(&epoch(), &given).unwrap();
        let verified: Vec<_> =
            given.iter().map(|one| verify_acknowledgement(one, &epoch(), &deployment()).unwrap()).collect();
        assert_eq!(*certify(&epoch(), &verified).unwrap(), certificate);
        assert_eq!(certificate.signers, 0b1111 ^ (1 << (missing - 1)));
        assert_eq!(signers(&certificate), given.iter().map(|a| a.member).collect::<Vec<_>>());
        assert_eq!((certificate.epoch, certificate.number, certificate.header_hash), (3, 9, HASH));
        assert_eq!(verify(&certificate, &epoch(), &deployment()), Ok(()));
    }
    let all: Vec<_> = (1..=MEMBERS).rev().map(acknowledge).collect();
    assert_eq!(verify(&aggregate(&epoch(), &all).unwrap(), &epoch(), &deployment()), Ok(()));
}

#[test]
fn acknowledgements_are_refused() {
    let good = acknowledge(2);
    let check = |a: &Acknowledgement| verify_acknowledgement(a, &epoch(), &deployment()).map(|_| ());
    let wrong_epoch = Acknowledgement { epoch: 4, ..good };
    assert_eq!(check(&wrong_epoch), Err(CertificateError::Epoch { got: 4, expected: 3 }));
    assert_eq!(check(&Acknowledgement { number: 10_001, ..good }), Err(CertificateError::Number(10_001)));
    for member in [0, 5, u16::MAX] {
        assert_eq!(check(&Acknowledgement { member, ..good }), Err(CertificateError::Member(member)));
    }
    assert_eq!(check(&Acknowledgement { member: 3, ..good }), Err(CertificateError::Signature));
    assert_eq!(check(&Acknowledgement { number: 10, ..good }), Err(CertificateError::Signature));
    assert_eq!(check(&Acknowledgement { signature: [0; 48], ..good }), Err(CertificateError::Point));
    let mut infinity = [0; 48];
    infinity[0] = 0xc0;
    assert_eq!(check(&Acknowledgement { signature: infinity, ..good }), Err(CertificateError::Point));
    let elsewhere = Deployment { l1_chain_id: 1, ..deployment() };
    let refused = verify_acknowledgement(&good, &epoch(), &elsewhere);
    assert_eq!(refused, Err(CertificateError::Signature));
}

/// OD-7: two hashes for one run are no fault of anybody's, and each says what it says.
#[test]
fn attestations_stand_for_their_own_bytes_alone() {
    let data = AttestedData {
        epoch: 3,
        first_number: 9,
        last_number: 12,
        kind: KIND_OPENED,
        data_hash: B256::repeat_byte(1),
    };
    let good = sign_attestation(&bls_key(2), &deployment(), data, 2);
    let check = |a: &DataAttestation| verify_attestation(a, &epoch(), &deployment());
    assert_eq!(check(&good), Ok(()));
    let others = AttestedData { data_hash: B256::repeat_byte(2), ..data };
    assert_eq!(check(&sign_attestation(&bls_key(2), &deployment(), others, 2)), Ok(()));
    let with = |data| DataAttestation { data, member: good.member, signature: good.signature };
    assert_eq!(
        check(&with(AttestedData { epoch: 4, ..data })),
        Err(CertificateError::Epoch { got: 4, expected: 3 })
    );
    assert_eq!(
        check(&with(AttestedData { last_number: 10_001, ..data })),
        Err(CertificateError::Number(10_001))
    );
    assert_eq!(check(&with(AttestedData { first_number: 0, ..data })), Err(CertificateError::Number(0)));
    for changed in [
        others,
        AttestedData { first_number: 8, ..data },
        AttestedData { last_number: 13, ..data },
        AttestedData { kind: 1, ..data },
    ] {
        assert_eq!(check(&with(changed)), Err(CertificateError::Signature), "{changed:?}");
    }
    for member in [0, 5, u16::MAX] {
        assert_eq!(check(&DataAttestation { member, ..good }), Err(CertificateError::Member(member)));
    }
    assert_eq!(check(&DataAttestation { member: 3, ..good }), Err(CertificateError::Signature));
    assert_eq!(check(&DataAttestation { signature: [0; 48], ..good }), Err(CertificateError::Point));
    let elsewhere = Deployment { l1_chain_id: 1, ..deployment() };
    assert_eq!(verify_attestation(&good, &epoch(), &elsewhere), Err(CertificateError::Signature));
    // Nor is it an acknowledgement of anything, or one of those a word on data.
    let vote = sign_acknowledgement(&bls_key(2), &deployment(), 3, 9, data.data_hash, 2);
    assert_eq!(
        check(&DataAttestation { signature: vote.signature, ..good }),
        Err(CertificateError::Signature)
    );
    let vote = Acknowledgement { signature: good.signature, ..vote };
    assert_eq!(verify_acknowledgement(&vote, &epoch(), &deployment()), Err(CertificateError::Signature));
}

#[test]
fn aggregation_is_refused() {
    let [one, two, three] = [1, 2, 3].map(acknowledge);
    let make = |given: &[Acknowledgement]| aggregate(&epoch(), given);
    assert_eq!(make(&[]), Err(CertificateError::TooFew { got: 0, needed: 3 }));
    assert_eq!(make(&[one, two]), Err(CertificateError::TooFew { got: 2, needed: 3 }));
    assert_eq!(make(&[one, two, two]), Err(CertificateError::Duplicate(2)));
    assert_eq!(make(&[one, two, Acknowledgement { number: 8, ..three }]), Err(CertificateError::Mixed(3)));
    let other = Acknowledgement { header_hash: B256::ZERO, ..three };
    assert_eq!(make(&[one, two, other]), Err(CertificateError::Mixed(3)));
    assert_eq!(make(&[one, two, Acknowledgement { member: 5, ..three }]), Err(CertificateError::Member(5)));
    assert_eq!(make(&[one, two, Acknowledgement { member: 0, ..three }]), Err(CertificateError::Member(0)));
    assert_eq!(
        make(&[one, two, Acknowledgement { signature: [7; 48], ..three }]),
        Err(CertificateError::Point)
    );
    let old = [one, two, three].map(|a| Acknowledgement { epoch: 2, ..a });
    assert_eq!(make(&old), Err(CertificateError::Epoch { got: 2, expected: 3 }));
}

#[test]
fn certificates_are_refused() {
    let good = aggregate(&epoch(), &[1, 2, 3].map(acknowledge)).unwrap();
    let with = |change: &dyn Fn(&mut blindfold_protocol::Certificate)| {
        let mut certificate = good;
        change(&mut certificate);
        verify(&certificate, &epoch(), &deployment())
    };
    assert_eq!(with(&|_| ()), Ok(()));
    assert_eq!(with(&|c| c.epoch = 2), Err(CertificateError::Epoch { got: 2, expected: 3 }));
    assert_eq!(with(&|c| c.number = 0), Err(CertificateError::Number(0)));
    assert_eq!(with(&|c| c.signers = 0b11), Err(CertificateError::TooFew { got: 2, needed: 3 }));
    assert_eq!(with(&|c| c.signers = 0), Err(CertificateError::TooFew { got: 0, needed: 3 }));
    assert_eq!(with(&|c| c.signers = 0b10111), Err(CertificateError::Signers(0b10111)));
    assert_eq!(with(&|c| c.signers = u64::MAX), Err(CertificateError::Signers(u64::MAX)));
    assert_eq!(with(&|c| c.signers = 0b1111), Err(CertificateError::Signature), "one did not sign");
    assert_eq!(with(&|c| c.signers = 0b1101), Err(CertificateError::Signature), "another signed");
    assert_eq!(with(&|c| c.header_hash = B256::ZERO), Err(CertificateError::Signature));
    assert_eq!(with(&|c| c.signature = [0xff; 48]), Err(CertificateError::Point));
    let careless = Epoch { threshold: 0, ..epoch() };
    let empty = blindfold_protocol::Certificate { signers: 0, ..good };
    assert_eq!(verify(&empty, &careless, &deployment()), Err(CertificateError::TooFew { got: 0, needed: 0 }));
}

#[test]
fn sixty_four_members_fit_the_bits() {
    let members: Vec<_> = (1..=64).map(|member| bls_key(member).public_key()).collect();
    let full = Epoch { members, threshold: 33, ..epoch() };
    let given: Vec<_> = (32..=64).map(acknowledge).collect();
    let certificate = aggregate(&full, &given).unwrap();
    assert_eq!(certificate.signers, u64::MAX << 31);
    assert_eq!(verify(&certificate, &full, &deployment()), Ok(()));
}
