//! The messages of the binary feed (J-9).
//!
//! Each is one WebSocket message: a version byte, a byte for its kind, and the fields of the topic's JSON object in their
//! order, in the encoding of [`blindfold_protocol::codec`]. A structure stands in its own encoding behind its length, so it is
//! sent as it is stored, and whoever hands it on need not decode it for that. Each message has exactly one encoding.

use std::borrow::Cow;

use alloy_primitives::B256;
use blindfold_protocol::{
    DecodeError,
    codec::{Reader, Writer},
    limits::MAX_BATCH_ITEMS,
};
use tokio_tungstenite::tungstenite::Bytes;

use super::FeedEvent;
use crate::{
    Encoded, RpcError, Topic, Wire,
    limits::MAX_TEXT_BYTES,
    types::{
        BlockNotification, CertificateNotification, HeaderNotification, HintsNotification,
        ReleaseNotification, SkippedItem,
    },
};

/// The WebSocket subprotocol by which the feed is asked for; it ends with the version of the messages.
pub const FEED_SUBPROTOCOL: &str = "blindfold.feed.v1";

const VERSION: u8 = 1;
/// The longest request: a version and a byte of topics.
pub(crate) const REQUEST_BYTES: usize = 2;
/// An envelope's id and the tag of its index, and the length of the reason.
const SHORTEST_SKIPPED_BYTES: usize = 32 + 1 + 4;

const SUBSCRIBED: u8 = 0;
/// The kinds of the topics follow, in their order.
const FIRST_TOPIC: u8 = 1;
const REFUSED: u8 = 6;
const ENDED: u8 = 7;

/// Why bytes are no message of the binary feed. Always the fault of whoever made them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A field does not decode.
    #[error(transparent)]
    Encoding(#[from] DecodeError),
    /// The version byte is another one than the subprotocol names.
    #[error("version {0} of the feed's messages is not known")]
    Version(u8),
    /// The kind has no meaning.
    #[error("a message of kind {0} is not known")]
    Kind(u8),
    /// A text is not UTF-8.
    #[error("{0} is not UTF-8")]
    Text(&'static str),
    /// Indices of skipped items do not rise, or are beyond the last item.
    #[error("the indices of the verdicts do not rise, or are too large")]
    Indices,
    /// No topic is asked for, or one that does not exist.
    #[error("topics {0:#010b}: none, or one that is not known")]
    Topics(u8),
}

/// What a consumer sends, once: the topics that it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedRequest {
    /// At least one, each once, in the order of [`Topic::ALL`].
    topics: Vec<Topic>,
}

impl FeedRequest {
    /// Asks for these topics; none where there are none.
    pub fn new(topics: &[Topic]) -> Option<Self> {
        let topics: Vec<Topic> = Topic::ALL.into_iter().filter(|topic| topics.contains(topic)).collect();
        (!topics.is_empty()).then_some(Self { topics })
    }

    /// The topics, in the order of [`Topic::ALL`].
    pub fn topics(&self) -> &[Topic] {
        &self.topics
    }

    /// The one encoding.
    pub fn encode(&self) -> Vec<u8> {
        let topics = self.topics.iter().fold(0, |topics, topic| topics | 1 << *topic as u8);
        vec![VERSION, topics]
    }

    /// Reads the encoding.
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        let mut reader = versioned(bytes)?;
        let asked = reader.u8("topics")?;
        reader.finish()?;
        let topics: Vec<Topic> =
            Topic::ALL.into_iter().filter(|topic| asked & 1 << *topic as u8 != 0).collect();
        if topics.len() != asked.count_ones() as usize || topics.is_empty() {
            return Err(FrameError::Topics(asked));
        }
        Ok(Self { topics })
    }
}

/// What a server sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedFrame {
    /// The topics are subscribed: nothing of them is missed from here on.
    Subscribed,
    /// A notification.
    Event(FeedEvent),
    /// Nothing is subscribed. The connection ends.
    Refused(RpcError),
    /// The subscription is over, and why, in words: what follows has to be fetched. The connection ends.
    Ended(String),
}

impl FeedFrame {
    /// The one encoding.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Subscribed => vec![VERSION, SUBSCRIBED],
            Self::Event(event) => encode_event(event),
            Self::Refused(refusal) => {
                let mut writer = Writer::default();
                writer.u8(VERSION).u8(REFUSED).bytes(&refusal.code.to_be_bytes());
                text(&mut writer, &refusal.reason);
                writer.u8(u8::from(refusal.retry));
                text(&mut writer, &refusal.message);
                writer.u8(u8::from(refusal.leader.is_some()));
                refusal.leader.iter().for_each(|leader| text(&mut writer, leader));
                writer.u8(u8::from(refusal.retry_after_ms.is_some()));
                if let Some(after) = refusal.retry_after_ms {
                    writer.u64(after);
                }
                writer.finish()
            }
            Self::Ended(reason) => {
                let mut writer = Writer::default();
                writer.u8(VERSION).u8(ENDED);
                text(&mut writer, reason);
                writer.finish()
            }
        }
    }

    /// Reads the encoding. Structures stay parts of these bytes.
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn decode(bytes: &Bytes) -> Result<Self, FrameError> {
        let mut reader = versioned(bytes)?;
        let kind = reader.u8("kind")?;
        let frame = match kind {
            SUBSCRIBED => Self::Subscribed,
            REFUSED => Self::Refused(refusal(&mut reader)?),
            ENDED => Self::Ended(read_text(&mut reader, "reason")?.to_owned()),
            kind => {
                let topic = topic_of(kind).ok_or(FrameError::Kind(kind))?;
                Self::Event(decode_event(topic, bytes, &mut reader)?)
            }
        };
        reader.finish()?;
        Ok(frame)
    }

    /// The topic that bytes are a notification of, if they are one, whatever follows.
    pub fn topic(bytes: &[u8]) -> Option<Topic> {
        match bytes {
            [VERSION, kind, ..] => topic_of(*kind),
            _ => None,
        }
    }
}

fn topic_of(kind: u8) -> Option<Topic> {
    Topic::ALL.get(usize::from(kind.checked_sub(FIRST_TOPIC)?)).copied()
}

fn versioned(bytes: &[u8]) -> Result<Reader<'_>, FrameError> {
    let mut reader = Reader::new(bytes);
    match reader.u8("version")? {
        VERSION => Ok(reader),
        other => Err(FrameError::Version(other)),
    }
}

/// The encoding of a notification.
pub(crate) fn encode_event(event: &FeedEvent) -> Vec<u8> {
    let mut writer = Writer::with_capacity(capacity(event));
    writer.u8(VERSION).u8(FIRST_TOPIC + event.topic() as u8).u64(event.number());
    match event {
        FeedEvent::Header(header) => {
            writer.bytes(header.hash.as_slice()).prefixed(header.sealed.bytes());
            let skipped = header.verdicts.iter().filter(|verdict| verdict.is_some()).count();
            writer.count(header.verdicts.len()).count(skipped);
            for (index, verdict) in header.verdicts.iter().enumerate() {
                if let Some(reason) = verdict {
                    writer.count(index);
                    text(&mut writer, reason);
                }
            }
        }
        FeedEvent::Certificate(certificate) => {
            writer.bytes(certificate.hash.as_slice()).prefixed(certificate.certificate.bytes());
        }
        FeedEvent::Release(release) => {
            writer.bytes(release.hash.as_slice()).prefixed(release.release.bytes());
        }
        FeedEvent::Hints(hints) => {
            writer.bytes(hints.hash.as_slice()).prefixed(hints.hints.bytes());
        }
        FeedEvent::Block(block) => {
            for hash in [block.hash, block.parent_hash, block.state_root] {
                writer.bytes(hash.as_slice());
            }
            writer.u64(block.timestamp).u64(block.first_batch).u64(block.last_batch);
            writer.count(block.transactions.len());
            block.transactions.iter().for_each(|hash| {
                writer.bytes(hash.as_slice());
            });
            writer.count(block.skipped.len());
            for SkippedItem { envelope, index, reason } in &block.skipped {
                writer.bytes(envelope.as_slice()).u8(u8::from(index.is_some()));
                index.iter().for_each(|index| {
                    writer.u16(*index);
                });
                text(&mut writer, reason);
            }
        }
    }
    writer.finish()
}

/// About what an encoding takes, so that a batch of megabytes is written once.
fn capacity(event: &FeedEvent) -> usize {
    const FIXED: usize = 256;
    FIXED
        + match event {
            FeedEvent::Header(header) => header.sealed.bytes().len(),
            FeedEvent::Certificate(certificate) => certificate.certificate.bytes().len(),
            FeedEvent::Release(release) => release.release.bytes().len(),
            FeedEvent::Hints(hints) => hints.hints.bytes().len(),
            FeedEvent::Block(block) => 32 * block.transactions.len() + 64 * block.skipped.len(),
        }
}

fn decode_event(topic: Topic, bytes: &Bytes, reader: &mut Reader<'_>) -> Result<FeedEvent, FrameError> {
    let number = reader.u64("number")?;
    let hash = hash(reader, "hash")?;
    Ok(match topic {
        Topic::Headers => {
            let sealed = structure(bytes, reader, "sealed")?;
            let verdicts = verdicts(reader)?;
            FeedEvent::Header(HeaderNotification { number, hash, sealed, verdicts })
        }
        Topic::Certificates => {
            let certificate = structure(bytes, reader, "certificate")?;
            FeedEvent::Certificate(CertificateNotification { number, hash, certificate })
        }
        Topic::Releases => {
            let release = structure(bytes, reader, "release")?;
            FeedEvent::Release(ReleaseNotification { number, hash, release })
        }
        Topic::Hints => {
            let hints = structure(bytes, reader, "hints")?;
            FeedEvent::Hints(HintsNotification { number, hash, hints })
        }
        Topic::Blocks => FeedEvent::Block(block(number, hash, reader)?),
    })
}

fn verdicts(reader: &mut Reader<'_>) -> Result<Vec<Option<String>>, FrameError> {
    let items = reader.count("verdicts", MAX_BATCH_ITEMS)?;
    let skipped = reader.count("skipped verdicts", items)?;
    let mut verdicts = vec![None; items];
    let mut next = 0;
    for _ in 0..skipped {
        let index = reader.u32("index")? as usize;
        let verdict = verdicts.get_mut(index).filter(|_| index >= next).ok_or(FrameError::Indices)?;
        *verdict = Some(read_text(reader, "reason")?.to_owned());
        next = index + 1;
    }
    Ok(verdicts)
}

fn block(number: u64, block_hash: B256, reader: &mut Reader<'_>) -> Result<BlockNotification, FrameError> {
    let (parent_hash, state_root) = (hash(reader, "parent hash")?, hash(reader, "state root")?);
    let timestamp = reader.u64("timestamp")?;
    let (first_batch, last_batch) = (reader.u64("first batch")?, reader.u64("last batch")?);
    let count = reader.count("transactions", reader.left() / 32)?;
    let transactions =
        reader.take("transactions", 32 * count)?.chunks_exact(32).map(B256::from_slice).collect();
    let count = reader.count("skipped", reader.left() / SHORTEST_SKIPPED_BYTES)?;
    let mut skipped = Vec::with_capacity(count);
    for _ in 0..count {
        let envelope = hash(reader, "envelope")?;
        let index = if flag(reader, "index")? { Some(reader.u16("index")?) } else { None };
        skipped.push(SkippedItem { envelope, index, reason: read_text(reader, "reason")?.to_owned() });
    }
    let hash = block_hash;
    Ok(BlockNotification {
        number,
        hash,
        parent_hash,
        state_root,
        timestamp,
        first_batch,
        last_batch,
        transactions,
        skipped,
    })
}

fn refusal(reader: &mut Reader<'_>) -> Result<RpcError, FrameError> {
    let code = i32::from_be_bytes(reader.array("code")?);
    let reason = Cow::Owned(read_text(reader, "reason")?.to_owned());
    let retry = flag(reader, "retry")?;
    let message = read_text(reader, "message")?.to_owned();
    let leader = if flag(reader, "leader")? { Some(read_text(reader, "leader")?.into()) } else { None };
    let retry_after_ms = if flag(reader, "retry after")? { Some(reader.u64("milliseconds")?) } else { None };
    Ok(RpcError { code, message, reason, retry, leader, retry_after_ms })
}

/// A structure in its own encoding, as a part of the message.
fn structure<T: Wire>(
    bytes: &Bytes,
    reader: &mut Reader<'_>,
    field: &'static str,
) -> Result<Encoded<T>, FrameError> {
    let encoding = reader.prefixed(field, T::MAX_BYTES)?;
    Ok(Encoded::from_bytes(bytes.slice_ref(encoding)))
}

fn hash(reader: &mut Reader<'_>, field: &'static str) -> Result<B256, FrameError> {
    Ok(B256::new(reader.array(field)?))
}

fn flag(reader: &mut Reader<'_>, field: &'static str) -> Result<bool, FrameError> {
    match reader.u8(field)? {
        0 => Ok(false),
        1 => Ok(true),
        value => Err(DecodeError::UnknownTag { field, value }.into()),
    }
}

/// Texts are words of ours, and what is longer than one may be is cut: no subscriber is to lose its feed over a message.
fn text(writer: &mut Writer, text: &str) {
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    writer.prefixed(text.get(..end).unwrap_or_default().as_bytes());
}

fn read_text<'a>(reader: &mut Reader<'a>, field: &'static str) -> Result<&'a str, FrameError> {
    str::from_utf8(reader.prefixed(field, MAX_TEXT_BYTES)?).map_err(|_| FrameError::Text(field))
}

#[cfg(test)]
mod tests {
    use blindfold_protocol::{BatchHints, Certificate, Release};

    use super::*;

    fn events() -> Vec<FeedEvent> {
        let (number, hash) = (7, B256::repeat_byte(7));
        let certificate = Certificate { epoch: 1, number, header_hash: hash, signers: 3, signature: [5; 48] };
        let verdicts = vec![None, Some("expired".to_owned()), None, Some("é".to_owned()), None];
        let skipped = |index: Option<u16>, reason: &str| SkippedItem {
            envelope: B256::repeat_byte(1),
            index,
            reason: reason.to_owned(),
        };
        vec![
            FeedEvent::Header(HeaderNotification {
                number,
                hash,
                sealed: Encoded::from_bytes(vec![2; 5_000]),
                verdicts,
            }),
            FeedEvent::Certificate(CertificateNotification {
                number,
                hash,
                certificate: Encoded::new(&certificate),
            }),
            FeedEvent::Release(ReleaseNotification {
                number,
                hash,
                release: Encoded::<Release>::from_bytes(vec![3; 60]),
            }),
            FeedEvent::Hints(HintsNotification {
                number,
                hash,
                hints: Encoded::<BatchHints>::from_bytes(Vec::new()),
            }),
            FeedEvent::Block(BlockNotification {
                number,
                hash,
                parent_hash: B256::repeat_byte(2),
                state_root: B256::repeat_byte(3),
                timestamp: u64::MAX,
                first_batch: 1,
                last_batch: 2,
                transactions: vec![B256::repeat_byte(4); 3],
                skipped: vec![
                    skipped(None, "void"),
                    skipped(Some(65_535), "nonce_too_low"),
                    skipped(Some(0), ""),
                ],
            }),
        ]
    }

    fn frames() -> Vec<FeedFrame> {
        let refusals = [RpcError::standing_by(Some("http://a")), RpcError::busy("rate_limited", "m")];
        let own = [FeedFrame::Subscribed, FeedFrame::Ended("too slow: it fell behind".to_owned())];
        let events = events().into_iter().map(FeedFrame::Event);
        own.into_iter().chain(events).chain(refusals.map(FeedFrame::Refused)).collect()
    }

    #[test]
    fn every_message_survives_and_has_one_encoding_of_one_length() {
        for frame in frames() {
            let bytes = Bytes::from(frame.encode());
            assert_eq!(FeedFrame::decode(&bytes).as_ref(), Ok(&frame));
            let topic = if let FeedFrame::Event(event) = &frame { Some(event.topic()) } else { None };
            assert_eq!(FeedFrame::topic(&bytes), topic);
            for end in 0..bytes.len() {
                assert!(FeedFrame::decode(&bytes.slice(..end)).is_err(), "{frame:?} cut at {end}");
            }
            let longer = [bytes.as_ref(), &[0]].concat().into();
            assert!(matches!(
                FeedFrame::decode(&longer),
                Err(FrameError::Encoding(DecodeError::Trailing(1)))
            ));
            let mut other_version = bytes.to_vec();
            other_version[0] = 2;
            assert_eq!(FeedFrame::decode(&other_version.into()), Err(FrameError::Version(2)));
        }
        assert_eq!(FeedFrame::decode(&Bytes::from_static(&[1, 8])), Err(FrameError::Kind(8)));
    }

    /// A node that gets one form and one that gets the other know the same.
    #[test]
    fn both_forms_say_the_same() {
        for event in events() {
            let json = event.to_raw().expect("serializes");
            let of_json = FeedEvent::parse(event.topic(), json.get()).expect("parses");
            let of_bytes = FeedFrame::decode(&encode_event(&event).into()).expect("decodes");
            assert_eq!(FeedFrame::Event(of_json), of_bytes);
        }
    }

    #[test]
    fn a_structure_is_a_part_of_the_message_and_not_a_copy() {
        let bytes = Bytes::from(encode_event(&events()[0]));
        let Ok(FeedFrame::Event(FeedEvent::Header(header))) = FeedFrame::decode(&bytes) else {
            panic!("a header")
        };
        let within = bytes.as_ptr_range();
        assert!(within.contains(&header.sealed.bytes().as_ptr()));
    }

    #[test]
    fn verdicts_have_one_order_and_end_with_the_last_item() {
        let of = |count: u32, skipped: &[u32]| {
            let mut writer = Writer::default();
            writer.u8(VERSION).u8(FIRST_TOPIC).u64(1).bytes(&[0; 32]).prefixed(&[]);
            writer.u32(count).count(skipped.len());
            skipped.iter().for_each(|index| {
                writer.u32(*index).prefixed(b"expired");
            });
            FeedFrame::decode(&writer.finish().into())
        };
        assert!(of(3, &[0, 2]).is_ok());
        for wrong in [&[1, 0][..], &[1, 1], &[3], &[u32::MAX]] {
            assert_eq!(of(3, wrong), Err(FrameError::Indices), "{wrong:?}");
        }
        assert!(matches!(of(u32::MAX, &[]), Err(FrameError::Encoding(DecodeError::TooLarge { .. }))));
        assert!(matches!(of(0, &[0]), Err(FrameError::Encoding(DecodeError::TooLarge { .. }))));
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_between_characters() {
        let long = FeedFrame::Ended("é".repeat(MAX_TEXT_BYTES));
        let Ok(FeedFrame::Ended(cut)) = FeedFrame::decode(&long.encode().into()) else {
            panic!("it decodes")
        };
        assert_eq!(cut, "é".repeat(MAX_TEXT_BYTES / 2));
        let mut bytes = FeedFrame::Ended("ab".to_owned()).encode();
        *bytes.last_mut().expect("there are some") = 0xff;
        assert_eq!(FeedFrame::decode(&bytes.into()), Err(FrameError::Text("reason")));
    }

    #[test]
    fn a_request_names_topics_that_exist_and_at_least_one() {
        for topics in [&[Topic::Headers][..], &[Topic::Hints, Topic::Certificates], &Topic::ALL] {
            let request = FeedRequest::new(topics).expect("some");
            assert_eq!(FeedRequest::decode(&request.encode()), Ok(request.clone()));
            assert!(topics.iter().all(|topic| request.topics().contains(topic)));
        }
        assert_eq!(FeedRequest::new(&[]), None);
        assert_eq!(FeedRequest::decode(&[1, 0]), Err(FrameError::Topics(0)));
        assert_eq!(FeedRequest::decode(&[1, 0b10_0001]), Err(FrameError::Topics(0b10_0001)));
        assert_eq!(FeedRequest::decode(&[2, 1]), Err(FrameError::Version(2)));
    }
}
