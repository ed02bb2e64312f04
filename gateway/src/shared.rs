//! Counts that several gateways share in Redis.

use std::{net::IpAddr, time::Duration};

use async_trait::async_trait;
use blindfold_protocol::Address;
use blindfold_redis::{
    Redis,
    limits::{Bucket, Limits},
};
use blindfold_rpc::SourceLimits;
use blindfold_runtime::{Instant, now};
use parking_lot::Mutex;

use crate::{admission::SharedLimits, config::GatewayConfig, limits::REDIS_PAUSE_MS};

/// Token buckets at a Redis server. While it does not answer it is left alone for a moment, so that an outage costs one
/// envelope in many its time-out.
pub struct RedisLimits {
    limits: Limits,
    source: (u32, u32),
    payer: (u32, u32),
    paused_until: Mutex<Option<Instant>>,
}

impl RedisLimits {
    /// Buckets at this server, as large as these settings say.
    pub fn new(redis: Redis, config: &GatewayConfig) -> Self {
        Self {
            limits: Limits::new(redis),
            source: (config.source_burst, config.source_rate_per_second),
            payer: (config.payer_burst, config.payer_rate_per_second),
            paused_until: Mutex::new(None),
        }
    }

    async fn take(&self, name: &str, (burst, per_second): (u32, u32)) -> Option<bool> {
        if self.paused_until.lock().is_some_and(|until| now() < until) {
            return None;
        }
        match self.limits.take(&[Bucket { name, burst, per_second }], 1).await {
            Ok(allowed) => Some(allowed),
            Err(fault) => {
                tracing::debug!(%fault, "counting without Redis for a moment");
                *self.paused_until.lock() = Some(now() + Duration::from_millis(REDIS_PAUSE_MS));
                None
            }
        }
    }
}

#[async_trait]
impl SharedLimits for RedisLimits {
    async fn allow_source(&self, source: IpAddr) -> Option<bool> {
        self.take(&format!("source:{}", SourceLimits::counted(source)), self.source).await
    }

    async fn allow_payer(&self, payer: Address) -> Option<bool> {
        self.take(&format!("payer:{payer:#x}"), self.payer).await
    }

    async fn give_back_payer(&self, payer: Address) {
        let (name, (burst, per_second)) = (format!("payer:{payer:#x}"), self.payer);
        // What is lost so fills up again by itself.
        drop(self.limits.give_back(&[Bucket { name: &name, burst, per_second }], 1).await);
    }
}
