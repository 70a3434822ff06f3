//! Lifetime distributions as tables that a decision can look up.
//!
//! Lifetime models (`ebbtide-lifetime`) provide formulas, quantiles and integrals. A decision over
//! a hundred thousand candidates needs two numbers of them, fast and the same on every machine: the
//! probability to live a given time longer, and the expected remaining time. A table has both. It
//! is made once from a model when a configuration is read. Ages and times are in seconds.

use std::sync::Arc;

/// A lifetime model as a table: the share of instances that live longer than each age.
///
/// Between two ages the share falls linearly. Beyond the last age the hazard is constant, or no
/// instance is left. Invariants: ages rise from 0; shares fall and lie in 0…1; the first share is
/// above 0.
#[derive(Debug, Clone, PartialEq)]
pub struct LifeTable {
    ages: Vec<f64>,
    alive: Vec<f64>,
    /// The integral of the share from each age to infinity, in seconds.
    ahead: Vec<f64>,
    /// The mean life beyond the last age, in seconds; 0 if no instance gets older.
    tail: f64,
}

/// Shares below this count as zero: double precision is not enough for conditional shares of so
/// few.
const NEGLIGIBLE_SHARE: f64 = 1e-9;

impl LifeTable {
    /// A table from `(age, share that lives longer)`, in seconds, and the mean remaining life, in
    /// seconds, of instances beyond the last age: 0 if a maximum lifetime ends all that are left.
    ///
    /// `None` unless there are two points or more, all numbers are finite, ages rise from 0, shares
    /// do not rise and lie in 0…1, the first is above 0, and the tail is not negative.
    #[must_use]
    pub fn new(points: &[(f64, f64)], tail_seconds: f64) -> Option<Self> {
        let (first, rest) = points.split_first()?;
        let starts = first.0 == 0.0 && first.1 > 0.0 && first.1 <= 1.0 && !rest.is_empty();
        let falls = points.windows(2).all(|pair| {
            let ((from, more), (to, less)) = (pair[0], pair[1]);
            to.is_finite() && to > from && less >= 0.0 && less <= more
        });
        if !(starts && falls && tail_seconds.is_finite() && tail_seconds >= 0.0) {
            return None;
        }
        let ages: Vec<f64> = points.iter().map(|point| point.0).collect();
        let alive: Vec<f64> = points.iter().map(|point| point.1).collect();
        let mut ahead = vec![0.0; points.len()];
        let mut sum = alive.last().copied().unwrap_or(0.0) * tail_seconds;
        for at in (0..points.len()).rev() {
            if at + 1 < points.len() {
                sum += (ages[at + 1] - ages[at]) * (alive[at] + alive[at + 1]) / 2.0;
            }
            ahead[at] = sum;
        }
        Some(Self {
            ages,
            alive,
            ahead,
            tail: tail_seconds,
        })
    }

    /// The row at or before an age, and the distance of the age from it.
    fn place(&self, age: f64) -> (usize, f64) {
        let at = self.ages.partition_point(|known| *known <= age);
        let at = at.saturating_sub(1);
        (at, age - self.ages[at])
    }

    /// The share that lives longer than `age` seconds.
    #[must_use]
    pub fn survival(&self, age: f64) -> f64 {
        let (at, beyond) = self.place(age.max(0.0));
        let Some(next) = self.ages.get(at + 1) else {
            return match self.tail > 0.0 {
                true => self.alive[at] * (-beyond / self.tail).exp(),
                false => 0.0,
            };
        };
        let share = beyond / (next - self.ages[at]);
        self.alive[at] + (self.alive[at + 1] - self.alive[at]) * share
    }

    /// The integral of the share from `age` to infinity, in seconds.
    fn ahead(&self, age: f64) -> f64 {
        let (at, beyond) = self.place(age);
        let here = self.survival(age);
        match self.ages.get(at + 1) {
            Some(next) => {
                let rest = (next - self.ages[at]) - beyond;
                self.ahead[at + 1] + rest * (here + self.alive[at + 1]) / 2.0
            }
            None => here * self.tail,
        }
    }

    /// The probability, 0 to 1, that an instance of `age` seconds lives `more` seconds longer; 0 if
    /// no instance gets that old.
    #[must_use]
    pub fn lives_on(&self, age: f64, more: f64) -> f64 {
        let age = age.max(0.0);
        let here = self.survival(age);
        if here < NEGLIGIBLE_SHARE {
            return self.lives_on_at_the_end(more);
        }
        (self.survival(age + more.max(0.0)) / here).clamp(0.0, 1.0)
    }

    /// The same beyond the table's ages: in the tail, whose hazard is constant.
    fn lives_on_at_the_end(&self, more: f64) -> f64 {
        match self.tail > 0.0 {
            true => (-more.max(0.0) / self.tail).exp(),
            false => 0.0,
        }
    }

    /// The expected remaining time of an instance of `age` seconds, in seconds, of which only the
    /// next `at_most` seconds count; 0 if no instance gets that old. Finite and not negative for
    /// every finite age.
    #[must_use]
    pub fn remaining(&self, age: f64, at_most: Option<f64>) -> f64 {
        let age = age.max(0.0);
        let here = self.survival(age);
        if here < NEGLIGIBLE_SHARE {
            let tail = self.tail;
            return at_most.map_or(tail, |most| tail * (1.0 - self.lives_on_at_the_end(most)));
        }
        let cut = at_most.map_or(0.0, |most| self.ahead(age + most.max(0.0)));
        let left = ((self.ahead(age) - cut) / here).max(0.0);
        at_most.map_or(left, |most| left.min(most.max(0.0)))
    }
}

/// The instances that a table describes. `None` matches any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LifeGroup {
    /// Instances of this flavor, by name.
    pub flavor: Option<String>,
    /// Instances in this availability zone.
    pub zone: Option<String>,
}

/// A table for all instances, and better ones for some flavors and zones. Cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub struct LifeTables {
    all: Arc<LifeTable>,
    groups: Arc<Vec<(LifeGroup, LifeTable)>>,
}

impl LifeTables {
    /// `all` is for instances in none of the groups.
    #[must_use]
    pub fn new(all: LifeTable, groups: Vec<(LifeGroup, LifeTable)>) -> Self {
        Self {
            all: Arc::new(all),
            groups: Arc::new(groups),
        }
    }

    /// The table of a flavor in a zone: that of both, else that of the flavor, else that of the
    /// zone, else that of all instances. An empty name is unknown.
    #[must_use]
    pub fn find(&self, flavor: &str, zone: &str) -> &LifeTable {
        let of = |flavor: Option<&str>, zone: Option<&str>| {
            let wanted = |group: &LifeGroup| {
                group.flavor.as_deref() == flavor && group.zone.as_deref() == zone
            };
            let mut groups = self.groups.iter();
            groups
                .find(|(group, _)| wanted(group))
                .map(|(_, table)| table)
        };
        of(Some(flavor), Some(zone))
            .or_else(|| of(Some(flavor), None))
            .or_else(|| of(None, Some(zone)))
            .unwrap_or(&self.all)
    }

    /// True if any table is about one zone only.
    #[must_use]
    pub fn knows_zones(&self) -> bool {
        self.groups.iter().any(|(group, _)| group.zone.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: f64 = 3600.0;

    /// All instances end between 0 and 10 hours, evenly.
    fn even() -> LifeTable {
        LifeTable::new(&[(0.0, 1.0), (10.0 * HOUR, 0.0)], 0.0).unwrap()
    }

    /// Half end evenly within the first hour, the others all at 24 hours.
    fn capped() -> LifeTable {
        LifeTable::new(&[(0.0, 1.0), (HOUR, 0.5), (24.0 * HOUR, 0.5)], 0.0).unwrap()
    }

    #[test]
    fn of_even_lives_half_of_what_is_left_may_be_expected() {
        assert_eq!(even().survival(2.5 * HOUR), 0.75);
        assert_eq!(even().remaining(0.0, None), 5.0 * HOUR);
        assert!((even().remaining(6.0 * HOUR, None) - 2.0 * HOUR).abs() < 1e-6);
        assert!((even().lives_on(5.0 * HOUR, HOUR) - 0.8).abs() < 1e-12);
    }

    #[test]
    fn a_server_that_survives_the_early_phase_lives_until_the_maximum() {
        assert!((capped().remaining(HOUR, None) - 23.0 * HOUR).abs() < 1e-6);
        assert!((capped().remaining(23.5 * HOUR, None) - 0.5 * HOUR).abs() < 1e-6);
        assert_eq!(capped().lives_on(2.0 * HOUR, 3.0 * HOUR), 1.0);
        assert_eq!(capped().lives_on(2.0 * HOUR, 22.0 * HOUR), 0.0);
        for age in [24.0 * HOUR, 25.0 * HOUR, 1e15] {
            assert_eq!(capped().remaining(age, None), 0.0);
            assert_eq!(capped().lives_on(age, 0.0), 0.0);
        }
    }

    #[test]
    fn beyond_the_last_age_the_hazard_is_constant() {
        let table = LifeTable::new(&[(0.0, 1.0), (HOUR, 0.25)], 2.0 * HOUR).unwrap();
        for age in [HOUR, 30.0 * HOUR, 1e9] {
            assert!(
                (table.remaining(age, None) - 2.0 * HOUR).abs() < 1e-6,
                "{age}"
            );
            let lives_on = table.lives_on(age, 2.0 * HOUR);
            assert!(
                (lives_on - (-1.0_f64).exp()).abs() < 1e-9,
                "{age}: {lives_on}"
            );
            let cut = table.remaining(age, Some(2.0 * HOUR));
            let expected = 2.0 * HOUR * (1.0 - (-1.0_f64).exp());
            assert!((cut - expected).abs() < 1e-3, "{age}: {cut}");
        }
    }

    #[test]
    fn the_flavor_s_own_end_cuts_what_may_be_expected() {
        assert!((capped().remaining(2.0 * HOUR, Some(HOUR)) - HOUR).abs() < 1e-6);
        assert_eq!(capped().remaining(2.0 * HOUR, Some(0.0)), 0.0);
        assert_eq!(capped().remaining(2.0 * HOUR, Some(-5.0)), 0.0);
        let expected = 10.0 * HOUR * (0.8 * 0.8 - 0.6 * 0.6) / 2.0 / 0.8;
        assert!((even().remaining(2.0 * HOUR, Some(2.0 * HOUR)) - expected).abs() < 1e-6);
    }

    #[test]
    fn what_is_no_table_is_refused() {
        let bad: [&[(f64, f64)]; 8] = [
            &[],
            &[(0.0, 1.0)],
            &[(1.0, 1.0), (2.0, 0.5)],
            &[(0.0, 0.0), (2.0, 0.0)],
            &[(0.0, 1.5), (2.0, 0.5)],
            &[(0.0, 0.5), (2.0, 0.6)],
            &[(0.0, 1.0), (0.0, 0.5)],
            &[(0.0, 1.0), (2.0, f64::NAN)],
        ];
        for points in bad {
            assert_eq!(LifeTable::new(points, 0.0), None, "{points:?}");
        }
        for tail in [-1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(LifeTable::new(&[(0.0, 1.0), (1.0, 0.5)], tail), None);
        }
    }

    #[test]
    fn the_nearest_group_counts() {
        let mean = |hours: f64| LifeTable::new(&[(0.0, 1.0), (2.0 * hours, 0.0)], 0.0).unwrap();
        let group = |flavor: Option<&str>, zone: Option<&str>| LifeGroup {
            flavor: flavor.map(str::to_owned),
            zone: zone.map(str::to_owned),
        };
        let tables = LifeTables::new(
            mean(1.0),
            vec![
                (group(None, Some("z")), mean(2.0)),
                (group(Some("f"), None), mean(3.0)),
                (group(Some("f"), Some("z")), mean(4.0)),
            ],
        );
        let table = |flavor, zone| tables.find(flavor, zone).remaining(0.0, None);
        assert_eq!(table("f", "z"), 4.0);
        assert_eq!(table("f", "y"), 3.0);
        assert_eq!(table("g", "z"), 2.0);
        assert_eq!(table("g", "y"), 1.0);
        assert_eq!(table("", ""), 1.0);
        assert!(tables.knows_zones());
    }

    fn tables() -> impl Strategy<Value = LifeTable> {
        let steps = prop::collection::vec((1e-3_f64..1e6, 0.0_f64..=1.0), 1..30);
        (steps, prop_oneof![Just(0.0), 1.0_f64..1e6]).prop_map(|(steps, tail)| {
            let mut points = vec![(0.0, 1.0)];
            let (mut age, mut alive) = (0.0, 1.0);
            for (step, stays) in steps {
                age += step;
                alive *= stays;
                points.push((age, alive));
            }
            LifeTable::new(&points, tail).unwrap()
        })
    }

    proptest! {
        #[test]
        fn every_answer_is_a_chance_or_a_time(table in tables(), age in -10.0_f64..1e12, more in -10.0_f64..1e12) {
            prop_assert!((0.0..=1.0).contains(&table.lives_on(age, more)));
            let whole = table.remaining(age, None);
            prop_assert!(whole.is_finite() && whole >= 0.0, "{whole}");
            let cut = table.remaining(age, Some(more));
            prop_assert!(cut >= 0.0 && cut <= more.max(0.0), "{cut} of {more}");
            prop_assert!(cut <= whole * (1.0 + 1e-6) + 1e-3, "{cut} of {whole}");
        }

        #[test]
        fn the_longer_it_has_to_live_the_smaller_the_chance(table in tables(), age in 0.0_f64..1e7, more in 0.0_f64..1e7) {
            prop_assert!(table.lives_on(age, more) >= table.lives_on(age, more * 2.0) - 1e-12);
        }

        #[test]
        fn what_is_expected_is_the_sum_of_the_chances(table in tables(), age in 0.0_f64..1e6, most in 1.0_f64..1e5) {
            prop_assume!(table.survival(age) > 1e-6);
            let steps = 4000;
            let width = most / f64::from(steps);
            let sum: f64 = (0..steps).map(|step| table.lives_on(age, (f64::from(step) + 0.5) * width) * width).sum();
            let told = table.remaining(age, Some(most));
            prop_assert!((sum - told).abs() <= most * 2e-3 + 1e-6, "{sum} and {told}");
        }
    }
}
