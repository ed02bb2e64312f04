//! A server of plain HTTP, for what is not JSON-RPC.

use std::{net::SocketAddr, time::Duration};

use axum::Router;
use jsonrpsee::server::stop_channel;

use crate::{
    Inbound, ServeError, ServerHandle,
    limits::WRITE_PATIENCE_MS,
    peers::Peers,
    server::{Limits, Panicked, listen},
};

/// Serves these routes until the handle stops it, to so many connections at the same time at most, and to so many of one
/// address. The limits of every other server hold for what a connection sends, and how long it takes.
///
/// # Errors
/// [`ServeError`] when the address cannot be had.
pub async fn serve_http(
    addr: SocketAddr,
    routes: Router,
    max_connections: u32,
    max_connections_per_address: u32,
) -> Result<ServerHandle, ServeError> {
    let limits = Limits {
        peers: Peers::new(max_connections, max_connections_per_address, 0, false),
        inbound: Inbound::default().into(),
        patience: Duration::from_millis(WRITE_PATIENCE_MS),
        panicked: Panicked::default(),
        tls: None,
    };
    let (stop_handle, stop) = stop_channel();
    let listening = listen(addr, routes, limits, stop_handle).await?;
    Ok(ServerHandle::new(listening, stop))
}
