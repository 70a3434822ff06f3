//! The same job lived through many times: a check of the expectations that shares no formula with
//! them.

use super::Planner;
use crate::Lifetime;
use crate::distribution::unit;
use rand::SeedableRng;
use rand_pcg::Pcg64;
use std::collections::HashMap;

/// A run with so many failures never ends: lives of a model that the plan was not made for can all
/// be too short for it.
const FAILURES: u32 = 100_000;

/// The mean of many simulated runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The mean time to the end, hours.
    pub mean: f64,
    /// Its standard error, hours: in 95 of 100 cases the truth is within 1.96 of it.
    pub standard_error: f64,
}

impl Planner {
    /// Runs the job `runs` times as planned, with lifetimes drawn from `model`, which may be
    /// another one than the plan was made for; the mean is infinite if a run does not end.
    #[must_use]
    pub fn simulate(&self, model: &dyn Lifetime, runs: u32, seed: u64) -> Estimate {
        let mut chance = Pcg64::seed_from_u64(seed);
        let mut plans = HashMap::new();
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..runs {
            let time = self.run(model, &mut chance, &mut plans);
            sum += time;
            squares += time * time;
        }
        let count = f64::from(runs.max(2));
        let mean = sum / f64::from(runs.max(1));
        Estimate {
            mean,
            standard_error: ((squares / count - mean * mean).max(0.0) / (count - 1.0)).sqrt(),
        }
    }

    fn run(
        &self,
        model: &dyn Lifetime,
        chance: &mut Pcg64,
        plans: &mut HashMap<(usize, usize), usize>,
    ) -> f64 {
        let grid = &self.grid;
        let (mut left, mut age, mut time) = (grid.job, grid.age, 0.0);
        let mut failures = 0;
        let mut life = model.sample_from_age(age as f64 * grid.step, chance);
        while left > 0 {
            let interval = *plans
                .entry((left, age))
                .or_insert_with(|| self.interval(left, age));
            let mut steps = interval;
            if interval < left || grid.final_checkpoint {
                steps += grid.cost;
                if grid.more > 0.0 && unit(chance) < grid.more {
                    steps += 1;
                }
            }
            let then = (age + steps) as f64 * grid.step;
            if then < life {
                time += steps as f64 * grid.step;
                left -= interval;
                age += steps;
            } else {
                failures += 1;
                if failures > FAILURES {
                    return f64::INFINITY;
                }
                time += life - age as f64 * grid.step + grid.restart;
                age = 0;
                life = model.sample(chance);
            }
        }
        time
    }
}
