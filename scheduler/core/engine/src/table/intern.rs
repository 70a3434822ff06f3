//! Values that many rows share are kept once and counted.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// A counted store of equal values.
///
/// Invariants: a value with a count above zero has exactly one number. The number of a value that
/// is no longer in use is assigned again. Numbers therefore depend on history, and no decision may
/// depend on their order.
#[derive(Debug, Clone)]
pub(crate) struct Interner<T> {
    numbers: HashMap<T, u32>,
    entries: Vec<(T, u32)>,
    free: Vec<u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self {
            numbers: HashMap::new(),
            entries: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    /// The number of a value, counted once more.
    pub(crate) fn acquire(&mut self, value: T) -> u32 {
        if let Some(&number) = self.numbers.get(&value) {
            self.entries[number as usize].1 += 1;
            return number;
        }
        let number = match self.free.pop() {
            Some(number) => {
                self.entries[number as usize] = (value.clone(), 1);
                number
            }
            None => {
                self.entries.push((value.clone(), 1));
                super::index_of(self.entries.len() - 1)
            }
        };
        self.numbers.insert(value, number);
        number
    }

    /// Counted once less; at zero the number is free.
    pub(crate) fn release(&mut self, number: u32) {
        let entry = &mut self.entries[number as usize];
        entry.1 = entry.1.saturating_sub(1);
        if entry.1 == 0 && self.numbers.remove(&entry.0).is_some() {
            self.free.push(number);
        }
    }

    /// The number of a value that is in use.
    pub(crate) fn find<Q>(&self, value: &Q) -> Option<u32>
    where
        T: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.numbers.get(value).copied()
    }

    /// The value of a number that is in use.
    pub(crate) fn get(&self, number: u32) -> &T {
        &self.entries[number as usize].0
    }

    /// How often the value of a number is used; for the consistency check.
    pub(super) fn count(&self, number: u32) -> u32 {
        self.entries.get(number as usize).map_or(0, |e| e.1)
    }

    /// One more than the highest number ever given out.
    pub(crate) fn slots(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_a_number_until_no_host_uses_it() {
        let mut interner = Interner::default();
        let a = interner.acquire("a");
        assert_eq!(interner.acquire("a"), a);
        let b = interner.acquire("b");
        assert_ne!(a, b);
        interner.release(a);
        assert_eq!(*interner.get(a), "a");
        interner.release(a);
        assert_eq!(
            interner.acquire("c"),
            a,
            "the number of a is given out again"
        );
        assert_eq!(interner.count(b), 1);
    }
}
