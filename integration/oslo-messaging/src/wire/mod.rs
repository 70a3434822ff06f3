//! The messages as bytes: envelope, requests, replies, failures, notifications.
//!
//! Everything here is pure. What is encoded is equal, byte for byte, to what Python's `json.dumps`
//! makes of it; what is decoded comes from outside and may be anything.

mod encode;
mod envelope;
mod json;
mod reply;
mod request;

pub use encode::{NotificationFields, RequestFields, encode_notification, encode_request};
pub use envelope::{Properties, open};
pub use json::to_python_json;
pub use reply::{RpcReply, decode_reply, encode_failure, encode_heartbeat, encode_result};
pub use request::{BadRequest, ReplyTo, RpcRequest, decode_request};

/// The envelope's version (oslo_messaging/_drivers/common.py, `_RPC_ENVELOPE_VERSION`).
pub const ENVELOPE_VERSION: &str = "2.0";
