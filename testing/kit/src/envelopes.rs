//! The chain's settings, its payers, and what they sign.

use std::sync::Arc;

use alloy_consensus::{SignableTransaction, TxEip1559, TxEnvelope};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Signature, TxKind, U256};
use blindfold_bte::Proof;
use blindfold_protocol::{
    Address, Bundle, ChainConfig, Deployment, Envelope, L1Timing, SigningKey,
    envelope_builder::{EnvelopeFields, build},
};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use sha2::{Digest, Sha256};

use crate::{BASE_FEE, CHAIN_ID, EPOCH, committee};

/// The settings of the chain. Tests that need others change a copy.
pub fn chain_config() -> Arc<ChainConfig> {
    Arc::new(ChainConfig {
        chain_id: CHAIN_ID,
        deployment: Deployment { l1_chain_id: 900, inbox: Address::repeat_byte(0x11) },
        registry: Address::repeat_byte(0x12),
        fee_vault: Address::repeat_byte(0x13),
        forced_queue: Address::repeat_byte(0x21),
        hint_registry: Address::repeat_byte(0x22),
        hint_verifier: Address::repeat_byte(0x23),
        deposit_portal: Address::repeat_byte(0x24),
        output_registry: Address::repeat_byte(0x25),
        timing: L1Timing::default(),
        sequencer: sequencer_key().address(),
        fee_recipient: Address::repeat_byte(0x14),
        base_fee_recipient: Address::ZERO,
        block_gas_limit: 200_000_000,
        initial_base_fee: BASE_FEE,
        min_base_fee: BASE_FEE,
        initial_gas_base_fee: 1,
        min_gas_base_fee: 1,
        malformed_surcharge: 500,
        genesis_l1_origin: 1,
    })
}

/// The key of the sequencer that [`chain_config`] names.
pub fn sequencer_key() -> Arc<SigningKey> {
    Arc::new(payer(9))
}

/// The key of a payer.
pub fn payer(n: u8) -> SigningKey {
    SigningKey::from_bytes(&[n; 32]).expect("a scalar")
}

/// A transaction that decodes, a different one for each payer and nonce. Nobody in tests recovers its sender.
pub fn transaction(n: u8, nonce: u64) -> Vec<u8> {
    transaction_on(CHAIN_ID, n, nonce)
}

/// The same on another chain.
pub fn transaction_on(chain_id: u64, n: u8, nonce: u64) -> Vec<u8> {
    let unsigned = TxEip1559 {
        chain_id,
        nonce,
        gas_limit: 21_000,
        max_fee_per_gas: 10,
        max_priority_fee_per_gas: 1,
        to: TxKind::Call(Address::repeat_byte(n)),
        value: U256::from(nonce + 1),
        ..TxEip1559::default()
    };
    let signature = Signature::new(U256::from(5), U256::from(6), false);
    TxEnvelope::from(unsigned.into_signed(signature)).encoded_2718()
}

/// The fields of an envelope that is accepted in [`EPOCH`] from a payer with a deposit.
pub fn fields(nonce: u64) -> EnvelopeFields {
    EnvelopeFields {
        chain_id: CHAIN_ID,
        deployment: chain_config().deployment,
        epoch: EPOCH,
        fee_nonce: nonce,
        max_fee: 10 * BASE_FEE,
        priority_fee: 10,
        max_gas_fee: 1_000,
        gas_limit: 100_000,
        expiry: 900,
        generation: 0,
    }
}

/// An envelope with one [`transaction`].
pub fn envelope(n: u8, nonce: u64) -> Envelope {
    envelope_with(n, nonce, |_| {})
}

/// An envelope with one [`transaction`] and other fields.
pub fn envelope_with(n: u8, nonce: u64, change: impl FnOnce(&mut EnvelopeFields)) -> Envelope {
    envelope_of(n, nonce, &Bundle::of_transactions([transaction(n, nonce)]), change)
}

/// An envelope with this bundle and other fields.
pub fn envelope_of(n: u8, nonce: u64, bundle: &Bundle, change: impl FnOnce(&mut EnvelopeFields)) -> Envelope {
    let mut fields = fields(nonce);
    change(&mut fields);
    let mut rng = ChaCha20Rng::seed_from_u64(u64::from(n) << 32 | nonce);
    build(&committee().encryption_key, &fields, bundle, &payer(n), &mut rng).expect("it fits")
}

/// [1]₁, compressed.
const GENERATOR: [u8; 48] = [
    0x97, 0xf1, 0xd3, 0xa7, 0x31, 0x97, 0xd7, 0x94, 0x26, 0x95, 0x63, 0x8c, 0x4f, 0xa9, 0xac, 0x0f, 0xc3,
    0x68, 0x8c, 0x4f, 0x97, 0x74, 0xb9, 0x05, 0xa1, 0x4e, 0x3a, 0x3f, 0x17, 0x1b, 0xac, 0x58, 0x6c, 0x55,
    0xe8, 0x3f, 0xf9, 0x7a, 0x1a, 0xef, 0xfb, 0x3a, 0xf0, 0x0a, 0xdb, 0x22, 0xc6, 0xbb,
];

/// An envelope whose proof holds and whose D opens to nothing: k = 1, ρ = 1, so R = C = `[1]₁` and s = 1 + c, by the words
/// of the scheme.
pub fn malformed(n: u8, nonce: u64) -> Envelope {
    let Envelope { header, mut ciphertext, .. } = envelope(n, nonce);
    ciphertext.c = GENERATOR;
    let mut hasher = Sha256::new();
    hasher.update(b"BLINDFOLD-V1-POK");
    hasher.update(ciphertext.c);
    hasher.update(ciphertext.d);
    hasher.update(Sha256::digest(&ciphertext.e));
    hasher.update(header.hash());
    hasher.update(GENERATOR);
    let digest = hasher.finalize();
    let mut challenge = [0u8; 16];
    challenge.copy_from_slice(&digest[..16]);
    let mut s = [0u8; 32];
    s[16..].copy_from_slice(&(u128::from_be_bytes(challenge) + 1).to_be_bytes());
    Envelope::sign(header, ciphertext, Proof { r: GENERATOR, s }, &payer(n))
}
