//! The static half of the skip rule: which transactions of a decrypted bundle go to the execution client at all.
//!
//! The other half, on the state, is the client's own pre-checks (`crates/engine`).

use crate::bundle::{Bundle, BundleError, KIND_CONFIDENTIAL, KIND_TRANSACTION};
use crate::forced::ForcedTransaction;
use alloy_consensus::{Transaction, TxEnvelope};
use alloy_eips::eip2718::{Decodable2718, Encodable2718};
use alloy_primitives::Bytes;
use std::fmt;

/// Why a transaction of a bundle is left out before the state is looked at, in the order of looking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StaticSkip {
    /// Not a transaction; the kind has no meaning yet.
    ReservedKind,
    /// A confidential transaction: the coprocessor takes it from the committed order, the L2 block never does.
    Confidential,
    /// The bytes are no transaction, or not its one encoding.
    Undecodable,
    /// A type other than 0, 1, 2 and 4: a blob would need data we do not have, a deposit would mint.
    TypeNotAllowed,
    /// A legacy transaction that any chain would take.
    Unprotected,
    /// The chain id is not the rollup's.
    WrongChainId,
    /// Its gas limit is above what the envelope's gas limit still allows.
    GasAboveRemaining,
}

impl StaticSkip {
    /// Every reason in the rule's order.
    pub const ALL: [Self; 7] = [
        Self::ReservedKind,
        Self::Confidential,
        Self::Undecodable,
        Self::TypeNotAllowed,
        Self::Unprotected,
        Self::WrongChainId,
        Self::GasAboveRemaining,
    ];

    /// The stable name in receipts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReservedKind => "reserved_kind",
            Self::Confidential => "confidential",
            Self::Undecodable => "undecodable",
            Self::TypeNotAllowed => "type_not_allowed",
            Self::Unprotected => "unprotected",
            Self::WrongChainId => "wrong_chain_id",
            Self::GasAboveRemaining => "gas_above_remaining",
        }
    }
}

impl fmt::Display for StaticSkip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One item of a bundle, judged without the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Index in the bundle, from 0.
    pub index: u16,
    /// The raw transaction to try, or why it is skipped.
    pub outcome: Result<Bytes, StaticSkip>,
}

/// Judges the items of a decrypted message in order. A bad bundle skips the whole envelope.
///
/// `remaining` starts at the envelope's gas limit and falls by the gas limit of each transaction kept.
pub fn candidates(chain_id: u64, gas_limit: u64, message: &[u8]) -> Result<Vec<Candidate>, BundleError> {
    let bundle = Bundle::decode(message)?;
    let mut remaining = gas_limit;
    let judged = bundle.items.iter().zip(0u16..).map(|(item, index)| {
        let outcome = judge(chain_id, remaining, item.kind, &item.bytes).map(|gas| {
            // `judge` has refused a gas limit above what remains.
            remaining -= gas;
            Bytes::copy_from_slice(&item.bytes)
        });
        Candidate { index, outcome }
    });
    Ok(judged.collect())
}

/// Judges a forced transaction: as the only item of a bundle whose envelope asked for its gas limit (FI-4).
pub fn forced_candidate(chain_id: u64, forced: &ForcedTransaction) -> Candidate {
    let outcome = judge(chain_id, forced.gas_limit, KIND_TRANSACTION, &forced.transaction)
        .map(|_| Bytes::copy_from_slice(&forced.transaction));
    Candidate { index: 0, outcome }
}

/// The transaction's gas limit, or the first reason against it.
fn judge(chain_id: u64, remaining: u64, kind: u8, bytes: &[u8]) -> Result<u64, StaticSkip> {
    match kind {
        KIND_TRANSACTION => {}
        KIND_CONFIDENTIAL => return Err(StaticSkip::Confidential),
        _ => return Err(StaticSkip::ReservedKind),
    }
    check_type(bytes)?;
    let mut rest = bytes;
    let transaction = TxEnvelope::decode_2718(&mut rest).map_err(|_| StaticSkip::Undecodable)?;
    // One transaction, one encoding: anything else would get another hash from the execution client.
    if !rest.is_empty() || transaction.encoded_2718() != bytes {
        return Err(StaticSkip::Undecodable);
    }
    match transaction.chain_id() {
        None => return Err(StaticSkip::Unprotected),
        Some(id) if id != chain_id => return Err(StaticSkip::WrongChainId),
        Some(_) => {}
    }
    let gas = transaction.gas_limit();
    if gas > remaining {
        return Err(StaticSkip::GasAboveRemaining);
    }
    Ok(gas)
}

/// EIP-2718: a first byte up to 0x7f is a type, 0xc0 and above starts a legacy transaction. The bytes of a type that is
/// not allowed are not decoded at all.
fn check_type(bytes: &[u8]) -> Result<(), StaticSkip> {
    match bytes.first() {
        None | Some(0x80..=0xbf) => Err(StaticSkip::Undecodable),
        Some(0x01 | 0x02 | 0x04 | 0xc0..) => Ok(()),
        Some(_) => Err(StaticSkip::TypeNotAllowed),
    }
}
