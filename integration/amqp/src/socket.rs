//! A second handle on the socket of a connection, to cut it at any time.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// The handle. Clones share the socket.
#[derive(Clone, Default)]
pub(crate) struct SocketHandle(Arc<Mutex<Socket>>);

#[derive(Default)]
enum Socket {
    #[default]
    NotYet,
    Open(TcpStream),
    /// Given up. A socket that is opened after this is refused.
    Done,
}

impl SocketHandle {
    /// Keeps an open socket.
    pub(crate) fn keep(&self, stream: TcpStream) -> io::Result<()> {
        let mut socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*socket, Socket::Done) {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        *socket = Socket::Open(stream);
        Ok(())
    }

    /// Cuts the socket. True if it was open.
    pub(crate) fn shut_down(&self) -> bool {
        let mut socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Socket::Open(stream) = std::mem::replace(&mut *socket, Socket::Done) {
            // It fails only if the peer was quicker.
            let _ = stream.shutdown(Shutdown::Both);
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (here, listener.accept().unwrap().0)
    }

    #[test]
    fn the_peer_of_a_cut_socket_reads_the_end() {
        let (here, mut there) = pair();
        let handle = SocketHandle::default();
        handle.keep(here.try_clone().unwrap()).unwrap();
        assert!(handle.shut_down());
        assert_eq!(there.read(&mut [0]).unwrap(), 0);
        assert!(!handle.shut_down());
    }

    #[test]
    fn a_socket_that_opens_after_the_end_is_refused() {
        let handle = SocketHandle::default();
        assert!(!handle.shut_down());
        let error = handle.keep(pair().0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
