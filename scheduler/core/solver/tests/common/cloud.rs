//! Several hosts at once: what the joint search asks of them, what must hold of its answers, and
//! the enumeration of all sets.

use super::{Candidate, Columns, Host, seeded};
use ebbtide_solver::{
    EvictionCost, HostProblem, Hosts, JointOutcome, JointProblem, SearchLimits, lower_bound,
    solve_joint,
};
use rand::RngExt;
use std::collections::BTreeMap;

/// A host with what is free on it, and how many instances it may take.
#[derive(Clone, Debug)]
pub struct Place {
    pub free: Vec<i64>,
    pub most: u32,
    pub candidates: Vec<Candidate>,
    pub groups: Vec<u32>,
}

#[derive(Clone, Debug)]
pub struct Cloud {
    pub places: Vec<Place>,
    pub need: Vec<i64>,
    pub count: u32,
    pub limits: Vec<u32>,
    pub steps: Vec<u64>,
}

/// The hosts as the solver asks for them; counts the points that were asked for.
pub struct PreferredHosts<'a> {
    cloud: &'a Cloud,
    host: Host,
    columns: Columns,
    pub groups: Vec<u32>,
    loads: usize,
}

impl<'a> PreferredHosts<'a> {
    pub fn new(cloud: &'a Cloud) -> Self {
        PreferredHosts {
            cloud,
            host: Host::default(),
            columns: Columns::of(&Host::default()),
            groups: Vec::new(),
            loads: 0,
        }
    }

    pub fn fill(&mut self, host: usize, count: u32) {
        let place = &self.cloud.places[host];
        self.host = Host {
            deficit: self.cloud.deficit(host, count),
            candidates: place.candidates.clone(),
            limits: self.cloud.limits.clone(),
            cutoff: None,
        };
        self.columns = Columns::of(&self.host);
        self.groups.clone_from(&place.groups);
    }
}

impl Hosts for PreferredHosts<'_> {
    fn count(&self) -> usize {
        self.cloud.places.len()
    }

    fn bound(&mut self, host: usize) -> EvictionCost {
        if self.cloud.places[host].most == 0 {
            return EvictionCost::MAX;
        }
        self.fill(host, 1);
        lower_bound(&self.columns.problem(&self.host))
    }

    fn load(&mut self, host: usize, count: u32) -> Option<HostProblem<'_>> {
        self.loads += 1;
        if count > self.cloud.places[host].most {
            return None;
        }
        self.fill(host, count);
        Some(HostProblem {
            problem: self.columns.problem(&self.host),
            groups: &self.groups,
        })
    }
}

/// How many instances each host gets, and the victims as (host, position).
pub type Choice = (BTreeMap<usize, u32>, Vec<(usize, usize)>);

impl Cloud {
    pub fn deficit(&self, host: usize, count: u32) -> Vec<i64> {
        let free = &self.places[host].free;
        self.need
            .iter()
            .zip(free)
            .map(|(need, free)| need * i64::from(count) - free)
            .collect()
    }

    pub fn solve(&self, limits: SearchLimits) -> (JointOutcome, usize) {
        let steps: Vec<EvictionCost> = self
            .steps
            .iter()
            .copied()
            .map(EvictionCost::from_micros)
            .collect();
        let problem = JointProblem {
            count: self.count,
            limits: &self.limits,
            steps: &steps,
        };
        let mut asked = PreferredHosts::new(self);
        let (outcome, _) = solve_joint(&problem, &mut asked, limits).unwrap();
        (outcome, asked.loads)
    }

    pub fn candidate(&self, (host, at): (usize, usize)) -> &Candidate {
        &self.places[host].candidates[at]
    }

    /// Cost with surcharge and number of victims; `None` if a budget is broken.
    pub fn price(&self, victims: &[(usize, usize)]) -> Option<(u64, usize)> {
        for (key, &limit) in self.limits.iter().enumerate() {
            let members = victims
                .iter()
                .filter(|&&v| self.candidate(v).budgets.contains(&(key as u32)));
            if members.count() > limit as usize {
                return None;
            }
        }
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        let mut micros = 0;
        for &(host, at) in victims {
            let count = counts.entry(self.places[host].groups[at]).or_default();
            micros += self.candidate((host, at)).micros
                + self
                    .steps
                    .get(*count)
                    .or_else(|| self.steps.last())
                    .copied()
                    .unwrap_or(0);
            *count += 1;
        }
        Some((micros, victims.len()))
    }

    /// How many instances a host takes without these victims.
    pub fn takes(&self, host: usize, victims: &[(usize, usize)]) -> u32 {
        let fits = |count: u32| {
            self.deficit(host, count)
                .iter()
                .enumerate()
                .all(|(class, &deficit)| {
                    let freed = victims
                        .iter()
                        .filter(|v| v.0 == host)
                        .map(|&v| self.candidate(v).resources[class]);
                    freed.sum::<i64>() >= deficit
                })
        };
        (0..=self.places[host].most.min(self.count))
            .take_while(|&count| count == 0 || fits(count))
            .last()
            .unwrap_or(0)
    }

    pub fn brute_force(&self) -> Option<(u64, usize)> {
        let all: Vec<(usize, usize)> = (0..self.places.len())
            .flat_map(|h| (0..self.places[h].candidates.len()).map(move |at| (h, at)))
            .collect();
        assert!(all.len() <= 14);
        let sets = (0u32..1 << all.len()).map(|bits| {
            (0..all.len())
                .filter(|i| bits >> i & 1 == 1)
                .map(|i| all[i])
                .collect::<Vec<_>>()
        });
        sets.filter(|set| {
            (0..self.places.len())
                .map(|host| self.takes(host, set))
                .sum::<u32>()
                >= self.count
        })
        .filter_map(|set| self.price(&set))
        .min()
    }

    /// Checks all that must hold of any answer; gives its price and counts.
    pub fn checked(&self, outcome: &JointOutcome) -> Option<((u64, usize), Choice)> {
        let JointOutcome::Solved(solution) = outcome else {
            return None;
        };
        let victims: Vec<(usize, usize)> = solution
            .shares
            .iter()
            .flat_map(|share| share.victims.iter().map(|&v| (share.host, v as usize)))
            .collect();
        let mut distinct = victims.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), victims.len(), "a victim is taken twice");
        let counts: BTreeMap<usize, u32> = solution
            .shares
            .iter()
            .map(|share| (share.host, share.count))
            .collect();
        assert_eq!(counts.len(), solution.shares.len());
        assert_eq!(counts.values().sum::<u32>(), self.count, "all or nothing");
        for (&host, &count) in &counts {
            assert!(
                self.takes(host, &victims) >= count,
                "host {host} does not hold {count}"
            );
        }
        for left_out in 0..victims.len() {
            let mut fewer = victims.clone();
            let (host, _) = fewer.remove(left_out);
            assert!(
                self.takes(host, &fewer) < counts[&host],
                "{:?} is idle",
                victims[left_out]
            );
        }
        let price = self.price(&victims).expect("budgets are kept");
        assert_eq!(solution.cost.micros(), price.0);
        assert!(solution.lower_bound <= solution.cost);
        assert!(!solution.optimal || solution.lower_bound == solution.cost);
        Some((price, (counts, victims)))
    }
}

/// Hosts of mixed flavors without room, for instances of 8 VCPUs.
pub fn saturated(seed: u64, hosts: usize, candidates: usize, count: u32) -> Cloud {
    let mut rng = seeded(seed);
    let places = (0..hosts)
        .map(|_| {
            let host = super::mixed_flavors(&mut rng, candidates);
            let groups = (0..candidates).map(|_| rng.random_range(0..5)).collect();
            Place {
                free: vec![0; 3],
                most: count,
                candidates: host.candidates,
                groups,
            }
        })
        .collect();
    Cloud {
        places,
        need: vec![8, 16_384, 160],
        count,
        limits: Vec::new(),
        steps: Vec::new(),
    }
}
