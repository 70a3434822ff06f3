//! Candidates that differ only in cost, age and UUID, put together.
//!
//! Only the missing resource classes count, and of each no more than is missing: with `r' = min(r,
//! d)` a set covers `d` by `r'` exactly if it does by `r`. Candidates with the same `r'` and the
//! same budget keys form a *class*; inside it only **prefixes** in the order (cost, age, UUID) can
//! be optimal. The reason: the order that ranks sets is (sum of costs, number, sum of ages, sorted
//! UUIDs). The first three are sums. For sets of one size the last also compares by the smallest
//! UUID that only one of them has, so putting the same instance into both does not change who wins.
//! Hence, if an optimal set held `x` but not `y < x` of the same class, `y` in the place of `x`
//! would cover as much within the same budgets and rank strictly before: at a lower cost, or the
//! same cost and a lower age, or the same of both and a smaller UUID.
//!
//! A class is cut after `cap` members, the number that alone covers every missing class it adds to:
//! a further one could always be left out, and an optimal set has no such member because one victim
//! fewer ranks before.
//!
//! The classes are in a canonical order, so that nothing behind this module can see the caller's
//! order.

use std::cmp::Reverse;

use crate::problem::Problem;

/// Where the cost starts in a packed weight; below it 14 bits count and 50 bits age. Sums of
/// weights compare as (cost, victims, total age), and `Problem::check` makes sure that no part runs
/// into the next.
pub(crate) const COST_SHIFT: u32 = 64;
const COUNT_SHIFT: u32 = 50;

const NONE: u32 = u32::MAX;
/// Stands for any number of rows.
const ANY: usize = 0;
/// Up to so many members a class is sorted by insertion while it is filled.
const SHORT: usize = 16;

/// A candidate with its packed weight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) weight: u128,
    pub(crate) candidate: u32,
}

/// The classes of one problem; see the module comment.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    /// The missing resource classes, and how much of each is missing.
    pub(crate) rows: Vec<u32>,
    pub(crate) deficit: Vec<i64>,
    /// Row-major, `deficit.len()` a class.
    pub(crate) amounts: Vec<i64>,
    /// Where a class's members are in `items`. There are gaps behind members that were cut off.
    pub(crate) start: Vec<u32>,
    pub(crate) len: Vec<u32>,
    /// How many members of the class cover all that it adds to; the others are cut.
    cap: Vec<u32>,
    pub(crate) items: Vec<Item>,
    /// The budgets that can bind: their limits, and which of them each class counts against
    /// (`budgets[budget_start[c]..budget_start[c + 1]]`, ascending).
    pub(crate) limits: Vec<u32>,
    pub(crate) budget_start: Vec<u32>,
    pub(crate) budgets: Vec<u32>,
    work: Work,
}

#[derive(Debug, Default)]
struct Work {
    /// Class of each candidate in the order of first sight, or `NONE`.
    class_of: Vec<u32>,
    amounts: Vec<i64>,
    count: Vec<u32>,
    budget_start: Vec<u32>,
    budgets: Vec<u32>,
    order: Vec<u32>,
    table: Vec<u32>,
    row: Vec<i64>,
    keys: Vec<u32>,
    /// For each key of the caller: how many candidates it has, valid where `seen` is `epoch`; a
    /// region may have far more keys than a host has instances, so the columns are never cleared.
    seen: Vec<u32>,
    members: Vec<u32>,
    local: Vec<u32>,
    touched: Vec<u32>,
    epoch: u32,
}

/// What is known before any search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presolve {
    NotNeeded,
    NotEnough,
    /// Enough in total, but not without candidates whose budget is used up.
    OnlyProtected,
    /// Worth a search; says whether some budget can bind at all.
    Search {
        budgets: bool,
    },
}

impl Classes {
    pub(crate) fn count(&self) -> usize {
        self.len.len()
    }

    pub(crate) fn row_count(&self) -> usize {
        self.deficit.len()
    }

    pub(crate) fn amounts_of(&self, class: usize) -> &[i64] {
        let width = self.deficit.len();
        &self.amounts[class * width..(class + 1) * width]
    }

    pub(crate) fn members(&self, class: usize) -> &[Item] {
        let start = self.start[class] as usize;
        &self.items[start..start + self.len[class] as usize]
    }

    pub(crate) fn budgets_of(&self, class: usize) -> &[u32] {
        &self.budgets[self.budget_start[class] as usize..self.budget_start[class + 1] as usize]
    }

    /// Looks at a well-formed problem: what is missing, is there enough, which budgets can bind.
    pub(crate) fn survey(&mut self, problem: &Problem<'_>) -> Presolve {
        self.rows.clear();
        self.deficit.clear();
        for (class, &deficit) in problem.deficit.iter().enumerate() {
            if deficit > 0 {
                self.rows.push(class as u32);
                self.deficit.push(deficit);
            }
        }
        if self.rows.is_empty() {
            return Presolve::NotNeeded;
        }
        if !self.enough(problem, |_| true) {
            return Presolve::NotEnough;
        }
        self.limits.clear();
        if problem.budgets.limits.is_empty() || problem.budgets.keys_per_candidate == 0 {
            return Presolve::Search { budgets: false };
        }
        let protected = self.count_members(problem);
        if protected && !self.enough(problem, |i| !is_protected(problem, i)) {
            return Presolve::OnlyProtected;
        }
        Presolve::Search {
            budgets: !self.limits.is_empty(),
        }
    }

    /// Whether the candidates that may be used cover the deficit together.
    fn enough(&self, problem: &Problem<'_>, usable: impl Fn(usize) -> bool) -> bool {
        let width = problem.deficit.len();
        self.rows.iter().zip(&self.deficit).all(|(&row, &deficit)| {
            let mut missing = deficit;
            for (i, amounts) in problem.resources.chunks_exact(width).enumerate() {
                if usable(i) {
                    missing -= amounts[row as usize].min(missing);
                    if missing == 0 {
                        return true;
                    }
                }
            }
            false
        })
    }

    /// Numbers the budgets that can bind; says whether any candidate is protected outright.
    fn count_members(&mut self, problem: &Problem<'_>) -> bool {
        let work = &mut self.work;
        let keys = problem.budgets.limits.len();
        if work.seen.len() < keys {
            work.seen.resize(keys, 0);
            work.members.resize(keys, 0);
            work.local.resize(keys, NONE);
        }
        if work.epoch == u32::MAX {
            work.seen.fill(0);
            work.epoch = 0;
        }
        work.epoch += 1;
        work.touched.clear();
        let mut protected = false;
        for i in 0..problem.candidates() {
            if is_protected(problem, i) {
                protected = true;
                continue;
            }
            for (place, key) in problem.budgets.of(i).enumerate() {
                if problem
                    .budgets
                    .of(i)
                    .take(place)
                    .any(|before| before == key)
                {
                    continue;
                }
                if work.seen[key] != work.epoch {
                    work.seen[key] = work.epoch;
                    work.members[key] = 0;
                    work.local[key] = NONE;
                    work.touched.push(key as u32);
                }
                work.members[key] += 1;
            }
        }
        work.touched.sort_unstable();
        for &key in &work.touched {
            let limit = problem.budgets.limits[key as usize];
            if work.members[key as usize] > limit {
                work.local[key as usize] = self.limits.len() as u32;
                self.limits.push(limit);
            }
        }
        protected
    }

    /// Groups the candidates. Without `with_budgets` only outright protection is heeded, which
    /// makes fewer and larger classes.
    pub(crate) fn build(&mut self, problem: &Problem<'_>, with_budgets: bool) {
        // The number of rows as a constant lets the compiler unroll what runs for each candidate.
        match self.rows.len() {
            1 => self.group::<1>(problem, with_budgets),
            2 => self.group::<2>(problem, with_budgets),
            3 => self.group::<3>(problem, with_budgets),
            4 => self.group::<4>(problem, with_budgets),
            _ => self.group::<ANY>(problem, with_budgets),
        }
        self.arrange();
        self.fill(problem);
    }

    /// First pass: finds the classes in the order of first sight.
    fn group<const ROWS: usize>(&mut self, problem: &Problem<'_>, with_budgets: bool) {
        let work = &mut self.work;
        let n = problem.candidates();
        let width = problem.deficit.len();
        let rows = if ROWS == ANY { self.rows.len() } else { ROWS };
        work.class_of.clear();
        work.amounts.clear();
        work.count.clear();
        work.budgets.clear();
        work.budget_start.clear();
        work.budget_start.push(0);
        work.row.clear();
        work.row.resize(rows, 0);
        let slots = (2 * n).next_power_of_two().max(16);
        work.table.clear();
        work.table.resize(slots, NONE);
        let has_keys = !problem.budgets.limits.is_empty() && problem.budgets.keys_per_candidate > 0;
        for i in 0..n {
            let source = &problem.resources[i * width..(i + 1) * width];
            let (mut hash, mut any) = (0u64, 0);
            let row = &mut work.row[..rows];
            for at in 0..rows {
                let amount = source[self.rows[at] as usize].min(self.deficit[at]);
                row[at] = amount;
                any |= amount;
                hash = hash.wrapping_add((amount as u64).wrapping_mul(odd(at)));
            }
            if any == 0 || (has_keys && is_protected(problem, i)) {
                work.class_of.push(NONE);
                continue;
            }
            work.keys.clear();
            if with_budgets {
                for key in problem.budgets.of(i) {
                    let local = work.local[key];
                    if local != NONE && !work.keys.contains(&local) {
                        work.keys.push(local);
                    }
                }
                work.keys.sort_unstable();
                for &key in &work.keys {
                    hash = (hash.rotate_left(23) ^ u64::from(key)).wrapping_mul(GOLDEN);
                }
            }
            let mut slot = ((hash ^ hash >> 32).wrapping_mul(GOLDEN) >> 32) as usize & (slots - 1);
            let class = loop {
                let class = work.table[slot];
                if class == NONE {
                    let class = work.count.len() as u32;
                    work.table[slot] = class;
                    work.count.push(0);
                    work.amounts.extend_from_slice(&work.row);
                    work.budgets.extend_from_slice(&work.keys);
                    work.budget_start.push(work.budgets.len() as u32);
                    break class;
                }
                let c = class as usize;
                let same_row = work
                    .row
                    .iter()
                    .zip(&work.amounts[c * rows..])
                    .all(|(left, right)| left == right);
                let keys = work.budget_start[c] as usize..work.budget_start[c + 1] as usize;
                if same_row && (!with_budgets || work.keys[..] == work.budgets[keys]) {
                    break class;
                }
                slot = (slot + 1) & (slots - 1);
            };
            work.count[class as usize] += 1;
            work.class_of.push(class);
        }
    }

    /// Second pass: the canonical order, largest amounts first.
    fn arrange(&mut self) {
        let work = &mut self.work;
        let rows = self.rows.len();
        let classes = work.count.len();
        work.order.clear();
        work.order.extend(0..classes as u32);
        let (amounts, budgets, starts) = (&work.amounts, &work.budgets, &work.budget_start);
        let key = |class: u32| {
            let c = class as usize;
            (
                Reverse(&amounts[c * rows..(c + 1) * rows]),
                &budgets[starts[c] as usize..starts[c + 1] as usize],
            )
        };
        work.order
            .sort_unstable_by(|&left, &right| key(left).cmp(&key(right)));
        self.amounts.clear();
        self.start.clear();
        self.len.clear();
        self.cap.clear();
        self.budgets.clear();
        self.budget_start.clear();
        self.budget_start.push(0);
        // `table` is no longer needed: it now maps the order of first sight to the canonical one.
        let mut start = 0;
        for (place, &class) in work.order.iter().enumerate() {
            let c = class as usize;
            self.amounts
                .extend_from_slice(&work.amounts[c * rows..(c + 1) * rows]);
            let keys = work.budget_start[c] as usize..work.budget_start[c + 1] as usize;
            self.budgets.extend_from_slice(&work.budgets[keys]);
            self.budget_start.push(self.budgets.len() as u32);
            self.start.push(start);
            self.len.push(0);
            let cap = (work.amounts[c * rows..(c + 1) * rows].iter())
                .zip(&self.deficit)
                .map(|(&amount, &deficit)| copies_to_cover(amount, deficit))
                .max()
                .unwrap_or(0)
                .min(u64::from(work.count[c])) as u32;
            self.cap.push(cap);
            // Room for all where they are sorted afterwards.
            start += if cap as usize <= SHORT {
                cap
            } else {
                work.count[c]
            };
            work.table[c] = place as u32;
        }
        self.items.clear();
        self.items.resize(
            start as usize,
            Item {
                weight: 0,
                candidate: 0,
            },
        );
    }

    /// Third pass: the members, sorted and cut.
    fn fill(&mut self, problem: &Problem<'_>) {
        let before = |left: &Item, right: &Item| {
            left.weight.cmp(&right.weight).then_with(|| {
                let uuid = |item: &Item| problem.uuids[item.candidate as usize];
                uuid(left)
                    .cmp(&uuid(right))
                    .then(left.candidate.cmp(&right.candidate))
            })
        };
        for (i, &class) in self.work.class_of.iter().enumerate() {
            if class == NONE {
                continue;
            }
            let c = self.work.table[class as usize] as usize;
            let weight = (u128::from(problem.costs[i].micros()) << COST_SHIFT)
                | (1 << COUNT_SHIFT)
                | u128::from(problem.ages_ms[i]);
            let item = Item {
                weight,
                candidate: i as u32,
            };
            let (start, len, cap) = (self.start[c] as usize, self.len[c], self.cap[c]);
            if cap as usize > SHORT {
                self.items[start + len as usize] = item;
                self.len[c] = len + 1;
                continue;
            }
            let mut place = len as usize;
            if len == cap {
                place -= 1;
                if before(&item, &self.items[start + place]).is_ge() {
                    continue;
                }
            } else {
                self.len[c] = len + 1;
            }
            let members = &mut self.items[start..start + cap as usize];
            while place > 0 && before(&item, &members[place - 1]).is_lt() {
                members[place] = members[place - 1];
                place -= 1;
            }
            members[place] = item;
        }
        for c in 0..self.count() {
            let (start, cap) = (self.start[c] as usize, self.cap[c] as usize);
            if cap > SHORT {
                let members = &mut self.items[start..start + self.len[c] as usize];
                if cap < members.len() {
                    members.select_nth_unstable_by(cap - 1, before);
                    self.len[c] = cap as u32;
                }
                members[..cap].sort_unstable_by(before);
            }
        }
    }
}

/// How many of `amount` cover `deficit` (positive); 0 if it does not help at all.
pub(crate) fn copies_to_cover(amount: i64, deficit: i64) -> u64 {
    match amount {
        0 => 0,
        _ if amount >= deficit => 1,
        _ => deficit.unsigned_abs().div_ceil(amount.unsigned_abs()),
    }
}

/// Whether one of the candidate's budgets is used up already.
fn is_protected(problem: &Problem<'_>, candidate: usize) -> bool {
    problem
        .budgets
        .of(candidate)
        .any(|key| problem.budgets.limits[key] == 0)
}

/// The golden ratio in 64 bits, for multiplicative hashing.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A multiplier for each row; independent products are faster than one chain.
fn odd(row: usize) -> u64 {
    GOLDEN.wrapping_mul(2 * row as u64 + 1)
}

/// Cost, victims and total age of a sum of weights.
pub(crate) fn unpack(weight: u128) -> (u64, u32, u64) {
    let low = weight as u64;
    (
        (weight >> COST_SHIFT) as u64,
        (low >> COUNT_SHIFT) as u32,
        low & ((1 << COUNT_SHIFT) - 1),
    )
}
