//! What differs between two readings of nova.conf.

use super::{NovaConf, options};
use oslo_config::{Config, Effect};
use std::collections::BTreeMap;
use std::fmt;

/// Every value in the files, by group and name, as it stands there. Debug output shows none.
#[derive(Clone, Default)]
pub(super) struct GivenValues(BTreeMap<(String, String), Vec<String>>);

impl GivenValues {
    pub(super) fn of(config: &Config) -> Self {
        let mut given = Self::default();
        for value in config.given() {
            let texts = given.0.entry((value.group, value.name)).or_default();
            texts.push(value.text);
        }
        given
    }
}

impl fmt::Debug for GivenValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GivenValues").finish_non_exhaustive()
    }
}

impl NovaConf {
    /// The names of options that differ from `old` and that Ebbtide reads at its start only, as
    /// `[group] name`. Names of options that are not Ebbtide's are not among them.
    #[must_use]
    pub fn changes_for_next_start(&self, old: &Self) -> Vec<String> {
        let given = |conf: &Self, group: &str, name: &str| {
            let is_it = |(in_group, is_named): &&(String, String)| {
                in_group.eq_ignore_ascii_case(group) && is_named == name
            };
            let values = &conf.given.0;
            values
                .keys()
                .find(is_it)
                .and_then(|key| values.get(key))
                .cloned()
        };
        let mut names: Vec<String> = options()
            .iter()
            .filter(|option| option.effect == Effect::Start)
            .filter(|option| {
                let older = option.deprecated.iter().copied();
                let mut names = std::iter::once((option.group, option.name)).chain(older);
                names.any(|(group, name)| given(self, group, name) != given(old, group, name))
            })
            .map(|option| format!("[{}] {}", option.group, option.name))
            .collect();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::super::Machine;
    use super::*;
    use std::path::Path;

    fn conf(text: &str) -> NovaConf {
        let mut config = Config::of_text(Path::new("nova.conf"), text).unwrap();
        NovaConf::read(&mut config, &Machine::here()).unwrap()
    }

    #[test]
    fn options_that_need_a_restart_are_named_and_logins_are_not() {
        let old = conf(
            "[DEFAULT]\ntransport_url = rabbit://u:old@h/\nhost = a\n[database]\n\
             connection = mysql://u:old@h/d\n[neutron]\nurl = x\n[ebbtide]\nmarket = false\n",
        );
        let new = conf(
            "[DEFAULT]\ntransport_url = rabbit://u:new@h/\nhost = b\n[database]\n\
             connection = mysql://u:new@h/d\n[neutron]\nurl = y\n[ebbtide]\npreemption = false\n",
        );
        let mut names = new.changes_for_next_start(&old);
        names.sort();
        let expected = ["[DEFAULT] host", "[ebbtide] market", "[ebbtide] preemption"];
        assert_eq!(names, expected);
        assert!(new.changes_for_next_start(&new).is_empty());
        assert!(!format!("{new:?}").contains("u:new"));
    }
}
