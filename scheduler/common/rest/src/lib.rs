//! REST/JSON beside gRPC: requests are transcoded into calls of the gRPC services.
//!
//! [`RestLayer`] stands in front of a gRPC router, outside of every other layer. It passes gRPC on
//! and turns each request under `/v1` into one gRPC call of the same router, in the same process.
//! Authorization, limits and ownership checks therefore exist once, behind this layer.
//!
//! The layer knows no cloud. [`ROUTES`] says which path is which call; field names, types and
//! comments come from the contracts by reflection.

mod answer;
mod body;
mod call;
mod codec;
mod contract;
mod discovery;
mod error;
mod json;
mod layer;
pub mod openapi;
mod origin;
mod page;
mod problem;
mod query;
mod request_id;
mod stream;
mod table;

pub use error::RestError;
pub use layer::{RestConfig, RestLayer, RestRequest, RestService};
pub use table::{Answer, LEFT_OUT, Page, ROUTES, RequestBody, Route};

/// Reads a JSON body as this message of `ebbtide.v1` and writes it as JSON again. For fuzzing.
///
/// # Errors
/// [`RestError::Body`] with the field; [`RestError::Contract`] if there is no such message.
pub fn reread(message: &str, text: &[u8]) -> Result<serde_json::Value, RestError> {
    let pool = contract::pool()?;
    let descriptor = pool
        .get_message_by_name(&format!("ebbtide.v1.{message}"))
        .ok_or_else(|| RestError::Contract(format!("there is no message {message}")))?;
    json::write(&json::read(descriptor, text)?)
}
