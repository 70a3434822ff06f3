//! Hosts that are alike in what a filter looks at, so that it has to look at one of each kind only.

use ebbtide_model::host_set::HostSet;
use std::collections::HashMap;
use std::hash::Hash;

/// With at most so many classes each has its set of hosts; with more each host has its class only.
const FEW: usize = 64;
/// The class of a place without a host.
const NO_CLASS: u32 = u32::MAX;

/// What a filter says of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClassVerdict {
    Pass,
    Fail,
    /// It raises.
    Fault,
}

/// Some host of a class raises and is still in question: the reference has to tell the error.
#[derive(Debug)]
pub(super) struct ReferenceNeeded;

/// A class of hosts.
#[derive(Debug, Clone)]
struct Class<K> {
    key: K,
    /// One of its hosts.
    example: u32,
    count: u32,
    /// All of them, while classes are few.
    members: HostSet,
}

/// A division of all hosts into classes.
#[derive(Debug, Clone)]
pub(super) struct Classes<K> {
    /// By place.
    of: Vec<u32>,
    known: HashMap<K, u32>,
    /// By number; `None` once the last host has left.
    classes: Vec<Option<Class<K>>>,
    free: Vec<u32>,
    few: bool,
}

impl<K: Hash + Eq + Clone> Classes<K> {
    /// Without hosts.
    pub(super) fn new() -> Self {
        Self {
            of: Vec::new(),
            known: HashMap::new(),
            classes: Vec::new(),
            free: Vec::new(),
            few: true,
        }
    }

    /// Puts the host at a place into the class of a key; `None`: there is no host any more.
    pub(super) fn put(&mut self, at: usize, key: Option<K>) {
        if self.of.len() <= at {
            self.of.resize(at + 1, NO_CLASS);
        }
        let before = self.of[at];
        let next = key.as_ref().and_then(|key| self.known.get(key)).copied();
        if before != NO_CLASS && next == Some(before) {
            return;
        }
        if before != NO_CLASS {
            self.leave(at, before);
        }
        if let Some(key) = key {
            self.enter(at, key, next);
        }
    }

    fn leave(&mut self, at: usize, number: u32) {
        self.of[at] = NO_CLASS;
        let Some(class) = self.classes[number as usize].as_mut() else {
            return;
        };
        class.count -= 1;
        class.members.clear(at);
        if class.count == 0 {
            self.known.remove(&class.key);
            self.classes[number as usize] = None;
            self.free.push(number);
        } else if class.example as usize == at {
            let other = if self.few {
                class.members.iter().next()
            } else {
                self.of.iter().position(|other| *other == number)
            };
            class.example = other.unwrap_or(at) as u32;
        }
    }

    fn enter(&mut self, at: usize, key: K, known: Option<u32>) {
        let number = known.unwrap_or_else(|| {
            let class = Class {
                key: key.clone(),
                example: at as u32,
                count: 0,
                members: HostSet::default(),
            };
            let number = match self.free.pop() {
                Some(number) => {
                    self.classes[number as usize] = Some(class);
                    number
                }
                None => {
                    self.classes.push(Some(class));
                    self.classes.len() as u32 - 1
                }
            };
            self.known.insert(key, number);
            number
        });
        self.of[at] = number;
        if self.few && self.known.len() > FEW {
            self.few = false;
            for class in self.classes.iter_mut().flatten() {
                class.members = HostSet::default();
            }
        }
        if let Some(class) = self.classes[number as usize].as_mut() {
            class.count += 1;
            if self.few {
                class.members.grow(at + 1);
                class.members.set(at);
            }
        }
    }

    /// The verdict on each class, by asking about one of its hosts.
    pub(super) fn judge(&self, mut judge: impl FnMut(usize) -> ClassVerdict) -> Vec<ClassVerdict> {
        let classes = self.classes.iter();
        classes
            .map(|class| {
                class
                    .as_ref()
                    .map_or(ClassVerdict::Pass, |class| judge(class.example as usize))
            })
            .collect()
    }

    /// Takes out the hosts whose class fails.
    pub(super) fn apply(
        &self,
        alive: &mut HostSet,
        verdicts: &[ClassVerdict],
    ) -> Result<(), ReferenceNeeded> {
        if verdicts
            .iter()
            .all(|verdict| *verdict == ClassVerdict::Pass)
        {
            return Ok(());
        }
        if !self.few {
            let mut gone = Vec::new();
            for at in alive.iter() {
                match verdicts[self.of[at] as usize] {
                    ClassVerdict::Pass => {}
                    ClassVerdict::Fail => gone.push(at),
                    ClassVerdict::Fault => return Err(ReferenceNeeded),
                }
            }
            gone.into_iter().for_each(|at| alive.clear(at));
            return Ok(());
        }
        let of = |kind: ClassVerdict| {
            let pairs = self.classes.iter().zip(verdicts);
            pairs
                .filter(move |(_, verdict)| **verdict == kind)
                .filter_map(|(class, _)| class.as_ref().map(|class| &class.members))
        };
        if of(ClassVerdict::Fault).any(|members| alive.meets(members)) {
            return Err(ReferenceNeeded);
        }
        of(ClassVerdict::Fail).for_each(|members| alive.remove(members));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn left(
        classes: &Classes<u8>,
        len: usize,
        fails: impl Fn(u8) -> bool,
        keys: &[Option<u8>],
    ) -> Vec<usize> {
        let mut alive = HostSet::none(len);
        keys.iter()
            .enumerate()
            .filter(|(_, key)| key.is_some())
            .for_each(|(at, _)| alive.set(at));
        let verdicts = classes.judge(|at| {
            let key = keys[at].expect("an example is a host");
            if fails(key) {
                ClassVerdict::Fail
            } else {
                ClassVerdict::Pass
            }
        });
        assert!(classes.apply(&mut alive, &verdicts).is_ok());
        alive.iter().collect()
    }

    proptest! {
        /// Few classes and many, hosts that come, change and go.
        #[test]
        fn classes_say_what_asking_each_host_says(
            changes in prop::collection::vec((0_usize..200, prop::option::of(0_u8..100)), 1..400),
            limit in 0_u8..100,
        ) {
            let mut classes = Classes::new();
            let mut keys: Vec<Option<u8>> = vec![None; 200];
            for (at, key) in changes {
                classes.put(at, key);
                keys[at] = key;
            }
            let expected: Vec<usize> = keys.iter().enumerate()
                .filter(|(_, key)| key.is_some_and(|key| key < limit)).map(|(at, _)| at).collect();
            prop_assert_eq!(left(&classes, 200, |key| key >= limit, &keys), expected);
        }
    }
}
