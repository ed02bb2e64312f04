//! What several processes of one deployment share in Redis, and can do without.
//!
//! - [`Redis`]: one connection for all tasks of a process, which comes back by itself. A call answers, or fails by name,
//!   within a set time.
//! - [`limits`]: token buckets that several processes draw from.
//!
//! **Redis may be lost at any time.** It may be away, slow, emptied by somebody, or hold what somebody else wrote. So nothing
//! is kept there that is not elsewhere or cannot be done without, every caller has a way to go on when a call fails, and what
//! is read is decoded as input from outside: of the expected type, of a bounded length, and believed in nothing that would
//! do harm. What is lost with Redis is speed.
//!
//! The protocol is the crate `redis`'s. Sockets, TLS ([`blindfold_tls`]), reconnection and time-outs are here: that crate's own
//! TLS takes no configuration of ours, and its manager of connections lets callers wait while it connects.
//!
//! ```no_run
//! # async fn example(tasks: &blindfold_runtime::Tasks, metrics: &blindfold_telemetry::Metrics)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! use blindfold_redis::{Redis, RedisMetrics, RedisSettings, redis};
//!
//! let settings = RedisSettings { url: Some("redis://10.0.0.5:6379".to_owned()), ..RedisSettings::default() };
//! if let Some(options) = settings.options("a-deployment")? {
//!     let redis = Redis::start(options, RedisMetrics::new(metrics)?, &tasks.spawner());
//!     let mut get = redis::cmd("GET");
//!     match redis.query::<Option<u64>>(get.arg(redis.key("count"))).await {
//!         Ok(count) => println!("{count:?}"),
//!         Err(fault) => println!("going on without: {fault}"),
//!     }
//! }
//! # Ok(()) }
//! ```

mod client;
mod connection;
mod error;
pub mod limits;
mod metrics;
mod settings;
mod url;

pub use client::Redis;
pub use connection::MAX_ANSWER_BYTES;
pub use error::RedisError;
pub use metrics::RedisMetrics;
pub use redis;
pub use settings::{RedisOptions, RedisSettings};
pub use url::RedisUrl;
