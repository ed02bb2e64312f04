//! A handful of seeds; by hand more: `cargo run -p blindfold-sim -- --first-seed 1 --seeds 1000`.

use std::process::Command;

use serde_json::Value;

fn simulate(arguments: &[&str]) -> (bool, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_blindfold-sim")).args(arguments).output().expect("it runs");
    let outcome = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
        panic!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    });
    (output.status.success(), outcome)
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let once = |seed: &str| simulate(&["--here", "--first-seed", seed]).1;
    // One without faults, one with kills, losses and partitions.
    let outcomes = ["8", "3"].map(|seed| (once(seed), once(seed)));
    for (one, other) in &outcomes {
        assert_eq!(one, other);
        assert!(one["events"].as_u64().unwrap() > 500, "{one:#}");
    }
    assert_ne!(outcomes[0].0["trace"], outcomes[1].0["trace"]);
}

#[test]
fn a_calm_seed_executes_everything() {
    let (holds, report) = simulate(&["--first-seed", "8", "--calm", "--json"]);
    assert!(holds, "{report:#}");
    let sum = |name: &str| report["sums"][name].as_u64().unwrap();
    assert!(sum("executed") > 0 && sum("posted") > 0, "{report:#}");
    assert_eq!((sum("executed"), sum("failures"), sum("refused")), (sum("answered"), 0, 0));
}

#[test]
fn no_rule_is_broken() {
    let (holds, report) = simulate(&["--first-seed", "1", "--seeds", "6", "--json"]);
    assert!(holds, "{report:#}");
}

/// Hint publishers gave a sequencer with an older disk no hints of what they had published for it.
#[test]
fn a_sequencer_with_an_older_disk_goes_on() {
    let (holds, report) = simulate(&["--first-seed", "1085", "--without", "0,1,3,4", "--json"]);
    assert!(holds, "{report:#}");
}

#[test]
fn bugs_put_in_on_purpose_are_found() {
    for plant in ["clients_differ", "other_order", "clock_stands"] {
        let (holds, report) = simulate(&["--plant", plant, "--calm", "--json"]);
        assert!(!holds, "{plant}: {report:#}");
    }
}
