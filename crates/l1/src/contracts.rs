//! Bindings generated from `contracts/abi`, which `scripts/contracts abi` writes.
#![allow(missing_docs, clippy::too_many_arguments)]

use alloy_sol_types::SolInterface;
use blindfold_protocol::limits;

alloy_sol_types::sol! {
    // The structs that a contract's base uses are looked for out here.
    #[derive(Debug, PartialEq, Eq)]
    struct RunReference {
        uint64 first;
        uint64 last;
        uint64 postedAt;
        bytes32 headerRoot;
    }

    #[derive(Debug, PartialEq, Eq)]
    struct BatchHeader {
        uint8 version;
        uint64 number;
        bytes32 parentHash;
        uint64 timestampMs;
        uint64 l1OriginNumber;
        bytes32 l1OriginHash;
        uint64 l1OriginTime;
        bytes32 envelopeRoot;
        bytes32 dataHash;
        uint32 envelopeCount;
        uint32 envelopeBytes;
        uint64 gas;
        uint128 baseFee;
        uint128 gasBaseFee;
        bytes32 feeLedgerRoot;
        uint64 forcedCursor;
        uint64 epoch;
        uint16 rules;
    }
}

alloy_sol_types::sol!(
    #[derive(Debug, PartialEq, Eq)]
    BlindedInbox,
    "../../contracts/abi/BlindedInbox.json"
);

alloy_sol_types::sol!(
    #[derive(Debug, PartialEq, Eq)]
    CommitteeRegistry,
    "../../contracts/abi/CommitteeRegistry.json"
);

alloy_sol_types::sol!(
    #[derive(Debug, PartialEq, Eq)]
    DepositPortal,
    "../../contracts/abi/DepositPortal.json"
);

alloy_sol_types::sol!(
    #[derive(Debug, PartialEq, Eq)]
    FeeVault,
    "../../contracts/abi/FeeVault.json"
);

alloy_sol_types::sol!(
    #[derive(Debug, PartialEq, Eq)]
    ForcedQueue,
    "../../contracts/abi/ForcedQueue.json"
);

alloy_sol_types::sol!(
    #[derive(Debug, PartialEq, Eq)]
    HintRegistry,
    "../../contracts/abi/HintRegistry.json"
);

alloy_sol_types::sol!(
    #[derive(Debug, PartialEq, Eq)]
    HintVerifier,
    "../../contracts/abi/HintVerifier.json"
);

alloy_sol_types::sol!(
    #[derive(Debug, PartialEq, Eq)]
    MemberStakes,
    "../../contracts/abi/MemberStakes.json"
);

alloy_sol_types::sol!(
    #[derive(Debug, PartialEq, Eq)]
    EncryptionKeyVerifier,
    "../../contracts/abi/EncryptionKeyVerifier.json"
);

alloy_sol_types::sol!(
    #[derive(Debug, PartialEq, Eq)]
    OutputRegistry,
    "../../contracts/abi/OutputRegistry.json"
);

/// A contract's error in words: its name and fields. `None` when it is none of ours.
pub fn describe_error(data: &[u8]) -> Option<String> {
    fn text<E: SolInterface + std::fmt::Debug>(data: &[u8]) -> Option<String> {
        E::abi_decode(data).ok().map(|error| format!("{error:?}"))
    }
    let text = text::<BlindedInbox::BlindedInboxErrors>(data)
        .or_else(|| text::<CommitteeRegistry::CommitteeRegistryErrors>(data))
        .or_else(|| text::<DepositPortal::DepositPortalErrors>(data))
        .or_else(|| text::<FeeVault::FeeVaultErrors>(data))
        .or_else(|| text::<ForcedQueue::ForcedQueueErrors>(data))
        .or_else(|| text::<HintRegistry::HintRegistryErrors>(data))
        .or_else(|| text::<HintVerifier::HintVerifierErrors>(data))
        .or_else(|| text::<MemberStakes::MemberStakesErrors>(data))
        .or_else(|| text::<EncryptionKeyVerifier::EncryptionKeyVerifierErrors>(data))
        .or_else(|| text::<OutputRegistry::OutputRegistryErrors>(data))?;
    // "WrongNumber(WrongNumber { expected: 3, given: 1 })": the outer name says nothing more.
    Some(match text.split_once('(') {
        Some((_, inner)) => inner.strip_suffix(')').unwrap_or(inner).to_owned(),
        None => text,
    })
}

/// Every contract has its own type for the structs that it shares with others.
macro_rules! shared_headers {
    ($($contract:ident),*) => {$(
        impl From<&blindfold_protocol::BatchHeader> for $contract::BatchHeader {
            fn from(header: &blindfold_protocol::BatchHeader) -> Self {
                Self {
                    version: limits::VERSION,
                    number: header.number,
                    parentHash: header.parent_hash,
                    timestampMs: header.timestamp_ms,
                    l1OriginNumber: header.l1_origin_number,
                    l1OriginHash: header.l1_origin_hash,
                    l1OriginTime: header.l1_origin_time,
                    envelopeRoot: header.envelope_root,
                    dataHash: header.data_hash,
                    envelopeCount: header.envelope_count,
                    envelopeBytes: header.envelope_bytes,
                    gas: header.gas,
                    baseFee: header.base_fee,
                    gasBaseFee: header.gas_base_fee,
                    feeLedgerRoot: header.fee_ledger_root,
                    forcedCursor: header.forced_cursor,
                    epoch: header.epoch,
                    rules: header.rules,
                }
            }
        }
    )*};
}

/// The same for references to runs.
macro_rules! shared_runs {
    ($($contract:ident),*) => {$(
        impl From<&crate::posting::run::RunReference> for $contract::RunReference {
            fn from(run: &crate::posting::run::RunReference) -> Self {
                Self { first: run.first, last: run.last, postedAt: run.posted_at, headerRoot: run.header_root }
            }
        }
    )*};
}

shared_headers!(BlindedInbox, FeeVault, HintRegistry, MemberStakes);
shared_runs!(BlindedInbox, FeeVault, HintRegistry);

/// A header as the inbox shows it.
pub(crate) fn from_contract(header: &BlindedInbox::BatchHeader) -> blindfold_protocol::BatchHeader {
    blindfold_protocol::BatchHeader {
        number: header.number,
        parent_hash: header.parentHash,
        timestamp_ms: header.timestampMs,
        l1_origin_number: header.l1OriginNumber,
        l1_origin_hash: header.l1OriginHash,
        l1_origin_time: header.l1OriginTime,
        envelope_root: header.envelopeRoot,
        data_hash: header.dataHash,
        envelope_count: header.envelopeCount,
        envelope_bytes: header.envelopeBytes,
        gas: header.gas,
        base_fee: header.baseFee,
        gas_base_fee: header.gasBaseFee,
        fee_ledger_root: header.feeLedgerRoot,
        forced_cursor: header.forcedCursor,
        epoch: header.epoch,
        rules: header.rules,
    }
}

impl From<&crate::posting::evidence::GivenPromise> for FaultRecords::GivenPromise {
    fn from(promise: &crate::posting::evidence::GivenPromise) -> Self {
        Self {
            sequencer: promise.sequencer,
            envelopeId: promise.envelope_id,
            itemHash: promise.item_hash,
            sealBy: promise.seal_by,
        }
    }
}
