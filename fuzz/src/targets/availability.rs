//! Traces of availability: what is taken is a series, and a job on it meets its deadline under
//! every policy and costs no less than the optimum.

use ebbtide_deadline::{
    DeadlineJob, Decider, HourPrices, JobTerms, PolicyKind, RecordedSeries, optimum, read_runs,
    simulate,
};
use ebbtide_model::Money;

/// Steps beyond this say nothing new.
const MOST_STEPS: usize = 300;
/// Series beyond this neither.
const MOST_SERIES: usize = 3;
/// A step that is longer than this gives deadlines beyond all bounds.
const LONGEST_STEP: u64 = 86_400;

pub(super) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(all) = read_runs(&text) else {
        return;
    };
    assert!(!all.is_empty());
    all.iter().take(MOST_SERIES).for_each(play);
}

fn play(trace: &RecordedSeries) {
    let series = &trace.series;
    let step = series.step();
    let steps = series.available().len().min(MOST_STEPS);
    assert!(step > 0 && steps > 0 && trace.servers > 0);
    let deadline = step.saturating_mul(steps as u64);
    if steps < 4 || step > LONGEST_STEP {
        return;
    }
    let job = DeadlineJob::new(JobTerms {
        work: deadline / 2,
        deadline,
        changeover: step,
        poll: step,
        loss_lag: 0,
        prices: HourPrices {
            spot: Money::from_micros(1),
            on_demand: Money::from_micros(3),
        },
    })
    .expect("half of the time and one step fit");
    let market = series
        .window(0, deadline)
        .expect("the deadline is within the series");
    let least = optimum(&job, market, step).expect("a step is a cell");
    for kind in [
        PolicyKind::Greedy,
        PolicyKind::TimeSliced { slices: 3 },
        PolicyKind::UniformProgress,
        PolicyKind::UniformProgressKeep,
        PolicyKind::Planned,
    ] {
        let history = series.history(steps, u64::MAX);
        let mut decider = Decider::new(job, kind, &history).expect("three slices are allowed");
        let end = simulate(&mut decider, market, step).expect("the market is long enough");
        assert!(
            end.met() && end.cost >= least,
            "{kind:?}: {end:?}, {least:?}"
        );
    }
}
