//! A bounded memory of what was computed: the entry that was not asked for longest goes first.

use std::{collections::HashMap, hash::Hash};

/// At most `capacity` entries. Eviction looks at every entry, so keep the capacity in the ten thousands.
pub(crate) struct Lru<K, V> {
    entries: HashMap<K, (u64, V)>,
    capacity: usize,
    clock: u64,
}

impl<K: Eq + Hash + Clone, V: Clone> Lru<K, V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { entries: HashMap::new(), capacity, clock: 0 }
    }

    pub(crate) fn get(&mut self, key: &K) -> Option<V> {
        self.clock += 1;
        let (used, value) = self.entries.get_mut(key)?;
        *used = self.clock;
        Some(value.clone())
    }

    pub(crate) fn put(&mut self, key: K, value: V) {
        self.clock += 1;
        self.entries.insert(key, (self.clock, value));
        if self.entries.len() > self.capacity {
            // An eighth at once, so that a full memory is not walked for every entry.
            let mut ages: Vec<u64> = self.entries.values().map(|(used, _)| *used).collect();
            let dropped = (self.entries.len() / 8).max(self.entries.len() - self.capacity);
            let (_, limit, _) = ages.select_nth_unstable(dropped - 1);
            let limit = *limit;
            self.entries.retain(|_, (used, _)| *used > limit);
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_is_asked_for_and_stays_bounded() {
        let mut lru = Lru::new(16);
        for key in 0..100u32 {
            lru.put(key, key * 2);
            assert!(lru.len() <= 16);
            assert!(lru.get(&0).is_some(), "asked for each round, so never the oldest");
        }
        assert_eq!(lru.get(&99), Some(198));
        assert_eq!(lru.get(&1), None);
        let mut single = Lru::new(1);
        single.put("a", 1);
        single.put("b", 2);
        assert_eq!((single.get(&"a"), single.get(&"b")), (None, Some(2)));
    }
}
