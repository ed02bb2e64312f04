//! Spans arrive at a collector as OTLP has them; where it refuses, or is away, nobody waits for it.
#![allow(clippy::unwrap_used, missing_docs)]

use std::{fs, net::SocketAddr, time::Duration};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use blindfold_otlp::{Exporter, TraceSettings};
use blindfold_telemetry::traces::{Span, SpanSink, TraceId};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest, common::v1::any_value::Value, trace::v1::Span as Sent,
};
use prost::Message;
use tokio::{
    net::TcpListener,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::timeout,
};

type Requests = UnboundedReceiver<(HeaderMap, ExportTraceServiceRequest)>;
type Taken = (StatusCode, UnboundedSender<(HeaderMap, ExportTraceServiceRequest)>);

/// How long spans may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);

async fn take(State((status, requests)): State<Taken>, headers: HeaderMap, body: Bytes) -> StatusCode {
    requests.send((headers, ExportTraceServiceRequest::decode(body).unwrap())).unwrap();
    status
}

async fn collector(status: StatusCode) -> (SocketAddr, Requests) {
    let (sender, requests) = unbounded_channel();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let app = Router::new().route("/v1/traces", post(take)).with_state((status, sender));
    drop(blindfold_runtime::spawn(async move { axum::serve(listener, app).await.unwrap() }));
    (addr, requests)
}

fn settings(addr: SocketAddr) -> TraceSettings {
    TraceSettings {
        url: Some(format!("http://{addr}/v1/traces")),
        instance: Some("sequencer-2".to_owned()),
        ..TraceSettings::default()
    }
}

fn span(byte: u8, name: &'static str, is_root: bool) -> Span {
    let start = std::time::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
    let end = start + Duration::from_micros(170);
    Span { id: TraceId::of(&[byte; 32]), is_root, name, start, end, number: is_root.then_some(41) }
}

async fn next(requests: &mut Requests) -> (HeaderMap, ExportTraceServiceRequest) {
    timeout(PATIENCE, requests.recv()).await.expect("no request came").unwrap()
}

/// Ending blocks its thread, and what it waits for runs here.
async fn end(exporter: Exporter) {
    blindfold_runtime::blocking(move || exporter.end()).await.unwrap();
}

fn spans(request: &ExportTraceServiceRequest) -> Vec<Sent> {
    let scopes = request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
    scopes.flat_map(|scope| scope.spans.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_arrive_under_their_root_with_the_role_and_the_headers() {
    let (addr, mut requests) = collector(StatusCode::OK).await;
    let dir = tempfile::tempdir().unwrap();
    let headers_file = dir.path().join("headers");
    fs::write(&headers_file, "Authorization: Bearer a%2Fb\n").unwrap();
    let settings = TraceSettings { headers_file: Some(headers_file), ..settings(addr) };
    let exporter = Exporter::start(&settings, "sequencer", "0.1.0").unwrap().unwrap();
    exporter.take(span(7, "order", true));
    exporter.take(span(7, "certify", false));
    end(exporter).await;

    let (headers, request) = next(&mut requests).await;
    assert_eq!(headers["authorization"], "Bearer a%2Fb");
    assert_eq!(headers["content-type"], "application/x-protobuf");
    let resource = request.resource_spans[0].resource.as_ref().unwrap();
    let named = |key: &str| {
        let found = resource.attributes.iter().find(|attribute| attribute.key == key);
        found.and_then(|attribute| attribute.value.clone()).and_then(|value| value.value)
    };
    let text = |text: &str| Some(Value::StringValue(text.to_owned()));
    assert_eq!(named("service.name"), text("sequencer"));
    assert_eq!(named("service.namespace"), text("blindfold"));
    assert_eq!(named("service.instance.id"), text("sequencer-2"));

    let [root, part] = <[Sent; 2]>::try_from(spans(&request)).unwrap();
    assert_eq!((root.name.as_str(), part.name.as_str()), ("order", "certify"));
    assert_eq!((&root.trace_id[..], &part.trace_id[..]), (&[7; 16][..], &[7; 16][..]));
    assert_eq!((&root.span_id[..], root.parent_span_id.len()), (&[7; 8][..], 0));
    assert_eq!(part.parent_span_id, root.span_id);
    assert_ne!(part.span_id, root.span_id);
    assert_eq!(root.start_time_unix_nano, 1_700_000_000_123_000_000);
    assert_eq!(root.end_time_unix_nano, 1_700_000_000_123_170_000);
    assert_eq!(root.attributes[0].key, "blindfold.number");
    assert_eq!(root.attributes[0].value.as_ref().unwrap().value, Some(Value::IntValue(41)));
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_come_without_an_end_too() {
    let (addr, mut requests) = collector(StatusCode::OK).await;
    let exporter = Exporter::start(&settings(addr), "full-node", "0.1.0").unwrap().unwrap();
    exporter.take(span(1, "execute", false));
    assert_eq!(spans(&next(&mut requests).await.1).len(), 1);
    end(exporter).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_refuses_or_is_away_keeps_nobody() {
    let (addr, mut requests) = collector(StatusCode::SERVICE_UNAVAILABLE).await;
    let exporter = Exporter::start(&settings(addr), "full-node", "0.1.0").unwrap().unwrap();
    exporter.take(span(1, "execute", false));
    next(&mut requests).await;

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    // It takes connections, and answers nobody.
    let silent = settings(listener.local_addr().unwrap());
    let to_nobody = Exporter::start(&silent, "full-node", "0.1.0").unwrap().unwrap();
    // Many times what may wait: nobody waits for a place.
    for _ in 0..100_000 {
        to_nobody.take(span(1, "execute", false));
        exporter.take(span(1, "execute", false));
    }
    // The end waits for a silent collector for two seconds, not for ever.
    timeout(PATIENCE, end(to_nobody)).await.expect("it ends");
    timeout(PATIENCE, end(exporter)).await.expect("it ends");
}

#[tokio::test]
async fn without_a_url_there_is_none_and_a_wrong_one_is_refused() {
    assert!(Exporter::start(&TraceSettings::default(), "gateway", "0.1.0").unwrap().is_none());
    let wrong = TraceSettings { url: Some("grpc://collector:4317".to_owned()), ..TraceSettings::default() };
    assert!(Exporter::start(&wrong, "gateway", "0.1.0").is_err());
}
