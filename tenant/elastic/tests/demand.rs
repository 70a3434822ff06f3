//! Figure 1 of the paper, with the values that docs/tenants/papers.md quotes.

use crate::common;

use common::{SECOND, google, job, shared, traces};
use ebbtide_elastic::{Demand, Trace};
use proptest::prelude::*;

const FOUR_HOURS: u64 = 4 * 3_600 * SECOND;

#[test]
fn tasks_count_for_the_part_of_a_window_in_which_they_run() {
    let jobs = vec![
        job(10, 5, &[5, 15]),
        job(20, 5, &[1]),
        // The last arrival ends the second window; nothing is counted beyond it.
        job(30, 5, &[100]),
    ];
    let trace = Trace::new(jobs).unwrap();
    let demand = Demand::of(&trace, 10 * SECOND).unwrap();
    // 5 and 10 of ten seconds; then 5 more and 1.
    assert_eq!(demand.windows, [1.5, 0.6]);
    assert!((demand.mean() - 1.05).abs() < 1e-12);
    assert!((demand.deviation() - 0.45).abs() < 1e-12);
    assert_eq!((demand.least(), demand.most()), (0.6, 1.5));
}

#[test]
fn windows_that_make_no_figure_are_refused() {
    let trace = Trace::new(vec![job(0, 5, &[5]), job(100, 5, &[5])]).unwrap();
    for window in [0, 1, 101 * SECOND, u64::MAX] {
        let error = Demand::of(&trace, window).unwrap_err();
        assert_eq!(error.code(), "EB-ELASTIC-001", "{window}");
    }
}

proptest! {
    /// Windows of one length have the mean of the shorter ones that fill them: the paper averages
    /// over 100 s and then over 4 h, which is the same as over 4 h.
    #[test]
    fn means_of_means_are_the_mean(trace in traces(40, true)) {
        prop_assume!(trace.span_us() >= 40 * SECOND);
        let (fine, coarse) = (Demand::of(&trace, 5 * SECOND), Demand::of(&trace, 20 * SECOND));
        let (fine, coarse) = (fine.unwrap(), coarse.unwrap());
        for (at, window) in coarse.windows.iter().enumerate() {
            let parts = &fine.windows[4 * at..4 * at + 4];
            prop_assert!((parts.iter().sum::<f64>() / 4.0 - window).abs() < 1e-9);
        }
    }
}

/// Windows, mean, deviation, least and most, rounded.
fn figures(text: &[u8], window: u64) -> [u64; 5] {
    let demand = Demand::of(&Trace::read(text).unwrap(), window).unwrap();
    let (mean, deviation) = (demand.mean(), demand.deviation());
    let [mean, deviation, least, most] =
        [mean, deviation, demand.least(), demand.most()].map(|value| value.round() as u64);
    [demand.windows.len() as u64, mean, deviation, least, most]
}

#[test]
fn figure_1_on_the_traces_is_as_the_page_says() {
    for ((text, reduced), window, expected) in [
        (google(), FOUR_HOURS, [6, 3067, 4199, 45, 9905]),
        (google(), 100 * SECOND, [935, 3480, 5177, 45, 22100]),
        (
            shared("YH1_sub.tr.zst"),
            100 * SECOND,
            [258, 3149, 1527, 34, 7631],
        ),
        (
            shared("YH_synthetic_seed25.tr.zst"),
            FOUR_HOURS,
            [12, 3404, 1020, 1979, 5860],
        ),
    ] {
        if reduced {
            let [count, mean, _, least, most] = figures(&text, 100 * SECOND);
            assert!(count > 0 && least <= mean && mean <= most);
            continue;
        }
        assert_eq!(figures(&text, window), expected);
    }
}
