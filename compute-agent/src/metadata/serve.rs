//! A listener for each guest: on a socket in the file system, or bound to the guest's own network interface, on which nobody
//! else's packets arrive.

use super::{Answer, Document, Reply, Request, Tokens, answer};
use crate::clock::Clock;
use crate::ids;
use crate::task::Attended;
use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};
use axum::middleware;
use axum::serve::Listener;
use ebbtide_listen::{Deadlines, Most, Reporter, Seats, http};
use ebbtide_model::{EvacuationId, ServerId};
use std::fmt::Debug;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener};

/// Where clouds have it.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);

/// Connections of one guest at a time; another one closes the one that has waited longest. Tools
/// have one or two.
const MOST: Most = Most {
    all: 32,
    of_one_address: 32,
    unauthenticated: 32,
};

/// The largest body of a request, in bytes. The largest that makes sense has some hundred.
const MAX_BODY: usize = 16 * 1024;

/// Time between two looks for a request that waits for a change.
const LOOK: Duration = Duration::from_millis(250);

/// How long a guest may keep a connection that asks for nothing.
const DEADLINES: Deadlines = Deadlines {
    first_bytes: Duration::from_secs(5),
    opening: Duration::from_secs(10),
    unauthenticated_idle: Duration::from_secs(30),
    idle: Duration::from_secs(30),
    // Longer than the longest request that is held.
    longest: Some(Duration::from_secs(600)),
};

/// Where the documents come from.
#[async_trait]
pub trait Source: Send + Sync + Debug {
    /// What is known of a guest; `None` if there is no such guest.
    ///
    /// # Errors
    /// If it cannot be read now.
    async fn document(&self, server_id: ServerId) -> io::Result<Option<Document>>;

    /// Notes that a guest needs no more time before the end that was announced to it.
    ///
    /// # Errors
    /// If it cannot be noted; then the guest has to ask again.
    async fn release(&self, server_id: ServerId, evacuation_id: EvacuationId) -> io::Result<()>;
}

/// One guest's metadata.
#[derive(Debug)]
struct GuestMetadata {
    server_id: ServerId,
    source: Arc<dyn Source>,
    clock: Arc<dyn Clock>,
    tokens: Mutex<Tokens>,
}

/// A listener for one guest; ends with this value.
#[derive(Debug)]
pub struct Open {
    _listening: Attended,
}

impl Open {
    /// Listens on a socket in the file system, in place of what was there.
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub fn on_socket(
        path: &Path,
        server_id: ServerId,
        source: Arc<dyn Source>,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        Ok(Self::on(
            UnixListener::bind(path)?,
            server_id,
            source,
            clock,
        ))
    }

    /// Listens on [`ADDRESS`], for what arrives on this network interface only. The interface must have the address.
    ///
    /// # Errors
    /// If there is no such interface, or this process may not bind to it (it needs CAP_NET_BIND_SERVICE for ports below 1024).
    pub fn on_interface(
        interface: &str,
        port: u16,
        server_id: ServerId,
        source: Arc<dyn Source>,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        // Other guests' listeners have the same address on other interfaces, and a guest that has just gone may have left a connection.
        socket.set_reuseaddr(true)?;
        socket.bind_device(Some(interface.as_bytes()))?;
        socket.bind(SocketAddr::from((ADDRESS, port)))?;
        let listener = FromGuest(socket.listen(64)?);
        Ok(Self::on(listener, server_id, source, clock))
    }

    fn on<L>(
        listener: L,
        server_id: ServerId,
        source: Arc<dyn Source>,
        clock: Arc<dyn Clock>,
    ) -> Self
    where
        L: Listener,
        L::Io: Unpin,
        L::Addr: Debug + http::Address,
    {
        let guest = Arc::new(GuestMetadata {
            server_id,
            source,
            clock,
            tokens: Mutex::new(Tokens::new(ids::secret)),
        });
        let app = Router::new()
            .fallback(handle)
            .layer(DefaultBodyLimit::max(MAX_BODY))
            .layer(middleware::from_fn(http::calls))
            .with_state(guest)
            .into_make_service_with_connect_info::<http::Connection>();
        let reporter = Reporter::new("metadata of a guest", |_| {});
        let listener = http::Limited::new(listener, Seats::new(MOST, reporter), DEADLINES);
        let listening = async move {
            if let Err(error) = axum::serve(listener, app).await {
                tracing::error!(%server_id, %error, "a guest's metadata is not served any more");
            }
        };
        Self {
            _listening: Attended::spawn("metadata of a guest", listening),
        }
    }
}

async fn handle(
    State(guest): State<Arc<GuestMetadata>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let mut request = Request::new(method.as_str(), target).with_body(body);
    for (name, value) in &headers {
        if let Ok(value) = value.to_str() {
            request = request.with_header(name.as_str(), value);
        }
    }
    match guest.reply(&request).await {
        Ok(reply) => response(reply, method == Method::HEAD),
        Err(error) => {
            tracing::warn!(server_id = %guest.server_id, %error, "a guest's metadata cannot be read or changed");
            let problem = Reply::new(503, "text/plain", "503 - Service Unavailable\n");
            response(problem, method == Method::HEAD)
        }
    }
}

impl GuestMetadata {
    async fn look(&self, request: &Request) -> io::Result<Answer> {
        let Some(document) = self.source.document(self.server_id).await? else {
            return Ok(Answer::Reply(Reply::not_found()));
        };
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(answer(request, &document, self.clock.now(), &mut tokens))
    }

    async fn reply(&self, request: &Request) -> io::Result<Reply> {
        let held = match self.look(request).await? {
            Answer::Reply(reply) => return Ok(reply),
            Answer::Release(evacuation_id, reply) => {
                self.source.release(self.server_id, evacuation_id).await?;
                return Ok(reply);
            }
            Answer::Hold(held) => held,
        };
        let changed = async {
            loop {
                tokio::time::sleep(LOOK).await;
                match self.look(request).await? {
                    Answer::Hold(now) if now.tag == held.tag => {}
                    Answer::Hold(now) => return Ok(now.now),
                    Answer::Reply(reply) | Answer::Release(_, reply) => return Ok(reply),
                }
            }
        };
        match tokio::time::timeout(held.limit, changed).await {
            Ok(changed) => changed,
            Err(_) => Ok(held.now),
        }
    }
}

fn response(reply: Reply, head: bool) -> Response<Body> {
    let mut response = Response::new(match head {
        true => Body::empty(),
        false => Body::from(reply.body),
    });
    *response.status_mut() =
        StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in reply.headers {
        // Values are ours; names of servers stand in bodies only.
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Hangs up on the host's own programs: what they send to an interface's address seems to arrive on it, and their own address is
/// the same one, which no guest can send from.
struct FromGuest(TcpListener);

impl Listener for FromGuest {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (io, address) = Listener::accept(&mut self.0).await;
            if address.ip() != ADDRESS {
                return (io, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

#[cfg(test)]
mod tests;
