//! Nova's little language for comparing a value with a demand
//! (`nova/scheduler/filters/extra_specs_ops.py`).
//!
//! - `= 4` and `>= 4` mean at least 4; `<=`, `==`, `!=` compare numbers, too. There is no `<` and
//!   no `>`.
//! - `s== s!= s< s<= s> s>=` compare text. `<in>` looks for a part, `<all-in> a b` for all of them.
//! - `<or> a <or> b` takes every second word, whatever stands between.
//! - Anything else is compared as it stands.

use crate::pyfloat::python_float;

/// A comparison that Nova answers with an exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Incomparable {
    /// One side is not a number (Nova: ValueError).
    NotANumber,
    /// `<or>` without a word (Nova: IndexError).
    NothingToChoose,
}

/// Whether `value` meets `demand`.
///
/// # Errors
/// [`Incomparable`] where Nova raises.
pub(crate) fn matches(value: &str, demand: &str) -> Result<bool, Incomparable> {
    let words: Vec<&str> = demand.split_whitespace().collect();
    let Some(&operator) = words.first() else {
        return Ok(value == demand);
    };
    if operator == "<or>" {
        if words.len() < 2 {
            return Err(Incomparable::NothingToChoose);
        }
        return Ok(words.iter().skip(1).step_by(2).any(|word| *word == value));
    }
    let number = |text: &str| python_float(text).ok_or(Incomparable::NotANumber);
    type Compare = fn(f64, f64) -> bool;
    let numeric: Option<Compare> = match operator {
        "=" | ">=" => Some(|a, b| a >= b),
        "<=" => Some(|a, b| a <= b),
        "==" => Some(|a, b| a == b),
        "!=" => Some(|a, b| a != b),
        _ => None,
    };
    let Some(&operand) = words.get(1) else {
        let known = numeric.is_some()
            || matches!(
                operator,
                "<in>" | "<all-in>" | "s==" | "s!=" | "s<" | "s<=" | "s>" | "s>="
            );
        return Ok(!known && value == demand);
    };
    if let Some(compare) = numeric {
        return Ok(compare(number(value)?, number(operand)?));
    }
    Ok(match operator {
        "s==" => value == operand,
        "s!=" => value != operand,
        "s<" => value < operand,
        "s<=" => value <= operand,
        "s>" => value > operand,
        "s>=" => value >= operand,
        "<in>" => value.contains(operand),
        "<all-in>" => words.iter().skip(1).all(|word| value.contains(word)),
        _ => value == demand,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_match_as_nova_matches_them() {
        for (value, demand, expected) in [
            ("1", "= 1", true),
            ("2", "= 1", true),
            ("0", "= 1", false),
            ("3", ">= 3", true),
            ("2", ">= 3", false),
            ("2", ">= 2 64", true),
            ("3", "<= 3", true),
            ("4", "<= 3", false),
            ("1.0", "== 1", true),
            ("1", "!= 1", false),
            ("inf", ">= 1e400", true),
            ("nan", "== nan", false),
            ("3_2", "== 32", true),
            ("32", "32", true),
            ("32", "32 ", false),
            ("32", ">=32", false),
            ("32", "~ 32", false),
            ("4", "> 3", false),
            ("2", "< 3", false),
            ("3", ">=", false),
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
            ("16", "<or> 16 <or> 32", true),
            ("32", "<or> 16 x 32", true),
            ("x", "<or> 16 x 32", false),
            ("48", "<or> 16 <or> 32", false),
            ("", "", true),
            ("a", "", false),
            ("", "s==", false),
        ] {
            assert_eq!(
                matches(value, demand),
                Ok(expected),
                "{value:?} against {demand:?}"
            );
        }
    }

    #[test]
    fn what_nova_cannot_compare_is_an_error() {
        assert_eq!(matches("abc", ">= 3"), Err(Incomparable::NotANumber));
        assert_eq!(matches("3", ">= abc"), Err(Incomparable::NotANumber));
        assert_eq!(matches("0x20", "== 32"), Err(Incomparable::NotANumber));
        assert_eq!(matches("3", "<or>"), Err(Incomparable::NothingToChoose));
    }
}
