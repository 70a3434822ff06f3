//! The part of the configuration about authentication, authorization and limits.

use ebbtide_access::bucket::Allowance;
use ebbtide_access::certificate::CertificateRow;
use ebbtide_listen::{ConnectionLimits, Deadlines};
use ebbtide_model::settings::{OutOfRange, check_ranges};
use ebbtide_model::toml_text;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

ebbtide_model::settings! {
    /// `[grpc.tls]` and `[http.tls]`: PEM files, read again within a second of a change.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Tls {
        /// The server's certificate and what is between it and a root, leaf first, in PEM. Read
        /// again within a second of a change.
        pub certificate: PathBuf => key("/etc/ebbtide/tls/server.pem");
        /// Its private key (PKCS#8, PKCS#1 or SEC1, in PEM). Read again within a second of a
        /// change.
        pub key: PathBuf => key("/etc/ebbtide/tls/server.key");
        /// Roots of the certificates of clients. With it clients are asked for one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub client_ca: Option<PathBuf> = None => key("/etc/ebbtide/tls/clients.pem");
        /// Revoked certificates of clients; with `client_ca`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub client_crl: Option<PathBuf> = None => key("/etc/ebbtide/tls/revoked.pem");
        /// With `client_ca`: whether a client may come without a certificate and bring a token.
        #[serde(default)]
        pub client_certificates: ClientCertificates = ClientCertificates::default()
            => key("optional");
    }
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

ebbtide_model::words!(ClientCertificates, AgentIdentity);

ebbtide_model::settings! {
    /// `[auth]`: authentication of callers. If nothing is set, every client that can connect is an
    /// operator.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Auth: Default {
        /// The file of hashes that `ebbtide-manage token` writes; read again within a second of a
        /// change. With nothing set in `[auth]`, every client that can connect is an operator.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tokens: Option<PathBuf> = None => key("/etc/ebbtide/tokens");
        /// Which certificates have which role.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub certificates: Vec<CertificateRow> = Vec::new();
        /// Whether a certificate may name its role itself (URI ebbtide:role/operator,
        /// ebbtide:role/reader, ebbtide:project/NAME). Right where the authority signs for Ebbtide
        /// only.
        pub roles_in_certificates: bool = false => key("true");
        /// Listen on other addresses than loopback without authentication: every client that can
        /// connect is an operator.
        pub allow_unauthenticated: bool = false => key("true");
        /// Whether /metrics needs no token and no certificate.
        pub open_metrics: bool = false => key("true");
    }
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

ebbtide_model::settings! {
    /// `[limits]`: how much of the scheduler one caller can have.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct CallerLimits: Default {
        /// Largest request that is read.
        // A request for a thousand instances with their ids and a list of hosts is a tenth of
        // it.
        pub request_bytes: usize = 1024 * 1024 => key("4194304").range(4096..=16_777_216);
        /// Largest report of an agent that is looked at; RabbitMQ's own `max_message_size` should
        /// be the same.
        pub bus_message_bytes: usize = ebbtide_model::message::MAX_BYTES
            => key("1048576").range(65_536..=4_194_304);
        /// Connections at the same time, of gRPC and of HTTP each.
        pub connections: usize = ConnectionLimits::default().all => key("4096").range(1..=100_000);
        /// Of those, from one address. A proxy in front has one address.
        pub connections_per_address: usize = ConnectionLimits::default().of_one_address => key("64").range(1..=100_000);
        /// Of those from one address, without an authenticated call so far. Above it the oldest
        /// that is older than a second is closed.
        pub unauthenticated_per_address: usize = ConnectionLimits::default().unauthenticated
            => key("16").range(1..=100_000);
        /// From the start of a connection to its first byte.
        pub first_bytes_seconds: f64 = Deadlines::default().first_bytes.as_secs_f64()
            => key("2.0").range(0.1..=600.0);
        /// From the start of a connection to the end of HTTP/2's preface or of the first request's
        /// headers.
        pub headers_seconds: f64 = Deadlines::default().opening.as_secs_f64() => key("5.0").range(0.1..=600.0);
        /// How long a connection may have no call in progress before its first authenticated call.
        pub unauthenticated_idle_seconds: f64 = Deadlines::default().unauthenticated_idle.as_secs_f64()
            => key("10.0").range(0.1..=86_400.0);
        /// How long a connection may have no call in progress after that. A watch is a call in
        /// progress.
        pub idle_seconds: f64 = Deadlines::default().idle.as_secs_f64() => key("3600.0").range(1.0..=86_400.0);
        /// Calls at the same time on one connection.
        pub streams_per_connection: u32 = 256 => key("100").range(1..=10_000);
        /// How long TLS may take to be agreed on.
        pub handshake_seconds: f64 = 10.0 => key("5.0").range(0.1..=600.0);
        /// How long a request may take, unless waiting is what it asks for.
        pub request_seconds: f64 = 60.0 => key("30.0").range(0.1..=3600.0);
        /// Requests of each operator's or reader's token or certificate.
        // A replay of a trace by one operator's token makes thousands.
        pub requests_per_second: f64 = 10_000.0 => key("500.0").range(0.01..=1e6).unit("a second");
        /// Of those, at once after a rest.
        pub burst: f64 = 20_000.0 => key("1000.0").range(1.0..=1e6);
        /// Requests of each tenant, all its tokens together. A request for several servers counts
        /// as many times.
        pub tenant_requests_per_second: f64 = 50.0
            => key("10.0").range(0.01..=1e6).unit("a second");
        /// Of those, at once after a rest.
        pub tenant_burst: f64 = 200.0 => key("50.0").range(1.0..=1e6);
        /// Event streams at the same time of each operator's or reader's token or certificate.
        pub watchers: u32 = 100 => key("20").range(1..=10_000);
        /// Event streams at the same time of each tenant.
        pub tenant_watchers: u32 = 10 => key("0").range(0..=10_000);
    }
}

/// A file with nothing but `[limits]`, for OpenStack mode: its other settings are in nova.conf.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsFile {
    limits: CallerLimits,
}

impl CallerLimits {
    /// Reads the section `[limits]` of a TOML file that has no other.
    ///
    /// # Errors
    /// The file cannot be read, or a key is unknown, malformed or out of range: file, line, key and
    /// what is allowed.
    pub fn read(path: &Path) -> Result<Self, String> {
        let wrong = |problem: &str| format!("{}: {problem}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error.to_string()))?;
        let file: LimitsFile = toml::from_str(&text)
            .map_err(|e| wrong(&toml_text::problem(&text, e.span(), e.message())))?;
        let within = |range: OutOfRange| wrong(&range.within("limits").to_string());
        check_ranges(&file.limits).map_err(within)?;
        Ok(file.limits)
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
    pub fn slots(&self) -> ConnectionLimits {
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
pub(crate) fn check_listener(
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
    fn a_file_of_limits_is_read_and_its_errors_name_file_key_and_range() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("limits.toml");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            CallerLimits::read(&path)
        };
        let limits = read("[limits]\ntenant_requests_per_second = 2.5\n").unwrap();
        let others = CallerLimits {
            tenant_requests_per_second: 2.5,
            ..CallerLimits::default()
        };
        assert_eq!(limits, others);
        for (text, words) in [
            ("[limits]\nbursts = 1.0\n", "bursts"),
            ("[limits]\nburst = \"many\"\n", "line 2"),
            ("[limits]\nburst = 0.0\n", "limits.burst"),
            ("[grpc]\n", "grpc"),
            ("", "limits"),
        ] {
            let error = read(text).unwrap_err();
            let named = error.contains("limits.toml") && error.contains(words);
            assert!(named, "{text}: {error}");
        }
        assert!(CallerLimits::read(Path::new("/nowhere/limits.toml")).is_err());
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
            check_listener("grpc", at, tls, insecure, auth)
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
