//! A plan: both maps, what they cost, and how far that is from what no plan can do better.

use crate::backup::{Backup, backups, price_of_copies};
use crate::bound;
use crate::input::Bag;
use crate::map::{Market, Vm, sum};
use serde::{Deserialize, Serialize};
use std::ops::{Add, AddAssign};

/// What an instance or a plan costs, millionths of the currency unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanPrice {
    /// The primary map, if nothing hibernates.
    pub primary: u64,
    /// Copies that start although nothing hibernates.
    pub copies: u64,
    /// All backups, if everything hibernates and nothing comes back.
    pub backups: u64,
}

impl PlanPrice {
    /// What is paid if nothing hibernates.
    #[must_use]
    pub fn quiet(&self) -> u64 {
        self.primary.saturating_add(self.copies)
    }

    /// What plans are compared by: the quiet price, and of the backups the share that the rules'
    /// risk says.
    #[must_use]
    pub fn weighed(&self, bag: &Bag) -> u64 {
        let risk = (self.backups as f64 * bag.rules().risk).round() as u64;
        self.quiet().saturating_add(risk)
    }
}

impl Add for PlanPrice {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            primary: self.primary.saturating_add(other.primary),
            copies: self.copies.saturating_add(other.copies),
            backups: self.backups.saturating_add(other.backups),
        }
    }
}

impl AddAssign for PlanPrice {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// An instance of the primary map with its backups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedVm {
    /// The instance.
    pub vm: Vm,
    /// For every task of a preemptible instance one that takes it over.
    pub backups: Vec<Backup>,
    /// What both cost.
    pub price: PlanPrice,
}

impl PlannedVm {
    /// The instance with its backups and prices.
    #[must_use]
    pub fn new(bag: &Bag, vm: Vm) -> Self {
        let backups = backups(bag, &vm);
        let copies = if backups.iter().any(|b| b.copies) {
            let finishes = vm.finishes(bag);
            let each = backups.iter().map(|b| price_of_copies(bag, b, &finishes));
            sum(each)
        } else {
            0
        };
        let price = PlanPrice {
            primary: vm.price(bag),
            copies,
            backups: sum(backups.iter().map(|b| b.price(bag))),
        };
        Self { vm, backups, price }
    }

    /// The first moment at which one of its backups has to start if none of its tasks is done by
    /// then, seconds since the begin.
    #[must_use]
    pub fn latest_start(&self, bag: &Bag) -> Option<u64> {
        self.backups.iter().map(|b| b.latest_start(bag)).min()
    }
}

/// How a plan was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Algorithm 1 as printed, and Algorithm 2.
    Literal,
    /// Task by task, where the price grows least; backups by Algorithm 2.
    Greedy,
    /// The instances were given; the tasks were dealt to them.
    Given,
    /// A search from many starts; see [`crate::Effort`].
    Search,
    /// All plans were compared: no plan that runs each core's long tasks first is cheaper.
    Exact,
}

impl Method {
    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Literal => "paper",
            Self::Greedy => "greedy",
            Self::Given => "given",
            Self::Search => "search",
            Self::Exact => "exact",
        }
    }
}

/// A plan for a bag. Its deadline is met whatever hibernates, if [`crate::Executor`] carries it out
/// with copies; that is the meaning of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The primary map with its backups.
    pub vms: Vec<PlannedVm>,
    /// The sum over all.
    pub price: PlanPrice,
    /// No plan costs less if nothing hibernates, millionths.
    pub bound: u64,
    /// No backups of the same primary map cost less if all of them are needed, millionths.
    pub backup_bound: u64,
    /// How it was found.
    pub method: Method,
}

impl Plan {
    /// A plan of these instances.
    #[must_use]
    pub fn new(bag: &Bag, vms: Vec<PlannedVm>, method: Method) -> Self {
        let price = vms
            .iter()
            .fold(PlanPrice::default(), |sum, vm| sum + vm.price);
        let backup_bound = sum(vms.iter().map(|planned| {
            let tasks: Vec<usize> = planned.backups.iter().flat_map(Backup::tasks).collect();
            bound::least_price_of_backups(bag, &tasks)
        }));
        Self {
            vms,
            price,
            bound: bound::least_price(bag),
            backup_bound,
            method,
        }
    }

    /// When the last task ends if nothing hibernates, seconds since the begin.
    #[must_use]
    pub fn makespan(&self, bag: &Bag) -> u64 {
        self.vms.iter().map(|p| p.vm.end(bag)).max().unwrap_or(0)
    }

    /// By which share the quiet price is above the bound: at most so much could be saved, 0.1 for a
    /// tenth of the bound.
    #[must_use]
    pub fn gap(&self) -> f64 {
        above(self.price.quiet(), self.bound)
    }

    /// The same for the backups.
    #[must_use]
    pub fn backup_gap(&self) -> f64 {
        above(self.price.backups, self.backup_bound)
    }

    /// The same map bought on demand, without backups: what the paper calls on-demand. Types
    /// without on-demand price stay as they are.
    #[must_use]
    pub fn bought_on_demand(&self, bag: &Bag) -> Self {
        let vms = self.vms.iter().map(|planned| {
            let mut vm = planned.vm.clone();
            if bag.types()[vm.ty].on_demand.is_some() {
                vm.market = Market::OnDemand;
            }
            PlannedVm::new(bag, vm)
        });
        Self::new(bag, vms.collect(), self.method)
    }

    /// The first moment at which a backup has to start, seconds since the begin; `None` if nothing
    /// is preemptible.
    #[must_use]
    pub fn latest_start(&self, bag: &Bag) -> Option<u64> {
        self.vms.iter().filter_map(|p| p.latest_start(bag)).min()
    }

    /// How many instances of each type and market it has, by type.
    #[must_use]
    pub fn counts(&self) -> Vec<(usize, Market, usize)> {
        let mut counts: std::collections::BTreeMap<(usize, Market), usize> =
            std::collections::BTreeMap::new();
        for planned in &self.vms {
            *counts
                .entry((planned.vm.ty, planned.vm.market))
                .or_default() += 1;
        }
        counts
            .into_iter()
            .map(|((ty, market), count)| (ty, market, count))
            .collect()
    }

    /// What is wrong with it: a task that is missing or there twice, cores or memory that are not
    /// enough, an end or a backup that is too late, a task without backup. `None` for every plan
    /// that this crate makes; for tests, and for plans that were stored.
    #[must_use]
    pub fn flaw(&self, bag: &Bag) -> Option<String> {
        let mut seen = vec![false; bag.tasks().len()];
        for (at, planned) in self.vms.iter().enumerate() {
            let vm = &planned.vm;
            for task in vm.tasks() {
                match seen.get_mut(task) {
                    Some(seen) if !*seen => *seen = true,
                    _ => return Some(format!("task {task} is there twice, or not in the bag")),
                }
            }
            if !vm.fits(bag) {
                return Some(format!("instance {at} is too small for its tasks"));
            }
            if vm.end(bag) > bag.end() {
                return Some(format!("instance {at} ends after the deadline"));
            }
            if vm.market == Market::OnDemand {
                continue;
            }
            let mut own: Vec<usize> = vm.tasks().collect();
            let mut covered: Vec<usize> = planned.backups.iter().flat_map(Backup::tasks).collect();
            own.sort_unstable();
            covered.sort_unstable();
            if own != covered {
                return Some(format!(
                    "the backups of instance {at} are not for its tasks"
                ));
            }
            for backup in &planned.backups {
                if !backup.vm().fits(bag) {
                    return Some(format!("a backup of instance {at} is too small"));
                }
                if backup.vm().end(bag) > bag.end() {
                    return Some(format!("a backup of instance {at} takes too long"));
                }
            }
        }
        let missing = seen.iter().position(|seen| !seen)?;
        Some(format!("task {missing} is not planned"))
    }
}

/// By which share a price is above a bound.
fn above(price: u64, bound: u64) -> f64 {
    if bound == 0 {
        return 0.0;
    }
    price as f64 / bound as f64 - 1.0
}
