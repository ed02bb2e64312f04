//! A relay or gateway before a sequencer as a script.

#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::Arc;

use blindfold_chain::{ParameterSet, Sealed, announce};
use blindfold_gateway::{
    GatewayConfig, GatewayDeps, GatewayHandle, Relay, RelayConfig, RelayDeps, SharedLimits,
};
use blindfold_kit::{
    ManualClock, RICH, START_MS, ScriptedL1, Sealer, SequencerDouble, backend, certify, chain_config, client,
    l1, open_batch, parameter_set, payer, within,
};
use blindfold_protocol::{BatchHints, Canonical, Envelope, Release, SealedBatch, SigningKey};
use blindfold_redis::RedisOptions;
use blindfold_rpc::{Feed, FeedConfig, FeedEvent, FeedItem, HttpClient, RunningRole, SequencerUrls, Topic};

pub fn gateway_key() -> SigningKey {
    SigningKey::from_bytes(&[88; 32]).expect("a key")
}

pub struct Stage {
    pub l1: Arc<ScriptedL1>,
    pub sealer: Sealer,
    pub sequencer: SequencerDouble,
    pub parameters: Arc<ParameterSet>,
    pub config: RelayConfig,
    pub gateway: GatewayConfig,
    pub shared: Option<Arc<dyn SharedLimits>>,
    pub redis: Option<RedisOptions>,
}

impl Stage {
    /// With payers 1 to 8 funded by header 1, which the sequencer has.
    pub async fn new() -> Self {
        Self::before(SequencerDouble::start().await).await
    }

    /// The same before this sequencer.
    pub async fn before(sequencer: SequencerDouble) -> Self {
        let l1 = l1();
        l1.advance(1);
        for n in 1..=8 {
            l1.deposit(payer(n).address(), RICH);
        }
        let sealer = Sealer::new(&l1).await;
        let free = ([127, 0, 0, 1], 0).into();
        let config = RelayConfig {
            rpc_addr: free,
            admin_addr: free,
            sequencer_urls: SequencerUrls::new([sequencer.url()]),
            sweep_ms: 50,
            cache_ms: 0,
            ..RelayConfig::default()
        };
        let stage = Self {
            l1,
            sealer,
            sequencer,
            parameters: parameter_set(),
            config,
            gateway: GatewayConfig::default(),
            shared: None,
            redis: None,
        };
        stage.seal(&[]).await;
        stage
    }

    /// Seals and publishes a batch, certified.
    pub async fn seal(&self, envelopes: &[Envelope]) -> Sealed {
        let sealed = self.sealer.seal_next(envelopes.iter().map(Canonical::encode).collect()).await;
        self.sequencer.publish(&sealed.batch, &sealed.verdicts);
        let certificate = self.sealer.certify_by(&sealed.batch, &[1, 2, 4]).await;
        self.sequencer.publish_certificate(&certificate);
        sealed
    }

    /// Publishes what opens a batch.
    pub fn open(&self, sealed: &Sealed) -> (Release, BatchHints) {
        let (release, hints) = open_batch(&sealed.batch, &sealed.verdicts);
        self.sequencer.publish_hints(&release, &hints);
        (release, hints)
    }

    fn deps(&self) -> RelayDeps {
        RelayDeps {
            chain: chain_config(),
            parameters: Arc::clone(&self.parameters),
            backend: backend(),
            l1: Arc::clone(&self.l1) as _,
        }
    }

    /// A relay that has header 1 and its certificate.
    pub async fn relay(&self) -> Running {
        let handle = Relay::start(self.config.clone(), self.deps(), None).await.expect("it starts");
        let relay = Running { client: client(handle.rpc_addr()), handle };
        relay.counts(r#"blindfold_relay_certified_number{role="relay"} 1"#).await;
        relay
    }

    pub async fn gateway(&self) -> Running {
        let clock = ManualClock::new();
        clock.set(START_MS + 60_000);
        let gateway = GatewayDeps {
            config: self.gateway.clone(),
            hello_key: Arc::new(gateway_key()),
            clock,
            redis: self.redis.clone(),
            shared: self.shared.clone(),
        };
        let handle = Relay::start(self.config.clone(), self.deps(), Some(gateway)).await.expect("it starts");
        Running { client: client(handle.rpc_addr()), handle }
    }
}

pub struct Running {
    pub handle: GatewayHandle,
    pub client: HttpClient,
}

impl Running {
    /// What its subscribers get.
    pub async fn feed(&self) -> Feed {
        let url = format!("ws://{}", self.handle.rpc_addr());
        let mut feed = Feed::start(url, Topic::ALL.to_vec(), FeedConfig::default());
        assert_eq!(within("the feed", feed.next()).await, Some(FeedItem::Connected));
        feed
    }

    /// Waits until it is not ready.
    pub async fn is_not_ready(&self) {
        within("that it is not ready", async {
            while self.handle.readiness().is_ready() {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        })
        .await;
    }

    /// Waits until an envelope was on its way in vain.
    pub async fn tried_in_vain(&self) {
        let none = r#"blindfold_gateway_forward_failures_total{role="gateway"} 0"#;
        within("an attempt in vain", async {
            while self.handle.metrics().registry.render().contains(none) {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        })
        .await;
    }

    /// Waits until a line of its metrics is there.
    pub async fn counts(&self, line: &str) {
        within(line, async {
            while !self.handle.metrics().registry.render().lines().any(|known| known == line) {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        })
        .await;
    }
}

/// The next notification of a topic.
pub async fn next_of(feed: &mut Feed, topic: Topic) -> FeedEvent {
    within("a notification", async {
        loop {
            match feed.next().await {
                Some(FeedItem::Event(event)) if event.topic() == topic => return event,
                Some(_) => {}
                None => panic!("the feed ended"),
            }
        }
    })
    .await
}

pub fn header_event(sealed: &Sealed) -> FeedEvent {
    announce::header(&sealed.batch, sealed.hash, &sealed.verdicts)
}

pub fn certificate_event(batch: &SealedBatch) -> FeedEvent {
    announce::certificate(&certify(batch, &[1, 2, 4]))
}
