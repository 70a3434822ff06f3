//! A listener for each guest: on a socket in the file system, or bound to the guest's own network
//! interface, on which only this guest's packets arrive.

use super::{Document, GuestReply, MetadataAnswer, MetadataRequest, Tokens, answer};
use crate::clock::Clock;
use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};
use axum::middleware;
use axum::serve::Listener;
use ebbtide_listen::{ConnectionLimits, ConnectionSlots, Deadlines, Reporter, http};
use ebbtide_model::{EvacuationId, ServerId};
use ebbtide_runtime::ids;
use ebbtide_runtime::task::{self, Task};
use std::fmt::Debug;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener};

/// The metadata address of the public clouds.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);

/// Maximum number of connections of one guest. A further one closes the connection that has been
/// idle the longest. Tools use one or two.
const MOST: ConnectionLimits = ConnectionLimits {
    all: 32,
    of_one_address: 32,
    unauthenticated: 32,
};

/// Maximum size of a request's body, in bytes. Sensible requests have a few hundred.
const MAX_BODY: usize = 16 * 1024;

/// Interval of checks for a request that waits for a change.
const LOOK: Duration = Duration::from_millis(250);

/// How long a guest may keep a connection without a request.
const DEADLINES: Deadlines = Deadlines {
    first_bytes: Duration::from_secs(5),
    opening: Duration::from_secs(10),
    unauthenticated_idle: Duration::from_secs(30),
    idle: Duration::from_secs(30),
    // Longer than the maximum time for which a request is held.
    longest: Some(Duration::from_secs(600)),
};

#[async_trait]
pub trait DocumentSource: Send + Sync + Debug {
    /// The data about a guest; `None` if there is no such guest.
    ///
    /// # Errors
    /// The data cannot be read now.
    async fn document(&self, server_id: ServerId) -> io::Result<Option<Document>>;

    /// Records that a guest releases the rest of its time before the announced end.
    ///
    /// # Errors
    /// The release cannot be recorded; then the guest has to repeat the request.
    async fn release(&self, server_id: ServerId, evacuation_id: EvacuationId) -> io::Result<()>;
}

/// One guest's metadata.
#[derive(Debug)]
struct GuestMetadata {
    server_id: ServerId,
    source: Arc<dyn DocumentSource>,
    clock: Arc<dyn Clock>,
    tokens: Mutex<Tokens>,
}

/// A listener for one guest; stops when it is dropped.
#[derive(Debug)]
pub struct OpenListener {
    _listening: Task,
}

impl OpenListener {
    /// Listens on a socket in the file system and replaces an existing one.
    ///
    /// # Errors
    /// The socket cannot be created.
    pub fn on_socket(
        path: &Path,
        server_id: ServerId,
        source: Arc<dyn DocumentSource>,
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

    /// Listens on [`ADDRESS`], only for packets that arrive on this network interface. The
    /// interface must have the address.
    ///
    /// # Errors
    /// There is no such interface, or this process may not bind to it (it needs
    /// CAP_NET_BIND_SERVICE for ports below 1024).
    pub fn on_interface(
        interface: &str,
        port: u16,
        server_id: ServerId,
        source: Arc<dyn DocumentSource>,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        // Other guests' listeners use the same address on other interfaces, and a guest that has
        // just gone may have left a connection.
        socket.set_reuseaddr(true)?;
        socket.bind_device(Some(interface.as_bytes()))?;
        socket.bind(SocketAddr::from((ADDRESS, port)))?;
        let listener = FromGuest(socket.listen(64)?);
        Ok(Self::on(listener, server_id, source, clock))
    }

    fn on<L>(
        listener: L,
        server_id: ServerId,
        source: Arc<dyn DocumentSource>,
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
            tokens: Mutex::new(Tokens::new(ids::secret_hex)),
        });
        let app = Router::new()
            .fallback(handle)
            .layer(DefaultBodyLimit::max(MAX_BODY))
            .layer(middleware::from_fn(http::calls))
            .with_state(guest)
            .into_make_service_with_connect_info::<http::Connection>();
        let reporter = Reporter::new("metadata of a guest", |_| {});
        let listener =
            http::LimitedListener::new(listener, ConnectionSlots::new(MOST, reporter), DEADLINES);
        let listening = async move {
            if let Err(error) = axum::serve(listener, app).await {
                tracing::error!(%server_id, %error, "a guest's metadata is not served any more");
            }
        };
        Self {
            _listening: task::spawn("metadata of a guest", listening),
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
    let mut request = MetadataRequest::new(method.as_str(), target).with_body(body);
    for (name, value) in &headers {
        if let Ok(value) = value.to_str() {
            request = request.with_header(name.as_str(), value);
        }
    }
    match guest.reply(&request).await {
        Ok(reply) => response(reply, method == Method::HEAD),
        Err(error) => {
            tracing::warn!(server_id = %guest.server_id, %error, "a guest's metadata cannot be read or changed");
            let problem = GuestReply::new(503, "text/plain", "503 - Service Unavailable\n");
            response(problem, method == Method::HEAD)
        }
    }
}

impl GuestMetadata {
    async fn current_answer(&self, request: &MetadataRequest) -> io::Result<MetadataAnswer> {
        let Some(document) = self.source.document(self.server_id).await? else {
            return Ok(MetadataAnswer::Reply(GuestReply::not_found()));
        };
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(answer(request, &document, self.clock.now(), &mut tokens))
    }

    async fn reply(&self, request: &MetadataRequest) -> io::Result<GuestReply> {
        let held = match self.current_answer(request).await? {
            MetadataAnswer::Reply(reply) => return Ok(reply),
            MetadataAnswer::Release(evacuation_id, reply) => {
                self.source.release(self.server_id, evacuation_id).await?;
                return Ok(reply);
            }
            MetadataAnswer::Hold(held) => held,
        };
        let changed = async {
            loop {
                tokio::time::sleep(LOOK).await;
                match self.current_answer(request).await? {
                    MetadataAnswer::Hold(now) if now.tag == held.tag => {}
                    MetadataAnswer::Hold(now) => return Ok(now.now),
                    MetadataAnswer::Reply(reply) | MetadataAnswer::Release(_, reply) => {
                        return Ok(reply);
                    }
                }
            }
        };
        match tokio::time::timeout(held.limit, changed).await {
            Ok(changed) => changed,
            Err(_) => Ok(held.now),
        }
    }
}

fn response(reply: GuestReply, head: bool) -> Response<Body> {
    let mut response = Response::new(match head {
        true => Body::empty(),
        false => Body::from(reply.body),
    });
    *response.status_mut() =
        StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in reply.headers {
        // The values come from this program; names of servers appear only in bodies.
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Closes connections from the host's own programs. Their packets to an interface's address seem to
/// arrive on that interface, and their source address is that same address, from which no guest can
/// send.
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
