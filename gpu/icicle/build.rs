//! Compiles the functions that catch ICICLE's exceptions, and tells the binaries where its libraries are.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=src/caught.cpp");
    for variable in ["ICICLE_FRONTEND_INSTALL_DIR", "ICICLE_INSTALL_DIR"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .warnings(true)
        .extra_warnings(true)
        .file("src/caught.cpp")
        .compile("blindfold_icicle");
    println!("cargo::rustc-link-arg=-Wl,-rpath,{}", libraries().display());
}

/// Where ICICLE's own build scripts find its libraries or put them; what they say about it reaches no dependent.
fn libraries() -> PathBuf {
    if let Some(built) = env::var_os("ICICLE_FRONTEND_INSTALL_DIR") {
        return built.into();
    }
    let installed = env::var_os("ICICLE_INSTALL_DIR").map(PathBuf::from);
    let folder = installed.unwrap_or_else(|| {
        // target/PROFILE/build/CRATE/out, and their target/PROFILE/deps/icicle.
        let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
        let profile = out.ancestors().nth(3).map(PathBuf::from).unwrap_or_default();
        profile.join("deps").join("icicle")
    });
    folder.join("lib")
}
