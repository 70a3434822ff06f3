//! Placement as far as a preemption meets it: providers with a capacity, consumers with generations, `POST /allocations` as one
//! transaction.

use ebbtide_preemption::Holding;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

/// What a consumer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) generation: u64,
    pub(super) host: usize,
    pub(super) vcpus: u64,
}

/// One consumer in a `POST /allocations`: what it is to hold, and the generation that it must have; `None`: it must not exist.
#[derive(Debug, Clone, Copy)]
pub(super) struct Write {
    pub(super) consumer: Uuid,
    pub(super) holds: Option<(usize, u64)>,
    pub(super) generation: Option<u64>,
}

/// What whoever asked hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Done,
    Conflict,
    /// Nothing: it may have been done or not.
    Lost,
}

/// Placement.
#[derive(Debug, Default)]
pub(super) struct Placement {
    pub(super) capacity: Vec<u64>,
    pub(super) consumers: BTreeMap<Uuid, Held>,
    /// The next answer is lost.
    pub(super) silent: bool,
    /// The next question is not heard.
    pub(super) away: bool,
    /// Broken on purpose: old generations are taken, and nobody counts.
    pub(super) careless: bool,
}

impl Placement {
    pub(super) fn used(&self, host: usize) -> u64 {
        let here = self.consumers.values().filter(|h| h.host == host);
        here.map(|h| h.vcpus).sum()
    }

    /// All or nothing.
    pub(super) fn post(&mut self, writes: &[Write]) -> Answer {
        if std::mem::take(&mut self.away) {
            return Answer::Lost;
        }
        let as_said = writes.iter().all(|w| {
            let present = self.consumers.get(&w.consumer).map(|h| h.generation);
            present == w.generation
        });
        let mut after = self.consumers.clone();
        for write in writes {
            match write.holds {
                None => drop(after.remove(&write.consumer)),
                Some((host, vcpus)) => {
                    let before = self.consumers.get(&write.consumer);
                    let generation = before.map_or(0, |h| h.generation) + 1;
                    let held = Held {
                        generation,
                        host,
                        vcpus,
                    };
                    after.insert(write.consumer, held);
                }
            }
        }
        let before = std::mem::replace(&mut self.consumers, after);
        let fits = writes
            .iter()
            .filter_map(|w| w.holds)
            .all(|(host, _)| self.used(host) <= self.capacity.get(host).copied().unwrap_or(0));
        if !(self.careless || as_said && fits) {
            self.consumers = before;
            return Answer::Conflict;
        }
        if std::mem::take(&mut self.silent) {
            return Answer::Lost;
        }
        Answer::Done
    }

    /// Somebody else writes the same once more: only the generation is another.
    pub(super) fn touch(&mut self, n: usize) -> bool {
        let count = self.consumers.len().max(1);
        let held = self.consumers.values_mut().nth(n % count);
        held.map(|h| h.generation += 1).is_some()
    }
}

/// A holding in the form in which records keep it.
pub(super) fn holding(host: usize, vcpus: u64, generation: Option<u64>) -> Holding {
    Holding {
        allocations: json!({ host.to_string(): { "resources": { "VCPU": vcpus } } }),
        mappings: None,
        project_id: "p".to_owned(),
        user_id: "u".to_owned(),
        generation,
    }
}

/// What a holding says.
pub(super) fn amounts(holding: &Holding) -> Option<(usize, u64)> {
    let (host, of) = holding.allocations.as_object()?.iter().next()?;
    let vcpus = of.pointer("/resources/VCPU").and_then(Value::as_u64)?;
    Some((host.parse().ok()?, vcpus))
}
