//! Piecewise phases: a constant hazard in each, for operators who know "so many an hour at first,
//! then so many".

use crate::Lifetime;
use crate::error::LifetimeError;

const NAME: &str = "phases";

/// One phase of a life.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Phase {
    /// Until which age it lasts, hours. Infinite only in the last one.
    pub until: f64,
    /// The hazard in it, per hour; may be zero.
    pub hazard: f64,
}

/// Lives in phases of constant hazard. The end of the last phase is the maximum lifetime, where an
/// atom takes what is left.
#[derive(Debug, Clone, PartialEq)]
pub struct Phases {
    phases: Vec<Phase>,
    /// The cumulative hazard at the beginning of each phase.
    before: Vec<f64>,
}

impl Phases {
    /// A model from phases in order of age; the first one begins at age 0.
    ///
    /// # Errors
    /// [`LifetimeError::Points`] if there is no phase, ages do not increase, a hazard is negative
    /// or not a number, or the last phase never ends.
    pub fn new(phases: Vec<Phase>) -> Result<Self, LifetimeError> {
        let refuse = |problem: String| {
            Err(LifetimeError::Points {
                model: NAME,
                problem,
            })
        };
        if phases.is_empty() {
            return refuse("there is no phase".to_owned());
        }
        let (mut from, mut total, mut before) = (0.0, 0.0, Vec::with_capacity(phases.len()));
        for (number, phase) in phases.iter().enumerate() {
            let number = number + 1;
            if !(phase.hazard.is_finite() && phase.hazard >= 0.0) {
                return refuse(format!(
                    "the hazard of phase {number} is {}; it has to be a finite number, not negative",
                    phase.hazard
                ));
            }
            if phase.until.is_nan() || phase.until <= from {
                return refuse(format!(
                    "phase {number} ends at {} h, not after its beginning at {from} h",
                    phase.until
                ));
            }
            before.push(total);
            if phase.until.is_finite() {
                total += phase.hazard * (phase.until - from);
            } else if number < phases.len() {
                return refuse(format!("phase {number} never ends and others follow"));
            } else if phase.hazard == 0.0 {
                return refuse("no life ends in the last phase, which never ends".to_owned());
            }
            from = phase.until;
        }
        Ok(Self { phases, before })
    }

    /// The phases in order.
    #[must_use]
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// The phase of an age: its number and when it began.
    fn at(&self, t: f64) -> (usize, f64) {
        let number = self
            .phases
            .partition_point(|phase| phase.until <= t)
            .min(self.phases.len() - 1);
        (number, self.start(number))
    }

    fn start(&self, number: usize) -> f64 {
        if number == 0 {
            0.0
        } else {
            self.phases[number - 1].until
        }
    }

    /// The integral of the survival function from 0 to `t`, which is not beyond the maximum.
    fn lived(&self, t: f64) -> f64 {
        let mut sum = 0.0;
        for (number, phase) in self.phases.iter().enumerate() {
            let from = self.start(number);
            if from >= t {
                break;
            }
            let span = phase.until.min(t) - from;
            let share = if phase.hazard > 0.0 {
                -(-phase.hazard * span).exp_m1() / phase.hazard
            } else {
                span
            };
            sum += (-self.before[number]).exp() * share;
        }
        sum
    }
}

impl Lifetime for Phases {
    fn name(&self) -> &'static str {
        NAME
    }

    fn parameters(&self) -> Vec<(&'static str, f64)> {
        self.phases
            .iter()
            .flat_map(|phase| [("until", phase.until), ("hazard", phase.hazard)])
            .collect()
    }

    fn maximum(&self) -> f64 {
        self.phases[self.phases.len() - 1].until
    }

    fn continuous_cdf(&self, t: f64) -> f64 {
        let t = t.clamp(0.0, self.maximum());
        let (number, from) = self.at(t);
        -(-self.before[number] - self.phases[number].hazard * (t - from)).exp_m1()
    }

    fn density(&self, t: f64) -> f64 {
        if (0.0..self.maximum()).contains(&t) {
            self.phases[self.at(t).0].hazard * (1.0 - self.continuous_cdf(t))
        } else {
            0.0
        }
    }

    fn cdf_integral(&self, from: f64, to: f64) -> f64 {
        let end = self.maximum();
        let inside = |t: f64| {
            let t = t.clamp(0.0, end);
            t - self.lived(t)
        };
        inside(to) - inside(from) + (to - end).max(0.0) - (from - end).max(0.0)
    }
}
