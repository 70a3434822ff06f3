//! The question of a container's health check: whether the process that runs with the same
//! configuration is ready. One request to its page `/readyz`, over loopback, without a runtime.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;
use thiserror::Error;

/// Container engines give a health check 30 seconds; a page that takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest answer that is read. A page that is not ready names up to twenty hosts.
const LONGEST_ANSWER: u64 = 16 * 1024;

/// Why a process does not count as healthy.
#[derive(Debug, Error)]
pub enum HealthError {
    /// The page does not answer.
    #[error("{address} does not answer: {source}; is the process running?")]
    NoAnswer {
        /// The address of the pages.
        address: SocketAddr,
        /// The error of the connection.
        source: io::Error,
    },
    /// The page answers that the process is not ready.
    #[error("{address} answers: {answer}")]
    NotReady {
        /// The address of the pages.
        address: SocketAddr,
        /// The answer, without its headers.
        answer: String,
    },
    /// The configuration has no page that can be asked.
    #[error("the health page cannot be asked: {problem}; {next}")]
    NoPage {
        /// What the configuration lacks.
        problem: &'static str,
        /// What to do.
        next: &'static str,
    },
}

impl HealthError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoAnswer { .. } => "EB-HEALTH-001",
            Self::NotReady { .. } => "EB-HEALTH-002",
            Self::NoPage { .. } => "EB-HEALTH-003",
        }
    }
}

/// Asks the process whose pages are at `listen` whether it is ready.
///
/// # Errors
/// [`HealthError`], if it is not.
pub fn ask(listen: SocketAddr) -> Result<(), HealthError> {
    if listen.port() == 0 {
        return Err(HealthError::NoPage {
            problem: "its port is 0, which takes a free one at each start",
            next: "name a port",
        });
    }
    let address = reachable(listen);
    let answer = answer_of(address).map_err(|source| HealthError::NoAnswer { address, source })?;
    if answer.split_ascii_whitespace().nth(1) == Some("200") {
        return Ok(());
    }
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let told = if body.trim().is_empty() { head } else { body };
    let answer = told.trim().to_owned();
    Err(HealthError::NotReady { address, answer })
}

/// A process that listens on all addresses is asked on loopback.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

fn answer_of(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.take(LONGEST_ANSWER).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread::JoinHandle;

    /// A page that answers one request, and hands the request over when it is joined.
    fn page(answer: &'static str) -> (SocketAddr, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") {
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(request).unwrap()
        });
        (address, served)
    }

    #[test]
    fn a_page_that_answers_200_is_healthy() {
        let (address, served) = page("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nready\n");
        ask(address).unwrap();
        assert!(served.join().unwrap().starts_with("GET /readyz HTTP/1.1"));
    }

    #[test]
    fn a_page_that_is_not_ready_says_why() {
        let (address, served) = page("HTTP/1.1 503 x\r\n\r\nnot ready: no broker\n");
        let error = ask(address).unwrap_err();
        served.join().unwrap();
        assert_eq!(error.code(), "EB-HEALTH-002");
        assert!(
            error.to_string().contains("not ready: no broker"),
            "{error}"
        );
    }

    #[test]
    fn a_port_without_a_listener_is_no_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        assert_eq!(ask(address).unwrap_err().code(), "EB-HEALTH-001");
    }

    #[test]
    fn all_addresses_are_asked_on_loopback_and_a_free_port_cannot_be() {
        for (listen, expected) in [
            ("0.0.0.0:7471", "127.0.0.1:7471"),
            ("[::]:7471", "[::1]:7471"),
            ("192.0.2.7:7471", "192.0.2.7:7471"),
        ] {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), expected);
        }
        let error = ask("127.0.0.1:0".parse().unwrap()).unwrap_err();
        assert_eq!(error.code(), "EB-HEALTH-003");
    }
}
