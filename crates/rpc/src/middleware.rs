//! What every call passes before it reaches a method: rate, the list of what is served, and the form of errors.

use std::{borrow::Cow, fmt, future::Future, sync::Arc, time::Duration, time::Instant};

use jsonrpsee::{
    BatchResponseBuilder, MethodResponse, Methods, ResponsePayload,
    core::middleware::{Batch, BatchEntry, Notification, Request, RpcServiceT},
    types::ErrorObjectOwned,
};
use serde::Deserialize;
use tower::Layer;

use crate::{
    Passthrough, PeerAddress, RpcError, error::standard_reason, is_plaintext_method,
    limits::MAX_ERROR_DETAIL_CHARS, peers::Peers,
};

/// One finished call, for metrics.
#[derive(Clone, Copy, Debug)]
pub struct CallRecord<'a> {
    /// The method as it was asked for: any text. Count it under a bounded set of labels.
    pub method: &'a str,
    /// The error code, or none for a result.
    pub error_code: Option<i32>,
    /// How long it took.
    pub elapsed: Duration,
}

/// Is told of every finished call.
pub type CallObserver = Arc<dyn Fn(CallRecord<'_>) + Send + Sync>;

pub(crate) struct Shared {
    pub(crate) methods: Methods,
    pub(crate) passthrough: Option<Passthrough>,
    pub(crate) peers: Arc<Peers>,
    pub(crate) observer: Option<CallObserver>,
    pub(crate) max_response_bytes: u32,
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Shared").field("passthrough", &self.passthrough).finish_non_exhaustive()
    }
}

/// Makes [`Guard`]s.
#[derive(Clone, Debug)]
pub(crate) struct GuardLayer(pub(crate) Arc<Shared>);

impl<S> Layer<S> for GuardLayer {
    type Service = Guard<S>;

    fn layer(&self, service: S) -> Guard<S> {
        Guard { service, shared: Arc::clone(&self.0) }
    }
}

/// The middleware around the method table of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Guard<S> {
    service: S,
    shared: Arc<Shared>,
}

impl<S> Guard<S>
where
    S: RpcServiceT<
            MethodResponse = MethodResponse,
            BatchResponse = MethodResponse,
            NotificationResponse = MethodResponse,
        > + Clone
        + Send
        + Sync
        + 'static,
{
    async fn answer(&self, request: Request<'_>) -> MethodResponse {
        let started = Instant::now();
        let method = request.method.clone().into_owned();
        let response = self.dispatch(request).await;
        if let Some(observer) = &self.shared.observer {
            observer(CallRecord {
                method: &method,
                error_code: response.as_error_code(),
                elapsed: started.elapsed(),
            });
        }
        response
    }

    async fn dispatch(&self, request: Request<'_>) -> MethodResponse {
        let shared = &self.shared;
        let peer = request.extensions().get::<PeerAddress>().copied();
        if let Some(PeerAddress(peer)) = peer
            && !shared.peers.may_call(peer)
        {
            return refuse(&request, RpcError::busy("rate_limited", "too many calls from this address"));
        }
        let method = request.method_name();
        if shared.methods.method(method).is_some() {
            let id = request.id.clone().into_owned();
            return explain(id, self.service.call(request).await);
        }
        match &shared.passthrough {
            Some(passthrough) if passthrough.allows(method) => {
                let params = request.params.as_ref().map(|params| params.clone().into_owned());
                let outcome = passthrough.call(method, params).await;
                let payload = match outcome {
                    Ok(result) => ResponsePayload::success(result),
                    Err(error) => ResponsePayload::error(error),
                };
                MethodResponse::response(request.id.clone(), payload, shared.max_response_bytes as usize)
                    .with_extensions(request.extensions.clone())
            }
            _ if is_plaintext_method(method) => {
                tracing::debug!(method, "refused a call that would show a plaintext");
                refuse(&request, RpcError::plaintext_refused(method))
            }
            _ => refuse(&request, RpcError::unknown_method(method)),
        }
    }
}

impl<S> RpcServiceT for Guard<S>
where
    S: RpcServiceT<
            MethodResponse = MethodResponse,
            BatchResponse = MethodResponse,
            NotificationResponse = MethodResponse,
        > + Clone
        + Send
        + Sync
        + 'static,
{
    type MethodResponse = MethodResponse;
    type NotificationResponse = MethodResponse;
    type BatchResponse = MethodResponse;

    fn call<'a>(&self, request: Request<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let guard = self.clone();
        async move { guard.answer(request).await }
    }

    // The method table's own batch would call its methods past this middleware.
    fn batch<'a>(&self, batch: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let guard = self.clone();
        async move {
            let mut responses =
                BatchResponseBuilder::new_with_limit(guard.shared.max_response_bytes as usize);
            let mut notified = false;
            for entry in batch {
                let response = match entry {
                    Ok(BatchEntry::Call(request)) => guard.answer(request).await,
                    Ok(BatchEntry::Notification(_)) => {
                        notified = true;
                        continue;
                    }
                    Err(fault) => {
                        let (error, id) = fault.into_parts();
                        MethodResponse::error(id, error)
                    }
                };
                if let Err(too_large) = responses.append(response) {
                    return too_large;
                }
            }
            if responses.is_empty() && notified {
                MethodResponse::notification()
            } else {
                MethodResponse::from_batch(responses.finish())
            }
        }
    }

    fn notification<'a>(
        &self,
        notification: Notification<'a>,
    ) -> impl Future<Output = MethodResponse> + Send + 'a {
        self.service.notification(notification)
    }
}

fn refuse(request: &Request<'_>, error: RpcError) -> MethodResponse {
    MethodResponse::error(request.id.clone(), ErrorObjectOwned::from(error))
        .with_extensions(request.extensions.clone())
}

/// Gives the library's own errors (bad parameters, oversized answer) the `data {reason, retry}` that every error here
/// carries; the library puts the cause into `data`, which moves into the message.
fn explain(id: jsonrpsee::types::Id<'_>, response: MethodResponse) -> MethodResponse {
    #[derive(Deserialize)]
    struct Failed {
        error: ErrorObjectOwned,
    }
    #[derive(Deserialize)]
    struct OurData {
        #[serde(rename = "reason")]
        _reason: String,
    }

    // The answer to a subscription has been sent already by the time it is seen here.
    let Some(code) = response.as_error_code().filter(|_| response.is_method_call()) else {
        return response;
    };
    let Ok(Failed { error }) = serde_json::from_str::<Failed>(response.as_json().get()) else {
        return response;
    };
    if error.data().is_some_and(|data| serde_json::from_str::<OurData>(data.get()).is_ok()) {
        return response;
    }
    let (reason, retry) = standard_reason(code);
    let detail = error.data().map(|data| {
        serde_json::from_str::<String>(data.get()).map_or_else(|_| Cow::Borrowed(data.get()), Cow::Owned)
    });
    let message = match detail {
        Some(detail) => {
            let short: String = detail.chars().take(MAX_ERROR_DETAIL_CHARS).collect();
            format!("{}: {short}", error.message())
        }
        None => error.message().to_owned(),
    };
    let error = RpcError::new(code, reason, retry, message);
    MethodResponse::error(id, ErrorObjectOwned::from(error)).with_extensions(response.extensions().clone())
}
