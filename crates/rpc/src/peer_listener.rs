//! A port for peers alone: it takes whoever shows a certificate of a named authority, and nobody else, so that no flood at
//! the public port takes a peer's place.

use std::{net::SocketAddr, path::PathBuf};

use blindfold_tls::ServerTlsFiles;
use serde::{Deserialize, Serialize};

use crate::{
    Doorkeeper, ServerConfig,
    limits::{MAX_PEER_CONNECTIONS, MAX_PEER_REQUEST_BYTES},
};

/// Settings of a port for peers; a table of the configuration file. Unknown keys are refused.
///
/// What it has is its own: connections, calls under way, the memory of answers. Everybody there may send what a peer may. Who
/// it is, where that matters, a hello says as on the public port ([`Doorkeeper`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeerListener {
    /// Where it listens, over TLS.
    pub addr: SocketAddr,
    /// PEM file with the server's certificate, and those between it and its authority.
    pub cert_file: PathBuf,
    /// PEM file with its key.
    pub key_file: PathBuf,
    /// PEM file with the certificates of the authorities of peers.
    pub client_ca_file: PathBuf,
    /// Most open connections, of one address too: several peers may share one.
    #[serde(default = "default_max_connections")]
    pub max_connections: u32,
}

const fn default_max_connections() -> u32 {
    MAX_PEER_CONNECTIONS
}

impl PeerListener {
    /// The files, as a server takes them.
    #[must_use]
    pub fn files(&self) -> ServerTlsFiles {
        ServerTlsFiles {
            cert_file: self.cert_file.clone(),
            key_file: self.key_file.clone(),
            client_ca_file: Some(self.client_ca_file.clone()),
        }
    }

    /// How its server listens; `doorkeeper` tells who is who among the peers, where that matters.
    #[must_use]
    pub fn server(&self, doorkeeper: Option<Doorkeeper>) -> ServerConfig {
        let mut config = ServerConfig::new(self.addr);
        config.max_connections = self.max_connections;
        config.max_request_bytes = MAX_PEER_REQUEST_BYTES;
        config.inbound.max_connections_per_address = self.max_connections;
        config.doorkeeper = doorkeeper;
        config.tls = Some(self.files());
        config
    }
}
