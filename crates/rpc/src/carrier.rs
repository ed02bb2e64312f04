//! Calls without sockets: where a simulation carries them.
//!
//! On a thread that [`carry`] was called on, [`serve`](crate::serve) opens no port and clients no connection. What a server
//! would answer is computed by the same methods; whether and when a call or its answer arrives, the [`Carrier`] says.
//! Limits on connections, and a hello's signature, belong to the sockets and are not simulated.

use std::{
    cell::RefCell, fmt, marker::PhantomData, net::SocketAddr, rc::Rc, sync::Arc, task::Context,
    time::Duration,
};

use blindfold_protocol::hello::Party;
use futures::{Stream, StreamExt, future::BoxFuture};
use jsonrpsee::{
    MethodResponse, Methods,
    core::{
        ClientError,
        client::{BatchResponse, ClientT},
        params::BatchRequestBuilder,
        traits::ToRpcParams,
    },
    rpc_params,
    server::stop_channel,
    types::{Id, Request, Response, ResponsePayload, response::SubscriptionResponse},
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};

use crate::{
    ClientConfig, Introduction, KnownPeer, Passthrough, PeerAddress, ServeError, Topic, server::Listening,
};

thread_local! {
    static CARRIER: RefCell<Option<Arc<dyn Carrier>>> = const { RefCell::new(None) };
}

/// What carries calls in place of sockets.
pub trait Carrier: Send + Sync {
    /// From now on calls to this address reach this server, until it ends.
    ///
    /// # Errors
    /// When the address is taken.
    fn bind(&self, addr: SocketAddr, server: Server) -> Result<(), std::io::Error>;

    /// The server at this address has ended.
    fn unbind(&self, addr: SocketAddr);

    /// Brings a call to the server that its URL names and gives what comes back, which may be nothing for ever.
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, NotCarried>>;
}

/// A call on its way to a server.
#[derive(Clone, Debug)]
pub struct Call {
    /// URL of the server that it is for.
    pub url: Arc<str>,
    /// Who says that the call is his, as a hello would.
    pub party: Option<Party>,
    /// The JSON-RPC request, as it would stand in the body.
    pub request: String,
}

/// What a server answers to one call.
#[derive(Debug)]
pub struct Answer {
    /// The JSON-RPC response, as it would stand in the body.
    pub response: Box<RawValue>,
    /// The notifications of the subscription that it may have begun, until the server ends.
    pub notifications: mpsc::Receiver<Box<RawValue>>,
    /// Closed when the server ends.
    pub server: watch::Receiver<()>,
}

/// Why a call got no answer, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not carried: {0}")]
pub struct NotCarried(pub &'static str);

/// The methods behind an address.
#[derive(Clone)]
pub struct Server {
    methods: Methods,
    passthrough: Option<Passthrough>,
    knows_peers: bool,
    alive: watch::Receiver<()>,
}

impl Server {
    /// Answers a call that comes from this address.
    ///
    /// # Errors
    /// For what is no JSON-RPC request.
    pub async fn answer(&self, call: &Call, from: SocketAddr) -> Result<Answer, NotCarried> {
        if let Some(response) = self.hand_on(call).await {
            let (_, notifications) = mpsc::channel(1);
            return Ok(Answer { response, notifications, server: self.alive.clone() });
        }
        let mut methods = self.methods.clone();
        methods.extensions_mut().insert(PeerAddress(from));
        if let Some(party) = call.party.filter(|_| self.knows_peers) {
            methods.extensions_mut().insert(KnownPeer(party));
        }
        let answered = methods.raw_json_request(&call.request, NOTIFICATIONS).await;
        let (response, notifications) = answered.map_err(|_| NotCarried("no JSON-RPC request"))?;
        Ok(Answer { response, notifications, server: self.alive.clone() })
    }

    /// The answer of whoever stands behind this server, where the call is for that one.
    async fn hand_on(&self, call: &Call) -> Option<Box<RawValue>> {
        let request: Request<'_> = serde_json::from_str(&call.request).ok()?;
        let method = request.method_name();
        let passthrough = self.passthrough.as_ref()?;
        if self.methods.method(method).is_some() || !passthrough.allows(method) {
            return None;
        }
        let params = request.params.as_ref().map(|params| params.clone().into_owned());
        let payload = match passthrough.call(method, params).await {
            Ok(result) => jsonrpsee::ResponsePayload::success(result),
            Err(error) => jsonrpsee::ResponsePayload::error(error),
        };
        Some(MethodResponse::response(request.id.clone(), payload, usize::MAX).into_json())
    }
}

/// The method that begins a subscription.
const SUBSCRIBE: &str = "blind_subscribe";
/// Notifications that wait for whoever subscribed.
const NOTIFICATIONS: usize = 1_024;

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("knows_peers", &self.knows_peers).finish_non_exhaustive()
    }
}

/// As long as this is there, its thread's calls are carried.
#[derive(Debug)]
pub struct Carrying {
    not_send: PhantomData<Rc<()>>,
}

/// Has this thread's calls carried. For `testing/sim` alone.
#[must_use]
pub fn carry(carrier: Arc<dyn Carrier>) -> Carrying {
    CARRIER.set(Some(carrier));
    Carrying { not_send: PhantomData }
}

impl Drop for Carrying {
    fn drop(&mut self) {
        CARRIER.set(None);
    }
}

pub(crate) fn carrier() -> Option<Arc<dyn Carrier>> {
    CARRIER.with_borrow(Clone::clone)
}

/// Serves by a carrier until it is told to stop.
pub(crate) fn listen(
    carrier: Arc<dyn Carrier>,
    addr: SocketAddr,
    methods: Methods,
    passthrough: Option<Passthrough>,
    knows_peers: bool,
) -> Result<(Listening, jsonrpsee::server::ServerHandle), ServeError> {
    let (alive, accepting) = watch::channel(());
    let server = Server { methods, passthrough, knows_peers, alive: accepting.clone() };
    carrier.bind(addr, server).map_err(|cause| ServeError::Bind { addr, cause })?;
    let unbound = Unbound { carrier, addr };
    let stop = until_stopped((alive, unbound));
    Ok((Listening::new(addr, accepting), stop))
}

/// Gives an address back, however its server ends.
struct Unbound {
    carrier: Arc<dyn Carrier>,
    addr: SocketAddr,
}

impl Drop for Unbound {
    fn drop(&mut self) {
        self.carrier.unbind(self.addr);
    }
}

/// A listener that nobody can reach: of an admin server.
pub(crate) fn nobody(addr: SocketAddr) -> (Listening, jsonrpsee::server::ServerHandle) {
    let (alive, accepting) = watch::channel(());
    (Listening::new(addr, accepting), until_stopped(alive))
}

/// Holds what a server has until it is told to stop.
fn until_stopped(held: impl Send + 'static) -> jsonrpsee::server::ServerHandle {
    let (stop_handle, stop) = stop_channel();
    blindfold_runtime::spawn(async move {
        stop_handle.shutdown().await;
        drop(held);
    });
    stop
}

/// A client's way to one server.
#[derive(Clone)]
pub(crate) struct Link {
    carrier: Arc<dyn Carrier>,
    url: Arc<str>,
    party: Option<Party>,
    timeout: Duration,
}

impl Link {
    pub(crate) fn new(carrier: Arc<dyn Carrier>, url: &str, config: &ClientConfig) -> Self {
        let party = config.introduction.as_ref().map(Introduction::party);
        let timeout = Duration::from_millis(config.request_timeout_ms);
        Self { carrier, url: url.into(), party, timeout }
    }

    async fn raw(&self, method: &str, params: impl ToRpcParams) -> Result<Answer, ClientError> {
        let params = params.to_rpc_params().map_err(ClientError::ParseError)?;
        let request = Request::owned(method.to_owned(), params, Id::Number(0));
        let request = serde_json::to_string(&request).map_err(ClientError::ParseError)?;
        let call = Call { url: Arc::clone(&self.url), party: self.party, request };
        match tokio::time::timeout(self.timeout, self.carrier.call(call)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(lost)) => Err(ClientError::Transport(lost.into())),
            Err(_) => Err(ClientError::RequestTimeout),
        }
    }

    /// Begins the subscription to a topic. Where it ends, so would the connection have.
    pub(crate) async fn topic(
        &self,
        topic: Topic,
    ) -> Result<impl Stream<Item = Result<Box<RawValue>, serde_json::Error>> + Send + use<>, ClientError>
    {
        let Answer { response, mut notifications, mut server } =
            self.raw(SUBSCRIBE, rpc_params![topic.as_str()]).await?;
        result::<serde_json::Value>(&response)?;
        let next = move |context: &mut Context<'_>| notifications.poll_recv(context);
        let ended = Box::pin(async move { server.changed().await.is_err() });
        Ok(futures::stream::poll_fn(next).take_until(ended).map(|raw| {
            let notification: SubscriptionResponse<'_, Box<RawValue>> = serde_json::from_str(raw.get())?;
            Ok(notification.params.result)
        }))
    }
}

fn result<R: DeserializeOwned>(response: &RawValue) -> Result<R, ClientError> {
    let response: Response<'_, Box<RawValue>> =
        serde_json::from_str(response.get()).map_err(ClientError::ParseError)?;
    match response.payload {
        ResponsePayload::Success(value) => serde_json::from_str(value.get()).map_err(ClientError::ParseError),
        ResponsePayload::Error(error) => Err(ClientError::Call(error.into_owned())),
    }
}

impl ClientT for Link {
    async fn notification<Params: ToRpcParams + Send>(
        &self,
        method: &str,
        params: Params,
    ) -> Result<(), ClientError> {
        self.raw(method, params).await.map(|_| ())
    }

    async fn request<R: DeserializeOwned, Params: ToRpcParams + Send>(
        &self,
        method: &str,
        params: Params,
    ) -> Result<R, ClientError> {
        result(&self.raw(method, params).await?.response)
    }

    async fn batch_request<'a, R: DeserializeOwned + fmt::Debug + 'a>(
        &self,
        _batch: BatchRequestBuilder<'a>,
    ) -> Result<BatchResponse<'a, R>, ClientError> {
        Err(ClientError::Custom("calls are carried one by one".to_owned()))
    }
}
