//! What goes to L1, as bytes: runs of headers with their data, hints, and what is shown against wrong ones.

pub(crate) mod archived;
pub(crate) mod blobs;
pub(crate) mod challenge;
pub(crate) mod evidence;
pub(crate) mod hint_blobs;
pub(crate) mod hint_posting;
pub(crate) mod hint_roots;
pub(crate) mod hint_tree;
pub(crate) mod opened_data;
pub(crate) mod parts;
pub(crate) mod place;
pub(crate) mod run;
pub(crate) mod run_data;
