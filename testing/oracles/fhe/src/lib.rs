//! Only tests: see `tests/differential.rs`.
