//! The recorded traces: what the policies cost there.

use crate::support::{POLICIES, job};
use ebbtide_deadline::{Decider, PolicyKind, RecordedSeries, optimum, read_runs, simulate};
use ebbtide_test_data::data;

const HOUR: u64 = 3_600;
/// Starts a trace; enough for the mean, few enough for every test run.
const STARTS: usize = 3;

/// Mean cost of a policy and of the optimum, both over the cost on demand, for the paper's 48 hours
/// of work in so many hours.
fn means(traces: &[RecordedSeries], kind: PolicyKind, deadline: u64) -> (f64, f64) {
    let (mut paid, mut least, mut jobs) = (0.0, 0.0, 0.0);
    for trace in traces {
        let series = &trace.series;
        let job = job(48 * HOUR, deadline, 720, series.step());
        let starts = series.starts(deadline);
        for n in 0..STARTS.min(starts) {
            let start = (2 * n + 1) * starts / (2 * STARTS);
            let market = series.window(start, deadline).unwrap();
            let best = optimum(&job, market, series.step()).unwrap();
            let history = series.history(start, u64::MAX);
            let mut decider = Decider::new(job, kind, &history).unwrap();
            let end = simulate(&mut decider, market, series.step()).unwrap();
            assert!(end.met() && end.cost >= best, "{}, {start}", series.name());
            paid += end.cost.over(job.on_demand_cost());
            least += best.over(job.on_demand_cost());
            jobs += 1.0;
        }
    }
    (paid / jobs, least / jobs)
}

#[test]
fn ours_is_within_a_tenth_of_the_optimum_in_the_mean_and_below_the_papers_policies() {
    let file = data("spot-traces-skypilot/spot_traces_runs.csv");
    let text = std::fs::read_to_string(&file.path).unwrap();
    let all = read_runs(&text).unwrap();
    let one_node = |trace: &RecordedSeries| trace.series.name().starts_with("availability/1-node");
    let traces: Vec<RecordedSeries> = all.into_iter().filter(one_node).collect();
    // Job fractions 0.8 and 0.9 of the paper.
    for deadline in [60 * HOUR, 53 * HOUR + 1_200] {
        let costs = POLICIES.map(|kind| (kind, means(&traces, kind, deadline)));
        let (_, (ours, least)) = costs[POLICIES.len() - 1];
        assert!(ours >= least);
        if file.reduced {
            continue;
        }
        assert!(ours <= 1.1 * least, "{ours} against {least}");
        for (kind, (paid, _)) in &costs[..POLICIES.len() - 1] {
            assert!(ours < *paid, "{kind:?} costs {paid}, ours {ours}");
        }
    }
}

#[test]
fn the_traces_are_all_there() {
    let file = data("spot-traces-skypilot/spot_traces_runs.csv");
    let all = read_runs(&std::fs::read_to_string(&file.path).unwrap()).unwrap();
    let ticks: usize = all.iter().map(|one| one.series.available().len()).sum();
    assert!(
        all.iter()
            .all(|one| (0.0..=1.0).contains(&one.series.fraction()))
    );
    if file.reduced {
        assert!(all.len() >= 2 && ticks > 0);
    } else {
        assert_eq!((all.len(), ticks), (34, 389_245));
    }
}
