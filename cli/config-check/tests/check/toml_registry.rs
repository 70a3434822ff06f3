//! The declared keys of TOML against the programs' own checks: examples, ranges, what is required.

use crate::surroundings;
use ebbtide_agent as agent;
use ebbtide_config_check::registry::{self, ConfigKind, Key, Type};
use std::collections::BTreeSet;
use toml::{Table, Value};

const TOML: [ConfigKind; 2] = [ConfigKind::Scheduler, ConfigKind::Agent];

#[test]
fn every_key_is_there_once_with_a_text_and_an_example() {
    for (kind, key) in registry::all() {
        let once = registry::keys(kind).iter().filter(|k| k.path == key.path);
        assert_eq!(once.count(), 1, "{kind}: {}", key.path);
        assert!(!key.what.is_empty(), "{kind}: {} has no text", key.path);
        let none = kind == ConfigKind::Agent && key.path == "driver.libvirt.notice.agent_file";
        assert!(none || !key.example.is_empty(), "{kind}: {}", key.path);
    }
}

#[test]
fn both_clouds_have_the_same_default_grace_period() {
    let default = |kind, path: &str| {
        let mut keys = registry::keys(kind).iter();
        keys.find(|key| key.path == path).unwrap().default.clone()
    };
    assert_eq!(
        default(ConfigKind::Scheduler, "region.default_grace_seconds"),
        default(ConfigKind::Nova, "ebbtide.default_grace"),
        "both are DEFAULT_GRACE_TEXT of model/src/flavor.rs"
    );
}

#[test]
fn every_driver_has_its_table() {
    let tables: BTreeSet<&str> = registry::keys(ConfigKind::Agent)
        .iter()
        .filter_map(|key| key.path.strip_prefix("driver.")?.split_once('.'))
        .map(|(table, _)| table)
        .collect();
    let drivers = agent::driver::registry::DRIVERS.iter();
    assert_eq!(tables, drivers.map(|driver| driver.name).collect());
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
    let mut table = base(kind, &key.path);
    // The agent's pages have no TLS.
    if (kind, key.path.as_str()) != (ConfigKind::Agent, "http.listen") {
        merge(&mut table, surroundings::of(&key.path).parse().unwrap());
    }
    table
}

/// Keys whose example names a file that has to be there.
fn needs_files(kind: ConfigKind, key: &Key) -> bool {
    matches!(
        key.path.as_str(),
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
            set(&mut table, &key.path, Some(value(&key.example)));
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
fn a_key_is_required_exactly_if_the_program_refuses_to_do_without() {
    // Whether these may be missing hangs on the role, on how the agent proves who it is, or on
    // where a plugin comes from.
    let it_depends = [
        "plugins[].file",
        "plugins[].address",
        "plugins[].certificate_file",
        "plugins[].key_file",
        "auth.certificates[].projects",
        "driver.nova.auth",
        "driver.nova.compute",
    ];
    for kind in TOML {
        for key in registry::keys(kind) {
            if it_depends.contains(&key.path.as_str()) {
                continue;
            }
            let mut table = whole(kind, key);
            set(&mut table, &key.path, None);
            let without = program(kind, &table);
            assert_eq!(without.is_err(), key.required, "{}: {without:?}", key.path);
        }
    }
}

#[test]
fn every_default_is_taken_and_in_its_range() {
    for kind in TOML {
        for key in registry::keys(kind) {
            if key.default.is_empty() {
                continue;
            }
            let default = value(&key.default);
            let number = default
                .as_float()
                .or_else(|| default.as_integer().map(|whole| whole as f64));
            if let (Some((least, most)), Some(number)) = (key.range, number) {
                assert!((least..=most).contains(&number), "{}", key.path);
            }
            let mut table = whole(kind, key);
            set(&mut table, &key.path, Some(default));
            if let Err(words) = program(kind, &table) {
                panic!("{}: {words}", key.path);
            }
        }
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
                set(&mut table, &key.path, Some(number(at)));
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
            let path = &key.path;
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
                set(&mut table, &key.path, Some(Value::Integer(at)));
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
        // scheduler/service/src/logins.rs.
        "bus.urls",
        "database.url",
    ];
    // scheduler/openstack/nova-service/src/logins.rs, and `read_again` of plugins.rs.
    let of_nova = [
        "ebbtide.plugins",
        "ebbtide.cost_module",
        "ebbtide.connection",
        "ebbtide.bus_url",
        "DEFAULT.transport_url",
        "oslo_messaging_notifications.transport_url",
        "database.connection",
        "api_database.connection",
        "placement.auth_type",
        "placement.auth_section",
        "placement.auth_url",
        "placement.username",
        "placement.user_id",
        "placement.password",
        "placement.user_domain_name",
        "placement.user_domain_id",
        "placement.project_name",
        "placement.project_id",
        "placement.project_domain_name",
        "placement.project_domain_id",
        "placement.system_scope",
        "keystone_authtoken.auth_section",
    ];
    for (kind, key) in registry::all() {
        let plain = key.path.replace("[]", "");
        let of = |taken: &[&str]| {
            let mut taken = taken.iter();
            taken.any(|taken| plain == *taken || plain.starts_with(&format!("{taken}.")))
        };
        let live = match kind {
            ConfigKind::Scheduler => of(&taken),
            ConfigKind::Nova => of(&of_nova),
            // compute-agent/src/logins.rs.
            ConfigKind::Agent => of(&["bus.urls", "driver.nova.auth"]),
        };
        assert_eq!(
            key.applies == registry::Applies::Sighup,
            live,
            "{}",
            key.path
        );
    }
}
