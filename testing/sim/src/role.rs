//! Who takes part, where each serves, and how long each lives.

use std::{collections::BTreeMap, fmt, net::SocketAddr, str::FromStr, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::watch;

/// Where everybody serves.
const PORT: u16 = 9545;

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Whoever watches the run.
    World,
    /// The chain below.
    L1,
    /// The sequencer.
    Sequencer,
    /// A committee member, from 1.
    Member(u16),
    /// A hint publisher, from 1.
    Publisher(u16),
    /// A full node, from 1.
    Node(u16),
    /// A user, from 1.
    User(u16),
    /// The proxy.
    Proxy,
    /// The coprocessor.
    Coprocessor,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::World => f.write_str("world"),
            Self::L1 => f.write_str("l1"),
            Self::Sequencer => f.write_str("sequencer"),
            Self::Member(index) => write!(f, "member-{index}"),
            Self::Publisher(index) => write!(f, "publisher-{index}"),
            Self::Node(index) => write!(f, "node-{index}"),
            Self::User(index) => write!(f, "user-{index}"),
            Self::Proxy => f.write_str("proxy"),
            Self::Coprocessor => f.write_str("coprocessor"),
        }
    }
}

impl FromStr for Role {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let Some((kind, index)) = name.split_once('-') else {
            return match name {
                "world" => Ok(Self::World),
                "l1" => Ok(Self::L1),
                "sequencer" => Ok(Self::Sequencer),
                "proxy" => Ok(Self::Proxy),
                "coprocessor" => Ok(Self::Coprocessor),
                _ => Err(()),
            };
        };
        let index = index.parse().map_err(|_| ())?;
        match kind {
            "member" => Ok(Self::Member(index)),
            "publisher" => Ok(Self::Publisher(index)),
            "node" => Ok(Self::Node(index)),
            "user" => Ok(Self::User(index)),
            _ => Err(()),
        }
    }
}

impl serde::Serialize for Role {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Role {
    /// Where it serves, and where its calls come from.
    pub fn addr(self) -> SocketAddr {
        let (kind, index) = match self {
            Self::World => (0, 0),
            Self::L1 => (1, 0),
            Self::Sequencer => (2, 0),
            Self::Member(index) => (3, index),
            Self::Publisher(index) => (4, index),
            Self::Node(index) => (5, index),
            Self::User(index) => (6, index),
            Self::Proxy => (7, 0),
            Self::Coprocessor => (8, 0),
        };
        let [high, low] = index.to_be_bytes();
        SocketAddr::from(([10, kind, high, low], PORT))
    }
}

/// One life of a role: from a start to the next kill. What it holds of the world does nothing any more after it.
#[derive(Clone, Debug)]
pub struct Life {
    /// Whose.
    pub role: Role,
    number: u64,
    current: watch::Receiver<u64>,
}

impl Life {
    /// Whether it goes on.
    pub fn goes_on(&self) -> bool {
        *self.current.borrow() == self.number
    }

    /// Resolves when it is over.
    pub async fn over(&self) {
        let mut current = self.current.clone();
        // An error means that the whole world is gone.
        let _ = current.wait_for(|current| *current != self.number).await;
    }

    /// Never returns once it is over: whoever asks is no more.
    pub async fn check(&self) {
        if !self.goes_on() {
            std::future::pending::<()>().await;
        }
    }

    /// How it reaches another role. The path says who calls, for whoever carries it.
    pub fn url(&self, to: Role) -> String {
        format!("http://{}/{}.{}", to.addr(), self.role, self.number)
    }
}

/// The lives of all roles.
#[derive(Clone, Debug, Default)]
pub struct Lives(Arc<Mutex<BTreeMap<Role, watch::Sender<u64>>>>);

impl Lives {
    /// A new life, which ends the one before it.
    pub fn begin(&self, role: Role) -> Life {
        let mut lives = self.0.lock();
        let current = lives.entry(role).or_insert_with(|| watch::Sender::new(0));
        current.send_modify(|number| *number += 1);
        Life { role, number: *current.borrow(), current: current.subscribe() }
    }

    /// Ends the life of a role at this moment.
    pub fn end(&self, role: Role) {
        if let Some(current) = self.0.lock().get(&role) {
            current.send_modify(|number| *number += 1);
        }
    }

    /// The life that a URL of [`Life::url`] names, and whom it calls.
    pub fn of_url(&self, url: &str) -> Option<(Life, SocketAddr)> {
        let (_, rest) = url.split_once("://")?;
        let (addr, caller) = rest.split_once('/')?;
        let (role, number) = caller.split_once('.')?;
        let (role, number) = (role.parse().ok()?, number.parse().ok()?);
        let current = self.0.lock().get(&role)?.subscribe();
        Some((Life { role, number, current }, addr.parse().ok()?))
    }

    /// The life that goes on at this address.
    pub fn at(&self, addr: SocketAddr) -> Option<Life> {
        let lives = self.0.lock();
        let (role, current) = lives.iter().find(|(role, _)| role.addr() == addr)?;
        Some(Life { role: *role, number: *current.borrow(), current: current.subscribe() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_who_calls_whom() {
        let lives = Lives::default();
        let life = lives.begin(Role::Member(2));
        lives.begin(Role::Sequencer);
        let (caller, addr) = lives.of_url(&life.url(Role::Sequencer).replace("http", "ws")).unwrap();
        assert_eq!((caller.role, addr), (Role::Member(2), Role::Sequencer.addr()));
        assert_eq!(lives.at(addr).unwrap().role, Role::Sequencer);
        assert!(caller.goes_on());
        lives.begin(Role::Member(2));
        assert!(!caller.goes_on() && !life.goes_on());
        for role in [
            Role::World,
            Role::L1,
            Role::Sequencer,
            Role::Publisher(1),
            Role::Node(2),
            Role::User(300),
            Role::Proxy,
            Role::Coprocessor,
        ] {
            assert_eq!(role.to_string().parse(), Ok(role));
        }
    }
}
