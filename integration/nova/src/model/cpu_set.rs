//! A set of CPU numbers in the order in which Nova walks through it.
//!
//! Nova pins a guest to the *first* free threads of a core, and "first" is the order of a Python
//! set. For whole numbers that order is no chance: CPython (3.11, `Objects/setobject.c`) puts a
//! number into the slot that its low bits name, tries up to nine neighbours, then jumps; the walk
//! goes by slot. Which threads the first instance of a request gets decides what is left for the
//! second, so we keep the same table. Only the order is special: as a set it compares like any
//! other.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Slots of an empty table.
const MIN_SLOTS: usize = 8;
/// Neighbours tried before a jump, where so many are left in the table.
const NEIGHBOURS: usize = 9;
/// By how many bits the number comes in at each jump.
const PERTURB_SHIFT: u32 = 5;

/// CPUs, in Nova's order.
///
/// Collecting numbers gives the set as the scheduler has it after it read them, ascending, from its
/// database.
#[derive(Clone)]
pub struct CpuSet {
    // Shared, because a host's cells are copied for each set of victims that is judged.
    slots: Arc<Vec<Option<i64>>>,
    len: usize,
}

impl CpuSet {
    /// How many CPUs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// No CPU at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The CPUs, in Nova's order.
    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        self.slots.iter().copied().flatten()
    }

    /// Whether a CPU is in it.
    #[must_use]
    pub fn contains(&self, cpu: i64) -> bool {
        self.slots[self.place(cpu)].is_some()
    }

    /// The same CPUs as an ordinary set.
    #[must_use]
    pub fn ascending(&self) -> BTreeSet<i64> {
        self.iter().collect()
    }

    /// The CPUs one by one in a new table.
    pub fn inserted(cpus: impl IntoIterator<Item = i64>) -> Self {
        let mut set = Self::with_slots(MIN_SLOTS);
        for cpu in cpus {
            set.insert(cpu);
        }
        set
    }

    /// What Nova keeps when it assigns the set to a field of an object: each number is checked and
    /// put into a new set one by one, and that set is copied. Two CPUs that want the same slot
    /// change places each time.
    #[must_use]
    pub fn assigned(&self) -> Self {
        if self.is_settled() {
            return self.clone();
        }
        Self::inserted(self.iter()).copied()
    }

    /// Whether each CPU has the slot that its low bits name, in a table of the size that an
    /// assignment makes, which is that of the copy. Then no two want the same slot, and any order
    /// of insertion gives this table.
    fn is_settled(&self) -> bool {
        let mask = self.slots.len() - 1;
        let mut placed = self.slots.iter().enumerate();
        self.slots.len() == copied_slots(self.len)
            && placed.all(|(place, cpu)| cpu.is_none_or(|cpu| hash(cpu) & mask == place))
    }

    /// A copy as Python's `update` of an empty set makes it: the table is as large as what it gets
    /// asks for.
    #[must_use]
    pub fn copied(&self) -> Self {
        let slots = copied_slots(self.len);
        if slots == self.slots.len() {
            return self.clone();
        }
        let mut copy = Self::with_slots(slots);
        for cpu in self.iter() {
            copy.put(cpu);
        }
        copy
    }

    fn with_slots(slots: usize) -> Self {
        Self {
            slots: Arc::new(vec![None; slots]),
            len: 0,
        }
    }

    /// The slot that holds the CPU, or the free one where it belongs.
    fn place(&self, cpu: i64) -> usize {
        let mask = self.slots.len() - 1;
        let mut perturb = hash(cpu);
        let mut start = perturb & mask;
        loop {
            let reach = if start + NEIGHBOURS <= mask {
                NEIGHBOURS
            } else {
                0
            };
            for place in start..=start + reach {
                if self.slots[place].is_none_or(|held| held == cpu) {
                    return place;
                }
            }
            perturb >>= PERTURB_SHIFT;
            start = start.wrapping_mul(5).wrapping_add(1).wrapping_add(perturb) & mask;
        }
    }

    fn put(&mut self, cpu: i64) -> bool {
        let place = self.place(cpu);
        if self.slots[place].is_some() {
            return false;
        }
        Arc::make_mut(&mut self.slots)[place] = Some(cpu);
        self.len += 1;
        true
    }

    fn insert(&mut self, cpu: i64) {
        if self.put(cpu)
            && let Some(slots) = grown_slots(self.len, self.slots.len())
        {
            let mut larger = Self::with_slots(slots);
            for held in self.iter() {
                larger.put(held);
            }
            *self = larger;
        }
    }
}

/// Python's hash of a small whole number is the number, and that of -1 is -2.
fn hash(cpu: i64) -> usize {
    if cpu == -1 { -2 } else { cpu }.cast_unsigned() as usize
}

/// The table that a set of so many CPUs gets instead of one with these slots. At three fifths of
/// its slots Python makes it four times as large as what it holds (twice, if that is much).
fn grown_slots(len: usize, slots: usize) -> Option<usize> {
    let growth = if len > 50_000 { 2 } else { 4 };
    (len * 5 >= (slots - 1) * 3).then(|| slots_beyond(len * growth))
}

/// The table of a copy of so many CPUs.
fn copied_slots(len: usize) -> usize {
    if len * 5 >= (MIN_SLOTS - 1) * 3 {
        slots_beyond(len * 2)
    } else {
        MIN_SLOTS
    }
}

/// The smallest table with more slots than asked for.
fn slots_beyond(least: usize) -> usize {
    let mut slots = MIN_SLOTS;
    while slots <= least {
        slots <<= 1;
    }
    slots
}

impl Default for CpuSet {
    fn default() -> Self {
        Self::with_slots(MIN_SLOTS)
    }
}

impl FromIterator<i64> for CpuSet {
    fn from_iter<I: IntoIterator<Item = i64>>(cpus: I) -> Self {
        let ascending: BTreeSet<i64> = cpus.into_iter().collect();
        // The compute service assigns its set to a field and writes it out; the scheduler reads a
        // set and assigns it again.
        let written = Self::inserted(ascending).assigned();
        Self::inserted(written.iter()).assigned()
    }
}

impl PartialEq for CpuSet {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().all(|cpu| other.contains(cpu))
    }
}

impl Eq for CpuSet {}

impl PartialEq<BTreeSet<i64>> for CpuSet {
    fn eq(&self, other: &BTreeSet<i64>) -> bool {
        self.len == other.len() && self.iter().all(|cpu| other.contains(&cpu))
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::CpuSet;
    use proptest::prelude::*;

    fn walk(set: &CpuSet) -> Vec<i64> {
        set.iter().collect()
    }

    #[test]
    fn cpus_are_walked_by_slot_as_python_walks_them() {
        // Each right side is `list(set(left))` of CPython 3.11.
        let cases: [(&[i64], &[i64]); 6] = [
            (&[0, 1, 2], &[0, 1, 2]),
            (&[7, 8], &[8, 7]),
            (&[7, 15], &[15, 7]),
            (&[15, 7], &[7, 15]),
            (&[3, 11], &[11, 3]),
            (&[24, 36, 60, 12, 99], &[99, 36, 12, 24, 60]),
        ];
        for (given, walked) in cases {
            assert_eq!(
                walk(&CpuSet::inserted(given.iter().copied())),
                walked,
                "{given:?}"
            );
        }
    }

    #[test]
    fn two_cpus_of_one_slot_change_places_when_assigned() {
        let set = CpuSet::inserted([3, 11]);
        assert_eq!(walk(&set), [11, 3]);
        assert_eq!(walk(&set.assigned()), [3, 11]);
        assert_eq!(walk(&set.assigned().assigned()), [11, 3]);
        assert_eq!(set, set.assigned());
    }

    proptest! {
        /// A set that an assignment leaves as it is is recognised without making it anew.
        #[test]
        fn a_settled_set_is_what_inserting_and_copying_make(
            first in -2..200_i64,
            every in 1..70_i64,
            cpus in prop::collection::vec(-2..300_i64, 0..40),
            run in 0..140_i64,
        ) {
            let series: CpuSet = (0..run).map(|n| first + n * every).collect();
            for set in [CpuSet::inserted(cpus.iter().copied()), cpus.into_iter().collect(), series] {
                let again = CpuSet::inserted(set.iter()).copied();
                prop_assert_eq!(walk(&set.assigned()), walk(&again));
                prop_assert_eq!(set.assigned().slots, again.slots);
            }
        }
    }

    #[test]
    fn the_cpus_of_a_host_are_settled() {
        let host: CpuSet = (0..64).collect();
        assert!(host.is_settled());
        assert!([5].into_iter().collect::<CpuSet>().is_settled());
        assert!(!CpuSet::inserted([3, 11]).is_settled());
    }
}
