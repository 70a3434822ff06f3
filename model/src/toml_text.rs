//! What is wrong with a TOML file, in words that can be shown: where it is, and never what stands
//! there.
//!
//! The errors of `toml` quote the line, and those of serde the value: either may be a password.
//! Every program of this project that reads a TOML file describes its errors with these functions.

use crate::names::hide_logins;
use std::ops::Range;

/// Line and column, counted from 1, and what is wrong there. `span` and `message` are the error's
/// own.
#[must_use]
pub fn problem(text: &str, span: Option<Range<usize>>, message: &str) -> String {
    let message = without_values(message);
    let Some(before) = span.and_then(|span| text.get(..span.start)) else {
        return message;
    };
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    format!("line {line}, column {column}: {message}")
}

/// A message of serde's without the value that it is about; what was expected stays.
#[must_use]
pub fn without_values(message: &str) -> String {
    const EXPECTED: &str = ", expected ";
    let expected = message.rfind(EXPECTED).map(|at| &message[at..]);
    for about in ["invalid type: ", "invalid value: "] {
        if let (Some(value), Some(expected)) = (message.strip_prefix(about), expected) {
            // `string "…"`, ``integer `…` ``: the kind is no secret.
            let kind = value.split(['"', '`', ',']).next().unwrap_or_default();
            return hide_logins(&format!("{about}{}{expected}", kind.trim_end()));
        }
    }
    if message.starts_with("unknown variant `") {
        let expected = expected.unwrap_or_default();
        return format!("unknown value{expected}");
    }
    hide_logins(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)] // Only its errors are looked at.
    struct Options {
        count: u32,
        name: String,
        kind: Kind,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        One,
    }

    #[test]
    fn the_place_is_named_and_the_value_is_not() {
        for (text, at) in [
            (
                "\ncount = \"geheim, expected `no`\"",
                "line 2, column 9: invalid type: string, expected u32",
            ),
            (
                "name = 4711",
                "line 1, column 8: invalid type: integer, expected a string",
            ),
            (
                "name = 47.11",
                "line 1, column 8: invalid type: floating point, expected a string",
            ),
            (
                "kind = \"geheim`, expected one\"",
                "line 1, column 8: unknown value, expected `one`",
            ),
            (
                "\"ä\" = 1",
                "line 1, column 1: unknown field `ä`, expected one of",
            ),
            ("name = \"ä\"\nname = amqp://u:geheim @h", "line 2"),
            ("name = \"amqp://u:geheim", "line 1"),
        ] {
            let error = toml::from_str::<Options>(text).unwrap_err();
            assert!(!text.contains("geheim") || error.to_string().contains("geheim"));
            let shown = problem(text, error.span(), error.message());
            assert!(shown.starts_with(at), "{shown}");
            assert!(
                !shown.contains("geheim") && !shown.contains("4711"),
                "{shown}"
            );
        }
    }
}
