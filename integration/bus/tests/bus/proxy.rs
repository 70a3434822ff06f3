//! A TCP proxy between the bus and the broker, to break the network in ways a broker would not.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};

/// What the proxy does with bytes and with new connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Forward,
    /// New connections are accepted and closed at once.
    Refuse,
    /// Everything is accepted and nothing is passed on, as by a dead machine behind a load
    /// balancer.
    Mute,
}

pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: JoinHandle<()>,
}

struct Shared {
    target: String,
    mode: watch::Sender<Mode>,
    connections: Mutex<Vec<AbortHandle>>,
    accepted: watch::Sender<usize>,
    open: watch::Sender<usize>,
}

impl Proxy {
    pub async fn start(target: &str, mode: Mode) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            target: target.to_owned(),
            mode: watch::Sender::new(mode),
            connections: Mutex::new(Vec::new()),
            accepted: watch::Sender::new(0),
            open: watch::Sender::new(0),
        });
        let acceptor = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            acceptor,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn set(&self, mode: Mode) {
        self.shared.mode.send_replace(mode);
    }

    /// Cuts every connection that is open now.
    pub fn sever(&self) {
        for connection in self.shared.connections.lock().unwrap().drain(..) {
            connection.abort();
        }
    }

    /// How many connections were ever accepted.
    pub fn accepted(&self) -> watch::Receiver<usize> {
        self.shared.accepted.subscribe()
    }

    /// How many connections the client side holds open now.
    pub fn open(&self) -> watch::Receiver<usize> {
        self.shared.open.subscribe()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.acceptor.abort();
        self.sever();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        shared.accepted.send_modify(|n| *n += 1);
        if *shared.mode.borrow() == Mode::Refuse {
            continue;
        }
        shared.open.send_modify(|n| *n += 1);
        let counted = Counted(Arc::clone(&shared));
        let task = tokio::spawn(async move {
            serve(client, &counted.0).await;
            drop(counted);
        });
        shared.connections.lock().unwrap().push(task.abort_handle());
    }
}

/// Counts a connection out again, also when its task is aborted.
struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.open.send_modify(|n| *n -= 1);
    }
}

async fn serve(client: TcpStream, shared: &Shared) {
    let (mut from_client, mut to_client) = client.into_split();
    let mut mode = shared.mode.subscribe();
    // A mute peer still notices when the client goes away.
    if *mode.borrow() == Mode::Mute {
        let mut ignored = [0; 4096];
        loop {
            tokio::select! {
                read = from_client.read(&mut ignored) => if !matches!(read, Ok(n) if n > 0) { return },
                // What was swallowed is gone, so this connection is of no use any more.
                _ = mode.wait_for(|mode| *mode != Mode::Mute) => return,
            }
        }
    }
    let Ok(broker) = TcpStream::connect(&shared.target).await else {
        return;
    };
    let (mut from_broker, mut to_broker) = broker.into_split();
    let mut other = shared.mode.subscribe();
    tokio::select! {
        () = copy(&mut from_client, &mut to_broker, &mut mode) => {}
        () = copy(&mut from_broker, &mut to_client, &mut other) => {}
    }
}

async fn copy(
    from: &mut (impl AsyncReadExt + Unpin),
    to: &mut (impl AsyncWriteExt + Unpin),
    mode: &mut watch::Receiver<Mode>,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = match from.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => count,
        };
        if mode.wait_for(|mode| *mode != Mode::Mute).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
