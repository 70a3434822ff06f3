//! A question and its answer.

use crate::calibration::{Calibration, CalibrationRow};
use crate::error::AdviceError;
use crate::flavor_model::{FlavorModel, FlavorScope};
use crate::limits::{CONFIDENCE, CURVE, GREATEST_AGE, LONGEST_COST, LONGEST_JOB, WITHIN};
use crate::model::SelectedModel;
use crate::observed_share::{ObservedShare, interrupted};
use crate::pool::LifeOwners;
use crate::schedule::{self, Schedule};
use ebbtide_lifetime::Lifetime;

/// The tenant's question. All times in hours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdviceQuery {
    /// How old the server is; 0 for a new one.
    pub age: f64,
    /// Amount of work of the job; `None` without a job.
    pub job: Option<f64>,
    /// Duration of a checkpoint.
    pub checkpoint: f64,
    /// Duration of obtaining a new server and loading the checkpoint.
    pub restart: f64,
}

impl Default for AdviceQuery {
    /// A new server without a job; a checkpoint takes a minute as in the paper.
    fn default() -> Self {
        Self {
            age: 0.0,
            job: None,
            checkpoint: 1.0 / 60.0,
            restart: 0.0,
        }
    }
}

impl AdviceQuery {
    /// Refuses invalid numbers, and those whose computation would take too long.
    ///
    /// # Errors
    /// [`AdviceError::Query`] with the field's name in the contract.
    pub fn check(&self) -> Result<(), AdviceError> {
        let within = |field, value: f64, most: f64| {
            if value.is_finite() && (0.0..=most).contains(&value) {
                return Ok(());
            }
            Err(AdviceError::Query {
                field,
                value,
                problem: format!("not between 0 and {most} h"),
            })
        };
        within("age_hours", self.age, GREATEST_AGE)?;
        within("checkpoint_hours", self.checkpoint, LONGEST_COST)?;
        within("restart_hours", self.restart, LONGEST_COST)?;
        if let Some(job) = self.job {
            within("job_hours", job, LONGEST_JOB)?;
            // A job of less than a second is refused, because a plan needs steps of some length.
            if job < 1.0 / 3600.0 {
                return Err(AdviceError::Query {
                    field: "job_hours",
                    value: job,
                    problem: "less than a second; leave it out for no job".to_owned(),
                });
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InterruptionChance {
    /// Within how many hours from now on.
    pub within: f64,
    /// By the model.
    pub chance: f64,
    /// The observed share for lives of this age and its 95 % interval, in whole percents: share,
    /// low, high. `None` if no life was observed for that long.
    pub seen: Option<(f64, f64, f64)>,
}

/// A point of the distribution of the remaining lifetime.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// Hours from now on.
    pub hours: f64,
    /// The share that has been interrupted by then, by the model.
    pub model: f64,
    /// The observed share, in whole percents. `None` if no life was observed for that long.
    pub seen: Option<f64>,
}

/// Earlier lives that received about the same forecast, and the share of them that was interrupted.
/// Shares in whole percents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ForecastBand {
    /// Within how many hours of the launch.
    pub within: f64,
    /// The average forecast.
    pub forecast: f64,
    /// Number of lives; rounded down to whole tens if lives of other tenants are among them.
    pub lives: usize,
    /// The observed share of interruptions and its 95 % interval: share, low, high.
    pub observed: (f64, f64, f64),
    /// Whether chance does not explain the difference from the forecast.
    pub differs: bool,
}

/// Whether earlier forecasts of the same method were correct.
#[derive(Debug, Clone, PartialEq)]
pub struct ForecastTest {
    /// By hours, then by forecast, rounded to the nearest tenth.
    pub rows: Vec<ForecastBand>,
    /// All lives together, by hours.
    pub overall: Vec<ForecastBand>,
    /// Number of lives without a forecast because too little data was available before their
    /// launch; rounded as [`ForecastBand::lives`].
    pub without_forecast: usize,
    /// Whether all rows agree with the forecasts; `None` if there was no forecast.
    pub agrees: Option<bool>,
}

/// A model and the figures computed from it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFigures {
    /// The model, as `--model` takes it.
    pub model: String,
    /// Whether the data do not reject the model.
    pub fits: bool,
    /// The model in words.
    pub words: String,
    /// The expected remaining lifetime, hours.
    pub expected: f64,
    /// Chances within 1, 6 and 24 h.
    pub chances: Vec<InterruptionChance>,
    /// The distribution of the remaining lifetime.
    pub curve: Vec<CurvePoint>,
    /// The result of the backtest.
    pub calibration: ForecastTest,
    /// The job's checkpoints.
    pub schedule: Option<Schedule>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// Which flavors the lives belong to.
    pub scope: FlavorScope,
    /// Which tenants the lives belong to.
    pub owners: LifeOwners,
    /// Number of lives: the tenant's own, and those of others rounded down to whole tens.
    pub lives: usize,
    /// Number of the tenant's own lives among them.
    pub own: usize,
    /// Number that the provider ended; rounded down to whole tens if lives of others are among
    /// them.
    pub interruptions: usize,
    /// Their total lifetime, hours, to two significant digits.
    pub total_hours: f64,
    /// The maximum lifetime of the flavor, hours; infinite for none.
    pub maximum: f64,
    /// The model and its figures, or the reason why there is none.
    pub figures: Result<ModelFigures, String>,
}

impl FlavorModel {
    /// Answers a question. All figures follow from the rounded model and from shares in whole
    /// percents.
    ///
    /// # Errors
    /// [`AdviceError::Query`] for an invalid question, and for an age that no server reaches;
    /// [`AdviceError::Model`] if the job has no plan.
    pub fn advice(&self, question: &AdviceQuery) -> Result<Advice, AdviceError> {
        question.check()?;
        let maximum = self.pool.maximum;
        if question.age >= maximum {
            return Err(too_old(question.age, maximum));
        }
        let figures = match &self.model {
            Ok(chosen) => Ok(self.figures(chosen, question)?),
            Err(why) => Err(why.clone()),
        };
        let (all, own) = (self.pool.observed_lives.len(), self.pool.own);
        let interruptions = self.pool.interruptions();
        let others_too = self.pool.owners == LifeOwners::OwnAndOthers;
        Ok(Advice {
            scope: self.scope,
            owners: self.pool.owners,
            lives: own + tens(all - own),
            own,
            interruptions: if others_too {
                tens(interruptions)
            } else {
                interruptions
            },
            total_hours: two(self.pool.total_hours()),
            maximum,
            figures,
        })
    }

    fn figures(
        &self,
        chosen: &SelectedModel,
        question: &AdviceQuery,
    ) -> Result<ModelFigures, AdviceError> {
        let model = chosen.model.as_ref();
        let age = question.age;
        if model.survival(age) <= 0.0 {
            return Err(too_old(age, model.maximum()));
        }
        let gone = |hours: f64| 1.0 - model.conditional_survival(age, hours);
        let chances = WITHIN.iter().map(|&within| InterruptionChance {
            within,
            chance: gone(within),
            seen: interrupted(&self.seen, age, within).map(percents),
        });
        let end = horizon(model, age, self.pool.maximum);
        let curve = (0..=CURVE).map(|at| {
            let hours = end * at as f64 / CURVE as f64;
            CurvePoint {
                hours,
                model: gone(hours),
                seen: interrupted(&self.seen, age, hours).map(|share| percent(share.share)),
            }
        });
        Ok(ModelFigures {
            model: chosen.text.clone(),
            fits: chosen.fits,
            words: chosen.words.clone(),
            expected: model.mean_residual(age),
            chances: chances.collect(),
            curve: curve.collect(),
            calibration: tested(&self.calibration, self.pool.owners),
            schedule: match question.job {
                Some(job) => Some(schedule::plan(model, question, job)?),
                None => None,
            },
        })
    }
}

fn too_old(age: f64, maximum: f64) -> AdviceError {
    AdviceError::Query {
        field: "age_hours",
        value: age,
        problem: if maximum.is_finite() {
            format!("older than any server of this flavor gets: below {maximum:.2} h")
        } else {
            "so old that by the model no server of this flavor gets there".to_owned()
        },
    }
}

/// The end of the curve: the limit, or the age that hardly any server reaches.
fn horizon(model: &dyn Lifetime, age: f64, maximum: f64) -> f64 {
    const HARDLY: f64 = 0.05;
    const SPANS: [f64; 8] = [6.0, 12.0, 24.0, 48.0, 96.0, 168.0, 336.0, 720.0];
    if maximum.is_finite() {
        return maximum - age;
    }
    let [.., longest] = SPANS;
    let spans = SPANS.into_iter();
    let mut far = spans.filter(|span| model.conditional_survival(age, *span) <= HARDLY);
    far.next().unwrap_or(longest)
}

fn tested(calibration: &Calibration, owners: LifeOwners) -> ForecastTest {
    let count = |lives: usize| match owners {
        LifeOwners::OwnAndOthers => tens(lives),
        LifeOwners::Everybody | LifeOwners::Own => lives,
    };
    let row = |row: &CalibrationRow| ForecastBand {
        within: row.within,
        forecast: percent(row.forecast),
        lives: count(row.lives),
        observed: percents(row.observed),
        differs: row.differs(),
    };
    ForecastTest {
        rows: calibration.rows.iter().map(row).collect(),
        overall: calibration.overall.iter().map(row).collect(),
        without_forecast: count(calibration.without_forecast),
        agrees: calibration.agrees(),
    }
}

/// The share and its 95 % interval, rounded outwards so that it keeps its coverage.
fn percents(share: ObservedShare) -> (f64, f64, f64) {
    let (low, high) = share.interval(CONFIDENCE);
    let low = (low * 100.0).floor() / 100.0;
    (percent(share.share), low, (high * 100.0).ceil() / 100.0)
}

fn percent(share: f64) -> f64 {
    (share * 100.0).round() / 100.0
}

/// Rounds down to whole tens.
fn tens(count: usize) -> usize {
    count / 10 * 10
}

/// Rounds to two significant digits.
fn two(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let unit = 10f64.powf(value.log10().floor() - 1.0);
    (value / unit).round() * unit
}
