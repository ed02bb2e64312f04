//! JSON-RPC between the parts: the types and method traits of `docs/protocol.md`, the server scaffolding every role
//! shares, and the clients.
//!
//! - [`types`], [`BlindApi`](api), [`CommitteeApi`](api): one Rust item for each row of the protocol's tables.
//! - [`RpcError`]: code, message and `data {reason, retry}`, on both sides of the wire.
//! - [`serve`]: HTTP and WebSocket on one port inside an Axum router, with [`limits`], [`Passthrough`] of public
//!   reads to the execution client, and a refusal of everything that would show a plaintext.
//! - [`admin()`]: `/healthz`, `/readyz`, `/metrics` on a port of their own.
//! - [`ReceiptBoard`]: receipts that are told as they change, to subscribers and to calls that wait.
//! - [`RoleBase`], [`RunningRole`]: the skeleton that every role starts, serves and ends by.
//! - [`http_client`], [`ws_client`], [`Feed`]: clients with limits, and a subscription that reconnects.
//! - [`SequencerUrls`], [`http_client_of`], [`Feed::start_at_any`]: the same for several sequencers, one of which leads;
//!   [`standing_by()`] is the port of one that does not.
//! - [`PeerListener`]: a port for peers alone, who show a certificate.
//! - [`carrier`]: where a simulation carries calls in place of sockets.

pub mod admin;
mod answers;
pub mod api;
pub mod carrier;
mod client;
pub mod confidential;
mod doorkeeper;
pub mod encoded;
mod error;
mod feed;
mod hub;
mod inbound;
pub mod limits;
mod middleware;
mod origins;
mod pace;
mod passthrough;
mod peer_listener;
mod peers;
mod plain_http;
mod receipts;
mod role;
mod rpc_metrics;
mod secure;
mod server;
mod several;
mod sources;
mod standing_by;
mod tls_metrics;
mod turned_away;
mod turns;
pub mod types;
mod urls;
mod wire;

pub use admin::{AdminConfig, Readiness, admin};
pub use answers::BULK_METHODS;
pub use api::{
    BlindApiClient, BlindApiServer, CommitteeApiClient, CommitteeApiServer, ForwardApiClient,
    ForwardApiServer, ProxyApiClient, ProxyApiServer, ReceiptApiClient, ReceiptApiServer, SequencerApiClient,
    SequencerApiServer, SignerApiClient, SignerApiServer, SyncApiClient, SyncApiServer,
};
pub use client::HttpClient;
pub use client::{ClientBuildError, ClientConfig, http_client, http_client_of, ws_client};
pub use confidential::{ConfidentialApiClient, ConfidentialApiServer};
pub use doorkeeper::{Doorkeeper, HELLO_HEADER, Introduce, Introduction, KnownPeer};
pub use encoded::{Encoded, RawEnvelope, Wire};
pub use error::{ReceivedError, RpcError, code};
pub use feed::{
    FEED_SUBPROTOCOL, Feed, FeedConfig, FeedEvent, FeedFrame, FeedItem, FeedRequest, FeedSource, FrameError,
};
pub use hub::Hub;
pub use inbound::{Inbound, Network, NoNetwork, proxied_for};
pub use jsonrpsee;
pub use jsonrpsee_ws_client::WsClient;
pub use middleware::{CallObserver, CallRecord, caller};
pub use origins::AllowedOrigins;
pub use pace::Pace;
pub use passthrough::{
    NODE_ONLY_METHODS, PLAINTEXT_METHODS, Passthrough, PassthroughFuture, READ_METHODS, is_plaintext_method,
};
pub use peer_listener::PeerListener;
pub use peers::PeerAddress;
pub use plain_http::serve_http;
pub use receipts::{ReceiptBoard, ReceiptSource, too_many as too_many_ids};
pub use role::{RoleBase, RunningRole};
pub use rpc_metrics::RpcMetrics;
pub use server::{ServeError, ServerConfig, ServerHandle, serve};
pub use sources::{SourceLimits, TokenBuckets};
pub use standing_by::standing_by;
pub use tls_metrics::TlsMetrics;
pub use types::Topic;
pub use urls::{SequencerUrls, SequencerUrlsError, same_server};
