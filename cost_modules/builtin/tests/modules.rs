//! What each cost module gives, what it prefers, and what holds for all of them.

#![allow(
    clippy::unwrap_used,
    reason = "a test program: what is missing shall fail loudly"
)]

use ebbtide_cost_api::Texts;
use ebbtide_cost_api::{CostError, CostForm, CostModule, MAX_COST, NO_END, SetCost, VictimBatch};
use ebbtide_cost_modules::{CostModuleOptions, DEFAULT, all, by_name, names};
use ebbtide_model::{LifeTable, LifeTables};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

/// One candidate: age in seconds, price per hour, priority class.
type Row = (f64, f64, u8);

fn costs(module: &dyn CostModule, rows: &[Row]) -> Vec<f64> {
    let ages: Vec<f64> = rows.iter().map(|row| row.0).collect();
    let prices: Vec<f64> = rows.iter().map(|row| row.1).collect();
    let classes: Vec<u8> = rows.iter().map(|row| row.2).collect();
    let ones = vec![1.0; rows.len()];
    let unknown = Texts {
        codes: vec![0; rows.len()],
        texts: vec![String::new()],
    };
    let batch = VictimBatch {
        len: rows.len(),
        age_seconds: &ages,
        vcpus: &ones,
        memory_mb: &ones,
        price_per_hour: &prices,
        max_price: &prices,
        priority: &classes,
        project: &vec![0; rows.len()],
        ends_in_seconds: &vec![NO_END; rows.len()],
        flavors: Some(&unknown),
        facts: &[],
    };
    let mut out = vec![f64::NAN; rows.len()];
    module.cost(&batch, &mut out).unwrap();
    out
}

fn named(name: &str) -> Arc<dyn CostModule> {
    by_name(name, &with_a_model()).unwrap()
}

/// All end between 0 and 48 hours, evenly.
fn with_a_model() -> CostModuleOptions {
    let even = LifeTable::new(&[(0.0, 1.0), (2.0 * DAY, 0.0)], 0.0).unwrap();
    CostModuleOptions {
        lifetimes: Some(LifeTables::new(even, Vec::new())),
        ..CostModuleOptions::default()
    }
}

/// Cost of one candidate, with default options.
fn cost(name: &str, row: Row) -> f64 {
    costs(named(name).as_ref(), &[row])[0]
}

/// Cost of a victim set of which only the ages matter.
fn sum(name: &str, ages: &[f64]) -> f64 {
    let rows: Vec<Row> = ages.iter().map(|&age| (age, 0.0, 0)).collect();
    costs(named(name).as_ref(), &rows).iter().sum()
}

const DAY: f64 = 86_400.0;

#[test]
fn the_table_of_single_costs_holds() {
    let table: [(&str, &str, Row, f64); 21] = [
        ("a bid of 0.12", "lowest_bid", (5400.0, 0.12, 0), 0.12),
        ("just started", "partial_hour", (0.0, 0.0, 0), 0.0),
        (
            "11 minutes into its second hour",
            "partial_hour",
            (4260.0, 0.0, 0),
            660.0,
        ),
        (
            "a second before the hour",
            "partial_hour",
            (3599.0, 0.0, 0),
            3599.0,
        ),
        ("exactly one hour", "partial_hour", (3600.0, 0.0, 0), 0.0),
        (
            "milliseconds count",
            "partial_hour",
            (3600.125, 0.0, 0),
            0.125,
        ),
        ("anybody", "num_instances", (4260.0, 9.0, 3), 1.0),
        ("just started", "oldest_first", (0.0, 0.0, 0), 31_536_000.0),
        ("a day old", "oldest_first", (DAY, 0.0, 0), 31_449_600.0),
        (
            "beyond the horizon",
            "oldest_first",
            (400.0 * DAY, 0.0, 0),
            0.0,
        ),
        ("a day old", "newest_first", (DAY, 0.0, 0), 86_400.0),
        (
            "older than any machine",
            "newest_first",
            (1e12, 0.0, 0),
            MAX_COST,
        ),
        ("class 0", "priority_class", (0.0, 0.0, 0), 1.0),
        ("class 1", "priority_class", (0.0, 0.0, 1), 1000.0),
        ("class 2", "priority_class", (0.0, 0.0, 2), 1e6),
        ("class 3", "priority_class", (0.0, 0.0, 3), MAX_COST),
        (
            "a class that is not there",
            "priority_class",
            (0.0, 0.0, 255),
            MAX_COST,
        ),
        ("half an hour at 0.12", "revenue", (5400.0, 0.12, 0), 0.06),
        (
            "exactly one hour is paid",
            "revenue",
            (3600.0, 0.12, 0),
            0.0,
        ),
        ("without a price", "revenue", (5400.0, 0.0, 0), 0.0),
        (
            "an absurd price is held",
            "revenue",
            (5400.0, 1e308, 0),
            MAX_COST,
        ),
    ];
    for (what, name, row, expected) in table {
        assert_eq!(cost(name, row), expected, "{name}: {what}");
    }
}

#[test]
fn the_remainders_of_the_paper_s_tables_are_the_partial_hours() {
    // López García et al. 2019, tables 3 to 6: minutes of the preemptible instances, and minutes of
    // the started hour.
    let tables: [(&[u32], &[u32]); 4] = [
        (
            &[96, 207, 71, 91, 210, 215, 85, 199, 152],
            &[36, 27, 11, 31, 30, 35, 25, 19, 32],
        ),
        (
            &[247, 463, 403, 410, 344, 476, 181, 160, 384, 168, 232],
            &[7, 43, 43, 50, 44, 56, 1, 40, 24, 48, 52],
        ),
        (
            &[298, 278, 190, 187, 178, 297, 296, 296],
            &[58, 38, 10, 7, 58, 57, 56, 56],
        ),
        (
            &[172, 272, 212, 380, 232, 213, 324, 314],
            &[52, 32, 32, 20, 52, 33, 24, 14],
        ),
    ];
    for (minutes, remainders) in tables {
        let rows: Vec<Row> = minutes
            .iter()
            .map(|&m| (f64::from(m) * 60.0, 0.0, 0))
            .collect();
        let expected: Vec<f64> = remainders.iter().map(|&m| f64::from(m) * 60.0).collect();
        assert_eq!(costs(named("partial_hour").as_ref(), &rows), expected);
    }
}

#[test]
fn three_small_victims_are_cheaper_than_one_large_in_the_paper_s_first_mixed_table() {
    let minutes = |m: &[f64]| {
        sum(
            "partial_hour",
            &m.iter().map(|m| m * 60.0).collect::<Vec<_>>(),
        ) / 60.0
    };
    assert_eq!(minutes(&[278.0, 190.0, 187.0]), 55.0); // AP2, AP3, AP4
    assert_eq!(minutes(&[297.0]), 57.0); // CP1
    assert_eq!(minutes(&[298.0]), 58.0); // AP1
    assert_eq!(minutes(&[178.0]), 58.0); // BP1
    assert_eq!(minutes(&[296.0, 296.0]), 112.0); // CP2, CP3
}

#[test]
fn preferences_between_sets_are_those_that_the_modules_promise() {
    let table: [(&str, &str, &[f64], &[f64]); 5] = [
        (
            "one young before two old",
            "oldest_first",
            &[60.0],
            &[100.0 * DAY, 100.0 * DAY],
        ),
        ("of two, the older", "oldest_first", &[2.0 * DAY], &[DAY]),
        (
            "beyond the horizon any number",
            "oldest_first",
            &[400.0 * DAY; 5],
            &[DAY],
        ),
        (
            "three young before one old",
            "newest_first",
            &[60.0; 3],
            &[DAY],
        ),
        (
            "one before two, however old",
            "num_instances",
            &[300.0 * DAY],
            &[60.0, 60.0],
        ),
    ];
    for (what, name, cheaper, dearer) in table {
        assert!(sum(name, cheaper) < sum(name, dearer), "{name}: {what}");
    }
}

#[test]
fn of_a_lower_class_999_go_rather_than_one_of_the_next() {
    for class in 0..3 {
        let lower = cost("priority_class", (0.0, 0.0, class));
        let higher = cost("priority_class", (0.0, 0.0, class + 1));
        assert!(999.0 * lower < higher, "class {class}");
        assert_eq!(1000.0 * lower, higher, "class {class}");
    }
}

#[test]
fn options_reach_the_modules() {
    let options = CostModuleOptions {
        period_seconds: 60,
        horizon_seconds: 100,
        fairness_seconds: 5,
        lifetimes: None,
    };
    let one = |name: &str, row: Row| costs(by_name(name, &options).unwrap().as_ref(), &[row])[0];
    assert_eq!(one("partial_hour", (90.5, 0.0, 0)), 30.5);
    assert_eq!(one("revenue", (90.0, 120.0, 0)), 1.0);
    assert_eq!(one("oldest_first", (90.0, 0.0, 0)), 10.0);
    assert_eq!(one("fairness", (90.5, 0.0, 0)), 30.5);
    let fairness = by_name("fairness", &options).unwrap();
    assert_eq!(fairness.nth_of_a_project(4), 15.0);
    let day = CostModuleOptions {
        period_seconds: 86_400,
        ..CostModuleOptions::default()
    };
    let revenue = by_name("revenue", &day).unwrap();
    assert_eq!(
        costs(revenue.as_ref(), &[(43_200.0, 0.5, 0)]),
        [6.0],
        "12 hours at 0.5"
    );
}

#[test]
fn options_are_checked_and_the_message_names_the_key() {
    let read = |text: &str| toml::from_str::<CostModuleOptions>(text);
    assert_eq!(read("").unwrap(), CostModuleOptions::default());
    assert_eq!(read("horizon_seconds = 7").unwrap().horizon_seconds, 7);
    for bad in ["period = 1", "period_seconds = -1", "period_seconds = 1.5"] {
        assert!(
            read(bad).unwrap_err().to_string().contains("period"),
            "{bad}"
        );
    }
    for (text, key) in [
        ("period_seconds = 0", "period_seconds = 0 "),
        ("period_seconds = 31622401", "period_seconds"),
        ("horizon_seconds = 0", "horizon_seconds = 0 "),
        ("horizon_seconds = 1000000001", "horizon_seconds"),
        ("fairness_seconds = 0", "fairness_seconds = 0 "),
        ("fairness_seconds = 1000001", "fairness_seconds"),
    ] {
        let error = by_name(DEFAULT, &read(text).unwrap()).err().unwrap();
        assert_eq!(error.code(), "EB-COST-002");
        assert!(error.to_string().contains(key), "{error}");
    }
    for fine in [
        "period_seconds = 1",
        "period_seconds = 31622400",
        "horizon_seconds = 1000000000",
    ] {
        assert!(by_name(DEFAULT, &read(fine).unwrap()).is_ok(), "{fine}");
    }
}

#[test]
fn names_are_unique_and_may_be_written_with_hyphens() {
    let names = names();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    assert_eq!(names[0], DEFAULT);
    for module in all() {
        assert!(!module.unit().is_empty());
        assert_eq!(
            named(&module.name().replace('_', "-")).name(),
            module.name()
        );
    }
    let error = by_name("parital_hour", &CostModuleOptions::default())
        .err()
        .unwrap();
    assert_eq!(error.code(), "EB-COST-001");
    assert_eq!(
        error.to_string(),
        "there is no cost module \"parital_hour\"; use one of partial_hour, num_instances, oldest_first, newest_first, \
         priority_class, revenue, lowest_bid, fairness, remaining_lifetime"
    );
}

#[test]
fn a_batch_that_is_too_short_is_an_error_and_not_a_panic() {
    for module in all() {
        let batch = VictimBatch {
            len: 2,
            age_seconds: &[1.0],
            vcpus: &[1.0],
            memory_mb: &[1.0],
            price_per_hour: &[1.0],
            max_price: &[1.0],
            priority: &[1],
            project: &[1],
            ends_in_seconds: &[NO_END],
            flavors: None,
            facts: &[],
        };
        let result = module.cost(&batch, &mut [0.0; 2]);
        assert!(
            matches!(result, Err(CostError::Other(_))),
            "{}",
            module.name()
        );
    }
}

#[test]
fn the_first_victim_of_a_project_is_not_charged_more_and_each_further_one_ever_more() {
    let module = named("fairness");
    assert_eq!(module.set_cost(), SetCost::PerProject);
    let steps: Vec<f64> = (1..=5).map(|n| module.nth_of_a_project(n)).collect();
    assert_eq!(steps, [0.0, 600.0, 1200.0, 1800.0, 2400.0]);
    assert_eq!(module.nth_of_a_project(u32::MAX), MAX_COST);
    assert_eq!(module.nth_of_a_project(0), 0.0);
}

#[test]
fn every_surcharge_is_a_cost_that_never_falls() {
    for module in all() {
        let steps: Vec<f64> = (1..100_000).map(|n| module.nth_of_a_project(n)).collect();
        assert!(
            steps.windows(2).all(|pair| pair[0] <= pair[1]),
            "{}",
            module.name()
        );
        assert!(
            steps.iter().all(|step| (0.0..=MAX_COST).contains(step)),
            "{}",
            module.name()
        );
    }
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let age = prop_oneof![0.0_f64..1e6, 0.0_f64..1e12];
    let price = prop_oneof![Just(0.0), 0.0_f64..10.0, 0.0_f64..1e9];
    prop::collection::vec((age, price, any::<u8>()), 1..20)
}

proptest! {
    #[test]
    fn every_cost_is_finite_not_negative_and_within_the_largest(
        rows in rows(), period_seconds in 1_u32..31_622_400, horizon_seconds in 1_u32..1_000_000_000
    ) {
        let options = CostModuleOptions { period_seconds, horizon_seconds, ..with_a_model() };
        for name in names() {
            let module = by_name(&name, &options).unwrap();
            for cost in costs(module.as_ref(), &rows) {
                prop_assert!((0.0..=MAX_COST).contains(&cost), "{name}: {cost}");
            }
        }
    }

    #[test]
    fn the_cost_of_one_does_not_depend_on_the_others(rows in rows()) {
        for module in names().iter().map(|name| named(name)) {
            let together = costs(module.as_ref(), &rows);
            let alone: Vec<f64> = rows.iter().map(|row| costs(module.as_ref(), &[*row])[0]).collect();
            prop_assert_eq!(together, alone, "{}", module.name());
        }
    }

    #[test]
    fn partial_hour_and_revenue_repeat_with_the_period(
        age in 0_u32..1_000_000, periods in 1_u32..1000, price in 0.0_f64..10.0
    ) {
        for name in ["partial_hour", "revenue"] {
            let now = cost(name, (f64::from(age), price, 0));
            let later = cost(name, (f64::from(age + 3600 * periods), price, 0));
            prop_assert_eq!(now, later, "{}", name);
            prop_assert!(name == "revenue" || now < 3600.0);
        }
    }

    #[test]
    fn age_and_price_and_class_point_one_way(
        a in 0.0_f64..2e9, b in 0.0_f64..2e9, low in 0.0_f64..1e9, high in 0.0_f64..1e9, classes in any::<(u8, u8)>()
    ) {
        let (young, old) = (a.min(b), a.max(b));
        prop_assert!(cost("newest_first", (young, 0.0, 0)) <= cost("newest_first", (old, 0.0, 0)));
        prop_assert!(cost("oldest_first", (young, 0.0, 0)) >= cost("oldest_first", (old, 0.0, 0)));
        let (cheap, dear) = (low.min(high), low.max(high));
        prop_assert!(cost("revenue", (a, cheap, 0)) <= cost("revenue", (a, dear, 0)));
        let (lower, higher) = (classes.0.min(classes.1), classes.0.max(classes.1));
        prop_assert!(cost("priority_class", (a, low, lower)) <= cost("priority_class", (a, low, higher)));
    }

    #[test]
    fn with_one_price_revenue_is_the_partial_hour_in_money(ages in prop::collection::vec(0_u32..1_000_000, 2)) {
        let of = |name: &str, i: usize| cost(name, (f64::from(ages[i]), 3.6, 0));
        prop_assert!((of("revenue", 0) - of("partial_hour", 0) / 1000.0).abs() < 1e-9);
        prop_assert_eq!(of("revenue", 0) < of("revenue", 1), of("partial_hour", 0) < of("partial_hour", 1));
    }
}

const PAGE: &str = include_str!("../../../docs/plugins/cost-modules.md");

#[test]
fn the_example_on_the_operator_s_page_is_what_the_code_gives() {
    const MINUTE: f64 = 60.0;
    let rows: [Row; 4] = [
        (71.0 * MINUTE, 0.04, 0),
        (119.0 * MINUTE, 0.04, 0),
        (DAY + 2.0 * MINUTE, 0.32, 1),
        (30.0 * DAY + 30.0 * MINUTE, 0.01, 2),
    ];
    for module in names().iter().map(|name| named(name)) {
        let costs = costs(module.as_ref(), &rows);
        let cells: Vec<String> = costs
            .iter()
            .map(|cost| match module.name() {
                "revenue" => format!("{cost:.6}"),
                "remaining_lifetime" => format!("{cost:.4}"),
                _ => cost.to_string(),
            })
            .collect();
        let row = format!("| `{}` | {} |", module.name(), cells.join(" | "));
        assert!(
            PAGE.contains(&row),
            "docs/plugins/cost-modules.md should have the row\n{row}"
        );
        let pair = costs[0] + costs[2] + module.nth_of_a_project(2);
        let pair_is_cheaper =
            ["partial_hour", "newest_first", "priority_class", "fairness"].contains(&module.name());
        assert_eq!(pair < costs[3], pair_is_cheaper, "{}", module.name());
    }
}

#[test]
fn the_operator_s_page_lists_every_module_with_its_unit() {
    for module in all() {
        let unit = format!("| {} |", module.unit());
        let rows = PAGE
            .lines()
            .filter(|row| row.starts_with(&format!("| `{}`", module.name())));
        assert!(
            rows.clone().any(|row| row.contains(&unit)),
            "{}: {unit}",
            module.name()
        );
    }
}

proptest! {
    #[test]
    fn a_module_s_form_gives_its_costs_to_the_millionth(
        // Up to 136 years, as the engine asks.
        age_ms in prop_oneof![0..=u64::from(u32::MAX) * 1000, 0..100_000_000_u64],
        whole in prop_oneof![Just(0_i64), -3..4_i64],
        period_seconds in prop_oneof![Just(3600_u32), Just(1), Just(86_400), 1..100_000_u32],
    ) {
        let options = CostModuleOptions { period_seconds, ..with_a_model() };
        let mut known = 0;
        for name in names() {
            let module = by_name(&name, &options).unwrap();
            if let CostForm::UsedOfPeriod { period_seconds } = module.form() {
                let period_ms = u64::from(period_seconds) * 1000;
                // Often just beside the end of a period.
                let near = (age_ms / period_ms * period_ms).saturating_add_signed(whole);
                let age_ms = if whole == 0 { age_ms } else { near };
                let cost = costs(module.as_ref(), &[(age_ms as f64 / 1000.0, 0.0, 0)])[0];
                let micros = (cost * 1e6).round();
                prop_assert_eq!(micros, (age_ms % period_ms * 1000) as f64, "{} at {} ms", name, age_ms);
                known += 1;
            }
        }
        // `partial_hour`, and `fairness`, whose sum is the same.
        prop_assert_eq!(known, 2);
    }
}
