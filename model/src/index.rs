//! An index over records: keys with the identifiers of the records that have the key.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

/// Identifiers by key, both in order. A key without identifiers is not in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index<K: Ord, V: Ord>(BTreeMap<K, BTreeSet<V>>);

impl<K: Ord, V: Ord> Default for Index<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord, V: Ord> Index<K, V> {
    /// Adds an identifier. The key is copied only if it is new.
    pub fn insert<Q>(&mut self, key: &Q, value: V)
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        match self.0.get_mut(key) {
            Some(values) => drop(values.insert(value)),
            None => drop(self.0.insert(key.to_owned(), BTreeSet::from([value]))),
        }
    }

    /// Removes an identifier.
    pub fn remove<Q>(&mut self, key: &Q, value: &V)
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        if let Some(values) = self.0.get_mut(key) {
            values.remove(value);
            if values.is_empty() {
                self.0.remove(key);
            }
        }
    }

    /// The identifiers of a key.
    pub fn get<'i, Q>(
        &'i self,
        key: &Q,
    ) -> impl DoubleEndedIterator<Item = &'i V> + use<'i, K, V, Q>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.0.get(key).into_iter().flatten()
    }

    /// True if a record has the key.
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.0.contains_key(key)
    }

    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.keys()
    }
}

impl<K: Ord, V: Ord> FromIterator<(K, V)> for Index<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut index = Self::default();
        for (key, value) in pairs {
            index.0.entry(key).or_default().insert(value);
        }
        index
    }
}

/// An error if an index is not what the records say.
pub fn same<T: PartialEq + std::fmt::Debug>(
    what: &str,
    kept: &T,
    derived: &T,
) -> Result<(), String> {
    match kept == derived {
        true => Ok(()),
        false => Err(format!(
            "the index of {what} is {kept:?}, and the records say {derived:?}"
        )),
    }
}
