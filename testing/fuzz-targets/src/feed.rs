use blindfold_rpc::{FeedEvent, FeedFrame, FeedRequest};

/// Messages of the binary feed (J-8): what is taken has this encoding and no other, and says the same as JSON.
///
/// Input: a message of the server; its first two bytes are a consumer's, too.
pub fn feed(input: &[u8]) {
    if let Some(request) = input.get(..2).and_then(|bytes| FeedRequest::decode(bytes).ok()) {
        assert_eq!(request.encode(), input[..2]);
    }
    let bytes = input.to_vec().into();
    let Ok(frame) = FeedFrame::decode(&bytes) else { return };
    assert_eq!(frame.encode(), input, "a second encoding");
    if let FeedFrame::Event(event) = frame {
        assert_eq!(FeedFrame::topic(input), Some(event.topic()));
        let json = event.to_raw().expect("what decodes can be written");
        let parsed = FeedEvent::parse(event.topic(), json.get()).expect("and read");
        assert_eq!(parsed, event);
    }
}
