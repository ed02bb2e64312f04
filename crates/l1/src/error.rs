//! What can go wrong, and what to do about it.

use alloy_primitives::{Address, B256};
use blindfold_protocol::EpochError;

use crate::posting::blobs::BlobError;

// Codes by which a JSON-RPC server reports its own trouble.
const RPC_INTERNAL_ERROR: i64 = -32603;
pub(crate) const RPC_RESOURCE_UNAVAILABLE: i64 = -32002;
pub(crate) const RPC_LIMIT_EXCEEDED: i64 = -32005;
/// Nethermind's code for whatever its pool does not take, where others say -32000.
const RPC_TRANSACTION_REJECTED: i64 = -32010;
/// The method that takes transactions.
pub(crate) const SEND: &str = "eth_sendRawTransaction";

/// What a caller should do after an [`L1Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Call again after a pause; nothing is lost.
    Retry,
    /// L1 moved on: look where it stands, then decide anew.
    Refresh,
    /// Calling again cannot help: the operator, or the caller's code, has to change something.
    GiveUp,
}

/// A run that cannot be posted as it is. The caller's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// No batch.
    #[error("a run needs at least one batch")]
    Empty,
    /// The certificate is not one of the run's last header.
    #[error("the certificate is of header {certified}, the run ends with {last}")]
    OtherHeader {
        /// Header hash in the certificate.
        certified: B256,
        /// Hash of the last header.
        last: B256,
    },
    /// The certificate's aggregate is no point of G1.
    #[error("the certificate's signature is no point of G1")]
    Signature,
    /// What was made of opened batches does not give them back: post them as they are.
    #[error("the data does not give back what it was made of")]
    Opened,
    /// The headers do not follow each other, or are of several epochs.
    #[error("header {0} does not follow the one before in the same epoch")]
    NotARun(u64),
}

/// A failure of reading from or writing to L1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum L1Error {
    /// The endpoint's URL cannot be used.
    #[error("the L1 endpoint's URL cannot be used: {reason}")]
    Url {
        /// Why, without the URL, which may hold a secret.
        reason: &'static str,
    },
    /// It wants TLS, which cannot be set up.
    #[error("the L1 endpoint: {0}")]
    Tls(Box<blindfold_tls::TlsError>),
    /// The deployment asks nothing of the members of its committees.
    #[error("this deployment has no MemberStakes")]
    NoStakes,
    /// No connection, or it broke.
    #[error("L1 did not answer {method}: {reason}")]
    Unreachable {
        /// The JSON-RPC method that was called.
        method: String,
        /// What the connection reported, without the URL.
        reason: String,
    },
    /// No whole answer in time.
    #[error("L1 did not answer {method} within {timeout_ms} ms")]
    Timeout {
        /// The JSON-RPC method that was called.
        method: String,
        /// How long the call was waited for, in milliseconds.
        timeout_ms: u64,
    },
    /// An HTTP status other than success.
    #[error("L1 answered {method} with HTTP status {status}")]
    HttpStatus {
        /// The JSON-RPC method that was called.
        method: String,
        /// The HTTP status code.
        status: u16,
    },
    /// The answer was longer than we are ready to hold.
    #[error("L1's answer to {method} exceeds {limit_bytes} bytes")]
    ResponseTooLarge {
        /// The JSON-RPC method that was called.
        method: String,
        /// The most that is read of an answer, in bytes.
        limit_bytes: usize,
    },
    /// The answer is not what the interface promises.
    #[error("L1's answer to {method} is unusable: {reason}")]
    Malformed {
        /// The JSON-RPC method that was called.
        method: String,
        /// What did not fit the interface.
        reason: String,
    },
    /// What stands at the contract's address answers nothing that its interface knows; nothing at all where there is no code.
    #[error("what answered the contract's {call} is no answer to it: {reason}")]
    Undecodable {
        /// The contract's function that was called.
        call: &'static str,
        /// What did not fit the function's answer.
        reason: String,
    },
    /// The endpoint answered with a JSON-RPC error.
    #[error("L1 refused {method}: {message} (code {code})")]
    Rpc {
        /// The JSON-RPC method that was called.
        method: String,
        /// The code of the error.
        code: i64,
        /// The message of the error, as the endpoint wrote it.
        message: String,
    },
    /// The endpoint serves another chain.
    #[error("the L1 endpoint serves chain {given}, not {expected}")]
    WrongChain {
        /// Chain id of the deployment.
        expected: u64,
        /// Chain id of the endpoint.
        given: u64,
    },
    /// No contract at a configured address.
    #[error("there is no contract {name} at {address}")]
    NoContract {
        /// Name of the contract.
        name: &'static str,
        /// Where the settings have it.
        address: Address,
    },
    /// The contracts are not those of one deployment.
    #[error(
        "{contract} names {given} as its {role} where this deployment has {expected}: use the rollup.json of this deployment"
    )]
    OtherDeployment {
        /// Name of the contract that was asked.
        contract: &'static str,
        /// What it was asked for.
        role: &'static str,
        /// The address in the chain's settings.
        expected: Address,
        /// The address that the contract answered.
        given: Address,
    },
    /// Another contract, or none of this deployment's, is at a configured address.
    #[error(
        "the contract at {address} is no {name}, it has no {role}(): use the rollup.json of this deployment"
    )]
    OtherContract {
        /// Name of the contract that should be there.
        name: &'static str,
        /// Where the settings have it.
        address: Address,
        /// What it was asked for.
        role: &'static str,
    },
    /// The chain's settings say something else than what the contracts were deployed with.
    #[error(
        "{field} is {expected} in the chain's settings, the contracts were deployed with {given}: correct it there"
    )]
    OtherSetting {
        /// The key in `rollup.json`.
        field: &'static str,
        /// The value in the settings.
        expected: String,
        /// The value in the contract.
        given: String,
    },
    /// Deposits count from a block on that L1 does not have: the chain could never begin.
    #[error(
        "genesisL1Origin is {origin} in the chain's settings, L1's newest block is {newest}: use the rollup.json of this \
         deployment, and an L1 node that has caught up"
    )]
    OriginAhead {
        /// `genesisL1Origin` in the chain's settings.
        origin: u64,
        /// Number of L1's newest block.
        newest: u64,
    },
    /// A contract of a deployment can never get to its address.
    #[error(
        "{name} cannot get to {address} any more: {account} used its nonce {nonce} for something else, or the creation failed"
    )]
    NonceUsed {
        /// Name of the contract.
        name: &'static str,
        /// Where the others expect it.
        address: Address,
        /// The account that deploys.
        account: Address,
        /// The nonce that would have brought it there.
        nonce: u64,
    },
    /// Transactions of the account are in no block yet, so that where its contracts would be is open.
    #[error("{account} has transactions that wait for a block ({waiting}): wait for them, or replace them")]
    TransactionsWait {
        /// The account that deploys.
        account: Address,
        /// How many wait.
        waiting: u64,
    },
    /// The endpoint knows fewer transactions of an account than are in blocks.
    #[error(
        "L1 knows of {given} transactions by {account} where {expected} are in blocks: the endpoint is behind, try again"
    )]
    Behind {
        /// The account that sends.
        account: Address,
        /// How many are in blocks.
        expected: u64,
        /// How many the endpoint knows.
        given: u64,
    },
    /// Something else than what was to be deployed stands at a contract's address.
    #[error("the {name} at {address} has {given} as its {field} where {expected} was to be deployed")]
    OtherDeployed {
        /// Name of the contract.
        name: &'static str,
        /// The address that it stands at.
        address: Address,
        /// What it was asked for.
        field: &'static str,
        /// What it was to have.
        expected: String,
        /// What it has.
        given: String,
    },
    /// A member's stake is above what the contract can ask for.
    #[error("a member's stake of {wei} wei does not fit the contract's 96 bits")]
    StakeTooLarge {
        /// The stake, in wei.
        wei: u128,
    },
    /// A block that is asked for as final is not final.
    #[error("L1 block {number} is not final, the newest final block is {finalized}")]
    NotFinal {
        /// Number of the block that was asked for.
        number: u64,
        /// Number of the newest final block.
        finalized: u64,
    },
    /// The endpoint changed its mind about a final block.
    #[error("L1 block {number} was final as {before} and is now {now}")]
    FinalityBroken {
        /// Number of the block.
        number: u64,
        /// Its hash when it was first read.
        before: B256,
        /// Its hash in the newest answer.
        now: B256,
    },
    /// A contract refused a call.
    #[error("{call} would be refused: {reason}")]
    Reverted {
        /// The contract's function that was called.
        call: &'static str,
        /// The contract's error, decoded where it is known.
        reason: String,
    },
    /// A transaction of ours is in a block but failed: something changed after it was tried.
    #[error("{call} failed in transaction {transaction}")]
    Failed {
        /// The contract's function that was called.
        call: &'static str,
        /// Hash of the failed transaction.
        transaction: B256,
    },
    /// A transaction of ours is not in a block yet. The next one takes its place with a higher fee.
    #[error("{call} is not in a block after {waited_ms} ms (transaction {transaction})")]
    Unconfirmed {
        /// The contract's function that was called.
        call: &'static str,
        /// Hash of the transaction that waits.
        transaction: B256,
        /// How long we waited, in milliseconds.
        waited_ms: u64,
    },
    /// L1 was given a transaction of ours, and what became of it is not known.
    #[error("{call}: {cause}; transaction {transaction} may be in a block all the same")]
    Unanswered {
        /// The contract's function that was called.
        call: &'static str,
        /// Hash of the transaction that was sent.
        transaction: B256,
        /// What happened instead of an answer.
        cause: Box<L1Error>,
    },
    /// A transaction would be longer than nodes relay.
    #[error("{call} takes {bytes} bytes, nodes relay at most {limit}")]
    TransactionTooLarge {
        /// The contract's function that was to be called.
        call: &'static str,
        /// Length of the transaction, its blobs included.
        bytes: usize,
        /// The most that nodes relay, in bytes.
        limit: usize,
    },
    /// A transaction would cost more than the operator lets one cost: by itself, or because it has to take the place of one that
    /// is stuck.
    #[error(
        "{call} could cost {wei} wei, l1.max_transaction_fee_gwei allows {limit_wei} wei: raise it, or wait until L1 is \
         cheaper or has taken what is stuck"
    )]
    FeeAboveLimit {
        /// The contract's function that was to be called.
        call: &'static str,
        /// The most that it would cost, its blobs included, in wei.
        wei: u128,
        /// The most that one may cost, in wei.
        limit_wei: u128,
    },
    /// The node takes no transactions with blobs.
    #[error(
        "{call}: L1's node refuses transactions with blobs ({cause}): give l1.url a node that takes them, or have the data go \
         into calldata (sequencer.posting.data, l1_posting.data)"
    )]
    BlobsRefused {
        /// The contract's function that was to be called.
        call: &'static str,
        /// What it said of the last one.
        cause: Box<L1Error>,
    },
    /// A transaction would need more gas than one may have.
    #[error("{call} takes {gas} gas, a transaction may have {limit}")]
    GasAboveLimit {
        /// The contract's function that was to be called.
        call: &'static str,
        /// Gas by L1's estimate.
        gas: u64,
        /// The most gas of one transaction.
        limit: u64,
    },
    /// Data cannot be put into an archive, or what one gives is something else.
    #[error("archived data: {reason}")]
    NotArchived {
        /// Why.
        reason: String,
    },
    /// What stood on L1 a moment ago, or what a transaction of ours left there, is not to be found.
    #[error("{what} is not on L1, or not any more")]
    Gone {
        /// What was looked for, in words.
        what: String,
    },
    /// What was to be sent cannot be made, or contradicts what stands on L1.
    #[error("nothing was sent to L1: {reason}")]
    NotSent {
        /// Why it cannot be made, in words.
        reason: String,
    },
    /// Whoever answers for L1 here answers for a part of it only.
    #[error("this view of L1 does not tell {what}")]
    Unsupported {
        /// The question that it does not answer.
        what: &'static str,
    },
    /// The data cannot be sent in blobs.
    #[error(transparent)]
    Blobs(BlobError),
    /// The run cannot be posted.
    #[error(transparent)]
    Run(#[from] RunError),
    /// An epoch that is not registered.
    #[error("epoch {0} is not registered")]
    UnknownEpoch(u64),
    /// The registered epochs do not fit together.
    #[error(transparent)]
    Epochs(#[from] EpochError),
    /// A member's key on L1 is no point of G2.
    #[error("epoch {epoch}: the key of member {member} is no valid point")]
    MemberKey {
        /// Number of the epoch.
        epoch: u64,
        /// Index of the member, from 1.
        member: usize,
    },
    /// The encryption key is not one, or does not hash to the registered hash.
    #[error("epoch {0}: the encryption key is none or does not match its hash")]
    EncryptionKey(u64),
}

impl L1Error {
    /// What to do.
    pub fn recovery(&self) -> Recovery {
        match self {
            Self::Unreachable { .. }
            | Self::Timeout { .. }
            | Self::Unconfirmed { .. }
            | Self::NotFinal { .. }
            | Self::TransactionsWait { .. }
            | Self::FeeAboveLimit { .. }
            | Self::Gone { .. }
            | Self::Behind { .. } => Recovery::Retry,
            Self::Unanswered { cause, .. } => cause.recovery(),
            // A server that is overloaded or away, or whose credentials are being renewed.
            Self::HttpStatus { status: 401 | 403 | 408 | 429 | 500.., .. } => Recovery::Retry,
            Self::Rpc {
                code: RPC_INTERNAL_ERROR | RPC_RESOURCE_UNAVAILABLE | RPC_LIMIT_EXCEEDED | -32000,
                ..
            } => Recovery::Retry,
            Self::Rpc { method, code: RPC_TRANSACTION_REJECTED, .. } if method == SEND => Recovery::Retry,
            Self::Reverted { .. } | Self::Failed { .. } | Self::NotSent { .. } => Recovery::Refresh,
            Self::Url { .. }
            | Self::Tls(_)
            | Self::HttpStatus { .. }
            | Self::ResponseTooLarge { .. }
            | Self::Malformed { .. }
            | Self::Undecodable { .. }
            | Self::Rpc { .. }
            | Self::WrongChain { .. }
            | Self::NoContract { .. }
            | Self::OtherDeployment { .. }
            | Self::OtherContract { .. }
            | Self::OtherSetting { .. }
            | Self::OriginAhead { .. }
            | Self::NonceUsed { .. }
            | Self::OtherDeployed { .. }
            | Self::StakeTooLarge { .. }
            | Self::FinalityBroken { .. }
            | Self::TransactionTooLarge { .. }
            | Self::GasAboveLimit { .. }
            | Self::BlobsRefused { .. }
            | Self::Unsupported { .. }
            | Self::NotArchived { .. }
            | Self::Blobs(_)
            | Self::Run(_)
            | Self::UnknownEpoch(_)
            | Self::NoStakes
            | Self::Epochs(_)
            | Self::MemberKey { .. }
            | Self::EncryptionKey(_) => Recovery::GiveUp,
        }
    }

    /// Whether a transaction of ours may get into a block, or be in one, although this went wrong.
    pub fn may_be_done(&self) -> bool {
        matches!(self, Self::Unconfirmed { .. } | Self::Unanswered { .. })
    }

    /// Whether the same call may succeed after a pause: L1 was not reached, or did not take the transaction. Anything
    /// else is a refusal: trying again is right when L1 moved on, and harmless otherwise.
    pub fn is_transient(&self) -> bool {
        self.recovery() == Recovery::Retry
    }

    /// Whether asking again may help: L1 was not reached, or has moved on and is looked at anew. Otherwise the operator
    /// has to look: the endpoint answers with what its interface rules out, or is on another chain.
    pub fn may_pass(&self) -> bool {
        self.recovery() != Recovery::GiveUp
    }

    /// No answer, where it is not a call to an endpoint that failed.
    pub fn no_answer(reason: impl Into<String>) -> Self {
        Self::Unreachable { method: "what it was asked".to_owned(), reason: reason.into() }
    }

    /// What a contract refuses, where it is not a call to an endpoint.
    pub fn refused(reason: impl Into<String>) -> Self {
        Self::Reverted { call: "the call", reason: reason.into() }
    }

    /// An answer of no use, where it is not one of an endpoint.
    pub fn nonsense(reason: impl Into<String>) -> Self {
        Self::Malformed { method: "what it was asked".to_owned(), reason: reason.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_one_reaction() {
        let reactions = |error: L1Error| (error.is_transient(), error.may_pass());
        let away = L1Error::Timeout { method: "eth_getLogs".to_owned(), timeout_ms: 1 };
        assert_eq!(reactions(away), (true, true), "ask again");
        let gone = L1Error::Gone { what: "posting 4".to_owned() };
        assert_eq!(reactions(gone), (true, true));
        assert_eq!(reactions(L1Error::refused("NotOpen")), (false, true), "look anew");
        let other = L1Error::NotSent { reason: "its chain is another one".to_owned() };
        assert_eq!(reactions(other), (false, true));
        let wrong = L1Error::WrongChain { expected: 1, given: 2 };
        assert_eq!(reactions(wrong), (false, false), "the operator has to look");
        assert_eq!(reactions(L1Error::Url { reason: "no scheme" }), (false, false));
        let rejected = |method: &str| {
            let message = "InsufficientFunds".to_owned();
            L1Error::Rpc { method: method.to_owned(), code: RPC_TRANSACTION_REJECTED, message }
        };
        assert_eq!(reactions(rejected(SEND)), (true, true), "as with the code of other clients");
        assert_eq!(reactions(rejected("eth_getLogs")), (false, false));
    }
}
