//! Bytes on L1 for each encrypted transfer: as they are, as what they were opened to, and the same transfers in a span batch
//! of the OP stack, which does not encrypt.
//!
//! Transfers are made up to look like those of wallets: recipients that nobody paid before, sums of up to four digits at some
//! power of ten, nonces below 500, three habits of tipping, and a fee that follows the base fee of the batch. Signatures,
//! addresses and nonces of envelopes are most of it, and those no compressor shortens.

use std::ops::Range;

use alloy_primitives::{Address, Bytes, U256};
use anyhow::{Context, Result};
use blindfold_bte::{EncryptionKey, SessionKey, dealer};
use blindfold_client::{TransactionFields, transaction::sign};
use blindfold_l1::{BatchData, HintPosting, HintsReference, OpenedData, PostedBatch, PostedEntry, RunData};
use blindfold_protocol::{
    B256, Bundle, Canonical, Deployment, Signature65, SigningKey,
    envelope_builder::{EnvelopeFields, build_with_key},
    opened::{BatchTerms, OpenBatch, RunTerms},
};
use blindfold_runtime::now;
use clap::Args;
use rand::{Rng, RngExt, SeedableRng, rngs::StdRng};
use serde::Serialize;

use super::machine::Machine;

/// What compresses both, so that only the encodings are compared.
const LEVEL: i32 = 19;
const CHAIN_ID: u64 = 42_069;
const TRANSFER_GAS: u64 = 21_000;
/// The sequencer's signature over a header is not data of a transfer, but travels with it.
const SIGNATURE: Signature65 = Signature65([7; 65]);
const TIPS: [u128; 3] = [1_000_000, 100_000_000, 1_000_000_000];

/// Options of `blindfold bench data`.
#[derive(Args, Debug)]
pub struct DataArgs {
    /// Transfers in the run
    #[arg(long, default_value_t = 1_000)]
    transfers: usize,
    /// Transfers in one envelope, by one payer
    #[arg(long, default_value_t = 1)]
    bundle: usize,
    /// Envelopes in a batch
    #[arg(long, default_value_t = 100)]
    batch: usize,
    /// Seed of the transfers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Bytes for each transfer.
#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    seed: u64,
    transfers: usize,
    bundle: usize,
    /// `RunData` of kind 1.
    raw: f64,
    /// `RunData` of kind 2.
    opened: f64,
    /// `HintData`, which both need.
    hints: f64,
    /// Kind 2 and hints.
    total: f64,
    /// The same transfers in a span batch.
    span_batch: f64,
    /// The one over the other.
    ratio: f64,
    /// What of kind 2 and hints no compressor shortens.
    random: f64,
    /// Time to encode and to compress, and to decode and encrypt again, for each envelope.
    encode_us: f64,
    restore_us: f64,
}

/// A signed transfer, by its fields and as it is.
#[derive(Clone)]
pub(super) struct Transfer {
    pub(super) fields: TransactionFields,
    pub(super) raw: Bytes,
}

struct Batch {
    terms: BatchTerms,
    codes: Vec<u8>,
    items: Vec<Vec<u8>>,
    keys: Vec<Option<SessionKey>>,
    transfers: Vec<Transfer>,
}

pub fn run(args: &DataArgs) -> Result<()> {
    let mut rng = StdRng::seed_from_u64(args.seed);
    let encryption_key = dealer::deal(1, 1, 1, &mut rng)?.0.encryption_key();
    let run =
        RunTerms { chain_id: CHAIN_ID, deployment: Deployment { l1_chain_id: 1, inbox: address(&mut rng) } };
    let mut batches = Vec::new();
    let mut left = args.transfers;
    let mut base_fee = 300_000_000u128;
    while left > 0 {
        let count = left.min(args.batch.max(1).saturating_mul(args.bundle.max(1)));
        left -= count;
        base_fee += rng.random_range(0..2_000_000);
        let number = batches.len() as u64 + 1;
        batches.push(made(&mut rng, &encryption_key, (&run, number), (count, args.bundle.max(1)), base_fee)?);
    }
    let report = measure(args, &run, &encryption_key, &batches)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(());
    }
    println!("{}", report.machine.line());
    println!("{} transfers, {} in an envelope, seed {}", report.transfers, report.bundle, report.seed);
    for (what, bytes) in [
        ("envelopes as they are", report.raw),
        ("envelopes as they were opened", report.opened),
        ("hints", report.hints),
        ("opened, and hints", report.total),
        ("of that, what nothing shortens", report.random),
        ("an OP stack span batch, in the clear", report.span_batch),
    ] {
        println!("{what:<40}{bytes:>10.1} bytes a transfer");
    }
    println!("opened and hints are {:.2} × the span batch", report.ratio);
    println!("{:.0} µs to encode, {:.0} µs to restore an envelope", report.encode_us, report.restore_us);
    Ok(())
}

fn address(rng: &mut StdRng) -> Address {
    let mut bytes = [0; 20];
    rng.fill_bytes(&mut bytes);
    bytes.into()
}

fn transfer(rng: &mut StdRng, key: &SigningKey, nonce: u64, base_fee: u128) -> Transfer {
    transfer_on(CHAIN_ID, rng, key, (nonce, 12..18, 0), base_fee)
}

/// A transfer like those of wallets, on that chain; of up to four digits at one of these powers of ten, with so many random
/// bytes as its input.
pub(super) fn transfer_on(
    chain_id: u64,
    rng: &mut StdRng,
    key: &SigningKey,
    (nonce, powers, input_bytes): (u64, Range<u8>, usize),
    base_fee: u128,
) -> Transfer {
    let tip = TIPS[rng.random_range(0..TIPS.len())];
    let value = U256::from(rng.random_range(1..10_000u64))
        * U256::from(10u8).pow(U256::from(rng.random_range(powers)));
    let fields = TransactionFields {
        chain_id,
        nonce,
        to: address(rng),
        value,
        input: (0..input_bytes).map(|_| rng.random::<u8>()).collect(),
        // EIP-7623's floor.
        gas_limit: TRANSFER_GAS + 40 * input_bytes as u64,
        max_fee_per_gas: 2 * base_fee + tip,
        max_priority_fee_per_gas: tip,
    };
    let (raw, _) = sign(&fields, key);
    Transfer { fields, raw }
}

/// A batch of so many transfers, so many in an envelope.
fn made(
    rng: &mut StdRng,
    encryption_key: &EncryptionKey,
    (run, number): (&RunTerms, u64),
    (transfers, bundle): (usize, usize),
    base_fee: u128,
) -> Result<Batch> {
    let terms = BatchTerms { number, epoch: 1, encryption_key_hash: B256::from(encryption_key.hash()) };
    let mut batch = Batch { terms, codes: vec![], items: vec![], keys: vec![], transfers: vec![] };
    let mut left = transfers;
    while left > 0 {
        let count = left.min(bundle);
        left -= count;
        let key = SigningKey::random(rng);
        let first = rng.random_range(0..500u64);
        let inside: Vec<Transfer> =
            (first..).take(count).map(|nonce| transfer(rng, &key, nonce, base_fee)).collect();
        let fields = EnvelopeFields {
            chain_id: run.chain_id,
            deployment: run.deployment,
            epoch: terms.epoch,
            fee_nonce: rng.next_u64(),
            max_fee: 2 * base_fee,
            priority_fee: 1_000_000,
            max_gas_fee: 2 * base_fee / 100,
            gas_limit: TRANSFER_GAS * count as u64,
            expiry: number + rng.random_range(100..240),
            generation: 0,
        };
        let messages = Bundle::of_transactions(inside.iter().map(|transfer| transfer.raw.to_vec()));
        let (envelope, session) = build_with_key(encryption_key, &fields, &messages, &key, rng)?;
        batch.items.push(envelope.encode());
        batch.codes.push(0);
        batch.keys.push(Some(session));
        batch.transfers.extend(inside);
    }
    Ok(batch)
}

fn measure(
    args: &DataArgs,
    run: &RunTerms,
    encryption_key: &EncryptionKey,
    batches: &[Batch],
) -> Result<Report> {
    let transfers: usize = batches.iter().map(|batch| batch.transfers.len()).sum();
    let envelopes: usize = batches.iter().map(|batch| batch.items.len()).sum();
    let each = |bytes: usize| bytes as f64 / transfers as f64;
    let raw = RunData {
        batches: batches
            .iter()
            .map(|batch| BatchData {
                signature: SIGNATURE,
                items: batch.codes.iter().copied().zip(batch.items.iter().cloned()).collect(),
            })
            .collect(),
    };
    let started = now();
    let open: Vec<OpenBatch<'_>> = batches
        .iter()
        .map(|batch| OpenBatch {
            terms: batch.terms,
            signature: &SIGNATURE,
            codes: &batch.codes,
            items: &batch.items,
            keys: &batch.keys,
        })
        .collect();
    let opened = OpenedData::encode(run, HintsReference { id: 1, l1_block: 20_000_000 }, &open)?;
    let encoded = started.elapsed();
    let started = now();
    let decoded = OpenedData::decode(&opened)?;
    for (made, batch) in decoded.run.batches.iter().zip(batches) {
        let restored = made.restore(run, &batch.terms, encryption_key, &batch.keys)?;
        let same = restored.iter().map(|(_, item)| item).eq(&batch.items);
        anyhow::ensure!(same && made.opened() == batch.items.len(), "the data does not give the batch back");
    }
    let restored = started.elapsed();
    let entry =
        |key: &Option<SessionKey>| key.as_ref().map(|key| PostedEntry { kind: 1, key: *key.as_bytes() });
    let hints = HintPosting {
        batches: batches
            .iter()
            .map(|batch| PostedBatch {
                entries: batch.keys.iter().filter_map(entry).collect(),
                singletons: vec![],
            })
            .collect(),
    };
    let blocks: Vec<&[Transfer]> = batches.iter().map(|batch| batch.transfers.as_slice()).collect();
    let span = compressed_span_batch(&blocks)?;
    let total = each(opened.len() + hints.encode().len());
    // r ‖ s of the payer, nonce and key of the envelope; r ‖ s and the recipient of each transfer.
    let random = each(envelopes * (64 + 8 + 16) + transfers * (64 + 20));
    let us = |time: std::time::Duration| time.as_secs_f64() * 1e6 / envelopes as f64;
    Ok(Report {
        machine: Machine::this(),
        seed: args.seed,
        transfers,
        bundle: args.bundle,
        raw: each(raw.encode().len()),
        opened: each(opened.len()),
        hints: each(hints.encode().len()),
        total,
        span_batch: each(span),
        ratio: total / each(span),
        random,
        encode_us: us(encoded),
        restore_us: us(restored),
    })
}

/// Bytes of a span batch with these blocks.
pub(super) fn compressed_span_batch(blocks: &[&[Transfer]]) -> Result<usize> {
    Ok(zstd::bulk::compress(&span_batch(blocks), LEVEL).context("compressing the span batch")?.len())
}

/// The blocks as a span batch: prefix and payload of the specification (Delta), uncompressed.
fn span_batch(blocks: &[&[Transfer]]) -> Vec<u8> {
    let transfers: Vec<&Transfer> = blocks.iter().copied().flatten().collect();
    // Timestamp and L1 origin relative, two checks of 20 bytes, block count, origin bits.
    let mut out = vec![1, 2, 3];
    out.extend_from_slice(&[0xab; 40]);
    varint(&mut out, blocks.len() as u64);
    out.extend(std::iter::repeat_n(0u8, blocks.len().div_ceil(8)));
    for block in blocks {
        varint(&mut out, block.len() as u64);
    }
    // No contract is created; the parities of y are random.
    out.extend(std::iter::repeat_n(0u8, transfers.len().div_ceil(8)));
    out.extend(transfers.chunks(8).map(|eight| eight.iter().fold(0u8, |bits, one| bits << 1 | parity(one))));
    for transfer in &transfers {
        out.extend_from_slice(signature(&transfer.raw));
    }
    for transfer in &transfers {
        out.extend_from_slice(transfer.fields.to.as_slice());
    }
    for Transfer { fields, .. } in &transfers {
        let mut list = Vec::new();
        integer(&mut list, &fields.value.to_be_bytes::<32>());
        integer(&mut list, &fields.max_priority_fee_per_gas.to_be_bytes());
        integer(&mut list, &fields.max_fee_per_gas.to_be_bytes());
        // No input, no access list.
        list.extend_from_slice(&[0x80, 0xc0]);
        out.extend_from_slice(&[2, 0xc0 + list.len() as u8]);
        out.extend(list);
    }
    for transfer in &transfers {
        varint(&mut out, transfer.fields.nonce);
    }
    for transfer in &transfers {
        varint(&mut out, transfer.fields.gas_limit);
    }
    out
}

/// r ‖ s: a transfer ends with the parity of y and both, each 32 bytes behind a length but where zeros lead.
fn signature(raw: &[u8]) -> &[u8] {
    raw.split_at(raw.len().saturating_sub(64)).1
}

fn parity(transfer: &Transfer) -> u8 {
    let place = transfer.raw.len().saturating_sub(67);
    transfer.raw.get(place).map_or(0, |byte| byte & 1)
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// RLP of an integer of less than 56 bytes.
fn integer(out: &mut Vec<u8>, bytes: &[u8]) {
    let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
    match bytes.split_at(first).1 {
        [small] if *small < 0x80 => out.push(*small),
        rest => {
            out.push(0x80 + rest.len() as u8);
            out.extend_from_slice(rest);
        }
    }
}
