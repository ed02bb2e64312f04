//! Tests of the protocol crate, one module per part, in one binary.
#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test; helper functions count as well.

mod blocks;
mod bundles;
mod certificates;
mod chain;
mod check;
mod common;
mod encodings;
mod forced;
mod hashes;
mod headers;
mod ledgers;
mod settings;
mod skips;
mod vectors;
