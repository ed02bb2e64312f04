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

/// The first names of every path that begins with `crate::`.
fn named(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, start) in code.match_indices("crate::") {
        let rest = &code[at + start.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            found.insert(first(rest));
            continue;
        };
        let (mut depth, mut expected) = (0, true);
        for (place, letter) in group.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => expected = true,
                _ if depth == 0 && expected && !letter.is_whitespace() => {
                    found.insert(first(&group[place..]));
                    expected = false;
                }
                _ => {}
            }
        }
    }
    found
}

fn first(path: &str) -> String {
    path.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

#[test]
fn modules_stand_on_modules_below_them() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut above = BTreeMap::new();
    for entry in fs::read_dir(sources).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let tests = name == "lib" || name == "test_server" || name.ends_with("_tests");
        if !tests && path.extension().is_some_and(|extension| extension == "rs") {
            above.insert(name, named(&code(&fs::read_to_string(&path).unwrap())));
        }
    }
    assert!(above.len() > 40);
    let modules: BTreeSet<String> = above.keys().cloned().collect();
    for (module, names) in &above {
        let up: Vec<_> = names.difference(&modules).collect();
        assert!(up.is_empty(), "{module}.rs imports {up:?} through lib.rs: name the module");
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
    let text = "use crate::{\n    a::{B, c::D}, e,\n}; // crate::x\nfn f() { crate::g::h() }\n#[cfg(test)]\nuse crate::y;";
    assert_eq!(named(&code(text)).into_iter().collect::<Vec<_>>(), ["a", "e", "g"]);
}
