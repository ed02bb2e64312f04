//! That the crate asks in one place what it is built for.

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn only_one_file_and_the_lanes_ask_for_the_architecture() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut asking = Vec::new();
    let mut folders = vec![src.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of this crate") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if fs::read_to_string(&path).expect("a source file").contains("target_arch") {
                asking.push(path.strip_prefix(&src).expect("below src").to_owned());
            }
        }
    }
    asking.sort();
    assert_eq!(asking, ["ifma/mod.rs", "platform.rs"].map(PathBuf::from));
}
