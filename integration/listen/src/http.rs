//! An HTTP server of axum with these limits, for pages that need no authentication.

use crate::body::CallBody;
use crate::connection_slots::ConnectionSlots;
use crate::guarded::GuardedConnection;
use crate::limits::{Deadlines, Protocol};
use crate::session::ConnectionHandle;
use axum::body::Body;
use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, Request};
use axum::middleware::Next;
use axum::response::Response;
use axum::serve::{IncomingStream, Listener};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// An address that may have no IP, as that of a socket in the file system.
pub trait Address {
    /// The address by which connections are counted.
    fn ip(&self) -> IpAddr;
}

impl Address for SocketAddr {
    fn ip(&self) -> IpAddr {
        SocketAddr::ip(self)
    }
}

impl Address for tokio::net::unix::SocketAddr {
    fn ip(&self) -> IpAddr {
        Ipv4Addr::UNSPECIFIED.into()
    }
}

/// A listener whose connections are counted and have deadlines.
#[derive(Debug)]
pub struct LimitedListener<L> {
    listener: L,
    slots: ConnectionSlots,
    deadlines: Deadlines,
}

impl<L> LimitedListener<L> {
    /// Puts the limits around a listener.
    pub fn new(listener: L, slots: ConnectionSlots, deadlines: Deadlines) -> Self {
        Self {
            listener,
            slots,
            deadlines,
        }
    }
}

impl<L> Listener for LimitedListener<L>
where
    L: Listener,
    L::Io: Unpin,
    L::Addr: Address,
{
    type Io = GuardedConnection<L::Io>;
    type Addr = Option<ConnectionHandle>;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (io, address) = self.listener.accept().await;
            let Some(session) = self.slots.take(address.ip()) else {
                continue;
            };
            let guarded =
                GuardedConnection::new(io, session.clone(), Protocol::Http1, self.deadlines);
            return (guarded, Some(session));
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(None)
    }
}

/// The connection of a request; add it with `into_make_service_with_connect_info::<Connection>()`.
#[derive(Debug, Clone)]
pub struct Connection(Option<ConnectionHandle>);

impl<L> Connected<IncomingStream<'_, LimitedListener<L>>> for Connection
where
    L: Listener,
    L::Io: Unpin,
    L::Addr: Address,
{
    fn connect_info(stream: IncomingStream<'_, LimitedListener<L>>) -> Self {
        Self(stream.remote_addr().clone())
    }
}

/// Middleware: a request is a call until its answer is sent.
pub async fn calls(
    ConnectInfo(connection): ConnectInfo<Connection>,
    request: Request,
    next: Next,
) -> Response {
    match connection.0 {
        None => next.run(request).await,
        Some(session) => answer(&session, request, next).await,
    }
}

/// Serves a request as a call of this connection.
pub async fn answer(session: &ConnectionHandle, request: Request, next: Next) -> Response {
    let call = session.call();
    let response = next.run(request).await;
    response.map(|body| Body::new(CallBody::new(body, call)))
}
