//! Hosts that are alike in what a filter looks at, so that it has to look at one of each kind only.

use super::bits::Bits;
use std::collections::HashMap;
use std::hash::Hash;

/// With at most so many classes each has its set of hosts; with more each host has its class only.
const FEW: usize = 64;

/// What a filter says of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    Fail,
    /// It raises.
    Fault,
}

/// Some host of a class raises and is still in question: the reference has to tell the error.
pub(super) struct Raises;

/// A division of all hosts into classes.
#[derive(Debug, Clone, Default)]
pub(super) struct Classes {
    of: Vec<u32>,
    examples: Vec<usize>,
    members: Vec<Bits>,
}

impl Classes {
    /// Divides by a key.
    pub(super) fn by<K: Hash + Eq>(len: usize, key: impl Fn(usize) -> K) -> Self {
        let mut known: HashMap<K, u32> = HashMap::new();
        let mut classes = Self::default();
        for at in 0..len {
            let next = classes.examples.len() as u32;
            let class = *known.entry(key(at)).or_insert(next);
            if class == next {
                classes.examples.push(at);
            }
            classes.of.push(class);
        }
        if classes.examples.len() <= FEW {
            classes.members = vec![Bits::none(len); classes.examples.len()];
            for (at, class) in classes.of.iter().enumerate() {
                classes.members[*class as usize].set(at);
            }
        }
        classes
    }

    /// A host of each class.
    pub(super) fn examples(&self) -> &[usize] {
        &self.examples
    }

    /// Class of a host.
    pub(super) fn of(&self, at: usize) -> usize {
        self.of[at] as usize
    }

    /// Takes out the hosts whose class fails.
    pub(super) fn apply(&self, alive: &mut Bits, verdicts: &[Verdict]) -> Result<(), Raises> {
        if verdicts.iter().all(|verdict| *verdict == Verdict::Pass) {
            return Ok(());
        }
        if self.members.is_empty() {
            let mut gone = Vec::new();
            for at in alive.iter() {
                match verdicts[self.of(at)] {
                    Verdict::Pass => {}
                    Verdict::Fail => gone.push(at),
                    Verdict::Fault => return Err(Raises),
                }
            }
            gone.into_iter().for_each(|at| alive.clear(at));
            return Ok(());
        }
        let of = |kind: Verdict| {
            let pairs = self.members.iter().zip(verdicts);
            pairs
                .filter(move |(_, verdict)| **verdict == kind)
                .map(|(members, _)| members)
        };
        if of(Verdict::Fault).any(|members| alive.meets(members)) {
            return Err(Raises);
        }
        of(Verdict::Fail).for_each(|members| alive.remove(members));
        Ok(())
    }
}
