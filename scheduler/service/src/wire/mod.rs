//! Incoming connections: accepted, counted, encrypted, and with a known peer.
//!
//! gRPC and the HTTP pages share this. A [`Port`] is bound first; its [`Connections`] then yield
//! one connection after another, each after its TLS handshake and with its [`Peer`]. A silent
//! connection does not delay others.

mod accept;
mod connection;
mod peer;
mod tls;

pub(crate) use accept::{Connections, Port};
pub(crate) use peer::Peer;
pub(crate) use tls::{Stamp, TlsServer};
