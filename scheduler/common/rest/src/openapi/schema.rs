//! Schemas of the contracts' messages, as proto3 JSON writes them.

use super::words::Comments;
use crate::contract::PathParameter;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The schemas that were referred to so far.
#[derive(Debug)]
pub(super) struct Schemas<'a> {
    comments: &'a Comments,
    made: BTreeMap<String, Value>,
}

impl<'a> Schemas<'a> {
    pub(super) fn new(comments: &'a Comments) -> Self {
        Self {
            comments,
            made: BTreeMap::new(),
        }
    }

    /// A reference to the schema of a message, or the schema of a scalar.
    pub(super) fn kind(&mut self, kind: &Kind) -> Value {
        match kind {
            Kind::Message(message) => {
                let name = message.name().to_owned();
                if !self.made.contains_key(&name) {
                    // Before its fields, since messages may contain themselves.
                    self.made.insert(name.clone(), Value::Null);
                    let schema = self.message(message, None);
                    self.made.insert(name.clone(), schema);
                }
                json!({ "$ref": format!("#/components/schemas/{name}") })
            }
            Kind::String | Kind::Enum(_) => json!({ "type": "string" }),
            Kind::Bool => json!({ "type": "boolean" }),
            Kind::Bytes => json!({ "type": "string", "contentEncoding": "base64" }),
            Kind::Double => json!({ "type": "number", "format": "double" }),
            Kind::Float => json!({ "type": "number", "format": "float" }),
            Kind::Uint32 | Kind::Fixed32 => {
                json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })
            }
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
                json!({ "type": "integer", "format": "int32" })
            }
            // As proto3 JSON has it: JavaScript's numbers are too small. A number is read, too.
            Kind::Uint64 | Kind::Fixed64 => json!({ "type": "string", "format": "uint64" }),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
                json!({ "type": "string", "format": "int64" })
            }
        }
    }

    /// The schema of a field, without its comment.
    pub(super) fn field(&mut self, field: &FieldDescriptor) -> Value {
        if field.is_map()
            && let Kind::Message(entry) = field.kind()
        {
            let value = self.kind(&entry.map_entry_value_field().kind());
            return json!({ "type": "object", "additionalProperties": value });
        }
        let one = self.kind(&field.kind());
        match field.is_list() {
            true => json!({ "type": "array", "items": one }),
            false => one,
        }
    }

    /// The schema of a request without the fields of its path.
    pub(super) fn without(
        &mut self,
        message: &MessageDescriptor,
        parameters: &[PathParameter],
    ) -> Value {
        match parameters {
            [] => self.kind(&Kind::Message(message.clone())),
            some => self.message(message, Some(some)),
        }
    }

    fn message(&mut self, message: &MessageDescriptor, path: Option<&[PathParameter]>) -> Value {
        let mut properties = Map::new();
        let in_path = |field: &FieldDescriptor| {
            let mut parameters = path.unwrap_or_default().iter();
            parameters.any(|parameter| parameter.fields.first() == Some(field))
        };
        for field in message.fields().filter(|field| !in_path(field)) {
            let mut schema = self.field(&field);
            let text = self.comments.of_field(&field);
            if let (false, Value::Object(schema)) = (text.is_empty(), &mut schema) {
                schema.insert("description".to_owned(), text.into());
            }
            properties.insert(field.name().to_owned(), schema);
        }
        let mut schema = json!({ "type": "object", "properties": properties });
        let text = self.comments.of_message(message);
        if let (false, Value::Object(schema)) = (text.is_empty(), &mut schema) {
            schema.insert("description".to_owned(), text.into());
        }
        schema
    }

    /// All schemas, with those that no contract has.
    pub(super) fn finish(mut self) -> Value {
        let text = |words: &str| json!({ "type": "string", "description": words });
        let problem = json!({
            "type": "object",
            "description": "A problem document (RFC 9457).",
            "required": ["type", "title", "status", "detail", "code", "request_id"],
            "properties": {
                "type": text("urn:ebbtide:error: and the code."),
                "title": text("The words of the HTTP status."),
                "status": { "type": "integer" },
                "detail": text("What was wrong, and where."),
                "code": text("The stable code, as in docs/reference/errors.md."),
                "next": text("What to do next."),
                "field": text("The field or parameter that does not fit."),
                "request_id": text("The id of this request, as logs have it."),
                "global_request_id": text("The id that the caller has sent."),
            },
        });
        let paged = json!({
            "type": "object",
            "properties": { "links": {
                "type": "array",
                "description": "A link with rel `next`, if there may be another page.",
                "items": { "type": "object", "properties": {
                    "rel": { "type": "string" },
                    "href": { "type": "string", "format": "uri-reference" },
                } },
            } },
        });
        self.made.insert("Problem".to_owned(), problem);
        self.made.insert("Paged".to_owned(), paged);
        Value::Object(self.made.into_iter().collect())
    }
}
