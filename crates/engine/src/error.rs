//! What can go wrong, whose fault it is, and what to do about it.

use alloy_primitives::B256;

use crate::PayloadError;

// Codes a JSON-RPC server uses for its own trouble.
const RPC_INTERNAL_ERROR: i64 = -32603;
const RPC_SERVER_ERROR: i64 = -32000;
const RPC_LIMIT_EXCEEDED: i64 = -32005;
/// What op-geth answers to a call that takes longer than its server waits.
const RPC_TIMED_OUT: i64 = -32002;
/// The client has dropped the payload it was building: it builds it again when asked again.
const ENGINE_UNKNOWN_PAYLOAD: i64 = -38001;

/// What a caller should do after an [`EngineError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Call again after a pause; nothing is lost.
    Retry,
    /// The client lost blocks: run [`crate::replay`], then call again.
    Replay,
    /// Calling again cannot help: stop and tell the operator.
    GiveUp,
}

/// Whose fault an [`EngineError`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The execution client, its machine, or the way to it.
    Client,
    /// The operator's settings do not fit the client.
    Configuration,
    /// The arguments of the caller here.
    Caller,
}

/// A request that brought no JSON-RPC answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// No connection, or it broke.
    #[error("execution client did not answer {method}: {reason}")]
    Unreachable {
        /// The JSON-RPC method that was called.
        method: String,
        /// What the connection reported.
        reason: String,
    },
    /// No whole answer in time.
    #[error("execution client did not answer {method} within {timeout_ms} ms")]
    Timeout {
        /// The JSON-RPC method that was called.
        method: String,
        /// How long the answer was waited for, in milliseconds.
        timeout_ms: u64,
    },
    /// The token was refused: the two sides hold different secrets, or their clocks differ by over a minute.
    #[error(
        "execution client refused our token for {method} (HTTP {status}): check the secret and the clocks"
    )]
    Unauthorized {
        /// The JSON-RPC method that was called.
        method: String,
        /// The HTTP status code.
        status: u16,
    },
    /// An HTTP status other than success.
    #[error("execution client answered {method} with HTTP status {status}")]
    HttpStatus {
        /// The JSON-RPC method that was called.
        method: String,
        /// The HTTP status code.
        status: u16,
    },
    /// The answer was longer than we are ready to hold.
    #[error("execution client's answer to {method} exceeds {limit_bytes} bytes")]
    ResponseTooLarge {
        /// The JSON-RPC method that was called.
        method: String,
        /// The most that is read of an answer, in bytes.
        limit_bytes: usize,
    },
    /// The answer is not the JSON that the interface promises.
    #[error("execution client's answer to {method} is malformed: {reason}")]
    Malformed {
        /// The JSON-RPC method that was called.
        method: String,
        /// What did not fit the interface.
        reason: String,
    },
}

/// A failure of an [`crate::ExecutionClient`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The client gave no usable answer.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The client answered with a JSON-RPC error that has no meaning of its own here.
    #[error("execution client refused {method}: {message} (code {code})")]
    Rpc {
        /// The JSON-RPC method that was called.
        method: String,
        /// The code of the JSON-RPC error.
        code: i64,
        /// What the client said.
        message: String,
    },
    /// The client does not have this block, or not its state.
    #[error("execution client does not know block {hash}")]
    UnknownBlock {
        /// The block it was asked to build on or to adopt.
        hash: B256,
    },
    /// A block to be marked safe or finalised is not in the client's canonical chain.
    #[error("execution client cannot mark safe {safe} and finalised {finalized}: {reason}")]
    UnknownFinality {
        /// The block to be marked safe.
        safe: B256,
        /// The block to be marked finalised.
        finalized: B256,
        /// What the client said.
        reason: String,
    },
    /// The client holds the block for invalid.
    #[error("execution client holds block {hash} for invalid: {reason}")]
    InvalidBlock {
        /// Hash of the block.
        hash: B256,
        /// What the client said.
        reason: String,
    },
    /// The client refused to build with these inputs.
    #[error("execution client cannot build on {parent}: {reason}")]
    InvalidInputs {
        /// Hash of the parent.
        parent: B256,
        /// The client's words, or ours.
        reason: String,
    },
    /// More transactions than one block can be asked to hold.
    #[error("{count} transactions for one block, at most {limit} are taken")]
    TooManyTransactions {
        /// How many transactions came.
        count: usize,
        /// How many one block may have.
        limit: usize,
    },
    /// An L1 deposit that is not a deposit transaction.
    #[error("L1 deposit {index} is not a transaction of type 0x7e")]
    NotADeposit {
        /// Its index among the L1 deposits.
        index: usize,
    },
    /// The filter's answer is not a partition of the list, in order.
    #[error("execution client's filter answered nonsense: {reason}")]
    InvalidFilterResult {
        /// What does not fit the interface.
        reason: String,
    },
    /// The client built another block than the one asked for.
    #[error("execution client built another block than asked: {field} differs")]
    PayloadMismatch {
        /// The first field that differs.
        field: &'static str,
    },
    /// A stored payload cannot be read.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// The client knows another list of skip reasons than we do: the two were built from different versions.
    #[error("execution client's skip rule differs from ours: {reason}")]
    IncompatibleClient {
        /// What differs, in words.
        reason: String,
    },
}

impl EngineError {
    /// What whoever drives the client does about it.
    pub fn recovery(&self) -> Recovery {
        match self {
            Self::Transport(error) => error.recovery(),
            Self::UnknownBlock { .. } | Self::UnknownFinality { .. } => Recovery::Replay,
            Self::Rpc {
                code:
                    RPC_INTERNAL_ERROR
                    | RPC_SERVER_ERROR
                    | RPC_LIMIT_EXCEEDED
                    | RPC_TIMED_OUT
                    | ENGINE_UNKNOWN_PAYLOAD,
                ..
            } => Recovery::Retry,
            Self::Rpc { .. }
            | Self::InvalidBlock { .. }
            | Self::InvalidInputs { .. }
            | Self::TooManyTransactions { .. }
            | Self::NotADeposit { .. }
            | Self::InvalidFilterResult { .. }
            | Self::PayloadMismatch { .. }
            | Self::Payload(_)
            | Self::IncompatibleClient { .. } => Recovery::GiveUp,
        }
    }

    /// Whose fault it is: where to look first.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Transport(TransportError::Unauthorized { .. }) | Self::IncompatibleClient { .. } => {
                Fault::Configuration
            }
            Self::InvalidInputs { .. }
            | Self::TooManyTransactions { .. }
            | Self::NotADeposit { .. }
            | Self::Payload(_) => Fault::Caller,
            Self::Transport(_)
            | Self::Rpc { .. }
            | Self::UnknownBlock { .. }
            | Self::UnknownFinality { .. }
            | Self::InvalidBlock { .. }
            | Self::InvalidFilterResult { .. }
            | Self::PayloadMismatch { .. } => Fault::Client,
        }
    }
}

impl TransportError {
    /// What whoever drives the client does about it.
    pub fn recovery(&self) -> Recovery {
        match self {
            // A secret is renewed on both sides, one after the other; and clocks are set right.
            Self::Unreachable { .. } | Self::Timeout { .. } | Self::Unauthorized { .. } => Recovery::Retry,
            // A server that is starting, stopping or overloaded says so with 429 and 5xx.
            Self::HttpStatus { status, .. } if *status == 429 || *status >= 500 => Recovery::Retry,
            Self::HttpStatus { .. } | Self::ResponseTooLarge { .. } | Self::Malformed { .. } => {
                Recovery::GiveUp
            }
        }
    }
}

/// A pass-through read that brought no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReadError {
    /// Not a read of public state that passes through.
    #[error("the method {method} is not a public read")]
    NotAllowed {
        /// The JSON-RPC method that was asked for.
        method: String,
    },
    /// Too many reads are under way: come back later.
    #[error("more than {limit} reads are under way")]
    Busy {
        /// How many run at the same time.
        limit: usize,
    },
    /// The client's own error; to be handed to the caller as it is.
    #[error("{message} (code {code})")]
    Rpc {
        /// The code of the JSON-RPC error.
        code: i64,
        /// What the client said.
        message: String,
        /// The client's `data`, for instance the return data of a revert.
        data: Option<serde_json::Value>,
    },
    /// The client gave no usable answer.
    #[error(transparent)]
    Transport(#[from] TransportError),
}
