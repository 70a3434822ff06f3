//! What a good plugin gets, and what its description must be.

use super::kit::{failure, try_weigher, weigh, weigh_with, weigher};
use ebbtide_weigher_api::{Bounds, Column, Fact, FactColumn, Texts, Weigher};

#[test]
fn a_weigher_gets_its_columns_in_its_own_order() {
    let rack: Fact = "text:rack".parse().unwrap();
    let price: Fact = "number:price".parse().unwrap();
    let needs = "preemptible_age_seconds text:rack free_vcpus number:price";
    let weigher = weigher(&[("do", "sum"), ("needs", needs)]);
    assert_eq!(weigher.reads().join(" "), needs);
    assert_eq!(weigher.needs(), [Column::FreeVcpus]);
    assert_eq!(weigher.facts(), [rack.clone(), price.clone()]);
    assert!(weigher.needs_preemptibles());
    let texts = Texts {
        codes: vec![0, 1, 0],
        texts: vec!["r1".to_owned(), "rack-2".to_owned()],
    };
    let facts = [
        (price, FactColumn::Numbers(vec![0.5, 0.25, 0.0])),
        (rack, FactColumn::Texts(texts)),
    ];
    // Two ages of a minute each, the length of the rack's name, the host's number, and the price.
    assert_eq!(
        weigh_with(&weigher, 3, &facts).unwrap(),
        [122.5, 127.25, 124.0]
    );
}

#[test]
fn a_weigher_hears_who_asks_and_for_what() {
    let said = failure(&[("do", "tell")]);
    for word in [
        "project-1",
        "VCPU",
        "amount: 2",
        "preemptible: false",
        "flavor",
        "m1",
        "image-1",
        "soft-affinity",
        "extra_spec:hw:cpu_policy",
        "dedicated",
    ] {
        assert!(said.contains(word), "{word} is not in {said}");
    }
}

#[test]
fn its_name_is_the_operators_and_its_multiplier_its_own() {
    let weigher = weigher(&[
        ("do", "sum"),
        ("multiplier", "-2.5"),
        ("min", "0"),
        ("max", "8"),
    ]);
    assert_eq!(weigher.name(), "naughty");
    assert_eq!(weigher.multiplier_key(), "naughty_weight_multiplier");
    assert_eq!(weigher.default_multiplier().to_bits(), (-2.5_f64).to_bits());
    let bounds = Bounds {
        min: Some(0.0),
        max: Some(8.0),
    };
    assert_eq!(weigher.bounds(), bounds);
}

#[test]
fn a_description_that_cannot_be_right_is_refused_with_what_is_wrong() {
    for (pairs, word) in [
        (
            [("needs", "colour"), ("do", "sum")],
            "\"colour\", which this Ebbtide does not know; there are free_ram_mb",
        ),
        (
            [("needs", "free_vcpus free_vcpus"), ("do", "sum")],
            "\"free_vcpus\" twice",
        ),
        ([("multiplier", "NaN"), ("do", "sum")], "multiplier is NaN"),
        ([("min", "inf"), ("do", "sum")], "scale reaches"),
        ([("min", "3"), ("max", "2")], "scale reaches"),
    ] {
        let refused = try_weigher(&pairs).unwrap_err().to_string();
        assert!(refused.contains(word), "{pairs:?}: {refused}");
    }
}

#[test]
fn many_hosts_are_weighed_in_one_call() {
    let weigher = weigher(&[("do", "sum"), ("needs", "free_vcpus")]);
    let numbers = weigh(&weigher, 20_000).unwrap();
    assert_eq!(numbers[19_999].to_bits(), 19_999.0_f64.to_bits());
}
