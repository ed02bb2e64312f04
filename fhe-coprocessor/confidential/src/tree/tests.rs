use proptest::prelude::*;

use super::*;

fn hash(seed: u64) -> B256 {
    alloy_primitives::keccak256(seed.to_be_bytes())
}

/// The root by definition: level after level over all leaves.
fn plain_root(leaves: &[B256]) -> B256 {
    let mut level = leaves.to_vec();
    for height in 0..DEPTH {
        if level.len() % 2 == 1 {
            level.push(empty(height));
        }
        level = level.chunks(2).map(|pair| node_hash(&pair[0], &pair[1])).collect();
    }
    level.first().copied().unwrap_or_else(|| empty(DEPTH))
}

#[test]
fn the_empty_tree_has_its_root() {
    assert_eq!(empty(0), B256::ZERO);
    assert_eq!(plain_root(&[]), empty(DEPTH));
    let unchanged = Change { version: 1, leaves: vec![] };
    let Ok(update) = update(&MemoryNodes::default(), 0, 0, &[unchanged]);
    assert_eq!((update.roots, update.written), (vec![empty(DEPTH)], vec![]));
}

#[test]
fn both_ends_of_the_index_have_proofs() {
    let mut nodes = MemoryNodes::default();
    let changes = [
        Change { version: 1, leaves: vec![(0, hash(1))] },
        Change { version: 2, leaves: vec![(1, hash(2))] },
    ];
    let Ok(made) = update(&nodes, 0, 0, &changes);
    nodes.write(&made.written);
    let Ok(absent) = prove(&nodes, 2, 2, u32::MAX);
    assert_eq!(absent.root(u32::MAX, &B256::ZERO), made.roots[1]);
    assert_ne!(absent.root(u32::MAX, &hash(3)), made.roots[1]);
    let Ok(second) = prove(&nodes, 2, 2, 1);
    assert_eq!(second.root(1, &hash(2)), made.roots[1]);
    assert_ne!(second.root(0, &hash(2)), made.roots[1]);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48, failure_persistence: None, rng_seed: prop::test_runner::RngSeed::Fixed(11), ..Default::default()
    })]

    /// Updates of any sizes give the roots of the plain tree, every version stays provable until it is pruned.
    #[test]
    fn every_version_has_the_plain_trees_root(
        batches in prop::collection::vec(prop::collection::vec(prop::collection::vec(0u32..12, 0..4), 1..4), 1..5),
    ) {
        let (mut nodes, mut leaves, mut version) = (MemoryNodes::default(), Vec::<B256>::new(), 0u64);
        let mut history = vec![(leaves.clone(), empty(DEPTH))];
        for batch in batches {
            let (base, count) = (version, leaves.len() as u32);
            let mut changes = Vec::new();
            for indices in batch {
                version += 1;
                let mut touched = std::collections::BTreeMap::new();
                for index in indices {
                    // Leaves come in order: one beyond the last appends.
                    let index = index.min(leaves.len() as u32);
                    let leaf = hash(version << 8 | u64::from(index));
                    if index as usize == leaves.len() { leaves.push(leaf) } else { leaves[index as usize] = leaf }
                    touched.insert(index, leaf);
                }
                changes.push(Change { version, leaves: touched.into_iter().collect() });
                history.push((leaves.clone(), plain_root(&leaves)));
            }
            let Ok(made) = update(&nodes, base, count, &changes);
            for (root, (_, expected)) in made.roots.iter().zip(&history[base as usize + 1..]) {
                prop_assert_eq!(root, expected);
            }
            nodes.write(&made.written);
        }
        for horizon in [0, version / 2, version] {
            nodes.prune(horizon);
            for (version, (leaves, root)) in history.iter().enumerate().skip(horizon as usize) {
                for (index, leaf) in leaves.iter().enumerate() {
                    let Ok(proof) = prove(&nodes, version as u64, leaves.len() as u32, index as u32);
                    prop_assert_eq!(proof.root(index as u32, leaf), *root);
                }
            }
        }
        // Of the newest version alone each place has one node.
        prop_assert!(nodes.len() <= 33 * leaves.len());
    }
}
