//! A set of hosts, one bit each, by their places.

/// Hosts of a cloud.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostSet {
    words: Vec<u64>,
}

/// Bits in a word.
pub(super) const WORD: usize = 64;

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

    /// Makes room for `len` places.
    pub fn grow(&mut self, len: usize) {
        let words = len.div_ceil(WORD);
        if words > self.words.len() {
            self.words.resize(words, 0);
        }
    }

    /// Puts a host in. There has to be room for its place.
    pub fn set(&mut self, at: usize) {
        self.words[at / WORD] |= 1 << (at % WORD);
    }

    /// Takes a host out.
    pub fn clear(&mut self, at: usize) {
        if let Some(word) = self.words.get_mut(at / WORD) {
            *word &= !(1 << (at % WORD));
        }
    }

    /// Puts a host in, or takes it out.
    pub fn put(&mut self, at: usize, member: bool) {
        if member {
            self.set(at);
        } else {
            self.clear(at);
        }
    }

    /// Whether a host is in it.
    #[must_use]
    pub fn has(&self, at: usize) -> bool {
        let word = self.words.get(at / WORD);
        word.is_some_and(|word| word >> (at % WORD) & 1 == 1)
    }

    /// How many hosts.
    #[must_use]
    pub fn count(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// True without hosts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Whether a host is in both.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// Takes out what the other has.
    pub fn remove(&mut self, other: &Self) {
        for (own, other) in self.words.iter_mut().zip(&other.words) {
            *own &= !other;
        }
    }

    /// Keeps what the other has, too.
    pub fn keep(&mut self, other: &Self) {
        for (at, own) in self.words.iter_mut().enumerate() {
            *own &= other.words.get(at).copied().unwrap_or(0);
        }
    }

    /// Adds the members of the other set. Places beyond this set are left out.
    pub fn join(&mut self, other: &Self) {
        for (own, other) in self.words.iter_mut().zip(&other.words) {
            *own |= other;
        }
    }

    /// 64 places a word.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The same, to be changed.
    pub(super) fn words_mut(&mut self) -> &mut [u64] {
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
