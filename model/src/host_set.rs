//! A set of hosts, one bit each, by their places.
//!
//! The engine and the exact copy of Nova's decisions keep the hosts that pass a filter in such
//! sets. Both also work on whole words: a block of 64 hosts in which none is left costs one
//! comparison.

/// Hosts of a cloud, each by its place in a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostSet {
    words: Vec<u64>,
}

/// Bits in a word.
pub const WORD: usize = 64;

impl HostSet {
    /// No host, with room for `len` places.
    #[must_use]
    pub fn none(len: usize) -> Self {
        Self {
            words: vec![0; len.div_ceil(WORD)],
        }
    }

    /// All hosts of `len` places.
    #[must_use]
    pub fn all(len: usize) -> Self {
        let mut words = vec![u64::MAX; len.div_ceil(WORD)];
        let rest = len % WORD;
        if let Some(last) = words.last_mut().filter(|_| rest > 0) {
            *last = (1 << rest) - 1;
        }
        Self { words }
    }

    /// No host, with room for the places of this set.
    #[must_use]
    pub fn none_like(&self) -> Self {
        Self {
            words: vec![0; self.words.len()],
        }
    }

    /// Makes room for `len` places.
    pub fn grow(&mut self, len: usize) {
        let words = len.div_ceil(WORD);
        if words > self.words.len() {
            self.words.resize(words, 0);
        }
    }

    /// Puts a host in. There has to be room for its place.
    #[inline]
    pub fn set(&mut self, at: usize) {
        self.words[at / WORD] |= 1 << (at % WORD);
    }

    /// Takes a host out.
    #[inline]
    pub fn clear(&mut self, at: usize) {
        if let Some(word) = self.words.get_mut(at / WORD) {
            *word &= !(1 << (at % WORD));
        }
    }

    /// Puts a host in, or takes it out.
    #[inline]
    pub fn put(&mut self, at: usize, member: bool) {
        if member {
            self.set(at);
        } else {
            self.clear(at);
        }
    }

    /// Whether a host is in it.
    #[inline]
    #[must_use]
    pub fn has(&self, at: usize) -> bool {
        let word = self.words.get(at / WORD);
        word.is_some_and(|word| word >> (at % WORD) & 1 == 1)
    }

    /// How many hosts.
    #[inline]
    #[must_use]
    pub fn count(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// True without hosts.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Whether a host is in both.
    #[inline]
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// Takes out what the other has.
    #[inline]
    pub fn remove(&mut self, other: &Self) {
        for (own, other) in self.words.iter_mut().zip(&other.words) {
            *own &= !other;
        }
    }

    /// Becomes a copy of the other, in the memory that it has.
    #[inline]
    pub fn copy_from(&mut self, other: &Self) {
        self.words.clone_from(&other.words);
    }

    /// The hosts that the other does not have.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        rest.remove(other);
        rest
    }

    /// Keeps what the other has, too.
    #[inline]
    pub fn keep(&mut self, other: &Self) {
        for (at, own) in self.words.iter_mut().enumerate() {
            *own &= other.words.get(at).copied().unwrap_or(0);
        }
    }

    /// Adds the members of the other set. Places beyond this set are left out.
    #[inline]
    pub fn join(&mut self, other: &Self) {
        for (own, other) in self.words.iter_mut().zip(&other.words) {
            *own |= other;
        }
    }

    /// 64 places a word.
    #[inline]
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The same, to be changed. Bits beyond the last place have to stay zero.
    #[inline]
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Hosts in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words
            .iter()
            .enumerate()
            .flat_map(|(at, word)| ones(*word).map(move |bit| at * WORD + bit))
    }
}

/// Places of the ones in a word, ascending.
#[inline]
pub fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if word == 0 {
            return None;
        }
        let bit = word.trailing_zeros() as usize;
        word &= word - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const LEN: usize = 150;

    fn set(members: &BTreeSet<usize>) -> HostSet {
        let mut set = HostSet::none(LEN);
        members.iter().for_each(|at| set.set(*at));
        set
    }

    fn members() -> impl Strategy<Value = BTreeSet<usize>> {
        prop::collection::btree_set(0..LEN, 0..40)
    }

    proptest! {
        #[test]
        fn it_behaves_as_a_set_of_numbers(a in members(), b in members()) {
            let (left, right) = (set(&a), set(&b));
            let same = |set: &HostSet, expected: BTreeSet<usize>| {
                prop_assert_eq!(set.count(), expected.len());
                prop_assert_eq!(set.is_empty(), expected.is_empty());
                prop_assert_eq!(set.iter().collect::<BTreeSet<usize>>(), expected);
                Ok(())
            };
            let (mut kept, mut joined) = (left.clone(), left.clone());
            kept.keep(&right);
            joined.join(&right);
            same(&kept, &a & &b)?;
            same(&joined, &a | &b)?;
            same(&left.without(&right), &a - &b)?;
            same(&left.none_like(), BTreeSet::new())?;
            prop_assert_eq!(left.meets(&right), !a.is_disjoint(&b));
            prop_assert!((0..LEN).all(|at| left.has(at) == a.contains(&at)));
        }
    }

    #[test]
    fn all_has_no_place_beyond_the_last() {
        for len in [0, 1, 63, 64, 65] {
            assert_eq!(HostSet::all(len).count(), len);
            assert!(!HostSet::all(len).has(len));
        }
    }
}
