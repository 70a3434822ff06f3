//! What was seen, and since when to look next.

use std::collections::HashMap;

/// A row as the tracker sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Database id.
    pub id: i64,
    /// Latest of created, updated and deleted, microseconds since 1970.
    pub at: i64,
    /// Digest of the content.
    pub digest: u64,
}

/// Decides since when to look, and drops what was seen.
#[derive(Debug, Clone, Default)]
pub struct Tracker {
    slack: i64,
    latest: i64,
    seen: HashMap<i64, Mark>,
}

impl Tracker {
    /// With a slack in seconds.
    #[must_use]
    pub fn new(slack_seconds: u32) -> Self {
        Self {
            slack: i64::from(slack_seconds) * 1_000_000,
            ..Self::default()
        }
    }
}
