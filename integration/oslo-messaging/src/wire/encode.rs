//! Requests and notifications that we send, in the order of Python's keys.

use std::time::Duration;

use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::Value;

use super::envelope::seal;
use super::json::to_python_json;
use crate::{Map, MessagingError};

/// A request to be sent.
#[derive(Clone, Copy)]
pub struct RequestFields<'a, A: ?Sized = Map> {
    /// The method.
    pub method: &'a str,
    /// The named arguments, as something that serialises as an object.
    pub args: &'a A,
    /// The interface's name.
    pub namespace: Option<&'a str>,
    /// The version.
    pub version: Option<&'a str>,
    /// `_msg_id` and `_reply_q` of a call.
    pub reply_to: Option<(&'a str, &'a str)>,
    /// `_timeout` of a call.
    pub call_monitor_timeout: Option<Duration>,
    /// `_unique_id`.
    pub unique_id: &'a str,
    /// The context: each entry gets the prefix `_context_`.
    pub context: &'a Map,
}

/// Encodes a call or a cast.
///
/// # Errors
///
/// If the arguments are no JSON.
pub fn encode_request<A: Serialize + ?Sized>(
    request: &RequestFields<'_, A>,
) -> Result<Vec<u8>, MessagingError> {
    seal(&RequestWire(request))
}

struct RequestWire<'r, 'a, A: ?Sized>(&'r RequestFields<'a, A>);

impl<A: Serialize + ?Sized> Serialize for RequestWire<'_, '_, A> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let request = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("method", request.method)?;
        map.serialize_entry("args", request.args)?;
        if let Some(namespace) = request.namespace {
            map.serialize_entry("namespace", namespace)?;
        }
        if let Some(version) = request.version {
            map.serialize_entry("version", version)?;
        }
        if let Some((message_id, queue)) = request.reply_to {
            map.serialize_entry("_msg_id", message_id)?;
            map.serialize_entry("_reply_q", queue)?;
            map.serialize_entry(
                "_timeout",
                &request.call_monitor_timeout.map(|t| t.as_secs()),
            )?;
        }
        map.serialize_entry("_unique_id", request.unique_id)?;
        context(&mut map, request.context)?;
        map.end()
    }
}

fn context<M: SerializeMap>(map: &mut M, context: &Map) -> Result<(), M::Error> {
    for (key, value) in context {
        map.serialize_entry(&format!("_context_{key}"), value)?;
    }
    Ok(())
}

/// A notification to be sent.
#[derive(Clone, Copy)]
pub struct NotificationFields<'a, P: ?Sized = Value> {
    /// A fresh UUID with hyphens.
    pub message_id: &'a str,
    /// Who says it, for example `scheduler.host-1`.
    pub publisher_id: &'a str,
    /// What happened.
    pub event_type: &'a str,
    /// In capitals.
    pub priority: &'a str,
    /// The details.
    pub payload: &'a P,
    /// `2026-11-20 17:53:29.847629`, in UTC.
    pub timestamp: &'a str,
    /// `_unique_id`.
    pub unique_id: &'a str,
    /// The context, without secrets.
    pub context: &'a Map,
}

/// Encodes a notification, in an envelope (driver `messagingv2`) or without (`messaging`).
///
/// # Errors
///
/// If the payload is no JSON.
pub fn encode_notification<P: Serialize + ?Sized>(
    notification: &NotificationFields<'_, P>,
    envelope: bool,
) -> Result<Vec<u8>, MessagingError> {
    let wire = NotificationWire(notification);
    if envelope {
        seal(&wire)
    } else {
        to_python_json(&wire).map(String::into_bytes)
    }
}

struct NotificationWire<'r, 'a, P: ?Sized>(&'r NotificationFields<'a, P>);

impl<P: Serialize + ?Sized> Serialize for NotificationWire<'_, '_, P> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let notification = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("message_id", notification.message_id)?;
        map.serialize_entry("publisher_id", notification.publisher_id)?;
        map.serialize_entry("event_type", notification.event_type)?;
        map.serialize_entry("priority", notification.priority)?;
        map.serialize_entry("payload", notification.payload)?;
        map.serialize_entry("timestamp", notification.timestamp)?;
        map.serialize_entry("_unique_id", notification.unique_id)?;
        context(&mut map, notification.context)?;
        map.end()
    }
}
