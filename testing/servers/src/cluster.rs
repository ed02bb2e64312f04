//! A PostgreSQL server that is replicated: what is committed stands on two machines before anybody hears of it.

use std::{thread, time::Duration};

use crate::{Postgres, ServerError, Way, socket_url};

/// Every commit waits until one other server shows it. Strict: without one nothing is committed.
const SETTINGS: [&str; 3] =
    ["synchronous_commit=remote_apply", "synchronous_standby_names=ANY 1 (*)", "wal_keep_size=256MB"];
/// How often a server's state is looked at, and with which pauses: half a minute.
const LOOKS: usize = 600;
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Three servers, one of which takes writes.
#[derive(Debug)]
pub struct PostgresCluster {
    servers: Vec<Postgres>,
    leader: usize,
}

impl PostgresCluster {
    /// Makes a database on three servers, two of which follow the first one. About 6 s.
    ///
    /// # Errors
    /// As [`Postgres::start`].
    pub fn start() -> Result<Self, ServerError> {
        // What its tools write before there is a follower waits for none.
        let mut leader = Postgres::start()?;
        let settings = SETTINGS.map(str::to_owned);
        let followers = [1, 2].map(|follower| leader.follower(&name(follower), &settings));
        leader.settings = settings.to_vec();
        leader.end()?;
        leader.resume_start()?;
        let mut servers = vec![leader];
        for follower in followers {
            servers.push(follower?);
        }
        let cluster = Self { servers, leader: 0 };
        cluster.followed(2)?;
        Ok(cluster)
    }

    /// The server that takes writes.
    pub fn leader(&self) -> &Postgres {
        &self.servers[self.leader]
    }

    /// The URL of an empty schema that nobody else has, at whichever server takes writes.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn fresh(&self) -> Result<String, ServerError> {
        let url = self.leader().fresh()?;
        let schema = url.rsplit_once("%3D").map_or("public", |(_, schema)| schema);
        Ok(socket_url(self.servers.iter().map(Postgres::socket), schema))
    }

    /// A way of its own to the servers, for one client.
    ///
    /// # Errors
    /// Where its sockets cannot be made.
    pub fn way(&self) -> Result<Way, ServerError> {
        Way::to(self.servers.iter())
    }

    /// Ends the server that takes writes, as a crash does, and has the one that has most of it take them. The third one
    /// follows that one; the one that ended stays away until [`rejoin`](Self::rejoin).
    ///
    /// # Errors
    /// Where none can.
    pub fn fail_over(&mut self) -> Result<(), ServerError> {
        let ended = self.leader;
        self.servers[ended].end()?;
        // One of the two has everything that was committed: each commit waited for one of them.
        let mut place = Vec::new();
        for follower in (0..self.servers.len()).filter(|server| *server != ended) {
            let sql = "SELECT GREATEST(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'::pg_lsn";
            let received = self.servers[follower].run(sql)?;
            place.push((received.parse::<u64>().unwrap_or(0), follower));
        }
        place.sort_unstable();
        let (_, next) =
            place.pop().ok_or_else(|| ServerError::Failed("postgres", "no follower".to_owned()))?;
        self.servers[next].run("SELECT pg_promote()")?;
        self.leader = next;
        for (_, follower) in place {
            let connection = self.servers[next].connection_of(&name(follower));
            self.servers[follower].run(&format!("ALTER SYSTEM SET primary_conninfo = '{connection}'"))?;
            self.servers[follower].run("SELECT pg_reload_conf()")?;
        }
        self.followed(1)
    }

    /// Has the server that ended follow again, from a new copy.
    ///
    /// # Errors
    /// Where it cannot.
    pub fn rejoin(&mut self) -> Result<(), ServerError> {
        let ended = (0..self.servers.len()).find(|server| self.servers[*server].supervisor.is_none());
        let Some(ended) = ended else { return Ok(()) };
        let mut server = self.servers.remove(ended);
        let leader = if self.leader > ended { self.leader - 1 } else { self.leader };
        let copied =
            server.copy_from(&self.servers[leader], &name(ended)).and_then(|()| server.resume_start());
        self.servers.insert(ended, server);
        copied?;
        self.followed(2)
    }

    /// Waits until so many servers follow.
    fn followed(&self, followers: u64) -> Result<(), ServerError> {
        for _ in 0..LOOKS {
            let sql = "SELECT COUNT(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'quorum'";
            if self.leader().run(sql)?.parse() == Ok(followers) {
                return Ok(());
            }
            thread::sleep(LOOK_PAUSE);
        }
        Err(ServerError::Failed("postgres", format!("{followers} servers do not follow")))
    }
}

fn name(server: usize) -> String {
    format!("server_{server}")
}
