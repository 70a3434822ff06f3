//! Writes of allocations, in the two halves in which they meet each other, and reads.
//!
//! Placement looks at consumers first, then writes in one transaction. A transaction that finds a
//! provider's generation raised is tried again *inside*, with the new generation, but counts usage
//! in the snapshot with which it began (`replace_all` and `_check_capacity_exceeded` of
//! `placement/objects/allocation.py`, on MariaDB's repeatable reads). So two writes at the same
//! time can take more than there is, and they do here, too.

use crate::model::{
    CONCURRENT, ConsumerResources, Model, ModelConsumer, ModelRequest, ModelResponse, Refusal,
    UNDEFINED, Version, used,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// A write that Placement has begun with and not committed.
#[derive(Debug, Clone)]
pub struct Flight {
    entries: Vec<Entry>,
    /// Consumers that were made for this write: a refusal removes them.
    made: Vec<Uuid>,
    /// Usage is counted in this.
    snapshot: BTreeMap<Uuid, ConsumerResources>,
    version: Version,
    /// Of one consumer (`PUT`), which some words name.
    single: Option<Uuid>,
}

/// What one consumer shall hold.
#[derive(Debug, Clone)]
struct Entry {
    consumer: Uuid,
    /// As it was when the write began.
    generation: u64,
    project_id: String,
    user_id: String,
    /// In the order of the body.
    holds: Vec<(Uuid, Vec<(String, u64)>)>,
}

impl Entry {
    /// What is written: for an emptied consumer every amount that it has, as nothing.
    fn rows(&self, snapshot: &BTreeMap<Uuid, ConsumerResources>) -> Vec<(Uuid, String, u64)> {
        if self.holds.is_empty() {
            let held = snapshot.get(&self.consumer).into_iter().flatten();
            return held
                .flat_map(|(provider, of)| of.keys().map(|class| (*provider, class.clone(), 0)))
                .collect();
        }
        let held = self.holds.iter();
        held.flat_map(|(provider, of)| of.iter().map(|(class, n)| (*provider, class.clone(), *n)))
            .collect()
    }
}

impl Model {
    /// Begins a request. A write of allocations is left in the air, until [`Model::land`];
    /// everything else is answered at once.
    ///
    /// # Errors
    /// The answer of what is no write of allocations, or is refused before its transaction begins.
    pub fn take_off(&mut self, request: ModelRequest<'_>) -> Result<Flight, ModelResponse> {
        let path = request.path.trim_matches('/');
        let begun = match (request.method, path.strip_prefix("allocations")) {
            ("PUT", Some(rest)) => {
                let consumer = rest.trim_matches('/');
                let known = Uuid::try_parse(consumer);
                let bad = |_| Refusal::bad(format!("Malformed consumer_uuid: {consumer}"));
                known.map_err(bad).and_then(|consumer| {
                    let body = request.body.unwrap_or(&Value::Null);
                    self.begin(&[(consumer, body)], request.version, Some(consumer))
                })
            }
            ("POST", Some("")) => {
                let body = request.body.and_then(Value::as_object);
                let entries = body.into_iter().flatten().map(|(consumer, entry)| {
                    let bad = |_| Refusal::bad(format!("JSON does not validate: {consumer}"));
                    Ok((Uuid::try_parse(consumer).map_err(bad)?, entry))
                });
                let entries: Result<Vec<_>, Refusal> = entries.collect();
                entries.and_then(|entries| {
                    if entries.is_empty() {
                        return Err(Refusal::bad(
                            "JSON does not validate: {} does not have enough properties",
                        ));
                    }
                    self.begin(&entries, request.version, None)
                })
            }
            _ => {
                return Err(self
                    .dispatch(request)
                    .unwrap_or_else(|no| no.answer(request.version)));
            }
        };
        begun.map_err(|refusal| refusal.answer(request.version))
    }

    fn begin(
        &mut self,
        entries: &[(Uuid, &Value)],
        version: Version,
        single: Option<Uuid>,
    ) -> Result<Flight, Refusal> {
        if version < (1, 28) {
            return Err(Refusal::new(
                501,
                UNDEFINED,
                "writes before 1.28 are not modelled",
            ));
        }
        let mut read: Vec<Entry> = entries
            .iter()
            .map(|(consumer, body)| read_entry(*consumer, body))
            .collect::<Result<_, _>>()?;
        let mut made = Vec::new();
        for (entry, (_, body)) in read.iter_mut().zip(entries) {
            match self.ensure_consumer(entry, &body["consumer_generation"]) {
                Ok(true) => made.push(entry.consumer),
                Ok(false) => {}
                Err(refusal) => {
                    made.iter()
                        .for_each(|consumer| drop(self.consumers.remove(consumer)));
                    return Err(refusal);
                }
            }
        }
        // Consumers that were made for a write that names an unknown provider stay, without
        // allocations: Placement leaves them behind.
        for (provider, _) in read.iter().flat_map(|entry| &entry.holds) {
            if !self.providers.contains_key(provider) {
                let detail =
                    format!("Allocation for resource provider '{provider}' that does not exist.");
                return Err(Refusal::bad(detail));
            }
        }
        Ok(Flight {
            entries: read,
            made,
            snapshot: self.allocations.clone(),
            version,
            single,
        })
    }

    /// Whether the consumer was made.
    fn ensure_consumer(&mut self, entry: &mut Entry, named: &Value) -> Result<bool, Refusal> {
        let conflict = |expected: String| {
            let got = if named.is_null() {
                "None".to_owned()
            } else {
                named.to_string()
            };
            let detail =
                format!("consumer generation conflict - expected {expected} but got {got}");
            Err(Refusal::new(409, CONCURRENT, detail))
        };
        match self.consumers.get(&entry.consumer) {
            Some(known) if named.as_u64() != Some(known.generation) => {
                conflict(known.generation.to_string())
            }
            Some(known) => {
                entry.generation = known.generation;
                Ok(false)
            }
            None if !named.is_null() => conflict("null".to_owned()),
            None => {
                let consumer = ModelConsumer {
                    generation: 0,
                    project_id: entry.project_id.clone(),
                    user_id: entry.user_id.clone(),
                };
                self.consumers.insert(entry.consumer, consumer);
                entry.generation = 0;
                Ok(true)
            }
        }
    }

    /// Commits a write, or refuses it: all or nothing.
    pub fn land(&mut self, flight: &Flight) -> ModelResponse {
        match self.commit(flight) {
            Ok(()) => ModelResponse::empty(204),
            Err(refusal) => {
                let made = flight.made.iter();
                made.for_each(|consumer| drop(self.consumers.remove(consumer)));
                refusal.answer(flight.version)
            }
        }
    }

    fn commit(&mut self, flight: &Flight) -> Result<(), Refusal> {
        self.check_capacity(flight)?;
        let changed = flight.entries.iter().any(|entry| {
            let known = self.consumers.get(&entry.consumer);
            let rows = entry.rows(&flight.snapshot);
            !rows.is_empty() && known.map(|known| known.generation) != Some(entry.generation)
        });
        if changed {
            let detail = "Inventory and/or allocations changed while attempting to allocate: Another thread concurrently updated the \
                          data. Please retry your update";
            return Err(Refusal::new(409, CONCURRENT, detail));
        }
        let mut visited: BTreeSet<Uuid> = BTreeSet::new();
        for entry in &flight.entries {
            let rows = entry.rows(&flight.snapshot);
            if let Some(consumer) = self.consumers.get_mut(&entry.consumer) {
                consumer.project_id.clone_from(&entry.project_id);
                consumer.user_id.clone_from(&entry.user_id);
            }
            if rows.is_empty() {
                continue;
            }
            visited.extend(rows.iter().map(|(provider, _, _)| *provider));
            let mut held = ConsumerResources::new();
            for (provider, class, amount) in rows.into_iter().filter(|(_, _, amount)| *amount > 0) {
                held.entry(provider).or_default().insert(class, amount);
            }
            if held.is_empty() {
                self.allocations.remove(&entry.consumer);
                self.consumers.remove(&entry.consumer);
            } else {
                self.allocations.insert(entry.consumer, held);
                if let Some(consumer) = self.consumers.get_mut(&entry.consumer) {
                    consumer.generation += 1;
                }
            }
        }
        for provider in visited {
            if let Some(provider) = self.providers.get_mut(&provider) {
                provider.generation += 1;
            }
        }
        Ok(())
    }

    #[allow(
        clippy::cast_precision_loss,
        reason = "Placement reckons in floats, too"
    )]
    fn check_capacity(&self, flight: &Flight) -> Result<(), Refusal> {
        let rows: Vec<(Uuid, String, u64)> = flight
            .entries
            .iter()
            .flat_map(|entry| entry.rows(&flight.snapshot))
            .collect();
        let writes = flight.entries.iter();
        let replaced: BTreeSet<Uuid> = writes
            .filter(|entry| !entry.rows(&flight.snapshot).is_empty())
            .map(|entry| entry.consumer)
            .collect();
        let no = |what: &str, class: &str, provider: Uuid| {
            Refusal::new(
                409,
                UNDEFINED,
                format!(
                    "Unable to allocate inventory: Unable to create allocation for '{class}' on resource provider '{provider}'. The \
                     requested amount would {what}."
                ),
            )
        };
        let invalid = |class: &str, provider: Uuid| {
            let detail = format!(
                "Unable to allocate inventory: Inventory for '{class}' on resource provider '{provider}' invalid."
            );
            Refusal::new(409, UNDEFINED, detail)
        };
        if let Some((_, class, _)) = rows.iter().find(|(_, class, _)| !known_class(class)) {
            let error = format!("No such resource class {class}.");
            return Err(Refusal::bad(match flight.single {
                Some(consumer) => {
                    format!("Unable to allocate inventory for consumer {consumer}: {error}")
                }
                None => format!("Unable to allocate inventory {error}"),
            }));
        }
        let classes: BTreeSet<&str> = rows.iter().map(|(_, class, _)| class.as_str()).collect();
        for (provider, class, _) in &rows {
            let known = self.providers.get(provider);
            if known.is_none_or(|known| !classes.iter().any(|c| known.inventories.contains_key(*c)))
            {
                return Err(invalid(class, *provider));
            }
        }
        let mut sums: BTreeMap<(Uuid, &str), u64> = BTreeMap::new();
        for (provider, class, amount) in &rows {
            let sum = sums.entry((*provider, class)).or_default();
            *sum += amount;
            if *amount == 0 {
                continue;
            }
            let known = self.providers.get(provider);
            let known = known.and_then(|known| known.inventories.get(class));
            let known = known.ok_or_else(|| invalid(class, *provider))?;
            let within = (known.min_unit..=known.max_unit).contains(amount);
            if !within || !amount.is_multiple_of(known.step_size) {
                return Err(no("violate inventory constraints", class, *provider));
            }
            let used = used(&flight.snapshot, *provider, class, &replaced);
            if known.capacity() < (used + *sum) as f64 {
                return Err(no("exceed the capacity", class, *provider));
            }
        }
        Ok(())
    }

    pub(crate) fn allocations_of(&self, consumer: &str) -> ModelResponse {
        let uuid = Uuid::try_parse(consumer).unwrap_or_default();
        let held = self.allocations.get(&uuid);
        let (Some(held), Some(known)) = (held, self.consumers.get(&uuid)) else {
            return ModelResponse::ok(json!({"allocations": {}}));
        };
        let allocations: Map<String, Value> = held
            .iter()
            .map(|(provider, of)| {
                let generation = self.providers.get(provider).map(|known| known.generation);
                (
                    provider.to_string(),
                    json!({"resources": of, "generation": generation}),
                )
            })
            .collect();
        ModelResponse::ok(json!({
            "allocations": allocations,
            "project_id": known.project_id,
            "user_id": known.user_id,
            "consumer_generation": known.generation,
        }))
    }

    pub(crate) fn allocations_of_provider(&self, uuid: Uuid) -> Result<ModelResponse, Refusal> {
        let missing = || {
            let detail = format!(
                "Resource provider '{uuid}' not found: No resource provider with uuid {uuid} found"
            );
            Refusal::new(404, UNDEFINED, detail)
        };
        let provider = self.providers.get(&uuid).ok_or_else(missing)?;
        let here = self.allocations.iter();
        let allocations: Map<String, Value> = here
            .filter_map(|(consumer, held)| {
                let generation = self.consumers.get(consumer).map(|known| known.generation);
                let resources = held.get(&uuid)?;
                let entry = json!({"resources": resources, "consumer_generation": generation});
                Some((consumer.to_string(), entry))
            })
            .collect();
        let generation = provider.generation;
        Ok(ModelResponse::ok(
            json!({"allocations": allocations, "resource_provider_generation": generation}),
        ))
    }

    pub(crate) fn delete_allocations(&mut self, consumer: &str) -> Result<ModelResponse, Refusal> {
        let uuid = Uuid::try_parse(consumer).unwrap_or_default();
        if self.allocations.remove(&uuid).is_none() {
            let detail = format!("No allocations for consumer '{consumer}'");
            return Err(Refusal::new(404, UNDEFINED, detail));
        }
        self.consumers.remove(&uuid);
        Ok(ModelResponse::empty(204))
    }

    /// Deletes what a consumer holds, as Nova does when its instance is gone. Providers'
    /// generations stay as they are.
    pub fn forget(&mut self, consumer: Uuid) {
        self.allocations.remove(&consumer);
        self.consumers.remove(&consumer);
    }
}

fn read_entry(consumer: Uuid, body: &Value) -> Result<Entry, Refusal> {
    let invalid = |what: &str| Refusal::bad(format!("JSON does not validate: {what}"));
    let text = |field: &str| {
        let text = body[field].as_str().filter(|text| !text.is_empty());
        text.map(str::to_owned).ok_or_else(|| invalid(field))
    };
    let generation = body
        .get("consumer_generation")
        .ok_or_else(|| invalid("consumer_generation"))?;
    if !generation.is_null() && !generation.is_i64() && !generation.is_u64() {
        return Err(invalid("consumer_generation"));
    }
    let allocations = body["allocations"]
        .as_object()
        .ok_or_else(|| invalid("allocations"))?;
    let mut holds = Vec::new();
    for (provider, of) in allocations {
        let provider = Uuid::try_parse(provider).map_err(|_| invalid(provider))?;
        let resources = of["resources"]
            .as_object()
            .filter(|resources| !resources.is_empty());
        let mut amounts = Vec::new();
        for (class, amount) in resources.ok_or_else(|| invalid("resources"))? {
            let amount = amount.as_u64().filter(|amount| *amount > 0);
            amounts.push((class.clone(), amount.ok_or_else(|| invalid(class))?));
        }
        holds.push((provider, amounts));
    }
    Ok(Entry {
        consumer,
        generation: 0,
        project_id: text("project_id")?,
        user_id: text("user_id")?,
        holds,
    })
}

/// Placement knows the standard classes; custom ones are not modelled.
fn known_class(class: &str) -> bool {
    !class.starts_with("CUSTOM_")
}
