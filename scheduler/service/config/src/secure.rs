//! The part of the configuration about authentication, authorization and limits.

use ebbtide_access::bucket::Allowance;
use ebbtide_access::certificate::CertificateRow;
use ebbtide_listen::{ConnectionLimits, Deadlines};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// `[grpc.tls]` and `[http.tls]`: PEM files, read again within a second of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The server's certificate and what is between it and a root, leaf first.
    pub certificate: PathBuf,
    /// Its private key (PKCS#8, PKCS#1 or SEC1).
    pub key: PathBuf,
    /// Root certificates of clients. If set, the server requests a certificate from each client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_ca: Option<PathBuf>,
    /// Revoked certificates of clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_crl: Option<PathBuf>,
    /// With `client_ca`: whether a client may come without a certificate (and bring a token).
    #[serde(default)]
    pub client_certificates: ClientCertificates,
}

/// See [`Tls::client_certificates`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientCertificates {
    /// A client without a certificate is refused.
    #[default]
    Required,
    /// A client without a certificate sends a token.
    Optional,
}

/// `[auth]`: authentication of callers. If nothing is set, every client that can connect is an
/// operator.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Auth {
    /// The file of hashes that `ebbtide-manage token` writes; read again within a second of a
    /// change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<PathBuf>,
    /// Which certificates have which role.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<CertificateRow>,
    /// Whether a certificate may name its role itself (URI `ebbtide:role/operator`,
    /// `ebbtide:role/reader`, `ebbtide:project/NAME`).
    pub roles_in_certificates: bool,
    /// Whether to listen on addresses other than loopback without authentication.
    pub allow_unauthenticated: bool,
    /// Whether `/metrics` needs no authentication even though other calls do.
    pub open_metrics: bool,
}

impl Auth {
    /// True if callers are authenticated.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        self.tokens.is_some() || self.uses_certificates()
    }

    /// True if a certificate can give a role.
    #[must_use]
    pub fn uses_certificates(&self) -> bool {
        !self.certificates.is_empty() || self.roles_in_certificates
    }
}

/// `bus.agent_identity`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentIdentity {
    /// The scheduler accepts reports from every client of the broker.
    #[default]
    None,
    /// The broker confirms the user that sends a report.
    UserId,
}

/// `[limits]`: how much of the scheduler one caller can have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallerLimits {
    /// Largest request that is read. Bytes.
    pub request_bytes: usize,
    /// Largest report of an agent that is looked at. Bytes; RabbitMQ's own `max_message_size`
    /// should be the same.
    pub bus_message_bytes: usize,
    /// Connections at the same time, of gRPC and of HTTP each.
    pub connections: usize,
    /// Of those, from one address.
    pub connections_per_address: usize,
    /// Of those from one address, without an authenticated call so far.
    pub unauthenticated_per_address: usize,
    /// From the start of a connection to its first byte. Seconds.
    pub first_bytes_seconds: f64,
    /// From the start of a connection to the end of HTTP/2's preface or of the first headers.
    /// Seconds.
    pub headers_seconds: f64,
    /// How long a connection may have no call in progress before its first authenticated one.
    /// Seconds.
    pub unauthenticated_idle_seconds: f64,
    /// How long a connection may have no call in progress after that. Seconds.
    pub idle_seconds: f64,
    /// Calls at the same time on one connection.
    pub streams_per_connection: u32,
    /// How long TLS may take to be agreed on. Seconds.
    pub handshake_seconds: f64,
    /// How long a request may take, unless waiting is what it asks for. Seconds.
    pub request_seconds: f64,
    /// Requests a second of each operator's or reader's token or certificate.
    pub requests_per_second: f64,
    /// Of those, at once after a rest.
    pub burst: f64,
    /// Requests a second of each tenant, all its tokens together.
    pub tenant_requests_per_second: f64,
    /// Of those, at once after a rest.
    pub tenant_burst: f64,
    /// Event streams at the same time of each operator's or reader's token or certificate.
    pub watchers: u32,
    /// Event streams at the same time of each tenant.
    pub tenant_watchers: u32,
}

impl Default for CallerLimits {
    fn default() -> Self {
        let (most, deadlines) = (ConnectionLimits::default(), Deadlines::default());
        Self {
            // A request for a thousand instances with their ids and a list of hosts is a tenth of
            // it.
            request_bytes: 1024 * 1024,
            bus_message_bytes: ebbtide_model::message::MAX_BYTES,
            connections: most.all,
            connections_per_address: most.of_one_address,
            unauthenticated_per_address: most.unauthenticated,
            first_bytes_seconds: deadlines.first_bytes.as_secs_f64(),
            headers_seconds: deadlines.opening.as_secs_f64(),
            unauthenticated_idle_seconds: deadlines.unauthenticated_idle.as_secs_f64(),
            idle_seconds: deadlines.idle.as_secs_f64(),
            streams_per_connection: 256,
            handshake_seconds: 10.0,
            request_seconds: 60.0,
            // A replay of a trace by one operator's token makes thousands.
            requests_per_second: 10_000.0,
            burst: 20_000.0,
            tenant_requests_per_second: 50.0,
            tenant_burst: 200.0,
            watchers: 100,
            tenant_watchers: 10,
        }
    }
}

impl CallerLimits {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The key, what it is, and what it may be.
    pub fn check(&self) -> Result<(), String> {
        let mega = 1024.0 * 1024.0;
        for (key, value, low, high) in [
            (
                "request_bytes",
                self.request_bytes as f64,
                4096.0,
                16.0 * mega,
            ),
            (
                "bus_message_bytes",
                self.bus_message_bytes as f64,
                65_536.0,
                ebbtide_model::message::MAX_BYTES as f64,
            ),
            ("connections", self.connections as f64, 1.0, 100_000.0),
            (
                "connections_per_address",
                self.connections_per_address as f64,
                1.0,
                100_000.0,
            ),
            (
                "unauthenticated_per_address",
                self.unauthenticated_per_address as f64,
                1.0,
                100_000.0,
            ),
            ("first_bytes_seconds", self.first_bytes_seconds, 0.1, 600.0),
            ("headers_seconds", self.headers_seconds, 0.1, 600.0),
            (
                "unauthenticated_idle_seconds",
                self.unauthenticated_idle_seconds,
                0.1,
                86_400.0,
            ),
            ("idle_seconds", self.idle_seconds, 1.0, 86_400.0),
            (
                "streams_per_connection",
                f64::from(self.streams_per_connection),
                1.0,
                10_000.0,
            ),
            ("handshake_seconds", self.handshake_seconds, 0.1, 600.0),
            ("request_seconds", self.request_seconds, 0.1, 3_600.0),
            ("requests_per_second", self.requests_per_second, 0.01, 1e6),
            ("burst", self.burst, 1.0, 1e6),
            (
                "tenant_requests_per_second",
                self.tenant_requests_per_second,
                0.01,
                1e6,
            ),
            ("tenant_burst", self.tenant_burst, 1.0, 1e6),
            ("watchers", f64::from(self.watchers), 1.0, 10_000.0),
            (
                "tenant_watchers",
                f64::from(self.tenant_watchers),
                0.0,
                10_000.0,
            ),
        ] {
            if !(low..=high).contains(&value) {
                return Err(format!("limits.{key} = {value}: use {low} to {high}"));
            }
        }
        Ok(())
    }

    /// What an account may do: a tenant's, or an operator's or reader's.
    #[must_use]
    pub fn allowance(&self, tenant: bool) -> Allowance {
        let (per_second, burst) = if tenant {
            (self.tenant_requests_per_second, self.tenant_burst)
        } else {
            (self.requests_per_second, self.burst)
        };
        Allowance { per_second, burst }
    }

    /// Numbers of connections.
    #[must_use]
    pub fn seats(&self) -> ConnectionLimits {
        ConnectionLimits {
            all: self.connections,
            of_one_address: self.connections_per_address,
            unauthenticated: self.unauthenticated_per_address,
        }
    }

    /// How long a connection may wait without a call in progress.
    #[must_use]
    pub fn deadlines(&self) -> Deadlines {
        let defaults = Deadlines::default();
        let time = |seconds, or| Duration::try_from_secs_f64(seconds).unwrap_or(or);
        Deadlines {
            first_bytes: time(self.first_bytes_seconds, defaults.first_bytes),
            opening: time(self.headers_seconds, defaults.opening),
            unauthenticated_idle: time(
                self.unauthenticated_idle_seconds,
                defaults.unauthenticated_idle,
            ),
            idle: time(self.idle_seconds, defaults.idle),
            longest: None,
        }
    }

    /// How long TLS may take to be agreed on.
    #[must_use]
    pub fn handshake(&self) -> Duration {
        Duration::try_from_secs_f64(self.handshake_seconds).unwrap_or(Duration::from_secs(10))
    }

    /// How long a request may take.
    #[must_use]
    pub fn request(&self) -> Duration {
        Duration::try_from_secs_f64(self.request_seconds).unwrap_or(Duration::from_secs(60))
    }
}

/// Refuses a listener that strangers could use without the operator having decided so.
pub(crate) fn check_door(
    section: &str,
    listen: SocketAddr,
    tls: Option<&Tls>,
    insecure: bool,
    auth: &Auth,
) -> Result<(), String> {
    if let Some(tls) = tls
        && (tls.client_ca.is_some() || tls.client_crl.is_some())
    {
        if tls.client_ca.is_none() {
            return Err(format!(
                "{section}.tls.client_crl is set without client_ca: name the authority whose certificates are revoked"
            ));
        }
        if !auth.uses_certificates() && auth.tokens.is_none() {
            return Err(format!(
                "{section}.tls.client_ca is set, but [auth] gives no certificate a role: write [[auth.certificates]] rows, or \
                 auth.roles_in_certificates = true"
            ));
        }
    }
    if listen.ip().is_loopback() {
        return Ok(());
    }
    if tls.is_none() && !insecure {
        return Err(format!(
            "{section}.listen = \"{listen}\" is not a loopback address, and there is no [{section}.tls]: everything, tokens included, \
             could be read on the way. Give it a certificate, or write {section}.insecure = true if something in front does TLS"
        ));
    }
    if !auth.is_configured() && !auth.allow_unauthenticated {
        return Err(format!(
            "{section}.listen = \"{listen}\" is not a loopback address, and there is no authentication: every client that can connect \
             would be an operator. Set auth.tokens (see `ebbtide-manage token create`), or auth.allow_unauthenticated = true"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_in_their_ranges() {
        assert_eq!(CallerLimits::default().check(), Ok(()));
    }

    #[test]
    fn a_limit_out_of_range_is_named() {
        let spoiled = CallerLimits {
            tenant_burst: 0.0,
            ..CallerLimits::default()
        };
        assert!(spoiled.check().unwrap_err().contains("limits.tenant_burst"));
        let spoiled = CallerLimits {
            request_seconds: f64::NAN,
            ..CallerLimits::default()
        };
        assert!(spoiled.check().is_err());
    }

    #[test]
    fn strangers_are_kept_out_unless_the_operator_decided_otherwise() {
        let (near, far) = ("127.0.0.1:1".parse().unwrap(), "0.0.0.0:1".parse().unwrap());
        let tls = Tls {
            certificate: "c".into(),
            key: "k".into(),
            client_ca: None,
            client_crl: None,
            client_certificates: ClientCertificates::Required,
        };
        let (open, asked) = (
            Auth::default(),
            Auth {
                tokens: Some("t".into()),
                ..Auth::default()
            },
        );
        let check = |at, tls: Option<&Tls>, insecure, auth: &Auth| {
            check_door("grpc", at, tls, insecure, auth)
        };
        assert!(check(near, None, false, &open).is_ok());
        assert!(
            check(far, None, false, &asked)
                .unwrap_err()
                .contains("grpc.tls")
        );
        assert!(check(far, Some(&tls), false, &asked).is_ok());
        assert!(check(far, None, true, &asked).is_ok());
        let error = check(far, Some(&tls), false, &open).unwrap_err();
        assert!(error.contains("auth.tokens"), "{error}");
        let allowed = Auth {
            allow_unauthenticated: true,
            ..Auth::default()
        };
        assert!(check(far, Some(&tls), false, &allowed).is_ok());
        let mutual = Tls {
            client_ca: Some("ca".into()),
            ..tls
        };
        assert!(check(near, Some(&mutual), false, &open).is_err());
        assert!(check(near, Some(&mutual), false, &asked).is_ok());
    }
}
