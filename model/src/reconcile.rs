//! What a reconciliation does after a database was restored from a backup, on either cloud.

/// What a step of the reconciliation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReconcileAction {
    /// A server without a record gets one.
    Adopt,
    /// A record takes over that its server runs, or where.
    Run,
    /// A record takes over that its server was stopped or hibernated.
    Keep,
    /// A record takes over that its server was evacuated.
    Leave,
    /// A victim goes on leaving: what needed its capacity is there.
    Continue,
    /// The record of something that is not there any more is closed.
    Close,
    /// A deletion that the owner asked for before the backup is sent again.
    Delete,
    /// A victim that runs keeps running, and its agent is told so.
    Spare,
    /// A message of the backup is discarded.
    Discard,
    /// A host gets no new servers, because something runs there that cannot be adopted.
    Disable,
    /// Nothing: an operator has to look.
    Look,
}

impl ReconcileAction {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Adopt => "adopt",
            Self::Run => "run",
            Self::Keep => "keep",
            Self::Leave => "leave",
            Self::Continue => "continue",
            Self::Close => "close",
            Self::Delete => "delete",
            Self::Spare => "spare",
            Self::Discard => "discard",
            Self::Disable => "disable",
            Self::Look => "look",
        }
    }
}

/// One step of a reconciliation, for an operator.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReconcileStep {
    pub action: ReconcileAction,
    /// `server ID`, `evacuation ID`, `preemption ID`, `message ID`, `host NAME`.
    pub subject: String,
    /// The host that the step is about; empty if none.
    pub host: String,
    /// Why.
    pub why: String,
    /// What the operator should do beside it; empty if nothing.
    pub next: String,
}
