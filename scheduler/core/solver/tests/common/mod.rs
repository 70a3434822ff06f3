//! A host that owns its columns, the brute-force oracle, and seeded generators.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "each test binary uses its part"
)]

pub mod cloud;

use ebbtide_solver::{
    Budgets, CoverResult, EvictionCost, NO_BUDGET, Problem, Scratch, SearchLimits, solve,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Forces the branch and bound, without the plain enumeration before it.
pub const SEARCH_ONLY: SearchLimits = SearchLimits {
    quick_nodes: 0,
    ..SearchLimits::DEFAULT
};
/// Hands over from the enumeration to the branch and bound in the middle.
pub const HAND_OVER: SearchLimits = SearchLimits {
    quick_nodes: 7,
    ..SearchLimits::DEFAULT
};

/// Rank, sorted UUIDs and positions of a set.
type Ranked = ((u64, usize, u64), Vec<u128>, Vec<usize>);

/// One host, owned.
#[derive(Clone, Debug, Default)]
pub struct Host {
    pub deficit: Vec<i64>,
    pub candidates: Vec<Candidate>,
    pub limits: Vec<u32>,
    pub cutoff: Option<u64>,
}

/// One preemptible instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub resources: Vec<i64>,
    pub micros: u64,
    pub age_ms: u64,
    pub uuid: u128,
    pub budgets: Vec<u32>,
}

/// An answer that owns its victims, as positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    NotNeeded,
    Solved {
        victims: Vec<usize>,
        micros: u64,
        age_ms: u64,
        optimal: bool,
        lower_bound: u64,
    },
    NotBetter,
    Infeasible {
        budgets: bool,
    },
    Undecided {
        lower_bound: u64,
    },
}

impl Host {
    pub fn solve(&self, scratch: &mut Scratch, limits: SearchLimits) -> Answer {
        let columns = Columns::of(self);
        let problem = columns.problem(self);
        match solve(&problem, scratch, limits).expect("the problem is well-formed") {
            CoverResult::NotNeeded => Answer::NotNeeded,
            CoverResult::Solved(solution) => Answer::Solved {
                victims: solution.victims.iter().map(|&v| v as usize).collect(),
                micros: solution.cost.micros(),
                age_ms: solution.total_age_ms,
                optimal: solution.optimal,
                lower_bound: solution.lower_bound.micros(),
            },
            CoverResult::NotBetter => Answer::NotBetter,
            CoverResult::Infeasible(reason) => Answer::Infeasible {
                budgets: reason == ebbtide_solver::Infeasible::Budgets,
            },
            CoverResult::Undecided { lower_bound } => Answer::Undecided {
                lower_bound: lower_bound.micros(),
            },
        }
    }

    pub fn lower_bound(&self) -> u64 {
        ebbtide_solver::lower_bound(&Columns::of(self).problem(self)).micros()
    }

    pub fn suffices(&self, set: &[usize]) -> bool {
        self.deficit.iter().enumerate().all(|(class, &deficit)| {
            let sum: i128 = set
                .iter()
                .map(|&i| i128::from(self.candidates[i].resources[class]))
                .sum();
            sum >= i128::from(deficit)
        })
    }

    pub fn keeps_budgets(&self, set: &[usize]) -> bool {
        (0..self.limits.len() as u32).all(|key| {
            let members = set
                .iter()
                .filter(|&&i| self.candidates[i].budgets.contains(&key));
            members.count() <= self.limits[key as usize] as usize
        })
    }

    /// What the specification says, by looking at every subset.
    pub fn brute_force(&self) -> Answer {
        if self.deficit.iter().all(|&deficit| deficit <= 0) {
            return Answer::NotNeeded;
        }
        let n = self.candidates.len();
        assert!(n <= 16, "2^{n} subsets are too many");
        if !self.suffices(&(0..n).collect::<Vec<_>>()) {
            return Answer::Infeasible { budgets: false };
        }
        let mut best: Option<Ranked> = None;
        for bits in 0u32..1 << n {
            let set: Vec<usize> = (0..n).filter(|i| bits >> i & 1 == 1).collect();
            let sum =
                |of: fn(&Candidate) -> u64| set.iter().map(|&i| of(&self.candidates[i])).sum();
            let rank = (sum(|c| c.micros), set.len(), sum(|c| c.age_ms));
            if best.as_ref().is_some_and(|(least, ..)| *least < rank) {
                continue;
            }
            if !self.suffices(&set) || !self.keeps_budgets(&set) {
                continue;
            }
            let mut set = set;
            set.sort_by_key(|&i| self.candidates[i].uuid);
            let uuids: Vec<u128> = set.iter().map(|&i| self.candidates[i].uuid).collect();
            if best
                .as_ref()
                .is_none_or(|(least, first, _)| (&rank, &uuids) < (least, first))
            {
                best = Some((rank, uuids, set));
            }
        }
        match (best, self.cutoff) {
            (None, None) => Answer::Infeasible { budgets: true },
            (None, Some(_)) => Answer::NotBetter,
            (Some((rank, ..)), Some(cutoff)) if rank.0 > cutoff => Answer::NotBetter,
            (Some(((micros, _, age_ms), _, victims)), _) => Answer::Solved {
                victims,
                micros,
                age_ms,
                optimal: true,
                lower_bound: micros,
            },
        }
    }

    /// Whether the answer is the expected one. If the budgets exclude every sufficient set, the
    /// solver may say so even with a cutoff.
    pub fn agrees(&self, found: &Answer, expected: &Answer) -> bool {
        found == expected
            || (self.cutoff.is_some()
                && *found == Answer::Infeasible { budgets: true }
                && *expected == Answer::NotBetter)
    }
}

/// Column copies of a host.
pub struct Columns {
    resources: Vec<i64>,
    costs: Vec<EvictionCost>,
    ages_ms: Vec<u64>,
    uuids: Vec<u128>,
    width: usize,
    keys: Vec<u32>,
}

impl Columns {
    pub fn of(host: &Host) -> Self {
        let candidates = &host.candidates;
        let width = candidates
            .iter()
            .map(|c| c.budgets.len())
            .max()
            .unwrap_or(0);
        let place = |c: &Candidate, at: usize| c.budgets.get(at).copied().unwrap_or(NO_BUDGET);
        Columns {
            width,
            keys: candidates
                .iter()
                .flat_map(|c| (0..width).map(|at| place(c, at)))
                .collect(),
            resources: candidates
                .iter()
                .flat_map(|c| c.resources.iter().copied())
                .collect(),
            costs: candidates
                .iter()
                .map(|c| EvictionCost::from_micros(c.micros))
                .collect(),
            ages_ms: candidates.iter().map(|c| c.age_ms).collect(),
            uuids: candidates.iter().map(|c| c.uuid).collect(),
        }
    }

    pub fn problem<'a>(&'a self, host: &'a Host) -> Problem<'a> {
        Problem {
            deficit: &host.deficit,
            resources: &self.resources,
            costs: &self.costs,
            ages_ms: &self.ages_ms,
            uuids: &self.uuids,
            budgets: Budgets {
                limits: &host.limits,
                keys_per_candidate: self.width,
                keys: &self.keys,
            },
            cutoff: host.cutoff.map(EvictionCost::from_micros),
        }
    }
}

/// Random numbers of this test; the same on every machine and run.
pub fn seeded(seed: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed)
}

/// The usual host: flavors of 1, 2, 4 and 8 VCPUs with 2 GiB and 20 GB for each VCPU, costs of a
/// partial hour.
pub fn mixed_flavors(rng: &mut Pcg64Mcg, n: usize) -> Host {
    let candidates = (0..n)
        .map(|_| {
            let vcpus = 1i64 << rng.random_range(0..4);
            let age_ms = rng.random_range(0..30 * 86_400_000u64);
            Candidate {
                resources: vec![vcpus, vcpus * 2048, vcpus * 20],
                micros: age_ms % 3_600_000 * 1000,
                age_ms,
                uuid: rng.random(),
                budgets: Vec::new(),
            }
        })
        .collect();
    let vcpus = 1i64 << rng.random_range(0..4);
    // The host has some room left already.
    let deficit = vec![
        vcpus - rng.random_range(0..=vcpus / 2),
        vcpus * 2048 - 512 * rng.random_range(0..=2 * vcpus),
        vcpus * 20 - rng.random_range(0..=10 * vcpus),
    ];
    Host {
        deficit,
        candidates,
        limits: Vec::new(),
        cutoff: None,
    }
}

/// All vectors distinct, costs by `micros`, and `share` percent of everything missing.
pub fn distinct_vectors(
    rng: &mut Pcg64Mcg,
    n: usize,
    classes: usize,
    share: i64,
    micros: impl Fn(&mut Pcg64Mcg, i64) -> u64,
) -> Host {
    let candidates: Vec<Candidate> = (0..n)
        .map(|_| {
            let resources: Vec<i64> = (0..classes).map(|_| rng.random_range(50..1000)).collect();
            let size = resources.iter().sum();
            Candidate {
                micros: micros(rng, size),
                age_ms: rng.random_range(0..30 * 86_400_000u64),
                uuid: rng.random(),
                resources,
                budgets: Vec::new(),
            }
        })
        .collect();
    let deficit = (0..classes)
        .map(|class| candidates.iter().map(|c| c.resources[class]).sum::<i64>() * share / 100)
        .collect();
    Host {
        deficit,
        candidates,
        limits: Vec::new(),
        cutoff: None,
    }
}
