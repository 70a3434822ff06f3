//! The state, and which handler answers a request.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// A microversion.
pub type Version = (u32, u32);

/// From this one on errors carry a code.
const ERROR_CODES: Version = (1, 23);

#[derive(Debug, Clone, Copy)]
pub struct ModelRequest<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The path with its query.
    pub path: &'a str,
    /// Placement's default is 1.0.
    pub version: Version,
    pub body: Option<&'a Value>,
}

/// One answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelResponse {
    /// The HTTP status.
    pub status: u16,
    /// `Null` for an empty one.
    pub body: Value,
}

impl ModelResponse {
    pub(crate) fn ok(body: Value) -> Self {
        Self { status: 200, body }
    }

    pub(crate) fn empty(status: u16) -> Self {
        let body = Value::Null;
        Self { status, body }
    }
}

/// A refusal, before the version decides whether it carries its code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) code: &'static str,
    pub(crate) detail: String,
}

pub(crate) const UNDEFINED: &str = "placement.undefined_code";
pub(crate) const CONCURRENT: &str = "placement.concurrent_update";

impl Refusal {
    pub(crate) fn new(status: u16, code: &'static str, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self {
            status,
            code,
            detail,
        }
    }

    pub(crate) fn bad(detail: impl Into<String>) -> Self {
        Self::new(400, UNDEFINED, detail)
    }

    pub(crate) fn answer(self, version: Version) -> ModelResponse {
        let detail = match self.status {
            // webob's own words come first.
            409 => format!(
                "There was a conflict when trying to complete your request.\n\n {}  ",
                self.detail
            ),
            _ => self.detail,
        };
        let mut error = json!({"status": self.status, "detail": detail});
        if version >= ERROR_CODES {
            error["code"] = Value::from(self.code);
        }
        ModelResponse {
            status: self.status,
            body: json!({ "errors": [error] }),
        }
    }
}

/// One resource class of a provider.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inventory {
    /// All there is.
    pub total: u64,
    /// Of it not for consumers.
    pub reserved: u64,
    /// The least that one consumer may have.
    pub min_unit: u64,
    /// The most that one consumer may have.
    pub max_unit: u64,
    /// What a consumer has is a multiple of it.
    pub step_size: u64,
    /// How many times over it is given.
    pub allocation_ratio: f64,
}

impl Inventory {
    /// All of it, given once.
    #[must_use]
    pub fn of(total: u64) -> Self {
        Self {
            total,
            reserved: 0,
            min_unit: 1,
            max_unit: total.max(1),
            step_size: 1,
            allocation_ratio: 1.0,
        }
    }

    /// What all consumers together may have.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        reason = "Placement reckons in floats, too"
    )]
    pub fn capacity(&self) -> f64 {
        (self.total as f64 - self.reserved as f64) * self.allocation_ratio
    }
}

/// A resource provider.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Provider {
    pub name: String,
    /// How often it was changed.
    pub generation: u64,
    /// What it has.
    pub inventories: BTreeMap<String, Inventory>,
    /// What it is.
    pub traits: BTreeSet<String>,
    /// What it belongs to.
    pub aggregates: BTreeSet<Uuid>,
    /// Which one it was when it was made; lists come in this order.
    pub(crate) place: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelConsumer {
    /// How often its allocations were written.
    pub generation: u64,
    /// Whose it is.
    pub project_id: String,
    /// Who made it.
    pub user_id: String,
}

/// What a consumer holds, by provider and class.
pub(crate) type ConsumerResources = BTreeMap<Uuid, BTreeMap<String, u64>>;

/// Placement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Model {
    pub(crate) providers: BTreeMap<Uuid, Provider>,
    pub(crate) consumers: BTreeMap<Uuid, ModelConsumer>,
    pub(crate) allocations: BTreeMap<Uuid, ConsumerResources>,
    pub(crate) custom_traits: BTreeSet<String>,
    made: u64,
}

impl Model {
    /// A Placement without providers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers one request, and is done with it before the next one comes.
    pub fn ask(&mut self, request: ModelRequest<'_>) -> ModelResponse {
        match self.take_off(request) {
            Ok(flight) => self.land(&flight),
            Err(answer) => answer,
        }
    }

    /// Answers everything but writes of allocations.
    pub(crate) fn dispatch(&mut self, request: ModelRequest<'_>) -> Result<ModelResponse, Refusal> {
        let (path, query) = request.path.split_once('?').unwrap_or((request.path, ""));
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let uuid = |text: &str| {
            let missing = || {
                Refusal::new(
                    404,
                    UNDEFINED,
                    format!("No resource provider with uuid {text} found"),
                )
            };
            Uuid::try_parse(text).map_err(|_| missing())
        };
        match (request.method, parts.as_slice()) {
            ("GET", [""]) => Ok(ModelResponse::ok(versions())),
            ("GET", ["resource_providers"]) => self.list(query),
            ("POST", ["resource_providers"]) => self.create(request),
            ("GET", ["resource_providers", id]) => self.show(uuid(id)?),
            ("DELETE", ["resource_providers", id]) => self.destroy(uuid(id)?),
            ("GET", ["resource_providers", id, "inventories"]) => self.inventories(uuid(id)?),
            ("PUT", ["resource_providers", id, "inventories"]) => {
                self.set_inventories(uuid(id)?, request)
            }
            ("GET", ["resource_providers", id, "usages"]) => self.usages(uuid(id)?),
            ("GET", ["resource_providers", id, "traits"]) => self.traits(uuid(id)?),
            ("PUT", ["resource_providers", id, "traits"]) => self.set_traits(uuid(id)?, request),
            ("GET", ["resource_providers", id, "aggregates"]) => self.aggregates(uuid(id)?),
            ("PUT", ["resource_providers", id, "aggregates"]) => {
                self.set_aggregates(uuid(id)?, request)
            }
            ("GET", ["resource_providers", id, "allocations"]) => {
                self.allocations_of_provider(uuid(id)?)
            }
            ("PUT", ["traits", name]) => Ok(self.put_trait(name)),
            ("GET", ["allocations", id]) => Ok(self.allocations_of(id)),
            ("DELETE", ["allocations", id]) => self.delete_allocations(id),
            ("GET", ["allocation_candidates"]) => self.candidates(query),
            (method, _) => Err(Refusal::new(
                501,
                UNDEFINED,
                format!("{method} {path} is not modelled"),
            )),
        }
    }

    #[must_use]
    pub fn provider(&self, uuid: Uuid) -> Option<&Provider> {
        self.providers.get(&uuid)
    }

    /// All providers.
    pub fn providers(&self) -> impl Iterator<Item = (Uuid, &Provider)> {
        self.providers
            .iter()
            .map(|(uuid, provider)| (*uuid, provider))
    }

    #[must_use]
    pub fn consumer(&self, uuid: Uuid) -> Option<&ModelConsumer> {
        self.consumers.get(&uuid)
    }

    /// All consumers.
    pub fn consumers(&self) -> impl Iterator<Item = (Uuid, &ModelConsumer)> {
        self.consumers
            .iter()
            .map(|(uuid, consumer)| (*uuid, consumer))
    }

    /// What a consumer holds, by provider and class; nothing for an unknown one.
    #[must_use]
    pub fn holds(&self, consumer: Uuid) -> BTreeMap<Uuid, BTreeMap<String, u64>> {
        self.allocations.get(&consumer).cloned().unwrap_or_default()
    }

    /// What all consumers hold of a class on a provider.
    #[must_use]
    pub fn used(&self, provider: Uuid, class: &str) -> u64 {
        used(&self.allocations, provider, class, &BTreeSet::new())
    }

    /// Providers and classes of which more is given than there is.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        reason = "Placement reckons in floats, too"
    )]
    pub fn over_capacity(&self) -> Vec<(Uuid, String)> {
        let all = self.providers.iter().flat_map(|(uuid, provider)| {
            let classes = provider.inventories.iter();
            classes.map(move |(class, inventory)| (*uuid, class, inventory))
        });
        all.filter(|(uuid, class, inventory)| self.used(*uuid, class) as f64 > inventory.capacity())
            .map(|(uuid, class, _)| (uuid, class.clone()))
            .collect()
    }

    /// A compute host: its provider with the three usual classes.
    pub fn add_host(&mut self, uuid: Uuid, name: &str, vcpus: u64, memory_mb: u64, disk_gb: u64) {
        let inventories = [
            ("VCPU", vcpus),
            ("MEMORY_MB", memory_mb),
            ("DISK_GB", disk_gb),
        ];
        let provider = Provider {
            name: name.to_owned(),
            generation: 1,
            inventories: inventories
                .into_iter()
                .filter(|(_, total)| *total > 0)
                .map(|(class, total)| (class.to_owned(), Inventory::of(total)))
                .collect(),
            ..Provider::default()
        };
        self.add_provider(uuid, provider);
    }

    pub(crate) fn add_provider(&mut self, uuid: Uuid, provider: Provider) {
        self.made += 1;
        let place = self.made;
        self.providers.insert(uuid, Provider { place, ..provider });
    }

    /// Another process changes what a provider is: its generation rises.
    pub fn change_provider(&mut self, uuid: Uuid, change: impl FnOnce(&mut Provider)) {
        if let Some(provider) = self.providers.get_mut(&uuid) {
            change(provider);
            provider.generation += 1;
        }
    }
}

/// What consumers hold of a class on a provider, some of them left out.
pub(crate) fn used(
    allocations: &BTreeMap<Uuid, ConsumerResources>,
    provider: Uuid,
    class: &str,
    without: &BTreeSet<Uuid>,
) -> u64 {
    allocations
        .iter()
        .filter(|(consumer, _)| !without.contains(consumer))
        .filter_map(|(_, held)| held.get(&provider)?.get(class))
        .sum()
}

fn versions() -> Value {
    json!({"versions": [{"id": "v1.0", "min_version": "1.0", "max_version": "1.39", "status": "CURRENT",
        "links": [{"rel": "self", "href": ""}]}]})
}
