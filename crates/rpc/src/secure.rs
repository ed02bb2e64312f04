//! The TLS handshake of a connection that is taken.

use std::{sync::Arc, time::Duration};

use blindfold_tls::ServerTls;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::limits::HANDSHAKE_TIMEOUT_MS;

/// The status of the answer to plain HTTP on a port with TLS: Upgrade Required (RFC 9110, 15.5.22).
pub(crate) const UPGRADE_REQUIRED: u16 = 426;
/// What whoever gets it should do.
pub(crate) const SPEAKS_TLS: &str = "the server speaks TLS there: use https:// (wss://)";
/// How a TLS connection begins: a record of the handshake (RFC 8446, 5.1).
const HANDSHAKE_RECORD: u8 = 22;
/// How much of a plain request is read before it is answered: closing with unread bytes may lose the answer on its way.
const PLAIN_BYTES: usize = 4 << 10;

/// Why a handshake came to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoHandshake {
    #[error("the TLS handshake was not finished in time")]
    TooSlow(#[from] tokio::time::error::Elapsed),
    #[error("plain HTTP on a port with TLS")]
    Plain,
    #[error("the TLS handshake: {0}")]
    Failed(#[from] std::io::Error),
}

/// Shakes hands, within [`HANDSHAKE_TIMEOUT_MS`]. Whoever speaks plain HTTP is told what to do.
pub(crate) async fn handshake(
    stream: TcpStream,
    tls: &Arc<ServerTls>,
) -> Result<TlsStream<TcpStream>, NoHandshake> {
    let limit = Duration::from_millis(HANDSHAKE_TIMEOUT_MS);
    let shaken = tokio::time::timeout(limit, shake(stream, tls)).await;
    let shaken = shaken.map_err(NoHandshake::from).and_then(|shaken| shaken);
    if shaken.is_err() {
        tls.count_failed();
    }
    shaken
}

async fn shake(mut stream: TcpStream, tls: &Arc<ServerTls>) -> Result<TlsStream<TcpStream>, NoHandshake> {
    let mut first = [0];
    let peeked = stream.peek(&mut first).await?;
    if peeked == 1 && first != [HANDSHAKE_RECORD] {
        let _ = stream.read(&mut [0; PLAIN_BYTES]).await?;
        let answer = format!(
            "HTTP/1.1 {UPGRADE_REQUIRED} Upgrade Required\r\nconnection: close\r\ncontent-type: text/plain\r\n\
             content-length: {}\r\n\r\n{SPEAKS_TLS}\n",
            SPEAKS_TLS.len() + 1
        );
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        return Err(NoHandshake::Plain);
    }
    Ok(TlsAcceptor::from(tls.config()).accept(stream).await?)
}
