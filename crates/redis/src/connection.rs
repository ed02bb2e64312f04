//! Opening a connection: sockets, TLS, and a bound on what comes in.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use redis::{AsyncConnectionConfig, IntoConnectionInfo, RedisConnectionInfo, aio::MultiplexedConnection};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
};
use tokio_rustls::{TlsConnector, rustls::pki_types::ServerName};

use crate::{RedisError, RedisOptions, error::words, url::Place};

/// Most that may come in after one command, in bytes. A key that somebody else wrote could hold 512 MiB; whoever asks for it
/// loses the connection instead of the memory.
pub const MAX_ANSWER_BYTES: usize = 16 << 20;

/// What drives a connection; it resolves when the connection has ended.
pub(crate) type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Opens a connection, shows the password, and waits for a first answer.
pub(crate) async fn open(options: &RedisOptions) -> Result<(MultiplexedConnection, Driver), RedisError> {
    let lost = |error: io::Error| RedisError::Lost { reason: words(&error.to_string()) };
    let stream: Box<dyn Stream> = match &options.url.place {
        Place::Unix(path) => Box::new(UnixStream::connect(path).await.map_err(lost)?),
        Place::Host { name, port, secure } => {
            let plain = TcpStream::connect((name.as_str(), *port)).await.map_err(lost)?;
            plain.set_nodelay(true).map_err(lost)?;
            if *secure {
                let connector = TlsConnector::from(std::sync::Arc::new(blindfold_tls::process().config()?));
                let name = ServerName::try_from(name.clone()).map_err(|_| RedisError::Url {
                    reason: "the host has no name that a certificate can have",
                })?;
                Box::new(connector.connect(name, plain).await.map_err(lost)?)
            } else {
                Box::new(plain)
            }
        }
    };
    let greeting = greeting(options)?;
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
    let bounded = Bounded { stream, left: MAX_ANSWER_BYTES };
    let (mut connection, driver) = MultiplexedConnection::new_with_config(&greeting, bounded, config)
        .await
        .map_err(|fault| RedisError::of(&fault))?;
    let mut driver: Driver = Box::pin(driver);
    // The system takes connections to a server that hangs, and one without the password it wants takes them, too.
    let ping = redis::cmd("PING");
    let answered = tokio::select! {
        biased;
        answered = ping.query_async::<()>(&mut connection) => answered,
        () = &mut driver => return Err(RedisError::Lost { reason: "it was closed".to_owned() }),
    };
    answered.map_err(|fault| RedisError::of(&fault))?;
    Ok((connection, driver))
}

/// Whom we say to be, and which database we want.
fn greeting(options: &RedisOptions) -> Result<RedisConnectionInfo, RedisError> {
    // The library makes one from a URL only; the host is never connected to.
    let url = format!("redis://localhost/{}", options.url.database);
    let info = url.as_str().into_connection_info().map_err(|fault| RedisError::of(&fault))?;
    let mut greeting = info.redis_settings().clone().set_skip_set_lib_name();
    if let Some(user) = &options.url.user {
        greeting = greeting.set_username(user);
    }
    if let Some(password) = &options.password {
        greeting = greeting.set_password(password.as_str());
    }
    Ok(greeting)
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A stream that ends with an error when more comes in after a command than any answer of ours has.
struct Bounded {
    stream: Box<dyn Stream>,
    left: usize,
}

impl AsyncRead for Bounded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let read = buffer.filled().len().saturating_sub(before);
        match self.left.checked_sub(read) {
            Some(left) => {
                self.left = left;
                Poll::Ready(Ok(()))
            }
            None => Poll::Ready(Err(io::Error::other("an answer is longer than any of ours"))),
        }
    }
}

impl AsyncWrite for Bounded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.left = MAX_ANSWER_BYTES;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
