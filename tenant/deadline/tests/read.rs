//! The run-length form of the traces.

use ebbtide_deadline::{DeadlineError, Series, SeriesKind, read_runs};

const HEADER: &str = "kind,file,gap_s,start_tick,ticks,value\n";

fn refused(rows: &str) -> String {
    let error = read_runs(&format!("{HEADER}{rows}")).unwrap_err();
    assert!(matches!(error, DeadlineError::Row { .. }), "{error}");
    assert_eq!(error.code(), "EB-DEADLINE-003");
    error.to_string()
}

#[test]
fn runs_become_series() {
    let rows = "availability,a.json,195,0,2,0\navailability,a.json,195,2,3,1\n";
    let all = read_runs(&format!("{HEADER}{rows}")).unwrap();
    let [one] = &all[..] else {
        panic!("{all:?}");
    };
    assert_eq!(one.kind, SeriesKind::Availability);
    assert_eq!((one.series.name(), one.series.step()), ("a.json", 195));
    assert_eq!(one.series.available(), [false, false, true, true, true]);
    assert_eq!(one.series.fraction(), 0.6);
}

#[test]
fn a_cluster_is_there_when_all_of_it_is() {
    let rows = "preemption,four.json,300,0,1,4\npreemption,four.json,300,1,1,3\n";
    let all = read_runs(&format!("{HEADER}{rows}")).unwrap();
    assert_eq!((all[0].kind, all[0].servers), (SeriesKind::Preemption, 4));
    assert_eq!(all[0].series.available(), [true, false]);
}

#[test]
fn rows_that_cannot_be_read_are_named_by_their_line() {
    assert!(refused("what,a,195,0,2,0\n").starts_with("line 2: kind is \"what\""));
    assert!(refused("availability,a,x,0,2,0\n").contains("gap_s is \"x\""));
    assert!(refused("availability,a,0,0,2,0\n").contains("above zero"));
    let hole = "availability,a,1,0,2,0\navailability,a,1,3,1,1\n";
    assert!(refused(hole).starts_with("line 3: start_tick is 3"));
    let other = "availability,a,1,0,2,0\navailability,a,2,2,1,1\n";
    assert!(refused(other).starts_with("line 3: kind and gap_s"));
    assert!(refused("availability,a,1,0,99999999999,0\n").contains("more than"));
    assert!(refused("availability,a,1,0\n").starts_with("line 2"));
}

#[test]
fn files_without_the_columns_or_without_rows_are_refused() {
    let error = read_runs("kind,file\n").unwrap_err();
    assert_eq!(error.to_string(), "line 1: the column gap_s is missing");
    assert_eq!(read_runs(HEADER), Err(DeadlineError::Empty));
    assert_eq!(DeadlineError::Empty.code(), "EB-DEADLINE-004");
}

#[test]
fn windows_and_histories_are_parts_of_the_series() {
    let rows = "availability,a,10,0,3,0\navailability,a,10,3,3,1\n";
    let all = read_runs(&format!("{HEADER}{rows}")).unwrap();
    let series = &all[0].series;
    // A deadline after 35 seconds needs four steps: three starts.
    assert_eq!(series.starts(35), 3);
    assert_eq!(series.window(2, 35).unwrap(), [false, true, true, true]);
    let refused = series.window(3, 35).unwrap_err();
    assert_eq!(refused.code(), "EB-DEADLINE-005");
    let looks = series.history(4, 20);
    assert_eq!(looks.looks(), [(-20, false), (-10, true)]);
    assert_eq!(series.history(0, 20).looks(), []);
}

#[test]
fn starts_are_drawn_over_the_series_and_the_same_for_the_same_seed() {
    let series = |name: &str| Series::new(name, 10, vec![true; 103]).unwrap();
    // A deadline after 40 seconds: 100 starts.
    let drawn = series("a").sampled_starts(40, 1_000, 1);
    assert_eq!(drawn, series("a").sampled_starts(40, 1_000, 1));
    assert_ne!(drawn, series("a").sampled_starts(40, 1_000, 2));
    assert_ne!(drawn, series("b").sampled_starts(40, 1_000, 1));
    assert!(
        drawn
            .iter()
            .all(|&start| series("a").window(start, 40).is_ok())
    );
    assert!(drawn.contains(&0) && drawn.contains(&99));
    assert_eq!(series("a").sampled_starts(2_000, 5, 1), Vec::<usize>::new());
}
