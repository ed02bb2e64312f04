//! The declared dependency chain and the licence policy, checked over `cargo metadata`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Command,
};

use serde_json::Value;

/// What each workspace crate may depend on directly (development dependencies apart). Drawn in docs/architecture.md.
const CHAIN: &[(&str, &[&str])] = &[
    ("blindfold-runtime", &[]),
    ("blindfold-telemetry", &["runtime"]),
    ("blindfold-tls", &["runtime"]),
    ("blindfold-bte", &["reference"]), // optional, off by default
    ("blindfold-reference", &[]),
    ("blindfold-gpu", &["bte", "ptx"]), // ptx: optional, for tests, outside the workspace
    ("blindfold-rlwe", &[]),
    ("blindfold-recovery", &[]),
    ("blindfold-protocol", &["bte", "recovery"]),
    ("blindfold-rpc", &["protocol", "bte", "runtime", "telemetry", "tls"]),
    ("blindfold-store", &["protocol", "bte", "runtime", "telemetry", "tls"]),
    ("blindfold-otlp", &["telemetry", "tls"]),
    ("blindfold-redis", &["runtime", "telemetry", "tls"]),
    ("blindfold-engine", &["protocol", "runtime", "telemetry", "tls"]),
    ("blindfold-l1", &["protocol", "bte", "engine", "runtime", "telemetry", "tls"]),
    ("blindfold-chain", &["protocol", "bte", "rpc", "store", "engine", "l1", "runtime", "telemetry"]),
    (
        "blindfold-sequencer",
        &["protocol", "bte", "rpc", "store", "engine", "l1", "chain", "runtime", "telemetry"],
    ),
    ("blindfold-signer", &["protocol", "rpc", "store", "chain", "runtime", "telemetry"]),
    (
        "blindfold-committee",
        &["protocol", "bte", "rpc", "store", "engine", "l1", "chain", "runtime", "telemetry"],
    ),
    (
        "blindfold-hint-publisher",
        &["protocol", "bte", "rpc", "redis", "store", "engine", "l1", "chain", "runtime", "telemetry"],
    ),
    ("blindfold-gateway", &["protocol", "bte", "redis", "rpc", "chain", "runtime", "telemetry"]),
    (
        "blindfold-full-node",
        &["protocol", "bte", "rpc", "store", "engine", "l1", "chain", "runtime", "telemetry"],
    ),
    ("blindfold-groth16", &[]),
    ("blindfold-confidential", &["groth16", "rlwe", "protocol"]),
    (
        "blindfold-coprocessor",
        &[
            "confidential",
            "groth16",
            "rlwe",
            "protocol",
            "bte",
            "rpc",
            "store",
            "chain",
            "runtime",
            "telemetry",
        ],
    ),
    (
        "blindfold-client",
        &["confidential", "groth16", "rlwe", "protocol", "bte", "rpc", "store", "l1", "runtime", "telemetry"],
    ),
    ("blindfold-elgamal-baseline", &[]), // benchmark only
    ("blindfold-certificates", &[]),     // tests and development chains only
    ("blindfold-servers", &[]),          // tests and development chains only
    ("blindfold-kit", &["protocol", "bte", "rpc", "store", "engine", "l1", "chain", "runtime"]), // tests only
    ("blindfold-fuzz-targets", &["bte", "confidential", "engine", "l1", "protocol", "rlwe", "rpc"]), // tests only
];

fn metadata() -> Value {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--manifest-path", manifest])
        .output()
        .expect("cargo metadata runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

fn members(metadata: &Value) -> BTreeMap<String, &Value> {
    let list = |field: &str| metadata[field].as_array().expect("cargo metadata lists it");
    let ids: Vec<&Value> = list("workspace_members").iter().collect();
    list("packages")
        .iter()
        .filter(|package| ids.contains(&&package["id"]))
        .map(|package| (package["name"].as_str().expect("a package has a name").to_owned(), package))
        .collect()
}

#[test]
fn crates_depend_only_down_the_declared_chain() {
    let metadata = metadata();
    for (name, package) in members(&metadata) {
        // The binary and the tests are where everything meets.
        if ["blindfold", "blindfold-e2e", "blindfold-openrpc", "blindfold-sim"].contains(&name.as_str()) {
            continue;
        }
        let (_, allowed) = CHAIN.iter().find(|(declared, _)| *declared == name).unwrap_or_else(|| {
            panic!("{name} is not in the declared chain: add it here and in docs/architecture.md")
        });
        for dependency in package["dependencies"].as_array().unwrap() {
            let Some(target) = dependency["name"].as_str().unwrap().strip_prefix("blindfold-") else {
                continue;
            };
            if dependency["kind"].as_str() == Some("dev") {
                continue;
            }
            assert!(allowed.contains(&target), "{name} must not depend on blindfold-{target}");
        }
    }
}

/// A refusal that was overruled says that a machine computes wrongly: whoever is given a backend shows it.
#[test]
fn every_role_with_a_backend_counts_what_was_overruled() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let roles = [
        "sequencer",
        "committee",
        "hint-publisher",
        "gateway",
        "full-node",
        "client",
        "fhe-coprocessor/service",
    ];
    let with_backend = roles.into_iter().filter(|role| {
        let text = sources(&root.join(role).join("src"));
        let given = text.contains("dyn Backend");
        assert_eq!(given, text.contains(".on_overruled("), "{role}");
        given
    });
    assert_eq!(with_backend.count(), 6);
}

/// All Rust below a folder.
fn sources(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let texts = entries.map(|path| match path.extension() {
        _ if path.is_dir() => sources(&path),
        Some(extension) if extension == "rs" => std::fs::read_to_string(&path).expect("a text"),
        _ => String::new(),
    });
    texts.collect()
}

#[test]
fn every_dependency_comes_from_the_registry_under_an_allowed_licence() {
    let policy = include_str!("../../../deny.toml");
    let allowed: Vec<&str> = policy
        .split_once("allow = [")
        .and_then(|(_, rest)| rest.split_once(']'))
        .map(|(list, _)| list.split('"').skip(1).step_by(2).collect())
        .expect("deny.toml lists the allowed licences");
    // `cargo metadata` also lists what is locked and never built; `cargo tree` does not.
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--workspace", "--target", "all", "--prefix", "none"])
        .args(["--format", "{p}|{l}"])
        .output()
        .expect("cargo tree runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut seen = BTreeSet::new();
    for line in String::from_utf8_lossy(&output.stdout).lines().filter(|line| !line.is_empty()) {
        // Repetitions are marked with a star.
        let (package, licence) = line.trim_end_matches(" (*)").split_once('|').expect("package|licence");
        if package.starts_with("blindfold") || !seen.insert(package.to_owned()) {
            continue;
        }
        // A git or path dependency shows where it comes from, in brackets.
        let origin = package.split_once('(').map(|(_, origin)| origin);
        assert!(matches!(origin, None | Some("proc-macro)")), "{package} does not come from the registry");
        assert!(satisfied(licence, &allowed), "{package}: licence {licence} is outside deny.toml");
    }
    assert!(seen.len() > 100, "the dependency tree was read");
}

/// Whether an SPDX expression of `AND`, `OR`, `/` and parentheses can be met with the allowed licences.
fn satisfied(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words: Vec<&str> = spaced.split_whitespace().rev().collect();
    any_of(&mut words, allowed)
}

fn any_of(words: &mut Vec<&str>, allowed: &[&str]) -> bool {
    let mut met = all_of(words, allowed);
    while words.last() == Some(&"OR") {
        words.pop();
        met |= all_of(words, allowed);
    }
    met
}

fn all_of(words: &mut Vec<&str>, allowed: &[&str]) -> bool {
    let mut met = term(words, allowed);
    while words.last() == Some(&"AND") {
        words.pop();
        met &= term(words, allowed);
    }
    met
}

fn term(words: &mut Vec<&str>, allowed: &[&str]) -> bool {
    match words.pop() {
        Some("(") => {
            let met = any_of(words, allowed);
            assert_eq!(words.pop(), Some(")"), "unbalanced licence expression");
            met
        }
        Some(name) => {
            let mut name = name.to_owned();
            if words.last() == Some(&"WITH") {
                words.pop();
                name = format!("{name} WITH {}", words.pop().unwrap_or_default());
            }
            allowed.contains(&name.as_str())
        }
        None => false,
    }
}

#[test]
fn licence_expressions_are_read_right() {
    let allowed = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"];
    for good in
        ["MIT", "MIT/GPL-3.0", "GPL-3.0 OR (MIT AND Apache-2.0)", "Apache-2.0 WITH LLVM-exception OR GPL-2.0"]
    {
        assert!(satisfied(good, &allowed), "{good}");
    }
    for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Apache-2.0) AND MPL-2.0"] {
        assert!(!satisfied(bad, &allowed), "{bad}");
    }
}
