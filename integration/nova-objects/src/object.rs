//! The envelope around every versioned object: `nova_object.name`, `.namespace`, `.version`,
//! `.data`, `.changes`.

use crate::error::{ObjectError, ObjectProblem, Result};
use crate::read;
use ebbtide_nova::python::{Dict, Value};
use serde_json::{Map, Value as Json, json};

/// An object of a message, its fields not yet read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Object<'a> {
    /// Fields that are set, by name.
    pub(crate) data: &'a Dict<Value>,
}

impl<'a> Object<'a> {
    /// Opens an envelope. Fields that a newer minor version added are never looked at.
    ///
    /// # Errors
    /// Not an object, another object, another major version.
    pub(crate) fn open(value: &'a Value, name: &'static str, major: u32) -> Result<Self> {
        let kind = |found: &str| {
            Err(ObjectError::here(ObjectProblem::Kind {
                expected: name,
                found: found.to_owned(),
            }))
        };
        let Value::Dict(envelope) = value else {
            return kind("there is no envelope");
        };
        match envelope.get("nova_object.name") {
            Some(Value::Str(found)) if found == name => {}
            Some(Value::Str(found)) => return kind(&format!("it is a {found:.40}")),
            _ => return kind("it has no nova_object.name"),
        }
        let Some(Value::Str(version)) = envelope.get("nova_object.version") else {
            return kind("it has no nova_object.version");
        };
        let parts = version
            .split_once('.')
            .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        if parts.is_none_or(|(found, _): (u32, u32)| found != major) {
            return Err(ObjectError::here(ObjectProblem::Version {
                name,
                found: version.chars().take(20).collect(),
                major,
            }));
        }
        match envelope.get("nova_object.data") {
            Some(Value::Dict(data)) => Ok(Self { data }),
            _ => kind("it has no nova_object.data"),
        }
    }

    /// A field that has to be set; null is up to `read`.
    pub(crate) fn required<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Value) -> Result<T>,
    ) -> Result<T> {
        match self.data.get(name) {
            None => Err(ObjectError::here(ObjectProblem::Missing).within(name)),
            Some(value) => read(value).map_err(|error| error.within(name)),
        }
    }

    /// A field where unset and null are one.
    pub(crate) fn optional<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Value) -> Result<T>,
    ) -> Result<Option<T>> {
        read::member(self.data, name, read)
    }

    /// A field that is empty, zero or false where it is unset or null.
    pub(crate) fn or_default<T: Default>(
        &self,
        name: &str,
        read: impl FnOnce(&Value) -> Result<T>,
    ) -> Result<T> {
        Ok(self.optional(name, read)?.unwrap_or_default())
    }

    /// A field where unset (outer `None`) and null (inner `None`) differ.
    pub(crate) fn nullable_or_unset<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Value) -> Result<T>,
    ) -> Result<Option<Option<T>>> {
        match self.data.get(name) {
            None => Ok(None),
            Some(value) => read::nullable(value, read)
                .map(Some)
                .map_err(|error| error.within(name)),
        }
    }

    /// A field that may be unset but not null.
    pub(crate) fn set<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Value) -> Result<T>,
    ) -> Result<Option<T>> {
        match self.data.get(name) {
            None => Ok(None),
            Some(value) => read(value).map(Some).map_err(|error| error.within(name)),
        }
    }
}

/// The items of a list object (`objects` of an InstanceList and the like).
pub(crate) fn items<T>(
    value: &Value,
    name: &'static str,
    major: u32,
    read: impl Fn(&Value) -> Result<T>,
) -> Result<Vec<T>> {
    Object::open(value, name, major)?.required("objects", |items| read::list(items, read))
}

/// Writes an envelope. Nova lists as changed what was set since the object was read; what we send
/// was just made, so that is every field, but for `changes` of objects that stand in notifications,
/// which have none.
pub(crate) fn envelope(name: &str, version: &str, data: Map<String, Json>) -> Json {
    let changes: Vec<&String> = data.keys().collect();
    json!({
        "nova_object.name": name,
        "nova_object.namespace": "nova",
        "nova_object.version": version,
        "nova_object.changes": changes,
        "nova_object.data": &data,
    })
}

/// An envelope without `changes`, as notification payloads have it.
pub(crate) fn payload(name: &str, version: &str, data: Map<String, Json>) -> Json {
    json!({
        "nova_object.name": name,
        "nova_object.namespace": "nova",
        "nova_object.version": version,
        "nova_object.data": data,
    })
}
