//! Sections of nova.conf with their types.

use oslo_config::{Config, Opt, Result};
use std::fmt;

/// Options that variables may name, with defaults that others build upon.
pub(super) const DECLARED: [Opt; 12] = [
    HOST,
    MY_IP,
    STATE_PATH,
    PYBASEDIR,
    REPORT_INTERVAL,
    SERVICE_DOWN_TIME,
    RPC_RESPONSE_TIMEOUT,
    LONG_RPC_TIMEOUT,
    LOG_FILE,
    LOG_DIR,
    TRANSPORT_URL,
    CONTROL_EXCHANGE,
];

const HOST: Opt = Opt::text("DEFAULT", "host");
const MY_IP: Opt = Opt::text("DEFAULT", "my_ip");
const STATE_PATH: Opt = Opt::text("DEFAULT", "state_path").default("$pybasedir");
// Where Debian and others put Nova's Python. Only paths without a configured value depend on it.
const PYBASEDIR: Opt = Opt::text("DEFAULT", "pybasedir").default("/usr/lib/python3/dist-packages");
const REPORT_INTERVAL: Opt = Opt::int("DEFAULT", "report_interval").default("10");
const SERVICE_DOWN_TIME: Opt = Opt::int("DEFAULT", "service_down_time").default("60");
const RPC_RESPONSE_TIMEOUT: Opt = Opt::int("DEFAULT", "rpc_response_timeout").default("60");
const LONG_RPC_TIMEOUT: Opt = Opt::int("DEFAULT", "long_rpc_timeout").default("1800");
const LOG_FILE: Opt = Opt::text("DEFAULT", "log_file").deprecated(&[("DEFAULT", "logfile")]);
const LOG_DIR: Opt = Opt::text("DEFAULT", "log_dir").deprecated(&[("DEFAULT", "logdir")]);
const TRANSPORT_URL: Opt = Opt::text("DEFAULT", "transport_url")
    .default("rabbit://")
    .secret();
// Nova sets this default for itself; oslo.messaging's own is `openstack`.
const CONTROL_EXCHANGE: Opt = Opt::text("DEFAULT", "control_exchange").default("nova");
const DEBUG: Opt = Opt::bool("DEFAULT", "debug").default("false");
const RPC_PING_ENABLED: Opt = Opt::bool("DEFAULT", "rpc_ping_enabled").default("false");

/// `[DEFAULT]`. Times are in seconds. The broker's URL never shows in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct General {
    /// Name under which we listen and report.
    pub host: String,
    /// Our address.
    pub my_ip: String,
    /// URL of the broker.
    pub transport_url: String,
    /// Exchange; `nova`.
    pub control_exchange: String,
    /// How often the service record is touched; 10.
    pub report_interval: i64,
    /// When a service that did not report is down; 60.
    pub service_down_time: i64,
    /// How long callers wait for an answer or a sign of life; 60.
    pub rpc_response_timeout: i64,
    /// How long they wait in all for long calls; 1800.
    pub long_rpc_timeout: i64,
    /// Whether to log details.
    pub debug: bool,
    /// Whether `oslo_rpc_server_ping` is answered.
    pub rpc_ping_enabled: bool,
    /// Where to log; below `log_dir` unless absolute.
    pub log_file: Option<String>,
    /// Directory of logs.
    pub log_dir: Option<String>,
    /// Directory for what has to last.
    pub state_path: String,
}

impl fmt::Debug for General {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("General")
            .field("host", &self.host)
            .field("my_ip", &self.my_ip)
            .field("control_exchange", &self.control_exchange)
            .field("report_interval", &self.report_interval)
            .field("service_down_time", &self.service_down_time)
            .finish_non_exhaustive()
    }
}

impl General {
    pub(super) fn read(config: &Config) -> Result<Self> {
        let text =
            |option| Ok::<_, oslo_config::ConfigError>(config.text(option)?.unwrap_or_default());
        // Left empty, an interval is null, and Nova's timers fall back on what they do without one:
        // the default is kinder.
        let seconds = |option, default| {
            Ok::<_, oslo_config::ConfigError>(config.int(option)?.unwrap_or(default))
        };
        Ok(Self {
            host: text(&HOST)?,
            my_ip: text(&MY_IP)?,
            transport_url: text(&TRANSPORT_URL)?,
            control_exchange: text(&CONTROL_EXCHANGE)?,
            report_interval: seconds(&REPORT_INTERVAL, 10)?,
            service_down_time: seconds(&SERVICE_DOWN_TIME, 60)?,
            rpc_response_timeout: seconds(&RPC_RESPONSE_TIMEOUT, 60)?,
            long_rpc_timeout: seconds(&LONG_RPC_TIMEOUT, 1800)?,
            debug: config.bool(&DEBUG)?.unwrap_or(false),
            rpc_ping_enabled: config.bool(&RPC_PING_ENABLED)?.unwrap_or(false),
            log_file: config.text(&LOG_FILE)?,
            log_dir: config.text(&LOG_DIR)?,
            state_path: text(&STATE_PATH)?,
        })
    }
}

/// `[scheduler]`, beyond Nova's options for deciding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedulerSection {
    /// Every how many seconds new hosts are mapped to their cells; `None`: never.
    pub discover_hosts_in_cells_interval: Option<i64>,
    /// Worker processes. Ours is one process with threads; kept for those who count.
    pub workers: Option<i64>,
}

impl SchedulerSection {
    pub(super) fn read(config: &Config) -> Result<Self> {
        const INTERVAL: Opt = Opt::int("scheduler", "discover_hosts_in_cells_interval")
            .at_least(-1)
            .default("-1");
        const WORKERS: Opt = Opt::int("scheduler", "workers").at_least(0);
        Ok(Self {
            // 0 is Nova's word for its default spacing of periodic tasks, a minute.
            discover_hosts_in_cells_interval: config.int(&INTERVAL)?.and_then(|interval| {
                match interval {
                    ..0 => None,
                    0 => Some(60),
                    seconds => Some(seconds),
                }
            }),
            workers: config.int(&WORKERS)?,
        })
    }
}

/// `[database]` or `[api_database]`. URLs never show in debug output. Times are in seconds.
#[derive(Clone, PartialEq)]
pub struct Database {
    /// URL, as SQLAlchemy writes it (`mysql+pymysql://…`); `None`: not set.
    pub connection: Option<String>,
    /// URL of a copy to read from.
    pub slave_connection: Option<String>,
    /// Parameters to add to the URL.
    pub connection_parameters: String,
    /// Connections kept open; 5.
    pub max_pool_size: Option<i64>,
    /// Connections beyond that when it is busy; 50.
    pub max_overflow: Option<i64>,
    /// How long to wait for a free connection.
    pub pool_timeout: Option<i64>,
    /// Age at which a connection is made anew; 3600.
    pub connection_recycle_time: i64,
    /// How often the first connection is tried; -1: for ever; 10.
    pub max_retries: i64,
    /// Between these tries; 10.
    pub retry_interval: i64,
    /// MariaDB's `sql_mode`; empty: as the server has it.
    pub mysql_sql_mode: String,
    /// Galera's `wsrep_sync_wait`.
    pub mysql_wsrep_sync_wait: Option<i64>,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database")
            .field("connection", &self.connection.as_ref().map(|_| "***"))
            .field("max_pool_size", &self.max_pool_size)
            .field("max_overflow", &self.max_overflow)
            .finish_non_exhaustive()
    }
}

impl Database {
    pub(super) fn read(config: &Config, group: &'static str) -> Result<Self> {
        let text = |name| config.text(&Opt::text(group, name).secret());
        let int = |name, default| config.int(&Opt::int(group, name).default(default));
        let maybe = |name| config.int(&Opt::int(group, name));
        Ok(Self {
            connection: text("connection")?.filter(|url| !url.is_empty()),
            slave_connection: text("slave_connection")?.filter(|url| !url.is_empty()),
            connection_parameters: text("connection_parameters")?.unwrap_or_default(),
            max_pool_size: int("max_pool_size", "5")?,
            max_overflow: int("max_overflow", "50")?,
            pool_timeout: maybe("pool_timeout")?,
            connection_recycle_time: int("connection_recycle_time", "3600")?.unwrap_or(3600),
            max_retries: int("max_retries", "10")?.unwrap_or(10),
            retry_interval: int("retry_interval", "10")?.unwrap_or(10),
            mysql_sql_mode: text("mysql_sql_mode")?.unwrap_or_else(|| "TRADITIONAL".to_owned()),
            mysql_wsrep_sync_wait: maybe("mysql_wsrep_sync_wait")?,
        })
    }
}

/// Which notifications are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationFormat {
    /// The old ones.
    Unversioned,
    /// Versioned objects.
    Versioned,
    /// Both.
    Both,
}

/// `[notifications]` and `[oslo_messaging_notifications]`. The URL never shows in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Notifications {
    /// Which ones.
    pub format: NotificationFormat,
    /// Drivers; empty, or `noop` alone: none is sent.
    pub drivers: Vec<String>,
    /// Topics of the old ones.
    pub topics: Vec<String>,
    /// Topics of the versioned ones.
    pub versioned_topics: Vec<String>,
    /// Their own broker; `None`: that of the calls.
    pub transport_url: Option<String>,
    /// How often a message is tried again; -1: for ever.
    pub retry: i64,
}

impl fmt::Debug for Notifications {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notifications")
            .field("format", &self.format)
            .field("drivers", &self.drivers)
            .field("topics", &self.topics)
            .field("versioned_topics", &self.versioned_topics)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

impl Notifications {
    pub(super) fn read(config: &Config) -> Result<Self> {
        const FORMAT: Opt = Opt::text("notifications", "notification_format")
            .choices(&["both", "versioned", "unversioned"])
            .default("unversioned")
            .deprecated(&[("DEFAULT", "notification_format")]);
        const VERSIONED_TOPICS: Opt = Opt::list("notifications", "versioned_notifications_topics")
            .default("versioned_notifications");
        const GROUP: &str = "oslo_messaging_notifications";
        const DRIVER: Opt =
            Opt::many(GROUP, "driver").deprecated(&[("DEFAULT", "notification_driver")]);
        const TOPICS: Opt = Opt::list(GROUP, "topics")
            .default("notifications")
            .deprecated(&[
                ("rpc_notifier2", "topics"),
                ("DEFAULT", "notification_topics"),
            ]);
        const URL: Opt = Opt::text(GROUP, "transport_url")
            .secret()
            .deprecated(&[("DEFAULT", "notification_transport_url")]);
        const RETRY: Opt = Opt::int(GROUP, "retry").default("-1");
        Ok(Self {
            format: match config.text(&FORMAT)?.as_deref() {
                Some("both") => NotificationFormat::Both,
                Some("versioned") => NotificationFormat::Versioned,
                _ => NotificationFormat::Unversioned,
            },
            drivers: config.list(&DRIVER)?,
            topics: config.list(&TOPICS)?,
            versioned_topics: config.list(&VERSIONED_TOPICS)?,
            transport_url: config.text(&URL)?.filter(|url| !url.is_empty()),
            retry: config.int(&RETRY)?.unwrap_or(-1),
        })
    }

    /// Whether any notification is sent at all.
    #[must_use]
    pub fn enabled(&self) -> bool {
        self.drivers.iter().any(|driver| driver != "noop")
    }
}
