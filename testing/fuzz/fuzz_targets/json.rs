//! What peers send as JSON: anything may be refused, nothing may panic.
#![no_main]

use blindfold_rpc::{
    FeedEvent, Topic,
    types::{BatchInfo, Receipt, Refusal, SendOptions, Status},
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for topic in [Topic::Headers, Topic::Certificates, Topic::Releases, Topic::Hints, Topic::Blocks] {
        let _ = FeedEvent::parse(topic, text);
    }
    let _ = serde_json::from_str::<BatchInfo>(text);
    let _ = serde_json::from_str::<Receipt>(text);
    let _ = serde_json::from_str::<Refusal>(text);
    let _ = serde_json::from_str::<SendOptions>(text);
    let _ = serde_json::from_str::<Status>(text);
});
