//! What `[ebbtide] headroom` says.

use ebbtide_model::Seconds;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Most servers of one rule. Each look plans a request for all of them.
const MOST: u32 = 1000;

/// What the operator wants free.
#[derive(Debug, Clone)]
pub(crate) struct HeadroomOptions {
    pub(crate) rules: Vec<HeadroomRule>,
    /// Interval of the looks.
    pub(crate) every: Duration,
    /// How long it takes until room is made: what comes meanwhile has to find it.
    pub(crate) lead: Seconds,
}

/// So many servers of a flavor are to find room at once, on the hosts of an aggregate or on all.
/// Written as `FLAVOR:SERVERS` or `FLAVOR@AGGREGATE:SERVERS`, where `SERVERS` is a number or a
/// range: then a forecast says how many.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct HeadroomRule {
    /// Name or id.
    pub(crate) flavor: String,
    /// Name or UUID; `None`: on any host.
    pub(crate) aggregate: Option<String>,
    /// In any case so many; may be 0 in a range.
    pub(crate) least: u32,
    /// From 1.
    pub(crate) most: u32,
}

impl HeadroomRule {
    /// Whether a forecast says how many servers.
    pub(crate) fn is_forecast(&self) -> bool {
        self.least < self.most
    }
}

/// `4` or `2-10`.
fn range(text: &str) -> Option<(u32, u32)> {
    let (least, most) = match text.split_once('-') {
        Some((least, most)) => (
            least.trim().parse::<u32>().ok()?,
            most.trim().parse::<u32>().ok()?,
        ),
        None => {
            let servers = text.trim().parse::<u32>().ok()?;
            (servers, servers)
        }
    };
    (least <= most && (1..=MOST).contains(&most)).then_some((least, most))
}

impl FromStr for HeadroomRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!("{text:?}: {why}; a rule is FLAVOR:SERVERS or FLAVOR@AGGREGATE:SERVERS")
        };
        // Names of flavors may have colons.
        let (what, servers) = text
            .rsplit_once(':')
            .ok_or_else(|| wrong("it does not say how many servers"))?;
        let (least, most) = range(servers).ok_or_else(|| {
            wrong(&format!(
                "the number of servers is 1 to {MOST}, or a range as in 0-10"
            ))
        })?;
        let (flavor, aggregate) = match what.rsplit_once('@') {
            Some((flavor, aggregate)) => (flavor.trim(), Some(aggregate.trim())),
            None => (what.trim(), None),
        };
        if flavor.is_empty() {
            return Err(wrong("it names no flavor"));
        }
        if aggregate.is_some_and(str::is_empty) {
            return Err(wrong("it names no aggregate after the @"));
        }
        Ok(Self {
            flavor: flavor.to_owned(),
            aggregate: aggregate.map(str::to_owned),
            least,
            most,
        })
    }
}

impl fmt::Display for HeadroomRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.flavor)?;
        if let Some(aggregate) = &self.aggregate {
            write!(f, "@{aggregate}")?;
        }
        match self.is_forecast() {
            true => write!(f, ":{}-{}", self.least, self.most),
            false => write!(f, ":{}", self.most),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_a_flavor_a_number_and_perhaps_an_aggregate() {
        let rule = |text: &str| text.parse::<HeadroomRule>();
        let read = rule(" m1.large @ gpu : 4").unwrap();
        assert_eq!(read.to_string(), "m1.large@gpu:4");
        assert_eq!(read.aggregate.as_deref(), Some("gpu"));
        assert!(!read.is_forecast());
        assert_eq!(rule("c4:m8:2").unwrap().flavor, "c4:m8");
        let forecast = rule("m1.large:0-10").unwrap();
        assert_eq!((forecast.least, forecast.most), (0, 10));
        assert_eq!(forecast.to_string(), "m1.large:0-10");
        assert!(forecast.is_forecast());
        for (text, why) in [
            ("m1.large", "how many"),
            ("m1.large:", "1 to 1000"),
            ("m1.large:0", "1 to 1000"),
            ("m1.large:1001", "1 to 1000"),
            ("m1.large:-1", "1 to 1000"),
            ("m1.large:many", "1 to 1000"),
            ("m1.large:0-0", "1 to 1000"),
            ("m1.large:3-2", "1 to 1000"),
            ("m1.large:1-", "1 to 1000"),
            (":4", "no flavor"),
            ("m1.large@:4", "no aggregate"),
        ] {
            let error = rule(text).unwrap_err();
            assert!(error.contains(why) && error.contains(text), "{error}");
        }
    }
}
