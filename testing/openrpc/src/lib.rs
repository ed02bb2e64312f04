//! `docs/openrpc.json`, generated: methods, parameters and results are those of the `#[rpc]` traits of `crates/rpc`, with
//! their comments; schemas are read off the types as serde reads them; codes of errors come from the refusals themselves.
//! Examples are stored in `examples/`, a file for each method, and the tests hold them against the real types.
//!
//! A form that the generator does not know is an error, never left out in silence.

pub mod json;
pub mod refusals;
pub mod schema;
pub mod source;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use blindfold_rpc::{BULK_METHODS, Topic};
use serde::{Deserialize, Serialize};
use serde_json::{
    ser::{PrettyFormatter, Serializer},
    value::RawValue,
};
use syn::{Expr, Item, Lit, Type};

use crate::{
    json::{Node, object},
    refusals::{EVERY, outcomes},
    schema::reference,
    source::{Method, argument, files, items, methods, name, read},
};

/// The document, from the root of the repository.
pub const FILE: &str = "docs/openrpc.json";

const DESCRIPTION: &str = "\
    The methods that Blindfold's servers add to an execution client's reads. Tags say who serves what. Encodings and \
    rules: protocol.md; ports and limits: operate.md. Reads that pass through (`eth_*`, `net_*`, `web3_*`) are \
    described where Ethereum's are. Every error carries `data.reason` (stable snake_case) and `data.retry`, those \
    with code -38001 `data.retry_after_ms`, too; in this document `data.reasons` lists the reasons under one code. A relay serves what a full node serves of `blind_*`, a \
    gateway `blind_sendEnvelope` and `blind_sendEnvelopeSync` besides. A method that is not served is -32601 \
    `unknown_method`; one that would show a server a plaintext is -38002 `plaintext_refused`. Examples are from one \
    development network, those of `confidential_*` from another.";

/// Who serves which traits, and where by convention.
const SERVERS: &[(&str, &str, &[&str])] = &[
    ("sequencer", "http://127.0.0.1:9545", SEQUENCER_APIS),
    ("full node", "http://127.0.0.1:9580", &["BlindApi", "ReceiptApi"]),
    ("signer", "https://127.0.0.1:9610", &["SignerApi"]),
    ("committee member", "http://127.0.0.1:9551", &["CommitteeApi"]),
    ("coprocessor", "http://127.0.0.1:9600", &["ConfidentialApi"]),
    (PROXY, "http://127.0.0.1:9590", &["ProxyApi"]),
];
/// It also hands on what `SEQUENCER_METHODS` of its source lists.
const PROXY: &str = "proxy";

/// What a sequencer serves, or refuses while it stands by.
const SEQUENCER_APIS: &[&str] = &["BlindApi", "ReceiptApi", "SyncApi", "SequencerApi", "ForwardApi"];
const STANDING_BY: &str = "StandingBy";

/// Errors that no method has to name, with their reasons.
const COMMON: &[(&str, &[&str], &str)] = &[
    (
        "InvalidParams",
        &["invalid_params"],
        "Parameters are missing, superfluous, of the wrong type, not canonical or oversized.",
    ),
    ("Undecodable", &["undecodable"], "The hex is no such structure in its one binary encoding."),
    ("UseHttp", &["use_http"], "The answer is too large for a WebSocket."),
    (
        "RateLimited",
        &["rate_limited", "busy", "too_many_answers"],
        "Too many calls from this address, or too many answers that are not read yet; try again later.",
    ),
    (
        "ConnectionsFull",
        &["connections_full", "too_many_connections"],
        "No place for this connection, at all (HTTP 503) or of this address (429); the header Retry-After has the time, too.",
    ),
    (
        STANDING_BY,
        &["standing_by"],
        "This sequencer stands by, and another one leads: `data.leader` is its URL, if known.",
    ),
    (
        "SourceUnavailable",
        &["source_unavailable", "no_leader"],
        "What stands behind this relay or gateway does not answer, or no sequencer leads; ask again.",
    ),
    ("ShuttingDown", &["shutting_down"], "The server is stopping."),
    ("Internal", &["internal"], "A fault of the server; its log has the cause."),
];

/// An example of a method, as `examples/` has it.
#[derive(Deserialize)]
struct Example {
    name: String,
    params: Vec<Box<RawValue>>,
    result: Box<RawValue>,
}

/// The whole document, as the file has it.
///
/// # Errors
/// A source cannot be read, or has a form that is not known here.
pub fn document() -> Result<String> {
    let mut described = Vec::new();
    let handed_on = handed_on()?;
    for path in files("crates/rpc/src")? {
        for method in methods(&path)? {
            described.push(describe(&method, &handed_on).with_context(|| method.name.clone())?);
            if method.result.is_none() {
                described.push(unsubscribe(&method)?);
            }
        }
    }
    let servers = SERVERS.iter().map(|(name, url, _)| object! { "name": *name, "url": *url });
    let document = object! {
        "openrpc": "1.3.2",
        "info": object! {
            "title": "Blindfold",
            "version": env!("CARGO_PKG_VERSION"),
            "license": object! { "name": "MIT OR Apache-2.0" },
            "description": DESCRIPTION,
        },
        "servers": servers.collect::<Vec<_>>(),
        "methods": described,
        "x-notifications": Node::Object(notifications()?),
        "components": object! {
            "schemas": Node::Object(schema::components()?),
            "errors": Node::Object(common_errors()?),
        },
    };
    let mut text = Vec::new();
    document.serialize(&mut Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(b" ")))?;
    text.push(b'\n');
    Ok(String::from_utf8(text)?)
}

fn describe(method: &Method, handed_on: &BTreeSet<String>) -> Result<Node> {
    let (summary, description) = method.comment.parts();
    let words: BTreeMap<&str, &str> = method
        .comment
        .section("Parameters")
        .iter()
        .flat_map(|(names, words)| names.iter().map(move |name| (name.as_str(), words.as_str())))
        .collect();
    let mut parameters = Vec::new();
    for (ident, given) in &method.parameters {
        let schema = match (&method.result, argument(given, "Option")) {
            (None, _) if name(given).is_some_and(|name| name == "String") => reference("Topic"),
            (_, Some(inner)) => schema::of(inner)?,
            (_, None) => schema::of(given)?,
        };
        let required = argument(given, "Option").is_none();
        parameters.push(
            object! { "name": schema::camel(ident), "required": required, "schema": schema }
                .with("description", words.get(ident.as_str()).copied()),
        );
    }
    for ident in words.keys() {
        ensure!(method.parameters.iter().any(|(name, _)| name == ident), "there is no parameter {ident}");
    }
    let result = method.result.as_ref().map_or_else(|| Ok(reference("SubscriptionId")), schema::of)?;
    let noun =
        method.name.split_once("_get").map_or("result".to_owned(), |(_, noun)| schema::uncapitalized(noun));
    let examples = examples(method, &noun)?;
    Ok(object! { "name": method.name.as_str(), "tags": tags(method, handed_on)?, "summary": summary }
        .with("description", description)
        .with("paramStructure", Some("by-position"))
        .with("params", Some(parameters))
        .with("result", Some(object! { "name": noun, "schema": result }))
        .with("errors", Some(errors(method)?))
        .with("examples", Some(examples)))
}

/// What ends a subscription; the macro makes it of the attribute.
fn unsubscribe(subscription: &Method) -> Result<Node> {
    let ends = Method {
        api: subscription.api.clone(),
        name: subscription.name.replace("_subscribe", "_unsubscribe"),
        comment: source::Comment {
            text: "Ends a subscription of this connection.".into(),
            ..Default::default()
        },
        parameters: vec![("subscription".into(), syn::parse_str::<Type>("SubscriptionId")?)],
        result: Some(syn::parse_str("bool")?),
    };
    describe(&ends, &BTreeSet::new())
}

fn tags(method: &Method, handed_on: &BTreeSet<String>) -> Result<Vec<Node>> {
    let serves = |(name, _, traits): &&(&str, &str, &[&str])| {
        traits.contains(&method.api.as_str()) || *name == PROXY && handed_on.contains(&method.name)
    };
    let tags: Vec<Node> = SERVERS.iter().filter(serves).map(|(name, ..)| object! { "name": *name }).collect();
    ensure!(!tags.is_empty(), "nobody serves {}", method.api);
    Ok(tags)
}

/// What the proxy hands on to the sequencer.
fn handed_on() -> Result<BTreeSet<String>> {
    for item in items("client/src/proxy/rpc.rs")? {
        if let Item::Const(list) = item
            && list.ident == "SEQUENCER_METHODS"
            && let Expr::Reference(list) = *list.expr
            && let Expr::Array(list) = *list.expr
        {
            let name = |element: &Expr| match element {
                Expr::Lit(literal) => match &literal.lit {
                    Lit::Str(name) => Some(name.value()),
                    _ => None,
                },
                _ => None,
            };
            return list.elems.iter().map(name).collect::<Option<_>>().context("a name that is no text");
        }
    }
    anyhow::bail!("the proxy has no SEQUENCER_METHODS")
}

/// What a method may answer: what no method has to name, then what its comment names.
fn errors(method: &Method) -> Result<Vec<Node>> {
    let parameters = || method.parameters.iter().map(|(_, given)| argument(given, "Option").unwrap_or(given));
    let has = |common: &str| match common {
        "InvalidParams" => parameters().next().is_some(),
        "Undecodable" => parameters().any(|given| name(given).is_some_and(|name| name == "Encoded")),
        STANDING_BY => SEQUENCER_APIS.contains(&method.api.as_str()),
        "UseHttp" => BULK_METHODS.contains(&method.name.as_str()),
        _ => true,
    };
    let common = COMMON.iter().filter(|(name, ..)| has(name));
    let mut errors: Vec<Node> =
        common.map(|(name, ..)| object! { "$ref": format!("#/components/errors/{name}") }).collect();
    for (reasons, message) in method.comment.section("Errors") {
        errors.extend(error_objects(&method.api, reasons, message)?);
    }
    Ok(errors)
}

/// An object for each code and retry that the reasons come with.
fn error_objects(api: &str, reasons: &[impl AsRef<str>], message: &str) -> Result<Vec<Node>> {
    let outcomes = outcomes(api)?;
    let mut by_outcome: Vec<((i32, bool), Vec<&str>)> = Vec::new();
    for reason in reasons.iter().map(AsRef::as_ref) {
        let given = outcomes.get(reason).with_context(|| format!("{api} never answers {reason}"))?;
        for outcome in given {
            match by_outcome.iter_mut().find(|(known, _)| known == outcome) {
                Some((_, with_it)) => with_it.push(reason),
                None => by_outcome.push((*outcome, vec![reason])),
            }
        }
    }
    let object = |((code, retry), reasons)| {
        let data = object! { "retry": retry, "reasons": Node::raw(reasons) };
        object! { "code": code, "message": message, "data": data }
    };
    Ok(by_outcome.into_iter().map(object).collect())
}

fn common_errors() -> Result<Vec<(String, Node)>> {
    let error = |(name, reasons, message): &(&str, &[&str], &str)| {
        let mut objects = error_objects(EVERY, reasons, message)?;
        ensure!(objects.len() == 1, "{name} has several codes");
        Ok((String::from(*name), objects.remove(0)))
    };
    COMMON.iter().map(error).collect()
}

fn examples(method: &Method, noun: &str) -> Result<Vec<Node>> {
    let path = format!("testing/openrpc/examples/{}.json", method.name);
    let examples: Vec<Example> = serde_json::from_str(&read(&path)?).with_context(|| path.clone())?;
    ensure!(!examples.is_empty(), "{path} has no example");
    let describe = |Example { name, params, result }: Example| {
        ensure!(params.len() <= method.parameters.len(), "{path}: {name} has too many parameters");
        let given = method.parameters.iter().zip(params);
        let given = given.map(|((ident, _), value)| {
            object! { "name": schema::camel(ident), "value": Node::Raw(value) }
        });
        Ok(object! {
            "name": name,
            "params": given.collect::<Vec<_>>(),
            "result": object! { "name": noun, "value": Node::Raw(result) },
        })
    };
    examples.into_iter().map(describe).collect()
}

/// Each topic with its object, as the comment of its variant names them.
fn notifications() -> Result<Vec<(String, Node)>> {
    let path = "testing/openrpc/examples/blind_subscription.json";
    let mut examples: BTreeMap<String, Box<RawValue>> = serde_json::from_str(&read(path)?)?;
    let topics = items("crates/rpc/src/types.rs")?.into_iter().find_map(|item| match item {
        Item::Enum(item) if item.ident == "Topic" => Some(item),
        _ => None,
    });
    let topics = schema::variants(&topics.context("there are no topics")?)?;
    ensure!(topics.len() == Topic::ALL.len(), "topics without a name on the wire");
    let notification = |(topic, comment): (String, String)| {
        let (words, object) = comment.split_once(": ").context("a topic's comment ends with its object")?;
        let example = examples.remove(&topic).with_context(|| format!("{path} has no {topic}"))?;
        let notification = object! {
            "description": format!("{words}."),
            "schema": reference(object.trim_matches(['`', '.'])),
            "example": Node::Raw(example),
        };
        Ok((topic, notification))
    };
    topics.into_iter().map(notification).collect()
}
