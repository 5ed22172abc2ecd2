//! A persistent sorted map, whose copies share their entries. A copy costs nothing, and a change copies only the path
//! to the changed entry. Knows nothing of devices.

use std::borrow::Borrow;

use rpds::RedBlackTreeMapSync;

/// A sorted map; the names are those of `BTreeMap`.
#[derive(Debug)]
pub struct SharedMap<K: Ord, V>(RedBlackTreeMapSync<K, V>);

impl<K: Ord, V> SharedMap<K, V> {
    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key)
    }

    /// Whether a key is there.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains_key(key)
    }

    /// The keys, sorted.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.keys()
    }

    /// The values, sorted by their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.values()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.0.size()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Inserts an entry, or replaces the entry of the same key.
    pub fn insert(&mut self, key: K, value: V) {
        self.0.insert_mut(key, value);
    }

    /// Removes an entry.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.0.remove_mut(key);
    }
}

// A derived implementation would require keys and values that can be cloned, although no entry is cloned.
impl<K: Ord, V> Clone for SharedMap<K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Ord, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self(RedBlackTreeMapSync::new_sync())
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SharedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        map.extend(entries);
        map
    }
}

impl<K: Ord, V> Extend<(K, V)> for SharedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        entries.into_iter().for_each(|(key, value)| self.insert(key, value));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;

    use super::*;

    thread_local! {
        static COMPARED: Cell<usize> = const { Cell::new(0) };
    }

    /// A key that counts how often one is compared, and cannot be copied.
    #[derive(Debug, PartialEq, Eq)]
    struct Counted(u32);

    impl Ord for Counted {
        fn cmp(&self, other: &Self) -> Ordering {
            COMPARED.set(COMPARED.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    #[test]
    fn a_change_looks_at_few_of_many_entries_and_leaves_the_older_version_as_it_was() {
        let before: SharedMap<_, _> = (0..10_000).map(|n| (Counted(2 * n), n)).collect();
        COMPARED.set(0);
        let mut after = before.clone();
        after.insert(Counted(7_001), 0);
        after.insert(Counted(7_002), 0);
        after.remove(&Counted(4_000));
        // Three paths of a red-black tree of 10,000 entries, of at most 2 * log2(10,001) = 26 nodes each.
        assert!(COMPARED.get() <= 3 * 27, "{}", COMPARED.get());
        assert_eq!((before.len(), after.len()), (10_000, 10_000));
        assert!(before.keys().eq((0..10_000).map(|n| Counted(2 * n)).collect::<Vec<_>>().iter()));
        for key in (0..20_000).map(Counted) {
            let [before, after] = [&before, &after].map(|map| map.get(&key));
            let is_same = before.map(std::ptr::from_ref) == after.map(std::ptr::from_ref);
            assert_eq!(is_same, ![4_000, 7_001, 7_002].contains(&key.0), "{key:?}");
        }
    }
}
