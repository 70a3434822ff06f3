//! Optional facts about hosts, requested by name.
//!
//! A column of the weigher contract is a number that every scheduler has for every host. A fact
//! comes from the operator: traits of hosts, and metadata of their aggregates (rack, power price,
//! licence). A weigher or a cost module names the facts that it reads. A host without the fact gets
//! the neutral value, never an error, because metadata changes while the cloud runs.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A name that is not the name of a fact.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct FactError(pub String);

/// Something about each host, by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fact {
    /// `trait:NAME`: 1 for hosts that have the trait, else 0.
    Trait(String),
    /// `number:KEY`: the number under this key in the metadata of the host's aggregates, the
    /// smallest if several say one, as with multipliers; 0 if none does.
    Number(String),
    /// `has:KEY`: 1 if an aggregate of the host has a number under this key, else 0.
    Has(String),
    /// `text:KEY`: what is under this key in the metadata of the host's aggregates; several
    /// different ones in ascending order with commas between; empty if there is none.
    Text(String),
    /// `total:CLASS`: the inventory's total of a resource class, for example `total:VCPU`; 0 for
    /// hosts that have none. Not multiplied with the allocation ratio.
    Total(String),
    /// `used:CLASS`: how much of it all instances use, claims and leaving ones included.
    Used(String),
    /// `allocation_ratio:CLASS`: the allocation ratio of it; 0 for hosts that have none.
    AllocationRatio(String),
    /// `aggregates`: the host's aggregates as text, a JSON list of objects with `name` and
    /// `metadata`, by name.
    Aggregates,
    /// `host_name`: the host's name, as text.
    HostName,
    /// `availability_zone`: the host's zones, as text like `text:`.
    AvailabilityZone,
}

/// The values of a fact over all hosts of a batch.
#[derive(Debug, Clone, PartialEq)]
pub enum FactColumn {
    /// One finite number a host.
    Numbers(Vec<f64>),
    /// One text a host.
    Texts(Texts),
}

/// Texts of which many hosts share one: each is kept once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Texts {
    /// Which text each host has, as its place in `texts`.
    pub codes: Vec<u32>,
    /// The texts, each once. Their order means nothing.
    pub texts: Vec<String>,
}

impl Texts {
    /// One host's text; empty if there is no such host.
    #[must_use]
    pub fn get(&self, host: usize) -> &str {
        let code = self
            .codes
            .get(host)
            .map_or(usize::MAX, |code| *code as usize);
        self.texts.get(code).map_or("", String::as_str)
    }
}

impl Fact {
    /// True if its column holds texts.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(
            self,
            Self::Text(_) | Self::Aggregates | Self::HostName | Self::AvailabilityZone
        )
    }

    /// The column of `len` hosts without any known value.
    #[must_use]
    pub fn unknown(&self, len: usize) -> FactColumn {
        match self.is_text() {
            true => FactColumn::Texts(Texts {
                codes: vec![0; len],
                texts: vec![String::new()],
            }),
            false => FactColumn::Numbers(vec![0.0; len]),
        }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trait(name) => write!(f, "trait:{name}"),
            Self::Number(key) => write!(f, "number:{key}"),
            Self::Has(key) => write!(f, "has:{key}"),
            Self::Text(key) => write!(f, "text:{key}"),
            Self::Total(class) => write!(f, "total:{class}"),
            Self::Used(class) => write!(f, "used:{class}"),
            Self::AllocationRatio(class) => write!(f, "allocation_ratio:{class}"),
            Self::Aggregates => f.write_str("aggregates"),
            Self::HostName => f.write_str("host_name"),
            Self::AvailabilityZone => f.write_str("availability_zone"),
        }
    }
}

/// Longest name behind the colon, in bytes: Placement's limit for traits, Nova's for metadata keys.
const LONGEST: usize = 255;

impl FromStr for Fact {
    type Err = FactError;

    fn from_str(name: &str) -> Result<Self, FactError> {
        let wrong = |problem: &str| FactError(format!("{name:?} is not a fact: {problem}"));
        let (kind, key) = match name {
            "host_name" => return Ok(Self::HostName),
            "availability_zone" => return Ok(Self::AvailabilityZone),
            "aggregates" => return Ok(Self::Aggregates),
            other => other.split_once(':').ok_or_else(|| {
                wrong(
                    "use trait:NAME, number:KEY, has:KEY, text:KEY, total:CLASS, used:CLASS, allocation_ratio:CLASS, host_name, \
                     availability_zone or aggregates",
                )
            })?,
        };
        if key.is_empty() || key.len() > LONGEST {
            return Err(wrong("behind the colon is a name of 1 to 255 bytes"));
        }
        let key = key.to_owned();
        match kind {
            "trait" => Ok(Self::Trait(key)),
            "number" => Ok(Self::Number(key)),
            "has" => Ok(Self::Has(key)),
            "text" => Ok(Self::Text(key)),
            "total" => Ok(Self::Total(key)),
            "used" => Ok(Self::Used(key)),
            "allocation_ratio" => Ok(Self::AllocationRatio(key)),
            _ => Err(wrong(
                "before the colon is trait, number, has, text, total, used or allocation_ratio",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_read_as_it_is_written() {
        for name in [
            "trait:CUSTOM_SSD",
            "number:power_price",
            "has:power_price",
            "text:rack:row",
            "host_name",
            "availability_zone",
        ] {
            let fact: Fact = name.parse().unwrap();
            assert_eq!(fact.to_string(), name);
        }
    }

    #[test]
    fn what_is_no_fact_is_refused_with_what_is_one() {
        for name in [
            "",
            "rack",
            "text:",
            "colour:red",
            &format!("text:{}", "x".repeat(256)),
        ] {
            let refused = name.parse::<Fact>().unwrap_err().to_string();
            assert!(refused.contains("is not a fact"), "{refused}");
        }
    }

    #[test]
    fn of_unknown_hosts_numbers_are_zero_and_texts_are_empty() {
        let numbers = Fact::Number("k".to_owned()).unknown(2);
        assert_eq!(numbers, FactColumn::Numbers(vec![0.0, 0.0]));
        let FactColumn::Texts(texts) = Fact::HostName.unknown(2) else {
            panic!("names are texts");
        };
        assert_eq!((texts.get(0), texts.get(1), texts.get(2)), ("", "", ""));
    }
}
