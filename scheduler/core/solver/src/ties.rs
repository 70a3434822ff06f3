//! The tie-breaker among sets with the same cost, number and total age: the set whose sorted UUIDs
//! come first wins.
//!
//! The search visits instances in the order of their UUIDs. For each it asks: is there a best set
//! that contains all instances accepted so far, and this one? If the best set at hand contains it,
//! yes; otherwise a search for any set of the same weight decides. Members before the instance in
//! its class are then accepted as well, because the best set is a prefix of each class.
//!
//! This costs at most one search for each instance that reduced costs have not excluded. Usually
//! these are only the instances that really are interchangeable.

use crate::classes::Classes;
use crate::relax::ClassBounds;
use crate::search::{Search, SearchEnd, SearchGoal};

/// Buffers for the order of equals.
#[derive(Debug, Default)]
pub(crate) struct Ties {
    by_uuid: Vec<(u128, u32, u32)>,
    low: Vec<u32>,
    high: Vec<u32>,
}

impl Ties {
    /// Replaces `search.best` by the first in order among the sets of its weight. False if the
    /// nodes ran out before that was proven.
    pub(crate) fn settle(
        &mut self,
        search: &mut Search,
        classes: &Classes,
        uuids: &[u128],
        max_nodes: u64,
    ) -> bool {
        search.low.fill(0);
        search.high.clone_from(&search.model.len);
        search.goal = Some(SearchGoal::AnyAsGood);
        search.activate();
        let ceiling = search.ceiling();
        let bounds = ClassBounds {
            low: &search.low,
            high: &search.high,
        };
        search
            .relaxation
            .solve(&search.model, bounds, 2.0 * ceiling as f64);
        let bound = search.exact_bound();
        search.thin(bound);
        self.low.clone_from(&search.low);
        self.high.clone_from(&search.high);

        self.by_uuid.clear();
        for class in 0..classes.count() {
            for member in self.low[class]..self.high[class] {
                let candidate = classes.members(class)[member as usize].candidate;
                self.by_uuid
                    .push((uuids[candidate as usize], class as u32, member));
            }
        }
        self.by_uuid.sort_unstable();
        for index in 0..self.by_uuid.len() {
            let (_, class, member) = self.by_uuid[index];
            let c = class as usize;
            if member < self.low[c] || member >= self.high[c] {
                continue;
            }
            if search.best[c] <= member {
                if search.nodes >= max_nodes {
                    return false;
                }
                search.low.clone_from(&self.low);
                search.high.clone_from(&self.high);
                search.low[c] = member + 1;
                if search.model.set_weight(&search.low) <= search.best_weight {
                    let end = search.run(SearchGoal::AnyAsGood, max_nodes);
                    if !search.hit && end != SearchEnd::Exhausted {
                        return false;
                    }
                } else {
                    search.hit = false;
                }
                if !search.hit {
                    self.high[c] = member;
                    continue;
                }
            }
            self.low[c] = member + 1;
            if self.low == search.best {
                return true;
            }
        }
        true
    }
}
