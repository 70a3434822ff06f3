//! The batch service of the paper's section 5 in simulation: bags of equal jobs, without
//! checkpoints, on a cluster of preemptible instances. For its figure 9: cost against on-demand
//! instances, and the increase of the running time with the number of preemptions.
//!
//! Both sides play the same jobs. The on-demand side is a cluster of as many instances that never
//! end. It releases an instance as soon as no job waits, because a new one is as good. Times are
//! hours; lives come from a model and a seed.

mod world;

use crate::Lifetime;
use crate::error::LifetimeError;
use crate::plan::{above_zero, not_negative};
use rand::SeedableRng;
use rand_pcg::Pcg64;
use std::collections::BTreeMap;
use world::BatchSimulation;

/// Whether a free instance gets the next job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReuseRule {
    /// Always, as a memoryless model advises.
    Always,
    /// While the expected time until the job is done is not longer than on a new instance
    /// (section 4.2); otherwise the service replaces the instance.
    ByModel,
}

/// The cluster and its work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchService {
    /// The most instances at one time.
    pub instances: u32,
    /// Instances of one job; the job fails when one of them ends.
    pub per_job: u32,
    /// Jobs of a bag.
    pub jobs: u32,
    /// Length of a job.
    pub length: f64,
    /// Bags one after another; the preemptible cluster keeps its instances in between.
    pub bags: u32,
    /// From the launch of an instance to its first job. It is paid.
    pub boot: f64,
    /// How long an instance that has survived [`STABLE`] hours is kept without work: the hot
    /// spares.
    pub spare: f64,
    /// Whether a free instance gets the next job.
    pub reuse: ReuseRule,
}

/// The age, hours, from which an instance is stable: the end of the paper's first phase.
pub const STABLE: f64 = 3.0;

/// More instances, jobs or bags than any real cluster has.
const MOST: u32 = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BagRun {
    /// From its begin to its last job.
    pub hours: f64,
    /// Instances that the provider ended meanwhile.
    pub preemptions: u32,
    /// Instance hours of attempts that failed.
    pub lost: f64,
}

/// All bags, one after another.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchRun {
    /// Each bag.
    pub bags: Vec<BagRun>,
    /// Instance hours that are paid, hot spares after the last job included.
    pub paid: f64,
    /// Instances that were launched.
    pub launched: u32,
}

/// Bags with one number of preemptions: figure 9b.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PreemptionRow {
    /// Preemptions in a bag.
    pub preemptions: u32,
    /// How many bags had so many.
    pub bags: u32,
    /// The mean share by which these bags took longer than without preemptions.
    pub increase: f64,
}

/// The service against on-demand instances, over many runs.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchComparison {
    /// Runs of all bags.
    pub runs: u32,
    /// The mean time of a bag on preemptible instances.
    pub hours: f64,
    /// The time of a bag on demand.
    pub on_demand_hours: f64,
    /// Instance hours paid in a run, in the mean.
    pub paid: f64,
    /// Instance hours paid on demand.
    pub on_demand_paid: f64,
    /// Preemptions of a bag, in the mean.
    pub preemptions: f64,
    /// The increase of the running time for each preemption: the slope of the line through zero
    /// with the least squared error over all bags; 0 without preemptions.
    pub per_preemption: f64,
    /// Figure 9b, by rising number of preemptions.
    pub rows: Vec<PreemptionRow>,
}

impl BatchComparison {
    /// The mean share by which a bag takes longer than on demand.
    #[must_use]
    pub fn overhead(&self) -> f64 {
        self.hours / self.on_demand_hours - 1.0
    }

    /// On-demand cost over the service's, where an instance hour costs `discount` times as much on
    /// demand as preemptible.
    #[must_use]
    pub fn cost_ratio(&self, discount: f64) -> f64 {
        discount * self.on_demand_paid / self.paid
    }
}

impl BatchService {
    /// Plays the bags once, with lives drawn from `model`.
    ///
    /// # Errors
    /// [`LifetimeError::Question`] for numbers that make no cluster, and for jobs that no instance
    /// lives long enough for.
    pub fn run(&self, model: &dyn Lifetime, seed: u64) -> Result<BatchRun, LifetimeError> {
        self.checked()?;
        let longest = model.maximum() - self.boot;
        if self.length >= longest {
            return Err(LifetimeError::Question {
                what: "the length of the job",
                value: self.length,
                allowed: format!("below {longest} h, the longest life without the boot time"),
            });
        }
        let chance = Pcg64::seed_from_u64(seed);
        BatchSimulation::new(self, Some((model, chance))).run()
    }

    /// Plays the bags on instances that never end and that are released when no job waits.
    ///
    /// # Errors
    /// [`LifetimeError::Question`] for numbers that make no cluster.
    pub fn run_on_demand(&self) -> Result<BatchRun, LifetimeError> {
        self.checked()?;
        BatchSimulation::new(self, None).run()
    }

    /// Plays the bags `runs` times with seeds from `seed` on, and once on demand.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn compare(
        &self,
        model: &dyn Lifetime,
        runs: u32,
        seed: u64,
    ) -> Result<BatchComparison, LifetimeError> {
        let on_demand = self.run_on_demand()?;
        let undisturbed: f64 = on_demand.bags.iter().map(|bag| bag.hours).sum();
        let undisturbed = undisturbed / f64::from(self.bags);
        let mut rows: BTreeMap<u32, (u32, f64)> = BTreeMap::new();
        let (mut paid, mut hours, mut preemptions) = (0.0, 0.0, 0.0);
        let (mut products, mut squares) = (0.0, 0.0);
        for run in 0..runs.max(1) {
            let run = self.run(model, seed.wrapping_add(u64::from(run)))?;
            paid += run.paid;
            for (bag, alone) in run.bags.iter().zip(&on_demand.bags) {
                let count = f64::from(bag.preemptions);
                let increase = bag.hours / alone.hours - 1.0;
                hours += bag.hours;
                preemptions += count;
                products += count * increase;
                squares += count * count;
                let row = rows.entry(bag.preemptions).or_default();
                row.0 += 1;
                row.1 += increase;
            }
        }
        let runs = runs.max(1);
        let bags = f64::from(runs) * f64::from(self.bags);
        let rows = rows
            .into_iter()
            .map(|(preemptions, (bags, sum))| PreemptionRow {
                preemptions,
                bags,
                increase: sum / f64::from(bags),
            });
        Ok(BatchComparison {
            runs,
            hours: hours / bags,
            on_demand_hours: undisturbed,
            paid: paid / f64::from(runs),
            on_demand_paid: on_demand.paid,
            preemptions: preemptions / bags,
            per_preemption: if squares > 0.0 {
                products / squares
            } else {
                0.0
            },
            rows: rows.collect(),
        })
    }

    fn checked(&self) -> Result<(), LifetimeError> {
        above_zero("the length of the job", self.length)?;
        not_negative("the boot time", self.boot)?;
        not_negative("the time that spare instances are kept", self.spare)?;
        let count = |what: &'static str, value: u32, least: u32| {
            if (least..=MOST).contains(&value) {
                return Ok(());
            }
            Err(LifetimeError::Question {
                what,
                value: f64::from(value),
                allowed: format!("{least} to {MOST}"),
            })
        };
        count("the number of instances of a job", self.per_job, 1)?;
        count("the number of instances", self.instances, self.per_job)?;
        count("the number of jobs", self.jobs, 1)?;
        count("the number of bags", self.bags, 1)
    }
}
