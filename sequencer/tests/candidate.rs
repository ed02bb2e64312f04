//! Several sequencers on one database: who leads, who stands by, and what becomes of what was admitted.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use blindfold_kit::*;
use blindfold_protocol::Canonical;
use blindfold_rpc::{BlindApiClient, Encoded, HttpClient, RunningRole, SequencerApiClient};
use blindfold_sequencer::{
    CandidateDeps, CandidateHandle, CandidateState, Prepare, Sequencer, SequencerConfig,
};
use blindfold_servers::Postgres;
use blindfold_store::{Candidate, PostgresUrl, SqlStore, Standby};
use common::*;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// An address that is free, and most likely still is in a moment.
fn free() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// One of several, with what it has for itself.
struct One {
    handle: CandidateHandle,
    client: HttpClient,
    config: SequencerConfig,
}

impl One {
    fn start(world: &Arc<World>, url: &PostgresUrl, name: &str) -> Self {
        Self::with_lease(world, url, name, Duration::from_secs(3_600))
    }

    fn with_lease(world: &Arc<World>, url: &PostgresUrl, name: &str, lease: Duration) -> Self {
        let mut config = world.config.clone();
        config.data_dir = world.folder.path().join(name);
        (config.rpc_addr, config.admin_addr) = (free(), free());
        let execution = ScriptedExecution::new();
        let prepare: Prepare = {
            let (world, execution) = (Arc::clone(world), execution.clone());
            Box::new(move |store: Arc<SqlStore>| {
                let mut deps = world.deps(store);
                deps.execution = execution.clone();
                Box::pin(async { Ok(deps) })
            })
        };
        let candidate = Candidate { url: format!("http://{}", config.rpc_addr), lease };
        let standby = Standby::new(url.clone(), candidate);
        let deps = CandidateDeps { standby, execution, prepare };
        let handle = Sequencer::stand_by(config.clone(), deps).unwrap();
        Self { handle, client: client(config.rpc_addr), config }
    }

    async fn leads(&self) -> u64 {
        let mut state = self.handle.state();
        let leads = state.wait_for(|state| matches!(state, CandidateState::Leads { .. }));
        match &*within("the lead", leads).await.unwrap() {
            CandidateState::Leads { term } => *term,
            state => panic!("{state:?}"),
        }
    }

    async fn stands_by(&self, term: u64) {
        let mut state = self.handle.state();
        let of =
            |state: &CandidateState| matches!(state, CandidateState::StandsBy(leader) if leader.term == term);
        within("the standby", state.wait_for(of)).await.unwrap();
    }

    /// The answer of the admin port.
    async fn admin(&self, request: &str) -> String {
        self.admin_with(request, "").await
    }

    async fn admin_with(&self, request: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(self.config.admin_addr).await.unwrap();
        let more = "host: x\r\ncontent-length: 0\r\nconnection: close";
        let request = format!("{request} HTTP/1.1\r\n{headers}{more}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// Sends until it is taken.
    async fn send(&self, n: u8, nonce: u64) {
        let bytes = envelope(n, nonce).encode();
        within("an acknowledgement", async {
            while let Err(error) = self.client.send_envelope(Encoded::from_bytes(bytes.clone()), None).await {
                let refused = refused(error);
                assert!(refused.retry || refused.reason == "standing_by", "{refused}");
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
    }

    async fn head(&self, number: u64) {
        within("a header", async {
            loop {
                match self.client.get_status().await {
                    Ok(status) if status.head.number >= number => return,
                    _ => tokio::time::sleep(Duration::from_millis(2)).await,
                }
            }
        })
        .await;
    }
}

fn database() -> Option<PostgresUrl> {
    Some(Postgres::shared()?.fresh().unwrap().parse().unwrap())
}

async fn reason(client: &HttpClient) -> (String, Option<String>) {
    let refusal = refused(client.get_status().await.unwrap_err());
    (refusal.reason.to_string(), refusal.leader.map(|leader| leader.to_string()))
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_stands_by_goes_on_where_the_leader_ended() {
    let Some(url) = database() else { return };
    let world = Arc::new(World::new());
    world.l1.deposit(payer(1).address(), RICH);
    let first = One::start(&world, &url, "first");
    assert_eq!(first.leads().await, 1);
    let second = One::start(&world, &url, "second");
    second.stands_by(1).await;
    let named = Some(format!("http://{}", first.config.rpc_addr));
    assert_eq!(reason(&second.client).await, ("standing_by".to_owned(), named));
    assert!(second.admin("GET /metrics").await.contains("blindfold_leads{role=\"sequencer\"} 0"));
    first.head(1).await;
    first.send(1, 1).await;
    first.head(2).await;
    // Killed, with its connections.
    first.handle.abort().await;
    assert_eq!(second.leads().await, 2);
    second.head(2).await;
    second.send(1, 2).await;
    second.head(3).await;
    let first_header = second.client.get_batch(2).await.unwrap().unwrap();
    assert_eq!(first_header.sealed.decode().unwrap().items.len(), 1);
    second.handle.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_asked_to_hands_over_and_stands_by() {
    let Some(url) = database() else { return };
    let world = Arc::new(World::new());
    world.l1.deposit(payer(1).address(), RICH);
    let first = One::start(&world, &url, "first");
    first.leads().await;
    first.head(1).await;
    let second = One::start(&world, &url, "second");
    second.stands_by(1).await;
    assert!(second.admin("POST /hand-over").await.starts_with("HTTP/1.1 404"), "it has nothing to hand over");
    first.send(1, 1).await;
    let from_a_page = first.admin_with("POST /hand-over", "origin: https://example.org\r\n").await;
    assert!(from_a_page.starts_with("HTTP/1.1 403"), "{from_a_page}");
    assert!(first.admin("POST /hand-over").await.starts_with("HTTP/1.1 202"));
    assert_eq!(second.leads().await, 2);
    first.stands_by(2).await;
    second.send(1, 2).await;
    second.head(2).await;
    assert!(second.admin("POST /hand-over").await.starts_with("HTTP/1.1 202"));
    assert_eq!(first.leads().await, 3);
    first.send(1, 3).await;
    let before = first.client.get_status().await.unwrap().head.number;
    first.head(before.max(2)).await;
    second.stands_by(3).await;
    second.handle.shutdown().await;
    first.handle.shutdown().await;
}

/// Another one has taken the records: nothing that the former leader does counts, and it stands by.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_records_were_taken_stands_by() {
    let Some(url) = database() else { return };
    let world = Arc::new(World::new());
    world.l1.deposit(payer(1).address(), RICH);
    let first = One::with_lease(&world, &url, "first", Duration::from_secs(1));
    first.leads().await;
    first.head(1).await;
    // As a process that was stopped sees it when it goes on: its session is gone, and the row is another's.
    let server = Postgres::shared().unwrap();
    let schema = url.to_string().rsplit_once("%3D").unwrap().1.to_owned();
    let takes = format!("UPDATE {schema}.writer SET holder = holder + 1, term = term + 1");
    server.run(&takes).unwrap();
    within("the loss", first.handle.state().wait_for(|state| *state != CandidateState::Leads { term: 1 }))
        .await
        .unwrap();
    // Whoever took them has said nothing since.
    assert_eq!(first.leads().await, 3);
    first.send(1, 1).await;
    first.head(2).await;
    first.handle.shutdown().await;
}
