//! Shares of what was seen.

use ebbtide_advice::observed_share::interrupted;
use ebbtide_lifetime::{Observation, Observations};
use proptest::prelude::*;

fn seen(list: &[(f64, bool)]) -> Observations {
    let all = list
        .iter()
        .map(|&(hours, ended)| Observation { hours, ended });
    Observations::new(all, f64::INFINITY).unwrap()
}

#[test]
fn without_censoring_the_share_is_counted() {
    let all = seen(&[
        (1.0, true),
        (2.0, true),
        (3.0, true),
        (4.0, true),
        (9.0, true),
    ]);
    let share = interrupted(&all, 0.0, 3.5).unwrap();
    assert!(
        (share.share - 0.6).abs() < 1e-12 && (share.worth - 5.0).abs() < 1e-9,
        "{share:?}"
    );
    // Of the three that were older than 2.5 h, two ended within 2 h.
    let share = interrupted(&all, 2.5, 2.0).unwrap();
    assert!((share.share - 2.0 / 3.0).abs() < 1e-12, "{share:?}");
}

#[test]
fn who_was_stopped_counts_for_as_long_as_it_was_watched() {
    // By hand: 4 at risk, one ends (3/4); one is stopped; 2 at risk, one ends: 3/8 are left.
    let all = seen(&[(1.0, true), (2.0, false), (3.0, true), (8.0, false)]);
    let share = interrupted(&all, 0.0, 4.0).unwrap();
    assert!((share.share - 0.625).abs() < 1e-12, "{share:?}");
    assert!(share.worth < 4.0);
}

#[test]
fn an_age_without_observations_has_no_share() {
    let all = seen(&[(1.0, true), (2.0, false)]);
    assert_eq!(interrupted(&all, 0.0, 5.0), None);
    assert_eq!(interrupted(&all, 3.0, 1.0), None);
    assert_eq!(interrupted(&seen(&[]), 0.0, 1.0), None);
}

#[test]
fn no_interruption_of_twenty_does_not_prove_that_there_are_none() {
    let share = interrupted(&seen(&[(9.0, false); 20]), 0.0, 5.0).unwrap();
    let (low, high) = share.interval(1.96);
    assert_eq!((share.share, low), (0.0, 0.0));
    // Wilson's: z²/(n + z²).
    assert!((high - 0.161).abs() < 0.001, "{high}");
}

proptest! {
    #[test]
    fn intervals_hold_their_share_and_lie_within_0_and_1(
        list in prop::collection::vec((0.0..30.0f64, any::<bool>()), 0..60), age in 0.0..10.0f64, within in 0.0..20.0f64
    ) {
        if let Some(share) = interrupted(&seen(&list), age, within) {
            let (low, high) = share.interval(1.96);
            prop_assert!((0.0..=1.0).contains(&share.share));
            prop_assert!(0.0 <= low && low <= share.share + 1e-9 && share.share <= high + 1e-9 && high <= 1.0, "{share:?}: {low} to {high}");
        }
    }
}
