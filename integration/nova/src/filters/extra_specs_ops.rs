//! How an extra spec compares with a value (`extra_specs_ops.py`).

use crate::fault::NovaException;
use crate::python::{number, text};

/// Whether a value meets a requirement such as `>= 4`, `<in> avx` or `<or> a <or> b`. Without a
/// known operator in front, the two texts have to be the same, spaces and all.
///
/// # Errors
/// ValueError for a number that is none; IndexError for `<or>` alone.
pub(super) fn matches(value: &str, requirement: &str) -> Result<bool, NovaException> {
    let words = text::words(requirement);
    let (operator, operands) = match words.split_first() {
        Some((operator, operands)) => (*operator, operands),
        None => ("", [].as_slice()),
    };
    if operator == "<or>" {
        return if operands.is_empty() {
            Err(NovaException::new("IndexError", "<or> without an operand"))
        } else {
            // Whatever stands between two operands is taken for another <or>.
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
    // Only the first operand counts, but for <all-in>.
    let Some(first) = operands.first().copied() else {
        return Ok(false);
    };
    if numeric {
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

fn float(text: &str) -> Result<f64, NovaException> {
    number::float(text)
        .ok_or_else(|| NovaException::new("ValueError", format!("{text:?} is no number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(value: &str, requirement: &str) -> Result<bool, &'static str> {
        matches(value, requirement).map_err(|fault| fault.class)
    }

    #[test]
    fn a_single_equals_sign_means_at_least() {
        assert_eq!(matched("32", "= 16"), Ok(true));
        assert_eq!(matched("16", "= 32"), Ok(false));
        assert_eq!(matched("32", ">= 3_2 64"), Ok(true));
        assert_eq!(matched("nan", "!= nan"), Ok(true));
    }

    #[test]
    fn an_unknown_operator_compares_the_whole_text() {
        assert_eq!(matched("32", "32 "), Ok(false));
        assert_eq!(matched(">=32", ">=32"), Ok(true));
        assert_eq!(matched("", ""), Ok(true));
        assert_eq!(matched("64", "> 32"), Ok(false));
    }

    #[test]
    fn a_number_that_is_none_fails_and_an_operator_alone_does_not_match() {
        assert_eq!(matched("abc", ">= 3"), Err("ValueError"));
        assert_eq!(matched("3", ">= 0x2"), Err("ValueError"));
        assert_eq!(matched("abc", ">="), Ok(false));
        assert_eq!(matched("abc", "<or>"), Err("IndexError"));
    }

    #[test]
    fn or_takes_every_second_word_and_all_in_takes_all() {
        assert_eq!(matched("32", "<or> 16 x 32"), Ok(true));
        assert_eq!(matched("x", "<or> 16 x 32"), Ok(false));
        assert_eq!(matched("['aes', 'avx']", "<all-in> aes avx"), Ok(true));
        assert_eq!(matched("['aes', 'avx']", "<all-in> aes sse"), Ok(false));
        assert_eq!(matched("abc", "<in> b"), Ok(true));
    }
}
