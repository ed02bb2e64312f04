//! Fixed keys and settings, and envelopes made to order.

use alloy_primitives::{Address, B256, address};
use blindfold_bte::bls::SecretKey;
use blindfold_bte::{EncryptionKey, dealer};
use blindfold_protocol::envelope_builder::{EnvelopeFields, build};
use blindfold_protocol::validity::check_items;
use blindfold_protocol::{
    Bundle, Canonical, ChainConfig, CheckedItem, Deployment, Deposit, Envelope, Epoch, L1Facts, L1Timing,
    LedgerEvent, OriginFacts, SigningKey,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use std::sync::LazyLock;

pub const CHAIN_ID: u64 = 42_069;
pub const MEMBERS: u16 = 4;
pub const THRESHOLD: u16 = 3;
pub const MAX_BATCH: u32 = 4;
pub const FIRST: u64 = 1;
pub const LAST: u64 = 10_000;

pub fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

pub fn deployment() -> Deployment {
    Deployment { l1_chain_id: 31_337, inbox: address!("00000000000000000000000000000000000b11ed") }
}

pub fn signing_key(index: u8) -> SigningKey {
    SigningKey::from_bytes(&[index; 32]).unwrap()
}

pub fn sequencer() -> SigningKey {
    signing_key(0x5e)
}

pub fn bls_key(member: u16) -> SecretKey {
    SecretKey::generate(&[member as u8; 32]).unwrap()
}

pub static ENCRYPTION_KEY: LazyLock<EncryptionKey> =
    LazyLock::new(|| dealer::deal(MAX_BATCH, MEMBERS, THRESHOLD, &mut rng(7)).unwrap().0.encryption_key());

pub fn config() -> ChainConfig {
    ChainConfig {
        chain_id: CHAIN_ID,
        deployment: deployment(),
        registry: Address::repeat_byte(0x11),
        fee_vault: Address::repeat_byte(0x22),
        forced_queue: Address::repeat_byte(0x23),
        hint_registry: Address::repeat_byte(0x24),
        hint_verifier: Address::repeat_byte(0x25),
        deposit_portal: Address::repeat_byte(0x26),
        output_registry: Address::repeat_byte(0x27),
        timing: L1Timing::default(),
        sequencer: sequencer().address(),
        fee_recipient: Address::repeat_byte(0x33),
        base_fee_recipient: Address::repeat_byte(0x34),
        block_gas_limit: 200_000_000,
        initial_base_fee: 1_000,
        min_base_fee: 10,
        initial_gas_base_fee: 3,
        min_gas_base_fee: 1,
        malformed_surcharge: 0,
        genesis_l1_origin: 100,
    }
}

pub fn epoch() -> Epoch {
    Epoch {
        epoch: 3,
        first: FIRST,
        last: LAST,
        counts_from: 0,
        continues: 0,
        parameters_hash: B256::repeat_byte(0x44),
        encryption_key_hash: ENCRYPTION_KEY.hash().into(),
        max_batch: MAX_BATCH,
        threshold: THRESHOLD,
        members: (1..=MEMBERS).map(|member| bls_key(member).public_key()).collect(),
    }
}

pub fn origin(number: u64) -> OriginFacts {
    OriginFacts { number, hash: B256::repeat_byte(number as u8), timestamp: 1_000 + number }
}

/// An origin at which nothing happened on L1.
pub fn quiet(number: u64) -> L1Facts {
    L1Facts::quiet(origin(number), sequencer().address())
}

/// An origin up to which these deposits came in.
pub fn deposited(number: u64, deposits: &[Deposit]) -> L1Facts {
    L1Facts { ledger: deposits.iter().copied().map(LedgerEvent::Deposit).collect(), ..quiet(number) }
}

pub fn fields() -> EnvelopeFields {
    EnvelopeFields {
        chain_id: CHAIN_ID,
        deployment: deployment(),
        epoch: 3,
        fee_nonce: 1,
        max_fee: 2_000,
        priority_fee: 5,
        max_gas_fee: 100,
        gas_limit: 1_000_000,
        expiry: 100,
        generation: 0,
    }
}

/// An envelope of an empty bundle, 639 bytes.
pub fn envelope(fields: &EnvelopeFields, payer: &SigningKey, seed: u64) -> Envelope {
    build(&ENCRYPTION_KEY, fields, &Bundle::default(), payer, &mut rng(seed)).unwrap()
}

/// Signs again, after a change of the header or ciphertext.
pub fn resigned(envelope: Envelope, payer: &SigningKey) -> Envelope {
    let Envelope { mut header, ciphertext, proof, .. } = envelope;
    header.payer = payer.address();
    Envelope::sign(header, ciphertext, proof, payer)
}

pub fn checked(items: &[Vec<u8>]) -> Vec<CheckedItem> {
    let slices: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
    check_items(&config(), &epoch(), &slices, &mut rng(99))
}

/// No bytes, for no items.
pub const NONE: &[Vec<u8>] = &[];

/// Some bytes for items of which only the length matters here: what else the data hash depends on is tested for itself.
pub fn raw(items: &[CheckedItem]) -> Vec<Vec<u8>> {
    let length = |item: &CheckedItem| match item {
        Ok(checked) => checked.item_bytes,
        Err(rejected) => rejected.item_bytes,
    };
    items.iter().map(|item| vec![0x5a; length(item) as usize]).collect()
}

pub fn checked_envelopes(envelopes: &[Envelope]) -> Vec<CheckedItem> {
    checked(&envelopes.iter().map(Canonical::encode).collect::<Vec<_>>())
}

/// Some header.
pub fn some_header() -> blindfold_protocol::BatchHeader {
    blindfold_protocol::BatchHeader {
        number: 1,
        parent_hash: deployment().genesis_hash(),
        timestamp_ms: 1_700_000_000_250,
        l1_origin_number: 101,
        l1_origin_hash: B256::repeat_byte(101),
        l1_origin_time: 1_700_000_000 - 900,
        envelope_root: B256::repeat_byte(0xe0),
        data_hash: B256::repeat_byte(0xda),
        envelope_count: 2,
        envelope_bytes: 1_278,
        gas: 2_000_000,
        base_fee: 1_000,
        gas_base_fee: 3,
        fee_ledger_root: B256::repeat_byte(0xfe),
        forced_cursor: 0,
        epoch: 3,
        rules: 1,
    }
}
