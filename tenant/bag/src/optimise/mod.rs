//! Better maps than the greedy ones, never worse.

mod exact;
mod pack;
mod search;

use crate::error::BagError;
use crate::greedy::{greedy, literal};
use crate::input::{Bag, Rules};
use crate::map::{Market, Vm};
use crate::plan::{Method, Plan, PlannedVm};

/// How much is done to find a cheap plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// The paper's Algorithm 1 as printed, with backups by Algorithm 2.
    Literal,
    /// A greedy map that differs from Algorithm 1 in the choice of the instance (see `greedy.rs`),
    /// with backups by Algorithm 2.
    Greedy,
    /// Many packings (each type, each number of slots), then a local search of so many rounds; all
    /// plans of very small bags.
    Search {
        /// Rounds of the search; each takes a few instances apart and puts their tasks together
        /// anew.
        rounds: u32,
        /// What chance begins with.
        seed: u64,
    },
}

impl Effort {
    /// A search that takes well under a second for hundreds of tasks, and about a second for ten
    /// thousand.
    #[must_use]
    pub fn usual(seed: u64) -> Self {
        Self::Search { rounds: 400, seed }
    }
}

/// Makes both maps. The same bag and effort give the same plan.
#[must_use]
pub fn plan(bag: &Bag, effort: Effort) -> Plan {
    planned(bag, Market::Preemptible, effort)
}

/// The plan without anything preemptible, to compare with.
#[must_use]
pub fn plan_on_demand(bag: &Bag, effort: Effort) -> Plan {
    planned(bag, Market::OnDemand, effort)
}

fn planned(bag: &Bag, market: Market, effort: Effort) -> Plan {
    if effort == Effort::Literal {
        return complete(bag, literal(bag, market), Method::Literal);
    }
    let first = complete(bag, greedy(bag, market), Method::Greedy);
    let Effort::Search { rounds, seed } = effort else {
        return first;
    };
    // What is searched is never dearer than the paper's map either.
    let paper = complete(bag, literal(bag, market), Method::Literal);
    let first = cheaper(bag, first, paper);
    if let Some(vms) = exact::best(bag, market) {
        let best = Plan::new(bag, vms, Method::Exact);
        // The greedy plan may order the tasks of a core in another way.
        return cheaper(bag, best, first);
    }
    let mut start = cheaper(bag, pack::best(bag, market), first);
    if market == Market::Preemptible {
        // With a tight deadline the copies cost more than they insure.
        start = cheaper(bag, start, pack::best(bag, Market::OnDemand));
    }
    search::improve(bag, market, start, rounds, seed)
}

fn complete(bag: &Bag, vms: Vec<Vm>, method: Method) -> Plan {
    let vms = vms.into_iter().map(|vm| PlannedVm::new(bag, vm)).collect();
    Plan::new(bag, vms, method)
}

/// The cheaper plan; the first of equals.
fn cheaper(bag: &Bag, a: Plan, b: Plan) -> Plan {
    if b.price.weighed(bag) < a.price.weighed(bag) {
        b
    } else {
        a
    }
}

/// The share of the deadline with the cheapest plan.
#[derive(Debug, Clone, PartialEq)]
pub struct BestShare {
    pub share: f64,
    pub plan: Plan,
    /// Every share that was tried, with the quiet and the weighed price of its plan, millionths.
    pub tried: Vec<(f64, u64, u64)>,
}

/// Shares that are tried.
const SHARES: [f64; 14] = [
    0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 1.0,
];

/// Finds the share of the deadline up to which preemptible instances are best used (the paper's
/// future work): the cheapest by [`crate::PlanPrice::weighed`]; of equals the smallest, which
/// leaves most time to wait out hibernations.
///
/// # Errors
/// None, if the bag is usable: the share is no part of what makes a deadline possible.
pub fn best_share(bag: &Bag, effort: Effort) -> Result<BestShare, BagError> {
    let mut best: Option<BestShare> = None;
    let mut tried = Vec::with_capacity(SHARES.len());
    for share in SHARES {
        let rules = Rules {
            share,
            ..*bag.rules()
        };
        let bag = bag.with_rules(rules)?;
        let plan = plan(&bag, effort);
        let weighed = plan.price.weighed(&bag);
        tried.push((share, plan.price.quiet(), weighed));
        if best
            .as_ref()
            .is_none_or(|b| weighed < b.plan.price.weighed(&bag))
        {
            best = Some(BestShare {
                share,
                plan,
                tried: Vec::new(),
            });
        }
    }
    match best {
        Some(best) => Ok(BestShare { tried, ..best }),
        None => Err(BagError::Nothing("share")),
    }
}
