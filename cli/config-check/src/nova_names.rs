//! Names in nova.conf that are unknown, that have no effect, or that have been renamed.

use crate::finding::{Finding, Level, Position, code};
use crate::nearest;
use crate::nova::{position, shown};
use crate::registry::{self, Applies, ConfigKind, KeyInFile};
use oslo_config::{Config, FileValue};
use std::collections::{BTreeMap, BTreeSet};

/// Sections whose options affect a decision: an option without effect there is worth a warning.
const DECIDING: [&str; 3] = ["filter_scheduler", "scheduler", "metrics"];

/// Options under older names that Ebbtide reads: section, name, and where it is now.
const RENAMED: [(&str, &str, &str); 11] = [
    (
        "oslo_messaging_rabbit",
        "kombu_reconnect_timeout",
        "[oslo_messaging_rabbit] kombu_missing_consumer_retry_timeout",
    ),
    ("DEFAULT", "logfile", "[DEFAULT] log_file"),
    ("DEFAULT", "logdir", "[DEFAULT] log_dir"),
    (
        "DEFAULT",
        "notification_format",
        "[notifications] notification_format",
    ),
    (
        "DEFAULT",
        "notification_driver",
        "[oslo_messaging_notifications] driver",
    ),
    (
        "DEFAULT",
        "notification_topics",
        "[oslo_messaging_notifications] topics",
    ),
    (
        "rpc_notifier2",
        "topics",
        "[oslo_messaging_notifications] topics",
    ),
    (
        "DEFAULT",
        "notification_transport_url",
        "[oslo_messaging_notifications] transport_url",
    ),
    ("placement", "os_region_name", "[placement] region_name"),
    ("placement", "os_interface", "[placement] valid_interfaces"),
    ("placement", "interface", "[placement] valid_interfaces"),
];

/// Options under names that nothing reads any more, and where they are now.
const GONE: [(&str, &str, &str); 9] = [
    (
        "DEFAULT",
        "scheduler_default_filters",
        "[filter_scheduler] enabled_filters",
    ),
    (
        "DEFAULT",
        "scheduler_available_filters",
        "[filter_scheduler] available_filters",
    ),
    (
        "DEFAULT",
        "scheduler_weight_classes",
        "[filter_scheduler] weight_classes",
    ),
    (
        "DEFAULT",
        "scheduler_host_subset_size",
        "[filter_scheduler] host_subset_size",
    ),
    (
        "DEFAULT",
        "scheduler_max_attempts",
        "[scheduler] max_attempts",
    ),
    (
        "DEFAULT",
        "scheduler_tracks_instance_changes",
        "[filter_scheduler] track_instance_changes",
    ),
    (
        "DEFAULT",
        "scheduler_discover_hosts_in_cells_interval",
        "[scheduler] discover_hosts_in_cells_interval",
    ),
    (
        "scheduler",
        "periodic_task_interval",
        "nothing: Ebbtide has no such task",
    ),
    (
        "ebbtide",
        "agents",
        "nothing: the agent that answers for a victim's host is asked, whatever stands here",
    ),
];

/// What Nova 26, the oldest supported one, and its libraries declare and the newest does not: group
/// and name, one option a line. Written by `integration/nova/older_options.py`.
const OLDER_OPTIONS: &str = include_str!("older_options.tsv");

/// Sections of libraries and of other programs that a nova.conf may have, besides those that Nova
/// declares.
const OTHER_SECTIONS: [&str; 9] = [
    "keystone_authtoken",
    "oslo_messaging_amqp",
    "oslo_messaging_kafka",
    "oslo_policy",
    "oslo_reports",
    "profiler",
    "privsep_osbrick",
    "vif_plug_linux_bridge_privileged",
    "vif_plug_ovs_privileged",
];

/// keystoneauth's names that Ebbtide understands besides those of the registry.
const CREDENTIALS: [&str; 17] = [
    "auth_plugin",
    "user_name",
    "tenant_id",
    "tenant_name",
    "default_domain_id",
    "default_domain_name",
    "domain_id",
    "domain_name",
    "application_credential_id",
    "application_credential_name",
    "application_credential_secret",
    "token",
    "endpoint",
    "cacert",
    "cert",
    "key",
    "endpoint_type",
];

/// Findings on options that are unknown, that have no effect, or that have been renamed.
pub(crate) fn findings(config: &Config, given: &[FileValue]) -> Vec<Finding> {
    let asked = config.asked();
    let keys = registry::keys(ConfigKind::Nova);
    let declared: Vec<(&str, &str)> = ebbtide_nova::options::declared_names().collect();
    let older: BTreeSet<(&str, &str)> = OLDER_OPTIONS
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .collect();
    let mut groups: BTreeSet<&str> = declared.iter().map(|(group, _)| *group).collect();
    groups.extend(older.iter().map(|(group, _)| *group));
    groups.extend(keys.iter().map(|key| key.section()));
    groups.extend(OTHER_SECTIONS);
    // Sections that others name for their credentials.
    let named = given
        .iter()
        .filter(|given| matches!(given.name.as_str(), "auth_section" | "auth-section"));
    groups.extend(named.map(|given| given.text.as_str()));
    let mut found = Vec::new();
    let mut others = Vec::new();
    let mut strange: BTreeMap<&str, (usize, Option<Position>)> = BTreeMap::new();
    for given in given {
        let (group, name) = (given.group.as_str(), given.name.as_str());
        let plain = name.replace('-', "_");
        let at = position(&given.place);
        let key = shown(group, name);
        let is = |(g, n, _): &&(&str, &str, &str)| *g == group && *n == name;
        if let Some((_, _, now)) = RENAMED.iter().find(is) {
            found.push(
                Finding::new(Level::Warning, code::DEPRECATED, key.clone())
                    .at(at)
                    .what(format!("{key} is an old name"))
                    .why("it still counts, and will not for ever")
                    .next(format!("write {now}")),
            );
            continue;
        }
        if let Some((_, _, now)) = GONE.iter().find(is) {
            found.push(
                Finding::new(Level::Warning, code::DEPRECATED, key.clone())
                    .at(at)
                    .what(format!("{key} is an old name that nothing reads any more"))
                    .why("the default counts, without a word")
                    .next(format!("write {now}")),
            );
            continue;
        }
        let path = format!("{group}.{plain}");
        if let Some(known) = keys.iter().find(|known| known.path == path) {
            if known.applies == Applies::Never {
                found.push(
                    Finding::new(Level::Note, code::NO_EFFECT, key.clone())
                        .at(at)
                        .what(format!("{key} has no effect on Ebbtide"))
                        .why(known.what.as_str())
                        .next("nothing, if Nova's own programs read the file as well"),
                );
            }
            continue;
        }
        if group == "ebbtide" {
            found.push(unknown(&key, at, &plain, "ebbtide", keys, &declared));
            continue;
        }
        // Sections with credentials are handed out whole, wherever they are.
        if plain.starts_with("auth_")
            || CREDENTIALS.contains(&plain.as_str())
            || keys
                .iter()
                .any(|known| known.path == format!("placement.{plain}"))
        {
            if !groups.contains(group) {
                strange.entry(group).or_insert((0, at)).0 += 1;
            }
            continue;
        }
        let known = declared.iter().any(|(g, n)| *g == group && *n == plain);
        if known
            && DECIDING.contains(&group)
            && !asked.contains(&(group.to_owned(), name.to_owned()))
        {
            found.push(
                Finding::new(Level::Warning, code::NO_EFFECT, key.clone())
                    .at(at)
                    .what(format!("{key} has no effect on Ebbtide"))
                    .why("Nova knows it, and Ebbtide does not read it")
                    .next("nothing, if you can do without; `ebbtide-manage config explain --kind nova scheduler` lists what counts"),
            );
        } else if known
            || older.contains(&(group, plain.as_str()))
            || OTHER_SECTIONS.contains(&group)
        {
            others.push((group, at));
        } else if groups.contains(group) {
            found.push(unknown(&key, at, &plain, group, keys, &declared));
        } else {
            strange.entry(group).or_insert((0, at)).0 += 1;
        }
    }
    found.extend(not_ours(&others));
    for (group, (count, at)) in strange {
        let near = nearest::name(group, groups.iter().copied());
        let (level, next) = match near {
            Some(near) => (Level::Warning, format!("did you mean [{near}]?")),
            None => (
                Level::Note,
                "nothing, if another program's library reads it".to_owned(),
            ),
        };
        found.push(
            Finding::new(level, code::UNKNOWN, format!("[{group}]"))
                .at(at)
                .what(format!(
                    "[{group}] with {} is no section that Ebbtide or Nova's scheduler knows",
                    options(count)
                ))
                .why("oslo.config ignores unknown options without a warning")
                .next(next),
        );
    }
    found
}

/// One note for all options that other services read: there is nothing to do about any of them.
fn not_ours(others: &[(&str, Option<Position>)]) -> Option<Finding> {
    let (_, first) = others.first()?;
    let mut sections: Vec<String> = Vec::new();
    for (group, _) in others {
        let section = format!("[{group}]");
        if !sections.contains(&section) {
            sections.push(section);
        }
    }
    let are = if others.len() == 1 { "is" } else { "are" };
    Some(
        Finding::new(Level::Note, code::NO_EFFECT, sections[0].clone())
            .at(*first)
            .what(format!(
                "{} {are} for Nova's other services, in {}",
                options(others.len()),
                sections.join(", ")
            ))
            .why("nova.conf is shared, and Ebbtide does not read them")
            .next("nothing"),
    )
}

fn options(count: usize) -> String {
    if count == 1 {
        "1 option".to_owned()
    } else {
        format!("{count} options")
    }
}

fn unknown(
    key: &str,
    at: Option<Position>,
    name: &str,
    group: &str,
    keys: &[registry::Key],
    declared: &[(&str, &str)],
) -> Finding {
    let ours = keys
        .iter()
        .filter(|key| key.section() == group)
        .filter_map(|key| key.path.split_once('.'));
    let theirs = declared
        .iter()
        .filter(|(g, _)| *g == group)
        .map(|(_, n)| *n);
    let beside: Vec<&str> = ours.map(|(_, name)| name).chain(theirs).collect();
    let near = nearest::name(name, beside.into_iter());
    let elsewhere = keys
        .iter()
        .find(|key| key.path.split_once('.').is_some_and(|(_, n)| n == name));
    let (level, why, next) = match (near, elsewhere) {
        (Some(near), _) => (Level::Warning, SILENT, format!("did you mean {near}?")),
        (None, Some(other)) => (
            Level::Warning,
            SILENT,
            format!(
                "there is {}: is it in the wrong section?",
                other.shown(ConfigKind::Nova)
            ),
        ),
        (None, None) if group == "ebbtide" || DECIDING.contains(&group) => (
            Level::Warning,
            SILENT,
            format!("`ebbtide-manage config explain --kind nova {group}` lists what there is"),
        ),
        (None, None) => (
            Level::Note,
            "neither Nova's newest release nor the oldest supported one has it; oslo.config ignores unknown options without a warning",
            "nothing, if it is an option of a release between, or of another service; else remove it"
                .to_owned(),
        ),
    };
    Finding::new(level, code::UNKNOWN, key)
        .at(at)
        .what(format!("there is no option {key}"))
        .why(why)
        .next(next)
}

const SILENT: &str = "oslo.config ignores unknown options without a warning: the default counts";
