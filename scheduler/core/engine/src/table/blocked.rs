//! A column of small numbers with the smallest and the largest of each 64 neighbours beside it.
//!
//! What a decision asks of most hosts (do all of these fit, can one of these be better) is then
//! answered for 64 of them by two comparisons. Where it is not, the 64 numbers lie side by side and
//! are compared a few at a time.

use ebbtide_model::host_set::WORD;

/// How many hosts a block has: one bit of a word for each.
pub(crate) const BLOCK: usize = WORD;

/// A number that can be put in order; NaN is in no block's range.
pub(crate) trait BlockValue: Copy + Default + PartialOrd {
    /// Larger than every other.
    const TOP: Self;
    /// Smaller than every other.
    const BOTTOM: Self;
}

impl BlockValue for i32 {
    const TOP: Self = i32::MAX;
    const BOTTOM: Self = i32::MIN;
}

impl BlockValue for f32 {
    const TOP: Self = f32::INFINITY;
    const BOTTOM: Self = f32::NEG_INFINITY;
}

/// One column. Invariants: its length is a multiple of [`BLOCK`], cells of no host are zero, and
/// each block's range is that of its cells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Blocked<T> {
    cells: Vec<[T; BLOCK]>,
    lowest: Vec<T>,
    highest: Vec<T>,
}

impl<T> Default for Blocked<T> {
    fn default() -> Self {
        Self {
            cells: Vec::new(),
            lowest: Vec::new(),
            highest: Vec::new(),
        }
    }
}

impl<T: BlockValue> Blocked<T> {
    /// Room for so many host slots.
    pub(super) fn resize(&mut self, slots: usize) {
        let blocks = slots.div_ceil(BLOCK);
        self.cells.resize(blocks, [T::default(); BLOCK]);
        self.lowest.resize(blocks, T::default());
        self.highest.resize(blocks, T::default());
    }

    /// The number of a host slot.
    pub(crate) fn get(&self, at: usize) -> T {
        self.cells[at / BLOCK][at % BLOCK]
    }

    /// Changes the number of a host slot.
    pub(super) fn set(&mut self, at: usize, value: T) {
        let block = at / BLOCK;
        let cell = &mut self.cells[block][at % BLOCK];
        let old = std::mem::replace(cell, value);
        let (lowest, highest) = (&mut self.lowest[block], &mut self.highest[block]);
        if value < *lowest {
            *lowest = value;
        }
        if value > *highest {
            *highest = value;
        }
        if old != value && (old == *lowest || old == *highest) {
            (*lowest, *highest) = range(&self.cells[block]);
        }
    }

    /// The numbers of 64 neighbours.
    pub(crate) fn block(&self, block: usize) -> &[T; BLOCK] {
        &self.cells[block]
    }

    /// The smallest number of a block.
    pub(crate) fn lowest(&self, block: usize) -> T {
        self.lowest[block]
    }

    /// The largest number of a block.
    pub(crate) fn highest(&self, block: usize) -> T {
        self.highest[block]
    }

    /// True if every block's range is what its cells say; for the consistency check.
    pub(super) fn is_consistent(&self) -> bool {
        self.cells
            .iter()
            .zip(self.lowest.iter().zip(&self.highest))
            .all(|(cells, (lowest, highest))| (*lowest, *highest) == range(cells))
    }
}

/// The smallest and the largest of some cells; NaN counts for nothing.
fn range<T: BlockValue>(cells: &[T; BLOCK]) -> (T, T) {
    cells.iter().fold((T::TOP, T::BOTTOM), |(lo, hi), &x| {
        (if x < lo { x } else { lo }, if x > hi { x } else { hi })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_range_of_a_block_follows_every_change(
            changes in prop::collection::vec((0..130_usize, -5..5_i32), 1..200)
        ) {
            let mut column = Blocked::default();
            column.resize(130);
            for (at, value) in changes {
                column.set(at, value);
                prop_assert_eq!(column.get(at), value);
                prop_assert!(column.is_consistent());
            }
        }
    }

    #[test]
    fn what_is_not_a_number_leaves_the_range_and_comes_back() {
        let mut column = Blocked::<f32>::default();
        column.resize(64);
        column.set(3, 9.0);
        column.set(3, f32::NAN);
        assert_eq!((column.lowest(0), column.highest(0)), (0.0, 0.0));
        column.set(3, -1.0);
        assert_eq!((column.lowest(0), column.highest(0)), (-1.0, 0.0));
    }
}
