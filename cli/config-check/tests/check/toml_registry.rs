//! What the registry says of TOML against what serde and the programs' own checks say.

use ebbtide_agent as agent;
use ebbtide_config_check::registry::{self, ConfigKind, Key, Type};
use ebbtide_config_check::schema::{self, KeySchema, ValueShape};
use std::collections::BTreeSet;
use toml::{Table, Value};

const ADD: &str = "add it to cli/config-check/src/registry, then write docs/reference/configuration.md anew (ebbtide-manage config explain --output markdown)";

/// What serde knows of a kind of file.
fn read_by(kind: ConfigKind) -> Vec<KeySchema> {
    match kind {
        ConfigKind::Scheduler => schema::keys::<ebbtide_config::Config>(""),
        ConfigKind::Agent => {
            let word = |path: &str, shape| KeySchema {
                path: path.to_owned(),
                shape,
            };
            // These the agent reads by hand.
            let mut keys = vec![
                word("host", ValueShape::Text),
                word("state_dir", ValueShape::Text),
                word("driver.kind", ValueShape::Text),
            ];
            keys.extend(schema::keys::<agent::config::BusSettings>("bus"));
            keys.extend(schema::keys::<agent::config::AgentSettings>("agent"));
            keys.extend(schema::keys::<agent::protocol::AgentPolicy>("evacuation"));
            keys.extend(schema::keys::<agent::fence::FenceSettings>("fence"));
            keys.extend(schema::keys::<agent::config::LogSettings>("log"));
            for driver in agent::driver::registry::DRIVERS {
                let prefix = format!("driver.{}", driver.name);
                keys.extend(match driver.name {
                    "libvirt" => schema::keys::<agent::driver::libvirt::LibvirtSettings>(&prefix),
                    "nova" => schema::keys::<agent::driver::nova::NovaSettings>(&prefix),
                    "simulated" => {
                        schema::keys::<agent::driver::simulated::SimulatedSettings>(&prefix)
                    }
                    other => panic!("the driver {other} is new here: {ADD}"),
                });
            }
            keys
        }
        ConfigKind::Nova => unreachable!("no TOML"),
    }
}

const TOML: [ConfigKind; 2] = [ConfigKind::Scheduler, ConfigKind::Agent];

#[test]
fn every_key_that_serde_knows_is_explained_and_no_other() {
    for kind in TOML {
        let read: BTreeSet<String> = read_by(kind).into_iter().map(|read| read.path).collect();
        let known: BTreeSet<String> = registry::keys(kind)
            .iter()
            .map(|key| key.path.to_owned())
            .collect();
        assert_eq!(
            known.len(),
            registry::keys(kind).len(),
            "{kind}: a key is there twice"
        );
        let missing: Vec<_> = read.difference(&known).collect();
        assert!(
            missing.is_empty(),
            "{kind}: {missing:?} is not explained: {ADD}"
        );
        let gone: Vec<_> = known.difference(&read).collect();
        assert!(
            gone.is_empty(),
            "{kind}: {gone:?} does not exist (any more)"
        );
    }
}

#[test]
fn the_types_are_those_of_serde() {
    for kind in TOML {
        for read in read_by(kind) {
            let keys = registry::keys(kind);
            let key = keys.iter().find(|key| key.path == read.path).unwrap();
            let fits = match (read.shape, key.ty) {
                // Words that are checked as text, or of which one has to be refused, are held
                // against the program by their examples.
                (ValueShape::Text, Type::Text | Type::Path | Type::Words(_))
                | (ValueShape::Switch, Type::Switch)
                | (ValueShape::Whole, Type::Whole)
                | (ValueShape::Number, Type::Number)
                | (ValueShape::List, Type::List)
                | (ValueShape::Table, Type::Table)
                | (ValueShape::Any, Type::TextOrList) => true,
                (ValueShape::Words(there), Type::Words(said)) => {
                    let refused = key.path == "evacuation.live_migrate_fallback";
                    let there: BTreeSet<_> = there
                        .iter()
                        .filter(|word| !refused || **word != "live-migrate")
                        .collect();
                    there == said.iter().collect()
                }
                _ => false,
            };
            assert!(
                fits,
                "{}: serde reads {:?}, the registry says {:?}",
                key.path, read.shape, key.ty
            );
        }
    }
}

/// A configuration in which nothing is said but what has to be, for keys of this path.
fn base(kind: ConfigKind, path: &str) -> Table {
    let text = match kind {
        ConfigKind::Scheduler => String::new(),
        _ => {
            let driver = path
                .split('.')
                .nth(1)
                .filter(|_| path.starts_with("driver."));
            let driver = driver
                .filter(|driver| *driver != "kind")
                .unwrap_or("simulated");
            let own = match driver {
                "simulated" => "inventory = { VCPU = 8 }",
                "nova" => {
                    "auth = { auth_type = \"none\" }\ncompute = { endpoint_override = \"http://nova:8774\" }"
                }
                _ => "",
            };
            format!(
                "host = \"h\"\nstate_dir = \"/tmp\"\n[driver]\nkind = \"{driver}\"\n[driver.{driver}]\n{own}\n"
            )
        }
    };
    text.parse().unwrap()
}

fn merge(into: &mut Table, more: Table) {
    for (name, value) in more {
        match (into.get_mut(&name), value) {
            (Some(Value::Table(known)), Value::Table(more)) => merge(known, more),
            (_, value) => {
                into.insert(name, value);
            }
        }
    }
}

/// Sets a key of the registry's form; the first item of a list, a row `VCPU` of a table of the
/// operator's.
fn set(table: &mut Table, path: &str, value: Option<Value>) {
    let (first, rest) = path
        .split_once('.')
        .map_or((path, None), |(first, rest)| (first, Some(rest)));
    let first = if first == "*" { "VCPU" } else { first };
    let Some(rest) = rest else {
        match value {
            Some(value) => drop(table.insert(first.to_owned(), value)),
            None => drop(table.remove(first)),
        }
        return;
    };
    let below = match first.strip_suffix("[]") {
        Some(list) => {
            let list = table
                .entry(list)
                .or_insert_with(|| Value::Array(vec![Value::Table(Table::new())]));
            list.as_array_mut().unwrap()[0].as_table_mut().unwrap()
        }
        None => {
            let below = table
                .entry(first)
                .or_insert_with(|| Value::Table(Table::new()));
            below.as_table_mut().unwrap()
        }
    };
    set(below, rest, value);
}

fn value(text: &str) -> Value {
    let table: Table = format!("value = {text}")
        .parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    table["value"].clone()
}

/// What the program makes of a table; its words if it refuses it.
fn program(kind: ConfigKind, table: &Table) -> Result<String, String> {
    match kind {
        ConfigKind::Scheduler => {
            let config: ebbtide_config::Config = Value::Table(table.clone())
                .try_into()
                .map_err(|error: toml::de::Error| error.to_string())?;
            config.check().map_err(|error| error.to_string())?;
            Ok(toml::to_string(&config).unwrap())
        }
        _ => {
            let config =
                agent::Config::from_table(table.clone()).map_err(|error| error.to_string())?;
            // Logins and drivers' settings are not in the debug output, so the table stands for
            // them.
            Ok(format!(
                "{config:?} {:?} {:?}",
                config.driver.settings,
                table.get("bus")
            ))
        }
    }
}

fn whole(kind: ConfigKind, key: &Key) -> Table {
    let mut table = base(kind, key.path);
    merge(&mut table, key.with.parse().unwrap());
    table
}

/// Keys whose example names a file that has to be there.
fn needs_files(kind: ConfigKind, key: &Key) -> bool {
    matches!(
        key.path,
        "bus.ca"
            | "bus.certificate"
            | "bus.key"
            | "engine.lifetime_model"
            | "engine.interruption_model"
            | "fence.command"
            | "driver.libvirt.template"
            | "driver.nova.nova_conf"
            | "driver.nova.nova_conf_section"
    ) || (kind == ConfigKind::Scheduler
        && key.path == "engine.weighers[].name"
        && key.example != "\"ram\"")
}

#[test]
fn every_example_is_taken_by_the_program() {
    for kind in TOML {
        for key in registry::keys(kind) {
            let mut table = whole(kind, key);
            set(&mut table, key.path, Some(value(key.example)));
            match program(kind, &table) {
                Ok(_) => {}
                Err(words) if needs_files(kind, key) => {
                    assert!(
                        words.contains("No such file")
                            || words.contains("certificate")
                            || words.contains("no file")
                            || words.contains("read"),
                        "{}: {words}",
                        key.path
                    );
                }
                Err(words) => panic!("{kind}: {} = {}: {words}", key.path, key.example),
            }
            // As `ebbtide-manage config explain` shows it.
            let shown = key.example_in_file();
            assert!(shown.parse::<Table>().is_ok(), "{shown}");
        }
    }
}

#[test]
fn the_defaults_are_those_of_the_program() {
    for kind in TOML {
        for key in registry::keys(kind) {
            let mut table = whole(kind, key);
            set(&mut table, key.path, None);
            if key.required {
                assert!(
                    program(kind, &table).is_err(),
                    "{}: it is said to be required, and is not",
                    key.path
                );
                continue;
            }
            // Whether these may be missing hangs on the role, on how the agent proves who it is, or
            // on where a plugin comes from.
            let it_depends = [
                "plugins[].file",
                "plugins[].address",
                "plugins[].certificate_file",
                "plugins[].key_file",
                "auth.certificates[].projects",
                "driver.nova.auth",
                "driver.nova.compute",
            ];
            if it_depends.contains(&key.path) {
                continue;
            }
            let without =
                program(kind, &table).unwrap_or_else(|words| panic!("{}: {words}", key.path));
            if key.default.is_empty() {
                continue;
            }
            let mut with = table.clone();
            set(&mut with, key.path, Some(value(key.default)));
            let with = program(kind, &with).unwrap_or_else(|words| panic!("{}: {words}", key.path));
            if key.path.starts_with("driver.")
                || (kind == ConfigKind::Agent && key.path.starts_with("bus."))
            {
                // Held against the settings themselves, below.
                continue;
            }
            assert_eq!(
                with, without,
                "{}: the default is not {}",
                key.path, key.default
            );
        }
    }
}

/// A table of keys that have defaults makes the same settings as none.
fn same_settings<T: serde::de::DeserializeOwned + PartialEq>(
    prefix: &str,
    path: &str,
    default: &str,
) {
    let Some(key) = path.strip_prefix(prefix) else {
        return;
    };
    let mut table = Table::new();
    set(&mut table, key, Some(value(default)));
    let with: T = Value::Table(table)
        .try_into()
        .unwrap_or_else(|error| panic!("{path}: {error}"));
    let without: T = Value::Table(Table::new()).try_into().unwrap();
    assert!(with == without, "{path}: the default is not {default}");
}

#[test]
fn the_defaults_of_the_agents_bus_and_drivers_are_those_of_their_settings() {
    for key in registry::keys(ConfigKind::Agent)
        .into_iter()
        .filter(|key| !key.default.is_empty())
    {
        let (path, default) = (key.path, key.default);
        same_settings::<agent::config::BusSettings>("bus.", path, default);
        same_settings::<agent::driver::libvirt::LibvirtSettings>("driver.libvirt.", path, default);
        same_settings::<agent::driver::nova::NovaSettings>("driver.nova.", path, default);
        same_settings::<agent::driver::simulated::SimulatedSettings>(
            "driver.simulated.",
            path,
            default,
        );
    }
}

#[test]
fn what_has_no_default_in_the_registry_is_not_set_by_the_program() {
    let shown = toml::to_string(&ebbtide_config::Config::default()).unwrap();
    let table: Table = shown.parse().unwrap();
    for key in registry::keys(ConfigKind::Scheduler) {
        if key.path.contains("[]") || key.path.contains("tls") {
            continue;
        }
        let mut there = Some(&Value::Table(table.clone())).cloned();
        for part in key.path.split('.') {
            there = there.and_then(|value| value.get(part).cloned());
        }
        assert_eq!(
            there,
            (!key.default.is_empty()).then(|| value(key.default)),
            "{}",
            key.path
        );
    }
}

#[test]
fn the_ranges_end_where_the_program_says() {
    for kind in TOML {
        for key in registry::keys(kind) {
            let Some((least, most)) = key.range else {
                continue;
            };
            let is_whole = key.ty == Type::Whole;
            let number = |number: f64| {
                if is_whole {
                    #[allow(
                        clippy::cast_possible_truncation,
                        reason = "the ends of ranges of whole numbers are whole"
                    )]
                    Value::Integer(number as i64)
                } else {
                    Value::Float(number)
                }
            };
            let asked = |at: f64| {
                let mut table = whole(kind, key);
                set(&mut table, key.path, Some(number(at)));
                program(kind, &table)
            };
            let beyond = |end: f64, up: bool| {
                let step = if is_whole {
                    1.0
                } else {
                    (end.abs() * 0.001).max(1e-6)
                };
                if up { end + step } else { end - step }
            };
            let path = key.path;
            if let Err(words) = asked(least) {
                panic!("{path} = {least} is refused: {words}");
            }
            assert!(
                asked(beyond(least, false)).is_err(),
                "{path}: less than {least} is taken"
            );
            if most.is_finite() {
                if let Err(words) = asked(most) {
                    panic!("{path} = {most} is refused: {words}");
                }
                assert!(
                    asked(beyond(most, true)).is_err(),
                    "{path}: more than {most} is taken"
                );
            }
        }
    }
}

#[test]
fn numbers_without_a_range_have_no_limits_but_those_of_their_type() {
    for kind in TOML {
        for key in registry::keys(kind) {
            if key.range.is_some() || key.ty != Type::Whole {
                continue;
            }
            for at in [0_i64, 65_535] {
                let mut table = whole(kind, key);
                set(&mut table, key.path, Some(Value::Integer(at)));
                if let Err(words) = program(kind, &table) {
                    panic!("{} = {at} is refused, so it has a range: {words}", key.path);
                }
            }
        }
    }
}

#[test]
fn what_sighup_takes_into_use_is_what_the_registry_says() {
    // scheduler/service/src/plugins/mod.rs, `read_again`.
    let taken = [
        "engine.weighers",
        "engine.cost_module",
        "engine.plugin_failure",
        "engine.cost_module_failure",
        "engine.lifetime_model",
        "engine.interruption_model",
        "engine.risk_horizon_seconds",
        "plugins",
        "shadow",
    ];
    for (kind, key) in registry::all() {
        let plain = key.path.replace("[]", "");
        let of = |taken: &[&str]| {
            let mut taken = taken.iter();
            taken.any(|taken| plain == *taken || plain.starts_with(&format!("{taken}.")))
        };
        let live = match kind {
            ConfigKind::Scheduler => of(&taken),
            // scheduler/openstack/nova-service/src/plugins.rs, `read_again`.
            ConfigKind::Nova => of(&["ebbtide.plugins", "ebbtide.cost_module"]),
            ConfigKind::Agent => false,
        };
        assert_eq!(
            key.applies == registry::Applies::Sighup,
            live,
            "{}",
            key.path
        );
    }
}
