//! Hosts that another component has selected and weighed.

use super::kit::{Refine, cloud, engine, normal, now, refused, server, spot, summary, wants};
use crate::{Budgets, EligibleHosts, EligibleRequest, Engine, EngineConfig, HostTable};
use ebbtide_model::{Decision, DecisionId, PlacementRequest, RequestTrace, Resources};
use uuid::Uuid;

fn eligible(table: &HostTable, hosts: &[(&str, f64)]) -> EligibleHosts<'static> {
    let mut eligible = EligibleHosts::none(table);
    for (host, weight) in hosts {
        eligible.insert(table.host_number(host).unwrap(), *weight);
    }
    eligible
}

/// What both ways of deciding say, which is the same.
fn decide(table: &HostTable, request: &PlacementRequest, eligible: &EligibleHosts<'_>) -> Decision {
    let amounts = EligibleRequest {
        server_ids: request.server_ids.clone(),
        project_id: request.project_id.clone(),
        resources: request.flavor.properties().unwrap().resources,
        alternates: request.alternates,
    };
    let ask = |engine: &Engine| {
        let budgets = Budgets::unlimited();
        engine
            .decide_for_eligible(table, &budgets, &amounts, eligible, now(), 1)
            .unwrap()
    };
    let fast = ask(&engine(EngineConfig::default()));
    let simple = ask(&engine(EngineConfig::default()).simple());
    assert_eq!(fast.outcome, simple.outcome);
    Decision {
        id: DecisionId(Uuid::nil()),
        at: now(),
        request: request.clone(),
        outcome: fast.outcome,
        explanation: fast.explanation,
        trace: RequestTrace::default(),
    }
}

/// Three full hosts; the victims on `a` and `b` cost the same, those on `c` less.
fn full() -> HostTable {
    let spots = [
        spot(1, "a", 4, 20),
        spot(2, "b", 4, 20),
        spot(3, "c", 4, 10),
    ];
    cloud(&[("a", 4), ("b", 4), ("c", 4)], &spots)
}

#[test]
fn only_eligible_hosts_are_taken_and_weights_decide_among_equals() {
    let table = full();
    let one = wants(4);
    let of = |hosts: &[(&str, f64)]| {
        let decision = decide(&table, &one, &eligible(&table, hosts));
        summary(&decision)[0].0.to_owned()
    };
    assert_eq!(
        of(&[("a", 1.0), ("b", 2.0), ("c", 0.0)]),
        "c",
        "cost comes first"
    );
    assert_eq!(of(&[("a", 1.0), ("b", 2.0)]), "b");
    assert_eq!(of(&[("a", 3.0), ("b", 2.0)]), "a");
    assert_eq!(of(&[("a", f64::NAN), ("b", -5.0)]), "b");
    let none = decide(&table, &one, &eligible(&table, &[]));
    assert_eq!(refused(&none).hosts, 3);
}

#[test]
fn room_goes_by_the_given_weights_too() {
    let table = cloud(&[("a", 8), ("b", 8)], &[normal(1, "b", 4)]);
    let decision = decide(
        &table,
        &wants(2),
        &eligible(&table, &[("a", 1.0), ("b", 2.0)]),
    );
    assert_eq!(summary(&decision), [("b", vec![])]);
}

#[test]
fn a_limit_holds_for_all_instances_of_the_request() {
    let spots = [
        spot(1, "a", 2, 1),
        spot(2, "a", 2, 1),
        spot(3, "b", 2, 50),
        spot(4, "b", 2, 50),
    ];
    let table = cloud(&[("a", 4), ("b", 4)], &spots);
    let two = wants(2).times(2);
    let mut hosts = eligible(&table, &[("a", 1.0), ("b", 1.0)]);
    assert_eq!(
        summary(&decide(&table, &two, &hosts)),
        [("a", vec![1]), ("a", vec![2])]
    );
    hosts.limit(table.host_number("a").unwrap(), 1);
    hosts.limit(table.host_number("b").unwrap(), 1);
    let apart = decide(&table, &two, &hosts);
    assert_eq!(summary(&apart), [("a", vec![1]), ("b", vec![3])]);
    hosts.limit(table.host_number("b").unwrap(), 0);
    assert_eq!(refused(&decide(&table, &two, &hosts)).placed_before, 1);
}

#[test]
fn together_means_one_host_for_all() {
    let spots = [spot(1, "a", 4, 1), spot(2, "b", 4, 30), spot(3, "b", 4, 30)];
    let table = cloud(&[("a", 4), ("b", 8)], &spots);
    let mut hosts = eligible(&table, &[("a", 1.0), ("b", 1.0)]);
    hosts.together();
    let decision = decide(&table, &wants(4).times(2), &hosts);
    assert!(summary(&decision).iter().all(|(host, _)| *host == "b"));
}

#[test]
fn who_is_spared_does_not_leave() {
    let table = full();
    let mut hosts = eligible(&table, &[("a", 0.0), ("b", 0.0), ("c", 0.0)]);
    hosts.spare(server(3));
    hosts.spare(server(1));
    assert_eq!(
        summary(&decide(&table, &wants(4), &hosts)),
        [("b", vec![2])]
    );
}

#[test]
fn a_request_without_amounts_or_servers_is_refused() {
    let table = full();
    let hosts = eligible(&table, &[("a", 1.0)]);
    let engine = engine(EngineConfig::default());
    let code = |servers: u128, resources: Resources| {
        let request = EligibleRequest {
            server_ids: wants(4).times(servers).server_ids,
            project_id: "p".to_owned(),
            resources,
            alternates: 0,
        };
        let budgets = Budgets::unlimited();
        let decided = engine.decide_for_eligible(&table, &budgets, &request, &hosts, now(), 1);
        decided.map(|_| ()).map_err(|error| error.code())
    };
    let some = wants(4).flavor.properties().unwrap().resources;
    assert_eq!(code(1, Resources::new()), Err("EB-ENGINE-002"));
    assert_eq!(code(0, some.clone()), Err("EB-ENGINE-002"));
    assert_eq!(code(1, some), Ok(()));
}
