//! Committee members as the sequencer asks them what it has signed: over JSON-RPC, as a seam.

use std::time::Duration;

use async_trait::async_trait;
use blindfold_protocol::{Bytes, Certificate, DataAttestation, Party, SealedBatch};
use blindfold_rpc::{
    ClientBuildError, ClientConfig, CommitteeApiClient, HttpClient, Introduction, ReceivedError, http_client,
    limits::{MAX_PEER_REQUEST_BYTES, MAX_REQUEST_BYTES},
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

/// Why a member gives no attestation of data.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AttestError {
    /// It read the data, and they do not give the batches back that it holds. Its reason.
    #[error("it cannot read them: {0}")]
    Refuted(String),
    /// It never reads data of these numbers, whatever they are. Its reason.
    #[error("it never reads data of these numbers: {0}")]
    Never(String),
    /// It has not read them: it cannot now, or does not answer, or will not.
    #[error(transparent)]
    Silent(#[from] MemberError),
}

/// What members say of data that they read, and no other reason is.
const REFUTATIONS: [&str; 3] = ["data_undecodable", "data_mismatch", "data_unsigned"];
/// What members say of numbers that they read no data of. One that was given the next epoch's key says so of batches of the
/// epoch before.
const NEVER: [&str; 4] = ["not_a_member", "wrong_epoch", "bad_range", "too_large"];
/// How long a member may take to read data, in milliseconds.
const READING_TIMEOUT_MS: u64 = 60_000;

impl From<ReceivedError> for AttestError {
    fn from(error: ReceivedError) -> Self {
        match error {
            ReceivedError::Refused(refusal) if REFUTATIONS.contains(&refusal.reason.as_ref()) => {
                Self::Refuted(refusal.reason.into_owned())
            }
            ReceivedError::Refused(refusal) if NEVER.contains(&refusal.reason.as_ref()) => {
                Self::Never(refusal.reason.into_owned())
            }
            error => Self::Silent(MemberError(error.to_string())),
        }
    }
}

/// Asking the committee what it holds, as a seam: the client of the members implements it, tests script it.
#[async_trait]
pub trait Committee: Send + Sync {
    /// The members that can be asked, by index.
    fn members(&self) -> Vec<u16>;

    /// The highest number that a member has acknowledged or holds certified.
    async fn highest(&self, member: u16) -> Result<u64, MemberError>;

    /// What a member holds under a number.
    async fn sealed(&self, member: u16, number: u64) -> Result<Option<HeldBatch>, MemberError>;

    /// A member's word that this `RunData` gives the batches `first ..= last` back. Nothing of it is checked here.
    async fn attest(
        &self,
        member: u16,
        (first, last): (u64, u64),
        data: &Bytes,
    ) -> Result<DataAttestation, AttestError>;
}

/// The members, asked over JSON-RPC.
pub struct CommitteeClient {
    members: Vec<(u16, HttpClient)>,
    /// The same, for what takes long.
    readers: Vec<(u16, HttpClient)>,
    limit: Duration,
}

impl CommitteeClient {
    /// Clients of these members, to each of whom they show who they are; nothing is connected yet. One question takes at most `timeout_ms`.
    pub fn new(
        members: &[MemberUrl],
        timeout_ms: u64,
        introduce: impl Fn(Party) -> Introduction,
    ) -> Result<Self, ClientBuildError> {
        let clients = |request_timeout_ms, max_request_bytes| {
            let client = |member: &MemberUrl| {
                let config = ClientConfig {
                    request_timeout_ms,
                    max_request_bytes,
                    introduction: Some(introduce(Party::Member(member.member))),
                    ..ClientConfig::default()
                };
                Ok((member.member, http_client(&member.url, &config)?))
            };
            members.iter().map(client).collect::<Result<Vec<_>, ClientBuildError>>()
        };
        let own = clients(timeout_ms, MAX_REQUEST_BYTES)?;
        let readers = clients(READING_TIMEOUT_MS, MAX_PEER_REQUEST_BYTES)?;
        Ok(Self { members: own, readers, limit: Duration::from_millis(timeout_ms) })
    }

    async fn ask<T>(
        &self,
        member: u16,
        call: impl AsyncFnOnce(&HttpClient) -> Result<T, ReceivedError>,
    ) -> Result<T, MemberError> {
        let client = of(&self.members, member)?;
        match timeout(self.limit, call(client)).await {
            Ok(answer) => answer.map_err(|error| MemberError(error.to_string())),
            Err(_) => Err(MemberError("no answer in time".to_owned())),
        }
    }
}

fn of(clients: &[(u16, HttpClient)], member: u16) -> Result<&HttpClient, MemberError> {
    let client = clients.iter().find(|(index, _)| *index == member).map(|(_, client)| client);
    client.ok_or_else(|| MemberError(format!("no URL of member {member} is known")))
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

    async fn attest(
        &self,
        member: u16,
        (first, last): (u64, u64),
        data: &Bytes,
    ) -> Result<DataAttestation, AttestError> {
        let answer = of(&self.readers, member)?.attest_data(first, last, data.clone()).await;
        let given = answer.map_err(ReceivedError::from)?;
        given.decode().map_err(|fault| AttestError::Silent(MemberError(fault.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use blindfold_rpc::RpcError;

    use super::*;

    #[test]
    fn what_members_say_of_data_and_of_numbers_is_kept_apart_from_what_may_pass() {
        let refused = |reason: &'static str| {
            AttestError::from(ReceivedError::Refused(RpcError::refused(reason, "in words")))
        };
        for reason in REFUTATIONS {
            assert_eq!(refused(reason), AttestError::Refuted(reason.to_owned()));
        }
        for reason in NEVER {
            assert_eq!(refused(reason), AttestError::Never(reason.to_owned()));
        }
        for reason in ["not_certified", "hints_unreadable", "busy", "not_the_sequencer", "no_such_reason"] {
            assert!(matches!(refused(reason), AttestError::Silent(_)), "{reason}");
        }
        let away = AttestError::from(ReceivedError::NoAnswer("connection refused".to_owned()));
        assert!(matches!(away, AttestError::Silent(_)));
    }
}
