//! Cuts candidates that others make useless, across classes.
//!
//! `y` *dominates* `x` if it sets free at least as much in every missing class, belongs to no
//! budget that `x` does not belong to, and comes first by (cost, age, UUID). An optimal set with
//! `x` holds every `y` that dominates it, for the same reason for which it is a prefix of each
//! class (see `classes`). So if there are as many of them as copies of `x` would be needed to cover
//! all that `x` adds to, `x` is idle, and no optimal set has it.
//!
//! With a handful of flavors this cuts next to nothing that the prefixes leave; with a thousand
//! distinct vectors it leaves about a hundred, and the search that follows is exponential.

use crate::classes::{Classes, copies_to_cover};

/// Buffers of the pass.
#[derive(Debug, Default)]
pub(crate) struct Dominance {
    /// All members: weight, UUID, class, place in the class.
    order: Vec<(u128, u128, u32, u32)>,
    /// The classes of those that stay, with their amounts beside them for the scan.
    kept: Vec<u32>,
    amounts: Vec<i64>,
}

impl Dominance {
    /// Shortens classes by the members that are idle in every optimal set.
    pub(crate) fn cut(&mut self, classes: &mut Classes, uuids: &[u128]) {
        let rows = classes.row_count();
        self.order.clear();
        for class in 0..classes.count() {
            for (place, item) in classes.members(class).iter().enumerate() {
                let uuid = uuids[item.candidate as usize];
                self.order
                    .push((item.weight, uuid, class as u32, place as u32));
            }
        }
        self.order.sort_unstable();
        self.kept.clear();
        self.amounts.clear();
        for &(_, _, class, place) in &self.order {
            let c = class as usize;
            if place >= classes.len[c] {
                // One before it in its class was cut.
                continue;
            }
            let mine = classes.amounts_of(c);
            let cap = (mine.iter().zip(&classes.deficit))
                .map(|(&amount, &deficit)| copies_to_cover(amount, deficit))
                .max()
                .unwrap_or(0);
            let dominators = (self.kept.iter().zip(self.amounts.chunks_exact(rows)))
                .filter(|(other, theirs)| {
                    theirs.iter().zip(mine).all(|(theirs, mine)| theirs >= mine)
                        && subset(classes.budgets_of(**other as usize), classes.budgets_of(c))
                })
                .take(usize::try_from(cap).unwrap_or(usize::MAX))
                .count();
            if dominators as u64 >= cap {
                classes.len[c] = place;
            } else {
                self.kept.push(class);
                self.amounts.extend_from_slice(mine);
            }
        }
    }
}

/// Whether all of `few` (ascending, short) are in `many`.
fn subset(few: &[u32], many: &[u32]) -> bool {
    few.iter().all(|budget| many.contains(budget))
}
