//! Compiles the kernels: with the feature `emulator` as host code, for tests.

use std::path::Path;

/// Translation units with what the tests call.
const TESTING: &[&str] = &["gt.cu", "pairing.cu", "tower.cu"];

fn main() {
    let kernels = Path::new("../kernels");
    println!("cargo::rerun-if-changed={}", kernels.display());
    if std::env::var_os("CARGO_FEATURE_EMULATOR").is_some() && !TESTING.is_empty() {
        emulate(kernels);
    }
}

/// Host code needs neither exceptions nor the C++ library.
fn emulate(kernels: &Path) {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .cpp_link_stdlib(None)
        .std("c++17")
        .opt_level(2)
        .flag("-xc++")
        .flag("-fno-exceptions")
        .flag("-fno-rtti")
        .flag("-fno-threadsafe-statics")
        // The carry flag is read at every addition: no call to find it.
        .flag("-ftls-model=initial-exec")
        .warnings(true)
        .extra_warnings(true);
    for unit in TESTING {
        build.file(kernels.join("testing").join(unit));
    }
    build.compile("blindfold_emulated");
}
