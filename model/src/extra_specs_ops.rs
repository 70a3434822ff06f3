//! Nova's operators for comparing a value with a requirement
//! (`nova/scheduler/filters/extra_specs_ops.py`).
//!
//! - `= 4` and `>= 4` mean at least 4; `<=`, `==`, `!=` compare numbers, too. There is no `<` and
//!   no `>`.
//! - `s== s!= s< s<= s> s>=` compare text. `<in>` looks for a part, `<all-in> a b` for all of them.
//! - `<or> a <or> b` takes every second word, whatever stands between.
//! - Anything else is compared as it stands, spaces included.
//!
//! Every operator but `<or>` and `<all-in>` reads its first operand only.

use crate::python::{number, text};
use std::fmt;

/// A comparison that Nova answers with an exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incomparable<'a> {
    /// This side is not a number (Nova: ValueError).
    NotANumber(&'a str),
    /// `<or>` has no operand (Nova: IndexError).
    NoOperand,
}

impl fmt::Display for Incomparable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber(text) => write!(f, "{text:?} is no number"),
            Self::NoOperand => f.write_str("<or> without an operand"),
        }
    }
}

/// Whether `value` meets `requirement`.
///
/// # Errors
/// [`Incomparable`] where Nova raises.
pub fn matches<'a>(value: &'a str, requirement: &'a str) -> Result<bool, Incomparable<'a>> {
    let words = text::words(requirement);
    let (operator, operands) = match words.split_first() {
        Some((operator, operands)) => (*operator, operands),
        None => ("", [].as_slice()),
    };
    if operator == "<or>" {
        return if operands.is_empty() {
            Err(Incomparable::NoOperand)
        } else {
            Ok(operands.iter().step_by(2).any(|operand| *operand == value))
        };
    }
    let numeric = matches!(operator, "=" | ">=" | "<=" | "==" | "!=");
    let textual = matches!(
        operator,
        "s==" | "s!=" | "s<" | "s<=" | "s>" | "s>=" | "<in>" | "<all-in>"
    );
    if !numeric && !textual {
        return Ok(value == requirement);
    }
    let Some(first) = operands.first().copied() else {
        return Ok(false);
    };
    if numeric {
        let float = |text: &'a str| number::float(text).ok_or(Incomparable::NotANumber(text));
        let (value, operand) = (float(value)?, float(first)?);
        return Ok(match operator {
            "=" | ">=" => value >= operand,
            "<=" => value <= operand,
            #[allow(clippy::float_cmp, reason = "Nova compares the floats exactly")]
            "==" => value == operand,
            #[allow(clippy::float_cmp, reason = "Nova compares the floats exactly")]
            _ => value != operand,
        });
    }
    Ok(match operator {
        "<in>" => value.contains(first),
        "<all-in>" => operands.iter().all(|operand| value.contains(operand)),
        "s==" => value == first,
        "s!=" => value != first,
        "s<" => value < first,
        "s<=" => value <= first,
        "s>" => value > first,
        _ => value >= first,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_match_as_nova_matches_them() {
        for (value, requirement, expected) in [
            ("1", "= 1", true),
            ("2", "= 1", true),
            ("0", "= 1", false),
            ("3", ">= 3", true),
            ("2", ">= 3", false),
            ("2", ">= 2 64", true),
            ("32", ">= 3_2 64", true),
            ("3", "<= 3", true),
            ("4", "<= 3", false),
            ("1.0", "== 1", true),
            ("1", "!= 1", false),
            ("nan", "!= nan", true),
            ("inf", ">= 1e400", true),
            ("nan", "== nan", false),
            ("3_2", "== 32", true),
            ("32", "32", true),
            ("32", "32 ", false),
            ("32", ">=32", false),
            (">=32", ">=32", true),
            ("32", "~ 32", false),
            ("4", "> 3", false),
            ("2", "< 3", false),
            ("3", ">=", false),
            ("abc", ">=", false),
            (">", ">", true),
            ("abc", "s== abc", true),
            ("abc", "s!= abc", false),
            ("b", "s> a", true),
            ("b", "s>= b", true),
            ("a", "s< b", true),
            ("b", "s<= a", false),
            ("12310321", "<in> 11", false),
            ("12311321", "<in> 11", true),
            ("aes mmx aux", "<all-in> aes mmx", true),
            ("aes mmx", "<all-in> aes sse", false),
            ("['aes', 'avx']", "<all-in> aes avx", true),
            ("16", "<or> 16 <or> 32", true),
            ("32", "<or> 16 x 32", true),
            ("x", "<or> 16 x 32", false),
            ("48", "<or> 16 <or> 32", false),
            ("", "", true),
            ("a", "", false),
            ("", "s==", false),
        ] {
            assert_eq!(
                matches(value, requirement),
                Ok(expected),
                "{value:?} against {requirement:?}"
            );
        }
    }

    #[test]
    fn words_end_at_the_four_separators_of_ascii_too() {
        assert_eq!(matches("3", ">=\u{1c}3"), Ok(true));
    }

    #[test]
    fn what_nova_cannot_compare_is_an_error() {
        let no_number = |text| Err(Incomparable::NotANumber(text));
        assert_eq!(matches("abc", ">= 3"), no_number("abc"));
        assert_eq!(matches("3", ">= abc"), no_number("abc"));
        assert_eq!(matches("0x20", "== 32"), no_number("0x20"));
        assert_eq!(matches("3", "<or>"), Err(Incomparable::NoOperand));
    }
}
