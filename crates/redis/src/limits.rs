//! Token buckets that several processes draw from.
//!
//! A bucket holds at most its burst, and gains its rate every second. One script at the server looks at all buckets of a call,
//! by the server's own clock, and takes from all of them or from none. A bucket that would be full again is forgotten, so that
//! those of many addresses need no more memory than those of the last seconds.
//!
//! A bucket that was lost, holds what is none, or is of the future by the server's clock, is a full one. So whoever empties
//! Redis gives everybody one burst; and where a call fails, its caller goes on with buckets of its own ([`Limits::take`]).

use redis::Script;

use crate::{Redis, RedisError};

/// Most buckets of one call.
pub const MAX_BUCKETS: usize = 8;
/// Longest name of a bucket, in bytes.
pub const MAX_NAME_BYTES: usize = 256;

/// Keys: the buckets. Arguments: how much is taken of each, then burst and rate of each.
///
/// `1` where it was taken. `%.0f` since the server writes numbers with 14 digits otherwise, which microseconds since 1970 have
/// more of.
const TAKE: &str = r"
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local cost = tonumber(ARGV[1])
local levels = {}
local allowed = 1
for place, key in ipairs(KEYS) do
    local burst, rate = tonumber(ARGV[2 * place]), tonumber(ARGV[2 * place + 1])
    local level = burst
    local kind = redis.call('TYPE', key).ok
    if kind == 'hash' then
        local held = redis.call('HMGET', key, 'level', 'at')
        local was, at = tonumber(held[1] or ''), tonumber(held[2] or '')
        if was and at and was >= 0 and at >= 0 and at <= now then
            level = math.min(burst, was + (now - at) * rate / 1000000)
        end
    elseif kind ~= 'none' then
        redis.call('DEL', key)
    end
    levels[place] = level
    if level < cost then allowed = 0 end
end
if allowed == 0 then return 0 end
for place, key in ipairs(KEYS) do
    local burst, rate = tonumber(ARGV[2 * place]), tonumber(ARGV[2 * place + 1])
    local level = math.min(burst, levels[place] - cost)
    redis.call('HSET', key, 'level', string.format('%.6f', level), 'at', string.format('%.0f', now))
    redis.call('PEXPIRE', key, string.format('%.0f', math.ceil((burst - level) * 1000 / rate) + 1))
end
return 1
";

/// A bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket<'a> {
    /// Whose it is, and for what: `calls:192.0.2.1`. At most [`MAX_NAME_BYTES`].
    pub name: &'a str,
    /// The most that it holds, in tokens.
    pub burst: u32,
    /// What it gains in a second, in tokens; not zero.
    pub per_second: u32,
}

/// Buckets at a server.
#[derive(Clone, Debug)]
pub struct Limits {
    redis: Redis,
    script: std::sync::Arc<Script>,
}

impl Limits {
    /// Buckets at this server.
    pub fn new(redis: Redis) -> Self {
        Self { redis, script: std::sync::Arc::new(Script::new(TAKE)) }
    }

    /// Takes so many tokens from each of these buckets, or from none: false where one of them has fewer. About 30 µs at the
    /// server.
    ///
    /// # Errors
    /// As [`Redis::query`]: the caller has no answer and asks buckets of its own. [`RedisError::Unreadable`] also for buckets
    /// that cannot be: none or more than [`MAX_BUCKETS`], a rate of zero, a name that is too long.
    pub async fn take(&self, buckets: &[Bucket<'_>], tokens: u32) -> Result<bool, RedisError> {
        self.change(buckets, tokens.into()).await
    }

    /// Gives so many tokens back to each of these buckets: what they were taken for did not come about. A bucket never has more
    /// than its burst.
    ///
    /// # Errors
    /// As [`Limits::take`].
    pub async fn give_back(&self, buckets: &[Bucket<'_>], tokens: u32) -> Result<(), RedisError> {
        self.change(buckets, -i64::from(tokens)).await.map(drop)
    }

    async fn change(&self, buckets: &[Bucket<'_>], tokens: i64) -> Result<bool, RedisError> {
        let possible = |bucket: &Bucket<'_>| bucket.per_second > 0 && bucket.name.len() <= MAX_NAME_BYTES;
        if buckets.is_empty() || buckets.len() > MAX_BUCKETS || !buckets.iter().all(possible) {
            return Err(RedisError::Unreadable { reason: "no such bucket can be".to_owned() });
        }
        let mut call = self.script.prepare_invoke();
        call.arg(tokens);
        for bucket in buckets {
            call.key(self.redis.key(format_args!("limit:{}", bucket.name)));
            call.arg(bucket.burst).arg(bucket.per_second);
        }
        match self.redis.run::<i64>(&call).await? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(RedisError::Unreadable { reason: format!("{other} in place of 0 or 1") }),
        }
    }
}
