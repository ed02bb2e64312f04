//! Golden vectors, read by the contracts' tests as well: `testing/vectors/protocol/*.json`.
//!
//! Everything in them follows from fixed inputs. A test fails when a file differs from what the code gives; with
//! `BLINDFOLD_WRITE_VECTORS=1` the files are written instead.

use crate::common::*;
use alloy_primitives::{Address, B256, hex};
use blindfold_bte::bls::{PublicKey, Signature};
use blindfold_bte::{Ciphertext, Proof};
use blindfold_protocol::certificate::{
    aggregate, sign_acknowledgement, sign_attestation, verify, verify_attestation,
};
use blindfold_protocol::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::PathBuf;

fn x(bytes: impl AsRef<[u8]>) -> String {
    hex::encode_prefixed(bytes)
}

fn wei(amount: u128) -> String {
    format!("{amount:#x}")
}

/// Compares with the committed file, or writes it.
fn golden(name: &str, value: Value) {
    let text = serde_json::to_string_pretty(&value).unwrap() + "\n";
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testing/vectors/protocol");
    let path = folder.join(name);
    if std::env::var_os("BLINDFOLD_WRITE_VECTORS").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(committed == text, "{name} differs from what the code gives");
}

fn domain() -> Value {
    let deployment = deployment();
    json!({
        "name": "Blindfold",
        "version": "2",
        "chainId": deployment.l1_chain_id,
        "verifyingContract": x(deployment.inbox),
        "separator": x(deployment.domain_separator()),
        "genesisHash": x(deployment.genesis_hash()),
    })
}

fn header_json(header: &BatchHeader) -> Value {
    let signed = header.sign(&sequencer(), &deployment());
    json!({
        "version": 2,
        "number": header.number,
        "parentHash": x(header.parent_hash),
        "timestampMs": header.timestamp_ms,
        "l1OriginNumber": header.l1_origin_number,
        "l1OriginHash": x(header.l1_origin_hash),
        "l1OriginTime": header.l1_origin_time,
        "envelopeRoot": x(header.envelope_root),
        "dataHash": x(header.data_hash),
        "envelopeCount": header.envelope_count,
        "envelopeBytes": header.envelope_bytes,
        "gas": header.gas,
        "baseFee": wei(header.base_fee),
        "gasBaseFee": wei(header.gas_base_fee),
        "feeLedgerRoot": x(header.fee_ledger_root),
        "forcedCursor": header.forced_cursor,
        "epoch": header.epoch,
        "rules": header.rules,
        "encoded": header.to_hex(),
        "hash": x(header.hash()),
        "digest": x(header.signing_digest(&deployment())),
        "signature": x(signed.signature.0),
    })
}

/// A chain of three headers, and one with every field at its largest.
fn headers() -> Vec<BatchHeader> {
    let first = some_header();
    let second = BatchHeader {
        number: 2,
        parent_hash: first.hash(),
        timestamp_ms: first.timestamp_ms + 250,
        envelope_root: B256::ZERO,
        envelope_count: 0,
        envelope_bytes: 0,
        gas: 0,
        ..first
    };
    let third = BatchHeader {
        number: 3,
        parent_hash: second.hash(),
        timestamp_ms: second.timestamp_ms + 750,
        l1_origin_number: 102,
        l1_origin_hash: B256::repeat_byte(102),
        l1_origin_time: first.l1_origin_time + 12,
        base_fee: 1 << 100,
        gas_base_fee: 1 << 90,
        ..first
    };
    let largest = BatchHeader {
        number: u64::MAX,
        parent_hash: B256::repeat_byte(0xff),
        timestamp_ms: u64::MAX,
        l1_origin_number: u64::MAX,
        l1_origin_hash: B256::repeat_byte(0xff),
        l1_origin_time: u64::MAX,
        envelope_root: B256::repeat_byte(0xff),
        data_hash: B256::repeat_byte(0xff),
        envelope_count: u32::MAX,
        envelope_bytes: u32::MAX,
        gas: u64::MAX,
        base_fee: u128::MAX,
        gas_base_fee: u128::MAX,
        fee_ledger_root: B256::repeat_byte(0xff),
        forced_cursor: u64::MAX,
        epoch: u64::MAX,
        rules: u16::MAX,
    };
    vec![first, second, third, largest]
}

#[test]
fn headers_and_promises() {
    let other = BatchHeader { timestamp_ms: some_header().timestamp_ms + 1, ..some_header() };
    let hash = B256::repeat_byte;
    let promises: Vec<Value> = [(hash(0xab), hash(0xcd), 77), (B256::ZERO, B256::ZERO, 0)]
        .into_iter()
        .map(|(id, item_hash, seal_by)| {
            let promise = Promise::sign(&sequencer(), &deployment(), id, item_hash, seal_by);
            json!({
                "version": 2,
                "envelopeId": x(id),
                "itemHash": x(item_hash),
                "sealBy": seal_by,
                "digest": x(promise.signing_digest(&deployment())),
                "signature": x(promise.signature.0),
                "encoded": promise.to_hex(),
            })
        })
        .collect();
    golden(
        "headers.json",
        json!({
            "domain": domain(),
            "sequencer": x(sequencer().address()),
            "headers": headers().iter().map(header_json).collect::<Vec<_>>(),
            "equivocation": [header_json(&some_header()), header_json(&other)],
            "promises": promises,
        }),
    );
}

/// Rule HS-6.
#[test]
fn envelopes() {
    let envelopes: Vec<Value> = [(1u8, 256usize, 1_000u128, 0u8), (2, 512, u128::MAX, 9)]
        .into_iter()
        .map(|(seed, length, max_fee, code)| {
            let payer = signing_key(seed);
            let header = EnvelopeHeader {
                chain_id: CHAIN_ID,
                deployment: deployment(),
                epoch: 3,
                encryption_key_hash: B256::repeat_byte(0xec),
                payer: payer.address(),
                fee_nonce: 0x0123_4567_89ab + u64::from(seed),
                max_fee,
                priority_fee: 5,
                max_gas_fee: 1 << (4 * seed),
                gas_limit: 1_000_000,
                expiry: Expiry::new(0, 4_000),
                flags: seed - 1,
            };
            // Any bytes: what is hashed here is not decrypted.
            let e: Vec<u8> = (0..length).map(|i| (i as u8).wrapping_mul(seed)).collect();
            let ciphertext = Ciphertext { c: [0xc0 + seed; 48], d: [0xd0 + seed; 16], e };
            let proof = Proof { r: [0x70 + seed; 48], s: [0x80 + seed; 32] };
            let envelope = Envelope::sign(header, ciphertext, proof, &payer);
            let item = envelope.encode();
            assert_eq!(Envelope::decode(&item).unwrap(), envelope);
            let item_hash = alloy_primitives::keccak256(&item);
            json!({
                "header": {
                    "version": 2,
                    "chainId": header.chain_id,
                    "l1ChainId": header.deployment.l1_chain_id,
                    "inbox": x(header.deployment.inbox),
                    "epoch": header.epoch,
                    "encryptionKeyHash": x(header.encryption_key_hash),
                    "payer": x(header.payer),
                    "feeNonce": header.fee_nonce,
                    "maxFee": wei(header.max_fee),
                    "priorityFee": wei(header.priority_fee),
                    "maxGasFee": wei(header.max_gas_fee),
                    "gasLimit": header.gas_limit,
                    "expiry": header.expiry.to_u64(),
                    "flags": header.flags,
                },
                "ad": x(header.hash()),
                "c": x(envelope.ciphertext.c),
                "d": x(envelope.ciphertext.d),
                "e": x(&envelope.ciphertext.e),
                "ciphertextHash": x(Sha256::digest(&envelope.ciphertext.e)),
                "proofR": x(envelope.proof.r),
                "proofS": x(envelope.proof.s),
                "id": x(envelope.id()),
                "digest": x(envelope.signing_digest(&deployment())),
                "feeSignature": x(envelope.fee_signature.0),
                "encoded": x(&item),
                "itemHash": x(item_hash),
                "leaf": x(validity::item_leaf(&envelope.id(), &item_hash, code)),
                "code": code,
            })
        })
        .collect();
    golden("envelopes.json", json!({ "domain": domain(), "envelopes": envelopes }));
}

#[test]
fn merkle_trees() {
    let trees: Vec<Value> = [0usize, 1, 2, 3, 4, 5, 8, 13]
        .into_iter()
        .map(|count| {
            let data: Vec<Vec<u8>> = (0..count as u8).map(|i| vec![i; 64]).collect();
            let leaves: Vec<B256> = data.iter().map(|data| merkle::leaf(data)).collect();
            let root = merkle::root(&leaves);
            let proofs: Vec<Value> = leaves
                .iter()
                .enumerate()
                .map(|(index, leaf)| {
                    let siblings = merkle::proof(&leaves, index).unwrap();
                    assert!(merkle::verify(&root, count as u64, index as u64, leaf, &siblings));
                    json!({ "index": index, "siblings": siblings.iter().map(x).collect::<Vec<_>>() })
                })
                .collect();
            json!({
                "count": count,
                "data": data.iter().map(x).collect::<Vec<_>>(),
                "leaves": leaves.iter().map(x).collect::<Vec<_>>(),
                "root": x(root),
                "proofs": proofs,
            })
        })
        .collect();
    golden("merkle.json", json!({ "merkle": trees }));
}

#[test]
fn fee_ledgers() {
    let account = |i: u8| {
        let (balance, withdrawn) = (u128::from(i) << (i % 100), u128::from(i / 2) << 90);
        (Address::repeat_byte(i), Account { balance, withdrawn })
    };
    // The last payer has used nonces and has nothing.
    let nonces = |count: u8| {
        (1..=count + count / 3).flat_map(|i| {
            (0..u64::from(i % 3)).map(move |n| LiveNonce {
                payer: Address::repeat_byte(i),
                nonce: n * 1_000 + 7,
                expiry: 50 + n,
            })
        })
    };
    let ledgers: Vec<Value> = [0u8, 1, 2, 3, 6, 40]
        .into_iter()
        .map(|count| {
            let ledger = FeeLedger::from_parts((1..=count).map(account), nonces(count), []);
            let root = ledger.root();
            let accounts: Vec<Value> = ledger
                .accounts()
                .iter()
                .map(|(payer, account)| {
                    let proof = ledger.prove(payer).unwrap();
                    assert!(proof.verify(&root, payer, account));
                    json!({
                        "payer": x(payer),
                        "balance": wei(account.balance),
                        "withdrawn": wei(account.withdrawn),
                        "key": x(LedgerEntry::Account { payer: *payer, account: None }.key()),
                        "leaf": x(one_entry(*payer, *account)),
                        "siblings": proof.siblings.iter().map(x).collect::<Vec<_>>(),
                    })
                })
                .collect();
            let nonces: Vec<Value> = ledger
                .nonces()
                .map(|LiveNonce { payer, nonce, expiry }| {
                    let entry = LedgerEntry::Nonce { payer, nonce, expiry: Some(expiry) };
                    json!({
                        "payer": x(payer),
                        "feeNonce": nonce,
                        "expiry": expiry,
                        "key": x(entry.key()),
                        "leaf": x(LedgerTree::default().with([entry]).root()),
                    })
                })
                .collect();
            json!({ "accounts": accounts, "nonces": nonces, "feeLedgerRoot": x(root) })
        })
        .collect();
    golden("ledgers.json", json!({ "ledgers": ledgers }));
}

/// A tree of one entry is its leaf.
fn one_entry(payer: Address, account: Account) -> B256 {
    LedgerTree::default().with([LedgerEntry::Account { payer, account: Some(account) }]).root()
}

/// Items of the forced queue, the header that a sequencer seals over them, and the one that L1 makes of them.
#[test]
fn forced_items() {
    let raw = [vec![0x02, 0xc0], (0..80u8).collect()];
    let envelope = envelope(&fields(), &signing_key(1), 1).encode();
    let entries = [
        ForcedEntry::transaction(0, 21_000, raw[0].clone(), 101),
        ForcedEntry::envelope(1, envelope, 101),
        ForcedEntry::transaction(2, 10_000_000, raw[1].clone(), 102),
    ];
    let quiet = |number| {
        let timestamp = 1_700_000_000 - 900 + number;
        L1Facts::quiet(OriginFacts { timestamp, ..origin(number) }, sequencer().address())
    };
    let mut state = ChainState::genesis(config());
    state.seal(1_700_000_000_000, &[], NONE, 0, &epoch(), &quiet(102)).unwrap();
    let items: Vec<Vec<u8>> = entries.iter().map(|entry| entry.item.to_vec()).collect();
    let facts = L1Facts { forced: entries.to_vec(), ..quiet(102) };
    let mut sealing = state.clone();
    let (sealed, applied) =
        sealing.seal(1_700_000_000_250, &checked(&items), &items, 3, &epoch(), &facts).unwrap();
    let made = state.l1_header(1_700_000_012_000, &items, &epoch()).unwrap();
    let made_verdicts = state.clone().apply_l1_header(&made, &items, &epoch(), 103).unwrap().verdicts;
    let empty = state.l1_header(1_700_000_000_001, &items[..0], &epoch()).unwrap();

    let entries_json: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let gas = entry.transaction_gas();
            json!({
                "index": entry.index,
                "kind": u8::from(gas.is_some()),
                "gasLimit": gas.unwrap_or(0),
                "item": x(&entry.item),
                "itemHash": x(entry.item_hash()),
                "length": entry.item.len(),
                "enqueuedAt": entry.enqueued_at,
            })
        })
        .collect();
    let id = Envelope::decode(&items[1]).unwrap().id();
    let leaves = |verdicts: &[Verdict], ids: [B256; 3]| -> Vec<Value> {
        let items = entries.iter().zip(verdicts).zip(ids);
        items
            .map(|((entry, verdict), id)| {
                json!({
                    "id": x(id),
                    "code": verdict.code(),
                    "leaf": x(validity::item_leaf(&id, &entry.item_hash(), verdict.code())),
                })
            })
            .collect()
    };
    let signed =
        [leaves(&applied.verdicts, [B256::ZERO, id, B256::ZERO]), leaves(&made_verdicts, [B256::ZERO; 3])];
    let [sealed_leaves, made_leaves] = signed;
    golden(
        "forced.json",
        json!({
            "domain": domain(),
            "sequencer": x(sequencer().address()),
            "entries": entries_json,
            "parentTimestampMs": state.head().timestamp_ms,
            "sealed": [header_json(&sealed)],
            "sealedLeaves": sealed_leaves,
            "l1": [header_json(&made), header_json(&empty)],
            "l1Leaves": made_leaves,
        }),
    );
}

fn bls_json(key: &PublicKey, proof: &Signature) -> Value {
    json!({
        "publicKey": x(key.to_bytes()),
        "publicKeyEip2537": x(key.to_eip2537()),
        "possession": x(proof.to_bytes()),
        "possessionEip2537": x(proof.to_eip2537()),
    })
}

#[test]
fn attestations() {
    let (deployment, epoch) = (deployment(), epoch());
    let hash = B256::repeat_byte;
    let given: Vec<Value> =
        [(9, 9, hash(0x11), 1), (9, 40, hash(0x22), 2), (epoch.first, epoch.last, B256::ZERO, 4)]
            .into_iter()
            .map(|(first_number, last_number, data_hash, member)| {
                let kind = data::KIND_OPENED;
                let attested =
                    AttestedData { epoch: epoch.epoch, first_number, last_number, kind, data_hash };
                let attestation = sign_attestation(&bls_key(member), &deployment, attested, member);
                assert_eq!(verify_attestation(&attestation, &epoch, &deployment), Ok(()));
                json!({
                    "epoch": attested.epoch,
                    "firstNumber": first_number,
                    "lastNumber": last_number,
                    "kind": kind,
                    "dataHash": x(data_hash),
                    "digest": x(attested.signing_digest(&deployment)),
                    "member": member,
                    "signature": x(attestation.signature),
                    "encoded": attestation.to_hex(),
                })
            })
            .collect();
    golden("attestations.json", json!({ "domain": domain(), "attestations": given }));
}

#[test]
fn certificates() {
    let (deployment, epoch) = (deployment(), epoch());
    let members: Vec<Value> = (1..=MEMBERS)
        .map(|member| {
            let key = bls_key(member);
            let proof = key.prove_possession();
            assert!(key.public_key().verify_possession(&proof).is_ok());
            let mut value = bls_json(&key.public_key(), &proof);
            value["member"] = member.into();
            value
        })
        .collect();
    let certificates: Vec<Value> = [vec![1, 2, 3], vec![2, 3, 4], vec![1, 2, 3, 4]]
        .into_iter()
        .zip(headers())
        .map(|(signers, header)| {
            let acknowledgements: Vec<_> = signers
                .iter()
                .map(|member| {
                    sign_acknowledgement(
                        &bls_key(*member),
                        &deployment,
                        epoch.epoch,
                        header.number,
                        header.hash(),
                        *member,
                    )
                })
                .collect();
            let certificate = aggregate(&epoch, &acknowledgements).unwrap();
            assert_eq!(verify(&certificate, &epoch, &deployment), Ok(()));
            let point = |bytes: &[u8; 48]| x(Signature::from_bytes(bytes).unwrap().to_eip2537());
            json!({
                "epoch": certificate.epoch,
                "number": certificate.number,
                "headerHash": x(certificate.header_hash),
                "digest": x(certificate.signing_digest(&deployment)),
                "signers": certificate.signers,
                "signature": x(certificate.signature),
                "signatureEip2537": point(&certificate.signature),
                "encoded": certificate.to_hex(),
                "acknowledgements": acknowledgements
                    .iter()
                    .map(|acknowledgement| json!({
                        "member": acknowledgement.member,
                        "signature": x(acknowledgement.signature),
                        "signatureEip2537": point(&acknowledgement.signature),
                        "encoded": acknowledgement.to_hex(),
                    }))
                    .collect::<Vec<_>>(),
            })
        })
        .collect();
    golden(
        "certificates.json",
        json!({
            "domain": domain(),
            "epoch": { "epoch": epoch.epoch, "first": epoch.first, "last": epoch.last, "threshold": epoch.threshold },
            "members": members,
            "certificates": certificates,
        }),
    );
}
