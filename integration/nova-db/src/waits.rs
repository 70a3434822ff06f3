//! Whether anybody waits for the answer to a request.

/// Whether a caller waits for a host for an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerWait {
    /// A boot: its build request is there.
    Build,
    /// A move: the instance's task state says that a host is looked for.
    Task(String),
    /// Nobody waits; why, for the log.
    Nobody(String),
}

impl CallerWait {
    /// Whether somebody waits.
    #[must_use]
    pub fn waits(&self) -> bool {
        !matches!(self, Self::Nobody(_))
    }
}
