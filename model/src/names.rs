//! What a name may look like. One rule for each kind, used wherever a name comes in.

use crate::ModelError;

/// Longest name of a host, project, flavor, server, zone: as in Nova's tables.
pub const MAX_NAME: usize = 255;
/// Longest host name: it becomes part of a queue name, and AMQP allows 255 bytes for all of it.
pub const MAX_HOST_NAME: usize = 200;

/// Checks a host name: letters, digits, `.`, `-` and `_`, as host names and queue names allow.
///
/// # Errors
/// [`ModelError::Name`] with what is allowed.
pub fn check_host_name(name: &str) -> Result<(), ModelError> {
    let good = !name.is_empty()
        && name.len() <= MAX_HOST_NAME
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
    if good {
        Ok(())
    } else {
        Err(ModelError::Name {
            what: "host name",
            value: shorten(name),
            allowed: "use 1 to 200 letters, digits, '.', '-' and '_'",
        })
    }
}

/// Checks the name of a server, flavor, project, zone, aggregate or group: printable, not blank at either end.
///
/// # Errors
/// [`ModelError::Name`] with what is allowed.
pub fn check_name(what: &'static str, name: &str) -> Result<(), ModelError> {
    let good = !name.is_empty()
        && name.len() <= MAX_NAME
        && name.trim() == name
        && !name.chars().any(char::is_control);
    if good {
        Ok(())
    } else {
        Err(ModelError::Name {
            what,
            value: shorten(name),
            allowed: "use 1 to 255 printable characters, no blanks at either end",
        })
    }
}

/// A refused value as it is shown: never a megabyte of it.
#[must_use]
pub fn shorten(value: &str) -> String {
    if value.chars().count() <= 80 {
        return value.to_owned();
    }
    let head: String = value.chars().take(77).collect();
    format!("{head}...")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_fit_into_queue_names() {
        assert!(check_host_name("host-A.example_1").is_ok());
        for bad in ["", "a b", "ä", "a/b", &"x".repeat(201)] {
            assert!(check_host_name(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn names_are_printable() {
        assert!(check_name("server", "web 1 · ü").is_ok());
        for bad in ["", " a", "a\n", &"x".repeat(256)] {
            assert!(check_name("server", bad).is_err(), "{bad:?} was taken");
        }
    }
}
