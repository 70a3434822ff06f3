//! Queue names.
//!
//! Three kinds of queue exist under one prefix: one for each agent (`ebbtide.agent.HOST`), one for
//! the scheduler (`ebbtide.scheduler`) and one for messages that no reader could use
//! (`ebbtide.dead-letter`). The prefix separates regions that share a broker. It contains no dot,
//! so two names are equal only if prefix and host are equal, and no host name can imitate another
//! region's queue.

use std::fmt;
use std::sync::Arc;

use crate::BusError;
use ebbtide_model::ModelError;
use ebbtide_model::names::check_host_name;

/// The prefix that is used unless the operator sets another.
pub const DEFAULT_PREFIX: &str = "ebbtide";

/// AMQP 0-9-1 carries a queue name as a short string of at most 255 bytes (section 4.2.5.3). This
/// leaves room for `.agent.` and a host name of 200 bytes, which is what `ebbtide-model` allows.
const MAX_PREFIX_BYTES: usize = 48;

/// Errors repeat at most this much of an offending name.
const MAX_ECHO_CHARS: usize = 64;

/// The first part of every queue name of one region. ASCII letters, digits, `-` and `_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueuePrefix(Arc<str>);

impl Default for QueuePrefix {
    fn default() -> Self {
        Self(Arc::from(DEFAULT_PREFIX))
    }
}

impl fmt::Display for QueuePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl QueuePrefix {
    /// Checks and takes a prefix.
    ///
    /// # Errors
    ///
    /// [`BusError::InvalidName`] if it is empty, longer than 48 bytes, has other characters than
    /// ASCII letters, digits, `-` and `_`, or is `amq` (reserved by AMQP for the broker itself).
    pub fn new(prefix: &str) -> Result<Self, BusError> {
        let invalid = |reason: String| invalid("queue prefix", prefix, reason);
        if prefix.is_empty() {
            return Err(invalid("it is empty".to_owned()));
        }
        if prefix.len() > MAX_PREFIX_BYTES {
            return Err(invalid(format!(
                "it has {} bytes, at most {MAX_PREFIX_BYTES} are possible",
                prefix.len()
            )));
        }
        if let Some(c) = prefix
            .chars()
            .find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')))
        {
            return Err(invalid(format!(
                "the character {c:?} is not an ASCII letter, digit, '-' or '_'"
            )));
        }
        if prefix.eq_ignore_ascii_case("amq") {
            return Err(invalid(
                "names that begin with 'amq.' belong to the broker".to_owned(),
            ));
        }
        Ok(Self(Arc::from(prefix)))
    }

    /// The queue from which the agent of `host` reads: `PREFIX.agent.HOST`.
    ///
    /// # Errors
    ///
    /// [`BusError::InvalidName`] if [`check_host_name`] refuses it.
    pub fn agent(&self, host: &str) -> Result<QueueName, BusError> {
        check_host_name(host).map_err(|error| match error {
            ModelError::Name { allowed, .. } => invalid("host name", host, allowed.to_owned()),
            other => invalid("host name", host, other.to_string()),
        })?;
        let name = format!("{}.agent.{host}", self.0);
        Ok(self.name(name))
    }

    /// The queue from which the scheduler reads: `PREFIX.scheduler`.
    #[must_use]
    pub fn scheduler(&self) -> QueueName {
        self.name(format!("{}.scheduler", self.0))
    }

    /// The queue of messages that no reader could use: `PREFIX.dead-letter`.
    #[must_use]
    pub fn dead_letter(&self) -> QueueName {
        self.name(format!("{}.dead-letter", self.0))
    }

    fn name(&self, name: String) -> QueueName {
        QueueName {
            prefix: self.clone(),
            name: Arc::from(name),
        }
    }
}

/// A queue name that every transport accepts. Made by [`QueuePrefix`]; cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName {
    prefix: QueuePrefix,
    name: Arc<str>,
}

impl QueueName {
    /// The whole name, as the broker sees it. At most 255 bytes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// The prefix of the region to which this queue belongs.
    #[must_use]
    pub fn prefix(&self) -> &QueuePrefix {
        &self.prefix
    }

    /// The dead letter queue of the same region.
    #[must_use]
    pub fn dead_letter(&self) -> Self {
        self.prefix.dead_letter()
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn invalid(what: &'static str, name: &str, reason: String) -> BusError {
    BusError::InvalidName {
        what,
        name: name.chars().take(MAX_ECHO_CHARS).collect(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_look_as_documented() {
        let prefix = QueuePrefix::default();
        assert_eq!(
            prefix.agent("host-1.example.org").unwrap().as_str(),
            "ebbtide.agent.host-1.example.org"
        );
        assert_eq!(prefix.scheduler().as_str(), "ebbtide.scheduler");
        assert_eq!(prefix.dead_letter().as_str(), "ebbtide.dead-letter");
        assert_eq!(prefix.scheduler().dead_letter(), prefix.dead_letter());
    }

    #[test]
    fn bad_host_names_are_refused_with_a_reason() {
        let prefix = QueuePrefix::default();
        for host in [
            "", "a b", "höst", "host/1", "host\n", "*", "..", "-rf", "a..b",
        ] {
            let error = prefix.agent(host).unwrap_err();
            assert_eq!(error.code(), "EB-BUS-003");
            assert!(
                error.to_string().contains("200 letters"),
                "{host:?}: {error}"
            );
        }
    }

    #[test]
    fn bad_prefixes_are_refused() {
        for prefix in ["", "a.b", "amq", "AMQ", "a b", "ä", &"x".repeat(49)] {
            assert_eq!(
                QueuePrefix::new(prefix).unwrap_err().code(),
                "EB-BUS-003",
                "{prefix:?}"
            );
        }
    }

    #[test]
    fn the_longest_prefix_and_the_longest_host_name_fit_together() {
        let prefix = QueuePrefix::new(&"p".repeat(MAX_PREFIX_BYTES)).unwrap();
        assert_eq!(prefix.agent(&"h".repeat(200)).unwrap().as_str().len(), 255);
    }

    #[test]
    fn an_error_repeats_only_the_beginning_of_a_huge_name() {
        let error = QueuePrefix::default()
            .agent(&"h".repeat(100_000))
            .unwrap_err();
        assert!(
            error.to_string().len() < 300,
            "{} bytes",
            error.to_string().len()
        );
    }

    proptest! {
        #[test]
        fn two_queues_are_equal_only_if_prefix_and_host_are(
            a in "[a-z_-]{1,6}", b in "[a-z_-]{1,6}",
            h in "[a-z_][a-z_-]{0,5}(\\.[a-z_-]{1,5})?", k in "[a-z_][a-z_-]{0,5}(\\.[a-z_-]{1,5})?",
        ) {
            let one = QueuePrefix::new(&a).unwrap().agent(&h).unwrap();
            let two = QueuePrefix::new(&b).unwrap().agent(&k).unwrap();
            prop_assert_eq!(one.as_str() == two.as_str(), a == b && h == k);
            prop_assert_ne!(one.as_str(), QueuePrefix::new(&b).unwrap().scheduler().as_str().to_owned());
            prop_assert_ne!(one.as_str(), QueuePrefix::new(&b).unwrap().dead_letter().as_str().to_owned());
        }
    }
}
