//! Sections of nova.conf with their types.

use super::number;
use oslo_config::{Config, Effect, Opt, Result};
use std::fmt;

/// Options that variables may name, with defaults that others build upon.
pub(super) const VARIABLES: [Opt; 12] = [
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

/// Those on which decisions depend.
pub(super) const TIMES: [Opt; 2] = [SERVICE_DOWN_TIME, REPORT_INTERVAL];

// Where Debian and others put Nova's Python. Only paths without a configured value depend on it.
const PYBASEDIR: Opt = Opt::text("DEFAULT", "pybasedir").default("/usr/lib/python3/dist-packages");

options! {
    HOST: Opt::text("DEFAULT", "host")
        .help(
            "scheduler-1",
            "Name under which we listen and report. Not set: the name of the machine.",
        );
    MY_IP: Opt::text("DEFAULT", "my_ip")
        .help("192.0.2.7", "Our address. Not set: the one by which the machine reaches others.");
    STATE_PATH: Opt::path("DEFAULT", "state_path")
        .default("$pybasedir")
        .help(
            "/var/lib/nova",
            "Directory for what has to last; other options name it as a variable.",
        );
    TRANSPORT_URL: Opt::text("DEFAULT", "transport_url")
        .default("rabbit://")
        .secret()
        .effect(Effect::Reload)
        .help(
            "rabbit://nova:PASSWORD@mq1:5672/",
            "Nova's broker. Options of [oslo_messaging_rabbit] may stand in its query.",
        );
    // Nova sets this default for itself; oslo.messaging's own is `openstack`.
    CONTROL_EXCHANGE: Opt::text("DEFAULT", "control_exchange")
        .default("nova")
        .help("nova", "The exchange of the calls.");
    RPC_RESPONSE_TIMEOUT: Opt::int("DEFAULT", "rpc_response_timeout")
        .default("60")
        .unit("seconds")
        .help(
            "120",
            "How long callers wait for an answer or a sign of life. The same on all of Nova's \
             hosts.",
        );
    LONG_RPC_TIMEOUT: Opt::int("DEFAULT", "long_rpc_timeout")
        .default("1800")
        .unit("seconds")
        .help(
            "3600",
            "How long they wait in all for long calls. Longer than [ebbtide] room_timeout.",
        );
    DEBUG: Opt::bool("DEFAULT", "debug")
        .default("false")
        .help("true", "Whether to log details.");
    RPC_PING_ENABLED: Opt::bool("DEFAULT", "rpc_ping_enabled")
        .default("false")
        .help("true", "Whether oslo_rpc_server_ping is answered.");
    // oslo.service's own default is 60; Nova sets 180 for its services since 2026.1.
    GRACEFUL_SHUTDOWN_TIMEOUT: Opt::int("DEFAULT", "graceful_shutdown_timeout")
        .at_least(0)
        .default("180")
        .unit("seconds")
        .help(
            "60",
            "How long running requests may take to end after SIGTERM, the rest of the stop \
             included; what is left goes back to the broker for another scheduler. 0: without \
             limit.",
        );
    LOG_FILE: Opt::path("DEFAULT", "log_file")
        .deprecated(&[("DEFAULT", "logfile")])
        .help(
            "nova-scheduler.log",
            "Where log lines go; below log_dir unless absolute. Not set: standard error.",
        );
    LOG_DIR: Opt::path("DEFAULT", "log_dir")
        .deprecated(&[("DEFAULT", "logdir")])
        .help("/var/log/nova", "Directory of logs.");
    SERVICE_DOWN_TIME: Opt::int("DEFAULT", "service_down_time")
        .default("60")
        .unit("seconds")
        .help(
            "120",
            "A compute that has been silent for longer gets nothing. Where it is not longer \
             than report_interval, two and a half times that.",
        );
    REPORT_INTERVAL: Opt::int("DEFAULT", "report_interval")
        .default("10")
        .unit("seconds")
        .help("5", "How often services report.");
    INTERVAL: Opt::int("scheduler", "discover_hosts_in_cells_interval")
        .at_least(-1)
        .default("-1")
        .unit("seconds")
        .help(
            "300",
            "Every how many seconds new hosts are mapped to their cells; -1: never; 0: every \
             minute.",
        );
    WORKERS: Opt::int("scheduler", "workers")
        .at_least(0)
        .effect(Effect::None)
        .help(
            "2",
            "Nova's worker processes. Ebbtide is one process with threads: it has no effect.",
        );
    FORMAT: Opt::text("notifications", "notification_format")
        .choices(&["both", "versioned", "unversioned"])
        .default("unversioned")
        .deprecated(&[("DEFAULT", "notification_format")])
        .help("both", "Which notifications are sent.");
    VERSIONED_TOPICS: Opt::list("notifications", "versioned_notifications_topics")
        .default("versioned_notifications")
        .help("versioned_notifications", "Topics of the versioned ones.");
    DRIVER: Opt::many(NOTIFICATIONS, "driver")
        .deprecated(&[("DEFAULT", "notification_driver")])
        .help(
            "messagingv2",
            "Drivers of notifications; not set, or noop alone: none is sent. May come several \
             times.",
        );
    TOPICS: Opt::list(NOTIFICATIONS, "topics")
        .default("notifications")
        .deprecated(&[("rpc_notifier2", "topics"), ("DEFAULT", "notification_topics")])
        .help("notifications", "Topics of the unversioned ones.");
    URL: Opt::text(NOTIFICATIONS, "transport_url")
        .secret()
        .effect(Effect::Reload)
        .deprecated(&[("DEFAULT", "notification_transport_url")])
        .help(
            "rabbit://nova:PASSWORD@mq2:5672/",
            "The broker of notifications. Not set: that of the calls.",
        );
    RETRY: Opt::int(NOTIFICATIONS, "retry")
        .default("-1")
        .help("3", "How often a message is tried again; -1: for ever.");
}

const NOTIFICATIONS: &str = "oslo_messaging_notifications";

/// The options of a database of Nova's, in the order in which [`Database::read`] takes them.
pub(super) const fn database(group: &'static str, is_api: bool) -> [Opt; 11] {
    let (sample, copy, help, pool, pool_effect) = if is_api {
        (
            "mysql+pymysql://nova:PASSWORD@db/nova_api",
            "mysql+pymysql://nova:PASSWORD@db2/nova_api",
            "Nova's API database.",
            "Connections kept open. Ebbtide takes that of [database].",
            Effect::None,
        )
    } else {
        (
            "mysql+pymysql://nova:PASSWORD@db/nova_cell0",
            "mysql+pymysql://nova:PASSWORD@db2/nova_cell0",
            "The cell's database, where our service record goes. The other cells are found in the \
             API database.",
            "Connections to each of Nova's databases at most.",
            Effect::Start,
        )
    };
    [
        Opt::text(group, "connection")
            .secret()
            .required()
            .effect(Effect::Reload)
            .help(sample, help),
        Opt::text(group, "slave_connection")
            .secret()
            .effect(Effect::None)
            .help(copy, "A copy to read from. Ebbtide does not use it."),
        Opt::text(group, "connection_parameters")
            .secret()
            .effect(Effect::None)
            .help(
                "charset=utf8",
                "Parameters of SQLAlchemy's. Ebbtide does not use them.",
            ),
        Opt::int(group, "max_pool_size")
            .default("5")
            .effect(pool_effect)
            .help("10", pool),
        Opt::int(group, "max_overflow")
            .default("50")
            .effect(Effect::None)
            .help(
                "10",
                "Connections beyond that when it is busy. Ebbtide has none.",
            ),
        Opt::int(group, "pool_timeout")
            .unit("seconds")
            .effect(Effect::None)
            .help("30", "Ebbtide does not use it."),
        Opt::int(group, "connection_recycle_time")
            .default("3600")
            .unit("seconds")
            .effect(Effect::None)
            .help("600", "Ebbtide does not use it."),
        Opt::int(group, "max_retries")
            .default("10")
            .effect(Effect::None)
            .help("-1", "Ebbtide waits for a database that is away, for ever."),
        Opt::int(group, "retry_interval")
            .default("10")
            .unit("seconds")
            .effect(Effect::None)
            .help("5", "Ebbtide does not use it."),
        Opt::text(group, "mysql_sql_mode")
            .default("TRADITIONAL")
            .effect(Effect::None)
            .help("TRADITIONAL", "Ebbtide does not use it."),
        Opt::int(group, "mysql_wsrep_sync_wait")
            .effect(Effect::None)
            .help("1", "Ebbtide does not use it."),
    ]
}

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
    /// How long a stop may take, 0 without limit; 180.
    pub graceful_shutdown_timeout: i64,
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
        let seconds = |option| number(config, option);
        Ok(Self {
            host: text(&HOST)?,
            my_ip: text(&MY_IP)?,
            transport_url: text(&TRANSPORT_URL)?,
            control_exchange: text(&CONTROL_EXCHANGE)?,
            report_interval: seconds(&REPORT_INTERVAL)?,
            service_down_time: seconds(&SERVICE_DOWN_TIME)?,
            rpc_response_timeout: seconds(&RPC_RESPONSE_TIMEOUT)?,
            long_rpc_timeout: seconds(&LONG_RPC_TIMEOUT)?,
            debug: config.bool(&DEBUG)?.unwrap_or(false),
            rpc_ping_enabled: config.bool(&RPC_PING_ENABLED)?.unwrap_or(false),
            graceful_shutdown_timeout: number(config, &GRACEFUL_SHUTDOWN_TIMEOUT)?,
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
    /// Reads it by its options (see [`database`]).
    pub(super) fn read(config: &Config, options: &[Opt; 11]) -> Result<Self> {
        let [
            connection,
            slave_connection,
            connection_parameters,
            max_pool_size,
            max_overflow,
            pool_timeout,
            connection_recycle_time,
            max_retries,
            retry_interval,
            mysql_sql_mode,
            mysql_wsrep_sync_wait,
        ] = options;
        let url = |option| -> Result<Option<String>> {
            Ok(config.text(option)?.filter(|url| !url.is_empty()))
        };
        Ok(Self {
            connection: url(connection)?,
            slave_connection: url(slave_connection)?,
            connection_parameters: config.text(connection_parameters)?.unwrap_or_default(),
            max_pool_size: config.int(max_pool_size)?,
            max_overflow: config.int(max_overflow)?,
            pool_timeout: config.int(pool_timeout)?,
            connection_recycle_time: number(config, connection_recycle_time)?,
            max_retries: number(config, max_retries)?,
            retry_interval: number(config, retry_interval)?,
            mysql_sql_mode: config.text(mysql_sql_mode)?.unwrap_or_default(),
            mysql_wsrep_sync_wait: config.int(mysql_wsrep_sync_wait)?,
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
            retry: number(config, &RETRY)?,
        })
    }

    /// Whether any notification is sent at all.
    #[must_use]
    pub fn enabled(&self) -> bool {
        self.drivers.iter().any(|driver| driver != "noop")
    }
}
