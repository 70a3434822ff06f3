//! Judging the agent's TOML.

use crate::finding::{Finding, Level, code};
use crate::registry::ConfigKind;
use crate::toml_file::{TomlFile, refusals};
use crate::{Files, secrets};
use ebbtide_agent::Config;
use ebbtide_agent::driver::registry;
use ebbtide_model::names;
use toml::{Table, Value};

/// The scheduler's default of `region.host_down_seconds`.
fn host_down_seconds() -> f64 {
    ebbtide_config::Config::default()
        .region
        .host_down_seconds
        .0
        .into()
}

/// Everything about a file's text.
pub(crate) fn check(text: &str, files: &dyn Files) -> Vec<Finding> {
    let (file, mut found) = match TomlFile::read(ConfigKind::Agent, text) {
        Ok(read) => read,
        Err(syntax) => return vec![*syntax],
    };
    let kind = driver(&file.table);
    for finding in &mut found {
        let own = format!("driver.{kind}.");
        if finding.key.starts_with("driver.")
            && !finding.key.starts_with(&own)
            && finding.key.matches('.').count() > 1
        {
            finding.level = Level::Warning;
            finding.why = format!(
                "the driver is {kind}, so nothing of this table is read; with its own driver the agent would not start"
            );
        }
    }
    found.extend(refusals(&file, ConfigKind::Agent, refused));
    found.extend(secrets::check(ConfigKind::Agent, &file, files));
    found.extend(other_drivers(&file, &kind));
    if let Ok(config) = Config::from_table(file.table.clone()) {
        found.extend(sense(&file, &config));
    }
    found
}

fn driver(table: &Table) -> String {
    let kind = table.get("driver").and_then(|driver| driver.get("kind"));
    kind.and_then(Value::as_str)
        .unwrap_or(registry::DEFAULT)
        .to_owned()
}

/// What the agent says against it.
fn refused(table: &Table) -> Option<(&'static str, String)> {
    let error = Config::from_table(table.clone()).err()?;
    Some((error.code(), names::hide_logins(&error.to_string())))
}

fn other_drivers(file: &TomlFile, kind: &str) -> Vec<Finding> {
    let driver = file.table.get("driver").and_then(Value::as_table);
    let others = driver.into_iter().flat_map(Table::keys);
    let others = others.filter(|name| *name != "kind" && *name != kind);
    others
        .map(|name| {
            let key = format!("driver.{name}");
            Finding::new(Level::Note, code::NO_EFFECT, key.clone())
                .at(file.place(&key))
                .what(format!("[{key}] has no effect: driver.kind is \"{kind}\""))
                .why("settings of a driver that is not used may stay in the file")
                .next(format!("nothing; or write driver.kind = \"{name}\""))
        })
        .collect()
}

fn sense(file: &TomlFile, config: &Config) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut warn = |code: &'static str, key: &str, what: String, why: &str, next: &str| {
        if file.has(key) {
            let finding = Finding::new(Level::Warning, code, key);
            found.push(finding.at(file.place(key)).what(what).why(why).next(next));
        }
    };
    let beat = config.agent.heartbeat_seconds;
    let down = host_down_seconds();
    if beat * 3.0 > down {
        warn(
            code::TIMES,
            "agent.heartbeat_seconds",
            format!(
                "a heartbeat every {beat} s is more than a third of {down} s, after which a scheduler takes the host for dead by default"
            ),
            "one or two heartbeats that get lost, and the host gets no new servers",
            &format!(
                "use {} or less, or raise region.host_down_seconds of the scheduler to three times this",
                down / 3.0
            ),
        );
    }
    let policy = &config.evacuation;
    if policy.escalate_to_terminate {
        warn(
            code::ELSEWHERE,
            "evacuation.escalate_to_terminate",
            "a victim that can be neither stopped nor hibernated is terminated".to_owned(),
            "its memory, and with it the tenant's work, is lost, although the flavor promises to keep it",
            "leave it false unless your tenants know",
        );
    }
    if config.fence.command.is_empty() {
        for key in ["fence.tries", "fence.timeout_seconds"] {
            warn(
                code::NO_EFFECT,
                key,
                format!("{key} has no effect: there is no fence.command"),
                "a victim that the hypervisor does not end stays",
                "name the fence program, or remove the key",
            );
        }
    }
    let urls = urls(&file.table);
    let plain = |url: &String| url.starts_with("amqp://");
    if config.bus.insecure && urls.iter().any(|url| plain(url) && !secrets::is_local(url)) {
        warn(
            code::OPEN,
            "bus.insecure",
            "a broker on another machine is reached in plain text".to_owned(),
            "its password and every notice can be read and changed on the way",
            "use amqps://",
        );
    }
    if config.bus.insecure && urls.iter().all(|url| !plain(url) || secrets::is_local(url)) {
        warn(
            code::NO_EFFECT,
            "bus.insecure",
            "bus.insecure has no effect".to_owned(),
            "all brokers are on this machine or reached by TLS",
            "remove it, or it opens the bus when an operator changes bus.urls",
        );
    }
    if urls.iter().all(plain) {
        for key in ["bus.ca", "bus.certificate"] {
            warn(
                code::NO_EFFECT,
                key,
                format!("{key} has no effect"),
                "no URL of bus.urls begins with amqps://",
                "use amqps://, or remove it",
            );
        }
    }
    found
}

fn urls(table: &Table) -> Vec<String> {
    match table.get("bus").and_then(|bus| bus.get("urls")) {
        Some(Value::String(url)) => vec![url.clone()],
        Some(Value::Array(urls)) => urls
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => vec!["amqp://127.0.0.1".to_owned()],
    }
}
