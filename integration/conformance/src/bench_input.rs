//! Inputs of Nova's benchmark (`bench_nova.py`): a header with requests, and hosts, one JSON object
//! a line.

use crate::case::{BadCase, Case, attach_candidates, states};
use ebbtide_nova::model::{HostState, Options, RequestSpec};
use ebbtide_nova::python::{Dict, Value, json};
use ebbtide_nova::table::CloudTable;

/// A cloud and the requests that are made of it in turn.
#[derive(Debug)]
pub struct BenchInput {
    /// Hosts in the order of the file, as every request finds them.
    pub states: Vec<HostState>,
    pub options: Options,
    /// The time, microseconds since 1970, UTC.
    pub now: i64,
    pub requests: Vec<RequestSpec>,
}

impl BenchInput {
    /// Reads the lines of a file.
    ///
    /// # Errors
    /// [`BadCase`] for a line that is no JSON object, a header without requests, or a row that Nova
    /// does not take.
    pub fn read<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<Self, BadCase> {
        let mut objects = lines
            .into_iter()
            .filter(|line| !line.trim().is_empty())
            .map(object);
        let mut case = objects
            .next()
            .unwrap_or_else(|| Err(BadCase("there is no header".to_owned())))?;
        let hosts: Vec<Value> = objects
            .map(|host| host.map(Value::Dict))
            .collect::<Result<_, _>>()?;
        // The first request's case has them; the others need none.
        let mut hosts = Some(hosts);
        let requests = match case.get("requests") {
            Some(Value::List(requests)) if !requests.is_empty() => requests.clone(),
            _ => return Err(BadCase("the header has no requests".to_owned())),
        };
        case.insert("id", Value::from("bench"));
        let refused = |fault: ebbtide_nova::fault::NovaException| {
            BadCase(format!("Nova refuses it: {fault}"))
        };
        let mut specs = Vec::new();
        let mut first = None;
        for request in requests {
            let mut alone = case.clone();
            if let Some(hosts) = hosts.take() {
                alone.insert("hosts", Value::List(hosts));
            }
            alone.insert("request", request);
            let alone = Case::from_value(&Value::Dict(alone))?;
            specs.push(alone.request_spec().map_err(refused)?);
            first.get_or_insert(alone);
        }
        let case = first.ok_or_else(|| BadCase("the header has no requests".to_owned()))?;
        let options = case.options().map_err(refused)?;
        let mut placed = states(&case, &options, specs.first()).map_err(refused)?;
        attach_candidates(&case, &mut placed);
        Ok(Self {
            states: placed.into_iter().map(|placed| placed.state).collect(),
            options,
            now: case.now,
            requests: specs,
        })
    }

    /// The cloud, ready to answer.
    #[must_use]
    pub fn cloud(&self) -> CloudTable {
        CloudTable::new(self.states.clone(), self.options.clone(), self.now)
    }
}

fn object(line: &str) -> Result<Dict<Value>, BadCase> {
    match json::loads(line) {
        Ok(Value::Dict(object)) => Ok(object),
        Ok(other) => Err(BadCase(format!(
            "a line is a {} and not an object",
            other.class()
        ))),
        Err(fault) => Err(BadCase(format!("a line is not JSON: {}", fault.message))),
    }
}
