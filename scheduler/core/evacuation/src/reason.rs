//! Why an evacuation ended, in words with stable codes.

use ebbtide_model::{EvacuationCause, EvacuationId, Seconds};
use std::fmt;

/// Longest text of an agent that is kept, in characters: enough for a driver's message, but not for
/// its whole log.
const AGENT_TEXT: usize = 500;

/// An agent's text, cut to a length that can be stored and shown.
#[must_use]
pub fn agent_text(text: &str) -> String {
    if text.chars().count() <= AGENT_TEXT {
        return text.to_owned();
    }
    let head: String = text.chars().take(AGENT_TEXT).collect();
    format!("{head}…")
}

/// Why a server was evacuated, in words for its owner.
#[must_use]
pub fn cause_text(cause: EvacuationCause) -> &'static str {
    match cause {
        EvacuationCause::Preemption => "preempted: a normal request needed its capacity",
        EvacuationCause::MaxLifetime => "ended: it had lived as long as its flavor allows",
        EvacuationCause::OutOfBid => {
            "ended: an hour costs more now than the most that its owner pays"
        }
        EvacuationCause::Headroom => "preempted: its capacity is kept free for normal requests",
        EvacuationCause::Reclaim => "preempted: its host was taken back by the owner of the host",
    }
}

/// Why an evacuation ended as it did. Its text is stored and shown; the text of a failure begins
/// with its code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndReason {
    /// The agent answered no notice.
    NoticesUnanswered {
        /// The agent's host.
        host: String,
        /// Number of notices.
        attempts: u32,
        /// Time that the agent had.
        within: Seconds,
    },
    /// The grace period is over, and the agent did not report the end.
    EndNotReported {
        /// The agent's host.
        host: String,
        /// Time that the agent had after the grace period.
        within: Seconds,
    },
    /// The agent was asked to let the victim live and did not answer.
    SpareUnanswered {
        /// The agent's host.
        host: String,
    },
    /// The owner deleted the victim, and the agent did not confirm the deletion.
    DeletionUnconfirmed {
        /// The agent's host.
        host: String,
    },
    /// The agent spared the victim, and the scheduler had not asked for that.
    SparedUnasked {
        /// The agent's host.
        host: String,
    },
    /// The agent reported a failure.
    AgentFailure {
        /// The agent's text.
        text: String,
        /// False: the victim does not run, but its capacity is not free.
        still_running: bool,
    },
    /// The operator's fence ended the victim.
    Fenced,
    /// The owner deleted the victim.
    DeletedByOwner,
    /// An earlier evacuation, which had been given up, ended the victim.
    Overtaken(EvacuationId),
}

impl EndReason {
    /// The stable code of a failure; `docs/reference/errors.md` has a paragraph for each. `None` if
    /// the victim has left.
    #[must_use]
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::NoticesUnanswered { .. } => Some("EB-EVACUATION-001"),
            Self::EndNotReported { .. } => Some("EB-EVACUATION-002"),
            Self::SpareUnanswered { .. } => Some("EB-EVACUATION-003"),
            Self::DeletionUnconfirmed { .. } => Some("EB-EVACUATION-004"),
            Self::SparedUnasked { .. } => Some("EB-EVACUATION-005"),
            Self::AgentFailure { .. } => Some("EB-EVACUATION-006"),
            Self::Fenced | Self::DeletedByOwner | Self::Overtaken(_) => None,
        }
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(code) = self.code() {
            write!(f, "{code}: ")?;
        }
        match self {
            Self::NoticesUnanswered {
                host,
                attempts,
                within,
            } => write!(
                f,
                "the agent on {host} did not answer {attempts} notices in {within}"
            ),
            Self::EndNotReported { host, within } => write!(
                f,
                "the agent on {host} did not report the end within {within} after the grace period"
            ),
            Self::SpareUnanswered { host } => write!(
                f,
                "the agent on {host} did not say whether the server lives"
            ),
            Self::DeletionUnconfirmed { host } => write!(
                f,
                "the owner deleted the server meanwhile, and the agent on {host} has not confirmed \
                 the deletion"
            ),
            Self::SparedUnasked { host } => write!(
                f,
                "the agent on {host} spared the server without being asked"
            ),
            Self::AgentFailure {
                text,
                still_running,
            } => {
                f.write_str(&agent_text(text))?;
                if *still_running {
                    return Ok(());
                }
                f.write_str(" (the server does not run any more, but its capacity is not free)")
            }
            Self::Fenced => f.write_str("fenced: the hypervisor did not end it when it was asked"),
            Self::DeletedByOwner => f.write_str("deleted by its owner meanwhile"),
            Self::Overtaken(id) => write!(f, "it had left already, by evacuation {id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use uuid::Uuid;

    fn all() -> Vec<EndReason> {
        let host = || "h".to_owned();
        vec![
            EndReason::NoticesUnanswered {
                host: host(),
                attempts: 3,
                within: Seconds(30),
            },
            EndReason::EndNotReported {
                host: host(),
                within: Seconds(60),
            },
            EndReason::SpareUnanswered { host: host() },
            EndReason::DeletionUnconfirmed { host: host() },
            EndReason::SparedUnasked { host: host() },
            EndReason::AgentFailure {
                text: "the hypervisor is stuck".to_owned(),
                still_running: false,
            },
            EndReason::Fenced,
            EndReason::DeletedByOwner,
            EndReason::Overtaken(EvacuationId(Uuid::from_u128(1))),
        ]
    }

    #[test]
    fn every_failure_has_a_code_of_its_own_and_begins_with_it() {
        let failures: Vec<_> = all().into_iter().filter(|r| r.code().is_some()).collect();
        let codes: BTreeSet<_> = failures.iter().filter_map(EndReason::code).collect();
        assert_eq!(codes.len(), failures.len());
        for reason in failures {
            let code = reason.code().unwrap();
            assert!(reason.to_string().starts_with(&format!("{code}: ")));
        }
    }

    #[test]
    fn the_end_of_a_victim_has_no_error_code() {
        for reason in [EndReason::Fenced, EndReason::DeletedByOwner] {
            assert!(!reason.to_string().contains("EB-"), "{reason}");
        }
    }

    #[test]
    fn a_reason_names_host_attempts_and_time() {
        assert_eq!(
            all()[0].to_string(),
            "EB-EVACUATION-001: the agent on h did not answer 3 notices in 30 s"
        );
    }

    #[test]
    fn the_text_of_an_agent_is_cut() {
        let long = EndReason::AgentFailure {
            text: "x".repeat(10_000),
            still_running: true,
        };
        assert!(long.to_string().chars().count() < 600);
        assert_eq!(agent_text("short"), "short");
    }
}
