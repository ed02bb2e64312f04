//! Clients of a server for the tests.
#![allow(dead_code)]

use std::path::PathBuf;

use blindfold_redis::{Redis, RedisMetrics, RedisSettings};
use blindfold_runtime::Tasks;
use blindfold_servers::Redis as Server;
use blindfold_telemetry::Metrics;

/// A process: its connection, and what it counts.
pub struct Client {
    pub redis: Redis,
    pub metrics: RedisMetrics,
    pub tasks: Tasks,
}

impl Client {
    pub fn of(server: &Server) -> Self {
        Self::with(server.url(), "a", None)
    }

    /// One that does not take a server for silent on a machine that is busy.
    pub fn with(url: String, deployment: &str, password_file: Option<PathBuf>) -> Self {
        let (url, patience_ms) = (Some(url), 10_000);
        let (connect_timeout_ms, answer_timeout_ms) = (patience_ms, patience_ms);
        let settings = RedisSettings { url, password_file, connect_timeout_ms, answer_timeout_ms };
        Self::by(&settings, deployment)
    }

    pub fn by(settings: &RedisSettings, deployment: &str) -> Self {
        let options = settings.options(deployment).expect("good settings").expect("a server");
        let metrics = RedisMetrics::new(&Metrics::new("test", "0").expect("a registry")).expect("metrics");
        let tasks = Tasks::new();
        let redis = Redis::start(options, metrics.clone(), &tasks.spawner());
        Self { redis, metrics, tasks }
    }

    pub fn errors(&self, kind: &str) -> u64 {
        self.metrics.errors.get(&[kind]).get()
    }
}
