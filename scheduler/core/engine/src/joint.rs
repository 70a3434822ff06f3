//! Joint placement of several instances that need victims: the optimum over hosts and victims.
//!
//! When no host has free capacity left, the remaining instances are placed together. The search
//! chooses how many instances each host gets and which victims leave, so that all victims together
//! cost least, and then are fewest. Budgets hold over all hosts, and the surcharge counts over all
//! hosts. Among equal choices, hosts that Nova's weights prefer get as many instances as possible.
//! The search itself is in `ebbtide-solver`; this module presents the hosts to it.
//!
//! Before that, the engine uses free capacity, one instance after another as Nova does it. This
//! does not raise the cost: a choice that leaves free capacity unused is no cheaper than the same
//! choice with one instance moved to that capacity.

use crate::fast;
use crate::filters::{Pipeline, most_members};
use crate::plugins::DecideFailure;
use crate::ranking::{HostWeights, RankedCandidate, Tier, Tools, weigh};
use crate::state::DecisionState;
use crate::table::{HostIndex, Slot};
use crate::victims::VictimSearch;
use crate::{EngineError, RankingPolicy};
use ebbtide_model::decision::Weight;
use ebbtide_solver::{
    EvictionCost, HostProblem, Hosts, JointOutcome, JointProblem, MAX_JOINT, SearchLimits,
    solve_joint,
};

/// What one host gives.
pub(crate) struct JointShare {
    pub(crate) host: HostIndex,
    /// How many more instances it gets.
    pub(crate) count: usize,
    pub(crate) victims: Vec<(Slot, EvictionCost)>,
    /// How Nova's weights see the host.
    pub(crate) total: f64,
    pub(crate) weights: Vec<Weight>,
}

/// The answer.
pub(crate) enum JointPlacement {
    /// Everything has a place.
    Placed {
        /// By preference.
        shares: Vec<JointShare>,
        /// No limit has cut the search.
        optimal: bool,
        /// No choice costs less, surcharge included.
        lower_bound: EvictionCost,
    },
    /// It was not found out; no choice costs less than this.
    Open(EvictionCost),
    /// There is no such choice.
    Impossible,
}

/// Whether what is left of a request is placed together: with the policy that promises the least
/// cost, and where there is something to join. What another component judges is placed one after
/// another.
pub(crate) fn applies(
    tools: &Tools<'_>,
    state: &DecisionState<'_>,
    left: usize,
    tier: Tier,
) -> bool {
    let tiered = tools.engine.config().policy == RankingPolicy::Tiered;
    let sums = state.host_needs().is_none();
    tiered && sums && state.ask.bundle == 1 && left > 1 && tier == Tier::Evicts
}

/// Places `count` more instances on the hosts that pass the filters, none of which has room.
pub(crate) fn place_together(
    tools: &mut Tools<'_>,
    state: &DecisionState<'_>,
    pipeline: &Pipeline,
    count: usize,
) -> Result<JointPlacement, DecideFailure> {
    let Some(count) = u32::try_from(count).ok().filter(|c| *c <= MAX_JOINT) else {
        return Ok(JointPlacement::Open(EvictionCost::ZERO));
    };
    let (engine, broken) = (tools.engine, tools.broken);
    let known = fast::lower_bounds(tools, state, pipeline)?;
    let hosts: Vec<HostIndex> = match &known {
        Some(known) => known.iter().map(|(host, _)| *host).collect(),
        None => pipeline.next(fast::plugins(tools), state)?.hosts,
    };
    if known.is_none() {
        let all = hosts.iter().copied();
        tools.search.prepare(engine, broken, state, all)?;
    }
    let places: Vec<RankedCandidate> = hosts
        .into_iter()
        .map(|host| RankedCandidate {
            host,
            tier: Tier::Evicts,
            eviction: None,
        })
        .collect();
    let weighed = weigh(engine, broken, state, &places)?;
    tools.search.learn_surcharge(engine, broken)?;
    let steps = tools.search.steps().to_vec();
    let limits = SearchLimits {
        max_nodes: tools.search.nodes_left(),
        ..SearchLimits::DEFAULT
    };
    let problem = JointProblem {
        count,
        limits: state.limits(),
        steps: &steps,
    };
    let mut asked = PreferredHosts {
        search: &mut tools.search,
        state,
        places: &places,
        weighed: &weighed,
        known: known.as_deref(),
        truncated: false,
    };
    let solved = solve_joint(&problem, &mut asked, limits);
    let truncated = asked.truncated;
    let (outcome, nodes) =
        solved.map_err(|error| EngineError::Internal(format!("joint victim search: {error}")))?;
    tools.search.spend(nodes);
    let solution = match outcome {
        JointOutcome::Solved(solution) => solution,
        JointOutcome::Undecided { lower_bound } if !truncated => {
            return Ok(JointPlacement::Open(lower_bound));
        }
        JointOutcome::Infeasible if !truncated => return Ok(JointPlacement::Impossible),
        JointOutcome::Undecided { .. } | JointOutcome::Infeasible => {
            return Ok(JointPlacement::Open(EvictionCost::ZERO));
        }
    };
    let shares = solution.shares.iter().map(|share| {
        let position = weighed.order[share.host];
        let host = places[position].host;
        let victims = tools
            .search
            .named(state, host, i64::from(share.count), &share.victims);
        JointShare {
            host,
            count: share.count as usize,
            victims,
            total: weighed.totals[position],
            weights: weighed.weights(position),
        }
    });
    Ok(JointPlacement::Placed {
        shares: shares.collect(),
        optimal: solution.optimal && !truncated,
        lower_bound: if truncated {
            EvictionCost::ZERO
        } else {
            solution.lower_bound
        },
    })
}

/// The hosts as the solver asks for them: by preference.
struct PreferredHosts<'r, 's> {
    search: &'r mut VictimSearch,
    state: &'r DecisionState<'s>,
    places: &'r [RankedCandidate],
    weighed: &'r HostWeights,
    /// Bounds by place, if they are known without its instances.
    known: Option<&'r [(HostIndex, EvictionCost)]>,
    /// A host had more candidates than the solver takes.
    truncated: bool,
}

impl PreferredHosts<'_, '_> {
    fn host(&self, number: usize) -> HostIndex {
        self.places[self.weighed.order[number]].host
    }
}

impl Hosts for PreferredHosts<'_, '_> {
    fn count(&self) -> usize {
        self.places.len()
    }

    fn bound(&mut self, host: usize) -> EvictionCost {
        match self.known {
            Some(known) => known[self.weighed.order[host]].1,
            None => self.search.bound(self.state, self.host(host)),
        }
    }

    fn load(&mut self, host: usize, count: u32) -> Option<HostProblem<'_>> {
        let host = self.host(host);
        if most_members(self.state, host).is_some_and(|most| count > most) {
            return None;
        }
        let (problem, truncated) = self.search.host_problem(self.state, host, i64::from(count));
        self.truncated |= truncated;
        Some(problem)
    }
}
