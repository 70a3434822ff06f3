//! The agent's keys, all but those of drivers.

use super::Key;
use super::Type::{List, Number, Path, Switch, Table, Text, TextOrList, Whole, Words};

const A_FENCE: &str = "[fence]\ncommand = [\"/bin/true\"]\n";
const LOW_CAP: &str = "[evacuation]\nbackoff_first_ms = 1\n";
const HIGH_CAP: &str = "[evacuation]\nbackoff_cap_ms = 600000\n";

/// The keys.
pub(super) const KEYS: &[Key] = &[
    Key::new("host", Text, "", "\"compute-1\"", "The host for which this agent speaks: its name in the region, and of its queue.").required(),
    Key::new("state_dir", Path, "", "\"/var/lib/ebbtide-agent\"", "Where journal, lock and the simulated hypervisor are: a directory that only this agent uses, on a disk that lasts.").required(),
    Key::new("bus.urls", TextOrList, "\"amqp://guest:guest@127.0.0.1:5672/%2f\"", "[\"amqps://agent-compute-1:PASSWORD@mq1:5671/%2f\"]", "The broker, amqp://USER:PASSWORD@HOST:PORT/VHOST or amqps://…; one, or a list of those of one cluster.").secret(),
    Key::new("bus.prefix", Text, "\"ebbtide\"", "\"ebbtide-east\"", "The first part of every queue's name; the same as the scheduler's."),
    Key::new("bus.queue_type", Words(&["classic", "quorum"]), "\"classic\"", "\"quorum\"", "The kind of queue; the same as the scheduler's."),
    Key::new("bus.identity", Words(&["none", "user-id"]), "\"none\"", "\"user-id\"", "user-id: prove with every message which user of the broker sends it, as the scheduler's bus.agent_identity wants it."),
    Key::new("bus.ca", Path, "", "\"/etc/ebbtide/tls/broker-ca.pem\"", "For amqps://: roots of the broker's certificate in a PEM file, besides those of the system."),
    Key::new("bus.certificate", Path, "", "\"/etc/ebbtide/tls/agent.pem\"", "For amqps://: our certificate in a PEM file, if the broker asks for one; with key."),
    Key::new("bus.key", Path, "", "\"/etc/ebbtide/tls/agent.key\"", "Its private key."),
    Key::new("bus.insecure", Switch, "false", "true", "Use amqp:// (plain text, passwords included) to a broker on another machine."),
    Key::new("agent.heartbeat_seconds", Number, "10.0", "5.0", "Time between two heartbeats if nothing changes. A third of the scheduler's region.host_down_seconds or less: two may get lost.").unit("seconds").range(0.1, 3600.0),
    Key::new("agent.poll_seconds", Number, "1.0", "0.5", "Time between two looks at the servers, for those that end by themselves and guests that release.").unit("seconds").range(0.05, 60.0),
    Key::new("agent.action_timeout_seconds", Number, "120.0", "300.0", "A call of the hypervisor that takes longer counts as failed. Writing the memory of a large guest to disk takes a minute.").unit("seconds").range(1.0, 1800.0),
    Key::new("agent.shutdown_seconds", Number, "10.0", "30.0", "How long calls under way and reports may take at shutdown. Below the 90 s after which systemd kills.").unit("seconds").range(0.0, 600.0),
    Key::new("agent.prefetch", Whole, "4096", "1024", "Commands in hand at the same time. A notice is in hand until its victim has ended, so this limits the evacuations at one time.").range(16.0, 65_535.0),
    Key::new("evacuation.notice_tries", Whole, "3", "5", "How often the guest is told of its end, or that it may stay, before that is given up.").range(1.0, 100.0),
    Key::new("evacuation.act_tries", Whole, "3", "5", "How often an interruption is tried.").range(1.0, 100.0),
    Key::new("evacuation.verify_tries", Whole, "10", "20", "How often it is looked whether the room is free: a hypervisor may need a moment to give memory back.").range(1.0, 1000.0),
    Key::new("evacuation.start_tries", Whole, "3", "5", "How often a start is tried.").range(1.0, 100.0),
    Key::new("evacuation.backoff_first_ms", Whole, "1000", "500", "Wait before the second try; doubles with each further one.").unit("milliseconds").range(1.0, 60_000.0).with(HIGH_CAP),
    Key::new("evacuation.backoff_cap_ms", Whole, "30000", "60000", "The wait never exceeds this. Not below backoff_first_ms.").unit("milliseconds").range(1.0, 600_000.0).with(LOW_CAP),
    Key::new("evacuation.escalate_to_terminate", Switch, "false", "true", "When a victim can neither be stopped nor hibernated: true ends it all the same (its memory, and with it the tenant's work, is lost), false lets it live and reports the failure."),
    Key::new("evacuation.live_migrate_fallback", Words(&["terminate", "stop", "hibernate"]), "\"terminate\"", "\"stop\"", "How a victim ends that was to be moved to another host but cannot."),
    Key::new("evacuation.late_ms", Whole, "2000", "5000", "An interruption that begins later than this after the end of the grace period is late: the scheduler may have given up.").unit("milliseconds").range(100.0, 60_000.0),
    Key::new("evacuation.objection_ms", Whole, "5000", "2000", "Before a late interruption the scheduler is told once more, and has so long to object.").unit("milliseconds").range(0.0, 60_000.0),
    Key::new("evacuation.remember", Whole, "4096", "16384", "How many finished evacuations and removed servers are remembered, so that a message about one of them that comes late or again is answered and not followed.").range(16.0, 1e6),
    Key::new("fence.command", List, "", "[\"/usr/sbin/fence_virsh\"]", "The operator's program that ends a victim which the hypervisor does not end, with its full path, and its arguments. It is spoken to as Pacemaker speaks to fence agents. Not set: there is no fence."),
    Key::new("fence.options", Table, "", "{ ip = \"192.0.2.10\", login = \"root\", identity_file = \"/etc/ebbtide/fence.key\" }", "What else the program is told on standard input, name = \"value\". May hold passwords.").with(A_FENCE).secret(),
    Key::new("fence.tries", Whole, "3", "5", "How often the fence is tried for one victim.").range(1.0, 100.0),
    Key::new("fence.timeout_seconds", Whole, "60", "30", "How long the fence may take each time.").unit("seconds").range(1.0, 3600.0),
    Key::new("log.format", Words(&["text", "json"]), "\"text\"", "\"json\"", "text for people, json (one object a line) for machines."),
    Key::new("log.filter", Text, "\"info\"", "\"ebbtide_agent=debug,warn\"", "What is logged, as tracing filters are written."),
];
