//! The payload as a versioned object.
use crate::ScheduleRequest;
use serde_json::Value as Json;

/// The RequestSpecPayload of both notifications.
#[must_use]
pub fn versioned_payload(request: &ScheduleRequest) -> Json {
    let _ = request;
    Json::Null
}
