//! A set of hosts, one bit each.

/// Hosts of a cloud.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Bits {
    words: Vec<u64>,
}

/// Bits in a word.
pub(super) const WORD: usize = 64;

impl Bits {
    /// No host of `len`.
    pub(super) fn none(len: usize) -> Self {
        Self {
            words: vec![0; len.div_ceil(WORD)],
        }
    }

    /// All hosts.
    pub(super) fn fill(&mut self, len: usize) {
        self.words.clear();
        self.words.resize(len.div_ceil(WORD), u64::MAX);
        let rest = len % WORD;
        if let Some(last) = self.words.last_mut().filter(|_| rest > 0) {
            *last = (1 << rest) - 1;
        }
    }

    pub(super) fn set(&mut self, at: usize) {
        self.words[at / WORD] |= 1 << (at % WORD);
    }

    pub(super) fn clear(&mut self, at: usize) {
        self.words[at / WORD] &= !(1 << (at % WORD));
    }

    pub(super) fn has(&self, at: usize) -> bool {
        self.words[at / WORD] >> (at % WORD) & 1 == 1
    }

    pub(super) fn count(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    pub(super) fn meets(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// Takes out what the other has.
    pub(super) fn remove(&mut self, other: &Self) {
        for (own, other) in self.words.iter_mut().zip(&other.words) {
            *own &= !other;
        }
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Hosts in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words
            .iter()
            .enumerate()
            .flat_map(|(at, word)| ones(*word).map(move |bit| at * WORD + bit))
    }
}

/// Places of the ones in a word, ascending.
pub(super) fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if word == 0 {
            return None;
        }
        let bit = word.trailing_zeros() as usize;
        word &= word - 1;
        Some(bit)
    })
}
