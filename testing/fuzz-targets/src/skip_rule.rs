use blindfold_protocol::{Bundle, limits::SIZE_BUCKETS, skip};

/// Messages: what parses as a bundle has one encoding, and the static skip rule judges any message without panicking.
///
/// Input: size bucket u8 · gas limit u64 · message.
pub fn skip_rule(input: &[u8]) {
    let Some(([bucket, gas_limit @ ..], bytes)) = input.split_first_chunk::<9>() else { return };
    let gas_limit = u64::from_be_bytes(*gas_limit);
    let mut message = bytes.to_vec();
    message.resize(SIZE_BUCKETS[usize::from(*bucket) % SIZE_BUCKETS.len()], 0);
    if let Ok(bundle) = Bundle::decode(&message) {
        assert_eq!(bundle.encode_padded_to(message.len()).as_deref(), Ok(message.as_slice()));
    }
    let _ = skip::candidates(42_069, gas_limit, &message);
    let _ = skip::candidates(42_069, gas_limit, bytes);
}
