//! Judging nova.conf.

use crate::finding::{Effective, Finding, Level, Position, code};
use crate::nova_sense;
use crate::registry::{self, Applies, Kind};
use crate::weights::{self, InUse, Order};
use crate::{Files, nearest, secrets};
use ebbtide_model::names;
use ebbtide_nova::weighing;
use ebbtide_nova_objects::nova_conf::{Machine, NovaConf, NovaConfError};
use oslo_config::{Config, ConfigError, Given, Place};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Sections whose options shape a decision: one that does nothing there is worth a warning.
const DECIDING: [&str; 3] = ["filter_scheduler", "scheduler", "metrics"];

/// Options under older names that Ebbtide reads: section, name, and where it is now.
const RENAMED: [(&str, &str, &str); 11] = [
    ("oslo_messaging_rabbit", "kombu_reconnect_timeout", "[oslo_messaging_rabbit] kombu_missing_consumer_retry_timeout"),
    ("DEFAULT", "logfile", "[DEFAULT] log_file"),
    ("DEFAULT", "logdir", "[DEFAULT] log_dir"),
    ("DEFAULT", "notification_format", "[notifications] notification_format"),
    ("DEFAULT", "notification_driver", "[oslo_messaging_notifications] driver"),
    ("DEFAULT", "notification_topics", "[oslo_messaging_notifications] topics"),
    ("rpc_notifier2", "topics", "[oslo_messaging_notifications] topics"),
    ("DEFAULT", "notification_transport_url", "[oslo_messaging_notifications] transport_url"),
    ("placement", "os_region_name", "[placement] region_name"),
    ("placement", "os_interface", "[placement] valid_interfaces"),
    ("placement", "interface", "[placement] valid_interfaces"),
];

/// Options under names that nothing reads any more, and where they are now.
const GONE: [(&str, &str, &str); 8] = [
    ("DEFAULT", "scheduler_default_filters", "[filter_scheduler] enabled_filters"),
    ("DEFAULT", "scheduler_available_filters", "[filter_scheduler] available_filters"),
    ("DEFAULT", "scheduler_weight_classes", "[filter_scheduler] weight_classes"),
    ("DEFAULT", "scheduler_host_subset_size", "[filter_scheduler] host_subset_size"),
    ("DEFAULT", "scheduler_max_attempts", "[scheduler] max_attempts"),
    ("DEFAULT", "scheduler_tracks_instance_changes", "[filter_scheduler] track_instance_changes"),
    ("DEFAULT", "scheduler_discover_hosts_in_cells_interval", "[scheduler] discover_hosts_in_cells_interval"),
    ("scheduler", "periodic_task_interval", "nothing: Ebbtide has no such task"),
];

/// keystoneauth's names that Ebbtide understands besides those of the registry.
const CREDENTIALS: [&str; 17] = [
    "auth_plugin", "user_name", "tenant_id", "tenant_name", "default_domain_id", "default_domain_name", "domain_id", "domain_name",
    "application_credential_id", "application_credential_name", "application_credential_secret", "token", "endpoint", "cacert", "cert", "key",
    "endpoint_type",
];

/// Everything about a file's text.
pub(crate) fn check(path: &Path, text: &str, files: &dyn Files) -> (Vec<Finding>, Option<Effective>) {
    let mut config = match Config::of_text(path, text) {
        Ok(config) => config,
        Err(error) => return (vec![syntax(&error)], None),
    };
    let given = config.given();
    let mut found = values(&config, &given);
    // Of the machine itself nothing is said here.
    let machine = Machine {
        hostname: "this-host".to_owned(),
        ip: "127.0.0.1".to_owned(),
    };
    let conf = NovaConf::read(&mut config, &machine);
    found.extend(names_of(&config, &given));
    found.extend(secret(&given, files));
    let conf = match conf {
        Ok(conf) => conf,
        Err(error) => {
            let refused = refused(&error);
            // The same line was told by its option already.
            if refused.at.is_none() || found.iter().all(|known| known.at != refused.at || known.level != Level::Error) {
                found.push(refused);
            }
            return (found, None);
        }
    };
    found.extend(ebbtide_nova_door::check_conf(&conf).iter().map(|error| {
        Finding::new(Level::Error, code::VALUE, "")
            .what(format!("{}: {}", error.code(), names::hide_logins(&error.to_string())))
            .why("ebbtide-scheduler says so at its start, and ends")
            .next("`ebbtide config explain nova` lists all options; where nova.conf is several files, name the one that has it")
    }));
    let place = |group: &str, name: &str| {
        let same = |given: &&Given| given.group == group && given.name == name;
        given.iter().rev().find(same).and_then(|given| position(&given.place))
    };
    found.extend(conf.notes.iter().map(|note| {
        Finding::new(Level::Note, code::NO_EFFECT, "[filter_scheduler] enabled_filters")
            .at(place("filter_scheduler", "enabled_filters"))
            .what(note.clone())
            .why("the filter has nothing to do")
            .next("take it out of the list")
    }));
    found.extend(nova_sense::findings(&conf, &given, &place));
    let weighers = in_use(&conf, &place);
    found.extend(weights::findings(Order::NovaScheduler, &weighers));
    let module = conf.ebbtide.cost_module.as_deref();
    let cost = if !conf.ebbtide.preemption || conf.ebbtide.connection.is_none() {
        "nothing: nobody is preempted"
    } else {
        module.unwrap_or(ebbtide_cost_modules::DEFAULT)
    };
    let effective = weights::effective(Order::NovaScheduler, cost, &weighers);
    (found, Some(effective))
}

pub(crate) fn shown(group: &str, name: &str) -> String {
    format!("[{group}] {name}")
}

fn position(place: &Place) -> Option<Position> {
    match place {
        Place::Line { line, .. } => Some(Position { line: *line, column: 0 }),
        _ => None,
    }
}

fn syntax(error: &ConfigError) -> Finding {
    let (at, what) = match error {
        ConfigError::Line { line, what, .. } => (Some(Position { line: *line, column: 0 }), (*what).to_owned()),
        other => (None, other.to_string()),
    };
    Finding::new(Level::Error, code::SYNTAX, "")
        .at(at)
        .what(format!("oslo.config cannot read this: {what}"))
        .why("neither Nova nor Ebbtide starts with it")
        .next("lines are [section], name = value, a comment with # at its beginning, or begin with a blank and go on with the value above")
}

fn refused(error: &NovaConfError) -> Finding {
    let (at, key) = match error {
        NovaConfError::Config(ConfigError::Value { place, group, name, .. } | ConfigError::Variable { place, group, name, .. }) => {
            (position(place), shown(group, name))
        }
        NovaConfError::Unset { group, name, .. } => (None, shown(group, name)),
        _ => (None, String::new()),
    };
    Finding::new(Level::Error, code::VALUE, key)
        .at(at)
        .what(names::hide_logins(&error.to_string()))
        .why("ebbtide-scheduler says so at its start, and ends")
        .next("correct the value; `ebbtide config explain SECTION.OPTION` says what it may be")
}

/// Values that Nova itself would refuse, of any of its options.
fn values(config: &Config, given: &[Given]) -> Vec<Finding> {
    let read: BTreeSet<String> = registry::keys(Kind::Nova).iter().map(|key| key.path.to_owned()).collect();
    let declared: BTreeSet<(&str, &str)> = ebbtide_nova::options::declared_names().collect();
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for given in given.iter().rev() {
        let option = (given.group.as_str(), given.name.as_str());
        // The last one counts; of those that may come several times every one is text.
        if !declared.contains(&option) || !seen.insert(option) {
            continue;
        }
        let value = match config.get(&given.group, &given.name) {
            Ok(Some(value)) => value,
            Ok(None) => continue,
            Err(error) => {
                found.push(refused(&error.into()).at(position(&given.place)));
                continue;
            }
        };
        let value = ebbtide_nova::python::Value::Str(value);
        let Err(allowed) = ebbtide_nova::options::check(&given.group, &given.name, &value) else {
            continue;
        };
        let key = shown(&given.group, &given.name);
        let ours = read.contains(&format!("{}.{}", given.group, given.name));
        let (level, why) = if ours {
            (Level::Error, "neither Nova nor ebbtide-scheduler starts with it")
        } else {
            (Level::Warning, "Ebbtide does not read it, and the service of Nova that does refuses it")
        };
        found.push(
            Finding::new(level, code::VALUE, key.clone())
                .at(position(&given.place))
                .what(format!("the value of {key} is not allowed: {allowed}"))
                .why(why)
                .next("correct the value"),
        );
    }
    found
}

/// Options that nobody knows, that have no effect, or that are known by other names now.
fn names_of(config: &Config, given: &[Given]) -> Vec<Finding> {
    let asked = config.asked();
    let keys = registry::keys(Kind::Nova);
    let declared: Vec<(&str, &str)> = ebbtide_nova::options::declared_names().collect();
    let mut groups: BTreeSet<&str> = declared.iter().map(|(group, _)| *group).collect();
    groups.extend(keys.iter().map(|key| key.section()));
    let mut found = Vec::new();
    let mut others: BTreeMap<&str, (usize, Option<Position>)> = BTreeMap::new();
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
                        .why(known.what)
                        .next("nothing, if Nova's own programs read the file as well"),
                );
            }
            continue;
        }
        if group == "ebbtide" {
            found.push(unknown(&key, at, &plain, "ebbtide", &keys, &declared));
            continue;
        }
        // Sections with credentials are handed out whole, wherever they are.
        if plain.starts_with("auth_") || CREDENTIALS.contains(&plain.as_str()) || keys.iter().any(|known| known.path == format!("placement.{plain}")) {
            if !groups.contains(group) {
                strange.entry(group).or_insert((0, at)).0 += 1;
            }
            continue;
        }
        let known = declared.iter().any(|(g, n)| *g == group && *n == plain);
        if known && DECIDING.contains(&group) && !asked.contains(&(group.to_owned(), name.to_owned())) {
            found.push(
                Finding::new(Level::Warning, code::NO_EFFECT, key.clone())
                    .at(at)
                    .what(format!("{key} has no effect on Ebbtide"))
                    .why("Nova knows it, and Ebbtide does not read it")
                    .next("nothing, if you can do without; `ebbtide config explain scheduler` lists what counts"),
            );
        } else if known {
            others.entry(group).or_insert((0, at)).0 += 1;
        } else if groups.contains(group) {
            found.push(unknown(&key, at, &plain, group, &keys, &declared));
        } else {
            strange.entry(group).or_insert((0, at)).0 += 1;
        }
    }
    for (group, (count, at)) in others {
        found.push(
            Finding::new(Level::Note, code::NO_EFFECT, format!("[{group}]"))
                .at(at)
                .what(format!("{} of [{group}] for Nova's other services", options(count)))
                .why("nova.conf is shared; the scheduler does not read them, Nova's own neither")
                .next("nothing"),
        );
    }
    for (group, (count, at)) in strange {
        let near = nearest::name(group, groups.iter().copied());
        let (level, next) = match near {
            Some(near) => (Level::Warning, format!("did you mean [{near}]?")),
            None => (Level::Note, "nothing, if another program's library reads it".to_owned()),
        };
        found.push(
            Finding::new(level, code::UNKNOWN, format!("[{group}]"))
                .at(at)
                .what(format!("[{group}] with {} is no section that Ebbtide or Nova's scheduler knows", options(count)))
                .why("oslo.config ignores what nobody asks for, without a word")
                .next(next),
        );
    }
    found
}

fn options(count: usize) -> String {
    if count == 1 { "1 option".to_owned() } else { format!("{count} options") }
}

fn unknown(
    key: &str,
    at: Option<Position>,
    name: &str,
    group: &str,
    keys: &[&registry::Key],
    declared: &[(&str, &str)],
) -> Finding {
    let ours = keys.iter().filter(|key| key.section() == group).filter_map(|key| key.path.split_once('.'));
    let theirs = declared.iter().filter(|(g, _)| *g == group).map(|(_, n)| *n);
    let beside: Vec<&str> = ours.map(|(_, name)| name).chain(theirs).collect();
    let next = match nearest::name(name, beside.into_iter()) {
        Some(near) => format!("did you mean {near}?"),
        None => match keys.iter().find(|key| key.path.split_once('.').is_some_and(|(_, n)| n == name)) {
            Some(other) => format!("there is {}: is it in the wrong section?", other.shown(Kind::Nova)),
            None => format!("`ebbtide config explain {group}` lists what there is"),
        },
    };
    Finding::new(Level::Warning, code::UNKNOWN, key)
        .at(at)
        .what(format!("there is no option {key}"))
        .why("oslo.config ignores what nobody asks for, without a word: the default counts")
        .next(next)
}

fn secret(given: &[Given], files: &dyn Files) -> Option<Finding> {
    let telling = |given: &&Given| {
        let named = ["password", "secret", "_token"].iter().any(|word| given.name.contains(word)) && !given.name.starts_with("send_");
        let path = given.text.starts_with('/') || given.name.ends_with("_length");
        (named && !given.text.is_empty() && !path) || secrets::has_password(&given.text)
    };
    let first = given.iter().find(telling)?;
    secrets::finding(files, shown(&first.group, &first.name), position(&first.place))
}

/// The weighers as Nova adds them up.
fn in_use(conf: &NovaConf, place: &dyn Fn(&str, &str) -> Option<Position>) -> Vec<InUse> {
    let options = &conf.options;
    let known = options.weighers.iter().filter_map(|class| weighing::by_class(class, options));
    let weigher = |nova: weighing::NovaWeigher| {
        let (group, name) = if nova.class == "MetricsWeigher" {
            ("metrics", "weight_multiplier")
        } else {
            ("filter_scheduler", nova.weigher.multiplier_key())
        };
        let at = place(group, name);
        InUse {
            name: nova.class.to_owned(),
            multiplier: nova.configured,
            from: if at.is_some() { "file" } else { "default" },
            key: shown(group, name),
            at,
            given: at.is_some(),
            named: at.is_some(),
        }
    };
    known.map(weigher).collect()
}
