//! docs/operate.md against the code: every setting with its default, every metric, every port.

use std::collections::{BTreeMap, BTreeSet};

use blindfold::{
    devnet::ports::Ports,
    roles::{
        CommitteeSettings, CoprocessorSettings, FullNodeSettings, GatewaySettings, HintPublisherSettings,
        ProxySettings, RelaySettings, SequencerSettings, SignerSettings,
    },
};
use blindfold_e2e::drills::rows::{By, ROWS};
use blindfold_kit::chain_config;
use blindfold_telemetry::Metrics;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

const OPERATE: &str = include_str!("../../../docs/operate.md");

/// The text under a heading, up to the next one of its level or a higher one.
fn section(heading: &str) -> &'static str {
    let (_, rest) = OPERATE
        .split_once(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("operate.md has no heading {heading:?}"));
    let level = heading.bytes().take_while(|byte| *byte == b'#').count();
    let ends = (1..=level).filter_map(|level| rest.find(&format!("\n{} ", "#".repeat(level))));
    ends.min().map_or(rest, |end| &rest[..end])
}

/// The rows of the tables in a text: each a list of cells.
fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().filter_map(|line| {
        let cells = line.trim().strip_prefix('|')?.strip_suffix('|')?;
        Some(cells.split('|').map(str::trim).collect())
    })
}

/// A cell that is one piece of code.
fn code(cell: &'static str) -> Option<&'static str> {
    cell.strip_prefix('`')?.strip_suffix('`').filter(|inner| !inner.contains('`'))
}

/// Dotted keys of a settings document; the entries of a list of tables are named `list[].key`.
fn flatten(prefix: &str, value: &Value, keys: &mut BTreeMap<String, Value>) {
    let at = |key: &str| if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, field)| flatten(&at(key), field, keys)),
        Value::Array(entries) => {
            let plain: Vec<_> = entries.iter().filter(|entry| !entry.is_object()).collect();
            keys.insert(prefix.to_owned(), json!(plain));
            for entry in entries.iter().filter(|entry| entry.is_object()) {
                flatten(&format!("{prefix}[]"), entry, keys);
            }
        }
        Value::Null => {}
        other => {
            keys.insert(prefix.to_owned(), other.clone());
        }
    }
}

/// The keys of a document, as the settings type reads and writes it.
fn keys_of<T: DeserializeOwned + Serialize>(document: &Value) -> BTreeMap<String, Value> {
    let settings: T = serde_json::from_value(document.clone()).expect("the settings can be read");
    let mut keys = BTreeMap::new();
    flatten("", &serde_json::to_value(settings).expect("the settings can be written"), &mut keys);
    keys
}

/// Compares a role's table with its settings type. `minimal` has the required keys and nothing else, `full` every
/// optional part beside.
fn check_settings<T: DeserializeOwned + Serialize>(heading: &str, minimal: &Value, full: &Value) {
    let mut required = BTreeMap::new();
    flatten("", minimal, &mut required);
    let (defaults, all) = (keys_of::<T>(minimal), keys_of::<T>(full));
    let expected: BTreeMap<String, String> = all
        .into_keys()
        .map(|key| {
            let default = if required.contains_key(&key) || key.contains("[].") {
                "required".to_owned()
            } else {
                match defaults.get(&key) {
                    Some(Value::String(text)) => format!("`{text}`"),
                    Some(value) => format!("`{value}`"),
                    None => "none".to_owned(),
                }
            };
            (key, default)
        })
        .collect();
    let documented: BTreeMap<String, String> = rows(section(heading))
        .filter_map(|cells| match cells.as_slice() {
            [key, default, _, _] => Some((code(key)?.to_owned(), (*default).to_owned())),
            _ => None,
        })
        .collect();
    assert_eq!(documented, expected, "left: the table under {heading:?}, right: the code");
}

fn l1() -> Value {
    json!({ "url": "http://127.0.0.1:8545" })
}

fn full_l1() -> Value {
    json!({ "url": "http://127.0.0.1:8545", "beacon_url": "http://127.0.0.1:5052", "archive_urls": ["http://127.0.0.1:9650"] })
}

fn execution() -> Value {
    json!({ "http_url": "http://127.0.0.1:8645", "engine_url": "http://127.0.0.1:8651", "jwt_secret": "jwt.hex" })
}

fn store() -> Value {
    json!({ "url": "postgres://blindfold@127.0.0.1/sequencer", "password_file": "password" })
}

fn redis() -> Value {
    json!({ "url": "redis://127.0.0.1:6379/0", "password_file": "password" })
}

fn tls() -> Value {
    json!({ "ca_file": "ca.pem", "cert_file": "client.pem", "key_file": "client-key.pem" })
}

fn traces() -> Value {
    json!({ "url": "http://127.0.0.1:4318/v1/traces", "instance": "one", "headers_file": "headers" })
}

fn certificate() -> Value {
    json!({ "cert_file": "server.pem", "key_file": "server-key.pem" })
}

fn inbound() -> Value {
    json!({ "tls": certificate() })
}

fn peer_listener() -> Value {
    let more = [
        ("/addr", json!("127.0.0.1:9547")),
        ("/client_ca_file", json!("ca.pem")),
        ("/max_connections", json!(256)),
    ];
    with(&certificate(), &more)
}

fn key() -> Value {
    json!({ "file": "key.json" })
}

fn full_key() -> Value {
    json!({ "file": "key.json", "password_file": "password", "password_env": "PASSWORD" })
}

fn member() -> Value {
    json!([{ "member": 1, "url": "http://127.0.0.1:9551" }])
}

const ADDRESS: &str = "0x4200000000000000000000000000000000000011";

/// Lays the second document over the first.
fn with(base: &Value, changes: &[(&str, Value)]) -> Value {
    let mut document = base.clone();
    for (pointer, value) in changes {
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
        let parent = document.pointer_mut(parent).expect("the parent is there");
        parent[name] = value.clone();
    }
    document
}

#[test]
fn the_sequencers_settings_are_documented() {
    let minimal = json!({
        "chain": "rollup.json", "parameters": ["parameters.bin"], "l1": l1(), "execution": execution(),
        "signing_key": key(), "sequencer": { "members": member() },
    });
    let full = with(
        &minimal,
        &[
            ("/l1", full_l1()),
            ("/tls", tls()),
            ("/traces", traces()),
            ("/signing_key", full_key()),
            ("/posting_key", full_key()),
            ("/archive_token_files", json!(["archive.token"])),
            ("/sequencer/inbound", inbound()),
            ("/sequencer/peer_listener", peer_listener()),
            ("/store", store()),
            ("/signer", json!({ "url": "https://signer:9610", "address": ADDRESS, "timeout_ms": 2_000 })),
            ("/failover", json!({ "url": "http://sequencer-2:9545", "lease_ms": 3_000 })),
        ],
    );
    check_settings::<SequencerSettings>("### Settings of the sequencer", &minimal, &full);
}

#[test]
fn the_signers_settings_are_documented() {
    let listener = json!({
        "addr": "0.0.0.0:9610", "cert_file": "signer.pem", "key_file": "signer-key.pem", "client_ca_file": "ca.pem",
    });
    let minimal = json!({
        "chain": "rollup.json", "l1": l1(), "signing_key": key(), "signer": { "listener": listener },
    });
    let full = with(&minimal, &[("/l1", full_l1()), ("/tls", tls()), ("/signing_key", full_key())]);
    check_settings::<SignerSettings>("### Settings of the signer", &minimal, &full);
}

#[test]
fn a_members_settings_are_documented() {
    let minimal = json!({
        "chain": "rollup.json", "l1": l1(), "parameters": "parameters.bin", "key": key(), "data_dir": "member-1",
        "member": {},
    });
    let full = with(
        &minimal,
        &[
            ("/l1", full_l1()),
            ("/tls", tls()),
            ("/traces", traces()),
            ("/key", full_key()),
            ("/posting_key", full_key()),
            ("/member/peers", member()),
            ("/member/inbound", inbound()),
            ("/member/peer_listener", peer_listener()),
            ("/store", store()),
        ],
    );
    check_settings::<CommitteeSettings>("### Settings of a committee member", &minimal, &full);
}

#[test]
fn the_hint_publishers_settings_are_documented() {
    let minimal = json!({
        "chain": "rollup.json", "parameters": ["parameters.bin"], "l1": l1(), "hint_publisher": {},
    });
    let posting = json!({ "key": full_key() });
    let full = with(
        &minimal,
        &[
            ("/l1", full_l1()),
            ("/tls", tls()),
            ("/traces", traces()),
            ("/hello_key", full_key()),
            ("/redis", json!({ "url": "redis://127.0.0.1", "password_file": "password" })),
            ("/hint_publisher/members", member()),
            ("/l1_posting", posting),
        ],
    );
    check_settings::<HintPublisherSettings>("### Settings of the hint publisher", &minimal, &full);
}

#[test]
fn a_full_nodes_settings_are_documented() {
    let minimal = json!({
        "chain": "rollup.json", "parameters": ["parameters.bin"], "l1": l1(), "execution": execution(),
        "data_dir": "full-node",
        "full_node": {
            "rpc_addr": "127.0.0.1:9580", "admin_addr": "127.0.0.1:9581",
            "sequencer_urls": ["http://127.0.0.1:9545"], "members": [],
        },
    });
    let watch = json!({ "key": full_key() });
    let full = with(
        &minimal,
        &[
            ("/l1", full_l1()),
            ("/tls", tls()),
            ("/traces", traces()),
            ("/full_node/members", member()),
            ("/full_node/inbound", inbound()),
            ("/full_node/keep_batches", json!(100_000)),
            ("/watch", watch),
            ("/store", store()),
        ],
    );
    check_settings::<FullNodeSettings>("### Settings of a full node", &minimal, &full);
}

#[test]
fn a_relays_and_a_gateways_settings_are_documented() {
    let minimal =
        json!({ "chain": "rollup.json", "parameters": ["parameters.bin"], "l1": l1(), "relay": {} });
    let full =
        with(&minimal, &[("/l1", full_l1()), ("/tls", tls()), ("/relay", json!({ "inbound": inbound() }))]);
    check_settings::<RelaySettings>("### Settings of a relay", &minimal, &full);
    let (minimal, full) = (
        with(&minimal, &[("/hello_key", key())]),
        with(&full, &[("/hello_key", full_key()), ("/redis", redis()), ("/traces", traces())]),
    );
    check_settings::<GatewaySettings>("### Settings of a gateway", &minimal, &full);
}

#[test]
fn the_coprocessors_settings_are_documented() {
    let minimal = json!({
        "chain": "rollup.json", "deployment": "confidential.json", "keys_dir": "confidential-keys",
        "parameters": ["parameters.bin"], "l1": l1(), "data_dir": "coprocessor",
        "coprocessor": {
            "rpc_addr": "127.0.0.1:9600", "admin_addr": "127.0.0.1:9601", "node_url": "http://127.0.0.1:9580",
        },
    });
    let full = with(
        &minimal,
        &[("/l1", full_l1()), ("/tls", tls()), ("/coprocessor/inbound", inbound()), ("/store", store())],
    );
    check_settings::<CoprocessorSettings>("### Settings of the coprocessor", &minimal, &full);
}

#[test]
fn the_proxys_settings_are_documented() {
    let minimal = json!({ "chain": "rollup.json", "l1": l1(), "fee_key": key() });
    let full = with(
        &minimal,
        &[
            ("/l1", full_l1()),
            ("/tls", tls()),
            ("/traces", traces()),
            ("/fee_key", full_key()),
            ("/proxy", json!({ "inbound": inbound() })),
            ("/pinned_key_hash", json!(format!("0x{}", "11".repeat(32)))),
        ],
    );
    check_settings::<ProxySettings>("### Settings of the proxy", &minimal, &full);
}

#[test]
fn every_key_of_the_chains_file_is_documented_and_no_other() {
    let mut keys = BTreeMap::new();
    flatten("", &serde_json::to_value(&*chain_config()).expect("it can be written"), &mut keys);
    let (_, rest) =
        OPERATE.split_once("\n`rollup.json`, the same file for every party:\n").expect("the table");
    let table = rest.trim_start().split("\n\n").next().expect("a table");
    let documented: BTreeSet<&str> =
        rows(table).flat_map(|cells| cells[0].split(", ").filter_map(code).collect::<Vec<_>>()).collect();
    assert_eq!(documented, keys.keys().map(String::as_str).collect());
    // It has no check but that it is above 0, so none may be promised.
    let w = rows(table).find(|cells| cells[0].contains("maxOriginAgeSeconds")).expect("W")[1];
    assert!(w.contains("above 0"), "{w}");
}

/// The names that a registry shows.
fn names_of(registry: &Metrics) -> BTreeSet<String> {
    let rendered = registry.render();
    let types = rendered.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// The names that a source file registers, for roles that keep their registry to themselves.
fn names_in(source: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::from(["blindfold_build_info".to_owned()]);
    for call in [".counter(", ".counters(", ".gauge(", ".gauges(", ".histogram("] {
        for rest in source.split(call).skip(1) {
            if let Some(name) = rest.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next()) {
                names.insert(format!("{}{name}", blindfold_telemetry::PREFIX));
            }
        }
    }
    assert!(names.len() > 5, "no metrics were found in the source");
    names
}

#[test]
fn every_metric_is_documented_and_no_other() {
    let full_node = Metrics::new("full_node", "test").expect("a registry");
    blindfold_full_node::Counters::new(&full_node).expect("registers");
    let coprocessor = Metrics::new("coprocessor", "test").expect("a registry");
    blindfold_coprocessor::Counters::new(&coprocessor).expect("registers");
    let sequencer = names_in(include_str!("../../../sequencer/src/metrics.rs"));
    let proxy = names_in(include_str!("../../../client/src/proxy/mod.rs"));
    let archive = names_in(include_str!("../../../blindfold/src/archive/metrics.rs"));
    let signer = blindfold_signer::SignerMetrics::new().expect("registers").registry;
    let member = blindfold_committee::MemberMetrics::new().expect("registers").registry;
    let hint_publisher = blindfold_hint_publisher::HintPublisherMetrics::new().expect("registers").registry;
    let gateway = blindfold_gateway::GatewayMetrics::new("gateway").expect("registers").registry;
    let every = Metrics::new("any", "test").expect("a registry");
    blindfold_rpc::TlsMetrics::new(&every).expect("registers");
    blindfold_rpc::RpcMetrics::new(&every).expect("registers");
    blindfold_store::StoreMetrics::new(&every).expect("registers");
    for (heading, registered) in [
        ("### Metrics of every role", names_of(&every)),
        ("### Metrics of the sequencer", sequencer),
        ("### Metrics of the signer", names_of(&signer)),
        ("### Metrics of a committee member", names_of(&member)),
        ("### Metrics of the hint publisher", names_of(&hint_publisher)),
        ("### Metrics of relays and gateways", names_of(&gateway)),
        ("### Metrics of a full node", names_of(&full_node)),
        ("### Metrics of the coprocessor", names_of(&coprocessor)),
        ("### Metrics of the proxy", proxy),
        ("### Metrics of an archive", archive),
    ] {
        let documented: BTreeSet<String> = rows(section(heading))
            .filter_map(|cells| Some(code(cells.first()?)?.to_owned()))
            .chain(["blindfold_build_info".to_owned()])
            .collect();
        assert_eq!(documented, registered, "left: {heading:?}, right: the code");
    }
    assert!(section("## Metrics").contains("`blindfold_build_info`"));
}

#[test]
fn every_port_of_the_development_network_is_documented() {
    let numbers: BTreeSet<u16> = section("## Ports")
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect();
    let Ports {
        l1,
        sequencer,
        members,
        hint_publisher,
        full_node,
        proxy,
        coprocessor,
        sequencer_execution,
        full_node_execution,
        l1_node: _,
        further_sequencers: _,
        signer: _,
        gateways: _,
        relay: _,
        second_hint_publisher: _,
    } = Ports::documented(4);
    let pairs = [sequencer, full_node, proxy, coprocessor, sequencer_execution, full_node_execution];
    let pairs = pairs.into_iter().chain(members).flat_map(|(first, second)| [first, second]);
    let further = Ports::documented_replicated(4).further_sequencers;
    let further = further.iter().flat_map(|one| [one.node.0, one.node.1, one.execution.0, one.execution.1]);
    let gateways = Ports::documented_replicated(4).gateways.into_iter().flat_map(|(rpc, admin)| [rpc, admin]);
    let second = Ports::documented_replicated(4).second_hint_publisher.expect("there is one");
    let signer = Ports::documented_replicated(4).signer.into_iter().flat_map(|(rpc, admin)| [rpc, admin]);
    let relay = Ports::documented_replicated(4).relay.into_iter().flat_map(|(rpc, admin)| [rpc, admin]);
    let gateways = gateways.chain(relay);
    let pairs = pairs.chain([l1, hint_publisher, second]).chain(further).chain(gateways);
    for port in pairs.chain(signer) {
        assert!(numbers.contains(&port), "port {port} is not in the table of operate.md");
    }
}

#[test]
fn every_failure_is_reproduced_and_names_the_alarms_that_fired() {
    let table: Vec<Vec<&str>> = rows(section("## What fails, and what to do")).skip(2).collect();
    assert_eq!(table.len(), ROWS.len(), "rows of the table, and of testing/e2e/src/drills/rows.rs");
    for (cells, row) in table.iter().zip(ROWS) {
        let [what, _, _, alarms] = cells.as_slice() else { panic!("{cells:?} has other columns") };
        assert!(what.starts_with(row.what), "{what:?} stands where the drills have {:?}", row.what);
        let link = |name: &&str| format!("[{name}](#{})", name.to_lowercase());
        let named = match row.by {
            By::Nothing(why) => format!("none: {why}"),
            By::Drill(_) | By::Case(_) => row.alarms.iter().map(link).collect::<Vec<_>>().join(", "),
        };
        assert_eq!(*alarms, named, "alarms of {what:?}");
    }
}

#[test]
fn the_settings_shown_are_read() {
    let blocks: Vec<&str> =
        OPERATE.split("```toml").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let [sequencer, member, signer] = blocks.as_slice() else { panic!("{} blocks of TOML", blocks.len()) };
    toml::from_str::<SequencerSettings>(sequencer).expect("a sequencer's settings");
    toml::from_str::<CommitteeSettings>(member).expect("a member's settings");
    toml::from_str::<SignerSettings>(signer).expect("a signer's settings");
}

#[test]
fn every_environment_variable_is_documented() {
    let sources = [
        include_str!("../../../blindfold/src/cli.rs"),
        include_str!("../../../blindfold/src/wallet.rs"),
        include_str!("../../../blindfold/src/wallet/accuse.rs"),
        include_str!("../../../blindfold/src/wallet/confidential.rs"),
        include_str!("../../../blindfold/src/wallet/confidential/invoice.rs"),
        include_str!("../../../blindfold/src/wallet/fees.rs"),
        include_str!("../../../blindfold/src/wallet/force.rs"),
        include_str!("../../../blindfold/src/deploy.rs"),
        include_str!("../../../blindfold/src/l1_commands/mod.rs"),
        include_str!("../../../blindfold/src/setup.rs"),
        include_str!("../../../crates/engine/src/managed.rs"),
    ];
    let text = section("## Settings, flags and environment");
    for source in sources {
        for rest in source.split("env = \"").skip(1).chain(source.split("BINARY_VARIABLE: &str = \"").skip(1))
        {
            let name = rest.split('"').next().unwrap_or_default();
            assert!(text.contains(&format!("`{name}`")), "{name} is not in operate.md");
        }
    }
}
