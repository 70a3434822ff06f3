//! The OpenAPI document, from the table of routes and the contracts.

mod schema;
mod words;

use crate::contract::{BoundRoute, Contract, PACKAGE};
use crate::discovery::VERSION;
use crate::error::RestError;
use crate::table::{Answer, RequestBody};
use prost_reflect::{FieldDescriptor, Kind};
use schema::Schemas;
use serde_json::{Map, Value, json};
use words::Comments;

const DESCRIPTION: &str = "Places virtual machines and lends idle capacity as preemptible servers. \
     Every operation is one call of the gRPC API and has its rights, limits and errors. Names are \
     those of the contracts; lower camel case is read, too. Unknown fields are refused.";

/// The OpenAPI 3.1 document.
///
/// # Errors
/// [`RestError::Contract`] if table and contracts do not fit.
pub fn document() -> Result<Value, RestError> {
    let contract = Contract::load()?;
    let comments = Comments::of(&crate::contract::pool()?);
    let mut schemas = Schemas::new(&comments);
    let mut paths = Map::new();
    for route in &contract.routes {
        let operation = operation(route, &comments, &mut schemas);
        let path = paths.entry(plain(route)).or_insert_with(|| json!({}));
        if let Value::Object(path) = path {
            path.insert(route.route.method.to_ascii_lowercase(), operation);
        }
    }
    paths.insert(
        "/".to_owned(),
        public("Lists the versions of the API.", "getVersions"),
    );
    paths.insert(
        "/v1".to_owned(),
        public("Describes this version.", "getVersion"),
    );
    let text = public("Returns this document.", "getOpenapi");
    paths.insert("/v1/openapi.json".to_owned(), text);
    let tags: Vec<Value> = comments
        .services()
        .map(|(name, text)| json!({ "name": name, "description": text }))
        .collect();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Ebbtide",
            "version": VERSION,
            "description": DESCRIPTION,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "bearer": [] }, { "token": [] }],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas.finish(),
            "responses": { "Problem": {
                "description": "The request has failed.",
                "headers": request_id(),
                "content": { "application/problem+json": {
                    "schema": { "$ref": "#/components/schemas/Problem" },
                } },
            } },
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
                "token": { "type": "apiKey", "in": "header", "name": "X-Auth-Token" },
            },
        },
    });
    document.sort_all_objects();
    Ok(document)
}

/// The path as OpenAPI has it: `{name}` for each parameter.
fn plain(route: &BoundRoute) -> String {
    let mut names = route.parameters.iter().map(|parameter| &parameter.name);
    let parts = route.route.path.split('/').map(|part| {
        let name = part.starts_with('{').then(|| names.next()).flatten();
        name.map_or_else(|| part.to_owned(), |name| format!("{{{name}}}"))
    });
    parts.collect::<Vec<_>>().join("/")
}

fn operation(route: &BoundRoute, comments: &Comments, schemas: &mut Schemas<'_>) -> Value {
    let method = &route.method;
    let mut name = method.name().to_owned();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    let text = comments.of_method(method);
    let mut operation = json!({
        "operationId": name,
        "tags": [method.parent_service().name()],
        "summary": words::summary(method.name(), &text),
        "x-ebbtide-rpc": format!("{PACKAGE}.{}", route.route.rpc),
        "parameters": parameters(route, comments, schemas),
        "responses": responses(route, schemas),
    });
    let Value::Object(fields) = &mut operation else {
        return operation;
    };
    if !text.is_empty() {
        fields.insert("description".to_owned(), text.into());
    }
    let schema = match route.route.body {
        RequestBody::Ignored => return operation,
        RequestBody::Message => schemas.without(&method.input(), &route.parameters),
        RequestBody::Field(name) => match method.input().get_field_by_name(name) {
            Some(field) => schemas.kind(&field.kind()),
            None => json!({}),
        },
    };
    let body = json!({
        "content": { "application/json": { "schema": schema } },
        "required": matches!(route.route.body, RequestBody::Field(_)),
    });
    fields.insert("requestBody".to_owned(), body);
    operation
}

fn parameters(route: &BoundRoute, comments: &Comments, schemas: &mut Schemas<'_>) -> Vec<Value> {
    let mut all = Vec::new();
    let mut add = |name: &str, at: &str, field: &FieldDescriptor| {
        let mut parameter = json!({
            "name": name,
            "in": at,
            "required": at == "path",
            "schema": schemas.field(field),
        });
        let text = comments.of_field(field);
        if let (false, Value::Object(fields)) = (text.is_empty(), &mut parameter) {
            fields.insert("description".to_owned(), text.into());
        }
        all.push(parameter);
    };
    for parameter in &route.parameters {
        if let Some(field) = parameter.fields.last() {
            add(&parameter.name, "path", field);
        }
    }
    for field in &route.query {
        add(field.name(), "query", field);
    }
    if route.route.etag {
        all.push(json!({
            "name": "If-None-Match",
            "in": "header",
            "description": "An entity tag; 304 if the resource still has it.",
            "schema": { "type": "string" },
        }));
    }
    if matches!(route.route.answer, Answer::Events(_)) {
        all.push(json!({
            "name": "Last-Event-ID",
            "in": "header",
            "description": "The last event that was read. The stream then begins with an event \
                            `gap`: events in between may be missing.",
            "schema": { "type": "string" },
        }));
    }
    all
}

fn responses(route: &BoundRoute, schemas: &mut Schemas<'_>) -> Value {
    let output = schemas.kind(&Kind::Message(route.method.output()));
    let mut headers = request_id();
    let (status, description, content) = match route.route.answer {
        Answer::Json(204) => (204, "Done.", None),
        Answer::Json(status) => {
            let schema = match route.route.page {
                Some(_) => json!({ "allOf": [output, { "$ref": "#/components/schemas/Paged" }] }),
                None => output,
            };
            let content = json!({ "application/json": { "schema": schema } });
            (status, "The answer.", Some(content))
        }
        Answer::Events(_) => {
            let words = "Server-Sent Events. `data` is a message as JSON, `event` the member that \
                         is set, `id` its sequence. Comments keep the connection alive.";
            let content = json!({ "text/event-stream": {
                "schema": { "type": "string", "contentMediaType": "application/json",
                            "contentSchema": output },
            } });
            (200, words, Some(content))
        }
        Answer::Document(_) => {
            let content = json!({ "application/json": { "schema": {} } });
            (200, "One JSON document.", Some(content))
        }
    };
    if let (true, Value::Object(headers)) = (route.route.etag, &mut headers) {
        let tag = json!({ "description": "The entity tag.", "schema": { "type": "string" } });
        headers.insert("ETag".to_owned(), tag);
    }
    let mut answer = json!({ "description": description, "headers": headers });
    if let (Some(content), Value::Object(answer)) = (content, &mut answer) {
        answer.insert("content".to_owned(), content);
    }
    let mut all = Map::new();
    all.insert(status.to_string(), answer);
    if route.route.etag {
        let same = json!({ "description": "The resource has the tag of If-None-Match." });
        all.insert("304".to_owned(), same);
    }
    let problem = json!({ "$ref": "#/components/responses/Problem" });
    all.insert("default".to_owned(), problem);
    Value::Object(all)
}

/// The header of every answer.
fn request_id() -> Value {
    json!({ "X-Openstack-Request-Id": {
        "description": "The id of this request, as logs have it.",
        "schema": { "type": "string" },
    } })
}

/// A document that needs no token.
fn public(summary: &str, name: &str) -> Value {
    json!({ "get": {
        "operationId": name,
        "summary": summary,
        "security": [],
        "responses": { "200": {
            "description": "The document.",
            "headers": request_id(),
            "content": { "application/json": { "schema": { "type": "object" } } },
        } },
    } })
}
