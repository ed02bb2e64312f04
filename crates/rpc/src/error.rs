//! Errors of the JSON-RPC interface: a code, a message, and `data {reason, retry}` (J-1), with the time to come back where a
//! caller has to (J-8).

use std::{borrow::Cow, fmt, time::Duration};

use jsonrpsee::{core::ClientError, types::ErrorObjectOwned};
use serde::{Deserialize, Serialize};

use crate::{client::with_advice, limits::RETRY_AFTER_MS, pace::told_ms, turned_away::turned_away};

/// JSON-RPC error codes. `-38000 … -38099` are Blindfold's.
pub mod code {
    /// The request is not JSON.
    pub const PARSE_ERROR: i32 = -32700;
    /// The method does not exist here.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// Parameters are missing, superfluous, of the wrong type, not canonical or oversized.
    pub const INVALID_PARAMS: i32 = -32602;
    /// A fault of this server.
    pub const INTERNAL: i32 = -32603;
    /// What was sent is understood and refused; the same bytes will be refused again unless `retry` says otherwise.
    pub const REFUSED: i32 = -38000;
    /// Queues are full or the caller is too fast; try again later.
    pub const BUSY: i32 = -38001;
    /// The method would show a plaintext to a party that must not see it.
    pub const PLAINTEXT_REFUSED: i32 = -38002;
    /// What was asked for is not here yet, or a part this server depends on is away.
    pub const UNAVAILABLE: i32 = -38003;
    /// What was sent contradicts what this server already holds (a second header, a second acknowledgement).
    pub const CONFLICT: i32 = -38004;
    /// The transaction was taken, and its receipt did not come in time (EIP-7966); `data` is its hash.
    pub const NO_RECEIPT_YET: i32 = 4;
}

/// A refusal as a server states it. Converts into the JSON-RPC error object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({reason}, code {code})")]
pub struct RpcError {
    /// The JSON-RPC error code, see [`code`].
    pub code: i32,
    /// What happened, for a person; its words may change.
    pub message: String,
    /// What happened, for a program: a snake_case word that stays.
    pub reason: Cow<'static, str>,
    /// Whether the same request may succeed later.
    pub retry: bool,
    /// With [`standing_by`](RpcError::standing_by): the URL of the sequencer that leads, as the one that stands by knows it.
    /// A hint about whom of those that are known to ask first, and nothing to follow.
    pub leader: Option<Box<str>>,
    /// With `retry`: when the same request may succeed, from now on in milliseconds; without it nothing is known. Whoever
    /// comes back adds a random part of it (J-8).
    pub retry_after_ms: Option<u64>,
}

/// The reason of a sequencer that stands by.
const STANDING_BY: &str = "standing_by";

#[derive(Serialize, Deserialize)]
struct Data {
    reason: String,
    retry: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leader: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

impl RpcError {
    /// An error with every part given.
    pub fn new(
        code: i32,
        reason: impl Into<Cow<'static, str>>,
        retry: bool,
        message: impl fmt::Display,
    ) -> Self {
        Self {
            code,
            message: message.to_string(),
            reason: reason.into(),
            retry,
            leader: None,
            retry_after_ms: None,
        }
    }

    /// Understood and refused for good (`-38000`).
    pub fn refused(reason: impl Into<Cow<'static, str>>, message: impl fmt::Display) -> Self {
        Self::new(code::REFUSED, reason, false, message)
    }

    /// Queues full or caller too fast: retry (`-38001`), in a second unless [`after`](Self::after) says when.
    pub fn busy(reason: impl Into<Cow<'static, str>>, message: impl fmt::Display) -> Self {
        Self { retry_after_ms: Some(RETRY_AFTER_MS), ..Self::new(code::BUSY, reason, true, message) }
    }

    /// The same error, with when to come back: within the bounds of what callers are told.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        Self { retry_after_ms: Some(told_ms(time)), ..self }
    }

    /// The same error, with when to come back, where that is known.
    #[must_use]
    pub fn after_some(self, time: Option<Duration>) -> Self {
        match time {
            Some(time) => self.after(time),
            None => self,
        }
    }

    /// The method would show a plaintext here (`-38002`, reason `plaintext_refused`).
    pub fn plaintext_refused(method: &str) -> Self {
        let message = format!(
            "{method} would show this server a transaction before it is ordered; send an envelope, and ask a node you trust"
        );
        Self::new(code::PLAINTEXT_REFUSED, "plaintext_refused", false, message)
    }

    /// Not here yet, or a part behind this server is away: retry (`-38003`).
    pub fn unavailable(reason: impl Into<Cow<'static, str>>, message: impl fmt::Display) -> Self {
        Self::new(code::UNAVAILABLE, reason, true, message)
    }

    /// This sequencer stands by, and another one leads: ask that one (`-38003`, reason `standing_by`).
    pub fn standing_by(leader: Option<&str>) -> Self {
        let message = "this sequencer stands by; another one leads";
        Self { leader: leader.map(Into::into), ..Self::unavailable(STANDING_BY, message) }
    }

    /// Whether this is [`standing_by`](Self::standing_by).
    pub fn is_standing_by(&self) -> bool {
        self.reason == STANDING_BY
    }

    /// Contradicts what is held (`-38004`).
    pub fn conflict(reason: impl Into<Cow<'static, str>>, message: impl fmt::Display) -> Self {
        Self::new(code::CONFLICT, reason, false, message)
    }

    /// A parameter is missing, superfluous or malformed (`-32602`).
    pub fn invalid_params(reason: impl Into<Cow<'static, str>>, message: impl fmt::Display) -> Self {
        Self::new(code::INVALID_PARAMS, reason, false, message)
    }

    /// No such method (`-32601`, reason `unknown_method`).
    pub fn unknown_method(method: &str) -> Self {
        Self::new(
            code::METHOD_NOT_FOUND,
            "unknown_method",
            false,
            format!("method {method:.64} does not exist here"),
        )
    }

    /// A fault of this server (`-32603`, reason `internal`). The cause is logged here and not told to the caller.
    pub fn internal(cause: impl fmt::Display) -> Self {
        tracing::error!(%cause, "call failed inside this server");
        Self::new(code::INTERNAL, "internal", true, "internal error; the server's log has the cause")
    }
}

impl From<RpcError> for ErrorObjectOwned {
    fn from(error: RpcError) -> Self {
        let RpcError { reason, retry, leader, retry_after_ms, .. } = error;
        let data = Data { reason: reason.into_owned(), retry, leader, retry_after_ms };
        Self::owned(error.code, error.message, Some(data))
    }
}

/// What a client got instead of a result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceivedError {
    /// The server answered with an error.
    #[error("the server refused: {0}")]
    Refused(RpcError),
    /// No answer came: connection refused or lost, timeout, or an answer that is no JSON-RPC. Whether the server
    /// acted on the call is not known.
    #[error("no answer: {0}")]
    NoAnswer(String),
}

impl ReceivedError {
    /// Whether the same call may succeed later.
    pub fn retry(&self) -> bool {
        match self {
            Self::Refused(error) => error.retry,
            Self::NoAnswer(_) => true,
        }
    }

    /// When the same call may succeed, where the server said so. Add a random part of it.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(error) if error.retry => error.retry_after_ms.map(Duration::from_millis),
            _ => None,
        }
    }

    /// The stable reason; `no_answer` when none came.
    pub fn reason(&self) -> &str {
        match self {
            Self::Refused(error) => &error.reason,
            Self::NoAnswer(_) => "no_answer",
        }
    }
}

impl From<ErrorObjectOwned> for RpcError {
    /// Reads an error object from any server; one without our `data` gets its reason from the code.
    fn from(error: ErrorObjectOwned) -> Self {
        let data = error.data().and_then(|raw| serde_json::from_str::<Data>(raw.get()).ok());
        let (code, message) = (error.code(), error.message());
        match data {
            // Whatever stands there, nobody waits longer than we would tell.
            Some(Data { reason, retry, leader, retry_after_ms }) => {
                let retry_after_ms = retry_after_ms.map(|ms| told_ms(Duration::from_millis(ms)));
                Self { leader, retry_after_ms, ..Self::new(code, reason, retry, message) }
            }
            None => {
                let (reason, retry) = standard_reason(code);
                Self::new(code, reason, retry, message)
            }
        }
    }
}

impl From<ClientError> for ReceivedError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Call(object) => Self::Refused(object.into_owned().into()),
            other => match turned_away(&other) {
                Some(refusal) => Self::Refused(refusal.clone()),
                None => Self::NoAnswer(with_advice(&causes(&other))),
            },
        }
    }
}

/// An error with all its causes: what is said of TLS stands in the innermost.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = inner.source();
    }
    text
}

/// Reason and retry of the errors the JSON-RPC library makes by itself.
pub(crate) fn standard_reason(code: i32) -> (&'static str, bool) {
    match code {
        code::PARSE_ERROR => ("parse_error", false),
        -32600 => ("invalid_request", false),
        code::METHOD_NOT_FOUND => ("unknown_method", false),
        code::INVALID_PARAMS => ("invalid_params", false),
        code::INTERNAL => ("internal", true),
        -32005 | -32010 => ("batches_refused", false),
        -32006 => ("too_many_subscriptions", false),
        -32007 => ("request_too_large", false),
        -32008 | -32011 => ("response_too_large", false),
        -32009 => ("busy", true),
        _ => ("unspecified", false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ForwardedRefusal;

    #[test]
    fn every_builder_survives_the_wire() {
        let cases = [
            (RpcError::refused("expired", "the envelope expired"), -38000, "expired", false),
            (RpcError::busy("mempool_full", "m"), -38001, "mempool_full", true),
            (RpcError::busy("busy", "m").after(Duration::from_millis(1_234)), -38001, "busy", true),
            (RpcError::plaintext_refused("eth_call"), -38002, "plaintext_refused", false),
            (RpcError::unavailable("not_certified", "m"), -38003, "not_certified", true),
            (RpcError::standing_by(None), -38003, "standing_by", true),
            (RpcError::standing_by(Some("http://a")), -38003, "standing_by", true),
            (RpcError::conflict("second_header", "m"), -38004, "second_header", false),
            (RpcError::invalid_params("undecodable", "m"), -32602, "undecodable", false),
            (RpcError::unknown_method("eth_x"), -32601, "unknown_method", false),
            (RpcError::internal("disk"), -32603, "internal", true),
        ];
        for (error, code, reason, retry) in cases {
            assert_eq!((error.code, error.reason.as_ref(), error.retry), (code, reason, retry));
            let object = ErrorObjectOwned::from(error.clone());
            let json = serde_json::to_string(&object).expect("serializes");
            let back: ErrorObjectOwned = serde_json::from_str(&json).expect("parses");
            assert_eq!(RpcError::from(back), error);
            let forwarded = ForwardedRefusal::from(error.clone());
            assert_eq!(RpcError::from(forwarded), RpcError { leader: None, ..error });
        }
    }

    #[test]
    fn whoever_is_told_to_come_back_is_told_when_and_waits_no_longer_than_that() {
        let told = |error: RpcError| ReceivedError::Refused(error).retry_after();
        assert_eq!(told(RpcError::busy("busy", "m")), Some(Duration::from_millis(RETRY_AFTER_MS)));
        assert_eq!(told(RpcError::refused("expired", "m")), None);
        assert_eq!(told(RpcError::refused("expired", "m").after(Duration::from_secs(1))), None);
        let never = serde_json::json!({ "reason": "busy", "retry": true, "retry_after_ms": u64::MAX });
        let object = ErrorObjectOwned::owned(code::BUSY, "m", Some(never));
        let longest = Duration::from_millis(crate::limits::MAX_RETRY_AFTER_MS);
        assert_eq!(ReceivedError::from(ClientError::Call(object)).retry_after(), Some(longest));
    }

    #[test]
    fn foreign_errors_get_a_reason() {
        let object = ErrorObjectOwned::owned(-32601, "Method not found", None::<()>);
        let received = ReceivedError::from(ClientError::Call(object));
        assert_eq!((received.reason(), received.retry()), ("unknown_method", false));
        let object = ErrorObjectOwned::owned(3, "execution reverted", Some("0x08c379a0"));
        assert_eq!(RpcError::from(object).reason, "unspecified");
        let received = ReceivedError::from(ClientError::RequestTimeout);
        assert_eq!((received.reason(), received.retry()), ("no_answer", true));
        for code in [-32700, -32600, -32602, -32603, -32005, -32006, -32007, -32008, -32009, -32010, -32011] {
            assert_ne!(standard_reason(code).0, "unspecified");
        }
    }
}
