//! Swaps that the backup does not know: victims that run and hold less than before. Pure.
//!
//! A lost swap becomes a record again, as a scheduler would have it: withdrawn if the victims'
//! capacity is free once newcomers that are on no host have lost their claims; else under way, so
//! that a victim leaves with notice. Schedulers drive the record as any other, so that Placement
//! is written where every write is proved, and is repeated until Placement takes it.

use super::plan::Planned;
use super::read::RestoredLedger;
use crate::audit::{AuditSnapshot, PreemptibleServer, Shortage, shortages};
use crate::preemption::{Holding, Newcomer, Preemption, Victim, VictimState};
use ebbtide_model::{EvacuationId, ReconcileAction, Seconds, ServerId, Timestamp};
use ebbtide_nova_cloud::Allocations;
use ebbtide_runtime::ids;
use ebbtide_store::ledger::LostRow;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

type Amounts = BTreeMap<String, u64>;

/// A victim of a lost swap, and what it gets back at its compute node.
struct LostVictim<'a> {
    found: Shortage<'a>,
    terms: &'a PreemptibleServer,
    missing: Amounts,
}

/// The victims of lost swaps, by compute node: those that run longest first, which lose most.
fn victims(picture: &AuditSnapshot) -> BTreeMap<Uuid, Vec<LostVictim<'_>>> {
    let mut by_node: BTreeMap<Uuid, Vec<LostVictim<'_>>> = BTreeMap::new();
    for found in shortages(picture) {
        // A normal server was no victim, and what another provider gave cannot be told.
        if let Some(terms) = &found.server.preemptible
            && let Some(missing) = found.at_home()
        {
            let of_node = by_node.entry(found.home).or_default();
            of_node.push(LostVictim {
                found,
                terms,
                missing,
            });
        }
    }
    for of_node in by_node.values_mut() {
        of_node.sort_by_key(|victim| (victim.terms.launched_at, victim.found.uuid));
    }
    by_node
}

/// Capacity of a compute node that no consumer holds.
struct FreeCapacity(BTreeMap<String, i128>);

impl FreeCapacity {
    fn of(picture: &AuditSnapshot, node: Uuid) -> Self {
        let mut free = BTreeMap::new();
        if let Some(host) = picture.hosts.get(&node) {
            for (class, capacity) in &host.capacity {
                free.insert(class.clone(), i128::from(*capacity));
            }
            for (class, amount) in host.consumers.values().flatten() {
                *free.entry(class.clone()).or_default() -= i128::from(*amount);
            }
        }
        Self(free)
    }

    /// Takes these amounts, if all of them are free.
    fn take(&mut self, amounts: &Amounts) -> bool {
        let free = |class: &String| self.0.get(class).copied().unwrap_or(0);
        if amounts
            .iter()
            .any(|(class, n)| free(class) < i128::from(*n))
        {
            return false;
        }
        for (class, amount) in amounts {
            *self.0.entry(class.clone()).or_default() -= i128::from(*amount);
        }
        true
    }

    fn release(&mut self, amounts: &Amounts) {
        for (class, amount) in amounts {
            *self.0.entry(class.clone()).or_default() += i128::from(*amount);
        }
    }
}

impl Planned {
    /// Makes records of lost swaps. Gives the subjects of findings that the steps answer.
    pub(super) fn lost_swaps(
        &mut self,
        backup: &RestoredLedger,
        now: Timestamp,
        default_grace: Seconds,
    ) -> BTreeSet<String> {
        let picture = &backup.picture;
        let mut answered = BTreeSet::new();
        for (node, victims) in victims(picture) {
            let mut free = FreeCapacity::of(picture, node);
            let (mut back, mut short) = (Vec::new(), Vec::new());
            for victim in victims {
                answered.insert(subject(&victim));
                match free.take(&victim.missing) {
                    true => back.push(victim),
                    false => short.push(victim),
                }
            }
            // Their claims are the swap's other half: nothing runs for them.
            let newcomers = match short.is_empty() {
                true => Vec::new(),
                false => claims(backup, node),
            };
            for newcomer in &newcomers {
                let claim = crate::facts::amounts(&newcomer.claim.allocations);
                free.release(claim.get(&node).unwrap_or(&Amounts::new()));
                answered.insert(format!("consumer {}", newcomer.instance));
            }
            let (more, leaving): (Vec<_>, Vec<_>) = short
                .into_iter()
                .partition(|victim| free.take(&victim.missing));
            back.extend(more);
            free.release(&of_building(backup, node));
            for victim in leaving {
                match free.take(&victim.missing) {
                    true => self.waits(&victim),
                    false => self.ends(&victim, now, default_grace),
                }
            }
            if !back.is_empty() {
                self.goes_back(&back, newcomers, now, default_grace);
            }
        }
        answered
    }

    /// A server that is being built claims what a victim runs in. It may be the swap's newcomer,
    /// which comes to nothing.
    fn waits(&mut self, victim: &LostVictim<'_>) {
        self.look(
            ReconcileAction::Look,
            format!("server {}", victim.found.uuid),
            &victim.found.host.name,
            format!(
                "it runs and lacks {} of its allocations, which a server claims that is being built",
                victim.found.words()
            ),
            "wait until that server is active or in error, and reconcile then",
        );
    }

    /// Other servers hold what a victim runs in: it leaves with notice.
    fn ends(&mut self, victim: &LostVictim<'_>, now: Timestamp, default_grace: Seconds) {
        let (server, host) = (victim.found.uuid, &victim.found.host.name);
        self.step(
            ReconcileAction::Continue,
            format!("server {server}"),
            host,
            format!(
                "it runs and lacks {} of its allocations, which others hold: a preemption that the backup does not have took them",
                victim.found.words()
            ),
        );
        let record = victim.record(default_grace);
        self.lost_row(&Preemption::ending_lost_swap(ids::new(), record, now));
    }

    fn goes_back(
        &mut self,
        victims: &[LostVictim<'_>],
        newcomers: Vec<Newcomer>,
        now: Timestamp,
        default_grace: Seconds,
    ) {
        let Some(host) = victims.first().map(|first| first.found.host.name.as_str()) else {
            return;
        };
        for victim in victims {
            self.step(
                ReconcileAction::Spare,
                format!("server {}", victim.found.uuid),
                host,
                format!(
                    "it runs and lacks {} of its allocations, and has them again: a preemption that the backup does not have took them",
                    victim.found.words()
                ),
            );
        }
        for newcomer in &newcomers {
            self.step(
                ReconcileAction::Close,
                format!("consumer {}", newcomer.instance),
                host,
                "it is of a server on no host, and loses its claim: a preemption that the backup does not have made room for it".to_owned(),
            );
        }
        let records = victims.iter().map(|victim| victim.record(default_grace));
        let records = records.collect();
        let record = Preemption::returning_lost_swap(ids::new(), host, newcomers, records, now);
        self.lost_row(&record);
    }

    fn lost_row(&mut self, record: &Preemption) {
        self.work.lost.push(LostRow {
            id: record.id,
            request_id: record.request_id.clone(),
            state: record.state.as_str().to_owned(),
            newcomers: record.newcomers.iter().map(|n| n.instance).collect(),
            victims: record.victims.iter().map(|v| v.server.0).collect(),
            // Plain data with string keys always has a JSON form.
            document: serde_json::to_value(record).unwrap_or_default(),
        });
    }
}

impl LostVictim<'_> {
    fn record(&self, default_grace: Seconds) -> Victim {
        let (found, terms) = (&self.found, self.terms);
        let mut had = found.holds.allocations.clone();
        let at_home = had.entry(found.home).or_default();
        for (class, amount) in &self.missing {
            let has = at_home.entry(class.clone()).or_default();
            *has = has.saturating_add(*amount);
        }
        let holding = |allocations| Holding {
            allocations: json_of(allocations),
            mappings: None,
            project_id: owner(found.holds.project_id.as_ref(), &terms.project_id),
            user_id: owner(found.holds.user_id.as_ref(), &terms.user_id),
            generation: found.holds.generation,
        };
        let keeps = &found.holds.allocations;
        Victim {
            server: ServerId(found.uuid),
            name: found.server.name.clone(),
            cost: 0.0,
            evacuation: EvacuationId(ids::new()),
            host: found.host.name.clone(),
            had: holding(&had),
            generation: found.holds.generation.unwrap_or(0),
            keeps: (!keeps.is_empty()).then(|| holding(keeps)),
            behaviour: terms.behaviour,
            grace: terms.grace.unwrap_or(default_grace),
            flavor: terms.flavor.clone(),
            launched_at: terms.launched_at,
            released: false,
            state: VictimState::Claimed,
        }
    }
}

/// Claims at a compute node of servers that are on no host and that nothing builds.
fn claims(backup: &RestoredLedger, node: Uuid) -> Vec<Newcomer> {
    let Some(host) = backup.picture.hosts.get(&node) else {
        return Vec::new();
    };
    let abandoned = backup.abandoned.iter().filter(|(consumer, holds)| {
        host.consumers.contains_key(consumer) && holds.generation.is_some()
    });
    let newcomers = abandoned.map(|(consumer, holds)| Newcomer {
        instance: *consumer,
        host: host.name.clone(),
        claim: Holding {
            allocations: json_of(&holds.allocations),
            mappings: None,
            project_id: owner(holds.project_id.as_ref(), ""),
            user_id: owner(holds.user_id.as_ref(), ""),
            generation: holds.generation,
        },
        before: None,
    });
    newcomers.collect()
}

/// What servers that are being built hold at a compute node.
fn of_building(backup: &RestoredLedger, node: Uuid) -> Amounts {
    let host = backup.picture.hosts.get(&node);
    let consumers = host.iter().flat_map(|host| &host.consumers);
    let building = consumers.filter(|(consumer, _)| backup.building.contains(consumer));
    let mut sum = Amounts::new();
    for (class, amount) in building.flat_map(|(_, amounts)| amounts) {
        let of = sum.entry(class.clone()).or_default();
        *of = of.saturating_add(*amount);
    }
    sum
}

/// The subject of an audit's findings about a server.
fn subject(victim: &LostVictim<'_>) -> String {
    format!(
        "server {} ({})",
        victim.found.server.name, victim.found.uuid
    )
}

fn owner(known: Option<&String>, else_is: &str) -> String {
    known.map_or_else(|| else_is.to_owned(), Clone::clone)
}

fn json_of(allocations: &Allocations) -> serde_json::Value {
    let on = allocations.iter();
    let on = on.map(|(provider, amounts)| (provider.to_string(), json!({"resources": amounts})));
    on.collect::<serde_json::Map<_, _>>().into()
}

#[cfg(test)]
mod tests;
