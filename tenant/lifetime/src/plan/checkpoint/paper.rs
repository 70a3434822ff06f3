//! The paper's recursion, with a new instance after a failure: equations 9 to 11 with `P = F(t+i+d)
//! -
//! F(t)`, not conditional.

use super::grid::{Grid, Table};
use crate::error::LifetimeError;

/// A solved problem: `M(J, t)`.
#[derive(Debug)]
pub(super) struct Paper {
    table: Table,
    exact_loss: bool,
    fresh: Vec<f64>,
}

impl Paper {
    pub(super) fn solve(grid: &Grid, exact_loss: bool) -> Result<Self, LifetimeError> {
        let mut table = grid.table();
        for age in 0..=grid.end {
            table.set(0, age, 0.0);
        }
        let mut solved = Self {
            table,
            exact_loss,
            fresh: vec![0.0],
        };
        for left in 1..=grid.job {
            let fresh = solved.best(grid, left, 0).0;
            if !fresh.is_finite() {
                return Err(grid.never_ends());
            }
            solved.fresh.push(fresh);
            for age in 0..=grid.oldest(left) {
                let value = solved.least(grid, left, age);
                solved.table.set(left, age, value);
            }
        }
        Ok(solved)
    }

    /// The expected time to the end, hours, as this reading reckons it.
    pub(super) fn makespan(&self, left: usize, age: usize) -> f64 {
        self.table.get(left, age)
    }

    /// The first interval of the best plan, steps.
    pub(super) fn interval(&self, grid: &Grid, left: usize, age: usize) -> usize {
        self.best(grid, left, age).1
    }

    fn best(&self, grid: &Grid, left: usize, age: usize) -> (f64, usize) {
        let mut best = (f64::INFINITY, left);
        for interval in 1..=left {
            let value = if interval == left && !grid.final_checkpoint {
                self.value(grid, left, age, interval, 0)
            } else if grid.more == 0.0 {
                self.value(grid, left, age, interval, grid.cost)
            } else {
                (1.0 - grid.more) * self.value(grid, left, age, interval, grid.cost)
                    + grid.more * self.value(grid, left, age, interval, grid.cost + 1)
            };
            if value < best.0 {
                best = (value, interval);
            }
        }
        best
    }

    /// The least value over all choices. In the common case all of them lie side by side in the
    /// table, and eight minima are kept side by side, so that the compiler can use vectors.
    fn least(&self, grid: &Grid, left: usize, age: usize) -> f64 {
        if age == 0 || grid.more > 0.0 || !grid.final_checkpoint {
            return self.best(grid, left, age).0;
        }
        let first = age + 1 + grid.cost;
        let last = (age + left + grid.cost).min(grid.end);
        if first > last {
            return f64::INFINITY;
        }
        let (alive, lived) = (grid.survival[age], grid.lived[age]);
        let again = grid.restart + self.fresh[left];
        let exact = self.exact_loss;
        // Steps as doubles: processors have no quick way to make many of integers.
        let value = |held: f64, survival: f64, lived_then: f64, steps: f64| {
            let span = steps * grid.step;
            let fails = alive - survival;
            let lost = if exact {
                lived_then - lived - span * survival
            } else {
                fails * 0.5 * span
            };
            (1.0 - fails) * (span + held) + lost + fails * again
        };
        let within = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        let held = &self.table.row(left + age + grid.cost)[first..=last];
        let survival = &grid.survival[first..=last];
        let lived_then = &grid.lived[first..=last];
        let mut lanes = [f64::INFINITY; 8];
        let (held_blocks, held_rest) = held.as_chunks::<8>();
        let (survival_blocks, survival_rest) = survival.as_chunks::<8>();
        let (lived_blocks, lived_rest) = lived_then.as_chunks::<8>();
        let mut steps = (1 + grid.cost) as f64;
        for ((h, s), l) in held_blocks.iter().zip(survival_blocks).zip(lived_blocks) {
            for lane in 0..8 {
                let value = value(h[lane], s[lane], l[lane], steps + within[lane]);
                lanes[lane] = if value < lanes[lane] {
                    value
                } else {
                    lanes[lane]
                };
            }
            steps += 8.0;
        }
        let mut best = lanes.into_iter().fold(f64::INFINITY, f64::min);
        for ((h, s), l) in held_rest.iter().zip(survival_rest).zip(lived_rest) {
            best = best.min(value(*h, *s, *l, steps));
            steps += 1.0;
        }
        best
    }

    /// The value of one choice. From age 0 the equation holds its own result on both sides and is
    /// solved for it.
    fn value(&self, grid: &Grid, left: usize, age: usize, interval: usize, cost: usize) -> f64 {
        let then = age + interval + cost;
        if then > grid.end {
            return f64::INFINITY;
        }
        let span = (interval + cost) as f64 * grid.step;
        let fails = grid.survival[age] - grid.survival[then];
        let lost = if self.exact_loss {
            grid.lived[then] - grid.lived[age] - span * grid.survival[then]
        } else {
            fails * 0.5 * span
        };
        let going = (1.0 - fails) * (span + self.table.get(left - interval, then));
        if age == 0 {
            (going + lost + fails * grid.restart) / (1.0 - fails)
        } else {
            going + lost + fails * (grid.restart + self.fresh[left])
        }
    }
}
