//! The proxy and the wallet over real HTTP, against scripted servers.

mod common;
mod envelopes;
mod privacy;
mod recovery;
mod refusals;
mod wallet;
