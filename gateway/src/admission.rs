//! Envelopes at a gateway: what can be checked without the ledger is, and what stands is forwarded.

use std::{net::IpAddr, sync::Arc};

use async_trait::async_trait;
use blindfold_chain::{Verifier, VerifierError};
use blindfold_protocol::{Address, Canonical, Envelope, EnvelopeError, Epoch, limits::MAX_ENVELOPE_BYTES};
use blindfold_rpc::{Encoded, RawEnvelope, RpcError, SourceLimits, TokenBuckets, code, types::SentEnvelope};
use blindfold_runtime::now;

use crate::{
    forward::{Forwarder, NotForwarded},
    metrics::GatewayMetrics,
    source::Followed,
};

/// Every reason for which a gateway refuses an envelope itself, for metrics and documentation; `by_sequencer` counts what the
/// sequencer refused.
pub const REFUSAL_REASONS: &[&str] = &[
    "too_large",
    "undecodable",
    "invalid",
    "source_limit",
    "payer_limit",
    "overloaded",
    "no_leader",
    "shutting_down",
    "by_sequencer",
];

/// Why a gateway does not forward an envelope, or got no answer. Nothing is known of the envelope then: the same bytes may be
/// sent again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GatewayRefusal {
    /// Longer than any envelope.
    #[error("{bytes} bytes; an envelope has at most {limit}")]
    TooLarge {
        /// How many bytes were received.
        bytes: usize,
        /// The most that there may be.
        limit: usize,
    },
    /// The validity rule would skip it, for good.
    #[error("{detail}")]
    Fault {
        /// The fault by the validity rule.
        fault: EnvelopeError,
        /// What exactly is wrong.
        detail: String,
    },
    /// Too many envelopes from one network address.
    #[error("too many envelopes from this address")]
    SourceLimit,
    /// Too many envelopes of one fee payer.
    #[error("too many envelopes of this fee payer")]
    PayerLimit,
    /// More envelopes wait than may.
    #[error("too many envelopes wait")]
    Overloaded,
    /// No sequencer answered as the one that leads.
    #[error("no sequencer leads now: send the envelope again, the same bytes")]
    NoLeader,
    /// The gateway is stopping.
    #[error("the gateway is shutting down")]
    ShuttingDown,
}

impl GatewayRefusal {
    /// The reason as callers get it: a word that does not change.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too_large",
            Self::Fault { fault, .. } => fault.as_str(),
            Self::SourceLimit => "source_limit",
            Self::PayerLimit => "payer_limit",
            Self::Overloaded => "overloaded",
            Self::NoLeader => "no_leader",
            Self::ShuttingDown => "shutting_down",
        }
    }

    /// What it is counted under.
    const fn label(&self) -> &'static str {
        match self {
            Self::Fault { fault: EnvelopeError::Undecodable, .. } => "undecodable",
            Self::Fault { .. } => "invalid",
            other => other.reason(),
        }
    }
}

impl From<GatewayRefusal> for RpcError {
    fn from(refusal: GatewayRefusal) -> Self {
        let reason = refusal.reason();
        match refusal {
            GatewayRefusal::TooLarge { .. }
            | GatewayRefusal::Fault { fault: EnvelopeError::Undecodable, .. } => {
                Self::invalid_params(reason, refusal)
            }
            GatewayRefusal::Fault { .. } => Self::new(code::REFUSED, reason, false, refusal),
            GatewayRefusal::SourceLimit | GatewayRefusal::PayerLimit | GatewayRefusal::Overloaded => {
                Self::busy(reason, refusal)
            }
            GatewayRefusal::NoLeader | GatewayRefusal::ShuttingDown => Self::unavailable(reason, refusal),
        }
    }
}

impl From<VerifierError> for GatewayRefusal {
    fn from(error: VerifierError) -> Self {
        match error {
            VerifierError::Full => Self::Overloaded,
            VerifierError::Stopped => Self::ShuttingDown,
        }
    }
}

/// Counts that several gateways share. Advisory: where it says nothing, each gateway counts by itself.
#[async_trait]
pub trait SharedLimits: Send + Sync {
    /// Takes one token of a network address; `None` where nobody can say.
    async fn allow_source(&self, source: IpAddr) -> Option<bool>;

    /// Takes one token of a fee payer; `None` where nobody can say.
    async fn allow_payer(&self, payer: Address) -> Option<bool>;
}

pub(crate) struct Admission {
    pub(crate) followed: Arc<Followed>,
    pub(crate) verifier: Verifier,
    pub(crate) forwarder: Forwarder,
    pub(crate) sources: SourceLimits,
    pub(crate) payers: TokenBuckets<Address>,
    pub(crate) shared: Option<Arc<dyn SharedLimits>>,
}

impl Admission {
    /// Checks an envelope and forwards it; answers when the sequencer has.
    pub(crate) async fn admit(
        &self,
        source: Option<IpAddr>,
        envelope: Encoded<RawEnvelope>,
        promise: bool,
    ) -> Result<SentEnvelope, RpcError> {
        let (started, metrics) = (now(), &self.followed.metrics);
        if let Err(refusal) = self.check(source, &envelope).await {
            return Err(refused(metrics, refusal));
        }
        metrics.envelopes_waiting.change(1);
        let forwarded = self.forwarder.forward(envelope, promise).await;
        metrics.envelopes_waiting.change(-1);
        match forwarded {
            Ok(sent) => {
                metrics.envelopes_forwarded.increment();
                metrics.admission_seconds.observe_duration(started.elapsed());
                Ok(sent)
            }
            Err(NotForwarded::Refused(refusal)) => {
                metrics.envelopes_refused.get(&["by_sequencer"]).increment();
                Err(refusal)
            }
            Err(NotForwarded::NoLeader) => Err(refused(metrics, GatewayRefusal::NoLeader)),
            Err(NotForwarded::Full) => Err(refused(metrics, GatewayRefusal::Overloaded)),
            Err(NotForwarded::Stopped) => Err(refused(metrics, GatewayRefusal::ShuttingDown)),
        }
    }

    async fn check(
        &self,
        source: Option<IpAddr>,
        encoded: &Encoded<RawEnvelope>,
    ) -> Result<(), GatewayRefusal> {
        if let Some(source) = source
            && !self.allows_source(source).await
        {
            return Err(GatewayRefusal::SourceLimit);
        }
        let bytes = encoded.bytes();
        if bytes.len() > MAX_ENVELOPE_BYTES {
            return Err(GatewayRefusal::TooLarge { bytes: bytes.len(), limit: MAX_ENVELOPE_BYTES });
        }
        let envelope = Envelope::decode(bytes).map_err(|error| GatewayRefusal::Fault {
            fault: EnvelopeError::Undecodable,
            detail: format!("the envelope does not decode: {error}"),
        })?;
        if let Some((epoch, number)) = self.epoch_for(&envelope) {
            let verified = self.verifier.verify(bytes.to_vec().into(), Arc::new(epoch), number).await?;
            match verified {
                // Only now is it known to be the payer's: nobody else takes from what a payer may send.
                Ok(_) if !self.allows_payer(envelope.header.payer).await => {
                    return Err(GatewayRefusal::PayerLimit);
                }
                Ok(_) => {}
                // The sequencer knows better what number is next.
                Err(fault) if depends_on_the_head(fault) => {}
                Err(fault) => {
                    let detail = format!("the envelope breaks the rule {}", fault.as_str());
                    return Err(GatewayRefusal::Fault { fault, detail });
                }
            }
        }
        Ok(())
    }

    async fn allows_source(&self, source: IpAddr) -> bool {
        if let Some(shared) = &self.shared {
            match shared.allow_source(source).await {
                Some(allowed) => return allowed,
                None => self.followed.metrics.shared_limits_failures.increment(),
            }
        }
        self.sources.allow(source, now())
    }

    async fn allows_payer(&self, payer: Address) -> bool {
        if let Some(shared) = &self.shared {
            match shared.allow_payer(payer).await {
                Some(allowed) => return allowed,
                None => self.followed.metrics.shared_limits_failures.increment(),
            }
        }
        self.payers.allow(payer, now())
    }

    /// The epoch that it is for, and a number of it that may come; `None` where this gateway has none: the sequencer may.
    fn epoch_for(&self, envelope: &Envelope) -> Option<(Epoch, u64)> {
        let next = self.followed.window.lock().head()? + 1;
        let epoch = self.followed.checks.parameters.by_epoch(envelope.header.epoch)?.epoch().clone();
        let number = next.max(epoch.first).min(epoch.last);
        Some((epoch, number))
    }
}

/// Whether another number might make another verdict, or another epoch's key.
const fn depends_on_the_head(fault: EnvelopeError) -> bool {
    matches!(
        fault,
        EnvelopeError::WrongEpoch
            | EnvelopeError::Expired
            | EnvelopeError::ExpiryTooFar
            | EnvelopeError::WrongGeneration
    )
}

fn refused(metrics: &GatewayMetrics, refusal: GatewayRefusal) -> RpcError {
    metrics.envelopes_refused.get(&[refusal.label()]).increment();
    tracing::debug!(reason = refusal.reason(), %refusal, "envelope refused");
    refusal.into()
}
