//! Which hosts Placement would offer.

use ebbtide_nova::placement::Query;

/// What Nova asks Placement for a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The first query; its text is what goes behind `GET /allocation_candidates?`.
    pub query: Query,
    /// The second, for pinned CPUs, with VCPU for PCPU.
    pub fallback: Option<Query>,
}

/// Why a question has to be asked of Placement itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskPlacement {
    /// Groups with a suffix, or a group policy.
    Granular,
    /// `same_subtree`.
    SameSubtree,
    /// A child provider has a class that is asked for.
    Nested,
    /// A sharing provider has a class that is asked for.
    Sharing,
    /// Nothing is asked for but traits or aggregates.
    NoResources,
    /// Traits or aggregates of a provider are not known, and the request asks for some.
    Unknown,
    /// Two queries, of which the second adds to the first.
    Fallback,
    /// This is not written yet.
    NotThere,
}

/// Hosts that may take a request, before Nova's filters.
#[derive(Debug, Clone, Default)]
pub struct Candidates {
    hosts: Vec<u32>,
}

impl Candidates {
    /// How many hosts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// None at all: Nova answers NoValidHost without a look at its filters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }
}
