//! What a role's TLS is counted by.

use std::sync::{Arc, Mutex, PoisonError};

use blindfold_telemetry::{CounterSet, GaugeSet, Metrics, MetricsError};
use blindfold_tls::{Refreshing, ServerTls};

/// The places that certificates are used at: the public port, that for peers, and the connections that we open.
const PLACES: &[&str] = &["public", "peers", "client"];

/// Metrics of TLS, the same for every role. Clones share what they show.
#[derive(Clone, Debug)]
pub struct TlsMetrics {
    expires: GaugeSet,
    refused: CounterSet,
    failed: CounterSet,
    shown: Arc<Mutex<Vec<Shown>>>,
}

struct Shown {
    what: Arc<dyn Refreshing>,
    server: Option<Arc<ServerTls>>,
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.what.name())
    }
}

impl TlsMetrics {
    /// Registers them.
    ///
    /// # Errors
    /// When a name is taken.
    pub fn new(metrics: &Metrics) -> Result<Self, MetricsError> {
        let labels: &[(&'static str, &[&'static str])] = &[("place", PLACES)];
        Ok(Self {
            expires: metrics.gauges(
                "tls_certificate_expires_timestamp_seconds",
                "When the certificate in use expires, in Unix seconds; 0: there is none",
                labels,
            )?,
            refused: metrics.counters(
                "tls_files_refused_total",
                "New certificate files that could not be used; the log says why",
                labels,
            )?,
            failed: metrics.counters(
                "tls_handshakes_failed_total",
                "Connections that came to no TLS: strangers, scanners, wrong certificates",
                labels,
            )?,
            shown: Arc::default(),
        })
    }

    /// Shows a listener's from now on.
    pub fn show_server(&self, server: &Arc<ServerTls>) {
        self.push(Shown {
            what: Arc::clone(server) as Arc<dyn Refreshing>,
            server: Some(Arc::clone(server)),
        });
    }

    /// Shows that of the connections that we open from now on.
    pub fn show_client(&self, what: Arc<dyn Refreshing>) {
        self.push(Shown { what, server: None });
    }

    fn push(&self, shown: Shown) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).push(shown);
    }

    /// Brings the series up to date: before they are read.
    pub fn update(&self) {
        for Shown { what, server } in &*self.shown.lock().unwrap_or_else(PoisonError::into_inner) {
            let place = &[what.name()];
            self.expires.get(place).set(what.expires().unwrap_or_default());
            let refused = self.refused.get(place);
            refused.add(what.files().refused().saturating_sub(refused.get()));
            if let Some(server) = server {
                let failed = self.failed.get(place);
                failed.add(server.failed().saturating_sub(failed.get()));
            }
        }
    }
}
