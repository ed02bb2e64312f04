//! What tests of the lanes say where the processor lacks the instructions, whichever processor this is.

use std::process::{Command, Output};

mod common;

const CHILD: &str = "BLINDFOLD_TEST_LANES_CHILD";
const NAME: &str = "without_the_instructions_it_is_said_or_fails";

fn without_lanes(expect: &str, file: &std::path::Path) -> Output {
    let own = std::env::current_exe().expect("this test");
    let mut child = Command::new(own);
    child.args([NAME, "--exact"]).env(CHILD, "1");
    child.env("BLINDFOLD_EXPECT_IFMA", expect).env("BLINDFOLD_NOT_RUN", file);
    child.output().expect("it runs")
}

/// Only the test's own output said so, which nobody sees of a test that passes.
#[test]
fn without_the_instructions_it_is_said_or_fails() {
    if std::env::var_os(CHILD).is_some() {
        return common::no_lanes();
    }
    let name = format!("not-run-{}", std::process::id());
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    assert!(!without_lanes("1", &file).status.success());
    assert!(!file.exists());
    assert!(without_lanes("0", &file).status.success());
    let lines = std::fs::read_to_string(&file).expect("it was written");
    std::fs::remove_file(&file).expect("it is there");
    assert_eq!(lines, "backend \"ifma\": this processor has no AVX-512 IFMA\n");
}
