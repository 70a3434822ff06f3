//! Replies: results, failures and heartbeats.

use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::Value;

use super::envelope::{Properties, open, seal};
use super::json::to_python_json;
use crate::{MessagingError, RemoteError};

/// What a caller gets, possibly after some heartbeats.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcReply {
    /// `_msg_id` of the call.
    pub message_id: String,
    /// `_unique_id` of this reply.
    pub unique_id: Option<String>,
    /// The result; `null` if there is none.
    pub result: Value,
    /// The failure.
    pub failure: Option<RemoteError>,
    /// The last message to this call. A message that is not, and has neither result nor failure, is
    /// a heartbeat.
    pub ending: bool,
}

/// Encodes the result of a call.
///
/// # Errors
///
/// If the result is no JSON.
pub fn encode_result<T: Serialize + ?Sized>(
    result: &T,
    message_id: &str,
    unique_id: &str,
) -> Result<Vec<u8>, MessagingError> {
    seal(&Wire {
        result: Some(result),
        failure: None,
        ending: true,
        message_id,
        unique_id,
    })
}

/// Encodes a sign of life while the work lasts.
///
/// # Errors
///
/// None in practice.
pub fn encode_heartbeat(message_id: &str, unique_id: &str) -> Result<Vec<u8>, MessagingError> {
    seal(&Wire::<Value> {
        result: None,
        failure: None,
        ending: false,
        message_id,
        unique_id,
    })
}

/// Encodes a failure.
///
/// # Errors
///
/// None in practice.
pub fn encode_failure(
    failure: &RemoteError,
    message_id: &str,
    unique_id: &str,
) -> Result<Vec<u8>, MessagingError> {
    #[derive(Serialize)]
    struct Failure<'a> {
        class: &'a str,
        module: &'a str,
        message: &'a str,
        tb: Vec<String>,
        args: &'a [Value],
        kwargs: &'a crate::Map,
    }
    let failure = to_python_json(&Failure {
        class: &failure.class,
        module: &failure.module,
        message: &failure.message,
        tb: failure.traceback_lines(),
        args: &failure.args,
        kwargs: &failure.kwargs,
    })?;
    seal(&Wire::<Value> {
        result: None,
        failure: Some(failure),
        ending: true,
        message_id,
        unique_id,
    })
}

/// A reply in the order of Python's keys.
struct Wire<'a, T: ?Sized> {
    result: Option<&'a T>,
    failure: Option<String>,
    ending: bool,
    message_id: &'a str,
    unique_id: &'a str,
}

impl<T: Serialize + ?Sized> Serialize for Wire<'_, T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("result", &self.result)?;
        map.serialize_entry("failure", &self.failure)?;
        map.serialize_entry("ending", &self.ending)?;
        map.serialize_entry("_msg_id", self.message_id)?;
        map.serialize_entry("_unique_id", self.unique_id)?;
        map.end()
    }
}

/// Decodes a reply from outside.
///
/// # Errors
///
/// [`MessagingError::BadMessage`] without repeating the content.
pub fn decode_reply(
    body: &[u8],
    properties: Properties<'_>,
    max_bytes: usize,
) -> Result<RpcReply, MessagingError> {
    let mut message = open(body, properties, max_bytes)?;
    let Some(Value::String(message_id)) = message.remove("_msg_id") else {
        return Err(MessagingError::bad("a reply without _msg_id"));
    };
    let failure = match message.remove("failure") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if text.is_empty() => None,
        Some(Value::String(text)) => {
            let json: Value = serde_json::from_str(&text)
                .map_err(|error| MessagingError::bad(format!("its failure is no JSON: {error}")))?;
            let failure = RemoteError::from_json(&json)
                .ok_or_else(|| MessagingError::bad("its failure is no JSON object"))?;
            Some(failure)
        }
        Some(_) => return Err(MessagingError::bad("its failure is no string")),
    };
    Ok(RpcReply {
        message_id,
        unique_id: match message.remove("_unique_id") {
            Some(Value::String(id)) => Some(id),
            _ => None,
        },
        result: message.remove("result").unwrap_or(Value::Null),
        failure,
        ending: message.remove("ending") == Some(Value::Bool(true)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn decode(body: &[u8]) -> RpcReply {
        decode_reply(body, Properties::default(), 10_000).unwrap()
    }

    #[test]
    fn a_failure_survives_the_way_there_and_back() {
        let failure =
            RemoteError::new("nova.exception", "NoValidHost", "No valid host was found. ")
                .with_kwarg("reason", "")
                .with_kwarg("code", 500);
        let reply = decode(&encode_failure(&failure, "i", "u").unwrap());
        let read = reply.failure.unwrap();
        assert!(reply.ending && read.is("nova.exception", "NoValidHost"));
        assert_eq!((&read.args, &read.kwargs), (&failure.args, &failure.kwargs));
        assert_eq!(
            read.traceback.last().unwrap(),
            "nova.exception.NoValidHost: No valid host was found. \n"
        );
    }

    #[test]
    fn a_heartbeat_ends_nothing() {
        let reply = decode(&encode_heartbeat("i", "u").unwrap());
        assert_eq!(
            (reply.ending, reply.result, reply.failure),
            (false, Value::Null, None)
        );
        let reply = decode(&encode_result(&json!([1]), "i", "u").unwrap());
        assert_eq!(
            (reply.ending, reply.result, reply.unique_id.as_deref()),
            (true, json!([1]), Some("u"))
        );
    }

    #[test]
    fn strange_failures_are_refused_or_read_as_far_as_possible() {
        for failure in [json!(1), json!({}), json!("no json"), json!("[]")] {
            let body = json!({"_msg_id": "i", "failure": failure, "ending": true}).to_string();
            let error = decode_reply(body.as_bytes(), Properties::default(), 10_000).unwrap_err();
            assert_eq!(error.code(), "EB-OSLO-008");
        }
        let odd = json!({"class": 7, "module": "exceptions", "args": {}, "kwargs": [], "tb": [1]})
            .to_string();
        let body = json!({"_msg_id": "i", "failure": odd, "ending": true}).to_string();
        let failure = decode(body.as_bytes()).failure.unwrap();
        assert_eq!(
            (
                failure.class.as_str(),
                failure.args.len(),
                failure.traceback.len()
            ),
            ("", 0, 1)
        );
    }
}
