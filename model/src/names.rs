//! Rules for names. One rule for each kind, applied to all input.

use crate::ModelError;

mod escape;

pub use escape::{hidden, shown, shown_cell, shown_json, shown_lines};

/// Longest name of a host, project, flavor, server, zone: as in Nova's tables.
pub const MAX_NAME: usize = 255;
/// Longest host name: it becomes part of a queue name, and AMQP allows 255 bytes for all of it.
pub const MAX_HOST_NAME: usize = 200;

/// Checks a host name: letters, digits, `.`, `-` and `_`, as host names and queue names allow. A
/// name becomes a part of paths and an argument of commands: it begins with none of `.` and `-`,
/// and no label between its dots is empty.
///
/// # Errors
/// [`ModelError::Name`] with what is allowed.
pub fn check_host_name(name: &str) -> Result<(), ModelError> {
    let good = !name.is_empty()
        && name.len() <= MAX_HOST_NAME
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
        && !name.starts_with('-')
        && name.split('.').all(|label| !label.is_empty());
    if good {
        Ok(())
    } else {
        Err(ModelError::Name {
            what: "host name",
            value: shorten(name),
            allowed: "use 1 to 200 letters, digits, '.', '-' and '_', no '-' at the beginning, and \
                      something on both sides of every '.'",
        })
    }
}

/// Checks the name of a server, flavor, project, zone, aggregate or group: visible
/// characters, not blank at either end.
///
/// # Errors
/// [`ModelError::Name`] with what is allowed.
pub fn check_name(what: &'static str, name: &str) -> Result<(), ModelError> {
    let good = !name.is_empty()
        && name.len() <= MAX_NAME
        && name.trim() == name
        && hidden(name).next().is_none();
    if good {
        Ok(())
    } else {
        Err(ModelError::Name {
            what,
            value: shorten(name),
            allowed: "use 1 to 255 bytes of visible characters (none that reverses the direction \
                      of text or has no width), no blanks at either end",
        })
    }
}

/// A refused value for display, shortened if it is long.
#[must_use]
pub fn shorten(value: &str) -> String {
    if value.chars().count() <= 80 {
        return value.to_owned();
    }
    let head: String = value.chars().take(77).collect();
    format!("{head}...")
}

/// Shortens the message of a foreign parser for display: it may quote its whole input.
#[must_use]
pub fn brief(words: impl std::fmt::Display) -> String {
    let words = words.to_string();
    match words.char_indices().nth(300) {
        None => words,
        Some((end, _)) => format!("{}...", &words[..end]),
    }
}

/// A text that may quote URLs, as it may be shown: of each login in one, only what stands before
/// its first `:`. For messages about configuration, where any line may hold a password. What is
/// hidden reaches from there to the last `@` before a blank, or if there is none before it, before
/// a quote: rather too much than the end of a password with a slash, a quote or a blank in it.
#[must_use]
pub fn hide_logins(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        // A password with a blank in it: as far as the quote or the line goes, if a login ends
        // there.
        let blank = after.find(char::is_whitespace).unwrap_or(after.len());
        let quote = after.find(['"', '\n']).unwrap_or(after.len());
        let end = match after[..blank].contains('@') || !after[..quote].contains('@') {
            true => blank,
            false => quote,
        };
        let (url, behind) = after.split_at(end);
        match url.rsplit_once('@') {
            None => shown.push_str(url),
            Some((login, place)) => {
                shown.push_str(login.split(':').next().unwrap_or_default());
                shown.push_str(":***@");
                shown.push_str(place);
            }
        }
        rest = behind;
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_fit_into_queue_names() {
        assert!(check_host_name("host-A.example_1").is_ok());
        let long = "x".repeat(201);
        for bad in [
            "", "a b", "ä", "a/b", ".", "..", "-rf", ".a", "a.", "a..b", &long,
        ] {
            assert!(check_host_name(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn no_login_of_a_url_is_shown_wherever_it_stands() {
        for (text, shown) in [
            ("nothing of that kind", "nothing of that kind"),
            ("amqp://h:1/v", "amqp://h:1/v"),
            (
                "a \"amqp://u:s t@h\": an@other",
                "a \"amqp://u:***@h\": an@other",
            ),
            (
                "a \"amqp://u:s@h\", b mysql://u:s@h/d?x=1 c",
                "a \"amqp://u:***@h\", b mysql://u:***@h/d?x=1 c",
            ),
            ("x://u:s/s'\"@s@h", "x://u:***@h"),
            ("x://u@h ://", "x://u:***@h ://"),
            ("amqp://u:s@h,amqp://u:t@i", "amqp://u:***@i"),
            ("x://\u{7f}:s\0t@h", "x://\u{7f}:***@h"),
        ] {
            assert_eq!(hide_logins(text), shown);
        }
    }

    #[test]
    fn names_are_printable() {
        for good in [
            "web 1 · ü",
            "1\u{fe0f}\u{20e3}",
            "\u{1f468}\u{200d}\u{1f469}",
            "-rf",
        ] {
            assert!(check_name("server", good).is_ok(), "{good:?} was refused");
        }
        let long = "x".repeat(256);
        for bad in [
            "",
            " a",
            "a\n",
            "a\u{202e}b",
            "a\u{200d}b",
            "a\u{e0041}",
            &long,
        ] {
            assert!(check_name("server", bad).is_err(), "{bad:?} was taken");
        }
    }
}
