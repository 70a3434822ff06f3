//! A cost module for Ebbtide: the loss of an instance costs the running time that it could still
//! expect. Who would soon be gone anyway loses least.
//!
//! Lifetimes follow the bathtub model of Kadupitiya et al., "Modeling the temporally constrained
//! preemptions of transient cloud VMs" (HPDC 2020): many instances end early, few in the middle,
//! the rest shortly before the longest lifetime. The share that is gone at age t is F(t) = a (1 −
//! e^(−t/tau1) + e^((t−b)/tau2)), and all are gone at `longest_hours`.
//!
//! What it works out is here, where `cargo test` reaches it natively; `component.rs` is what
//! Ebbtide calls.

#[cfg(target_family = "wasm")]
mod component;

const SECONDS: f64 = 3600.0;
/// Eleven years. Ebbtide takes no cost above 10^9 seconds.
const LONGEST: f64 = 100_000.0;

/// How long instances live. All times in hours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lifetimes {
    /// The share of instances that end early.
    pub a: f64,
    /// How fast the early ones end.
    pub tau1: f64,
    /// How fast the late ones end.
    pub tau2: f64,
    /// When the late ones end.
    pub b: f64,
    /// The maximum lifetime.
    pub longest: f64,
}

impl Default for Lifetimes {
    /// Fitted to the 717 preemptions of the paper's published data; the mean lifetime is 14.3
    /// hours.
    fn default() -> Self {
        Self {
            a: 0.414,
            tau1: 0.94,
            tau2: 0.77,
            b: 24.45,
            longest: 24.0,
        }
    }
}

impl Lifetimes {
    /// Reads the operator's settings; says what is wrong.
    pub fn read<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        let mut lifetimes = Self::default();
        for (key, value) in pairs {
            let (place, most, words) = match key {
                "a" => (&mut lifetimes.a, 1.0, "a share above 0, at most 1"),
                "tau1_hours" => (
                    &mut lifetimes.tau1,
                    LONGEST,
                    "hours above 0, at most 100000",
                ),
                "tau2_hours" => (
                    &mut lifetimes.tau2,
                    LONGEST,
                    "hours above 0, at most 100000",
                ),
                "b_hours" => (&mut lifetimes.b, LONGEST, "hours above 0, at most 100000"),
                "longest_hours" => (
                    &mut lifetimes.longest,
                    LONGEST,
                    "hours above 0, at most 100000",
                ),
                _ => {
                    return Err(format!(
                        "{key:?} is not a setting of it; there are a, tau1_hours, tau2_hours, b_hours and longest_hours"
                    ));
                }
            };
            match value.parse() {
                Ok(number) if number > 0.0 && number <= most => *place = number,
                _ => return Err(format!("{key} = {value:?}: it has to be {words}")),
            }
        }
        let gone = lifetimes.ended_share(lifetimes.longest);
        match gone <= 1.0 {
            true => Ok(lifetimes),
            false => Err(format!(
                "with these settings {gone:.3} of all instances are gone at longest_hours = {}, which is more than all: a larger b_hours or a smaller a",
                lifetimes.longest
            )),
        }
    }

    /// The share that is gone at this age in hours, before the end of all.
    fn ended_share(&self, age: f64) -> f64 {
        self.a * (1.0 - (-age / self.tau1).exp() + ((age - self.b) / self.tau2).exp())
    }

    /// How much longer an instance of this age may expect to run, in seconds: the integral of 1 − F
    /// from there to the end, divided by 1 − F there.
    pub fn remaining(&self, age_seconds: f64) -> f64 {
        let age = age_seconds / SECONDS;
        let at_most = self.longest - age;
        let left = 1.0 - self.ended_share(age);
        if at_most <= 0.0 || left <= 0.0 {
            return 0.0;
        }
        let early = self.tau1 * ((-age / self.tau1).exp() - (-self.longest / self.tau1).exp());
        let late = self.tau2
            * (((self.longest - self.b) / self.tau2).exp() - ((age - self.b) / self.tau2).exp());
        let area = (1.0 - self.a) * at_most + self.a * (early - late);
        (area / left).clamp(0.0, at_most) * SECONDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(age: f64) -> f64 {
        Lifetimes::default().remaining(age * SECONDS) / SECONDS
    }

    #[test]
    fn a_new_instance_expects_the_mean_lifetime() {
        // The mean of the data is 13.75 hours, that of the fit 14.28.
        assert!((hours(0.0) - 14.28).abs() < 0.01, "{}", hours(0.0));
    }

    #[test]
    fn who_has_survived_the_early_end_is_the_dearest_and_who_is_near_the_cap_the_cheapest() {
        assert!(hours(3.0) > hours(0.0) && hours(3.0) > hours(12.0));
        assert!(hours(12.0) > hours(23.0) && hours(23.0) > hours(23.9));
    }

    #[test]
    fn the_closed_form_is_the_integral() {
        let model = Lifetimes::default();
        for age in [0.0, 0.5, 3.0, 12.0, 23.0] {
            let steps = 20_000;
            let width = (model.longest - age) / f64::from(steps);
            let middle = |step: i32| 1.0 - model.ended_share(age + (f64::from(step) + 0.5) * width);
            let area: f64 = (0..steps).map(middle).sum::<f64>() * width;
            let expected = area / (1.0 - model.ended_share(age));
            assert!(
                (hours(age) - expected).abs() < 1e-6,
                "{age}: {} and {expected}",
                hours(age)
            );
        }
    }

    #[test]
    fn beyond_the_longest_lifetime_nothing_is_left_to_lose() {
        assert_eq!(hours(24.0), 0.0);
        assert_eq!(hours(1e6), 0.0);
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let read = |key, value| Lifetimes::read([(key, value)]);
        assert_eq!(read("a", "0.3").map(|lifetimes| lifetimes.a), Ok(0.3));
        for (key, value) in [
            ("a", "1.5"),
            ("a", "0"),
            ("tau1_hours", "NaN"),
            ("tau2_hours", "soon"),
            ("longest_hours", "1e9"),
        ] {
            assert!(
                read(key, value).unwrap_err().contains("it has to be"),
                "{key} = {value}"
            );
        }
        assert!(read("tau", "1").unwrap_err().contains("is not a setting"));
    }

    #[test]
    fn more_than_all_cannot_be_gone() {
        let refused = Lifetimes::read([("longest_hours", "48")]).unwrap_err();
        assert!(refused.contains("more than all"), "{refused}");
        assert!(Lifetimes::read([("longest_hours", "48"), ("b_hours", "48.45")]).is_ok());
    }
}
