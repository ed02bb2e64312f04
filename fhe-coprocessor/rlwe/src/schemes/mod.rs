//! What is encrypted: amounts of money ([`balance`]).

pub mod balance;
