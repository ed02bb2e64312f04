//! The skeleton of a role: its tasks, what must hold before it is ready, its counters, its two servers, and its end.
//!
//! A role brings its settings and its parts. It makes a [`RoleBase`] first, takes tasks and readiness from it while it
//! puts its parts together, then listens, and hands it over to what it gives out as the running role.

use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use blindfold_runtime::{Failure, Tasks};
use blindfold_telemetry::Metrics;
use jsonrpsee::Methods;

use crate::{
    AdminConfig, Doorkeeper, FeedSource, Passthrough, PeerListener, Readiness, RpcMetrics, ServeError,
    ServerConfig, ServerHandle, TlsMetrics, admin, serve,
};

/// What every role stands on. Dropping it ends everything at once, as a kill would.
pub struct RoleBase {
    tasks: Tasks,
    serving: Tasks,
    readiness: Readiness,
    metrics: Metrics,
    admin: Option<ServerHandle>,
    admin_addr: SocketAddr,
    rpc: Option<ServerHandle>,
    peers: Option<ServerHandle>,
    /// What the binary feed of both tells.
    feed: Option<FeedSource>,
    /// None where the registry has another role's.
    tls: Option<TlsMetrics>,
    /// Likewise.
    calls: Option<RpcMetrics>,
}

impl RoleBase {
    /// A role that has no tasks yet and serves nothing. `metrics` is its registry; it is ready once all of `conditions`
    /// hold and while no part has failed.
    #[must_use]
    pub fn new(metrics: Metrics, conditions: &[&'static str]) -> Self {
        let tasks = Tasks::new();
        let readiness = Readiness::new(conditions).of(tasks.spawner());
        let admin_addr = (Ipv4Addr::UNSPECIFIED, 0).into();
        let tls = TlsMetrics::new(&metrics).ok();
        if let Some(tls) = &tls {
            tls.show_client(blindfold_tls::process().refreshing());
        }
        let calls = RpcMetrics::new(&metrics).ok();
        let serving = tasks.beside();
        Self {
            calls,
            serving,
            tasks,
            readiness,
            metrics,
            admin: None,
            admin_addr,
            rpc: None,
            peers: None,
            feed: None,
            tls,
        }
    }

    /// The parts that work until the role stops.
    #[must_use]
    pub const fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// What calls wait for: it ends after the last of them is answered.
    #[must_use]
    pub const fn serving(&self) -> &Tasks {
        &self.serving
    }

    /// What must hold before the role is ready.
    #[must_use]
    pub const fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// Serves `/healthz`, `/readyz`, `/metrics` and `routes` at `addr`, with [`admin()`].
    ///
    /// # Errors
    /// When the port cannot be listened on.
    pub async fn serve_admin(&mut self, addr: SocketAddr, routes: Option<Router>) -> Result<(), ServeError> {
        let (metrics, tls) = (self.metrics.clone(), self.tls.clone());
        let render = move || {
            if let Some(tls) = &tls {
                tls.update();
            }
            metrics.render()
        };
        let server = admin(AdminConfig { addr }, self.readiness.clone(), render, routes).await?;
        self.tasks.guard("admin", server.ended());
        self.admin_addr = server.local_addr();
        self.admin = Some(server);
        Ok(())
    }

    /// From here on the ports that it serves JSON-RPC at have the binary feed, too.
    pub fn serve_feed(&mut self, source: FeedSource) {
        self.feed = Some(source);
    }

    /// Serves JSON-RPC, with [`serve`]; gives the address that it took.
    ///
    /// # Errors
    /// When the port cannot be listened on, or a limit cannot work.
    pub async fn serve_rpc(
        &mut self,
        mut config: ServerConfig,
        methods: impl Into<Methods>,
        passthrough: Option<Passthrough>,
    ) -> Result<SocketAddr, ServeError> {
        self.complete(&mut config);
        let server = serve(config, methods, passthrough).await?;
        self.tasks.guard("rpc", server.ended());
        let listens = server.local_addr();
        self.show_tls(&server);
        self.rpc = Some(server);
        Ok(listens)
    }

    /// Serves JSON-RPC on a port for peers alone, if there is to be one.
    ///
    /// # Errors
    /// When the port cannot be listened on, or its certificate cannot be used.
    pub async fn serve_peers(
        &mut self,
        listener: Option<&PeerListener>,
        doorkeeper: Option<Doorkeeper>,
        methods: impl Into<Methods>,
    ) -> Result<(), ServeError> {
        let Some(listener) = listener else { return Ok(()) };
        let mut config = listener.server(doorkeeper);
        self.complete(&mut config);
        let server = serve(config, methods, None).await?;
        self.tasks.guard("peers", server.ended());
        self.show_tls(&server);
        self.peers = Some(server);
        Ok(())
    }

    fn complete(&self, config: &mut ServerConfig) {
        if config.feed.is_none() {
            config.feed.clone_from(&self.feed);
        }
        if config.observer.is_none() {
            config.observer = self.calls.as_ref().map(RpcMetrics::observer);
        }
    }

    fn show_tls(&self, server: &ServerHandle) {
        if let (Some(metrics), Some(tls)) = (&self.tls, server.tls()) {
            metrics.show_server(tls);
        }
    }

    /// Ends in order: no new calls, those under way are answered, the tasks end, then `rest`, the admin server last.
    pub async fn shutdown(mut self, rest: impl Future<Output = ()> + Send) {
        self.tasks.begin_shutdown();
        let mut in_time = true;
        for server in [self.rpc.take(), self.peers.take()].into_iter().flatten() {
            in_time &= server.shutdown().await;
        }
        self.tasks.shutdown().await;
        self.serving.shutdown().await;
        rest.await;
        if let Some(admin) = self.admin.take() {
            in_time &= admin.shutdown().await;
        }
        if !in_time {
            tracing::warn!("connections were cut off at shutdown");
        }
        tracing::info!("stopped");
    }

    /// Ends everything, and returns when its ports are free: for whoever listens there next, in the same process. Calls
    /// under way are not waited for.
    pub async fn vacate(mut self) {
        self.tasks.begin_shutdown();
        for server in [self.rpc.take(), self.peers.take(), self.admin.take()].into_iter().flatten() {
            server.close().await;
        }
        self.tasks.abort().await;
        self.serving.abort().await;
    }

    /// Ends everything where it stands, as a kill would, and returns when the tasks are gone. What a call does that was
    /// under way may still end after it, and its connection with it.
    pub async fn abort(mut self) {
        self.tasks.begin_shutdown();
        self.rpc.take();
        self.peers.take();
        self.admin.take();
        self.tasks.abort().await;
        self.serving.abort().await;
    }
}

/// A running role.
pub trait RunningRole: Send + Sync {
    /// What it stands on.
    fn base(&self) -> &RoleBase;

    /// Ends in order, and returns when everything is gone.
    fn shutdown(self) -> impl Future<Output = ()> + Send;

    /// Where `/healthz`, `/readyz` and `/metrics` are served; port 0 where nothing is.
    fn admin_addr(&self) -> SocketAddr {
        self.base().admin_addr
    }

    /// Where peers alone are served, if they are.
    fn peers_addr(&self) -> Option<SocketAddr> {
        self.base().peers.as_ref().map(ServerHandle::local_addr)
    }

    /// What must hold before the role is ready.
    fn readiness(&self) -> &Readiness {
        self.base().readiness()
    }

    /// Waits until a part gives up; the process should end then.
    fn failed(&self) -> impl Future<Output = Failure> + Send {
        let spawner = self.base().tasks().spawner();
        async move { spawner.failed().await }
    }
}
