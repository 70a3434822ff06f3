//! Price histories of spot markets.

use ebbtide_checkpointing::{
    CheckpointTerms, HOUR_SECONDS, SchemeKind, Series, Starts, band, bids, compare, read_series,
};

pub(super) fn run(bytes: &[u8]) {
    let Ok(series) = read_series(bytes, 60 * 86_400) else {
        return;
    };
    let rows: usize = series.iter().map(|one| one.history.len()).sum();
    assert!(rows <= bytes.len());
    series.iter().take(3).for_each(check);
}

/// Whatever was read can be asked: bids lie in the band, jobs end or do not, nothing overflows.
fn check(one: &Series) {
    let history = &one.history;
    let (low, high) = history.extremes();
    assert!(history.start() < history.end() && low <= high);
    let (from, to) = band(history);
    assert!(low <= from && from <= to && to <= high);
    let starts = Starts {
        every_seconds: (history.end() - history.start()) / 2 + 1,
        tail_seconds: 0,
    };
    for bid in bids(from, to, 2) {
        assert!(from <= bid && bid <= to);
        let terms = CheckpointTerms::default();
        let work = 3 * HOUR_SECONDS;
        let Ok(row) = compare(history, bid, &SchemeKind::ALL, &terms, work, starts) else {
            panic!("a history that was read is refused");
        };
        assert!((0.0..=1.0).contains(&row.available), "{}", row.available);
        for result in &row.schemes {
            assert!(result.finished + result.never_ran <= row.starts);
            assert!(result.finished == 0 || result.hours >= 3.0 && result.cost >= 0.0);
        }
    }
}
