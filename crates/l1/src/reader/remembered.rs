//! A map of bounded size: what was noted first goes first.

use std::collections::{BTreeMap, VecDeque};

#[derive(Debug)]
pub(crate) struct Remembered<K, V, const LIMIT: usize> {
    known: BTreeMap<K, V>,
    order: VecDeque<K>,
}

impl<K, V, const LIMIT: usize> Default for Remembered<K, V, LIMIT> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl<K: Copy + Ord, V, const LIMIT: usize> Remembered<K, V, LIMIT> {
    /// What is known of `key` from now on.
    pub fn note(&mut self, key: K, value: V) {
        if self.known.insert(key, value).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > LIMIT
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        self.known.get(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_remembered_and_the_oldest_go_first() {
        let mut remembered = Remembered::<u8, &str, 2>::default();
        remembered.note(1, "one");
        remembered.note(2, "two");
        remembered.note(1, "uno");
        assert_eq!((remembered.get(&1), remembered.get(&2)), (Some(&"uno"), Some(&"two")));
        remembered.note(3, "three");
        assert_eq!((remembered.get(&1), remembered.get(&2)), (None, Some(&"two")));
        assert_eq!(remembered.known.len(), 2);
    }
}
