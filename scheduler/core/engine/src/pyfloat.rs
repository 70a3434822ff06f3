//! Numbers as Python's `float()` reads them, because that is how Nova reads aggregate metadata and
//! extra specs.

/// The zeros of all decimal digits of Unicode 14 (Python 3.11); each is followed by its nine
/// brothers.
const ZEROS: [u32; 65] = [
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6,
    0xe50, 0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50,
    0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10,
    0x104a0, 0x10d30, 0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650,
    0x116c0, 0x11730, 0x118e0, 0x11950, 0x11c50, 0x11d50, 0x11da0, 0x16a60, 0x16ac0, 0x16b50,
    0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e950, 0x1fbf0,
];

/// What `float(text)` gives in Python; `None` where it raises ValueError.
///
/// It takes blanks around the number, `_` between digits, `nan`, `inf` and `infinity` with a sign
/// and in any case, numbers that are too large (infinity) and digits of any script; it does not
/// take `0x10`, a comma, or nothing.
pub(crate) fn python_float(text: &str) -> Option<f64> {
    let digits: String = text.trim().chars().map(ascii_digit).collect();
    let bytes = digits.as_bytes();
    let between_digits = |at: usize| {
        let digit = |n: Option<usize>| n.and_then(|n| bytes.get(n)).is_some_and(u8::is_ascii_digit);
        digit(at.checked_sub(1)) && digit(at.checked_add(1))
    };
    let plain = bytes
        .iter()
        .enumerate()
        .all(|(at, b)| *b != b'_' || between_digits(at));
    if !plain || !digits.is_ascii() {
        return None;
    }
    digits.replace('_', "").parse().ok()
}

/// A decimal digit of any script as ASCII; every other character as it is.
fn ascii_digit(c: char) -> char {
    if c.is_ascii() {
        return c;
    }
    let code = u32::from(c);
    let value = ZEROS
        .iter()
        .map(|zero| code.wrapping_sub(*zero))
        .find(|v| *v < 10);
    value.and_then(|v| char::from_digit(v, 10)).unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_python_reads_them() {
        for (text, value) in [
            ("2.0", 2.0),
            (" 2.0\t", 2.0),
            ("1_000", 1000.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("+1e3", 1000.0),
            ("1e400", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("iNf", f64::INFINITY),
            ("٣", 3.0),
            ("１２", 12.0),
        ] {
            assert_eq!(python_float(text), Some(value), "{text:?}");
        }
        assert!(python_float("NaN").is_some_and(f64::is_nan));
        for text in [
            "", " ", "0x10", "2,5", "1__0", "_1", "1_", "1_.5", "1e", "e1", ".", "abc", "1 0", "½",
        ] {
            assert_eq!(python_float(text), None, "{text:?} was taken");
        }
    }
}
