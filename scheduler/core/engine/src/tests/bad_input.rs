//! Bad input and bad plugins: clear answers, no panic.

use super::kit::*;
use crate::{Budgets, Engine, EngineConfig, EngineError, HostTable, PluginFailure, WeigherConfig};
use ebbtide_cost_api::{CostError, CostModule, VictimBatch};
use ebbtide_weigher_api::{Column, HostBatch, RequestView, Weigher, WeigherError};
use std::sync::Arc;

#[test]
fn an_empty_cloud_has_no_valid_host() {
    let decision = decide(&HostTable::new(), &wants(1));
    assert_eq!(
        refused(&decision).reason,
        "No valid host was found: there are no hosts."
    );
    assert!(refused(&decision).dropped.is_empty());
}

#[test]
fn hosts_of_nothing_and_requests_for_everything() {
    let table = cloud(&[("a", 0), ("b", 4)], &[]);
    assert_eq!(summary(&decide(&table, &wants(1))), [("b", vec![])]);
    let huge = wants(1).spec("resources:VCPU", "2147483647");
    assert_eq!(
        refused(&decide(&table, &huge))
            .dropped
            .last()
            .unwrap()
            .dropped,
        2
    );
    let many = wants(1).spec("resources:VCPU", "2147483647").times(1000);
    assert_eq!(refused(&decide(&table, &many)).placed_before, 0);
}

#[test]
fn a_class_that_no_host_has_is_no_valid_host() {
    let table = cloud(&[("a", 4)], &[spot(1, "a", 4, 0)]);
    let decision = decide(&table, &wants(1).spec("resources:CUSTOM_UNOBTAINIUM", "1"));
    let reason = &decision.explanation.instances[0]
        .filters
        .last()
        .unwrap()
        .dropped[0]
        .reason;
    assert_eq!(
        reason,
        "CUSTOM_UNOBTAINIUM: needs 1, 0 of 0 free (normal only)"
    );
}

#[test]
fn requests_that_contradict_themselves_are_refused_by_their_code() {
    let table = cloud(&[("a", 4)], &[]);
    let engine = engine(EngineConfig::default());
    let mut twice = wants(1).times(2);
    twice.server_ids[1] = twice.server_ids[0];
    for request in [
        wants(0),
        wants(1).times(0),
        wants(1).times(1001),
        twice,
        wants(1).spec("ebbtide:preemptable", "true"),
        wants(1).spec("resources:VCPU", "-1"),
        wants(1).spec("resources:vcpu", "1"),
    ] {
        let error = try_decide(&engine, &table, &Budgets::unlimited(), &request).unwrap_err();
        assert_eq!(error.code(), "EB-ENGINE-002", "{error}");
    }
}

#[test]
fn unknown_plugins_are_refused_with_the_key_and_what_there_is() {
    let config = EngineConfig {
        weighers: vec![WeigherConfig::named("ram"), WeigherConfig::named("rom")],
        ..EngineConfig::default()
    };
    let error = Engine::new(config).unwrap_err();
    assert_eq!(error.code(), "EB-ENGINE-001");
    assert!(error.to_string().contains("weighers[1].name"), "{error}");
    let config = EngineConfig {
        cost_module: "free".to_owned(),
        ..EngineConfig::default()
    };
    let error = Engine::new(config).unwrap_err().to_string();
    assert!(
        error.contains("cost_module") && error.contains("partial_hour"),
        "{error}"
    );
}

#[test]
fn zero_costs_and_ten_thousand_victims_on_one_host_do_not_explode() {
    let count = 10_000;
    let instances: Vec<_> = (0..count).map(|n| spot(n, "a", 1, 60)).collect();
    let table = cloud(&[("a", 10_000)], &instances);
    let decision = decide(&table, &wants(3));
    assert_eq!(summary(&decision), [("a", vec![0, 1, 2])]);
    let instances: Vec<_> = (0..count)
        .map(|n| spot(n, "a", u64::try_from(n % 3 + 1).unwrap(), 60))
        .collect();
    let table = cloud(&[("a", 19_999)], &instances);
    assert!(decide(&table, &wants(7)).explanation.optimal);
}

#[test]
fn more_candidates_than_the_search_takes_are_cut_and_said_so() {
    let instances: Vec<_> = (0..17_000).map(|n| spot(n, "a", 1, 60)).collect();
    let table = cloud(&[("a", 17_000)], &instances);
    let decision = decide(&table, &wants(2));
    assert_eq!(placed(&decision)[0].victims.len(), 2);
    assert!(!decision.explanation.optimal);
}

#[test]
fn absurd_ages_do_not_overflow() {
    let instances: Vec<_> = (0..3000)
        .map(|n| crate::Instance {
            launched_at: Some(ebbtide_model::Timestamp::from_millis(0)),
            ..spot(n, "a", 1, 0)
        })
        .collect();
    let table = cloud(&[("a", 3000)], &instances);
    let id = ebbtide_model::DecisionId(uuid::Uuid::nil());
    let late = ebbtide_model::Timestamp::from_millis(i64::MAX);
    let engine = engine(EngineConfig::default());
    let decision = engine
        .decide(&table, &Budgets::unlimited(), &wants(1), late, 0, id)
        .unwrap();
    assert_eq!(placed(&decision)[0].victims.len(), 1);
    // With a clock that runs behind no age is negative.
    let early = ebbtide_model::Timestamp::from_millis(0);
    let table = cloud(&[("a", 1)], &[spot(1, "a", 1, 0)]);
    let decision = engine
        .decide(&table, &Budgets::unlimited(), &wants(1), early, 0, id)
        .unwrap();
    assert_eq!(placed(&decision)[0].victims[0].age_seconds, 0.0);
}

struct Says(f64);

impl CostModule for Says {
    fn name(&self) -> &str {
        "says"
    }

    fn unit(&self) -> &str {
        "whatever"
    }

    fn cost(&self, victims: &VictimBatch<'_>, out: &mut [f64]) -> Result<(), CostError> {
        assert_eq!(victims.age_seconds.len(), out.len());
        if self.0 == f64::MAX {
            return Err(CostError::Other("is on holiday".to_owned()));
        }
        out.fill(self.0);
        Ok(())
    }
}

fn with_cost(value: f64, plugin_failure: PluginFailure) -> Engine {
    let config = EngineConfig {
        cost_module: "says".to_owned(),
        plugin_failure,
        ..Default::default()
    };
    Engine::with_plugins(config, Vec::new(), vec![Arc::new(Says(value))]).unwrap()
}

#[test]
fn a_cost_module_that_misbehaves_is_replaced_by_one_for_each_victim_or_refused() {
    let table = cloud(
        &[("a", 4), ("b", 4)],
        &[spot(1, "a", 2, 0), spot(2, "a", 2, 0), spot(3, "b", 4, 59)],
    );
    for bad in [f64::NAN, -1.0, f64::INFINITY, 1e10, f64::MAX] {
        let decision = decide_with(&with_cost(bad, PluginFailure::Ignore), &table, &wants(4));
        assert_eq!(
            summary(&decision),
            [("b", vec![3])],
            "one victim costs less than two"
        );
        assert_eq!(placed(&decision)[0].victims[0].cost, 1.0);
        let warnings = &decision.explanation.warnings;
        assert_eq!(warnings.len(), 1);
        assert!(
            warnings[0].contains("cost module says was ignored"),
            "{warnings:?}"
        );
        let engine = with_cost(bad, PluginFailure::Refuse);
        let error = try_decide(&engine, &table, &Budgets::unlimited(), &wants(4)).unwrap_err();
        assert_eq!(error.code(), "EB-ENGINE-006");
        // No instance has to leave, so the engine does not call the cost module.
        assert!(
            try_decide(
                &engine,
                &cloud(&[("c", 4)], &[]),
                &Budgets::unlimited(),
                &wants(4)
            )
            .is_ok()
        );
    }
    let fine = decide_with(&with_cost(-0.0, PluginFailure::Refuse), &table, &wants(2));
    assert_eq!(placed(&fine)[0].victims[0].cost, 0.0);
}

#[test]
fn costs_that_add_up_beyond_the_arithmetic_are_a_failure_of_the_module() {
    let instances: Vec<_> = (0..2000).map(|n| spot(n, "a", 1, 0)).collect();
    let table = cloud(&[("a", 2000)], &instances);
    let decision = decide_with(&with_cost(1e9, PluginFailure::Ignore), &table, &wants(1));
    assert!(decision.explanation.warnings[0].contains("add up"));
    assert_eq!(placed(&decision)[0].victims[0].cost, 1.0);
}

/// Gives a value to every host, or fails at once, or forgets to answer.
struct Gives(f64);

impl Weigher for Gives {
    fn name(&self) -> &str {
        "gives"
    }

    fn multiplier_key(&self) -> &str {
        "gives_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        1.0
    }

    fn needs(&self) -> &[Column] {
        &[Column::FreeRamMb]
    }

    fn weigh(
        &self,
        _request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        if self.0 == 1.0 {
            hosts.column(Column::NumIoOps)?;
        }
        if self.0 != 2.0 {
            out.fill(self.0);
        }
        Ok(())
    }
}

#[test]
fn a_weigher_that_misbehaves_gives_no_host_anything_or_is_refused() {
    let table = cloud(&[("a", 4), ("b", 8)], &[]);
    let build = |value: f64, plugin_failure| {
        let weighers = vec![WeigherConfig::named("gives"), WeigherConfig::named("ram")];
        let config = EngineConfig {
            weighers,
            plugin_failure,
            ..Default::default()
        };
        Engine::with_plugins(config, vec![Arc::new(Gives(value))], Vec::new()).unwrap()
    };
    for (bad, problem) in [
        (f64::NAN, "gave NaN for host a"),
        (f64::INFINITY, "gave inf for host a"),
        (1.0, "NumIoOps was not declared"),
        (2.0, "gave NaN for host a"),
    ] {
        let decision = decide_with(&build(bad, PluginFailure::Ignore), &table, &wants(1));
        assert_eq!(summary(&decision), [("b", vec![])]);
        assert_eq!(
            decision.explanation.instances[0].ranking[0].weights.len(),
            1
        );
        let warnings = &decision.explanation.warnings;
        assert!(
            warnings[0].contains("weigher gives was ignored"),
            "{warnings:?}"
        );
        assert!(warnings[0].contains(problem), "{warnings:?}");
        let engine = build(bad, PluginFailure::Refuse);
        let error = try_decide(&engine, &table, &Budgets::unlimited(), &wants(1)).unwrap_err();
        assert!(matches!(error, EngineError::Weigher { .. }));
        assert_eq!(error.code(), "EB-ENGINE-005");
    }
    let fine = decide_with(&build(3.0, PluginFailure::Refuse), &table, &wants(1));
    assert_eq!(fine.explanation.instances[0].ranking[0].weights.len(), 2);
}
