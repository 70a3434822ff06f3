//! Judging nova.conf.

use crate::finding::{EffectiveOrder, Finding, Level, Position, code};
use crate::registry::{self, ConfigKind, KeyInFile};
use crate::weights::{self, ActiveWeigher, Order};
use crate::{Files, secrets, toml_file};
use crate::{nova_names, nova_semantics};
use ebbtide_config::CallerLimits;
use ebbtide_keystone::{AuthTokenOptions, KeystoneError, SECTION};
use ebbtide_model::names;
use ebbtide_nova::weighing;
use ebbtide_nova_objects::nova_conf::{Machine, NovaConf, NovaConfError};
use oslo_config::{Config, ConfigError, FileValue, ValueLocation};
use std::collections::BTreeSet;
use std::path::Path;

/// Everything about a file's text.
pub(crate) fn check(
    path: &Path,
    text: &str,
    files: &dyn Files,
) -> (Vec<Finding>, Option<EffectiveOrder>) {
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
    found.extend(nova_names::findings(&config, &given));
    found.extend(secret(&given, files));
    let conf = match conf {
        Ok(conf) => conf,
        Err(error) => {
            let refused = refused(&error);
            // The same line was told by its option already.
            if refused.at.is_none()
                || found
                    .iter()
                    .all(|known| known.at != refused.at || known.level != Level::Error)
            {
                found.push(refused);
            }
            return (found, None);
        }
    };
    let place = |group: &str, name: &str| {
        let same = |given: &&FileValue| given.group == group && given.name == name;
        given
            .iter()
            .rev()
            .find(same)
            .and_then(|given| position(&given.place))
    };
    found.extend(ebbtide_nova_service::check_conf(&conf).iter().map(|error| {
        let blamed = blamed(&error.to_string());
        let at = blamed.and_then(|key| key.path.split_once('.')).and_then(|(group, name)| place(group, name));
        Finding::new(Level::Error, code::VALUE, blamed.map_or_else(String::new, |key| key.shown(ConfigKind::Nova)))
            .at(at)
            .what(format!("{}: {}", error.code(), names::hide_logins(&error.to_string())))
            .why("ebbtide-scheduler says so at its start, and ends")
            .next("`ebbtide-manage config explain --kind nova` lists all options; where nova.conf is several files, name the one that has it")
    }));
    found.extend(authentication(&config, &conf, &place));
    found.extend(limits(&conf, &place));
    found.extend(conf.notes.iter().map(|note| {
        Finding::new(
            Level::Note,
            code::NO_EFFECT,
            "[filter_scheduler] enabled_filters",
        )
        .at(place("filter_scheduler", "enabled_filters"))
        .what(note.clone())
        .why("the filter has nothing to do")
        .next("take it out of the list")
    }));
    found.extend(nova_semantics::findings(&conf, &given, &place));
    let weighers = in_use(&conf, &place);
    found.extend(weights::findings(Order::NovaScheduler, &weighers));
    let module = conf.ebbtide.cost_module.as_deref();
    let cost = if !conf.ebbtide.preemption || conf.ebbtide.connection.is_none() {
        "nothing: no server is preempted"
    } else {
        module.unwrap_or(ebbtide_cost_modules::DEFAULT)
    };
    let effective = weights::effective(Order::NovaScheduler, cost, &weighers);
    (found, Some(effective))
}

/// An API needs `[keystone_authtoken]`.
fn authentication(
    config: &Config,
    conf: &NovaConf,
    place: &dyn Fn(&str, &str) -> Option<Position>,
) -> Option<Finding> {
    conf.ebbtide.api_listen.as_ref()?;
    let error = AuthTokenOptions::read(config).err()?;
    let (section, option) = match &error {
        KeystoneError::Config {
            section, option, ..
        } => (section.as_str(), option.as_str()),
        _ => (SECTION, "auth_type"),
    };
    let at = place(section, option).or_else(|| place("ebbtide", "api_listen"));
    let what = error.to_string();
    let finding = Finding::new(Level::Error, code::VALUE, shown(section, option))
        .at(at)
        .what(names::hide_logins(&what))
        .why("[ebbtide] api_listen is set, and there is no API without authentication")
        .next("write the section as Nova's API has it, or take api_listen out");
    Some(finding)
}

fn limits(conf: &NovaConf, place: &dyn Fn(&str, &str) -> Option<Position>) -> Option<Finding> {
    let path = conf.ebbtide.api_limits_file.as_ref()?;
    let error = CallerLimits::read(Path::new(path)).err()?;
    let finding = Finding::new(Level::Error, code::VALUE, "[ebbtide] api_limits_file")
        .at(place("ebbtide", "api_limits_file"))
        .what(error)
        .why("ebbtide-scheduler says so at its start, and ends")
        .next("write the section [limits] as docs/operate/security.md has it, and no other");
    Some(finding)
}

/// The option that words name: its section in brackets, or the whole of a name that only it has.
fn blamed(words: &str) -> Option<&'static registry::Key> {
    let keys = registry::keys(ConfigKind::Nova);
    let named = |key: &&registry::Key| {
        let (section, option) = key.path.split_once('.').unwrap_or(("", &key.path));
        let at = toml_file::position(words, option);
        words.contains(&format!("[{section}]")) && at.is_some() && option.len() > 3
    };
    let found = keys.iter().filter(named).min_by_key(|key| {
        let option = key.path.rsplit('.').next().unwrap_or(&key.path);
        toml_file::position(words, option)
    });
    let by_module = || {
        keys.iter()
            .find(|key| key.path == "ebbtide.cost_module" && words.contains("cost module"))
    };
    found.or_else(by_module)
}

pub(crate) fn shown(group: &str, name: &str) -> String {
    format!("[{group}] {name}")
}

pub(crate) fn position(place: &ValueLocation) -> Option<Position> {
    match place {
        ValueLocation::Line { line, .. } => Some(Position {
            line: *line,
            column: 0,
        }),
        _ => None,
    }
}

fn syntax(error: &ConfigError) -> Finding {
    let (at, what) = match error {
        ConfigError::Line { line, what, .. } => (
            Some(Position {
                line: *line,
                column: 0,
            }),
            (*what).to_owned(),
        ),
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
        NovaConfError::Config(
            ConfigError::Value {
                place, group, name, ..
            }
            | ConfigError::Variable {
                place, group, name, ..
            },
        ) => (position(place), shown(group, name)),
        NovaConfError::Unset { group, name, .. } => (None, shown(group, name)),
        NovaConfError::Loading(missing) => (
            missing.place.as_ref().and_then(position),
            shown("filter_scheduler", missing.option),
        ),
        _ => (None, String::new()),
    };
    Finding::new(Level::Error, code::VALUE, key)
        .at(at)
        .what(names::hide_logins(&error.to_string()))
        .why("ebbtide-scheduler says so at its start, and ends")
        .next("correct the value; `ebbtide-manage config explain --kind nova OPTION` says what it may be")
}

/// Values that Nova itself would refuse, of any of its options.
fn values(config: &Config, given: &[FileValue]) -> Vec<Finding> {
    let read: BTreeSet<String> = registry::keys(ConfigKind::Nova)
        .iter()
        .map(|key| key.path.clone())
        .collect();
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
            (
                Level::Error,
                "neither Nova nor ebbtide-scheduler starts with it",
            )
        } else {
            (
                Level::Warning,
                "Ebbtide does not read it, and the service of Nova that does refuses it",
            )
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

fn secret(given: &[FileValue], files: &dyn Files) -> Option<Finding> {
    let telling = |given: &&FileValue| {
        let named = ["password", "secret", "_token"]
            .iter()
            .any(|word| given.name.contains(word))
            && !given.name.starts_with("send_");
        let path = given.text.starts_with('/') || given.name.ends_with("_length");
        (named && !given.text.is_empty() && !path) || secrets::has_password(&given.text)
    };
    let first = given.iter().find(telling)?;
    secrets::finding(
        files,
        shown(&first.group, &first.name),
        position(&first.place),
    )
}

/// The weighers as Nova adds them up.
fn in_use(conf: &NovaConf, place: &dyn Fn(&str, &str) -> Option<Position>) -> Vec<ActiveWeigher> {
    let options = &conf.options;
    let known = options
        .weighers
        .iter()
        .filter_map(|class| weighing::by_class(class, options));
    let weigher = |nova: weighing::NovaWeigher| {
        let (group, name) = if nova.class == "MetricsWeigher" {
            ("metrics", "weight_multiplier")
        } else {
            ("filter_scheduler", nova.weigher.multiplier_key())
        };
        let at = place(group, name);
        ActiveWeigher {
            name: nova.class.to_owned(),
            multiplier: nova.configured,
            from: if at.is_some() { "file" } else { "default" },
            key: shown(group, name),
            at,
            given: at.is_some(),
            named: at.is_some(),
            plugin: false,
        }
    };
    known.map(weigher).collect()
}
