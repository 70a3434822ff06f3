//! Logs flavor settings that have no effect in OpenStack mode, once for each flavor.

use ebbtide_model::flavor::MAX_LIFETIME_SECONDS;
use ebbtide_nova::model::Flavor;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Maximum number of remembered flavors: a cloud has hundreds. Beyond that nothing is logged.
const MOST: usize = 10_000;

/// Flavors that were logged.
#[derive(Debug, Default)]
pub(super) struct LoggedFlavors(Mutex<BTreeSet<String>>);

impl LoggedFlavors {
    /// Checks the flavor of a server.
    pub(super) fn look(&self, flavor: &Flavor) {
        if let Some(words) = self.words(flavor) {
            tracing::warn!(code = "EB-DOOR-012", "{words}");
        }
    }

    /// The log text, if there is something new.
    fn words(&self, flavor: &Flavor) -> Option<String> {
        let specs = flavor.extra_specs.as_ref()?;
        let limit = specs.get(MAX_LIFETIME_SECONDS)?;
        if !flavor.is_preemptible() {
            return None;
        }
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = told.len() < MOST && told.insert(flavor.flavorid.clone());
        new.then(|| {
            format!(
                "flavor {:?} says {MAX_LIFETIME_SECONDS}={limit}, which has no effect in OpenStack mode: its servers are not ended after that \
                 time; unset it, or let a scheduled job delete old servers",
                flavor.name
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flavor(id: &str, specs: &[(&str, &str)]) -> Flavor {
        let specs = specs.iter();
        let specs = specs.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Flavor {
            name: format!("flavor {id}"),
            flavorid: id.to_owned(),
            extra_specs: Some(specs.collect()),
            ..Flavor::default()
        }
    }

    #[test]
    fn a_maximum_lifetime_that_has_no_effect_is_told_once_for_each_flavor() {
        let unheard = LoggedFlavors::default();
        let limited = [
            ("ebbtide:preemptible", "true"),
            ("ebbtide:max_lifetime_seconds", "3600"),
        ];
        let words = unheard.words(&flavor("a", &limited)).unwrap();
        assert!(
            words.contains("flavor a") && words.contains("=3600"),
            "{words}"
        );
        assert_eq!(unheard.words(&flavor("a", &limited)), None, "told already");
        assert!(unheard.words(&flavor("b", &limited)).is_some());
        assert_eq!(unheard.words(&flavor("c", &limited[..1])), None);
        assert_eq!(
            unheard.words(&flavor("d", &limited[1..])),
            None,
            "it is a normal one"
        );
    }
}
