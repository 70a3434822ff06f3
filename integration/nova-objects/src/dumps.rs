//! JSON text as Python's `json.dumps` writes it: a blank after each comma and colon, and only
//! ASCII. Equal claims then have equal texts, so that callers can compare the texts.

use serde_json::Value as Json;
use std::fmt::Write as _;

/// `json.dumps(value)`.
pub(crate) fn dumps(value: &Json) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Json, out: &mut String) {
    match value {
        Json::String(text) => quote(text, out),
        Json::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push_str(", ");
                }
                write(item, out);
            }
            out.push(']');
        }
        Json::Object(entries) => {
            out.push('{');
            for (place, (key, item)) in entries.iter().enumerate() {
                if place > 0 {
                    out.push_str(", ");
                }
                quote(key, out);
                out.push_str(": ");
                write(item, out);
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(char),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    // Writing to a String cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::dumps;
    use serde_json::json;

    #[test]
    fn text_is_written_as_python_writes_it() {
        // The right side is `json.dumps(...)` of Python 3.11.
        let value = json!({"a": [1, 2.5, null, true], "b": {"ä\n\u{1F600}": "\"\\\u{7f}"}, "c": [], "d": {}});
        assert_eq!(
            dumps(&value),
            r#"{"a": [1, 2.5, null, true], "b": {"\u00e4\n\ud83d\ude00": "\"\\\u007f"}, "c": [], "d": {}}"#
        );
    }
}
