//! Who is connected, and how fast each caller may call.

use std::{
    collections::{HashMap, VecDeque},
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use blindfold_protocol::Party;
use blindfold_runtime::{Instant, now};
use tokio::sync::Notify;

use crate::{
    Pace, RpcError,
    limits::{
        CALL_BURST_SECONDS, HEADER_TIMEOUT_MS, MAX_ADDRESSES_PER_PEER, MAX_CONNECTIONS_PER_PEER,
        MAX_TRACKED_ADDRESSES, TURNED_AWAY_CONNECTIONS, TURNED_AWAY_PER_ADDRESS, WAITING_CONNECTIONS,
        WAITING_CONNECTIONS_PER_ADDRESS, WAITING_MS,
    },
    turned_away,
};

/// The caller's address, in the extensions of every call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerAddress(pub SocketAddr);

/// On whose account something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Account {
    /// An address, an IPv6 one by its /64.
    Address(IpAddr),
    /// A peer that has proved who it is.
    Peer(Party),
}

impl Account {
    pub(crate) fn of(address: IpAddr) -> Self {
        Self::Address(group(address))
    }
}

/// Why a connection is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overload {
    Connections,
    ConnectionsOfAddress,
    Addresses,
}

/// Counts connections and calls by account: that of the caller's address, as far as it is known ([`crate::Inbound`]),
/// or of the peer that proved who it is. Where there may be such peers, a connection that finds no place waits for a
/// moment in which it can prove that it is one.
#[derive(Debug)]
pub(crate) struct Peers {
    max_connections: u32,
    max_connections_per_address: u32,
    calls_per_second: u32,
    /// Whether anybody can prove who he is.
    peers_are_known: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    connections: u32,
    waiting: VecDeque<Waiting>,
    next_waiting: u64,
    accounts: HashMap<Account, Counts>,
    crowd: Crowd,
    /// Connections that are told that there is no place for them, by whose they are.
    turned_away: HashMap<Option<Account>, usize>,
    /// Addresses that each peer called from, the latest hello last.
    peer_addresses: HashMap<Party, VecDeque<Account>>,
}

#[derive(Debug)]
struct Counts {
    connections: u32,
    calls_left: f64,
    refilled: Instant,
    /// Since it had too many connections for the first time.
    crowd: Option<Box<Crowd>>,
}

/// Those who want a place where none is free, and how fast places become free.
#[derive(Debug, Default)]
struct Crowd {
    wanted: Pace,
    freed: Pace,
}

impl Crowd {
    /// When somebody who finds no place now may find one: after those who found none in the last second.
    fn time_to_come_back(&self) -> Duration {
        self.wanted.note(1);
        // A connection that is idle ends by itself.
        self.freed.time_for(self.wanted.per_second().ceil() as u64).unwrap_or(IDLE)
    }
}

const IDLE: Duration = Duration::from_millis(HEADER_TIMEOUT_MS);

/// A connection that is told that there is no place for it.
#[derive(Debug)]
pub(crate) struct TurnedAway {
    pub(crate) overload: Overload,
    pub(crate) refusal: RpcError,
    peers: Arc<Peers>,
    account: Option<Account>,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    account: Option<Account>,
    given_away: Arc<Notify>,
}

/// A connection's place, held as long as the connection, or the WebSocket it became, lives.
#[derive(Debug)]
pub(crate) struct Place {
    peers: Arc<Peers>,
    /// Locked before the state of all, never after.
    kind: Mutex<Kind>,
    given_away: Arc<Notify>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Among everybody's. The address is none for a connection of a reverse proxy.
    Open(Option<Account>),
    /// No place is free; the number in the queue.
    Waiting(u64, Overload),
    Peer(Account),
}

/// A place among the connections of an address, beside the connection's own: for a WebSocket of a proxy's caller.
#[derive(Debug)]
pub(crate) struct AddressPermit {
    peers: Arc<Peers>,
    account: Account,
}

impl Peers {
    pub(crate) fn new(
        max_connections: u32,
        max_connections_per_address: u32,
        calls_per_second: u32,
        peers_are_known: bool,
    ) -> Arc<Self> {
        let state = Mutex::default();
        Arc::new(Self {
            max_connections,
            max_connections_per_address,
            calls_per_second,
            peers_are_known,
            state,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the lock is held, and the counts stay usable if something did.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn burst(&self) -> f64 {
        f64::from(self.calls_per_second) * f64::from(CALL_BURST_SECONDS)
    }

    /// A place for a connection; of an address, or of a reverse proxy for many.
    pub(crate) fn connect(self: &Arc<Self>, address: Option<IpAddr>) -> Result<Arc<Place>, Overload> {
        let account = address.map(Account::of);
        let mut state = self.state();
        let given_away = Arc::new(Notify::new());
        let kind = match state.open(self, account) {
            Ok(()) => Kind::Open(account),
            Err(overload) if !self.peers_are_known => return Err(overload),
            Err(overload) => {
                let number = state.wait(account, &given_away).map_err(|_| overload)?;
                Kind::Waiting(number, overload)
            }
        };
        drop(state);
        Ok(Arc::new(Place { peers: Arc::clone(self), kind: Mutex::new(kind), given_away }))
    }

    /// What a connection is told for which there is no place, whether or not it waits for a moment.
    pub(crate) fn refusal(&self, address: Option<IpAddr>, overload: Overload) -> RpcError {
        let account = address.map(Account::of);
        let state = &mut *self.state();
        let known = account.and_then(|account| state.accounts.get_mut(&account));
        let crowd = match (overload, known) {
            (Overload::ConnectionsOfAddress, Some(known)) => &**known.crowd.get_or_insert_default(),
            _ => &state.crowd,
        };
        turned_away::refusal(overload, crowd.time_to_come_back())
    }

    /// Leave to tell a connection that there is no place for it; none where too many are being told.
    pub(crate) fn turn_away(
        self: &Arc<Self>,
        address: Option<IpAddr>,
        overload: Overload,
    ) -> Option<TurnedAway> {
        let refusal = self.refusal(address, overload);
        let account = address.map(Account::of);
        let mut state = self.state();
        let all: usize = state.turned_away.values().sum();
        let of_same = state.turned_away.get(&account).copied().unwrap_or_default();
        if all >= TURNED_AWAY_CONNECTIONS || account.is_some() && of_same >= TURNED_AWAY_PER_ADDRESS {
            return None;
        }
        *state.turned_away.entry(account).or_default() += 1;
        Some(TurnedAway { overload, refusal, peers: Arc::clone(self), account })
    }

    /// How long an account waits for its next call at least, once it has used its allowance up.
    pub(crate) fn time_for_a_call(&self) -> Duration {
        Duration::from_secs(1) / self.calls_per_second.max(1)
    }

    /// A place among the connections of an address.
    pub(crate) fn connect_from(self: &Arc<Self>, address: IpAddr) -> Result<AddressPermit, Overload> {
        let account = Account::of(address);
        self.state().count(self, account)?;
        Ok(AddressPermit { peers: Arc::clone(self), account })
    }

    /// Takes one call from the account's allowance.
    pub(crate) fn may_call(&self, account: Account) -> bool {
        if self.calls_per_second == 0 {
            return true;
        }
        let mut state = self.state();
        let Some(known) = state.account(account, self.burst()) else { return false };
        let now = now();
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

impl State {
    fn open(&mut self, peers: &Peers, account: Option<Account>) -> Result<(), Overload> {
        if self.connections >= peers.max_connections {
            return Err(Overload::Connections);
        }
        account.map_or(Ok(()), |account| self.count(peers, account))?;
        self.connections += 1;
        Ok(())
    }

    /// Queues a connection that found no place.
    fn wait(&mut self, account: Option<Account>, given_away: &Arc<Notify>) -> Result<u64, Overload> {
        let of_same = self.waiting.iter().filter(|other| other.account == account).count();
        if of_same >= WAITING_CONNECTIONS_PER_ADDRESS {
            return Err(Overload::ConnectionsOfAddress);
        }
        if !self.is_peers(account) {
            // A peer needs its place for the time of one hello: whoever waits longest is none.
            let anonymous = |waiting: &Waiting| !self.is_peers(waiting.account);
            let oldest = self.waiting.iter().position(anonymous);
            if self.waiting.iter().filter(|waiting| anonymous(waiting)).count() >= WAITING_CONNECTIONS
                && let Some(oldest) = oldest.and_then(|index| self.waiting.remove(index))
            {
                oldest.given_away.notify_one();
            }
        }
        self.next_waiting += 1;
        let (number, given_away) = (self.next_waiting, Arc::clone(given_away));
        self.waiting.push_back(Waiting { number, account, given_away });
        Ok(number)
    }

    /// Whether a peer has called from this address.
    fn is_peers(&self, account: Option<Account>) -> bool {
        account.is_some_and(|account| self.peer_addresses.values().any(|known| known.contains(&account)))
    }

    /// Remembers where the peer's connection comes from.
    fn remember(&mut self, party: Party, kind: Kind) {
        let address = match kind {
            Kind::Open(address) => address,
            Kind::Waiting(number, _) => {
                let waiting = self.waiting.iter().find(|waiting| waiting.number == number);
                waiting.and_then(|waiting| waiting.account)
            }
            Kind::Peer(_) => None,
        };
        let Some(address) = address else { return };
        let known = self.peer_addresses.entry(party).or_default();
        known.retain(|known| *known != address);
        if known.len() >= MAX_ADDRESSES_PER_PEER {
            known.pop_front();
        }
        known.push_back(address);
    }

    /// Counts one more connection of an account.
    fn count(&mut self, peers: &Peers, account: Account) -> Result<(), Overload> {
        let limit = match account {
            Account::Address(_) => peers.max_connections_per_address,
            Account::Peer(_) => MAX_CONNECTIONS_PER_PEER,
        };
        let known = self.account(account, peers.burst()).ok_or(Overload::Addresses)?;
        if known.connections >= limit {
            return Err(Overload::ConnectionsOfAddress);
        }
        known.connections += 1;
        Ok(())
    }

    fn uncount(&mut self, account: Account) {
        if let Some(known) = self.accounts.get_mut(&account) {
            known.connections = known.connections.saturating_sub(1);
            if let Some(crowd) = &known.crowd {
                crowd.freed.note(1);
            }
        }
    }

    /// What is known of an account; none if too many others are remembered.
    fn account(&mut self, account: Account, burst: f64) -> Option<&mut Counts> {
        let crowded = self.accounts.len() >= MAX_TRACKED_ADDRESSES && matches!(account, Account::Address(_));
        if crowded && !self.accounts.contains_key(&account) {
            // An account that has been silent for the burst time has its whole allowance back, so forgetting it
            // changes nothing.
            self.accounts.retain(|_, known| {
                known.connections > 0 || known.refilled.elapsed().as_secs() < u64::from(CALL_BURST_SECONDS)
            });
            if self.accounts.len() >= MAX_TRACKED_ADDRESSES {
                return None;
            }
        }
        let fresh = || Counts { connections: 0, calls_left: burst, refilled: now(), crowd: None };
        Some(self.accounts.entry(account).or_insert_with(fresh))
    }

    fn leave(&mut self, kind: Kind) {
        match kind {
            Kind::Open(account) => {
                self.connections = self.connections.saturating_sub(1);
                self.crowd.freed.note(1);
                account.into_iter().for_each(|account| self.uncount(account));
            }
            Kind::Waiting(number, _) => self.waiting.retain(|waiting| waiting.number != number),
            Kind::Peer(account) => self.uncount(account),
        }
    }
}

impl Place {
    fn kind(&self) -> MutexGuard<'_, Kind> {
        self.kind.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.overload().is_some()
    }

    /// Why it waits, if it does.
    pub(crate) fn overload(&self) -> Option<Overload> {
        match *self.kind() {
            Kind::Waiting(_, overload) => Some(overload),
            _ => None,
        }
    }

    /// Whether another connection waits in its place now.
    pub(crate) fn gave_way(&self) -> bool {
        let Kind::Waiting(number, _) = *self.kind() else { return false };
        !self.peers.state().waiting.iter().any(|waiting| waiting.number == number)
    }

    /// The connection is this peer's: it takes none of everybody's places. False when the peer has too many.
    pub(crate) fn belongs_to(&self, party: Party) -> bool {
        let account = Account::Peer(party);
        let mut kind = self.kind();
        if matches!(*kind, Kind::Peer(known) if known == account) {
            return true;
        }
        let mut state = self.peers.state();
        if state.count(&self.peers, account).is_err() {
            return false;
        }
        state.remember(party, *kind);
        state.leave(std::mem::replace(&mut kind, Kind::Peer(account)));
        true
    }

    /// Resolves when the connection has to end, having waited in vain.
    pub(crate) async fn lost(&self) {
        if self.is_waiting() {
            tokio::select! {
                () = self.given_away.notified() => {}
                () = tokio::time::sleep(Duration::from_millis(WAITING_MS)) => {}
            }
        }
        if !self.is_waiting() {
            std::future::pending().await
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let kind = *self.kind();
        self.peers.state().leave(kind);
    }
}

impl Drop for TurnedAway {
    fn drop(&mut self) {
        let mut state = self.peers.state();
        if let Some(told) = state.turned_away.get_mut(&self.account) {
            *told -= 1;
            if *told == 0 {
                state.turned_away.remove(&self.account);
            }
        }
    }
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        self.peers.state().uncount(self.account);
    }
}

/// One customer usually has a whole IPv6 /64, so its addresses count as one.
pub(crate) fn group(address: IpAddr) -> IpAddr {
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
    use crate::limits::MAX_CONNECTIONS_PER_ADDRESS;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("address")
    }

    fn peers(connections: u32, per_address: u32, calls_per_second: u32) -> Arc<Peers> {
        Peers::new(connections, per_address, calls_per_second, false)
    }

    #[test]
    fn connections_are_limited_in_all_and_by_address_and_come_back() {
        let peers = peers(3, 2, 0);
        let first = peers.connect(Some(ip("192.0.2.1"))).expect("room");
        let _second = peers.connect(Some(ip("192.0.2.1"))).expect("room");
        let full = peers.connect(Some(ip("192.0.2.1"))).expect_err("full");
        assert_eq!(full, Overload::ConnectionsOfAddress);
        let _third = peers.connect(None).expect("room");
        assert_eq!(peers.connect(Some(ip("192.0.2.2"))).expect_err("full"), Overload::Connections);
        drop(first);
        peers.connect(Some(ip("192.0.2.1"))).expect("room again");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_turned_away_is_told_when_places_become_free() {
        let peers = peers(100, 2, 0);
        let address = Some(ip("192.0.2.1"));
        let mut places: VecDeque<_> = (0..2).map(|_| peers.connect(address).expect("room")).collect();
        let refusal = |peers: &Arc<Peers>| {
            let overload = peers.connect(address).expect_err("full");
            let away = peers.turn_away(address, overload).expect("not many");
            (away.refusal.reason.to_string(), away.refusal.retry_after_ms.expect("a time"))
        };
        let of_address = |ms| ("too_many_connections".to_owned(), ms);
        assert_eq!(refusal(&peers), of_address(HEADER_TIMEOUT_MS), "nobody left yet");
        // Four want a place each second, and two of those who have one leave.
        for _ in 0..8 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            places.pop_front();
            places.push_back(peers.connect(address).expect("room"));
            let (first, second) = (refusal(&peers), refusal(&peers));
            assert_eq!((first.0, second.0), (of_address(0).0, of_address(0).0));
        }
        let (_, ms) = refusal(&peers);
        assert!((1_500..=2_500).contains(&ms), "{ms}");
        let told: Vec<_> = std::iter::from_fn(|| peers.turn_away(address, Overload::Connections)).collect();
        assert_eq!(told.len(), TURNED_AWAY_PER_ADDRESS);
        assert_eq!(told[0].refusal.reason, "connections_full");
        drop(told);
        assert!(peers.state().turned_away.is_empty());
    }

    /// Of 400 senders at one address, each on a connection of its own, some found neither a place nor an answer (J-8).
    #[test]
    fn a_crowd_of_one_address_as_large_as_its_places_is_told() {
        let peers = peers(10, 1, 0);
        let away = |last: u8| peers.turn_away(Some([192, 0, 2, last].into()), Overload::ConnectionsOfAddress);
        let told: Vec<_> = (0..MAX_CONNECTIONS_PER_ADDRESS).map_while(|_| away(1)).collect();
        assert_eq!(told.len(), MAX_CONNECTIONS_PER_ADDRESS as usize);
        assert!(away(1).is_none() && away(2).is_some(), "and keeps no other from being told");
    }

    /// Behind a local proxy every limit by address had gone.
    #[test]
    fn loopback_is_limited_like_any_other_and_ipv6_by_network() {
        let peers = peers(10, 1, 1);
        for (first, second) in [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("2001:db8::1", "2001:db8::2")] {
            let _held = peers.connect_from(ip(first)).expect("room");
            assert_eq!(peers.connect_from(ip(second)).expect_err("full"), Overload::ConnectionsOfAddress);
        }
        let allowed = (0..100).filter(|_| peers.may_call(Account::of(ip("127.0.0.1")))).count();
        assert!((5..100).contains(&allowed), "{allowed}");
    }

    #[test]
    fn a_burst_is_allowed_and_then_refused() {
        let peers = peers(10, 10, 1);
        let allowed = (0..100).filter(|_| peers.may_call(Account::of(ip("192.0.2.1")))).count();
        assert!((5..100).contains(&allowed), "{allowed}");
        assert!(peers.may_call(Account::of(ip("192.0.2.9"))), "others are not disturbed");
    }

    #[test]
    fn tracked_addresses_are_bounded() {
        let peers = peers(u32::MAX, 1, 1);
        for number in 0..MAX_TRACKED_ADDRESSES as u32 {
            drop(peers.connect_from(std::net::Ipv4Addr::from(0x0a00_0000 + number).into()).expect("room"));
        }
        assert_eq!(peers.connect_from(ip("192.0.2.1")).expect_err("full"), Overload::Addresses);
        assert!(!peers.may_call(Account::of(ip("192.0.2.1"))));
        assert!(peers.may_call(Account::Peer(Party::Member(1))), "peers are always remembered");
    }

    /// Anonymous connections took every place of a member's or the sequencer's server.
    #[tokio::test]
    async fn anonymous_connections_leave_peers_their_places() {
        let peers = Peers::new(1, 1, 0, true);
        let open = peers.connect(Some(ip("192.0.2.1"))).expect("room");
        assert!(!open.is_waiting());
        let waiting = peers.connect(Some(ip("192.0.2.2"))).expect("waits");
        assert!(waiting.is_waiting() && waiting.belongs_to(Party::Member(2)) && !waiting.is_waiting());
        // Whoever has the only open place gives it back when it turns out to be a peer's.
        assert!(open.belongs_to(Party::Member(1)) && open.belongs_to(Party::Member(1)));
        assert!(!peers.connect(Some(ip("192.0.2.1"))).expect("room").is_waiting());
        let many: Vec<_> = (1..MAX_CONNECTIONS_PER_PEER)
            .map(|_| peers.connect(None).expect("waits or not"))
            .filter(|place| place.belongs_to(Party::Member(1)))
            .collect();
        assert_eq!(many.len() as u32 + 1, MAX_CONNECTIONS_PER_PEER);
        assert!(!peers.connect(None).expect("room").belongs_to(Party::Member(1)), "no peer takes them all");
        drop(many);
        assert!(peers.connect(None).expect("room").belongs_to(Party::Member(1)));
    }

    #[tokio::test]
    async fn who_waits_longest_gives_way_and_nobody_waits_for_ever() {
        let peers = Peers::new(1, 1, 0, true);
        let _open = peers.connect(Some(ip("192.0.2.1"))).expect("room");
        let address = |number: u32| Some(std::net::Ipv4Addr::from(0x0a00_0000 + number).into());
        let mut waiting: VecDeque<_> = (0..WAITING_CONNECTIONS as u32)
            .map(|number| peers.connect(address(number)).expect("waits"))
            .collect();
        waiting.push_back(peers.connect(address(1_000)).expect("waits"));
        let oldest = waiting.pop_front().expect("the oldest");
        let next = waiting.pop_front().expect("the next");
        tokio::select! {
            biased;
            () = oldest.lost() => {}
            () = next.lost() => panic!("it may still show a hello"),
        }
        next.lost().await;
        drop(waiting);
        let _same: Vec<_> = (0..WAITING_CONNECTIONS_PER_ADDRESS)
            .map(|_| peers.connect(Some(ip("192.0.2.1"))).expect("waits"))
            .collect();
        peers.connect(Some(ip("192.0.2.1"))).expect_err("one address does not crowd out the others");
    }

    /// Connections opened fast from many networks pushed a peer's out before it had said who it is.
    #[tokio::test]
    async fn a_peers_known_address_waits_apart_from_the_crowd() {
        let peers = Peers::new(1, 1, 0, true);
        let _open = peers.connect(Some(ip("192.0.2.1"))).expect("room");
        let home = || peers.connect(Some(ip("198.51.100.7"))).expect("waits");
        assert!(home().belongs_to(Party::Member(1)));
        let again = home();
        assert!(again.is_waiting());
        let _crowd: Vec<_> = (0..3 * WAITING_CONNECTIONS as u32)
            .map(|number| peers.connect(Some(std::net::Ipv4Addr::from(0x0a00_0000 + number).into())))
            .collect();
        tokio::select! {
            biased;
            () = again.lost() => panic!("it gave way to nobody"),
            () = tokio::task::yield_now() => {}
        }
        assert!(again.belongs_to(Party::Member(1)));
        // One address still has a bounded number of places.
        let _same: Vec<_> = (0..WAITING_CONNECTIONS_PER_ADDRESS).map(|_| home()).collect();
        peers.connect(Some(ip("198.51.100.7"))).expect_err("enough of them");
        // The oldest of one peer's many addresses is forgotten, and nobody else's.
        for number in 0..=MAX_ADDRESSES_PER_PEER as u32 {
            let place =
                peers.connect(Some(std::net::Ipv4Addr::from(0x0b00_0000 + number).into())).expect("waits");
            assert!(place.belongs_to(Party::Member(2)));
        }
        let state = peers.state();
        assert!(state.is_peers(Some(Account::of(ip("198.51.100.7")))));
        assert!(!state.is_peers(Some(Account::of(ip("11.0.0.0")))));
        assert!(state.is_peers(Some(Account::of(ip("11.0.0.1")))));
    }
}
