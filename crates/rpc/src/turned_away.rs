//! Connections for which there is no place: they are told so, and when to come back (J-8), and cost little. And the other
//! side: clients that read it.

use std::{
    convert::Infallible,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    http::{HeaderValue, Request, Response, StatusCode, header},
};
use futures::{StreamExt, future::BoxFuture};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use jsonrpsee::{
    core::{
        BoxError, ClientError,
        http_helpers::{HttpError, read_body},
    },
    types::ErrorObjectOwned,
};
use jsonrpsee_http_client::transport;
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tower::{Layer, Service};

use crate::{
    RpcError, code,
    limits::{MAX_REQUEST_BYTES, TURNING_AWAY_MS},
    peers::{Overload, TurnedAway},
};

/// Longest such answer that a client reads.
const MAX_ANSWER_BYTES: u32 = 4 << 10;
/// Bytes of a request's head that are read at once.
const HEAD_BYTES: usize = 16 << 10;
const MS_PER_SECOND: u64 = 1_000;

#[derive(Serialize, Deserialize)]
struct Answer {
    jsonrpc: String,
    id: (),
    error: ErrorObjectOwned,
}

/// The refusal of a connection.
pub(crate) fn refusal(overload: Overload, time: Duration) -> RpcError {
    match overload {
        Overload::ConnectionsOfAddress => {
            RpcError::busy("too_many_connections", "this address has as many connections as it may")
                .after(time)
        }
        Overload::Connections | Overload::Addresses => {
            RpcError::busy("connections_full", "all places for connections are taken").after(time)
        }
    }
}

/// The refusal of a call for which its address has no allowance left.
pub(crate) fn rate_limited(time: Duration) -> RpcError {
    RpcError::busy("rate_limited", "too many calls from this address").after(time)
}

/// What a request gets on a connection that is refused: a JSON-RPC error, the time to come back as a header too, and the end
/// of the connection.
pub(crate) fn answer(overload: Overload, refusal: RpcError) -> Response<Body> {
    let status = match overload {
        Overload::ConnectionsOfAddress => StatusCode::TOO_MANY_REQUESTS,
        Overload::Connections | Overload::Addresses => StatusCode::SERVICE_UNAVAILABLE,
    };
    let mut response = response(status, refusal);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The same, where the connection goes on.
pub(crate) fn response(status: StatusCode, refusal: RpcError) -> Response<Body> {
    let seconds = refusal.retry_after_ms.unwrap_or_default().div_ceil(MS_PER_SECOND);
    let answer = Answer { jsonrpc: "2.0".to_owned(), id: (), error: refusal.into() };
    let mut response = Response::new(Body::from(serde_json::to_string(&answer).unwrap_or_default()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

/// Reads the first request of a refused connection and answers it; then the connection ends. Without reading it first,
/// what is written could be lost with what was not read.
pub(crate) async fn tell(stream: TcpStream, away: TurnedAway) {
    let TurnedAway { overload, refusal, .. } = &away;
    let service = hyper::service::service_fn(|request: hyper::Request<Incoming>| async move {
        skip(request.into_body()).await;
        Ok::<_, Infallible>(answer(*overload, refusal.clone()))
    });
    let patience = Duration::from_millis(TURNING_AWAY_MS);
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .keep_alive(false)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    // Whether it was read is its caller's matter.
    drop(tokio::time::timeout(patience, connection).await);
}

/// Reads a request's body, as far as one may be long, and keeps nothing of it.
pub(crate) async fn skip<B>(body: B)
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    let mut left = u64::from(MAX_REQUEST_BYTES);
    let mut parts = Body::new(body).into_data_stream();
    while let Some(Ok(part)) = parts.next().await {
        left = left.saturating_sub(part.len() as u64);
        if left == 0 {
            return;
        }
    }
}

/// Reads what a server says for which there was no place, in place of the status alone.
#[derive(Clone, Debug)]
pub struct ReadTurnedAway<S>(S);

/// Puts a [`ReadTurnedAway`] in front of a client's service.
#[derive(Clone, Debug)]
pub(crate) struct ReadTurnedAwayLayer;

impl<S> Layer<S> for ReadTurnedAwayLayer {
    type Service = ReadTurnedAway<S>;

    fn layer(&self, service: S) -> ReadTurnedAway<S> {
        ReadTurnedAway(service)
    }
}

impl<S, B, R> Service<Request<B>> for ReadTurnedAway<S>
where
    S: Service<Request<B>, Response = Response<R>, Error = transport::Error>,
    S::Future: Send + 'static,
    R: HttpBody<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Response = Response<R>;
    type Error = transport::Error;
    type Future = BoxFuture<'static, Result<Response<R>, transport::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), transport::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let answered = self.0.call(request);
        Box::pin(async move {
            let response = answered.await?;
            let status = response.status();
            if !means_no_room(status) {
                return Ok(response);
            }
            let (parts, body) = response.into_parts();
            Err(match read(&parts.headers, body).await {
                Some(refusal) => transport::Error::Http(HttpError::Stream(Box::new(refusal))),
                None => transport::Error::Rejected { status_code: status.into() },
            })
        })
    }
}

async fn read<R>(headers: &axum::http::HeaderMap, body: R) -> Option<RpcError>
where
    R: HttpBody<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    let (bytes, _) = read_body(headers, body, MAX_ANSWER_BYTES).await.ok()?;
    parse(&bytes)
}

fn means_no_room(status: StatusCode) -> bool {
    matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
}

fn parse(body: &[u8]) -> Option<RpcError> {
    let Answer { error, .. } = serde_json::from_slice(body).ok()?;
    Some(RpcError::from(error)).filter(|refusal| refusal.code == code::BUSY)
}

/// The refusal of a WebSocket, where it says when to come back. The answer's body is what came together with its head.
pub(crate) fn of_handshake(answer: &Response<Option<Vec<u8>>>) -> Option<RpcError> {
    if !means_no_room(answer.status()) {
        return None;
    }
    let told = answer.body().as_deref().and_then(parse).filter(|refusal| refusal.retry_after_ms.is_some());
    told.or_else(|| {
        // What stands between has no words of ours.
        let seconds = answer.headers().get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse::<u64>().ok()?;
        let message = format!("there is no place now (HTTP {})", answer.status().as_u16());
        Some(RpcError::busy("connections_full", message).after(Duration::from_secs(seconds)))
    })
}

/// The refusal of a server that had no place for the connection, if that is what an error comes from: nothing was called.
pub(crate) fn turned_away(error: &ClientError) -> Option<&RpcError> {
    let ClientError::Transport(cause) = error else { return None };
    // The library names no cause of these, only what they hold.
    match cause.downcast_ref() {
        Some(transport::Error::Http(HttpError::Stream(cause))) => cause.downcast_ref(),
        Some(_) => None,
        None => cause.downcast_ref(),
    }
}
