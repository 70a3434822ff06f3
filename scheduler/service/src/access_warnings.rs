//! Warnings at each start about access that the configuration leaves open.

use crate::config::{AgentIdentity, Config};
use std::net::SocketAddr;

/// The addresses on which the service really listens.
pub(crate) struct ListenAddresses {
    pub(crate) grpc: SocketAddr,
    pub(crate) http: SocketAddr,
    /// True if agents are connected over a broker, not in this process.
    pub(crate) broker: bool,
}

/// One warning for each open access.
pub(crate) fn warnings(config: &Config, at: &ListenAddresses) -> Vec<String> {
    let mut lines = Vec::new();
    for (section, address, tls) in [
        ("grpc", at.grpc, &config.grpc.tls),
        ("http", at.http, &config.http.tls),
    ] {
        if tls.is_none() && !address.ip().is_loopback() {
            lines.push(format!(
                "{section} listens on {address} in plain text, as {section}.insecure allows: something in front has to do TLS"
            ));
        }
    }
    if !config.auth.is_configured() {
        lines.push(format!(
            "there is no [auth]: everybody who can connect to {} is an operator. `ebbtide-manage init` makes certificates and a token, \
             docs/operate/security.md has the rest",
            at.grpc
        ));
    }
    if at.broker && config.bus.agent_identity == AgentIdentity::None {
        lines.push(
            "bus.agent_identity = \"none\": everybody with a login to the broker speaks for every host. `ebbtide-manage init` makes a login for each \
             agent; then set it to \"user-id\""
                .to_owned(),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Bus;
    use std::path::PathBuf;

    fn at(grpc: &str, broker: bool) -> ListenAddresses {
        ListenAddresses {
            grpc: grpc.parse().unwrap(),
            http: "127.0.0.1:2".parse().unwrap(),
            broker,
        }
    }

    #[test]
    fn what_is_open_is_said_and_what_is_closed_is_not() {
        let open = Config::default();
        let lines = warnings(&open, &at("127.0.0.1:1", true));
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("no [auth]") && lines[0].contains("127.0.0.1:1"));
        assert!(lines[1].contains("agent_identity"));
        assert_eq!(warnings(&open, &at("127.0.0.1:1", false)).len(), 1);
        let lines = warnings(&open, &at("0.0.0.0:1", false));
        assert!(lines[0].contains("plain text"), "{lines:?}");

        let mut closed = Config {
            bus: Bus {
                agent_identity: AgentIdentity::UserId,
                ..Bus::default()
            },
            ..Config::default()
        };
        closed.auth.tokens = Some(PathBuf::from("tokens.toml"));
        assert_eq!(warnings(&closed, &at("127.0.0.1:1", true)), [""; 0]);
    }
}
