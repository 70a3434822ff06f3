//! The corrected recursion.
//!
//! With `M(J, t)` the expected time to the end with `J` of work left at age `t`, `S` the survival,
//! `I` its integral, `d` the checkpoint, `K(J) = R + M(J, 0)` and `w = t + i + d`, conditional on
//! being alive at `t`:
//!
//! `S(t) M(J,t) = min over i of  I(w) - I(t) + S(w) M(J-i, w) + (S(t) - S(w)) K(J)`
//!
//! since `I(w) - I(t)` is `S(t)` times the expected time until `w` or death, whichever is first;
//! the atom at the maximum is in `S`. The table holds `A(J,t) = I(t) + S(t) M(J,t)`, so that
//! `A(J,t) = S(t) K + min of A(J-i,w) - S(w) K`: two loads, a product and a comparison a choice.
//! For `t = 0` the equation holds `M(J,0)` on both sides and is solved for it in every choice.

use super::grid::{Grid, Table};
use crate::error::LifetimeError;

/// A solved problem: the table and `M(J, 0)` for every `J`.
#[derive(Debug)]
pub(super) struct CorrectedTable {
    table: Table,
    fresh: Vec<f64>,
}

/// A choice's value and its interval in steps.
type Choice = (f64, usize);

impl CorrectedTable {
    pub(super) fn solve(grid: &Grid) -> Result<Self, LifetimeError> {
        let mut table = grid.table();
        for age in 0..=grid.end {
            table.set(0, age, grid.lived[age]);
        }
        if grid.mortal {
            for left in 1..=grid.job {
                table.set(left, grid.end, grid.lived[grid.end]);
            }
        }
        let mut solved = Self {
            table,
            fresh: vec![0.0],
        };
        for left in 1..=grid.job {
            let fresh = solved.on_new(grid, left).0;
            if !fresh.is_finite() {
                return Err(grid.never_ends());
            }
            solved.fresh.push(fresh);
            let again = grid.restart + fresh;
            for age in 0..=grid.oldest(left) {
                let value = solved.least(grid, left, age, again) + grid.survival[age] * again;
                solved.table.set(left, age, value);
            }
        }
        Ok(solved)
    }

    /// The expected time to the end, hours.
    pub(super) fn makespan(&self, grid: &Grid, left: usize, age: usize) -> f64 {
        (self.table.get(left, age) - grid.lived[age]) / grid.survival[age]
    }

    /// The first interval of the best plan, steps.
    pub(super) fn interval(&self, grid: &Grid, left: usize, age: usize) -> usize {
        if age == 0 {
            return self.on_new(grid, left).1;
        }
        let again = grid.restart + self.fresh[left];
        let mut best: Choice = (f64::INFINITY, left);
        for interval in 1..=left {
            let (held, alive) = self.after(grid, left, age, interval);
            let value = held - alive * again;
            if value < best.0 {
                best = (value, interval);
            }
        }
        best.1
    }

    /// `A` and `S` after an interval and its checkpoint, the mixture of both lengths of a
    /// checkpoint.
    fn after(&self, grid: &Grid, left: usize, age: usize, interval: usize) -> (f64, f64) {
        let at = |cost: usize| {
            let then = age + interval + cost;
            if then < grid.end || (then == grid.end && !grid.mortal) {
                (self.table.get(left - interval, then), grid.survival[then])
            } else if grid.mortal {
                (grid.lived[grid.end], 0.0)
            } else {
                (f64::INFINITY, 1.0)
            }
        };
        if interval == left && !grid.final_checkpoint {
            return at(0);
        }
        let whole = at(grid.cost);
        if grid.more == 0.0 {
            return whole;
        }
        let longer = at(grid.cost + 1);
        let mix = |a: f64, b: f64| a * (1.0 - grid.more) + b * grid.more;
        (mix(whole.0, longer.0), mix(whole.1, longer.1))
    }

    /// `M(J, 0)` and its interval.
    fn on_new(&self, grid: &Grid, left: usize) -> Choice {
        let mut best: Choice = (f64::INFINITY, left);
        for interval in 1..=left {
            let (held, alive) = self.after(grid, left, 0, interval);
            let value = (held + (1.0 - alive) * grid.restart) / alive;
            if value < best.0 {
                best = (value, interval);
            }
        }
        best
    }

    /// The least `A(J-i, w) - S(w) K` over all choices.
    fn least(&self, grid: &Grid, left: usize, age: usize, again: f64) -> f64 {
        let mut best = f64::INFINITY;
        // Who does not live to the first checkpoint loses all of the rest, whatever the choice.
        if grid.mortal && age + 1 + grid.cost + usize::from(grid.more > 0.0) > grid.end {
            best = grid.lived[grid.end];
        }
        let mut longest = left;
        if !grid.final_checkpoint {
            let (held, alive) = self.after(grid, left, age, left);
            best = best.min(held - alive * again);
            longest -= 1;
        }
        if grid.more > 0.0 {
            // Beyond the end nothing is better than the end itself.
            for interval in 1..=longest.min(grid.end.saturating_sub(age + grid.cost)) {
                let (held, alive) = self.after(grid, left, age, interval);
                best = best.min(held - alive * again);
            }
            return best;
        }
        let first = age + 1 + grid.cost;
        let last = (age + longest + grid.cost).min(grid.end);
        if first > last {
            return best;
        }
        let held = &self.table.row(left + age + grid.cost)[first..=last];
        let alive = &grid.survival[first..=last];
        // Eight minima side by side, so that the compiler can use vectors.
        let mut lanes = [best; 8];
        let (held_blocks, held_rest) = held.as_chunks::<8>();
        let (alive_blocks, alive_rest) = alive.as_chunks::<8>();
        for (h, a) in held_blocks.iter().zip(alive_blocks) {
            for lane in 0..8 {
                let value = h[lane] - a[lane] * again;
                lanes[lane] = if value < lanes[lane] {
                    value
                } else {
                    lanes[lane]
                };
            }
        }
        for (h, a) in held_rest.iter().zip(alive_rest) {
            best = best.min(h - a * again);
        }
        lanes.into_iter().fold(best, f64::min)
    }
}
