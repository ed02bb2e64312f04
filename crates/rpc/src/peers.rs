//! Who is connected, and how fast each address may call.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use crate::limits::{CALL_BURST_SECONDS, MAX_TRACKED_ADDRESSES};

/// The caller's address, in the extensions of every call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerAddress(pub SocketAddr);

/// Why a connection is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overload {
    Connections,
    ConnectionsOfAddress,
    Addresses,
}

/// Counts connections and calls by address. Loopback is exempt from the limits by address: what arrives there comes
/// from this machine, often from a front-end that carries many users.
#[derive(Debug)]
pub(crate) struct Peers {
    max_connections: u32,
    max_connections_per_address: u32,
    calls_per_second: u32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    connections: u32,
    addresses: HashMap<IpAddr, Address>,
}

#[derive(Debug)]
struct Address {
    connections: u32,
    calls_left: f64,
    refilled: Instant,
}

/// Held as long as the connection, or the WebSocket it became, lives.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    peers: Arc<Peers>,
    address: IpAddr,
}

impl Peers {
    pub(crate) fn new(
        max_connections: u32,
        max_connections_per_address: u32,
        calls_per_second: u32,
    ) -> Arc<Self> {
        Arc::new(Self {
            max_connections,
            max_connections_per_address,
            calls_per_second,
            state: Mutex::new(State::default()),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the lock is held, and the counts stay usable if something did.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn burst(&self) -> f64 {
        f64::from(self.calls_per_second) * f64::from(CALL_BURST_SECONDS)
    }

    pub(crate) fn connect(self: &Arc<Self>, peer: SocketAddr) -> Result<ConnectionPermit, Overload> {
        let address = group(peer.ip());
        let mut state = self.state();
        if state.connections >= self.max_connections {
            return Err(Overload::Connections);
        }
        if !state.addresses.contains_key(&address) && state.addresses.len() >= MAX_TRACKED_ADDRESSES {
            // An address that has been silent for the burst time has its whole allowance back, so forgetting it
            // changes nothing.
            state.addresses.retain(|_, known| {
                known.connections > 0 || known.refilled.elapsed().as_secs() < u64::from(CALL_BURST_SECONDS)
            });
            if state.addresses.len() >= MAX_TRACKED_ADDRESSES {
                return Err(Overload::Addresses);
            }
        }
        let known = state.addresses.entry(address).or_insert_with(|| Address {
            connections: 0,
            calls_left: self.burst(),
            refilled: Instant::now(),
        });
        if known.connections >= self.max_connections_per_address && !address.is_loopback() {
            return Err(Overload::ConnectionsOfAddress);
        }
        known.connections += 1;
        state.connections += 1;
        Ok(ConnectionPermit { peers: Arc::clone(self), address })
    }

    /// Takes one call from the address's allowance.
    pub(crate) fn may_call(&self, peer: SocketAddr) -> bool {
        let address = group(peer.ip());
        if self.calls_per_second == 0 || address.is_loopback() {
            return true;
        }
        let mut state = self.state();
        let Some(known) = state.addresses.get_mut(&address) else {
            return true;
        };
        let now = Instant::now();
        let refill = now.duration_since(known.refilled).as_secs_f64() * f64::from(self.calls_per_second);
        known.calls_left = (known.calls_left + refill).min(self.burst());
        known.refilled = now;
        let allowed = known.calls_left >= 1.0;
        if allowed {
            known.calls_left -= 1.0;
        }
        allowed
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut state = self.peers.state();
        state.connections = state.connections.saturating_sub(1);
        if let Some(known) = state.addresses.get_mut(&self.address) {
            known.connections = known.connections.saturating_sub(1);
        }
    }
}

/// One customer usually has a whole IPv6 /64, so its addresses count as one.
fn group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> SocketAddr {
        text.parse().expect("address")
    }

    #[test]
    fn connections_are_limited_in_all_and_by_address_and_come_back() {
        let peers = Peers::new(3, 2, 0);
        let first = peers.connect(peer("192.0.2.1:1")).expect("room");
        let _second = peers.connect(peer("192.0.2.1:2")).expect("room");
        assert_eq!(peers.connect(peer("192.0.2.1:3")).expect_err("full"), Overload::ConnectionsOfAddress);
        let _third = peers.connect(peer("192.0.2.2:1")).expect("room");
        assert_eq!(peers.connect(peer("192.0.2.3:1")).expect_err("full"), Overload::Connections);
        drop(first);
        peers.connect(peer("192.0.2.1:4")).expect("room again");
    }

    #[test]
    fn loopback_and_ipv6_networks() {
        let peers = Peers::new(10, 1, 1);
        let _a = peers.connect(peer("127.0.0.1:1")).expect("room");
        let _b = peers.connect(peer("127.0.0.1:2")).expect("exempt");
        let _c = peers.connect(peer("[2001:db8::1]:1")).expect("room");
        assert_eq!(
            peers.connect(peer("[2001:db8::2]:1")).expect_err("same /64"),
            Overload::ConnectionsOfAddress
        );
        for _ in 0..100 {
            assert!(peers.may_call(peer("127.0.0.1:1")));
        }
    }

    #[test]
    fn a_burst_is_allowed_and_then_refused() {
        let peers = Peers::new(10, 10, 1);
        let _held = peers.connect(peer("192.0.2.1:1")).expect("room");
        let allowed = (0..100).filter(|_| peers.may_call(peer("192.0.2.1:1"))).count();
        assert!((5..100).contains(&allowed), "{allowed}");
        assert!(peers.may_call(peer("192.0.2.9:1")), "an address without connection is not tracked");
    }

    #[test]
    fn tracked_addresses_are_bounded() {
        let peers = Peers::new(u32::MAX, 1, 1);
        for number in 0..MAX_TRACKED_ADDRESSES as u32 {
            let address = IpAddr::V4(std::net::Ipv4Addr::from(0x0a00_0000 + number));
            drop(peers.connect(SocketAddr::new(address, 1)).expect("room"));
        }
        assert_eq!(peers.connect(peer("192.0.2.1:1")).expect_err("full"), Overload::Addresses);
    }
}
