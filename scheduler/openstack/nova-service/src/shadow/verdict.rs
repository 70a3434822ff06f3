//! How a shadow's decision and the answer of nova-scheduler relate. Pure.

use ebbtide_model::decision::{InstanceExplanation, RankedHost};
use ebbtide_model::{Comparison, ComparisonVerdict, Decision, DecisionOutcome, Placement};
use std::collections::BTreeSet;

/// Weights closer than this are equal: Nova adds Python floats in another order.
const EQUAL: f64 = 1e-9;

/// What is known of nova-scheduler's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NovaAnswer {
    /// What nova-scheduler gave.
    Hosts {
        /// The host of each server, in the order of the request; `None`: Nova gave it none.
        hosts: Vec<Option<String>>,
        /// Some of it was claimed before the shadow had decided, and took room from it.
        raced: bool,
        /// Hosts that reported something else after the shadow had decided and before it knew the
        /// answer. nova-scheduler may have read that.
        changed: BTreeSet<String>,
    },
    /// It cannot be known, in words.
    Unknown(&'static str),
}

/// Compares. `beside`: requests without an answer when the shadow decided.
pub(super) fn compare(decision: &Decision, answer: &NovaAnswer, beside: u32) -> Comparison {
    let (verdict, reason, hosts) = match answer {
        NovaAnswer::Unknown(why) => (
            ComparisonVerdict::NotCompared,
            (*why).to_owned(),
            Vec::new(),
        ),
        NovaAnswer::Hosts {
            hosts,
            raced,
            changed,
        } => {
            let not = |why: &str| (ComparisonVerdict::NotCompared, why.to_owned());
            let (verdict, reason) = match judge(decision, hosts) {
                (ComparisonVerdict::Same, reason) => (ComparisonVerdict::Same, reason),
                _ if *raced => not("nova-scheduler claimed before the shadow had decided"),
                // What was weighed was not what was there when the host was to be taken.
                _ if !decision.trace.refused_claims.is_empty() => {
                    not("a host changed while the shadow decided")
                }
                (ComparisonVerdict::Different | ComparisonVerdict::EqualWeight, _)
                    if differs_at(decision, hosts).any(|host| changed.contains(host)) =>
                {
                    not("a host reported something else while both decided")
                }
                judged => judged,
            };
            let names = hosts.iter().map(|host| host.clone().unwrap_or_default());
            (verdict, reason, names.collect())
        }
    };
    Comparison {
        verdict,
        hosts,
        reason,
        requests_beside: beside,
    }
}

fn judge(decision: &Decision, theirs: &[Option<String>]) -> (ComparisonVerdict, String) {
    let none = theirs.iter().all(Option::is_none);
    match &decision.outcome {
        DecisionOutcome::NoValidHost(_) if none => (ComparisonVerdict::Same, String::new()),
        DecisionOutcome::NoValidHost(refusal) => (
            ComparisonVerdict::NovaOnly,
            format!("Ebbtide found no host: {}", refusal.reason),
        ),
        DecisionOutcome::Placed(ours) if none => (ComparisonVerdict::EbbtideOnly, room(ours)),
        DecisionOutcome::Placed(ours) => {
            let of_ours = |at: usize| ours.get(at).map(|placement| placement.host.as_str());
            let mut differing =
                (0..theirs.len()).filter(|at| theirs[*at].as_deref() != of_ours(*at));
            let Some(at) = differing.next() else {
                return (ComparisonVerdict::Same, String::new());
            };
            match theirs[at].as_deref() {
                Some(host) => why_not(decision.explanation.instances.get(at), host),
                None => (
                    ComparisonVerdict::Different,
                    "not all servers have a host: nova-scheduler placed a part of them".to_owned(),
                ),
            }
        }
    }
}

/// The hosts that only one of both has chosen for a server.
fn differs_at<'a>(
    decision: &'a Decision,
    theirs: &'a [Option<String>],
) -> impl Iterator<Item = &'a str> {
    let ours: &[Placement] = match &decision.outcome {
        DecisionOutcome::Placed(ours) => ours,
        DecisionOutcome::NoValidHost(_) => &[],
    };
    let pairs = ours.iter().zip(theirs);
    let pairs = pairs.map(|(ours, theirs)| (ours.host.as_str(), theirs.as_deref()));
    let differing = pairs.filter(|(ours, theirs)| Some(*ours) != *theirs);
    differing.flat_map(|(ours, theirs)| std::iter::once(ours).chain(theirs))
}

/// Why Ebbtide has hosts where nova-scheduler has none.
fn room(ours: &[Placement]) -> String {
    let victims: usize = ours.iter().map(|placement| placement.victims.len()).sum();
    match victims {
        0 if ours.iter().any(|placement| placement.waits_for_room) => {
            "preemptible servers that leave already make room".to_owned()
        }
        0 => "nova-scheduler found no host".to_owned(),
        n => format!("preemptible servers would make room: {n} of them"),
    }
}

/// Why Ebbtide did not choose the host of nova-scheduler.
fn why_not(instance: Option<&InstanceExplanation>, host: &str) -> (ComparisonVerdict, String) {
    let different = |reason: String| (ComparisonVerdict::Different, reason);
    let Some(instance) = instance else {
        return different("the decision does not say why".to_owned());
    };
    let chosen = instance.ranking.iter().find(|ranked| ranked.chosen);
    let theirs = instance.ranking.iter().find(|ranked| ranked.host == host);
    if let (Some(chosen), Some(theirs)) = (chosen, theirs) {
        return weights(chosen, theirs);
    }
    let steps = instance.filters.iter();
    let mut dropped = steps.flat_map(|step| step.dropped.iter().map(move |d| (step, d)));
    match dropped.find(|(_, dropped)| dropped.host == host) {
        Some((step, dropped)) => different(format!(
            "{} dropped the host: {host}: {}",
            step.filter, dropped.reason
        )),
        None => different(format!("the host is not among the best: {host}")),
    }
}

fn weights(chosen: &RankedHost, theirs: &RankedHost) -> (ComparisonVerdict, String) {
    let words = format!(
        "{} weighs {}, {} weighs {}",
        chosen.host, chosen.weight, theirs.host, theirs.weight
    );
    if (chosen.weight - theirs.weight).abs() <= EQUAL {
        (
            ComparisonVerdict::EqualWeight,
            format!("the weights are equal: {words}"),
        )
    } else {
        (
            ComparisonVerdict::Different,
            format!("the weights differ: {words}"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shadow::kit::{self, placed};
    use ebbtide_model::decision::{DroppedHost, Explanation, FilterStep};
    use ebbtide_model::{NoValidHost, RefusedClaim, ServerId};

    fn ranked(host: &str, weight: f64, chosen: bool) -> RankedHost {
        RankedHost {
            host: host.to_owned(),
            chosen,
            eviction_cost: None,
            victims: Vec::new(),
            weight,
            weights: Vec::new(),
        }
    }

    /// `a` is chosen, `b` has its weight, `c` less, `d` was dropped.
    fn decision(outcome: DecisionOutcome) -> Decision {
        let instance = InstanceExplanation {
            filters: vec![FilterStep {
                filter: "ComputeFilter".to_owned(),
                before: 4,
                after: 3,
                dropped: vec![DroppedHost {
                    host: "d".to_owned(),
                    reason: "its service is down".to_owned(),
                }],
            }],
            ranking: vec![
                ranked("a", 1.5, true),
                ranked("b", 1.5, false),
                ranked("c", 1.0, false),
            ],
            ranked: 3,
        };
        let explanation = Explanation {
            instances: vec![instance.clone(), instance],
            ..Explanation::default()
        };
        kit::decision(outcome, explanation)
    }

    fn verdict(outcome: DecisionOutcome, theirs: &[&str]) -> (ComparisonVerdict, String) {
        let hosts = theirs.iter().map(|host| Some((*host).to_owned()));
        let hosts = hosts.map(|host| host.filter(|host| !host.is_empty()));
        let hosts: Vec<Option<String>> = hosts.collect();
        let raced = NovaAnswer::Hosts {
            hosts: hosts.clone(),
            raced: true,
            changed: BTreeSet::new(),
        };
        let answer = NovaAnswer::Hosts {
            hosts,
            raced: false,
            changed: BTreeSet::from(["elsewhere".to_owned()]),
        };
        let late = compare(&decision(outcome.clone()), &raced, 2).verdict;
        let found = compare(&decision(outcome), &answer, 2);
        assert_eq!(found.requests_beside, 2);
        assert_eq!(found.hosts, theirs);
        let same = found.verdict == ComparisonVerdict::Same;
        assert_eq!(late == ComparisonVerdict::Same, same);
        assert!(same || late == ComparisonVerdict::NotCompared);
        (found.verdict, found.reason)
    }

    fn refused() -> DecisionOutcome {
        DecisionOutcome::NoValidHost(NoValidHost {
            reason: "Placement has no candidate".to_owned(),
            placed_before: 0,
            dropped: Vec::new(),
            hosts: 4,
        })
    }

    #[test]
    fn equal_answers_need_no_reason() {
        use ComparisonVerdict::Same;
        let one = || DecisionOutcome::Placed(vec![placed("a", 0)]);
        assert_eq!(verdict(one(), &["a"]), (Same, String::new()));
        assert_eq!(verdict(refused(), &[""]), (Same, String::new()));
        let two = DecisionOutcome::Placed(vec![placed("a", 0), placed("b", 0)]);
        assert_eq!(verdict(two, &["a", "b"]), (Same, String::new()));
    }

    #[test]
    fn each_difference_has_its_verdict_and_its_reason() {
        use ComparisonVerdict::{Different, EbbtideOnly, EqualWeight, NovaOnly};
        let one = || DecisionOutcome::Placed(vec![placed("a", 0)]);
        let cases = [
            (one(), vec!["b"], EqualWeight, "the weights are equal"),
            (
                one(),
                vec!["c"],
                Different,
                "the weights differ: a weighs 1.5, c weighs 1",
            ),
            (
                one(),
                vec!["d"],
                Different,
                "ComputeFilter dropped the host: d: its service is down",
            ),
            (
                one(),
                vec!["e"],
                Different,
                "the host is not among the best: e",
            ),
            (one(), vec![""], EbbtideOnly, "nova-scheduler found no host"),
            (
                DecisionOutcome::Placed(vec![placed("a", 2)]),
                vec![""],
                EbbtideOnly,
                "preemptible servers would make room: 2 of them",
            ),
            (
                refused(),
                vec!["a"],
                NovaOnly,
                "Ebbtide found no host: Placement has no candidate",
            ),
            (
                DecisionOutcome::Placed(vec![placed("a", 0), placed("b", 0)]),
                vec!["a", ""],
                Different,
                "not all servers have a host",
            ),
        ];
        for (ours, theirs, expected, words) in cases {
            let (found, reason) = verdict(ours, &theirs);
            assert_eq!(found, expected, "{theirs:?}: {reason}");
            assert!(reason.starts_with(words), "{theirs:?}: {reason}");
        }
    }

    #[test]
    fn a_host_that_reported_while_both_decided_explains_a_difference() {
        use ComparisonVerdict::{Different, NotCompared, Same};
        let verdict = |theirs: &str, changed: &str| {
            let answer = NovaAnswer::Hosts {
                hosts: vec![Some(theirs.to_owned())],
                raced: false,
                changed: BTreeSet::from([changed.to_owned()]),
            };
            let ours = decision(DecisionOutcome::Placed(vec![placed("a", 0)]));
            compare(&ours, &answer, 0).verdict
        };
        assert_eq!(verdict("a", "a"), Same);
        assert_eq!(verdict("c", "a"), NotCompared);
        assert_eq!(verdict("c", "c"), NotCompared);
        assert_eq!(verdict("c", "b"), Different);
        let mut moved = decision(DecisionOutcome::Placed(vec![placed("a", 0)]));
        moved.trace.refused_claims.push(RefusedClaim {
            server_id: ServerId(uuid::Uuid::nil()),
            host: "b".to_owned(),
            reason: "not tried: the host has changed since it was read".to_owned(),
        });
        let answer = |host: &str| NovaAnswer::Hosts {
            hosts: vec![Some(host.to_owned())],
            raced: false,
            changed: BTreeSet::new(),
        };
        assert_eq!(compare(&moved, &answer("c"), 0).verdict, NotCompared);
        assert_eq!(compare(&moved, &answer("a"), 0).verdict, Same);
    }

    #[test]
    fn an_unknown_answer_is_not_judged() {
        let one = decision(DecisionOutcome::Placed(vec![placed("a", 0)]));
        let found = compare(&one, &NovaAnswer::Unknown("a rebuild claims nothing"), 0);
        assert_eq!(found.verdict, ComparisonVerdict::NotCompared);
        assert_eq!(found.reason, "a rebuild claims nothing");
        assert!(found.hosts.is_empty());
    }
}
