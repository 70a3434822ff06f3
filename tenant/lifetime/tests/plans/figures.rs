//! Figures 4 to 8 of the paper, with the values that docs/tenants/papers.md quotes.

use super::{MINUTE, refit};
use ebbtide_lifetime::distributions::{Bathtub, Uniform};
use ebbtide_lifetime::plan::checkpoint::{CheckpointOptions, expected_makespan};
use ebbtide_lifetime::plan::figures::{self, OverheadRow, WasteRow};

/// Per cent with one decimal, as the page prints it.
fn percent(share: f64) -> f64 {
    (share * 1000.0).round() / 10.0
}

fn waste_at(model: &dyn ebbtide_lifetime::Lifetime, length: f64) -> WasteRow {
    figures::waste(model, &[length]).unwrap()[0]
}

#[test]
fn figure_4_is_as_the_page_says() {
    let (model, uniform) = (refit(), Uniform::new(24.0).unwrap());
    let minutes = |hours: f64| (hours * 60.0).round() as u32;
    // Length, then for bathtub and uniform: lost if the instance ends, increase; minutes.
    for (length, expected) in [
        (1.0, [25, 30, 7, 1]),
        (5.0, [55, 150, 23, 31]),
        (10.0, [56, 300, 23, 125]),
        (20.0, [60, 600, 25, 500]),
        (23.0, [225, 690, 107, 661]),
    ] {
        let (own, even) = (waste_at(&model, length), waste_at(&uniform, length));
        let seen = [
            own.lost_if_failed,
            even.lost_if_failed,
            own.increase,
            even.increase,
        ];
        assert_eq!(seen.map(minutes), expected, "{length} h");
    }
    // All instances, n1-highcpu-16, and those of it in us-east1-b: the increase of 10 h in minutes,
    // where the curves cross ("5 hours"), and the greatest quotient ("between 1× and 40×").
    let sixteen = Bathtub::new(0.4228, 0.9709, 0.7917, 24.45, 24.0).unwrap();
    let of_figure_1 = Bathtub::new(0.2845, 2.216, 0.6915, 24.08, 24.0).unwrap();
    for (model, increase, crossing, most) in [
        (&model, 23, 4.2, 20),
        (&sixteen, 25, 4.3, 19),
        (&of_figure_1, 36, 4.1, 13),
    ] {
        assert_eq!(minutes(waste_at(model, 10.0).increase), increase);
        let ahead =
            |length: f64| waste_at(&uniform, length).increase > waste_at(model, length).increase;
        assert!(
            !ahead(crossing - 0.06) && ahead(crossing + 0.06),
            "{crossing}"
        );
        let ratios = (1..24).map(|hour| {
            let length = f64::from(hour);
            waste_at(&uniform, length).increase / waste_at(model, length).increase
        });
        assert_eq!(ratios.fold(0.0, f64::max).round() as u32, most);
    }
}

#[test]
fn figures_5_to_7_are_as_the_page_says() {
    let model = refit();
    let rows = figures::failures_by_age(&model, None, 6.0, &[0.0, 3.0, 10.0, 17.0, 18.0]).unwrap();
    let seen: Vec<_> = rows.iter().map(|row| percent(row.always_kept)).collect();
    assert_eq!(seen, [41.3, 2.8, 0.0, 10.7, 100.0]);
    let seen: Vec<_> = rows.iter().map(|row| percent(row.by_model)).collect();
    assert_eq!(seen, [41.3, 2.8, 0.0, 10.7, 41.3]);
    for (length, kept, chosen) in [(1.0, 6.5, 3.5), (6.0, 28.4, 14.5), (12.0, 53.4, 25.6)] {
        let row = figures::failures_by_length(&model, None, &[length]).unwrap()[0];
        let seen = (percent(row.always_kept), percent(row.by_model));
        assert_eq!(seen, (kept, chosen), "{length} h");
        assert_eq!(row.by_wrong_model, None);
    }
    // Figure 7: instances of 32 CPUs, decided by the model of those with 16.
    let sixteen = Bathtub::new(0.4228, 0.9709, 0.7917, 24.45, 24.0).unwrap();
    let large = Bathtub::new(0.6904, 0.7613, 1.276, 25.67, 24.0).unwrap();
    for (length, own, wrong) in [(2.0, 11.6, 11.8), (6.0, 25.4, 25.3), (17.0, 59.8, 58.6)] {
        let row = figures::failures_by_length(&large, Some(&sixteen), &[length]).unwrap()[0];
        let seen = (percent(row.by_model), percent(row.by_wrong_model.unwrap()));
        assert_eq!(seen, (own, wrong), "{length} h");
    }
}

fn overhead(length: f64, age: f64) -> OverheadRow {
    figures::overhead(&refit(), length, age, &CheckpointOptions::default(), 1.0).unwrap()
}

#[test]
fn figure_8_is_as_the_page_says() {
    // Figure 8a, a job of 4 h: corrected, what the paper's equations reckon, Young and Daly.
    for (age, expected) in [
        (0.0, (6.5, Some(5.8), 10.8)),
        (5.0, (0.5, Some(0.5), 9.2)),
        (10.0, (0.4, Some(0.4), 9.2)),
        (15.0, (0.5, Some(0.4), 9.2)),
        (19.0, (3.1, Some(2.2), 9.7)),
        // It outlives its instance.
        (20.0, (6.1, None, 11.0)),
    ] {
        let row = overhead(4.0, age);
        let reckons = row.paper_reckons.map(percent);
        let seen = (percent(row.corrected), reckons, percent(row.young_daly));
        assert_eq!(seen, expected, "age {age}");
    }
    // Figure 8b, and its mean over 1 to 9 h.
    let rows: Vec<OverheadRow> = (1..10).map(|hour| overhead(f64::from(hour), 0.0)).collect();
    let of = |value: fn(&OverheadRow) -> f64| -> Vec<f64> {
        rows.iter().map(|row| percent(value(row))).collect()
    };
    let mean = |value: fn(&OverheadRow) -> f64| {
        percent(rows.iter().map(value).sum::<f64>() / rows.len() as f64)
    };
    let (corrected, reckons) = (
        |r: &OverheadRow| r.corrected,
        |r: &OverheadRow| r.paper_reckons.unwrap(),
    );
    assert_eq!(
        of(corrected),
        [10.8, 9.1, 7.6, 6.5, 5.5, 4.8, 4.2, 3.7, 3.3]
    );
    assert_eq!(of(reckons), [10.5, 8.4, 6.9, 5.8, 4.9, 4.3, 3.7, 3.3, 3.0]);
    assert_eq!((mean(corrected), mean(reckons)), (6.2, 5.7));
    assert_eq!(mean(|row| row.young_daly), 10.9);
    // The 25 % of the periodic rule: a checkpoint every four minutes costs them.
    let every_four = vec![4.0 * MINUTE; 60];
    let options = CheckpointOptions::default();
    let own = expected_makespan(&refit(), &every_four, 0.0, &options).unwrap();
    assert_eq!(percent(own / 4.0 - 1.0), 25.7);
}

#[test]
fn rows_that_make_no_sense_are_refused() {
    let model = refit();
    let options = CheckpointOptions::default();
    assert!(figures::waste(&model, &[1.0, 0.0]).is_err());
    assert!(figures::failures_by_age(&model, None, 6.0, &[-1.0]).is_err());
    assert!(figures::failures_by_length(&model, None, &[-1.0]).is_err());
    assert!(figures::overhead(&model, 4.0, 0.0, &options, 0.0).is_err());
}
