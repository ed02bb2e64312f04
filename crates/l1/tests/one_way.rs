//! There is one way down in this crate: a module names what it stands on by the module that it is in, never through what
//! `lib.rs` shows to others, and no two modules stand on each other.
#![allow(clippy::unwrap_used, missing_docs)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// What runs, of a source: without comments and without its tests.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]").next().unwrap();
    text.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// Every path that begins with `crate::`, without that, and with groups written out.
fn named(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, start) in code.match_indices("crate::") {
        spread("", &code[at + start.len()..], &mut found);
    }
    found
}

/// Finds the path or the group that `text` begins with, below `above`; gives what comes after it.
fn spread<'a>(above: &str, text: &'a str, found: &mut BTreeSet<String>) -> &'a str {
    if let Some(mut group) = text.strip_prefix('{') {
        loop {
            group = group.trim_start_matches(|letter: char| letter.is_whitespace() || letter == ',');
            if let Some(rest) = group.strip_prefix('}') {
                return rest;
            }
            let rest = spread(above, group, found);
            // Behind another name for it.
            group = &rest[rest.find([',', '}']).unwrap()..];
        }
    }
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap();
    assert!(end > 0, "neither a name nor a group: {text}");
    let path = format!("{above}{}", &text[..end]);
    match text[end..].strip_prefix("::") {
        Some(below) => spread(&format!("{path}::"), below, found),
        None => {
            found.insert(path);
            &text[end..]
        }
    }
}

/// The sources of a folder and of those in it, by the module that each is: what a path begins with.
fn sources(folder: &Path, above: &str, found: &mut BTreeMap<String, BTreeSet<String>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if path.is_dir() {
            sources(&path, &format!("{above}{name}::"), found);
        } else if !(name == "lib" || name == "test_server" || name.ends_with("_tests")) {
            let module = if name == "mod" { above.to_owned() } else { format!("{above}{name}::") };
            found.insert(module, named(&code(&fs::read_to_string(&path).unwrap())));
        }
    }
}

#[test]
fn modules_stand_on_modules_below_them() {
    let mut above = BTreeMap::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut above);
    assert!(above.len() > 40);
    let modules: BTreeSet<String> = above.keys().cloned().collect();
    for (module, paths) in &mut above {
        let of =
            |path: &String| modules.iter().rfind(|module| format!("{path}::").starts_with(*module)).cloned();
        let up: Vec<_> = paths.iter().filter(|path| of(path).is_none()).collect();
        assert!(up.is_empty(), "{module} imports {up:?} through lib.rs: name the module");
        *paths = paths.iter().filter_map(of).collect();
    }
    // Layer by layer, those that stand on nothing that is left.
    while !above.is_empty() {
        let left: BTreeSet<String> = above.keys().cloned().collect();
        above.retain(|module, names| names.iter().any(|name| name != module && left.contains(name)));
        assert!(above.len() < left.len(), "these stand on each other: {:#?}", above);
    }
}

#[test]
fn paths_are_found() {
    let text = "use crate::{\n    a::{B, c::{D, E as _}}, e,\n}; // crate::x\nfn f() { crate::g::h() }\n#[cfg(test)]\nuse crate::y;";
    assert_eq!(
        named(&code(text)).into_iter().collect::<Vec<_>>(),
        ["a::B", "a::c::D", "a::c::E", "e", "g::h"]
    );
}
