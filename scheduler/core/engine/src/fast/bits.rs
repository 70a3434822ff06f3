//! A set of hosts, one bit each.

use crate::HostTable;
use crate::table::{BLOCK, HostIndex};

/// A set of hosts, in words of 64.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// The set with these words.
    pub(crate) fn of(words: &[u64]) -> Self {
        Self {
            words: words.to_vec(),
        }
    }

    /// The empty set, in a table of so many words.
    pub(crate) fn none(words: usize) -> Self {
        Self {
            words: vec![0; words],
        }
    }

    /// Its words.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// One of its words, to be changed.
    pub(crate) fn word_mut(&mut self, word: usize) -> &mut u64 {
        &mut self.words[word]
    }

    /// How many hosts are in it.
    pub(crate) fn count(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// True if the set contains no host.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|w| *w == 0)
    }

    /// True if a host is in it.
    pub(crate) fn has(&self, host: HostIndex) -> bool {
        self.words[host.at() / BLOCK] & bit(host) != 0
    }

    /// Puts a host in, or takes it out.
    pub(crate) fn set(&mut self, host: HostIndex, value: bool) {
        let word = &mut self.words[host.at() / BLOCK];
        if value {
            *word |= bit(host);
        } else {
            *word &= !bit(host);
        }
    }

    /// Keeps those that are in another set, too.
    pub(crate) fn keep(&mut self, others: &[u64]) {
        for (word, other) in self.words.iter_mut().zip(others) {
            *word &= other;
        }
    }

    /// Those that are not in another set.
    pub(crate) fn without(&self, other: &Self) -> Self {
        let words = self.words.iter().zip(&other.words);
        Self {
            words: words.map(|(word, other)| word & !other).collect(),
        }
    }

    /// All hosts in it, in the order of their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = HostIndex> + '_ {
        self.words
            .iter()
            .enumerate()
            .flat_map(|(at, &word)| ones(word).map(move |bit| HostIndex::new(at * BLOCK + bit)))
    }

    /// All hosts in it, in the order of their registration.
    pub(crate) fn in_order(&self, table: &HostTable) -> Vec<HostIndex> {
        let order = table.order().iter().copied();
        order.filter(|&host| self.has(host)).collect()
    }

    /// The first `many` hosts in it, in the order of their registration.
    pub(crate) fn first(&self, table: &HostTable, many: usize) -> Vec<HostIndex> {
        let count = self.count();
        if many == 0 || count == 0 {
            return Vec::new();
        }
        // Walking the order meets one in `all / count`; walking the set means to sort it.
        if count > table.len() / 16 {
            let order = table.order().iter().copied();
            return order.filter(|&host| self.has(host)).take(many).collect();
        }
        let mut hosts: Vec<HostIndex> = self.iter().collect();
        let key = |host: &HostIndex| table.rank(*host);
        if many < hosts.len() {
            hosts.select_nth_unstable_by_key(many - 1, key);
            hosts.truncate(many);
        }
        hosts.sort_unstable_by_key(key);
        hosts
    }
}

fn bit(host: HostIndex) -> u64 {
    1 << (host.at() % BLOCK)
}

/// The positions of the ones in a word.
pub(crate) fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (word != 0).then(|| {
            let at = word.trailing_zeros() as usize;
            word &= word - 1;
            at
        })
    })
}
