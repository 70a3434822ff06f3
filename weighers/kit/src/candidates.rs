//! Made-up candidates to try a cost module on.

use crate::callable::{TriedCostModule, WeigherAnswer};
use crate::hosts::{Sort, picked, values};
use crate::random::SplitMix64;
use ebbtide_cost_api::{CostError, Fact, FactColumn, NO_END, VictimBatch};

/// Preemptible instances.
#[derive(Debug, Clone, Default)]
pub(crate) struct SampleCandidates {
    ages: Vec<f64>,
    vcpus: Vec<f64>,
    memory: Vec<f64>,
    price: Vec<f64>,
    max_price: Vec<f64>,
    priority: Vec<u8>,
    project: Vec<u32>,
    ends: Vec<f64>,
    facts: Vec<(Fact, FactColumn)>,
}

impl SampleCandidates {
    /// So many candidates for this module.
    pub(crate) fn usual(module: &TriedCostModule, len: usize, seed: u64) -> Self {
        let mut chance = SplitMix64::new(seed);
        let mut all = Self::default();
        for _ in 0..len {
            all.ages.push(chance.between(0, 30 * 24 * 3600));
            all.vcpus.push(chance.between(1, 64));
            all.memory.push(chance.between(512, 1 << 19));
            all.price.push(chance.between(0, 1000) / 100.0);
            all.max_price.push(chance.between(0, 1000) / 100.0);
            all.priority
                .push(u8::try_from(chance.below(4)).unwrap_or(0));
            all.project
                .push(u32::try_from(chance.below(20)).unwrap_or(0));
        }
        all.ends = vec![NO_END; len];
        all.facts = facts(module, len, Sort::Usual, &mut chance);
        all
    }

    /// All of everything as small, or as large, as it can be.
    pub(crate) fn extreme(module: &TriedCostModule, len: usize, large: bool) -> Self {
        let number = |most: f64| vec![if large { most } else { 0.0 }; len];
        Self {
            ages: number(136.0 * 365.25 * 24.0 * 3600.0),
            vcpus: number(1e6),
            memory: number(1e12),
            price: number(1e6),
            max_price: number(1e6),
            priority: vec![if large { u8::MAX } else { 0 }; len],
            project: vec![0; len],
            ends: number(NO_END),
            facts: facts(module, len, Sort::Empty, &mut SplitMix64::new(1)),
        }
    }

    pub(crate) fn only(&self, rows: &[usize]) -> Self {
        let pick = |column: &[f64]| rows.iter().map(|at| column[*at]).collect();
        Self {
            ages: pick(&self.ages),
            vcpus: pick(&self.vcpus),
            memory: pick(&self.memory),
            price: pick(&self.price),
            max_price: pick(&self.max_price),
            priority: rows.iter().map(|at| self.priority[*at]).collect(),
            project: rows.iter().map(|at| self.project[*at]).collect(),
            ends: pick(&self.ends),
            facts: picked(&self.facts, rows),
        }
    }

    pub(crate) fn cost(&self, module: &TriedCostModule) -> Result<WeigherAnswer, CostError> {
        module.call(&VictimBatch {
            len: self.ages.len(),
            age_seconds: &self.ages,
            vcpus: &self.vcpus,
            memory_mb: &self.memory,
            price_per_hour: &self.price,
            max_price: &self.max_price,
            priority: &self.priority,
            project: &self.project,
            ends_in_seconds: &self.ends,
            flavors: None,
            facts: &self.facts,
        })
    }
}

/// Facts about the candidates' hosts.
fn facts(
    module: &TriedCostModule,
    len: usize,
    sort: Sort,
    chance: &mut SplitMix64,
) -> Vec<(Fact, FactColumn)> {
    let read = module.module().facts().iter();
    read.map(|fact| (fact.clone(), values(fact, len, sort, chance)))
        .collect()
}
