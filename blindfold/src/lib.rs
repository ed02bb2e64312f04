//! The appliance as a library: the subcommands' parts, so that tests can start what the binary starts.

mod address;
mod archive;
pub mod backend;
pub mod bench;
pub mod cli;
pub mod dealer;
pub mod deploy;
pub mod devnet;
mod doctor;
mod health;
mod http_probe;
pub mod l1_commands;
mod member_keys;
mod new_file;
pub mod roles;
pub mod settings;
pub mod setup;
mod store_commands;
#[cfg(test)]
mod test_chain;
mod wallet;
