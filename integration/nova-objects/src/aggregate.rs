//! Host aggregates as nova-api tells them: the fan-out casts `update_aggregates` and
//! `delete_aggregate`.

use crate::error::Result;
use crate::instance::required;
use crate::object::{self, Object};
use crate::read;
use ebbtide_nova::model::Aggregate;
use ebbtide_nova::python::Value;

/// Reads an Aggregate object, versions 1.x.
///
/// # Errors
/// What is wrong, with the path to it.
pub fn read_aggregate(value: &Value) -> Result<Aggregate> {
    let aggregate = Object::open(value, "Aggregate", 1)?;
    Ok(Aggregate {
        id: aggregate.required("id", read::integer)?,
        uuid: aggregate.or_default("uuid", read::text)?,
        name: aggregate.or_default("name", read::text)?,
        hosts: aggregate.or_default("hosts", read::texts)?,
        metadata: aggregate.or_default("metadata", |metadata| read::map(metadata, read::text))?,
    })
}

/// Reads the arguments of `update_aggregates`: an AggregateList, or a plain list.
///
/// # Errors
/// What is wrong, with the path to it.
pub fn read_update_aggregates(args: &Value) -> Result<Vec<Aggregate>> {
    required(read::dict(args)?, "aggregates", |value| match value {
        Value::List(_) => read::list(value, read_aggregate),
        object => object::items(object, "AggregateList", 1, read_aggregate),
    })
}

/// Reads the arguments of `delete_aggregate`.
///
/// # Errors
/// What is wrong, with the path to it.
pub fn read_delete_aggregate(args: &Value) -> Result<Aggregate> {
    required(read::dict(args)?, "aggregate", read_aggregate)
}
