//! The paper's figures on the traces that there are: the Yahoo cut, and a synthetic trace of the
//! same make.

use crate::common;

use common::shared;
use ebbtide_elastic::{
    Cluster, Elastic, ElasticPolicy, Gain, NoWatch, SimulationResult, Trace, compare,
};

/// Static and elastic of some seeds.
fn runs(trace: &Trace, ratio: f64, seeds: u64) -> Vec<(SimulationResult, SimulationResult)> {
    let cluster = Cluster::default();
    let policy = ElasticPolicy::new(80, ratio, 0.5).unwrap();
    let each = (1..=seeds).map(|seed| {
        let fixed = compare::fixed(trace, &cluster, seed, &mut NoWatch).unwrap();
        let elastic = Elastic::new(policy);
        let elastic = compare::elastic(trace, &cluster, elastic, seed, &mut NoWatch).unwrap();
        (fixed, elastic)
    });
    each.collect()
}

/// What must hold on any trace, looked at on a reduced one: elastic servers come, and short tasks
/// wait no longer for it.
fn holds_on_a_reduced_trace(trace: &Trace, ratio: f64) {
    assert_eq!(trace.jobs().len(), 400);
    let cluster = common::cluster(60, 2);
    let policy = ElasticPolicy::new(2, ratio, 0.5).unwrap();
    let fixed = compare::fixed(trace, &cluster, 1, &mut NoWatch).unwrap();
    let elastic = compare::elastic(trace, &cluster, Elastic::new(policy), 1, &mut NoWatch).unwrap();
    assert_eq!(fixed.short.count() + fixed.long.count(), trace.tasks());
    assert_eq!(elastic.short.count(), fixed.short.count());
    assert!(elastic.transients.most > 0);
    assert!(
        elastic.short.mean() <= fixed.short.mean(),
        "{} against {}",
        elastic.short.mean(),
        fixed.short.mean()
    );
}

/// The quotient of the means over all seeds.
fn improvement(runs: &[(SimulationResult, SimulationResult)]) -> f64 {
    let fixed: f64 = runs.iter().map(|(fixed, _)| fixed.short.mean()).sum();
    let elastic: f64 = runs.iter().map(|(_, elastic)| elastic.short.mean()).sum();
    fixed / elastic
}

#[test]
fn on_the_yahoo_cut_short_tasks_wait_a_fifth_at_three_for_one() {
    let (text, reduced) = shared("YH1_sub.tr.zst");
    let trace = Trace::read(&text).unwrap();
    if reduced {
        return holds_on_a_reduced_trace(&trace, 3.0);
    }
    assert_eq!((trace.jobs().len(), trace.tasks()), (2_910, 122_878));
    let runs = runs(&trace, 3.0, 4);
    let gain = improvement(&runs);
    assert!(gain >= 4.8, "{gain}");
    for (fixed, elastic) in &runs {
        // The paper: "while maintaining long job performance".
        let long = elastic.long.mean() / fixed.long.mean();
        assert!((long - 1.0).abs() < 0.01, "{long}");
        assert!(elastic.short.max() < fixed.short.max());
        assert_eq!(elastic.transients.most, 120);
    }
}

#[test]
fn on_the_yahoo_cut_the_same_money_at_one_for_one_is_as_good_as_before() {
    let (text, reduced) = shared("YH1_sub.tr.zst");
    let trace = Trace::read(&text).unwrap();
    if reduced {
        return holds_on_a_reduced_trace(&trace, 2.0);
    }
    // A single seed is within 3 %; the mean of eight within the 2 % that are wanted.
    let gain = improvement(&runs(&trace, 1.0, 8));
    assert!((gain - 1.0).abs() < 0.02, "{gain}");
}

#[test]
fn on_the_synthetic_trace_gain_and_servers_are_of_the_papers_size() {
    let (text, reduced) = shared("YH_synthetic_seed25.tr.zst");
    let trace = Trace::read(&text).unwrap();
    if reduced {
        return holds_on_a_reduced_trace(&trace, 3.0);
    }
    assert_eq!(trace.jobs().len(), 24_262);
    let runs = runs(&trace, 3.0, 1);
    let gain = improvement(&runs);
    assert!((3.9..=8.2).contains(&gain), "{gain}");
    let (fixed, elastic) = &runs[0];
    let policy = ElasticPolicy::new(80, 3.0, 0.5).unwrap();
    // Table 1 has 84.5 servers, 28.2 of them r-normalised, and lives of 0.79 h.
    let transients = &elastic.transients;
    assert!(
        (75.0..95.0).contains(&transients.mean_up),
        "{}",
        transients.mean_up
    );
    let lives = transients.lives.mean() / 3_600.0;
    assert!((0.6..1.3).contains(&lives), "{lives}");
    // 29.5 % of the given-up servers' price is saved in the paper.
    let saving = Gain::of(fixed, elastic, &policy).saving;
    assert!((0.22..0.40).contains(&saving), "{saving}");
}
