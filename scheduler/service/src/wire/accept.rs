//! Accepts and counts connections. The TLS handshake of each runs in a task of its own.

use super::connection::{Connection, Stream};
use super::peer::{Peer, names_of};
use super::tls::TlsServer;
use crate::Tasks;
use crate::config::CallerLimits;
use crate::error::ServiceError;
use crate::metrics::Refusals;
use ebbtide_listen::{
    CloseReason, ConnectionSlots, Deadlines, GuardedConnection, Protocol, Reporter,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Most connections that are ready and not yet accepted by the server.
const READY: usize = 64;
/// Pause after the system refused to accept a connection (usually: no file descriptors left).
const BREATH: Duration = Duration::from_millis(100);

/// A bound port that is not served yet.
#[derive(Debug)]
pub(crate) struct Port {
    /// The address that was bound.
    pub(crate) address: SocketAddr,
    socket: TcpListener,
    name: &'static str,
}

impl Port {
    /// Binds the port.
    ///
    /// # Errors
    /// [`ServiceError::Listen`].
    pub(crate) async fn take(
        name: &'static str,
        address: SocketAddr,
        option: &'static str,
    ) -> Result<Self, ServiceError> {
        let refused = |e: std::io::Error| ServiceError::Listen {
            what: name,
            address: address.to_string(),
            problem: e.to_string(),
            option,
        };
        let socket = TcpListener::bind(address).await.map_err(refused)?;
        let address = socket.local_addr().map_err(refused)?;
        Ok(Self {
            address,
            socket,
            name,
        })
    }

    /// Begins to accept connections.
    pub(crate) fn open(
        self,
        protocol: Protocol,
        tls: Option<Arc<TlsServer>>,
        limits: &CallerLimits,
        refusals: Refusals,
        tasks: &Tasks,
    ) -> Connections {
        let (ready, connections) = mpsc::channel(READY);
        let address = self.address;
        let counted = refusals.clone();
        let reporter = Reporter::new(self.name, move |why: CloseReason| {
            counted.refused(why.as_str())
        });
        let acceptor = Acceptor {
            name: self.name,
            slots: ConnectionSlots::new(limits.slots(), reporter),
            deadlines: limits.deadlines(),
            protocol,
            handshake: limits.handshake(),
            tls,
            refusals,
            ready,
        };
        let (workers, stop) = (tasks.clone(), tasks.stop().clone());
        tasks.spawn("accept", async move {
            loop {
                let accepted = tokio::select! {
                    accepted = self.socket.accept() => accepted,
                    () = stop.cancelled() => return,
                };
                match accepted {
                    Ok((socket, from)) => acceptor.welcome(socket, from, &workers),
                    Err(error) => {
                        tracing::warn!(
                            listener = acceptor.name,
                            "no connection can be taken: {error}"
                        );
                        tokio::time::sleep(BREATH).await;
                    }
                }
            }
        });
        Connections {
            address,
            connections,
        }
    }
}

/// Connections that are ready, one after another.
#[derive(Debug)]
pub(crate) struct Connections {
    address: SocketAddr,
    connections: mpsc::Receiver<Connection>,
}

impl Connections {
    /// The connections as a stream, for tonic. It ends with the service.
    pub(crate) fn into_stream(
        self,
    ) -> impl futures::Stream<Item = Result<Connection, std::io::Error>> + Send {
        use futures::StreamExt as _;
        tokio_stream::wrappers::ReceiverStream::new(self.connections).map(Ok)
    }
}

impl axum::serve::Listener for Connections {
    type Io = Connection;
    type Addr = Peer;

    async fn accept(&mut self) -> (Connection, Peer) {
        match self.connections.recv().await {
            Some(connection) => {
                let peer = connection.peer().clone();
                (connection, peer)
            }
            // The service is ending; axum is notified separately.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<Peer> {
        Ok(Peer {
            address: self.address,
            names: None,
            session: None,
        })
    }
}

struct Acceptor {
    name: &'static str,
    slots: ConnectionSlots,
    deadlines: Deadlines,
    protocol: Protocol,
    handshake: Duration,
    tls: Option<Arc<TlsServer>>,
    refusals: Refusals,
    ready: mpsc::Sender<Connection>,
}

impl Acceptor {
    fn welcome(&self, socket: TcpStream, from: SocketAddr, tasks: &Tasks) {
        let Some(session) = self.slots.take(from.ip()) else {
            return;
        };
        // Answers are small: Nagle's algorithm would delay each by 40 ms.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(listener = self.name, %from, "{error}");
        }
        let (ready, tls) = (self.ready.clone(), self.tls.clone());
        let (protocol, deadlines) = (self.protocol, self.deadlines);
        let (name, limit, refusals) = (self.name, self.handshake, self.refusals.clone());
        tasks.spawn("connection", async move {
            let agreed = tokio::select! {
                agreed = agree(socket, tls, limit) => agreed,
                () = session.closed() => return,
            };
            let (stream, names) = match agreed {
                Ok(agreed) => agreed,
                Err(problem) => {
                    refusals.refused("tls");
                    tracing::debug!(listener = name, %from, "no TLS: {problem}");
                    return;
                }
            };
            let peer = Peer {
                address: from,
                names,
                session: Some(session.clone()),
            };
            let stream = GuardedConnection::new(stream, session, protocol, deadlines);
            let connection = Connection::new(stream, peer);
            // Fails only if the service is ending.
            let _ = ready.send(connection).await;
        });
    }
}

/// Does the TLS handshake, if TLS is configured. Returns the stream and the names of the client's
/// certificate.
async fn agree(
    socket: TcpStream,
    tls: Option<Arc<TlsServer>>,
    limit: Duration,
) -> Result<(Stream, Option<Arc<Vec<String>>>), String> {
    let Some(tls) = tls else {
        return Ok((Stream::Plain(socket), None));
    };
    let stream = tokio::time::timeout(limit, tls.acceptor().accept(socket))
        .await
        .map_err(|_| format!("not agreed on within {limit:?}"))?
        .map_err(|error| error.to_string())?;
    let shown = stream.get_ref().1.peer_certificates();
    let names = shown
        .and_then(|chain| chain.first())
        .map(|leaf| Arc::new(names_of(leaf)));
    Ok((Stream::Tls(Box::new(stream)), names))
}
