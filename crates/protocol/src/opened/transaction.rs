//! Transactions by their fields.

use alloy_consensus::{SignableTransaction, TxEip1559, TxEnvelope};
use alloy_eips::eip2718::{Decodable2718, Encodable2718};
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256};

use crate::signature::{Signature65, recover};

/// A signed EIP-1559 transaction of the chain, without an access list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Structured {
    pub nonce: u64,
    pub max_priority_fee_per_gas: u128,
    pub max_fee_per_gas: u128,
    pub gas_limit: u64,
    /// None creates a contract.
    pub to: Option<Address>,
    pub value: U256,
    pub input: Vec<u8>,
    /// r ‖ s.
    pub signature: [u8; 64],
    pub odd_y: bool,
}

impl Structured {
    /// The fields, if the transaction is one that they give back.
    pub fn of(chain_id: u64, bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let TxEnvelope::Eip1559(signed) = TxEnvelope::decode_2718(&mut rest).ok()? else { return None };
        let transaction = signed.tx();
        let mut signature = [0; 64];
        signature.copy_from_slice(signed.signature().as_bytes().get(..64)?);
        let structured = Self {
            nonce: transaction.nonce,
            max_priority_fee_per_gas: transaction.max_priority_fee_per_gas,
            max_fee_per_gas: transaction.max_fee_per_gas,
            gas_limit: transaction.gas_limit,
            to: transaction.to.to().copied(),
            value: transaction.value,
            input: transaction.input.to_vec(),
            signature,
            odd_y: signed.signature().v(),
        };
        (structured.encode(chain_id) == bytes).then_some(structured)
    }

    /// The signed transaction.
    pub fn encode(&self, chain_id: u64) -> Vec<u8> {
        let (r, s) = self.signature.split_at(32);
        let signature = Signature::new(U256::from_be_slice(r), U256::from_be_slice(s), self.odd_y);
        // Its hash is not looked at.
        let signed = alloy_consensus::Signed::new_unchecked(self.unsigned(chain_id), signature, B256::ZERO);
        TxEnvelope::Eip1559(signed).encoded_2718()
    }

    /// Who signed it.
    pub fn sender(&self, chain_id: u64) -> Option<Address> {
        let (hash, signature) = self.signed(chain_id);
        recover(&hash, &signature).ok()
    }

    /// What was signed, and how.
    pub fn signed(&self, chain_id: u64) -> (B256, Signature65) {
        let mut signature = [27 + u8::from(self.odd_y); 65];
        signature[..64].copy_from_slice(&self.signature);
        (self.unsigned(chain_id).signature_hash(), Signature65(signature))
    }

    fn unsigned(&self, chain_id: u64) -> TxEip1559 {
        TxEip1559 {
            chain_id,
            nonce: self.nonce,
            gas_limit: self.gas_limit,
            max_fee_per_gas: self.max_fee_per_gas,
            max_priority_fee_per_gas: self.max_priority_fee_per_gas,
            to: self.to.map_or(TxKind::Create, TxKind::Call),
            value: self.value,
            access_list: Default::default(),
            input: Bytes::copy_from_slice(&self.input),
        }
    }
}

/// A value as m · 10^e, e as large as can be: people send round sums.
pub(super) fn decimal(value: U256) -> (u8, U256) {
    let (mut mantissa, mut exponent) = (value, 0u8);
    let ten = U256::from(10u8);
    while !mantissa.is_zero() {
        let (quotient, rest) = mantissa.div_rem(ten);
        if !rest.is_zero() {
            break;
        }
        mantissa = quotient;
        exponent += 1;
    }
    (exponent, mantissa)
}

/// m · 10^e, unless that is more than fits.
pub(super) fn from_decimal(exponent: u8, mantissa: U256) -> Option<U256> {
    let power = U256::from(10u8).checked_pow(U256::from(exponent))?;
    mantissa.checked_mul(power)
}
