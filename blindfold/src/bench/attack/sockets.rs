//! WebSockets that ask and do not read.
//!
//! A client of the library reads by itself, so the few bytes of the protocol (RFC 6455) that a sender needs are here.

use std::{collections::BTreeMap, net::SocketAddr};

use anyhow::{Context, Result, ensure};
use blindfold_rpc::BlindApiClient;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::{Duration, interval, timeout},
};

use super::{
    Measured,
    floods::Flood,
    testbed::{Tally, Testbed},
};
use crate::devnet::ports::local;

/// Sockets that are open at the same time.
const SOCKETS: usize = 16;
/// How long a socket is tried that takes nothing more.
const STALLED: Duration = Duration::from_secs(5);
/// A socket from which nothing has come for so long has nothing more.
const QUIET: Duration = Duration::from_millis(500);
/// What stands in every answer once.
const ANSWER: &[u8] = b"\"jsonrpc\"";
/// Most bytes of the answer to a handshake.
const MAX_HANDSHAKE_BYTES: usize = 4096;

impl Testbed {
    /// Asks for a whole batch, over and over, on sockets from which nothing is read.
    pub(super) async fn unread(&mut self, count: usize, rate: u64) -> Result<Measured> {
        let number = BlindApiClient::get_status(&self.sequencer).await?.certified;
        let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"blind_getBatch","params":[{number}]}}"#);
        let frame = frame(request.as_bytes())?;
        let to = local(self.devnet.ports.sequencer.0);
        let meter = self.begin().await?;
        let (each, pause) = (count.div_ceil(SOCKETS), Duration::from_secs_f64(SOCKETS as f64 / rate as f64));
        let mut floods = JoinSet::new();
        for _ in 0..SOCKETS {
            let mut socket = connect(to).await?;
            let frame = frame.clone();
            floods.spawn(async move {
                let (mut sent, mut tick) = (0, interval(pause));
                while sent < each {
                    tick.tick().await;
                    match timeout(STALLED, socket.write_all(&frame)).await {
                        Ok(Ok(())) => sent += 1,
                        // It was closed, or takes nothing more.
                        Ok(Err(_)) | Err(_) => break,
                    }
                }
                // Open until the others are done, too.
                (socket, sent)
            });
        }
        let (mut sockets, mut sent) = (Vec::new(), 0);
        while let Some(one) = floods.join_next().await {
            let (socket, of_it) = one?;
            sockets.push(socket);
            sent += of_it;
        }
        ensure!(sent > 0, "no socket took a request");
        let refused =
            BTreeMap::from([("stalled_or_closed".to_owned(), (each * SOCKETS).saturating_sub(sent))]);
        let bytes = sent * frame.len();
        let tally = Tally { flood: Flood::UnreadSockets, sent, admitted: 0, refused, bytes };
        let mut measured = self.end(meter, tally).await?;
        // Only now, when nothing is counted any more.
        for socket in &mut sockets {
            measured.admitted += answers(socket).await;
        }
        Ok(measured)
    }
}

/// How many answers had come.
async fn answers(socket: &mut TcpStream) -> usize {
    let (mut all, mut part) = (Vec::new(), [0; 65_536]);
    while let Ok(Ok(length @ 1..)) = timeout(QUIET, socket.read(&mut part)).await {
        all.extend_from_slice(&part[..length]);
    }
    all.windows(ANSWER.len()).filter(|window| *window == ANSWER).count()
}

/// A text message of the client in one frame, masked with zeros.
fn frame(text: &[u8]) -> Result<Vec<u8>> {
    let length = u8::try_from(text.len()).ok().filter(|length| *length < 126).context("a short request")?;
    let mut frame = vec![0x81, 0x80 | length, 0, 0, 0, 0];
    frame.extend_from_slice(text);
    Ok(frame)
}

async fn connect(to: SocketAddr) -> Result<TcpStream> {
    let mut socket = TcpStream::connect(to).await?;
    let request = format!(
        "GET / HTTP/1.1\r\nHost: {to}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") && answer.len() < MAX_HANDSHAKE_BYTES {
        answer.push(socket.read_u8().await.context("an answer to the WebSocket handshake")?);
    }
    ensure!(answer.starts_with(b"HTTP/1.1 101 "), "no WebSocket: {}", String::from_utf8_lossy(&answer));
    Ok(socket)
}
