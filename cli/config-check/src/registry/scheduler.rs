//! The scheduler's keys, all but `[engine]` and `[[plugins]]`.

use super::Key;
use super::Type::{List, Number, Path, Switch, Table, Text, Whole, Words};

const LEAST_LOGIN: &str = "[auth]\ntokens = \"/etc/ebbtide/tokens\"\n";
const WITH_GRPC: &str =
    "[grpc.tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"\n[auth]\ntokens = \"t\"\n";
const WITH_HTTP: &str =
    "[http.tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"\n[auth]\ntokens = \"t\"\n";
const WITH_GRPC_CA: &str = "[grpc.tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"\nclient_ca = \"ca.pem\"\n[auth]\ntokens = \"t\"\n";
const WITH_HTTP_CA: &str = "[http.tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"\nclient_ca = \"ca.pem\"\n[auth]\ntokens = \"t\"\n";
const SHORT_BUDGETS: &str = "[region]\nlongest_budget_window_seconds = 30\n";
const LONG_COMEBACK: &str = "[region.comeback]\nmax_seconds = 604800\n";
const QUICK_COMEBACK: &str = "[region.comeback]\nfirst_seconds = 1\n";
const HIGH_CEILING: &str = "[region.market]\nceiling_percent = 1000\n";
const NO_FLOOR: &str = "[region.market]\nfloor_percent = 0\n";
const QUOTA_ROW: &str = "[[quotas.projects]]\nname = \"science\"\nservers = 5000\n";
const CERTIFICATE_ROW: &str = "[[auth.certificates]]\nname = \"dns:ci.example.org\"\nrole = \"tenant\"\nprojects = [\"ci\"]\n";
const CLIENTS: &[&str] = &["required", "optional"];

/// The keys.
pub(super) const KEYS: &[Key] = &[
    Key::new("grpc.listen", Text, "\"127.0.0.1:7470\"", "\"0.0.0.0:7470\"", "Where the API listens, ADDRESS:PORT. Port 0 takes a free one. Anything but a loopback address needs [grpc.tls] and [auth], or an explicit decision against them.").with(WITH_GRPC),
    Key::new("grpc.insecure", Switch, "false", "true", "Listen on other addresses than loopback without TLS; for those who have a proxy in front that does it. Without that proxy tokens can be read on the way."),
    Key::new("grpc.tls.certificate", Path, "", "\"/etc/ebbtide/tls/server.pem\"", "The server's certificate and what is between it and a root, leaf first, in PEM. Read again within a second of a change.").required().with(WITH_GRPC),
    Key::new("grpc.tls.key", Path, "", "\"/etc/ebbtide/tls/server.key\"", "Its private key (PKCS#8, PKCS#1 or SEC1, in PEM). Read again within a second of a change.").required().with(WITH_GRPC),
    Key::new("grpc.tls.client_ca", Path, "", "\"/etc/ebbtide/tls/clients.pem\"", "Roots of the certificates of clients. With it clients are asked for one.").with(WITH_GRPC),
    Key::new("grpc.tls.client_crl", Path, "", "\"/etc/ebbtide/tls/revoked.pem\"", "Revoked certificates of clients; with client_ca.").with(WITH_GRPC_CA),
    Key::new("grpc.tls.client_certificates", Words(CLIENTS), "\"required\"", "\"optional\"", "With client_ca: whether a client may come without a certificate and bring a token.").with(WITH_GRPC_CA),
    Key::new("http.listen", Text, "\"127.0.0.1:7471\"", "\"0.0.0.0:7471\"", "Where /metrics, /healthz and /readyz are, ADDRESS:PORT. Port 0 takes a free one.").with(WITH_HTTP),
    Key::new("http.insecure", Switch, "false", "true", "Listen on other addresses than loopback without TLS."),
    Key::new("http.tls.certificate", Path, "", "\"/etc/ebbtide/tls/server.pem\"", "As grpc.tls.certificate.").required().with(WITH_HTTP),
    Key::new("http.tls.key", Path, "", "\"/etc/ebbtide/tls/server.key\"", "As grpc.tls.key.").required().with(WITH_HTTP),
    Key::new("http.tls.client_ca", Path, "", "\"/etc/ebbtide/tls/clients.pem\"", "As grpc.tls.client_ca.").with(WITH_HTTP),
    Key::new("http.tls.client_crl", Path, "", "\"/etc/ebbtide/tls/revoked.pem\"", "As grpc.tls.client_crl.").with(WITH_HTTP_CA),
    Key::new("http.tls.client_certificates", Words(CLIENTS), "\"required\"", "\"optional\"", "As grpc.tls.client_certificates.").with(WITH_HTTP_CA),
    Key::new("database.url", Text, "\"sqlite://ebbtide.db\"", "\"mysql://ebbtide:PASSWORD@db/ebbtide\"", "Where the state is kept: sqlite:///path/to/file, mysql://user:password@host/name (MariaDB) or postgres://user:password@host/name.").secret(),
    Key::new("database.max_connections", Whole, "8", "16", "Connections to the database at most.").range(1.0, 1000.0),
    Key::new("database.keep_days", Whole, "90", "365", "Decisions, servers and evacuations that ended longer ago are deleted. Has to be longer than region.longest_budget_window_seconds.").unit("days").range(1.0, 36_500.0).with(SHORT_BUDGETS),
    Key::new("database.keep_minutes", Whole, "", "1440", "Instead of keep_days, for regions in which very much ends.").unit("minutes").range(1.0, f64::INFINITY).with(SHORT_BUDGETS),
    Key::new("database.archive", Path, "", "\"/var/lib/ebbtide/archive\"", "A directory: before they are deleted, records are written there, one JSON object a line, in files by kind and day. Not set: nothing is kept."),
    Key::new("database.lease_seconds", Whole, "6", "10", "How long a scheduler that has fallen silent keeps its duty from others.").unit("seconds").range(2.0, 60.0),
    Key::new("database.timeout_seconds", Whole, "60", "30", "How long the database may take for anything before it counts as away.").unit("seconds").range(1.0, 3600.0),
    Key::new("database.sqlite_max_pages", Whole, "", "1000000", "SQLite only: the file never grows beyond so many pages of 4096 bytes. Not set: no limit but the disk.").unit("pages of 4096 bytes"),
    Key::new("bus.urls", List, "[\"amqp://guest:guest@127.0.0.1:5672/%2f\"]", "[\"amqps://ebbtide:PASSWORD@mq1:5671/%2f\"]", "The brokers, amqp://user:password@host:port/vhost or amqps://…; several are tried in turn.").secret(),
    Key::new("bus.prefix", Text, "\"ebbtide\"", "\"ebbtide-east\"", "First part of every queue's name: several regions can share a broker. The same in the agents' files."),
    Key::new("bus.queue_type", Words(&["classic", "quorum"]), "\"classic\"", "\"quorum\"", "classic (durable, on one node) or quorum (replicated over a cluster). A queue that exists cannot change its kind. The same in the agents' files."),
    Key::new("bus.agent_identity", Words(&["none", "user-id"]), "\"none\"", "\"user-id\"", "user-id: an agent is believed only what its login to the broker may say (see agent_user). none: anybody on the broker is believed."),
    Key::new("bus.agent_user", Text, "\"agent-{host}\"", "\"compute-{host}\"", "With agent_identity = \"user-id\": which login speaks for a host; {host} is the host's name and has to be in it."),
    Key::new("bus.agent_users", Table, "", "{ \"agent-central\" = [\"*\"] }", "With agent_identity = \"user-id\": further logins and their hosts, for an agent that looks after several; \"*\" for all."),
    Key::new("bus.ca", Path, "", "\"/etc/ebbtide/tls/broker-ca.pem\"", "For amqps://: roots of the broker's certificate in a PEM file, besides those of the system. Read again for every connection."),
    Key::new("bus.certificate", Path, "", "\"/etc/ebbtide/tls/scheduler.pem\"", "For amqps://: our certificate in a PEM file, if the broker asks for one; with key."),
    Key::new("bus.key", Path, "", "\"/etc/ebbtide/tls/scheduler.key\"", "Its private key."),
    Key::new("bus.insecure", Switch, "false", "true", "Use amqp:// (plain text, passwords included) to a broker on another machine."),
    Key::new("auth.tokens", Path, "", "\"/etc/ebbtide/tokens\"", "The file of hashes that `ebbtide-manage token` writes; read again within a second of a change. With nothing set in [auth], everybody who can connect is an operator."),
    Key::new("auth.certificates[].name", Text, "", "\"dns:ci.example.org\"", "Whose certificate: dns:NAME or uri:NAME, whole and exactly.").required().with(CERTIFICATE_ROW),
    Key::new("auth.certificates[].role", Words(&["operator", "tenant", "reader"]), "", "\"tenant\"", "What its holder may do.").required().with(CERTIFICATE_ROW),
    Key::new("auth.certificates[].projects", List, "", "[\"ci\"]", "A tenant's projects; for the role tenant only.").with(CERTIFICATE_ROW),
    Key::new("auth.roles_in_certificates", Switch, "false", "true", "Whether a certificate may name its role itself (URI ebbtide:role/operator, ebbtide:role/reader, ebbtide:project/NAME). Right where the authority signs for Ebbtide only."),
    Key::new("auth.allow_unauthenticated", Switch, "false", "true", "Listen on other addresses than loopback without authentication: every client that can connect is an operator."),
    Key::new("auth.open_metrics", Switch, "false", "true", "Whether /metrics is for everybody who can connect, even though others are asked who they are.").with(LEAST_LOGIN),
    Key::new("limits.request_bytes", Whole, "1048576", "4194304", "Largest request that is read.").unit("bytes").range(4096.0, 16_777_216.0),
    Key::new("limits.bus_message_bytes", Whole, "4194304", "1048576", "Largest report of an agent that is looked at; RabbitMQ's own max_message_size should be the same.").unit("bytes").range(65_536.0, 4_194_304.0),
    Key::new("limits.connections", Whole, "2048", "4096", "Connections at the same time, of gRPC and of HTTP each.").range(1.0, 100_000.0),
    Key::new("limits.connections_per_address", Whole, "512", "64", "Of those, from one address. A proxy in front has one address.").range(1.0, 100_000.0),
    Key::new("limits.unauthenticated_per_address", Whole, "64", "16", "Of those from one address, without an authenticated call so far. Above it the oldest that is older than a second is closed.").range(1.0, 100_000.0),
    Key::new("limits.first_bytes_seconds", Number, "5.0", "2.0", "From the start of a connection to its first byte.").unit("seconds").range(0.1, 600.0),
    Key::new("limits.headers_seconds", Number, "10.0", "5.0", "From the start of a connection to the end of HTTP/2's preface or of the first request's headers.").unit("seconds").range(0.1, 600.0),
    Key::new("limits.unauthenticated_idle_seconds", Number, "30.0", "10.0", "How long a connection may have no call in progress before its first authenticated call.").unit("seconds").range(0.1, 86_400.0),
    Key::new("limits.idle_seconds", Number, "900.0", "3600.0", "How long a connection may have no call in progress after that. A watch is a call in progress.").unit("seconds").range(1.0, 86_400.0),
    Key::new("limits.streams_per_connection", Whole, "256", "100", "Calls at the same time on one connection.").range(1.0, 10_000.0),
    Key::new("limits.handshake_seconds", Number, "10.0", "5.0", "How long TLS may take to be agreed on.").unit("seconds").range(0.1, 600.0),
    Key::new("limits.request_seconds", Number, "60.0", "30.0", "How long a request may take, unless waiting is what it asks for.").unit("seconds").range(0.1, 3600.0),
    Key::new("limits.requests_per_second", Number, "10000.0", "500.0", "Requests of each operator's or reader's token or certificate.").unit("a second").range(0.01, 1e6),
    Key::new("limits.burst", Number, "20000.0", "1000.0", "Of those, at once after a rest.").range(1.0, 1e6),
    Key::new("limits.tenant_requests_per_second", Number, "50.0", "10.0", "Requests of each tenant, all its tokens together. A request for several servers counts as many times.").unit("a second").range(0.01, 1e6),
    Key::new("limits.tenant_burst", Number, "200.0", "50.0", "Of those, at once after a rest.").range(1.0, 1e6),
    Key::new("limits.watchers", Whole, "100", "20", "Event streams at the same time of each operator's or reader's token or certificate.").range(1.0, 10_000.0),
    Key::new("limits.tenant_watchers", Whole, "10", "0", "Event streams at the same time of each tenant.").range(0.0, 10_000.0),
    Key::new("quotas.servers", Whole, "2000", "500", "Servers of a project at the same time, those in error included. Quotas hold for requests of tenants.").range(0.0, 1e6),
    Key::new("quotas.groups", Whole, "200", "50", "Server groups of a project.").range(0.0, 1e6),
    Key::new("quotas.projects[].name", Text, "", "\"science\"", "A project with quotas of its own.").required().with(QUOTA_ROW),
    Key::new("quotas.projects[].servers", Whole, "", "10000", "Instead of quotas.servers.").range(0.0, 1e6).with(QUOTA_ROW),
    Key::new("quotas.projects[].groups", Whole, "", "500", "Instead of quotas.groups.").range(0.0, 1e6).with(QUOTA_ROW),
    Key::new("log.format", Words(&["text", "json"]), "\"text\"", "\"json\"", "text for people, json (one object a line) for machines."),
    Key::new("log.filter", Text, "\"info\"", "\"ebbtide=debug,warn\"", "What is logged, as tracing filters are written."),
    Key::new("region.default_grace_seconds", Whole, "30", "120", "Time between notice and end of a victim whose flavor says nothing.").unit("seconds").range(0.0, GRACE),
    Key::new("region.default_protected_seconds", Whole, "0", "600", "How long after its launch a preemptible server whose flavor says nothing cannot be chosen as a victim.").unit("seconds").range(0.0, PROTECTED),
    Key::new("region.host_down_seconds", Whole, "60", "30", "A host whose agent has been silent for longer gets no new servers. Nova's service_down_time. At least three times the agents' agent.heartbeat_seconds.").unit("seconds").range(1.0, DAY),
    Key::new("region.notice_timeout_seconds", Whole, "10", "5", "How long an agent may take to answer a notice before it is sent again.").unit("seconds").range(1.0, 3600.0),
    Key::new("region.notice_attempts", Whole, "3", "5", "How often a notice is sent before the evacuation has failed.").range(1.0, 100.0),
    Key::new("region.act_timeout_seconds", Whole, "60", "120", "How long the interruption itself may take after the grace period; also how long a claim waits for servers that are being deleted before another host is tried.").unit("seconds").range(1.0, DAY),
    Key::new("region.start_timeout_seconds", Whole, "600", "300", "How long an agent may take to start a server before another host is tried; also how often it is asked for a deletion.").unit("seconds").range(1.0, DAY),
    Key::new("region.max_attempts", Whole, "3", "5", "On how many hosts in all a server is tried before it is in error. Nova's max_attempts.").range(1.0, 100.0),
    Key::new("region.failed_victim_rest_seconds", Whole, "300", "0", "How long a server whose evacuation has failed is not chosen again.").unit("seconds").range(0.0, DAY),
    Key::new("region.longest_budget_window_seconds", Whole, "2592000", "604800", "How far a disruption budget may look back at most. What has ended has to be kept for longer (database.keep_days).").unit("seconds").range(0.0, 2_592_000.0),
    Key::new("region.comeback.enabled", Switch, "true", "false", "Whether servers that were stopped or hibernated for others come back by themselves; false: they stay as they are until their owners delete them."),
    Key::new("region.comeback.first_seconds", Whole, "30", "60", "How long a server stays away at least after it had to leave, and after an attempt that failed. Twice as long each further time, up to max_seconds.").unit("seconds").range(1.0, 604_800.0).with(LONG_COMEBACK),
    Key::new("region.comeback.max_seconds", Whole, "3600", "7200", "It never stays away for longer than this if there is room. Not below first_seconds.").unit("seconds").range(1.0, 604_800.0).with(QUICK_COMEBACK),
    Key::new("region.comeback.window_seconds", Whole, "3600", "7200", "A server that has run this long starts again with first_seconds; resumes of a project within this time count for its turn.").unit("seconds").range(1.0, 604_800.0),
    Key::new("region.comeback.reserve_percent", Whole, "5", "10", "How much of each resource class of a host has to stay free for the next request when a server comes back. Ignored on a host without other servers.").unit("percent").range(0.0, 90.0),
    Key::new("region.comeback.hold_seconds", Whole, "600", "300", "Every other such period of its wait, the first in the queue of a host keeps what is free for itself; in the others smaller ones may go before it.").unit("seconds").range(1.0, DAY),
    Key::new("region.comeback.at_once", Whole, "4", "2", "So many may be on their way back on a host at the same time.").range(1.0, 1000.0),
    Key::new("region.market.enabled", Switch, "false", "true", "Whether the price of an hour of a preemptible flavor follows supply and demand; false: it is what the flavor says (ebbtide:price_per_hour)."),
    Key::new("region.market.interval_seconds", Whole, "300", "60", "How often prices are made. They change at whole multiples of it since 1970.").unit("seconds").range(1.0, DAY),
    Key::new("region.market.floor_percent", Whole, "10", "20", "The price without demand, of what the flavor says. Not above ceiling_percent.").unit("percent").range(0.0, 1000.0).with(HIGH_CEILING),
    Key::new("region.market.ceiling_percent", Whole, "100", "80", "The price while everything is taken, of what the flavor says. Not below floor_percent.").unit("percent").range(1.0, 1000.0).with(NO_FLOOR),
    Key::new("region.market.steepness", Whole, "4", "2", "How late the price rises: the share that is taken, to the power of this, is the way from floor to ceiling.").range(1.0, 32.0),
    Key::new("region.market.step_percent", Whole, "25", "100", "How far the price goes towards where it belongs at each interval, of the way.").unit("percent").range(1.0, 100.0),
];

const DAY: f64 = 86_400.0;
const GRACE: f64 = ebbtide_model::flavor::MAX_GRACE.0 as f64;
const PROTECTED: f64 = ebbtide_model::flavor::MAX_PROTECTED.0 as f64;
