//! One attempt to connect to one broker, and the connection that comes out of it.
//!
//! lapin's automatic recovery is off. A connection is built once, used until its first failure, and
//! thrown away whole: with it go its channels, consumers and pending confirms. There is then no
//! half-recovered state to reason about, and every retry above this layer starts from nothing.
//!
//! lapin runs each connection on a thread of its own and offers no way to stop that thread while a
//! peer that accepted the TCP connection does not answer. This module therefore opens the socket
//! itself, keeps a second handle on it, and shuts it down to give up: the thread then reads
//! end-of-file and ends. Otherwise a load balancer that does not answer would cost one thread for
//! each attempt, permanently.
//!
//! When a connection dies in the middle of an operation, lapin 4.12 does not always complete that
//! operation: an ack was seen to wait without end. All waits for lapin therefore also wait for
//! [`BrokerSession::gone`], which the supervisor sets as soon as it knows that the connection is
//! lost.

use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use lapin::tcp::AsyncTcpStream;
use lapin::uri::AMQPScheme;
use lapin::{Connection, ConnectionProperties, Event};
use tokio_util::sync::CancellationToken;

use ebbtide_amqp::BrokerFault;

use super::config::AmqpConfig;
use crate::status::ConnectionPurpose;
use crate::{BrokerUrl, BusError};

/// How long a polite goodbye may take before the socket is cut.
const GOODBYE: Duration = Duration::from_secs(2);

/// lapin reports most failures as an event. Its state is looked at this often besides, because a
/// close with an unknown reply code makes no event.
const LIVENESS_CHECK: Duration = Duration::from_secs(1);

/// A living connection, used by many tasks at once.
pub(crate) struct BrokerSession {
    /// Grows with every connection of the same link.
    pub(crate) id: u64,
    /// The broker, as it may be shown.
    pub(crate) broker: String,
    connection: Connection,
    socket: SocketHandle,
    gone: CancellationToken,
}

/// What happened to a session, for its supervisor.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SessionEvent {
    Blocked(String),
    Unblocked,
    Lost(String),
}

impl BrokerSession {
    /// Opens a channel; it closes itself when its last clone is dropped.
    pub(crate) async fn channel(&self) -> lapin::Result<lapin::Channel> {
        self.connection.create_channel().await
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.connection.status().connected() && !self.gone.is_cancelled()
    }

    /// Set when this connection is lost or closed.
    pub(crate) fn gone(&self) -> &CancellationToken {
        &self.gone
    }

    /// The stream from which [`BrokerSession::wait`] reads. To be made once, right after
    /// connecting.
    pub(crate) fn events(&self) -> BoxStream<'static, Event> {
        self.connection.events_listener().boxed()
    }

    /// Waits until something happens that the supervisor must know.
    pub(crate) async fn wait(&self, events: &mut BoxStream<'static, Event>) -> SessionEvent {
        loop {
            match tokio::time::timeout(LIVENESS_CHECK, events.next()).await {
                Ok(Some(Event::Error(error))) => return SessionEvent::Lost(error.to_string()),
                Ok(Some(Event::ConnectionBlocked(reason))) => return SessionEvent::Blocked(reason),
                Ok(Some(Event::ConnectionUnblocked)) => return SessionEvent::Unblocked,
                Ok(Some(_)) => {}
                Ok(None) | Err(_) if self.is_alive() => {}
                Ok(None) | Err(_) => {
                    return SessionEvent::Lost("the broker closed the connection".to_owned());
                }
            }
        }
    }

    /// Says goodbye to the broker, so that it logs no error, and cuts the socket.
    pub(crate) async fn close(&self) {
        let goodbye = self
            .connection
            .close(200, "ebbtide is shutting down".into());
        if let Ok(Err(error)) = tokio::time::timeout(GOODBYE, goodbye).await {
            tracing::debug!(broker = %self.broker, %error, "the goodbye was not heard");
        }
        self.discard();
    }

    /// Cuts the socket of a connection that has failed, and notifies all tasks that wait on it.
    pub(crate) fn discard(&self) {
        self.gone.cancel();
        self.socket.shut_down();
    }
}

impl Drop for BrokerSession {
    fn drop(&mut self) {
        self.discard();
    }
}

impl std::fmt::Debug for BrokerSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({} on {})", self.id, self.broker)
    }
}

/// Connects, logs in, and opens the vhost.
///
/// The error is [`BusError::LoginRefused`] or [`BusError::Refused`] when waiting will not help, and
/// [`BusError::Unavailable`] otherwise.
pub(crate) async fn dial(
    url: &BrokerUrl,
    config: &AmqpConfig,
    purpose: ConnectionPurpose,
    id: u64,
) -> Result<BrokerSession, BusError> {
    let broker = url.to_string();
    let unavailable = |last_problem: String| BusError::Unavailable {
        operation: "connect".to_owned(),
        waited_seconds: config.connect_timeout.as_secs_f64().ceil() as u64,
        brokers: broker.clone(),
        last_problem,
    };
    let tls = config.tls_files.read().map_err(BusError::from);
    let tls = tls.map_err(|error| unavailable(error.to_string()))?;
    let runtime = lapin::runtime::default_runtime().map_err(|e| unavailable(e.to_string()))?;
    let name = format!("{} ({})", config.connection_name, purpose.as_str());
    let properties = ConnectionProperties::default().with_connection_name(name.into());
    let socket = SocketHandle::default();

    let (kept, tls, limit) = (socket.clone(), tls, config.connect_timeout);
    let uri = url.to_lapin(config.heartbeat_seconds());
    let attempt = Box::pin(Connection::connector(
        uri,
        runtime,
        async move |uri: lapin::uri::AMQPUri, runtime| {
            let host = uri.authority.host.clone();
            let open = async {
                // Every address of the name is tried, in the resolver's order.
                let addresses: Vec<_> =
                    tokio::net::lookup_host((host.as_str(), uri.authority.port))
                        .await?
                        .collect();
                let stream = AsyncTcpStream::connect(&runtime, addresses).await?;
                if let AsyncTcpStream::Plain(plain) = &stream {
                    let tcp = plain.get_ref();
                    // A publish waits for its confirm, so it must not wait for a fuller packet.
                    tcp.set_nodelay(true)?;
                    kept.keep(tcp.as_fd().try_clone_to_owned()?.into())?;
                }
                match uri.scheme {
                    AMQPScheme::AMQP => Ok(stream),
                    AMQPScheme::AMQPS => stream.into_tls(&host, tls.as_ref()).await,
                }
            };
            match tokio::time::timeout(limit, open).await {
                Ok(stream) => Ok(stream?),
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            }
        },
        properties,
    ));
    match tokio::time::timeout(config.connect_timeout, attempt).await {
        Ok(Ok(connection)) => Ok(BrokerSession {
            id,
            broker,
            connection,
            socket,
            gone: CancellationToken::new(),
        }),
        Ok(Err(error)) => {
            socket.shut_down();
            Err(match BrokerFault::of(&error) {
                BrokerFault::AccessRefused(detail) => BusError::LoginRefused {
                    broker,
                    user: url.user().to_owned(),
                    detail,
                },
                BrokerFault::Refused(detail)
                | BrokerFault::Precondition(detail)
                | BrokerFault::NotFound(detail) => BusError::Refused {
                    operation: format!("open a connection to {broker}"),
                    detail,
                },
                BrokerFault::Transient(problem) => unavailable(problem),
            })
        }
        Err(_) => {
            socket.shut_down();
            Err(unavailable(
                "the broker accepted the connection but did not answer in time".to_owned(),
            ))
        }
    }
}

/// A second handle on the socket of a connection.
#[derive(Clone, Default)]
struct SocketHandle(Arc<Mutex<Socket>>);

#[derive(Default)]
enum Socket {
    #[default]
    NotYet,
    Open(std::net::TcpStream),
    /// Given up. A socket that is opened after this is refused.
    Done,
}

impl SocketHandle {
    fn keep(&self, stream: std::net::TcpStream) -> io::Result<()> {
        let mut socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*socket, Socket::Done) {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        *socket = Socket::Open(stream);
        Ok(())
    }

    fn shut_down(&self) {
        let mut socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Socket::Open(stream) = std::mem::replace(&mut *socket, Socket::Done) {
            // It fails only if the peer was quicker.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
