//! Free loopback ports.

use crate::error::{Error, Result};
use ebbtide_runtime::ids;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

/// Below these are well-known services.
const LOWEST: u16 = 10_240;

/// How many ports are tried at random before the kernel is asked for one.
const TRIES: usize = 200;

/// A free TCP port on 127.0.0.1.
///
/// The port is chosen at random *below* the range from which the kernel takes ports for outgoing
/// connections. A server that is killed and restarted on its port then finds it free: no connection
/// of another program can have taken it meanwhile, and no client that keeps trying to reconnect can
/// have connected to itself.
///
/// Another process may still take the port before it is used. The caller must be ready to try
/// another port ([`crate::PrivateServer`] is).
///
/// # Errors
///
/// [`Error::Io`] when the machine has no free port.
pub fn free_port() -> Result<u16> {
    Ok(free_ports(1)?[0])
}

/// `count` different free ports.
pub(crate) fn free_ports(count: usize) -> Result<Vec<u16>> {
    let place = Path::new("a port of 127.0.0.1");
    // All are held open until the last one is known, so that they differ.
    let held: Vec<TcpListener> = (0..count)
        .map(|_| listen_somewhere().map_err(Error::io("listen on", place)))
        .collect::<Result<_>>()?;
    held.iter()
        .map(|listener| {
            let address = listener
                .local_addr()
                .map_err(Error::io("read the number of", place))?;
            Ok(address.port())
        })
        .collect()
}

fn listen_somewhere() -> std::io::Result<TcpListener> {
    // Linux's own default when the file cannot be read (ip(7)).
    let end = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_ascii_whitespace().next()?.parse().ok())
        .unwrap_or(32_768);
    if end > LOWEST {
        for _ in 0..TRIES {
            let port = LOWEST + random() % (end - LOWEST);
            if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                return Ok(listener);
            }
        }
    }
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
}

fn random() -> u16 {
    let [.., high, low] = ids::seed().to_be_bytes();
    u16::from_be_bytes([high, low])
}

/// Whether all of `ports` can be listened on now, with the option that servers use (`SO_REUSEADDR`,
/// which the standard library sets): connections of an earlier life in TIME_WAIT do not count.
pub(crate) fn are_free(ports: &[u16]) -> bool {
    ports
        .iter()
        .all(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_asked_for_together_differ_and_can_be_listened_on() {
        let mut ports = free_ports(20).unwrap();
        assert!(are_free(&ports));
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 20);
    }

    #[test]
    fn a_port_in_use_is_not_free() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert!(!are_free(&[listener.local_addr().unwrap().port()]));
    }
}
