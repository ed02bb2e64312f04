//! Messages: what parses as a bundle has one encoding, and the static skip rule judges any message without panicking.
#![no_main]

use blindfold_protocol::{Bundle, limits::SIZE_BUCKETS, skip};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, u64, &[u8])| {
    let (bucket, gas_limit, bytes) = input;
    let mut message = bytes.to_vec();
    message.resize(SIZE_BUCKETS[usize::from(bucket) % SIZE_BUCKETS.len()], 0);
    if let Ok(bundle) = Bundle::decode(&message) {
        assert_eq!(bundle.encode_padded_to(message.len()).as_deref(), Ok(message.as_slice()));
    }
    let _ = skip::candidates(42_069, gas_limit, &message);
    let _ = skip::candidates(42_069, gas_limit, bytes);
});
