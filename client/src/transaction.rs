//! Inner transactions: reading what a wallet sends, signing what our own wallet makes.

use alloy_consensus::{
    SignableTransaction, Transaction, TxEip1559, TxEnvelope, transaction::SignerRecoverable,
};
use alloy_eips::eip2718::{Decodable2718, Encodable2718};
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256};
use blindfold_protocol::SigningKey;
use serde_json::{Value, json};

/// Gas limit that no single transaction may exceed (EIP-7825).
pub const MAX_TRANSACTION_GAS: u64 = 1 << 24;

/// A decoded raw transaction that this chain may execute. Printed without its contents.
#[derive(Clone)]
pub struct SignedTransaction {
    /// The bytes as the wallet signed them.
    pub raw: Bytes,
    /// Hash of the transaction.
    pub hash: B256,
    /// The account that signed it.
    pub sender: Address,
    /// The sender's nonce that it uses.
    pub nonce: u64,
    /// Gas limit of the transaction.
    pub gas_limit: u64,
    /// The most it can cost: gas limit × fee cap + value, in wei. Saturates.
    pub max_cost: U256,
    inner: TxEnvelope,
}

/// Why a raw transaction is refused, in the words wallets know from geth.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionError {
    /// Not a signed EIP-2718 transaction.
    #[error("rlp: transaction cannot be decoded: {0}")]
    Undecodable(String),
    /// Blob and deposit transactions have no place in an envelope.
    #[error("transaction type not supported")]
    TypeNotAllowed,
    /// No chain id: it could be replayed on every chain.
    #[error("only replay-protected (EIP-155) transactions allowed over RPC")]
    Unprotected,
    /// It was signed for another chain.
    #[error("invalid chain id for signer: have {have} want {want}")]
    WrongChain {
        /// Chain id that it was signed for.
        have: u64,
        /// Chain id of this rollup.
        want: u64,
    },
    /// No address fits the signature.
    #[error("invalid sender")]
    InvalidSender,
    /// Above the cap of one transaction.
    #[error("transaction gas limit too high (cap: {MAX_TRANSACTION_GAS}, tx: {0})")]
    GasLimitTooHigh(u64),
}

impl SignedTransaction {
    /// Reads and checks a raw transaction without asking any server.
    ///
    /// # Errors
    /// [`TransactionError`].
    pub fn decode(raw: Bytes, chain_id: u64) -> Result<Self, TransactionError> {
        if matches!(raw.first(), Some(0 | 3 | 5..=0x7f)) {
            return Err(TransactionError::TypeNotAllowed);
        }
        let inner = TxEnvelope::decode_2718_exact(&raw)
            .map_err(|error| TransactionError::Undecodable(error.to_string()))?;
        if inner.encoded_2718() != raw {
            // The skip rule takes only a transaction's one encoding.
            return Err(TransactionError::Undecodable("not its canonical encoding".to_owned()));
        }
        match inner.chain_id() {
            None => return Err(TransactionError::Unprotected),
            Some(have) if have != chain_id => {
                return Err(TransactionError::WrongChain { have, want: chain_id });
            }
            Some(_) => {}
        }
        if inner.gas_limit() > MAX_TRANSACTION_GAS {
            return Err(TransactionError::GasLimitTooHigh(inner.gas_limit()));
        }
        let sender = inner.recover_signer().map_err(|_| TransactionError::InvalidSender)?;
        let gas_cost = U256::from(inner.gas_limit()).saturating_mul(U256::from(inner.max_fee_per_gas()));
        Ok(Self {
            hash: *inner.tx_hash(),
            sender,
            nonce: inner.nonce(),
            gas_limit: inner.gas_limit(),
            max_cost: gas_cost.saturating_add(inner.value()),
            raw,
            inner,
        })
    }

    /// The form `eth_getTransactionByHash` gives for a transaction that is not in a block yet.
    #[must_use]
    pub fn pending_json(&self) -> Value {
        let mut object = serde_json::to_value(&self.inner).unwrap_or_else(|_| json!({}));
        object["hash"] = json!(self.hash);
        object["from"] = json!(self.sender);
        object["blockHash"] = Value::Null;
        object["blockNumber"] = Value::Null;
        object["transactionIndex"] = Value::Null;
        if object.get("gasPrice").is_none() {
            object["gasPrice"] = json!(format!("{:#x}", self.inner.max_fee_per_gas()));
        }
        object
    }
}

impl std::fmt::Debug for SignedTransaction {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "SignedTransaction({}, redacted)", self.hash)
    }
}

/// What a transfer or call is made of; the rest is looked up or chosen by the wallet.
#[derive(Clone, Debug)]
pub struct TransactionFields {
    /// Chain id of the rollup.
    pub chain_id: u64,
    /// The sender's nonce that it uses.
    pub nonce: u64,
    /// The account that it calls or pays.
    pub to: Address,
    /// What it carries, in wei.
    pub value: U256,
    /// Its input, empty for a plain transfer.
    pub input: Bytes,
    /// Gas limit of the transaction.
    pub gas_limit: u64,
    /// The most that it pays for a unit of gas, in wei.
    pub max_fee_per_gas: u128,
    /// Wei per gas above the base fee.
    pub max_priority_fee_per_gas: u128,
}

/// Signs an EIP-1559 transaction; gives its raw EIP-2718 bytes and its hash.
#[must_use]
pub fn sign(fields: &TransactionFields, key: &SigningKey) -> (Bytes, B256) {
    let transaction = TxEip1559 {
        chain_id: fields.chain_id,
        nonce: fields.nonce,
        gas_limit: fields.gas_limit,
        max_fee_per_gas: fields.max_fee_per_gas,
        max_priority_fee_per_gas: fields.max_priority_fee_per_gas,
        to: TxKind::Call(fields.to),
        value: fields.value,
        access_list: Default::default(),
        input: fields.input.clone(),
    };
    let signature = key.sign(&transaction.signature_hash());
    let (r, s) = (U256::from_be_slice(&signature.0[..32]), U256::from_be_slice(&signature.0[32..64]));
    let signed = transaction.into_signed(Signature::new(r, s, signature.0[64] == 28));
    let hash = *signed.hash();
    (TxEnvelope::from(signed).encoded_2718().into(), hash)
}

#[cfg(test)]
mod tests {
    use alloy_consensus::{TxEip4844, TxEip4844Variant, TxLegacy};

    use super::*;

    const CHAIN: u64 = 42_069;

    fn key() -> SigningKey {
        SigningKey::from_bytes(&[7; 32]).unwrap()
    }

    fn fields() -> TransactionFields {
        TransactionFields {
            chain_id: CHAIN,
            nonce: 5,
            to: Address::repeat_byte(1),
            value: U256::from(10),
            input: Bytes::new(),
            gas_limit: 21_000,
            max_fee_per_gas: 100,
            max_priority_fee_per_gas: 1,
        }
    }

    fn signature() -> Signature {
        Signature::new(U256::from(1), U256::from(1), false)
    }

    #[test]
    fn what_we_sign_is_what_we_read() {
        let (raw, hash) = sign(&fields(), &key());
        let read = SignedTransaction::decode(raw, CHAIN).unwrap();
        assert_eq!((read.hash, read.sender, read.nonce, read.gas_limit), (hash, key().address(), 5, 21_000));
        assert_eq!(read.max_cost, U256::from(21_000 * 100 + 10));
        let pending = read.pending_json();
        assert_eq!(pending["blockNumber"], Value::Null);
        assert_eq!(pending["nonce"], "0x5");
        assert_eq!(pending["hash"], json!(hash));
    }

    #[test]
    fn each_refusal_has_its_own_words() {
        let decode = |raw: Vec<u8>| SignedTransaction::decode(raw.into(), CHAIN).unwrap_err();
        assert!(matches!(decode(vec![]), TransactionError::Undecodable(_)));
        for unknown_type in [0, 3, 5, 0x7e, 0x7f] {
            assert_eq!(decode(vec![unknown_type, 0xc0]), TransactionError::TypeNotAllowed);
        }
        assert!(matches!(decode(vec![2, 0xc0]), TransactionError::Undecodable(_)));
        assert!(matches!(decode(vec![0x80]), TransactionError::Undecodable(_)));
        let (raw, _) = sign(&TransactionFields { chain_id: 1, ..fields() }, &key());
        assert_eq!(decode(raw.to_vec()), TransactionError::WrongChain { have: 1, want: CHAIN });
        let (raw, _) = sign(&TransactionFields { gas_limit: MAX_TRANSACTION_GAS + 1, ..fields() }, &key());
        assert_eq!(decode(raw.to_vec()), TransactionError::GasLimitTooHigh(MAX_TRANSACTION_GAS + 1));
        let legacy = TxLegacy { chain_id: None, ..Default::default() }.into_signed(signature());
        assert_eq!(decode(TxEnvelope::from(legacy).encoded_2718()), TransactionError::Unprotected);
        let blob: TxEip4844Variant =
            TxEip4844Variant::TxEip4844(TxEip4844 { chain_id: CHAIN, ..Default::default() });
        let blob = TxEnvelope::from(blob.into_signed(signature()));
        assert_eq!(decode(blob.encoded_2718()), TransactionError::TypeNotAllowed);
        let mut trailing = sign(&fields(), &key()).0.to_vec();
        trailing.push(0);
        assert!(matches!(decode(trailing), TransactionError::Undecodable(_)));
    }
}
