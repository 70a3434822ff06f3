//! Advice on a scheme holds on prices that it has not seen.

use ebbtide_checkpointing::{
    CheckpointTerms, PriceHistory, SchemeKind, Starts, advise, band, bids, compare, read_series,
    spiky_market,
};
use ebbtide_model::Money;
use std::io::Read;

const DAY: i64 = 86_400;
/// 500 minutes, the paper's job.
const JOB: i64 = 500 * 60;
/// The schemes that a tenant can run; OPT knows the future.
const REAL: [SchemeKind; 5] = [
    SchemeKind::None,
    SchemeKind::Hour,
    SchemeKind::Edge,
    SchemeKind::Adapt,
    SchemeKind::Acc,
];
const STARTS: Starts = Starts {
    every_seconds: 25 * 3600,
    tail_seconds: 10 * DAY,
};

/// The real series of 2010, every fourth one; reduced data have four.
fn archive() -> Vec<PriceHistory> {
    let data = ebbtide_test_data::data("ec2-spot-2010/spot_2009-11_2010-11.csv.zst");
    let file = std::fs::File::open(&data.path).unwrap();
    let mut text = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(file)
        .unwrap()
        .read_to_end(&mut text)
        .unwrap();
    let step = if data.reduced { 1 } else { 4 };
    let series = read_series(&text, 60 * DAY).unwrap().into_iter();
    series.step_by(step).map(|one| one.history).collect()
}

/// A market as that of 2015, 200 days long.
fn spiky(seed: u64) -> PriceHistory {
    spiky_market(seed, 200).unwrap()
}

/// The first and the second half of a history.
fn halves(history: &PriceHistory) -> [PriceHistory; 2] {
    let (begin, end) = (history.start(), history.end());
    let middle = begin + (end - begin) / 2;
    let all: Vec<(i64, Money)> = history.changes().collect();
    let cut = |from: i64, to: i64| {
        let mut part = vec![(from, history.price_at(from))];
        part.extend(all.iter().filter(|(at, _)| from < *at && *at < to));
        PriceHistory::new(&part, to).unwrap()
    };
    [cut(begin, middle), cut(middle, end)]
}

/// How many per cent the scheme that was chosen on the first half is above the best of the four
/// older schemes on the second; `None` if that shows too few jobs.
fn regret(history: &PriceHistory, bid: Money) -> Option<f64> {
    let terms = CheckpointTerms::default();
    let [past, future] = halves(history);
    let advice = advise(&past, bid, &REAL, &terms, JOB, STARTS).ok()?;
    let seen = compare(&future, bid, &REAL, &terms, JOB, STARTS).unwrap();
    let of = |kind: SchemeKind| {
        let found = seen.of(kind).unwrap();
        (found.finished * 20 >= seen.starts * 19).then_some(found.product)
    };
    let older = REAL.iter().filter(|kind| **kind != SchemeKind::Acc);
    let best = older.filter_map(|kind| of(*kind)).reduce(f64::min)?;
    Some(100.0 * (of(advice.scheme)? / best - 1.0))
}

/// The regrets of three bids on each history.
fn regrets(histories: &[PriceHistory]) -> Vec<f64> {
    let of = |history: &PriceHistory| {
        let (low, high) = band(history);
        let bids = bids(low, high, 3).into_iter();
        bids.filter_map(|bid| regret(history, bid))
            .collect::<Vec<_>>()
    };
    histories.iter().flat_map(of).collect()
}

#[test]
fn what_was_chosen_on_the_past_is_no_dearer_than_the_best_older_scheme() {
    let spiky: Vec<PriceHistory> = (1..=12).map(spiky).collect();
    for (what, histories) in [("2010", archive()), ("as 2015", spiky)] {
        let regrets = regrets(&histories);
        let (cases, sum) = (regrets.len(), regrets.iter().sum::<f64>());
        assert!(cases >= histories.len(), "{what}: {cases} cases");
        let mean = sum / cases as f64;
        assert!(
            mean <= 2.0,
            "{what}: {mean:.2} % above the best on average of {cases} cases: {regrets:.1?}"
        );
    }
}

#[test]
fn advice_names_what_it_was_worth_on_later_prices() {
    let history = spiky(7);
    let (low, _) = band(&history);
    let terms = CheckpointTerms::default();
    let advice = advise(&history, low, &REAL, &terms, JOB, STARTS).unwrap();
    let (mean, least, most) = advice.gain().unwrap();
    assert!(least <= mean && mean <= most);
    assert!(advice.gains_percent.len() <= 4);
    let of = |kind: SchemeKind| {
        let mut found = advice.products.iter();
        found.find(|(one, _)| *one == kind).unwrap().1
    };
    let best = of(advice.scheme).unwrap();
    assert!(
        advice
            .products
            .iter()
            .all(|(_, one)| one.is_none_or(|one| one >= best))
    );
    assert!(of(advice.next.unwrap()).unwrap() >= best);
}

#[test]
fn a_history_in_which_no_job_ends_gives_no_advice() {
    let money = |text: &str| text.parse::<Money>().unwrap();
    let short = PriceHistory::new(&[(0, money("0.1"))], 3600).unwrap();
    let terms = CheckpointTerms::default();
    let error = advise(&short, money("0.2"), &REAL, &terms, JOB, STARTS).unwrap_err();
    assert_eq!(error.code(), "EB-CKPT-010");
}
