//! The empirical model: what was seen, without a formula.

use crate::Lifetime;
use crate::error::LifetimeError;

const NAME: &str = "empirical";

/// A distribution function through points, a straight line between each two. What the last point
/// leaves is the atom at it.
///
/// [`crate::fit::kaplan_meier`] makes one of observations.
#[derive(Debug, Clone, PartialEq)]
pub struct Empirical {
    times: Vec<f64>,
    shares: Vec<f64>,
    /// The integral of the distribution function up to each point.
    areas: Vec<f64>,
}

impl Empirical {
    /// A model from points (hours, share that has ended by then). The line begins at (0, 0) if the
    /// first point is later.
    ///
    /// # Errors
    /// [`LifetimeError::Points`] if there is none after time 0, times do not rise, shares fall or
    /// leave `0..=1`, or any is no number.
    pub fn new(points: &[(f64, f64)]) -> Result<Self, LifetimeError> {
        let refuse = |problem: String| {
            Err(LifetimeError::Points {
                model: NAME,
                problem,
            })
        };
        let mut model = Self {
            times: vec![0.0],
            shares: vec![0.0],
            areas: vec![0.0],
        };
        for (number, &(time, share)) in points.iter().enumerate() {
            let (last, before) = (
                model.times[model.times.len() - 1],
                model.shares[model.shares.len() - 1],
            );
            if !time.is_finite() || time < last || (time == last && number > 0) {
                return refuse(format!(
                    "point {} is at {time} h, not after {last} h",
                    number + 1
                ));
            }
            if !(before..=1.0).contains(&share) {
                return refuse(format!(
                    "the share of point {} is {share}, outside of {before} to 1",
                    number + 1
                ));
            }
            if time == 0.0 {
                model.shares[0] = share;
                continue;
            }
            let area = 0.5 * (before + share) * (time - last);
            model.areas.push(model.areas[model.areas.len() - 1] + area);
            model.times.push(time);
            model.shares.push(share);
        }
        if model.times.len() < 2 {
            return refuse("there is no point after time 0".to_owned());
        }
        Ok(model)
    }

    /// The points (hours, share), the first one at 0.
    pub fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.times.iter().copied().zip(self.shares.iter().copied())
    }

    /// The number of the line that leads over `t`: from point `n` to point `n + 1`.
    fn line(&self, t: f64) -> usize {
        self.times
            .partition_point(|&time| time <= t)
            .saturating_sub(1)
            .min(self.times.len() - 2)
    }

    /// How far `t` is on a line, from 0 to 1, and how far the line rises. A line may be too steep
    /// for its slope to be a number.
    fn along(&self, line: usize, t: f64) -> (f64, f64) {
        let width = self.times[line + 1] - self.times[line];
        let rise = self.shares[line + 1] - self.shares[line];
        ((t - self.times[line]) / width, rise)
    }

    fn area(&self, t: f64) -> f64 {
        let t = t.clamp(0.0, self.maximum());
        let line = self.line(t);
        let more = t - self.times[line];
        let (along, rise) = self.along(line, t);
        self.areas[line] + self.shares[line] * more + 0.5 * rise * along * more
    }
}

impl Lifetime for Empirical {
    fn name(&self) -> &'static str {
        NAME
    }

    /// None: the points are the model.
    fn parameters(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    fn maximum(&self) -> f64 {
        self.times[self.times.len() - 1]
    }

    fn continuous_cdf(&self, t: f64) -> f64 {
        if t < 0.0 {
            return 0.0;
        }
        let t = t.min(self.maximum());
        let line = self.line(t);
        let (along, rise) = self.along(line, t);
        self.shares[line] + rise * along
    }

    fn density(&self, t: f64) -> f64 {
        if (0.0..self.maximum()).contains(&t) {
            let line = self.line(t);
            let width = self.times[line + 1] - self.times[line];
            ((self.shares[line + 1] - self.shares[line]) / width).min(f64::MAX)
        } else {
            0.0
        }
    }

    fn cdf_integral(&self, from: f64, to: f64) -> f64 {
        let end = self.maximum();
        self.area(to) - self.area(from) + (to - end).max(0.0) - (from - end).max(0.0)
    }
}
