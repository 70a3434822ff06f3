//! The paper's recursion, with a new instance after a failure: equations 9 to 11 with `P = F(t+i+d) - F(t)`, not conditional.

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
                let value = solved.best(grid, left, age).0;
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

    /// The value of one choice. From age 0 the equation holds its own result on both sides and is solved for it.
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
