//! What the fuzzers run: one function for each target, over plain bytes.
//!
//! Two harnesses call them. libFuzzer in [`testing/fuzz`](../../fuzz) looks for new inputs, on a nightly compiler; the
//! test `corpora` here runs what was found and kept in `testing/fuzz/corpus`, and damaged conformance vectors, in every
//! run of `scripts/test`. A target panics when it finds something.

mod confidential;
mod feed;
mod hint_blobs;
mod invoices;
mod json;
mod proxy_header;
mod scheme;
mod skip_rule;
mod structures;

pub use confidential::confidential;
pub use feed::feed;
pub use hint_blobs::hint_blobs;
pub use invoices::invoices;
pub use json::json;
pub use proxy_header::proxy_header;
pub use scheme::scheme;
pub use skip_rule::skip_rule;
pub use structures::{STRUCTURES, structures};

/// A target: it takes any bytes and panics when it finds something.
pub type Target = fn(&[u8]);

/// Every target by its name, which is that of its folder in `testing/fuzz/corpus` and of its binary in `testing/fuzz`.
pub const TARGETS: &[(&str, Target)] = &[
    ("confidential", confidential),
    ("feed", feed),
    ("hint_blobs", hint_blobs),
    ("invoices", invoices),
    ("json", json),
    ("proxy_header", proxy_header),
    ("scheme", scheme),
    ("skip_rule", skip_rule),
    ("structures", structures),
];

/// Numbers that look random and are always the same: nothing is kept secret from a fuzzer.
struct Counter(u64);

impl rand_core::TryRng for Counter {
    type Error = core::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        self.try_next_u64().map(|word| word as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        Ok(self.0 ^ self.0 >> 29)
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Self::Error> {
        for chunk in out.chunks_mut(8) {
            let word = self.try_next_u64()?.to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(())
    }
}

impl rand_core::TryCryptoRng for Counter {}
