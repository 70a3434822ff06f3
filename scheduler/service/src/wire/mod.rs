//! Connections from outside: taken, counted, made secret, and known by whose they are.
//!
//! gRPC and the HTTP pages share this: a [`Port`] is taken first, then its [`Connections`] come out one after another, each with its
//! TLS done and its [`Peer`] known. A connection that says nothing holds up no other one.

mod accept;
mod connection;
mod peer;
mod tls;

pub(crate) use accept::{Connections, Port};
pub(crate) use peer::Peer;
pub(crate) use tls::{Stamp, TlsServer};
