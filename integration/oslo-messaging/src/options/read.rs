//! Reading single options as oslo.config does.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::MessagingError;

/// Every option of the section, of oslo.messaging 14 to 18, whether it matters here or not: in the
/// query of a URL only these are possible.
pub(super) const KNOWN: [&str; 41] = [
    "amqp_auto_delete",
    "amqp_durable_queues",
    "conn_pool_min_size",
    "conn_pool_ttl",
    "direct_mandatory_flag",
    "enable_cancel_on_failover",
    "heartbeat_in_pthread",
    "heartbeat_rate",
    "heartbeat_timeout_threshold",
    "hostname",
    "kombu_compression",
    "kombu_failover_strategy",
    "kombu_missing_consumer_retry_timeout",
    "kombu_reconnect_delay",
    "kombu_reconnect_splay",
    "kombu_reconnect_timeout",
    "processname",
    "rabbit_ha_queues",
    "rabbit_interval_max",
    "rabbit_login_method",
    "rabbit_qos_prefetch_count",
    "rabbit_quorum_delivery_limit",
    "rabbit_quorum_max_memory_bytes",
    "rabbit_quorum_max_memory_length",
    "rabbit_quorum_queue",
    // Misspelt in oslo.messaging 14 and before.
    "rabbit_quroum_max_memory_bytes",
    "rabbit_quroum_max_memory_length",
    "rabbit_retry_backoff",
    "rabbit_retry_interval",
    "rabbit_stream_fanout",
    "rabbit_transient_queues_ttl",
    "rabbit_transient_quorum_queue",
    "rpc_conn_pool_size",
    "ssl",
    "ssl_ca_file",
    "ssl_cert_file",
    "ssl_enforce_fips_mode",
    "ssl_enforce_hostname_verification",
    "ssl_key_file",
    "ssl_version",
    "use_queue_manager",
];

/// Reads options by name and names those that are wrong.
pub(super) struct Reader<'a> {
    lookup: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(lookup: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { lookup }
    }

    /// The value without blanks around it; an empty one counts as not set.
    pub(super) fn text(&self, option: &str) -> Option<String> {
        let value = (self.lookup)(option)?.trim().to_owned();
        (!value.is_empty()).then_some(value)
    }

    pub(super) fn path(&self, option: &str) -> Option<PathBuf> {
        self.text(option).map(PathBuf::from)
    }

    /// The words that oslo.config takes, in any case.
    pub(super) fn boolean(&self, option: &str, default: bool) -> Result<bool, MessagingError> {
        let Some(text) = self.text(option) else {
            return Ok(default);
        };
        match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "on" | "yes" => Ok(true),
            "false" | "0" | "off" | "no" => Ok(false),
            _ => Err(invalid(
                option,
                format!("{text:?} is neither true nor false"),
            )),
        }
    }

    pub(super) fn integer<T>(
        &self,
        option: &str,
        least: u64,
        default: T,
    ) -> Result<T, MessagingError>
    where
        T: TryFrom<u64>,
    {
        let Some(text) = self.text(option) else {
            return Ok(default);
        };
        text.parse::<u64>()
            .ok()
            .filter(|number| *number >= least)
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| {
                invalid(
                    option,
                    format!("{text:?} is no whole number of at least {least} that fits"),
                )
            })
    }

    /// A whole number of seconds, at most some 136 years.
    pub(super) fn seconds(
        &self,
        option: &str,
        least: u64,
        default: Duration,
    ) -> Result<Duration, MessagingError> {
        let seconds: u32 = self.integer(
            option,
            least,
            u32::try_from(default.as_secs()).unwrap_or(u32::MAX),
        )?;
        Ok(Duration::from_secs(seconds.into()))
    }

    /// Seconds that may have a fraction.
    pub(super) fn fraction(
        &self,
        option: &str,
        most: f64,
        default: Duration,
    ) -> Result<Duration, MessagingError> {
        let Some(text) = self.text(option) else {
            return Ok(default);
        };
        match text.parse::<f64>() {
            // NaN is in no range.
            Ok(seconds) if (0.0..=most).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
            _ => Err(invalid(
                option,
                format!("{text:?} is no number of seconds from 0 to {most}"),
            )),
        }
    }

    pub(super) fn parsed<T>(&self, option: &str) -> Result<Option<T>, MessagingError>
    where
        T: FromStr<Err = &'static str>,
    {
        let Some(text) = self.text(option) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(possible) => Err(invalid(
                option,
                format!("{text:?} is not known; {possible}"),
            )),
        }
    }

    /// A number whose option was misspelt `quroum` up to oslo.messaging 14.
    pub(super) fn quorum_limit(&self, option: &str, default: u64) -> Result<u64, MessagingError> {
        let misspelt = self.integer(&option.replace("quorum", "quroum"), 0, default)?;
        self.integer(option, 0, misspelt)
    }

    /// It had another name once.
    pub(super) fn missing_consumer_timeout(
        &self,
        default: Duration,
    ) -> Result<Duration, MessagingError> {
        let old = self.seconds("kombu_reconnect_timeout", 0, default)?;
        self.seconds("kombu_missing_consumer_retry_timeout", 0, old)
    }
}

pub(super) fn invalid(option: &str, reason: impl Into<String>) -> MessagingError {
    MessagingError::InvalidOption {
        option: option.to_owned(),
        reason: reason.into(),
    }
}

/// The machine's name, as the kernel has it. Empty if it does not say.
pub(super) fn own_hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map(|name| name.trim().to_owned())
        .unwrap_or_default()
}

/// The program's name without its folder.
pub(super) fn own_processname() -> String {
    std::env::args_os()
        .next()
        .map(PathBuf::from)
        .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .unwrap_or_default()
}
