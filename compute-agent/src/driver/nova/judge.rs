//! What Nova shows of a server, and what there is to do next: pure.

use ebbtide_openstack::compute::Server;

/// How a server is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// Deleted, and nothing of it left.
    Gone,
    /// Shut down.
    Stopped,
    /// Shelved and off its host.
    Shelved,
    /// Running on another host.
    Elsewhere,
}

/// What can be asked of Nova.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    Delete,
    ForceDelete,
    Stop,
    Shelve,
    Offload,
    LiveMigrate,
}

/// What there is to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Move {
    /// Nothing: it is so.
    Done,
    /// Nova is at work.
    Wait,
    /// Ask for this.
    Ask(Request),
    /// It is not on this host, so it is not ours to touch.
    NotHere,
    /// Not from this state.
    Impossible(String),
}

/// Whether Nova has the server on this host.
pub(super) fn is_on(server: &Server, host: &str) -> bool {
    server.host.as_deref() == Some(host) && server.status != "DELETED"
}

/// What there is to do next with a server of this host.
pub(super) fn judge(goal: Goal, server: &Server, host: &str) -> Move {
    let status = server.status.as_str();
    if status == "DELETED" {
        return if goal == Goal::Gone {
            Move::Done
        } else {
            Move::NotHere
        };
    }
    let task = server.task_state.as_deref();
    match server.host.as_deref() {
        Some(found) if found == host => {}
        // It has left, or is about to have left: the new host is shown when the move is over.
        Some(_) if goal == Goal::Elsewhere => {
            return if task.is_none() {
                Move::Done
            } else {
                Move::Wait
            };
        }
        Some(_) => return Move::NotHere,
        None if status == "SHELVED_OFFLOADED" && goal == Goal::Shelved => {
            return if task.is_none() {
                Move::Done
            } else {
                Move::Wait
            };
        }
        None => return Move::NotHere,
    }
    match goal {
        // A deletion is taken in every state, also while something else is going on.
        Goal::Gone => match (status, task) {
            ("SOFT_DELETED", None) => Move::Ask(Request::ForceDelete),
            // Nova clears the host a moment after the task. What holds no room here is its owner's to keep.
            ("SHELVED_OFFLOADED", None) => Move::NotHere,
            (_, Some("deleting" | "soft-deleting")) => Move::Wait,
            _ => Move::Ask(Request::Delete),
        },
        _ if task.is_some() => Move::Wait,
        Goal::Stopped => match status {
            // What does not run is stopped enough.
            "SHUTOFF" | "SUSPENDED" | "SHELVED" | "SHELVED_OFFLOADED" | "SOFT_DELETED" => {
                Move::Done
            }
            "ACTIVE" | "ERROR" => Move::Ask(Request::Stop),
            other => Move::Impossible(format!("Nova does not stop a server in status {other}")),
        },
        Goal::Shelved => match status {
            "SHELVED_OFFLOADED" => Move::Wait,
            "SHELVED" => Move::Ask(Request::Offload),
            "ACTIVE" | "SHUTOFF" | "PAUSED" | "SUSPENDED" => Move::Ask(Request::Shelve),
            other => Move::Impossible(format!("Nova does not shelve a server in status {other}")),
        },
        Goal::Elsewhere => match status {
            "ACTIVE" | "PAUSED" => Move::Ask(Request::LiveMigrate),
            other => Move::Impossible(format!(
                "Nova does not move a server in status {other} while it runs"
            )),
        },
    }
}

impl Request {
    /// How often it is asked for before that is taken for a no. A migration that Nova has given up once has no host to go to; the
    /// others may have met something that the tenant did at the same moment.
    pub(super) fn tries(self) -> u32 {
        match self {
            Self::LiveMigrate => 1,
            _ => 3,
        }
    }
}
