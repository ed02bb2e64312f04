//! The circuits against honest and malicious provers.

mod attacks;
mod completeness;
mod forger;
mod proofs;
mod registrations;

use crate::Ring;
use crate::native::World;

/// A ring that is quick: the modulus of balances, N = 64.
fn small_ring() -> Ring {
    Ring::new(64, Ring::BALANCE.modulus()).unwrap()
}

fn world(seed: u64) -> World {
    World::new(small_ring(), seed)
}
