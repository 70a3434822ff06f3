//! What Nova takes from the machine where its configuration says nothing.

use std::net::UdpSocket;

/// Name and address of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Default of `[DEFAULT] host` (`socket.gethostname()`).
    pub hostname: String,
    /// Default of `[DEFAULT] my_ip`: the address by which the machine reaches others.
    pub ip: String,
}

impl Machine {
    /// Asks the kernel. The address is that of the route to a documentation address, as oslo.utils
    /// finds it; nothing is sent.
    #[must_use]
    pub fn here() -> Self {
        // Not from /proc/sys: services under systemd's ProcSubset=pid do not see it.
        let hostname = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        let route = UdpSocket::bind(("0.0.0.0", 0)).and_then(|socket| {
            socket.connect(("192.0.2.0", 80))?;
            socket.local_addr()
        });
        Self {
            hostname,
            ip: route.map_or_else(
                |_| "127.0.0.1".to_owned(),
                |address| address.ip().to_string(),
            ),
        }
    }
}
