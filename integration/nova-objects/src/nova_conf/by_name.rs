//! Options that others read by name: oslo.messaging's of the broker (`oslo-messaging`),
//! keystoneauth's of Placement (`ebbtide-openstack`). Tests of `ebbtide-config-check` compare them
//! with what these readers ask for.

use oslo_config::{Effect, Opt};

const RABBIT: &str = "oslo_messaging_rabbit";
const PLACEMENT: &str = "placement";

/// All of them.
pub(super) const OPTIONS: &[Opt] = &[
    Opt::bool("workarounds", "disable_compute_service_check_for_ffu")
        .default("false")
        .help(
            "true",
            "Computes that are too old cause a warning in the log; the scheduler starts.",
        ),
    Opt::text(PLACEMENT, "auth_type")
        .effect(Effect::Reload)
        .default("password")
        .help(
            "password",
            "How Ebbtide authenticates with Keystone: password, v3applicationcredential, \
             admin_token, none. All options of keystoneauth may be in the section that \
             auth_section names.",
        ),
    Opt::text(PLACEMENT, "auth_section")
        .effect(Effect::Reload)
        .help(
            "keystone_authtoken",
            "The section with the rest of these options.",
        ),
    Opt::text(PLACEMENT, "auth_url")
        .effect(Effect::Reload)
        .required()
        .help("http://keystone:5000/v3", "Keystone."),
    Opt::text(PLACEMENT, "username")
        .effect(Effect::Reload)
        .help("nova", "The user, by name; with user_domain_name."),
    Opt::text(PLACEMENT, "user_id")
        .effect(Effect::Reload)
        .help("0f2c", "The user, by id."),
    Opt::text(PLACEMENT, "password")
        .effect(Effect::Reload)
        .secret()
        .help("PASSWORD", "The password."),
    Opt::text(PLACEMENT, "user_domain_name")
        .effect(Effect::Reload)
        .help("Default", "The user's domain, by name."),
    Opt::text(PLACEMENT, "user_domain_id")
        .effect(Effect::Reload)
        .help("default", "The user's domain, by id."),
    Opt::text(PLACEMENT, "project_name")
        .effect(Effect::Reload)
        .help("service", "The project, by name; with project_domain_name."),
    Opt::text(PLACEMENT, "project_id")
        .effect(Effect::Reload)
        .help("0f2c", "The project, by id."),
    Opt::text(PLACEMENT, "project_domain_name")
        .effect(Effect::Reload)
        .help("Default", "The project's domain, by name."),
    Opt::text(PLACEMENT, "project_domain_id")
        .effect(Effect::Reload)
        .help("default", "The project's domain, by id."),
    Opt::text(PLACEMENT, "system_scope")
        .effect(Effect::Reload)
        .help(
            "all",
            "all: a token for the whole system instead of a project.",
        ),
    Opt::text(PLACEMENT, "region_name").help(
        "RegionOne",
        "Whose Placement it is, of several in the catalog.",
    ),
    Opt::list(PLACEMENT, "valid_interfaces")
        .default("internal,public")
        .help(
            "internal",
            "Which endpoints of the catalog are tried, in order.",
        ),
    Opt::text(PLACEMENT, "service_type")
        .default("placement")
        .help("placement", "The type in the catalog."),
    Opt::text(PLACEMENT, "service_name").help(
        "placement",
        "The name in the catalog, where several have the type.",
    ),
    Opt::text(PLACEMENT, "endpoint_override").help(
        "http://placement:8778",
        "Placement's URL, instead of the catalog's.",
    ),
    Opt::float(PLACEMENT, "timeout")
        .unit("seconds")
        .help("60", "How long an answer may take."),
    Opt::int(PLACEMENT, "connect_retries")
        .between(0, 1000)
        .help("3", "How often a connection is tried again."),
    Opt::float(PLACEMENT, "connect_retry_delay")
        .unit("seconds")
        .help("0.5", "Wait between these tries."),
    Opt::path(PLACEMENT, "cafile").help(
        "/etc/ssl/cloud.pem",
        "Roots of the certificates of Keystone and Placement, in PEM.",
    ),
    Opt::path(PLACEMENT, "certfile").help("/etc/nova/client.pem", "Our certificate, in PEM."),
    Opt::path(PLACEMENT, "keyfile").help("/etc/nova/client.key", "Its private key."),
    Opt::bool(PLACEMENT, "insecure").default("false").help(
        "true",
        "Do not look at the certificates of Keystone and Placement: any server that answers \
             gets the password.",
    ),
    Opt::bool(RABBIT, "rabbit_quorum_queue")
        .default("false")
        .help("true", "Quorum queues. The same on all of Nova's hosts."),
    Opt::bool(RABBIT, "rabbit_transient_quorum_queue")
        .default("false")
        .help("true", "The same for queues of answers."),
    Opt::int(RABBIT, "rabbit_quorum_delivery_limit")
        .at_least(0)
        .default("0")
        .help("5", "As in Nova."),
    Opt::int(RABBIT, "rabbit_quorum_max_memory_length")
        .at_least(0)
        .default("0")
        .help("1000", "As in Nova."),
    Opt::int(RABBIT, "rabbit_quorum_max_memory_bytes")
        .at_least(0)
        .default("0")
        .help("1048576", "As in Nova."),
    Opt::int(RABBIT, "rabbit_transient_queues_ttl")
        .at_least(0)
        .default("1800")
        .unit("seconds")
        .help("600", "How long an unused queue of answers is kept."),
    Opt::int(RABBIT, "rabbit_qos_prefetch_count")
        .at_least(0)
        .default("0")
        .help("64", "As in Nova."),
    Opt::bool(RABBIT, "rabbit_ha_queues").default("false").help(
        "true",
        "Mirrored classic queues. The same on all of Nova's hosts.",
    ),
    Opt::bool(RABBIT, "amqp_durable_queues")
        .default("false")
        .help("true", "Durable queues. The same on all of Nova's hosts."),
    Opt::bool(RABBIT, "amqp_auto_delete").default("false").help(
        "true",
        "Queues that go with their last user. The same on all of Nova's hosts.",
    ),
    Opt::bool(RABBIT, "use_queue_manager")
        .default("false")
        .help(
            "true",
            "Names of queues of answers that stay the same over restarts.",
        ),
    Opt::text(RABBIT, "hostname").help(
        "scheduler-1",
        "With use_queue_manager: our part of these names.",
    ),
    Opt::text(RABBIT, "processname").help(
        "nova-scheduler",
        "With use_queue_manager: our part of these names.",
    ),
    Opt::int(RABBIT, "heartbeat_timeout_threshold")
        .at_least(0)
        .default("60")
        .unit("seconds")
        .help(
            "30",
            "Time after which a silent broker counts as lost; 0: never.",
        ),
    Opt::float(RABBIT, "kombu_reconnect_delay")
        .between_floats(0.0, 4.5)
        .default("1.0")
        .unit("seconds")
        .help("2.0", "Wait before a lost connection is made anew."),
    Opt::float(RABBIT, "kombu_reconnect_splay")
        .between_floats(0.0, 3600.0)
        .default("0.0")
        .unit("seconds")
        .help("5.0", "Random wait besides, so that not all come at once."),
    Opt::text(RABBIT, "kombu_failover_strategy")
        .choices(&["round-robin", "shuffle"])
        .default("round-robin")
        .help(
            "shuffle",
            "In which order the brokers of transport_url are tried.",
        ),
    Opt::int(RABBIT, "kombu_missing_consumer_retry_timeout")
        .default("60")
        .unit("seconds")
        .help("30", "How long an answer waits for its missing queue."),
    Opt::int(RABBIT, "rabbit_retry_interval")
        .at_least(1)
        .default("1")
        .unit("seconds")
        .help("2", "Wait before the second try to connect."),
    Opt::int(RABBIT, "rabbit_retry_backoff")
        .at_least(0)
        .default("2")
        .unit("seconds")
        .help("1", "How much longer each further wait is."),
    Opt::int(RABBIT, "rabbit_interval_max")
        .at_least(1)
        .default("30")
        .unit("seconds")
        .help("10", "The longest of these waits."),
    Opt::text(RABBIT, "rabbit_login_method")
        .choices(&["PLAIN", "AMQPLAIN", "EXTERNAL"])
        .default("AMQPLAIN")
        .help("PLAIN", "How Ebbtide logs in."),
    Opt::bool(RABBIT, "direct_mandatory_flag")
        .default("true")
        .help(
            "false",
            "Whether the broker says when the queue of an answer is gone.",
        ),
    Opt::bool(RABBIT, "rabbit_stream_fanout")
        .default("false")
        .help("false", "Streams for fanouts."),
    Opt::bool(RABBIT, "ssl")
        .default("false")
        .help("true", "TLS to the broker."),
    Opt::path(RABBIT, "ssl_ca_file").help("/etc/ssl/mq.pem", "Roots of the broker's certificate."),
    Opt::path(RABBIT, "ssl_cert_file").help("/etc/nova/mq.pem", "Our certificate."),
    Opt::path(RABBIT, "ssl_key_file").help("/etc/nova/mq.key", "Its private key."),
];
