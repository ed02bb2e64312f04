//! Connections that ask and do not read.

use std::{fs, net::SocketAddr};

use anyhow::{Context, Result, ensure};
use blindfold::devnet::ports::local;
use futures::SinkExt;
use tokio::{
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::{Duration, timeout},
};
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message};

use super::{
    arena::{Arena, WAIT},
    report::{Gas, Outcome},
};

type Socket = WebSocketStream<TcpStream>;

/// Sockets of the attacker.
const SOCKETS: usize = 16;
/// Requests that each sends, if they are taken.
const REQUESTS: usize = 20_000;
/// How long the attacker waits for a server that reads no more.
const PATIENCE: Duration = Duration::from_secs(5);
/// What the sequencer may take in memory for all of it, in kibibytes.
const MAX_GROWTH_KIB: u64 = 256 * 1024;
/// An address of its own, so that its limits are not those of honest users.
const ATTACKER: &str = "127.0.0.2:0";

/// Many ask for whole batches over WebSocket and read nothing: memory stays bounded, and others are served.
pub async fn unread_websocket(arena: &mut Arena) -> Outcome {
    let (_, receipt) = arena.transfer(0).await?;
    let number = receipt.number.context("a number")?;
    let pid = arena.devnet.process("sequencer")?.pid()?;
    let before = resident_kib(pid)?;
    let to = local(arena.devnet.ports.sequencer.0);
    let mut floods = JoinSet::new();
    for _ in 0..SOCKETS {
        let socket = timeout(WAIT, connect(to)).await.context("a connection")??;
        floods.spawn(flood(socket, number));
    }
    let (_, receipt) = arena.transfer(1).await?;
    ensure!(receipt.number > Some(number), "expected a batch after {number}, seen {receipt:?}");
    let mut sockets = Vec::new();
    while let Some(socket) = floods.join_next().await {
        // One that was dropped meanwhile is as good.
        sockets.extend(socket?.ok());
    }
    let grown = resident_kib(pid)?.saturating_sub(before);
    ensure!(grown < MAX_GROWTH_KIB, "expected less than {MAX_GROWTH_KIB} KiB more, seen {grown}");
    arena.transfer(0).await?;
    Ok(Gas::default())
}

async fn connect(to: SocketAddr) -> Result<Socket> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(ATTACKER.parse()?)?;
    let (socket, _) = client_async(format!("ws://{to}"), socket.connect(to).await?).await?;
    Ok(socket)
}

/// Asks as often as it is let, and keeps the socket.
async fn flood(mut socket: Socket, number: u64) -> Result<Socket> {
    for id in 0..REQUESTS {
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"blind_getBatch","params":[{number}]}}"#);
        match timeout(PATIENCE, socket.send(Message::text(request))).await {
            Ok(sent) => sent?,
            Err(_) => break,
        }
    }
    Ok(socket)
}

/// What a process has in memory.
fn resident_kib(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    line.trim().trim_end_matches(" kB").trim().parse().context("VmRSS in kB")
}
