//! A filter for Ebbtide: keeps new servers off hosts where servers wait for processors, by a figure
//! of Prometheus that is written into the metadata of the host's aggregate.
//!
//! What it works out is here, where `cargo test` reaches it natively; `component.rs` is what
//! Ebbtide calls.

#[cfg(target_family = "wasm")]
mod component;

/// The operator's limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The most that a host may have for a normal server.
    pub most: f64,
    /// The same for a preemptible one.
    pub most_preemptible: f64,
    /// Whether a host without the figure passes.
    pub unknown_passes: bool,
}

impl Limits {
    /// Reads the settings; `get` gives the text of one.
    pub fn read<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Result<Self, String> {
        let number = |key: &str, default: f64| match get(key) {
            None => Ok(default),
            Some(text) => match text.parse() {
                Ok(most) if most >= 0.0 && f64::is_finite(most) => Ok(most),
                _ => Err(format!("{key} = {text:?}: it has to be a number, 0 or more")),
            },
        };
        let most = number("most", 10.0)?;
        Ok(Self {
            most,
            most_preemptible: number("most_preemptible", most)?,
            unknown_passes: match get("unknown") {
                None | Some("pass") => true,
                Some("refuse") => false,
                Some(text) => return Err(format!("unknown = {text:?}: it has to be pass or refuse")),
            },
        })
    }

    /// Why a host is refused; `None` if it passes.
    pub fn refusal(&self, figure: Option<f64>, preemptible: bool) -> Option<String> {
        let most = if preemptible { self.most_preemptible } else { self.most };
        match figure {
            None if self.unknown_passes => None,
            None => Some("how noisy it is is not known".to_owned()),
            Some(figure) if figure <= most => None,
            // Whole numbers: few different reasons for thousands of hosts.
            Some(figure) => Some(format!("noise {}, above {most}", figure.ceil())),
        }
    }
}

/// What operators may set.
pub const SETTINGS: [&str; 4] = ["most", "most_preemptible", "unknown", "metadata"];

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

    fn limits(pairs: &[(&str, &'static str)]) -> Result<Limits, String> {
        Limits::read(|key| pairs.iter().find(|(known, _)| *known == key).map(|(_, text)| *text))
    }

    #[test]
    fn a_noisy_host_is_refused_and_a_preemptible_server_bears_more() {
        let both = limits(&[("most", "5"), ("most_preemptible", "20")]).unwrap();
        assert_eq!(both.refusal(Some(5.0), false), None);
        assert_eq!(both.refusal(Some(5.5), false).unwrap(), "noise 6, above 5");
        assert_eq!(both.refusal(Some(5.5), true), None);
        assert_eq!(both.refusal(Some(21.0), true).unwrap(), "noise 21, above 20");
    }

    #[test]
    fn a_host_without_the_figure_passes_unless_the_operator_says_otherwise() {
        assert_eq!(limits(&[]).unwrap().refusal(None, false), None);
        let strict = limits(&[("unknown", "refuse")]).unwrap();
        assert!(strict.refusal(None, false).unwrap().contains("not known"));
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        for wrong in [("most", "-1"), ("most_preemptible", "much"), ("unknown", "maybe")] {
            assert!(limits(&[wrong]).unwrap_err().starts_with(wrong.0));
        }
        assert!(check(["most", "mots"]).unwrap_err().contains("\"mots\" is not a setting"));
    }
}
