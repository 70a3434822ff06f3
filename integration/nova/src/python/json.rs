//! `json.loads`: order of keys kept, whole numbers of any length, `NaN` and `Infinity` taken.

use super::{Dict, Value};
use crate::fault::NovaException;

/// How deep lists and objects may nest before CPython gives up (`RecursionError`).
const DEPTH: usize = 990;

/// Reads JSON as Python does.
///
/// # Errors
/// JSONDecodeError (a ValueError), or RecursionError.
pub fn loads(text: &str) -> Result<Value, NovaException> {
    let mut reader = Reader {
        text,
        at: 0,
        depth: 0,
    };
    reader.space();
    let value = reader.value()?;
    reader.space();
    if reader.at == text.len() {
        Ok(value)
    } else {
        Err(reader.bad("extra data"))
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn bad(&self, what: &str) -> NovaException {
        NovaException::new("JSONDecodeError", format!("{what} at byte {}", self.at))
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn value(&mut self) -> Result<Value, NovaException> {
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                self.string().map(Value::Str)
            }
            Some(b'[') => self.nested(Self::list),
            Some(b'{') => self.nested(Self::dict),
            _ => self.scalar(),
        }
    }

    fn nested(
        &mut self,
        read: fn(&mut Self) -> Result<Value, NovaException>,
    ) -> Result<Value, NovaException> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(NovaException::new(
                "RecursionError",
                "JSON nested too deeply",
            ));
        }
        self.at += 1;
        self.space();
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn list(&mut self) -> Result<Value, NovaException> {
        let mut values = Vec::new();
        if self.take("]") {
            return Ok(Value::List(values));
        }
        loop {
            values.push(self.value()?);
            self.space();
            if self.take("]") {
                return Ok(Value::List(values));
            }
            if !self.take(",") {
                return Err(self.bad("no comma"));
            }
            self.space();
        }
    }

    fn dict(&mut self) -> Result<Value, NovaException> {
        let mut entries: Vec<(String, Value)> = Vec::new();
        if self.take("}") {
            return Ok(Value::Dict(Dict::default()));
        }
        loop {
            if !self.take("\"") {
                return Err(self.bad("no property name"));
            }
            let key = self.string()?;
            self.space();
            if !self.take(":") {
                return Err(self.bad("no colon"));
            }
            self.space();
            let value = self.value()?;
            entries.push((key, value));
            self.space();
            if self.take("}") {
                return Ok(Value::Dict(entries.into_iter().collect()));
            }
            if !self.take(",") {
                return Err(self.bad("no comma"));
            }
            self.space();
        }
    }

    fn scalar(&mut self) -> Result<Value, NovaException> {
        let names = [
            ("null", Value::None),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("NaN", Value::Float(f64::NAN)),
            ("Infinity", Value::Float(f64::INFINITY)),
            ("-Infinity", Value::Float(f64::NEG_INFINITY)),
        ];
        for (name, value) in names {
            if self.take(name) {
                return Ok(value);
            }
        }
        self.number()
    }

    /// As much as looks like a number; what follows is the caller's business, so `01` is a zero and
    /// extra data.
    fn number(&mut self) -> Result<Value, NovaException> {
        let bytes = self.rest().as_bytes();
        let digits = |from: usize| {
            bytes
                .iter()
                .skip(from)
                .take_while(|byte| byte.is_ascii_digit())
                .count()
        };
        let sign = usize::from(bytes.first() == Some(&b'-'));
        let whole = if bytes.get(sign) == Some(&b'0') {
            1
        } else {
            digits(sign)
        };
        if whole == 0 {
            return Err(self.bad("no value"));
        }
        let mut end = sign + whole;
        let mut float = false;
        if bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
            end += 1 + digits(end + 1);
            float = true;
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let exponent = digits(end + 1 + sign);
            if exponent > 0 {
                end += 1 + sign + exponent;
                float = true;
            }
        }
        let text = self.rest().get(..end).unwrap_or_default();
        let value = if float {
            super::number::float(text).map(Value::Float)
        } else {
            super::number::int(text).map(Value::Int)
        };
        let value = value.ok_or_else(|| self.bad("no number"))?;
        self.at += end;
        Ok(value)
    }

    /// The rest of a string whose opening quote is taken. Lone surrogates, which Rust's text cannot
    /// hold, become U+FFFD.
    fn string(&mut self) -> Result<String, NovaException> {
        let mut out = String::new();
        loop {
            let Some(c) = self.rest().chars().next() else {
                return Err(self.bad("unterminated string"));
            };
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(out),
                '\\' => out.push(self.escape()?),
                c if u32::from(c) < 0x20 => return Err(self.bad("control character")),
                c => out.push(c),
            }
        }
    }

    fn escape(&mut self) -> Result<char, NovaException> {
        let Some(c) = self.rest().chars().next() else {
            return Err(self.bad("unterminated string"));
        };
        self.at += c.len_utf8();
        Ok(match c {
            '"' | '\\' | '/' => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let high = self.hex()?;
                if (0xd800..0xdc00).contains(&high) && self.rest().starts_with("\\u") {
                    let before = self.at;
                    self.at += 2;
                    let low = self.hex()?;
                    if (0xdc00..0xe000).contains(&low) {
                        let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                        return Ok(char::from_u32(code).unwrap_or('\u{fffd}'));
                    }
                    self.at = before;
                }
                char::from_u32(high).unwrap_or('\u{fffd}')
            }
            _ => return Err(self.bad("bad escape")),
        })
    }

    fn hex(&mut self) -> Result<u32, NovaException> {
        let digits = self
            .rest()
            .get(..4)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let code = code.ok_or_else(|| self.bad("bad \\u escape"))?;
        self.at += 4;
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_takes_nan_and_infinity_and_whole_numbers_stay_whole() {
        assert_eq!(
            loads(" [1, 1.0, -0, 1e2, -Infinity]").unwrap().repr(),
            "[1, 1.0, 0, 100.0, -inf]"
        );
        assert_eq!(
            loads("123456789012345678901234567890").unwrap().repr(),
            "123456789012345678901234567890"
        );
    }

    #[test]
    fn the_last_of_equal_keys_wins_in_the_place_of_the_first() {
        assert_eq!(
            loads(r#"{"b": 1, "a": 2, "b": "é\u00e9\ud83d\ude00"}"#)
                .unwrap()
                .repr(),
            "{'b': 'éé😀', 'a': 2}"
        );
    }

    #[test]
    fn bad_json_is_a_json_decode_error() {
        for bad in [
            "",
            "01",
            "[1,]",
            "{\"a\"}",
            "{a:1}",
            "'a'",
            "\"\n\"",
            "[1 2]",
            "nul",
            "-",
            "\"\\x\"",
            "1.e",
            "\u{a0}1",
            "{\"a\":1,}",
        ] {
            assert_eq!(loads(bad).unwrap_err().class, "JSONDecodeError", "{bad:?}");
        }
    }
}
