//! Who the sequencer is to members, and who members are to it.

use std::{pin::Pin, sync::Arc};

use blindfold_protocol::{Address, Deployment, Hello, Party, PartyKey, SigningKey};
use blindfold_rpc::{Doorkeeper, Introduction};
use blindfold_runtime::{Clock, random};

use crate::context::Context;

/// The sequencer's introduction to a server, by its signing key.
pub fn introduction(
    key: &Arc<SigningKey>,
    deployment: Deployment,
    clock: &Arc<dyn Clock>,
    server: Party,
) -> Introduction {
    let (key, clock) = (Arc::clone(key), Arc::clone(clock));
    Introduction::new(move || {
        let nonce = random::<[u8; 16]>().into();
        Hello::of_sequencer(&key, &deployment, server, clock.now_ms(), nonce)
    })
}

/// Knows the members of the head's committee, and the hint publishers and gateways that the settings name.
pub(crate) fn doorkeeper(cx: &Context) -> Doorkeeper {
    let (tracker, clock) = (cx.tracker.clone(), Arc::clone(&cx.clock));
    let hint_publishers: Arc<[Address]> = cx.config.hint_publishers.clone().into();
    let gateways: Arc<[Address]> = cx.config.gateways.clone().into();
    let key_of = move |party| {
        let (tracker, hint_publishers) = (tracker.clone(), Arc::clone(&hint_publishers));
        let gateways = Arc::clone(&gateways);
        let key = async move {
            match party {
                Party::Member(member) => {
                    let epoch = tracker.epoch(tracker.head().number.max(1)).await.ok()?;
                    epoch.member(member).copied().map(PartyKey::Bls)
                }
                Party::HintPublisher(account) => {
                    hint_publishers.contains(&account).then_some(PartyKey::Address(account))
                }
                Party::Gateway(account) => gateways.contains(&account).then_some(PartyKey::Address(account)),
                Party::Sequencer => None,
            }
        };
        Box::pin(key) as Pin<Box<dyn Future<Output = _> + Send>>
    };
    Doorkeeper::new(cx.chain.deployment, Party::Sequencer, key_of, move || clock.now_ms())
}
