//! A collector of traces, as a run has it: it keeps which parts each envelope's trace has.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use anyhow::{Result, bail};
use axum::{Router, body::Bytes, extract::State, http::StatusCode, routing::post};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest, common::v1::any_value::Value,
};
use parking_lot::Mutex;
use prost::Message;
use tokio::{
    net::TcpListener,
    time::{Duration, Instant, sleep},
};

/// How often it is looked whether a trace is whole.
const LOOK: Duration = Duration::from_millis(100);

/// What one role did.
type Part = (String, String);

/// What was told of one envelope.
#[derive(Default)]
struct Trace {
    parts: BTreeSet<Part>,
    /// Ids of spans that are part of no other.
    roots: BTreeSet<Vec<u8>>,
    /// Ids of those that spans are parts of.
    parents: BTreeSet<Vec<u8>>,
}

impl Trace {
    /// Whether it is one tree: all spans are parts of the one root, which the envelope's id names.
    fn is_one(&self) -> bool {
        self.roots.len() == 1 && self.parents == self.roots
    }
}

#[derive(Clone, Default)]
struct Traces(Arc<Mutex<BTreeMap<Vec<u8>, Trace>>>);

/// Takes traces by OTLP over HTTP, for as long as the process runs.
pub struct Collector {
    /// What the settings of roles name.
    pub url: String,
    traces: Traces,
}

impl Collector {
    /// Listens on a free port of this machine.
    ///
    /// # Errors
    /// When there is none.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/v1/traces", listener.local_addr()?);
        let traces = Traces::default();
        let app = Router::new().route("/v1/traces", post(take)).with_state(traces.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(Self { url, traces })
    }

    /// Waits until the trace of some envelope is one tree and has all these parts: each what a role did, by the role's name and its own.
    ///
    /// # Errors
    /// When none has in time; it says what the one with most of them lacks.
    pub async fn wait_for_whole(&self, parts: &[(&str, &str)], patience: Duration) -> Result<()> {
        let wanted: BTreeSet<Part> =
            parts.iter().map(|(role, part)| ((*role).to_owned(), (*part).to_owned())).collect();
        let deadline = Instant::now() + patience;
        loop {
            let lacking = {
                let traces = self.traces.0.lock();
                let whole = traces.values().filter(|trace| trace.is_one());
                let of_each = whole.map(|trace| wanted.difference(&trace.parts).cloned().collect::<Vec<_>>());
                of_each.min_by_key(Vec::len)
            };
            match lacking {
                Some(lacking) if lacking.is_empty() => return Ok(()),
                lacking if Instant::now() > deadline => {
                    bail!("no envelope's trace is whole; lacking: {lacking:?}")
                }
                _ => sleep(LOOK).await,
            }
        }
    }
}

async fn take(State(traces): State<Traces>, body: Bytes) -> StatusCode {
    let Ok(request) = ExportTraceServiceRequest::decode(body) else { return StatusCode::BAD_REQUEST };
    let mut traces = traces.0.lock();
    for resource in request.resource_spans {
        let attributes = resource.resource.map(|resource| resource.attributes).unwrap_or_default();
        let named = attributes.into_iter().find(|attribute| attribute.key == "service.name");
        let Some(Value::StringValue(role)) = named.and_then(|named| named.value?.value) else { continue };
        for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            let trace = traces.entry(span.trace_id).or_default();
            match span.parent_span_id.is_empty() {
                true => trace.roots.insert(span.span_id),
                false => trace.parents.insert(span.parent_span_id),
            };
            trace.parts.insert((role.clone(), span.name));
        }
    }
    StatusCode::OK
}
