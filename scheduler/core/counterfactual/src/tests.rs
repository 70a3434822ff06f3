//! By hand: what is certain, and what is not. Deciding again is the tests of the clouds.

use super::*;
use ebbtide_model::decision::Weight;

/// A host with the normalised weights of two weighers, whose multipliers are 1 and 2.
fn host(name: &str, cost: Option<f64>, weights: [f64; 2], chosen: bool) -> RankedHost {
    let weights = [("one", 1.0, weights[0]), ("two", 2.0, weights[1])];
    let weights = weights.map(|(weigher, multiplier, normalised)| Weight {
        weigher: weigher.to_owned(),
        raw: normalised,
        normalised,
        multiplier,
    });
    RankedHost {
        host: name.to_owned(),
        chosen,
        eviction_cost: cost,
        victims: Vec::new(),
        weight: weights.iter().map(|w| w.multiplier * w.normalised).sum(),
        weights: weights.into(),
    }
}

fn explanation(policy: &str, ranking: Vec<RankedHost>, ranked: u32) -> Explanation {
    Explanation {
        policy: policy.to_owned(),
        instances: vec![InstanceExplanation {
            filters: Vec::new(),
            ranking,
            ranked,
        }],
        ..Explanation::default()
    }
}

fn told(explanation: &Explanation) -> Vec<String> {
    let all = without_weighers(explanation, false).into_iter();
    all.map(|o| format!("{}: {} {}", o.weigher, o.hosts.join("="), o.certain))
        .collect()
}

#[test]
fn a_weigher_is_left_out_and_the_others_stay() {
    let all = vec![
        host("a", None, [0.0, 1.0], true),
        host("b", None, [1.0, 0.0], false),
        host("c", None, [0.0, 0.0], false),
    ];
    let all = explanation("nova", all, 3);
    assert_eq!(told(&all), ["one: a true", "two: b true"]);
}

#[test]
fn hosts_that_weigh_the_same_are_all_named() {
    let all = vec![
        host("a", None, [1.0, 1.0], true),
        host("b", None, [1.0, 0.0], false),
    ];
    let all = explanation("nova", all, 2);
    assert_eq!(told(&all), ["one: a true", "two: a=b true"]);
}

#[test]
fn a_host_that_was_not_kept_may_have_won() {
    // The last host that was kept weighs 2.5; without `one` another may weigh as much, for which it
    // gave nothing.
    let all = vec![
        host("a", None, [0.8, 1.0], true),
        host("b", None, [0.5, 1.0], false),
    ];
    let all = explanation("nova", all, 9);
    assert_eq!(told(&all), ["one: a=b false", "two: a false"]);
    let far = vec![
        host("a", None, [0.1, 1.0], true),
        host("b", None, [0.0, 0.5], false),
    ];
    let far = explanation("nova", far, 9);
    assert_eq!(told(&far), ["one: a true", "two: a false"]);
}

#[test]
fn costs_come_before_weights_where_the_policy_says_so() {
    let all = vec![
        host("a", Some(3.0), [0.0, 1.0], true),
        host("b", Some(3.0), [1.0, 0.0], false),
        host("c", Some(4.0), [1.0, 1.0], false),
    ];
    let all = explanation("tiered", all, 9);
    assert_eq!(told(&all), ["one: a false", "two: b false"]);
    let waiting = without_weighers(&all, true);
    assert!(waiting.iter().all(|other| other.certain), "{waiting:?}");
    assert!(needs_victims(&all, 1) && !needs_victims(&all, 0));
    assert_eq!(one_more_host(&all, 1), Some("a"));
    assert_eq!(one_more_host(&all, 0), None);
}

#[test]
fn a_refused_host_and_several_instances_are_not_told_about() {
    let all = vec![
        host("a", None, [1.0, 1.0], false),
        host("b", None, [1.0, 0.0], true),
    ];
    let mut all = explanation("nova", all, 2);
    assert_eq!(told(&all), ["one: a false", "two: a=b false"]);
    let again = all.instances[0].clone();
    all.instances.push(again);
    assert_eq!(told(&all), [""; 0]);
}
