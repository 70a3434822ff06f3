//! Taking connections: counted, with TLS agreed on in tasks of their own.

use super::connection::{Connection, Stream};
use super::peer::{Peer, names_of};
use super::tls::TlsServer;
use crate::config::Limits;
use crate::error::ServiceError;
use crate::metrics::Metrics;
use crate::task::Tasks;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Connections that are ready and that nobody has taken yet.
const READY: usize = 64;
/// How long nothing is accepted after the system refused (usually: no file descriptors left).
const BREATH: Duration = Duration::from_millis(100);

/// A port that is taken and not served yet.
#[derive(Debug)]
pub(crate) struct Port {
    /// The address that was bound.
    pub(crate) address: SocketAddr,
    socket: TcpListener,
    name: &'static str,
}

impl Port {
    /// Takes it.
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

    /// Begins to take connections.
    pub(crate) fn open(
        self,
        tls: Option<Arc<TlsServer>>,
        limits: &Limits,
        metrics: Metrics,
        tasks: &Tasks,
    ) -> Connections {
        let (ready, connections) = mpsc::channel(READY);
        let address = self.address;
        let door = Door {
            name: self.name,
            seats: Arc::new(Seats {
                most: limits.connections,
                most_of_one: limits.connections_per_address,
                taken: Mutex::default(),
            }),
            handshake: limits.handshake(),
            tls,
            metrics,
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
                    Ok((socket, from)) => door.welcome(socket, from, &workers),
                    Err(error) => {
                        tracing::warn!(door = door.name, "no connection can be taken: {error}");
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
    /// The same as a stream, as tonic wants it. It ends with the service.
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
            // The service is ending; axum hears of that from elsewhere.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<Peer> {
        Ok(Peer {
            address: self.address,
            names: None,
        })
    }
}

struct Door {
    name: &'static str,
    seats: Arc<Seats>,
    handshake: Duration,
    tls: Option<Arc<TlsServer>>,
    metrics: Metrics,
    ready: mpsc::Sender<Connection>,
}

impl Door {
    fn welcome(&self, socket: TcpStream, from: SocketAddr, tasks: &Tasks) {
        let Some(place) = Seats::take(&self.seats, from.ip()) else {
            self.metrics.refused("connections");
            tracing::debug!(door = self.name, %from, "too many connections; this one is closed");
            return;
        };
        // Answers are small: waiting for more to send with them (Nagle) would cost 40 ms each.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(door = self.name, %from, "{error}");
        }
        let (ready, tls) = (self.ready.clone(), self.tls.clone());
        let (name, limit, metrics) = (self.name, self.handshake, self.metrics.clone());
        tasks.spawn("connection", async move {
            let connection = match tls {
                None => Connection::new(
                    Stream::Plain(socket),
                    Peer {
                        address: from,
                        names: None,
                    },
                    place,
                ),
                Some(tls) => {
                    let agreed = tokio::time::timeout(limit, tls.acceptor().accept(socket)).await;
                    let stream = match agreed {
                        Ok(Ok(stream)) => stream,
                        Ok(Err(error)) => {
                            metrics.refused("tls");
                            tracing::info!(door = name, %from, "no TLS: {error}");
                            return;
                        }
                        Err(_) => {
                            metrics.refused("tls");
                            tracing::info!(door = name, %from, "no TLS within {limit:?}");
                            return;
                        }
                    };
                    let shown = stream.get_ref().1.peer_certificates();
                    let names = shown
                        .and_then(|chain| chain.first())
                        .map(|leaf| Arc::new(names_of(leaf)));
                    let peer = Peer {
                        address: from,
                        names,
                    };
                    Connection::new(Stream::Tls(Box::new(stream)), peer, place)
                }
            };
            // Nobody takes it any more: the service is ending.
            let _ = ready.send(connection).await;
        });
    }
}

/// How many connections there are.
#[derive(Debug)]
struct Seats {
    most: usize,
    most_of_one: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    of: HashMap<IpAddr, usize>,
}

/// The place of one connection, given back with it.
#[derive(Debug)]
pub(super) struct Place {
    seats: Arc<Seats>,
    from: IpAddr,
}

impl Seats {
    fn take(this: &Arc<Self>, from: IpAddr) -> Option<Place> {
        let mut taken = this.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of_one = taken.of.get(&from).copied().unwrap_or(0);
        if taken.all >= this.most || of_one >= this.most_of_one {
            return None;
        }
        taken.all += 1;
        taken.of.insert(from, of_one + 1);
        Some(Place {
            seats: Arc::clone(this),
            from,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self
            .seats
            .taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        taken.all = taken.all.saturating_sub(1);
        let left = taken.of.get(&self.from).copied().unwrap_or(0);
        if left <= 1 {
            taken.of.remove(&self.from);
        } else {
            taken.of.insert(self.from, left - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_back_and_one_address_cannot_take_all() {
        let seats = Arc::new(Seats {
            most: 3,
            most_of_one: 2,
            taken: Mutex::default(),
        });
        let (one, two): (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let first = Seats::take(&seats, one).unwrap();
        let _second = Seats::take(&seats, one).unwrap();
        assert!(Seats::take(&seats, one).is_none(), "two of one address");
        let third = Seats::take(&seats, two).unwrap();
        assert!(Seats::take(&seats, two).is_none(), "three in all");
        drop(first);
        assert!(Seats::take(&seats, one).is_some());
        drop(third);
        assert_eq!(seats.taken.lock().unwrap().of.len(), 1);
    }
}
