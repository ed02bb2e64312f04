//! Prometheus with the alarms of `observability/`, beside a network whose time is sped up for it: an alarm that waits for five
//! minutes waits for five seconds.
//!
//! Every duration of the rules is divided by [`SPEED`], and so is every age that they hold against a number; counts are not.
//! Roles run at their own speed. Deadlines of L1 are those of the network (`scripts/alarms --chain`).

use std::{collections::BTreeSet, ffi::OsStr, fs, io::Write, path::Path, process::Stdio};

use anyhow::{Context, Result, bail, ensure};
use blindfold::devnet::{
    Devnet, MEMBERS, THRESHOLD,
    ports::{Ports, local},
};
use serde_json::{Value, json};
use tokio::{
    process::{Child, Command},
    time::{Duration, Instant, sleep},
};

/// By how much the rules' time is sped up.
pub const SPEED: u64 = 60;
/// How often roles are asked, and rules are computed.
const INTERVAL: &str = "500ms";
/// How long a server may take to start, and a look at it.
const START: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(250);
const ANSWER: Duration = Duration::from_secs(10);
/// The programs, and the Debian package of each.
const PROMETHEUS: (&str, &str) = ("prometheus", "prometheus");
const BLACKBOX: (&str, &str) = ("prometheus-blackbox-exporter", "prometheus-blackbox-exporter");
/// Folder of rules and settings in the repository.
const OBSERVABILITY: &str = "observability";

/// A running Prometheus, and the exporter that asks whether roles are ready.
pub struct Alarms {
    url: String,
    http: reqwest::Client,
    _servers: [Child; 2],
}

impl Alarms {
    /// Starts both in a folder of the network; `None` where they are not installed, which is told to whoever reads what did
    /// not run.
    ///
    /// # Errors
    /// When they are installed and do not start, and, with `BLINDFOLD_REQUIRED` set, where they are not.
    pub async fn start(devnet: &Devnet) -> Result<Option<Self>> {
        for (program, package) in [PROMETHEUS, BLACKBOX] {
            if !is_on_path(program) {
                let missing =
                    format!("alarms beside a network: {program} is not installed: apt-get install {package}");
                ensure!(std::env::var_os("BLINDFOLD_REQUIRED").is_none(), missing);
                not_run(&missing);
                return Ok(None);
            }
        }
        let dir = devnet.dir().join(OBSERVABILITY);
        fs::create_dir_all(&dir)?;
        let [port, blackbox] = free_ports()?;
        write_rules(&dir, devnet).await?;
        fs::write(dir.join("prometheus.yml"), settings(&devnet.ports, blackbox)?.to_string())?;

        let mut exporter = Command::new(BLACKBOX.0);
        exporter.arg("--config.file").arg(Path::new(OBSERVABILITY).join("blackbox.yml"));
        exporter.arg(format!("--web.listen-address={}", local(blackbox)));
        // Half a second before Prometheus gives up by default.
        exporter.arg("--timeout-offset=0.1");
        let mut prometheus = Command::new(PROMETHEUS.0);
        prometheus.arg("--config.file").arg(dir.join("prometheus.yml"));
        prometheus.arg("--storage.tsdb.path").arg(dir.join("data"));
        prometheus.arg(format!("--web.listen-address={}", local(port)));
        let servers =
            [spawn(exporter, &dir.join("blackbox.log"))?, spawn(prometheus, &dir.join("prometheus.log"))?];
        let alarms =
            Self { url: format!("http://{}", local(port)), http: crate::http_client(), _servers: servers };
        let deadline = Instant::now() + START;
        while alarms.get("/-/ready").await.is_err() {
            ensure!(Instant::now() < deadline, "prometheus does not start; see {}", dir.display());
            sleep(LOOK).await;
        }
        Ok(Some(alarms))
    }

    /// The alarms that fire now.
    ///
    /// # Errors
    /// When Prometheus does not answer.
    pub async fn firing(&self) -> Result<BTreeSet<String>> {
        self.names(r#"ALERTS{alertstate="firing"}"#).await
    }

    /// The alarms that fired at any time since then.
    ///
    /// # Errors
    /// When Prometheus does not answer.
    pub async fn fired_since(&self, since: Instant) -> Result<BTreeSet<String>> {
        let ms = since.elapsed().as_millis().max(1);
        self.names(&format!(r#"max_over_time(ALERTS{{alertstate="firing"}}[{ms}ms])"#)).await
    }

    /// Waits until all of these fire at once. Gives how long it took.
    ///
    /// # Errors
    /// When they do not in time.
    pub async fn all_fire(&self, names: &[&str], patience: Duration) -> Result<Duration> {
        let begun = Instant::now();
        loop {
            let firing = self.firing().await?;
            let missing: Vec<&str> = names.iter().copied().filter(|name| !firing.contains(*name)).collect();
            if missing.is_empty() {
                return Ok(begun.elapsed());
            }
            if begun.elapsed() > patience {
                bail!(
                    "waited {} s in vain for {} to fire; firing: {firing:?}",
                    patience.as_secs(),
                    missing.join(", ")
                );
            }
            sleep(LOOK).await;
        }
    }

    /// Waits until none of these fires.
    ///
    /// # Errors
    /// When one goes on.
    pub async fn none_fires(&self, names: &[&str], patience: Duration) -> Result<()> {
        let begun = Instant::now();
        loop {
            let firing = self.firing().await?;
            let Some(one) = names.iter().find(|name| firing.contains(**name)) else { return Ok(()) };
            if begun.elapsed() > patience {
                let of = self.series(&format!(r#"ALERTS{{alertstate="firing",alertname="{one}"}}"#)).await?;
                bail!("{one} still fires after {} s: {}", patience.as_secs(), json!(of));
            }
            sleep(LOOK).await;
        }
    }

    async fn names(&self, query: &str) -> Result<BTreeSet<String>> {
        let name = |labels: Value| labels["alertname"].as_str().map(str::to_owned);
        Ok(self.series(query).await?.into_iter().filter_map(name).collect())
    }

    /// The labels of each series that a query gives.
    async fn series(&self, query: &str) -> Result<Vec<Value>> {
        let mut answer: Value = self.get(&format!("/api/v1/query?query={}", escaped(query))).await?;
        let series = answer["data"]["result"].as_array_mut().context("an answer without a result")?;
        Ok(series.iter_mut().map(|one| one["metric"].take()).collect())
    }

    async fn get(&self, path: &str) -> Result<Value> {
        let answer = self.http.get(format!("{}{path}", self.url)).timeout(ANSWER).send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        ensure!(status.is_success(), "prometheus: {status}: {text}");
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }
}

fn spawn(mut command: Command, log: &Path) -> Result<Child> {
    let log = fs::File::create(log)?;
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    // Ctrl-C reaches the run alone, which then ends them.
    Ok(command.process_group(0).kill_on_drop(true).spawn()?)
}

fn free_ports() -> Result<[u16; 2]> {
    // Held until both are known.
    let listeners = [std::net::TcpListener::bind(local(0))?, std::net::TcpListener::bind(local(0))?];
    Ok([listeners[0].local_addr()?.port(), listeners[1].local_addr()?.port()])
}

fn is_on_path(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

/// A line in the file that `BLINDFOLD_NOT_RUN` names, if it names one.
fn not_run(line: &str) {
    eprintln!("NOT RUN: {line}");
    let path = std::env::var_os("BLINDFOLD_NOT_RUN").filter(|path| path.as_os_str() != OsStr::new(""));
    let Some(file) = path.and_then(|path| fs::OpenOptions::new().append(true).create(true).open(path).ok())
    else {
        return;
    };
    let _ = writeln!(&file, "{line}");
}

/// What a URL's query may hold.
fn escaped(text: &str) -> String {
    let kept = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
    text.bytes()
        .map(|byte| if kept(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// The rules, sped up, with the figures of this chain.
async fn write_rules(dir: &Path, devnet: &Devnet) -> Result<()> {
    for folder in ["rules", "alerts"] {
        let source = Path::new(OBSERVABILITY).join(folder);
        fs::create_dir_all(dir.join(folder))?;
        for entry in fs::read_dir(&source).with_context(|| source.display().to_string())? {
            let path = entry?.path();
            let text = fs::read_to_string(&path)?;
            fs::write(dir.join(folder).join(path.file_name().context("a name")?), sped_up(&text))?;
        }
    }
    let mut alarms = Command::new("scripts/alarms");
    alarms.arg("--chain").arg(devnet.dir().join("rollup.json"));
    alarms.args(["--members", &MEMBERS.to_string(), "--threshold", &THRESHOLD.to_string()]);
    alarms.args(["--l1-block-seconds", "1"]);
    let output = alarms.output().await.context("scripts/alarms")?;
    ensure!(output.status.success(), "scripts/alarms: {}", String::from_utf8_lossy(&output.stderr));
    let chain = sped_up(&String::from_utf8(output.stdout)?);
    Ok(fs::write(dir.join("rules/chain.yaml"), chain)?)
}

/// Where everything is, by the jobs of `observability/prometheus.yml`.
fn settings(ports: &Ports, blackbox: u16) -> Result<Value> {
    let further = ports.further_sequencers.iter().map(|ports| ports.node.1);
    let jobs: [(&str, Vec<u16>); 8] = [
        ("sequencer", [ports.sequencer.1].into_iter().chain(further).collect()),
        ("signer", ports.signer.iter().map(|(_, admin)| *admin).collect()),
        ("committee", ports.members.iter().map(|(_, admin)| *admin).collect()),
        ("hint-publisher", [ports.hint_publisher].into_iter().chain(ports.second_hint_publisher).collect()),
        ("full-node", vec![ports.full_node.1]),
        ("gateway", ports.gateways.iter().map(|(_, admin)| *admin).collect()),
        ("relay", ports.relay.iter().map(|(_, admin)| *admin).collect()),
        ("proxy", vec![ports.proxy.1]),
    ];
    let known = fs::read_to_string(Path::new(OBSERVABILITY).join("prometheus.yml"))?;
    let mut scraped = Vec::new();
    for (role, admin) in &jobs {
        let job = format!("blindfold-{role}");
        ensure!(
            known.contains(&format!("job_name: {job}\n")),
            "observability/prometheus.yml has no job {job}"
        );
        let targets: Vec<String> = admin.iter().map(|port| local(*port).to_string()).collect();
        scraped.push(json!({ "job_name": job, "static_configs": [{ "targets": targets }] }));
    }
    let all: Vec<String> =
        jobs.iter().flat_map(|(_, admin)| admin).map(|port| local(*port).to_string()).collect();
    scraped.push(json!({
        "job_name": "blindfold-ready",
        "metrics_path": "/probe",
        "scrape_interval": "1s",
        "scrape_timeout": "1s",
        "params": { "module": ["ready"] },
        "static_configs": [{ "targets": all }],
        "relabel_configs": [
            { "source_labels": ["__address__"], "target_label": "instance" },
            { "source_labels": ["__address__"], "regex": "(.+)", "replacement": "http://${1}/readyz",
              "target_label": "__param_target" },
            { "target_label": "__address__", "replacement": local(blackbox).to_string() },
        ],
    }));
    Ok(json!({
        "global": { "scrape_interval": INTERVAL, "scrape_timeout": INTERVAL, "evaluation_interval": INTERVAL },
        "rule_files": ["rules/*.yaml", "alerts/*.yaml"],
        "scrape_configs": scraped,
    }))
}

/// Rules whose time runs [`SPEED`] times as fast.
fn sped_up(rules: &str) -> String {
    rules.lines().map(|line| sped_up_line(line) + "\n").collect()
}

fn sped_up_line(line: &str) -> String {
    if line.trim_start().starts_with('#') {
        return line.to_owned();
    }
    for key in ["for: ", "interval: "] {
        if let Some((indent, duration)) = line.split_once(key)
            && indent.trim().is_empty()
        {
            return format!("{indent}{key}{}", sped_up_duration(duration.trim()));
        }
    }
    let mut made = String::new();
    let mut rest = line;
    // Ranges: [5m], [2m:15s], [15m:].
    while let Some((before, range)) = rest.split_once('[') {
        let Some((range, after)) = range.split_once(']') else { break };
        let range: Vec<String> = range.split(':').map(sped_up_duration).collect();
        made = format!("{made}{before}[{}]", range.join(":"));
        rest = after;
    }
    made.push_str(rest);
    // Ages: `…:seconds > 2700`, `…_ms > 60000`.
    for unit in [":seconds > ", "_ms > "] {
        if let Some((before, age)) = made.split_once(unit)
            && let Ok(age) = age.trim().parse::<u64>()
        {
            return format!("{before}{unit}{}", age / SPEED);
        }
    }
    made
}

/// `5m` as `5000ms`; what is no duration stays as it is.
fn sped_up_duration(duration: &str) -> String {
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let digits = duration.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let found = units.iter().find(|(unit, _)| *unit == &duration[digits.len()..]);
    match (found, digits.parse::<u64>()) {
        (Some((_, ms)), Ok(count)) => format!("{}ms", (count * ms / SPEED).max(1)),
        _ => duration.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_ages_are_sped_up_and_nothing_else() {
        for (rule, sped) in [
            ("        for: 5m", "        for: 5000ms"),
            ("    interval: 1m", "    interval: 1000ms"),
            ("  min_over_time((a - b)[2m:15s]) >= 12", "  min_over_time((a - b)[2000ms:250ms]) >= 12"),
            (
                "  min(min_over_time((blindfold_term > 0)[15m:])) > 5",
                "  min(min_over_time((blindfold_term > 0)[15000ms:])) > 5",
            ),
            ("  max_over_time(x[1h] @ end()) > 0", "  max_over_time(x[60000ms] @ end()) > 0"),
            ("  expr: blindfold:unposted_age:seconds > 2700", "  expr: blindfold:unposted_age:seconds > 45"),
            ("  expr: blindfold_oldest_envelope_ms > 60000", "  expr: blindfold_oldest_envelope_ms > 1000"),
            (
                "  x > scalar(blindfold:hint_deadline:seconds) / 4",
                "  x > scalar(blindfold:hint_deadline:seconds) / 4",
            ),
            ("  rate(x{reason=~\"a|b\"}[5m])", "  rate(x{reason=~\"a|b\"}[5000ms])"),
            ("# for 5m: [5m]", "# for 5m: [5m]"),
        ] {
            assert_eq!(sped_up_line(rule), sped);
        }
    }

    #[test]
    fn a_query_fits_into_a_url() {
        assert_eq!(escaped("a{b=\"c\"}[5ms]"), "a%7Bb%3D%22c%22%7D%5B5ms%5D");
    }
}
