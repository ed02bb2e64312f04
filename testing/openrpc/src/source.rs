//! Method traits, types and comments, as they stand in the source.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use syn::{
    Attribute, Expr, ExprLit, FnArg, GenericArgument, Ident, Item, ItemTrait, Lit, LitStr, Pat,
    PathArguments, ReturnType, Token, TraitItem, TraitItemFn, Type, punctuated::Punctuated,
};

/// The repository.
pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Reads a file of the repository.
///
/// # Errors
/// What the system says.
pub fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(format!("{ROOT}/{path}")).with_context(|| path.to_owned())
}

/// The Rust files of a folder of the repository, by name.
///
/// # Errors
/// What the system says.
pub fn files(folder: &str) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(format!("{ROOT}/{folder}")).with_context(|| folder.to_owned())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".rs") {
            files.push(format!("{folder}/{name}"));
        }
    }
    files.sort();
    Ok(files)
}

/// The items of a Rust file of the repository.
///
/// # Errors
/// The file cannot be read, or is no Rust.
pub fn items(path: &str) -> Result<Vec<Item>> {
    Ok(syn::parse_file(&read(path)?).with_context(|| path.to_owned())?.items)
}

/// A doc comment. Links into the code have become names.
#[derive(Default)]
pub struct Comment {
    /// Everything before the first heading, on one line.
    pub text: String,
    /// Its first paragraph.
    pub first: String,
    /// `- name, name: words` below each heading.
    pub sections: BTreeMap<String, Vec<(Vec<String>, String)>>,
}

impl Comment {
    /// The comment that attributes carry.
    ///
    /// # Errors
    /// A section has something else than a list of names with words.
    pub fn of(attributes: &[Attribute]) -> Result<Self> {
        let (mut comment, mut heading) = (Self::default(), None);
        for line in attributes.iter().filter_map(doc_line) {
            let line = unlinked(line.trim());
            if let Some(title) = line.strip_prefix("# ") {
                heading = Some(title.to_owned());
                continue;
            }
            if line.is_empty() {
                if comment.first.is_empty() {
                    comment.first.clone_from(&comment.text);
                }
                continue;
            }
            let Some(title) = &heading else {
                join(&mut comment.text, &line);
                continue;
            };
            let entries = comment.sections.entry(title.clone()).or_default();
            match line.strip_prefix("- ") {
                Some(entry) => entries.push((Vec::new(), entry.to_owned())),
                None => join(&mut entries.last_mut().context("a section begins with no entry")?.1, &line),
            }
        }
        if comment.first.is_empty() {
            comment.first.clone_from(&comment.text);
        }
        for (names, words) in comment.sections.values_mut().flatten() {
            let (before, after) = words.split_once(": ").with_context(|| format!("no names: {words}"))?;
            *names = before.split(", ").map(|name| name.trim_matches('`').to_owned()).collect();
            *words = sentence(after);
        }
        Ok(comment)
    }

    /// The first sentence, and what follows it.
    pub fn parts(&self) -> (&str, Option<&str>) {
        match self.text.split_once(". ") {
            Some((first, rest)) => (&self.text[..=first.len()], Some(rest)),
            None => (&self.text, None),
        }
    }

    /// The entries of a section.
    pub fn section(&self, title: &str) -> &[(Vec<String>, String)] {
        self.sections.get(title).map_or(&[], Vec::as_slice)
    }
}

fn doc_line(attribute: &Attribute) -> Option<String> {
    let value = &attribute.meta.require_name_value().ok().filter(|meta| meta.path.is_ident("doc"))?.value;
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) => Some(line.value()),
        _ => None,
    }
}

fn join(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(line);
}

fn unlinked(line: &str) -> String {
    line.replace("[`crate::", "`").replace("[`", "`").replace("`]", "`")
}

fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// One method of a trait.
pub struct Method {
    /// The trait.
    pub api: String,
    /// The name on the wire.
    pub name: String,
    /// What its comment says.
    pub comment: Comment,
    /// Names and types of its parameters.
    pub parameters: Vec<(String, Type)>,
    /// The type of its result; none for a subscription.
    pub result: Option<Type>,
}

/// The methods of every `#[rpc]` trait of a file.
///
/// # Errors
/// The file cannot be read, or a method has a form that is not known here.
pub fn methods(path: &str) -> Result<Vec<Method>> {
    let mut methods = Vec::new();
    for item in items(path)? {
        if let Item::Trait(item) = item
            && let Some(namespace) = settings(&item.attrs, "rpc")?.get("namespace")
        {
            for function in &item.items {
                let TraitItem::Fn(function) = function else { bail!("{} has more than methods", item.ident) };
                let method = method(&item, namespace, function);
                methods.push(method.with_context(|| format!("{}::{}", item.ident, function.sig.ident))?);
            }
        }
    }
    Ok(methods)
}

fn method(item: &ItemTrait, namespace: &str, function: &TraitItemFn) -> Result<Method> {
    let called = settings(&function.attrs, "method")?.remove("name");
    let subscribed = settings(&function.attrs, "subscription")?.remove("name");
    let mut parameters = Vec::new();
    for input in &function.sig.inputs {
        let FnArg::Typed(input) = input else { continue };
        let Pat::Ident(name) = &*input.pat else { bail!("a parameter without a name") };
        parameters.push((name.ident.to_string(), (*input.ty).clone()));
    }
    let result = match &function.sig.output {
        _ if called.is_none() => None,
        ReturnType::Type(_, output) => argument(output, "Result").cloned(),
        ReturnType::Default => bail!("no result"),
    };
    let name = called.or(subscribed).context("neither a method nor a subscription")?;
    Ok(Method {
        api: item.ident.to_string(),
        name: format!("{namespace}_{name}"),
        comment: Comment::of(&function.attrs)?,
        parameters,
        result,
    })
}

/// What an attribute sets, by name: `#[attribute(name = "…", flag)]`. A flag, and what is no text, is empty.
///
/// # Errors
/// The attribute has a form that is not known here.
pub fn settings(attributes: &[Attribute], attribute: &str) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for attribute in attributes.iter().filter(|given| given.path().is_ident(attribute)) {
        attribute.parse_nested_meta(|meta| {
            let mut value = String::new();
            if let Ok(input) = meta.value() {
                if input.peek(LitStr) {
                    value = input.parse::<LitStr>()?.value();
                } else {
                    input.parse::<Type>()?;
                }
                // What a subscription calls its notifications.
                if input.parse::<Option<Token![=>]>>()?.is_some() {
                    input.parse::<LitStr>()?;
                }
            }
            found.insert(meta.path.require_ident()?.to_string(), value);
            Ok(())
        })?;
    }
    Ok(found)
}

/// Whether a type derives a trait.
///
/// # Errors
/// The attribute has a form that is not known here.
pub fn derives(attributes: &[Attribute], name: &str) -> Result<bool> {
    let mut found = false;
    for attribute in attributes.iter().filter(|given| given.path().is_ident("derive")) {
        let paths = attribute.parse_args_with(Punctuated::<syn::Path, Token![,]>::parse_terminated)?;
        found |= paths.iter().any(|path| path.is_ident(name));
    }
    Ok(found)
}

/// The last name of a type's path.
pub fn name(given: &Type) -> Option<&Ident> {
    match given {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        _ => None,
    }
}

/// The last argument of a generic type that does not stand for an error: `T` of `Option<T>`, `V` of `BTreeMap<K, V>`.
pub fn argument<'a>(given: &'a Type, generic: &str) -> Option<&'a Type> {
    let Type::Path(path) = given else { return None };
    let segment = path.path.segments.last().filter(|segment| segment.ident == generic)?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    });
    types.filter(|inner| name(inner).is_none_or(|name| name != "RpcError")).last()
}
