//! Envelopes at a gateway: what can be checked without the ledger is, and what stands is forwarded.

use std::{net::IpAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use blindfold_chain::{Verifier, VerifierError};
use blindfold_protocol::{
    Address, B256, Canonical, Envelope, EnvelopeError, Epoch,
    limits::{EXPIRY_WINDOW, MAX_ENVELOPE_BYTES},
};
use blindfold_rpc::{
    Encoded, RawEnvelope, RpcError, SourceLimits, TokenBuckets, code,
    limits::{MAX_RETRY_AFTER_MS, RETRY_AFTER_MS},
    types::SentEnvelope,
};
use blindfold_runtime::now;
use blindfold_telemetry::traces;
use lru::LruCache;
use parking_lot::Mutex;

use crate::{
    forward::{Forwarder, NotForwarded},
    limits::MAX_HEAD_LAG_BATCHES,
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
    "unknown_epoch",
    "no_epoch",
    "no_leader",
    "gateway_refused",
    "shutting_down",
    "by_sequencer",
];

/// Why a gateway does not forward an envelope, or got no answer. The same bytes may be sent again.
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
    /// This gateway has no parameters of its epoch.
    #[error("epoch {epoch} is not known here: use the newest key that L1 registers, or another gateway")]
    NoEpoch {
        /// The epoch that the envelope names.
        epoch: u64,
    },
    /// Its epoch is over, and no parameters of one after it are here.
    #[error(
        "the epoch ended with batch {last}, and none after it is known here: it is on L1, and at this gateway, that the next one has to be named"
    )]
    EpochOver {
        /// The epoch's last number.
        last: u64,
    },
    /// No sequencer answered in time as the one that leads.
    #[error(
        "no sequencer answered in time as the one that leads; it may have the envelope: send the same bytes again"
    )]
    NoLeader,
    /// The sequencers do not let this gateway forward. Its operator's fault.
    #[error("the sequencer takes no envelopes from this gateway: use another one")]
    GatewayRefused,
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
            Self::NoEpoch { .. } | Self::EpochOver { .. } => "no_epoch",
            Self::NoLeader => "no_leader",
            Self::GatewayRefused => "gateway_refused",
            Self::ShuttingDown => "shutting_down",
        }
    }

    /// What it is counted under.
    const fn label(&self) -> &'static str {
        match self {
            Self::Fault { fault: EnvelopeError::Undecodable, .. } => "undecodable",
            Self::Fault { .. } => "invalid",
            // Anybody can name one: no alarm may come of it.
            Self::NoEpoch { .. } => "unknown_epoch",
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
            GatewayRefusal::NoEpoch { .. }
            | GatewayRefusal::EpochOver { .. }
            | GatewayRefusal::NoLeader
            | GatewayRefusal::GatewayRefused
            | GatewayRefusal::ShuttingDown => Self::unavailable(reason, refusal),
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

    /// Gives one token of a fee payer back: no sequencer took the envelope.
    async fn give_back_payer(&self, payer: Address);
}

pub(crate) struct Admission {
    pub(crate) followed: Arc<Followed>,
    pub(crate) verifier: Verifier,
    pub(crate) forwarder: Forwarder,
    pub(crate) sources: SourceLimits,
    pub(crate) payers: TokenBuckets<Address>,
    pub(crate) shared: Option<Arc<dyn SharedLimits>>,
    /// Ids that a sequencer took lately.
    pub(crate) taken: Mutex<LruCache<B256, ()>>,
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
        let counted = match self.check(source, &envelope).await {
            Ok(counted) => counted,
            Err(refusal) => return Err(self.refused(refusal)),
        };
        metrics.envelopes_waiting.change(1);
        let begun = now();
        let forwarded = self.forwarder.forward(envelope, promise).await;
        metrics.envelopes_waiting.change(-1);
        if let (Some(payer), Err(_)) = (&counted, &forwarded) {
            payer.give_back(self).await;
        }
        match forwarded {
            Ok(sent) => {
                self.taken.lock().put(sent.id, ());
                traces::envelope(&sent.id.0, "forward", begun);
                metrics.envelopes_forwarded.increment();
                metrics.admission_seconds.observe_duration(started.elapsed());
                Ok(sent)
            }
            Err(NotForwarded::Refused(refusal)) => {
                metrics.envelopes_refused.get(&["by_sequencer"]).increment();
                Err(refusal)
            }
            Err(NotForwarded::NoLeader) => Err(self.refused(GatewayRefusal::NoLeader)),
            Err(NotForwarded::GatewayRefused) => Err(self.refused(GatewayRefusal::GatewayRefused)),
            Err(NotForwarded::Full) => Err(self.refused(GatewayRefusal::Overloaded)),
            Err(NotForwarded::Stopped) => Err(self.refused(GatewayRefusal::ShuttingDown)),
        }
    }

    /// Gives on whose account it was counted: nobody's, where a sequencer took the same envelope lately.
    async fn check(
        &self,
        source: Option<IpAddr>,
        encoded: &Encoded<RawEnvelope>,
    ) -> Result<Option<Counted>, GatewayRefusal> {
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
        let (epoch, number) = self.epoch_for(&envelope)?;
        let started = now();
        let verified = self.verifier.verify(bytes.to_vec().into(), Arc::new(epoch), number).await?;
        verified.map_err(|fault| {
            let detail = format!("the envelope breaks the rule {}", fault.as_str());
            GatewayRefusal::Fault { fault, detail }
        })?;
        let id = envelope.id();
        // Sealed envelopes are there for everybody to send again: that takes nothing from their payer.
        if self.taken.lock().get(&id).is_some() {
            return Ok(None);
        }
        traces::envelope(&id.0, "verify", started);
        // Only now is it known to be the payer's own.
        self.count_payer(envelope.header.payer).await.map(Some).ok_or(GatewayRefusal::PayerLimit)
    }

    fn refused(&self, refusal: GatewayRefusal) -> RpcError {
        self.followed.metrics.envelopes_refused.get(&[refusal.label()]).increment();
        tracing::debug!(reason = refusal.reason(), %refusal, "envelope refused");
        let time = self.time_to_come_back(&refusal);
        RpcError::from(refusal).after_some(time)
    }

    /// When the same envelope may be taken, where anything is known of that (J-8).
    fn time_to_come_back(&self, refusal: &GatewayRefusal) -> Option<Duration> {
        match refusal {
            GatewayRefusal::SourceLimit => Some(self.sources.time_for_one()),
            GatewayRefusal::PayerLimit => Some(self.payers.time_for_one()),
            GatewayRefusal::Overloaded => {
                self.verifier.time_to_come_back().max(self.forwarder.time_to_come_back())
            }
            GatewayRefusal::NoLeader | GatewayRefusal::ShuttingDown => {
                Some(Duration::from_millis(RETRY_AFTER_MS))
            }
            // What L1, or an operator, has to change first.
            GatewayRefusal::NoEpoch { .. }
            | GatewayRefusal::EpochOver { .. }
            | GatewayRefusal::GatewayRefused => Some(Duration::from_millis(MAX_RETRY_AFTER_MS)),
            GatewayRefusal::TooLarge { .. } | GatewayRefusal::Fault { .. } => None,
        }
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

    /// Takes a token of a payer; `None` where there is none.
    async fn count_payer(&self, payer: Address) -> Option<Counted> {
        if let Some(shared) = &self.shared {
            match shared.allow_payer(payer).await {
                Some(allowed) => return allowed.then_some(Counted { payer, shared: true }),
                None => self.followed.metrics.shared_limits_failures.increment(),
            }
        }
        self.payers.allow(payer, now()).then_some(Counted { payer, shared: false })
    }

    /// The epoch that it is for, and the number that it is judged by. The sequencer may be ahead of the newest header here, a
    /// little, so an expiry that is too far by the next number here is judged by the first one that it fits.
    fn epoch_for(&self, envelope: &Envelope) -> Result<(Epoch, u64), GatewayRefusal> {
        let header = &envelope.header;
        let parameters_at = |number| self.followed.checks.parameters.at(number);
        let parameters = self.followed.checks.parameters.by_epoch(header.epoch);
        let epoch = parameters.ok_or(GatewayRefusal::NoEpoch { epoch: header.epoch })?.epoch().clone();
        let fits = header.expiry.number().saturating_sub(EXPIRY_WINDOW);
        let head = self.followed.window.lock().head();
        if head.is_some_and(|head| head == epoch.last && parameters_at(head + 1).is_none()) {
            return Err(GatewayRefusal::EpochOver { last: epoch.last });
        }
        let number = match head {
            Some(head) => (head + 1).max(fits.min(head + MAX_HEAD_LAG_BATCHES)),
            // Nothing is known of the chain yet.
            None => fits,
        };
        Ok((epoch.clone(), number.max(epoch.first).min(epoch.last)))
    }
}

/// On whose account an envelope was counted, and by whom.
struct Counted {
    payer: Address,
    shared: bool,
}

impl Counted {
    async fn give_back(&self, admission: &Admission) {
        match &admission.shared {
            Some(shared) if self.shared => shared.give_back_payer(self.payer).await,
            _ => admission.payers.give_back(&self.payer),
        }
    }
}
