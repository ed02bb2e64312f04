//! Asking committee members. Every answer is checked for what it claims to be; what it proves, its user checks.

use alloy_primitives::B256;
use blindfold_protocol::{Certificate, CertifiedBatch, ReleaseShare, SingletonShare};
use blindfold_rpc::{
    ClientBuildError, ClientConfig, CommitteeApiClient, Encoded, HttpClient, ReceivedError, http_client,
};
use futures::stream::{FuturesUnordered, Stream};

use crate::config::MemberEndpoint;

/// Why a member's answer is of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemberFault {
    /// It refused, or did not answer.
    #[error(transparent)]
    NoAnswer(#[from] ReceivedError),
    /// Its answer does not decode.
    #[error("the answer does not decode: {0}")]
    Undecodable(#[from] blindfold_protocol::DecodeError),
    /// Its answer is about something else than was asked.
    #[error("the answer is for another {0}")]
    Unasked(&'static str),
}

/// One member.
#[derive(Clone, Debug)]
pub struct Member {
    index: u16,
    client: HttpClient,
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
        let member = |endpoint: &MemberEndpoint| {
            Ok(Member { index: endpoint.member, client: http_client(&endpoint.url, &config)? })
        };
        Ok(Self { members: endpoints.iter().map(member).collect::<Result<_, ClientBuildError>>()? })
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Member> {
        self.members.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Asks every member for its share of a batch at once; answers come as they arrive.
    pub fn shares(
        &self,
        certificate: Certificate,
        number: u64,
        header_hash: B256,
        sub_batches: usize,
    ) -> impl Stream<Item = (u16, Result<ReleaseShare, MemberFault>)> + Unpin + Send + '_ {
        let ask = move |member: &'_ Member| {
            let member = member.clone();
            Box::pin(async move {
                let share = member.share(&certificate, number, header_hash, sub_batches).await;
                (member.index, share)
            })
        };
        self.members.iter().map(ask).collect::<FuturesUnordered<_>>()
    }

    /// Asks every member for its singleton share of one item at once.
    pub fn singletons(
        &self,
        number: u64,
        header_hash: B256,
        index: u32,
    ) -> impl Stream<Item = (u16, Result<SingletonShare, MemberFault>)> + Unpin + Send + '_ {
        let ask = move |member: &'_ Member| {
            let member = member.clone();
            Box::pin(async move {
                let share = member.singleton(number, header_hash, index).await;
                (member.index, share)
            })
        };
        self.members.iter().map(ask).collect::<FuturesUnordered<_>>()
    }
}

impl Member {
    /// The member's index, from 1.
    pub fn index(&self) -> u16 {
        self.index
    }

    /// What it holds certified for a number.
    pub async fn certified(&self, number: u64) -> Result<Option<CertifiedBatch>, MemberFault> {
        let answer = self.client.get_certified(number).await.map_err(ReceivedError::from)?;
        let Some(batch) = answer.map(|encoded| encoded.decode()).transpose()? else { return Ok(None) };
        if batch.sealed.header.number != number {
            return Err(MemberFault::Unasked("number"));
        }
        Ok(Some(batch))
    }

    async fn share(
        &self,
        certificate: &Certificate,
        number: u64,
        header_hash: B256,
        sub_batches: usize,
    ) -> Result<ReleaseShare, MemberFault> {
        let answer =
            self.client.get_share(number, Encoded::new(certificate)).await.map_err(ReceivedError::from)?;
        let share = answer.decode()?;
        if share.number != number || share.header_hash != header_hash {
            return Err(MemberFault::Unasked("header"));
        }
        if share.member != self.index {
            return Err(MemberFault::Unasked("member"));
        }
        if share.pds.len() != sub_batches {
            return Err(MemberFault::Unasked("number of sub-batches"));
        }
        Ok(share)
    }

    async fn singleton(
        &self,
        number: u64,
        header_hash: B256,
        index: u32,
    ) -> Result<SingletonShare, MemberFault> {
        let answer = self.client.get_singleton(number, index).await.map_err(ReceivedError::from)?;
        let share = answer.decode()?;
        if share.number != number || share.header_hash != header_hash {
            return Err(MemberFault::Unasked("header"));
        }
        if share.member != self.index {
            return Err(MemberFault::Unasked("member"));
        }
        if share.index != index {
            return Err(MemberFault::Unasked("item"));
        }
        Ok(share)
    }
}
