//! A role's metrics: a typed layer over the `prometheus` registry.
//!
//! Two rules are enforced here instead of being remembered at each call: every series of a metric exists from its
//! registration (so a dashboard sees zero, not a gap), and label values come from a fixed list (so nobody outside can
//! grow the registry); a value that is not in the list is counted under [`OTHER_LABEL`].

use std::{collections::HashMap, sync::Arc};

use prometheus::{Encoder, HistogramOpts, Opts, Registry, TextEncoder, core::Collector};

/// Every metric name starts with this.
pub const PREFIX: &str = "blindfold_";
/// Where label values outside the registered list are counted.
pub const OTHER_LABEL: &str = "other";
/// Most label combinations one metric may have, [`OTHER_LABEL`] included.
pub const MAX_SERIES_PER_METRIC: usize = 512;
/// Buckets for durations in seconds, from half a millisecond to half a minute.
pub const SECONDS_BUCKETS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
/// Buckets for sizes in bytes, from 256 bytes to 8 MiB.
pub const BYTES_BUCKETS: &[f64] = &[
    256.0,
    1024.0,
    4096.0,
    16_384.0,
    65_536.0,
    131_072.0,
    262_144.0,
    524_288.0,
    1_048_576.0,
    2_097_152.0,
    4_194_304.0,
    8_388_608.0,
];

/// Why a metric could not be registered. All of them are mistakes of the calling code, found at start-up.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// Name or label is not a metric name, or the name is registered already.
    #[error("metric {name:?} cannot be registered: {reason}")]
    Register {
        /// The name without the prefix.
        name: String,
        /// What the metrics library said.
        reason: String,
    },
    /// The label lists multiply to more than [`MAX_SERIES_PER_METRIC`].
    #[error("metric {name:?} would have {series} series, more than {MAX_SERIES_PER_METRIC}")]
    TooManySeries {
        /// The name without the prefix.
        name: String,
        /// The product of the list lengths.
        series: usize,
    },
}

/// A count that only rises.
#[derive(Clone, Debug)]
pub struct Counter(prometheus::IntCounter);

impl Counter {
    /// Counts one more.
    pub fn increment(&self) {
        self.0.inc();
    }

    /// Counts so many more.
    pub fn add(&self, count: u64) {
        self.0.inc_by(count);
    }

    /// The count since the process started.
    pub fn get(&self) -> u64 {
        self.0.get()
    }
}

/// A value that rises and falls.
#[derive(Clone, Debug)]
pub struct Gauge(prometheus::IntGauge);

impl Gauge {
    /// Sets the value; what does not fit an `i64` is shown as its maximum.
    pub fn set(&self, value: u64) {
        self.0.set(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// Adds `change`, which may be negative.
    pub fn change(&self, change: i64) {
        self.0.add(change);
    }

    /// The value that was set last.
    pub fn get(&self) -> i64 {
        self.0.get()
    }
}

/// A distribution over fixed buckets.
#[derive(Clone, Debug)]
pub struct Histogram(prometheus::Histogram);

impl Histogram {
    /// Records one observation, in the unit of the name.
    pub fn observe(&self, value: f64) {
        self.0.observe(value);
    }

    /// Records a duration in seconds.
    pub fn observe_duration(&self, duration: std::time::Duration) {
        self.0.observe(duration.as_secs_f64());
    }

    /// How many observations were recorded.
    pub fn count(&self) -> u64 {
        self.0.get_sample_count()
    }
}

/// The series of one labelled metric, each made at registration.
#[derive(Debug)]
struct Series<M> {
    known: Vec<Vec<&'static str>>,
    series: HashMap<Vec<&'static str>, M>,
}

impl<M> Series<M> {
    fn get(&self, values: &[&str]) -> &M {
        debug_assert_eq!(values.len(), self.known.len(), "one value per label");
        let key: Vec<&'static str> = self
            .known
            .iter()
            .enumerate()
            .map(|(position, known)| {
                let given = values.get(position).copied().unwrap_or(OTHER_LABEL);
                known.iter().find(|value| **value == given).copied().unwrap_or(OTHER_LABEL)
            })
            .collect();
        // Registration made every combination of the known values and OTHER_LABEL.
        &self.series[&key]
    }
}

macro_rules! labelled {
    ($(#[$doc:meta])* $name:ident, $metric:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name(Arc<Series<$metric>>);

        impl $name {
            /// The series of these label values, in the order of registration; a value that was not registered falls
            /// under [`OTHER_LABEL`].
            pub fn get(&self, values: &[&str]) -> &$metric {
                self.0.get(values)
            }
        }
    };
}

labelled!(
    /// Counters that differ in their labels.
    CounterSet, Counter
);
labelled!(
    /// Gauges that differ in their labels.
    GaugeSet, Gauge
);
labelled!(
    /// Histograms that differ in their labels.
    HistogramSet, Histogram
);

/// The metrics of one role. Clones share the registry.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Registry,
}

impl Metrics {
    /// A new registry whose series all carry the label `role`, and the first gauge,
    /// `blindfold_build_info{version}` = 1.
    pub fn new(role: &str, version: &str) -> Result<Self, MetricsError> {
        let constant = HashMap::from([("role".to_owned(), role.to_owned())]);
        let registry = Registry::new_custom(None, Some(constant))
            .map_err(|error| MetricsError::Register { name: "role".to_owned(), reason: error.to_string() })?;
        let metrics = Self { registry };
        let options = Opts::new(format!("{PREFIX}build_info"), "The running version; the value is always 1")
            .const_label("version", version);
        let build =
            prometheus::IntGauge::with_opts(options).map_err(|error| refused("build_info", &error))?;
        metrics.register("build_info", build.clone())?;
        build.set(1);
        Ok(metrics)
    }

    /// Registers a counter; `name` without prefix, ending in `_total`.
    pub fn counter(&self, name: &str, help: &str) -> Result<Counter, MetricsError> {
        let counter = prometheus::IntCounter::new(format!("{PREFIX}{name}"), help)
            .map_err(|error| refused(name, &error))?;
        self.register(name, counter.clone())?;
        Ok(Counter(counter))
    }

    /// Registers a gauge without labels, at zero.
    pub fn gauge(&self, name: &str, help: &str) -> Result<Gauge, MetricsError> {
        let gauge = prometheus::IntGauge::new(format!("{PREFIX}{name}"), help)
            .map_err(|error| refused(name, &error))?;
        self.register(name, gauge.clone())?;
        Ok(Gauge(gauge))
    }

    /// Registers a histogram; `buckets` are upper bounds in the unit the name ends in.
    pub fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> Result<Histogram, MetricsError> {
        let options = HistogramOpts::new(format!("{PREFIX}{name}"), help).buckets(buckets.to_vec());
        let histogram = prometheus::Histogram::with_opts(options).map_err(|error| refused(name, &error))?;
        self.register(name, histogram.clone())?;
        Ok(Histogram(histogram))
    }

    /// Registers counters for every combination of the listed label values and [`OTHER_LABEL`].
    ///
    /// ```
    /// # use blindfold_telemetry::Metrics;
    /// # fn main() -> Result<(), blindfold_telemetry::MetricsError> {
    /// let metrics = Metrics::new("sequencer", "0.1.0")?;
    /// let refused = metrics.counters("envelopes_refused_total", "Refused at admission", &[("reason", &["expired"])])?;
    /// refused.get(&["expired"]).increment();
    /// assert!(metrics.render().contains(r#"blindfold_envelopes_refused_total{reason="expired",role="sequencer"} 1"#));
    /// # Ok(()) }
    /// ```
    pub fn counters(
        &self,
        name: &str,
        help: &str,
        labels: &[(&'static str, &[&'static str])],
    ) -> Result<CounterSet, MetricsError> {
        let names = label_names(labels);
        let vector = prometheus::IntCounterVec::new(Opts::new(format!("{PREFIX}{name}"), help), &names)
            .map_err(|error| refused(name, &error))?;
        self.register(name, vector.clone())?;
        let series =
            combinations(name, labels, |values| vector.get_metric_with_label_values(values).map(Counter))?;
        Ok(CounterSet(Arc::new(series)))
    }

    /// Registers gauges for every combination of the listed label values and [`OTHER_LABEL`].
    pub fn gauges(
        &self,
        name: &str,
        help: &str,
        labels: &[(&'static str, &[&'static str])],
    ) -> Result<GaugeSet, MetricsError> {
        let names = label_names(labels);
        let vector = prometheus::IntGaugeVec::new(Opts::new(format!("{PREFIX}{name}"), help), &names)
            .map_err(|error| refused(name, &error))?;
        self.register(name, vector.clone())?;
        let series =
            combinations(name, labels, |values| vector.get_metric_with_label_values(values).map(Gauge))?;
        Ok(GaugeSet(Arc::new(series)))
    }

    /// Registers histograms for every combination of the listed label values and [`OTHER_LABEL`].
    pub fn histograms(
        &self,
        name: &str,
        help: &str,
        buckets: &[f64],
        labels: &[(&'static str, &[&'static str])],
    ) -> Result<HistogramSet, MetricsError> {
        let names = label_names(labels);
        let options = HistogramOpts::new(format!("{PREFIX}{name}"), help).buckets(buckets.to_vec());
        let vector = prometheus::HistogramVec::new(options, &names).map_err(|error| refused(name, &error))?;
        self.register(name, vector.clone())?;
        let series =
            combinations(name, labels, |values| vector.get_metric_with_label_values(values).map(Histogram))?;
        Ok(HistogramSet(Arc::new(series)))
    }

    /// All series in the text exposition format, for `/metrics`.
    pub fn render(&self) -> String {
        let mut text = Vec::new();
        // Writing to a vector fails only for a family without series, which registration excludes.
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut text) {
            return format!("# metrics could not be rendered: {error}\n");
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    fn register(&self, name: &str, collector: impl Collector + 'static) -> Result<(), MetricsError> {
        self.registry.register(Box::new(collector)).map_err(|error| refused(name, &error))
    }
}

fn refused(name: &str, error: &prometheus::Error) -> MetricsError {
    MetricsError::Register { name: name.to_owned(), reason: error.to_string() }
}

fn label_names(labels: &[(&'static str, &[&'static str])]) -> Vec<&'static str> {
    labels.iter().map(|(name, _)| *name).collect()
}

fn combinations<M>(
    name: &str,
    labels: &[(&'static str, &[&'static str])],
    make: impl Fn(&[&str]) -> Result<M, prometheus::Error>,
) -> Result<Series<M>, MetricsError> {
    let known: Vec<Vec<&'static str>> = labels
        .iter()
        .map(|(_, values)| {
            let mut values = values.to_vec();
            if !values.contains(&OTHER_LABEL) {
                values.push(OTHER_LABEL);
            }
            values
        })
        .collect();
    let count = known.iter().map(Vec::len).fold(1, usize::saturating_mul);
    if count > MAX_SERIES_PER_METRIC {
        return Err(MetricsError::TooManySeries { name: name.to_owned(), series: count });
    }
    let mut keys = vec![Vec::new()];
    for values in &known {
        keys = keys
            .iter()
            .flat_map(|key: &Vec<&'static str>| {
                values.iter().map(|value| key.iter().copied().chain([*value]).collect::<Vec<_>>())
            })
            .collect();
    }
    let mut series = HashMap::with_capacity(keys.len());
    for key in keys {
        let metric = make(&key).map_err(|error| refused(name, &error))?;
        series.insert(key, metric);
    }
    Ok(Series { known, series })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics() -> Metrics {
        Metrics::new("sequencer", "0.1.0").expect("fresh registry")
    }

    #[test]
    fn everything_is_present_at_zero() {
        let metrics = metrics();
        metrics.counter("batches_sealed_total", "Sealed batches").expect("new");
        metrics.gauge("mempool_envelopes", "Waiting envelopes").expect("new");
        metrics.histogram("seal_seconds", "Time to seal", SECONDS_BUCKETS).expect("new");
        metrics
            .counters(
                "rpc_requests_total",
                "Calls",
                &[("method", &["a", "b"]), ("outcome", &["ok", "error"])],
            )
            .expect("new");
        let text = metrics.render();
        for line in [
            r#"blindfold_build_info{version="0.1.0",role="sequencer"} 1"#,
            r#"blindfold_batches_sealed_total{role="sequencer"} 0"#,
            r#"blindfold_mempool_envelopes{role="sequencer"} 0"#,
            r#"blindfold_seal_seconds_count{role="sequencer"} 0"#,
            r#"blindfold_rpc_requests_total{method="b",outcome="error",role="sequencer"} 0"#,
            r#"blindfold_rpc_requests_total{method="other",outcome="other",role="sequencer"} 0"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} missing in\n{text}");
        }
    }

    #[test]
    fn values_move_and_unknown_labels_fall_under_other() {
        let metrics = metrics();
        let counter = metrics.counter("c_total", "c").expect("new");
        counter.increment();
        counter.add(4);
        assert_eq!(counter.get(), 5);
        let gauge = metrics.gauge("g", "g").expect("new");
        gauge.set(7);
        gauge.change(-3);
        assert_eq!(gauge.get(), 4);
        gauge.set(u64::MAX);
        assert_eq!(gauge.get(), i64::MAX);
        let histogram = metrics.histogram("h_bytes", "h", BYTES_BUCKETS).expect("new");
        histogram.observe(300.0);
        histogram.observe_duration(std::time::Duration::from_millis(5));
        assert_eq!(histogram.count(), 2);

        let set = metrics.counters("s_total", "s", &[("reason", &["expired"])]).expect("new");
        set.get(&["expired"]).increment();
        set.get(&["made up by a peer"]).increment();
        set.get(&["another"]).increment();
        assert_eq!((set.get(&["expired"]).get(), set.get(&[OTHER_LABEL]).get()), (1, 2));
        let gauges = metrics.gauges("gs", "gs", &[("member", &["1", "2"])]).expect("new");
        gauges.get(&["2"]).set(9);
        let histograms =
            metrics.histograms("hs_seconds", "hs", SECONDS_BUCKETS, &[("step", &["seal"])]).expect("new");
        histograms.get(&["seal"]).observe(0.1);
        let text = metrics.render();
        assert!(text.contains(r#"blindfold_gs{member="2",role="sequencer"} 9"#));
        assert!(text.contains(r#"blindfold_hs_seconds_count{step="seal",role="sequencer"} 1"#));
    }

    #[test]
    fn mistakes_are_named() {
        let metrics = metrics();
        metrics.counter("twice_total", "x").expect("new");
        assert!(
            matches!(metrics.counter("twice_total", "x"), Err(MetricsError::Register { name, .. }) if name == "twice_total")
        );
        assert!(matches!(metrics.gauge("not a name", "x"), Err(MetricsError::Register { .. })));
        let many: &'static [&'static str] = &["a"; 600];
        assert!(matches!(
            metrics.counters("many_total", "x", &[("l", many)]),
            Err(MetricsError::TooManySeries { series: 601, .. })
        ));
    }
}
