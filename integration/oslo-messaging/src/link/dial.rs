//! One attempt to connect to one broker, and the connection that comes out of it.
//!
//! lapin's automatic recovery is off. A connection is built once, used until its first failure, and
//! thrown away whole: with it go its channels, consumers and pending confirms. Every retry above
//! this layer starts from nothing.
//!
//! lapin runs each connection on a thread of its own and offers no way to stop that thread while a
//! peer that accepted the TCP connection says nothing. We therefore open the socket ourselves, keep
//! a second handle on it, and shut it down when we give up. And when a connection dies in the
//! middle of an operation, lapin 4.12 does not always complete that operation: everything that
//! waits for lapin therefore also waits for [`BrokerSession::gone`].

use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use lapin::tcp::{AsyncTcpStream, OwnedTLSConfig};
use lapin::uri::{
    AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo, SASLMechanism,
};
use lapin::{Connection, ConnectionProperties, Event};
use tokio_util::sync::CancellationToken;

use ebbtide_amqp::BrokerFault;

use crate::{LoginMethod, MessagingError, RabbitOptions, TransportHost, TransportUrl};

/// Limit for one attempt to connect: TCP, TLS and login together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Limit for one look at a port: longer than a lost SYN takes to be sent again.
const LOOK_LIMIT: Duration = Duration::from_millis(1500);

/// How long a polite goodbye may take before the socket is cut.
const GOODBYE: Duration = Duration::from_secs(2);

/// lapin reports most failures as an event. Its state is looked at this often besides, because a
/// close with an unknown reply code makes no event.
const LIVENESS_CHECK: Duration = Duration::from_secs(1);

/// What a connection is for. Reading and writing are apart: a broker that is short of memory blocks
/// those that publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionPurpose {
    Publish,
    Consume,
}

impl ConnectionPurpose {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Consume => "consume",
        }
    }
}

/// Where and how to connect.
pub(crate) struct Dialer {
    pub(crate) url: TransportUrl,
    pub(crate) options: RabbitOptions,
    /// Shown by the broker's management page.
    pub(crate) connection_name: String,
}

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
        let goodbye = self.connection.close(200, "the service is stopping".into());
        if let Ok(Err(error)) = tokio::time::timeout(GOODBYE, goodbye).await {
            tracing::debug!(broker = %self.broker, %error, "the goodbye was not heard");
        }
        self.discard();
    }

    /// Cuts the socket of a connection that has failed, and tells everybody who waits on it.
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

/// Why there is no connection.
#[derive(Debug)]
pub(crate) struct DialFailure {
    pub(crate) error: MessagingError,
    /// Something accepted the TCP connection.
    pub(crate) reached: bool,
}

/// Whether something accepts TCP connections where the broker should be.
pub(crate) async fn accepts_connections(host: &TransportHost) -> bool {
    let connect = tokio::net::TcpStream::connect((host.host(), host.port()));
    matches!(tokio::time::timeout(LOOK_LIMIT, connect).await, Ok(Ok(_)))
}

impl Dialer {
    /// The brokers, as they may be shown.
    pub(crate) fn brokers(&self) -> String {
        let shown: Vec<String> = self.url.hosts().iter().map(ToString::to_string).collect();
        shown.join(", ")
    }

    fn uri(&self, host: &TransportHost) -> AMQPUri {
        AMQPUri {
            scheme: if self.options.ssl {
                AMQPScheme::AMQPS
            } else {
                AMQPScheme::AMQP
            },
            authority: AMQPAuthority {
                userinfo: AMQPUserInfo {
                    username: host.user().to_owned(),
                    password: host.password().to_owned(),
                },
                host: host.host().to_owned(),
                port: host.port(),
            },
            vhost: self.url.vhost().to_owned(),
            query: AMQPQueryString {
                heartbeat: Some(
                    u16::try_from(self.options.heartbeat.as_secs()).unwrap_or(u16::MAX),
                ),
                auth_mechanism: Some(match self.options.login_method {
                    LoginMethod::AmqPlain => SASLMechanism::AMQPlain,
                    LoginMethod::Plain => SASLMechanism::Plain,
                    LoginMethod::External => SASLMechanism::External,
                }),
                ..AMQPQueryString::default()
            },
        }
    }

    /// Connects, logs in, and opens the vhost.
    ///
    /// The error is transient when waiting may help.
    pub(crate) async fn dial(
        &self,
        host: &TransportHost,
        purpose: ConnectionPurpose,
        id: u64,
    ) -> Result<BrokerSession, DialFailure> {
        let socket = SocketHandle::default();
        let session = self.dial_through(host, purpose, id, &socket).await;
        session.map_err(|error| DialFailure {
            error,
            reached: socket.shut_down(),
        })
    }

    async fn dial_through(
        &self,
        host: &TransportHost,
        purpose: ConnectionPurpose,
        id: u64,
        socket: &SocketHandle,
    ) -> Result<BrokerSession, MessagingError> {
        let broker = host.to_string();
        let unavailable = |last_problem: String| MessagingError::Unavailable {
            operation: "connect".to_owned(),
            brokers: broker.clone(),
            last_problem,
        };
        let tls = if self.options.ssl {
            self.options.tls_files().read()?
        } else {
            OwnedTLSConfig::default()
        };
        let runtime = lapin::runtime::default_runtime().map_err(|e| unavailable(e.to_string()))?;
        let name = format!("{} ({})", self.connection_name, purpose.as_str());
        let properties = ConnectionProperties::default().with_connection_name(name.into());
        let kept = socket.clone();
        let attempt = Box::pin(Connection::connector(
            self.uri(host),
            runtime,
            async move |uri: AMQPUri, runtime| {
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
                match tokio::time::timeout(CONNECT_TIMEOUT, open).await {
                    Ok(stream) => Ok(stream?),
                    Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
                }
            },
            properties,
        ));
        match tokio::time::timeout(CONNECT_TIMEOUT, attempt).await {
            Ok(Ok(connection)) => Ok(BrokerSession {
                id,
                broker,
                connection,
                socket: socket.clone(),
                gone: CancellationToken::new(),
            }),
            Ok(Err(error)) => Err(match BrokerFault::of(&error) {
                BrokerFault::AccessRefused(detail) => MessagingError::LoginRefused {
                    broker,
                    user: host.user().to_owned(),
                    detail,
                },
                BrokerFault::Refused(detail)
                | BrokerFault::Precondition(detail)
                | BrokerFault::NotFound(detail) => MessagingError::Refused {
                    operation: format!("open a connection to {broker}"),
                    detail,
                },
                BrokerFault::Transient(problem) => unavailable(problem),
            }),
            Err(_) => Err(unavailable(
                "the broker accepted the connection but did not answer in time".to_owned(),
            )),
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

    /// Says whether it was open.
    fn shut_down(&self) -> bool {
        let mut socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Socket::Open(stream) = std::mem::replace(&mut *socket, Socket::Done) {
            // It fails only if the peer was quicker.
            let _ = stream.shutdown(Shutdown::Both);
            return true;
        }
        false
    }
}
