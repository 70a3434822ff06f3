//! A TCP proxy in front of the broker: keeps what clients send, can cut connections, and can refuse
//! them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};

pub struct Tap {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Mutex<JoinHandle<()>>,
}

struct Shared {
    target: String,
    open: watch::Sender<bool>,
    connections: Mutex<Vec<AbortHandle>>,
    sent: Mutex<Vec<Vec<u8>>>,
}

impl Tap {
    pub async fn start(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            target: target.to_owned(),
            open: watch::Sender::new(true),
            connections: Mutex::default(),
            sent: Mutex::default(),
        });
        let acceptor = Mutex::new(tokio::spawn(accept(listener, Arc::clone(&shared))));
        Self {
            address,
            shared,
            acceptor,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts every connection; new ones wait until [`Tap::open`].
    pub fn cut(&self) {
        self.shared.open.send_replace(false);
        for connection in self.shared.connections.lock().unwrap().drain(..) {
            connection.abort();
        }
    }

    pub fn open(&self) {
        self.shared.open.send_replace(true);
    }

    /// Cuts every connection; new ones are refused, as by a host on which no broker runs, until
    /// [`Tap::come_back`].
    pub async fn vanish(&self) {
        let mut acceptor = tokio::spawn(async {});
        std::mem::swap(&mut acceptor, &mut self.acceptor.lock().unwrap());
        acceptor.abort();
        // The listener is closed when its task has ended.
        assert!(acceptor.await.unwrap_err().is_cancelled());
        self.cut();
    }

    /// Ends what [`Tap::vanish`] began.
    pub async fn come_back(&self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.open();
        *self.acceptor.lock().unwrap() = tokio::spawn(accept(listener, Arc::clone(&self.shared)));
    }

    /// What each connection has sent to the broker so far.
    pub fn sent(&self) -> Vec<Vec<u8>> {
        self.shared.sent.lock().unwrap().clone()
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.acceptor.lock().unwrap().abort();
        self.cut();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        if !*shared.open.borrow() {
            continue;
        }
        let number = {
            let mut sent = shared.sent.lock().unwrap();
            sent.push(Vec::new());
            sent.len() - 1
        };
        let task = tokio::spawn(serve(client, Arc::clone(&shared), number));
        shared.connections.lock().unwrap().push(task.abort_handle());
    }
}

async fn serve(client: TcpStream, shared: Arc<Shared>, number: usize) {
    let Ok(broker) = TcpStream::connect(&shared.target).await else {
        return;
    };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_broker, mut to_broker) = broker.into_split();
    let up = async {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
            shared.sent.lock().unwrap()[number].extend_from_slice(&buffer[..count]);
            if to_broker.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = up => {}
        _ = tokio::io::copy(&mut from_broker, &mut to_client) => {}
    }
}
