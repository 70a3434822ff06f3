//! The query of Placement in the oracle's format.

use crate::case::Case;
use ebbtide_nova::model::{Options, RequestSpec};
use ebbtide_nova::placement::{self, Node, QueryContext};
use ebbtide_nova::python::{Dict, Value};

/// Query, fallback and destination; or the error, with what came before it.
pub(super) fn answer(case: &Case, spec: &RequestSpec, options: &Options) -> Value {
    let nodes: Vec<Node> = case
        .names()
        .iter()
        .zip(case.uuids())
        .map(|((host, node), uuid)| Node {
            host: host.clone(),
            node: node.clone(),
            uuid: uuid.clone(),
        })
        .collect();
    let asked = placement::query(
        spec,
        &QueryContext {
            aggregates: &case.aggregates,
            nodes: &nodes,
            min_compute_version: case.min_compute_version,
            options,
        },
    );
    let mut out = Dict::default();
    if let Some(query) = asked.query {
        out.insert("query", Value::Str(query));
    }
    if let Some(query) = asked.fallback_query {
        out.insert("fallback_query", Value::Str(query));
    }
    if let Some((host, node)) = asked.destination {
        let mut destination = Dict::default();
        destination.insert("host", host.map_or(Value::None, Value::Str));
        destination.insert("node", node.map_or(Value::None, Value::Str));
        out.insert("destination", Value::Dict(destination));
    }
    if let Some(fault) = asked.fault {
        let mut error = Dict::default();
        error.insert("type", Value::from(fault.class));
        error.insert("msg", Value::from(fault.message.as_str()));
        out.insert("error", Value::Dict(error));
    }
    Value::Dict(out)
}
