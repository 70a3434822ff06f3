//! Requests: calls and casts.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::envelope::{Properties, open};
use crate::{Map, MessagingError};

/// The prefix of the keys in which the caller's context travels.
const CONTEXT: &str = "_context_";

/// Where the reply to a call goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyTo {
    /// `_msg_id`: names the call within the queue.
    pub message_id: String,
    /// `_reply_q`: the caller's queue.
    pub queue: String,
}

/// A decoded request. `Debug` shows neither context nor arguments.
#[derive(Clone, PartialEq)]
pub struct RpcRequest {
    /// The method.
    pub method: String,
    /// The named arguments.
    pub args: Map,
    /// The interface's name.
    pub namespace: Option<String>,
    /// The version as it is written; `None` stands for 1.0.
    pub version: Option<String>,
    /// Where the reply goes; `None` for a cast.
    pub reply_to: Option<ReplyTo>,
    /// `_timeout`: the caller wants to hear something at least this often.
    pub call_monitor_timeout: Option<Duration>,
    /// `_unique_id`: the same for every delivery of this request.
    pub unique_id: Option<String>,
    /// The caller's context.
    pub context: Map,
}

/// A request that cannot be used, and whom to tell, as far as it can be read.
#[derive(Debug, Clone, PartialEq)]
pub struct BadRequest {
    /// What is wrong.
    pub error: MessagingError,
    /// The caller, if the request says so.
    pub reply_to: Option<Box<ReplyTo>>,
}

impl From<MessagingError> for BadRequest {
    fn from(error: MessagingError) -> Self {
        Self {
            error,
            reply_to: None,
        }
    }
}

/// Decodes a request from outside.
///
/// # Errors
///
/// [`BadRequest`] says what is wrong without repeating the content.
pub fn decode_request(
    body: &[u8],
    properties: Properties<'_>,
    max_bytes: usize,
) -> Result<RpcRequest, BadRequest> {
    let mut message = open(body, properties, max_bytes)?;
    let reply_to = take_reply_to(&mut message)?;
    let bad = |reason: &str| BadRequest {
        error: MessagingError::bad(reason),
        reply_to: reply_to.clone().map(Box::new),
    };
    let optional = |message: &mut Map, key: &str| match message.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(bad(&format!("its {key} is no string"))),
    };
    let method = optional(&mut message, "method")?.ok_or_else(|| bad("it names no method"))?;
    let args = match message.remove("args") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(args)) => args,
        Some(_) => return Err(bad("its args are no object")),
    };
    let namespace = optional(&mut message, "namespace")?;
    let version = optional(&mut message, "version")?;
    let unique_id = optional(&mut message, "_unique_id")?;
    let call_monitor_timeout = message
        .remove("_timeout")
        .as_ref()
        .and_then(monitor_timeout);
    let context = message
        .into_iter()
        .filter_map(|(key, value)| Some((key.strip_prefix(CONTEXT)?.to_owned(), value)))
        .collect();
    Ok(RpcRequest {
        method,
        args,
        namespace,
        version,
        reply_to,
        call_monitor_timeout,
        unique_id,
        context,
    })
}

fn take_reply_to(message: &mut Map) -> Result<Option<ReplyTo>, MessagingError> {
    match (message.remove("_msg_id"), message.remove("_reply_q")) {
        // Python sends no reply without `_msg_id`, whatever else there is.
        (None | Some(Value::Null), _) => Ok(None),
        (Some(Value::String(message_id)), Some(Value::String(queue)))
            if !message_id.is_empty() && (1..=255).contains(&queue.len()) =>
        {
            Ok(Some(ReplyTo { message_id, queue }))
        }
        _ => Err(MessagingError::bad(
            "its _msg_id or _reply_q is no string of 1 to 255 bytes",
        )),
    }
}

/// Python does `int(...)` and ignores what is not a number; below 2 s there are no heartbeats.
fn monitor_timeout(value: &Value) -> Option<Duration> {
    let seconds = match value {
        Value::Number(number) => number.as_f64()?.trunc(),
        Value::String(text) => text.trim().parse::<u32>().ok()?.into(),
        _ => return None,
    };
    // Some 136 years; more is no timeout.
    (2.0..=f64::from(u32::MAX))
        .contains(&seconds)
        .then(|| Duration::from_secs_f64(seconds))
}

impl fmt::Debug for RpcRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("namespace", &self.namespace)
            .field("version", &self.version)
            .field("reply_to", &self.reply_to)
            .field("unique_id", &self.unique_id)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn decode(message: &Value) -> Result<RpcRequest, BadRequest> {
        decode_request(
            message.to_string().as_bytes(),
            Properties::default(),
            10_000,
        )
    }

    #[test]
    fn a_call_and_a_cast_are_told_apart() {
        let call = decode(&json!({
            "method": "m", "args": {"a": 1}, "namespace": "n", "version": "1.1", "_msg_id": "i", "_reply_q": "q",
            "_timeout": 60, "_unique_id": "u", "_context_user": "me", "other": 1
        }))
        .unwrap();
        assert_eq!(
            call.reply_to,
            Some(ReplyTo {
                message_id: "i".to_owned(),
                queue: "q".to_owned()
            })
        );
        assert_eq!(call.call_monitor_timeout, Some(Duration::from_secs(60)));
        assert_eq!(call.context.len(), 1);
        assert_eq!(call.context["user"], "me");
        let cast = decode(&json!({"method": "m", "_reply_q": "q", "_msg_id": null})).unwrap();
        assert_eq!(
            (cast.reply_to, cast.version, cast.args),
            (None, None, Map::new())
        );
    }

    #[test]
    fn a_request_that_misses_something_still_tells_whom_to_answer() {
        let cases = [
            json!({}),
            json!({"method": 1}),
            json!({"method": "m", "args": []}),
            json!({"method": "m", "version": 4.5}),
            json!({"method": "m", "namespace": ["n"]}),
            json!({"method": "m", "_unique_id": {}}),
        ];
        for mut message in cases {
            assert_eq!(decode(&message).unwrap_err().reply_to, None);
            message["_msg_id"] = json!("i");
            message["_reply_q"] = json!("q");
            let bad = decode(&message).unwrap_err();
            assert_eq!(bad.error.code(), "EB-OSLO-008");
            assert_eq!(bad.reply_to.unwrap().queue, "q");
        }
        for (id, queue) in [
            (json!(1), json!("q")),
            (json!("i"), json!(null)),
            (json!("i"), json!("q".repeat(256))),
        ] {
            decode(&json!({"method": "m", "_msg_id": id, "_reply_q": queue})).unwrap_err();
        }
    }

    #[test]
    fn a_senseless_monitor_timeout_is_ignored() {
        for (value, expected) in [
            (json!(60), Some(60)),
            (json!("30"), Some(30)),
            (json!(2.9), Some(2)),
            (json!(1), None),
            (json!(-5), None),
            (json!(1e300), None),
            (json!("soon"), None),
            (json!(null), None),
            (json!([60]), None),
        ] {
            let request = decode(&json!({"method": "m", "_timeout": value})).unwrap();
            assert_eq!(
                request.call_monitor_timeout,
                expected.map(Duration::from_secs),
                "{value}"
            );
        }
    }
}
