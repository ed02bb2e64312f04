//! EIP-712 hashes against the specification written out, Merkle trees, signatures.

use crate::common::{config, deployment, envelope, fields, sequencer, signing_key, some_header};
use alloy_primitives::{Address, B256, U256, address, keccak256};
use blindfold_protocol::signature::{SignatureError, recover};
use blindfold_protocol::validity::check_signature;
use blindfold_protocol::*;
use proptest::prelude::*;
use sha2::{Digest, Sha256};

const HEADER_TYPE: &str = "EnvelopeHeader(uint8 version,uint64 chainId,uint64 l1ChainId,address inbox,uint64 epoch,bytes32 encryptionKeyHash,address payer,uint64 feeNonce,uint128 maxFee,uint128 priorityFee,uint128 maxGasFee,uint64 gasLimit,uint64 expiry,uint8 flags)";
const BATCH_TYPE: &str = "BatchHeader(uint8 version,uint64 number,bytes32 parentHash,uint64 timestampMs,uint64 l1OriginNumber,bytes32 l1OriginHash,uint64 l1OriginTime,bytes32 envelopeRoot,bytes32 dataHash,uint32 envelopeCount,uint32 envelopeBytes,uint64 gas,uint128 baseFee,uint128 gasBaseFee,bytes32 feeLedgerRoot,uint64 forcedCursor,uint64 epoch,uint16 rules)";

/// `keccak256(typeHash ‖ words)`, EIP-712 by hand.
fn by_hand(type_string: &str, words: &[B256]) -> B256 {
    let mut bytes = keccak256(type_string).to_vec();
    words.iter().for_each(|word| bytes.extend(word));
    keccak256(bytes)
}

fn n(value: impl Into<u128>) -> B256 {
    B256::from(U256::from(value.into()))
}

fn separator() -> B256 {
    let of_type = "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)";
    let deployment = deployment();
    let words =
        [keccak256("Blindfold"), keccak256("2"), n(deployment.l1_chain_id), deployment.inbox.into_word()];
    by_hand(of_type, &words)
}

/// Rule HS-3.
#[test]
fn domain() {
    assert_eq!(deployment().domain_separator(), separator());
    let genesis = keccak256([b"BLINDFOLD-V2-GENESIS".as_slice(), separator().as_slice()].concat());
    assert_eq!(deployment().genesis_hash(), genesis);
    let other = Deployment { l1_chain_id: 1, ..deployment() };
    assert_ne!(other.genesis_hash(), genesis);
}

/// Rule HS-1.
#[test]
fn envelope_hashes() {
    let envelope = envelope(&fields(), &signing_key(1), 1);
    let h = &envelope.header;
    let words = [
        n(2u8),
        n(h.chain_id),
        n(h.deployment.l1_chain_id),
        h.deployment.inbox.into_word(),
        n(h.epoch),
        h.encryption_key_hash,
        h.payer.into_word(),
        n(h.fee_nonce),
        n(h.max_fee),
        n(h.priority_fee),
        n(h.max_gas_fee),
        n(h.gas_limit),
        n(h.expiry.to_u64()),
        n(h.flags),
    ];
    let ad = by_hand(HEADER_TYPE, &words);
    assert_eq!(h.hash(), ad);
    let of_type =
        format!("Envelope(EnvelopeHeader header,bytes c,bytes16 d,bytes32 ciphertextHash){HEADER_TYPE}");
    let mut d = B256::ZERO;
    d[..16].copy_from_slice(&envelope.ciphertext.d);
    let e = B256::from_slice(&Sha256::digest(&envelope.ciphertext.e));
    let id = by_hand(&of_type, &[ad, keccak256(envelope.ciphertext.c), d, e]);
    assert_eq!(envelope.id(), id);
    let digest = keccak256([&[0x19, 0x01], separator().as_slice(), id.as_slice()].concat());
    assert_eq!(envelope.signing_digest(&deployment()), digest);
    assert_eq!(envelope.signer(&deployment()), Ok(signing_key(1).address()));

    let mut other = envelope.clone();
    other.fee_signature.0[0] ^= 1;
    other.proof.s[0] ^= 1;
    assert_eq!(other.id(), id, "signature and proof do not change the id");
    other.ciphertext.e[0] ^= 1;
    assert_ne!(other.id(), id);
}

/// Rule HS-2.
#[test]
fn batch_hashes() {
    let h = some_header();
    let words = [
        n(2u8),
        n(h.number),
        h.parent_hash,
        n(h.timestamp_ms),
        n(h.l1_origin_number),
        h.l1_origin_hash,
        n(h.l1_origin_time),
        h.envelope_root,
        h.data_hash,
        n(h.envelope_count),
        n(h.envelope_bytes),
        n(h.gas),
        n(h.base_fee),
        n(h.gas_base_fee),
        h.fee_ledger_root,
        n(h.forced_cursor),
        n(h.epoch),
        n(h.rules),
    ];
    assert_eq!(h.hash(), by_hand(BATCH_TYPE, &words));

    let digest = deployment().digest(&by_hand(
        "Promise(uint8 version,bytes32 envelopeId,bytes32 itemHash,uint64 sealBy)",
        &[n(2u8), B256::repeat_byte(7), B256::repeat_byte(8), n(9u8)],
    ));
    let (id, item_hash) = (B256::repeat_byte(7), B256::repeat_byte(8));
    let promise = Promise::sign(&sequencer(), &deployment(), id, item_hash, 9);
    assert_eq!(promise.signing_digest(&deployment()), digest);
    assert_eq!(promise.signer(&deployment()), Ok(sequencer().address()));

    let of_type = "Acknowledgement(uint8 version,uint64 epoch,uint64 number,bytes32 headerHash)";
    let hash = by_hand(of_type, &[n(2u8), n(3u8), n(1u8), h.hash()]);
    assert_eq!(acknowledgement_digest(&deployment(), 3, 1, h.hash()), deployment().digest(&hash));

    let of_type = "DataAttestation(uint8 version,uint64 epoch,uint64 firstNumber,uint64 lastNumber,uint8 kind,bytes32 dataHash)";
    let words = [n(2u8), n(3u8), n(5u8), n(9u8), n(1u8), B256::repeat_byte(6)];
    let data_hash = B256::repeat_byte(6);
    let data = AttestedData { epoch: 3, first_number: 5, last_number: 9, kind: 1, data_hash };
    assert_eq!(data.signing_digest(&deployment()), deployment().digest(&by_hand(of_type, &words)));
}

#[test]
fn header_signatures() {
    let (deployment, sequencer_address) = (deployment(), sequencer().address());
    let signed = some_header().sign(&sequencer(), &deployment);
    assert_eq!(check_signature(&signed, &deployment, &sequencer_address), Ok(()));
    let stranger = some_header().sign(&signing_key(1), &deployment);
    assert_eq!(
        check_signature(&stranger, &deployment, &sequencer_address),
        Err(HeaderError::Signer(signing_key(1).address()))
    );
    let broken = SignedHeader { signature: Signature65([0; 65]), ..signed };
    assert_eq!(
        check_signature(&broken, &deployment, &sequencer_address),
        Err(HeaderError::Signature(SignatureError::RecoveryId(0)))
    );
    assert_eq!(config().sequencer, sequencer_address);
}

#[test]
fn a_known_key() {
    // The first account of every development chain.
    let secret = alloy_primitives::hex!("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
    let key = SigningKey::from_bytes(&secret).unwrap();
    assert_eq!(key.address(), address!("f39Fd6e51aad88F6F4ce6aB8827279cffFb92266"));
    assert_eq!(*key.to_bytes(), secret);
    assert!(SigningKey::from_bytes(&[0; 32]).is_err());
    assert!(SigningKey::from_bytes(&[0xff; 32]).is_err());
    let (a, b) =
        (SigningKey::random(&mut crate::common::rng(1)), SigningKey::random(&mut crate::common::rng(2)));
    assert_ne!(a.address(), b.address());
}

/// Rule EN-4.
#[test]
fn only_one_signature_is_valid() {
    let key = signing_key(1);
    let digest = keccak256("digest");
    let good = key.sign(&digest);
    assert_eq!(recover(&digest, &good), Ok(key.address()));
    assert_eq!(key.sign(&digest), good, "signing is deterministic");

    for v in [0, 1, 26, 29, 255] {
        let mut bad = good;
        bad.0[64] = v;
        assert_eq!(recover(&digest, &bad), Err(SignatureError::RecoveryId(v)));
    }
    // The mirrored signature: s' = n − s with the other v. ecrecover takes it, we do not.
    let order = U256::from_be_bytes(alloy_primitives::hex!(
        "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"
    ));
    let mut mirrored = good;
    let s = order - U256::from_be_slice(&good.0[32..64]);
    mirrored.0[32..64].copy_from_slice(&s.to_be_bytes::<32>());
    mirrored.0[64] = 55 - good.0[64];
    assert_eq!(recover(&digest, &mirrored), Err(SignatureError::HighS));

    let mut zero = good;
    zero.0[..32].fill(0);
    assert_eq!(recover(&digest, &zero), Err(SignatureError::OutOfRange));
    let mut large = good;
    large.0[32..64].fill(0xff);
    assert_eq!(recover(&digest, &large), Err(SignatureError::OutOfRange));
    // r = 5 is no x coordinate of the curve.
    let mut pointless = good;
    pointless.0[..32].fill(0);
    pointless.0[31] = 5;
    assert_eq!(recover(&digest, &pointless), Err(SignatureError::NoKey));
}

fn slow_root(leaves: &[B256]) -> B256 {
    if leaves.is_empty() {
        return B256::ZERO;
    }
    let mut level = leaves.to_vec();
    level.resize(leaves.len().next_power_of_two(), B256::ZERO);
    while level.len() > 1 {
        level = level.chunks(2).map(|pair| merkle::node(&pair[0], &pair[1])).collect();
    }
    level[0]
}

fn leaves(count: usize) -> Vec<B256> {
    (0..count as u64).map(|i| merkle::leaf(&i.to_be_bytes())).collect()
}

/// Rule HS-4.
#[test]
fn merkle_trees() {
    assert_eq!(merkle::leaf(b"x"), keccak256([0, b'x']));
    assert_eq!(merkle::root(&[]), B256::ZERO);
    assert_eq!(merkle::proof(&[], 0), None);
    for count in 0..35 {
        let leaves = leaves(count);
        let root = merkle::root(&leaves);
        assert_eq!(root, slow_root(&leaves), "{count}");
        for (index, leaf) in leaves.iter().enumerate() {
            let proof = merkle::proof(&leaves, index).unwrap();
            assert!(merkle::verify(&root, count as u64, index as u64, leaf, &proof));
            assert!(!merkle::verify(&root, count as u64, index as u64 + 1, leaf, &proof));
            assert!(!merkle::verify(&root, count as u64, index as u64, &B256::ZERO, &proof));
            assert!(!merkle::verify(&root, index as u64, index as u64, leaf, &proof), "index = count");
            let longer = [proof.as_slice(), &[B256::ZERO]].concat();
            assert!(!merkle::verify(&root, count as u64, index as u64, leaf, &longer));
        }
        assert_eq!(merkle::proof(&leaves, count), None);
    }
    assert_eq!(merkle::depth(u64::MAX), 64);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, rng_seed: prop::test_runner::RngSeed::Fixed(2), ..Default::default() })]

    #[test]
    fn recovery_never_panics(digest in any::<[u8; 32]>(), rs in any::<[[u8; 32]; 2]>(), v in 26u8..30) {
        let bytes = [rs[0].as_slice(), &rs[1], &[v]].concat();
        let _ = recover(&digest.into(), &Signature65(bytes.try_into().unwrap()));
    }

    #[test]
    fn signing_recovers(secret in any::<[u8; 32]>(), digest in any::<[u8; 32]>()) {
        let Ok(key) = SigningKey::from_bytes(&secret) else { return Ok(()) };
        prop_assert_eq!(recover(&digest.into(), &key.sign(&digest.into())), Ok(key.address()));
        prop_assert_ne!(key.address(), Address::ZERO);
    }
}

/// L1 names an accusation by what stands inside the signed digest.
#[test]
fn a_promise_is_named_by_the_hash_that_is_signed() {
    let (id, item) = (B256::repeat_byte(0xab), B256::repeat_byte(0xcd));
    let promise = Promise::sign(&sequencer(), &deployment(), id, item, 77);
    assert_eq!(deployment().digest(&promise.hash()), promise.signing_digest(&deployment()));
    let other = Promise::sign(&sequencer(), &deployment(), id, item, 78);
    assert_ne!(other.hash(), promise.hash());
}
