//! Addresses of the development network.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use anyhow::{Result, bail};

/// Where free ports are looked for, and how often.
const FREE_PORTS: std::ops::Range<u16> = 12_000..30_000;
const FREE_PORT_ATTEMPTS: usize = 1_000;

/// Where everything listens, on loopback.
#[derive(Clone, Debug)]
pub struct Ports {
    /// L1's JSON-RPC.
    pub l1: u16,
    /// The sequencer's JSON-RPC and admin server.
    pub sequencer: (u16, u16),
    /// Each member's JSON-RPC and admin server.
    pub members: Vec<(u16, u16)>,
    /// The helper's admin server.
    pub hint_publisher: u16,
    /// The full node's JSON-RPC and admin server.
    pub full_node: (u16, u16),
    /// The proxy's JSON-RPC and admin server.
    pub proxy: (u16, u16),
    /// Reads and Engine API of the sequencer's execution client.
    pub sequencer_execution: (u16, u16),
    /// Reads and Engine API of the full node's execution client.
    pub full_node_execution: (u16, u16),
}

impl Ports {
    /// The documented ones (docs/operate.md).
    #[must_use]
    pub fn documented(members: u16) -> Self {
        Self {
            l1: 8545,
            sequencer: (9545, 9546),
            members: (1..=members).map(|member| (9550 + member, 9560 + member)).collect(),
            hint_publisher: 9571,
            full_node: (9580, 9581),
            proxy: (9590, 9591),
            sequencer_execution: (8645, 8651),
            full_node_execution: (8745, 8751),
        }
    }

    /// Free ones, so that a test run disturbs nothing.
    ///
    /// # Errors
    /// When the operating system gives none.
    pub fn free(members: u16) -> Result<Self> {
        // Below the range from which the operating system takes ports for outgoing connections: one of those could
        // take a port between here and its use. All are held until the last is known, so that none is given twice.
        let mut held = Vec::new();
        let mut next = || -> Result<u16> {
            for _ in 0..FREE_PORT_ATTEMPTS {
                let port = rand::random_range(FREE_PORTS);
                if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                    held.push(listener);
                    return Ok(port);
                }
            }
            bail!("no free port between {} and {}", FREE_PORTS.start, FREE_PORTS.end)
        };
        Ok(Self {
            l1: next()?,
            sequencer: (next()?, next()?),
            members: (1..=members).map(|_| Ok((next()?, next()?))).collect::<Result<_>>()?,
            hint_publisher: next()?,
            full_node: (next()?, next()?),
            proxy: (next()?, next()?),
            sequencer_execution: (next()?, next()?),
            full_node_execution: (next()?, next()?),
        })
    }
}

/// An address on loopback.
#[must_use]
pub fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// A URL on loopback.
#[must_use]
pub fn http(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}
