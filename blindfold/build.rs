//! Tells `blindfold bench` what the binary was built with: figures without compiler and flags cannot be compared.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Flags may hold paths of the building machine: only benchmark builds carry them.
    if std::env::var_os("CARGO_FEATURE_BENCH").is_none() {
        return;
    }
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default().replace('\u{1f}', " ");
    println!("cargo::rustc-env=BLINDFOLD_BUILD_RUSTFLAGS={flags}");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    if let Ok(output) = Command::new(compiler).arg("--version").output() {
        let version = String::from_utf8_lossy(&output.stdout);
        println!("cargo::rustc-env=BLINDFOLD_BUILD_RUSTC={}", version.trim());
    }
}
