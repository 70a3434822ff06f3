//! One attempt to connect to one host.
//!
//! lapin runs each connection on a thread of its own and offers no way to stop that thread while a
//! peer that accepted the TCP connection does not answer. This module therefore opens the socket
//! itself, keeps a second handle on it, and shuts it down to give up: the thread then reads
//! end-of-file and ends. Otherwise a load balancer that does not answer would cost one thread for
//! each attempt, permanently.

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use ebbtide_runtime::login::{Login, Renewal};
use lapin::tcp::{AsyncTcpStream, OwnedTLSConfig};
use lapin::uri::{AMQPScheme, AMQPUri};
use lapin::{Connection, ConnectionProperties};
use tokio_util::sync::CancellationToken;

use crate::session::{BrokerSession, ConnectionPurpose};
use crate::socket::SocketHandle;
use crate::{BrokerFault, TlsError, TlsFiles};

/// Limit for one probe of a port: longer than a lost SYN takes to be sent again.
const PROBE_LIMIT: Duration = Duration::from_millis(1500);

/// One host of a cluster with its login. `Debug` and `Display` show neither user nor password.
#[derive(Clone)]
pub struct Broker {
    uri: AMQPUri,
    shown: String,
}

impl Broker {
    /// A host at `uri`, which logs and errors call `shown`.
    pub fn new(uri: AMQPUri, shown: impl Into<String>) -> Self {
        Self {
            uri,
            shown: shown.into(),
        }
    }

    /// Whether both name the same vhost of the same host, whatever the login.
    fn is_same_place(&self, other: &Self) -> bool {
        let place = |broker: &Self| {
            let mut uri = broker.uri.clone();
            uri.authority.userinfo = Default::default();
            uri
        };
        place(self) == place(other)
    }

    /// Whether the port accepts TCP connections. The broker behind it may still refuse the login.
    pub(crate) async fn accepts_connections(&self) -> bool {
        let address = (self.uri.authority.host.as_str(), self.uri.authority.port);
        let connect = tokio::net::TcpStream::connect(address);
        matches!(tokio::time::timeout(PROBE_LIMIT, connect).await, Ok(Ok(_)))
    }
}

impl fmt::Display for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Broker({self})")
    }
}

/// The hosts of one cluster and the way to connect to each of them.
#[derive(Debug)]
pub struct Dialer {
    /// At least one. A reload replaces the logins; the hosts and their order stay.
    pub brokers: Login<Arc<[Broker]>>,
    /// Used for hosts with the scheme `amqps`.
    pub tls: TlsFiles,
    /// Shown by the broker's management page, with the purpose appended.
    pub connection_name: String,
    /// Limit for one attempt: TCP, TLS and login together.
    pub connect_timeout: Duration,
    /// The reason that the broker's log gives for an orderly end.
    pub goodbye: &'static str,
}

/// A failed attempt to connect.
#[derive(Debug, Clone)]
pub struct DialFailure {
    /// The broker, without credentials.
    pub broker: String,
    /// The user of the login.
    pub user: String,
    /// The limit of the attempt.
    pub limit: Duration,
    /// A port accepted the TCP connection.
    pub reached: bool,
    /// The failure itself.
    pub problem: DialProblem,
}

/// The kinds of [`DialFailure`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DialProblem {
    /// No connection, or no answer. A retry may help.
    Unavailable(String),
    /// The broker does not accept the user or the password.
    LoginRefused(String),
    /// The broker will not open the vhost.
    Refused(String),
    /// A certificate or key cannot be used.
    Tls(TlsError),
}

impl DialProblem {
    /// True if the broker answered and a retry does not help.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::LoginRefused(_) | Self::Refused(_))
    }
}

impl From<BrokerFault> for DialProblem {
    fn from(fault: BrokerFault) -> Self {
        match fault {
            BrokerFault::Transient(problem) => Self::Unavailable(problem),
            BrokerFault::AccessRefused(detail) => Self::LoginRefused(detail),
            BrokerFault::Refused(detail)
            | BrokerFault::Precondition(detail)
            | BrokerFault::NotFound(detail) => Self::Refused(detail),
        }
    }
}

impl Dialer {
    /// Connects to the host with this index, logs in, and opens the vhost.
    ///
    /// # Errors
    ///
    /// [`DialFailure`]; the socket is closed by then.
    ///
    /// # Panics
    ///
    /// If there is no such host.
    pub async fn dial(
        &self,
        host: usize,
        purpose: ConnectionPurpose,
        id: u64,
    ) -> Result<BrokerSession, DialFailure> {
        self.dial_broker(&self.brokers.current()[host], purpose, id)
            .await
    }

    /// Tests new logins for the same hosts, and gives them to all connections that are opened from
    /// now on. Those that are open go on.
    ///
    /// # Errors
    ///
    /// A host answers and refuses the login, or the files of TLS cannot be used. The old logins
    /// stay.
    pub async fn renew_logins(&self, brokers: Vec<Broker>) -> Result<Renewal, DialFailure> {
        let old = self.brokers.current();
        let same = |same: fn(&Broker, &Broker) -> bool| {
            old.len() == brokers.len() && old.iter().zip(&brokers).all(|(a, b)| same(a, b))
        };
        if same(|old, new| old.uri == new.uri) {
            return Ok(Renewal::Unchanged);
        }
        if !same(Broker::is_same_place) {
            return Ok(Renewal::NextStart("the brokers, their order or the vhost"));
        }
        let mut renewal = Renewal::Accepted;
        for broker in &brokers {
            match self.dial_broker(broker, ConnectionPurpose::Test, 0).await {
                Ok(session) => {
                    session.close().await;
                    renewal = Renewal::Accepted;
                    break;
                }
                Err(failure) => match failure.problem {
                    DialProblem::Unavailable(problem) => renewal = Renewal::Untested(problem),
                    _ => return Err(failure),
                },
            }
        }
        self.brokers.replace(brokers.into());
        Ok(renewal)
    }

    async fn dial_broker(
        &self,
        broker: &Broker,
        purpose: ConnectionPurpose,
        id: u64,
    ) -> Result<BrokerSession, DialFailure> {
        let socket = SocketHandle::default();
        match self.connect(broker, purpose, &socket).await {
            Ok(connection) => Ok(BrokerSession {
                id,
                broker: broker.to_string(),
                connection,
                socket,
                gone: CancellationToken::new(),
                goodbye: self.goodbye,
            }),
            Err(problem) => Err(DialFailure {
                broker: broker.to_string(),
                user: broker.uri.authority.userinfo.username.clone(),
                limit: self.connect_timeout,
                reached: socket.shut_down(),
                problem,
            }),
        }
    }

    async fn connect(
        &self,
        broker: &Broker,
        purpose: ConnectionPurpose,
        socket: &SocketHandle,
    ) -> Result<Connection, DialProblem> {
        let tls = match broker.uri.scheme {
            AMQPScheme::AMQP => OwnedTLSConfig::default(),
            AMQPScheme::AMQPS => self.tls.read().map_err(DialProblem::Tls)?,
        };
        let runtime = lapin::runtime::default_runtime()
            .map_err(|error| DialProblem::Unavailable(error.to_string()))?;
        let name = format!("{} ({})", self.connection_name, purpose.as_str());
        let properties = ConnectionProperties::default().with_connection_name(name.into());
        let (kept, limit) = (socket.clone(), self.connect_timeout);
        let attempt = Box::pin(Connection::connector(
            broker.uri.clone(),
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
                match tokio::time::timeout(limit, open).await {
                    Ok(stream) => Ok(stream?),
                    Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
                }
            },
            properties,
        ));
        match tokio::time::timeout(limit, attempt).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(BrokerFault::of(&error).into()),
            Err(_) => Err(DialProblem::Unavailable(
                "the broker accepted the connection but did not answer in time".to_owned(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    fn brokers(uri: &str) -> Login<Arc<[Broker]>> {
        Login::new([Broker::new(uri.parse().unwrap(), "the test's host")].into())
    }

    fn dialer(port: u16) -> Dialer {
        let uri = format!("amqp://ann:geheim@127.0.0.1:{port}");
        Dialer {
            brokers: brokers(&uri),
            tls: TlsFiles::default(),
            connection_name: "test".to_owned(),
            connect_timeout: Duration::from_millis(200),
            goodbye: "the test ends",
        }
    }

    async fn failure(dialer: &Dialer) -> DialFailure {
        let outcome = dialer.dial(0, ConnectionPurpose::Publish, 1).await;
        outcome.err().unwrap()
    }

    #[tokio::test]
    async fn a_port_without_a_listener_is_not_reached() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let dialer = dialer(listener.local_addr().unwrap().port());
        drop(listener);
        let failure = failure(&dialer).await;
        assert!(!failure.reached && !failure.problem.is_refusal());
        assert!(!dialer.brokers.current()[0].accepts_connections().await);
    }

    #[tokio::test]
    async fn a_mute_peer_is_reached_and_given_up_at_the_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let dialer = dialer(listener.local_addr().unwrap().port());
        assert!(dialer.brokers.current()[0].accepts_connections().await);
        let failure = failure(&dialer).await;
        assert!(failure.reached && !failure.problem.is_refusal());
        let shown = format!("{failure:?} {dialer:?}");
        assert!(shown.contains("the test's host") && !shown.contains("geheim"));
    }

    #[tokio::test]
    async fn new_logins_are_for_the_same_hosts_and_need_no_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let dialer = dialer(port);
        let renew = |uri: String| dialer.renew_logins(brokers(&uri).current().to_vec());
        let same = renew(format!("amqp://ann:geheim@127.0.0.1:{port}")).await;
        assert_eq!(same.unwrap(), Renewal::Unchanged);
        for place in [
            format!("127.0.0.1:{port}/other"),
            format!("localhost:{port}"),
        ] {
            let other = renew(format!("amqp://ann:geheim@{place}")).await.unwrap();
            assert!(matches!(other, Renewal::NextStart(_)), "{other:?}");
        }
        let mute = renew(format!("amqp://bob:secret@127.0.0.1:{port}")).await;
        assert!(matches!(mute.unwrap(), Renewal::Untested(_)));
        let user = &dialer.brokers.current()[0].uri.authority.userinfo.username;
        assert_eq!(user, "bob");
    }
}
