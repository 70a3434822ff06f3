//! The options of `[oslo_messaging_rabbit]` (oslo_messaging/_drivers/impl_rabbit.py and amqp.py),
//! with its defaults.

mod read;

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use ebbtide_amqp::TlsFiles;

use crate::{MessagingError, TransportUrl};
use read::Reader;

/// In which order the brokers are tried (`kombu_failover_strategy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailoverStrategy {
    /// One after the other, beginning at a random one.
    #[default]
    RoundRobin,
    /// In a new random order each round.
    Shuffle,
}

/// How to log in (`rabbit_login_method`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoginMethod {
    /// User and password as an AMQP table: oslo.messaging's default.
    #[default]
    AmqPlain,
    /// User and password.
    Plain,
    /// By the client's certificate.
    External,
}

/// The options of `[oslo_messaging_rabbit]` that matter here. `Debug` is harmless: there are no
/// secrets among them.
#[derive(Debug, Clone, PartialEq)]
pub struct RabbitOptions {
    /// `amqp_durable_queues`: topic queues and their exchange survive a restart of the broker.
    pub durable_queues: bool,
    /// `amqp_auto_delete`: topic queues and their exchange vanish with their last user.
    pub auto_delete: bool,
    /// `rabbit_ha_queues`: queues are declared with `x-ha-policy: all`, which RabbitMQ 3.0 and
    /// later ignore.
    pub ha_queues: bool,
    /// `rabbit_quorum_queue`: topic queues are quorum queues.
    pub quorum_queue: bool,
    /// `rabbit_transient_quorum_queue`: reply and fanout queues are quorum queues.
    pub transient_quorum_queue: bool,
    /// `rabbit_quorum_delivery_limit`: a quorum queue drops a message after so many redeliveries; 0
    /// for the broker's own limit.
    pub quorum_delivery_limit: u32,
    /// `rabbit_quorum_max_memory_length`, in messages; 0 for no limit.
    pub quorum_max_memory_length: u64,
    /// `rabbit_quorum_max_memory_bytes`; 0 for no limit.
    pub quorum_max_memory_bytes: u64,
    /// `rabbit_transient_queues_ttl`: reply and fanout queues vanish when unused for this long;
    /// zero for never.
    pub transient_queues_ttl: Duration,
    /// `rabbit_qos_prefetch_count`, if it is set: how many requests a server takes at once. 0,
    /// oslo.messaging's default, means that the server's own option decides.
    pub prefetch_count: u16,
    /// `use_queue_manager`: reply and fanout queues are named after host and process instead of at
    /// random.
    pub use_queue_manager: bool,
    /// `hostname`, for `use_queue_manager`.
    pub hostname: String,
    /// `processname`, for `use_queue_manager` and the connections' names.
    pub processname: String,
    /// `heartbeat_timeout_threshold`: a broker that is silent for this long is taken for dead; zero
    /// for no heartbeats.
    pub heartbeat: Duration,
    /// `kombu_reconnect_delay`: the pause after a connection was lost.
    pub reconnect_delay: Duration,
    /// `kombu_reconnect_splay`: a random time up to this is added, so that not all services come
    /// back at once.
    pub reconnect_splay: Duration,
    /// `rabbit_retry_interval`: the first pause between attempts to connect.
    pub retry_interval: Duration,
    /// `rabbit_retry_backoff`: each pause is longer than the one before by this.
    pub retry_backoff: Duration,
    /// `rabbit_interval_max`: the longest pause.
    pub interval_max: Duration,
    /// `kombu_failover_strategy`.
    pub failover: FailoverStrategy,
    /// `kombu_missing_consumer_retry_timeout`: how long a reply is tried while the caller's queue
    /// is missing.
    pub missing_consumer_timeout: Duration,
    /// `direct_mandatory_flag`: replies are published mandatory. Without it the server does not
    /// notice that a caller is gone.
    pub direct_mandatory: bool,
    /// `rabbit_login_method`.
    pub login_method: LoginMethod,
    /// `ssl`: connect by TLS. The broker's certificate is always verified, its name included.
    pub ssl: bool,
    /// `ssl_ca_file`: trusted besides the system's root certificates.
    pub ssl_ca_file: Option<PathBuf>,
    /// `ssl_cert_file`: the client's certificate.
    pub ssl_cert_file: Option<PathBuf>,
    /// `ssl_key_file`: the client's key.
    pub ssl_key_file: Option<PathBuf>,
}

impl Default for RabbitOptions {
    fn default() -> Self {
        Self {
            durable_queues: false,
            auto_delete: false,
            ha_queues: false,
            quorum_queue: false,
            transient_quorum_queue: false,
            quorum_delivery_limit: 0,
            quorum_max_memory_length: 0,
            quorum_max_memory_bytes: 0,
            transient_queues_ttl: Duration::from_secs(1800),
            prefetch_count: 0,
            use_queue_manager: false,
            hostname: read::own_hostname(),
            processname: read::own_processname(),
            heartbeat: Duration::from_secs(60),
            reconnect_delay: Duration::from_secs(1),
            reconnect_splay: Duration::ZERO,
            retry_interval: Duration::from_secs(1),
            retry_backoff: Duration::from_secs(2),
            interval_max: Duration::from_secs(30),
            failover: FailoverStrategy::default(),
            missing_consumer_timeout: Duration::from_secs(60),
            direct_mandatory: true,
            login_method: LoginMethod::default(),
            ssl: false,
            ssl_ca_file: None,
            ssl_cert_file: None,
            ssl_key_file: None,
        }
    }
}

impl RabbitOptions {
    /// Reads the options by name, for example `rabbit_quorum_queue`. `None` means that the option
    /// is not set.
    ///
    /// # Errors
    ///
    /// [`MessagingError::InvalidOption`] names the option whose value cannot be used, or that is
    /// not supported.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, MessagingError> {
        Self::read(&Reader::new(&lookup))
    }

    /// The same, with the options in the query of `url` going before those that `lookup` finds, as
    /// in oslo.messaging.
    ///
    /// # Errors
    ///
    /// As [`RabbitOptions::from_lookup`], and for an option in the query that does not exist.
    pub fn for_url(
        url: &TransportUrl,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, MessagingError> {
        for name in url.query().keys() {
            if !read::KNOWN.contains(&name.as_str()) {
                return Err(read::invalid(
                    name,
                    "transport_url sets it, but there is no such option",
                ));
            }
        }
        Self::from_lookup(|name| url.query().get(name).cloned().or_else(|| lookup(name)))
    }

    fn read(from: &Reader<'_>) -> Result<Self, MessagingError> {
        let base = Self::default();
        let options = Self {
            durable_queues: from.boolean("amqp_durable_queues", base.durable_queues)?,
            auto_delete: from.boolean("amqp_auto_delete", base.auto_delete)?,
            ha_queues: from.boolean("rabbit_ha_queues", base.ha_queues)?,
            quorum_queue: from.boolean("rabbit_quorum_queue", base.quorum_queue)?,
            transient_quorum_queue: from
                .boolean("rabbit_transient_quorum_queue", base.transient_quorum_queue)?,
            quorum_delivery_limit: from.integer(
                "rabbit_quorum_delivery_limit",
                0,
                base.quorum_delivery_limit,
            )?,
            quorum_max_memory_length: from.quorum_limit(
                "rabbit_quorum_max_memory_length",
                base.quorum_max_memory_length,
            )?,
            quorum_max_memory_bytes: from.quorum_limit(
                "rabbit_quorum_max_memory_bytes",
                base.quorum_max_memory_bytes,
            )?,
            transient_queues_ttl: from.seconds(
                "rabbit_transient_queues_ttl",
                0,
                base.transient_queues_ttl,
            )?,
            prefetch_count: from.integer("rabbit_qos_prefetch_count", 0, base.prefetch_count)?,
            use_queue_manager: from.boolean("use_queue_manager", base.use_queue_manager)?,
            hostname: from.text("hostname").unwrap_or(base.hostname),
            processname: from.text("processname").unwrap_or(base.processname),
            heartbeat: from.seconds("heartbeat_timeout_threshold", 0, base.heartbeat)?,
            // Python allows at most 4.5 s: nine tenths of the longest pause between two looks at
            // the socket.
            reconnect_delay: from.fraction("kombu_reconnect_delay", 4.5, base.reconnect_delay)?,
            reconnect_splay: from.fraction(
                "kombu_reconnect_splay",
                3600.0,
                base.reconnect_splay,
            )?,
            retry_interval: from.seconds("rabbit_retry_interval", 1, base.retry_interval)?,
            retry_backoff: from.seconds("rabbit_retry_backoff", 0, base.retry_backoff)?,
            interval_max: from.seconds("rabbit_interval_max", 1, base.interval_max)?,
            failover: from
                .parsed("kombu_failover_strategy")?
                .unwrap_or(base.failover),
            missing_consumer_timeout: from
                .missing_consumer_timeout(base.missing_consumer_timeout)?,
            direct_mandatory: from.boolean("direct_mandatory_flag", base.direct_mandatory)?,
            login_method: from
                .parsed("rabbit_login_method")?
                .unwrap_or(base.login_method),
            ssl: from.boolean("ssl", base.ssl)?,
            ssl_ca_file: from.path("ssl_ca_file"),
            ssl_cert_file: from.path("ssl_cert_file"),
            ssl_key_file: from.path("ssl_key_file"),
        };
        if from.boolean("rabbit_stream_fanout", false)? {
            return Err(read::invalid(
                "rabbit_stream_fanout",
                "streams are not supported; all services of this topic must set it to false",
            ));
        }
        if from.boolean("enable_cancel_on_failover", false)? && !options.ha_queues {
            tracing::info!(
                "enable_cancel_on_failover concerns mirrored queues only and is ignored"
            );
        }
        options.validate()?;
        Ok(options)
    }

    /// Whether the options fit together.
    ///
    /// # Errors
    ///
    /// [`MessagingError::InvalidOption`] names one of those that do not.
    pub fn validate(&self) -> Result<(), MessagingError> {
        let invalid = |option, reason: &str| Err(read::invalid(option, reason));
        if self.ha_queues && (self.quorum_queue || self.transient_quorum_queue) {
            return invalid(
                "rabbit_ha_queues",
                "a queue is mirrored or a quorum queue, not both; unset this or rabbit_quorum_queue",
            );
        }
        if self.ssl_cert_file.is_some() != self.ssl_key_file.is_some() {
            return invalid(
                if self.ssl_cert_file.is_some() {
                    "ssl_key_file"
                } else {
                    "ssl_cert_file"
                },
                "a client certificate needs both ssl_cert_file and ssl_key_file",
            );
        }
        if self.heartbeat.as_secs() > u64::from(u16::MAX) {
            return invalid(
                "heartbeat_timeout_threshold",
                "at most 65535 seconds are possible",
            );
        }
        if self.use_queue_manager {
            for (option, value) in [
                ("hostname", &self.hostname),
                ("processname", &self.processname),
            ] {
                if value.is_empty() || value.len() > 100 {
                    return invalid(option, "use_queue_manager needs a name of 1 to 100 bytes");
                }
            }
        }
        Ok(())
    }

    /// The files of the options `ssl_*`.
    pub(crate) fn tls_files(&self) -> TlsFiles {
        TlsFiles {
            ca: self.ssl_ca_file.clone(),
            certificate: self.ssl_cert_file.clone(),
            key: self.ssl_key_file.clone(),
        }
    }

    /// Whether topic queues and exchanges are durable. Quorum queues always are.
    pub(crate) fn topic_durable(&self) -> bool {
        self.durable_queues || self.quorum_queue
    }
}

impl FromStr for FailoverStrategy {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "round-robin" => Ok(Self::RoundRobin),
            "shuffle" => Ok(Self::Shuffle),
            _ => Err("possible are round-robin and shuffle"),
        }
    }
}

impl FromStr for LoginMethod {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "AMQPLAIN" => Ok(Self::AmqPlain),
            "PLAIN" => Ok(Self::Plain),
            "EXTERNAL" => Ok(Self::External),
            _ => Err("possible are AMQPLAIN, PLAIN and EXTERNAL"),
        }
    }
}

#[cfg(test)]
mod tests;
