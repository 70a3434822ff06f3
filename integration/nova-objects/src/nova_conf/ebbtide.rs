//! Section `[ebbtide]`: what the original does not have. Nova's own programs ignore it.

use super::number;
use ebbtide_model::flavor::{DEFAULT_GRACE_TEXT, MAX_GRACE, MAX_PROTECTED};
use oslo_config::{Config, Effect, Opt, Result};
use std::fmt;

const GROUP: &str = "ebbtide";

options! {
    CONNECTION: Opt::text(GROUP, "connection")
        .secret()
        .effect(Effect::Reload)
        .help(
            "mysql+pymysql://ebbtide:PASSWORD@db/ebbtide",
            "The ledger's database, as SQLAlchemy writes it. Not set: no server is preempted, and no \
             decision is recorded.",
        );
    BUS_URL: Opt::text(GROUP, "bus_url")
        .secret()
        .effect(Effect::Reload)
        .help(
            "rabbit://ebbtide:PASSWORD@mq1:5672/",
            "The broker between schedulers and agents, rabbit:// or amqp://. Not set: that of \
             [DEFAULT] transport_url.",
        );
    BUS_PREFIX: Opt::text(GROUP, "bus_prefix")
        .default("ebbtide")
        .help("ebbtide-east", "First part of the names of the queues to the agents.");
    PREEMPTION: Opt::bool(GROUP, "preemption")
        .default("true")
        .help("false", "Whether normal requests may evict preemptible servers.");
    QUOTA: Opt::bool(GROUP, "quota")
        .default("false")
        .help(
            "true",
            "Whether preemptible servers have a quota: Keystone's unified limits of the service \
             preemption. [keystone_authtoken] is needed.",
        );
    // The ranges and defaults are those of a standalone region (`ebbtide_market::MarketConfig`).
    MARKET: Opt::bool(GROUP, "market")
        .default("false")
        .help(
            "true",
            "Whether the price of an hour of a preemptible flavor follows supply and demand; false: \
             it is what the flavor says (ebbtide:price_per_hour).",
        );
    MARKET_INTERVAL: Opt::int(GROUP, "market_interval")
        .between(1, 86_400)
        .default("300")
        .unit("seconds")
        .help(
            "60",
            "How often prices are made. They change at whole multiples of it since 1970.",
        );
    MARKET_FLOOR_PERCENT: Opt::int(GROUP, "market_floor_percent")
        .between(0, 1000)
        .default("10")
        .help("20", "The price without demand, of what the flavor says, in per cent.");
    MARKET_CEILING_PERCENT: Opt::int(GROUP, "market_ceiling_percent")
        .between(1, 1000)
        .default("100")
        .help(
            "80",
            "The price while everything is taken, of what the flavor says, in per cent. Not below \
             market_floor_percent.",
        );
    MARKET_STEEPNESS: Opt::int(GROUP, "market_steepness")
        .between(1, 32)
        .default("4")
        .help(
            "2",
            "How late the price rises: the share that is taken, to the power of this, is the way \
             from floor to ceiling.",
        );
    MARKET_STEP_PERCENT: Opt::int(GROUP, "market_step_percent")
        .between(1, 100)
        .default("25")
        .help(
            "100",
            "How far the price goes towards where it belongs at each interval, in per cent of the \
             way.",
        );
    HEADROOM: Opt::list(GROUP, "headroom")
        .help(
            "m1.large:4,m1.xlarge@gpu:0-10",
            "For how many servers of which flavors room is kept free, on the hosts of an aggregate \
             or on any: FLAVOR:SERVERS or FLAVOR@AGGREGATE:SERVERS; of a range, as 0-10, the recorded \
             demand says how many. Preemptible servers leave before a normal one needs their room. \
             Not set: none.",
        );
    HEADROOM_INTERVAL: Opt::int(GROUP, "headroom_interval")
        .between(1, 3600)
        .default("30")
        .unit("seconds")
        .help("60", "How often headroom is looked at.");
    // The ranges and defaults are those of a standalone region
    // (`ebbtide_evacuation::ComebackConfig`).
    COMEBACK: Opt::bool(GROUP, "comeback")
        .default("true")
        .help(
            "false",
            "Whether servers that were stopped or shelved when they had to leave come back by \
             themselves when there is room; false: their owners start or unshelve them. The user of \
             [placement] has to be allowed to start and unshelve all servers.",
        );
    COMEBACK_FIRST: Opt::int(GROUP, "comeback_first")
        .between(1, 604_800)
        .default("30")
        .unit("seconds")
        .help(
            "60",
            "How long a server stays away at least after it had to leave, and after an attempt that \
             failed. Twice as long each further time, up to comeback_max.",
        );
    COMEBACK_MAX: Opt::int(GROUP, "comeback_max")
        .between(1, 604_800)
        .default("3600")
        .unit("seconds")
        .help("7200", "Longest time that a server stays away if there is room.");
    COMEBACK_WINDOW: Opt::int(GROUP, "comeback_window")
        .between(1, 604_800)
        .default("3600")
        .unit("seconds")
        .help(
            "7200",
            "A server that has run this long starts again with comeback_first; comebacks of a \
             project within this time count for its turn.",
        );
    COMEBACK_RESERVE_PERCENT: Opt::int(GROUP, "comeback_reserve_percent")
        .between(0, 90)
        .default("5")
        .help(
            "10",
            "How much of each resource class of a host has to stay free for the next request when a \
             server comes back, in per cent. Ignored on a host without other servers.",
        );
    COMEBACK_HOLD: Opt::int(GROUP, "comeback_hold")
        .between(1, 86_400)
        .default("600")
        .unit("seconds")
        .help(
            "300",
            "In every second period of this length the first server in a host's queue reserves the \
             free capacity; in the others smaller servers may go before it.",
        );
    COMEBACK_AT_ONCE: Opt::int(GROUP, "comeback_at_once")
        .between(1, 1000)
        .default("4")
        .help(
            "2",
            "How many servers return to one host at the same time, and how many shelved ones in all.",
        );
    REPLY_WHEN: Opt::text(GROUP, "reply_when")
        .choices(&["room_free", "at_once"])
        .default("room_free")
        .help(
            "at_once",
            "When the conductor is answered for a request that preempts: room_free, when the \
             victims are gone; at_once, when the swap is done: the new server starts beside the \
             leaving ones.",
        );
    // Longer than the default grace period and a slow deletion together, well below
    // long_rpc_timeout (1800).
    ROOM_TIMEOUT: Opt::int(GROUP, "room_timeout")
        .between(1, 86_400)
        .default("300")
        .unit("seconds")
        .help(
            "600",
            "How long the capacity may take to become free before the preemption is withdrawn.",
        );
    // Agents refuse a notice with a longer grace period.
    DEFAULT_GRACE: Opt::int(GROUP, "default_grace")
        .between(0, MAX_GRACE.0 as i64)
        .default(DEFAULT_GRACE_TEXT)
        .unit("seconds")
        .help("120", "Notice to end, for flavors that say nothing.");
    // The range of the extra spec ebbtide:protected_seconds.
    DEFAULT_PROTECTED: Opt::int(GROUP, "default_protected")
        .between(0, MAX_PROTECTED.0 as i64)
        .default("0")
        .unit("seconds")
        .help(
            "600",
            "How long after its launch a preemptible server cannot be chosen as a victim, for \
             flavors that say nothing.",
        );
    NOTICE_TIMEOUT: Opt::int(GROUP, "notice_timeout")
        .between(1, 3600)
        .default("10")
        .unit("seconds")
        .help("5", "How long an agent may take to answer a notice before it is sent again.");
    ACT_TIMEOUT: Opt::int(GROUP, "act_timeout")
        .between(1, 86_400)
        .default("60")
        .unit("seconds")
        .help("120", "How long the interruption itself may take after the grace period.");
    COST_MODULE: Opt::text(GROUP, "cost_module")
        .default("partial_hour")
        .effect(Effect::Reload)
        .help(
            "revenue",
            "What the loss of a victim costs (docs/plugins/cost-modules.md). The sufficient set \
             of victims with the least sum goes.",
        );
    PLAN_ROUNDS: Opt::int(GROUP, "plan_rounds")
        .between(1, 100)
        .default("4")
        .help("8", "How often a plan is made anew because the cloud has changed.");
    MAX_IN_FLIGHT: Opt::int(GROUP, "max_in_flight")
        .between(1, 10_000)
        .default("64")
        .help("128", "Requests at a time.");
    // Nova does not wait for a Placement that is away at all.
    PLACEMENT_PATIENCE: Opt::int(GROUP, "placement_patience")
        .between(1, 3600)
        .default("30")
        .unit("seconds")
        .help("60", "How long a Placement that is away is waited for; Nova does not wait.");
    PLACEMENT_POLL: Opt::int(GROUP, "placement_poll")
        .between(1, 3600)
        .default("10")
        .unit("seconds")
        .help("30", "How often providers are looked through for changes.");
    NOVA_RELEASE: Opt::int(GROUP, "nova_release")
        .between(26, 99)
        .help(
            "28",
            "Major version of the Nova whose place is taken (26 is Zed, 34 the newest known). \
             Not set: told from the versions of the cloud's services.",
        );
    PLUGINS: Opt::path(GROUP, "plugins")
        .effect(Effect::Reload)
        .help(
            "/etc/ebbtide/plugins.toml",
            "A TOML file with [[plugins]]: weighers that add up behind Nova's own, and cost \
             modules.",
        );
    METRICS_LISTEN: Opt::text(GROUP, "metrics_listen")
        .help("127.0.0.1:7471", "Address and port of /metrics, /healthz, /readyz. Not set: none.");
    DECISIONS: Opt::bool(GROUP, "decisions")
        .default("true")
        .help(
            "false",
            "Whether every decision is recorded in the database of connection, with its reasons.",
        );
    DECISIONS_KEEP: Opt::int(GROUP, "decisions_keep")
        .between(0, 36_500)
        .default("30")
        .unit("days")
        .help("90", "How long a recorded decision is kept; 0: for ever.");
    // Some minutes of a busy cloud; a waiting record holds states of hosts in memory.
    DECISIONS_QUEUE: Opt::int(GROUP, "decisions_queue")
        .between(1, 1_000_000)
        .default("1000")
        .help(
            "10000",
            "Most decisions that wait to be recorded. If the database does not keep up, further \
             ones are lost; requests never wait.",
        );
    API_LISTEN: Opt::text(GROUP, "api_listen")
        .help(
            "0.0.0.0:7472",
            "Address and port of the API, gRPC and REST, for tokens of Keystone: \
             [keystone_authtoken] is needed. Not set: none.",
        );
    API_CERTIFICATE: Opt::path(GROUP, "api_certificate")
        .help(
            "/etc/ebbtide/tls/server.pem",
            "The API's certificate chain in PEM, leaf first, read again when it changes. Not \
             set: no TLS; put a proxy with TLS in front.",
        );
    API_PRIVATE_KEY: Opt::path(GROUP, "api_private_key")
        .help("/etc/ebbtide/tls/server.key", "The private key of api_certificate in PEM.");
    API_POLICY_FILE: Opt::path(GROUP, "api_policy_file")
        .help(
            "/etc/ebbtide/policy.yaml",
            "Rules that replace the API's own, in the language of oslo.policy, read again when the \
             file changes; `ebbtide-manage policy` writes all rules. Not set: none.",
        );
    API_LIMITS_FILE: Opt::path(GROUP, "api_limits_file")
        .help(
            "/etc/ebbtide/limits.toml",
            "A TOML file with the section [limits] of a standalone region: how much of the API one \
             caller can have. Not set: the defaults.",
        );
    LOG_FORMAT: Opt::text(GROUP, "log_format")
        .choices(&["text", "json", "oslo"])
        .default("text")
        .help(
            "oslo",
            "The form of log lines: text, json, or oslo: as oslo.log writes those of OpenStack's \
             services, with request id, user and project.",
        );
    OTLP_ENDPOINT: Opt::text(GROUP, "otlp_endpoint")
        .help(
            "http://127.0.0.1:4317",
            "Where spans of traces are sent by OTLP over gRPC, http:// or https:// (with the system's \
             roots). Not set: no traces. The same in the agents' files, or a trace ends at the notice.",
        );
    TRACE_SAMPLE: Opt::float(GROUP, "trace_sample")
        .between_floats(0.0, 1.0)
        .default("1.0")
        .help(
            "0.01",
            "Share of the requests that are traced, from 0 to 1. One that Nova traces with osprofiler \
             is traced.",
        );
    NAME: Opt::text(GROUP, "name")
        .help(
            "scheduler-1",
            "This scheduler's name in the ledger; unique. Not set: [DEFAULT] host.",
        );
}

/// When the conductor gets its answer for a request that preempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyWhen {
    /// When the victims are gone and the room is free; heartbeats keep the call alive until then.
    RoomFree,
    /// As soon as the claim is committed: the new server starts while the victims are still there.
    AtOnce,
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// An object a line.
    Json,
    /// As oslo.log writes them.
    Oslo,
}

impl LogFormat {
    /// The word of the option.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Oslo => "oslo",
        }
    }
}

/// `[ebbtide]`. Times are in seconds. URLs never show in debug output.
#[derive(Clone, PartialEq)]
pub struct EbbtideSection {
    /// URL of the ledger's database; `None`: preemption is impossible.
    pub connection: Option<String>,
    /// URL of the broker between schedulers and agents; `None`: that of `[DEFAULT] transport_url`.
    pub bus_url: Option<String>,
    /// Whether normal requests may evict preemptible servers; true.
    pub preemption: bool,
    /// Preemptible servers have a quota.
    pub quota: bool,
    /// Prices follow supply and demand.
    pub market: bool,
    /// How often prices are made; 300.
    pub market_interval: i64,
    /// The price without demand, in per cent; 10.
    pub market_floor_percent: i64,
    /// The price while everything is taken, in per cent; 100.
    pub market_ceiling_percent: i64,
    /// How late the price rises; 4.
    pub market_steepness: i64,
    /// How far the price goes at each interval, in per cent; 25.
    pub market_step_percent: i64,
    /// Room that is kept free, each rule as it is written.
    pub headroom: Vec<String>,
    /// How often it is looked at; 30.
    pub headroom_interval: i64,
    /// Whether servers that were kept come back; true.
    pub comeback: bool,
    /// How long they stay away at least; 30.
    pub comeback_first: i64,
    /// How long they stay away at most; 3600.
    pub comeback_max: i64,
    /// How long a server has to run to start again with `comeback_first`; 3600.
    pub comeback_window: i64,
    /// How much of a host stays free, in per cent; 5.
    pub comeback_reserve_percent: i64,
    /// How long the first server waits before it reserves capacity; 600.
    pub comeback_hold: i64,
    /// How many return to a host at the same time; 4.
    pub comeback_at_once: i64,
    /// When the answer goes out; when the room is free.
    pub reply_when: ReplyWhen,
    /// How long the room may take to become free before the request fails; 300.
    pub room_timeout: i64,
    /// Cost module; `None`: left empty, the default one.
    pub cost_module: Option<String>,
    /// Grace period of flavors that name none.
    pub default_grace: i64,
    /// Time after launch without risk, for flavors that name none; 0.
    pub default_protected: i64,
    /// How often a plan that met a conflict is made anew before the request is refused; 4.
    pub plan_rounds: i64,
    /// How many requests are worked on at once; 64.
    pub max_in_flight: i64,
    /// Address and port for metrics; `None`: none are served.
    pub metrics_listen: Option<String>,
    /// Whether decisions are recorded; true.
    pub decisions: bool,
    /// How many days recorded decisions are kept; 0: for ever; 30.
    pub decisions_keep: i64,
    /// Most decisions that wait to be recorded; 1000.
    pub decisions_queue: i64,
    /// Address and port of the API; `None`: none is served.
    pub api_listen: Option<String>,
    /// The API's certificate chain; `None`: no TLS.
    pub api_certificate: Option<String>,
    /// Its private key.
    pub api_private_key: Option<String>,
    /// File of rules that replace those of the API.
    pub api_policy_file: Option<String>,
    /// File with `[limits]` of the API's callers.
    pub api_limits_file: Option<String>,
    /// A TOML file with `[[plugins]]`: weighers and cost modules of the operator's; `None`: there
    /// are none.
    pub plugins: Option<String>,
    /// Major version of the Nova whose place is taken (26: Zed); `None`: told from the versions of
    /// the cloud's services.
    pub nova_release: Option<u32>,
    /// How long a Placement that is away is waited for; 30.
    pub placement_patience: i64,
    /// How often providers are looked through for changes; 10.
    pub placement_poll: i64,
    /// How long an agent may take to answer a notice before it is sent again; 10.
    pub notice_timeout: i64,
    /// How long the interruption itself may take after the grace period; 60.
    pub act_timeout: i64,
    /// First part of the names of the queues to the agents; `None`: left empty, the default one.
    pub bus_prefix: Option<String>,
    /// The form of log lines; text.
    pub log_format: LogFormat,
    /// Where spans are sent; `None`: no traces.
    pub otlp_endpoint: Option<String>,
    /// Share of the requests that are traced; 1.
    pub trace_sample: f64,
    /// This scheduler's name in the ledger; `None`: `[DEFAULT] host`.
    pub name: Option<String>,
}

impl fmt::Debug for EbbtideSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EbbtideSection")
            .field("connection", &self.connection.as_ref().map(|_| "***"))
            .field("preemption", &self.preemption)
            .field("reply_when", &self.reply_when)
            .field("room_timeout", &self.room_timeout)
            .field("cost_module", &self.cost_module)
            .field("default_grace", &self.default_grace)
            .field("plan_rounds", &self.plan_rounds)
            .finish_non_exhaustive()
    }
}

impl EbbtideSection {
    pub(super) fn read(config: &Config) -> Result<Self> {
        let text = |option| {
            let text: Result<Option<String>> = config.text(option);
            text.map(|text| text.filter(|text| !text.is_empty()))
        };
        let number = |option| number(config, option);
        Ok(Self {
            connection: text(&CONNECTION)?,
            bus_url: text(&BUS_URL)?,
            preemption: config.bool(&PREEMPTION)?.unwrap_or(true),
            quota: config.bool(&QUOTA)?.unwrap_or(false),
            market: config.bool(&MARKET)?.unwrap_or(false),
            market_interval: number(&MARKET_INTERVAL)?,
            market_floor_percent: number(&MARKET_FLOOR_PERCENT)?,
            market_ceiling_percent: number(&MARKET_CEILING_PERCENT)?,
            market_steepness: number(&MARKET_STEEPNESS)?,
            market_step_percent: number(&MARKET_STEP_PERCENT)?,
            headroom: config.list(&HEADROOM)?,
            headroom_interval: number(&HEADROOM_INTERVAL)?,
            comeback: config.bool(&COMEBACK)?.unwrap_or(true),
            comeback_first: number(&COMEBACK_FIRST)?,
            comeback_max: number(&COMEBACK_MAX)?,
            comeback_window: number(&COMEBACK_WINDOW)?,
            comeback_reserve_percent: number(&COMEBACK_RESERVE_PERCENT)?,
            comeback_hold: number(&COMEBACK_HOLD)?,
            comeback_at_once: number(&COMEBACK_AT_ONCE)?,
            reply_when: match config.text(&REPLY_WHEN)?.as_deref() {
                Some("at_once") => ReplyWhen::AtOnce,
                _ => ReplyWhen::RoomFree,
            },
            room_timeout: number(&ROOM_TIMEOUT)?,
            cost_module: text(&COST_MODULE)?,
            default_grace: number(&DEFAULT_GRACE)?,
            default_protected: number(&DEFAULT_PROTECTED)?,
            plan_rounds: number(&PLAN_ROUNDS)?,
            max_in_flight: number(&MAX_IN_FLIGHT)?,
            nova_release: config
                .int(&NOVA_RELEASE)?
                .and_then(|release| u32::try_from(release).ok()),
            metrics_listen: text(&METRICS_LISTEN)?,
            decisions: config.bool(&DECISIONS)?.unwrap_or(true),
            decisions_keep: number(&DECISIONS_KEEP)?,
            decisions_queue: number(&DECISIONS_QUEUE)?,
            api_listen: text(&API_LISTEN)?,
            api_certificate: text(&API_CERTIFICATE)?,
            api_private_key: text(&API_PRIVATE_KEY)?,
            api_policy_file: text(&API_POLICY_FILE)?,
            api_limits_file: text(&API_LIMITS_FILE)?,
            plugins: text(&PLUGINS)?,
            placement_patience: number(&PLACEMENT_PATIENCE)?,
            placement_poll: number(&PLACEMENT_POLL)?,
            notice_timeout: number(&NOTICE_TIMEOUT)?,
            act_timeout: number(&ACT_TIMEOUT)?,
            bus_prefix: text(&BUS_PREFIX)?,
            log_format: match config.text(&LOG_FORMAT)?.as_deref() {
                Some("json") => LogFormat::Json,
                Some("oslo") => LogFormat::Oslo,
                _ => LogFormat::Text,
            },
            otlp_endpoint: text(&OTLP_ENDPOINT)?,
            trace_sample: config.float(&TRACE_SAMPLE)?.unwrap_or(1.0),
            name: text(&NAME)?,
        })
    }
}
