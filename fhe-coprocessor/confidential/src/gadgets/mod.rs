//! What the circuits are made of.

pub(crate) mod balance;
pub(crate) mod encryption;
pub(crate) mod lookup;
pub(crate) mod polynomial;
pub(crate) mod secret;
