//! Traces of envelopes to an OpenTelemetry collector: [`Exporter`] is where a process's
//! [`traces`](blindfold_telemetry::traces) go. Spans are sent by OTLP over HTTP, in protobuf, in the background: where the
//! collector is slow or away they are dropped, and the role is none the slower.
//!
//! Source: the OpenTelemetry Protocol 1, section OTLP/HTTP.

mod client;
mod exporter;
mod settings;

pub use exporter::Exporter;
pub use settings::{OtlpError, TraceSettings};
