//! Where a member gets what it missed: the sequencer, and the other members when the sequencer withholds.

use blindfold_protocol::{Certificate, CertifiedBatch, SealedBatch};
use blindfold_rpc::{
    BlindApiClient, ClientBuildError, ClientConfig, CommitteeApiClient, HttpClient, ReceivedError,
    http_client, types::BatchInfo,
};

use crate::MemberConfig;

/// Who a batch came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Sequencer,
    Member(u16),
}

/// A batch as the sequencer tells it.
pub(crate) struct ToldBatch {
    pub(crate) sealed: SealedBatch,
    pub(crate) certificate: Option<Certificate>,
}

/// Clients of everybody who may have a batch.
pub(crate) struct Sources {
    sequencer: HttpClient,
    peers: Vec<(u16, HttpClient)>,
}

impl Sources {
    pub(crate) fn new(config: &MemberConfig) -> Result<Self, ClientBuildError> {
        let client = ClientConfig::default();
        let peers = config
            .peers
            .iter()
            .map(|peer| Ok((peer.member, http_client(&peer.url, &client)?)))
            .collect::<Result<_, ClientBuildError>>()?;
        Ok(Self { sequencer: http_client(&config.sequencer_url, &client)?, peers })
    }

    pub(crate) fn sequencer(&self) -> HttpClient {
        self.sequencer.clone()
    }

    /// The number of the sequencer's newest header.
    pub(crate) async fn head(&self) -> Result<u64, ReceivedError> {
        Ok(BlindApiClient::get_status(&self.sequencer).await?.head.number)
    }

    /// A batch from the sequencer, certified or not.
    pub(crate) async fn sealed(&self, number: u64) -> Option<ToldBatch> {
        let info = match self.sequencer.get_batch(number).await {
            Ok(info) => info?,
            Err(error) => {
                let error = ReceivedError::from(error);
                tracing::debug!(number, %error, "the sequencer gave no batch");
                return None;
            }
        };
        told(number, &info)
    }

    /// Everybody who may have a certified batch, the sequencer first.
    pub(crate) fn origins(&self) -> Vec<Origin> {
        let members = self.peers.iter().map(|(member, _)| Origin::Member(*member));
        std::iter::once(Origin::Sequencer).chain(members).collect()
    }

    /// A certified batch from one of them. What comes back is not checked.
    pub(crate) async fn certified(&self, origin: Origin, number: u64) -> Option<CertifiedBatch> {
        let member = match origin {
            Origin::Sequencer => {
                let ToldBatch { sealed, certificate } = self.sealed(number).await?;
                return Some(CertifiedBatch { sealed, certificate: certificate? });
            }
            Origin::Member(member) => member,
        };
        let (_, client) = self.peers.iter().find(|(peer, _)| *peer == member)?;
        match client.get_certified(number).await {
            Ok(batch) => batch?
                .decode()
                .inspect_err(
                    |fault| tracing::warn!(member, number, %fault, "a member sent an undecodable batch"),
                )
                .ok(),
            Err(error) => {
                let error = ReceivedError::from(error);
                tracing::debug!(member, number, %error, "a member gave no certified batch");
                None
            }
        }
    }
}

fn told(number: u64, info: &BatchInfo) -> Option<ToldBatch> {
    let fault = |fault| tracing::warn!(number, %fault, "the sequencer sent an undecodable batch");
    let sealed = info.sealed.decode().map_err(fault).ok()?;
    let certificate = match &info.certificate {
        Some(certificate) => Some(certificate.decode().map_err(fault).ok()?),
        None => None,
    };
    Some(ToldBatch { sealed, certificate })
}
