//! The signer in a process of its own: over real sockets and certificates, killed and started again, lost and restored.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use blindfold_certificates::{Authority, Pair, Said};
use blindfold_chain::{HeaderSigner, L1Reader, RemoteSigner, SignerError};
use blindfold_kit::*;
use blindfold_protocol::{Address, B256, BatchHeader, Hello, Party, PartyKey, Promise, SealedBatch};
use blindfold_rpc::{
    ClientConfig, PeerListener, ReceivedError, RunningRole, SignerApiClient, http_client,
    jsonrpsee::core::client::ClientT,
};
use blindfold_sequencer::{Sequencer, SequencerDeps, StartError};
use blindfold_signer::{
    Signer, SignerConfig, SignerDeps, SignerHandle, StartError as SignerStartError, begin,
};
use blindfold_store::StoreError;
use blindfold_tls::{ClientTls, TlsSettings};
use common::*;
use serde_json::{Value, json};

/// A signer's machine: its certificates, its disk and its port.
struct Elsewhere<'w> {
    world: &'w World,
    /// Who signs the certificates of both sides.
    authority: Authority,
    of_server: Pair,
    of_client: Pair,
    disk: PathBuf,
    addr: SocketAddr,
}

impl<'w> Elsewhere<'w> {
    fn new(world: &'w World) -> Self {
        let authority = Authority::new();
        let [of_server, of_client] = ["server", "client"].map(|name| authority.pair(name, Said::default()));
        let disk = world.folder.path().join("signer.sqlite");
        Self { world, authority, of_server, of_client, disk, addr: ([127, 0, 0, 1], 0).into() }
    }

    /// The same, and its disk has begun with number 1.
    async fn begun(world: &'w World) -> Self {
        let elsewhere = Self::new(world);
        let store = disk(&elsewhere.disk).await;
        let of = (&world.chain.deployment, world.key.address());
        begin(store.as_ref(), world.l1.as_ref(), of, 1).await.unwrap();
        elsewhere
    }

    async fn try_start(&mut self) -> Result<SignerHandle, SignerStartError> {
        let listener = PeerListener {
            addr: self.addr,
            cert_file: self.of_server.cert_file.clone(),
            key_file: self.of_server.key_file.clone(),
            client_ca_file: self.authority.ca_file(),
            max_connections: 16,
        };
        let config = SignerConfig { admin_addr: ([127, 0, 0, 1], 0).into(), ..SignerConfig::new(listener) };
        let deps = SignerDeps {
            chain: Arc::clone(&self.world.chain),
            store: disk(&self.disk).await,
            l1: self.world.l1.clone() as Arc<dyn L1Reader>,
            key: Arc::clone(&self.world.key),
            clock: self.world.clock.clone(),
        };
        let handle = Signer::start(config, deps).await?;
        // The next process listens where this one did.
        self.addr = handle.peers_addr().unwrap();
        Ok(handle)
    }

    async fn start(&mut self) -> SignerHandle {
        self.try_start().await.unwrap()
    }

    fn url(&self) -> String {
        format!("https://{}", self.addr)
    }

    /// A client that trusts the signer's authority, and shows this certificate.
    fn client(&self, shown: Option<&Pair>) -> ClientConfig {
        let tls = ClientTls::open(&TlsSettings {
            ca_file: Some(self.authority.ca_file()),
            cert_file: shown.map(|pair| pair.cert_file.clone()),
            key_file: shown.map(|pair| pair.key_file.clone()),
        });
        ClientConfig { tls: Some(tls.unwrap()), ..RemoteSigner::client_config(2_000) }
    }

    fn remote_in(&self, term: Option<u64>) -> Arc<RemoteSigner> {
        self.remote_with(self.client(Some(&self.of_client)), self.world.key.address(), term)
    }

    fn remote_with(&self, client: ClientConfig, address: Address, term: Option<u64>) -> Arc<RemoteSigner> {
        let deployment = self.world.chain.deployment;
        Arc::new(RemoteSigner::with_client(&self.url(), client, address, deployment, term).unwrap())
    }

    async fn sequencer(&self) -> Result<Running<'w>, StartError> {
        let signer = self.remote_in(None);
        let deps = SequencerDeps { signer, ..self.world.deps(self.world.store().await) };
        Ok(self.world.running(Sequencer::start(self.world.config.clone(), deps).await?))
    }

    /// The number of the newest header that it signed.
    async fn newest(&self) -> Option<u64> {
        let client = http_client(&self.url(), &self.client(Some(&self.of_client))).unwrap();
        SignerApiClient::get_status(&client).await.unwrap().newest.map(|newest| newest.number)
    }
}

/// A header that some sequencer with this key could ask to be signed.
fn header(world: &World, number: u64, parent_hash: B256, salt: u8) -> BatchHeader {
    let l1_origin_number = *world.l1.finalized.lock();
    BatchHeader {
        parent_hash,
        timestamp_ms: START_MS,
        l1_origin_number,
        envelope_root: B256::repeat_byte(salt),
        ..plain_header(number)
    }
}

async fn reason_of(signer: &RemoteSigner, header: &BatchHeader) -> String {
    signer.sign_header(header).await.unwrap_err().to_string()
}

/// Killed while the sequencer seals: what is stored waits for the next process, and nothing is sealed above it.
#[tokio::test]
async fn a_sequencer_seals_through_a_signer_that_is_killed_and_started_again() {
    let world = World::new();
    world.l1.deposit(payer(1).address(), RICH);
    let mut elsewhere = Elsewhere::begun(&world).await;
    let signer = elsewhere.start().await;
    assert_eq!(signer.address(), world.key.address());
    let running = elsewhere.sequencer().await.unwrap();
    running.sealed(1).await;
    running.certify_through(1).await;
    let bytes = blindfold_protocol::Canonical::encode(&envelope(1, 1));
    let promise: Promise = running.send_bytes(bytes, true).await.unwrap().promise.unwrap().decode().unwrap();
    assert_eq!(promise.signer(&world.chain.deployment), Ok(world.key.address()));
    running.sealed(2).await;
    running.certify_through(2).await;
    assert_eq!(elsewhere.newest().await, Some(2));

    signer.vacate().await;
    running.send(&envelope(1, 2)).await.unwrap();
    within("header 3 on the sequencer's disk", async {
        while running.handle.tracker().store().header_hash(3).await.unwrap().is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    })
    .await;
    assert_eq!(running.handle.tracker().watch_sealed().borrow().number, 2, "nobody signed it");
    let failures = "blindfold_signer_failures_total{outcome=\"unavailable\",role=\"sequencer\"} ";
    running
        .eventually("a request that is not answered", async || {
            let metrics = running.admin("/metrics").await;
            let counted = metrics.lines().find_map(|line| line.strip_prefix(failures)?.parse::<u64>().ok());
            counted.expect("it is told") > 0
        })
        .await;
    let signer = elsewhere.start().await;
    running.sealed(3).await;
    let sealed: SealedBatch = running.batch(3).await.sealed.decode().unwrap();
    assert_eq!(sealed.signed_header().signer(&world.chain.deployment), Ok(world.key.address()));
    running.certify_through(3).await;
    running.send(&envelope(1, 3)).await.unwrap();
    running.sealed(4).await;
    assert_eq!(elsewhere.newest().await, Some(4));
    running.handle.shutdown().await;
    signer.shutdown().await;
}

/// A signer that is gone for long ends the sequencer, whose next start has the stored header signed first.
#[tokio::test]
async fn a_header_that_waits_for_its_signature_is_signed_at_the_next_start() {
    let world = World::new();
    world.l1.deposit(payer(1).address(), RICH);
    let mut elsewhere = Elsewhere::begun(&world).await;
    let signer = elsewhere.start().await;
    let running = elsewhere.sequencer().await.unwrap();
    running.sealed(1).await;
    running.certify_through(1).await;
    signer.vacate().await;
    running.send(&envelope(1, 1)).await.unwrap();
    let failure = within("the end", running.handle.failed()).await.to_string();
    assert!(failure.contains("the signer does not answer"), "{failure}");
    running.handle.abort().await;
    let stored = world.store().await.batch(2).await.unwrap().unwrap();
    assert!(!stored.is_signed());
    let _signer = elsewhere.start().await;
    let running = elsewhere.sequencer().await.unwrap();
    let sealed: SealedBatch = running.batch(2).await.sealed.decode().unwrap();
    assert_eq!(sealed.header.hash(), stored.hash);
    assert_eq!(elsewhere.newest().await, Some(2));
    running.handle.shutdown().await;
}

#[tokio::test]
async fn a_sequencer_whose_signers_disk_was_lost_is_told_what_to_do() {
    let world = World::new();
    world.l1.deposit(payer(1).address(), RICH);
    let mut elsewhere = Elsewhere::begun(&world).await;
    let signer = elsewhere.start().await;
    let running = elsewhere.sequencer().await.unwrap();
    running.sealed(1).await;
    running.certify_through(1).await;
    signer.vacate().await;
    // Another disk, on which nothing was signed.
    elsewhere.disk = world.folder.path().join("empty.sqlite");
    let signer = elsewhere.start().await;
    assert!(!signer.readiness().is_ready());
    running.send(&envelope(1, 1)).await.unwrap();
    let failure = within("the end", running.handle.failed()).await.to_string();
    assert!(failure.contains("`blindfold signer begin 2`"), "{failure}");
    running.handle.abort().await;
    let Err(refused) = elsewhere.sequencer().await else { panic!("it starts") };
    assert!(refused.to_string().contains("not_begun"), "{refused}");
    signer.vacate().await;
    // The operator knows that the sequencer's records are whole.
    let of = (&world.chain.deployment, world.key.address());
    begin(disk(&elsewhere.disk).await.as_ref(), world.l1.as_ref(), of, 2).await.unwrap();
    let signer = elsewhere.start().await;
    assert!(signer.readiness().is_ready());
    let running = elsewhere.sequencer().await.unwrap();
    running.batch(2).await;
    let remote = elsewhere.remote_in(None);
    let first = header(&world, 1, world.chain.deployment.genesis_hash(), 1);
    assert!(reason_of(&remote, &first).await.contains("below_first"));
    running.handle.shutdown().await;
    signer.shutdown().await;
}

/// What L1 holds of this key is not in its record: it is a copy, or its disk went back.
#[tokio::test]
async fn a_signer_on_an_older_record_says_so_and_signs_no_number_of_l1s() {
    let world = World::new();
    let mut elsewhere = Elsewhere::begun(&world).await;
    world.l1.posted.lock().insert(2, 1);
    let signer = elsewhere.start().await;
    within("the reason in the readiness", async {
        while !signer.readiness().reasons().values().any(|reason| reason.contains("older than L1")) {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    })
    .await;
    let one = header(&world, 1, world.chain.deployment.genesis_hash(), 1);
    assert!(reason_of(&elsewhere.remote_in(None), &one).await.contains("older_than_l1"));
    assert_eq!(elsewhere.newest().await, None, "nothing was signed");
    signer.shutdown().await;
}

/// A sequencer that was restored from an older copy, and two that ask at once, get no second header.
#[tokio::test]
async fn no_second_header_is_signed_whoever_asks() {
    let world = World::new();
    let mut elsewhere = Elsewhere::begun(&world).await;
    let signer = elsewhere.start().await;
    let genesis = world.chain.deployment.genesis_hash();
    let (one, other) = (header(&world, 1, genesis, 1), header(&world, 1, genesis, 2));
    let (first, second) = (elsewhere.remote_in(Some(1)), elsewhere.remote_in(Some(1)));
    let (a, b) = tokio::join!(first.sign_header(&one), second.sign_header(&other));
    assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
    let (signed, refused) = if a.is_ok() { (one, other) } else { (other, one) };
    assert!(matches!(first.sign_header(&refused).await, Err(SignerError::SecondHeader(_))));
    let reason = reason_of(&first, &refused).await;
    assert!(reason.contains("second_header") && reason.contains(&signed.hash().to_string()), "{reason}");
    // Killed, and started again: the same.
    drop(signer);
    let mut elsewhere = elsewhere;
    elsewhere.addr.set_port(0);
    let signer = elsewhere.start().await;
    let again = elsewhere.remote_in(Some(1));
    assert_eq!(again.sign_header(&signed).await, if a.is_ok() { a } else { b });
    assert!(reason_of(&again, &refused).await.contains("second_header"));
    // Whoever has the store after it.
    let two = header(&world, 2, signed.hash(), 0);
    elsewhere.remote_in(Some(2)).sign_header(&two).await.unwrap();
    assert!(reason_of(&again, &two).await.contains("older_term"));
    signer.shutdown().await;
}

#[tokio::test]
async fn only_certificates_of_the_signers_own_authority_get_signatures() {
    let world = World::new();
    let mut elsewhere = Elsewhere::begun(&world).await;
    let _signer = elsewhere.start().await;
    let us = world.key.address();
    let one = header(&world, 1, world.chain.deployment.genesis_hash(), 1);
    let other = Authority::new();
    let stranger = other.pair("client", Said::default());
    for shown in [None, Some(&stranger)] {
        let remote = elsewhere.remote_with(elsewhere.client(shown), us, None);
        let fault = remote.sign_header(&one).await.unwrap_err();
        assert!(matches!(&fault, SignerError::Unavailable(why) if why.contains("certificate")), "{fault}");
    }
    // Nor does the sequencer ask one that it does not trust.
    let trusted = TlsSettings {
        ca_file: Some(other.ca_file()),
        cert_file: Some(elsewhere.of_client.cert_file.clone()),
        key_file: Some(elsewhere.of_client.key_file.clone()),
    };
    let tls = Some(ClientTls::open(&trusted).unwrap());
    let mistrusting = ClientConfig { tls, ..RemoteSigner::client_config(2_000) };
    let remote = elsewhere.remote_with(mistrusting, us, None);
    assert!(matches!(remote.sign_header(&one).await, Err(SignerError::Unavailable(_))));
    let plain = elsewhere.url().replace("https", "http");
    let remote = RemoteSigner::new(&plain, 1_000, us, world.chain.deployment, None).unwrap();
    assert!(reason_of(&remote, &one).await.contains("https://"));
    assert_eq!(elsewhere.newest().await, None, "nothing was signed");
    // A signature by another key than the one expected is none.
    let wrong = elsewhere.remote_with(elsewhere.client(Some(&elsewhere.of_client)), payer(3).address(), None);
    let reason = reason_of(&wrong, &one).await;
    assert!(reason.contains("another key, or another deployment"), "{reason}");
}

#[tokio::test]
async fn what_is_no_request_is_refused_by_name() {
    let world = World::new();
    let mut elsewhere = Elsewhere::begun(&world).await;
    let signer = elsewhere.start().await;
    let client = http_client(&elsewhere.url(), &elsewhere.client(Some(&elsewhere.of_client))).unwrap();
    let hash = B256::ZERO.to_string();
    let cases: &[(&str, Vec<Value>, &str)] = &[
        ("signer_signHeader", vec![json!("0x"), Value::Null], "undecodable"),
        ("signer_signHeader", vec![json!("0x02"), json!(1)], "undecodable"),
        (
            "signer_signHeader",
            vec![json!(format!("0x{}", "ff".repeat(2_000))), Value::Null],
            "invalid_params",
        ),
        ("signer_signHeader", vec![json!("zz"), Value::Null], "invalid_params"),
        ("signer_signHeader", vec![], "invalid_params"),
        ("signer_signPromise", vec![json!(hash), json!(hash), json!(-1), Value::Null], "invalid_params"),
        ("signer_signPromise", vec![json!(hash), json!("0x00"), json!(1), Value::Null], "invalid_params"),
        ("signer_signHello", vec![json!("sequencer")], "unknown_party"),
        ("signer_signHello", vec![json!("member-x")], "unknown_party"),
        ("signer_signHello", vec![json!("member-1".repeat(1_000))], "unknown_party"),
        ("signer_sign", vec![], "unknown_method"),
        ("blind_getStatus", vec![], "unknown_method"),
    ];
    for (method, params, reason) in cases {
        let answer = client.request::<Value, _>(method, params.clone()).await;
        let fault = ReceivedError::from(answer.unwrap_err());
        assert_eq!(fault.reason(), *reason, "{method} {params:.80?}: {fault}");
    }
    // A hello for a member is for that one.
    let hello: Hello = client.sign_hello("member-2".to_owned()).await.unwrap().parse().unwrap();
    let (deployment, key) = (world.chain.deployment, PartyKey::Address(world.key.address()));
    assert_eq!(hello.verify(&deployment, Party::Member(2), &key), Ok(()));
    assert!(hello.verify(&deployment, Party::Member(1), &key).is_err());
    let addr = signer.admin_addr();
    let metrics = text_at(addr, "/metrics").await;
    for line in [
        "blindfold_signer_signed_total{what=\"hello\",role=\"signer\"} 1",
        "blindfold_signer_refusals_total{reason=\"unknown_party\",role=\"signer\"} 3",
        "blindfold_signer_refusals_total{reason=\"undecodable\",role=\"signer\"} 2",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    signer.shutdown().await;
}

#[tokio::test]
async fn a_disk_of_another_key_or_deployment_is_refused() {
    let world = World::new();
    let mut elsewhere = Elsewhere::begun(&world).await;
    drop(elsewhere.start().await);
    let other = World { key: Arc::new(payer(3)), ..World::new() };
    let mut theirs = Elsewhere { disk: elsewhere.disk.clone(), ..Elsewhere::new(&other) };
    let Err(refused) = theirs.try_start().await else { panic!("it starts") };
    assert!(
        matches!(&refused, SignerStartError::Store(StoreError::Foreign { name: "role", .. })),
        "{refused}"
    );
}
