//! The request message of a call, from body, path and query.

use crate::contract::BoundRoute;
use crate::error::RestError;
use crate::table::RequestBody;
use crate::{json, query};
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, Value};
use tonic::body::Body;

/// All of a request but its body.
#[derive(Debug)]
pub(crate) struct Outline {
    /// The values of the path parameters.
    pub(crate) values: Vec<String>,
    pub(crate) query: Vec<(FieldDescriptor, Value)>,
    /// Most bytes of the body.
    pub(crate) most: usize,
}

/// Refuses a body that is declared to be something other than JSON. A body without a declaration
/// is read as JSON.
///
/// # Errors
/// [`RestError::MediaType`].
pub(crate) fn check_type(route: &BoundRoute, headers: &HeaderMap) -> Result<(), RestError> {
    if route.route.body == RequestBody::Ignored {
        return Ok(());
    }
    let Some(given) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let text = String::from_utf8_lossy(given.as_bytes()).to_ascii_lowercase();
    let kind = text.split(';').next().unwrap_or_default().trim();
    let is_json =
        kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"));
    if is_json {
        return Ok(());
    }
    Err(RestError::MediaType {
        given: kind.chars().take(100).collect(),
    })
}

/// Reads the body and makes the request message.
///
/// # Errors
/// What is wrong with the body, or with a parameter beside it.
pub(crate) async fn message(
    route: &BoundRoute,
    outline: Outline,
    body: Body,
) -> Result<DynamicMessage, RestError> {
    let bytes = match route.route.body {
        RequestBody::Ignored => axum::body::Bytes::new(),
        RequestBody::Message | RequestBody::Field(_) => read(body, outline.most).await?,
    };
    build(route, &outline, &bytes)
}

async fn read(body: Body, most: usize) -> Result<axum::body::Bytes, RestError> {
    match Limited::new(body, most).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(RestError::TooLarge { most }),
        Err(error) => Err(RestError::Broken {
            problem: error.to_string(),
        }),
    }
}

fn build(route: &BoundRoute, outline: &Outline, body: &[u8]) -> Result<DynamicMessage, RestError> {
    let input = route.method.input();
    let empty = body.iter().all(u8::is_ascii_whitespace);
    let mut message = match route.route.body {
        RequestBody::Message if !empty => json::read(input, body)?,
        RequestBody::Field(name) if !empty => {
            let mut message = DynamicMessage::new(input.clone());
            if let Some(field) = input.get_field_by_name(name)
                && let Kind::Message(inner) = field.kind()
            {
                message.set_field(&field, Value::Message(json::read(inner, body)?));
            }
            message
        }
        _ => DynamicMessage::new(input),
    };
    for (field, value) in &outline.query {
        message.set_field(field, value.clone());
    }
    for (parameter, value) in route.parameters.iter().zip(&outline.values) {
        query::set(&mut message, parameter, value)?;
    }
    Ok(message)
}
