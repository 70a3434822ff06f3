//! The old payload.
use crate::{RpcContext, ScheduleRequest};
use serde_json::Value as Json;

/// The payload of both notifications in the old form.
#[must_use]
pub fn legacy_payload(request: &ScheduleRequest, _context: &RpcContext) -> Json {
    let _ = request;
    Json::Null
}
