//! Joint placement of several instances that need victims, compared with the enumeration of all
//! victim sets of all hosts together.

use super::brute_force::{cost, is_candidate, within};
use super::kit::*;
use crate::{Budgets, EngineConfig, HostTable, Instance, PluginFailure, RankingPolicy};
use ebbtide_cost_api::{CostError, CostModule, SetCost, VictimBatch};
use ebbtide_model::{Decision, DecisionOutcome, GroupPolicy};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug, Clone)]
struct Case {
    hosts: Vec<(String, u64)>,
    instances: Vec<Instance>,
    wants: u32,
    times: u128,
    budgets: Vec<Option<u32>>,
    apart: bool,
}

const PROJECTS: [&str; 3] = ["project-a", "project-b", "project-c"];

fn any_case() -> impl Strategy<Value = Case> {
    let instance = (
        0..3_usize,
        1..4_u64,
        0..60_i64,
        0..3_usize,
        prop::bool::weighted(0.8),
    );
    (
        prop::collection::vec(3..8_u64, 1..4),
        prop::collection::vec(instance, 0..9),
        (1..4_u32, 2..5_u128),
        prop::collection::vec(prop::option::weighted(0.5, 0..3_u32), 3),
        prop::bool::weighted(0.25),
    )
        .prop_map(|(sizes, raw, (wants, times), budgets, apart)| {
            let hosts: Vec<(String, u64)> = (sizes.iter().enumerate())
                .map(|(at, size)| (format!("h{at}"), *size))
                .collect();
            let mut left: Vec<u64> = sizes;
            let mut instances = Vec::new();
            for (number, (at, vcpus, minutes, project, preemptible)) in raw.into_iter().enumerate()
            {
                let at = at % hosts.len();
                let Some(rest) = left[at].checked_sub(vcpus) else {
                    continue;
                };
                left[at] = rest;
                let mut instance = spot(number as u128 + 1, &hosts[at].0, vcpus, minutes);
                instance.preemptible = preemptible;
                instance.project_id = PROJECTS[project].to_owned();
                instances.push(instance);
            }
            Case {
                hosts,
                instances,
                wants,
                times,
                budgets,
                apart,
            }
        })
}

impl Case {
    fn table(&self) -> HostTable {
        let hosts: Vec<(&str, u64)> = self
            .hosts
            .iter()
            .map(|(name, size)| (name.as_str(), *size))
            .collect();
        let mut table = cloud(&hosts, &self.instances);
        table.put_group(&group(1, GroupPolicy::AntiAffinity));
        table
    }

    fn budgets(&self) -> Budgets {
        let mut budgets = Budgets::unlimited();
        for (project, limit) in PROJECTS.iter().zip(&self.budgets) {
            if let Some(limit) = limit {
                budgets.limit_project(project, *limit);
            }
        }
        budgets
    }

    fn decide(&self, config: EngineConfig) -> Decision {
        let mut request = wants(self.wants).times(self.times);
        if self.apart {
            request = request.joins(group_id(1));
        }
        try_decide(&engine(config), &self.table(), &self.budgets(), &request).unwrap()
    }

    /// How many instances fit when these have left.
    fn holds(&self, gone: &[&Instance]) -> u128 {
        let on = |name: &str, size: u64| {
            let used = |i: &&Instance| i.host == name && gone.iter().all(|gone| gone.id != i.id);
            let used: u64 = self
                .instances
                .iter()
                .filter(used)
                .map(|i| i.resources.amount("VCPU"))
                .sum();
            let most = u128::from(size.saturating_sub(used) / u64::from(self.wants));
            if self.apart { most.min(1) } else { most }
        };
        self.hosts.iter().map(|(name, size)| on(name, *size)).sum()
    }

    /// The least cost in millionths with the number of victims, by trying all sets.
    fn brute_force(&self, step_seconds: u64) -> Option<(u64, usize)> {
        let candidates: Vec<&Instance> =
            self.instances.iter().filter(|i| is_candidate(i)).collect();
        let budgets = self.budgets();
        let sets = (0_u32..1 << candidates.len()).map(|mask| {
            let chosen = |at: &usize| mask & (1 << at) != 0;
            (0..candidates.len())
                .filter(chosen)
                .map(|at| candidates[at])
                .collect::<Vec<_>>()
        });
        sets.filter(|set| self.holds(set) >= self.times && within(set, &budgets))
            .map(|set| {
                (
                    set.iter().map(|i| cost(i)).sum::<u64>() + surcharge(&set, step_seconds),
                    set.len(),
                )
            })
            .min()
    }
}

/// Millionths for further victims of a project.
fn surcharge(set: &[&Instance], step_seconds: u64) -> u64 {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for victim in set {
        *counts.entry(&victim.project_id).or_default() += 1;
    }
    counts
        .values()
        .map(|n| n * (n - 1) / 2 * step_seconds * 1_000_000)
        .sum()
}

fn agrees(case: &Case, decision: &Decision, step_seconds: u64) -> Result<(), TestCaseError> {
    let expected = case.brute_force(step_seconds);
    let DecisionOutcome::Placed(placements) = &decision.outcome else {
        prop_assert_eq!(expected, None);
        return Ok(());
    };
    let victims: Vec<&Instance> = placements
        .iter()
        .flat_map(|p| &p.victims)
        .map(|victim| {
            case.instances
                .iter()
                .find(|i| i.id == victim.server_id)
                .unwrap()
        })
        .collect();
    let mut ids: Vec<_> = victims.iter().map(|v| v.id).collect();
    ids.sort_unstable();
    ids.dedup();
    prop_assert_eq!(ids.len(), victims.len(), "a victim is taken twice");
    prop_assert!(within(&victims, &case.budgets()), "a budget is broken");
    // Every host holds what it got.
    let mut got: BTreeMap<&str, u128> = BTreeMap::new();
    for placement in placements {
        *got.entry(&placement.host).or_default() += 1;
    }
    for (host, count) in &got {
        let one = Case {
            hosts: case
                .hosts
                .iter()
                .filter(|(name, _)| name == host)
                .cloned()
                .collect(),
            ..case.clone()
        };
        prop_assert!(
            one.holds(&victims) >= *count,
            "{} does not hold {}",
            host,
            count
        );
    }
    let extra = surcharge(&victims, step_seconds);
    let found = (
        victims.iter().map(|v| cost(v)).sum::<u64>() + extra,
        victims.len(),
    );
    prop_assert_eq!(Some(found), expected);
    prop_assert!(decision.explanation.optimal && decision.explanation.gap == 0.0);
    prop_assert_eq!(decision.explanation.surcharge, extra as f64 / 1e6);
    for (told, placement) in decision.explanation.instances.iter().zip(placements) {
        let chosen: Vec<_> = told.ranking.iter().filter(|r| r.chosen).collect();
        prop_assert_eq!(chosen.len(), 1);
        prop_assert_eq!(&chosen[0].host, &placement.host);
    }
    prop_assert_eq!(decision.explanation.instances.len(), placements.len());
    Ok(())
}

fn fairness(seconds: u32) -> EngineConfig {
    EngineConfig {
        cost_module: "fairness".to_owned(),
        fairness_seconds: seconds,
        ..EngineConfig::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_other_hosts_and_victims_cost_less_in_all(case in any_case()) {
        agrees(&case, &case.decide(EngineConfig::default()), 0)?;
    }

    #[test]
    fn fairness_counts_over_all_hosts_and_nothing_costs_less_with_it(case in any_case(), one in any::<bool>()) {
        let case = Case { times: if one { 1 } else { case.times }, ..case };
        agrees(&case, &case.decide(fairness(700)), 700)?;
    }

    #[test]
    fn a_set_cost_by_any_function_is_exact_for_one_and_has_a_true_gap_for_several(case in any_case(), one in any::<bool>()) {
        let case = Case { times: if one { 1 } else { case.times }, ..case };
        let config = EngineConfig { cost_module: "squares".to_owned(), ..EngineConfig::default() };
        let engine = crate::Engine::with_plugins(config, Vec::new(), vec![Arc::new(Squares(700.0))]).unwrap();
        let mut request = wants(case.wants).times(case.times);
        if case.apart {
            request = request.joins(group_id(1));
        }
        let decision = try_decide(&engine, &case.table(), &case.budgets(), &request).unwrap();
        if one {
            agrees(&case, &decision, 700)?;
        } else if let Some((best, _)) = case.brute_force(700) {
            let sum: f64 = decision.victims().map(|(_, v)| v.cost).sum();
            let all = sum + decision.explanation.surcharge;
            prop_assert!(all - decision.explanation.gap <= best as f64 / 1e6 + 1e-6);
            prop_assert!(all >= best as f64 / 1e6 - 1e-6);
        }
    }
}

/// The same surcharge as `fairness`, told as a function of sets; with NaN it misbehaves.
struct Squares(f64);

impl CostModule for Squares {
    fn name(&self) -> &str {
        "squares"
    }

    fn unit(&self) -> &str {
        "seconds"
    }

    fn cost(&self, victims: &VictimBatch<'_>, out: &mut [f64]) -> Result<(), CostError> {
        for (out, age) in out.iter_mut().zip(victims.age_seconds) {
            *out = age % 3600.0;
        }
        Ok(())
    }

    fn set_cost(&self) -> SetCost {
        SetCost::Monotone
    }

    fn surcharge(&self, victims: &VictimBatch<'_>, set: &[usize]) -> Result<f64, CostError> {
        let mut counts: BTreeMap<u32, f64> = BTreeMap::new();
        for &at in set {
            *counts.entry(victims.project[at]).or_default() += 1.0;
        }
        Ok(counts.values().map(|n| n * (n - 1.0) / 2.0 * self.0).sum())
    }
}

#[test]
fn one_victim_more_of_another_project_is_cheaper_than_two_of_one() {
    let of = |project: &str, instance: Instance| Instance {
        project_id: project.to_owned(),
        ..instance
    };
    let table = cloud(
        &[("a", 4)],
        &[
            of("p", spot(1, "a", 2, 1)),
            of("p", spot(2, "a", 2, 2)),
            of("q", spot(3, "a", 2, 9)),
        ][..2],
    );
    let both = decide_with(&engine(fairness(600)), &table, &wants(4));
    assert_eq!(both.explanation.surcharge, 600.0, "there is no other way");
    assert_eq!(
        both.explanation.instances[0].ranking[0].eviction_cost,
        Some(180.0 + 600.0)
    );
    let table = cloud(
        &[("a", 6)],
        &[
            of("p", spot(1, "a", 2, 1)),
            of("p", spot(2, "a", 2, 2)),
            of("q", spot(3, "a", 2, 9)),
        ],
    );
    let spread = decide_with(&engine(fairness(600)), &table, &wants(4));
    assert_eq!(summary(&spread), [("a", vec![1, 3])]);
    assert_eq!(spread.explanation.surcharge, 0.0);
    let cheap = decide_with(&engine(fairness(60)), &table, &wants(4));
    assert_eq!(summary(&cheap), [("a", vec![1, 2])]);
}

#[test]
fn the_cheapest_for_each_is_not_the_cheapest_for_all() {
    // One after another would take 1 on a for the first, and has then no cheap host for the second.
    let table = cloud(
        &[("a", 4), ("b", 4)],
        &[
            spot(1, "a", 2, 10),
            spot(2, "a", 2, 50),
            spot(3, "b", 4, 12),
        ],
    );
    assert_eq!(
        summary(&decide(&table, &wants(2).times(2))),
        [("b", vec![3]), ("b", vec![])]
    );
}

#[test]
fn a_set_cost_that_is_no_number_is_ignored_or_refused() {
    let table = cloud(&[("a", 4)], &[spot(1, "a", 2, 1), spot(2, "a", 2, 2)]);
    let build = |policy| {
        let config = EngineConfig {
            cost_module: "squares".to_owned(),
            plugin_failure: policy,
            ..EngineConfig::default()
        };
        crate::Engine::with_plugins(config, Vec::new(), vec![Arc::new(Squares(f64::NAN))]).unwrap()
    };
    let decision = decide_with(&build(PluginFailure::Ignore), &table, &wants(4));
    assert!(
        decision.explanation.warnings[0].contains("NaN as a surcharge"),
        "{:?}",
        decision.explanation.warnings
    );
    assert_eq!(decision.victims().count(), 2);
    let refused = try_decide(
        &build(PluginFailure::Refuse),
        &table,
        &Budgets::unlimited(),
        &wants(4),
    );
    assert_eq!(refused.unwrap_err().code(), "EB-ENGINE-006");
}

#[test]
fn more_instances_than_are_placed_together_get_a_gap_and_not_a_claim() {
    let hosts: Vec<(String, u64)> = (0..20).map(|n| (format!("h{n:02}"), 10)).collect();
    let names: Vec<(&str, u64)> = hosts.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    let spots: Vec<Instance> = (0..200)
        .map(|n: u128| spot(n + 1, names[(n % 20) as usize].0, 1, (n % 50) as i64))
        .collect();
    let table = cloud(&names, &spots);
    let decision = decide(&table, &wants(1).times(150));
    assert_eq!(placed(&decision).len(), 150);
    assert!(!decision.explanation.optimal);
    let sum: f64 = decision.victims().map(|(_, v)| v.cost).sum();
    assert_eq!(decision.explanation.gap, sum);
    let together = decide(&table, &wants(1).times(128));
    assert!(together.explanation.optimal);
    let first_fit = EngineConfig {
        policy: RankingPolicy::FirstFit,
        ..EngineConfig::default()
    };
    assert_eq!(
        placed(&decide_with(
            &engine(first_fit),
            &table,
            &wants(1).times(150)
        ))
        .len(),
        150
    );
}
