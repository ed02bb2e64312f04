//! docker/ against the code: every settings file is read as its role reads it, every variable exists, every role has an image.
//! `testing/containers` holds compose files and chart together.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use blindfold::{
    devnet::{MEMBERS, ports::Ports},
    roles::{
        CommitteeSettings, CoprocessorSettings, FullNodeSettings, GatewaySettings, HintPublisherSettings,
        ProxySettings, RelaySettings, SequencerSettings, SignerSettings,
    },
};
use clap::Parser as _;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

const OPERATE: &str = include_str!("../../../docs/operate.md");

fn docker() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docker")
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Files of docker/ with this ending, and its folders', by path.
fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("docker/ is there") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let content = text(&path);
            found.insert(path, content);
        }
    }
    found
}

/// A settings file as its role reads it, as a document.
fn read<S: DeserializeOwned + Serialize>(name: &str) -> Value {
    let content = text(&docker().join("settings").join(name));
    let settings: S = toml::from_str(&content).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::to_value(&settings).expect("it can be written")
}

/// The settings of all containers by file, with the role.
fn all_settings() -> BTreeMap<String, (&'static str, Value)> {
    let mut all = BTreeMap::new();
    for number in SEQUENCERS {
        let file = format!("sequencer-{number}.toml");
        all.insert(file.clone(), ("sequencer", read::<SequencerSettings>(&file)));
    }
    for member in 1..=MEMBERS {
        let file = format!("member-{member}.toml");
        all.insert(file.clone(), ("committee", read::<CommitteeSettings>(&file)));
    }
    for number in GATEWAYS {
        let file = format!("gateway-{number}.toml");
        all.insert(file.clone(), ("gateway", read::<GatewaySettings>(&file)));
    }
    for number in HINT_PUBLISHERS {
        let file = format!("hint-publisher-{number}.toml");
        all.insert(file.clone(), ("hint-publisher", read::<HintPublisherSettings>(&file)));
    }
    let mut add = |file: &str, role, document| all.insert(file.to_owned(), (role, document));
    add("signer.toml", "signer", read::<SignerSettings>("signer.toml"));
    add("full-node.toml", "full-node", read::<FullNodeSettings>("full-node.toml"));
    add("coprocessor.toml", "coprocessor", read::<CoprocessorSettings>("coprocessor.toml"));
    add("proxy.toml", "proxy", read::<ProxySettings>("proxy.toml"));
    add("relay.toml", "relay", read::<RelaySettings>("relay.toml"));
    all
}

const SEQUENCERS: [u16; 2] = [1, 2];
const GATEWAYS: [u16; 2] = [1, 2];
const HINT_PUBLISHERS: [u16; 2] = [1, 2];

/// Each is in a container of its own, with the first one's ports; so has a relay alone.
fn gateway_ports() -> (u16, u16) {
    Ports::documented_replicated(MEMBERS).gateways[0]
}

#[test]
fn every_settings_file_is_read_by_its_role() {
    let read: BTreeSet<String> = all_settings().into_keys().collect();
    let there: BTreeSet<String> = files(&docker().join("settings"))
        .into_keys()
        .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    assert_eq!(read, there);
}

#[test]
fn ports_are_the_documented_ones() {
    let ports = Ports::documented(MEMBERS);
    let expected = |role: &str| match role {
        "sequencer" => (Some(ports.sequencer.0), ports.sequencer.1),
        "signer" => Ports::documented_replicated(MEMBERS)
            .signer
            .map(|(port, admin)| (Some(port), admin))
            .expect("one"),
        // Each has an address of its own, so all have the first one's ports.
        "committee" => (Some(ports.members[0].0), ports.members[0].1),
        "hint-publisher" => (None, ports.hint_publisher),
        "full-node" => (Some(ports.full_node.0), ports.full_node.1),
        "coprocessor" => (Some(ports.coprocessor.0), ports.coprocessor.1),
        "proxy" => (Some(ports.proxy.0), ports.proxy.1),
        "gateway" | "relay" => (Some(gateway_ports().0), gateway_ports().1),
        other => panic!("{other} is no role"),
    };
    for (file, (role, document)) in all_settings() {
        let (rpc, admin) = expected(role);
        let own = document.get(match role {
            "committee" => "member".to_owned(),
            // A gateway is a relay besides.
            "gateway" => "relay".to_owned(),
            role => role.replace('-', "_"),
        });
        let own = own.unwrap_or_else(|| panic!("{file} has no settings of its role"));
        let address = |key: &str| own.pointer(key).and_then(Value::as_str).map(str::to_owned);
        let listens = if role == "signer" { "/listener/addr" } else { "/rpc_addr" };
        assert_eq!(address(listens), rpc.map(|port| format!("0.0.0.0:{port}")), "{file}");
        assert_eq!(address("/admin_addr"), Some(format!("0.0.0.0:{admin}")), "{file}");
        let image = text(&docker().join(format!("{role}.Dockerfile")));
        let exposed: Vec<String> = rpc.into_iter().chain([admin]).map(|port| port.to_string()).collect();
        assert!(
            image.contains(&format!("\nEXPOSE {}\n", exposed.join(" "))),
            "{role}.Dockerfile: {exposed:?}"
        );
        assert!(image.contains(&format!("http://127.0.0.1:{admin}/healthz")), "{role}.Dockerfile: {admin}");
        assert!(image.contains(&format!("\nENTRYPOINT [\"/blindfold\", \"{role}\"]\n")), "{role}.Dockerfile");
    }
    let execution = text(&docker().join("execution.Dockerfile"));
    let (reads, engine) = ports.sequencer_execution;
    assert!(execution.contains(&format!("\nEXPOSE {reads} {engine}\n")));
    assert!(text(&docker().join("l1-dev.Dockerfile")).contains(&format!("\nEXPOSE {}\n", ports.l1)));
}

/// An archive has flags in place of a settings file.
#[test]
fn an_archives_image_starts_it_with_a_token() {
    let image = text(&docker().join("archive.Dockerfile"));
    let composition = text(&docker().join("compose.archive.yaml"));
    assert!(image.contains("\nEXPOSE 9650 9651\n") && image.contains("http://127.0.0.1:9651/healthz"));
    let words = |instruction: &str| -> Vec<String> {
        let line = image.lines().find_map(|line| line.strip_prefix(instruction)).expect("the instruction");
        serde_json::from_str(line).expect("a list of words")
    };
    let command = [words("ENTRYPOINT "), words("CMD ")].concat();
    blindfold::cli::Cli::try_parse_from(&command).expect("the binary takes these words");
    let token = command.iter().position(|word| word == "--token-file").expect("whoever writes shows a token");
    let file = command[token + 1].strip_prefix("/run/secrets/").expect("a secret");
    assert!(composition.contains(&format!("target: {file} }}")), "{file}");
    assert!(composition.contains(&format!("/secrets/{file}\"")), "{file}");
    assert!(include_str!("../../../scripts/containers").contains(&format!("secret {file} ")), "{file}");
}

/// Dotted keys of a document.
fn keys(prefix: &str, value: &Value, found: &mut BTreeSet<String>) {
    if let Value::Object(fields) = value {
        for (key, field) in fields {
            let at = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            found.insert(at.clone());
            keys(&at, field, found);
        }
    }
}

/// The words of a text that begin like variables of ours.
fn variables(text: &str) -> BTreeSet<String> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !word(c)).filter(|name| name.starts_with("BLINDFOLD_")).map(str::to_owned).collect()
}

#[test]
fn every_variable_exists() {
    let all = all_settings();
    let (_, environment) = OPERATE.split_once("\n## Settings, flags and environment\n").expect("the heading");
    let (_, containers) = OPERATE.split_once("\n## Deploy with containers\n").expect("the heading");
    let containers = containers.split("\n## ").next().expect("a chapter");
    for (path, content) in files(&docker()) {
        for name in variables(&content) {
            let known = match name.split_once("__") {
                // A setting of a role: one that the role reads, in a file of ours or by default.
                Some((role, key)) => all.values().any(|(known, document)| {
                    let mut named = BTreeSet::new();
                    keys("", document, &mut named);
                    role == format!("BLINDFOLD_{}", known.to_uppercase().replace('-', "_"))
                        && named.contains(&key.to_lowercase().replace("__", "."))
                }),
                // Of every command, or of compose files and scripts/containers.
                None => {
                    environment.contains(&format!("| `{name}` |"))
                        || containers.contains(&format!("`{name}`"))
                }
            };
            let known = known || TESTS.contains(&name.as_str());
            assert!(known, "{}: nothing reads {name}", path.display());
        }
    }
}

/// Variables of the checks themselves.
const TESTS: [&str; 2] = ["BLINDFOLD_REQUIRED", "BLINDFOLD_NOT_RUN"];

#[test]
fn every_url_names_a_container_and_a_port_that_it_listens_on() {
    let compose = text(&docker().join("compose.yaml")) + &text(&docker().join("compose.l1-dev.yaml"));
    let ports = Ports::documented(MEMBERS);
    for (file, content) in files(&docker().join("settings")) {
        let mut seen = 0;
        for rest in content.split("://").skip(1) {
            let url = rest.split('"').next().expect("the rest of the line");
            let authority = url.split('/').next().expect("an authority");
            let hosts = authority.rsplit('@').next().expect("hosts");
            for host in hosts.split(',') {
                let (name, port) =
                    host.split_once(':').unwrap_or_else(|| panic!("{}: {host}", file.display()));
                assert!(compose.contains(&format!("\n  {name}:\n")), "{}: {name}", file.display());
                let expected = match name.trim_end_matches(|c: char| c.is_ascii_digit()) {
                    "l" => vec![ports.l1],
                    "postgres-" => vec![5432],
                    "sequencer-" => vec![ports.sequencer.0],
                    "signer" => Ports::documented_replicated(MEMBERS)
                        .signer
                        .map(|(port, _)| port)
                        .into_iter()
                        .collect(),
                    "gateway-" => vec![gateway_ports().0],
                    "redis" => vec![6379],
                    "member-" => vec![ports.members[0].0],
                    "full-node" => vec![ports.full_node.0],
                    _ => vec![ports.sequencer_execution.0, ports.sequencer_execution.1],
                };
                assert!(expected.iter().any(|known| known.to_string() == port), "{}: {host}", file.display());
                seen += 1;
            }
        }
        assert!(seen > 0, "{}", file.display());
    }
}

/// `scripts/containers prepare` puts accounts where these lines are.
#[test]
fn accounts_are_left_to_be_filled_in() {
    for (file, content) in files(&docker().join("settings")) {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        let has = |line: &str| content.lines().filter(|other| *other == line).count() == 1;
        let sequencer = name.starts_with("sequencer-");
        assert_eq!(has("gateways = []"), sequencer, "{name}");
        let nobody = "address = \"0x0000000000000000000000000000000000000000\"";
        assert_eq!(has(nobody), sequencer, "{name}");
        assert_eq!(has("hint_publishers = []"), sequencer || name.starts_with("member-"), "{name}");
    }
}

#[test]
fn no_secret_stands_in_a_settings_file() {
    for (file, content) in files(&docker().join("settings")) {
        for line in content.lines().filter(|line| line.contains("password") || line.contains("secret")) {
            assert!(line.contains("= \"/run/secrets/"), "{}: {line}", file.display());
        }
    }
}

#[test]
fn every_role_has_an_image() {
    let main = include_str!("../../../scripts/containers");
    for (path, content) in files(&docker()) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".Dockerfile")) else {
            continue;
        };
        assert!(main.contains(name), "scripts/containers does not build {name}");
        if !["binaries", "prebuilt"].contains(&name) {
            assert!(content.contains("\nUSER 1000"), "{name} runs as root");
            assert!(
                ["cli", "blackbox-exporter"].contains(&name) || content.contains("\nHEALTHCHECK "),
                "{name} has no health check"
            );
            assert!(
                name == "postgres" || content.contains("\nFROM scratch\n"),
                "{name} has more than it needs"
            );
        }
    }
    for (role, _) in all_settings().into_values() {
        assert!(docker().join(format!("{role}.Dockerfile")).is_file(), "{role}");
    }
}
