//! Settings of the AMQP transport.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::str::FromStr;
use std::time::Duration;

use ebbtide_amqp::TlsFiles;

use super::identity::BusIdentity;
use crate::{BackoffPolicy, BrokerUrl, BusError};

/// More channels than this on one connection buy nothing: the broker's disk is the limit long
/// before. RabbitMQ's default limit is 2047 channels for a connection.
const MAX_IN_FLIGHT: u16 = 1024;

/// A connection name is for people; RabbitMQ's management page shows about this much.
const MAX_CONNECTION_NAME_BYTES: usize = 128;

/// How the broker keeps a queue. A queue that exists cannot change its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueueKind {
    /// A durable classic queue on one node.
    #[default]
    Classic,
    /// Replicated over the nodes of a cluster (RabbitMQ 3.8 and later). Such a queue gives up on a
    /// message after a number of redeliveries; ours then move it to the dead letter queue.
    Quorum,
}

impl QueueKind {
    /// The value of `x-queue-type`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Quorum => "quorum",
        }
    }
}

impl fmt::Display for QueueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for QueueKind {
    type Err = BusError;

    fn from_str(text: &str) -> Result<Self, BusError> {
        match text {
            "classic" => Ok(Self::Classic),
            "quorum" => Ok(Self::Quorum),
            other => Err(BusError::InvalidConfig {
                setting: "queue_kind",
                reason: format!("{other:?} is neither \"classic\" nor \"quorum\""),
            }),
        }
    }
}

/// Settings of an [`AmqpBus`](crate::AmqpBus). Start from [`AmqpConfig::new`] and change what
/// differs.
#[derive(Debug, Clone)]
pub struct AmqpConfig {
    /// The brokers of one cluster, tried in this order and round again. At least one.
    pub brokers: Vec<BrokerUrl>,
    /// Shown by the broker's management page and logs, for example `ebbtide-agent host-1`. Two
    /// connections are opened; ` (publish)` and ` (consume)` are appended.
    pub connection_name: String,
    /// Interval of heartbeats when the URL sets none, 1 to 600 s. A dead peer is noticed after
    /// about twice this time.
    pub heartbeat: Duration,
    /// Limit for one attempt to connect: TCP, TLS and login together.
    pub connect_timeout: Duration,
    /// How long publish, declare and the first attachment of a subscription are tried before they
    /// give up with [`BusError::Unavailable`].
    pub operation_timeout: Duration,
    /// How long close waits for publishes in flight.
    pub close_timeout: Duration,
    /// Delays between attempts to connect.
    pub reconnect: BackoffPolicy,
    /// Decides the jitter of those delays. Different for each process by default.
    pub jitter_seed: u64,
    /// The kind of queue that is declared.
    pub queue_kind: QueueKind,
    /// Publishes that may wait for their confirm at the same time, 1 to 1024; more wait their turn.
    /// Each uses a channel of its own (see `publisher.rs` of `ebbtide-amqp`).
    pub max_in_flight: u16,
    /// Whether this process proves its identity, and under which user; see `identity.rs`. All
    /// brokers' URLs then need the same user.
    pub identity: BusIdentity,
    /// Certificates for `amqps://` URLs, read again for every connection.
    pub tls_files: TlsFiles,
}

impl AmqpConfig {
    /// Settings with the defaults for everything else: heartbeat 10 s, connect 10 s, operations 30
    /// s, close 5 s, classic queues, 64 publishes in flight.
    #[must_use]
    pub fn new(brokers: Vec<BrokerUrl>, connection_name: impl Into<String>) -> Self {
        let connection_name = connection_name.into();
        let mut hasher = DefaultHasher::new();
        (&connection_name, std::process::id()).hash(&mut hasher);
        Self {
            brokers,
            connection_name,
            heartbeat: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            operation_timeout: Duration::from_secs(30),
            close_timeout: Duration::from_secs(5),
            reconnect: BackoffPolicy::default(),
            jitter_seed: hasher.finish(),
            queue_kind: QueueKind::default(),
            max_in_flight: 64,
            identity: BusIdentity::None,
            tls_files: TlsFiles::default(),
        }
    }

    pub(crate) fn validate(&self) -> Result<(), BusError> {
        let invalid = |setting, reason: String| Err(BusError::InvalidConfig { setting, reason });
        if self.brokers.is_empty() {
            return invalid(
                "brokers",
                "there must be at least one broker URL".to_owned(),
            );
        }
        let user = self.user();
        if self.identity == BusIdentity::Agent && self.brokers.iter().any(|b| b.user() != user) {
            return invalid(
                "brokers",
                "an agent that proves who it is has the same user at all brokers".to_owned(),
            );
        }
        let name = self.connection_name.len();
        if name == 0 || name > MAX_CONNECTION_NAME_BYTES {
            return invalid(
                "connection_name",
                format!("it has {name} bytes, 1 to {MAX_CONNECTION_NAME_BYTES} are possible"),
            );
        }
        if !(1..=600).contains(&self.heartbeat.as_secs()) {
            return invalid(
                "heartbeat",
                format!("{:?} is not between 1 and 600 s", self.heartbeat),
            );
        }
        if !(1..=MAX_IN_FLIGHT).contains(&self.max_in_flight) {
            return invalid(
                "max_in_flight",
                format!(
                    "{} is not between 1 and {MAX_IN_FLIGHT}",
                    self.max_in_flight
                ),
            );
        }
        for (setting, value) in [
            ("connect_timeout", self.connect_timeout),
            ("operation_timeout", self.operation_timeout),
        ] {
            if value.is_zero() {
                return invalid(setting, "it must be more than zero".to_owned());
            }
        }
        self.reconnect.validate()
    }

    /// The user of the login.
    pub(crate) fn user(&self) -> &str {
        self.brokers.first().map_or("", BrokerUrl::user)
    }

    /// The brokers as they may be shown.
    pub(crate) fn brokers_shown(&self) -> String {
        let shown: Vec<String> = self.brokers.iter().map(ToString::to_string).collect();
        shown.join(", ")
    }

    /// How long a dead connection may block another one. The broker closes it after two heartbeats,
    /// at an interval that may be up to that of this configuration. Some seconds more, because both
    /// sides count from their own last check.
    pub(crate) fn dead_after(&self) -> Duration {
        let of_url = |broker: &BrokerUrl| broker.heartbeat(self.heartbeat_seconds());
        let longest = self.brokers.iter().map(of_url).max();
        Duration::from_secs(3 * u64::from(longest.unwrap_or_default()) + 5)
    }

    pub(crate) fn heartbeat_seconds(&self) -> u16 {
        u16::try_from(self.heartbeat.as_secs()).unwrap_or(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> AmqpConfig {
        AmqpConfig::new(vec!["amqp://u:geheim@localhost".parse().unwrap()], "test")
    }

    #[test]
    fn the_defaults_are_valid_and_show_no_password() {
        assert_eq!(config().validate(), Ok(()));
        assert!(!format!("{:?}", config()).contains("geheim"));
    }

    #[test]
    fn every_senseless_setting_is_refused_by_name() {
        type Spoil = fn(&mut AmqpConfig);
        let cases: [(&str, Spoil); 8] = [
            ("brokers", |c| c.brokers.clear()),
            ("connection_name", |c| c.connection_name.clear()),
            ("connection_name", |c| c.connection_name = "x".repeat(129)),
            ("heartbeat", |c| c.heartbeat = Duration::ZERO),
            ("heartbeat", |c| c.heartbeat = Duration::from_secs(601)),
            ("max_in_flight", |c| c.max_in_flight = 0),
            ("operation_timeout", |c| {
                c.operation_timeout = Duration::ZERO
            }),
            ("reconnect", |c| c.reconnect.first = Duration::ZERO),
        ];
        for (setting, spoil) in cases {
            let mut config = config();
            spoil(&mut config);
            let error = config.validate().unwrap_err();
            assert_eq!(error.code(), "EB-BUS-002");
            assert!(error.to_string().contains(setting), "{error}");
        }
    }

    #[test]
    fn queue_kinds_are_read_as_they_are_written() {
        for kind in [QueueKind::Classic, QueueKind::Quorum] {
            assert_eq!(kind.to_string().parse::<QueueKind>(), Ok(kind));
        }
        assert_eq!(
            "stream".parse::<QueueKind>().unwrap_err().code(),
            "EB-BUS-002"
        );
    }
}
