//! A question and its answer.

use crate::calibration::{Calibration, Row};
use crate::chance::{Share, interrupted};
use crate::error::AdviceError;
use crate::knowledge::{Knowledge, Scope};
use crate::limits::{CONFIDENCE, CURVE, GREATEST_AGE, LONGEST_COST, LONGEST_JOB, WITHIN};
use crate::model::Chosen;
use crate::pool::Whose;
use crate::schedule::{self, Schedule};
use ebbtide_lifetime::Lifetime;

/// What somebody wants to know. Hours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// How old the server is; 0 for a new one.
    pub age: f64,
    /// How much work there is; `None` without a job.
    pub job: Option<f64>,
    /// How long a checkpoint takes.
    pub checkpoint: f64,
    /// How long it takes to get a new server and load the checkpoint.
    pub restart: f64,
}

impl Default for Question {
    /// A new server, no job; a minute for a checkpoint as in the paper.
    fn default() -> Self {
        Self {
            age: 0.0,
            job: None,
            checkpoint: 1.0 / 60.0,
            restart: 0.0,
        }
    }
}

impl Question {
    /// Refuses numbers that cannot be, and those that would take too long.
    ///
    /// # Errors
    /// [`AdviceError::Question`] with the field's name in the contract.
    pub fn check(&self) -> Result<(), AdviceError> {
        let within = |field, value: f64, most: f64| {
            if value.is_finite() && (0.0..=most).contains(&value) {
                return Ok(());
            }
            Err(AdviceError::Question {
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
            // A second: less is no job, and steps of nothing are no plan.
            if job < 1.0 / 3600.0 {
                return Err(AdviceError::Question {
                    field: "job_hours",
                    value: job,
                    problem: "less than a second; leave it out for no job".to_owned(),
                });
            }
        }
        Ok(())
    }
}

/// The chance of an interruption.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chance {
    /// Within how many hours from now on.
    pub within: f64,
    /// By the model.
    pub chance: f64,
    /// What was seen of lives of this age, and its 95 %, in whole percents: share, low, high. `None` if nobody was watched for so long.
    pub seen: Option<(f64, f64, f64)>,
}

/// A point of the distribution of the life that is left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// Hours from now on.
    pub hours: f64,
    /// The share that has been interrupted by then, by the model.
    pub model: f64,
    /// The same as it was seen, in whole percents; `None` if nobody was watched for so long.
    pub seen: Option<f64>,
}

/// Those that were told about the same before, and how many of them were interrupted. Shares in whole percents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ToldBefore {
    /// Within how many hours of the launch.
    pub within: f64,
    /// The chance that they were told, on average.
    pub told: f64,
    /// How many they are; down to whole tens if others' lives are among them.
    pub lives: usize,
    /// How many were interrupted, and its 95 %: share, low, high.
    pub were: (f64, f64, f64),
    /// Whether that is farther from what they were told than chance explains.
    pub off: bool,
}

/// Whether the same way of telling would have been right before.
#[derive(Debug, Clone, PartialEq)]
pub struct Tested {
    /// By hours, then by what was told, to the nearest tenth.
    pub rows: Vec<ToldBefore>,
    /// All together, by hours.
    pub overall: Vec<ToldBefore>,
    /// How many were told nothing, since too little was known before; as [`ToldBefore::lives`].
    pub untold: usize,
    /// Whether nothing is off; `None` if nobody could be told anything.
    pub agrees: Option<bool>,
}

/// What a model says.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// The model, as `--model` takes it.
    pub model: String,
    /// Whether the data leave it standing.
    pub fits: bool,
    /// The model in words.
    pub words: String,
    /// The expected life that is left, hours.
    pub expected: f64,
    /// Chances within 1, 6 and 24 h.
    pub chances: Vec<Chance>,
    /// The distribution of the life that is left.
    pub curve: Vec<CurvePoint>,
    /// Whether it would have been right before.
    pub calibration: Tested,
    /// The job's checkpoints.
    pub schedule: Option<Schedule>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// Which lives were looked at.
    pub scope: Scope,
    /// Whose.
    pub whose: Whose,
    /// How many: the asker's own, and others' down to whole tens.
    pub lives: usize,
    /// How many of them are the asker's own.
    pub own: usize,
    /// How many the provider ended; down to whole tens if others' are among them.
    pub interruptions: usize,
    /// How long they lived together, hours, two digits of it.
    pub lived: f64,
    /// The maximum lifetime of the flavor, hours; infinite for none.
    pub maximum: f64,
    /// What is known, or why nothing is.
    pub known: Result<Known, String>,
}

impl Knowledge {
    /// Answers. What is told follows from the rounded model and from shares in whole percents.
    ///
    /// # Errors
    /// [`AdviceError::Question`] for what cannot be asked, and an age that no server reaches; [`AdviceError::Model`] if the job has no plan.
    pub fn advice(&self, question: &Question) -> Result<Advice, AdviceError> {
        question.check()?;
        let maximum = self.pool.maximum;
        if question.age >= maximum {
            return Err(too_old(question.age, maximum));
        }
        let known = match &self.model {
            Ok(chosen) => Ok(self.known(chosen, question)?),
            Err(why) => Err(why.clone()),
        };
        let (all, own) = (self.pool.followed.len(), self.pool.own);
        let interruptions = self.pool.interruptions();
        let others_too = self.pool.whose == Whose::OwnAndOthers;
        Ok(Advice {
            scope: self.scope,
            whose: self.pool.whose,
            lives: own + tens(all - own),
            own,
            interruptions: if others_too {
                tens(interruptions)
            } else {
                interruptions
            },
            lived: two(self.pool.lived()),
            maximum,
            known,
        })
    }

    fn known(&self, chosen: &Chosen, question: &Question) -> Result<Known, AdviceError> {
        let model = chosen.model.as_ref();
        let age = question.age;
        if model.survival(age) <= 0.0 {
            return Err(too_old(age, model.maximum()));
        }
        let gone = |hours: f64| 1.0 - model.conditional_survival(age, hours);
        let chances = WITHIN.iter().map(|&within| Chance {
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
        Ok(Known {
            model: chosen.text.clone(),
            fits: chosen.fits,
            words: chosen.words.clone(),
            expected: model.mean_residual(age),
            chances: chances.collect(),
            curve: curve.collect(),
            calibration: tested(&self.calibration, self.pool.whose),
            schedule: match question.job {
                Some(job) => Some(schedule::plan(model, question, job)?),
                None => None,
            },
        })
    }
}

fn too_old(age: f64, maximum: f64) -> AdviceError {
    AdviceError::Question {
        field: "age_hours",
        value: age,
        problem: if maximum.is_finite() {
            format!("older than any server of this flavor gets: below {maximum:.2} h")
        } else {
            "so old that by the model no server of this flavor gets there".to_owned()
        },
    }
}

/// Where the curve ends: at the limit, or where hardly anybody is left.
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

fn tested(calibration: &Calibration, whose: Whose) -> Tested {
    let count = |lives: usize| match whose {
        Whose::OwnAndOthers => tens(lives),
        Whose::Everybody | Whose::Own => lives,
    };
    let row = |row: &Row| ToldBefore {
        within: row.within,
        told: percent(row.told),
        lives: count(row.lives),
        were: percents(row.were),
        off: row.off(),
    };
    Tested {
        rows: calibration.rows.iter().map(row).collect(),
        overall: calibration.overall.iter().map(row).collect(),
        untold: count(calibration.untold),
        agrees: calibration.agrees(),
    }
}

/// The share and its 95 %, rounded outwards so that it stays that.
fn percents(share: Share) -> (f64, f64, f64) {
    let (low, high) = share.interval(CONFIDENCE);
    let low = (low * 100.0).floor() / 100.0;
    (percent(share.share), low, (high * 100.0).ceil() / 100.0)
}

fn percent(share: f64) -> f64 {
    (share * 100.0).round() / 100.0
}

/// Down to whole tens.
fn tens(count: usize) -> usize {
    count / 10 * 10
}

/// Two digits that matter.
fn two(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let unit = 10f64.powf(value.log10().floor() - 1.0);
    (value / unit).round() * unit
}
