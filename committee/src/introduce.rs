//! Who this member is, to the sequencer and the other members, and who they are to it.

use std::{pin::Pin, sync::Arc};

use blindfold_protocol::{Deployment, Hello, Party, PartyKey};
use blindfold_rpc::{ClientConfig, Doorkeeper, Introduction};
use blindfold_runtime::{Clock, random};

use crate::{key_file::OpenedKey, member::Context};

/// Makes clients that show who we are.
pub(crate) struct Introductions {
    key: Arc<OpenedKey>,
    deployment: Deployment,
    clock: Arc<dyn Clock>,
}

impl Introductions {
    pub(crate) fn new(key: &Arc<OpenedKey>, deployment: Deployment, clock: &Arc<dyn Clock>) -> Self {
        Self { key: Arc::clone(key), deployment, clock: Arc::clone(clock) }
    }

    /// Settings of a client of one server.
    pub(crate) fn client(&self, server: Party) -> ClientConfig {
        let (key, deployment, clock) = (Arc::clone(&self.key), self.deployment, Arc::clone(&self.clock));
        let introduction = Introduction::new(move || {
            let nonce = random::<[u8; 16]>().into();
            Hello::of_member(&key.bls_key, key.public.member, &deployment, server, clock.now_ms(), nonce)
        });
        ClientConfig { introduction: Some(introduction), ..ClientConfig::default() }
    }
}

/// Knows the sequencer in office, the members of the head's committee, and the hint publishers that the settings name.
pub(crate) fn doorkeeper(context: &Arc<Context>) -> Doorkeeper {
    let (known, clock) = (Arc::clone(context), Arc::clone(&context.clock));
    let key_of = move |party| {
        let context = Arc::clone(&known);
        let key = async move {
            let tracker = &context.tracker;
            match party {
                Party::Sequencer => Some(PartyKey::Address(tracker.sequencer_now())),
                Party::Member(member) => {
                    let epoch = tracker.epoch(tracker.head().number.max(1)).await.ok()?;
                    epoch.member(member).copied().map(PartyKey::Bls)
                }
                Party::HintPublisher(account) => {
                    let ours = context.config.hint_publishers.contains(&account);
                    ours.then_some(PartyKey::Address(account))
                }
                Party::Gateway(_) => None,
            }
        };
        Box::pin(key) as Pin<Box<dyn Future<Output = _> + Send>>
    };
    let server = Party::Member(context.member());
    Doorkeeper::new(context.tracker.config().deployment, server, key_of, move || clock.now_ms())
}
