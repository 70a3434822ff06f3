//! Resource providers: what they are and have.

use crate::model::{
    CONCURRENT, Inventory, Model, ModelRequest, ModelResponse, Provider, Refusal, UNDEFINED, used,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// Placement's largest number (`db/constants.py`).
const MAX_INT: u64 = 0x7fff_ffff;
const GENERATION_CHANGED: &str =
    "Resource provider's generation already changed. Please update the generation and try again.";

fn line(uuid: Uuid, provider: &Provider) -> Value {
    json!({
        "uuid": uuid,
        "name": provider.name,
        "generation": provider.generation,
        "parent_provider_uuid": null,
        "root_provider_uuid": uuid,
        "links": [],
    })
}

impl Model {
    fn known(&self, uuid: Uuid) -> Result<&Provider, Refusal> {
        let missing = || format!("No resource provider with uuid {uuid} found");
        self.providers
            .get(&uuid)
            .ok_or_else(|| Refusal::new(404, UNDEFINED, missing()))
    }

    fn known_mut(&mut self, uuid: Uuid) -> Result<&mut Provider, Refusal> {
        self.known(uuid)?;
        let missing = || Refusal::new(404, UNDEFINED, "");
        self.providers.get_mut(&uuid).ok_or_else(missing)
    }

    pub(crate) fn list(&self, query: &str) -> Result<ModelResponse, Refusal> {
        let filters = parameters(query);
        let mut found: Vec<(Uuid, &Provider)> = self.providers().collect();
        found.sort_by_key(|(_, provider)| provider.place);
        for (key, value) in &filters {
            match key.as_str() {
                "uuid" | "in_tree" => found.retain(|(uuid, _)| uuid.to_string() == *value),
                "name" => found.retain(|(_, provider)| provider.name == *value),
                "member_of" => {
                    let wanted = aggregates_of(value)?;
                    found.retain(|(_, provider)| !provider.aggregates.is_disjoint(&wanted));
                }
                _ => {
                    return Err(Refusal::new(
                        501,
                        UNDEFINED,
                        format!("{key} is not modelled"),
                    ));
                }
            }
        }
        let lines: Vec<Value> = found.into_iter().map(|(uuid, p)| line(uuid, p)).collect();
        Ok(ModelResponse::ok(json!({ "resource_providers": lines })))
    }

    pub(crate) fn create(&mut self, request: ModelRequest<'_>) -> Result<ModelResponse, Refusal> {
        let body = request.body.unwrap_or(&Value::Null);
        let name = body["name"].as_str().ok_or_else(|| Refusal::bad("name"))?;
        if !body["parent_provider_uuid"].is_null() {
            return Err(Refusal::new(
                501,
                UNDEFINED,
                "nested providers are not modelled",
            ));
        }
        let uuid = body["uuid"]
            .as_str()
            .and_then(|text| Uuid::try_parse(text).ok());
        let uuid = uuid.ok_or_else(|| Refusal::bad("uuid"))?;
        let same_name = self
            .providers
            .values()
            .any(|provider| provider.name == name);
        if same_name || self.providers.contains_key(&uuid) {
            let detail = format!("Conflicting resource provider name: {name} already exists.");
            return Err(Refusal::new(409, "placement.duplicate_name", detail));
        }
        let provider = Provider {
            name: name.to_owned(),
            ..Provider::default()
        };
        let answer = line(uuid, &provider);
        self.add_provider(uuid, provider);
        Ok(ModelResponse::ok(answer))
    }

    pub(crate) fn show(&self, uuid: Uuid) -> Result<ModelResponse, Refusal> {
        Ok(ModelResponse::ok(line(uuid, self.known(uuid)?)))
    }

    pub(crate) fn destroy(&mut self, uuid: Uuid) -> Result<ModelResponse, Refusal> {
        self.known(uuid)?;
        if self
            .allocations
            .values()
            .any(|held| held.contains_key(&uuid))
        {
            let detail = format!(
                "Unable to delete resource provider {uuid}: Resource provider has allocations."
            );
            return Err(Refusal::new(
                409,
                "placement.resource_provider.inuse",
                detail,
            ));
        }
        self.providers.remove(&uuid);
        Ok(ModelResponse::empty(204))
    }

    pub(crate) fn inventories(&self, uuid: Uuid) -> Result<ModelResponse, Refusal> {
        let provider = self.known(uuid)?;
        let all: Map<String, Value> = provider
            .inventories
            .iter()
            .map(|(class, of)| {
                let fields = json!({
                    "total": of.total,
                    "reserved": of.reserved,
                    "min_unit": of.min_unit,
                    "max_unit": of.max_unit,
                    "step_size": of.step_size,
                    "allocation_ratio": of.allocation_ratio,
                });
                (class.clone(), fields)
            })
            .collect();
        let generation = provider.generation;
        Ok(ModelResponse::ok(
            json!({"inventories": all, "resource_provider_generation": generation}),
        ))
    }

    pub(crate) fn set_inventories(
        &mut self,
        uuid: Uuid,
        request: ModelRequest<'_>,
    ) -> Result<ModelResponse, Refusal> {
        let generation = self.known(uuid)?.generation;
        let body = request.body.unwrap_or(&Value::Null);
        let read = body["inventories"]
            .as_object()
            .ok_or_else(|| Refusal::bad("inventories"))?;
        if body["resource_provider_generation"].as_u64() != Some(generation) {
            let detail = "resource provider generation conflict";
            return Err(Refusal::new(409, CONCURRENT, detail));
        }
        let mut inventories = BTreeMap::new();
        for (class, fields) in read {
            let number = |field: &str, default: u64| fields[field].as_u64().unwrap_or(default);
            let inventory = Inventory {
                total: number("total", 0),
                reserved: number("reserved", 0),
                min_unit: number("min_unit", 1),
                max_unit: number("max_unit", MAX_INT),
                step_size: number("step_size", 1),
                allocation_ratio: fields["allocation_ratio"].as_f64().unwrap_or(1.0),
            };
            if inventory.capacity() < 0.0 {
                return Err(Refusal::bad(format!(
                    "Unable to update inventory for resource provider {uuid}: Invalid inventory for '{class}' on resource provider \
                     '{uuid}'. The reserved value is greater than total."
                )));
            }
            inventories.insert(class.clone(), inventory);
        }
        let gone = self.known(uuid)?.inventories.keys();
        let gone = gone.filter(|class| !inventories.contains_key(*class));
        let in_use: Vec<&str> = gone
            .filter(|class| used(&self.allocations, uuid, class, &BTreeSet::new()) > 0)
            .map(String::as_str)
            .collect();
        if !in_use.is_empty() {
            let detail = format!(
                "update conflict: Inventory for '{}' on resource provider '{uuid}' in use.",
                in_use.join(", ")
            );
            return Err(Refusal::new(409, "placement.inventory.inuse", detail));
        }
        let provider = self.known_mut(uuid)?;
        provider.inventories = inventories;
        provider.generation += 1;
        self.inventories(uuid)
    }

    pub(crate) fn usages(&self, uuid: Uuid) -> Result<ModelResponse, Refusal> {
        let provider = self.known(uuid)?;
        let classes = provider.inventories.keys();
        let usages: Map<String, Value> = classes
            .map(|class| (class.clone(), json!(self.used(uuid, class))))
            .collect();
        let generation = provider.generation;
        Ok(ModelResponse::ok(
            json!({"usages": usages, "resource_provider_generation": generation}),
        ))
    }

    pub(crate) fn traits(&self, uuid: Uuid) -> Result<ModelResponse, Refusal> {
        let provider = self.known(uuid)?;
        let (traits, generation) = (&provider.traits, provider.generation);
        Ok(ModelResponse::ok(
            json!({"traits": traits, "resource_provider_generation": generation}),
        ))
    }

    /// The body of a request that changes a provider, if it names the generation that it has.
    fn of_present<'r>(&self, uuid: Uuid, request: ModelRequest<'r>) -> Result<&'r Value, Refusal> {
        let body = request.body.unwrap_or(&Value::Null);
        let generation = self.known(uuid)?.generation;
        if body["resource_provider_generation"].as_u64() != Some(generation) {
            return Err(Refusal::new(409, CONCURRENT, GENERATION_CHANGED));
        }
        Ok(body)
    }

    pub(crate) fn set_traits(
        &mut self,
        uuid: Uuid,
        request: ModelRequest<'_>,
    ) -> Result<ModelResponse, Refusal> {
        let body = self.of_present(uuid, request)?;
        let names = body["traits"].as_array().into_iter().flatten();
        let wanted: BTreeSet<String> = names.filter_map(Value::as_str).map(str::to_owned).collect();
        let unknown =
            |name: &&String| name.starts_with("CUSTOM_") && !self.custom_traits.contains(*name);
        if let Some(name) = wanted.iter().find(unknown) {
            return Err(Refusal::bad(format!("No such trait {name}")));
        }
        let provider = self.known_mut(uuid)?;
        if provider.traits != wanted {
            provider.traits = wanted;
            provider.generation += 1;
        }
        self.traits(uuid)
    }

    pub(crate) fn put_trait(&mut self, name: &str) -> ModelResponse {
        let new = self.custom_traits.insert(name.to_owned());
        ModelResponse::empty(if new { 201 } else { 204 })
    }

    pub(crate) fn aggregates(&self, uuid: Uuid) -> Result<ModelResponse, Refusal> {
        let provider = self.known(uuid)?;
        let (aggregates, generation) = (&provider.aggregates, provider.generation);
        Ok(ModelResponse::ok(
            json!({"aggregates": aggregates, "resource_provider_generation": generation}),
        ))
    }

    pub(crate) fn set_aggregates(
        &mut self,
        uuid: Uuid,
        request: ModelRequest<'_>,
    ) -> Result<ModelResponse, Refusal> {
        let body = self.of_present(uuid, request)?;
        let uuids = body["aggregates"].as_array().into_iter().flatten();
        let uuids = uuids.filter_map(Value::as_str);
        let wanted = uuids
            .filter_map(|text| Uuid::try_parse(text).ok())
            .collect();
        let provider = self.known_mut(uuid)?;
        provider.aggregates = wanted;
        provider.generation += 1;
        self.aggregates(uuid)
    }
}

/// A query's parameters, decoded, in their order.
pub(crate) fn parameters(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(key), decoded(value))
        })
        .collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let pair = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match (first, pair.and_then(|two| u8::from_str_radix(two, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (b'+', _) => bytes.push(b' '),
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// One aggregate, or `in:` and several.
pub(crate) fn aggregates_of(value: &str) -> Result<BTreeSet<Uuid>, Refusal> {
    let list = value.strip_prefix("in:").unwrap_or(value);
    let bad = |_| {
        Refusal::bad(format!(
            "Invalid query string parameters: {value:?} is no aggregate"
        ))
    };
    list.split(',')
        .map(|text| Uuid::try_parse(text).map_err(bad))
        .collect()
}
