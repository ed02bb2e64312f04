//! Committee members as the sequencer asks them what it has signed: over JSON-RPC, as a seam.

use std::time::Duration;

use async_trait::async_trait;
use blindfold_protocol::{Certificate, Party, SealedBatch};
use blindfold_rpc::{
    ClientBuildError, ClientConfig, CommitteeApiClient, HttpClient, Introduction, ReceivedError, http_client,
};
use thiserror::Error;
use tokio::time::timeout;

use crate::config::MemberUrl;

/// A batch as a member holds it. Nothing of it is believed before it is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBatch {
    /// Header, sequencer's signature and items.
    pub sealed: SealedBatch,
    /// The certificate of this very number, if the member has one.
    pub certificate: Option<Certificate>,
}

/// A member that gave no answer, or one that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct MemberError(pub String);

/// Asking the committee what it holds, as a seam: the client of the members implements it, tests script it.
#[async_trait]
pub trait Committee: Send + Sync {
    /// The members that can be asked, by index.
    fn members(&self) -> Vec<u16>;

    /// The highest number that a member has acknowledged or holds certified.
    async fn highest(&self, member: u16) -> Result<u64, MemberError>;

    /// What a member holds under a number.
    async fn sealed(&self, member: u16, number: u64) -> Result<Option<HeldBatch>, MemberError>;
}

/// The members, asked over JSON-RPC.
pub struct CommitteeClient {
    members: Vec<(u16, HttpClient)>,
    limit: Duration,
}

impl CommitteeClient {
    /// Clients of these members, to each of whom they show who they are; nothing is connected yet. One question takes at most `timeout_ms`.
    pub fn new(
        members: &[MemberUrl],
        timeout_ms: u64,
        introduce: impl Fn(Party) -> Introduction,
    ) -> Result<Self, ClientBuildError> {
        let client = |member: &MemberUrl| {
            let config = ClientConfig {
                request_timeout_ms: timeout_ms,
                introduction: Some(introduce(Party::Member(member.member))),
                ..ClientConfig::default()
            };
            Ok((member.member, http_client(&member.url, &config)?))
        };
        let members = members.iter().map(client).collect::<Result<_, ClientBuildError>>()?;
        Ok(Self { members, limit: Duration::from_millis(timeout_ms) })
    }

    async fn ask<T>(
        &self,
        member: u16,
        call: impl AsyncFnOnce(&HttpClient) -> Result<T, ReceivedError>,
    ) -> Result<T, MemberError> {
        let client = self.members.iter().find(|(index, _)| *index == member).map(|(_, client)| client);
        let client = client.ok_or_else(|| MemberError(format!("no URL of member {member} is known")))?;
        match timeout(self.limit, call(client)).await {
            Ok(answer) => answer.map_err(|error| MemberError(error.to_string())),
            Err(_) => Err(MemberError("no answer in time".to_owned())),
        }
    }
}

#[async_trait]
impl Committee for CommitteeClient {
    fn members(&self) -> Vec<u16> {
        self.members.iter().map(|(member, _)| *member).collect()
    }

    async fn highest(&self, member: u16) -> Result<u64, MemberError> {
        let status = self.ask(member, async |client| Ok(client.get_status().await?)).await?;
        if status.member != member {
            return Err(MemberError(format!("its URL answers as member {}", status.member)));
        }
        Ok(status.acknowledged.max(status.certified))
    }

    async fn sealed(&self, member: u16, number: u64) -> Result<Option<HeldBatch>, MemberError> {
        let held = self.ask(member, async |client| Ok(client.get_sealed(number).await?)).await?;
        let Some(held) = held else { return Ok(None) };
        let undecodable = |fault: blindfold_protocol::codec::DecodeError| MemberError(fault.to_string());
        let sealed = held.sealed.decode().map_err(undecodable)?;
        let certificate =
            held.certificate.map(|certificate| certificate.decode()).transpose().map_err(undecodable)?;
        if sealed.header.number != number {
            return Err(MemberError(format!("it gave batch {} for {number}", sealed.header.number)));
        }
        Ok(Some(HeldBatch { sealed, certificate }))
    }
}
