//! The linear relaxation, by the dual simplex method.
//!
//! Minimise the weight such that every row is covered and no budget exceeded, where a member may be
//! taken in part. It starts from multipliers that are always legal (all zero, or those of the node
//! before) and climbs, so it can stop at any time with a bound; and a node that differs from the
//! last one by a few bounds takes a few pivots. Every member is between 0 and 1, hence any basis
//! can be made dual feasible by putting the others on the side that their reduced cost says, and
//! one ratio test passes over many members (the "long step").
//!
//! Members of a class have the same column and ascending weights, so there is at most one basic
//! member in a class, those before it are taken and those behind it are not: a class needs one
//! counter, not one variable a member.
//!
//! Everything here is floating point and nothing here is proof. `search` rounds the multipliers to
//! integers and computes the bound they prove exactly; a wrong pivot costs time, not correctness.

use crate::model::Model;

const NONE: u32 = u32::MAX;
/// Rows are scaled to deficit 1; what is missing less than this is rounding.
const FEASIBLE: f64 = 1e-9;
/// Smaller pivots would blow up the inverse.
const PIVOT: f64 = 1e-9;
/// Product-form updates before the inverse is computed anew.
const REFACTOR_AFTER: u32 = 40;

/// How a solve ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelaxationStatus {
    /// The multipliers are the best ones.
    Optimal,
    /// The bound has reached the limit that was given.
    Cut,
    /// The bound can be driven to any height: `Relaxation::lift` did so.
    Unbounded,
    /// Too many pivots for so small a problem; the multipliers are legal, but not the best.
    Stalled,
}

/// A class's most fractional place, see [`Relaxation::fraction`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fraction {
    pub(crate) member: u32,
    pub(crate) taken: f64,
}

/// Working set of the simplex method. Indexed by position in `classes` unless said otherwise.
#[derive(Debug, Default)]
pub(crate) struct Relaxation {
    covers: usize,
    width: usize,
    /// The model's classes that are still open.
    pub(crate) classes: Vec<u32>,
    /// The model's budgets that have a row here; those rows follow the covering ones.
    pub(crate) budget_rows: Vec<u32>,
    column: Vec<f64>,
    right: Vec<f64>,
    /// Row multipliers: what one whole deficit (one place of a budget) is worth, in scaled weight.
    pub(crate) price: Vec<f64>,
    /// Price of the class's column.
    value: Vec<f64>,
    /// Members at their upper bound, not counting a basic one.
    upper: Vec<u32>,
    /// The basic member, where `row_of` is not `NONE`.
    basic: Vec<u32>,
    row_of: Vec<u32>,
    /// Basic variable of each row: a position, or `classes.len() + row` for the row's slack.
    basis: Vec<u32>,
    slack_row: Vec<u32>,
    inverse: Vec<f64>,
    level: Vec<f64>,
    objective: f64,
    /// Where a failed ratio test ended, and the slope that was left there.
    end_of_walk: (f64, f64),
    updates: u32,
    pub(crate) pivots: u64,
    direction: Vec<f64>,
    slope: Vec<f64>,
    scratch: Vec<f64>,
    breaks: Vec<Break>,
}

#[derive(Clone, Copy, Debug)]
struct Break {
    at: f64,
    position: u32,
}

/// Bounds of each class's count; indexed by the model's classes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassBounds<'a> {
    pub(crate) low: &'a [u32],
    pub(crate) high: &'a [u32],
}

impl Relaxation {
    /// Starts over with the open classes. `amounts` and `deficit` are the model's rows, reduced by
    /// what is fixed; `room` is what the fixed members leave of each budget.
    pub(crate) fn load(
        &mut self,
        model: &Model,
        open: &[u32],
        amounts: &[i64],
        deficit: &[i64],
        room: &[u32],
    ) {
        self.covers = deficit.len();
        self.width = self.covers + self.budget_rows.len();
        self.classes.clear();
        self.classes.extend_from_slice(open);
        self.column.clear();
        self.right.clear();
        for &missing in deficit {
            self.right.push(if missing > 0 { 1.0 } else { 0.0 });
        }
        for &budget in &self.budget_rows {
            self.right.push(f64::from(room[budget as usize]));
        }
        for &class in open {
            let class = class as usize;
            let row = &amounts[class * self.covers..(class + 1) * self.covers];
            for (&amount, &missing) in row.iter().zip(deficit) {
                let share = if missing > 0 {
                    amount as f64 / missing as f64
                } else {
                    0.0
                };
                self.column.push(share);
            }
            let member_of = model.budgets_of(class);
            for budget in &self.budget_rows {
                self.column
                    .push(if member_of.contains(budget) { 1.0 } else { 0.0 });
            }
        }
        let count = open.len();
        for counters in [&mut self.upper, &mut self.basic] {
            counters.clear();
            counters.resize(count, 0);
        }
        self.row_of.clear();
        self.row_of.resize(count, NONE);
        self.value.clear();
        self.value.resize(count, 0.0);
        self.slope.clear();
        self.slope.resize(count, 0.0);
        self.reset();
    }

    /// The basis of slacks, at price zero.
    fn reset(&mut self) {
        let (width, count) = (self.width, self.classes.len());
        self.row_of.fill(NONE);
        self.price.clear();
        self.price.resize(width, 0.0);
        self.basis.clear();
        self.basis
            .extend((0..width).map(|row| (count + row) as u32));
        self.slack_row.clear();
        self.slack_row.extend(0..width as u32);
        self.inverse.clear();
        self.inverse.resize(width * width, 0.0);
        for row in 0..width {
            self.inverse[row * width + row] = self.slack_sign(row);
        }
        self.level.clear();
        self.level.resize(width, 0.0);
        self.updates = 0;
    }

    /// Coefficient of a row's slack: what is too much of a covering row is subtracted.
    fn slack_sign(&self, row: usize) -> f64 {
        if row < self.covers { -1.0 } else { 1.0 }
    }

    fn column_of(&self, position: usize) -> &[f64] {
        &self.column[position * self.width..(position + 1) * self.width]
    }

    /// Where a class stands in the current solution.
    pub(crate) fn fraction(&self, position: usize, bounds: ClassBounds<'_>) -> Fraction {
        let class = self.classes[position] as usize;
        let (low, high) = (bounds.low[class], bounds.high[class]);
        let row = self.row_of[position];
        let member = self.basic[position];
        if row != NONE && low <= member && member < high {
            Fraction {
                member,
                taken: self.level[row as usize].clamp(0.0, 1.0),
            }
        } else if row != NONE {
            Fraction {
                member: if member < low { low } else { high },
                taken: 0.0,
            }
        } else {
            Fraction {
                member: self.upper[position],
                taken: 0.0,
            }
        }
    }

    /// Climbs until the bound is best, or above `limit` (in scaled weight, of the open classes
    /// alone).
    pub(crate) fn solve(
        &mut self,
        model: &Model,
        bounds: ClassBounds<'_>,
        limit: f64,
    ) -> RelaxationStatus {
        self.settle(model, bounds);
        // A sound basis is reached in few pivots; numerical trouble shows as very many.
        let patience = 50 + 20 * self.width;
        for _ in 0..patience {
            if self.objective > limit {
                return RelaxationStatus::Cut;
            }
            self.compute_levels();
            let Some((row, below, excess)) = self.worst(bounds) else {
                return RelaxationStatus::Optimal;
            };
            if !self.pivot(model, bounds, row, below, excess) {
                self.lift(limit);
                return RelaxationStatus::Unbounded;
            }
        }
        RelaxationStatus::Stalled
    }

    /// Makes the basis dual feasible for new bounds: each open member goes where its reduced cost
    /// says.
    fn settle(&mut self, model: &Model, bounds: ClassBounds<'_>) {
        if self.updates >= REFACTOR_AFTER {
            self.refactor(model);
        }
        let mut objective: f64 = self
            .price
            .iter()
            .zip(&self.right)
            .map(|(price, right)| price * right)
            .sum();
        for position in 0..self.classes.len() {
            let class = self.classes[position] as usize;
            let (low, high) = (bounds.low[class], bounds.high[class]);
            let value = dot(&self.price, self.column_of(position));
            self.value[position] = value;
            let taken = if self.row_of[position] == NONE {
                let mut count = low;
                while count < high && model.float_member(class, count) < value {
                    count += 1;
                }
                self.upper[position] = count;
                count
            } else {
                // A basic member outside of the bounds is itself fixed, at 1 or at 0.
                let member = self.basic[position];
                self.upper[position] = if member < low {
                    low - 1
                } else {
                    member.min(high)
                };
                if member < low { low } else { member.min(high) }
            };
            objective += model.float_weight(class, taken) - f64::from(taken) * value;
        }
        self.objective = objective;
    }

    fn compute_levels(&mut self) {
        let width = self.width;
        self.scratch.clear();
        self.scratch.extend_from_slice(&self.right);
        for (position, &count) in self.upper.iter().enumerate() {
            if count > 0 {
                let column = &self.column[position * width..(position + 1) * width];
                for (rest, entry) in self.scratch.iter_mut().zip(column) {
                    *rest -= f64::from(count) * entry;
                }
            }
        }
        for row in 0..width {
            self.level[row] = dot(&self.inverse[row * width..(row + 1) * width], &self.scratch);
        }
    }

    /// The basic variable that is farthest outside of its bounds: its row, whether it is below, by
    /// how much.
    fn worst(&self, bounds: ClassBounds<'_>) -> Option<(usize, bool, f64)> {
        let mut worst = None;
        let mut most = FEASIBLE;
        for row in 0..self.width {
            let (low, high) = self.basic_bounds(row, bounds);
            let level = self.level[row];
            for (below, excess) in [(true, low - level), (false, level - high)] {
                if excess > most {
                    most = excess;
                    worst = Some((row, below, excess));
                }
            }
        }
        worst
    }

    fn basic_bounds(&self, row: usize, bounds: ClassBounds<'_>) -> (f64, f64) {
        let variable = self.basis[row] as usize;
        if variable >= self.classes.len() {
            return (0.0, f64::INFINITY);
        }
        let class = self.classes[variable] as usize;
        let member = self.basic[variable];
        if member < bounds.low[class] {
            (1.0, 1.0)
        } else if member >= bounds.high[class] {
            (0.0, 0.0)
        } else {
            (0.0, 1.0)
        }
    }

    /// Drives the basic variable of `row` to the bound it violates. False if nothing can take its
    /// place.
    fn pivot(
        &mut self,
        model: &Model,
        bounds: ClassBounds<'_>,
        row: usize,
        below: bool,
        excess: f64,
    ) -> bool {
        let width = self.width;
        let sign = if below { -1.0 } else { 1.0 };
        self.direction.clear();
        for entry in &self.inverse[row * width..(row + 1) * width] {
            self.direction.push(sign * entry);
        }
        let leaving = self.basis[row] as usize;
        let count = self.classes.len();
        if leaving < count {
            let (low, high) = self.basic_bounds(row, bounds);
            let stays = if below { low } else { high };
            self.upper[leaving] += u32::from(stays > 0.5);
            self.row_of[leaving] = NONE;
        } else {
            self.slack_row[leaving - count] = NONE;
        }
        let Some((step, entering)) = self.ratio_test(model, bounds, excess) else {
            // Undo, so that the basis stays whole.
            if leaving < count {
                let (low, high) = self.basic_bounds(row, bounds);
                let stays = if below { low } else { high };
                self.upper[leaving] -= u32::from(stays > 0.5);
                self.row_of[leaving] = row as u32;
            } else {
                self.slack_row[leaving - count] = row as u32;
            }
            return false;
        };
        for (price, direction) in self.price.iter_mut().zip(&self.direction) {
            *price += step * direction;
        }
        for (value, slope) in self.value.iter_mut().zip(&self.slope) {
            *value += step * slope;
        }
        // The entering variable, and its column in terms of the old basis.
        self.scratch.clear();
        if entering < count {
            let column = &self.column[entering * width..(entering + 1) * width];
            for line in self.inverse.chunks_exact(width) {
                self.scratch.push(dot(line, column));
            }
            // The ratio test left in `upper` how many are taken before it.
            self.basic[entering] = self.upper[entering];
            self.row_of[entering] = row as u32;
        } else {
            let slack = entering - count;
            let sign = self.slack_sign(slack);
            for line in self.inverse.chunks_exact(width) {
                self.scratch.push(sign * line[slack]);
            }
            self.price[slack] = 0.0;
            self.slack_row[slack] = row as u32;
        }
        self.basis[row] = entering as u32;
        let pivot = self.scratch[row];
        for entry in &mut self.inverse[row * width..(row + 1) * width] {
            *entry /= pivot;
        }
        for other in 0..width {
            let factor = self.scratch[other];
            if other != row && factor != 0.0 {
                for at in 0..width {
                    self.inverse[other * width + at] -= factor * self.inverse[row * width + at];
                }
            }
        }
        self.updates += 1;
        self.pivots += 1;
        true
    }

    /// Walks along `direction` over all members that change sides until the slope is used up.
    /// Answers the step and the variable whose reduced cost becomes zero there.
    fn ratio_test(
        &mut self,
        model: &Model,
        bounds: ClassBounds<'_>,
        excess: f64,
    ) -> Option<(f64, usize)> {
        let count = self.classes.len();
        self.breaks.clear();
        for position in 0..count {
            self.slope[position] = dot(&self.direction, self.column_of(position));
            if self.row_of[position] == NONE
                && let Some(at) = self.next_break(model, bounds, position)
            {
                self.breaks.push(Break {
                    at,
                    position: position as u32,
                });
            }
        }
        for row in 0..self.width {
            let sign = self.slack_sign(row);
            let slope = sign * self.direction[row];
            if self.slack_row[row] == NONE && slope > PIVOT {
                let at = (-sign * self.price[row] / slope).max(0.0);
                self.breaks.push(Break {
                    at,
                    position: (count + row) as u32,
                });
            }
        }
        let (mut slope, mut here) = (excess, 0.0);
        loop {
            let (index, next) = self
                .breaks
                .iter()
                .enumerate()
                .min_by(|(_, left), (_, right)| left.at.total_cmp(&right.at))
                .map(|(index, next)| (index, *next))
                .or_else(|| {
                    self.end_of_walk = (here, slope);
                    None
                })?;
            self.objective += slope * (next.at - here).max(0.0);
            here = next.at.max(here);
            let position = next.position as usize;
            if position >= count {
                return Some((here, position));
            }
            let rate = self.slope[position];
            slope -= rate.abs();
            let down = rate < 0.0;
            if slope <= 0.0 {
                self.upper[position] -= u32::from(down);
                return Some((here, position));
            }
            if down {
                self.upper[position] -= 1;
            } else {
                self.upper[position] += 1;
            }
            match self.next_break(model, bounds, position) {
                Some(at) => self.breaks[index].at = at,
                None => {
                    self.breaks.swap_remove(index);
                }
            }
        }
    }

    /// The step at which the class's next member changes sides.
    fn next_break(&self, model: &Model, bounds: ClassBounds<'_>, position: usize) -> Option<f64> {
        let class = self.classes[position] as usize;
        let rate = self.slope[position];
        let count = self.upper[position];
        let member = if rate > PIVOT && count < bounds.high[class] {
            count
        } else if rate < -PIVOT && count > bounds.low[class] {
            count - 1
        } else {
            return None;
        };
        Some(((model.float_member(class, member) - self.value[position]) / rate).max(0.0))
    }

    /// After a failed ratio test: goes so far along the direction that the bound exceeds the limit.
    /// Nothing changes sides behind the end of the walk, so the bound grows there by the slope that
    /// was left.
    fn lift(&mut self, limit: f64) {
        let (walked, slope) = self.end_of_walk;
        let step = walked + 4.0 * (limit.abs() + self.objective.abs() + 1.0) / slope;
        for (price, direction) in self.price.iter_mut().zip(&self.direction) {
            *price += step * direction;
        }
        self.updates = u32::MAX;
    }

    /// Computes inverse and prices anew from the basis.
    fn refactor(&mut self, model: &Model) {
        let (width, count) = (self.width, self.classes.len());
        // Gauss-Jordan on [basis | identity], each row of `scratch` being 2 × width long.
        let wide = 2 * width;
        self.scratch.clear();
        self.scratch.resize(wide * width, 0.0);
        for at in 0..width {
            let variable = self.basis[at] as usize;
            for row in 0..width {
                self.scratch[row * wide + at] = if variable < count {
                    self.column[variable * width + row]
                } else if variable - count == row {
                    self.slack_sign(row)
                } else {
                    0.0
                };
            }
            self.scratch[at * wide + width + at] = 1.0;
        }
        for at in 0..width {
            let best = (at..width)
                .max_by(|&left, &right| {
                    let size = |row: usize| self.scratch[row * wide + at].abs();
                    size(left).total_cmp(&size(right))
                })
                .unwrap_or(at);
            let pivot = self.scratch[best * wide + at];
            if pivot.abs() < PIVOT {
                self.reset();
                return;
            }
            for entry in 0..wide {
                self.scratch.swap(best * wide + entry, at * wide + entry);
                self.scratch[at * wide + entry] /= pivot;
            }
            for row in 0..width {
                let factor = self.scratch[row * wide + at];
                if row != at && factor != 0.0 {
                    for entry in 0..wide {
                        self.scratch[row * wide + entry] -=
                            factor * self.scratch[at * wide + entry];
                    }
                }
            }
        }
        self.price.fill(0.0);
        for row in 0..width {
            let variable = self.basis[row] as usize;
            let weight = if variable < count {
                model.float_member(self.classes[variable] as usize, self.basic[variable])
            } else {
                0.0
            };
            for at in 0..width {
                let entry = self.scratch[row * wide + width + at];
                self.inverse[row * width + at] = entry;
                self.price[at] += weight * entry;
            }
        }
        self.updates = 0;
        // Rounding may have put a price on the wrong side of zero by a hair; by more, the basis is
        // useless.
        let signs_hold = (0..width).all(|row| {
            let size = self
                .price
                .iter()
                .fold(0.0f64, |most, price| most.max(price.abs()));
            -self.slack_sign(row) * self.price[row] >= -1e-7 * size
        });
        if !signs_hold {
            self.reset();
        }
    }
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(l, r)| l * r).sum()
}
