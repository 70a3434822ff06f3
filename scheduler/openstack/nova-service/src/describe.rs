//! Shows the effective configuration in nova.conf's form, without passwords.

use ebbtide_model::names::hide_logins;
use ebbtide_nova::weighing;
use ebbtide_nova_objects::nova_conf::{
    EbbtideSection, NotificationFormat, NovaConf, ReplyWhen, Section,
};
use std::fmt::{Display, Write as _};

/// Options of keystoneauth that are not secret.
const OF_SERVICES: [&str; 8] = [
    "auth_url",
    "auth_type",
    "username",
    "project_name",
    "user_domain_name",
    "project_domain_name",
    "region_name",
    "endpoint_override",
];

/// The configuration in the form of nova.conf: the effective values, defaults included. Passwords
/// are `***`, keystoneauth credentials lack their secrets, and notes for the operator follow a `#`.
#[must_use]
pub fn describe(conf: &NovaConf) -> String {
    let mut text = String::from("# The configuration is good.\n");
    for note in &conf.notes {
        let _ = writeln!(text, "# {note}");
    }
    let general = &conf.general;
    section(&mut text, "DEFAULT");
    option(&mut text, "host", &general.host);
    option(&mut text, "my_ip", &general.my_ip);
    url(&mut text, "transport_url", Some(&general.transport_url));
    option(&mut text, "control_exchange", &general.control_exchange);
    option(&mut text, "report_interval", general.report_interval);
    option(&mut text, "service_down_time", general.service_down_time);
    option(
        &mut text,
        "rpc_response_timeout",
        general.rpc_response_timeout,
    );
    option(&mut text, "long_rpc_timeout", general.long_rpc_timeout);
    option(&mut text, "debug", general.debug);
    for (name, place) in [
        ("log_dir", &general.log_dir),
        ("log_file", &general.log_file),
    ] {
        if let Some(place) = place {
            option(&mut text, name, place);
        }
    }
    for (name, database) in [
        ("api_database", &conf.api_database),
        ("database", &conf.database),
    ] {
        section(&mut text, name);
        url(&mut text, "connection", database.connection.as_deref());
        if let Some(pool) = database.max_pool_size {
            option(&mut text, "max_pool_size", pool);
        }
    }
    for (name, of) in [
        ("placement", &conf.placement),
        ("keystone", &conf.keystone),
        ("nova", &conf.nova),
        ("service_user", &conf.service_user),
    ] {
        service(&mut text, name, of);
    }
    section(&mut text, "notifications");
    let format = match conf.notifications.format {
        NotificationFormat::Unversioned => "unversioned",
        NotificationFormat::Versioned => "versioned",
        NotificationFormat::Both => "both",
    };
    option(&mut text, "notification_format", format);
    if !conf.notifications.enabled() {
        text.push_str("# no driver is set: none are sent\n");
    }
    deciding(&mut text, conf);
    ours(&mut text, conf);
    text
}

fn deciding(text: &mut String, conf: &NovaConf) {
    section(text, "filter_scheduler");
    option(
        text,
        "enabled_filters",
        conf.options.enabled_filters.join(", "),
    );
    text.push_str("# weighers in use, and how much each counts; `ebbtide-manage config check FILE --effective` says what it comes to:\n");
    for class in &conf.options.weighers {
        if let Some(weigher) = weighing::by_class(class, &conf.options) {
            let multiplier = weigher
                .configured
                .map_or_else(|| "none".to_owned(), |m| m.to_string());
            let _ = writeln!(text, "#   {} x {multiplier}", weigher.class);
        }
    }
    section(text, "scheduler");
    let interval = conf.scheduler.discover_hosts_in_cells_interval;
    option(
        text,
        "discover_hosts_in_cells_interval",
        interval.unwrap_or(-1),
    );
}

fn ours(text: &mut String, conf: &NovaConf) {
    let ours = &conf.ebbtide;
    section(text, "ebbtide");
    if ours.connection.is_none() {
        text.push_str("# without connection nothing is preempted, and no decision is recorded\n");
    }
    url(text, "connection", ours.connection.as_deref());
    url(text, "bus_url", ours.bus_url.as_deref());
    option(text, "preemption", ours.preemption);
    option(text, "quota", ours.quota);
    let default = ebbtide_engine::EngineConfig::default().cost_module;
    let cost = ours.cost_module.as_ref().unwrap_or(&default);
    option(text, "cost_module", cost);
    let reply = match ours.reply_when {
        ReplyWhen::RoomFree => "room_free",
        ReplyWhen::AtOnce => "at_once",
    };
    option(text, "reply_when", reply);
    for (name, number) in [
        ("room_timeout", ours.room_timeout),
        ("default_grace", ours.default_grace),
        ("default_protected", ours.default_protected),
        ("plan_rounds", ours.plan_rounds),
        ("max_in_flight", ours.max_in_flight),
        ("placement_patience", ours.placement_patience),
        ("placement_poll", ours.placement_poll),
        ("notice_timeout", ours.notice_timeout),
        ("act_timeout", ours.act_timeout),
        ("decisions_keep", ours.decisions_keep),
        ("decisions_queue", ours.decisions_queue),
    ] {
        option(text, name, number);
    }
    option(text, "decisions", ours.decisions);
    headroom(text, ours);
    comeback(text, ours);
    market(text, ours);
    option(text, "log_format", ours.log_format.as_str());
    if ours.otlp_endpoint.is_some() {
        option(text, "trace_sample", ours.trace_sample);
    }
    if let Some(release) = ours.nova_release {
        option(text, "nova_release", release);
    }
    for (name, word) in [
        ("plugins", &ours.plugins),
        ("metrics_listen", &ours.metrics_listen),
        ("api_listen", &ours.api_listen),
        ("api_certificate", &ours.api_certificate),
        ("api_private_key", &ours.api_private_key),
        ("api_policy_file", &ours.api_policy_file),
        ("api_limits_file", &ours.api_limits_file),
        ("bus_prefix", &ours.bus_prefix),
        ("otlp_endpoint", &ours.otlp_endpoint),
        ("name", &ours.name),
    ] {
        if let Some(word) = word {
            option(text, name, word);
        }
    }
}

fn headroom(text: &mut String, ours: &EbbtideSection) {
    if !ours.headroom.is_empty() {
        option(text, "headroom", ours.headroom.join(","));
        option(text, "headroom_interval", ours.headroom_interval);
    }
}

fn comeback(text: &mut String, ours: &EbbtideSection) {
    option(text, "comeback", ours.comeback);
    let settings = [
        ("comeback_first", ours.comeback_first),
        ("comeback_max", ours.comeback_max),
        ("comeback_window", ours.comeback_window),
        ("comeback_reserve_percent", ours.comeback_reserve_percent),
        ("comeback_hold", ours.comeback_hold),
        ("comeback_at_once", ours.comeback_at_once),
    ];
    for (name, number) in settings.into_iter().filter(|_| ours.comeback) {
        option(text, name, number);
    }
}

fn market(text: &mut String, ours: &EbbtideSection) {
    option(text, "market", ours.market);
    let settings = [
        ("market_interval", ours.market_interval),
        ("market_floor_percent", ours.market_floor_percent),
        ("market_ceiling_percent", ours.market_ceiling_percent),
        ("market_steepness", ours.market_steepness),
        ("market_step_percent", ours.market_step_percent),
    ];
    for (name, number) in settings.into_iter().filter(|_| ours.market) {
        option(text, name, number);
    }
}

fn section(text: &mut String, name: &str) {
    let _ = write!(text, "\n[{name}]\n");
}

fn option(text: &mut String, name: &str, value: impl Display) {
    let _ = writeln!(text, "{name} = {value}");
}

fn url(text: &mut String, name: &str, value: Option<&str>) {
    match value {
        Some(value) => option(text, name, hide_logins(value)),
        None => {
            let _ = writeln!(text, "# {name} is not set");
        }
    }
}

fn service(text: &mut String, name: &str, of: &Section) {
    let said = OF_SERVICES
        .iter()
        .filter_map(|option| Some((option, of.get(option)?)));
    let said: Vec<_> = said.collect();
    if said.is_empty() && of.get("password").is_none() {
        return;
    }
    section(text, name);
    for (name, value) in said {
        option(text, name, hide_logins(&value));
    }
    if of.get("password").is_some() {
        option(text, "password", "***");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_nova_objects::nova_conf::Machine;
    use oslo_config::Config;

    const NOVA_CONF: &str = "\
[DEFAULT]
transport_url = rabbit://openstack:s3cret@10.0.0.1:5672/
[api_database]
connection = mysql+pymysql://nova:s3cret@10.0.0.1/nova_api
[database]
connection = mysql+pymysql://nova:s3cret@10.0.0.1/nova_cell0
[placement]
auth_url = http://10.0.0.1:5000/v3
username = placement
password = s3cret
[filter_scheduler]
ram_weight_multiplier = 2.5
[ebbtide]
connection = mysql+pymysql://ebbtide:s3cret@10.0.0.1/ebbtide
headroom = m1.large:4, m1.xlarge@gpu:0-10
headroom_interval = 7
comeback_first = 45
market = true
market_interval = 60
market_floor_percent = 20
api_policy_file = /etc/ebbtide/policy.yaml
api_limits_file = /etc/ebbtide/limits.toml
";

    fn read(text: &str) -> NovaConf {
        let mut config = Config::of_text("nova.conf".as_ref(), text).unwrap();
        let machine = Machine {
            hostname: "controller".to_owned(),
            ip: "10.0.0.1".to_owned(),
        };
        NovaConf::read(&mut config, &machine).unwrap()
    }

    #[test]
    fn a_configuration_is_shown_in_its_own_words_without_passwords() {
        let shown = describe(&read(NOVA_CONF));
        for line in [
            "[DEFAULT]",
            "host = controller",
            "transport_url = rabbit://openstack:***@10.0.0.1:5672/",
            "connection = mysql+pymysql://ebbtide:***@10.0.0.1/ebbtide",
            "password = ***",
            "#   RAMWeigher x 2.5",
            "reply_when = room_free",
        ] {
            assert!(shown.lines().any(|said| said == line), "{line}: {shown}");
        }
        assert!(!shown.contains("s3cret"), "{shown}");
        // Rust's own notation has braces; people read this.
        assert!(
            !shown.contains('{') && shown.lines().count() < 90,
            "{shown}"
        );
    }

    #[test]
    fn what_is_shown_is_a_configuration_with_the_same_meaning() {
        let conf = read(NOVA_CONF);
        let again = read(&describe(&conf));
        assert_eq!(again.general.host, conf.general.host);
        assert_eq!(again.options.enabled_filters, conf.options.enabled_filters);
        assert_eq!(conf.ebbtide.headroom.len(), 2);
        let without_password = EbbtideSection {
            connection: again.ebbtide.connection.clone(),
            ..conf.ebbtide
        };
        assert!(again.ebbtide == without_password, "{:?}", again.ebbtide);
    }
}
