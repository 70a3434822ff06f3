//! One case of the oracle's corpus: a cloud, a configuration and a request (`nova_oracle.py`, "Case
//! format").
//!
//! There are two kinds of errors. A malformed line is a [`BadCase`], which the reader reports. If
//! Nova's objects refuse the values of a case, the result is a [`NovaException`] in a phase, which
//! is Nova's answer and is compared.

mod request;
mod states;

use ebbtide_nova::fault::NovaException;
use ebbtide_nova::fields::{self, get, string};
use ebbtide_nova::hosts::{ComputeRow, Ratios, from_dict};
use ebbtide_nova::model::{
    Aggregate, AllocationCandidate, InstanceFacts, Options, RequestSpec, Service,
};
use ebbtide_nova::python::{Dict, Value, datetime, json as python_json, to_json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use states::{IndexedHostState, attach_candidates, states};

/// The cell of a case that names none.
const ONLY_CELL: &str = "00000000-0000-4000-8000-000000000001";
/// Nova keeps no hosts in it.
pub const CELL0: &str = "00000000-0000-0000-0000-000000000000";

/// What is wrong with a line that should be a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadCase(pub String);

impl std::fmt::Display for BadCase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadCase {}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    pub uuid: String,
    /// Taken out of scheduling.
    pub disabled: bool,
}

/// How the case wants its request scheduled.
#[derive(Debug, Clone, Default)]
pub struct ScheduleCase {
    /// Instances in order; `None`: a legacy caller.
    pub instance_uuids: Option<Vec<String>>,
    /// Whether alternates are wanted.
    pub return_alternates: bool,
    /// Hosts whose claims are refused.
    pub fail_hosts: BTreeSet<String>,
    /// How many claims are refused at first.
    pub fail_first: i128,
    /// Hosts whose claims raise AllocationUpdateFailed.
    pub raise_hosts: BTreeSet<String>,
    /// Without Placement.
    pub no_placement: bool,
}

/// A case. Hosts and request are still as the line has them: taking them in may be Nova's to
/// refuse.
#[derive(Debug, Clone)]
pub struct Case {
    /// Name.
    pub id: String,
    /// Kind of case.
    pub shape: String,
    /// The time, microseconds since 1970, UTC.
    pub now: i64,
    /// Options that are set, `group.name`.
    pub config: Dict<Value>,
    /// Cells; at least one.
    pub cells: Vec<Cell>,
    /// Lowest version of a compute service.
    pub min_compute_version: i64,
    /// Aggregates in order.
    pub aggregates: Vec<Arc<Aggregate>>,
    pub request: Dict<Value>,
    /// How to schedule, if at all.
    pub schedule: Option<ScheduleCase>,
    hosts: Vec<Dict<Value>>,
    names: Vec<(String, String)>,
    uuids: Vec<String>,
}

impl Case {
    /// Reads one line: a case, or a case and its answer.
    ///
    /// # Errors
    /// [`BadCase`] if it is none.
    pub fn from_line(line: &str) -> Result<(Self, Option<Value>), BadCase> {
        let value = python_json::loads(line)
            .map_err(|fault| BadCase(format!("is not JSON: {}", fault.message)))?;
        let Value::Dict(object) = value else {
            return Err(BadCase("is not a JSON object".to_owned()));
        };
        match object.get("case") {
            Some(case) => Ok((Self::from_value(case)?, object.get("answer").cloned())),
            None => Ok((Self::from_value(&Value::Dict(object))?, None)),
        }
    }

    /// Reads a case.
    ///
    /// # Errors
    /// [`BadCase`] if it is none.
    pub fn from_value(case: &Value) -> Result<Self, BadCase> {
        let case = object(case, "the case")?;
        let id = text(case, "id").unwrap_or_default();
        read(case, id.clone()).map_err(|bad| BadCase(format!("case {id:?}: {}", bad.0)))
    }

    #[must_use]
    pub fn host_count(&self) -> usize {
        self.hosts.len()
    }

    /// Host and node name by place.
    #[must_use]
    pub fn names(&self) -> &[(String, String)] {
        &self.names
    }

    /// UUID of each node by place.
    #[must_use]
    pub fn uuids(&self) -> &[String] {
        &self.uuids
    }

    /// The cell of a host.
    #[must_use]
    pub fn cell_of(&self, place: usize) -> String {
        let own = self.hosts.get(place).and_then(|host| get(host, "cell"));
        match own.filter(|cell| cell.truth()) {
            Some(cell) => cell.text(),
            None => self.cells[0].uuid.clone(),
        }
    }

    /// The options of the case.
    ///
    /// # Errors
    /// What Nova raises for options that it does not take, or for filters and weighers that it
    /// cannot load.
    pub fn options(&self) -> Result<Options, NovaException> {
        Options::read(
            self.config
                .iter()
                .map(|(name, value)| (name, value.clone())),
        )
    }

    /// Takes the request in.
    ///
    /// # Errors
    /// What Nova's objects raise.
    pub fn request_spec(&self) -> Result<RequestSpec, NovaException> {
        let cells: Vec<String> = self.cells.iter().map(|cell| cell.uuid.clone()).collect();
        request::read(&self.request, &cells)
    }

    /// Takes a host's row in.
    ///
    /// # Errors
    /// What Nova's objects raise.
    pub fn compute(&self, place: usize, options: &Options) -> Result<ComputeRow, NovaException> {
        // A ratio of 0 counts as not set.
        let effective = |own: Option<f64>, initial| own.filter(|r| *r != 0.0).unwrap_or(initial);
        let ratios = Ratios {
            cpu: effective(
                options.cpu_allocation_ratio,
                options.initial_cpu_allocation_ratio,
            ),
            ram: effective(
                options.ram_allocation_ratio,
                options.initial_ram_allocation_ratio,
            ),
            disk: effective(
                options.disk_allocation_ratio,
                options.initial_disk_allocation_ratio,
            ),
        };
        from_dict::compute(&self.hosts[place], &ratios)
    }

    /// Takes a host's service in, if it has one.
    ///
    /// # Errors
    /// What Nova's objects raise.
    pub fn service(&self, place: usize) -> Result<Option<Service>, NovaException> {
        match get(&self.hosts[place], "service") {
            None => Ok(None),
            Some(service) => from_dict::service(fields::dict(service)?).map(Some),
        }
    }

    /// Instances by host: the union over its nodes.
    #[must_use]
    pub fn instances(&self) -> BTreeMap<&str, BTreeMap<String, InstanceFacts>> {
        let mut by_host: BTreeMap<&str, BTreeMap<String, InstanceFacts>> = BTreeMap::new();
        for (host, (name, _)) in self.hosts.iter().zip(&self.names) {
            let instances = by_host.entry(name.as_str()).or_default();
            let Some(Value::List(rows)) = get(host, "instances") else {
                continue;
            };
            for row in rows {
                let (uuid, facts) = instance(row);
                instances.insert(uuid, facts);
            }
        }
        by_host
    }

    /// What Placement offers for a host: what the case says, or one candidate made up of the
    /// flavor.
    #[must_use]
    pub fn candidates(&self, place: usize) -> Vec<AllocationCandidate> {
        let uuid = &self.uuids[place];
        match get(&self.hosts[place], "allocation_candidates") {
            Some(Value::List(given)) => given.iter().map(candidate).collect(),
            _ => vec![AllocationCandidate {
                allocations: serde_json::json!({ uuid: { "resources": {
                    "VCPU": self.asked("vcpus"), "MEMORY_MB": self.asked("memory_mb") } } }),
                mappings: serde_json::json!({ "": [uuid] }),
            }],
        }
    }

    /// What the request's flavor asks for, as the line has it.
    fn asked(&self, name: &str) -> serde_json::Value {
        match get(&self.request, "flavor") {
            Some(Value::Dict(flavor)) => flavor.get(name).map_or(serde_json::Value::Null, to_json),
            _ => serde_json::Value::Null,
        }
    }

    /// The first provider of each candidate of a host, in the order of the case, that is a host of
    /// the case.
    #[must_use]
    pub fn first_provider(&self, place: usize, candidate: &AllocationCandidate) -> Option<usize> {
        let known = |uuid: &str| self.uuids.iter().rposition(|own| own == uuid);
        // `serde_json` sorts keys; the order is that of the line.
        if let Some(Value::List(given)) = get(&self.hosts[place], "allocation_candidates") {
            for given in given {
                if let Value::Dict(given) = given
                    && let Some(Value::Dict(allocations)) = given.get("allocations")
                    && to_json(&Value::Dict(allocations.clone())) == candidate.allocations
                {
                    return allocations.keys().find_map(|uuid| known(uuid));
                }
            }
        }
        let allocations = candidate.allocations.as_object()?;
        allocations.keys().find_map(|uuid| known(uuid))
    }
}

fn object<'a>(value: &'a Value, what: &str) -> Result<&'a Dict<Value>, BadCase> {
    match value {
        Value::Dict(dict) => Ok(dict),
        other => Err(BadCase(format!(
            "{what} is a {} and not an object",
            other.class()
        ))),
    }
}

fn text(object: &Dict<Value>, name: &str) -> Option<String> {
    get(object, name).map(Value::text)
}

fn items<'a>(object: &'a Dict<Value>, name: &str) -> Result<&'a [Value], BadCase> {
    match get(object, name) {
        None => Ok(&[]),
        Some(Value::List(items)) => Ok(items),
        Some(other) => Err(BadCase(format!(
            "{name} is a {} and not a list",
            other.class()
        ))),
    }
}

fn read(case: &Dict<Value>, id: String) -> Result<Case, BadCase> {
    let now = match get(case, "now") {
        None => 0,
        Some(Value::Str(now)) => datetime::read(now)
            .ok_or_else(|| BadCase(format!("now is {now:?}, which is no time")))?,
        Some(other) => return Err(BadCase(format!("now is a {}", other.class()))),
    };
    let config = match get(case, "config") {
        None => Dict::default(),
        Some(config) => object(config, "config")?.clone(),
    };
    let mut hosts = Vec::new();
    for host in items(case, "hosts")? {
        hosts.push(object(host, "a host")?.clone());
    }
    let part = |host: &Dict<Value>, name: &str| {
        text(host, name).ok_or_else(|| BadCase(format!("a host has no {name}")))
    };
    let mut names = Vec::new();
    let mut uuids = Vec::new();
    for host in &hosts {
        names.push((part(host, "host")?, part(host, "nodename")?));
        uuids.push(part(host, "uuid")?);
    }
    let request = get(case, "request").ok_or_else(|| BadCase("there is no request".to_owned()))?;
    Ok(Case {
        shape: text(case, "shape").unwrap_or_default(),
        now,
        config,
        cells: cells(case)?,
        min_compute_version: match get(case, "min_compute_version") {
            Some(Value::Int(version)) => fields::narrow(*version),
            _ => 74,
        },
        aggregates: aggregates(case)?,
        request: object(request, "the request")?.clone(),
        schedule: get(case, "schedule").map(schedule).transpose()?,
        hosts,
        names,
        uuids,
        id,
    })
}

fn cells(case: &Dict<Value>) -> Result<Vec<Cell>, BadCase> {
    let mut cells = Vec::new();
    for cell in items(case, "cells")? {
        cells.push(match cell {
            Value::Dict(cell) => Cell {
                uuid: text(cell, "uuid").ok_or_else(|| BadCase("a cell has no uuid".to_owned()))?,
                disabled: get(cell, "disabled").is_some_and(Value::truth),
            },
            uuid => Cell {
                uuid: uuid.text(),
                disabled: false,
            },
        });
    }
    if cells.is_empty() {
        cells.push(Cell {
            uuid: ONLY_CELL.to_owned(),
            disabled: false,
        });
    }
    Ok(cells)
}

fn aggregates(case: &Dict<Value>) -> Result<Vec<Arc<Aggregate>>, BadCase> {
    let bad = |fault: NovaException| BadCase(format!("an aggregate: {fault}"));
    let mut aggregates = Vec::new();
    for aggregate in items(case, "aggregates")? {
        let aggregate = object(aggregate, "an aggregate")?;
        let read = || -> Result<Aggregate, NovaException> {
            Ok(Aggregate {
                id: fields::integer(fields::key(aggregate, "id")?)?,
                uuid: string(fields::key(aggregate, "uuid")?)?,
                name: string(fields::key(aggregate, "name")?)?,
                hosts: fields::list(fields::key(aggregate, "hosts")?, string)?,
                metadata: fields::map(fields::key(aggregate, "metadata")?, string)?,
            })
        };
        aggregates.push(Arc::new(read().map_err(bad)?));
    }
    Ok(aggregates)
}

fn schedule(value: &Value) -> Result<ScheduleCase, BadCase> {
    let schedule = object(value, "schedule")?;
    let names = |name: &str| -> Result<BTreeSet<String>, BadCase> {
        Ok(items(schedule, name)?.iter().map(Value::text).collect())
    };
    Ok(ScheduleCase {
        instance_uuids: match get(schedule, "instance_uuids") {
            None => None,
            Some(_) => Some(
                items(schedule, "instance_uuids")?
                    .iter()
                    .map(Value::text)
                    .collect(),
            ),
        },
        return_alternates: schedule.get("return_alternates").is_none_or(Value::truth),
        fail_hosts: names("claim_fail_hosts")?,
        fail_first: match get(schedule, "claim_fail_first") {
            Some(Value::Int(n)) => *n,
            _ => 0,
        },
        raise_hosts: names("claim_raise_hosts")?,
        no_placement: get(schedule, "no_placement").is_some_and(Value::truth),
    })
}

fn instance(row: &Value) -> (String, InstanceFacts) {
    let Value::Dict(row) = row else {
        return (row.text(), InstanceFacts::default());
    };
    let image_properties = match row.get("image_props") {
        Some(Value::Dict(properties)) => properties
            .iter()
            .map(|(name, value)| (name.clone(), to_json(value)))
            .collect(),
        _ => BTreeMap::new(),
    };
    let uuid = text(row, "uuid").unwrap_or_default();
    let facts = InstanceFacts {
        image_properties,
        orphan: false,
    };
    (uuid, facts)
}

fn candidate(given: &Value) -> AllocationCandidate {
    let part = |name: &str| match given {
        Value::Dict(given) => given.get(name).map_or(serde_json::Value::Null, to_json),
        _ => serde_json::Value::Null,
    };
    AllocationCandidate {
        allocations: part("allocations"),
        mappings: part("mappings"),
    }
}
