//! What every lifetime model can be asked.

use crate::integrate::integral;
use rand::Rng;

/// How long an instance lives. All times in hours since its launch, all densities and hazards per
/// hour.
///
/// A provider that ends every instance at a maximum lifetime puts the mass that is left there on
/// that one moment, an *atom*: the distribution function jumps to 1. Models without a maximum say
/// infinity.
pub trait Lifetime: std::fmt::Debug + Send + Sync {
    /// The model's name, as in configuration and reports.
    fn name(&self) -> &'static str;

    /// Its parameters by the names of its paper; times in hours.
    fn parameters(&self) -> Vec<(&'static str, f64)>;

    /// The longest life, hours; infinite if there is none.
    fn maximum(&self) -> f64;

    /// The distribution function without the atom at the maximum, for `0 <= t`: never falls, from 0
    /// to at most 1.
    fn continuous_cdf(&self, t: f64) -> f64;

    /// The density, per hour, of the part without atoms. Zero outside of `0..maximum`.
    fn density(&self, t: f64) -> f64;

    /// The chance to live `t` hours at most, the atom at the maximum included.
    fn cdf(&self, t: f64) -> f64 {
        if t < 0.0 {
            0.0
        } else if t >= self.maximum() {
            1.0
        } else {
            self.continuous_cdf(t)
        }
    }

    /// The mass at the maximum lifetime: the share of instances that the provider's limit ends.
    fn atom(&self) -> f64 {
        let end = self.maximum();
        if end.is_finite() {
            (1.0 - self.continuous_cdf(end)).max(0.0)
        } else {
            0.0
        }
    }

    /// The chance to live longer than `t` hours.
    fn survival(&self, t: f64) -> f64 {
        1.0 - self.cdf(t)
    }

    /// The rate, per hour, at which instances of age `t` end; infinite where none is left.
    fn hazard(&self, t: f64) -> f64 {
        let alive = self.survival(t);
        if alive > 0.0 {
            self.density(t) / alive
        } else {
            f64::INFINITY
        }
    }

    /// The chance that an instance of age `age` lives more than `more` hours beyond it; zero if
    /// none is that old.
    fn conditional_survival(&self, age: f64, more: f64) -> f64 {
        let alive = self.survival(age);
        if alive > 0.0 {
            (self.survival(age + more) / alive).min(1.0)
        } else {
            0.0
        }
    }

    /// The integral of [`Self::cdf`] from `from` to `to`, hours.
    fn cdf_integral(&self, from: f64, to: f64) -> f64 {
        let end = self.maximum();
        let inner = integral(|t| self.cdf(t), from.clamp(0.0, end), to.clamp(0.0, end));
        inner + (to - end).max(0.0) - (from - end).max(0.0)
    }

    /// The expected lifetime with the atom at the maximum, hours: the integral of the survival
    /// function.
    fn mean(&self) -> f64 {
        // Beyond the 1 - 1e-13 quantile there is nothing that a double would notice.
        let end = self.maximum().min(self.quantile(1.0 - 1e-13));
        end - self.cdf_integral(0.0, end)
    }

    /// The integral of t times the density, hours: the paper's equation 3, which leaves the atom
    /// out.
    fn mean_without_atom(&self) -> f64 {
        let end = self.maximum();
        if end.is_finite() {
            self.mean() - end * self.atom()
        } else {
            self.mean()
        }
    }

    /// The expected life that is still before an instance of age `age`, hours; zero where so few
    /// are left (less than one in 10^12) that doubles cannot tell.
    fn mean_residual(&self, age: f64) -> f64 {
        let alive = self.survival(age);
        if alive < 1e-12 {
            return 0.0;
        }
        let end = self
            .maximum()
            .min(self.quantile((1.0 - alive * 1e-13).min(ALMOST_ALL)));
        ((end - age) - self.cdf_integral(age, end)).max(0.0) / alive
    }

    /// The least time, hours, by which a share `p` of `0..=1` of the instances has ended.
    fn quantile(&self, p: f64) -> f64 {
        bisect(|t| self.cdf(t), p, self.maximum())
    }

    /// The lifetime, hours, that belongs to the next number of `chance`.
    fn sample(&self, chance: &mut dyn Rng) -> f64 {
        self.quantile(unit(chance))
    }

    /// A whole lifetime, hours, of an instance that has already lived `age`.
    fn sample_from_age(&self, age: f64, chance: &mut dyn Rng) -> f64 {
        let gone = self.cdf(age);
        let share = (gone + (1.0 - gone) * unit(chance)).min(ALMOST_ALL);
        self.quantile(share).max(age)
    }
}

/// The greatest chance below 1: the quantile of 1 itself is infinite in models without a maximum.
const ALMOST_ALL: f64 = 1.0 - 2.0 * f64::EPSILON;

/// A number in `(0, 1)`: 52 bits, in the middle of their interval.
pub(crate) fn unit(chance: &mut dyn Rng) -> f64 {
    ((chance.next_u64() >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
}

/// The least `t` in `0..=end` with `cdf(t) >= p`, to the last bits of a double.
pub(crate) fn bisect(cdf: impl Fn(f64) -> f64, p: f64, end: f64) -> f64 {
    if cdf(0.0) >= p {
        return 0.0;
    }
    let mut high = if end.is_finite() { end } else { 1.0 };
    while end.is_infinite() && cdf(high) < p && high < 1e300 {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if cdf(middle) >= p {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}
