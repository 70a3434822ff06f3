//! Secrets in files that everybody can read.

use crate::Files;
use crate::finding::{Finding, Level, Position, code};
use crate::registry::{self, ConfigKind};
use crate::toml_file::TomlFile;
use toml::Value;

/// Read by everybody on the machine.
const OTHERS_READ: u32 = 0o004;

/// The login that every RabbitMQ has and takes from its own machine only: no secret.
const GUEST: &str = "guest:guest";

/// True if a URL has a password in it that is worth something.
pub(crate) fn has_password(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else {
        return false;
    };
    let rest = rest.split(['/', '?']).next().unwrap_or_default();
    let logins = rest.split(',').filter_map(|place| place.rsplit_once('@'));
    logins.into_iter().any(|(login, _)| {
        let password = login.split_once(':').map(|(_, password)| password);
        login != GUEST && password.is_some_and(|password| !password.is_empty())
    })
}

/// True if a URL leads to this machine.
pub(crate) fn is_local(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let place = rest.split(['/', '?']).next().unwrap_or_default();
    let place = place.rsplit('@').next().unwrap_or_default();
    let host = if place.starts_with('[') {
        place
            .split(']')
            .next()
            .unwrap_or_default()
            .trim_start_matches('[')
    } else {
        place.split(':').next().unwrap_or_default()
    };
    host.is_empty()
        || host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// The finding, if everybody can read the file.
pub(crate) fn finding(files: &dyn Files, key: String, at: Option<Position>) -> Option<Finding> {
    readable(files.mode()?, "there is a secret in the file", key, at)
}

/// The finding about a file of this mode.
pub(crate) fn readable(mode: u32, why: &str, key: String, at: Option<Position>) -> Option<Finding> {
    (mode & OTHERS_READ != 0).then(|| {
        Finding::new(Level::Warning, code::READABLE, key)
            .at(at)
            .what(format!(
                "{why}, and everybody on the machine can read it (mode {:o})",
                mode & 0o777
            ))
            .why("every client with the secret acts as the service")
            .next("chmod o= on the file, and chgrp to the group of the service")
    })
}

/// The first secret of a TOML file that everybody can read.
pub(crate) fn check(kind: ConfigKind, file: &TomlFile, files: &dyn Files) -> Option<Finding> {
    let keys = registry::keys(kind).iter().filter(|key| key.secret);
    let key = keys.into_iter().find(|key| {
        let mut value = Some(&Value::Table(file.table.clone())).cloned();
        for part in key.path.split('.') {
            value = value.and_then(|value| value.get(part).cloned());
        }
        value.is_some_and(|value| is_secret(&value))
    })?;
    finding(files, key.path.clone(), file.place(&key.path))
}

fn is_secret(value: &Value) -> bool {
    match value {
        Value::String(text) => has_password(text),
        Value::Array(items) => items.iter().any(is_secret),
        Value::Table(table) => table.iter().any(|(name, value)| {
            let telling = ["password", "passwd", "secret", "token"];
            let named = telling
                .iter()
                .any(|word| name.to_lowercase().contains(word));
            (named && value.as_str().is_some_and(|text| !text.is_empty())) || is_secret(value)
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_seen_and_the_guest_is_none() {
        assert!(has_password("mysql://u:p@h/d"));
        assert!(has_password("rabbit://u:p@a:1,u:p@b:2/v"));
        assert!(!has_password("amqp://guest:guest@127.0.0.1:5672/%2f"));
        assert!(!has_password("sqlite:///var/lib/e.db"));
        assert!(!has_password("mysql://u@h/d"));
    }

    #[test]
    fn this_machine_is_known_by_its_addresses() {
        for local in [
            "amqp://u:p@127.0.0.1:5672/",
            "amqp://localhost",
            "amqp://u:p@[::1]:5672/",
            "rabbit://",
        ] {
            assert!(is_local(local), "{local}");
        }
        assert!(!is_local("amqp://u:p@mq1:5672/"));
    }
}
