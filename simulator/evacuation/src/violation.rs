//! Promises, and what it looks like when one is broken.

use std::fmt;

/// What must always hold (`DESIGN.md` section 3), and that everything ends once faults stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// A victim hears of its end only after the claim on its room is durable, and a spared one
    /// lives.
    NoEndForNothing,
    /// Neither for what runs nor for what is claimed.
    NoRoomTwice,
    /// The victims are a cheapest sufficient set, and none of them can be left out.
    NoVictimTooMany,
    /// Every message may come twice, late or never; the effect is that of once.
    ExactlyOnce,
    /// The same seed gives the same story, and a decision that is repeated is the same.
    Deterministic,
    /// Every refused or ended server gets a reason.
    Explained,
    /// What is in memory is what is durable.
    MemoryIsDurable,
    /// Who was evacuated and kept stays away for long enough, and longer each time.
    NoThrashing,
    /// Once faults stop every evacuation ends, and every preemptor runs or is told why not.
    EverythingEnds,
}

impl Invariant {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::NoEndForNothing,
        Self::NoRoomTwice,
        Self::NoVictimTooMany,
        Self::ExactlyOnce,
        Self::Deterministic,
        Self::Explained,
        Self::MemoryIsDurable,
        Self::NoThrashing,
        Self::EverythingEnds,
    ];

    /// The words for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoEndForNothing => "no server ends for nothing",
            Self::NoRoomTwice => "no room is given twice",
            Self::NoVictimTooMany => "no victim too many",
            Self::ExactlyOnce => "exactly-once effect",
            Self::Deterministic => "deterministic",
            Self::Explained => "explained",
            Self::MemoryIsDurable => "memory is what is durable",
            Self::NoThrashing => "no thrashing",
            Self::EverythingEnds => "everything ends",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub promise: Invariant,
    /// What was seen.
    pub what: String,
    /// Milliseconds of virtual time since the world began.
    pub at_millis: i64,
    /// The step after which it was seen; the number of steps if it was seen in the end.
    pub step: usize,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = (self.at_millis / 1000, self.at_millis % 1000);
        write!(
            f,
            "{}: {} (after {seconds}.{millis:03} s)",
            self.promise, self.what
        )
    }
}

/// What a part of a world has seen, before it is known when.
pub(crate) type BrokenInvariant = (Invariant, String);
