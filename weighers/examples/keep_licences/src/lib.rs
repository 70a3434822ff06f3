//! A weigher for Ebbtide: keeps licensed hosts for those who need the licence, and brings those
//! there.
//!
//! What it works out is here, where `cargo test` reaches it natively; `component.rs` is what
//! Ebbtide calls.

#[cfg(target_family = "wasm")]
mod component;

use std::collections::BTreeSet;

/// What the operator sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The key in the aggregates' metadata that says for what a host is licensed.
    pub metadata: String,
    /// The extra spec of flavors that need a licence.
    pub extra_spec: String,
}

impl Settings {
    /// Reads them; says what is wrong.
    pub fn read<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        let mut settings = Self {
            metadata: "licence".to_owned(),
            extra_spec: "licence".to_owned(),
        };
        for (key, value) in pairs {
            let place = match key {
                "metadata" => &mut settings.metadata,
                "extra_spec" => &mut settings.extra_spec,
                _ => {
                    return Err(format!(
                        "{key:?} is not a setting of it; there are metadata and extra_spec"
                    ));
                }
            };
            if value.is_empty() {
                return Err(format!(
                    "{key} = \"\": it has to be a key, for example licence"
                ));
            }
            *place = value.to_owned();
        }
        Ok(settings)
    }
}

/// The licences of a list with commas.
pub fn licences(text: &str) -> BTreeSet<&str> {
    text.split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect()
}

/// From -1 to 1: which share of the licences that are wanted a host has, less for licences that
/// would lie idle under the instance.
pub fn score(wanted: &BTreeSet<&str>, there: &BTreeSet<&str>) -> f64 {
    let idle = there.difference(wanted).count() as f64;
    let waste = idle / (idle + 1.0);
    if wanted.is_empty() {
        return -waste;
    }
    let found = wanted.intersection(there).count() as f64;
    // Half: a host that has the licence and another one is better than a host without.
    found / wanted.len() as f64 - waste / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(wanted: &str, there: &str) -> f64 {
        score(&licences(wanted), &licences(there))
    }

    #[test]
    fn who_needs_a_licence_goes_where_it_is_and_where_the_fewest_others_are() {
        assert!(of("oracle", "oracle") > of("oracle", "oracle,windows"));
        assert!(of("oracle", "oracle,windows") > of("oracle", ""));
        assert!(of("oracle", "") > of("oracle", "windows"));
    }

    #[test]
    fn who_needs_none_stays_away_from_all() {
        assert!(of("", "") > of("", "oracle"));
        assert!(of("", "oracle") > of("", "oracle,windows"));
    }

    #[test]
    fn two_of_two_are_better_than_one_of_two() {
        assert!(of("oracle,windows", "windows, oracle") > of("oracle,windows", "windows"));
    }

    #[test]
    fn everything_is_within_the_scale() {
        let many: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
        for number in [
            of("", &many.join(",")),
            of("a", "a"),
            of("a", &many.join(",")),
        ] {
            assert!((-1.0..=1.0).contains(&number), "{number}");
        }
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let read = |key, value| Settings::read([(key, value)]);
        assert_eq!(
            read("metadata", "sla").map(|settings| settings.metadata),
            Ok("sla".to_owned())
        );
        assert!(read("extra_spec", "").unwrap_err().contains("extra_spec"));
        assert!(
            read("license", "x")
                .unwrap_err()
                .contains("is not a setting")
        );
    }
}
