//! Addresses of the development network.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use anyhow::{Result, bail};

/// Where free ports are looked for, and how often.
const FREE_PORTS: std::ops::Range<u16> = 12_000..30_000;
const FREE_PORT_ATTEMPTS: usize = 1_000;

/// Where everything listens, on loopback.
#[derive(Clone, Debug)]
pub struct Ports {
    /// JSON-RPC of L1 (anvil).
    pub l1: u16,
    /// The sequencer's JSON-RPC and admin server.
    pub sequencer: (u16, u16),
    /// Each member's JSON-RPC and admin server.
    pub members: Vec<(u16, u16)>,
    /// The hint publisher's admin server.
    pub hint_publisher: u16,
    /// The full node's JSON-RPC and admin server.
    pub full_node: (u16, u16),
    /// The proxy's JSON-RPC and admin server.
    pub proxy: (u16, u16),
    /// The coprocessor's JSON-RPC and admin server.
    pub coprocessor: (u16, u16),
    /// Reads and Engine API of the sequencer's execution client.
    pub sequencer_execution: (u16, u16),
    /// Reads and Engine API of the full node's execution client.
    pub full_node_execution: (u16, u16),
    /// A full node that follows from L1 alone; `None` where there is to be none.
    pub l1_node: Option<NodePorts>,
    /// Further sequencers, which share their records with the first one.
    pub further_sequencers: Vec<NodePorts>,
    /// The signer that further sequencers share with the first one, and its admin server; `None` where each has the key.
    pub signer: Option<(u16, u16)>,
    /// Each gateway's JSON-RPC and admin server; none where there are none.
    pub gateways: Vec<(u16, u16)>,
    /// The JSON-RPC of a relay before the full node, and its admin server; `None` where there is none.
    pub relay: Option<(u16, u16)>,
    /// The admin server of a second hint publisher, which shares batches with the first one; `None` where there is none.
    pub second_hint_publisher: Option<u16>,
}

/// Where a further full node or sequencer listens.
#[derive(Clone, Copy, Debug)]
pub struct NodePorts {
    /// JSON-RPC and admin server.
    pub node: (u16, u16),
    /// Reads and Engine API of its execution client.
    pub execution: (u16, u16),
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
            coprocessor: (9600, 9601),
            sequencer_execution: (8645, 8651),
            full_node_execution: (8745, 8751),
            l1_node: None,
            further_sequencers: Vec::new(),
            signer: None,
            gateways: Vec::new(),
            relay: None,
            second_hint_publisher: None,
        }
    }

    /// The documented ones with two further sequencers, their signer, two gateways, a relay and a second hint publisher.
    #[must_use]
    pub fn documented_replicated(members: u16) -> Self {
        let further = |index: u16| NodePorts {
            node: (9545 + 2 * index, 9546 + 2 * index),
            execution: (8645 + index, 8651 + index),
        };
        let gateways = vec![(9620, 9621), (9622, 9623)];
        Self {
            further_sequencers: vec![further(1), further(2)],
            signer: Some((9610, 9611)),
            gateways,
            relay: Some((9630, 9631)),
            second_hint_publisher: Some(9572),
            ..Self::documented(members)
        }
    }

    /// Free ones, with two further sequencers, their signer, two gateways, a relay and a second hint publisher.
    ///
    /// # Errors
    /// When the operating system gives none.
    pub fn free_replicated(members: u16) -> Result<Self> {
        let mut free = FreePorts::default();
        let mut ports = Self { l1_node: None, ..free.network(members)? };
        ports.signer = Some(free.pair()?);
        for _ in 0..2 {
            ports.further_sequencers.push(NodePorts { node: free.pair()?, execution: free.pair()? });
            ports.gateways.push(free.pair()?);
        }
        ports.relay = Some(free.pair()?);
        ports.second_hint_publisher = Some(free.next()?);
        Ok(ports)
    }

    /// Free ones, so that a test run disturbs nothing.
    ///
    /// # Errors
    /// When the operating system gives none.
    pub fn free(members: u16) -> Result<Self> {
        Ok(Self { l1_node: None, ..FreePorts::default().network(members)? })
    }

    /// Free ones, for a full node that follows from L1 alone, too.
    ///
    /// # Errors
    /// When the operating system gives none.
    pub fn free_with_l1_node(members: u16) -> Result<Self> {
        FreePorts::default().network(members)
    }

    /// Free ones for networks that are to run at the same time.
    ///
    /// # Errors
    /// When the operating system gives none.
    pub fn free_for_two(members: u16) -> Result<[Self; 2]> {
        let mut free = FreePorts::default();
        let [first, second] = [free.network(members)?, free.network(members)?];
        Ok([Self { l1_node: None, ..first }, Self { l1_node: None, ..second }])
    }
}

/// Finds free ports. All are held until the last is known, so that none is given twice.
#[derive(Default)]
struct FreePorts(Vec<TcpListener>);

impl FreePorts {
    fn next(&mut self) -> Result<u16> {
        // Below the range from which the operating system takes ports for outgoing connections: one of those could
        // take a port between here and its use.
        for _ in 0..FREE_PORT_ATTEMPTS {
            let port = rand::random_range(FREE_PORTS);
            if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                self.0.push(listener);
                return Ok(port);
            }
        }
        bail!("no free port between {} and {}", FREE_PORTS.start, FREE_PORTS.end)
    }

    fn pair(&mut self) -> Result<(u16, u16)> {
        Ok((self.next()?, self.next()?))
    }

    fn network(&mut self, members: u16) -> Result<Ports> {
        Ok(Ports {
            l1: self.next()?,
            sequencer: self.pair()?,
            members: (1..=members).map(|_| self.pair()).collect::<Result<_>>()?,
            hint_publisher: self.next()?,
            full_node: self.pair()?,
            proxy: self.pair()?,
            coprocessor: self.pair()?,
            sequencer_execution: self.pair()?,
            full_node_execution: self.pair()?,
            l1_node: Some(NodePorts { node: self.pair()?, execution: self.pair()? }),
            further_sequencers: Vec::new(),
            signer: None,
            gateways: Vec::new(),
            relay: None,
            second_hint_publisher: None,
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
