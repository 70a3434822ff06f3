//! What was found, and how it is said.

use crate::registry::ConfigKind;
use ebbtide_model::names;
use std::fmt;

/// How bad it is. Later ones are worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Worth knowing: something has no effect.
    Note,
    /// Legal, and probably not meant.
    Warning,
    /// The program would not start with it.
    Error,
}

impl Level {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// From 1.
    pub line: usize,
    /// From 1, in characters; 0 where it is not known.
    pub column: usize,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// Stable; `docs/reference/errors.md` has a paragraph for each.
    pub code: &'static str,
    /// Which key; empty if it is about the file.
    pub key: String,
    /// Where it stands.
    pub at: Option<Position>,
    /// What it is.
    pub what: String,
    /// Why it matters.
    pub why: String,
    /// What to do.
    pub next: String,
}

/// What is found in a file: its codes.
pub mod code {
    /// The file cannot be read as a file of its kind: a line, a bracket, a quote.
    pub const SYNTAX: &str = "EB-CHECK-001";
    /// A key that does not exist.
    pub const UNKNOWN: &str = "EB-CHECK-002";
    /// A value of the wrong type, or out of range.
    pub const VALUE: &str = "EB-CHECK-003";
    /// A multiplier whose sign turns a weigher against its own name.
    pub const INVERTED: &str = "EB-CHECK-010";
    /// A multiplier of 0.
    pub const ZERO: &str = "EB-CHECK-011";
    /// One weigher that outweighs all the others together tenfold.
    pub const DROWNS: &str = "EB-CHECK-012";
    /// A weigher that is there twice.
    pub const TWICE: &str = "EB-CHECK-013";
    /// A weigher, or another key, that has no effect as things are.
    pub const NO_EFFECT: &str = "EB-CHECK-014";
    /// Policy `nova` without the weighers that make eviction count.
    pub const EVICTION_IGNORED: &str = "EB-CHECK-015";
    /// The weighers that avoid preemption can be outvoted.
    pub const OUTVOTED: &str = "EB-CHECK-016";
    /// A plugin's file that is not there.
    pub const PLUGIN_FILE: &str = "EB-CHECK-017";
    /// A secret in a file that everybody can read.
    pub const READABLE: &str = "EB-CHECK-018";
    /// A listener, or a bus, that strangers can use.
    pub const OPEN: &str = "EB-CHECK-019";
    /// An old name of an option.
    pub const DEPRECATED: &str = "EB-CHECK-020";
    /// Something else that reads this key says otherwise: multipliers of aggregates, other files.
    pub const ELSEWHERE: &str = "EB-CHECK-021";
    /// Two times that do not fit each other.
    pub const TIMES: &str = "EB-CHECK-022";
    /// A weigher that must not be used to place instances.
    pub const UNFIT: &str = "EB-CHECK-023";
    /// A file of models that the scheduler cannot read.
    pub const MODEL_FILE: &str = "EB-CHECK-024";
}

impl Finding {
    pub(crate) fn new(level: Level, code: &'static str, key: impl Into<String>) -> Self {
        Self {
            level,
            code,
            key: names::hide_logins(&key.into()),
            at: None,
            what: String::new(),
            why: String::new(),
            next: String::new(),
        }
    }

    pub(crate) fn at(mut self, at: Option<Position>) -> Self {
        self.at = at;
        self
    }

    // Any value that is quoted may be a URL with a password in the wrong place, so logins are
    // hidden in all that is said.

    pub(crate) fn what(mut self, what: impl Into<String>) -> Self {
        self.what = names::hide_logins(&what.into());
        self
    }

    pub(crate) fn why(mut self, why: impl Into<String>) -> Self {
        self.why = names::hide_logins(&why.into());
        self
    }

    pub(crate) fn next(mut self, next: impl Into<String>) -> Self {
        self.next = names::hide_logins(&next.into());
        self
    }
}

/// How one weigher counts.
#[derive(Debug, Clone, PartialEq)]
pub struct WeigherShare {
    /// Its name: ours, or Nova's class.
    pub name: String,
    pub multiplier: f64,
    /// Where that comes from.
    pub from: &'static str,
    /// Among which weighers it has its say: `ordinary`, and above them `cost`, `preemption`,
    /// `emergency`.
    pub layer: &'static str,
    /// Its part of the magnitudes of all multipliers of its layer, 0 to 1.
    pub share: f64,
    /// What that comes to.
    pub says: String,
}

/// How hosts are ordered.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectiveOrder {
    /// Policy and what it means, and what an eviction costs.
    pub order: Vec<String>,
    /// The weighers, in the order in which they add up.
    pub weighers: Vec<WeigherShare>,
}

/// All that was found in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckReport {
    /// Whose file it is.
    pub kind: ConfigKind,
    /// How that is known.
    pub because: String,
    /// What was found, worst first, then by place.
    pub findings: Vec<Finding>,
    /// How hosts are ordered; `None` if the file cannot be used or says nothing about that.
    pub effective: Option<EffectiveOrder>,
}

impl CheckReport {
    /// How many there are of a level.
    #[must_use]
    pub fn count(&self, level: Level) -> usize {
        let of = |finding: &&Finding| finding.level == level;
        self.findings.iter().filter(of).count()
    }

    pub(crate) fn sorted(mut self) -> Self {
        self.findings.sort_by(|a, b| {
            let place = |finding: &Finding| {
                finding
                    .at
                    .map_or((usize::MAX, 0), |at| (at.line, at.column))
            };
            (b.level.cmp(&a.level))
                .then_with(|| place(a).cmp(&place(b)))
                .then_with(|| a.code.cmp(b.code))
        });
        self.findings.dedup();
        self
    }
}
