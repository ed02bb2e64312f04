//! What a batch of malformed ciphertexts costs a node that verifies it, beside a good batch of the same size:
//!
//! ```text
//! cargo run --release -p blindfold-bte --example malformed -- [items] [threads] [backend]
//! ```
//!
//! A good batch: proofs of knowledge, then hints. A malformed one: proofs, then singleton releases and the decryptions
//! that fail. Every ciphertext of it has a proof of its own and a D that is off by a bit, which is the cheapest there is
//! to make. Seeded; the best of three rounds, in milliseconds of processor time of all threads, which other work on the
//! machine does not change much (Linux).

use std::time::Duration;

use blindfold_bte::{Blinding, Ciphertext, Opening, Proof, SessionKey, SingletonItem, by_name, dealer};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

const MESSAGE: [u8; 300] = [7; 300];
const ROUNDS: usize = 3;

struct Item {
    ad: [u8; 32],
    ciphertext: Ciphertext,
    proof: Proof,
    key: SessionKey,
}

/// What this process's threads have run so far.
fn processor_time() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    let nanoseconds = tasks.flatten().filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

fn best(mut work: impl FnMut()) -> Duration {
    let rounds = (0..ROUNDS).map(|_| {
        let before = processor_time();
        work();
        processor_time().saturating_sub(before)
    });
    rounds.min().unwrap_or_default()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |i: usize, default| arguments.get(i).map_or(default, |text: &String| text.parse().expect("a number"));
    let (items, threads) = (number(0, 4096), number(1, 1));
    let backend = by_name(arguments.get(2).map_or("auto", String::as_str), threads).expect("a backend");
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let (parameters, keys) = dealer::deal(8, 1, 1, &mut rng).expect("a shape");
    let ek = parameters.encryption_key();
    let made: Vec<Item> = (0..items as u32)
        .map(|number| {
            let mut ad = [0; 32];
            ad[..4].copy_from_slice(&number.to_be_bytes());
            let (ciphertext, proof, key) = ek.encrypt(&ad, &MESSAGE, b"", &mut rng).expect("a message");
            Item { ad, ciphertext, proof, key }
        })
        .collect();
    let malformed: Vec<Ciphertext> = made
        .iter()
        .map(|item| {
            let mut ciphertext = item.ciphertext.clone();
            ciphertext.d[0] ^= 1;
            ciphertext
        })
        .collect();
    let releases: Vec<[u8; 48]> = backend
        .verify_proofs(
            &mut rng,
            &made.iter().map(|item| (&item.ad, &item.ciphertext, &item.proof)).collect::<Vec<_>>(),
        )
        .into_iter()
        .map(|point| {
            let share = keys[0].singleton_share(&point.expect("an honest proof"));
            parameters.combine_singletons(&[(1, share)]).expect("enough shares")
        })
        .collect();

    let proofs: Vec<_> = made.iter().map(|item| (&item.ad, &item.ciphertext, &item.proof)).collect();
    let hints: Vec<_> = made.iter().map(|item| (&item.ad, &item.ciphertext, &item.key)).collect();
    let claims: Vec<_> = made
        .iter()
        .zip(&malformed)
        .zip(&releases)
        .map(|((item, ciphertext), release)| SingletonItem {
            ad: &item.ad,
            ciphertext,
            release,
            blinding: None,
        })
        .collect();
    let stated: Vec<Blinding> =
        releases.iter().map(|release| parameters.blind_singleton(release).expect("a point")).collect();
    let stated: Vec<_> = claims
        .iter()
        .zip(&stated)
        .map(|(claim, blinding)| SingletonItem { blinding: Some(blinding), ..*claim })
        .collect();
    // Tables made at first use are not part of it.
    assert!(backend.open_hints(&ek, &hints[..items.min(9)]).iter().all(Result::is_ok));

    // A malformed envelope's proof binds its D; checking it costs what any proof costs.
    let proofs = best(|| assert!(backend.verify_proofs(&mut rng, &proofs).iter().all(Result::is_ok)));
    let hints = best(|| assert!(backend.open_hints(&ek, &hints).iter().all(Result::is_ok)));
    let mut open = |claims: &[SingletonItem<'_>]| {
        best(|| {
            let opened = backend.open_singletons(&mut rng, &parameters, claims);
            assert!(opened.iter().all(|opened| *opened == Ok(Opening::Malformed)));
        })
    };
    let (claims, stated) = (open(&claims), open(&stated));
    let good = milliseconds(proofs + hints);
    println!("{} with {} threads, {items} items", backend.name(), backend.threads());
    println!("proofs {:10.1} ms", milliseconds(proofs));
    println!("hints  {:10.1} ms   a good batch      {good:10.1} ms", milliseconds(hints));
    for (name, claims) in [("claims", claims), ("stated", stated)] {
        let bad = milliseconds(proofs + claims);
        let claims = milliseconds(claims);
        println!(
            "{name} {claims:10.1} ms   a malformed batch {bad:10.1} ms, {:.2} times as much",
            bad / good
        );
    }
}
