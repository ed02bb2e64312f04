//! (see Cargo.toml description)
