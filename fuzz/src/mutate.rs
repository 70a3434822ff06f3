//! Changing seeds at random, as fuzzers do, but with a seed of one's own and without looking at
//! what is reached.

use rand::{Rng, RngExt};

/// Longest input that is made. libFuzzer is given the same limit.
pub const MOST_BYTES: usize = 65_536;

/// What parsers stumble over: signs, limits of numbers, beginnings of what does not end.
const WORDS: [&[u8]; 40] = [
    b"\0",
    b"\n",
    b"\r\n",
    b" ",
    b"\"",
    b"'",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b"(",
    b")",
    b"<",
    b">",
    b",",
    b":",
    b";",
    b"=",
    b"@",
    b"/",
    b"%",
    b"$",
    b"-",
    b"+",
    b"0",
    b"-1",
    b"1e999",
    b"NaN",
    b"Infinity",
    b"null",
    b"true",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"18446744073709551616",
    b"4294967296",
    b"\\ud800",
    b"\xff\xfe",
    "\u{202e}\u{fffd}".as_bytes(),
    "İß\u{10ffff}".as_bytes(),
];

/// One input, made of `seed` and parts of `other`.
pub fn mutate(random: &mut impl Rng, seed: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..1 + random.random_range(0..4_u32) {
        once(random, &mut bytes, other);
    }
    bytes.truncate(MOST_BYTES);
    bytes
}

fn once(random: &mut impl Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    let from = random.random_range(0..=bytes.len());
    let to = (from + random.random_range(0..=16)).min(bytes.len());
    match random.random_range(0..9_u32) {
        // A bit.
        0 if from < bytes.len() => bytes[from] ^= 1 << random.random_range(0..8_u32),
        // A byte.
        1 if from < bytes.len() => bytes[from] = random.random_range(0..=u8::MAX),
        // Something less.
        2 => drop(bytes.drain(from..to)),
        // The end is missing.
        3 => bytes.truncate(from),
        // Something twice, or very often.
        4 => {
            let part = bytes[from..to].to_vec();
            let times = 1 << random.random_range(0..10_u32);
            let many = part.repeat(times.min(MOST_BYTES / part.len().max(1)));
            bytes.splice(from..from, many);
        }
        // A word that parsers stumble over, in between or instead.
        5 => drop(bytes.splice(from..from, word(random))),
        6 => drop(bytes.splice(from..to, word(random))),
        // A number that is another one.
        7 => number(random, bytes, from),
        // A part of another seed.
        _ if !other.is_empty() => {
            let begin = random.random_range(0..other.len());
            let end = (begin + random.random_range(1..=64)).min(other.len());
            bytes.splice(from..to, other[begin..end].iter().copied());
        }
        _ => {}
    }
}

fn word(random: &mut impl Rng) -> Vec<u8> {
    WORDS[random.random_range(0..WORDS.len())].to_vec()
}

fn number(random: &mut impl Rng, bytes: &mut Vec<u8>, from: usize) {
    let Some(at) = bytes[from..].iter().position(u8::is_ascii_digit) else {
        return;
    };
    let begin = from + at;
    let digits = bytes[begin..].iter().take_while(|b| b.is_ascii_digit());
    let end = begin + digits.count();
    let shift = random.random_range(0..70_u32);
    let value = random.random::<u64>().checked_shr(shift).unwrap_or(0);
    bytes.splice(begin..end, value.to_string().into_bytes());
}

/// Inputs of the largest size on which a parser that is not linear, or that calls itself for each
/// bracket, would show it.
#[must_use]
pub fn long_inputs() -> Vec<Vec<u8>> {
    let units: [&[u8]; 18] = [
        b"[",
        b"{",
        b"(",
        b"\"",
        b"\\",
        b",",
        b"%",
        b"$a",
        b"${a.b}",
        b"a=$a$a\n",
        b"[a]\n",
        b"1",
        b"9.",
        b"-",
        b"<a ",
        b"{\"a\":",
        b"a\n",
        b"a:b@",
    ];
    units
        .iter()
        .map(|unit| unit.repeat(MOST_BYTES / unit.len()))
        .collect()
}
