//! Do new lifetimes still fit the model? A sequential test with a bound on false alarms that holds
//! whatever users do.
//!
//! If the model is right, an instance of age `t` ends at the model's hazard `h(t)`, until the
//! provider, its user or the maximum lifetime ends it. Against each of some *alternatives*, "at
//! ages `a..b` hazards are `ρ` times the model's", the likelihood ratio of one instance is
//!
//! `L = ρ^d exp(-(ρ-1) H)`
//!
//! with `d = 1` if the provider ended it at such an age, and `H` the cumulative hazard that it went
//! through there. While the model holds its expectation is 1, however and whenever users stop their
//! instances, as long as they do not know of coming ends. Stopped instances and those at the
//! maximum lifetime count with what they lived through.
//!
//! Shiryaev's and Roberts' statistic `R_n = L_n (R_{n-1} + 1)` adds up the ratios of all beginnings
//! of a change. While the model holds, `R_n - n` is a martingale, for each alternative and for the
//! mean of all. So by Doob's inequality the mean is above `N / p` at some time within the first `N`
//! lifetimes with chance `p` at most, and an alarm at `c` comes after at least `c` lifetimes on
//! average (Pollak 1987; *e-detectors*, Shin, Ramdas, Rinaldo 2024). No simulation and no large
//! numbers are needed for that, and no tables.
//!
//! Why not Kolmogorov's and Smirnov's test on windows: it knows no censoring, sees only what ended,
//! and a row of tests has no rate of false alarms. Why not a plain CUSUM of hazards as a whole: a
//! change of shape (fewer early ends, more late ones) can leave the sum as it was. Hazards that are
//! off by a tenth are seldom reported, and it takes long: no model is fitted better than that to
//! some hundred lifetimes, and alternatives near the model would take that for a change.
//!
//! Lifetimes have to come in the order of launches. In the order of their ends the short ones of
//! every batch come first.

use crate::error::LifetimeError;
use crate::{Lifetime, Observation};

/// By how much hazards are higher or lower in the alternatives.
const FACTORS: [f64; 4] = [1.0 / 3.0, 0.6, 1.0 / 0.6, 3.0];
/// Phases of life that can change alone: parts with equal shares of the ends that the model expects
/// before its maximum.
const PHASES: u32 = 4;
/// Beyond the age at which so few are left in the model, instances count as if they went no
/// further.
const LAST: f64 = 1e-9;
/// Statistics stop growing here: it is an alarm by any standard.
const ENOUGH: f64 = 1e200;

/// What may be different: hazards at ages `from..to` hours are `factor` times the model's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HazardChange {
    /// The youngest age, hours.
    pub from: f64,
    /// The age where it ends, hours.
    pub to: f64,
    /// How many times higher the hazard is.
    pub factor: f64,
}

#[derive(Debug, Clone, Copy)]
struct Watch {
    change: HazardChange,
    /// Shiryaev's and Roberts' statistic.
    statistic: f64,
    /// The sum of the logarithms of all ratios, its least value, and after how many lifetimes that
    /// was: there the change begins.
    sum: f64,
    least: f64,
    since: usize,
}

/// The test, fed with one lifetime after another.
#[derive(Debug)]
pub struct Detector<'a> {
    model: &'a dyn Lifetime,
    watched: Vec<Watch>,
    /// Boundaries of the phases, hours.
    ages: Vec<f64>,
    seen: usize,
}

impl<'a> Detector<'a> {
    /// A test of this model.
    #[must_use]
    pub fn new(model: &'a dyn Lifetime) -> Self {
        let end = last_age(model);
        let begin = model.continuous_cdf(0.0);
        let share = model.continuous_cdf(end) - begin;
        let mut ages = vec![0.0];
        for part in 1..PHASES {
            let age = model.quantile(begin + share * f64::from(part) / f64::from(PHASES));
            // A model with all of its ends at a few ages has fewer phases.
            if age > ages[ages.len() - 1] && age < end {
                ages.push(age);
            }
        }
        ages.push(end);
        let mut spans = vec![(0.0, end)];
        if ages.len() > 2 {
            spans.extend(ages.windows(2).map(|pair| (pair[0], pair[1])));
        }
        let watched = spans
            .into_iter()
            .flat_map(|(from, to)| FACTORS.map(|factor| HazardChange { from, to, factor }))
            .map(|change| Watch {
                change,
                statistic: 0.0,
                sum: 0.0,
                least: 0.0,
                since: 0,
            })
            .collect();
        Self {
            model,
            watched,
            ages,
            seen: 0,
        }
    }

    /// Takes in the next lifetime and gives the statistic: the mean of all alternatives'. It is `n`
    /// on average after `n` lifetimes that fit.
    pub fn take(&mut self, next: Observation) -> f64 {
        self.seen += 1;
        let end = self.ages[self.ages.len() - 1];
        for watch in &mut self.watched {
            let HazardChange { from, to, factor } = watch.change;
            let (ended, hazard) = exposure(self.model, next, from, to, end);
            let ratio = f64::from(u8::from(ended)) * factor.ln() - (factor - 1.0) * hazard;
            watch.statistic = ((watch.statistic + 1.0) * ratio.exp()).min(ENOUGH);
            watch.sum += ratio;
            if watch.sum < watch.least {
                (watch.least, watch.since) = (watch.sum, self.seen);
            }
        }
        self.watched.iter().map(|w| w.statistic).sum::<f64>() / self.watched.len() as f64
    }

    /// The alternative that speaks loudest, and the number (from 1) of the first lifetime that it
    /// explains better than the model.
    #[must_use]
    pub fn loudest(&self) -> Option<(HazardChange, usize)> {
        let loudest = self
            .watched
            .iter()
            .max_by(|a, b| a.statistic.total_cmp(&b.statistic))?;
        Some((loudest.change, loudest.since + 1))
    }

    /// Boundaries of the phases of life, hours, from 0 to the last age that matters.
    #[must_use]
    pub fn ages(&self) -> &[f64] {
        &self.ages
    }
}

/// The age beyond which nothing is counted: the maximum lifetime, where what is left is an atom, or
/// where hardly anybody is left.
fn last_age(model: &dyn Lifetime) -> f64 {
    model.maximum().min(model.quantile(1.0 - LAST))
}

/// Whether the provider ended it at an age after `from`, up to `to` and before `end`, and the
/// cumulative hazard that it went through there. Instances that never came up (age 0) say nothing.
fn exposure(model: &dyn Lifetime, seen: Observation, from: f64, to: f64, end: f64) -> (bool, f64) {
    let alive = |t: f64| (1.0 - model.continuous_cdf(t)).max(LAST);
    let until = seen.hours.min(to);
    if until <= from {
        return (false, 0.0);
    }
    let hazard = (alive(from) / alive(until)).ln().max(0.0);
    (seen.ended && seen.hours <= to && seen.hours < end, hazard)
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alarm {
    /// After how many lifetimes it was certain.
    pub at: usize,
    /// The number (from 1) of the first lifetime that the change explains better.
    pub since: usize,
    /// The alternative that explains it best.
    pub change: HazardChange,
}

/// What a phase of life was like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PhaseCount {
    /// Its first age, hours.
    pub from: f64,
    /// Its end, hours.
    pub to: f64,
    /// How many ends the model expects of those that lived through it.
    pub expected: f64,
    /// How many there were.
    pub ended: usize,
    /// The factor by which hazards differ, its bounds with 95 % confidence (Byar's approximation to
    /// Poisson's); zero to infinity where nothing is expected.
    pub factor: (f64, f64, f64),
}

/// The result of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeReport {
    /// The statistic after each lifetime.
    pub statistic: Vec<f64>,
    /// The bound for an alarm.
    pub bound: f64,
    /// The first alarm, if there was one.
    pub alarm: Option<Alarm>,
    /// What each phase was like: of all lifetimes, or of those from the change on.
    pub phases: Vec<PhaseCount>,
}

/// Tests lifetimes in the order of their launches. If the model is right, an alarm comes with at
/// most the chance `false_alarms`.
///
/// # Errors
/// [`LifetimeError::Question`] for a chance outside of 0 to 1; [`LifetimeError::TooFew`] without
/// lifetimes.
pub fn check(
    model: &dyn Lifetime,
    seen: &[Observation],
    false_alarms: f64,
) -> Result<ChangeReport, LifetimeError> {
    if !(false_alarms > 0.0 && false_alarms < 1.0) {
        return Err(LifetimeError::Question {
            what: "the chance of a false alarm",
            value: false_alarms,
            allowed: "between 0 and 1".to_owned(),
        });
    }
    if seen.is_empty() {
        return Err(LifetimeError::TooFew {
            needed: 1,
            found: 0,
            censored: 0,
        });
    }
    let bound = seen.len() as f64 / false_alarms;
    let mut detector = Detector::new(model);
    let mut statistic = Vec::with_capacity(seen.len());
    let mut alarm = None;
    for (number, next) in seen.iter().enumerate() {
        let value = detector.take(*next);
        statistic.push(value);
        if value >= bound && alarm.is_none() {
            alarm = detector.loudest().map(|(change, since)| Alarm {
                at: number + 1,
                since: since.min(number + 1),
                change,
            });
        }
    }
    let first = alarm.map_or(0, |alarm| alarm.since - 1);
    let ages = detector.ages();
    let phases = ages
        .windows(2)
        .map(|span| phase(model, &seen[first..], span, ages[ages.len() - 1]))
        .collect();
    Ok(ChangeReport {
        statistic,
        bound,
        alarm,
        phases,
    })
}

fn phase(model: &dyn Lifetime, seen: &[Observation], span: &[f64], end: f64) -> PhaseCount {
    let (from, to) = (span[0], span[1]);
    let (mut ended, mut expected) = (0, 0.0);
    for one in seen {
        let (here, hazard) = exposure(model, *one, from, to, end);
        ended += usize::from(here);
        expected += hazard;
    }
    let count = ended as f64;
    // Byar: n (1 - 1/(9n) ± z / (3 √n))³, the upper bound with n + 1.
    let bound = |n: f64, z: f64| n * (1.0 - 1.0 / (9.0 * n) + z / (3.0 * n.sqrt())).powi(3);
    let low = if ended > 0 { bound(count, -1.96) } else { 0.0 };
    let factor = if expected > 0.0 {
        (
            count / expected,
            low / expected,
            bound(count + 1.0, 1.96) / expected,
        )
    } else {
        (f64::NAN, 0.0, f64::INFINITY)
    };
    PhaseCount {
        from,
        to,
        expected,
        ended,
        factor,
    }
}
