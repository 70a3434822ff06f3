//! What watchers of a cloud are told.

use crate::{Decision, Evacuation, Host, HostHealth, Server};

/// An event for watchers.
#[derive(Debug, Clone, PartialEq)]
pub enum CloudEvent {
    /// A decision was made (what-if excluded).
    Decision(Box<Decision>),
    /// A server has a new state.
    Server(Box<Server>),
    /// An evacuation has a new state.
    Evacuation(Box<Evacuation>),
    /// A host appeared, went down, was enabled or was disabled.
    Host(Box<Host>, HostHealth),
    /// A standalone region ignored a report, for this reason: for the log and the metrics.
    Ignored(String),
    /// A problem of a standalone region that an operator must look at, for the log.
    Alarm {
        /// Its code in `docs/reference/errors.md`.
        code: &'static str,
        /// What was observed, and what to do.
        words: String,
    },
}
