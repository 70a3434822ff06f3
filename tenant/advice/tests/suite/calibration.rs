//! A correct model is calibrated, a wrong one is not, and no forecast uses later data.

use crate::world::{KEPT, at, lives, model};
use ebbtide_advice::calibration::{Calibration, backtest};
use ebbtide_advice::{LifePool, Viewer, choose};
use ebbtide_lifetime::fit::{Estimator, Family, fit};
use std::sync::atomic::{AtomicUsize, Ordering};

const BATHTUB: &str = "bathtub:A=0.414,tau1=0.94,tau2=0.77,b=24.45";

fn pool(text: &str, stopped: f64, seed: u64) -> LifePool {
    let model = model(text);
    let all = lives(model.as_ref(), 1200, 2400.0, 7, stopped, seed);
    LifePool::of(&all, &Viewer::Everything, at(2400.0), model.maximum(), KEPT)
}

fn by_choice(pool: &LifePool) -> Calibration {
    backtest(pool, |known| choose(known).ok().map(|chosen| chosen.model))
}

#[test]
fn a_model_chosen_from_what_was_known_is_calibrated() {
    for (text, stopped, seed) in [
        (BATHTUB, 0.0, 1),
        (BATHTUB, 0.4, 2),
        ("weibull:lambda=0.08,k=0.6,max=none", 0.3, 3),
    ] {
        let found = by_choice(&pool(text, stopped, seed));
        assert_eq!(found.agrees(), Some(true), "{text}: {found:#?}");
        assert!(found.forecasts >= 900, "{}", found.forecasts);
        for row in &found.overall {
            assert!(
                (row.forecast - row.observed.share).abs() < 0.08,
                "{text}: {row:?}"
            );
        }
    }
}

#[test]
fn a_memoryless_model_of_bathtubs_is_not() {
    let found = backtest(&pool(BATHTUB, 0.2, 4), |known| {
        fit(Family::Exponential, Estimator::MaximumLikelihood, known)
            .ok()
            .map(|fit| fit.model)
    });
    assert_eq!(found.agrees(), Some(false));
    // Bathtubs end early: within an hour many more were interrupted than told.
    let hour = &found.overall[0];
    assert!(
        hour.differs() && hour.observed.share > hour.forecast + 0.1,
        "{hour:?}"
    );
}

#[test]
fn who_leaves_out_what_users_stopped_is_told_too_much() {
    // The wrong way to count: only those that the provider ended, as if all lives were like theirs.
    let found = backtest(&pool("exponential:lambda=0.1,max=none", 0.7, 5), |known| {
        let ended = known.all().iter().filter(|one| one.ended).copied();
        let ended = ebbtide_lifetime::Observations::new(ended, f64::INFINITY).unwrap();
        fit(Family::Exponential, Estimator::MaximumLikelihood, &ended)
            .ok()
            .map(|fit| fit.model)
    });
    assert_eq!(found.agrees(), Some(false), "{:#?}", found.overall);
    assert!(
        found
            .overall
            .iter()
            .any(|row| row.forecast > row.observed.share + 0.05)
    );
}

#[test]
fn models_of_the_backtest_know_only_what_was_known_and_are_few() {
    let pool = pool(BATHTUB, 0.2, 6);
    let asked = AtomicUsize::new(0);
    let longest = AtomicUsize::new(0);
    let _ = backtest(&pool, |known| {
        let number = asked.fetch_add(1, Ordering::SeqCst);
        let last = known.all().last().unwrap().hours;
        longest.fetch_max(known.all().len(), Ordering::SeqCst);
        // The k-th model is of the (k+1)-th sixth of 2400 h: nothing in it is longer than all time
        // before.
        assert!(last <= 400.0 * (number + 1) as f64);
        None
    });
    assert_eq!(asked.load(Ordering::SeqCst), 5);
    assert!(longest.load(Ordering::SeqCst) <= ebbtide_advice::limits::MOST_LIVES_OF_BACKTEST);
}

#[test]
fn a_region_that_changes_is_not_calibrated() {
    // First hardly anybody is taken away, then everybody soon.
    let calm = model("exponential:lambda=0.01,max=none");
    let storm = model("exponential:lambda=0.8,max=none");
    let mut all = lives(calm.as_ref(), 600, 2000.0, 5, 0.0, 7);
    all.extend(
        lives(storm.as_ref(), 600, 400.0, 5, 0.0, 8)
            .into_iter()
            .map(|mut life| {
                let hours = |t: ebbtide_model::Timestamp| {
                    (t.as_millis() - crate::world::BEGIN) as f64 / 3_600_000.0
                };
                life.launched = at(hours(life.launched) + 2000.0);
                life.ended = life.ended.map(|(t, end)| (at(hours(t) + 2000.0), end));
                life
            }),
    );
    let pool = LifePool::of(&all, &Viewer::Everything, at(2400.0), f64::INFINITY, KEPT);
    assert_eq!(by_choice(&pool).agrees(), Some(false));
}
