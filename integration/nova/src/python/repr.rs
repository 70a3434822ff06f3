//! `str()` and `repr()`.

use super::Value;
use std::fmt::Write as _;

/// `repr(float)`: the shortest decimal that reads back, with an exponent below 1e-4 and from 1e16
/// on.
#[must_use]
pub fn float_repr(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value == 0.0 || (-4..16).contains(&exponent) {
        let plain = format!("{value}");
        return if plain.contains('.') {
            plain
        } else {
            format!("{plain}.0")
        };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// `repr(str)`.
#[must_use]
pub fn string_repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        let code = u32::from(c);
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if printable(c) => out.push(c),
            _ => {
                // Writing to a String cannot fail.
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
    out
}

/// `str.isprintable` for one character, without the unassigned code points: an operator's names
/// have none of those.
fn printable(c: char) -> bool {
    let format = matches!(
        u32::from(c),
        0xad | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x180e | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0xfeff
            | 0xfff9..=0xfffb | 0xe000..=0xf8ff | 0xe0001..=0xe007f | 0xf_0000..
    );
    c == ' ' || !(c.is_control() || c.is_whitespace() || format)
}

impl Value {
    /// `str(value)`.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Str(text) => text.clone(),
            _ => self.repr(),
        }
    }

    /// `repr(value)`.
    #[must_use]
    pub fn repr(&self) -> String {
        match self {
            Self::None => "None".to_owned(),
            Self::Bool(true) => "True".to_owned(),
            Self::Bool(false) => "False".to_owned(),
            Self::Int(value) => value.to_string(),
            Self::Float(value) => float_repr(*value),
            Self::Str(text) => string_repr(text),
            Self::List(values) => {
                let items: Vec<String> = values.iter().map(Self::repr).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Dict(entries) => {
                let items: Vec<String> = entries
                    .iter()
                    .map(|(key, value)| format!("{}: {}", string_repr(key), value.repr()))
                    .collect();
                format!("{{{}}}", items.join(", "))
            }
            Self::Object(object) => object.text.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_read_as_python_writes_them() {
        let cases = [
            (16.0, "16.0"),
            (0.1, "0.1"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (-0.0, "-0.0"),
            (1.5e300, "1.5e+300"),
            (f64::INFINITY, "inf"),
        ];
        for (value, text) in cases {
            assert_eq!(float_repr(value), text);
        }
    }

    #[test]
    fn text_in_a_list_is_quoted_as_python_quotes_it() {
        let list = Value::List(vec![
            "a'b".into(),
            "x\n\u{7f}".into(),
            Value::None,
            Value::Bool(true),
        ]);
        assert_eq!(list.text(), r#"["a'b", 'x\n\x7f', None, True]"#);
    }
}
