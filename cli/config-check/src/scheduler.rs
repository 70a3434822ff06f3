//! Judging the scheduler's TOML.

use crate::finding::{EffectiveOrder, Finding, Level, code};
use crate::toml_file::{TomlFile, refusals};
use crate::weights::{self, ActiveWeigher, Order};
use crate::{Files, secrets};
use ebbtide_config::{AgentIdentity, Config, Tls};
use ebbtide_engine::RankingPolicy;
use ebbtide_model::{LifeTable, LifeTables, names, toml_text};
use toml::{Table, Value};

/// Everything about a file's text.
pub(crate) fn check(text: &str, files: &dyn Files) -> (Vec<Finding>, Option<EffectiveOrder>) {
    let (file, mut found) = match TomlFile::read(crate::ConfigKind::Scheduler, text) {
        Ok(read) => read,
        Err(syntax) => return (vec![*syntax], None),
    };
    found.extend(refusals(&file, crate::ConfigKind::Scheduler, refused));
    // Warnings about a file that is not used would speak of what is not so.
    let Ok(config) = Value::Table(file.table.clone()).try_into::<Config>() else {
        return (found, None);
    };
    found.extend(secrets::check(crate::ConfigKind::Scheduler, &file, files));
    found.extend(keys(&file, &config, files));
    found.extend(plugins(&file, &config, files));
    found.extend(models(&file, &config, files));
    found.extend(listeners(&file, &config));
    found.extend(pointless(&file, &config));
    let weighers = in_use(&file, &config);
    let order = match config.engine.policy {
        RankingPolicy::Tiered => Order::Tiered,
        RankingPolicy::Nova => Order::Weights,
        RankingPolicy::FirstFit => Order::FirstFit,
    };
    found.extend(weights::findings(order, &weighers));
    let effective = weights::effective(order, &config.engine.cost_module, &weighers);
    (found, Some(effective))
}

/// What the scheduler says against it.
fn refused(table: &Table) -> Option<(&'static str, String)> {
    match Value::Table(table.clone()).try_into::<Config>() {
        Err(error) => {
            // The message, without values, and behind it the key.
            let all = error.to_string();
            let key = all.strip_prefix(error.message()).unwrap_or_default();
            let words = format!("{}{key}", toml_text::without_values(error.message()));
            Some(("EB-SERVICE-004", words.trim().replace('\n', " ")))
        }
        Ok(mut config) => {
            // The files are judged by themselves; what needs one is content if one is named.
            let engine = &mut config.engine;
            engine.lifetimes = engine.lifetime_model.as_ref().and_then(|_| any_life());
            engine.interruptions = engine.interruption_model.as_ref().and_then(|_| any_life());
            let error = config.check().err()?;
            Some((error.code(), names::hide_logins(&error.to_string())))
        }
    }
}

/// Private keys of TLS that everybody can read.
fn keys(file: &TomlFile, config: &Config, files: &dyn Files) -> Vec<Finding> {
    let of = |section: &str, tls: &Option<Tls>| {
        let key = format!("{section}.tls.key");
        let mode = files.mode_of(&tls.as_ref()?.key)?;
        secrets::readable(mode, "it is a private key", key.clone(), file.place(&key))
    };
    [of("grpc", &config.grpc.tls), of("http", &config.http.tls)]
        .into_iter()
        .flatten()
        .collect()
}

/// Stands for the models of a file.
fn any_life() -> Option<LifeTables> {
    LifeTable::new(&[(0.0, 1.0), (1.0, 0.5)], 1.0).map(|life| LifeTables::new(life, Vec::new()))
}

/// The weighers as the scheduler adds them up, plugins behind those that are named.
fn in_use(file: &TomlFile, config: &Config) -> Vec<ActiveWeigher> {
    let built_in = ebbtide_weighers::all();
    let named = file.has("engine.weighers");
    let plugins = || config.plugins.iter().filter(|plugin| plugin.enabled);
    let mut weighers: Vec<ActiveWeigher> = Vec::new();
    for (position, weigher) in config.engine.weighers.iter().enumerate() {
        let plain = weigher.name.replace('-', "_");
        let plugin = plugins().find(|plugin| plugin.name == weigher.name);
        let default = built_in.iter().find(|known| known.name() == plain);
        let (multiplier, from) = match (
            weigher.multiplier,
            plugin.and_then(|plugin| plugin.multiplier),
        ) {
            (Some(multiplier), _) => (Some(multiplier), "file"),
            (None, Some(multiplier)) => (Some(multiplier), "plugins"),
            (None, None) if plugin.is_some() => (None, "plugins"),
            (None, None) => (default.map(|known| known.default_multiplier()), "default"),
        };
        let row = format!("engine.weighers[{position}]");
        let key = if weigher.multiplier.is_some() {
            format!("{row}.multiplier")
        } else {
            row
        };
        weighers.push(ActiveWeigher {
            name: weigher.name.clone(),
            multiplier,
            from,
            at: file.place(&key),
            key,
            given: weigher.multiplier.is_some(),
            named,
            plugin: plugin.is_some(),
        });
    }
    for (position, plugin) in config.plugins.iter().enumerate() {
        let known = weighers.iter().any(|weigher| weigher.name == plugin.name);
        if !plugin.enabled || known || plugin.name == config.engine.cost_module {
            continue;
        }
        let key = format!("plugins[{position}]");
        weighers.push(ActiveWeigher {
            name: plugin.name.clone(),
            multiplier: plugin.multiplier,
            from: "plugins",
            at: file.place(&key),
            key,
            given: plugin.multiplier.is_some(),
            named: true,
            plugin: true,
        });
    }
    weighers
}

fn plugins(file: &TomlFile, config: &Config, files: &dyn Files) -> Vec<Finding> {
    let mut found = Vec::new();
    for (position, plugin) in config.plugins.iter().enumerate() {
        let key = format!("plugins[{position}].file");
        // A service is looked for where it is used, not here.
        let component = plugin.file.as_ref();
        if let Some(component) = component.filter(|component| !files.exists(component)) {
            let shown = component.display();
            let (level, why, next) = if component.is_absolute() {
                (
                    Level::Error,
                    "the scheduler reads every plugin at its start, those that are not enabled included, and does not start without",
                    format!(
                        "build it, or correct the path; `ebbtide-lab plugin check {shown}` tries it"
                    ),
                )
            } else {
                (
                    Level::Warning,
                    "a relative path is looked for where the scheduler is started, which may be another place than here",
                    "write the whole path".to_owned(),
                )
            };
            found.push(
                Finding::new(level, code::PLUGIN_FILE, key.clone())
                    .at(file.place(&key))
                    .what(format!(
                        "plugin {:?}: there is no file {shown}",
                        plugin.name
                    ))
                    .why(why)
                    .next(next),
            );
        }
        let replaced = [
            (ebbtide_weighers::names(), "weigher"),
            (ebbtide_cost_modules::names(), "cost module"),
        ];
        for (names, what) in replaced {
            if plugin.enabled && names.contains(&plugin.name) {
                let key = format!("plugins[{position}].name");
                found.push(
                    Finding::new(Level::Warning, code::ELSEWHERE, key.clone())
                        .at(file.place(&key))
                        .what(format!("plugin {:?} has the name of a built-in {what}", plugin.name))
                        .why(format!("if it is a {what} it takes the place of the built-in one, wherever that is named"))
                        .next("choose another name, unless that is meant"),
                );
            }
        }
        if !plugin.enabled {
            let key = format!("plugins[{position}].enabled");
            found.push(
                Finding::new(Level::Note, code::NO_EFFECT, key.clone())
                    .at(file.place(&key))
                    .what(format!("plugin {:?} is not enabled", plugin.name))
                    .why("it is read and checked, and asked nothing")
                    .next("`ebbtide plugin list` shows what a running scheduler uses"),
            );
        }
        if !plugin.grants.is_empty() {
            let key = format!("plugins[{position}].grants");
            found.push(
                Finding::new(Level::Note, code::ELSEWHERE, key.clone())
                    .at(file.place(&key))
                    .what(format!("plugin {:?} is granted {}", plugin.name, plugin.grants.join(" and ")))
                    .why("the same request may be decided otherwise the next time, and an explanation cannot be repeated")
                    .next("take the grant away if the plugin works without"),
            );
        }
    }
    found
}

/// Files of models are read with the configuration, whether something uses them or not.
fn models(file: &TomlFile, config: &Config, files: &dyn Files) -> Vec<Finding> {
    let engine = &config.engine;
    let named = [
        ("lifetime_model", &engine.lifetime_model),
        ("interruption_model", &engine.interruption_model),
    ];
    let mut found = Vec::new();
    for (name, path) in named {
        let Some(path) = path else { continue };
        let Err(error) = files.model(name, path) else {
            continue;
        };
        let key = format!("engine.{name}");
        let (level, why, next) = if path.is_absolute() {
            (
                Level::Error,
                "the scheduler reads it at its start, even if nothing uses it, and does not start without",
                "make it with `ebbtide-lab model fit --output json`, or correct the path",
            )
        } else {
            (
                Level::Warning,
                "a relative path is looked for where the scheduler is started, which may be another place than here",
                "write the whole path",
            )
        };
        found.push(
            Finding::new(level, code::MODEL_FILE, key.clone())
                .at(file.place(&key))
                .what(format!(
                    "{}: {}",
                    error.code(),
                    names::hide_logins(&error.to_string())
                ))
                .why(why)
                .next(next),
        );
    }
    found
}

/// Listeners that strangers can use, although the operator has decided so.
fn listeners(file: &TomlFile, config: &Config) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut open = |key: &str, what: String, why: &str, next: &str| {
        found.push(
            Finding::new(Level::Warning, code::OPEN, key)
                .at(file.place(key))
                .what(what)
                .why(why)
                .next(next),
        );
    };
    for (section, listen, tls, insecure) in [
        (
            "grpc",
            config.grpc.listen,
            config.grpc.tls.is_some(),
            config.grpc.insecure,
        ),
        (
            "http",
            config.http.listen,
            config.http.tls.is_some(),
            config.http.insecure,
        ),
    ] {
        if !listen.ip().is_loopback() && insecure && !tls {
            open(
                &format!("{section}.insecure"),
                format!("{section} listens on {listen} without TLS"),
                "everything, tokens included, can be read on the way, unless something in front does TLS",
                &format!("write a [{section}.tls], or let it listen on 127.0.0.1 behind the proxy"),
            );
        }
        if !listen.ip().is_loopback() && !config.auth.is_configured() {
            open(
                "auth.allow_unauthenticated",
                format!("{section} listens on {listen} without authentication"),
                "everybody who can connect is an operator and may evict everything",
                "set auth.tokens; `ebbtide-manage token create` makes the file",
            );
        }
    }
    let remote: Vec<&String> = config
        .bus
        .urls
        .iter()
        .filter(|url| !secrets::is_local(url))
        .collect();
    if config.bus.insecure && remote.iter().any(|url| url.starts_with("amqp://")) {
        open(
            "bus.insecure",
            "a broker on another machine is reached in plain text".to_owned(),
            "its password and every notice can be read and changed on the way",
            "use amqps://",
        );
    }
    if !remote.is_empty() && config.bus.agent_identity == AgentIdentity::None {
        open(
            "bus.agent_identity",
            "agents on other machines are believed whatever they say".to_owned(),
            "every client with a broker login can report any host as empty, dead or evacuated",
            "give every agent a login of its own and write agent_identity = \"user-id\" (docs/operate/security.md)",
        );
    }
    found
}

/// Keys that are there and have no effect as the others are.
fn pointless(file: &TomlFile, config: &Config) -> Vec<Finding> {
    let engine = &config.engine;
    let module = engine.cost_module.replace('-', "_");
    let uses = |names: &[&str]| names.contains(&module.as_str());
    let weighs = |name: &str| {
        engine
            .weighers
            .iter()
            .any(|weigher| weigher.name.replace('-', "_") == name)
    };
    let first_fit = engine.policy == RankingPolicy::FirstFit;
    let amqps = config
        .bus
        .urls
        .iter()
        .any(|url| url.starts_with("amqps://"));
    let none = config.bus.agent_identity == AgentIdentity::None;
    let remote =
        [&config.grpc.listen, &config.http.listen].map(|listen| !listen.ip().is_loopback());
    let built_in = ebbtide_cost_modules::names().contains(&module);
    let rows: [(&str, bool, &str, &str); 19] = [
        (
            "engine.period_seconds",
            built_in
                && !uses(&["partial_hour", "revenue", "fairness"])
                && !weighs("partial_hour_sum"),
            "the cost module has no billing period",
            "remove it, or choose partial_hour, revenue or fairness",
        ),
        (
            "engine.horizon_seconds",
            built_in && !uses(&["oldest_first"]),
            "only the cost module oldest_first has a horizon",
            "remove it, or choose oldest_first",
        ),
        (
            "engine.fairness_seconds",
            built_in && !uses(&["fairness"]),
            "only the cost module fairness charges for further victims of a project",
            "remove it, or choose fairness",
        ),
        (
            "engine.lifetime_model",
            built_in && !uses(&["remaining_lifetime"]),
            "only the cost module remaining_lifetime asks how long instances live",
            "remove it, or choose remaining_lifetime",
        ),
        (
            "engine.interruption_model",
            !weighs("interruption_risk"),
            "only the weigher interruption_risk asks how soon instances are interrupted",
            "remove it, or add interruption_risk to engine.weighers",
        ),
        (
            "engine.risk_horizon_seconds",
            !weighs("interruption_risk"),
            "only the weigher interruption_risk has a horizon",
            "remove it, or add interruption_risk to engine.weighers",
        ),
        (
            "engine.host_subset_size",
            first_fit && engine.host_subset_size > 1,
            "first-fit always takes the first host",
            "remove it, or choose another policy",
        ),
        (
            "engine.shuffle_best_same_weighed_hosts",
            first_fit && engine.shuffle_best_same_weighed_hosts,
            "first-fit weighs nothing, so no hosts share a weight",
            "remove it, or choose another policy",
        ),
        (
            "database.keep_days",
            file.has("database.keep_minutes"),
            "database.keep_minutes counts instead",
            "keep one of the two",
        ),
        (
            "database.sqlite_max_pages",
            !config.database.url.starts_with("sqlite:"),
            "the database is no SQLite",
            "remove it",
        ),
        (
            "bus.agent_user",
            none,
            "agent_identity is \"none\": no login is looked at",
            "write agent_identity = \"user-id\"",
        ),
        (
            "bus.agent_users",
            none,
            "agent_identity is \"none\": no login is looked at",
            "write agent_identity = \"user-id\"",
        ),
        (
            "bus.ca",
            !amqps,
            "no URL of bus.urls begins with amqps://",
            "use amqps://, or remove it",
        ),
        (
            "bus.certificate",
            !amqps,
            "no URL of bus.urls begins with amqps://",
            "use amqps://, or remove it",
        ),
        (
            "grpc.insecure",
            config.grpc.insecure && !remote[0],
            "grpc.listen is a loopback address, which needs no TLS",
            "remove it, or it lets strangers in when an operator changes grpc.listen",
        ),
        (
            "http.insecure",
            config.http.insecure && !remote[1],
            "http.listen is a loopback address, which needs no TLS",
            "remove it, or it lets strangers in when an operator changes http.listen",
        ),
        (
            "auth.allow_unauthenticated",
            config.auth.allow_unauthenticated
                && (config.auth.is_configured() || remote == [false, false]),
            "callers are asked who they are, or nothing listens outside of this machine",
            "remove it, or it lets strangers in when an operator changes the rest",
        ),
        (
            "auth.open_metrics",
            config.auth.open_metrics && !config.auth.is_configured(),
            "there is no authentication, so /metrics is open anyway",
            "remove it, or set auth.tokens",
        ),
        (
            "bus.insecure",
            config.bus.insecure
                && config
                    .bus
                    .urls
                    .iter()
                    .all(|url| secrets::is_local(url) || url.starts_with("amqps://")),
            "all brokers are on this machine or reached by TLS",
            "remove it, or it opens the bus when an operator changes bus.urls",
        ),
    ];
    let mut found = Vec::new();
    for (key, without, why, next) in rows {
        if without && file.has(key) {
            found.push(no_effect(file, key, why, next));
        }
    }
    if !config.region.market.enabled {
        for key in [
            "interval_seconds",
            "floor_percent",
            "ceiling_percent",
            "steepness",
            "step_percent",
        ] {
            let key = format!("region.market.{key}");
            if file.has(&key) {
                found.push(no_effect(
                    file,
                    &key,
                    "region.market.enabled is false: prices are what flavors say",
                    "remove it, or switch the market on",
                ));
            }
        }
    }
    let back = &config.region.comeback;
    if !back.enabled {
        for key in [
            "first_seconds",
            "max_seconds",
            "window_seconds",
            "reserve_percent",
            "hold_seconds",
            "at_once",
        ] {
            let key = format!("region.comeback.{key}");
            if file.has(&key) {
                found.push(no_effect(
                    file,
                    &key,
                    "region.comeback.enabled is false: no server comes back",
                    "remove it, or switch comebacks on",
                ));
            }
        }
    }
    if engine.cost_module_failure == Some(engine.plugin_failure) {
        found.push(no_effect(
            file,
            "engine.cost_module_failure",
            "engine.plugin_failure says the same",
            "remove it",
        ));
    }
    found
}

fn no_effect(file: &TomlFile, key: &str, why: &str, next: &str) -> Finding {
    Finding::new(Level::Warning, code::NO_EFFECT, key)
        .at(file.place(key))
        .what(format!("{key} has no effect"))
        .why(why)
        .next(next)
}
