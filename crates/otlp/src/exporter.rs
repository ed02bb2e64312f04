//! Spans, as OpenTelemetry has them, in batches to the collector.

use std::{borrow::Cow, time::Duration};

use blindfold_telemetry::traces::{Span, SpanSink, Traces};
use opentelemetry::{
    InstrumentationScope, KeyValue,
    trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState},
};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{
        BatchConfigBuilder, BatchSpanProcessor, IdGenerator, RandomIdGenerator, SpanData, SpanEvents,
        SpanLinks, SpanProcessor,
    },
};

use crate::{
    OtlpError, TraceSettings,
    client::{Client, SEND_TIMEOUT_MS},
};

/// Spans that wait to be sent; further ones are dropped. One is some 300 bytes.
const QUEUE_SPANS: usize = 16_384;
/// Spans in one request.
const REQUEST_SPANS: usize = 512;
/// How long spans wait for others at most.
const SEND_EVERY_MS: u64 = 1_000;
/// How long what waits at the end may take to be sent.
const END_TIMEOUT_MS: u64 = 2_000;

/// Sends the spans of a process. Whoever holds it ends it ([`end`](Self::end)), or what waits is lost.
#[derive(Clone, Debug)]
pub struct Exporter {
    processor: std::sync::Arc<BatchSpanProcessor>,
    scope: InstrumentationScope,
}

impl Exporter {
    /// Begins to send; nothing is connected before the first span. `None` where the settings name no collector.
    ///
    /// # Errors
    /// Settings that cannot be used.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(
        settings: &TraceSettings,
        role: &'static str,
        version: &'static str,
    ) -> Result<Option<Self>, OtlpError> {
        settings.check()?;
        let Some(url) = settings.checked_url()? else { return Ok(None) };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(url.as_str())
            .with_timeout(Duration::from_millis(SEND_TIMEOUT_MS))
            .with_http_client(Client::new(url, settings, tokio::runtime::Handle::current())?)
            .build()
            // The library's words may repeat the URL.
            .map_err(|_| OtlpError::Client)?;
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE_SPANS)
            .with_max_export_batch_size(REQUEST_SPANS)
            .with_scheduled_delay(Duration::from_millis(SEND_EVERY_MS))
            .build();
        let mut processor = BatchSpanProcessor::builder(exporter).with_batch_config(batches).build();
        processor.set_resource(&resource(settings, role, version));
        let scope = InstrumentationScope::builder("blindfold").with_version(version).build();
        Ok(Some(Self { processor: processor.into(), scope }))
    }

    /// Makes what this process traces come here.
    pub fn install(&self, settings: &TraceSettings) -> bool {
        Traces::new(Box::new(self.clone()), settings.share).install()
    }

    /// Sends what waits, for two seconds at most; takes nothing any more. Blocks.
    pub fn end(&self) {
        if let Err(error) = self.processor.shutdown_with_timeout(Duration::from_millis(END_TIMEOUT_MS)) {
            tracing::warn!(%error, "spans that waited were not sent");
        }
    }
}

fn resource(settings: &TraceSettings, role: &'static str, version: &'static str) -> Resource {
    let named = [
        KeyValue::new("service.namespace", "blindfold"),
        KeyValue::new("service.name", role),
        KeyValue::new("service.version", version),
    ];
    let instance = settings.instance.clone().map(|name| KeyValue::new("service.instance.id", name));
    Resource::builder_empty().with_attributes(named.into_iter().chain(instance)).build()
}

impl SpanSink for Exporter {
    fn take(&self, span: Span) {
        let root = SpanId::from_bytes(span.id.root);
        let (own, parent) = match span.is_root {
            true => (root, SpanId::INVALID),
            false => (RandomIdGenerator::default().new_span_id(), root),
        };
        let trace = TraceId::from_bytes(span.id.trace);
        let number = span.number.and_then(|number| i64::try_from(number).ok());
        self.processor.on_end(SpanData {
            span_context: SpanContext::new(trace, own, TraceFlags::SAMPLED, false, TraceState::default()),
            parent_span_id: parent,
            parent_span_is_remote: !span.is_root,
            span_kind: SpanKind::Internal,
            name: Cow::Borrowed(span.name),
            start_time: span.start,
            end_time: span.end,
            attributes: number.map(|number| KeyValue::new("blindfold.number", number)).into_iter().collect(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: self.scope.clone(),
        });
    }
}
