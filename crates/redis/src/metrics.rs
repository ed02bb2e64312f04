//! What is counted of the connections to Redis.

use blindfold_telemetry::{Counter, CounterSet, Gauge, Histogram, Metrics, MetricsError, SECONDS_BUCKETS};

use crate::RedisError;

/// The counters of a process's connections to Redis; at zero, too, where it has none.
#[derive(Clone)]
pub struct RedisMetrics {
    /// Connections that are open.
    pub connections: Gauge,
    /// Connections that were opened.
    pub connects: Counter,
    /// Calls that failed, and connections that could not be opened (`lost`).
    pub errors: CounterSet,
    /// How long calls took that were answered.
    pub seconds: Histogram,
}

impl RedisMetrics {
    /// Registers them.
    ///
    /// # Errors
    /// When they are registered already.
    pub fn new(registry: &Metrics) -> Result<Self, MetricsError> {
        Ok(Self {
            connections: registry.gauge("redis_connections", "Connections to Redis that are open")?,
            connects: registry.counter("redis_connects_total", "Connections to Redis that were opened")?,
            errors: registry.counters(
                "redis_errors_total",
                "Calls to Redis that failed, by kind; the role went on without",
                &[("kind", &RedisError::KINDS)],
            )?,
            seconds: registry.histogram(
                "redis_seconds",
                "How long Redis took for calls that it answered",
                SECONDS_BUCKETS,
            )?,
        })
    }
}
