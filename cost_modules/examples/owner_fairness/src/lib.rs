//! A cost module for Ebbtide: what is lost is counted in processors, and a project that loses
//! several instances at once loses more than their sum.
//!
//! What it works out is here, where `cargo test` reaches it natively; `component.rs` is what
//! Ebbtide calls.

#[cfg(target_family = "wasm")]
mod component;

/// Victims of one project beyond those that are tolerated for which the surcharge still grows.
const GROWS_FOR: u32 = 64;
/// Largest surcharge that an operator may set, in processors.
const MOST: f64 = 1e6;

/// What the operator sets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Victims of one project that cost nothing besides.
    pub tolerated: u32,
    /// How many processors each further one costs more than the one before.
    pub surcharge_vcpus: f64,
}

impl Settings {
    /// Reads them; says what is wrong.
    pub fn read<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        let mut settings = Self {
            tolerated: 1,
            surcharge_vcpus: 4.0,
        };
        for (key, value) in pairs {
            match key {
                "tolerated" => match value.parse() {
                    Ok(tolerated) if tolerated <= 1000 => settings.tolerated = tolerated,
                    _ => {
                        return Err(format!(
                            "tolerated = {value:?}: it has to be a whole number from 0 to 1000"
                        ));
                    }
                },
                "surcharge_vcpus" => match value.parse() {
                    Ok(vcpus) if vcpus > 0.0 && vcpus <= MOST => settings.surcharge_vcpus = vcpus,
                    _ => {
                        return Err(format!(
                            "surcharge_vcpus = {value:?}: it has to be a number of processors above 0, at most 1000000"
                        ));
                    }
                },
                _ => {
                    return Err(format!(
                        "{key:?} is not a setting of it; there are tolerated and surcharge_vcpus"
                    ));
                }
            }
        }
        Ok(settings)
    }

    /// What the first, second, third … victim of one project costs besides, in processors.
    pub fn surcharges(&self) -> Vec<f64> {
        (1..=self.tolerated + GROWS_FOR)
            .map(|n| f64::from(n.saturating_sub(self.tolerated)) * self.surcharge_vcpus)
            .collect()
    }
}

/// What an instance costs by itself: its processors. One without any is not free.
pub fn size(vcpus: f64) -> f64 {
    vcpus.clamp(1.0, 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What it costs when projects lose instances of these sizes.
    fn together(projects: &[&[f64]]) -> f64 {
        let surcharges = Settings::read([]).unwrap().surcharges();
        let of_one = |sizes: &&[f64]| -> f64 {
            sizes
                .iter()
                .zip(&surcharges)
                .map(|(vcpus, more)| size(*vcpus) + more)
                .sum()
        };
        projects.iter().map(of_one).sum()
    }

    #[test]
    fn two_small_ones_of_two_projects_cost_less_than_of_one() {
        assert_eq!(together(&[&[2.0], &[2.0]]), 4.0);
        assert_eq!(together(&[&[2.0, 2.0]]), 8.0);
    }

    #[test]
    fn one_instance_goes_rather_than_three_of_one_project_though_it_is_a_little_larger() {
        assert!(together(&[&[8.0]]) < together(&[&[2.0, 2.0, 2.0]]));
        assert!(together(&[&[8.0]]) > together(&[&[2.0], &[2.0], &[2.0]]));
    }

    #[test]
    fn surcharges_never_fall_and_begin_after_those_that_are_tolerated() {
        let surcharges = Settings::read([("tolerated", "3"), ("surcharge_vcpus", "0.5")])
            .unwrap()
            .surcharges();
        assert_eq!(surcharges[..5], [0.0, 0.0, 0.0, 0.5, 1.0]);
        assert!(surcharges.windows(2).all(|pair| pair[0] <= pair[1]));
    }

    #[test]
    fn an_instance_without_processors_is_not_free() {
        assert_eq!(size(0.0), 1.0);
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let read = |key, value| Settings::read([(key, value)]);
        for (key, value) in [
            ("tolerated", "-1"),
            ("tolerated", "1.5"),
            ("surcharge_vcpus", "0"),
            ("surcharge_vcpus", "NaN"),
        ] {
            assert!(
                read(key, value).unwrap_err().contains("it has to be"),
                "{key} = {value}"
            );
        }
        assert!(
            read("surcharge", "1")
                .unwrap_err()
                .contains("is not a setting")
        );
    }
}
