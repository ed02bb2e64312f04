//! Asking committee members. Every answer is checked for what it claims to be; what it proves, its user checks.

use std::sync::Arc;
use std::time::Duration;

use blindfold_chain::limits::{MAX_RUN_TIMEOUTS, MAX_SHARE_ANSWER_BYTES};
use blindfold_chain::{GivenRun, MemberLimits, MemberWatch, ShareMembers, Tracker};
use blindfold_protocol::limits::MAX_UNCERTIFIED_RUN;
use blindfold_protocol::{Certificate, SealedBatch};
use blindfold_rpc::{
    ClientBuildError, ClientConfig, CommitteeApiClient, HttpClient, ReceivedError, http_client,
};

use crate::config::MemberEndpoint;

/// Why a member's answer is of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    /// It refused, or did not answer.
    #[error(transparent)]
    NoAnswer(#[from] ReceivedError),
    /// Its answer does not decode.
    #[error("the answer does not decode: {0}")]
    Undecodable(#[from] blindfold_protocol::DecodeError),
    /// Its answer is about something else than was asked.
    #[error("the answer is for another {0}")]
    Unasked(&'static str),
    /// It gives a header that the sequencer did not sign.
    #[error("the sequencer did not sign the header of batch {0}")]
    Unsigned(u64),
    /// It claims to hold a number certified, and gives no certificate of it or of one above it.
    #[error("it gives no certificate for what it claims to hold certified")]
    NoCertificate,
    /// Answer by answer in time, but not in all.
    #[error("its run did not come within {0:?}")]
    Slow(Duration),
}

/// What a member holds under a number.
#[derive(Clone, Debug)]
pub struct Held {
    /// Header, sequencer's signature and items.
    pub sealed: SealedBatch,
    /// Its own certificate, where there is one.
    pub certificate: Option<Certificate>,
}

/// Batches that follow each other, and the certificate of the last one.
#[derive(Clone, Debug)]
pub struct CertifiedRun {
    /// In ascending order, at most [`MAX_UNCERTIFIED_RUN`].
    pub batches: Vec<Arc<SealedBatch>>,
    /// The certificate of the last one, as it came.
    pub certificate: Certificate,
}

impl GivenRun for CertifiedRun {
    fn last(&self) -> u64 {
        self.batches.last().map_or(0, |batch| batch.header.number)
    }

    fn bytes(&self) -> usize {
        self.batches.iter().flat_map(|batch| &batch.items).map(Vec::len).sum()
    }
}

/// One committee member, as this node asks it.
#[derive(Clone, Debug)]
pub struct Member {
    index: u16,
    client: HttpClient,
    /// Reads no larger answers than shares have.
    to_open: HttpClient,
    run_timeout: Duration,
}

/// The members that a node knows addresses of.
#[derive(Clone, Debug)]
pub struct Members {
    members: Vec<Member>,
}

impl Members {
    /// Clients for `endpoints`; nothing is connected yet.
    pub fn new(endpoints: &[MemberEndpoint], timeout_ms: u64) -> Result<Self, ClientBuildError> {
        let config = ClientConfig {
            connect_timeout_ms: timeout_ms,
            request_timeout_ms: timeout_ms,
            ..ClientConfig::default()
        };
        let of_shares = ClientConfig { max_response_bytes: MAX_SHARE_ANSWER_BYTES, ..config.clone() };
        let run_timeout = Duration::from_millis(timeout_ms).saturating_mul(MAX_RUN_TIMEOUTS);
        let member = |endpoint: &MemberEndpoint| {
            let client = http_client(&endpoint.url, &config)?;
            let to_open = http_client(&endpoint.url, &of_shares)?;
            Ok(Member { index: endpoint.member, client, to_open, run_timeout })
        };
        Ok(Self { members: endpoints.iter().map(member).collect::<Result<_, ClientBuildError>>()? })
    }

    /// All members of the settings.
    pub fn iter(&self) -> impl Iterator<Item = &Member> {
        self.members.iter()
    }

    /// The one with this index.
    pub fn by_index(&self, index: u16) -> Option<&Member> {
        self.members.iter().find(|member| member.index == index)
    }

    /// How many members the settings name.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether the settings name no member.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Clients of the same members, to ask for shares.
    pub fn to_open(&self, limits: MemberLimits, watch: Arc<dyn MemberWatch>) -> ShareMembers {
        let clients = self.members.iter().map(|member| (member.index, member.to_open.clone())).collect();
        ShareMembers::new(clients, limits, watch)
    }
}

impl Member {
    /// The member's index, from 1.
    pub fn index(&self) -> u16 {
        self.index
    }

    /// What it holds under a number, certified or not.
    pub async fn held(&self, number: u64) -> Result<Option<Held>, MemberError> {
        let answer = self.client.get_sealed(number).await.map_err(ReceivedError::from)?;
        let Some(held) = answer else { return Ok(None) };
        let sealed = held.sealed.decode()?;
        let certificate = held.certificate.map(|certificate| certificate.decode()).transpose()?;
        if sealed.header.number != number {
            return Err(MemberError::Unasked("number"));
        }
        Ok(Some(Held { sealed, certificate }))
    }

    /// The newest number that it claims to hold certified.
    pub async fn certified(&self) -> Result<u64, MemberError> {
        Ok(self.client.get_status().await.map_err(ReceivedError::from)?.certified)
    }

    /// Its batches from `number` to the first that has a certificate of its own there, which covers the others: members
    /// stop sending their acknowledgement of a header once a descendant is certified, so not every number has one. The
    /// sequencer signed the headers; certificate and items are as they came.
    pub async fn certified_run(&self, number: u64, tracker: &Tracker) -> Result<CertifiedRun, MemberError> {
        let run = tokio::time::timeout(self.run_timeout, self.signed_run(number, tracker)).await;
        run.unwrap_or(Err(MemberError::Slow(self.run_timeout)))
    }

    async fn signed_run(&self, number: u64, tracker: &Tracker) -> Result<CertifiedRun, MemberError> {
        let mut batches: Vec<Arc<SealedBatch>> = Vec::new();
        // No more headers ever wait for a certificate, so it comes within as many.
        for number in (number..).take(MAX_UNCERTIFIED_RUN) {
            let held = self.held(number).await?.ok_or(MemberError::NoCertificate)?;
            // Anybody makes up headers that follow each other. Those that L1 made, L1 tells.
            if !tracker.is_signed(&held.sealed) {
                return Err(MemberError::Unsigned(number));
            }
            let parent = held.sealed.header.parent_hash;
            if batches.last().is_some_and(|before| before.header.hash() != parent) {
                return Err(MemberError::Unasked("parent"));
            }
            batches.push(Arc::new(held.sealed));
            if let Some(certificate) = held.certificate {
                return Ok(CertifiedRun { batches, certificate });
            }
        }
        Err(MemberError::NoCertificate)
    }
}
