//! `int()` and `float()` of text.

use super::text::strip;

/// Code points of the digit zero in each script that has decimal digits (Unicode category Nd as
/// CPython 3.11 knows it). The other nine follow each of them.
const ZEROS: [u32; 66] = [
    0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66,
    0xde6, 0xe50, 0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90,
    0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10,
    0x104a0, 0x10d30, 0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650,
    0x116c0, 0x11730, 0x118e0, 0x11950, 0x11c50, 0x11d50, 0x11da0, 0x16a60, 0x16ac0, 0x16b50,
    0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e950, 0x1fbf0,
];

/// The value of a decimal digit of any script.
#[must_use]
pub fn digit(c: char) -> Option<u8> {
    let code = u32::from(c);
    ZEROS
        .iter()
        .find(|zero| (**zero..**zero + 10).contains(&code))
        .and_then(|zero| u8::try_from(code - zero).ok())
}

/// White space stripped, digits of all scripts as ASCII digits. CPython strips the white space of C
/// from text that is all ASCII, and that of Unicode, with the four ASCII separators, from all
/// other.
fn plain(text: &str) -> String {
    let stripped = if text.is_ascii() {
        text.trim_matches(|c: char| matches!(c, ' ' | '\t'..='\r'))
    } else {
        strip(text)
    };
    stripped
        .chars()
        .map(|c| digit(c).map_or(c, |value| char::from(b'0' + value)))
        .collect()
}

/// Takes out underscores, each of which has to stand between two digits.
fn without_underscores(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(u8::is_ascii_digit)
    };
    let good = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'_')
        .all(|(at, _)| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1)));
    good.then(|| text.replace('_', ""))
}

/// `float(text)`; `None` is a ValueError. Takes `inf`, `nan`, underscores between digits, digits of
/// any script; no hexadecimal.
#[must_use]
pub fn float(text: &str) -> Option<f64> {
    let plain = without_underscores(&plain(text))?;
    let unsigned = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
    let lower = unsigned.to_ascii_lowercase();
    let named = matches!(lower.as_str(), "inf" | "infinity" | "nan");
    let mut digits = unsigned.bytes();
    let numeric = digits.any(|byte| byte.is_ascii_digit())
        && unsigned
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    // What is left is the grammar that Rust's own parser shares with Python: digits, one point, an
    // exponent with digits.
    (named || numeric).then(|| plain.parse().ok()).flatten()
}

/// `int(text)` in base 10; `None` is a ValueError. Numbers beyond 128 bits are held at the limit of
/// 128 bits: no quantity that Nova compares comes near it.
#[must_use]
pub fn int(text: &str) -> Option<i128> {
    let plain = without_underscores(&plain(text))?;
    let (negative, digits) = match plain.as_bytes().first()? {
        b'-' => (true, &plain[1..]),
        b'+' => (false, &plain[1..]),
        _ => (false, plain.as_str()),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let size = digits.parse::<i128>().unwrap_or(i128::MAX);
    Some(if negative { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_float_may_have_underscores_between_digits_only() {
        assert_eq!(float("3_2"), Some(32.0));
        assert_eq!(float("1_000.5_0e1_0"), Some(1000.5e10));
        for bad in [
            "_32", "32_", "3__2", "3_.2", "0x20", "", " ", "2,5", "1e", ".", "--1", "infin", "1 2",
            "nan1",
        ] {
            assert_eq!(float(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn blanks_around_a_float_and_a_leading_or_trailing_point_are_taken() {
        for (text, value) in [
            ("2.0", 2.0),
            (" 2.0\t", 2.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("+1e3", 1000.0),
            ("iNf", f64::INFINITY),
            ("１２", 12.0),
        ] {
            assert_eq!(float(text), Some(value), "{text:?}");
        }
        for bad in ["1_.5", "e1", "abc", "½", "_1", "1_"] {
            assert_eq!(float(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_float_may_be_infinite_or_written_in_any_script() {
        assert_eq!(float(" -Infinity\n"), Some(f64::NEG_INFINITY));
        assert_eq!(float("1e400"), Some(f64::INFINITY));
        assert_eq!(float("٣٢"), Some(32.0));
        assert_eq!(float("1."), Some(1.0));
        assert_eq!(float(".5"), Some(0.5));
        assert!(float("+NaN").is_some_and(f64::is_nan));
    }

    #[test]
    fn an_int_has_no_point_and_no_base_prefix() {
        assert_eq!(int(" 4 "), Some(4));
        assert_eq!(int("-1_0"), Some(-10));
        assert_eq!(int("007"), Some(7));
        assert_eq!(int("\u{a0}7\u{1c}"), Some(7));
        for bad in ["\u{1c}7", "2.0", "0x10", "", "+", "1e3", "_1", "4 2"] {
            assert_eq!(int(bad), None, "{bad:?}");
        }
    }
}
