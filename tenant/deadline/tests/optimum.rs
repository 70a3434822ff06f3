//! The optimum against all choices.

use crate::support::{job, prices};
use ebbtide_deadline::{DeadlineError, DeadlineJob, Decision, JobCost, JobState, optimum};
use proptest::prelude::*;

const CHOICES: [Decision; 3] = [Decision::Wait, Decision::Spot, Decision::OnDemand];

/// The least cost over all decisions at all steps.
fn brute_force(job: &DeadlineJob, world: JobState, market: &[bool], step: u64) -> Option<JobCost> {
    let end = world.end(job);
    if world.facts().is_done(job) {
        return end.met().then_some(end.cost);
    }
    let (&available, rest) = market.split_first()?;
    let each = CHOICES.into_iter().filter_map(|decision| {
        let mut world = world;
        world.begin(available);
        world.act(job, decision, step);
        brute_force(job, world, rest, step)
    });
    each.min()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_optimum_is_the_least_cost_of_all_decisions(
        step in 1..12_u64,
        work in 1..40_u64,
        changeover in 0..16_u64,
        slack in 0..30_u64,
        market in prop::collection::vec(any::<bool>(), 8),
    ) {
        let deadline = work + changeover + slack;
        prop_assume!(deadline <= 8 * step);
        let job = job(work, deadline, changeover, step);
        let least = optimum(&job, &market, step).unwrap();
        prop_assert_eq!(Some(least), brute_force(&job, JobState::new(), &market, step));
    }
}

#[test]
fn a_gap_that_one_can_wait_out_is_waited_out() {
    // Twenty minutes of work, ten of changeover; the second ten minutes have no servers.
    let market = [true, false, true, true, true, true];
    let spot = |minutes: u64| JobCost::of(minutes * 60, prices().spot);
    // Late: wait for the long period, then 10 + 20 minutes.
    let patient = job(1_200, 3_600, 600, 600);
    assert_eq!(optimum(&patient, &market, 600), Ok(spot(30)));
    // Not so late that this is possible: on demand over the gap, then a preemptible server.
    let hurried = job(1_200, 2_400, 600, 600);
    let paid = JobCost::of(1_200, prices().on_demand).plus(spot(20));
    assert_eq!(optimum(&hurried, &market, 600), Ok(paid));
    // Ten minutes later it is.
    let between = job(1_200, 3_000, 600, 600);
    assert_eq!(optimum(&between, &market, 600), Ok(spot(30)));
}

#[test]
fn a_market_that_ends_before_the_deadline_is_refused() {
    let job = job(1_200, 3_600, 600, 600);
    let refused = optimum(&job, &[true; 5], 600).unwrap_err();
    assert!(
        matches!(refused, DeadlineError::TooShort { .. }),
        "{refused}"
    );
}

#[test]
fn a_table_beyond_all_bounds_is_refused() {
    // Ten million seconds of slack in cells of a second.
    let job = job(3_600, 10_000_000, 601, 600);
    let market = vec![true; 20_000];
    let refused = optimum(&job, &market, 600).unwrap_err();
    assert!(
        matches!(refused, DeadlineError::TooLarge { .. }),
        "{refused}"
    );
}
