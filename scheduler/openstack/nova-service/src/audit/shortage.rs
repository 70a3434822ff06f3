//! Servers that run and hold less in Placement than their flavor asks for. Pure.
//!
//! Placement shows the difference as free and gives it to others. A preemption leaves a victim with
//! less while it is under way; when the ledger loses the record, nothing gives it back.

use super::compare::{Amounts, AuditServer, AuditSnapshot, Disagreement, Host, host_name, parts};
use ebbtide_model::{InterruptionBehaviour, Seconds, Timestamp};
use ebbtide_nova_cloud::Allocations;
use std::collections::BTreeSet;
use uuid::Uuid;

/// States in which a server occupies all of its flavor. Stopped and suspended victims hold their
/// disk only.
const RUNNING: [&str; 2] = ["active", "paused"];
/// The classes of CPUs. Nova claims one for the other: an image may ask for dedicated CPUs, and a
/// host without them gives shared ones.
const CPUS: [&str; 2] = ["VCPU", "PCPU"];
/// What a victim that is stopped gives back. It keeps its disk and its devices.
const GIVEN_BACK: [&str; 3] = ["VCPU", "PCPU", "MEMORY_MB"];
/// The classes of every server, whose provider may be another than the compute node.
const ORDINARY: [&str; 4] = ["VCPU", "PCPU", "MEMORY_MB", "DISK_GB"];

/// What a server's row and flavor say about its evacuation.
#[derive(Debug, Clone, PartialEq)]
pub struct PreemptibleServer {
    /// Name of its flavor.
    pub flavor: String,
    pub behaviour: InterruptionBehaviour,
    /// Time from notice to end, if the flavor says so.
    pub grace: Option<Seconds>,
    pub launched_at: Option<Timestamp>,
    pub project_id: String,
    pub user_id: String,
    /// Which CPUs it claims on a host that has both kinds.
    pub cpus: CpuKind,
}

/// The kind of CPUs that a server claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuKind {
    Shared,
    Dedicated,
    /// Both, or its image decides.
    Unclear,
}

/// All that a consumer holds, on whatever provider.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WholeHolding {
    pub allocations: Allocations,
    /// `None`: Placement does not know the consumer.
    pub generation: Option<u64>,
    pub project_id: Option<String>,
    pub user_id: Option<String>,
}

/// Whether a preemptible server is stopped and keeps nothing of its flavor: it has no disk on its
/// host, for example because it boots from a volume, and no device.
pub(super) fn may_hold_nothing(server: &AuditServer) -> bool {
    let mut due = server.due.iter().filter(|(_, amount)| **amount > 0);
    server.preemptible.is_some()
        && server.vm_state == "stopped"
        && !server.due.is_empty()
        && due.all(|(class, _)| GIVEN_BACK.contains(&class.as_str()))
}

/// A server that runs and holds less than its flavor asks for.
#[derive(Debug)]
pub(crate) struct Shortage<'a> {
    pub(crate) uuid: Uuid,
    pub(crate) server: &'a AuditServer,
    pub(crate) home: Uuid,
    pub(crate) host: &'a Host,
    /// CPUs under the class that its flavor names.
    pub(crate) missing: Amounts,
    pub(crate) holds: &'a WholeHolding,
}

impl Shortage<'_> {
    /// What is missing, by the classes that its compute node has. `None`: another provider has
    /// them, or it is not clear which kind of CPUs it claimed.
    pub(crate) fn at_home(&self) -> Option<Amounts> {
        let has = |class: &str| self.host.capacity.contains_key(class);
        let cpus = match (has("VCPU"), has("PCPU")) {
            (true, false) => Some("VCPU"),
            (false, true) => Some("PCPU"),
            (true, true) => match self.server.preemptible.as_ref()?.cpus {
                CpuKind::Shared => Some("VCPU"),
                CpuKind::Dedicated => Some("PCPU"),
                CpuKind::Unclear => None,
            },
            (false, false) => None,
        };
        let placed = self.missing.iter().map(|(class, amount)| {
            let class = match CPUS.contains(&class.as_str()) {
                true => cpus?,
                false => Some(class.as_str()).filter(|class| has(class))?,
            };
            Some((class.to_owned(), *amount))
        });
        placed.collect()
    }

    /// In words.
    pub(crate) fn words(&self) -> String {
        parts(&self.missing)
    }
}

/// Servers whose compute node shows less than their flavor asks for. Only these are read whole.
pub(super) fn suspects(picture: &AuditSnapshot) -> Vec<Uuid> {
    let all = judged(picture);
    let short = all.filter(|(uuid, server, _, host)| {
        let nothing = Amounts::new();
        let holds = host.consumers.get(uuid).unwrap_or(&nothing);
        let missing = missing(server, host, |class| amount(holds, class));
        // A device of its own provider is no news, unless a preemption may have taken it.
        let may_lose = |class: &String| server.preemptible.is_some() || !device(host, class);
        missing.keys().any(may_lose)
    });
    short.map(|(uuid, ..)| uuid).collect()
}

/// The servers that hold less than their flavor asks for.
pub(crate) fn shortages(picture: &AuditSnapshot) -> Vec<Shortage<'_>> {
    let all = judged(picture).filter_map(|(uuid, server, home, host)| {
        let holds = picture.whole.get(&uuid)?;
        let held = |class: &str| {
            let of = holds.allocations.values();
            let of = of.map(|amounts| amount(amounts, class));
            of.fold(0, u64::saturating_add)
        };
        let missing = missing(server, host, held);
        (!missing.is_empty()).then_some(Shortage {
            uuid,
            server,
            home,
            host,
            missing,
            holds,
        })
    });
    all.collect()
}

pub(super) fn find(picture: &AuditSnapshot, findings: &mut Vec<Disagreement>) {
    for found in shortages(picture) {
        // EB-AUDIT-003 says so.
        if !found.holds.allocations.contains_key(&found.home) {
            continue;
        }
        findings.push(Disagreement {
            code: "EB-AUDIT-017",
            subject: format!("server {} ({})", found.server.name, found.uuid),
            what: format!(
                "it is {} on {} and holds {} less than its flavor takes",
                found.server.vm_state,
                host_name(picture, found.home),
                found.words()
            ),
            next: "its capacity may be given to others: after a restore, ebbtide-manage reconcile; else nova-manage placement heal_allocations --force --instance ID",
        });
    }
}

/// Servers that run on a compute node that Placement has, and that nothing changes at present.
fn judged(picture: &AuditSnapshot) -> impl Iterator<Item = (Uuid, &AuditServer, Uuid, &Host)> {
    let mut busy: BTreeSet<Uuid> = picture.migrations.values().map(|m| m.server).collect();
    for row in &picture.rows {
        busy.extend(row.victims.iter().chain(&row.newcomers));
        let record = row.record.iter();
        busy.extend(
            record
                .clone()
                .flat_map(|r| r.victims.iter().map(|v| v.server.0)),
        );
        busy.extend(record.flat_map(|r| r.newcomers.iter().map(|n| n.instance)));
    }
    busy.extend(&picture.retained);
    let servers = picture.servers.iter().filter(move |(uuid, server)| {
        RUNNING.contains(&server.vm_state.as_str())
            && server.task_state.is_none()
            && server.holds_room
            && !busy.contains(uuid)
    });
    servers.filter_map(|(uuid, server)| {
        let home = server.provider?;
        Some((*uuid, server, home, picture.hosts.get(&home)?))
    })
}

/// What a server lacks of its flavor. An ordinary class that the compute node does not have, as a
/// shared disk, does not count.
fn missing(server: &AuditServer, host: &Host, held: impl Fn(&str) -> u64) -> Amounts {
    let mut missing = Amounts::new();
    let cpus = |of: &dyn Fn(&str) -> u64| CPUS.iter().map(|c| of(c)).fold(0, u64::saturating_add);
    let due = |class: &str| amount(&server.due, class);
    let lack = cpus(&due).saturating_sub(cpus(&held));
    if lack > 0 && CPUS.iter().any(|class| host.capacity.contains_key(*class)) {
        let named = if due("PCPU") > due("VCPU") {
            "PCPU"
        } else {
            "VCPU"
        };
        missing.insert(named.to_owned(), lack);
    }
    let others = server.due.iter().filter(|(class, _)| {
        let class = class.as_str();
        !CPUS.contains(&class) && (host.capacity.contains_key(class) || device(host, class))
    });
    for (class, due) in others {
        let lack = due.saturating_sub(held(class));
        if lack > 0 {
            missing.insert(class.clone(), lack);
        }
    }
    missing
}

/// Whether a class is of a device that is not at the compute node itself.
fn device(host: &Host, class: &str) -> bool {
    !ORDINARY.contains(&class) && !host.capacity.contains_key(class)
}

fn amount(amounts: &Amounts, class: &str) -> u64 {
    amounts.get(class).copied().unwrap_or(0)
}
