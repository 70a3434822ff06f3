//! Versions and conditions on them (`packaging.version`, PEP 440;
//! `oslo_utils.versionutils.VersionPredicate`).

use crate::python::text::{is_space, strip};
use std::cmp::Ordering;

/// A segment of a local version: text sorts before numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Local {
    Text(String),
    Number(u128),
}

/// A version, held as what it is compared by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    epoch: u128,
    /// Without zeros at the end: 1.0.0 is 1.
    release: Vec<u128>,
    /// A development release of no pre-release sorts first, then a, b, rc, then none.
    pre: (i8, u128),
    /// None sorts before any.
    post: (u8, u128),
    /// Any sorts before none.
    dev: (u8, u128),
    /// None sorts before any.
    local: Option<Vec<Local>>,
}

/// Reads text from the front.
struct Reader<'a>(&'a str);

impl Reader<'_> {
    fn take(&mut self, token: &str) -> bool {
        let found = self.0.starts_with(token);
        if found {
            self.0 = &self.0[token.len()..];
        }
        found
    }

    fn separator(&mut self) -> bool {
        [".", "_", "-"].iter().any(|separator| self.take(separator))
    }

    fn number(&mut self) -> Option<u128> {
        let end = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at(end);
        if digits.is_empty() {
            return None;
        }
        self.0 = rest;
        Some(digits.parse().unwrap_or(u128::MAX))
    }

    /// `[._-]? word [._-]? number?` for the first of some words; takes nothing where no word
    /// follows.
    fn tagged(&mut self, words: &[(&'static str, i8)]) -> Option<(i8, u128)> {
        let before = self.0;
        self.separator();
        let Some((_, rank)) = words.iter().find(|(word, _)| self.take(word)) else {
            self.0 = before;
            return None;
        };
        // A separator after the word belongs to it, with or without a number.
        self.separator();
        let number = self.number().unwrap_or(0);
        Some((*rank, number))
    }
}

impl Version {
    /// Reads a version; `None`: it is none (InvalidVersion, a ValueError).
    pub fn read(text: &str) -> Option<Self> {
        let lower = strip(text).to_ascii_lowercase();
        let mut reader = Reader(&lower);
        reader.take("v");
        let mut first = reader.number()?;
        let mut epoch = 0;
        if reader.take("!") {
            epoch = first;
            first = reader.number()?;
        }
        let mut release = vec![first];
        loop {
            let before = reader.0;
            if !reader.take(".") {
                break;
            }
            if let Some(number) = reader.number() {
                release.push(number);
            } else {
                reader.0 = before;
                break;
            }
        }
        while release.last() == Some(&0) {
            release.pop();
        }
        let words = [
            ("alpha", 0),
            ("a", 0),
            ("beta", 1),
            ("b", 1),
            ("preview", 2),
            ("pre", 2),
            ("c", 2),
            ("rc", 2),
        ];
        let pre = reader.tagged(&words);
        let post = Self::post(&mut reader);
        let dev = reader.tagged(&[("dev", 0)]).map(|(_, number)| number);
        let local = if reader.take("+") {
            Some(Self::local(&mut reader)?)
        } else {
            None
        };
        let pre = match pre {
            Some(pre) => pre,
            None if post.is_none() && dev.is_some() => (-1, 0),
            None => (3, 0),
        };
        reader.0.is_empty().then(|| Self {
            epoch,
            release,
            pre,
            post: post.map_or((0, 0), |number| (1, number)),
            dev: dev.map_or((1, 0), |number| (0, number)),
            local,
        })
    }

    /// `-N`, or one of the words.
    fn post(reader: &mut Reader<'_>) -> Option<u128> {
        let before = reader.0;
        if reader.take("-") {
            if let Some(number) = reader.number() {
                return Some(number);
            }
            reader.0 = before;
        }
        reader
            .tagged(&[("post", 0), ("rev", 0), ("r", 0)])
            .map(|(_, number)| number)
    }

    fn local(reader: &mut Reader<'_>) -> Option<Vec<Local>> {
        let whole = std::mem::take(&mut reader.0);
        whole
            .split(['.', '_', '-'])
            .map(|segment| {
                let good =
                    !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_alphanumeric());
                good.then(|| {
                    if segment.bytes().all(|byte| byte.is_ascii_digit()) {
                        Local::Number(segment.parse().unwrap_or(u128::MAX))
                    } else {
                        Local::Text(segment.to_owned())
                    }
                })
            })
            .collect()
    }
}

/// Conditions, all of which a version has to meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Predicate(Vec<(&'static str, Version)>);

impl Predicate {
    /// Reads conditions with commas between; `None` is a ValueError.
    pub fn read(text: &str) -> Option<Self> {
        text.split(',')
            .map(Self::condition)
            .collect::<Option<_>>()
            .map(Self)
    }

    fn condition(text: &str) -> Option<(&'static str, Version)> {
        let text = strip(text);
        let operator = ["<=", ">=", "<", ">", "!=", "=="]
            .into_iter()
            .find(|operator| text.starts_with(operator))?;
        let version = strip(text.strip_prefix(operator)?);
        if version.is_empty() || version.contains(is_space) {
            return None;
        }
        Version::read(version).map(|version| (operator, version))
    }

    /// Whether a version meets all conditions.
    pub fn satisfied_by(&self, version: &Version) -> bool {
        self.0.iter().all(|(operator, bound)| {
            let order = version.cmp(bound);
            match *operator {
                "<" => order == Ordering::Less,
                "<=" => order != Ordering::Greater,
                ">" => order == Ordering::Greater,
                ">=" => order != Ordering::Less,
                "==" => order == Ordering::Equal,
                _ => order != Ordering::Equal,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_stand_in_the_order_of_pep_440() {
        let ordered = [
            "0.9",
            "1.dev1",
            "1.0a1.dev1",
            "1a1",
            "1b2",
            "1.0rc1",
            "v1",
            "1.0+abc",
            "1.0+2",
            "1.0-1",
            "1.0.post2",
            "1.0.1",
            "1.10",
            "1!0.1",
        ];
        for pair in ordered.windows(2) {
            assert!(
                Version::read(pair[0]).unwrap() < Version::read(pair[1]).unwrap(),
                "{pair:?}"
            );
        }
        assert_eq!(Version::read("1.0.0"), Version::read("1"));
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for bad in [
            "", "x", "1..2", "1.0.", "1.0+", "1.0 2", "=2", "1.0-x", "1.x",
        ] {
            assert_eq!(Version::read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn all_conditions_must_hold() {
        let predicate = Predicate::read(" >= 2.6, <3 ,!=2.8").unwrap();
        let holds = |version: &str| predicate.satisfied_by(&Version::read(version).unwrap());
        assert!(holds("2.6.0"));
        assert!(!holds("2.8"));
        assert!(!holds("3.0.0"));
        for bad in ["2.6", ">=", "=>2", "", ">=2,", ">= 2 6", "~=2.0", "===2"] {
            assert_eq!(Predicate::read(bad), None, "{bad:?}");
        }
    }
}
