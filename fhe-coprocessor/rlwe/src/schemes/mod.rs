//! What is encrypted: amounts of money ([`balance`]), numbers to be multiplied ([`compute`]), and with them prices and
//! quantities ([`invoice`]).

pub mod balance;
pub mod compute;
pub mod invoice;
