//! Compares the registry's entries for nova.conf with the options that the readers look up and with
//! Nova's own declarations.

use ebbtide_config_check::registry::{self, ConfigKind, Type};
use ebbtide_keystone::AuthTokenOptions;
use ebbtide_nova::python::Value;
use ebbtide_nova_objects::nova_conf::{Machine, NovaConf};
use ebbtide_openstack::{AdapterOptions, AuthOptions};
use oslo_config::Config;
use oslo_messaging::RabbitOptions;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

fn read(text: &str) -> Result<(NovaConf, Config), String> {
    let mut config =
        Config::of_text(Path::new("nova.conf"), text).map_err(|error| error.to_string())?;
    let machine = Machine {
        hostname: "h".to_owned(),
        ip: "192.0.2.1".to_owned(),
    };
    let conf = NovaConf::read(&mut config, &machine).map_err(|error| error.to_string())?;
    Ok((conf, config))
}

fn known() -> BTreeSet<String> {
    registry::keys(ConfigKind::Nova)
        .iter()
        .map(|key| key.path.clone())
        .collect()
}

/// Only there so that `$state_path` has a value.
const NO_OPTION: [&str; 1] = ["DEFAULT.pybasedir"];

#[test]
fn every_option_that_is_asked_for_is_explained_and_no_other() {
    let (_, config) = read("").unwrap();
    let asked: BTreeSet<String> = config
        .asked()
        .into_iter()
        .map(|(group, name)| format!("{group}.{name}"))
        .collect();
    let known = known();
    let missing: Vec<_> = asked
        .difference(&known)
        .filter(|path| !NO_OPTION.contains(&path.as_str()))
        .collect();
    assert!(
        missing.is_empty(),
        "{missing:?}: declare it in integration/nova-objects/src/nova_conf"
    );
    let by_name = [
        "placement.",
        "oslo_messaging_rabbit.",
        // Of the Keystone crate, which declares and reads them.
        "keystone_authtoken.",
        "workarounds.disable_compute_service_check_for_ffu",
    ];
    let gone: Vec<_> = known
        .difference(&asked)
        .filter(|path| !by_name.iter().any(|by_name| path.starts_with(by_name)))
        .collect();
    assert!(
        gone.is_empty(),
        "{gone:?}: no code reads this option any more"
    );
}

/// The option names that `read` looks up.
fn asked(read: impl Fn(&dyn Fn(&str) -> Option<String>)) -> BTreeSet<String> {
    let names = RefCell::new(BTreeSet::new());
    read(&|name: &str| {
        names.borrow_mut().insert(name.replace('-', "_"));
        None
    });
    names.into_inner()
}

#[test]
fn every_option_of_rabbit_that_is_asked_for_is_explained_and_no_other() {
    let asked = asked(|lookup| drop(RabbitOptions::from_lookup(lookup)));
    let known: BTreeSet<String> = known()
        .iter()
        .filter_map(|path| {
            path.strip_prefix("oslo_messaging_rabbit.")
                .map(str::to_owned)
        })
        .collect();
    // Misspelt names of older releases, and what is read only to be refused or ignored.
    let other = [
        "rabbit_quroum_max_memory_bytes",
        "rabbit_quroum_max_memory_length",
        "enable_cancel_on_failover",
        "kombu_reconnect_timeout",
    ];
    let missing: Vec<_> = asked
        .difference(&known)
        .filter(|name| !other.contains(&name.as_str()))
        .collect();
    assert!(
        missing.is_empty(),
        "{missing:?}: declare it in integration/nova-objects/src/nova_conf/by_name.rs"
    );
    let gone: Vec<_> = known.difference(&asked).collect();
    assert!(
        gone.is_empty(),
        "{gone:?}: no code reads this option any more"
    );
}

/// Section `[keystone_authtoken]` with everything that it needs, and this.
fn authtoken(more: &str) -> Config {
    let text = format!(
        "[keystone_authtoken]\nauth_type = password\nauth_url = http://k/v3\nusername = u\n\
         user_domain_name = d\npassword = p\nproject_name = p\nproject_domain_name = d\n{more}\n"
    );
    Config::of_text(Path::new("nova.conf"), &text).unwrap()
}

#[test]
fn every_option_of_keystone_authtoken_in_the_registry_is_asked_for() {
    let config = authtoken("");
    AuthTokenOptions::read(&config).unwrap();
    let asked = config.asked();
    for key in registry::keys(ConfigKind::Nova) {
        if let Some(name) = key.path.strip_prefix("keystone_authtoken.") {
            let path = ("keystone_authtoken".to_owned(), name.to_owned());
            assert!(asked.contains(&path), "{name}: no code reads this option");
        }
    }
}

#[test]
fn every_option_of_placement_in_the_registry_is_asked_for() {
    let ask = |answers: &'static [(&'static str, &'static str)]| {
        let names = RefCell::new(BTreeSet::new());
        let lookup = |name: &str| {
            names.borrow_mut().insert(name.replace('-', "_"));
            let given = answers.iter().find(|(known, _)| *known == name);
            given.map(|(_, value)| (*value).to_owned())
        };
        let _ = AuthOptions::from_lookup("[placement]", lookup);
        let _ = AdapterOptions::placement().read("[placement]", lookup);
        names.into_inner()
    };
    let mut asked = ask(&[
        ("username", "u"),
        ("password", "p"),
        ("user_domain_name", "d"),
        ("project_name", "p"),
        ("project_domain_name", "d"),
        ("auth_url", "http://k"),
    ]);
    asked.insert("auth_section".to_owned());
    for key in registry::keys(ConfigKind::Nova) {
        if let Some(name) = key.path.strip_prefix("placement.") {
            assert!(asked.contains(name), "{name}: no code reads this option");
        }
    }
    let adapter = RefCell::new(BTreeSet::new());
    let _ = AdapterOptions::placement().read("", |name| {
        adapter.borrow_mut().insert(name.replace('-', "_"));
        None
    });
    // Older names of valid_interfaces.
    let older = ["interface", "os_interface", "endpoint_type"];
    for name in adapter.into_inner() {
        assert!(
            known().contains(&format!("placement.{name}")) || older.contains(&name.as_str()),
            "{name} is not explained"
        );
    }
}

fn file(path: &str, value: &str) -> String {
    let (group, name) = path.split_once('.').unwrap();
    format!("[{group}]\n{name} = {value}\n")
}

#[test]
fn every_example_and_default_is_taken() {
    for key in registry::keys(ConfigKind::Nova) {
        for value in [key.example.as_str(), key.default.as_str()] {
            if value == "$pybasedir" || value.is_empty() {
                continue;
            }
            if let Err(words) = read(&file(&key.path, value)) {
                panic!("{} = {value}: {words}", key.path);
            }
        }
    }
}

/// What is read, without the words of the file itself.
fn made_of(conf: &NovaConf) -> String {
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?}",
        conf.options,
        conf.general,
        conf.scheduler,
        conf.notifications.format,
        conf.notifications,
        conf.ebbtide
    ) + &format!(
        "{:?}",
        (
            (
                &conf.ebbtide.placement_patience,
                &conf.ebbtide.placement_poll,
                &conf.ebbtide.notice_timeout,
                &conf.ebbtide.act_timeout
            ),
            (&conf.ebbtide.max_in_flight, &conf.ebbtide.name),
            (
                &conf.general.rpc_response_timeout,
                &conf.general.long_rpc_timeout,
                &conf.general.debug,
                &conf.general.rpc_ping_enabled
            ),
            (
                &conf.database.connection_recycle_time,
                &conf.database.max_retries,
                &conf.database.retry_interval,
                &conf.database.mysql_sql_mode
            ),
            (
                &conf.database.max_pool_size,
                &conf.database.max_overflow,
                &conf.api_database.max_pool_size,
                &conf.api_database.max_overflow
            ),
        )
    )
}

#[test]
fn the_defaults_are_what_is_read_from_an_empty_file() {
    let empty = made_of(&read("").unwrap().0);
    for key in registry::keys(ConfigKind::Nova) {
        // Kept as text, or not set and then the other program's own.
        let elsewhere = [
            "placement.",
            "oslo_messaging_rabbit.",
            "workarounds.disable_compute",
        ];
        let as_text = [
            "ebbtide.cost_module",
            "ebbtide.bus_prefix",
            "DEFAULT.state_path",
            "scheduler.discover_hosts_in_cells_interval",
        ];
        if key.default.is_empty()
            || elsewhere.iter().any(|other| key.path.starts_with(other))
            || as_text.contains(&key.path.as_str())
        {
            continue;
        }
        let set = made_of(&read(&file(&key.path, &key.default)).unwrap().0);
        assert_eq!(
            set, empty,
            "{}: the default is not {}",
            key.path, key.default
        );
    }
    assert_eq!(ebbtide_cost_modules::DEFAULT, "partial_hour");
    let rabbit = |text: Option<&'static str>, name: &'static str| {
        format!(
            "{:?}",
            RabbitOptions::from_lookup(move |asked| (asked == name).then_some(text?.to_owned()))
                .map_err(|error| error.to_string())
        )
    };
    for key in registry::keys(ConfigKind::Nova) {
        if let Some(name) = key.path.strip_prefix("oslo_messaging_rabbit.")
            && !key.default.is_empty()
        {
            assert_eq!(
                rabbit(Some(&key.default), name),
                rabbit(None, name),
                "{name}: the default is not {}",
                key.default
            );
        }
    }
}

#[test]
fn the_ranges_end_where_nova_or_ebbtide_says() {
    for key in registry::keys(ConfigKind::Nova) {
        let Some((least, most)) = key.range else {
            continue;
        };
        let shown = |number: f64| {
            if key.ty == Type::Whole {
                format!("{number:.0}")
            } else {
                format!("{number}")
            }
        };
        let rabbit = key.path.strip_prefix("oslo_messaging_rabbit.");
        let placement = key.path.strip_prefix("placement.");
        let keystone = key.path.strip_prefix("keystone_authtoken.");
        let taken = |number: f64| {
            let text = shown(number);
            if let Some(name) = keystone {
                return AuthTokenOptions::read(&authtoken(&format!("{name} = {text}"))).is_ok();
            }
            match (rabbit, placement) {
                (Some(name), _) => {
                    RabbitOptions::from_lookup(|asked| (asked == name).then(|| text.clone()))
                        .is_ok()
                }
                (_, Some(name)) => AdapterOptions::placement()
                    .read("", |asked| (asked == name).then(|| text.clone()))
                    .is_ok(),
                _ => read(&file(&key.path, &text)).is_ok(),
            }
        };
        assert!(taken(least), "{} = {least} is refused", key.path);
        assert!(
            !taken(least - 1.0),
            "{}: less than {least} is taken",
            key.path
        );
        if most.is_finite() {
            assert!(taken(most), "{} = {most} is refused", key.path);
            assert!(
                !taken(most + 1.0),
                "{}: more than {most} is taken",
                key.path
            );
        }
    }
}

#[test]
fn the_types_are_those_that_nova_declares() {
    for (group, name) in ebbtide_nova::options::declared_names() {
        let keys = registry::keys(ConfigKind::Nova);
        let Some(key) = keys
            .iter()
            .find(|key| key.path == format!("{group}.{name}"))
        else {
            continue;
        };
        let takes = |text: &str| {
            ebbtide_nova::options::check(group, name, &Value::Str(text.to_owned())).is_ok()
        };
        let (word, number, fraction) = (takes("nonsense"), takes("7"), takes("7.5"));
        let fits = match &key.ty {
            Type::Switch => !word && !number && takes("true"),
            Type::Whole => !word && number && !fraction,
            Type::Number => !word && fraction,
            Type::Text | Type::Path | Type::List => {
                word || key.path == "filter_scheduler.image_properties_default_architecture"
            }
            Type::Words(words) => !word && words.iter().all(|word| takes(word)),
            Type::Table | Type::TextOrList => false,
        };
        assert!(fits, "{}: Nova does not declare it as {}", key.path, key.ty);
    }
}
