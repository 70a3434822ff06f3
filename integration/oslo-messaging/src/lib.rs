//! oslo.messaging over RabbitMQ: RPC server, RPC client and notifier that OpenStack's services
//! understand.
//!
//! Everything starts with a [`Transport`]: one `transport_url`, the options of
//! `[oslo_messaging_rabbit]`, and up to two AMQP connections that are kept alive by themselves. On
//! it run an [`RpcServer`] with its [`Endpoint`]s, an [`RpcClient`], a [`Notifier`], in any number.
//! The README shows each of them.
//!
//! What goes over the wire is what Python's oslo.messaging 14 to 18 sends and expects, byte for
//! byte where bytes matter. What differs on purpose: a request is acknowledged after its answer is
//! confirmed (see [`AckMode`]), so that a killed server loses none, and TLS always verifies the
//! broker.

#![warn(missing_docs)]
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod client;
mod dedup;
mod dispatch;
mod endpoint;
mod error;
mod link;
mod names;
mod notifier;
mod options;
mod remote_error;
mod server;
mod target;
mod transport;
mod url;
mod version;
pub mod wire;

pub use client::{CallOptions, RpcClient};
pub use endpoint::{
    ArrivalQueue, CallEnd, CallState, CallerState, Endpoint, EndpointTarget, HandlerFuture,
    IncomingCall,
};
pub use error::MessagingError;
pub use notifier::{Notification, Notifier, NotifierFormat, NotifierOptions, Priority};
pub use options::{FailoverStrategy, LoginMethod, RabbitOptions};
pub use remote_error::RemoteError;
pub use server::{AckMode, RpcServer, ServerOptions, ServerRole, StopReport};
pub use target::Target;
pub use transport::{Transport, TransportStatus};
pub use url::{TransportHost, TransportUrl};
pub use version::RpcVersion;

/// A JSON object, as contexts and arguments are.
pub type Map = serde_json::Map<String, serde_json::Value>;
