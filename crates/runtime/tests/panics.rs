//! A process that watches for panics: a process of its own for each test.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;

use blindfold_runtime::{panicked, watch_panics};

const CHILD: &str = "BLINDFOLD_TEST_PANICS_CHILD";

fn child(test: &str) -> Option<i32> {
    let own = std::env::current_exe().unwrap();
    let status = Command::new(own).args([test, "--exact", "--nocapture"]).env(CHILD, test).status().unwrap();
    status.code()
}

fn is_child(test: &str) -> bool {
    std::env::var(CHILD).is_ok_and(|named| named == test)
}

/// Nobody waits for such a thread: its panic was a line on standard error, and no more.
#[test]
fn a_panic_of_any_thread_is_told() {
    const NAME: &str = "a_panic_of_any_thread_is_told";
    if !is_child(NAME) {
        assert_eq!(child(NAME), Some(0));
        return;
    }
    watch_panics(60_000, 70);
    std::thread::spawn(|| panic!("index {}", 3)).join().unwrap_err();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let failure = runtime.block_on(panicked());
    assert_eq!(failure.part, "process");
    assert!(failure.cause.starts_with("panicked at crates/runtime/tests/panics.rs"), "{failure}");
    assert!(failure.cause.ends_with(": index 3"), "{failure}");
}

#[test]
fn a_process_that_hangs_after_a_panic_exits() {
    const NAME: &str = "a_process_that_hangs_after_a_panic_exits";
    if !is_child(NAME) {
        assert_eq!(child(NAME), Some(70));
        return;
    }
    watch_panics(1, 70);
    std::thread::spawn(|| panic!("a bug")).join().unwrap_err();
    loop {
        std::thread::park();
    }
}
