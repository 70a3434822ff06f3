//! Fields of the objects that a request came with, as notifications tell them on.

use crate::ScheduleRequest;
use ebbtide_nova::python::{Dict, Value};
use ebbtide_nova::python::{datetime, to_json};
use serde_json::{Map, Value as Json};

/// A versioned object of the request: name, version and fields. `None` where something else stands.
pub(super) struct SourceObject<'a> {
    pub(super) version: &'a str,
    pub(super) fields: &'a Dict<Value>,
    pub(super) changes: Vec<&'a str>,
}

impl<'a> SourceObject<'a> {
    pub(super) fn of(value: &'a Value) -> Option<Self> {
        let Value::Dict(envelope) = value else {
            return None;
        };
        let Some(Value::Dict(fields)) = envelope.get("nova_object.data") else {
            return None;
        };
        let version = match envelope.get("nova_object.version") {
            Some(Value::Str(version)) => version,
            _ => "",
        };
        let changes = match envelope.get("nova_object.changes") {
            Some(Value::List(names)) => names.iter().filter_map(word).collect(),
            _ => Vec::new(),
        };
        Some(Self {
            version,
            fields,
            changes,
        })
    }

    /// The minor version; 0 where there is none.
    pub(super) fn minor(&self) -> u32 {
        let minor = self.version.split_once('.').map(|(_, minor)| minor);
        minor.and_then(|minor| minor.parse().ok()).unwrap_or(0)
    }

    /// An object in a field.
    pub(super) fn object(&self, name: &str) -> Option<SourceObject<'a>> {
        SourceObject::of(self.fields.get(name)?)
    }

    /// The items of a list in a field, or of a list object.
    pub(super) fn items(&self, name: &str) -> impl Iterator<Item = SourceObject<'a>> + use<'a> {
        let items = match self.fields.get(name) {
            Some(Value::List(items)) => items.as_slice(),
            _ => &[],
        };
        items.iter().filter_map(SourceObject::of)
    }

    /// A field as JSON; null where it is not set.
    pub(super) fn json(&self, name: &str) -> Json {
        self.fields.get(name).map_or(Json::Null, to_json)
    }

    /// Several fields as JSON; null where they are not set.
    pub(super) fn pick(&self, names: &[&str]) -> Map<String, Json> {
        names
            .iter()
            .map(|name| ((*name).to_owned(), self.json(name)))
            .collect()
    }
}

/// The instance that the request came with. The first notification writes it into the PCI requests
/// and the NUMA topology, and there it stays when the request names another one later.
pub(super) fn first_instance(request: &ScheduleRequest) -> &str {
    let came_with = request
        .wire
        .fields()
        .and_then(|fields| fields.get("instance_uuid"));
    came_with
        .and_then(word)
        .unwrap_or(&request.spec.instance_uuid)
}

fn word(value: &Value) -> Option<&str> {
    match value {
        Value::Str(text) => Some(text),
        _ => None,
    }
}

/// Objects as dictionaries, lists of objects as lists, times with their fraction and without a
/// zone: what `to_primitive` makes of Nova's objects that have the interface of a dictionary.
pub(super) fn plain(value: &Value) -> Json {
    match value {
        Value::Dict(dict) => match SourceObject::of(value) {
            Some(object) => match object.fields.get("objects") {
                Some(list) => plain(list),
                None => plain_fields(object.fields),
            },
            None => dict_of(dict, |_, value| plain(value)),
        },
        Value::List(items) => items.iter().map(plain).collect(),
        scalar => to_json(scalar),
    }
}

fn plain_fields(fields: &Dict<Value>) -> Json {
    dict_of(fields, |name, value| match value {
        Value::Str(text) if name.ends_with("_at") => time(text),
        value => plain(value),
    })
}

fn dict_of(dict: &Dict<Value>, each: impl Fn(&str, &Value) -> Json) -> Json {
    Json::Object(
        dict.iter()
            .map(|(name, value)| (name.clone(), each(name, value)))
            .collect(),
    )
}

/// `2026-11-20T17:50:09Z` as `2026-11-20T17:50:09.000000`.
fn time(text: &str) -> Json {
    let whole = text.strip_suffix('Z').filter(|text| text.len() == 19);
    match whole {
        Some(whole) if text.is_ascii() && datetime::read(text).is_some() => {
            format!("{whole}.000000").into()
        }
        _ => text.into(),
    }
}
