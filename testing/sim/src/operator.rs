//! The operator: does what docs/operate.md says where L1 made a header in place of one that is certified (Back to what L1
//! holds). Whoever is hit is stopped, all of them before the first is started again; sequencer and members go back to what
//! L1 holds, a full node begins with an empty disk. So does a coprocessor, and where it says so because L1 declared void what
//! it executed.

use std::{sync::Arc, time::Duration};

use blindfold_protocol::HeaderId;
use blindfold_store::Store;
use tokio::time::sleep;

use crate::{Role, world::World};

/// How often the operator looks, in milliseconds.
const LOOK_MS: u64 = 1_000;
/// Who is hit for so many looks does not get out of it alone.
const PATIENCE: usize = 5;

/// Looks after everybody for ever.
pub async fn operate(world: Arc<World>) {
    let mut looks = 0;
    loop {
        sleep(Duration::from_millis(LOOK_MS)).await;
        let made = world.l1.made();
        let mut hit = Vec::new();
        for role in world.plan.cast().with_disk() {
            if world.is_stranded(role) || is_hit(&world, role, &made).await {
                hit.push(role);
            }
        }
        looks = if hit.is_empty() { 0 } else { looks + 1 };
        if looks >= PATIENCE {
            looks = 0;
            world.trace.event(Role::World, format_args!("the operator takes {hit:?} back to what L1 holds"));
            world.take_back(&hit).await;
        }
    }
}

/// Whether something is certified on its disk in whose place L1 made another header.
async fn is_hit(world: &World, role: Role, made: &[HeaderId]) -> bool {
    let Some(store) = world.store(role) else { return false };
    let certified = store.heads().await.ok().and_then(|heads| heads.certified).unwrap_or_default();
    for made in made.iter().filter(|made| made.number <= certified) {
        let ours = store.header_hash(made.number).await.ok().flatten();
        if ours.is_some_and(|ours| ours != made.hash) {
            return true;
        }
    }
    false
}
