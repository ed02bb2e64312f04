//! Against what a member gives its shares, and against what not.

mod common;

use std::{sync::Arc, time::Duration};

use blindfold_bte::{Backend, Ciphertext, CiphertextPoint, Opening, Portable};
use blindfold_chain::{AnnouncedEnd, FallbackHeader, HeaderId, PendingFallbackHeader};
use blindfold_committee::MemberHandle;
use blindfold_kit::{
    START_MS, Sealer, SequencerDouble, certify, chain_config, client, committee, envelope, malformed,
    refused, transaction, within,
};
use blindfold_protocol::{
    B256, BatchHeader, Bundle, Canonical, Certificate, Envelope, Hello, Party, ReleaseShare, SealedBatch,
    SigningKey,
};
use blindfold_rpc::{
    ClientConfig, CommitteeApiClient, Encoded, HttpClient, Introduction, RpcError, RunningRole, code,
    http_client,
};
use blindfold_runtime::{Clock, random};
use common::{LAST_OF_FIRST_EPOCH, Machine, certified, sealed, sealer};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

struct Stage {
    sequencer: SequencerDouble,
    sealer: Sealer,
    members: Vec<MemberHandle>,
    _machines: Vec<Machine>,
}

impl Stage {
    async fn new(members: u16) -> Self {
        let sequencer = SequencerDouble::start().await;
        sequencer.double.state.lock().aggregate = false;
        let machines: Vec<Machine> =
            (1..=members).map(|member| Machine::new(member, sequencer.url())).collect();
        let mut handles = Vec::new();
        for machine in &machines {
            handles.push(machine.start().await);
        }
        sequencer.followed_by(handles.len()).await;
        Self { sequencer, sealer: sealer().await, members: handles, _machines: machines }
    }

    /// A batch that every member has validated.
    async fn validated(&self, items: Vec<Vec<u8>>) -> SealedBatch {
        let batch = self.sealer.seal_next(items).await;
        self.sequencer.publish(&batch.batch, &batch.verdicts);
        for member in &self.members {
            sealed(member, batch.batch.header.number).await;
        }
        batch.batch.as_ref().clone()
    }
}

async fn share(
    client: &HttpClient,
    number: u64,
    certificate: &Certificate,
) -> Result<ReleaseShare, RpcError> {
    let answer = client.get_share(number, Encoded::new(certificate)).await.map_err(refused)?;
    Ok(answer.decode().expect("canonical"))
}

async fn reason(client: &HttpClient, number: u64, certificate: &Certificate) -> (String, bool) {
    let error = share(client, number, certificate).await.expect_err("it must be refused");
    (error.reason.into_owned(), error.retry)
}

fn refusal(reason: &str) -> (String, bool) {
    (reason.to_owned(), false)
}

fn later(reason: &str) -> (String, bool) {
    (reason.to_owned(), true)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_shares_open_a_certified_batch() {
    let stage = Stage::new(3).await;
    // Eleven accepted envelopes make two sub-batches; two items are skipped.
    let mut items: Vec<Vec<u8>> = (1..=8).map(|n| envelope(n, 1).encode()).collect();
    items.insert(3, b"garbage".to_vec());
    items.extend((1..=3).map(|n| envelope(n, 2).encode()));
    items.push(envelope(1, 1).encode());
    let batch = stage.validated(items.clone()).await;
    let certificate = certify(&batch, &[1, 2, 4]);

    let mut shares = Vec::new();
    for (member, index) in stage.members.iter().zip(1..) {
        let client = client(member.rpc_addr());
        let given = share(&client, 1, &certificate).await.expect("given");
        assert_eq!((given.number, given.header_hash, given.member), (1, batch.header.hash(), index));
        assert_eq!(given.pds.len(), 2);
        assert_eq!(share(&client, 1, &certificate).await.expect("again"), given);
        assert_eq!(
            member.tracker().certified().number,
            1,
            "the certificate that came with the call was taken"
        );
        shares.push(given);
    }
    let accepted: Vec<Envelope> = items
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != 3 && *index != 12)
        .map(|(_, item)| Envelope::decode(item).expect("an envelope"))
        .collect();
    let parameters = &committee().parameters;
    let backend = Portable::new(1);
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let mut transactions = Vec::new();
    for (sub_batch, envelopes) in accepted.chunks(8).enumerate() {
        let points: Vec<CiphertextPoint> =
            envelopes.iter().map(|envelope| envelope.ciphertext.header().expect("a point")).collect();
        let own: Vec<(u16, [u8; 48])> =
            shares.iter().map(|share| (share.member, share.pds[sub_batch])).collect();
        assert!(parameters.invalid_shares(&mut rng, &points, &own).expect("sizes").is_empty());
        let release = parameters.combine(&own).expect("combines");
        let predecrypted = backend.predecrypt(parameters, &points).expect("sizes");
        let ads: Vec<B256> = envelopes.iter().map(|envelope| envelope.header.hash()).collect();
        let ciphertexts: Vec<(&[u8; 32], &Ciphertext)> =
            ads.iter().zip(envelopes).map(|(ad, envelope)| (&ad.0, &envelope.ciphertext)).collect();
        let openings = backend.finalize(parameters, &predecrypted, &release, &ciphertexts).expect("sizes");
        for opening in openings {
            let Opening::WellFormed { message, .. } = opening else { panic!("it is well-formed") };
            let bundle = Bundle::decode(&message).expect("a bundle");
            transactions.extend(bundle.items.iter().map(|item| item.bytes.clone()));
        }
    }
    let expected: Vec<Vec<u8>> =
        (1..=8).map(|n| transaction(n, 1)).chain((1..=3).map(|n| transaction(n, 2))).collect();
    assert_eq!(transactions, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_certificate_there_is_no_share() {
    let stage = Stage::new(1).await;
    let first = stage.validated(vec![envelope(1, 1).encode()]).await;
    let second = stage.validated(vec![envelope(2, 1).encode()]).await;
    let own = client(stage.members[0].rpc_addr());
    let good = certify(&first, &[1, 2, 3]);

    // For an earlier number.
    assert_eq!(reason(&own, 2, &good).await, refusal("certificate_does_not_cover"));
    assert_eq!(reason(&own, 0, &good).await, refusal("certificate_does_not_cover"));
    // Forged: another batch's signature, fewer signers than signed, signers that are none, too few.
    let mut forged = certify(&second, &[1, 2, 3]);
    forged.signature = good.signature;
    assert_eq!(reason(&own, 2, &forged).await, refusal("bad_signature"));
    let forged = Certificate { signers: 0b1011, ..good };
    assert_eq!(reason(&own, 1, &forged).await, refusal("bad_signature"));
    let forged = Certificate { signers: 0b11, ..good };
    assert_eq!(reason(&own, 1, &forged).await, refusal("too_few_signers"));
    let forged = Certificate { signers: 0b10111, ..good };
    assert_eq!(reason(&own, 1, &forged).await, refusal("unknown_signers"));
    let forged = Certificate { signature: [0xff; 48], ..good };
    assert_eq!(reason(&own, 1, &forged).await, refusal("bad_point"));
    // Of another epoch, by its word and by its number.
    let forged = Certificate { epoch: 2, ..good };
    assert_eq!(reason(&own, 1, &forged).await, refusal("wrong_epoch"));
    let forged = Certificate { number: LAST_OF_FIRST_EPOCH + 5, ..good };
    assert_eq!(reason(&own, 1, &forged).await, refusal("wrong_epoch"));
    let forged = Certificate { number: 1_000_000, ..good };
    assert_eq!(reason(&own, 1, &forged).await, refusal("no_epoch"));
    assert_eq!(stage.members[0].tracker().certified().number, 0, "nothing of this certified anything");

    // A number that belongs to no epoch.
    let error = own.get_share(1_000_000, Encoded::new(&Certificate { number: 1_000_000, ..good })).await;
    assert_eq!(refused(error.expect_err("refused")).reason, "not_a_member");
    // Bytes that are no certificate.
    let error =
        own.get_share(1, Encoded::from_bytes(vec![1, 2, 3])).await.map_err(refused).expect_err("refused");
    assert_eq!((error.code, error.reason.as_ref()), (code::INVALID_PARAMS, "undecodable"));

    // And with it there is. The header is certified then: who shows a worse certificate for it is owed the share, too.
    assert!(share(&own, 1, &good).await.is_ok());
    let forged = Certificate { signers: 0b1011, ..good };
    assert!(share(&own, 1, &forged).await.is_ok());
    let forged = Certificate { header_hash: B256::repeat_byte(1), ..good };
    assert_eq!(reason(&own, 1, &forged).await, later("not_validated_here"));
    // A descendant's certificate covers its ancestors.
    assert!(share(&own, 1, &certify(&second, &[2, 3, 4])).await.is_ok());
    let metrics = stage.members[0].metrics().registry.render();
    assert!(
        metrics.contains(r#"blindfold_committee_shares_total{outcome="given",role="committee"} 3"#),
        "{metrics}"
    );
}

/// A flood of certificates costs a member pairings only as long as the header that they name waits for its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_certificate_that_could_stand_costs_pairings() {
    let stage = Stage::new(1).await;
    let batch = stage.validated(vec![envelope(1, 1).encode()]).await;
    let (own, tracker) = (client(stage.members[0].rpc_addr()), stage.members[0].tracker());
    let good = certify(&batch, &[1, 2, 3]);

    // For another header than the one here, however well signed.
    let mut other = batch.clone();
    other.header.timestamp_ms += 1;
    assert_eq!(reason(&own, 1, &certify(&other, &[1, 2, 3])).await, later("not_validated_here"));
    assert_eq!(tracker.certificates_paired(), 0);
    // Forged, for the one here. What shows without pairings does so before them.
    let forged = Certificate { signature: certify(&other, &[1, 2, 3]).signature, ..good };
    assert_eq!(reason(&own, 1, &forged).await, refusal("bad_signature"));
    assert_eq!(tracker.certificates_paired(), 1);
    assert_eq!(reason(&own, 1, &Certificate { signers: 0b11, ..good }).await, refusal("too_few_signers"));
    assert_eq!(reason(&own, 1, &Certificate { signature: [0xff; 48], ..good }).await, refusal("bad_point"));
    assert_eq!(tracker.certificates_paired(), 1);

    assert!(share(&own, 1, &good).await.is_ok());
    assert_eq!(tracker.certificates_paired(), 2);
    // Known again, as it was or otherwise.
    for again in [good, certify(&batch, &[2, 3, 4]), forged] {
        assert!(share(&own, 1, &again).await.is_ok());
    }
    assert_eq!(tracker.certificates_paired(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_for_an_unknown_header_makes_the_member_fetch_it() {
    let stage = Stage::new(1).await;
    let batch = stage.sealer.seal_next_envelopes(&[envelope(1, 1)]).await;
    let certificate = certify(&batch.batch, &[2, 3, 4]);
    let own = client(stage.members[0].rpc_addr());
    assert_eq!(reason(&own, 1, &certificate).await, later("not_validated_here"));
    // The sequencer has it, and did not announce it to this member.
    stage.sequencer.keep(&batch.batch, &batch.verdicts);
    stage.sequencer.keep_certificate(&certificate);
    within("the share", async {
        while let Err(error) = share(&own, 1, &certificate).await {
            assert_eq!(error.reason, "not_validated_here");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    assert_eq!(stage.members[0].tracker().certified().number, 1);
    // It serves what it certified to anyone.
    let served = own.get_certified(1).await.expect("an answer").expect("there").decode().expect("canonical");
    assert_eq!((served.sealed, served.certificate), (batch.batch.as_ref().clone(), certificate));
    assert_eq!(own.get_certified(2).await.expect("an answer"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn singletons_are_for_accepted_items_of_certified_batches() {
    let stage = Stage::new(3).await;
    let bad = malformed(2, 1);
    let batch = stage.validated(vec![b"garbage".to_vec(), envelope(1, 1).encode(), bad.encode()]).await;
    let clients: Vec<HttpClient> = stage.members.iter().map(|member| client(member.rpc_addr())).collect();
    let own = &clients[0];
    let error = own.get_singleton(1, 2).await.map_err(refused).expect_err("refused");
    assert_eq!((error.reason.as_ref(), error.retry), ("not_certified", true));
    let certificate = certify(&batch, &[1, 2, 3]);
    stage.sequencer.publish_certificate(&certificate);
    for member in &stage.members {
        certified(member, 1).await;
    }
    for (index, reason) in [(0, "item_skipped"), (3, "no_such_item"), (u32::MAX, "no_such_item")] {
        let error = own.get_singleton(1, index).await.map_err(refused).expect_err("refused");
        assert_eq!((error.reason.as_ref(), error.retry), (reason, false));
    }
    let error = own.get_singleton(0, 0).await.map_err(refused).expect_err("refused");
    assert_eq!(error.reason, "not_a_member");

    let parameters = &committee().parameters;
    let point = bad.ciphertext.header().expect("a point");
    let mut shares = Vec::new();
    for (client, member) in clients.iter().zip(1u16..) {
        let given = client.get_singleton(1, 2).await.expect("given").decode().expect("canonical");
        assert_eq!((given.number, given.header_hash, given.index), (1, batch.header.hash(), 2));
        assert_eq!(given.member, member);
        assert!(parameters.verify_singleton_share(member, &point, &given.share).is_ok());
        shares.push((member, given.share));
    }
    let release = parameters.combine_singletons(&shares).expect("combines");
    assert!(parameters.verify_singleton(&point, &release).is_ok());
    let opening =
        parameters.open_singleton(&bad.header.hash().0, &bad.ciphertext, &release).expect("a point");
    assert!(matches!(opening, Opening::Malformed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_certificates_keep_nobody_from_a_share() {
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let mut machine = Machine::new(1, sequencer.url());
    machine.config.limits.share_queue_calls = 1;
    machine.config.limits.share_threads = 1;
    let member = machine.start().await;
    sequencer.followed_by(1).await;
    let sealer = sealer().await;
    let batch = sealer.seal_next_envelopes(&(1..=8).map(|n| envelope(n, 1)).collect::<Vec<_>>()).await;
    sequencer.publish(&batch.batch, &batch.verdicts);
    sealed(&member, 1).await;
    let client = client(member.rpc_addr());
    let good = certify(&batch.batch, &[1, 2, 3]);
    let flood = async |change: fn(&mut Certificate, u8)| {
        let calls = (1..64u8).map(|last| {
            let mut forged = good;
            change(&mut forged, last);
            let client = client.clone();
            async move { share(&client, 1, &forged).await.expect_err("forged").reason.into_owned() }
        });
        futures::future::join_all(calls).await
    };
    // For a header that is not ours: refused before any pairing, so nobody is turned away.
    let answers = flood(|forged, last| forged.header_hash.0[31] ^= last).await;
    assert!(answers.iter().all(|reason| reason == "not_validated_here"), "{answers:?}");
    // For ours, with another signature or other signers: they crowd out each other.
    let other = certify(&batch.batch, &[1, 2, 4]).signature;
    assert_ne!(other, good.signature);
    within("a busy member", async {
        loop {
            let answers =
                flood(|forged, last| forged.signers = if last % 2 == 0 { 0b1011 } else { 0b1110 }).await;
            assert!(
                answers.iter().all(|reason| reason == "busy" || reason == "bad_signature"),
                "{answers:?}"
            );
            if answers.iter().any(|reason| reason == "busy") {
                break;
            }
        }
    })
    .await;
    // What the feed certified needs no pairing at all: the one place is free for it throughout.
    sequencer.publish_certificate(&good);
    certified(&member, 1).await;
    let (answers, given) =
        tokio::join!(flood(|forged, last| forged.header_hash.0[31] ^= last), share(&client, 1, &good));
    assert!(given.is_ok(), "{given:?}");
    assert!(answers.iter().all(|reason| reason == "not_validated_here"), "{answers:?}");
}

/// A client that shows itself as a hint publisher with this key.
fn introduced(machine: &Machine, member: &MemberHandle, key: &Arc<SigningKey>) -> HttpClient {
    let (key, clock) = (Arc::clone(key), machine.clock.clone());
    let introduction = Introduction::new(move || {
        let nonce = random::<[u8; 16]>().into();
        let server = Party::Member(1);
        Hello::of_hint_publisher(&key, &chain_config().deployment, server, clock.now_ms(), nonce)
    });
    let config = ClientConfig { introduction: Some(introduction), ..ClientConfig::default() };
    http_client(&format!("http://{}", member.rpc_addr()), &config).expect("a client")
}

/// An old batch has to be read and its share computed anew, for a call of a few hundred bytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_who_ask_for_old_batches_get_a_part_of_the_time() {
    let sequencer = SequencerDouble::start().await;
    sequencer.double.state.lock().aggregate = false;
    let publisher = Arc::new(SigningKey::from_bytes(&[0x4e; 32]).unwrap());
    let mut machine = Machine::new(1, sequencer.url());
    machine.config.limits.share_threads = 1;
    machine.config.limits.share_cache_batches = 1;
    machine.config.hint_publishers = vec![publisher.address()];
    let member = machine.start().await;
    sequencer.followed_by(1).await;
    let sealer = sealer().await;
    let mut newest = None;
    for number in 1..=6u64 {
        let nonce = u32::try_from(number).unwrap();
        let batch =
            sealer.seal_next_envelopes(&(1..=8).map(|n| envelope(n, nonce.into())).collect::<Vec<_>>()).await;
        sequencer.publish(&batch.batch, &batch.verdicts);
        let certificate = certify(&batch.batch, &[1, 2, 3]);
        sequencer.publish_certificate(&certificate);
        certified(&member, number).await;
        newest = Some(certificate);
    }
    let newest = newest.expect("a certificate");
    let known = introduced(&machine, &member, &publisher);
    let stranger = introduced(&machine, &member, &Arc::new(SigningKey::from_bytes(&[0x4f; 32]).unwrap()));
    let ask = async |client: &HttpClient, number| match share(client, number, &newest).await {
        Ok(_) => "given".to_owned(),
        Err(error) => error.reason.into_owned(),
    };
    within("strangers that are turned away", async {
        loop {
            let flood = futures::future::join_all((0..32).map(|n| ask(&stranger, 1 + n % 5)));
            let hint_publishers = async {
                for number in 1..=6 {
                    assert_eq!(ask(&known, number).await, "given");
                }
            };
            let (answers, ()) = tokio::join!(flood, hint_publishers);
            assert!(answers.iter().all(|answer| answer == "given" || answer == "busy"), "{answers:?}");
            if answers.iter().any(|answer| answer == "busy") {
                break;
            }
        }
    })
    .await;
}

/// The places of strangers are taken again and again; a hint publisher that the settings name always finds one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_keeps_no_known_hint_publisher_from_shares() {
    let sequencer = SequencerDouble::start().await;
    let publisher = Arc::new(SigningKey::from_bytes(&[0x4e; 32]).unwrap());
    let mut machine = Machine::new(1, sequencer.url());
    machine.config.limits.share_queue_calls = 1;
    machine.config.limits.share_threads = 1;
    machine.config.hint_publishers = vec![publisher.address()];
    let member = machine.start().await;
    sequencer.followed_by(1).await;
    let sealer = sealer().await;
    let batch = sealer.seal_next_envelopes(&(1..=8).map(|n| envelope(n, 1)).collect::<Vec<_>>()).await;
    sequencer.publish(&batch.batch, &batch.verdicts);
    sequencer.publish_certificate(&certify(&batch.batch, &[1, 2, 3]));
    certified(&member, 1).await;
    let known = |key: &Arc<SigningKey>| introduced(&machine, &member, key);
    let (known, stranger) =
        (known(&publisher), known(&Arc::new(SigningKey::from_bytes(&[0x4f; 32]).unwrap())));
    let ask = async |client: &HttpClient, index| match client.get_singleton(1, index).await {
        Ok(_) => "given".to_owned(),
        Err(error) => refused(error).reason.into_owned(),
    };
    within("strangers that find no place", async {
        loop {
            let flood = futures::future::join_all((0..64).map(|n| ask(&stranger, n % 8)));
            let hint_publishers = async {
                for index in 0..8 {
                    assert_eq!(ask(&known, index).await, "given");
                }
            };
            let (answers, ()) = tokio::join!(flood, hint_publishers);
            assert!(answers.iter().all(|answer| answer == "given" || answer == "busy"), "{answers:?}");
            if answers.iter().any(|answer| answer == "busy") {
                break;
            }
        }
    })
    .await;
}

/// Rule VR-3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_soon_be_void_is_not_opened_any_more() {
    let stage = Stage::new(1).await;
    let l1 = &stage._machines[0].l1;
    let half = u64::from(chain_config().timing.hint_deadline) / 2;
    let batch = stage.validated(vec![envelope(1, 1).encode()]).await;
    let certificate = certify(&batch, &[1, 2, 4]);
    let posted_at = batch.header.l1_origin_number + 3;
    // The height is remembered for a while, so each step has a member of its own.
    let at = async |height: u64| {
        *l1.finalized.lock() = height;
        let mut machine = Machine::new(2, stage.sequencer.url());
        machine.l1 = l1.clone();
        let member = machine.start().await;
        sealed(&member, 1).await;
        let client = client(member.rpc_addr());
        let share =
            share(&client, 1, &certificate).await.map(|_| ()).map_err(|error| error.reason.into_owned());
        let single =
            client.get_singleton(1, 0).await.map(|_| ()).map_err(|error| refused(error).reason.into_owned());
        assert_eq!(share, single);
        member.shutdown().await;
        share
    };
    assert_eq!(at(posted_at + half).await, Ok(()), "not posted: nobody can void it");
    // Certified, and never posted: before L1 may put a header in its place, nothing of it is opened any more.
    let unposted = batch.header.l1_origin_number + u64::from(chain_config().timing.posting_deadline) / 2;
    assert_eq!(at(unposted - 1).await, Ok(()));
    assert_eq!(at(unposted).await, Err("unposted_too_long".to_owned()));
    l1.posted.lock().insert(1, posted_at);
    assert_eq!(at(posted_at + half - 1).await, Ok(()));
    assert_eq!(at(posted_at + half).await, Err("unreleased_too_long".to_owned()));
    l1.hints.store(true, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(at(posted_at + half).await, Ok(()), "hints are on L1");
}

/// L1 goes on without finality, and so does its deadline: the run may be void before its posting is final.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_finality_stalls_the_deadline_runs() {
    let stage = Stage::new(1).await;
    let l1 = &stage._machines[0].l1;
    let half = u64::from(chain_config().timing.hint_deadline) / 2;
    let batch = stage.validated(vec![envelope(1, 1).encode()]).await;
    let certificate = certify(&batch, &[1, 2, 4]);
    let finalized = batch.header.l1_origin_number + 3;
    *l1.finalized.lock() = finalized;
    let at = async |unfinal: u64| {
        *l1.unfinal.lock() = unfinal;
        let mut machine = Machine::new(2, stage.sequencer.url());
        machine.l1 = l1.clone();
        let member = machine.start().await;
        sealed(&member, 1).await;
        let client = client(member.rpc_addr());
        let share = share(&client, 1, &certificate).await.map(|_| ());
        member.shutdown().await;
        share.map_err(|error| error.reason.into_owned())
    };
    assert_eq!(at(half).await, Ok(()), "it cannot have been posted that long ago");
    assert_eq!(at(half + 1).await, Err("unreleased_too_long".to_owned()), "in the next block, maybe");
    l1.posted.lock().insert(1, finalized - 1);
    assert_eq!(at(half - 2).await, Ok(()));
    assert_eq!(at(half - 1).await, Err("unreleased_too_long".to_owned()));
}

/// Counts what the default level (`info`) lets through of the service.
struct Lines(Arc<std::sync::atomic::AtomicUsize>);

impl tracing::Subscriber for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::INFO
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let metadata = event.metadata();
        if metadata.target() == "blindfold_committee::service" {
            self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// A garbage call of anybody writes no line of its own into the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_calls_do_not_fill_the_log() {
    let lines = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    tracing::subscriber::set_global_default(Lines(Arc::clone(&lines))).expect("the first");
    let stage = Stage::new(1).await;
    let batch = stage.validated(vec![]).await;
    let certificate = certify(&batch, &[1, 2, 3]);
    let client = client(stage.members[0].rpc_addr());
    for _ in 0..500 {
        // Of an earlier number than the one asked for: refused before anything is looked at.
        assert_eq!(reason(&client, 7, &certificate).await, refusal("certificate_does_not_cover"));
    }
    let lines = lines.load(std::sync::atomic::Ordering::SeqCst);
    assert!(lines <= 30, "{lines} lines for 500 calls of a stranger");
}

/// Nothing is posted before what stands below it: a certified header that reaches L1 too late takes all above it along, and
/// L1 makes a header in the place of all of it. What was opened by then would be ordered again in the clear (VR-4).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_stands_on_an_unposted_header_is_not_opened_after_its_time() {
    let stage = Stage::new(0).await;
    let l1 = stage.sealer.l1.clone();
    let half = u64::from(chain_config().timing.posting_deadline) / 2;
    let first = stage.sealer.seal_next(vec![envelope(1, 1).encode()]).await;
    stage.sequencer.publish(&first.batch, &first.verdicts);
    let certificate = stage.sealer.certify_by(&first.batch, &[1, 2, 4]).await;
    stage.sequencer.publish_certificate(&certificate);
    let height = first.batch.header.l1_origin_number + half;
    *l1.finalized.lock() = height;
    let time_ms = 1_000 * height;
    let second = stage.sealer.seal(time_ms, vec![envelope(2, 1).encode()]).await;
    assert_eq!(second.batch.header.l1_origin_number, height, "an origin of today");
    stage.sequencer.publish(&second.batch, &second.verdicts);
    let certificate = certify(&second.batch, &[1, 2, 4]);
    // L1's height is remembered for a while, so each step has a member of its own.
    for (posted, expected) in [(false, Err("unposted_too_long".to_owned())), (true, Ok(()))] {
        if posted {
            l1.posted.lock().insert(1, height);
        }
        let mut machine = Machine::new(2, stage.sequencer.url());
        machine.l1 = l1.clone();
        machine.clock.set(START_MS + time_ms + 500);
        let member = machine.start().await;
        sealed(&member, 2).await;
        let client = client(member.rpc_addr());
        let given =
            share(&client, 2, &certificate).await.map(|_| ()).map_err(|error| error.reason.into_owned());
        member.shutdown().await;
        assert_eq!(given, expected, "posted: {posted}");
    }
}

/// Once the end of its epoch is due L1 takes nothing certified of it, however young it is: what was opened by then would be
/// ordered again in the clear (VR-5).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_not_be_posted_before_its_epoch_ends_is_not_opened() {
    const SETTLED: u64 = 350;
    let stage = Stage::new(0).await;
    let l1 = stage.sealer.l1.clone();
    let batch = stage.validated(vec![envelope(1, 1).encode()]).await;
    let certificate = certify(&batch, &[1, 2, 4]);
    let end = AnnouncedEnd { epoch: 1, announced_at: 0, until: 400, for_silence: false };
    // L1's height is remembered for a while, so each step has a member of its own.
    let given = async |ending, height, posted: Option<u64>| {
        *l1.ending.lock() = ending;
        *l1.finalized.lock() = height;
        *l1.posted.lock() = posted.map(|block| (1, block)).into_iter().collect();
        let mut machine = Machine::new(2, stage.sequencer.url());
        machine.l1 = l1.clone();
        let member = machine.start().await;
        sealed(&member, 1).await;
        let given = share(&client(member.rpc_addr()), 1, &certificate).await.map(|_| ());
        member.shutdown().await;
        given.map_err(|error| (error.reason.into_owned(), error.retry))
    };
    assert_eq!(given(Some(end), SETTLED - 1, None).await, Ok(()));
    assert_eq!(given(Some(end), SETTLED, None).await, Err(later("epoch_ends")));
    assert_eq!(given(Some(end), SETTLED, Some(SETTLED - 1)).await, Ok(()), "posted");
    assert_eq!(given(None, SETTLED, None).await, Ok(()), "taken back");
}

/// What L1 made stands in its place, and by number it is posted: nothing of the branch that L1 ended is opened, however the
/// deadlines stand (VR-5).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_l1_ended_with_a_header_of_its_own_is_not_opened() {
    let stage = Stage::new(0).await;
    let l1 = stage.sealer.l1.clone();
    let (first, second) = (
        stage.validated(vec![envelope(1, 1).encode()]).await,
        stage.validated(vec![envelope(2, 1).encode()]).await,
    );
    let certificate = certify(&second, &[1, 2, 4]);
    let height = first.header.l1_origin_number + 1;
    let other = sealer().await;
    let header = other.l1_header(1_000, vec![]).header;
    *l1.finalized.lock() = height;
    let above =
        FallbackHeader { header: BatchHeader { number: 7, ..header }, items: vec![], l1_block: height };
    let made = FallbackHeader { header, items: vec![], l1_block: height };
    let pending = PendingFallbackHeader {
        header: HeaderId { number: 1, hash: header.hash() },
        l1_block: height + 1,
        l1_hash: B256::repeat_byte(7),
    };
    // In a block that is not final; as L1's last one; and below one that the member has nothing of.
    let ended = [(vec![], vec![pending]), (vec![made.clone()], vec![]), (vec![made, above], vec![])];
    for (headers, pending) in ended {
        let mut machine = Machine::new(2, stage.sequencer.url());
        machine.l1 = l1.clone();
        let member = machine.start().await;
        sealed(&member, 2).await;
        let client = client(member.rpc_addr());
        share(&client, 2, &certificate).await.expect("given");
        if !headers.is_empty() {
            l1.posted.lock().insert(1, height);
        }
        *l1.l1_headers.lock() = headers;
        *l1.not_final.lock() = pending;
        // What L1 says is heard of within seconds.
        within("L1's word", async {
            while share(&client, 2, &certificate).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        for number in [1, 2] {
            assert_eq!(reason(&client, number, &certificate).await, later("overruled_by_l1"), "{number}");
            let single =
                client.get_singleton(number, 0).await.map_err(refused).expect_err("it must be refused");
            assert_eq!(single.reason, "overruled_by_l1");
        }
        member.shutdown().await;
        l1.l1_headers.lock().clear();
        l1.not_final.lock().clear();
        l1.posted.lock().clear();
    }
}
