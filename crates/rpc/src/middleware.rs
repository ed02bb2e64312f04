//! What every call passes before it reaches a method: rate, the list of what is served, and the form of errors.

use std::{borrow::Cow, fmt, future::Future, net::IpAddr, sync::Arc, time::Duration};

use blindfold_runtime::{Instant, joined, now, spawn};
use futures::future::OptionFuture;
use jsonrpsee::{
    BatchResponseBuilder, MethodResponse, Methods, ResponsePayload,
    core::middleware::{Batch, BatchEntry, Notification, Request, RpcServiceT},
    server::StopHandle,
    types::ErrorObjectOwned,
};
use serde::Deserialize;
use tower::Layer;

use crate::{
    Passthrough, RpcError,
    answers::{BULK_METHODS, Lease, Purpose, Recipient, reservation},
    error::{code, standard_reason},
    is_plaintext_method,
    limits::{ANSWER_WAIT_MS, MAX_ERROR_DETAIL_CHARS, SMALL_ANSWER_BYTES, TURN_WAIT_MS},
    peers::{Account, Peers},
    server::{Panicked, places_of},
    turned_away,
    turns::{Turn, Turns},
};

/// How long a call waits for those of its account that are under way.
const TURN_WAIT: Duration = Duration::from_millis(TURN_WAIT_MS);

/// Calls that wait for the chain, as long as they say.
const WAITING_METHODS: &[&str] = &["blind_sendEnvelopeSync", "eth_sendRawTransactionSync"];

tokio::task_local! {
    static CALLER: IpAddr;
}

/// The address that the call counts by in whose task this is asked, an IPv6 one by its /64; none where a peer calls that
/// proved who it is, and outside of calls.
pub fn caller() -> Option<IpAddr> {
    CALLER.try_with(|address| *address).ok()
}

/// One finished call, for metrics.
#[derive(Clone, Copy, Debug)]
pub struct CallRecord<'a> {
    /// The method as it was asked for: any text. Count it under a bounded set of labels.
    pub method: &'a str,
    /// The error code, or none for a result.
    pub error_code: Option<i32>,
    /// From its arrival to its answer.
    pub elapsed: Duration,
}

/// Is told of every finished call.
pub type CallObserver = Arc<dyn Fn(CallRecord<'_>) + Send + Sync>;

pub(crate) struct Shared {
    pub(crate) methods: Methods,
    pub(crate) passthrough: Option<Passthrough>,
    pub(crate) peers: Arc<Peers>,
    /// Of all calls, and of reads at the execution client among them.
    pub(crate) turns: Arc<Turns>,
    pub(crate) read_turns: Arc<Turns>,
    /// Of calls that wait for the chain, which are not among them.
    pub(crate) waiting_turns: Arc<Turns>,
    pub(crate) observer: Option<CallObserver>,
    pub(crate) panicked: Panicked,
    pub(crate) max_response_bytes: u32,
    pub(crate) max_websocket_answer_bytes: u32,
    /// A stopping server waits for whoever holds it: for calls under way, too, whose callers have gone.
    pub(crate) _alive: StopHandle,
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Shared").field("passthrough", &self.passthrough).finish_non_exhaustive()
    }
}

/// What a call holds until it ends.
#[derive(Debug, Default)]
struct Held {
    turn: Option<Turn>,
    lease: Option<Lease>,
}

/// Puts a [`Guard`] in front of each connection's service.
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
    /// The answer, and its part of the budget.
    async fn answer(&self, request: Request<'_>) -> (MethodResponse, Option<Lease>) {
        let started = now();
        match self.admit(&request).await {
            Ok(held) => self.to_the_end(owned(request), held, started).await,
            Err(refusal) => {
                let response = refuse(&request, refusal);
                self.observe(request.method_name(), &response, started);
                (response, None)
            }
        }
    }

    /// What a call needs before it begins: an allowance, its turn, and bytes for its answer. Whoever hangs up meanwhile
    /// gives it all up.
    async fn admit(&self, request: &Request<'_>) -> Result<Held, RpcError> {
        let shared = &self.shared;
        let Some(recipient) = request.extensions().get::<Recipient>() else { return Ok(Held::default()) };
        if !shared.peers.may_call(recipient.account) {
            return Err(turned_away::rate_limited(shared.peers.time_for_a_call()));
        }
        let method = request.method_name();
        if recipient.websocket && BULK_METHODS.contains(&method) {
            return Err(use_http(method));
        }
        // Those who wait for the chain may be more than those who work.
        let turns = if WAITING_METHODS.contains(&method) { &shared.waiting_turns } else { &shared.turns };
        let turn = turn_of(turns, recipient.account).await?;
        let bytes = reservation(method, shared.max_response_bytes);
        // Many small calls wait for nothing: they are refused while the budget is used up.
        let patience = Duration::from_millis(if bytes > SMALL_ANSWER_BYTES { ANSWER_WAIT_MS } else { 0 });
        let lease = match recipient.budget.take(recipient.account, Purpose::Answer, bytes) {
            None if !patience.is_zero() => {
                recipient.budget.take_within(recipient.account, Purpose::Answer, bytes, patience).await
            }
            taken => taken,
        };
        Ok(Held { turn, lease: Some(lease.ok_or_else(too_many_answers)?) })
    }

    /// Works on a call in a task of its own: whoever hangs up drops the answer and nothing else. Work under a call, on a
    /// blocking thread or at a disk, does not stop with it, so nothing that bounds such work may be given back before:
    /// not the turn, not the part of the budget, not a place or a lock that the method took, and not the connection's
    /// place, which bounds the number of these tasks as it does that of callers who stay.
    async fn to_the_end(
        &self,
        request: Request<'static>,
        held: Held,
        started: Instant,
    ) -> (MethodResponse, Option<Lease>) {
        let id = request.id.clone();
        let failed = move |error: RpcError| (MethodResponse::error(id, ErrorObjectOwned::from(error)), None);
        let (guard, panic_answer) = (self.clone(), failed.clone());
        let task = spawn(async move {
            let _places = places_of(&request.extensions);
            let method = request.method.clone();
            let account = request.extensions().get::<Recipient>().map(|recipient| recipient.account);
            let work = guard.work(request, held);
            let work = async {
                match account {
                    Some(Account::Address(address)) => CALLER.scope(address, work).await,
                    _ => work.await,
                }
            };
            let worked = guard.shared.panicked.watch(&method, work).await;
            let (response, lease) =
                worked.unwrap_or_else(|| panic_answer(RpcError::internal("the call panicked")));
            guard.observe(&method, &response, started);
            (response, lease)
        });
        let stopped = || failed(RpcError::unavailable("shutting_down", "the server is shutting down"));
        joined(task.await).unwrap_or_else(|_| stopped())
    }

    fn observe(&self, method: &str, response: &MethodResponse, started: Instant) {
        if let Some(observer) = &self.shared.observer {
            let error_code = response.as_error_code();
            observer(CallRecord { method, error_code, elapsed: started.elapsed() });
        }
    }

    async fn work(&self, request: Request<'static>, held: Held) -> (MethodResponse, Option<Lease>) {
        let Held { turn, lease } = held;
        let recipient = request.extensions().get::<Recipient>().cloned();
        let (id, method) = (request.id.clone(), request.method.clone());
        let response = self.dispatch(request).await;
        drop(turn);
        // The answer to a subscription has been sent already.
        let (Some(recipient), Some(mut lease), true) = (recipient, lease, response.is_method_call()) else {
            return (response, None);
        };
        let bytes = response.as_json().get().len();
        let fault = if recipient.websocket && bytes > self.shared.max_websocket_answer_bytes as usize {
            use_http(&method)
        } else if !lease.resize(u64::try_from(bytes).unwrap_or(u64::MAX)) {
            too_many_answers()
        } else {
            return (response, Some(lease));
        };
        let refused = MethodResponse::error(id, ErrorObjectOwned::from(fault));
        (refused.with_extensions(response.extensions().clone()), None)
    }

    async fn dispatch(&self, request: Request<'_>) -> MethodResponse {
        let shared = &self.shared;
        let method = request.method_name();
        if shared.methods.method(method).is_some() {
            let id = request.id.clone().into_owned();
            return explain(id, self.service.call(request).await);
        }
        match &shared.passthrough {
            Some(passthrough) if passthrough.allows(method) => {
                let account = request.extensions().get::<Recipient>().map(|recipient| recipient.account);
                let turn = account.map(|account| shared.read_turns.take(account, TURN_WAIT));
                let turn = match OptionFuture::from(turn).await.transpose() {
                    Ok(turn) => turn,
                    Err(time) => {
                        let message = "too many reads of this address are under way at the execution client";
                        return refuse(&request, RpcError::busy("reads_busy", message).after(time));
                    }
                };
                let params = request.params.as_ref().map(|params| params.clone().into_owned());
                let outcome = passthrough.call(method, params).await;
                drop(turn);
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
        async move {
            let recipient = request.extensions().get::<Recipient>().cloned();
            let _place = recipient.as_ref().map(|recipient| recipient.outbox.enter());
            let (response, lease) = guard.answer(request).await;
            if let Some(recipient) = recipient.filter(|_| response.is_method_call()) {
                recipient.outbox.push(response.as_json().get().len(), lease);
            }
            response
        }
    }

    // The method table's own batch would call its methods past this middleware.
    fn batch<'a>(&self, batch: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let guard = self.clone();
        async move {
            let recipient = batch.iter().find_map(|entry| match entry {
                Ok(BatchEntry::Call(request)) => request.extensions().get::<Recipient>().cloned(),
                _ => None,
            });
            let _place = recipient.as_ref().map(|recipient| recipient.outbox.enter());
            let max_bytes = match &recipient {
                Some(recipient) if recipient.websocket => guard.shared.max_websocket_answer_bytes,
                _ => guard.shared.max_response_bytes,
            };
            let mut responses = BatchResponseBuilder::new_with_limit(max_bytes as usize);
            let mut leases = Vec::new();
            let mut notified = false;
            for entry in batch {
                let response = match entry {
                    Ok(BatchEntry::Call(request)) => {
                        let (response, lease) = guard.answer(request).await;
                        leases.extend(lease);
                        response
                    }
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
                let response = MethodResponse::from_batch(responses.finish());
                if let Some(recipient) = recipient {
                    let bytes = response.as_json().get().len();
                    recipient.outbox.push(bytes, Lease::of_all(leases));
                }
                response
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

/// The turn of a call of this account, when it comes in time. Peers have limits of their own.
pub(crate) async fn turn_of(turns: &Arc<Turns>, account: Account) -> Result<Option<Turn>, RpcError> {
    if !matches!(account, Account::Address(_)) {
        return Ok(None);
    }
    let turn = turns.take(account, TURN_WAIT).await.map_err(|time| {
        let message = "too many calls of this address are under way";
        RpcError::busy("busy", message).after(time)
    });
    turn.map(Some)
}

/// The request by itself, without what it was read from.
fn owned(request: Request<'_>) -> Request<'static> {
    Request {
        jsonrpc: request.jsonrpc,
        id: request.id.into_owned(),
        method: Cow::Owned(request.method.into_owned()),
        params: request.params.map(|params| Cow::Owned(params.into_owned())),
        extensions: request.extensions,
    }
}

fn refuse(request: &Request<'_>, error: RpcError) -> MethodResponse {
    MethodResponse::error(request.id.clone(), ErrorObjectOwned::from(error))
        .with_extensions(request.extensions.clone())
}

/// Rule J-2.
fn use_http(method: &str) -> RpcError {
    let message = format!("the answer to {method:.64} is too large for a WebSocket; ask over HTTP");
    RpcError::refused("use_http", message)
}

fn too_many_answers() -> RpcError {
    RpcError::busy("too_many_answers", "too many answers wait to be read, of this address or of all")
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
    let known = |code: &i32| response.is_method_call() && *code != code::NO_RECEIPT_YET;
    let Some(code) = response.as_error_code().filter(known) else {
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
