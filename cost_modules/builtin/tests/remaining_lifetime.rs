//! What `remaining_lifetime` gives: by which model, in which order, and that it never goes out of
//! bounds.

#![allow(
    clippy::unwrap_used,
    reason = "a test program: what is missing shall fail loudly"
)]

use ebbtide_cost_api::{
    CostError, CostModule, Fact, FactColumn, MAX_COST, NO_END, Texts, VictimBatch,
};
use ebbtide_cost_modules::{CostModuleOptions, all, by_name};
use ebbtide_model::{LifeGroup, LifeTable, LifeTables};
use proptest::prelude::*;
use std::sync::Arc;

const HOUR: f64 = 3600.0;

/// One candidate.
#[derive(Debug, Clone)]
struct Row {
    age: f64,
    vcpus: f64,
    end: f64,
    flavor: &'static str,
    zone: &'static str,
}

fn aged(age: f64) -> Row {
    Row {
        age,
        vcpus: 1.0,
        end: NO_END,
        flavor: "",
        zone: "",
    }
}

fn texts(of: impl Iterator<Item = &'static str>) -> Texts {
    let mut column = Texts::default();
    for text in of {
        let known = column.texts.iter().position(|known| known == text);
        let place = known.unwrap_or_else(|| {
            column.texts.push(text.to_owned());
            column.texts.len() - 1
        });
        column.codes.push(u32::try_from(place).unwrap());
    }
    column
}

fn ask(module: &dyn CostModule, rows: &[Row]) -> Result<Vec<f64>, CostError> {
    let column = |of: &dyn Fn(&Row) -> f64| rows.iter().map(of).collect::<Vec<f64>>();
    let zones = (
        Fact::AvailabilityZone,
        FactColumn::Texts(texts(rows.iter().map(|row| row.zone))),
    );
    let known = module.facts().contains(&zones.0).then_some(zones);
    let facts: Vec<(Fact, FactColumn)> = known.into_iter().collect();
    let flavors = texts(rows.iter().map(|row| row.flavor));
    let none = vec![0.0; rows.len()];
    let batch = VictimBatch {
        len: rows.len(),
        age_seconds: &column(&|row| row.age),
        vcpus: &column(&|row| row.vcpus),
        memory_mb: &none,
        price_per_hour: &none,
        max_price: &none,
        priority: &vec![0; rows.len()],
        project: &vec![0; rows.len()],
        ends_in_seconds: &column(&|row| row.end),
        flavors: module.reads_flavors().then_some(&flavors),
        facts: &facts,
    };
    let mut out = vec![f64::NAN; rows.len()];
    module.cost(&batch, &mut out)?;
    Ok(out)
}

fn module(lifetimes: LifeTables) -> Arc<dyn CostModule> {
    let options = CostModuleOptions {
        lifetimes: Some(lifetimes),
        ..CostModuleOptions::default()
    };
    by_name("remaining-lifetime", &options).unwrap()
}

fn of_all(table: LifeTable) -> Arc<dyn CostModule> {
    module(LifeTables::new(table, Vec::new()))
}

fn even(hours: f64) -> LifeTable {
    LifeTable::new(&[(0.0, 1.0), (hours * HOUR, 0.0)], 0.0).unwrap()
}

/// Many instances end within the first hour, none for 22 hours, the others before 24: the shape of
/// the paper's bathtub.
fn bathtub() -> LifeTable {
    let points = [
        (0.0, 1.0),
        (HOUR, 0.5),
        (23.0 * HOUR, 0.5),
        (24.0 * HOUR, 0.0),
    ];
    LifeTable::new(&points, 0.0).unwrap()
}

fn costs(module: &Arc<dyn CostModule>, rows: &[Row]) -> Vec<f64> {
    ask(module.as_ref(), rows).unwrap()
}

#[test]
fn without_a_model_it_is_refused_with_the_key_that_is_missing() {
    let error = by_name("remaining_lifetime", &CostModuleOptions::default())
        .err()
        .unwrap();
    assert_eq!(error.code(), "EB-COST-003");
    assert!(
        error.to_string().contains("engine.lifetime_model"),
        "{error}"
    );
    let plain = all()
        .into_iter()
        .find(|module| module.name() == "remaining_lifetime")
        .unwrap();
    assert_eq!(costs(&plain, &[aged(0.0), aged(1e9)]), [0.0, 0.0]);
}

#[test]
fn by_a_bathtub_who_has_survived_the_early_end_is_the_dearest_and_who_is_near_the_cap_the_cheapest()
{
    let costs = costs(
        &of_all(bathtub()),
        &[
            aged(0.0),
            aged(2.0 * HOUR),
            aged(12.0 * HOUR),
            aged(23.5 * HOUR),
            aged(30.0 * HOUR),
        ],
    );
    let [new, survivor, half, old, beyond] = costs[..] else {
        panic!()
    };
    assert!(survivor > new && survivor > half && half > old && old > beyond);
    assert_eq!(beyond, 0.0);
    assert!((survivor - 21.5).abs() < 1e-9, "{survivor}");
}

#[test]
fn eight_cpus_are_as_dear_as_eight_of_one_and_none_counts_as_one() {
    let sized = |vcpus| Row {
        vcpus,
        ..aged(HOUR)
    };
    let costs = costs(&of_all(even(11.0)), &[sized(1.0), sized(8.0), sized(0.0)]);
    assert_eq!(costs, [5.0, 40.0, 5.0]);
}

#[test]
fn the_maximum_lifetime_of_its_flavor_is_the_most_that_an_instance_can_lose() {
    let ending = |end| Row { end, ..aged(0.0) };
    let costs = costs(
        &of_all(bathtub()),
        &[ending(NO_END), ending(HOUR), ending(0.0)],
    );
    assert!(
        (costs[1] - 0.75).abs() < 1e-9 && costs[2] == 0.0 && costs[0] > 10.0,
        "{costs:?}"
    );
}

#[test]
fn an_instance_goes_by_the_nearest_group() {
    let group = |flavor: Option<&str>, zone: Option<&str>| LifeGroup {
        flavor: flavor.map(str::to_owned),
        zone: zone.map(str::to_owned),
    };
    let module = module(LifeTables::new(
        even(2.0),
        vec![
            (group(Some("f"), None), even(4.0)),
            (group(None, Some("z")), even(6.0)),
            (group(Some("f"), Some("z")), even(8.0)),
        ],
    ));
    let of = |flavor, zone| Row {
        flavor,
        zone,
        ..aged(0.0)
    };
    let rows = [
        of("", ""),
        of("f", "y"),
        of("g", "z"),
        of("f", "z"),
        of("f", "y"),
    ];
    assert_eq!(costs(&module, &rows), [1.0, 2.0, 3.0, 4.0, 2.0]);
    assert_eq!(module.facts(), [Fact::AvailabilityZone]);
    assert!(of_all(even(2.0)).facts().is_empty());
}

#[test]
fn flavors_that_were_not_handed_over_are_an_error_and_not_a_panic() {
    let batch = VictimBatch {
        len: 1,
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
    let result = of_all(even(2.0)).cost(&batch, &mut [0.0]);
    assert_eq!(result, Err(CostError::MissingFlavors));
}

/// A table whose hazard rises: between ages of equal distance ever larger shares of those that are
/// left end.
fn rising() -> impl Strategy<Value = LifeTable> {
    prop::collection::vec(0.01_f64..0.2, 2..12).prop_map(|mut steps| {
        steps.sort_unstable_by(f64::total_cmp);
        let mut points = vec![(0.0, 1.0)];
        let mut alive = 1.0;
        for (number, step) in steps.iter().enumerate() {
            alive *= 1.0 - step;
            points.push(((number + 1) as f64 * HOUR, alive));
        }
        points.push(((steps.len() + 1) as f64 * HOUR, 0.0));
        LifeTable::new(&points, 0.0).unwrap()
    })
}

fn any_row() -> impl Strategy<Value = Row> {
    let end = prop_oneof![Just(NO_END), 0.0_f64..1e7];
    (0.0_f64..1e12, 0.0_f64..1e6, end).prop_map(|(age, vcpus, end)| Row {
        vcpus,
        end,
        ..aged(age)
    })
}

proptest! {
    #[test]
    fn where_the_hazard_rises_the_older_is_never_dearer(table in rising(), a in 0.0_f64..50_000.0, b in 0.0_f64..50_000.0) {
        let costs = costs(&of_all(table), &[aged(a.min(b)), aged(a.max(b))]);
        prop_assert!(costs[0] >= costs[1] - 1e-9, "{costs:?}");
    }

    #[test]
    fn the_order_of_costs_is_that_of_the_remaining_lives(table in rising(), rows in prop::collection::vec(any_row(), 2..10)) {
        let rows: Vec<Row> = rows.into_iter().map(|row| Row { vcpus: 4.0, age: row.age % 60_000.0, ..row }).collect();
        let left: Vec<f64> = rows.iter().map(|row| table.remaining(row.age, (row.end < NO_END).then_some(row.end))).collect();
        let costs = costs(&of_all(table), &rows);
        for i in 0..rows.len() {
            for j in 0..rows.len() {
                prop_assert!(left[i] > left[j] || costs[i] <= costs[j]);
            }
        }
    }

    #[test]
    fn every_cost_is_finite_and_within_bounds_and_the_same_each_time(tail in 0.0_f64..1e12, rows in prop::collection::vec(any_row(), 1..20)) {
        let table = LifeTable::new(&[(0.0, 1.0), (HOUR, 0.3)], tail).unwrap();
        let module = of_all(table);
        let (first, second) = (costs(&module, &rows), costs(&module, &rows));
        for cost in &first {
            prop_assert!((0.0..=MAX_COST).contains(cost), "{cost}");
        }
        let bits = |costs: &[f64]| costs.iter().map(|cost| cost.to_bits()).collect::<Vec<u64>>();
        prop_assert_eq!(bits(&first), bits(&second));
    }
}
