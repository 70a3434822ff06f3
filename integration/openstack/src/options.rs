//! Who we are, where the services are, and how patient we are: plain data, from whatever
//! configuration there is.

mod lookup;

use crate::secret::Secret;
use std::path::PathBuf;
use std::time::Duration;

/// A user, project or application credential by its id, or by its name within a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdOrName {
    Id(String),
    /// By name, and the domain by id or name.
    Name {
        name: String,
        /// Its domain: `Ok` an id, `Err` a name, as Keystone's `{"id": …}` and `{"name": …}`.
        domain: Result<String, String>,
    },
}

/// What the token shall be good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenScope {
    /// What Keystone decides (the default project of the user; always so with application
    /// credentials).
    Unscoped,
    Project(IdOrName),
    /// A domain: `Ok` an id, `Err` a name.
    Domain(Result<String, String>),
    /// The whole system.
    System,
}

/// How we prove who we are; the names are keystoneauth's `auth_type`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthMethod {
    /// `password`, `v3password`.
    Password {
        user: IdOrName,
        password: Secret,
        scope: TokenScope,
    },
    /// `v3applicationcredential`.
    ApplicationCredential {
        /// The credential, by id, or by name.
        credential: ApplicationCredential,
        secret: Secret,
    },
    /// `token`, `v3token`: a token of Keystone for another one, with a scope of its own.
    Token { token: Secret, scope: TokenScope },
    /// `admin_token`: a fixed token and no Keystone; for test stacks.
    AdminToken { token: Secret },
    /// `none`: no token at all; for test stacks.
    None,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApplicationCredential {
    Id(String),
    /// By name among those of a user.
    Name {
        name: String,
        user: IdOrName,
    },
}

/// Keystone and the credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthOptions {
    /// Keystone's URL, with or without `/v3`. Not needed with [`AuthMethod::AdminToken`] and
    /// [`AuthMethod::None`].
    pub auth_url: Option<String>,
    /// The credentials.
    pub method: AuthMethod,
    /// Where services are that have no catalog: option `endpoint` of `admin_token` and `none`.
    pub endpoint: Option<String>,
    /// How to talk to Keystone over TLS, and to the services of this session.
    pub tls: TlsOptions,
    /// How long Keystone may take for an answer.
    pub timeout: Option<Duration>,
}

/// TLS; the names are keystoneauth's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// The certificates to trust, PEM. Without it, the system's.
    pub cafile: Option<PathBuf>,
    /// Accept every certificate. An attacker between client and service can then read passwords.
    pub insecure: bool,
    /// Our own certificate, PEM.
    pub certfile: Option<PathBuf>,
    /// Its key, PEM. May be in `certfile`, too.
    pub keyfile: Option<PathBuf>,
}

/// How a service is found and talked to; the names are keystoneauth's adapter options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterOptions {
    /// The service type in the catalog.
    pub service_type: String,
    /// The name in the catalog, if there are several of the type.
    pub service_name: Option<String>,
    /// In the order of preference: `internal`, `public`, `admin`.
    pub valid_interfaces: Vec<String>,
    /// Only endpoints of this region.
    pub region_name: Option<String>,
    /// This URL instead of the catalog's.
    pub endpoint_override: Option<String>,
    /// How long an answer may take. The default is 2 minutes: Placement needs seconds on large
    /// clouds, but a request must not wait forever.
    pub timeout: Option<Duration>,
    /// How often a connection that fails is tried again.
    pub connect_retries: u32,
    /// The first wait between two tries; it doubles each time, up to a minute.
    pub connect_retry_delay: Option<Duration>,
}

impl AdapterOptions {
    /// Nova's defaults for a service of this type.
    #[must_use]
    pub fn new(service_type: &str) -> Self {
        Self {
            service_type: service_type.to_owned(),
            service_name: None,
            valid_interfaces: vec!["internal".to_owned(), "public".to_owned()],
            region_name: None,
            endpoint_override: None,
            timeout: None,
            connect_retries: 0,
            connect_retry_delay: None,
        }
    }

    /// Nova's defaults for section `[placement]`.
    #[must_use]
    pub fn placement() -> Self {
        Self::new("placement")
    }

    /// keystonemiddleware's defaults for Keystone's API: the internal interface alone, three tries
    /// after the first.
    #[must_use]
    pub fn identity() -> Self {
        Self {
            valid_interfaces: vec!["internal".to_owned()],
            connect_retries: 3,
            ..Self::new("identity")
        }
    }

    /// For Nova's own API.
    #[must_use]
    pub fn compute() -> Self {
        Self::new("compute")
    }
}

/// What all requests of a session have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOptions {
    /// Header `User-Agent`.
    pub user_agent: String,
    /// How long it may take until a connection stands.
    pub connect_timeout: Duration,
    /// How many idle connections are kept to each service.
    pub idle_connections: usize,
    /// Limit for concurrent requests. Further requests wait here, in order: an overloaded service
    /// would answer none of them in time.
    pub max_in_flight: usize,
    /// The largest answer that is read, in bytes.
    pub max_answer_bytes: usize,
}

impl SessionOptions {
    /// Defaults for a program of this name.
    #[must_use]
    pub fn new(program: &str) -> Self {
        Self {
            user_agent: format!("{program}/{}", env!("CARGO_PKG_VERSION")),
            // A service that does not take a connection for 10 s is down; keystoneauth waits for
            // TCP, which is minutes.
            connect_timeout: Duration::from_secs(10),
            idle_connections: 32,
            max_in_flight: 256,
            // The candidates of 10,000 hosts are 20 MB.
            max_answer_bytes: 512 << 20,
        }
    }
}
