//! Tests of the protocol crate, one module per part, in one binary.
#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test; helper functions count as well.

mod blocks;
mod bounds;
mod bundles;
mod certificates;
mod chain;
mod check;
mod common;
mod data;
mod encodings;
mod fees;
mod forced;
mod generations;
mod hashes;
mod headers;
mod hellos;
mod ledger_tree;
mod ledgers;
mod opened;
mod room;
mod settings;
mod skips;
mod vectors;
