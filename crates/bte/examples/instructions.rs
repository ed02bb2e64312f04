//! The operations of the portable backend on a small fixed batch, to count their instructions: see
//! `scripts/instructions`, which runs this under `valgrind --tool=callgrind --instr-atstart=no`. By itself it only runs
//! everything once or twice.
//!
//! Everything is seeded and runs on one thread, so that counts depend on the code and the compiler only. Each operation
//! has run before it is counted: tables made at first use are not part of it.

use std::ffi::CStr;

use blindfold_bte::{Backend, CiphertextPoint, Portable, dealer};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

const BATCH: usize = 32;
const MESSAGE: [u8; 300] = [7; 300];

/// Requests to callgrind, numbered from the letters C and T (callgrind.h).
const ZERO_STATS: usize = 0x4354_0001;
const DUMP_STATS_AT: usize = 0x4354_0003;
const START_INSTRUMENTATION: usize = 0x4354_0004;
const STOP_INSTRUMENTATION: usize = 0x4354_0005;

/// Tells the tool that this program runs under, if it runs under one.
#[cfg(target_arch = "x86_64")]
fn request(code: usize, argument: usize) {
    let arguments = [code, argument, 0, 0, 0, 0];
    // SAFETY: valgrind takes this sequence for a request and reads six words at rax. On a processor it rotates a
    // register by twice its width and exchanges another with itself: nothing changes.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            inout("rax") arguments.as_ptr() => _,
            inout("rdx") 0usize => _,
            options(nostack)
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn request(_code: usize, _argument: usize) {}

/// Runs `work` to make what is made once, then counts it under `name`.
fn count<T>(name: &CStr, mut work: impl FnMut() -> T) {
    drop(std::hint::black_box(work()));
    request(START_INSTRUMENTATION, 0);
    request(ZERO_STATS, 0);
    drop(std::hint::black_box(work()));
    request(DUMP_STATS_AT, name.as_ptr() as usize);
    request(STOP_INSTRUMENTATION, 0);
}

fn main() {
    let backend = Portable::new(1);
    // Nested calls of the backend then stay on this thread of its pool.
    backend.install(|| run(&backend));
}

fn run(backend: &Portable) {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let (parameters, keys) = dealer::deal(BATCH as u32, 1, 1, &mut rng).expect("a valid shape");
    let ek = parameters.encryption_key();
    backend.prepare(&parameters, BATCH).expect("within limits");
    let ads: Vec<[u8; 32]> = (0..BATCH).map(|i| [i as u8; 32]).collect();
    let made: Vec<_> =
        ads.iter().map(|ad| ek.encrypt(ad, &MESSAGE, b"", &mut rng).expect("a short message")).collect();
    let points: Vec<CiphertextPoint> = made.iter().map(|(c, ..)| c.header().expect("honest")).collect();
    let items: Vec<_> = ads.iter().zip(&made).map(|(ad, (c, ..))| (ad, c)).collect();
    let hints: Vec<_> = ads.iter().zip(&made).map(|(ad, (c, _, key))| (ad, c, key)).collect();
    let proofs: Vec<_> = ads.iter().zip(&made).map(|(ad, (c, proof, _))| (ad, c, proof)).collect();
    let share = keys[0].release_share(&points).expect("within limits");
    let release = parameters.combine(&[(1, share)]).expect("enough shares");
    let predecrypted = backend.predecrypt(&parameters, &points).expect("within limits");

    count(c"predecrypt", || backend.predecrypt(&parameters, &points));
    count(c"finalize", || backend.finalize(&parameters, &predecrypted, &release, &items));
    count(c"decrypt", || backend.decrypt(&parameters, &points, &release, &items));
    count(c"open-hints", || backend.open_hints(&ek, &hints));
    count(c"encrypt", || {
        ads.iter().map(|ad| ek.encrypt(ad, &MESSAGE, b"", &mut rng)).collect::<Result<Vec<_>, _>>()
    });
    count(c"release-share", || backend.release_share(&keys[0], &points));
    count(c"verify-proofs", || backend.verify_proofs(&mut rng, &proofs));
}
