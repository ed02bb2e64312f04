//! Randomness is asked for in this crate alone, or no simulation could give it. What Clippy can look for it does
//! (`disallowed-methods` in `clippy.toml`); these names it cannot tell from others.
#![allow(clippy::unwrap_used, missing_docs)]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Folders of what runs in a role or a wallet.
const FOLDERS: [&str; 11] = [
    "sequencer",
    "signer",
    "committee",
    "hint-publisher",
    "full-node",
    "client",
    "blindfold",
    "fhe-coprocessor/service",
    "crates/chain",
    "crates/rpc",
    "crates/l1",
];
/// What nobody else writes.
const NAMES: [&str; 3] = ["rand::rng(", "make_rng", "RandomState"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn randomness_is_asked_for_in_one_place() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in FOLDERS {
        sources(&root.join(folder).join("src"), &mut files);
    }
    assert!(files.len() > 100);
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for (line, text) in (1..).zip(text.lines()) {
            found.extend(
                NAMES
                    .iter()
                    .filter(|name| text.contains(**name))
                    .map(|name| format!("{}:{line}: {name}: ask blindfold_runtime", file.display())),
            );
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
