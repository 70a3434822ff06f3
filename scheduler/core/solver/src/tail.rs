//! Plain enumeration of a node with few open classes, under the prices of that node.
//!
//! Where cost and size go together, relaxations of small nodes hardly cut anything and cost a
//! microsecond each. With fixed prices each step here takes some nanoseconds: the bound of a set is
//! the node's bound plus what each class's count deviates from its favourite, an exact integer sum.
//! Classes with much to lose come first, so that most of the tree is never entered.

use crate::search::Search;

/// Steps that take as long as a node with a relaxation; the limit of nodes counts them so.
const STEPS_PER_NODE: u64 = 64;

/// Buffers of the enumeration, by level. A level is a class that is still open at the node.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    levels: Vec<Level>,
    steps: u64,
    /// What is missing of each row before a level is decided.
    missing: Vec<i64>,
    /// What this level and those behind it can still add to each row.
    reach: Vec<i64>,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    class: u32,
    favourite: u32,
    value: i128,
    /// Reduced cost of the favourite.
    least: i128,
    /// What the cheapest other count costs more.
    regret: i128,
}

impl Search {
    /// Looks at all sets of the node, whose bound is `bound`. True ends the search.
    pub(crate) fn enumerate(&mut self, bound: i128) -> bool {
        self.trial.clone_from(&self.low);
        self.prepare_tail();
        self.tail.steps = 0;
        let ended = self.enumerate_level(0, bound);
        self.nodes += self.tail.steps / STEPS_PER_NODE;
        ended
    }

    fn prepare_tail(&mut self) {
        let rows = self.model.rows;
        self.tail.levels.clear();
        self.tail.missing.clear();
        self.tail.missing.extend_from_slice(&self.missing);
        for (position, &class) in self.open.iter().enumerate() {
            let c = class as usize;
            let (low, high) = (self.low[c], self.high[c]);
            if low > 0 {
                let amounts = &self.amounts[c * rows..(c + 1) * rows];
                for (missing, &amount) in self.tail.missing.iter_mut().zip(amounts) {
                    *missing = (*missing - amount.saturating_mul(i64::from(low))).max(0);
                }
            }
            if low == high {
                continue;
            }
            let value = self.value[position];
            let favourite = self.favourite(c, value);
            let least = self.reduced(c, favourite, value);
            let beside = |count: Option<u32>| {
                count
                    .filter(|count| (low..=high).contains(count))
                    .map_or(i128::MAX, |count| self.reduced(c, count, value) - least)
            };
            let regret = beside(favourite.checked_sub(1)).min(beside(Some(favourite + 1)));
            self.tail.levels.push(Level {
                class,
                favourite,
                value,
                least,
                regret,
            });
        }
        let tail = &mut self.tail;
        tail.levels.sort_unstable_by(|left, right| {
            right
                .regret
                .cmp(&left.regret)
                .then(left.class.cmp(&right.class))
        });
        let depth = tail.levels.len();
        tail.missing.resize(rows * (depth + 1), 0);
        tail.reach.clear();
        tail.reach.resize(rows * (depth + 1), 0);
        for level in (0..depth).rev() {
            let c = tail.levels[level].class as usize;
            let more = i64::from(self.high[c] - self.low[c]);
            for row in 0..rows {
                let amount = self.amounts[c * rows + row].saturating_mul(more);
                tail.reach[level * rows + row] =
                    tail.reach[(level + 1) * rows + row].saturating_add(amount);
            }
        }
    }

    fn enumerate_level(&mut self, level: usize, bound: i128) -> bool {
        self.tail.steps += 1;
        let rows = self.model.rows;
        let here = level * rows;
        let (mut short, mut covered) = (false, true);
        for row in here..here + rows {
            let missing = self.tail.missing[row];
            covered &= missing == 0;
            short |= missing > self.tail.reach[row];
        }
        if covered {
            // All levels behind are at their lowest, and more only makes it heavier.
            return self.trial_within_budgets() && self.offer();
        }
        if short || level == self.tail.levels.len() {
            return false;
        }
        let Level {
            class,
            favourite,
            value,
            least,
            ..
        } = self.tail.levels[level];
        let c = class as usize;
        // The favourite, upwards from it, then downwards: in each direction ever dearer.
        for upwards in [true, false] {
            let mut count = favourite;
            loop {
                if !upwards {
                    if count == self.low[c] {
                        break;
                    }
                    count -= 1;
                }
                let lifted = bound + self.reduced(c, count, value) - least;
                if lifted > self.ceiling() {
                    self.least_cut = self.least_cut.min(lifted);
                    break;
                }
                let added = i64::from(count - self.low[c]);
                for row in 0..rows {
                    let amount = self.amounts[c * rows + row].saturating_mul(added);
                    self.tail.missing[here + rows + row] =
                        (self.tail.missing[here + row] - amount).max(0);
                }
                self.trial[c] = count;
                if self.enumerate_level(level + 1, lifted) {
                    return true;
                }
                if upwards {
                    if count == self.high[c] {
                        break;
                    }
                    count += 1;
                }
            }
        }
        self.trial[c] = self.low[c];
        false
    }
}
