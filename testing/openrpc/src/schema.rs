//! JSON Schema of the types, from their source as serde reads it: fields, names, what may be missing.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use blindfold_protocol::{
    Acknowledgement, BatchHeader, BatchHints, Certificate, CertifiedBatch, DataAttestation, Promise, Release,
    ReleaseShare, SealedBatch, SignedHeader, SingletonShare,
};
use blindfold_rpc::{RawEnvelope, Wire, limits::MAX_TEXT_BYTES};
use syn::{Attribute, Field, Fields, Item, ItemEnum, ItemStruct, Type, Variant};

use crate::{
    json::{Node, object},
    source::{Comment, argument, derives, items, name, settings},
};

/// Where the JSON objects are.
const TYPES: &[&str] = &["crates/rpc/src/types.rs", "crates/rpc/src/confidential.rs"];
/// Where the structures are that travel as hex.
const STRUCTURES: &[&str] = &[
    "crates/protocol/src/header.rs",
    "crates/protocol/src/messages.rs",
    "crates/protocol/src/release.rs",
    "crates/rpc/src/encoded.rs",
];

/// `$ref` to a schema of the document.
pub fn reference(name: &str) -> Node {
    object! { "$ref": format!("#/components/schemas/{name}") }
}

/// One of several.
fn one_of(options: Vec<Node>) -> Node {
    object! { "oneOf": options }
}

/// The schema, or null.
fn nullable(schema: Node) -> Node {
    one_of(vec![object! { "type": "null" }, schema])
}

fn integer(maximum: Option<u64>) -> Node {
    object! { "type": "integer", "minimum": 0_u64 }.with("maximum", maximum)
}

/// The schema of a type where it is used.
///
/// # Errors
/// A type that no server may use: there is no schema for it.
pub fn of(given: &Type) -> Result<Node> {
    let ident = name(given).context("a type without a name")?.to_string();
    let inner = || argument(given, &ident).context("a type without its argument");
    Ok(match ident.as_str() {
        "Option" => nullable(of(inner()?)?),
        "Vec" => object! { "type": "array", "items": of(inner()?)? },
        "BTreeMap" => object! { "type": "object", "additionalProperties": of(inner()?)? },
        "Encoded" => reference(&name(inner()?).context("a structure without a name")?.to_string()),
        "String" => object! { "type": "string" },
        "bool" => object! { "type": "boolean" },
        "i32" => object! { "type": "integer" },
        "u16" => integer(Some(u16::MAX.into())),
        "u32" => integer(Some(u32::MAX.into())),
        "u64" => integer(None),
        "B256" => reference("Hash"),
        _ => reference(&ident),
    })
}

/// Every named schema of the document, in the order of the source.
///
/// # Errors
/// A type has a form that is not known here.
pub fn components() -> Result<Vec<(String, Node)>> {
    let text = |pattern: &str, description: &str| {
        object! { "type": "string", "pattern": pattern, "description": description }
    };
    let hex = "^0x([0-9a-fA-F]{2})*$";
    let id = one_of(vec![integer(None), object! { "type": "string" }]);
    let mut schemas = vec![
        ("Hash".to_owned(), text("^0x[0-9a-fA-F]{64}$", "32 bytes.")),
        ("Address".to_owned(), text("^0x[0-9a-fA-F]{40}$", "20 bytes; checksummed or not.")),
        ("Bytes".to_owned(), text(hex, "Bytes, two digits each.")),
        (
            "Quantity".to_owned(),
            text(
                "^0x(0|[1-9a-fA-F][0-9a-fA-F]{0,31})$",
                "An amount of wei; at most 128 bits, no leading zeros.",
            ),
        ),
        (
            "SubscriptionId".to_owned(),
            id.with("description", Some("Chosen by the server; valid on its connection.")),
        ),
    ];
    schemas.extend(structures()?);
    for path in TYPES {
        for item in items(path)? {
            let (ident, schema) = match &item {
                Item::Struct(item) if derives(&item.attrs, "Serialize")? => (&item.ident, object(item)),
                Item::Enum(item) if derives(&item.attrs, "Serialize")? => (&item.ident, choice(item)),
                _ => continue,
            };
            schemas.push((ident.to_string(), schema.with_context(|| ident.to_string())?));
        }
    }
    Ok(schemas)
}

/// The structures that travel as hex.
fn structures() -> Result<Vec<(String, Node)>> {
    let mut comments = BTreeMap::new();
    for path in STRUCTURES {
        for item in items(path)? {
            let (ident, attributes) = match &item {
                Item::Struct(item) => (&item.ident, &item.attrs),
                Item::Enum(item) => (&item.ident, &item.attrs),
                _ => continue,
            };
            comments.insert(ident.to_string(), Comment::of(attributes)?.first);
        }
    }
    let structure = |name: &str, max_bytes: usize| {
        let comment = comments.get(name).with_context(|| format!("{name} is in none of {STRUCTURES:?}"))?;
        let description =
            format!("{name} in its one binary encoding (protocol.md#encodings), lower-case hex. {comment}");
        let digits = 2 + 2 * u64::try_from(max_bytes)?;
        let schema = object! {
            "type": "string",
            "pattern": "^0x([0-9a-f]{2})*$",
            "maxLength": digits,
            "description": description,
        };
        Ok((name.to_owned(), schema))
    };
    macro_rules! structures {
        ($($name:ident),* $(,)?) => { [$(structure($name::NAME, $name::MAX_BYTES)),*] };
    }
    let all = structures![
        RawEnvelope,
        Promise,
        SealedBatch,
        CertifiedBatch,
        Acknowledgement,
        Certificate,
        Release,
        ReleaseShare,
        BatchHeader,
        SignedHeader,
        SingletonShare,
        BatchHints,
        DataAttestation,
    ];
    all.into_iter().collect()
}

fn object(item: &ItemStruct) -> Result<Node> {
    let (mut required, mut properties) = (Vec::new(), Vec::new());
    let serde = serde_settings(&item.attrs)?;
    for field in &item.fields {
        let ident = field.ident.as_ref().context("a field without a name")?.to_string();
        let key = renamed(&ident, &serde)?;
        let (schema, optional) = property(field).with_context(|| key.clone())?;
        if !optional {
            required.push(key.clone());
        }
        properties.push((key, schema));
    }
    let closed = serde.contains_key("deny_unknown_fields").then_some(false);
    Ok(object! {
        "type": "object",
        "description": Comment::of(&item.attrs)?.text,
        "required": Node::raw(required),
        "properties": Node::Object(properties),
    }
    .with("additionalProperties", closed))
}

/// The schema of a field, and whether it may be missing.
fn property(field: &Field) -> Result<(Node, bool)> {
    let serde = serde_settings(&field.attrs)?;
    let set = |name: &str| serde.get(name).map(String::as_str);
    let description = Comment::of(&field.attrs)?.text;
    let schema = match (set("with"), set("deserialize_with")) {
        (Some("quantity"), None) => reference("Quantity"),
        (None, Some("short_text")) => {
            object! { "type": "string", "maxLength": u64::try_from(MAX_TEXT_BYTES)? }
        }
        (None, None) if set("skip_serializing_if").is_some() => {
            of(argument(&field.ty, "Option").context("no Option")?)?
        }
        (None, None) => of(&field.ty)?,
        other => bail!("serde's {other:?} is not known here"),
    };
    let words = words_of(&field.ty, &description);
    Ok((schema.with("enum", words).with("description", Some(description)), serde.contains_key("default")))
}

/// The words that a text may be, where its comment says `one of …`.
fn words_of(given: &Type, description: &str) -> Option<Node> {
    let text = |given: &Type| name(given).is_some_and(|name| name == "String");
    if !text(given) && !argument(given, "Option").is_some_and(text) {
        return None;
    }
    let at = description.to_lowercase().find("one of `")?;
    let list = description[at + "one of ".len()..].split([';', '.']).next()?;
    Some(Node::raw(list.split(", ").map(|word| word.trim_matches('`')).collect::<Vec<_>>()))
}

fn choice(item: &ItemEnum) -> Result<Node> {
    let mut description = Comment::of(&item.attrs)?.text;
    if serde_settings(&item.attrs)?.contains_key("untagged") {
        let mut options = Vec::new();
        for variant in &item.variants {
            let Fields::Unnamed(fields) = &variant.fields else { bail!("{} holds no value", variant.ident) };
            let field = fields.unnamed.first().context("no value")?;
            options.push(of(&field.ty)?.with("description", Some(Comment::of(&variant.attrs)?.text)));
        }
        return Ok(one_of(options).with("description", Some(description)));
    }
    let mut words = Vec::new();
    for (word, comment) in variants(item)? {
        description.push_str(&format!(" `{word}`: {comment}"));
        words.push(word);
    }
    Ok(object! { "type": "string", "enum": Node::raw(words), "description": description })
}

/// The words of an enum without values, with their comments.
///
/// # Errors
/// A variant has a form that is not known here.
pub fn variants(item: &ItemEnum) -> Result<Vec<(String, String)>> {
    let serde = serde_settings(&item.attrs)?;
    let word = |variant: &Variant| {
        ensure!(
            variant.fields.is_empty() && variant.discriminant.is_none(),
            "{} holds a value",
            variant.ident
        );
        ensure!(serde_settings(&variant.attrs)?.is_empty(), "{} has a form of its own", variant.ident);
        Ok((renamed(&variant.ident.to_string(), &serde)?, Comment::of(&variant.attrs)?.text))
    };
    item.variants.iter().map(word).collect()
}

/// What serde is told, as far as it is known here.
fn serde_settings(attributes: &[Attribute]) -> Result<BTreeMap<String, String>> {
    let known = [
        "default",
        "deny_unknown_fields",
        "deserialize_with",
        "rename_all",
        "skip_serializing_if",
        "untagged",
        "with",
    ];
    let settings = settings(attributes, "serde")?;
    match settings.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => bail!("serde's {name} is not known here"),
        None => Ok(settings),
    }
}

/// A name as serde writes it.
fn renamed(ident: &str, serde: &BTreeMap<String, String>) -> Result<String> {
    Ok(match serde.get("rename_all").map(String::as_str) {
        Some("camelCase") => camel(ident),
        Some("lowercase") => ident.to_lowercase(),
        Some("snake_case") => {
            let letters = ident.char_indices().map(|(at, letter)| {
                let gap = if at > 0 && letter.is_uppercase() { "_" } else { "" };
                format!("{gap}{}", letter.to_lowercase())
            });
            letters.collect()
        }
        other => bail!("serde's rename_all {other:?} is not known here"),
    })
}

/// A field's or a parameter's name in JSON.
pub fn camel(ident: &str) -> String {
    let mut words = ident.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (initial, rest) = word.split_at(1.min(word.len()));
        name + &initial.to_uppercase() + rest
    })
}

/// With a small letter first.
pub fn uncapitalized(name: &str) -> String {
    let (initial, rest) = name.split_at(1.min(name.len()));
    initial.to_lowercase() + rest
}
