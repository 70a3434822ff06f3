//! Generated markets, and the schemes on them as docs/tenants/papers.md quotes them.

use ebbtide_checkpointing::{
    CheckpointTerms, SchemeKind, Starts, band, bids, compare, over_bids, over_series, spiky_market,
};
use ebbtide_model::Money;

const DAY: i64 = 86_400;
/// 500 minutes, the paper's job.
const JOB: i64 = 500 * 60;

#[test]
fn a_seed_is_a_market_with_rare_spikes() {
    let market = spiky_market(1, 365).unwrap();
    assert_eq!(market, spiky_market(1, 365).unwrap());
    assert_ne!(market, spiky_market(2, 365).unwrap());
    assert!(market.end() - market.start() >= 365 * DAY);
    let money = |text: &str| text.parse::<Money>().unwrap();
    let (low, high) = market.extremes();
    assert!(low >= money("0.05") && high <= money("2.2"));
    // Most of the time the price is low, and nothing lies between low and high.
    let spans = || {
        market
            .spans()
            .map(|(from, until, price)| (until - from, price))
    };
    assert!(spans().all(|(_, price)| price <= money("0.07") || price >= money("0.2")));
    let high: i64 = spans()
        .filter(|(_, price)| *price > money("0.07"))
        .map(|(s, _)| s)
        .sum();
    let share = high as f64 / (market.end() - market.start()) as f64;
    assert!((0.02..0.25).contains(&share), "{share}");
}

#[test]
fn markets_without_days_or_with_too_many_are_refused() {
    for days in [0, 10_001] {
        assert_eq!(spiky_market(1, days).unwrap_err().code(), "EB-CKPT-008");
    }
}

/// Per scheme: cost, time and product against OPT in per cent, mean over the markets.
#[test]
fn figure_10_on_spiky_markets_is_as_the_page_says() {
    let terms = CheckpointTerms::default();
    let kinds = SchemeKind::ALL;
    let sweeps: Vec<_> = (1..=12)
        .map(|seed| {
            let market = spiky_market(seed, 365).unwrap();
            let (low, high) = band(&market);
            let rows = bids(low, high, 21).into_iter();
            let rows = rows
                .map(|bid| compare(&market, bid, &kinds, &terms, JOB, Starts::default()).unwrap());
            rows.collect::<Vec<_>>()
        })
        .collect();
    for (kind, expected) in EXPECTED {
        let each: Vec<_> = sweeps
            .iter()
            .filter_map(|rows| over_bids(rows, kind))
            .collect();
        let seen = over_series(kind, &each).unwrap();
        let figures = [seen.cost.mean, seen.time.mean, seen.product.mean];
        let figures = figures.map(|value| (value * 10.0).round() / 10.0);
        assert_eq!(figures, expected, "{kind}");
    }
}

const EXPECTED: [(SchemeKind, [f64; 3]); 5] = [
    (SchemeKind::None, [11.2, 10.7, 34.8]),
    (SchemeKind::Hour, [12.6, 9.5, 23.9]),
    (SchemeKind::Edge, [10.9, 10.4, 33.7]),
    (SchemeKind::Adapt, [5.3, 6.6, 15.7]),
    (SchemeKind::Acc, [5.2, -2.0, 5.0]),
];
