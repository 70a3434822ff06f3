//! Compares the data of an audit. Pure.

use super::AuditReport;
use super::shortage::{self, PreemptibleServer, WholeHolding};
use crate::preemption::{Preemption, PreemptionState, ReplyWhen};
use ebbtide_bus::QueueUse;
use ebbtide_model::GroupId;
use ebbtide_model::record::RestoreMark;
use ebbtide_nova_cloud::Allocations;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// Amounts by resource class.
pub(super) type Amounts = BTreeMap<String, u64>;

/// A compute node in Placement.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// Host of the service.
    pub name: String,
    /// Capacity of each class: `(total - reserved) * allocation_ratio`.
    pub capacity: Amounts,
    /// What each consumer holds.
    pub consumers: BTreeMap<Uuid, Amounts>,
}

/// A server that is not deleted.
#[derive(Debug, Clone, Default)]
pub struct AuditServer {
    /// Its owner's name for it.
    pub name: String,
    /// The provider of the compute node where it is.
    pub provider: Option<Uuid>,
    /// `active`, `stopped`, …
    pub vm_state: String,
    /// Nova's current task.
    pub task_state: Option<String>,
    /// True if it occupies its host: not shelved and offloaded, not without a host.
    pub holds_room: bool,
    /// What it uses of its host while it is there and has no task: only the disk if it is stopped
    /// or suspended.
    pub runs_on: Amounts,
    /// The least that it holds in Placement while it runs, by its flavor. Empty: its flavor cannot
    /// be read, or is about to change.
    pub due: Amounts,
    /// How it would leave; `None` for a normal server.
    pub preemptible: Option<PreemptibleServer>,
}

/// A migration that has not ended. Its id is a consumer, too.
#[derive(Debug, Clone)]
pub struct Migration {
    pub server: Uuid,
}

/// A preemption that has not ended.
#[derive(Debug, Clone)]
pub struct PreemptionRow {
    pub id: Uuid,
    /// One more with every write.
    pub version: i64,
    /// Nova's request id.
    pub request_id: String,
    /// The scheduler that drives it.
    pub owner: String,
    /// True if that scheduler has sent a heartbeat recently, with the epoch in which it took the
    /// row.
    pub is_driven: bool,
    /// Seconds since the last write to it.
    pub quiet_seconds: i64,
    /// Its state in the table.
    pub state: String,
    /// Its victims in the table that keeps a server from being a victim twice.
    pub victims: BTreeSet<Uuid>,
    /// Its newcomers in the table by which a redelivered request finds it.
    pub newcomers: BTreeSet<Uuid>,
    /// Its record; `None` if it is unreadable.
    pub record: Option<Preemption>,
}

/// A row of the ledger's database that no scheduler can read.
#[derive(Debug, Clone)]
pub struct UnreadableRow {
    pub table: String,
    pub key: String,
    /// What is wrong with it.
    pub reason: String,
}

/// The data of an audit, read as close together as possible.
#[derive(Debug, Clone, Default)]
pub struct AuditSnapshot {
    /// By provider.
    pub hosts: BTreeMap<Uuid, Host>,
    /// By id.
    pub servers: BTreeMap<Uuid, AuditServer>,
    /// All that servers hold whose compute node shows less than they need.
    pub whole: BTreeMap<Uuid, WholeHolding>,
    /// By id.
    pub migrations: BTreeMap<Uuid, Migration>,
    /// The ledger's open rows.
    pub rows: Vec<PreemptionRow>,
    /// Evacuated servers that the ledger keeps for their return.
    pub retained: BTreeSet<Uuid>,
    /// The ledger was restored from a backup and is not reconciled yet.
    pub restored: Option<RestoreMark>,
    /// Server groups that have a disruption budget, and whether Nova has them.
    pub budgeted_groups: BTreeMap<GroupId, bool>,
    /// The first row of each table beside the ledger's own that cannot be read.
    pub unreadable: Vec<UnreadableRow>,
    /// The queues that the agents of removed hosts still have, by host.
    pub removed_agents: BTreeMap<String, QueueUse>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Disagreement {
    /// Stable code, as in `docs/reference/errors.md`.
    pub code: &'static str,
    /// Its subject: a host, a server, a consumer or a preemption.
    pub subject: String,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub next: &'static str,
}

/// An evacuation counts as stuck this long after all its deadlines without a report.
const STUCK_SECONDS: i64 = 900;
/// An agent reports a victim's end well within this time.
const UNNOTICED_SECONDS: i64 = 120;

/// Finds every disagreement.
#[must_use]
pub fn compare(picture: &AuditSnapshot) -> AuditReport {
    let mut findings = Vec::new();
    let held = held(picture);
    over_capacity(picture, &mut findings);
    run_without_room(picture, &mut findings);
    orphaned_consumers(picture, &held, &mut findings);
    servers(picture, &held, &mut findings);
    shortage::find(picture, &mut findings);
    rows(picture, &held, &mut findings);
    columns(picture, &mut findings);
    budgets(picture, &mut findings);
    unreadable(picture, &mut findings);
    removed_agents(picture, &mut findings);
    restored(picture, &mut findings);
    findings.sort();
    AuditReport {
        hosts: picture.hosts.len(),
        servers: picture.servers.len(),
        consumers: held.len(),
        preemptions: picture.rows.len(),
        findings,
    }
}

/// What each consumer holds, by provider.
pub(crate) fn held(picture: &AuditSnapshot) -> BTreeMap<Uuid, Allocations> {
    let mut held: BTreeMap<Uuid, Allocations> = BTreeMap::new();
    for (provider, host) in &picture.hosts {
        for (consumer, amounts) in &host.consumers {
            let of = held.entry(*consumer).or_default();
            of.insert(*provider, amounts.clone());
        }
    }
    held
}

fn over_capacity(picture: &AuditSnapshot, findings: &mut Vec<Disagreement>) {
    for host in picture.hosts.values() {
        let mut used: Amounts = BTreeMap::new();
        for (class, amount) in host.consumers.values().flatten() {
            let sum = used.entry(class.clone()).or_default();
            *sum = sum.saturating_add(*amount);
        }
        for (class, used) in used {
            let capacity = host.capacity.get(&class).copied().unwrap_or(0);
            if used > capacity {
                findings.push(Disagreement {
                    code: "EB-AUDIT-001",
                    subject: format!("host {}", host.name),
                    what: format!("{used} of {capacity} {class} are given away"),
                    next: "nothing new is placed there; move servers away, or raise the allocation ratio",
                });
            }
        }
    }
}

/// Finds hosts on which more runs than they have, and running victims whose capacity no consumer
/// holds: Placement shows that capacity as free and gives it to others.
fn run_without_room(picture: &AuditSnapshot, findings: &mut Vec<Disagreement>) {
    // With an early answer a newcomer starts beside its victims, as the operator has configured.
    let early: BTreeSet<Uuid> = records(picture)
        .filter(|(_, record)| record.reply_when == ReplyWhen::AtOnce && record.answered)
        .flat_map(|(_, record)| record.newcomers.iter().map(|newcomer| newcomer.instance))
        .collect();
    let mut runs: BTreeMap<Uuid, Amounts> = BTreeMap::new();
    for (uuid, server) in &picture.servers {
        let Some(provider) = server.provider.filter(|_| !early.contains(uuid)) else {
            continue;
        };
        let on_host = runs.entry(provider).or_default();
        for (class, amount) in &server.runs_on {
            let sum = on_host.entry(class.clone()).or_default();
            *sum = sum.saturating_add(*amount);
        }
    }
    for (provider, host) in &picture.hosts {
        for (class, runs) in runs.remove(provider).unwrap_or_default() {
            // A class that the provider does not have comes from elsewhere: a shared disk, or CPUs
            // under another class.
            let capacity = host.capacity.get(&class).copied();
            if let Some(capacity) = capacity.filter(|capacity| runs > *capacity) {
                findings.push(Disagreement {
                    code: "EB-AUDIT-010",
                    subject: format!("host {}", host.name),
                    what: format!("servers run there that take {runs} of {capacity} {class}"),
                    next: "move servers away: openstack server migrate --live-migration",
                });
            }
        }
        for (row, record) in records(picture) {
            unseen(row, record, *provider, picture, findings);
        }
    }
}

/// What a preemption's running victims use at a provider and neither they nor its newcomers hold.
fn unseen(
    row: &PreemptionRow,
    record: &Preemption,
    provider: Uuid,
    picture: &AuditSnapshot,
    findings: &mut Vec<Disagreement>,
) {
    let Some(host) = picture.hosts.get(&provider) else {
        return;
    };
    let mut missing: Amounts = BTreeMap::new();
    let mut who = Vec::new();
    for victim in record.survivors() {
        let lives = picture
            .servers
            .get(&victim.server.0)
            .is_some_and(|server| server.provider == Some(provider));
        let had = crate::facts::amounts(&victim.had.allocations);
        if let Some(had) = had.get(&provider).filter(|_| lives) {
            who.push(victim.server.to_string());
            for (class, amount) in had {
                *missing.entry(class.clone()).or_default() += amount;
            }
        }
    }
    let victims = record.victims.iter().map(|victim| victim.server.0);
    let newcomers = record.newcomers.iter().map(|newcomer| newcomer.instance);
    for holds in victims
        .chain(newcomers)
        .filter_map(|c| host.consumers.get(&c))
    {
        for (class, amount) in holds {
            if let Some(left) = missing.get_mut(class) {
                *left = left.saturating_sub(*amount);
            }
        }
    }
    missing.retain(|_, amount| *amount > 0);
    if !missing.is_empty() {
        findings.push(Disagreement {
            code: "EB-AUDIT-011",
            subject: format!("preemption {} of {}", row.id, row.request_id),
            what: format!(
                "{} of its victims {} run on {} without an allocation",
                parts(&missing),
                who.join(", "),
                host.name
            ),
            next: "its scheduler gives it back as soon as Placement takes it; see EB-DOOR-023 in its log if it does not",
        });
    }
}

fn orphaned_consumers(
    picture: &AuditSnapshot,
    held: &BTreeMap<Uuid, Allocations>,
    findings: &mut Vec<Disagreement>,
) {
    let newcomers: BTreeSet<Uuid> = records(picture)
        .flat_map(|(_, record)| record.newcomers.iter().map(|newcomer| newcomer.instance))
        .collect();
    for (consumer, allocations) in held {
        let known = picture.servers.contains_key(consumer)
            || picture.migrations.contains_key(consumer)
            || newcomers.contains(consumer);
        if !known {
            findings.push(Disagreement {
                code: "EB-AUDIT-002",
                subject: format!("consumer {consumer}"),
                what: format!(
                    "it holds {} and is no server, no migration and no newcomer of a preemption",
                    words(picture, allocations)
                ),
                next: "if it is Nova's: nova-manage placement audit --delete",
            });
        }
    }
}

fn servers(
    picture: &AuditSnapshot,
    held: &BTreeMap<Uuid, Allocations>,
    findings: &mut Vec<Disagreement>,
) {
    let leaving: BTreeSet<Uuid> = records(picture)
        .flat_map(|(_, record)| record.victims.iter().map(|victim| victim.server.0))
        .collect();
    let moving: BTreeSet<Uuid> = picture.migrations.values().map(|m| m.server).collect();
    let nothing = Allocations::new();
    for (uuid, server) in &picture.servers {
        // A server in transition is not checked.
        if server.task_state.is_some() || moving.contains(uuid) || leaving.contains(uuid) {
            continue;
        }
        let subject = format!("server {} ({uuid})", server.name);
        let allocations = held.get(uuid).unwrap_or(&nothing);
        let home = server.provider.filter(|_| server.holds_room);
        if let Some(home) = home
            && !allocations.contains_key(&home)
            && !shortage::may_hold_nothing(server)
        {
            let host = host_name(picture, home);
            findings.push(Disagreement {
                code: "EB-AUDIT-003",
                subject: subject.clone(),
                what: format!(
                    "it is {} on {host} and holds nothing there",
                    server.vm_state
                ),
                next: "its room may be given to others: nova-manage placement heal_allocations",
            });
        }
        // A provider without a compute node (shared storage) belongs to no host.
        let elsewhere = allocations
            .keys()
            .filter(|provider| Some(**provider) != home);
        for provider in elsewhere {
            findings.push(Disagreement {
                code: "EB-AUDIT-004",
                subject: subject.clone(),
                what: format!(
                    "it holds room on {} and is not there",
                    host_name(picture, *provider)
                ),
                next: "if no compute is about to clean up after it: nova-manage placement audit --delete",
            });
        }
    }
}

fn rows(
    picture: &AuditSnapshot,
    held: &BTreeMap<Uuid, Allocations>,
    findings: &mut Vec<Disagreement>,
) {
    for row in &picture.rows {
        let subject = format!("preemption {} of {}", row.id, row.request_id);
        let mut found = |code, what, next| {
            findings.push(Disagreement {
                code,
                subject: subject.clone(),
                what,
                next,
            });
        };
        let Some(record) = &row.record else {
            found(
                "EB-AUDIT-005",
                "its record cannot be read".to_owned(),
                "a newer scheduler has written it: start that one",
            );
            continue;
        };
        if !row.is_driven {
            found(
                "EB-AUDIT-006",
                format!(
                    "no scheduler drives it: {} has given no sign of life lately",
                    row.owner
                ),
                "start a scheduler: it adopts what it finds",
            );
        } else if row.quiet_seconds > STUCK_SECONDS {
            found(
                "EB-AUDIT-007",
                format!(
                    "{} for {} s without anything new",
                    record.state.as_str(),
                    row.quiet_seconds
                ),
                "look at the agents of its victims' hosts, and at EB-DOOR lines of the scheduler's log",
            );
        }
        if matches!(
            record.state,
            PreemptionState::Claimed | PreemptionState::Evacuating
        ) {
            for newcomer in &record.newcomers {
                if !held.contains_key(&newcomer.instance)
                    && picture.servers.contains_key(&newcomer.instance)
                {
                    found(
                        "EB-AUDIT-008",
                        format!(
                            "its newcomer {} holds nothing in Placement",
                            newcomer.instance
                        ),
                        "the claim was deleted; the victims that can stay are spared when the caller gives up",
                    );
                }
            }
        }
        for victim in &record.victims {
            let lives = picture.servers.contains_key(&victim.server.0);
            if victim.state.is_open() && !lives && row.quiet_seconds > UNNOTICED_SECONDS {
                found(
                    "EB-AUDIT-009",
                    format!(
                        "its victim {} is gone from Nova and the ledger still waits for it",
                        victim.server
                    ),
                    "look at the agent of its host: it reports such victims within a minute",
                );
            }
        }
    }
}

/// Finds rows whose columns say something else than their record: schedulers look rows up by the
/// columns and act on the record.
fn columns(picture: &AuditSnapshot, findings: &mut Vec<Disagreement>) {
    for (row, record) in records(picture) {
        let victims: BTreeSet<Uuid> = record.victims.iter().map(|v| v.server.0).collect();
        let newcomers: BTreeSet<Uuid> = record.newcomers.iter().map(|n| n.instance).collect();
        let mut wrong = Vec::new();
        if row.state != record.state.as_str() {
            wrong.push(format!(
                "is {} there and {}",
                row.state,
                record.state.as_str()
            ));
        }
        for (what, there, here) in [
            ("victims", &row.victims, &victims),
            ("newcomers", &row.newcomers, &newcomers),
        ] {
            if there != here {
                let (more, fewer) = (there.difference(here), here.difference(there));
                wrong.push(format!(
                    "has other {what} there: {}",
                    differing(more, fewer)
                ));
            }
        }
        if !wrong.is_empty() {
            findings.push(Disagreement {
                code: "EB-AUDIT-012",
                subject: format!("preemption {} of {}", row.id, row.request_id),
                what: format!("the columns contradict its record: it {}", wrong.join("; it ")),
                next: "no scheduler writes that: see who changed the ledger's tables, and report it",
            });
        }
    }
}

/// What is there too much, and what is missing.
fn differing<'a>(
    more: impl Iterator<Item = &'a Uuid>,
    fewer: impl Iterator<Item = &'a Uuid>,
) -> String {
    let more = more.map(|uuid| format!("{uuid} too"));
    let fewer = fewer.map(|uuid| format!("without {uuid}"));
    more.chain(fewer).collect::<Vec<_>>().join(", ")
}

fn budgets(picture: &AuditSnapshot, findings: &mut Vec<Disagreement>) {
    for (group, _) in picture
        .budgeted_groups
        .iter()
        .filter(|(_, exists)| !**exists)
    {
        findings.push(Disagreement {
            code: "EB-AUDIT-013",
            subject: format!("disruption budget of server group {group}"),
            what: "Nova has no such server group, so the budget protects no server".to_owned(),
            next: "ebbtide budget delete --group ID",
        });
    }
}

fn unreadable(picture: &AuditSnapshot, findings: &mut Vec<Disagreement>) {
    for row in &picture.unreadable {
        findings.push(Disagreement {
            code: "EB-AUDIT-014",
            subject: format!("row {:?} of the table {}", row.key, row.table),
            what: format!("no scheduler can read it: {}", row.reason),
            next: "repair or delete it; requests go on, and what the table is for does not",
        });
    }
}

/// Finds what removed hosts have left at the broker of the agents.
fn removed_agents(picture: &AuditSnapshot, findings: &mut Vec<Disagreement>) {
    for (host, used) in &picture.removed_agents {
        let what = match used.consumers {
            0 => "its compute service was deleted, and its agent's queue is still at the broker",
            _ => "its compute service was deleted, and its agent still reads its queue",
        };
        findings.push(Disagreement {
            code: "EB-AUDIT-015",
            subject: format!("host {host}"),
            what: what.to_owned(),
            next: "stop the agent and delete its login at the broker, then: ebbtide host remove HOST",
        });
    }
}

fn restored(picture: &AuditSnapshot, findings: &mut Vec<Disagreement>) {
    findings.extend(picture.restored.map(|mark| Disagreement {
        code: "EB-AUDIT-016",
        subject: "ledger".to_owned(),
        what: format!(
            "it was restored from a backup (marked at {}) and is not reconciled with Placement and Nova; no server is preempted",
            mark.at
        ),
        next: "ebbtide-manage reconcile --config-file /etc/nova/nova.conf",
    }));
}

fn records(picture: &AuditSnapshot) -> impl Iterator<Item = (&PreemptionRow, &Preemption)> {
    picture
        .rows
        .iter()
        .filter_map(|row| Some((row, row.record.as_ref()?)))
}

pub(super) fn host_name(picture: &AuditSnapshot, provider: Uuid) -> String {
    match picture.hosts.get(&provider) {
        Some(host) => host.name.clone(),
        None => format!("provider {provider}"),
    }
}

fn words(picture: &AuditSnapshot, allocations: &Allocations) -> String {
    let on = allocations.iter().map(|(provider, amounts)| {
        let host = host_name(picture, *provider);
        format!("{} on {host}", parts(amounts))
    });
    on.collect::<Vec<_>>().join("; ")
}

/// Amounts in words.
pub(super) fn parts(amounts: &Amounts) -> String {
    let amounts = amounts.iter().map(|(class, n)| format!("{n} {class}"));
    amounts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
