//! JSON as Python's `json.dumps` writes it: a blank after `,` and `:`, nothing but ASCII, floats as
//! `repr`.

use std::io;

use serde::Serialize;
use serde_json::ser::Formatter;

use crate::MessagingError;

/// Serialises `value` as Python's `json.dumps` would.
///
/// # Errors
///
/// If the value is no JSON, for example a map whose keys are no strings.
pub fn to_python_json<T: Serialize + ?Sized>(value: &T) -> Result<String, MessagingError> {
    let mut bytes = Vec::with_capacity(256);
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Python);
    value
        .serialize(&mut serializer)
        .map_err(|error| MessagingError::bad(format!("it cannot be written as JSON: {error}")))?;
    // The formatter below writes ASCII only.
    String::from_utf8(bytes).map_err(|_| MessagingError::bad("it cannot be written as JSON"))
}

struct Python;

impl Formatter for Python {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first {
            Ok(())
        } else {
            writer.write_all(b", ")
        }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first {
            Ok(())
        } else {
            writer.write_all(b", ")
        }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(|c: char| c > '~') {
            let (plain, after) = rest.split_at(at);
            writer.write_all(plain.as_bytes())?;
            let mut chars = after.chars();
            if let Some(special) = chars.next() {
                for unit in special.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            }
            rest = chars.as_str();
        }
        writer.write_all(rest.as_bytes())
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        // Python's repr and Rust's shortest digits agree on the digits; they differ in where an
        // exponent begins and how it looks.
        let scientific = format!("{value:e}");
        let Some((mantissa, exponent)) = scientific.split_once('e') else {
            return writer.write_all(scientific.as_bytes());
        };
        match exponent.parse::<i32>() {
            Ok(exponent) if !(-4..16).contains(&exponent) => {
                let sign = if exponent < 0 { '-' } else { '+' };
                write!(writer, "{mantissa}e{sign}{:02}", exponent.abs())
            }
            _ => {
                let plain = value.to_string();
                let point = if plain.contains('.') { "" } else { ".0" };
                write!(writer, "{plain}{point}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn json_looks_as_python_writes_it() {
        let cases = [
            (
                json!({"a": [1, 2.5, null, true], "b": {}}),
                r#"{"a": [1, 2.5, null, true], "b": {}}"#,
            ),
            (
                json!("Zürich \u{1F600} \u{7f}\t\"\\/\u{1}"),
                r#""Z\u00fcrich \ud83d\ude00 \u007f\t\"\\/\u0001""#,
            ),
            (json!([]), "[]"),
            (
                json!([
                    1.0,
                    1e16,
                    1e15,
                    1e-5,
                    0.0001,
                    -0.0,
                    1.5e300,
                    123456789012345680.0
                ]),
                "[1.0, 1e+16, 1000000000000000.0, 1e-05, 0.0001, -0.0, 1.5e+300, 1.2345678901234568e+17]",
            ),
        ];
        for (value, expected) in cases {
            assert_eq!(to_python_json(&value).unwrap(), expected);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_can_be_read_back(text in "\\PC*", number: f64, integer: i64) {
            let value = json!({text.clone(): [text, integer, if number.is_finite() { json!(number) } else { Value::Null }]});
            let written = to_python_json(&value).unwrap();
            prop_assert!(written.is_ascii());
            prop_assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
        }
    }
}
