//! Logs flavor settings that have no effect in OpenStack mode, once for each flavor. A region
//! refuses such flavors; Nova has taken them.

use ebbtide_model::flavor::MAX_LIFETIME_SECONDS;
use ebbtide_model::{FlavorProperties, Resources, Seconds};
use ebbtide_nova::model::Flavor;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Maximum number of remembered flavors: a cloud has hundreds. Beyond that nothing is logged.
const MOST: usize = 10_000;

/// Flavors that were logged.
#[derive(Debug, Default)]
pub(super) struct LoggedFlavors(Mutex<BTreeSet<String>>);

impl LoggedFlavors {
    /// Checks the flavor of a server. `grace`: the grace period of flavors that say nothing.
    pub(super) fn look(&self, flavor: &Flavor, grace: Seconds) {
        if let Some(words) = self.words(flavor, grace) {
            tracing::warn!(code = "EB-DOOR-012", "{words}");
        }
    }

    /// The log text, if there is something new.
    fn words(&self, flavor: &Flavor, grace: Seconds) -> Option<String> {
        let problem = problem(flavor, grace)?;
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = told.len() < MOST && told.insert(flavor.flavorid.clone());
        new.then(|| format!("flavor {:?}: {problem}", flavor.name))
    }
}

fn problem(flavor: &Flavor, grace: Seconds) -> Option<String> {
    if !flavor.is_preemptible() {
        return None;
    }
    let specs = flavor.extra_specs.as_ref()?.iter();
    let specs = specs.map(|(key, value)| (key.as_str(), value.as_str()));
    let mut read = FlavorProperties::of(Resources::new());
    if let Err(error) = read.read_terms(specs) {
        return Some(format!(
            "{error}; its servers are preemptible, and its other keys have no effect"
        ));
    }
    let (lifetime, grace) = (read.max_lifetime?, read.grace.unwrap_or(grace));
    (lifetime <= grace).then(|| {
        format!(
            "{MAX_LIFETIME_SECONDS}={} has no effect: it is not longer than the grace period \
             ({grace})",
            lifetime.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Seconds = Seconds(120);

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
        let short = [
            ("ebbtide:preemptible", "true"),
            ("ebbtide:max_lifetime_seconds", "120"),
        ];
        let words = unheard.words(&flavor("a", &short), GRACE).unwrap();
        assert!(
            words.contains("flavor a") && words.contains("=120"),
            "{words}"
        );
        assert_eq!(unheard.words(&flavor("a", &short), GRACE), None, "told");
        assert!(unheard.words(&flavor("b", &short), GRACE).is_some());
        assert_eq!(unheard.words(&flavor("c", &short), Seconds(119)), None);
        assert_eq!(unheard.words(&flavor("d", &short[..1]), GRACE), None);
        assert_eq!(unheard.words(&flavor("e", &short[1..]), GRACE), None);
    }

    #[test]
    fn a_flavor_whose_keys_cannot_be_read_is_told() {
        let wrong = [
            ("ebbtide:preemptible", "true"),
            ("ebbtide:protected_seconds", "an hour"),
        ];
        let words = LoggedFlavors::default().words(&flavor("a", &wrong), GRACE);
        let words = words.unwrap();
        assert!(words.contains("protected_seconds"), "{words}");
    }
}
