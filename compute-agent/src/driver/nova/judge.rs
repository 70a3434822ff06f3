//! Chooses the next step from what Nova shows of a server. Pure.

use ebbtide_openstack::compute::Server;

/// How a server is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndGoal {
    /// Deleted completely.
    Gone,
    /// Shut down.
    Stopped,
    /// Shelved and off its host.
    Shelved,
    /// Running on another host.
    Elsewhere,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NovaRequest {
    Delete,
    ForceDelete,
    Stop,
    Shelve,
    Offload,
    LiveMigrate,
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Move {
    /// Nothing: the goal is reached.
    Done,
    /// Wait: Nova is working on it.
    Wait,
    /// Send this request.
    Ask(NovaRequest),
    /// Nothing: the server is not on this host, so the driver must not touch it.
    NotHere,
    /// The goal cannot be reached from this state.
    Impossible(String),
}

/// Whether Nova has the server on this host.
pub(super) fn is_on(server: &Server, host: &str) -> bool {
    server.host.as_deref() == Some(host) && server.status != "DELETED"
}

/// The next step for a server of this host.
pub(super) fn judge(goal: EndGoal, server: &Server, host: &str) -> Move {
    let status = server.status.as_str();
    if status == "DELETED" {
        return if goal == EndGoal::Gone {
            Move::Done
        } else {
            Move::NotHere
        };
    }
    let task = server.task_state.as_deref();
    match server.host.as_deref() {
        Some(found) if found == host => {}
        // It has left or is about to: Nova shows the new host when the move is finished.
        Some(_) if goal == EndGoal::Elsewhere => {
            return if task.is_none() {
                Move::Done
            } else {
                Move::Wait
            };
        }
        Some(_) => return Move::NotHere,
        None if status == "SHELVED_OFFLOADED" && goal == EndGoal::Shelved => {
            return if task.is_none() {
                Move::Done
            } else {
                Move::Wait
            };
        }
        None => return Move::NotHere,
    }
    match goal {
        // Nova accepts a deletion in every state, also during another task.
        EndGoal::Gone => match (status, task) {
            ("SOFT_DELETED", None) => Move::Ask(NovaRequest::ForceDelete),
            // Nova clears the host a moment after the task. A server that holds nothing here stays
            // with its owner.
            ("SHELVED_OFFLOADED", None) => Move::NotHere,
            (_, Some("deleting" | "soft-deleting")) => Move::Wait,
            _ => Move::Ask(NovaRequest::Delete),
        },
        _ if task.is_some() => Move::Wait,
        EndGoal::Stopped => match status {
            // Every state without a running guest counts as stopped.
            "SHUTOFF" | "SUSPENDED" | "SHELVED" | "SHELVED_OFFLOADED" | "SOFT_DELETED" => {
                Move::Done
            }
            "ACTIVE" | "ERROR" => Move::Ask(NovaRequest::Stop),
            other => Move::Impossible(format!("Nova does not stop a server in status {other}")),
        },
        EndGoal::Shelved => match status {
            "SHELVED_OFFLOADED" => Move::Wait,
            "SHELVED" => Move::Ask(NovaRequest::Offload),
            "ACTIVE" | "SHUTOFF" | "PAUSED" | "SUSPENDED" => Move::Ask(NovaRequest::Shelve),
            other => Move::Impossible(format!("Nova does not shelve a server in status {other}")),
        },
        EndGoal::Elsewhere => match status {
            "ACTIVE" | "PAUSED" => Move::Ask(NovaRequest::LiveMigrate),
            other => Move::Impossible(format!(
                "Nova does not move a server in status {other} while it runs"
            )),
        },
    }
}

impl NovaRequest {
    /// How often the request is sent before it counts as refused. A migration that Nova has given
    /// up once has no target host. The other requests may have collided with an action of the
    /// tenant.
    pub(super) fn tries(self) -> u32 {
        match self {
            Self::LiveMigrate => 1,
            _ => 3,
        }
    }
}
