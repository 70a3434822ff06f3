//! A filter for Ebbtide: a licence allows software on so many hosts, for all projects together or
//! for one of them.
//!
//! What it works out is here, where `cargo test` reaches it natively; `component.rs` is what
//! Ebbtide calls.

#[cfg(target_family = "wasm")]
mod component;

/// How many hosts one licence allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Licence {
    /// What is licensed, for example `oracle`.
    pub name: String,
    /// The project that has bought it; `None`: it is for all projects.
    pub project: Option<String>,
    /// How many hosts it allows.
    pub hosts: u32,
}

/// Reads `oracle=4, oracle/PROJECT=2, windows=10`.
pub fn licences(text: Option<&str>) -> Result<Vec<Licence>, String> {
    let entries = text.unwrap_or_default().split(',').map(str::trim);
    let read = |entry: &str| {
        let wrong = || format!("hosts: {entry:?} is not NAME=HOSTS or NAME/PROJECT=HOSTS");
        let (what, hosts) = entry.split_once('=').ok_or_else(wrong)?;
        let (name, project) = match what.trim().split_once('/') {
            None => (what.trim(), None),
            Some((name, project)) => (name, Some(project.to_owned())),
        };
        let hosts = hosts.trim().parse().map_err(|_| wrong())?;
        match name.is_empty() {
            true => Err(wrong()),
            false => Ok(Licence { name: name.to_owned(), project, hosts }),
        }
    };
    entries.filter(|entry| !entry.is_empty()).map(read).collect()
}

/// How many hosts a project may use for a licence: its own number before that of all projects.
pub fn allowed(licences: &[Licence], name: &str, project: &str) -> u32 {
    let mut known = licences.iter().filter(|licence| licence.name == name);
    let own = known.clone().find(|licence| licence.project.as_deref() == Some(project));
    let all = own.or_else(|| known.find(|licence| licence.project.is_none()));
    all.map_or(0, |licence| licence.hosts)
}

/// What is asked of every host.
pub struct Question<'a> {
    /// The licence that the server needs.
    pub licence: &'a str,
    /// How many hosts it allows.
    pub hosts: u32,
}

impl Question<'_> {
    /// Why a host is refused; `None` if it passes. `licences`: those of the host, with commas
    /// between; `seat`: its number among the hosts of the licence, 0 if it has none.
    pub fn refusal(&self, licences: &str, seat: f64) -> Option<String> {
        let Self { licence, hosts } = self;
        if !licences.split(',').any(|own| own.trim() == *licence) {
            return Some(format!("it is not licensed for {licence}"));
        }
        if seat < 1.0 {
            return Some(format!("it is licensed for {licence}, and has no licence_seat"));
        }
        (seat > f64::from(*hosts))
            .then(|| format!("the licence for {licence} allows {hosts} hosts, and it is number {seat}"))
    }
}

/// What operators may set.
pub const SETTINGS: [&str; 2] = ["hosts", "extra_spec"];

/// Refuses what is misspelt: a setting that is not read has no effect.
pub fn check<'a>(keys: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    match keys.into_iter().find(|key| !SETTINGS.contains(key)) {
        Some(key) => Err(format!("{key:?} is not a setting of it; there are {SETTINGS:?}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_has_its_own_number_or_that_of_all() {
        let known = licences(Some("oracle=4, oracle/p1=2,windows=10")).unwrap();
        assert_eq!(allowed(&known, "oracle", "p1"), 2);
        assert_eq!(allowed(&known, "oracle", "p2"), 4);
        assert_eq!(allowed(&known, "windows", "p1"), 10);
        assert_eq!(allowed(&known, "sap", "p1"), 0);
        assert_eq!(licences(None), Ok(Vec::new()));
    }

    #[test]
    fn only_the_first_hosts_of_a_licence_are_used() {
        let asked = Question { licence: "oracle", hosts: 2 };
        assert_eq!(asked.refusal("oracle", 1.0), None);
        assert_eq!(asked.refusal("windows, oracle", 2.0), None);
        assert_eq!(
            asked.refusal("oracle", 3.0).unwrap(),
            "the licence for oracle allows 2 hosts, and it is number 3"
        );
        assert_eq!(asked.refusal("windows", 1.0).unwrap(), "it is not licensed for oracle");
        assert!(asked.refusal("oracle", 0.0).unwrap().contains("no licence_seat"));
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_words() {
        for wrong in ["oracle", "oracle=many", "=3", "oracle=-1"] {
            assert!(licences(Some(wrong)).unwrap_err().contains(wrong), "{wrong}");
        }
        assert!(check(["hosts", "hots"]).unwrap_err().contains("\"hots\" is not a setting"));
    }
}
