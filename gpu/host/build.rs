//! Compiles the kernels: with the feature `cuda` by nvcc for devices, with `emulator` as host code, for tests, and with
//! `ptx` by nvcc to PTX that the processor executes, for the same tests.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Translation units with what the tests call.
const TESTING: &[&str] = &["affine.cu", "gt.cu", "lines.cu", "msm.cu", "pairing.cu", "points.cu", "tower.cu"];
/// What the host calls.
const API: &str = "api.cu";
/// Whose PTX is executed on the processor.
const EXECUTED: u32 = 90;
/// Compute capabilities that get machine code; the newest also as PTX, for devices to come.
const ARCHITECTURES: &[u32] = &[80, 90, 100];

fn main() {
    let kernels = Path::new("../kernels");
    println!("cargo::rerun-if-changed={}", kernels.display());
    let [cuda, emulator, ptx] = ["CARGO_FEATURE_CUDA", "CARGO_FEATURE_EMULATOR", "CARGO_FEATURE_PTX"]
        .map(|name| env::var_os(name).is_some());
    assert!(!(cuda && ptx), "the features `cuda` and `ptx` of blindfold-gpu exclude each other: choose one");
    if cuda {
        device(kernels);
    }
    if ptx {
        executed(kernels);
    } else if emulator {
        // With both, devices have the name of the API.
        emulate(kernels, !cuda);
    }
}

/// Host code needs neither exceptions nor the C++ library.
fn emulate(kernels: &Path, api: bool) {
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
    if api {
        build.file(kernels.join(API));
    }
    if api || !TESTING.is_empty() {
        build.compile("blindfold_emulated");
    }
}

/// For devices, with the CUDA runtime linked in.
fn device(kernels: &Path) {
    let nvcc = nvcc();
    let object = out().join("api.o");
    let mut command = compiler(&nvcc);
    for architecture in ARCHITECTURES {
        command.arg("-gencode").arg(format!("arch=compute_{architecture},code=sm_{architecture}"));
    }
    if let Some(newest) = ARCHITECTURES.last() {
        command.arg("-gencode").arg(format!("arch=compute_{newest},code=compute_{newest}"));
    }
    finish(command, &kernels.join(API), &object);
    // The runtime's library is beside the compiler, wherever that is.
    for folder in ["lib64", "lib", "targets/x86_64-linux/lib"] {
        if let Some(root) = nvcc.parent().and_then(Path::parent) {
            println!("cargo::rustc-link-search=native={}", root.join(folder).display());
        }
    }
    println!("cargo::rustc-link-lib=static=cudart_static");
    for library in ["dl", "rt", "pthread"] {
        println!("cargo::rustc-link-lib={library}");
    }
}

/// What the host and the tests call, in one translation unit, as PTX. The runtime is `blindfold-ptx`.
fn executed(kernels: &Path) {
    let layout = Path::new("../ptx/layout.cuh");
    println!("cargo::rerun-if-changed={}", layout.display());
    let here = env::current_dir().unwrap_or_default();
    let units = TESTING.iter().map(|unit| kernels.join("testing").join(unit)).chain([kernels.join(API)]);
    let includes = [layout.to_owned()].into_iter().chain(units);
    let text: String = includes.map(|file| format!("#include \"{}\"\n", here.join(file).display())).collect();
    let (unit, object) = (out().join("executed.cu"), out().join("executed.o"));
    if let Err(fault) = std::fs::write(&unit, text) {
        panic!("{} cannot be written: {fault}", unit.display());
    }
    let mut command = compiler(&nvcc());
    command.arg("--no-compress").arg(format!("-gencode=arch=compute_{EXECUTED},code=compute_{EXECUTED}"));
    finish(command, &unit, &object);
}

fn out() -> PathBuf {
    PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default())
}

/// Not through `cc`: it would add flags of the C++ compiler, and in debug builds `-G`, which no kernel survives.
fn compiler(nvcc: &Path) -> Command {
    let mut command = Command::new(nvcc);
    command.args(["-c", "-O3", "-std=c++17", "-Xcompiler", "-fPIC,-Wall,-Wextra"]);
    if let Some(host) = env::var_os("CXX") {
        command.arg("-ccbin").arg(host);
    }
    command
}

/// Compiles the unit and makes a library of it.
fn finish(mut command: Command, unit: &Path, object: &Path) {
    command.arg("-o").arg(object).arg(unit);
    match command.status() {
        Ok(status) => assert!(status.success(), "nvcc fails on the kernels, {status}: {command:?}"),
        Err(fault) => panic!("nvcc cannot be run: {fault}: {command:?}"),
    }
    cc::Build::new().cpp(true).object(object).compile("blindfold_cuda");
}

/// The program that `NVCC` names, or the first `nvcc` on the path, or that of `CUDA_HOME`.
fn nvcc() -> PathBuf {
    println!("cargo::rerun-if-env-changed=NVCC");
    println!("cargo::rerun-if-env-changed=CUDA_HOME");
    if let Some(named) = env::var_os("NVCC") {
        let named = PathBuf::from(named);
        assert!(named.is_file(), "NVCC names {}, where there is no file", named.display());
        return named;
    }
    let home = env::var_os("CUDA_HOME").map(|home| PathBuf::from(home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let found = home.into_iter().chain(env::split_paths(&path)).map(|folder| folder.join("nvcc"));
    match found.into_iter().find(|nvcc| nvcc.is_file()) {
        Some(nvcc) => nvcc,
        None => panic!(
            "the feature `cuda` needs nvcc, of the CUDA toolkit 12.8 or later: set NVCC to its path, or build without \
             the feature"
        ),
    }
}
