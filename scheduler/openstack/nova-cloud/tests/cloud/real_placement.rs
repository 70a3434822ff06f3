//! A real Placement (Debian's python3-placement) as a process, and the cloud in memory read from
//! it as the scheduler reads it.

use ebbtide_nova_cloud::{Cloud, Consumer, Inventory, ProviderFacts, ProviderSnapshot};
use ebbtide_placement_model::PlacementProcess;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

pub struct RealPlacement(PlacementProcess);

impl RealPlacement {
    pub fn start() -> Self {
        Self(PlacementProcess::start().expect("a Placement"))
    }

    fn line(&mut self, line: &Value) -> Value {
        self.0.ask(line).expect("an answer")
    }

    /// Removes everything but the standard classes and traits.
    pub fn reset(&mut self) {
        self.line(&json!({"reset": true}));
    }

    pub fn ask(&mut self, method: &str, path: &str, body: Value) -> (i64, Value) {
        let asked = json!({"method": method, "path": path, "version": "1.36", "body": body});
        let mut answer = self.line(&asked);
        let status = answer["status"].as_i64().unwrap();
        (status, answer["body"].take())
    }

    /// A request that has to succeed.
    pub fn must(&mut self, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask(method, path, body);
        assert!((200..300).contains(&status), "{method} {path}: {answer}");
        answer
    }

    pub fn get(&mut self, path: &str) -> Value {
        self.must("GET", path, Value::Null)
    }

    /// Each candidate's allocations and mappings.
    pub fn candidates(&mut self, query: &str) -> Vec<(Value, Value)> {
        let answer = self.get(&format!("/allocation_candidates?{query}"));
        let requests = answer["allocation_requests"].as_array().unwrap().iter();
        requests
            .map(|request| {
                (
                    amounts(&request["allocations"]),
                    request["mappings"].clone(),
                )
            })
            .collect()
    }

    pub fn provider(&mut self, uuid: Uuid, parent: Option<Uuid>, classes: &[(&str, Inventory)]) {
        let mut body = json!({"name": format!("rp-{uuid}"), "uuid": uuid});
        if let Some(parent) = parent {
            body["parent_provider_uuid"] = json!(parent);
        }
        self.must("POST", "/resource_providers", body);
        let inventory = |(class, has): &(&str, Inventory)| {
            let body = json!({"total": has.total, "reserved": has.reserved,
                "min_unit": has.min_unit, "max_unit": has.max_unit,
                "step_size": has.step_size, "allocation_ratio": has.allocation_ratio});
            ((*class).to_owned(), body)
        };
        let all: serde_json::Map<String, Value> = classes.iter().map(inventory).collect();
        let body = json!({"resource_provider_generation": 0, "inventories": all});
        self.must(
            "PUT",
            &format!("/resource_providers/{uuid}/inventories"),
            body,
        );
    }

    /// Sets `traits` or `aggregates` of a provider.
    pub fn set(&mut self, uuid: Uuid, what: &str, names: &[String]) {
        let path = format!("/resource_providers/{uuid}");
        let generation = self.get(&path)["generation"].clone();
        let body = json!({"resource_provider_generation": generation, what: names});
        self.must("PUT", &format!("{path}/{what}"), body);
    }

    pub fn claim(&mut self, consumer: Uuid, allocations: &Value) {
        let path = format!("/allocations/{consumer}");
        let (_, held) = self.ask("GET", &path, Value::Null);
        let generation = held["consumer_generation"].clone();
        let body = json!({"allocations": wrapped(allocations), "project_id": "p", "user_id": "u",
            "consumer_generation": generation});
        self.must("PUT", &path, body);
    }

    pub fn release(&mut self, consumer: Uuid) {
        self.must("DELETE", &format!("/allocations/{consumer}"), Value::Null);
    }

    /// Reads every provider and its consumers into the cloud, root providers first.
    pub fn read_into(&mut self, cloud: &mut Cloud) -> Vec<ProviderSnapshot> {
        let list = self.get("/resource_providers");
        let mut lines = list["resource_providers"].as_array().unwrap().clone();
        lines.sort_by_key(|line| !line["parent_provider_uuid"].is_null());
        let mut truth = Vec::new();
        for line in lines {
            let uuid = id(&line["uuid"]).unwrap();
            let mut of = |what: &str| self.get(&format!("/resource_providers/{uuid}/{what}"));
            let (has, used) = (of("inventories"), of("usages"));
            let (traits, aggregates) = (of("traits"), of("aggregates"));
            let held = of("allocations");
            let generation = line["generation"].as_i64();
            cloud.put_provider(ProviderFacts {
                uuid,
                name: line["name"].as_str().unwrap().to_owned(),
                generation,
                parent: id(&line["parent_provider_uuid"]),
                root: id(&line["root_provider_uuid"]),
                inventories: Some(map(&has["inventories"], inventory)),
                used: Some(map(&used["usages"], |used| used.as_i64().unwrap())),
                traits: serde_json::from_value(traits["traits"].clone()).unwrap(),
                aggregates: serde_json::from_value(aggregates["aggregates"].clone()).unwrap(),
            });
            let held = held["allocations"].as_object().unwrap().iter();
            let consumers = held.map(|(consumer, of)| Consumer {
                uuid: consumer.parse().unwrap(),
                generation: of["consumer_generation"].as_i64().unwrap(),
                resources: map(&of["resources"], |amount| amount.as_u64().unwrap()),
            });
            let snapshot = ProviderSnapshot {
                provider: uuid,
                generation: generation.unwrap(),
                consumers: consumers.collect(),
            };
            cloud.consumers_of(uuid, snapshot.generation, &snapshot.consumers);
            truth.push(snapshot);
        }
        truth
    }
}

fn id(value: &Value) -> Option<Uuid> {
    value.as_str()?.parse().ok()
}

fn map<T>(object: &Value, read: impl Fn(&Value) -> T) -> BTreeMap<String, T> {
    let pairs = object.as_object().unwrap().iter();
    pairs
        .map(|(key, value)| (key.clone(), read(value)))
        .collect()
}

fn inventory(told: &Value) -> Inventory {
    let number = |field: &str| told[field].as_i64().unwrap();
    Inventory {
        total: number("total"),
        reserved: number("reserved"),
        min_unit: number("min_unit"),
        max_unit: number("max_unit"),
        step_size: number("step_size"),
        allocation_ratio: told["allocation_ratio"].as_f64().unwrap(),
    }
}

/// `{provider: {"resources": amounts}}` as `{provider: amounts}`.
pub fn amounts(allocations: &Value) -> Value {
    let pairs = allocations.as_object().unwrap().iter();
    let pairs = pairs.map(|(provider, of)| (provider.clone(), of["resources"].clone()));
    Value::Object(pairs.collect())
}

/// The other way round.
pub fn wrapped(amounts: &Value) -> Value {
    let pairs = amounts.as_object().unwrap().iter();
    let pairs = pairs.map(|(provider, of)| (provider.clone(), json!({ "resources": of })));
    Value::Object(pairs.collect())
}
