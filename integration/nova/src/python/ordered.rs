//! A map that keeps the order in which Nova's dictionaries were filled.

use std::collections::HashMap;

/// Up to so many keys are compared one by one when a map is filled; for more there is an index,
/// because what comes from outside may have half a million.
const SMALL: usize = 16;

/// A map in insertion order, as a Python dictionary is one. Nova walks extra specs in that order
/// and stops at the first that decides, so the order says whether a bad value further on is an
/// error or is never looked at.
///
/// A key that comes twice keeps its first place and takes the last value. Look-ups are linear:
/// these maps are small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderedMap<V> {
    entries: Vec<(String, V)>,
}

impl<V> Default for OrderedMap<V> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
        }
    }
}

impl<V> OrderedMap<V> {
    /// Sets a key.
    pub fn insert(&mut self, key: impl Into<String>, value: V) {
        let key = key.into();
        match self.entries.iter_mut().find(|(k, _)| *k == key) {
            Some(entry) => entry.1 = value,
            None => self.entries.push((key, value)),
        }
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&V> {
        self.entries
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, value)| value)
    }

    /// Whether a key is there.
    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &V)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// Keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &String> {
        self.entries.iter().map(|(key, _)| key)
    }

    /// Values in order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().map(|(_, value)| value)
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: &str) -> Option<V> {
        let at = self.entries.iter().position(|(k, _)| k == key)?;
        Some(self.entries.remove(at).1)
    }

    /// How many keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True without any key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<K: Into<String>, V> FromIterator<(K, V)> for OrderedMap<V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut map = Self::default();
        for (key, value) in entries {
            if map.len() < SMALL {
                map.insert(key, value);
                continue;
            }
            if places.is_empty() {
                let known = map.keys().cloned().enumerate();
                places = known.map(|(place, key)| (key, place)).collect();
            }
            let key = key.into();
            match places.get(&key) {
                Some(place) => map.entries[*place].1 = value,
                None => {
                    places.insert(key.clone(), map.len());
                    map.entries.push((key, value));
                }
            }
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_comes_twice_keeps_its_first_place_and_takes_the_last_value() {
        let map: OrderedMap<i32> = [("b", 1), ("a", 2), ("b", 3)].into_iter().collect();
        let entries: Vec<(&str, i32)> = map.iter().map(|(k, v)| (k.as_str(), *v)).collect();
        assert_eq!(entries, [("b", 3), ("a", 2)]);
    }

    #[test]
    fn a_map_of_very_many_keys_is_filled_in_no_time() {
        let keys = (0..200_000).chain([7, 100_000]);
        let map: OrderedMap<usize> = keys.enumerate().map(|(n, k)| (k.to_string(), n)).collect();
        assert_eq!(map.len(), 200_000);
        assert_eq!(map.get("7"), Some(&200_000));
        assert_eq!(map.values().nth(100_000), Some(&200_001));
    }
}
