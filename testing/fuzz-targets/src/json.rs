use blindfold_rpc::{
    FeedEvent, Topic,
    types::{BatchInfo, Receipt, Refusal, SendOptions, Status},
};

/// What peers send as JSON: anything may be refused, nothing may panic.
///
/// Input: the text.
pub fn json(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    for topic in [Topic::Headers, Topic::Certificates, Topic::Releases, Topic::Hints, Topic::Blocks] {
        let _ = FeedEvent::parse(topic, text);
    }
    let _ = serde_json::from_str::<BatchInfo>(text);
    let _ = serde_json::from_str::<Receipt>(text);
    let _ = serde_json::from_str::<Refusal>(text);
    let _ = serde_json::from_str::<SendOptions>(text);
    let _ = serde_json::from_str::<Status>(text);
}
