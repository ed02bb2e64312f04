//! Members that behave as a test says, around the committee's stand-in for the sequencer.

#![allow(dead_code, reason = "each test file uses its part")]

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use blindfold_bte::{CiphertextPoint, Portable};
use blindfold_chain::{Sealed, verify_hints};
use blindfold_hint_publisher::{
    HintPublisher, HintPublisherConfig, HintPublisherDeps, HintPublisherHandle, MemberUrl, StartError,
};
use blindfold_kit::*;
use blindfold_protocol::{
    BatchHints, Canonical, Certificate, Envelope, HintEntry, Release, ReleaseShare, SealedBatch,
    SingletonShare, certificate,
    validity::{Verdict, sub_batches},
};
use blindfold_redis::RedisOptions;
use blindfold_rpc::{Encoded, RpcError, ServerConfig, ServerHandle, serve};
use parking_lot::Mutex;
use tokio::sync::watch;

/// How a member answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    Honest,
    /// Shares over other points: well-formed, wrong.
    Lies,
    /// The same in the first sub-batch alone.
    LiesOnce,
    /// Bytes that are no point.
    Garbage,
    /// Shares of another batch's shape.
    WrongShape,
    /// Right shares, wrong singleton shares.
    LiesAboutSingletons,
    /// Singleton shares of another item.
    OtherSingleton,
    /// Right shares, and singleton shares of another header of the number.
    OtherHeader,
    /// Never answers.
    Silent,
    /// Cannot yet.
    NotYet,
    /// Refuses for good.
    Refuses,
}

pub struct MemberState {
    pub behaviour: watch::Sender<Behaviour>,
    pub batches: Mutex<BTreeMap<u64, (SealedBatch, Vec<Verdict>)>>,
    pub share_calls: Mutex<u64>,
    pub singleton_calls: Mutex<u64>,
}

pub struct MemberDouble {
    pub state: Arc<MemberState>,
    pub member: u16,
    server: ServerHandle,
}

struct Api {
    member: u16,
    state: Arc<MemberState>,
}

impl MemberDouble {
    pub async fn start(member: u16) -> Self {
        let state = Arc::new(MemberState {
            behaviour: watch::Sender::new(Behaviour::Honest),
            batches: Mutex::default(),
            share_calls: Mutex::default(),
            singleton_calls: Mutex::default(),
        });
        let api = Api { member, state: Arc::clone(&state) };
        let server = serve(ServerConfig::new(([127, 0, 0, 1], 0).into()), member_that_answers(api), None)
            .await
            .expect("listens");
        Self { state, member, server }
    }

    pub fn behave(&self, behaviour: Behaviour) {
        self.state.behaviour.send_replace(behaviour);
    }

    pub fn url(&self) -> MemberUrl {
        MemberUrl { member: self.member, url: format!("http://{}", self.server.local_addr()) }
    }
}

pub fn points(batch: &SealedBatch, indices: &[u32]) -> Vec<CiphertextPoint> {
    let point = |index: &u32| {
        let envelope = Envelope::decode(&batch.items[*index as usize]).expect("accepted");
        envelope.ciphertext.header().expect("accepted")
    };
    indices.iter().map(point).collect()
}

impl Api {
    async fn behaviour(&self) -> Result<Behaviour, RpcError> {
        let mut behaviour = self.state.behaviour.subscribe();
        let now = *behaviour.wait_for(|now| *now != Behaviour::Silent).await.expect("the double lives");
        match now {
            Behaviour::NotYet => Err(RpcError::unavailable("not_validated_here", "scripted")),
            Behaviour::Refuses => Err(RpcError::refused("not_a_member", "scripted")),
            now => Ok(now),
        }
    }

    fn batch(&self, number: u64) -> Result<(SealedBatch, Vec<Verdict>), RpcError> {
        let batches = self.state.batches.lock();
        batches.get(&number).cloned().ok_or_else(|| RpcError::unavailable("not_validated_here", "scripted"))
    }
}

#[async_trait]
impl MemberAnswers for Api {
    async fn get_share(
        &self,
        number: u64,
        certificate: Encoded<Certificate>,
    ) -> Result<Encoded<ReleaseShare>, RpcError> {
        *self.state.share_calls.lock() += 1;
        let behaviour = self.behaviour().await?;
        let (batch, verdicts) = self.batch(number)?;
        let certificate = certificate.decode_param()?;
        certificate::verify(&certificate, &epoch(), &chain_config().deployment)
            .expect("the hint publisher checked it");
        let key = &committee().keys[usize::from(self.member) - 1];
        let mut pds: Vec<[u8; 48]> = sub_batches(&verdicts, MAX_BATCH)
            .iter()
            .enumerate()
            .map(|(place, indices)| {
                let mut points = points(&batch, indices);
                if behaviour == Behaviour::Lies || (behaviour == Behaviour::LiesOnce && place == 0) {
                    points.truncate(1);
                }
                let share = key.release_share(&points).expect("sizes");
                if behaviour == Behaviour::Garbage { [0xab; 48] } else { share }
            })
            .collect();
        if behaviour == Behaviour::WrongShape {
            pds.push([0; 48]);
        }
        let header_hash = batch.header.hash();
        Ok(Encoded::new(&ReleaseShare { number, header_hash, member: self.member, pds }))
    }

    async fn get_singleton(&self, number: u64, index: u32) -> Result<Encoded<SingletonShare>, RpcError> {
        *self.state.singleton_calls.lock() += 1;
        let behaviour = self.behaviour().await?;
        let (batch, _) = self.batch(number)?;
        let key = &committee().keys[usize::from(self.member) - 1];
        let point = points(&batch, &[index])[0];
        let share = if behaviour == Behaviour::LiesAboutSingletons {
            key.release_share(&[point, point]).expect("sizes")
        } else {
            key.singleton_share(&point)
        };
        let index = if behaviour == Behaviour::OtherSingleton { index + 1 } else { index };
        let mut header = batch.header;
        if behaviour == Behaviour::OtherHeader {
            header.timestamp_ms += 1;
        }
        let header_hash = header.hash();
        Ok(Encoded::new(&SingletonShare { number, header_hash, index, member: self.member, share }))
    }
}

/// A sequencer and four members, without the hint publisher.
pub struct Stage {
    pub sequencer: SequencerDouble,
    pub members: Vec<MemberDouble>,
    pub sealer: Sealer,
    pub config: HintPublisherConfig,
    /// The hint publisher's.
    pub backend: Arc<Watched>,
    /// What it shares batches over.
    pub redis: Option<RedisOptions>,
}

impl Stage {
    pub async fn new() -> Self {
        let sequencer = SequencerDouble::start().await;
        let mut members = Vec::new();
        for member in 1..=MEMBERS {
            members.push(MemberDouble::start(member).await);
        }
        let mut config = HintPublisherConfig {
            admin_addr: ([127, 0, 0, 1], 0).into(),
            sequencer_urls: sequencer.url().into(),
            members: members.iter().map(MemberDouble::url).collect(),
            ..HintPublisherConfig::default()
        };
        config.limits.hedge_ms = 20;
        config.limits.member_retry_ms = 5;
        config.limits.publish_retry_ms = 5;
        config.limits.batch_retry_ms = 5;
        config.limits.sweep_ms = 20;
        let (sealer, backend) = (Sealer::new(&l1()).await, Arc::new(Watched::default()));
        Self { sequencer, members, sealer, config, backend, redis: None }
    }

    pub async fn try_start(&self) -> Result<HintPublisherHandle, StartError> {
        self.try_start_on(&self.backend).await
    }

    /// Starts one with a backend of its own.
    pub async fn try_start_on(&self, backend: &Arc<Watched>) -> Result<HintPublisherHandle, StartError> {
        let backend = Arc::<Watched>::clone(backend);
        let deps = HintPublisherDeps {
            chain: chain_config(),
            parameters: parameter_set(),
            backend,
            hello_key: None,
            redis: self.redis.clone(),
            l1_posting: None,
        };
        HintPublisher::start(self.config.clone(), deps).await
    }

    pub async fn start(&self) -> HintPublisherHandle {
        let publisher = self.try_start().await.expect("the hint publisher starts");
        self.sequencer.followed_by(1).await;
        publisher
    }

    /// Seals a batch that members have validated; the sequencer keeps it.
    pub async fn seal(&self, items: Vec<Vec<u8>>) -> Sealed {
        let sealed = self.sealer.seal_next(items).await;
        self.validated(&sealed);
        self.sequencer.keep(&sealed.batch, &sealed.verdicts);
        sealed
    }

    pub fn validated(&self, sealed: &Sealed) {
        for member in &self.members {
            let batch = (sealed.batch.as_ref().clone(), sealed.verdicts.clone());
            member.state.batches.lock().insert(sealed.batch.header.number, batch);
        }
    }

    /// Seals, announces and certifies.
    pub async fn publish(&self, items: Vec<Vec<u8>>) -> Sealed {
        let sealed = self.seal(items).await;
        self.sequencer.announce(&sealed.batch, &sealed.verdicts);
        let certificate = self.sealer.certify_by(&sealed.batch, &[1, 2, 3]).await;
        self.sequencer.publish_certificate(&certificate);
        sealed
    }

    /// Waits for the hints of a batch and verifies them as a node does.
    pub async fn hints_of(&self, sealed: &Sealed) -> (Release, BatchHints) {
        let number = sealed.batch.header.number;
        self.sequencer.wait("hints", |state| state.hints.contains_key(&number)).await;
        let (release, hints) = self.sequencer.double.state.lock().hints[&number].clone();
        let set = parameter_set();
        let parameters = set.at(number).expect("registered");
        let backend = Portable::new(1);
        verify_hints(&backend, &parameters, &sealed.batch, &sealed.verdicts, &hints).expect("they stand");
        assert_eq!((release.number, release.header_hash), (number, sealed.hash));
        assert_eq!(release.pds.len(), sub_batches(&sealed.verdicts, MAX_BATCH).len());
        (release, hints)
    }
}

pub fn kinds(hints: &BatchHints) -> String {
    let kind = |entry: &HintEntry| match entry {
        HintEntry::Skipped => 's',
        HintEntry::Key(_) => 'k',
        HintEntry::Malformed(_) => 'm',
    };
    hints.entries.iter().map(kind).collect()
}
