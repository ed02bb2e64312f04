//! The program itself. That this test is here also has `cargo test` build it, which scripts/test starts the whole system with.

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_blindfold")).args(arguments).output().expect("it starts")
}

#[test]
fn it_says_what_it_can_do_and_which_version_it_is() {
    for arguments in [["--help"].as_slice(), &["help", "devnet"], &["--version"]] {
        let output = run(arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("blindfold"), "{arguments:?}: {text}");
    }
}

#[test]
fn a_mistake_is_told_where_errors_are_told() {
    let output = run(&["nothing-of-this-name"]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), b"".as_slice()));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--help"), "it says what to do next");
}
