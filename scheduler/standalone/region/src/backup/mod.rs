//! A region whose database was restored from a backup.
//!
//! The restored records are of an earlier time: agents run servers that they do not name, and they
//! name servers, evacuations and messages that are long over. Until an operator has reconciled the
//! region with what the agents report, it is *held*: it hears heartbeats and decides nothing. No
//! message leaves, no time limit is watched, requests are refused.
//!
//! [`Region::reconciliation`] compares every record with the hosts and says what would be done;
//! [`ReconcileRegion`] does the same steps in one transaction and ends the hold. Two rules:
//!
//! - What runs is right. No step ends a server for the lack of a record. The only servers that
//!   end are those whose owners' deletion is in the backup.
//! - What does not run has no claim. A record without a server is closed, with a reason that its
//!   owner reads; nothing is started again, because its owner may have deleted it since.
//!
//! `docs/operate/backup.md` has the whole of it for operators, ADR 71 the reasons.

mod apply;
mod plan;
mod servers;
mod step;

use crate::input::InputKind;
use crate::transition::Transition;
use crate::{Disagreement, Region, RegionError, RegionInput};
use ebbtide_model::Timestamp;
use ebbtide_model::message::{Body, Message};
use ebbtide_model::record::{OutboxMessage, RestoreMark};
pub use ebbtide_model::{ReconcileAction, ReconcileStep};
use std::collections::BTreeSet;

/// What a held region keeps until it is reconciled.
#[derive(Debug, Clone)]
pub(crate) struct RestoredRegion {
    pub(crate) mark: RestoreMark,
    /// When this scheduler read the region. Heartbeats count from then on.
    pub(crate) since: Timestamp,
    /// The messages of the backup, none of which is sent.
    pub(crate) outbox: Vec<OutboxMessage>,
}

/// What a reconciliation does, or has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reconciliation {
    /// `None`: the region is not held, and there is nothing to reconcile.
    pub mark: Option<RestoreMark>,
    /// Known hosts.
    pub hosts: usize,
    /// Hosts whose agents this scheduler has heard.
    pub compared_hosts: usize,
    /// By action and subject.
    pub steps: Vec<ReconcileStep>,
    /// Why it may not be done now.
    pub obstacles: Vec<Disagreement>,
}

/// Reconciles a held region with its agents, and ends the hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconcileRegion {
    /// Hosts whose agents need not be heard: they are lost. Their records stay as they are, except
    /// that no evacuation and no waiting claim of the backup goes on there.
    pub without_hosts: BTreeSet<String>,
}

impl RegionInput for ReconcileRegion {
    type Reply = Reconciliation;

    fn kind(&self) -> InputKind<'_> {
        InputKind::Command
    }

    fn works_while_held(&self) -> bool {
        true
    }

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<Self::Reply, RegionError> {
        region.reconcile_restored(transition, &self.without_hosts)
    }
}

impl Region {
    /// True while the database waits to be reconciled after it was restored from a backup.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.restored.is_some()
    }

    /// The finding of an audit while the region is held. Records and hosts disagree by then, and
    /// the reconciliation names how.
    pub(crate) fn held_finding(&self) -> Option<Disagreement> {
        let held = self.restored.as_ref()?;
        Some(Disagreement {
            code: "EB-AUDIT-109",
            subject: "region".to_owned(),
            what: format!(
                "the database was restored from a backup (marked at {}) and is not reconciled with the hosts",
                held.mark.at
            ),
            next: "`ebbtide-manage reconcile` shows what it would do",
        })
    }

    /// True for a report that a held region ignores: everything but heartbeats. It is about records
    /// that are to be reconciled, and the heartbeats say what became of it.
    pub(crate) fn is_too_early(&self, message: &Message, transition: &mut Transition<'_>) -> bool {
        let ignored = self.restored.is_some() && !matches!(message.body, Body::Heartbeat(_));
        if ignored {
            transition.ignored(format!(
                "report {} of type {}: the restored database is not reconciled yet",
                message.id,
                message.body.event_type()
            ));
        }
        ignored
    }
}
