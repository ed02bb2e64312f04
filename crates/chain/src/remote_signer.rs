//! A signer in another process, by the JSON-RPC that it serves (`blindfold signer`).

use std::{sync::Arc, time::Duration};

use alloy_primitives::{Address, B256};
use async_trait::async_trait;
use blindfold_protocol::{
    BatchHeader, Canonical, Deployment, Hello, Party, Promise, Signature65, SignatureError, SignedHeader,
};
use blindfold_rpc::{
    ClientBuildError, ClientConfig, Encoded, HttpClient, Introduction, ReceivedError, SignerApiClient, Wire,
    http_client, jsonrpsee::core::ClientError,
};
use tokio::time::{sleep, timeout};

use crate::{HeaderSigner, SignerError};

/// How often a call is made again that got no answer, as when the signer was started anew.
const ATTEMPTS: u32 = 3;
/// The pause before that, in milliseconds.
const PAUSE_MS: u64 = 50;
/// Longest answer that is read, in bytes.
const MAX_ANSWER_BYTES: u32 = 1 << 16;
/// Its reason where another header was signed for the number.
const SECOND_HEADER: &str = "second_header";
/// How long a call to a member waits for a hello, in milliseconds; then it goes without.
const HELLO_TIMEOUT_MS: u64 = 1_000;

/// Asks a signer for signatures. It connects when it is first asked, and again when it has to.
///
/// What comes back is checked: it is what was asked for, signed by the key that is expected, for this deployment.
#[derive(Clone, Debug)]
pub struct RemoteSigner {
    client: HttpClient,
    address: Address,
    deployment: Deployment,
    term: Option<u64>,
}

impl RemoteSigner {
    /// A client of the signer at this URL, which holds the key of this address. `term` goes with each request: how often the
    /// store had been taken when this process took it, where that is counted. Nothing is connected yet.
    ///
    /// # Errors
    /// A URL that cannot be used; TLS that cannot be set up.
    pub fn new(
        url: &str,
        timeout_ms: u64,
        address: Address,
        deployment: Deployment,
        term: Option<u64>,
    ) -> Result<Self, ClientBuildError> {
        Self::with_client(url, Self::client_config(timeout_ms), address, deployment, term)
    }

    /// The same with a client of these settings.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_client(
        url: &str,
        config: ClientConfig,
        address: Address,
        deployment: Deployment,
        term: Option<u64>,
    ) -> Result<Self, ClientBuildError> {
        Ok(Self { client: http_client(url, &config)?, address, deployment, term })
    }

    /// What its client is made with.
    #[must_use]
    pub fn client_config(timeout_ms: u64) -> ClientConfig {
        ClientConfig {
            connect_timeout_ms: timeout_ms,
            request_timeout_ms: timeout_ms,
            max_response_bytes: MAX_ANSWER_BYTES,
            ..ClientConfig::default()
        }
    }

    /// How the sequencer introduces itself to a member: by hellos that the signer signs.
    #[must_use]
    pub fn introduction(self: &Arc<Self>, server: Party) -> Introduction {
        let signer = Arc::clone(self);
        Introduction::from_elsewhere(Party::Sequencer, move || {
            let signer = Arc::clone(&signer);
            Box::pin(async move { signer.hello(server).await })
        })
    }

    async fn hello(&self, server: Party) -> Option<Hello> {
        let limit = Duration::from_millis(HELLO_TIMEOUT_MS);
        let fault = match timeout(limit, self.client.sign_hello(server.to_string())).await {
            Ok(Ok(text)) => match text.parse::<Hello>() {
                Ok(hello) if hello.peer == Party::Sequencer => return Some(hello),
                Ok(hello) => format!("it is {}'s", hello.peer),
                Err(fault) => fault.to_string(),
            },
            Ok(Err(fault)) => ReceivedError::from(fault).to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        tracing::warn!(fault, %server, "the signer gives no hello: the call goes without");
        None
    }

    /// Asks until there is an answer, a few times; signing again what was signed gives the same.
    async fn ask<T, A>(&self, call: impl Fn(HttpClient) -> A + Send) -> Result<T, SignerError>
    where
        T: Wire + Canonical,
        A: Future<Output = Result<Encoded<T>, ClientError>> + Send,
    {
        let mut attempt = 1;
        let answer = loop {
            match call(self.client.clone()).await.map_err(ReceivedError::from) {
                Err(ReceivedError::NoAnswer(_)) if attempt < ATTEMPTS => {
                    attempt += 1;
                    sleep(Duration::from_millis(PAUSE_MS)).await;
                }
                answer => break answer,
            }
        };
        match answer {
            Ok(answer) => {
                answer.decode().map_err(|fault| SignerError::Refused(format!("its answer: {fault}")))
            }
            Err(fault) if fault.retry() => Err(SignerError::Unavailable(fault.to_string())),
            Err(fault) if fault.reason() == SECOND_HEADER => {
                Err(SignerError::SecondHeader(fault.to_string()))
            }
            Err(ReceivedError::Refused(refusal)) => Err(SignerError::Refused(refusal.to_string())),
            Err(fault) => Err(SignerError::Refused(fault.to_string())),
        }
    }

    /// A signature that is not by the key is worth nothing, and binds somebody else.
    fn check(&self, signer: Result<Address, SignatureError>) -> Result<(), SignerError> {
        match signer {
            Ok(signer) if signer == self.address => Ok(()),
            Ok(signer) => Err(SignerError::Refused(format!(
                "it answers with a signature of {signer} for this deployment, not of {}: another key, or another deployment",
                self.address
            ))),
            Err(fault) => Err(SignerError::Refused(format!("its signature: {fault}"))),
        }
    }
}

#[async_trait]
impl HeaderSigner for RemoteSigner {
    fn address(&self) -> Address {
        self.address
    }

    async fn sign_header(&self, header: &BatchHeader) -> Result<Signature65, SignerError> {
        let (encoded, term) = (Encoded::new(header), self.term);
        let signed: SignedHeader = self
            .ask(move |client| {
                let header = encoded.clone();
                async move { client.sign_header(header, term).await }
            })
            .await?;
        if signed.header != *header {
            return Err(SignerError::Refused("it answers with another header".to_owned()));
        }
        self.check(signed.signer(&self.deployment))?;
        Ok(signed.signature)
    }

    async fn sign_promise(
        &self,
        envelope_id: B256,
        item_hash: B256,
        seal_by: u64,
    ) -> Result<Promise, SignerError> {
        let term = self.term;
        let promise: Promise = self
            .ask(
                move |client| async move { client.sign_promise(envelope_id, item_hash, seal_by, term).await },
            )
            .await?;
        if (promise.envelope_id, promise.item_hash, promise.seal_by) != (envelope_id, item_hash, seal_by) {
            return Err(SignerError::Refused("it answers with another promise".to_owned()));
        }
        self.check(promise.signer(&self.deployment))?;
        Ok(promise)
    }
}
