#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| blindfold_fuzz_targets::feed(input));
