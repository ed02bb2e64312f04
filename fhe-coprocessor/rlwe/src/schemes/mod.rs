//! What is encrypted: amounts of money ([`balance`]) and numbers to be multiplied ([`compute`]).

pub mod balance;
pub mod compute;
