//! The committee member: it checks every header completely, acknowledges at most one per number, and gives its
//! share of a batch's release only against a certificate.
//!
//! - [`key_file`]: the encrypted file with the member's shares and BLS keys, and the public file beside it.
//! - [`Member::start`]: follows the sequencer's feed, recomputes validity, acknowledges, and serves
//!   `committee_*` to anyone.
//!
//! What a member promises, whatever kills it: the pair "number N: header hash H" is on disk before the signature
//! over it exists, and a second hash for N is never signed. A disk that cannot know what was signed before does not
//! vote (`voting`). With an account on L1 it posts certified headers that the sequencer keeps from there (`posting`). Data that
//! the sequencer is about to post it reads first, as others will (`attest`). What it does not promise: that fewer than t members
//! cannot be made to release early by t of them together; see `SECURITY.md`.

mod acknowledge;
mod attest;
mod catch_up;
mod config;
mod evidence;
mod follow;
mod introduce;
pub mod key_file;
mod member;
mod metrics;
mod pace;
mod posting;
mod refusals;
mod service;
mod share;
mod unreleased;
mod voting;

pub use attest::AttestationRefusal;
pub use blindfold_runtime::{Clock, SteadyClock};
pub use config::{ConfigError, MemberConfig, MemberLimits, PeerUrl};
pub use evidence::Evidence;
pub use member::{Member, MemberDeps, MemberHandle, StartError, is_member_of, store_role};
pub use metrics::MemberMetrics;
pub use share::ShareRequestError;
pub use voting::VOTES_AFTER_KEY;
