//! The sequencer's key in a process of its own, which signs each number once, whoever asks.
//!
//! [`Signer::start`] serves [`SignerApi`](blindfold_rpc::SignerApiServer) on a port that takes nobody without a certificate
//! of its callers' authority. What it signed stands in a database of its own, its **floor**: before a signature exists, the
//! header's number, its hash and its L1 origin are durable there. So a sequencer that was restored from an old copy, two
//! that ask at once, and one that somebody else controls get no second signature for a number:
//!
//! - **The same header** gets the same signature, however often it is asked for.
//! - **Another header for a number** is signed only where L1 excuses the two: L1 made a header below that number, in a block
//!   after the first one's origin and not after the second one's. L1 is asked for that, not the caller.
//! - **A header follows** what was signed for the number before. Else it follows a header that L1 made, final, with an origin
//!   not before it; or it is the first of a term, where L1 names this key from a block on and another key had the numbers
//!   before. Other gaps are refused: between two headers of one key everything was signed here.
//! - **A fresh database signs nothing** until [`begin`] says from which number on, once: an empty one may be what is left of
//!   a key that has signed, and nobody can tell that from a key that has not. The number has to be above everything that L1
//!   holds posted; that nothing above was signed elsewhere is the operator's to know.
//! - **An older term** is refused: of several sequencers on one database, the one that had it before.
//!
//! - **An older record** than L1 is a copy: a number up to L1's posted head, of which the record has nothing, is not signed.
//! - **An origin** that L1 cannot have come to is refused: of two headers, L1 would never excuse the other.
//! - **A term** is remembered with the first thing that is signed in it; what is refused changes nothing.
//!
//! L1 is looked at every few seconds, so that a question finds its answer; a request waits for it only where a header does not
//! follow what was signed here, or has a newer origin than L1 can have come to since: a signer that L1 leaves alone goes on
//! signing.
//!
//! What it does not do: it does not know whether a header is valid, or whether a promise can be kept. Who may ask it can
//! waste numbers and give promises that cost the bond, but cannot have two headers signed for one number.

mod begin;
mod config;
mod floor;
mod metrics;
mod refusal;
mod service;
mod start;

pub use begin::{BeginError, begin, first_number, forget_terms, is_signer, role_of};
pub use config::{ConfigError, SignerConfig};
pub use metrics::SignerMetrics;
pub use refusal::{SIGNING_REASONS, SigningRefusal};
pub use start::{Signer, SignerDeps, SignerHandle, StartError};
