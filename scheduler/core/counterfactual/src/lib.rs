//! Counterfactuals of a stored decision: which host would have been chosen without one of the
//! weighers, whether the request needed the eviction of servers, and what one more host would have
//! changed. Pure, and the same for both clouds.
//!
//! Weighers are normalised one by one over all hosts, so the others' numbers stay what they are
//! without one of them. A decision keeps the best hosts only; where a host that was not kept could
//! have won, the answer says that it is not certain.

use ebbtide_model::decision::{Explanation, InstanceExplanation, RankedHost};

/// The policy that compares eviction costs before weights.
const TIERED: &str = "tiered";

/// How much of a sum of weights rounding may change.
const ROUNDING: f64 = 1e-9;

/// Which host would have been chosen without a weigher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithoutWeigher {
    pub weigher: String,
    /// The best hosts without it. Several weigh the same; the order of registration, which the
    /// decision does not have, chooses among them.
    pub hosts: Vec<String>,
    /// False if a host that was not kept, or one that waits for capacity, may change that.
    pub certain: bool,
}

/// One for each weigher that counted, in the order of the weighers. `waits`: the server has to wait
/// for capacity.
///
/// Empty for a request for several instances, because the first host decides about the others, for
/// a request without a host, and for a reader who may not see weights.
#[must_use]
pub fn without_weighers(explanation: &Explanation, waits: bool) -> Vec<WithoutWeigher> {
    let [instance] = explanation.instances.as_slice() else {
        return Vec::new();
    };
    let Some(chosen) = instance.ranking.iter().find(|host| host.chosen) else {
        return Vec::new();
    };
    let rivals = Rivals::of(instance, chosen, explanation.policy == TIERED, waits);
    let counts = |at: &usize| rivals.hosts.iter().any(|host| multiplier(host, *at) != 0.0);
    let weighers = chosen.weights.iter().enumerate();
    weighers
        .filter(|(at, _)| counts(at))
        .map(|(at, weight)| rivals.without(at, &weight.weigher))
        .collect()
}

/// Whether the request would certainly have found no host if no server could be preempted.
/// `victims`: how many leave for it.
#[must_use]
pub fn needs_victims(explanation: &Explanation, victims: usize) -> bool {
    // With this policy hosts with room come first, so no other host had any.
    victims > 0 && explanation.policy == TIERED
}

/// The host of which one more, without servers, would have had room without a victim, for a request
/// for one server: that on which servers leave. It passes the filters, and all that it has is at
/// least what its victims leave. `None`: that is not certain.
#[must_use]
pub fn one_more_host(explanation: &Explanation, victims: usize) -> Option<&str> {
    let [instance] = explanation.instances.as_slice() else {
        return None;
    };
    let chosen = instance.ranking.iter().find(|host| host.chosen)?;
    needs_victims(explanation, victims).then_some(chosen.host.as_str())
}

/// The hosts that weights alone choose from.
struct Rivals<'a> {
    hosts: Vec<&'a RankedHost>,
    /// No such host is missing.
    complete: bool,
    /// Weights alone choose among them.
    equal: bool,
}

fn multiplier(host: &RankedHost, weigher: usize) -> f64 {
    host.weights
        .get(weigher)
        .map_or(0.0, |weight| weight.multiplier)
}

impl<'a> Rivals<'a> {
    fn of(
        instance: &'a InstanceExplanation,
        chosen: &'a RankedHost,
        tiered: bool,
        waits: bool,
    ) -> Self {
        let price = |host: &RankedHost| (host.eviction_cost, host.victims.len());
        let same = |host: &&RankedHost| !tiered || price(host) == price(chosen);
        let hosts: Vec<&RankedHost> = instance.ranking.iter().filter(same).collect();
        let kept = u32::try_from(instance.ranking.len()).unwrap_or(u32::MAX);
        Self {
            complete: instance.ranked <= kept || hosts.len() < instance.ranking.len(),
            // A decision does not say which hosts without victims wait for others to leave, and
            // those come behind the ones that do not.
            // Of one whose claim was refused the decision does not say what else was tried.
            equal: (!tiered || waits || !chosen.victims.is_empty() || hosts.len() == 1)
                && hosts.iter().all(|host| host.weight <= chosen.weight),
            hosts,
        }
    }

    fn without(&self, weigher: usize, name: &str) -> WithoutWeigher {
        // In the order in which the decision added them up: another one would round differently.
        let total = |host: &RankedHost| {
            host.weights
                .iter()
                .enumerate()
                .fold(0.0, |sum, (at, weight)| {
                    let counts = if at == weigher {
                        0.0
                    } else {
                        weight.multiplier
                    };
                    sum + counts * weight.normalised
                })
        };
        let totals = self
            .hosts
            .iter()
            .map(|host| (total(host), host.host.clone()));
        let totals: Vec<(f64, String)> = totals.collect();
        let best = totals
            .iter()
            .map(|(total, _)| *total)
            .fold(f64::NEG_INFINITY, f64::max);
        let ties = totals.into_iter().filter(|(total, _)| *total == best);
        WithoutWeigher {
            weigher: name.to_owned(),
            hosts: ties.map(|(_, host)| host).collect(),
            certain: self.equal && (self.complete || best > self.most_of_others(weigher)),
        }
    }

    /// The most that a host which was not kept may weigh without a weigher: it weighed no more than
    /// the last one that was kept, and the weigher gave it something between nothing and all.
    fn most_of_others(&self, weigher: usize) -> f64 {
        let multipliers = self.hosts.iter().map(|host| multiplier(host, weigher));
        let lowest = multipliers.clone().fold(f64::INFINITY, f64::min);
        let highest = multipliers.fold(f64::NEG_INFINITY, f64::max);
        if lowest != highest {
            // Aggregates say how much it counts, and those of the others are not known.
            return f64::INFINITY;
        }
        let last = self
            .hosts
            .iter()
            .map(|host| host.weight)
            .fold(f64::INFINITY, f64::min);
        let most = last + (-lowest).max(0.0);
        // Sums in another order differ by a few last bits.
        most + ROUNDING * (1.0 + most.abs())
    }
}

#[cfg(test)]
mod tests;
