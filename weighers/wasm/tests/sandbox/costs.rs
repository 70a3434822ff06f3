//! Cost modules as components.

use super::kit::{cost_guest, sandbox, settings, try_cost, weigher_guest};
use ebbtide_cost_api::{CostModule, NO_END, SetCost, VictimBatch};
use ebbtide_wasm::{Grants, Kind, SandboxLimits};

const TWO: VictimBatch<'_> = VictimBatch {
    len: 2,
    age_seconds: &[60.0, 120.0],
    vcpus: &[1.0, 2.0],
    memory_mb: &[1000.0, 2000.0],
    price_per_hour: &[0.5, 0.25],
    max_price: &[4.0, 1.0],
    priority: &[3, 0],
    project: &[7, 8],
    ends_in_seconds: &[NO_END, NO_END],
    flavors: None,
    facts: &[],
};

#[test]
fn a_cost_module_prices_what_it_reads_of_each_candidate() {
    for (needs, costs) in [
        ("age_seconds", [60.0, 120.0]),
        ("vcpus memory_mb", [1001.0, 2002.0]),
        ("price_per_hour priority project", [10.5, 8.25]),
        ("max_price price_per_hour", [4.5, 1.25]),
    ] {
        let module = try_cost(&[("do", "sum"), ("needs", needs)]).unwrap();
        let mut out = [f64::NAN; 2];
        module.cost(&TWO, &mut out).unwrap();
        assert_eq!(out, costs, "{needs}");
        assert_eq!(module.reads().join(" "), needs);
        assert_eq!((module.name(), module.unit()), ("naughty", "blows"));
        assert_eq!(module.set_cost(), SetCost::Sum);
    }
}

/// Made in November 2026 for `ebbtide:plugin@1.0.0`: the example `owner_fairness` as it was then.
/// It must run for ever.
const FIRST: &[u8] = include_bytes!("../fixtures/cost-1.0.wasm");

#[test]
fn the_first_cost_module_that_was_kept_still_runs() {
    let first = sandbox().compile(FIRST).unwrap();
    assert_eq!(first.kind(), Kind::CostModule);
    let none = settings(&[]);
    let module = first
        .cost_module("owners", &none, SandboxLimits::default(), Grants::default())
        .unwrap();
    assert_eq!(module.reads(), ["vcpus"]);
    let mut out = [f64::NAN; 2];
    module.cost(&TWO, &mut out).unwrap();
    assert_eq!(out, [1.0, 2.0]);
    assert_eq!(module.set_cost(), SetCost::PerProject);
    assert_eq!(
        [1, 2, 3].map(|n| module.nth_of_a_project(n)),
        [0.0, 4.0, 8.0]
    );
}

#[test]
fn surcharges_of_a_project_hold_for_all_further_victims() {
    let module = try_cost(&[("do", "sum"), ("surcharges", "0 5 9")]).unwrap();
    assert_eq!(module.set_cost(), SetCost::PerProject);
    let each = [1, 2, 3, 4, 1000].map(|n| module.nth_of_a_project(n));
    assert_eq!(each, [0.0, 5.0, 9.0, 9.0, 9.0]);
}

#[test]
fn surcharges_that_fall_or_are_no_costs_are_refused() {
    for wrong in ["5 4", "-1", "NaN", "1e10"] {
        let refused = try_cost(&[("surcharges", wrong)]).unwrap_err().to_string();
        assert!(refused.contains("surcharges"), "{wrong}: {refused}");
    }
    let refused = try_cost(&[("needs", "colour")]).unwrap_err().to_string();
    assert!(refused.contains("there are age_seconds"), "{refused}");
}

#[test]
fn a_cost_module_that_misbehaves_fails_its_call_only() {
    for (what, word) in [
        ("panic", "panicked"),
        ("loop", "units of work"),
        ("memory", "more memory"),
        ("short", "gave 1 numbers for 2 rows"),
    ] {
        let module = try_cost(&[("do", what)]).unwrap();
        let failed = module.cost(&TWO, &mut [0.0; 2]).unwrap_err().to_string();
        assert!(failed.contains(word), "{what}: {failed}");
    }
}

#[test]
fn a_plugin_of_the_other_kind_is_refused_by_name() {
    let none = settings(&[]);
    let refused = cost_guest()
        .weigher("n", &none, SandboxLimits::default(), Grants::default())
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "it is a cost module, and a weigher is wanted"
    );
    let refused = weigher_guest()
        .cost_module("n", &none, SandboxLimits::default(), Grants::default())
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "it is a weigher, and a cost module is wanted"
    );
}
