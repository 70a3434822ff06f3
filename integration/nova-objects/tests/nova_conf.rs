//! nova.conf, from the file to what the Nova service works with.

#![allow(
    clippy::unwrap_used,
    reason = "clippy sees helpers beside the tests as no tests"
)]

use ebbtide_nova::model::Options;
use ebbtide_nova_objects::nova_conf::{Machine, NotificationFormat, NovaConf, ReplyWhen};
use oslo_config::Config;

fn read(text: &str) -> Result<NovaConf, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nova.conf");
    std::fs::write(&file, text).unwrap();
    let mut config = Config::load_with(&[file], &[], []).map_err(|error| error.to_string())?;
    let machine = Machine {
        hostname: "controller".to_owned(),
        ip: "192.0.2.7".to_owned(),
    };
    NovaConf::read(&mut config, &machine).map_err(|error| {
        let folder = folder.path().display().to_string();
        error.to_string().replace(&format!("{folder}/"), "")
    })
}

/// What a deployment with Keystone writes, as the captured stack had it.
const USUAL: &str = "
[DEFAULT]
debug = false
my_ip = 10.0.0.11
state_path = /var/lib/nova
transport_url = rabbit://nova:geheim@$my_ip:5672/
report_interval = 5
log_dir = /var/log/nova
[api_database]
connection = mysql+pymysql://nova:geheim@db/nova_api
[database]
connection = mysql+pymysql://nova:geheim@db/nova_cell1?charset=utf8
max_pool_size = 7
[scheduler]
workers = 1
discover_hosts_in_cells_interval = 300
max_attempts = 5
[filter_scheduler]
enabled_filters = ComputeFilter,ComputeCapabilitiesFilter,
  ImagePropertiesFilter
available_filters = nova.scheduler.filters.all_filters
ram_weight_multiplier = 2.5
host_subset_size = 3
[placement]
auth_type = password
auth_url = http://$my_ip:5000
username = nova
password = geheim
user_domain_name = Default
project_name = service
project_domain_name = Default
region_name = RegionOne
[oslo_messaging_notifications]
driver = messagingv2
driver = log
[notifications]
notification_format = both
[oslo_messaging_rabbit]
rabbit_quorum_queue = true
[libvirt]
cpu_mode = what an unread option says does not matter
[ebbtide]
connection = mysql://ebbtide:geheim@db/ebbtide
reply_when = at_once
default_grace = 60
tomorrow = yes
";

#[test]
fn a_usual_file_is_read_section_by_section() {
    let conf = read(USUAL).unwrap();
    assert_eq!(
        (conf.general.host.as_str(), conf.general.my_ip.as_str()),
        ("controller", "10.0.0.11")
    );
    assert_eq!(
        conf.general.transport_url,
        "rabbit://nova:geheim@10.0.0.11:5672/"
    );
    assert_eq!(
        (
            conf.general.control_exchange.as_str(),
            conf.general.report_interval
        ),
        ("nova", 5)
    );
    assert_eq!(
        (
            conf.general.rpc_response_timeout,
            conf.general.long_rpc_timeout
        ),
        (60, 1800)
    );
    assert_eq!(
        (conf.database.max_pool_size, conf.api_database.max_pool_size),
        (Some(7), Some(5))
    );
    assert!(
        conf.database
            .connection
            .as_deref()
            .unwrap()
            .ends_with("?charset=utf8")
    );
    assert_eq!(conf.scheduler.discover_hosts_in_cells_interval, Some(300));
    assert_eq!(conf.notifications.format, NotificationFormat::Both);
    assert_eq!(conf.notifications.drivers, ["messagingv2", "log"]);
    assert!(conf.notifications.enabled());
    let placement = conf.placement.lookup();
    assert_eq!(
        placement("auth_url").as_deref(),
        Some("http://10.0.0.11:5000")
    );
    assert_eq!(placement("nothing"), None);
    assert_eq!(
        conf.rabbit.get("rabbit_quorum_queue").as_deref(),
        Some("true")
    );
    let ours = &conf.ebbtide;
    assert_eq!(
        (
            ours.preemption,
            ours.reply_when,
            ours.default_grace,
            ours.room_timeout
        ),
        (true, ReplyWhen::AtOnce, 60, 300)
    );
    // An option of tomorrow is left alone.
    assert_eq!(
        (ours.placement_patience, ours.bus_prefix.as_deref()),
        (30, Some("ebbtide"))
    );
    let options = &conf.options;
    assert_eq!(
        options.enabled_filters,
        [
            "ComputeFilter",
            "ComputeCapabilitiesFilter",
            "ImagePropertiesFilter"
        ]
    );
    assert_eq!(
        (
            options.ram_weight_multiplier,
            options.host_subset_size,
            options.max_attempts
        ),
        (Some(2.5), 3, 5)
    );
    assert_eq!(conf.notes, Vec::<String>::new());
    assert!(!format!("{conf:?}").contains("geheim"), "{conf:?}");
}

#[test]
fn nothing_said_is_novas_default() {
    let conf = read("").unwrap();
    assert_eq!(conf.options, Options::default());
    assert_eq!(conf.general.transport_url, "rabbit://");
    assert_eq!(conf.database.connection, None);
    assert_eq!(conf.scheduler.discover_hosts_in_cells_interval, None);
    assert!(!conf.notifications.enabled());
    assert_eq!(
        conf.notifications.versioned_topics,
        ["versioned_notifications"]
    );
    assert_eq!(
        (conf.ebbtide.reply_when, conf.ebbtide.plan_rounds),
        (ReplyWhen::RoomFree, 4)
    );
}

#[test]
fn a_wrong_option_is_named_and_says_what_is_allowed() {
    for (text, message) in [
        (
            "[scheduler]\nmax_attempts = 0\n",
            "EB-CONF-004: nova.conf:2: [scheduler] max_attempts = 0: allowed is a whole number of at least 1",
        ),
        (
            "[filter_scheduler]\n\nram_weight_multiplier = much\n",
            "EB-CONF-004: nova.conf:3: [filter_scheduler] ram_weight_multiplier = much: allowed is a number",
        ),
        (
            "[filter_scheduler]\ntrack_instance_changes = perhaps\n",
            "EB-CONF-004: nova.conf:2: [filter_scheduler] track_instance_changes = perhaps: \
             allowed is true, yes, on, 1, false, no, off, 0",
        ),
        (
            "[ebbtide]\nreply_when = later\n",
            "EB-CONF-004: nova.conf:2: [ebbtide] reply_when = later: allowed is one of room_free, at_once",
        ),
        (
            "[ebbtide]\nroom_timeout = 0\n",
            "EB-CONF-004: nova.conf:2: [ebbtide] room_timeout = 0: allowed is a whole number from 1 to 86400",
        ),
        (
            "[DEFAULT]\nservicegroup_driver = zk\n",
            "EB-CONF-004: nova.conf:2: [DEFAULT] servicegroup_driver = zk: allowed is one of db, mc",
        ),
        (
            "[placement]\npassword = a$b\n",
            "EB-CONF-005: nova.conf:2: [placement] password: $b: there is no such option",
        ),
        (
            "[notifications]\nnotification_format = none\n",
            "EB-CONF-004: nova.conf:2: [notifications] notification_format = none: \
             allowed is one of both, versioned, unversioned",
        ),
    ] {
        assert_eq!(read(text).map(drop), Err(message.to_owned()));
    }
}

#[test]
fn a_filter_or_weigher_from_outside_of_nova_is_named_with_its_option_and_what_can_be_done() {
    for (text, parts) in [
        (
            "[filter_scheduler]\navailable_filters = nova.scheduler.filters.all_filters\n\
             available_filters = my.filters.OwnFilter\nenabled_filters = ComputeFilter,OwnFilter\n",
            [
                "EB-OBJECT-006: nova.conf:3: [filter_scheduler] available_filters names my.filters.OwnFilter: ",
                "Python filters are not loaded here",
                "`ebbtide-nova-weighers --filter my.filters.OwnFilter`",
            ],
        ),
        (
            "[filter_scheduler]\navailable_filters = nova.scheduler.filters.all_filters\n\
             available_filters = my.filters.OwnFilter\n",
            [
                "EB-OBJECT-006: nova.conf:3: [filter_scheduler] available_filters names my.filters.OwnFilter: ",
                "Python filters are not loaded here",
                "enabled_filters does not name it, so it decides nothing: take the line out",
            ],
        ),
        (
            "[filter_scheduler]\nenabled_filters = ComputeFilter, OwnFilter\n",
            [
                "EB-OBJECT-006: nova.conf:2: [filter_scheduler] enabled_filters names OwnFilter: ",
                "Python filters from outside of Nova are not loaded here",
                "traits and aggregates",
            ],
        ),
        (
            "[filter_scheduler]\nenabled_filters = RamFilter\n",
            [
                "EB-OBJECT-006: nova.conf:2: [filter_scheduler] enabled_filters names RamFilter: ",
                "Placement checks what it checked",
                "; take it out",
            ],
        ),
        (
            "[filter_scheduler]\nenabled_filters = ComputeFilter, JsonFilter\n\
             available_filters = nova.scheduler.filters.compute_filter.ComputeFilter\n",
            [
                "EB-OBJECT-006: nova.conf:2: [filter_scheduler] enabled_filters names JsonFilter: ",
                "available_filters does not list it",
                "all_filters",
            ],
        ),
        (
            "[filter_scheduler]\nweight_classes = nova.scheduler.weights.ram.RAMWeigher, my.weights.OwnWeigher\n",
            [
                "EB-OBJECT-006: nova.conf:2: [filter_scheduler] weight_classes names my.weights.OwnWeigher: ",
                "Python weighers are not loaded into the scheduler",
                "`ebbtide-nova-weighers --weigher my.weights.OwnWeigher`",
            ],
        ),
        (
            "[filter_scheduler]\nweight_classes = nova.scheduler.weights.ram.RamWeigher\n",
            [
                "EB-OBJECT-006: nova.conf:2: [filter_scheduler] weight_classes names nova.scheduler.weights.ram.RamWeigher: ",
                "Nova has no such weigher",
                "correct the name",
            ],
        ),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.starts_with(parts[0]), "{error}");
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        for python in [
            "ModuleNotFoundError",
            "ImportError",
            "ClassNotFound",
            "SchedulerHostFilterNotFound",
        ] {
            assert!(!error.contains(python), "{error}");
        }
    }
}

#[test]
fn a_grace_period_that_agents_refuse_is_refused_at_start() {
    assert!(read("[ebbtide]\ndefault_grace = 900\n").is_ok());
    let error = read("[ebbtide]\ndefault_grace = 901\n").unwrap_err();
    for part in ["nova.conf:2: [ebbtide] default_grace", "901", "900"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn the_zone_filter_of_older_novas_is_left_out_and_the_operator_told() {
    let conf =
        read("[filter_scheduler]\nenabled_filters = AvailabilityZoneFilter, ComputeFilter\n")
            .unwrap();
    assert_eq!(conf.options.enabled_filters, ["ComputeFilter"]);
    assert!(
        conf.notes[0].contains("nova.conf:2: AvailabilityZoneFilter"),
        "{:?}",
        conf.notes
    );
}

#[test]
fn credentials_of_another_section_are_found_through_auth_section() {
    let conf = read("[placement]\nauth_section = keys\nregion_name = R\n[keys]\nusername = u\nregion_name = other\n").unwrap();
    assert_eq!(conf.placement.get("username").as_deref(), Some("u"));
    assert_eq!(conf.placement.get("region_name").as_deref(), Some("R"));
}

#[test]
fn a_down_time_that_is_not_longer_than_the_interval_is_made_longer_as_nova_does() {
    let conf = read("[DEFAULT]\nreport_interval = 100\nservice_down_time = 60\n").unwrap();
    assert_eq!(conf.options.service_down_time, Some(250));
}

#[test]
fn the_machine_knows_its_name_and_address() {
    let machine = Machine::here();
    assert!(!machine.hostname.is_empty() && !machine.hostname.contains('\n'));
    assert!(
        machine.ip.parse::<std::net::IpAddr>().is_ok(),
        "{}",
        machine.ip
    );
}
