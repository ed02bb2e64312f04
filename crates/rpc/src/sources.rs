//! Limits of how many envelopes come from where: one token bucket each, in a table of bounded size.

use std::{
    collections::HashMap,
    hash::Hash,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use blindfold_runtime::Instant;

use crate::peers::group;

/// Token buckets by key.
#[derive(Debug)]
pub struct TokenBuckets<K> {
    rate_per_second: f64,
    burst: f64,
    max_keys: usize,
    buckets: Mutex<HashMap<K, Bucket>>,
}

/// Token buckets by network address. An IPv6 address counts by its /64, which is what one customer gets.
#[derive(Debug)]
pub struct SourceLimits(TokenBuckets<IpAddr>);

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl SourceLimits {
    /// `rate_per_second` tokens flow into a bucket of `burst`; at most `max_sources` buckets are kept.
    pub fn new(rate_per_second: u32, burst: u32, max_sources: usize) -> Self {
        Self(TokenBuckets::new(rate_per_second, burst, max_sources))
    }

    /// Takes one token of this address; false when it has none left.
    pub fn allow(&self, source: IpAddr, now: Instant) -> bool {
        self.0.allow(group(source), now)
    }

    /// How long an address without a token waits for the next one at least.
    pub fn time_for_one(&self) -> Duration {
        self.0.time_for_one()
    }

    /// The address that a source counts by.
    pub fn counted(source: IpAddr) -> IpAddr {
        group(source)
    }
}

impl<K: Eq + Hash> TokenBuckets<K> {
    /// `rate_per_second` tokens flow into a bucket of `burst`; at most `max_keys` buckets are kept.
    pub fn new(rate_per_second: u32, burst: u32, max_keys: usize) -> Self {
        Self {
            rate_per_second: rate_per_second.into(),
            burst: burst.into(),
            max_keys,
            buckets: Mutex::new(HashMap::new()),
        }
    }

    /// Takes one token of this key; false when it has none left, or when all that are remembered are busy.
    pub fn allow(&self, key: K, now: Instant) -> bool {
        // Nothing panics while the lock is held.
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if !buckets.contains_key(&key) && buckets.len() >= self.max_keys {
            // A full bucket says nothing that a missing one does not: forget those first.
            let (rate, burst) = (self.rate_per_second, self.burst);
            buckets.retain(|_, bucket| {
                bucket.tokens + now.saturating_duration_since(bucket.filled).as_secs_f64() * rate < burst
            });
            if buckets.len() >= self.max_keys {
                // Every remembered key is busy: a flood from many. Newcomers wait.
                return false;
            }
        }
        let bucket = buckets.entry(key).or_insert(Bucket { tokens: self.burst, filled: now });
        let passed = now.saturating_duration_since(bucket.filled).as_secs_f64();
        bucket.tokens = (bucket.tokens + passed * self.rate_per_second).min(self.burst);
        bucket.filled = now;
        if bucket.tokens < 1.0 {
            return false;
        }
        bucket.tokens -= 1.0;
        true
    }

    /// How long a key without a token waits for the next one at least.
    pub fn time_for_one(&self) -> Duration {
        Duration::try_from_secs_f64(1.0 / self.rate_per_second).unwrap_or(Duration::MAX)
    }

    /// Gives a token of this key back: what it was taken for did not come about.
    pub fn give_back(&self, key: &K) {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = buckets.get_mut(key) {
            bucket.tokens = (bucket.tokens + 1.0).min(self.burst);
        }
    }
}

#[cfg(test)]
mod tests {
    use blindfold_runtime::now;

    use super::*;

    #[test]
    fn burst_then_rate() {
        let limits = SourceLimits::new(10, 3, 100);
        let start = now();
        let address: IpAddr = "10.0.0.1".parse().unwrap();
        for _ in 0..3 {
            assert!(limits.allow(address, start));
        }
        assert!(!limits.allow(address, start));
        assert!(limits.allow("10.0.0.2".parse().unwrap(), start), "others are not disturbed");
        assert!(limits.allow(address, start + Duration::from_millis(101)));
        assert!(!limits.allow(address, start + Duration::from_millis(102)));
    }

    #[test]
    fn one_ipv6_network_is_one_source() {
        let limits = SourceLimits::new(1, 1, 100);
        let now = now();
        assert!(limits.allow("2001:db8::1".parse().unwrap(), now));
        assert!(!limits.allow("2001:db8::2".parse().unwrap(), now));
        assert!(limits.allow("2001:db8:0:1::1".parse().unwrap(), now));
        assert!(limits.allow("::ffff:10.0.0.1".parse().unwrap(), now));
        assert!(!limits.allow("10.0.0.1".parse().unwrap(), now));
    }

    #[test]
    fn the_table_is_bounded_and_forgets_idle_sources() {
        let limits = SourceLimits::new(1, 1, 2);
        let now = now();
        assert!(limits.allow("10.0.0.1".parse().unwrap(), now));
        assert!(limits.allow("10.0.0.2".parse().unwrap(), now));
        assert!(!limits.allow("10.0.0.3".parse().unwrap(), now));
        assert!(limits.allow("10.0.0.3".parse().unwrap(), now + Duration::from_secs(2)));
        assert!(limits.0.buckets.lock().unwrap().len() <= 2);
    }
}
