//! The jobs of a batch in Redis: who does which part, and what came of it.
//!
//! | key | what |
//! |---|---|
//! | `hint-jobs:NUMBER:HASH:PARTS` | stream with an entry for each part, read by the consumer group `publishers` |
//! | `hint-parts:NUMBER:HASH:PARTS` | hash: part → what opened it, as canonical bytes |
//! | `hint-assembler:NUMBER:HASH:PARTS` | who puts the parts together, for as long as a lease |
//! | `hint-done:NUMBER:HASH` | the sequencer is said to have the hints |
//!
//! A stream for each batch, not one for all: what goes wrong with one touches no other, and a batch that nobody wants any more
//! leaves nothing behind. `PARTS` is how many there are: publishers whose settings cut a batch otherwise do not share it, and
//! do not disturb each other. All of it expires [`KEPT_MS`] after it was touched for the last time. Nothing of it is believed:
//! parts are checked, and whoever waits for another one does so for a bounded time.

use std::{collections::BTreeMap, ops::Range, time::Duration};

use blindfold_chain::{BatchView, Part};
use blindfold_protocol::{BatchHints, Canonical, Release};
use blindfold_redis::{
    Redis, RedisError,
    redis::{
        Script, cmd,
        streams::{StreamAutoClaimReply, StreamId, StreamReadReply},
    },
};

/// The consumer group.
const GROUP: &str = "publishers";
/// The field of a job that says which part it is.
const FIELD: &str = "part";
/// How long what is in Redis of a batch is kept after it was last touched, in milliseconds.
const KEPT_MS: u64 = 600_000;
/// Jobs that are none, of one batch, before Redis is not asked any more for it.
const MAX_STRANGE_JOBS: usize = 32;
/// How often at least whoever works on a job says so: others may have a shorter lease.
const MAX_RENEWAL_MS: u64 = 250;
/// How many pending jobs are looked through at a time for one whose owner is silent.
const LOOKED_THROUGH: usize = 100;

/// Makes the stream, its group and its jobs, once. Keys: the stream. Arguments: group, field, jobs, time to live.
const OPEN: &str = r"
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM')
for part = 0, ARGV[3] - 1 do redis.call('XADD', KEYS[1], '*', ARGV[2], part) end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
";

/// Says that jobs are still worked on. Keys: the stream. Arguments: group, consumer, time to live, ids. How many of them are
/// somebody else's by now.
const RENEW: &str = r"
local lost = 0
for place = 4, #ARGV do
    local held = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[place], ARGV[place], 1, ARGV[2])
    if #held == 1 then
        redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[place], 'JUSTID')
    else
        lost = lost + 1
    end
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return lost
";

/// Puts what came of a job. Keys: stream, parts, assembler. Arguments: group, id, part, bytes, jobs, time to live, consumer,
/// lease. `1` where these were the last part, and the consumer is the assembler.
const FINISH: &str = r"
redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[6])
if ARGV[2] ~= '' then redis.call('XACK', KEYS[1], ARGV[1], ARGV[2]) end
if redis.call('HLEN', KEYS[2]) < tonumber(ARGV[5]) then return 0 end
if redis.call('SET', KEYS[3], ARGV[7], 'NX', 'PX', ARGV[8]) then return 1 end
return 0
";

/// What opened some parts. Keys: parts. Arguments: the most bytes that one may have, parts. Empty where there is nothing, or
/// too much.
const PARTS: &str = r"
local parts = {}
for place = 2, #ARGV do
    local length = redis.call('HSTRLEN', KEYS[1], ARGV[place])
    if length > 0 and length <= tonumber(ARGV[1]) then
        parts[place - 1] = redis.call('HGET', KEYS[1], ARGV[place])
    else
        parts[place - 1] = ''
    end
end
return parts
";

/// A job that is ours.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// Name of its entry in the stream; empty for a part that nobody gave us.
    pub(super) id: String,
    pub(super) part: usize,
    /// Somebody had it before, and is silent.
    pub(super) taken_over: bool,
}

/// Where jobs are, and who we are there.
pub(crate) struct Jobs {
    redis: Redis,
    consumer: String,
    lease_ms: u64,
    open: Script,
    renew: Script,
    finish: Script,
    parts: Script,
}

impl Jobs {
    pub(crate) fn new(redis: Redis, lease_ms: u64) -> Self {
        let consumer = format!("{:016x}", blindfold_runtime::random::<u64>());
        let [open, renew, finish, parts] = [OPEN, RENEW, FINISH, PARTS].map(Script::new);
        Self { redis, consumer, lease_ms, open, renew, finish, parts }
    }

    /// The jobs of a batch that is cut into these parts.
    pub(super) fn of(&self, view: &BatchView, parts: &[Range<usize>]) -> BatchJobs<'_> {
        let (number, hash, count) = (view.number, view.hash, parts.len());
        let key = |name| self.redis.key(format_args!("hint-{name}:{number}:{hash:x}:{count}"));
        let longest = parts.iter().map(|places| max_bytes(view, places)).max().unwrap_or(0);
        BatchJobs {
            jobs: self,
            stream: key("jobs"),
            opened: key("parts"),
            assembler: key("assembler"),
            done: self.redis.key(format_args!("hint-done:{number}:{hash:x}")),
            parts: count,
            longest,
        }
    }
}

/// The jobs of one batch.
pub(super) struct BatchJobs<'a> {
    jobs: &'a Jobs,
    stream: String,
    opened: String,
    assembler: String,
    done: String,
    parts: usize,
    longest: usize,
}

impl BatchJobs<'_> {
    /// Makes the jobs, unless somebody did.
    pub(super) async fn open(&self) -> Result<(), RedisError> {
        let mut call = self.jobs.open.prepare_invoke();
        call.key(&self.stream).arg(GROUP).arg(FIELD).arg(self.parts).arg(KEPT_MS);
        self.jobs.redis.run::<i64>(&call).await.map(drop)
    }

    /// A job that nobody has, or one whose owner has been silent for a lease.
    pub(super) async fn claim(&self) -> Result<Option<Job>, RedisError> {
        for _ in 0..MAX_STRANGE_JOBS {
            let mut read = cmd("XREADGROUP");
            read.arg("GROUP").arg(GROUP).arg(&self.jobs.consumer).arg("COUNT").arg(1);
            let reply: Option<StreamReadReply> =
                self.jobs.redis.query(read.arg("STREAMS").arg(&self.stream).arg(">")).await?;
            let entry = reply.into_iter().flat_map(|reply| reply.keys).flat_map(|key| key.ids).next();
            let (entry, taken_over) = match entry {
                Some(entry) => (entry, false),
                None => match self.take_over().await? {
                    Some(entry) => (entry, true),
                    None => return Ok(None),
                },
            };
            match self.part_of(&entry) {
                Some(part) => return Ok(Some(Job { id: entry.id, part, taken_over })),
                None => {
                    let mut strange = cmd("XACK");
                    let strange = strange.arg(&self.stream).arg(GROUP).arg(&entry.id);
                    self.jobs.redis.query::<i64>(strange).await?;
                }
            }
        }
        Err(RedisError::Unreadable { reason: "the stream of jobs is full of what are none".to_owned() })
    }

    async fn take_over(&self) -> Result<Option<StreamId>, RedisError> {
        let mut cursor = "0-0".to_owned();
        for _ in 0..self.parts.div_ceil(LOOKED_THROUGH) {
            let mut claim = cmd("XAUTOCLAIM");
            claim.arg(&self.stream).arg(GROUP).arg(&self.jobs.consumer).arg(self.jobs.lease_ms);
            // The server looks through ten times as many as it may claim.
            claim.arg(&cursor).arg("COUNT").arg(1);
            let reply: StreamAutoClaimReply = self.jobs.redis.query(&claim).await?;
            if let Some(entry) = reply.claimed.into_iter().next() {
                return Ok(Some(entry));
            }
            if reply.next_stream_id == "0-0" {
                break;
            }
            cursor = reply.next_stream_id;
        }
        Ok(None)
    }

    fn part_of(&self, entry: &StreamId) -> Option<usize> {
        entry.get::<usize>(FIELD).filter(|part| *part < self.parts)
    }

    /// Says that these jobs are still worked on; how many of them somebody else has by now.
    pub(super) async fn renew(&self, ids: &[String]) -> Result<u64, RedisError> {
        let mut call = self.jobs.renew.prepare_invoke();
        call.key(&self.stream).arg(GROUP).arg(&self.jobs.consumer).arg(KEPT_MS).arg(ids);
        self.jobs.redis.run(&call).await
    }

    /// How often that has to be said, whatever the lease of the others.
    pub(super) fn renewal(&self) -> Duration {
        Duration::from_millis((self.jobs.lease_ms / 4).clamp(1, MAX_RENEWAL_MS))
    }

    /// Puts what came of a job where the others find it. True where it was the last one, and putting the batch together is
    /// ours.
    pub(super) async fn finish(&self, job: &Job, part: &Part) -> Result<bool, RedisError> {
        let mut call = self.jobs.finish.prepare_invoke();
        call.key(&self.stream).key(&self.opened).key(&self.assembler);
        call.arg(GROUP).arg(&job.id).arg(job.part).arg(encode(part)).arg(self.parts).arg(KEPT_MS);
        call.arg(&self.jobs.consumer).arg(self.jobs.lease_ms);
        self.jobs.redis.run::<i64>(&call).await.map(|last| last == 1)
    }

    /// What others say of these parts, as far as it decodes.
    pub(super) async fn parts(&self, wanted: &[usize]) -> Result<BTreeMap<usize, Option<Part>>, RedisError> {
        let mut call = self.jobs.parts.prepare_invoke();
        call.key(&self.opened).arg(self.longest).arg(wanted);
        let found: Vec<Vec<u8>> = self.jobs.redis.run(&call).await?;
        let there = wanted.iter().zip(found).filter(|(_, bytes)| !bytes.is_empty());
        Ok(there.map(|(part, bytes)| (*part, decode(&bytes))).collect())
    }

    /// Whether putting the batch together is ours, for the time of a lease.
    pub(super) async fn assemble(&self) -> Result<bool, RedisError> {
        let mut set = cmd("SET");
        set.arg(&self.assembler).arg(&self.jobs.consumer).arg("NX").arg("PX").arg(self.jobs.lease_ms);
        self.jobs.redis.query::<Option<String>>(&set).await.map(|set| set.is_some())
    }

    /// Says that the sequencer has the hints.
    pub(super) async fn set_done(&self) -> Result<(), RedisError> {
        self.jobs.redis.query(cmd("SET").arg(&self.done).arg(1).arg("PX").arg(KEPT_MS)).await
    }

    /// Whether somebody says so.
    pub(super) async fn is_done(&self) -> Result<bool, RedisError> {
        self.jobs.redis.query::<i64>(cmd("EXISTS").arg(&self.done)).await.map(|there| there == 1)
    }
}

/// The length of the release, u32 big-endian, the release, the hints.
fn encode(part: &Part) -> Vec<u8> {
    let release = part.release.encode();
    let length = u32::try_from(release.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], &release, &part.hints.encode()].concat()
}

fn decode(bytes: &[u8]) -> Option<Part> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (release, hints) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    Some(Part { release: Release::decode(release).ok()?, hints: BatchHints::decode(hints).ok()? })
}

/// The most bytes that a part of these sub-batches has: all malformed.
fn max_bytes(view: &BatchView, places: &Range<usize>) -> usize {
    const FIXED: usize = 256;
    const ITEM: usize = 1 + 48 + 288;
    FIXED + 48 * places.len() + ITEM * view.part(places).len()
}

#[cfg(test)]
mod tests {
    use blindfold_protocol::{B256, HintEntry};

    use super::*;

    #[test]
    fn a_part_is_read_as_it_was_written_and_nothing_else_is() {
        let (number, header_hash) = (7, B256::repeat_byte(1));
        let entries = vec![HintEntry::Key([2; 16]), HintEntry::Malformed([3; 48])];
        let release = Release { number, header_hash, pds: vec![[4; 48]] };
        let part =
            Part { release, hints: BatchHints { number, header_hash, entries, blindings: Vec::new() } };
        let bytes = encode(&part);
        assert_eq!(decode(&bytes), Some(part));
        for end in 0..bytes.len() {
            assert_eq!(decode(&bytes[..end]), None, "{end}");
        }
        assert_eq!(decode(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(decode(&[255; 64]), None);
    }
}
