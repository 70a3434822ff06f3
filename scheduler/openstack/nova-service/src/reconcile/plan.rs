//! What has to be done with a restored ledger. Pure.

use super::read::RestoredLedger;
use crate::audit::{self, AuditServer, Disagreement, PreemptionRow};
use crate::facts::amounts;
use crate::preemption::{Preemption, PreemptionPolicy, RestoredEnd, Victim, VictimFate};
use crate::reclaims::RECLAIMED_BY;
use ebbtide_model::message::EvacuationEnd;
use ebbtide_model::{ReconcileAction, ReconcileStep, Seconds, Timestamp};
use ebbtide_nova_cloud::Allocations;
use ebbtide_store::ledger::{LedgerReconciliation, ReconciledRow};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// Findings of an audit that the steps of the rows answer, or that say that the ledger is held.
const ANSWERED: [&str; 7] = [
    "EB-AUDIT-005",
    "EB-AUDIT-006",
    "EB-AUDIT-007",
    "EB-AUDIT-008",
    "EB-AUDIT-009",
    "EB-AUDIT-011",
    "EB-AUDIT-016",
];
/// Findings about servers and consumers of swaps that the backup does not have.
const OF_LOST_SWAPS: [&str; 3] = ["EB-AUDIT-002", "EB-AUDIT-003", "EB-AUDIT-017"];

/// Steps for an operator, and what they write.
#[derive(Debug, Default)]
pub(super) struct Planned {
    pub(super) steps: Vec<ReconcileStep>,
    pub(super) work: LedgerReconciliation,
    pub(super) obstacles: Vec<Disagreement>,
}

/// `default_grace`: that of flavors that say none.
pub(super) fn plan(
    backup: &RestoredLedger,
    now: Timestamp,
    policy: &PreemptionPolicy,
    default_grace: Seconds,
) -> Planned {
    let held = audit::held(&backup.picture);
    let mut planned = Planned::default();
    for row in &backup.picture.rows {
        planned.row(backup, &held, row, now, policy);
    }
    planned.reclaims(backup);
    planned.kept_servers(backup, &held);
    let answered = planned.lost_swaps(backup, now, default_grace);
    planned.findings(backup, &answered);
    planned.obstacles = backup.active.iter().map(|name| active(name)).collect();
    planned.steps.sort();
    planned
}

fn active(name: &str) -> Disagreement {
    Disagreement {
        code: "EB-DOOR-007",
        subject: format!("scheduler {name}"),
        what: "it works on the restored ledger and does not wait for the reconciliation".to_owned(),
        next: "stop it: it is of an earlier version, or was started before the mark was set",
    }
}

impl Planned {
    pub(super) fn step(
        &mut self,
        action: ReconcileAction,
        subject: String,
        host: &str,
        why: String,
    ) {
        self.look(action, subject, host, why, "");
    }

    pub(super) fn look(
        &mut self,
        action: ReconcileAction,
        subject: String,
        host: &str,
        why: String,
        next: &str,
    ) {
        self.steps.push(ReconcileStep {
            action,
            subject,
            host: host.to_owned(),
            why,
            next: next.to_owned(),
        });
    }

    /// What becomes of a preemption that was under way at the time of the backup.
    fn row(
        &mut self,
        backup: &RestoredLedger,
        held: &BTreeMap<Uuid, Allocations>,
        row: &PreemptionRow,
        now: Timestamp,
        policy: &PreemptionPolicy,
    ) {
        let subject = format!("preemption {}", row.id);
        let Some(mut record) = row.record.clone() else {
            let why = "its record cannot be read, and stays as it is".to_owned();
            let next = "a newer scheduler has written it: start that one";
            return self.look(ReconcileAction::Look, subject, "", why, next);
        };
        let fates: Vec<VictimFate> = record
            .victims
            .iter()
            .map(|victim| fate(backup, held, &record, victim))
            .collect();
        let came: Vec<Uuid> = came(backup, &record);
        let why = why(&record, &fates, &came);
        let host = record.victims.first().map(|victim| victim.host.clone());
        let end = record.reconcile_restored(&fates, !came.is_empty(), now, policy);
        let action = match end {
            RestoredEnd::Done => ReconcileAction::Leave,
            RestoredEnd::Continued => ReconcileAction::Continue,
            RestoredEnd::Withdrawn => ReconcileAction::Spare,
        };
        self.step(action, subject, &host.unwrap_or_default(), why);
        self.work.rows.push(ReconciledRow {
            id: row.id,
            version: row.version,
            state: record.state.as_str().to_owned(),
            // Plain data with string keys always has a JSON form.
            document: serde_json::to_value(&record).unwrap_or_default(),
        });
    }

    /// A host that is not disabled for its owner was returned since.
    fn reclaims(&mut self, backup: &RestoredLedger) {
        let mut known = BTreeSet::new();
        for (row, record) in &backup.reclaims {
            known.insert(row.host.as_str());
            let Some(disabled) = backup.computes.get(&row.host) else {
                continue;
            };
            if record.is_ending() || *disabled == record.disabled_reason() {
                continue;
            }
            let why = format!(
                "{} had taken it back, and its nova-compute is {}: it was returned since",
                record.reclaim.terms.owner,
                match disabled {
                    None => "enabled".to_owned(),
                    Some(reason) => format!("disabled for another reason ({reason})"),
                }
            );
            let subject = format!("reclaim of {}", row.host);
            self.step(ReconcileAction::Close, subject, &row.host, why);
            let ended = (row.host.clone(), row.version);
            self.work.ended_reclaims.push(ended);
        }
        for (host, disabled) in &backup.computes {
            let reason = disabled.as_deref().filter(|r| r.starts_with(RECLAIMED_BY));
            let Some(reason) = reason.filter(|_| !known.contains(host.as_str())) else {
                continue;
            };
            self.look(
                ReconcileAction::Look,
                format!("reclaim of {host}"),
                host,
                format!("its nova-compute is disabled ({reason}), and the backup does not have it"),
                "reclaim it again (`ebbtide host reclaim`), or enable it: openstack compute service set --enable HOST nova-compute",
            );
        }
    }

    /// Victims that were stopped since the backup: no record starts them again, and nothing claims
    /// their capacity when their owners do.
    fn kept_servers(&mut self, backup: &RestoredLedger, held: &BTreeMap<Uuid, Allocations>) {
        let leaving: BTreeSet<Uuid> = backup
            .picture
            .rows
            .iter()
            .flat_map(|row| row.victims.iter().copied())
            .collect();
        for (uuid, server) in &backup.picture.servers {
            let known = backup.comebacks.contains(uuid) || leaving.contains(uuid);
            if known || !is_kept(server, held.get(uuid)) {
                continue;
            }
            let host = server.provider.and_then(|p| backup.picture.hosts.get(&p));
            let host = host.map_or("", |host| host.name.as_str());
            self.look(
                ReconcileAction::Look,
                format!("server {uuid}"),
                host,
                format!(
                    "it was {} to make room, and the backup does not have it: it does not come back by itself",
                    server.vm_state
                ),
                "openstack server shelve, then unshelve: that claims its room anew; do not start it",
            );
        }
    }

    /// What Placement and Nova disagree about and no step answers. `answered`: the servers and
    /// consumers of lost swaps.
    fn findings(&mut self, backup: &RestoredLedger, answered: &BTreeSet<String>) {
        let report = audit::compare(&backup.picture);
        let is_answered = |found: &Disagreement| {
            let lost = OF_LOST_SWAPS.contains(&found.code) && answered.contains(&found.subject);
            lost || ANSWERED.contains(&found.code)
        };
        let open = report.findings.into_iter();
        for found in open.filter(|found| !is_answered(found)) {
            let why = format!("{}: {}", found.code, found.what);
            let action = ReconcileAction::Look;
            self.look(action, found.subject, "", why, found.next);
        }
    }
}

/// Where a victim is.
fn fate(
    backup: &RestoredLedger,
    held: &BTreeMap<Uuid, Allocations>,
    record: &Preemption,
    victim: &Victim,
) -> VictimFate {
    let id = victim.server.0;
    let had = amounts(&victim.had.allocations);
    let gone = |how| {
        let known = backup.ended.get(&id).copied();
        let at = known.unwrap_or_else(|| record.planned_at.plus(victim.grace));
        VictimFate::Gone { how, at }
    };
    let Some(server) = backup.picture.servers.get(&id) else {
        return gone(EvacuationEnd::Terminated);
    };
    let here = server.provider.is_some_and(|p| had.contains_key(&p));
    let nothing = Allocations::new();
    let now = held.get(&id).unwrap_or(&nothing);
    let computes = had
        .iter()
        .filter(|(provider, _)| backup.picture.hosts.contains_key(provider));
    let allocated = computes
        .clone()
        .all(|(provider, amounts)| now.get(provider) == Some(amounts));
    // Without newcomers no swap has taken anything, and a stopped server holds all of it.
    let kept = !allocated || !record.has_swap();
    match server.vm_state.as_str() {
        _ if !here && server.provider.is_some() && server.holds_room => {
            gone(EvacuationEnd::Migrated)
        }
        _ if !here => gone(EvacuationEnd::Terminated),
        "stopped" if kept => gone(EvacuationEnd::Stopped),
        "suspended" if kept => gone(EvacuationEnd::Hibernated),
        _ => VictimFate::Runs { allocated },
    }
}

/// Newcomers that Nova has on the host of the record.
fn came(backup: &RestoredLedger, record: &Preemption) -> Vec<Uuid> {
    let here = record.newcomers.iter().filter(|newcomer| {
        let server = backup.picture.servers.get(&newcomer.instance);
        let server = server.filter(|server| server.vm_state != "shelved_offloaded");
        let host = server.and_then(|server| backup.picture.hosts.get(&server.provider?));
        host.is_some_and(|host| host.name == newcomer.host)
    });
    here.map(|newcomer| newcomer.instance).collect()
}

fn why(record: &Preemption, fates: &[VictimFate], came: &[Uuid]) -> String {
    let mut parts = Vec::new();
    for (victim, fate) in record.victims.iter().zip(fates) {
        let server = victim.server;
        parts.push(match fate {
            VictimFate::Gone { how, .. } => format!("its victim {server} {}", word(*how)),
            VictimFate::Runs { allocated: true } => {
                format!("its victim {server} runs and holds its allocations")
            }
            VictimFate::Runs { allocated: false } => {
                format!("its victim {server} runs without its allocations")
            }
        });
    }
    for newcomer in &record.newcomers {
        let id = newcomer.instance;
        parts.push(match came.contains(&id) {
            true => format!("{id} is on {}", newcomer.host),
            false => format!("{id} is not on {}", newcomer.host),
        });
    }
    parts.join("; ")
}

fn word(how: EvacuationEnd) -> &'static str {
    match how {
        EvacuationEnd::Stopped => "was stopped",
        EvacuationEnd::Hibernated => "was suspended",
        EvacuationEnd::Migrated => "runs on another host",
        EvacuationEnd::Terminated | EvacuationEnd::Fenced | EvacuationEnd::AlreadyGone => "is gone",
    }
}

/// Whether a server was stopped or suspended and holds only its disk.
fn is_kept(server: &AuditServer, held: Option<&Allocations>) -> bool {
    let stopped = matches!(server.vm_state.as_str(), "stopped" | "suspended");
    let home = server.provider.and_then(|home| held?.get(&home));
    stopped
        && server.task_state.is_none()
        && home.is_some_and(|holds| holds.keys().all(|class| class == "DISK_GB"))
}
