//! What `interruption_risk` gives: by what model, to whom, and in which order.

use crate::support;

use ebbtide_model::{LifeTable, LifeTables};
use ebbtide_weigher_api::{Column, Weigher};
use ebbtide_weighers::{WeigherOptions, by_name};
use proptest::prelude::*;
use std::sync::Arc;
use support::{Hosts, with_a_model};

fn risk(horizon: u32) -> Arc<dyn Weigher> {
    by_name("interruption_risk", &with_a_model(horizon)).unwrap()
}

fn rooms(rooms: &[f64]) -> Hosts {
    Hosts::new(rooms.len()).with(Column::NormalRoom, rooms)
}

#[test]
fn without_a_model_it_is_refused_with_the_key_that_is_missing() {
    let error = by_name("interruption-risk", &WeigherOptions::default())
        .err()
        .unwrap();
    assert_eq!(error.code(), "EB-WEIGHER-003");
    assert!(
        error.to_string().contains("engine.interruption_model"),
        "{error}"
    );
}

#[test]
fn a_horizon_of_nothing_or_of_more_than_a_year_is_refused() {
    for horizon in [0, 365 * 86_400 + 1] {
        let error = by_name("interruption_risk", &with_a_model(horizon))
            .err()
            .unwrap();
        assert_eq!(error.code(), "EB-WEIGHER-002");
        assert!(
            error.to_string().contains("risk_horizon_seconds"),
            "{error}"
        );
    }
}

#[test]
fn an_average_host_has_the_model_s_own_chance_and_the_others_by_their_room_for_normal_ones() {
    // Evenly within 48 hours: after 12 hours three quarters are not interrupted.
    let chances = rooms(&[2.0, 4.0, 6.0])
        .preemptible()
        .raw(risk(43_200).as_ref())
        .unwrap();
    let expected = [0.75_f64.sqrt(), 0.75, 0.75 * 0.75_f64.sqrt()];
    for (chance, expected) in chances.iter().zip(expected) {
        assert!((chance - expected).abs() < 1e-12, "{chances:?}");
    }
}

#[test]
fn a_host_of_a_calm_zone_is_preferred_whatever_its_room() {
    let hosts = rooms(&[2.0, 40.0]).preemptible().zones(&["wild", "calm"]);
    let chances = hosts.raw(risk(3600).as_ref()).unwrap();
    assert!(chances[1] > chances[0], "{chances:?}");
}

#[test]
fn what_the_flavor_says_of_its_work_counts_more_than_the_horizon() {
    let chance = |hosts: Hosts| hosts.raw(risk(43_200).as_ref()).unwrap()[0];
    let one = || rooms(&[3.0]).preemptible();
    assert!((chance(one()) - 0.75).abs() < 1e-12);
    assert!((chance(one().spec("ebbtide:expected_seconds", "86400")) - 0.5).abs() < 1e-12);
    // No instance outlives the flavor's maximum.
    assert!((chance(one().spec("ebbtide:max_lifetime_seconds", "17280")) - 0.9).abs() < 1e-12);
    let both = one()
        .spec("ebbtide:expected_seconds", "86400")
        .spec("ebbtide:max_lifetime_seconds", "17280");
    assert!((chance(both) - 0.9).abs() < 1e-12);
}

#[test]
fn one_in_a_thousand_outweighs_nova_s_ordinary_weighers_and_one_in_ten_thousand_does_not() {
    let multiplier = risk(3600).default_multiplier();
    assert!(multiplier * 0.001 > 9.0 && multiplier * 0.0001 < 9.0);
}

#[test]
fn without_the_normal_state_it_ranks_all_hosts_alike() {
    // As in OpenStack mode, where the column is 0.
    let hosts = rooms(&[0.0, 0.0, 0.0]).preemptible();
    assert_eq!(hosts.raw(risk(3600).as_ref()).unwrap(), [0.0; 3]);
}

fn any_rooms() -> impl Strategy<Value = Vec<f64>> {
    let room = (0_u32..1_000_000).prop_map(f64::from);
    prop::collection::vec(room, 2..30)
}

#[test]
fn the_example_on_the_operator_s_page_is_what_the_code_gives() {
    let two_percent = LifeTable::new(&[(0.0, 1.0), (3600.0, 0.98), (7200.0, 0.0)], 0.0).unwrap();
    let options = WeigherOptions {
        interruptions: Some(LifeTables::new(two_percent, Vec::new())),
        ..WeigherOptions::default()
    };
    let weigher = by_name("interruption_risk", &options).unwrap();
    let room = [2.0, 6.0, 16.0];
    let chances = rooms(&room).preemptible().raw(weigher.as_ref()).unwrap();
    let page = include_str!("../../../docs/plugins/weighers.md");
    for ((name, room), chance) in ["gap", "half", "empty"].iter().zip(room).zip(chances) {
        let weighted = chance * weigher.default_multiplier();
        let row = format!("| {name} | {room} | {chance:.6} | {weighted:.2} |");
        assert!(
            page.contains(&row),
            "docs/plugins/weighers.md should have the row\n{row}"
        );
    }
}

proptest! {
    #[test]
    fn for_a_normal_request_nothing_is_added_to_anybody(some in any_rooms(), horizon in 1_u32..31_536_000) {
        let weigher = risk(horizon);
        let hosts = rooms(&some);
        prop_assert!(hosts.raw(weigher.as_ref()).unwrap().iter().all(|x| x.to_bits() == 0));
        prop_assert_eq!(hosts.formed(weigher.as_ref()).unwrap(), vec![0.0; some.len()]);
        prop_assert!(hosts.normalised(weigher.as_ref()).iter().all(|x| x.to_bits() == 0));
    }

    #[test]
    fn every_number_is_a_chance(some in any_rooms(), horizon in 1_u32..31_536_000) {
        let hosts = rooms(&some).preemptible();
        for chance in hosts.raw(risk(horizon).as_ref()).unwrap() {
            prop_assert!((0.0..=1.0).contains(&chance), "{chance}");
        }
    }

    #[test]
    fn in_one_zone_the_less_normal_ones_can_claim_the_better(some in any_rooms(), horizon in 1_u32..170_000) {
        let chances = rooms(&some).preemptible().raw(risk(horizon).as_ref()).unwrap();
        for i in 0..some.len() {
            for j in 0..some.len() {
                prop_assert!(some[i] > some[j] || chances[i] >= chances[j], "{some:?} {chances:?}");
            }
        }
    }

    #[test]
    fn the_longer_the_work_the_larger_the_risk_of_every_host(some in any_rooms(), horizon in 1_u32..80_000) {
        let hosts = rooms(&some).preemptible();
        let (short, long) = (hosts.raw(risk(horizon).as_ref()).unwrap(), hosts.raw(risk(2 * horizon).as_ref()).unwrap());
        for (short, long) in short.iter().zip(&long) {
            prop_assert!(short >= long);
        }
    }

    #[test]
    fn the_order_of_the_hosts_does_not_matter(some in any_rooms()) {
        let backwards: Vec<f64> = some.iter().rev().copied().collect();
        let mut chances = rooms(&backwards).preemptible().raw(risk(3600).as_ref()).unwrap();
        chances.reverse();
        prop_assert_eq!(rooms(&some).preemptible().raw(risk(3600).as_ref()).unwrap(), chances);
    }
}
