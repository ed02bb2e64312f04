//! Who this hint publisher is, to the sequencer and the members.

use std::sync::Arc;

use blindfold_protocol::{Deployment, Hello, Party, SigningKey};
use blindfold_rpc::limits::{MAX_PEER_REQUEST_BYTES, MAX_REQUEST_BYTES};
use blindfold_rpc::{ClientConfig, Introduction};
use blindfold_runtime::{Clock, SteadyClock, random};

/// Makes clients that show who we are, where there is a key to show it with.
pub(crate) struct Introductions {
    key: Option<Arc<SigningKey>>,
    deployment: Deployment,
    clock: Arc<dyn Clock>,
}

impl Introductions {
    pub(crate) fn new(key: Option<Arc<SigningKey>>, deployment: Deployment) -> Self {
        Self { key, deployment, clock: Arc::new(SteadyClock::system()) }
    }

    /// Settings of a client of one server.
    pub(crate) fn client(&self, server: Party) -> ClientConfig {
        let introduction = self.key.as_ref().map(|key| {
            let (key, deployment, clock) = (Arc::clone(key), self.deployment, Arc::clone(&self.clock));
            Introduction::new(move || {
                let nonce = random::<[u8; 16]>().into();
                Hello::of_hint_publisher(&key, &deployment, server, clock.now_ms(), nonce)
            })
        });
        let max_request_bytes =
            if introduction.is_some() { MAX_PEER_REQUEST_BYTES } else { MAX_REQUEST_BYTES };
        ClientConfig { introduction, max_request_bytes, ..ClientConfig::default() }
    }
}
